//! Translates bound expressions to compiler code. Parts that cannot be compiled are evaluated for
//! the whole chunk first and become inputs of the code.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::*;
use tessera_codegen::{InputCode, InputPlace, MachineType, Op, TextCode, ValueCode};
use tessera_types::{Atom, Result};
use tessera_vector::Chunk;

use super::BoundExpr;
use super::bind::{Node, NodeKind};
use super::evaluate::{View, evaluate};
use tessera_values::kernel::as_boolean;
use tessera_values::with_whole_number;

/// The origin of an input of compiled code.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A field of the tuple.
    Field(usize),
    /// A part of an expression, given as a path: the conjunct, then the operand of each node.
    Part(BoundExpr, Vec<usize>),
}

impl Origin {
    /// Computes the values of all tuples of a chunk, ignoring its selection, in plain form.
    ///
    /// # Errors
    /// As [`BoundExpr::evaluate`].
    pub fn values(&self, chunk: &Chunk, parameters: &Chunk) -> Result<ArrayRef> {
        match self {
            Origin::Field(field) => chunk.stored()[*field].plain(),
            Origin::Part(bound, path) => {
                let node = part(&bound.nodes[path[0]], &path[1..]);
                evaluate(node, &View::all(chunk.stored(), chunk.rows_stored(), parameters))?.plain()
            }
        }
    }
}

fn part<'a>(node: &'a Node, path: &[usize]) -> &'a Node {
    let Some((&first, rest)) = path.split_first() else { return node };
    let (mut number, mut found) = (0, node);
    node.each_child(&mut |child| {
        if number == first {
            found = child;
        }
        number += 1;
    });
    part(found, rest)
}

/// Translates expressions over one tuple to code over shared inputs.
#[derive(Debug)]
pub struct Coder {
    /// The inputs of the code.
    pub inputs: Vec<InputCode>,
    /// The origin of each input.
    pub origins: Vec<Origin>,
    /// Fields from this index on are values that several expressions share.
    shared: usize,
    /// Whether code may read strings; if not, expressions over strings are evaluated first.
    texts: bool,
}

impl Coder {
    /// Creates a coder for tuples with this many fields; higher field indexes are shared values.
    pub fn new(fields: usize) -> Coder {
        Coder { inputs: Vec::new(), origins: Vec::new(), shared: fields, texts: false }
    }

    /// Sets whether code may read strings.
    pub fn with_texts(self, texts: bool) -> Coder {
        Coder { texts, ..self }
    }

    /// Translates an expression; `None` if it cannot be compiled. `always` says that it is
    /// evaluated for every tuple.
    pub fn value(&mut self, bound: &BoundExpr, always: bool) -> Option<ValueCode> {
        let before = self.inputs.len();
        let code = match &*bound.nodes {
            [node] => self.node(bound, &mut vec![0], node, always),
            conjuncts => {
                let list = conjuncts.iter().enumerate();
                let list =
                    list.map(|(at, node)| self.node(bound, &mut vec![at], node, always && at == 0));
                list.collect::<Option<_>>().map(Op::And).map(|op| ValueCode {
                    op,
                    machine: MachineType::Boolean,
                    nullable: bound.nullable,
                })
            }
        };
        if code.is_none() {
            self.truncate(before);
        }
        code
    }

    fn truncate(&mut self, inputs: usize) {
        self.inputs.truncate(inputs);
        self.origins.truncate(inputs);
    }

    fn node(
        &mut self,
        bound: &BoundExpr,
        path: &mut Vec<usize>,
        node: &Node,
        always: bool,
    ) -> Option<ValueCode> {
        let machine = MachineType::from_atom(&node.atom)?;
        let code = |op| ValueCode { op, machine, nullable: node.nullable };
        let before = self.inputs.len();
        if let Some(op) = self.op(bound, path, node, machine, always) {
            return Some(code(op));
        }
        self.truncate(before);
        let mut is_alone = true;
        walk(node, &mut |node| {
            is_alone &= !matches!(node.kind, NodeKind::Field(field) if field >= self.shared)
        });
        if !is_alone || node.raises && !always {
            return None;
        }
        self.inputs.push(InputCode::column(machine, true));
        self.origins.push(Origin::Part(bound.clone(), path.clone()));
        Some(code(Op::Input(before)))
    }

    fn op(
        &mut self,
        bound: &BoundExpr,
        path: &mut Vec<usize>,
        node: &Node,
        machine: MachineType,
        always: bool,
    ) -> Option<Op> {
        let mut operand = |this: &mut Self, number: usize, node: &Node, always: bool| {
            path.push(number);
            let code = this.node(bound, path, node, always);
            path.pop();
            code
        };
        let mut several = |this: &mut Self, list: &[Node], first_only: bool| {
            let list = list.iter().enumerate();
            list.map(|(at, node)| operand(this, at, node, always && (!first_only || at == 0)))
                .collect::<Option<Vec<_>>>()
        };
        Some(match &node.kind {
            NodeKind::Field(field) if *field >= self.shared => Op::Shared(field - self.shared),
            NodeKind::Field(field) => Op::Input(self.field(*field, machine, node.nullable)),
            NodeKind::Constant(value) => constant(value, &node.atom)?,
            NodeKind::Call { kernel, args } if self.texts && args.iter().any(is_text) => kernel
                .code_of_texts(args.iter().map(|arg| self.text(arg)).collect::<Option<_>>()?)?,
            NodeKind::Call { kernel, args } => {
                kernel.code(several(self, args, false)?, &node.atom)?
            }
            NodeKind::And(list) => Op::And(several(self, list, true)?),
            NodeKind::Or(list) => Op::Or(several(self, list, true)?),
            NodeKind::Coalesce(list) => Op::Coalesce(several(self, list, true)?),
            NodeKind::Not(input) => Op::Not(Box::new(operand(self, 0, input, always)?)),
            NodeKind::IsNull(input) if self.texts && is_text(input) => match self.text(input)? {
                TextCode::Input(number) => Op::IsNull(Box::new(ValueCode {
                    op: Op::Input(number),
                    machine: VIEW,
                    nullable: input.nullable,
                })),
                _ => return None,
            },
            NodeKind::IsNull(input) => Op::IsNull(Box::new(operand(self, 0, input, always)?)),
            NodeKind::Case { branches, otherwise } => {
                let mut codes = Vec::with_capacity(branches.len());
                for (at, (condition, value)) in branches.iter().enumerate() {
                    let condition = operand(self, at * 2, condition, always && at == 0)?;
                    codes.push((condition, operand(self, at * 2 + 1, value, false)?));
                }
                let otherwise = match otherwise {
                    Some(value) => Some(Box::new(operand(self, branches.len() * 2, value, false)?)),
                    None => None,
                };
                Op::Case(codes, otherwise)
            }
            NodeKind::Parameter(_) | NodeKind::Try(_) | NodeKind::Lambda(_) => return None,
        })
    }

    /// Translates a string expression.
    fn text(&mut self, node: &Node) -> Option<TextCode> {
        match &node.kind {
            _ if !is_text(node) => None,
            NodeKind::Field(field) if *field < self.shared => {
                let number = self.field(*field, VIEW, node.nullable);
                self.inputs[number].place = InputPlace::Views;
                Some(TextCode::Input(number))
            }
            NodeKind::Constant(value) => {
                let texts = value.as_string_view_opt()?;
                texts.is_valid(0).then(|| TextCode::Constant(texts.value(0).into()))
            }
            NodeKind::Call { kernel, args } => {
                let (text, others) = args.split_first()?;
                let constant = |arg: &'_ Node| match &arg.kind {
                    NodeKind::Constant(value) => Some(value.clone()),
                    _ => None,
                };
                let others = others.iter().map(constant).collect::<Option<Vec<_>>>()?;
                kernel.text_code(self.text(text)?, &others.iter().collect::<Vec<_>>())
            }
            _ => None,
        }
    }

    fn field(&mut self, field: usize, machine: MachineType, nullable: bool) -> usize {
        let is_it = |origin: &Origin| matches!(origin, Origin::Field(other) if *other == field);
        self.origins.iter().position(is_it).unwrap_or_else(|| {
            self.inputs.push(InputCode::column(machine, nullable));
            self.origins.push(Origin::Field(field));
            self.inputs.len() - 1
        })
    }
}

/// The machine type of a string view.
const VIEW: MachineType = MachineType::Integer { bits: 128, signed: false };

fn is_text(node: &Node) -> bool {
    matches!(node.atom, Atom::String | Atom::Uuid)
}

fn walk<'a>(node: &'a Node, visit: &mut dyn FnMut(&'a Node)) {
    visit(node);
    node.each_child(&mut |child| walk(child, visit));
}

fn constant(value: &ArrayRef, atom: &Atom) -> Option<Op> {
    if value.is_null(0) {
        return Some(Op::Null);
    }
    macro_rules! integer {
        ($type:ty) => {
            Op::Integer(value.as_primitive_opt::<$type>()?.value(0) as i128)
        };
    }
    Some(match atom {
        Atom::Boolean => Op::Integer(as_boolean(value).ok()?.value(0).into()),
        Atom::Float32 => {
            Op::Float(f64::from(value.as_primitive_opt::<Float32Type>()?.value(0)).to_bits())
        }
        Atom::Float64 => Op::Float(value.as_primitive_opt::<Float64Type>()?.value(0).to_bits()),
        whole_number => with_whole_number!(whole_number, integer, return None),
    })
}
