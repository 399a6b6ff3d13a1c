//! Result types of aggregate functions.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_expr::AggregateUDF;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use tessera_types::{Atom, Error, Result, Slot, SqlState, TimeUnit};

use super::foreign::{foreign_type, from_datafusion};
use super::kept_types::{is_taken, kept};

/// The native aggregates, except those that merge partial results.
pub(super) const NAMES: [&str; 44] = [
    "any_value",
    "approx_count_distinct",
    "approx_top_k",
    "arbitrary",
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "entropy",
    "every",
    "favg",
    "first",
    "fsum",
    "group_concat",
    "histogram",
    "kahan_sum",
    "kurtosis",
    "kurtosis_pop",
    "last",
    "list",
    "listagg",
    "mad",
    "max",
    "mean",
    "min",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "product",
    "quantile",
    "quantile_cont",
    "quantile_disc",
    "skewness",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "sumkahan",
    "var",
    "var_pop",
    "var_population",
    "var_samp",
    "variance",
];

/// The error of an aggregate that does not take these arguments.
fn refused(name: &str, args: &[(Atom, bool)], hint: &str) -> Error {
    let types = args.iter().map(|(atom, _)| atom.to_string()).collect::<Vec<_>>().join(", ");
    Error::semantic(format!("aggregate function {name} does not take ({types}); {hint}"))
        .with_state(SqlState::UNDEFINED_FUNCTION)
}

/// The result type of a native aggregate; `None` for other functions.
pub(crate) fn own(name: &str, args: &[(Atom, bool)]) -> Option<Result<(Atom, bool)>> {
    let wrong = |hint: &str| Some(Err(refused(name, args, hint)));
    let one = || match args {
        [(atom, _)] => Some(atom),
        _ => None,
    };
    match name {
        "count" => Some(Ok((Atom::Int64, false))),
        "sum" => match one() {
            Some(Atom::Null) => Some(Ok((Atom::Int64, true))),
            Some(Atom::Int64 | Atom::UInt64) => Some(Ok((Atom::Decimal(38, 0), true))),
            Some(atom) if atom.is_integer() => Some(Ok((Atom::Int64, true))),
            Some(Atom::Decimal(_, scale)) => Some(Ok((Atom::Decimal(38, *scale), true))),
            Some(atom) if atom.is_float() => Some(Ok((Atom::Float64, true))),
            Some(Atom::Interval) => Some(Ok((Atom::Interval, true))),
            _ => wrong("it takes one number"),
        },
        "avg" | "mean" => match one() {
            Some(atom) if atom.is_numeric() || *atom == Atom::Null => {
                Some(Ok((Atom::Float64, true)))
            }
            Some(atom @ (Atom::Interval | Atom::Timestamp(TimeUnit::Microsecond, _))) => {
                Some(Ok((atom.clone(), true)))
            }
            _ => wrong("it takes one number"),
        },
        "fsum" | "favg" | "product" | "mad" | "skewness" | "kurtosis" | "kurtosis_pop" => {
            match one() {
                Some(Atom::Float64) => Some(Ok((Atom::Float64, true))),
                _ => wrong("cast the value to double precision"),
            }
        }
        "entropy" => match one() {
            Some(_) => Some(Ok((Atom::Float64, true))),
            _ => wrong("it takes one value"),
        },
        "histogram" => match one() {
            Some(atom) => {
                let key = Slot { atom: atom.clone(), nullable: false };
                let count = Slot { atom: Atom::Int64, nullable: true };
                Some(Ok((Atom::Map(Box::new(key), Box::new(count)), true)))
            }
            _ => wrong("it takes one value"),
        },
        "approx_top_k" => match args {
            [(atom, _), (Atom::Int64, _)] => {
                let slot = Slot { atom: atom.clone(), nullable: true };
                Some(Ok((Atom::List(Box::new(slot)), true)))
            }
            _ => wrong("it takes a value and a count"),
        },
        "merge_count" => match one() {
            Some(Atom::Int64) => Some(Ok((Atom::Int64, false))),
            _ => wrong("it takes one count"),
        },
        "merge_sum" => match one() {
            Some(atom @ (Atom::Int64 | Atom::Decimal(38, _) | Atom::Float64)) => {
                Some(Ok((atom.clone(), true)))
            }
            _ => wrong("it takes one sum"),
        },
        "merge_avg" => match args {
            [(Atom::Int64 | Atom::Decimal(38, _) | Atom::Float64, _), (Atom::Int64, _)] => {
                Some(Ok((Atom::Float64, true)))
            }
            _ => wrong("it takes a sum and a count"),
        },
        "var" | "var_samp" | "var_sample" | "variance" | "var_pop" | "var_population"
        | "stddev" | "stddev_samp" | "stddev_pop" => match one() {
            Some(atom) if atom.is_numeric() || *atom == Atom::Null => {
                Some(Ok((Atom::Float64, true)))
            }
            _ => wrong("it takes one number"),
        },
        "percentile_cont" | "percentile_disc" => {
            let (value, fraction) = match args {
                [(value, _), (fraction, _)] => (value, fraction),
                _ => return wrong("it takes a fraction, and a value WITHIN GROUP (ORDER BY …)"),
            };
            let is_between = matches!(
                value,
                Atom::Float64
                    | Atom::Interval
                    | Atom::Timestamp(TimeUnit::Microsecond, _)
                    | Atom::Time(TimeUnit::Microsecond)
            );
            if name == "percentile_cont" && !is_between {
                return wrong("cast the value to double precision");
            }
            match fraction {
                Atom::Float64 => Some(Ok((value.clone(), true))),
                Atom::List(slot) if slot.atom == Atom::Float64 => {
                    let slot = Slot { atom: value.clone(), nullable: true };
                    Some(Ok((Atom::List(Box::new(slot)), true)))
                }
                _ => wrong("cast the fraction to double precision"),
            }
        }
        "string_agg" => match args {
            [(atom @ (Atom::String | Atom::Bytes), _), (separator, _)] if separator == atom => {
                Some(Ok((atom.clone(), true)))
            }
            _ => wrong("it takes a text and a separator, or both as bytes"),
        },
        "mode" => match one() {
            Some(atom) => Some(Ok((atom.clone(), true))),
            _ => wrong("it takes one value WITHIN GROUP (ORDER BY …)"),
        },
        "min" | "max" | "any_value" => match one() {
            Some(atom) => Some(Ok((atom.clone(), true))),
            _ => wrong("it takes one argument"),
        },
        "bool_and" | "bool_or" | "every" => match one() {
            Some(Atom::Boolean | Atom::Null) => Some(Ok((Atom::Boolean, true))),
            _ => wrong("it takes one boolean"),
        },
        "bit_and" | "bit_or" | "bit_xor" if args.iter().any(|(atom, _)| atom.has_bits()) => {
            match one() {
                Some(Atom::Bits) => Some(Ok((Atom::Bits, true))),
                _ => wrong("cast the bit strings to text"),
            }
        }
        super::bit_aggregates::COLLECT => match args {
            [(Atom::Int64, _), (Atom::Int64, _), (Atom::Int64, _)] => Some(Ok((Atom::Bits, true))),
            _ => wrong("it takes a whole number and the bounds of all"),
        },
        _ => None,
    }
}

/// The result type of a DataFusion aggregate.
pub(crate) fn foreign(udf: &AggregateUDF, args: &[(Atom, bool)]) -> Result<(Atom, bool)> {
    if !is_taken(udf.name(), args.iter().map(|(atom, _)| atom)) {
        return Err(refused(udf.name(), args, "cast times with time zone to text"));
    }
    let fields = argument_fields(udf, args)?;
    let result = udf.return_field(&fields).map_err(|error| from_datafusion(error, udf.name()))?;
    let given: Vec<_> = args.iter().map(|(atom, _)| (atom, None)).collect();
    let atom = kept(udf.name(), &given, Atom::from_arrow(result.data_type())?);
    Ok((atom, udf.is_nullable()))
}

/// The Arrow types to which a DataFusion aggregate's arguments are coerced.
///
/// # Errors
/// The aggregate does not accept arguments of these types.
pub fn argument_fields(udf: &AggregateUDF, args: &[(Atom, bool)]) -> Result<Vec<FieldRef>> {
    let given: Vec<FieldRef> = args
        .iter()
        .enumerate()
        .map(|(index, (atom, nullable))| {
            let data_type: DataType = foreign_type(&atom.arrow());
            FieldRef::new(Field::new(format!("a{index}"), data_type, *nullable))
        })
        .collect();
    fields_with_udf(&given, udf).map_err(|error| from_datafusion(error, udf.name()))
}
