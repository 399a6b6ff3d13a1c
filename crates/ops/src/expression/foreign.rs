//! Functions of DataFusion's library: arguments in the Arrow forms they accept, results back in plain form.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::cast::cast;
use super::growth::room;
use super::kernel::{Argument, Kernel};
use super::long::in_pieces;
use super::one_nan::one_nan;
use super::plain::{to_form, to_plain};
use super::scalar::scalar_to_array;
use super::settled::settled;
use super::types::{Arg, Resolved};

/// Functions known to give a value for every argument of their types; others are taken to be able to fail.
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
    "levenshtein",
];

/// Functions that compare values, floats by their bits.
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

/// Types a call of a DataFusion function.
pub(crate) fn resolve(
    udf: &Arc<ScalarUDF>,
    config: &Arc<ConfigOptions>,
    args: &[Arg<'_>],
) -> Result<Resolved> {
    let name = udf.name();
    let field = |index: usize, arg: &Arg<'_>| -> FieldRef {
        Arc::new(Field::new(format!("a{index}"), foreign_type(&arg.atom.arrow()), arg.nullable))
    };
    let given: Vec<FieldRef> = args.iter().enumerate().map(|(index, arg)| field(index, arg)).collect();
    let fields = fields_with_udf(&given, udf.as_ref()).map_err(|error| from_datafusion(error, name))?;
    let constants = args
        .iter()
        .zip(&fields)
        .map(|(arg, field)| constant(arg.expr, field.data_type()))
        .collect::<Result<Vec<_>>>()?;
    let constants: Vec<Option<&ScalarValue>> = constants.iter().map(Option::as_ref).collect();
    let return_field = udf
        .return_field_from_args(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &constants })
        .map_err(|error| from_datafusion(error, name))?;
    let atom = Atom::from_arrow(return_field.data_type())
        .map_err(|error| error.context(format!("the result of function {name}")))?;
    Ok(Resolved {
        atom: atom.clone(),
        nullable: return_field.is_nullable(),
        raises: !TOTAL.contains(&name),
        volatile: udf.signature().volatility == Volatility::Volatile,
        cost: 20,
        casts: args.iter().map(|arg| arg.atom.clone()).collect(),
        kernel: Arc::new(Foreign { udf: udf.clone(), fields, return_field, config: config.clone(), atom }),
    })
}

/// The value of an argument that is written as a constant, or a cast of one.
fn constant(expr: &Expr, data_type: &DataType) -> Result<Option<ScalarValue>> {
    let (array, atom) = match expr {
        Expr::Constant(Scalar::Null, _) => return Ok(ScalarValue::try_from(data_type).ok()),
        Expr::Constant(scalar, atom) => (scalar_to_array(scalar, atom)?, atom.clone()),
        Expr::Cast { input, to, safe } => match &**input {
            Expr::Constant(scalar, from) => match cast(&scalar_to_array(scalar, from)?, from, to, *safe) {
                Ok(array) => (array, to.clone()),
                Err(_) => return Ok(None),
            },
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let value = to_form(array, data_type)
        .map_err(|error| error.context(format!("converting a constant of type {atom}")))
        .and_then(|array| {
            ScalarValue::try_from_array(&array, 0).map_err(|error| from_datafusion(error, "constant"))
        })?;
    Ok(Some(value))
}

/// The Arrow type that stands for a plain one: DataFusion's functions know no 64-bit decimals.
pub(crate) fn foreign_type(plain: &DataType) -> DataType {
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

/// A DataFusion error as ours.
pub(crate) fn from_datafusion(error: DataFusionError, function: &str) -> Error {
    let error = match error {
        DataFusionError::ArrowError(error, _) => {
            let error = Error::from(*error).context(format!("function {function}"));
            return if error.code() == Code::Data { error.with_state(state(function)) } else { error };
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
    // An argument that the function refuses is reported as the function's own mistake by some.
    let code = match code {
        Code::Internal | Code::Data if message.to_ascii_lowercase().contains("overflow") => Code::Overflow,
        Code::Internal => Code::Data,
        code => code,
    };
    let error = Error::new(code, format!("function {function}: {message}"));
    if code == Code::Data { error.with_state(state(function)) } else { error }
}

/// What PostgreSQL says when a function refuses its arguments.
fn state(function: &str) -> SqlState {
    match function {
        "make_date" | "make_time" | "date_bin" => SqlState::DATETIME_FIELD_OVERFLOW,
        "overlay" => SqlState::SUBSTRING_ERROR,
        _ => SqlState::INVALID_PARAMETER_VALUE,
    }
}

#[derive(Debug)]
struct Foreign {
    udf: Arc<ScalarUDF>,
    fields: Vec<FieldRef>,
    return_field: FieldRef,
    config: Arc<ConfigOptions>,
    atom: Atom,
}

impl Kernel for Foreign {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let _room = room(self.udf.name(), args, rows)?;
        in_pieces(self.udf.name(), args, rows, &|args, rows| self.call_whole(args, rows))
    }
}

impl Foreign {
    fn call_whole(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let name = self.udf.name();
        // Functions that fix something from a constant argument look for a scalar, also when all are constants.
        let all_constant = rows == 1;
        let values = args
            .iter()
            .zip(&self.fields)
            .map(|(argument, field)| {
                let mut array = settled(&to_form(argument.array.clone(), field.data_type())?)?;
                if COMPARING.contains(&name) {
                    array = one_nan(&array)?;
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
        // The library is not ours, and an argument that makes it panic must not take the process down.
        let result = catch_unwind(AssertUnwindSafe(|| self.udf.invoke_with_args(call)))
            .map_err(|_| Error::data(format!("function {name} failed on its arguments")))?
            .and_then(|value| value.into_array(rows))
            .map_err(|error| from_datafusion(error, name))?;
        if result.len() != rows {
            return Err(Error::internal(format!("function {name} gave {} values for {rows}", result.len())));
        }
        to_plain(result, &self.atom)
    }
}
