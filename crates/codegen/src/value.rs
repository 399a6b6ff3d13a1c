//! Values without names: types of machines, expressions over inputs, and functions.

use std::sync::Arc;

use arrow::datatypes::DataType;
use tessera_types::Atom;

/// The most that is compiled at once ([`ValueCode::size`]): beyond it compilers take seconds.
pub const SIZE_MAX: usize = 1_000;

/// What a text that is compared counts among the parts of what is compiled.
const TEXT_SIZE: usize = 5;

/// Which comparison.
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
    /// By function name.
    pub fn named(name: &str) -> Option<Comparison> {
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

    /// Whether NULL is compared like a value, so that the result is never NULL.
    pub fn is_total(self) -> bool {
        matches!(self, Comparison::Distinct | Comparison::NotDistinct)
    }
}

/// A binary operation.
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
    /// By function name.
    pub fn named(name: &str) -> Option<Operation> {
        Some(match name {
            "add" => Operation::Add,
            "sub" => Operation::Sub,
            "mul" => Operation::Mul,
            "div" => Operation::Div,
            "mod" => Operation::Mod,
            _ => return None,
        })
    }

    /// As written in SQL.
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

/// How values of a type of fixed width lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    /// One bit.
    Boolean,
    /// An integer: also decimals, dates, times, timestamps and durations.
    Integer {
        /// 8 to 128.
        bits: u32,
        /// Two's complement.
        signed: bool,
    },
    /// 32-bit IEEE float.
    Float32,
    /// 64-bit IEEE float.
    Float64,
}

impl Machine {
    /// How many bytes a value has that stands alone.
    pub fn bytes(self) -> usize {
        match self {
            Machine::Boolean => 1,
            Machine::Integer { bits, .. } => bits as usize / 8,
            Machine::Float32 => 4,
            Machine::Float64 => 8,
        }
    }

    /// That of an atom; none for strings, intervals and what is nested.
    pub fn of(atom: &Atom) -> Option<Machine> {
        Machine::of_arrow(&atom.arrow())
    }

    /// That of a plain Arrow form.
    pub fn of_arrow(data_type: &DataType) -> Option<Machine> {
        let signed = |bits| Machine::Integer { bits, signed: true };
        Some(match data_type {
            DataType::Boolean => Machine::Boolean,
            DataType::Float32 => Machine::Float32,
            DataType::Float64 => Machine::Float64,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Machine::Integer { bits: data_type.primitive_width()? as u32 * 8, signed: false }
            }
            DataType::Interval(_) | DataType::Float16 | DataType::Decimal256(..) => return None,
            other => signed(other.primitive_width()? as u32 * 8),
        })
    }
}

/// A value for each tuple.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueCode {
    /// What computes it.
    pub op: Op,
    /// Its type.
    pub machine: Machine,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// What computes a value. Operands have the type of the result where nothing else is said.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// An input.
    Input(usize),
    /// A value that several share.
    Shared(usize),
    /// NULL.
    Null,
    /// An integer's value, or a boolean's (0 or 1).
    Integer(i128),
    /// A float's bits, as a 64-bit one.
    Float(u64),
    /// A number that the code is given when it runs: a compiler puts these in the place of numbers
    /// of the query.
    Given(usize),
    /// A comparison of two values of one type, as in PostgreSQL: NaN is equal to itself and the
    /// greatest.
    Compare(Comparison, Box<[ValueCode; 2]>),
    /// Of integers or floats; what leaves the type is an error, and division by zero.
    Arithmetic(Operation, Box<[ValueCode; 2]>),
    /// Of decimals of any width: both are multiplied first, to a common scale.
    Decimal {
        /// Not a division.
        operation: Operation,
        /// What they are multiplied with.
        factors: (i128, i128),
        /// Whether each result fits the type.
        exact: bool,
        /// The operands.
        args: Box<[ValueCode; 2]>,
    },
    /// A product or quotient of floats which were decimals: only division by zero is an error.
    OfDecimals(Operation, Box<[ValueCode; 2]>),
    /// An integer as a wider one, times a factor; fits.
    Widen(i128, Box<ValueCode>),
    /// An integer as a float, divided by a power of ten.
    ToFloat(f64, Box<ValueCode>),
    /// Of a signed number.
    Negate(Box<ValueCode>),
    /// Kleene's conjunction.
    And(Vec<ValueCode>),
    /// Kleene's disjunction.
    Or(Vec<ValueCode>),
    /// Kleene's negation.
    Not(Box<ValueCode>),
    /// Whether a value of any type is NULL.
    IsNull(Box<ValueCode>),
    /// The first that is not NULL.
    Coalesce(Vec<ValueCode>),
    /// The value of the first condition that is true, or of none.
    Case(Vec<(ValueCode, ValueCode)>, Option<Box<ValueCode>>),
    /// Whether an integer of any type is one of these; NULL where it is not and `null` is set.
    Among {
        /// The integer.
        value: Box<ValueCode>,
        /// The others.
        numbers: Vec<ValueCode>,
        /// Whether NULL is one of them.
        null: bool,
    },
    /// A call of a function that a user gave; NULL where an argument is.
    Function(Arc<FunctionCode>, Vec<ValueCode>),
    /// Whether two texts are the same; NULL where one is.
    SameText(Box<[TextCode; 2]>),
    /// Whether a text is like a pattern; NULL where it is.
    Like(Box<LikeCode>),
}

/// A text for each tuple.
#[derive(Debug, Clone, PartialEq)]
pub enum TextCode {
    /// An input in views ([`crate::InputPlace::Views`]).
    Input(usize),
    /// One of the query.
    Constant(Arc<str>),
    /// One that the code is given when it runs, as three words from one on: its view, and where its
    /// bytes are. Texts of at most
    /// [`SHORT_TEXT_BYTES`] bytes lie in their view.
    Given {
        /// The first word.
        first: usize,
        /// Whether it lies in its view.
        is_short: bool,
    },
    /// So many of its characters, or all, behind the first ones.
    Part {
        /// The text.
        text: Box<TextCode>,
        /// Characters that are left out.
        skipped: u64,
        /// The most that follow.
        most: Option<u64>,
    },
}

/// The longest text that lies in its view.
pub const SHORT_TEXT_BYTES: usize = 12;

/// A pattern of LIKE without `_`: pieces that stand one behind the other in a text, with anything
/// between them.
#[derive(Debug, Clone, PartialEq)]
pub struct LikeCode {
    /// The text.
    pub text: TextCode,
    /// What it must begin with.
    pub first: Option<TextCode>,
    /// What follows, each as far to the front as it goes; none is empty.
    pub middle: Vec<TextCode>,
    /// What it must end with.
    pub last: Option<TextCode>,
}

impl Op {
    /// Visits the texts that it compares, to change them.
    pub fn each_text_mut(&mut self, visit: &mut dyn FnMut(&mut TextCode)) {
        match self {
            Op::SameText(texts) => texts.iter_mut().for_each(visit),
            Op::Like(like) => {
                let LikeCode { text, first, middle, last } = &mut **like;
                [text].into_iter().chain(first).chain(middle).chain(last).for_each(visit);
            }
            _ => {}
        }
    }

    /// How many texts it compares.
    fn texts(&self) -> usize {
        match self {
            Op::SameText(texts) => texts.len(),
            Op::Like(like) => 3 + like.middle.len(),
            _ => 0,
        }
    }
}

/// Visits the operands of an operation, shared or `mut`.
macro_rules! each_operand {
    ($op:expr, $visit:expr $(, $mut:ident)?) => {
        match & $($mut)? $op {
            Op::Input(_)
            | Op::Shared(_)
            | Op::Null
            | Op::Integer(_)
            | Op::Float(_)
            | Op::Given(_)
            | Op::SameText(_)
            | Op::Like(_) => {}
            Op::Compare(_, args)
            | Op::Arithmetic(_, args)
            | Op::Decimal { args, .. }
            | Op::OfDecimals(_, args) => {
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
            Op::Among { value, numbers, .. } => {
                $visit(value);
                for number in numbers {
                    $visit(number);
                }
            }
        }
    };
}

impl ValueCode {
    /// How much there is to compile: its parts.
    pub fn size(&self) -> usize {
        let mut size = 1 + self.op.texts() * TEXT_SIZE;
        self.each_operand(&mut |operand| size += operand.size());
        size
    }

    /// Visits the operands.
    pub fn each_operand<'a>(&'a self, visit: &mut dyn FnMut(&'a ValueCode)) {
        each_operand!(self.op, visit);
    }

    /// Visits the users' functions that it calls.
    pub fn each_function<'a>(&'a self, mut visit: impl FnMut(&'a Arc<FunctionCode>)) {
        let mut pending = vec![self];
        while let Some(code) = pending.pop() {
            if let Op::Function(function, _) = &code.op {
                visit(function);
            }
            code.each_operand(&mut |operand| pending.push(operand));
        }
    }

    /// Visits the operands, to change them.
    pub fn each_operand_mut(&mut self, visit: &mut dyn FnMut(&mut ValueCode)) {
        each_operand!(self.op, visit, mut);
    }
}

/// A scalar function given as LLVM IR (000 §1.1): the text of a module that defines `i32 @name(ptr
/// result, arguments…)`.
///
/// It is called for tuples without NULL among the arguments, writes its value where `result` says,
/// and gives a [`Status`]. Booleans are bytes (an argument may also be an `i1`), decimals their
/// digits, dates their days.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCode {
    /// Its name, also in the module.
    pub name: Arc<str>,
    /// The module.
    pub ir: Arc<str>,
    /// The arguments.
    pub args: Vec<Machine>,
    /// What it gives.
    pub result: Machine,
    /// What its values do not reach, nor below zero: of decimals.
    pub limit: Option<i128>,
    /// Whether it calls nothing outside of its module.
    pub is_whole: bool,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is a value.
    Value = 0,
    /// The value is NULL.
    Null = 1,
    /// It has left its type.
    Overflow = 2,
    /// It would have been divided by zero.
    DivisionByZero = 3,
    /// The arguments are wrong in another way; so is any other number.
    Wrong = 4,
}
