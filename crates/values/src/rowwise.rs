//! Functions that are evaluated value by value: most functions on strings, intervals and dates.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL64_PRECISION_MAX, Error, Result, SqlState, TimeUnit};

use tessera_context::interrupt::EveryBytes;

use crate::append::append;
use crate::kernel::{Argument, Kernel, unexpected};
use crate::types::{Arg, ResolvedCall, wrong_arguments};

/// An argument value. Dates, times and timestamps are integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InputValue<'a> {
    /// NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer, date, time or timestamp.
    Whole(i64),
    /// A float of either width.
    Double(f64),
    /// A string.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An interval.
    Interval(IntervalMonthDayNano),
}

impl<'a> InputValue<'a> {
    /// The integer; 0 for other types.
    pub fn whole(&self) -> i64 {
        match self {
            InputValue::Whole(value) => *value,
            _ => 0,
        }
    }

    /// The number; 0 for other types.
    pub fn double(&self) -> f64 {
        match self {
            InputValue::Double(value) => *value,
            InputValue::Whole(value) => *value as f64,
            _ => 0.0,
        }
    }

    /// The string; empty for other types.
    pub fn text(&self) -> &'a str {
        match self {
            InputValue::Text(text) => text,
            _ => "",
        }
    }

    /// The bytes of a string or of bytes; none for other types.
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            InputValue::Bytes(bytes) => bytes,
            InputValue::Text(text) => text.as_bytes(),
            _ => &[],
        }
    }

    /// The interval; zero for other types.
    pub fn interval(&self) -> IntervalMonthDayNano {
        match self {
            InputValue::Interval(value) => *value,
            _ => IntervalMonthDayNano::ZERO,
        }
    }
}

/// A result value.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputValue {
    /// NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer, date, time or timestamp.
    Whole(i64),
    /// A float of either width.
    Double(f64),
    /// A string.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// An interval.
    Interval(IntervalMonthDayNano),
    /// An unscaled decimal with the scale of the function's type.
    Decimal(i128),
    /// A list of strings, which may be NULL.
    Texts(Vec<Option<String>>),
}

impl From<Option<String>> for OutputValue {
    fn from(text: Option<String>) -> OutputValue {
        text.map_or(OutputValue::Null, OutputValue::Text)
    }
}

type RowFunction = Arc<dyn Fn(&[InputValue<'_>]) -> Result<OutputValue> + Send + Sync>;

/// A function that is evaluated value by value.
pub(crate) struct RowwiseKernel {
    atom: Atom,
    /// Whether the result is NULL if an argument is NULL.
    strict: bool,
    function: RowFunction,
}

impl std::fmt::Debug for RowwiseKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowwiseKernel").field("atom", &self.atom).finish_non_exhaustive()
    }
}

/// Resolves a call that returns NULL for NULL arguments and may fail.
pub fn strict(
    atom: Atom,
    args: &[Arg<'_>],
    casts: Vec<Atom>,
    function: impl Fn(&[InputValue<'_>]) -> Result<OutputValue> + Send + Sync + 'static,
) -> ResolvedCall {
    let kernel = RowwiseKernel { atom: atom.clone(), strict: true, function: Arc::new(function) };
    let mut resolved = ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(30);
    resolved.nullable = true;
    resolved
}

/// Like [`strict`], but the function is called with NULLs.
pub fn lenient(
    atom: Atom,
    args: &[Arg<'_>],
    casts: Vec<Atom>,
    function: impl Fn(&[InputValue<'_>]) -> Result<OutputValue> + Send + Sync + 'static,
) -> ResolvedCall {
    let kernel = RowwiseKernel { atom: atom.clone(), strict: false, function: Arc::new(function) };
    let mut resolved = ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(30);
    resolved.nullable = true;
    resolved
}

/// The casts of arguments for a function with these parameter types. NULLs and string literals are
/// accepted for any type.
///
/// # Errors
/// The number or the types of the arguments do not match.
pub fn signature(name: &str, args: &[Arg<'_>], wanted: &[Atom]) -> Result<Vec<Atom>> {
    let fits = args.len() == wanted.len()
        && args.iter().zip(wanted).all(|(arg, wanted)| takes(arg, wanted));
    match fits {
        true => Ok(wanted.to_vec()),
        false => {
            let types = wanted.iter().map(Atom::to_string).collect::<Vec<_>>().join(", ");
            Err(wrong_arguments(name, args, &format!("it takes ({types})")))
        }
    }
}

/// Whether an argument is accepted for a type without an explicit cast.
pub fn takes(arg: &Arg<'_>, wanted: &Atom) -> bool {
    let literal = matches!(arg.expr, Expr::Constant(Scalar::String(_), _));
    match (arg.atom, wanted) {
        (from, to) if from == to => true,
        (Atom::Null, _) => true,
        (Atom::String, to) if literal => !to.is_nested(),
        (from, Atom::Float64) => from.is_numeric(),
        (from, Atom::Int64) => from.is_integer() && *from != Atom::UInt64,
        (Atom::Date | Atom::Timestamp(..), Atom::Timestamp(..)) => true,
        (Atom::Time(_), Atom::Time(_)) | (Atom::Duration(_), Atom::Interval) => true,
        _ => false,
    }
}

/// The type timestamp, in which functions compute.
pub const MICROSECONDS: Atom = Atom::Timestamp(TimeUnit::Microsecond, None);
/// The type time, in which functions compute.
pub const TIME: Atom = Atom::Time(TimeUnit::Microsecond);

/// The type timestamp with time zone.
pub fn zoned() -> Atom {
    Atom::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// An error of a function with its SQLSTATE.
pub fn fault(message: impl Into<String>, state: SqlState) -> Error {
    Error::data(message.into()).with_state(state)
}

/// Typed access to the values of an argument.
enum Column<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Double(&'a Float64Array),
    Text(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
    Interval(&'a IntervalMonthDayNanoArray),
}

impl<'a> Column<'a> {
    fn of(array: &'a ArrayRef) -> Result<Column<'a>> {
        let bad = || unexpected(array);
        macro_rules! values {
            ($type:ty) => {
                array.as_primitive_opt::<$type>().ok_or_else(bad)?.values()
            };
        }
        Ok(match array.data_type() {
            DataType::Null => Column::Null,
            DataType::Boolean => Column::Boolean(array.as_boolean_opt().ok_or_else(bad)?),
            DataType::Int32 => Column::Int32(values!(Int32Type)),
            DataType::Date32 => Column::Int32(values!(Date32Type)),
            DataType::Int64 => Column::Int64(values!(Int64Type)),
            DataType::Time64(_) => Column::Int64(values!(Time64MicrosecondType)),
            DataType::Timestamp(..) => Column::Int64(values!(TimestampMicrosecondType)),
            DataType::Float64 => {
                Column::Double(array.as_primitive_opt::<Float64Type>().ok_or_else(bad)?)
            }
            DataType::Utf8View => Column::Text(array.as_string_view_opt().ok_or_else(bad)?),
            DataType::BinaryView => Column::Bytes(array.as_binary_view_opt().ok_or_else(bad)?),
            DataType::Interval(_) => Column::Interval(
                array.as_primitive_opt::<IntervalMonthDayNanoType>().ok_or_else(bad)?,
            ),
            _ => return Err(bad()),
        })
    }

    fn at(&self, row: usize) -> InputValue<'a> {
        match self {
            Column::Null => InputValue::Null,
            Column::Boolean(array) => InputValue::Boolean(array.value(row)),
            Column::Int32(values) => InputValue::Whole(values[row].into()),
            Column::Int64(values) => InputValue::Whole(values[row]),
            Column::Double(array) => InputValue::Double(array.value(row)),
            Column::Text(array) => InputValue::Text(array.value(row)),
            Column::Bytes(array) => InputValue::Bytes(array.value(row)),
            Column::Interval(array) => InputValue::Interval(array.value(row)),
        }
    }
}

impl Kernel for RowwiseKernel {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let columns = args.iter().map(|arg| Column::of(&arg.array)).collect::<Result<Vec<_>>>()?;
        let nulls: Vec<_> = args.iter().map(|arg| arg.array.logical_nulls()).collect();
        let mut arguments = Vec::with_capacity(args.len());
        let mut out = Vec::with_capacity(rows);
        let every = EveryBytes::default();
        for row in 0..rows {
            arguments.clear();
            let mut missing = false;
            for ((arg, column), nulls) in args.iter().zip(&columns).zip(&nulls) {
                let at = arg.at(row);
                let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
                missing |= null;
                let value = if null { InputValue::Null } else { column.at(at) };
                every.pass(value.bytes().len());
                arguments.push(value);
            }
            out.push(if missing && self.strict {
                OutputValue::Null
            } else {
                (self.function)(&arguments)?
            });
        }
        self.array(out)
    }
}

impl RowwiseKernel {
    fn array(&self, out: Vec<OutputValue>) -> Result<ArrayRef> {
        let wrong = || {
            Error::internal(format!(
                "a function returned a value that is not of type {}",
                self.atom
            ))
        };
        macro_rules! collect {
            ($array:ty, $pattern:pat => $value:expr) => {{
                let values = out.into_iter().map(|value| match value {
                    OutputValue::Null => Ok(None),
                    $pattern => Ok(Some($value)),
                    _ => Err(wrong()),
                });
                Arc::new(values.collect::<Result<$array>>()?) as ArrayRef
            }};
        }
        macro_rules! whole {
            ($type:ty) => {
                whole!($type, out)
            };
            ($type:ty, $out:expr) => {{
                type N = <$type as ArrowPrimitiveType>::Native;
                let values = $out.into_iter().map(|value| match value {
                    OutputValue::Null => Ok(None),
                    OutputValue::Whole(value) => N::try_from(value).map(Some).map_err(|_| wrong()),
                    _ => Err(wrong()),
                });
                let array = values.collect::<Result<PrimitiveArray<$type>>>()?;
                Arc::new(array.with_data_type(self.atom.arrow())) as ArrayRef
            }};
        }
        Ok(match &self.atom {
            Atom::Null => arrow::array::new_null_array(&DataType::Null, out.len()),
            Atom::Boolean => collect!(BooleanArray, OutputValue::Boolean(value) => value),
            Atom::String | Atom::Bits => {
                let mut builder = StringViewBuilder::with_capacity(out.len());
                for value in out {
                    match value {
                        OutputValue::Null => builder.append_null(),
                        OutputValue::Text(text) => append(&mut builder, text),
                        _ => return Err(wrong()),
                    }
                }
                Arc::new(builder.finish())
            }
            Atom::Bytes => collect!(BinaryViewArray, OutputValue::Bytes(bytes) => bytes),
            Atom::Interval => {
                collect!(IntervalMonthDayNanoArray, OutputValue::Interval(value) => value)
            }
            Atom::Float64 => collect!(Float64Array, OutputValue::Double(value) => value),
            Atom::Int16 => whole!(Int16Type),
            Atom::Int32 => whole!(Int32Type),
            Atom::Int64 => whole!(Int64Type),
            Atom::Date => whole!(Date32Type),
            Atom::TimeTz => whole!(Int64Type),
            Atom::Time(_) => whole!(Time64MicrosecondType),
            Atom::Timestamp(..) => whole!(TimestampMicrosecondType),
            Atom::Decimal(precision, _) if *precision <= DECIMAL64_PRECISION_MAX => {
                let narrow =
                    |value: i128| i64::try_from(value).map(OutputValue::Whole).map_err(|_| wrong());
                let out = out.into_iter().map(|value| match value {
                    OutputValue::Decimal(value) => narrow(value),
                    value => Ok(value),
                });
                let out = out.collect::<Result<Vec<_>>>()?;
                whole!(Decimal64Type, out)
            }
            Atom::Decimal(..) => {
                let array = collect!(Decimal128Array, OutputValue::Decimal(value) => value);
                let array = array.as_primitive::<Decimal128Type>().clone();
                Arc::new(array.with_data_type(self.atom.arrow()))
            }
            Atom::List(_) => {
                let DataType::List(field) = self.atom.arrow() else { return Err(wrong()) };
                let mut builder = ListBuilder::new(StringViewBuilder::new()).with_field(field);
                for value in out {
                    match value {
                        OutputValue::Null => builder.append_null(),
                        OutputValue::Texts(texts) => {
                            texts.into_iter().for_each(|text| builder.values().append_option(text));
                            builder.append(true);
                        }
                        _ => return Err(wrong()),
                    }
                }
                Arc::new(builder.finish())
            }
            _ => return Err(wrong()),
        })
    }
}
