//! DataFusion's functions: arguments are converted to the Arrow types they accept, results back to
//! plain form.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{concat, partition, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::growth::reserve_for_result;
use super::kept_types::{is_taken, kept};
use crate::long_strings::in_pieces;
use tessera_values::canonical::canonical_floats;
use tessera_values::cast::{cast, cast_raises};
use tessera_values::hidden_values::clear_hidden_values;
use tessera_values::kernel::{Argument, Kernel};
use tessera_values::plain::{to_form, to_plain};
use tessera_values::scalar::scalar_to_array;
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// Functions that return a value for every argument of their types; all others may fail.
const TOTAL: &[&str] = &[
    "lower",
    "upper",
    "character_length",
    "octet_length",
    "bit_length",
    "btrim",
    "ltrim",
    "rtrim",
    "starts_with",
    "ends_with",
    "contains",
    "strpos",
    "reverse",
    "initcap",
    "left",
    "right",
    "concat",
    "concat_ws",
    "ascii",
    "split_part",
    "replace",
    "translate",
    "md5",
    "date_part",
    "greatest",
    "least",
    "isnan",
    "iszero",
    "cardinality",
    "array_length",
    "array_has",
];

/// Functions that compare values, floats bitwise.
const COMPARING: &[&str] = &[
    "greatest",
    "least",
    "array_any_value",
    "array_distinct",
    "array_except",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "array_max",
    "array_min",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_sort",
    "array_union",
];

/// Functions that return NULL if one of their first arguments (this many) is NULL. DataFusion's
/// code does so only for some array types.
const STRICT: &[(&str, usize)] = &[
    ("array_has", 2),
    ("array_has_all", 2),
    ("array_has_any", 2),
    ("array_position", 1),
    ("digest", 2),
    ("map", 2),
];

/// Functions that accept one argument only as a single value for all rows, and its index. They are
/// called once per value of that argument.
const FIXED: &[(&str, usize)] = &[("digest", 1)];

/// Resolves a call of a DataFusion function.
pub(crate) fn resolve(
    udf: &Arc<ScalarUDF>,
    config: &Arc<ConfigOptions>,
    args: &[Arg<'_>],
) -> Result<ResolvedCall> {
    let name = udf.name();
    if !is_taken(name, args.iter().map(|arg| arg.atom)) {
        return Err(wrong_arguments(name, args, "cast times with time zone to text"));
    }
    let field = |index: usize, arg: &Arg<'_>| -> FieldRef {
        Arc::new(Field::new(format!("a{index}"), foreign_type(&arg.atom.arrow()), arg.nullable))
    };
    let given: Vec<FieldRef> =
        args.iter().enumerate().map(|(index, arg)| field(index, arg)).collect();
    let fields =
        fields_with_udf(&given, udf.as_ref()).map_err(|error| refused(error, name, args))?;
    let constants = args
        .iter()
        .zip(&fields)
        .map(|(arg, field)| constant(arg.expr, field.data_type()))
        .collect::<Result<Vec<_>>>()?;
    let constants: Vec<Option<&ScalarValue>> = constants.iter().map(Option::as_ref).collect();
    let return_field = udf
        .return_field_from_args(ReturnFieldArgs {
            arg_fields: &fields,
            scalar_arguments: &constants,
        })
        .map_err(|error| refused(error, name, args))?;
    let atom = Atom::from_arrow(return_field.data_type())
        .map_err(|error| error.context(format!("the result of function {name}")))?;
    let given: Vec<_> = args.iter().map(|arg| (arg.atom, Some(arg.expr))).collect();
    let atom = kept(name, &given, atom);
    Ok(ResolvedCall {
        atom: atom.clone(),
        nullable: return_field.is_nullable(),
        raises: !TOTAL.contains(&name) || conversion_raises(args, &fields),
        volatile: udf.signature().volatility == Volatility::Volatile,
        cost: 20,
        casts: args.iter().zip(&fields).map(|(arg, field)| taken(arg.atom, field)).collect(),
        kernel: Arc::new(DataFusionKernel {
            udf: udf.clone(),
            fields,
            return_field,
            config: config.clone(),
            atom,
        }),
    })
}

/// The type that the binder casts an argument to; the kernel then converts it to the function's own
/// Arrow type.
fn taken(from: &Atom, field: &FieldRef) -> Atom {
    match Atom::from_arrow(field.data_type()) {
        Ok(to) if *from != Atom::Null && tessera_values::cast::check_cast(from, &to).is_ok() => to,
        _ => from.clone(),
    }
}

/// Whether an argument may fail to convert to the type that the function accepts.
fn conversion_raises(args: &[Arg<'_>], fields: &[FieldRef]) -> bool {
    // Bytes are converted to a string only if they are valid UTF-8.
    let raises = |from: &Atom, to: &Atom| match (from, to) {
        (Atom::Bytes, Atom::String) => true,
        _ => cast_raises(from, to),
    };
    args.iter().zip(fields).any(|(arg, field)| {
        Atom::from_arrow(field.data_type())
            .map_or(true, |to| *arg.atom != to && raises(arg.atom, &to))
    })
}

/// The value of an argument that is a constant or a cast of one.
fn constant(expr: &Expr, data_type: &DataType) -> Result<Option<ScalarValue>> {
    let (array, atom) = match expr {
        Expr::Constant(Scalar::Null, _) => return Ok(ScalarValue::try_from(data_type).ok()),
        Expr::Constant(scalar, atom) => (scalar_to_array(scalar, atom)?, atom.clone()),
        Expr::Cast { input, to, safe } => match &**input {
            Expr::Constant(scalar, from) => {
                match cast(&scalar_to_array(scalar, from)?, from, to, *safe) {
                    Ok(array) => (array, to.clone()),
                    Err(_) => return Ok(None),
                }
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    // A constant that does not convert raises an error when it is evaluated.
    let Ok(array) = to_form(array, data_type) else { return Ok(None) };
    let value = ScalarValue::try_from_array(&array, 0)
        .map_err(|error| from_datafusion(error, "constant").context(format!("of type {atom}")))?;
    Ok(Some(value))
}

/// The Arrow type passed to DataFusion; its functions do not support 64-bit decimals.
pub fn foreign_type(plain: &DataType) -> DataType {
    let field = |field: &FieldRef| -> FieldRef {
        Arc::new(field.as_ref().clone().with_data_type(foreign_type(field.data_type())))
    };
    match plain {
        DataType::Decimal64(precision, scale) => DataType::Decimal128(*precision, *scale),
        DataType::List(item) => DataType::List(field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect::<Fields>()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        other => other.clone(),
    }
}

/// The error of a function that rejects its argument types. DataFusion's lists of signatures are
/// replaced by a one-line message, and so are messages that name its internal types or ask to
/// report a bug.
fn refused(error: DataFusionError, name: &str, args: &[Arg<'_>]) -> Error {
    match error {
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            refused(*error, name, args)
        }
        DataFusionError::External(_) => from_datafusion(error, name),
        DataFusionError::Plan(ref text) if text.starts_with("Function '") => {
            from_datafusion(error, name)
        }
        _ => wrong_arguments(name, args, "cast them to supported types"),
    }
}

/// Converts a DataFusion error.
pub(crate) fn from_datafusion(error: DataFusionError, function: &str) -> Error {
    let error = match error {
        DataFusionError::ArrowError(error, _) => {
            let error = Error::from(*error).context(format!("function {function}"));
            return if error.code() == Code::Data {
                error.with_state(state(function))
            } else {
                error
            };
        }
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            return from_datafusion(*error, function);
        }
        other => other,
    };
    let code = match &error {
        DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => Code::Semantic,
        DataFusionError::NotImplemented(_) => Code::Unsupported,
        DataFusionError::ResourcesExhausted(_) => Code::Limit,
        DataFusionError::Internal(_) => Code::Internal,
        _ => Code::Data,
    };
    let message = error.strip_backtrace();
    let message = message.split_once(": ").map_or(message.as_str(), |(_, message)| message);
    let message = message.split(".\nThis issue was likely").next().unwrap_or(message);
    // Some functions report an invalid argument as an internal error.
    let code = match code {
        Code::Internal | Code::Data if message.to_ascii_lowercase().contains("overflow") => {
            Code::Overflow
        }
        Code::Internal => Code::Data,
        code => code,
    };
    let error = Error::new(code, format!("function {function}: {message}"));
    if code == Code::Data { error.with_state(state(function)) } else { error }
}

/// The SQLSTATE that PostgreSQL reports for invalid arguments of a function.
fn state(function: &str) -> SqlState {
    match function {
        "make_date" | "make_time" | "date_bin" => SqlState::DATETIME_FIELD_OVERFLOW,
        "overlay" => SqlState::SUBSTRING_ERROR,
        _ => SqlState::INVALID_PARAMETER_VALUE,
    }
}

#[derive(Debug)]
struct DataFusionKernel {
    udf: Arc<ScalarUDF>,
    fields: Vec<FieldRef>,
    return_field: FieldRef,
    config: Arc<ConfigOptions>,
    atom: Atom,
}

impl Kernel for DataFusionKernel {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let name = self.udf.name();
        let args = &self.whole_numbers(args)?[..];
        let Some(present) =
            STRICT.iter().find(|(strict, _)| *strict == name).and_then(|(_, count)| {
                let nulls = args
                    .iter()
                    .take(*count)
                    .map(|arg| arg.array.logical_nulls().map(|n| (arg.constant, n)));
                present(nulls.flatten(), rows)
            })
        else {
            return self.call_present(args, rows);
        };
        // Compute only the rows without NULLs.
        let rows_present: UInt32Array =
            (0..rows as u32).filter(|row| present.value(*row as usize)).collect();
        let chosen = args.iter().map(|arg| {
            let array = if arg.constant {
                arg.array.clone()
            } else {
                take(&arg.array, &rows_present, None)?
            };
            Ok(Argument { array, constant: arg.constant })
        });
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        if rows_present.is_empty() {
            return Ok(new_null_array(&self.atom.arrow(), rows));
        }
        let computed = self.call_present(&chosen, rows_present.len())?;
        let mut next = 0..rows_present.len() as u32;
        let places: UInt32Array =
            (0..rows).map(|row| if present.value(row) { next.next() } else { None }).collect();
        Ok(take(&computed, &places, None)?)
    }
}

/// The rows in which no argument is NULL; `None` if that is every row.
fn present(nulls: impl Iterator<Item = (bool, NullBuffer)>, rows: usize) -> Option<BooleanBuffer> {
    let of_rows = |(constant, nulls): (bool, NullBuffer)| match (constant, nulls.null_count()) {
        (_, 0) => None,
        (true, _) => Some(BooleanBuffer::new_unset(rows)),
        (false, _) => Some(nulls.into_inner()),
    };
    nulls.filter_map(of_rows).reduce(|a, b| &a & &b)
}

impl DataFusionKernel {
    /// Converts the arguments for which the function expects integers, so that the size of the
    /// result can be estimated from them.
    fn whole_numbers(&self, args: &[Argument]) -> Result<Vec<Argument>> {
        let convert = |(arg, field): (&Argument, &FieldRef)| match field.data_type().is_integer() {
            true => Ok(Argument {
                array: to_form(arg.array.clone(), field.data_type())?,
                constant: arg.constant,
            }),
            false => Ok(arg.clone()),
        };
        args.iter().zip(&self.fields).map(convert).collect()
    }

    /// Calls the function; for strict functions no row contains a NULL.
    fn call_present(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let name = self.udf.name();
        let _reservation = reserve_for_result(name, args, rows)?;
        let fixed = FIXED.iter().find(|(fixed, _)| *fixed == name).map(|(_, index)| *index);
        let varies = |index: &usize| rows > 1 && args.get(*index).is_some_and(|arg| !arg.constant);
        let Some(index) = fixed.filter(varies) else {
            return in_pieces(name, args, rows, &|args, rows| self.call_whole(args, rows));
        };
        // Runs of rows with the same value of that argument.
        let ends = partition(std::slice::from_ref(&args[index].array))?;
        let parts = ends.ranges().into_iter().map(|run| {
            let of_run = |(at, arg): (usize, &Argument)| match (arg.constant, at == index) {
                (true, _) => arg.clone(),
                (_, true) => Argument { array: arg.array.slice(run.start, 1), constant: true },
                _ => Argument { array: arg.array.slice(run.start, run.len()), constant: false },
            };
            let args: Vec<Argument> = args.iter().enumerate().map(of_run).collect();
            in_pieces(name, &args, run.len(), &|args, rows| self.call_whole(args, rows))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Ok(concat(&parts.iter().map(|part| &**part).collect::<Vec<_>>())?)
    }

    fn call_whole(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let name = self.udf.name();
        // Functions that specialize for a constant argument expect a scalar, even if all arguments
        // are constant.
        let all_constant = rows == 1;
        let values = args
            .iter()
            .zip(&self.fields)
            .map(|(argument, field)| {
                let mut array =
                    clear_hidden_values(&to_form(argument.array.clone(), field.data_type())?)?;
                if COMPARING.contains(&name) {
                    array = canonical_floats(&array)?;
                }
                if !argument.constant && !all_constant {
                    return Ok(ColumnarValue::Array(array));
                }
                let scalar = ScalarValue::try_from_array(&array, 0);
                scalar.map(ColumnarValue::Scalar).map_err(|error| from_datafusion(error, name))
            })
            .collect::<Result<Vec<_>>>()?;
        let call = ScalarFunctionArgs {
            args: values,
            arg_fields: self.fields.clone(),
            number_rows: rows,
            return_field: self.return_field.clone(),
            config_options: self.config.clone(),
        };
        // A panic of a DataFusion function must not end the process.
        let result = catch_unwind(AssertUnwindSafe(|| self.udf.invoke_with_args(call)))
            .map_err(|_| Error::data(format!("function {name} failed for its arguments")))?
            .and_then(|value| value.into_array(rows))
            .map_err(|error| from_datafusion(error, name))?;
        if result.len() != rows {
            return Err(Error::internal(format!(
                "function {name} returned {} values for {rows} rows",
                result.len()
            )));
        }
        to_plain(result, &self.atom)
    }
}
