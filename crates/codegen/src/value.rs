//! Expressions of the IR: machine types, scalar expressions over inputs, and user functions.

use std::sync::Arc;

use arrow::datatypes::DataType;
use tessera_types::Atom;

/// The largest expression ([`ValueCode::size`]) that is compiled; larger ones take a compiler
/// seconds.
pub const MAX_CODE_SIZE: usize = 1_000;

/// The size that one compared string adds to [`ValueCode::size`].
const TEXT_SIZE: usize = 5;

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `IS DISTINCT FROM`
    Distinct,
    /// `IS NOT DISTINCT FROM`
    NotDistinct,
}

impl Comparison {
    /// Returns the operator that the library function `name` implements.
    pub fn from_name(name: &str) -> Option<Comparison> {
        Some(match name {
            "eq" => Comparison::Eq,
            "not_eq" => Comparison::NotEq,
            "lt" => Comparison::Lt,
            "lt_eq" => Comparison::LtEq,
            "gt" => Comparison::Gt,
            "gt_eq" => Comparison::GtEq,
            "is_distinct" => Comparison::Distinct,
            "is_not_distinct" => Comparison::NotDistinct,
            _ => return None,
        })
    }

    /// Whether NULL compares like a value, so that the result is never NULL.
    pub fn is_total(self) -> bool {
        matches!(self, Comparison::Distinct | Comparison::NotDistinct)
    }
}

/// A binary arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
}

impl Operation {
    /// Returns the operator that the library function `name` implements.
    pub fn from_name(name: &str) -> Option<Operation> {
        Some(match name {
            "add" => Operation::Add,
            "sub" => Operation::Sub,
            "mul" => Operation::Mul,
            "div" => Operation::Div,
            "mod" => Operation::Mod,
            _ => return None,
        })
    }

    /// The operator's SQL symbol.
    pub fn symbol(self) -> char {
        match self {
            Operation::Add => '+',
            Operation::Sub => '-',
            Operation::Mul => '*',
            Operation::Div => '/',
            Operation::Mod => '%',
        }
    }
}

/// The in-memory representation of a fixed-width type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MachineType {
    /// One bit in a column, one byte as a single value.
    Boolean,
    /// An integer; also decimals, dates, times, timestamps and durations.
    Integer {
        /// Width in bits: 8 to 128.
        bits: u32,
        /// Whether the integer is signed (two's complement).
        signed: bool,
    },
    /// 32-bit IEEE float.
    Float32,
    /// 64-bit IEEE float.
    Float64,
}

impl MachineType {
    /// Size in bytes of a single value outside of a column.
    pub fn bytes(self) -> usize {
        match self {
            MachineType::Boolean => 1,
            MachineType::Integer { bits, .. } => bits as usize / 8,
            MachineType::Float32 => 4,
            MachineType::Float64 => 8,
        }
    }

    /// Returns the representation of an atom; `None` for strings, intervals and nested types.
    pub fn from_atom(atom: &Atom) -> Option<MachineType> {
        MachineType::from_arrow(&atom.arrow())
    }

    /// Returns the representation of a plain Arrow type; `None` where it has none.
    pub fn from_arrow(data_type: &DataType) -> Option<MachineType> {
        let signed = |bits| MachineType::Integer { bits, signed: true };
        Some(match data_type {
            DataType::Boolean => MachineType::Boolean,
            DataType::Float32 => MachineType::Float32,
            DataType::Float64 => MachineType::Float64,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                MachineType::Integer {
                    bits: data_type.primitive_width()? as u32 * 8,
                    signed: false,
                }
            }
            DataType::Interval(_) | DataType::Float16 | DataType::Decimal256(..) => return None,
            other => signed(other.primitive_width()? as u32 * 8),
        })
    }
}

/// A scalar expression: computes one value per tuple.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueCode {
    /// The operation that computes the value.
    pub op: Op,
    /// The type of the value.
    pub machine: MachineType,
    /// Whether the value may be NULL.
    pub nullable: bool,
}

/// The operation of an expression. Operands have the type of the result unless stated otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// The input with this index.
    Input(usize),
    /// The shared subexpression with this index ([`UpdateCode::shared`](crate::UpdateCode)).
    Shared(usize),
    /// NULL.
    Null,
    /// A constant integer, or a constant boolean (0 or 1).
    Integer(i128),
    /// A constant float: the bits of its 64-bit form.
    Float(u64),
    /// The runtime constant with this index. A compiler replaces the query's numbers by these, so
    /// that queries with other numbers reuse the code.
    RuntimeConstant(usize),
    /// Compares two values of one type as PostgreSQL does: NaN equals itself and is the greatest.
    Compare(Comparison, Box<[ValueCode; 2]>),
    /// Integer or float arithmetic; overflow and division by zero are errors.
    Arithmetic(Operation, Box<[ValueCode; 2]>),
    /// Decimal arithmetic; both operands are first multiplied by a factor to reach a common scale.
    Decimal {
        /// The operator; never a division.
        operation: Operation,
        /// The factors of the left and the right operand.
        factors: (i128, i128),
        /// Whether every result fits the type, so that overflow is not checked.
        exact: bool,
        /// The operands.
        args: Box<[ValueCode; 2]>,
    },
    /// The product or quotient of floats converted from decimals; the only error is division by
    /// zero.
    DecimalsAsFloats(Operation, Box<[ValueCode; 2]>),
    /// Casts an integer to a wider type and multiplies it by a factor; never overflows.
    Widen(i128, Box<ValueCode>),
    /// Casts an integer to a float and divides it by a power of ten.
    ToFloat(f64, Box<ValueCode>),
    /// Negates a signed number.
    Negate(Box<ValueCode>),
    /// AND in three-valued logic.
    And(Vec<ValueCode>),
    /// OR in three-valued logic.
    Or(Vec<ValueCode>),
    /// NOT in three-valued logic.
    Not(Box<ValueCode>),
    /// IS NULL of a value of any type.
    IsNull(Box<ValueCode>),
    /// The first operand that is not NULL.
    Coalesce(Vec<ValueCode>),
    /// CASE: (condition, value) pairs and the ELSE value; NULL where no condition is true and ELSE
    /// is absent.
    Case(Vec<(ValueCode, ValueCode)>, Option<Box<ValueCode>>),
    /// IN over integers of any type; NULL where the value is not found and `null` is set.
    InList {
        /// The value to find.
        value: Box<ValueCode>,
        /// The list.
        numbers: Vec<ValueCode>,
        /// Whether the list contains NULL.
        null: bool,
    },
    /// Calls a user-defined function; NULL where an argument is NULL.
    Function(Arc<FunctionCode>, Vec<ValueCode>),
    /// Equality of two strings; NULL where either is NULL.
    TextEquals(Box<[TextCode; 2]>),
    /// LIKE; NULL where the string is NULL.
    Like(Box<LikeCode>),
}

/// A string expression: one string per tuple.
#[derive(Debug, Clone, PartialEq)]
pub enum TextCode {
    /// The input with this index, in string views ([`crate::InputPlace::Views`]).
    Input(usize),
    /// A string literal of the query.
    Constant(Arc<str>),
    /// A runtime constant in three words: its view (16 bytes), then the address of its bytes.
    /// Strings of at most [`SHORT_TEXT_BYTES`] bytes are stored in their view.
    RuntimeConstant {
        /// Index of the first of the three words.
        first: usize,
        /// Whether the string is stored in its view.
        is_short: bool,
    },
    /// A substring, counted in characters.
    Substring {
        /// The string.
        text: Box<TextCode>,
        /// The number of characters to skip.
        skipped: u64,
        /// The maximum number of characters to keep; `None` keeps all.
        most: Option<u64>,
    },
}

/// The longest string, in bytes, that a view stores inline.
pub const SHORT_TEXT_BYTES: usize = 12;

/// A LIKE pattern without `_`: substrings that follow each other in the string, with any characters
/// between them.
#[derive(Debug, Clone, PartialEq)]
pub struct LikeCode {
    /// The string.
    pub text: TextCode,
    /// The required prefix.
    pub first: Option<TextCode>,
    /// The substrings between prefix and suffix, each matched at its leftmost position; none is
    /// empty.
    pub middle: Vec<TextCode>,
    /// The required suffix.
    pub last: Option<TextCode>,
}

impl Op {
    /// Calls `visit` on each compared string expression.
    pub fn each_text_mut(&mut self, visit: &mut dyn FnMut(&mut TextCode)) {
        match self {
            Op::TextEquals(texts) => texts.iter_mut().for_each(visit),
            Op::Like(like) => {
                let LikeCode { text, first, middle, last } = &mut **like;
                [text].into_iter().chain(first).chain(middle).chain(last).for_each(visit);
            }
            _ => {}
        }
    }

    /// The number of compared strings.
    fn texts(&self) -> usize {
        match self {
            Op::TextEquals(texts) => texts.len(),
            Op::Like(like) => 3 + like.middle.len(),
            _ => 0,
        }
    }
}

/// Calls `$visit` on each operand of an operation, by shared or mutable reference.
macro_rules! each_operand {
    ($op:expr, $visit:expr $(, $mut:ident)?) => {
        match & $($mut)? $op {
            Op::Input(_)
            | Op::Shared(_)
            | Op::Null
            | Op::Integer(_)
            | Op::Float(_)
            | Op::RuntimeConstant(_)
            | Op::TextEquals(_)
            | Op::Like(_) => {}
            Op::Compare(_, args)
            | Op::Arithmetic(_, args)
            | Op::Decimal { args, .. }
            | Op::DecimalsAsFloats(_, args) => {
                let [left, right] = & $($mut)? **args;
                $visit(left);
                $visit(right);
            }
            Op::Widen(_, value)
            | Op::ToFloat(_, value)
            | Op::Negate(value)
            | Op::Not(value)
            | Op::IsNull(value) => $visit(value),
            Op::And(list) | Op::Or(list) | Op::Coalesce(list) | Op::Function(_, list) => {
                for value in list {
                    $visit(value);
                }
            }
            Op::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    $visit(condition);
                    $visit(value);
                }
                if let Some(otherwise) = otherwise {
                    $visit(otherwise);
                }
            }
            Op::InList { value, numbers, .. } => {
                $visit(value);
                for number in numbers {
                    $visit(number);
                }
            }
        }
    };
}

impl ValueCode {
    /// The size of the expression: its number of nodes, with `TEXT_SIZE` more per compared
    /// string.
    pub fn size(&self) -> usize {
        let mut size = 1 + self.op.texts() * TEXT_SIZE;
        self.each_operand(&mut |operand| size += operand.size());
        size
    }

    /// Calls `visit` on each operand.
    pub fn each_operand<'a>(&'a self, visit: &mut dyn FnMut(&'a ValueCode)) {
        each_operand!(self.op, visit);
    }

    /// Calls `visit` on each user-defined function in the expression.
    pub fn each_function<'a>(&'a self, mut visit: impl FnMut(&'a Arc<FunctionCode>)) {
        let mut pending = vec![self];
        while let Some(code) = pending.pop() {
            if let Op::Function(function, _) = &code.op {
                visit(function);
            }
            code.each_operand(&mut |operand| pending.push(operand));
        }
    }

    /// Calls `visit` on a mutable reference to each operand.
    pub fn each_operand_mut(&mut self, visit: &mut dyn FnMut(&mut ValueCode)) {
        each_operand!(self.op, visit, mut);
    }
}

/// A user-defined scalar function in LLVM IR: the text of a module that defines `i32 @name(ptr
/// result, arguments…)`.
///
/// It is called for tuples without a NULL argument, writes its value to `result` and returns a
/// [`Status`]. Booleans are bytes (an argument may also be an `i1`), decimals their unscaled
/// integers, dates their days.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCode {
    /// The name of the function, in SQL and in the module.
    pub name: Arc<str>,
    /// The text of the LLVM module.
    pub ir: Arc<str>,
    /// The types of the arguments.
    pub args: Vec<MachineType>,
    /// The type of the result.
    pub result: MachineType,
    /// For decimals: results at or above this bound, or at or below its negative, overflow.
    pub limit: Option<i128>,
    /// Whether the module calls no function outside of itself.
    pub is_self_contained: bool,
}

/// The status that a user-defined function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The value was written.
    Value = 0,
    /// The value is NULL.
    Null = 1,
    /// The value overflows its type.
    Overflow = 2,
    /// Division by zero.
    DivisionByZero = 3,
    /// The arguments are invalid for another reason. Any other number means the same.
    InvalidArguments = 4,
}
