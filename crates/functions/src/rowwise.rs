//! Functions that are computed value by value: most of those of texts, intervals and the calendar.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL64_PRECISION_MAX, Error, Result, SqlState, TimeUnit};

use tessera_context::interrupt::EveryBytes;

use super::kernel::{Argument, Kernel, unexpected};
use super::long::append;
use super::types::{Arg, Resolved, wrong_arguments};

/// A value that a function is given. Dates, times and timestamps are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum In<'a> {
    Null,
    Boolean(bool),
    Whole(i64),
    Double(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Interval(IntervalMonthDayNano),
}

impl<'a> In<'a> {
    pub(crate) fn whole(&self) -> i64 {
        match self {
            In::Whole(value) => *value,
            _ => 0,
        }
    }

    pub(crate) fn double(&self) -> f64 {
        match self {
            In::Double(value) => *value,
            In::Whole(value) => *value as f64,
            _ => 0.0,
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        match self {
            In::Text(text) => text,
            _ => "",
        }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            In::Bytes(bytes) => bytes,
            In::Text(text) => text.as_bytes(),
            _ => &[],
        }
    }

    pub(crate) fn interval(&self) -> IntervalMonthDayNano {
        match self {
            In::Interval(value) => *value,
            _ => IntervalMonthDayNano::ZERO,
        }
    }
}

/// A value that a function gives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Out {
    Null,
    Boolean(bool),
    Whole(i64),
    Text(String),
    Bytes(Vec<u8>),
    Interval(IntervalMonthDayNano),
    /// The digits of a decimal, of the function's scale.
    Decimal(i128),
    /// A list of texts, some of them NULL.
    Texts(Vec<Option<String>>),
}

impl From<Option<String>> for Out {
    fn from(text: Option<String>) -> Out {
        text.map_or(Out::Null, Out::Text)
    }
}

type Work = Arc<dyn Fn(&[In<'_>]) -> Result<Out> + Send + Sync>;

/// A function that is computed value by value.
pub(crate) struct Rowwise {
    atom: Atom,
    /// NULL where an argument is.
    strict: bool,
    work: Work,
}

impl std::fmt::Debug for Rowwise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rowwise").field("atom", &self.atom).finish_non_exhaustive()
    }
}

/// A call that gives NULL where an argument is, and may fail.
pub(crate) fn strict(
    atom: Atom,
    args: &[Arg<'_>],
    casts: Vec<Atom>,
    work: impl Fn(&[In<'_>]) -> Result<Out> + Send + Sync + 'static,
) -> Resolved {
    let kernel = Rowwise { atom: atom.clone(), strict: true, work: Arc::new(work) };
    let mut resolved = Resolved::strict(atom, args, casts, kernel).raising(true).costing(30);
    resolved.nullable = true;
    resolved
}

/// As [`strict`], but it is called with NULLs.
pub(crate) fn lenient(
    atom: Atom,
    args: &[Arg<'_>],
    casts: Vec<Atom>,
    work: impl Fn(&[In<'_>]) -> Result<Out> + Send + Sync + 'static,
) -> Resolved {
    let kernel = Rowwise { atom: atom.clone(), strict: false, work: Arc::new(work) };
    let mut resolved = Resolved::strict(atom, args, casts, kernel).raising(true).costing(30);
    resolved.nullable = true;
    resolved
}

/// The types that arguments are cast to for a function of these types: NULLs and text literals take
/// any of them.
///
/// # Errors
/// An argument is of another type.
pub(crate) fn signature(name: &str, args: &[Arg<'_>], wanted: &[Atom]) -> Result<Vec<Atom>> {
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

/// Whether a type takes an argument without a cast of the user's.
pub(crate) fn takes(arg: &Arg<'_>, wanted: &Atom) -> bool {
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

pub(crate) const MICROSECONDS: Atom = Atom::Timestamp(TimeUnit::Microsecond, None);
pub(crate) const TIME: Atom = Atom::Time(TimeUnit::Microsecond);

/// A timestamp with time zone.
pub(crate) fn zoned() -> Atom {
    Atom::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A failure of a function, with its state.
pub(crate) fn fault(message: impl Into<String>, state: SqlState) -> Error {
    Error::data(message.into()).with_state(state)
}

/// What the values of an argument are read from.
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

    fn at(&self, row: usize) -> In<'a> {
        match self {
            Column::Null => In::Null,
            Column::Boolean(array) => In::Boolean(array.value(row)),
            Column::Int32(values) => In::Whole(values[row].into()),
            Column::Int64(values) => In::Whole(values[row]),
            Column::Double(array) => In::Double(array.value(row)),
            Column::Text(array) => In::Text(array.value(row)),
            Column::Bytes(array) => In::Bytes(array.value(row)),
            Column::Interval(array) => In::Interval(array.value(row)),
        }
    }
}

impl Kernel for Rowwise {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let columns = args.iter().map(|arg| Column::of(&arg.array)).collect::<Result<Vec<_>>>()?;
        let nulls: Vec<_> = args.iter().map(|arg| arg.array.logical_nulls()).collect();
        let mut given = Vec::with_capacity(args.len());
        let mut out = Vec::with_capacity(rows);
        let every = EveryBytes::default();
        for row in 0..rows {
            given.clear();
            let mut missing = false;
            for ((arg, column), nulls) in args.iter().zip(&columns).zip(&nulls) {
                let at = arg.at(row);
                let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
                missing |= null;
                let value = if null { In::Null } else { column.at(at) };
                every.pass(value.bytes().len());
                given.push(value);
            }
            out.push(if missing && self.strict { Out::Null } else { (self.work)(&given)? });
        }
        self.array(out)
    }
}

impl Rowwise {
    fn array(&self, out: Vec<Out>) -> Result<ArrayRef> {
        let wrong = || Error::internal(format!("a function gave another type than {}", self.atom));
        macro_rules! collect {
            ($array:ty, $pattern:pat => $value:expr) => {{
                let values = out.into_iter().map(|value| match value {
                    Out::Null => Ok(None),
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
                    Out::Null => Ok(None),
                    Out::Whole(value) => N::try_from(value).map(Some).map_err(|_| wrong()),
                    _ => Err(wrong()),
                });
                let array = values.collect::<Result<PrimitiveArray<$type>>>()?;
                Arc::new(array.with_data_type(self.atom.arrow())) as ArrayRef
            }};
        }
        Ok(match &self.atom {
            Atom::Boolean => collect!(BooleanArray, Out::Boolean(value) => value),
            Atom::String => {
                let mut builder = StringViewBuilder::with_capacity(out.len());
                for value in out {
                    match value {
                        Out::Null => builder.append_null(),
                        Out::Text(text) => append(&mut builder, text),
                        _ => return Err(wrong()),
                    }
                }
                Arc::new(builder.finish())
            }
            Atom::Bytes => collect!(BinaryViewArray, Out::Bytes(bytes) => bytes),
            Atom::Interval => collect!(IntervalMonthDayNanoArray, Out::Interval(value) => value),
            Atom::Int32 => whole!(Int32Type),
            Atom::Int64 => whole!(Int64Type),
            Atom::Date => whole!(Date32Type),
            Atom::Time(_) => whole!(Time64MicrosecondType),
            Atom::Timestamp(..) => whole!(TimestampMicrosecondType),
            Atom::Decimal(precision, _) if *precision <= DECIMAL64_PRECISION_MAX => {
                let narrow =
                    |value: i128| i64::try_from(value).map(Out::Whole).map_err(|_| wrong());
                let out = out.into_iter().map(|value| match value {
                    Out::Decimal(value) => narrow(value),
                    value => Ok(value),
                });
                let out = out.collect::<Result<Vec<_>>>()?;
                whole!(Decimal64Type, out)
            }
            Atom::Decimal(..) => {
                let array = collect!(Decimal128Array, Out::Decimal(value) => value);
                let array = array.as_primitive::<Decimal128Type>().clone();
                Arc::new(array.with_data_type(self.atom.arrow()))
            }
            Atom::List(_) => {
                let DataType::List(field) = self.atom.arrow() else { return Err(wrong()) };
                let mut builder = ListBuilder::new(StringViewBuilder::new()).with_field(field);
                for value in out {
                    match value {
                        Out::Null => builder.append_null(),
                        Out::Texts(texts) => {
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
