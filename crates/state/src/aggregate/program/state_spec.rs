//! Selects the states that the aggregate calls of a node need.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion_expr::AggregateUDF;
use tessera_functions::{Library, of_bit_strings};
use tessera_plan::Expr;
use tessera_plan::rewrite::is_volatile;
use tessera_types::{Atom, Error, Result};

use crate::aggregate::call::Call;
use crate::aggregate::counted::CountedKind;
use crate::aggregate::extreme::ExtremeKind;
use crate::aggregate::library::LibrarySpec;
use crate::aggregate::moments::Moment;
use crate::aggregate::ordered::OrderedSpec;
use crate::aggregate::quantile::{Quantile, QuantileSpec};
use crate::aggregate::regression::Regression;
use crate::aggregate::{Function, OutputKind, is_summable};

/// Library functions whose result depends on the order of their input.
const ORDER_MATTERS: [&str; 5] =
    ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Whether a library function returns the first or the last of its values.
fn keeps_first(name: &str) -> bool {
    matches!(name, "first_value" | "last_value")
}

/// A state during binding: calls with equal ones share it.
#[derive(Debug, PartialEq)]
pub(super) struct StateSpec {
    pub(super) family: Family,
    pub(super) args: Vec<Expr>,
    pub(super) filter: Option<Expr>,
    pub(super) distinct: bool,
    pub(super) order_by: Vec<tessera_plan::SortKey>,
    pub(super) limit: Option<u64>,
}

impl StateSpec {
    pub(super) fn is_volatile(&self, library: &Library) -> bool {
        self.args.iter().chain(&self.filter).any(|expr| is_volatile(expr, library))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Family {
    Null,
    Count,
    MergedCount,
    Sum,
    Extreme(ExtremeKind),
    Variance,
    Regression,
    Moments,
    CompensatedSum,
    Product,
    Counted(CountedKind),
    Quantile(Quantile),
    Library(Arc<str>),
}

fn udf(library: &Library, name: &str) -> Result<Arc<AggregateUDF>> {
    library
        .aggregate_udf(name)
        .ok_or_else(|| Error::semantic(format!("unknown aggregate function {name}")))
}

/// Returns the states that a call needs, and the result to read from them.
pub(super) fn family(
    call: &Call,
    types: &[Atom],
    library: &Arc<Library>,
) -> Result<(Family, OutputKind)> {
    let kept = types.first().is_some_and(|atom| *atom != Atom::Null) && types.len() == 1;
    let numeric = kept && types.first().is_some_and(|atom| is_summable(&atom.arrow()));
    let boolean = kept && types.first() == Some(&Atom::Boolean);
    let variance = |sample, root| (Family::Variance, OutputKind::Variance { sample, root });
    let of_null = types == [Atom::Null];
    if let (Some(kind), 2) = (Regression::named(&call.function), types.len()) {
        return Ok((Family::Regression, OutputKind::Regression(kind)));
    }
    if let Some(kind) = Moment::named(&call.function) {
        return Ok((Family::Moments, OutputKind::Moment(kind)));
    }
    if let Some(kind) = CountedKind::named(&call.function) {
        return Ok((Family::Counted(kind), OutputKind::Value));
    }
    Ok(match &*call.function {
        "sum" | "avg" | "mean" | "min" | "max" | "any_value" | "bool_and" | "bool_or" | "every"
        | "var_samp" | "var_pop" | "stddev" | "stddev_pop" | "mode"
            if of_null =>
        {
            (Family::Null, OutputKind::Value)
        }
        "sum" if types == [Atom::Interval] => (Family::Sum, OutputKind::Value),
        "avg" | "mean" if matches!(types, [Atom::Interval | Atom::Timestamp(..)]) => {
            (Family::Sum, OutputKind::Average)
        }
        "fsum" => (Family::CompensatedSum, OutputKind::Value),
        "favg" => (Family::CompensatedSum, OutputKind::Average),
        "product" => (Family::Product, OutputKind::Value),
        "mad" => (Family::Quantile(Quantile::Deviation), OutputKind::Value),
        "count" => (Family::Count, OutputKind::Value),
        "sum" if numeric => (Family::Sum, OutputKind::Value),
        "avg" | "mean" if numeric => (Family::Sum, OutputKind::Average),
        "merge_count" => (Family::MergedCount, OutputKind::Value),
        "merge_sum" => (Family::Sum, OutputKind::Value),
        "merge_avg" => (Family::Sum, OutputKind::Average),
        "min" if kept => (Family::Extreme(ExtremeKind::Min), OutputKind::Value),
        "max" if kept => (Family::Extreme(ExtremeKind::Max), OutputKind::Value),
        "any_value" if kept => (Family::Extreme(ExtremeKind::Any), OutputKind::Value),
        "bool_and" | "every" if boolean => (Family::Extreme(ExtremeKind::Min), OutputKind::Value),
        "bool_or" if boolean => (Family::Extreme(ExtremeKind::Max), OutputKind::Value),
        "percentile_cont" => (Family::Quantile(Quantile::Continuous), OutputKind::Value),
        "percentile_disc" => (Family::Quantile(Quantile::Discrete), OutputKind::Value),
        "mode" => (Family::Quantile(Quantile::Mode), OutputKind::Value),
        "var" | "var_samp" | "var_sample" | "variance" if numeric => variance(true, false),
        "var_pop" | "var_population" if numeric => variance(false, false),
        "stddev" | "stddev_samp" if numeric => variance(true, true),
        "stddev_pop" if numeric => variance(false, true),
        name => {
            let of_bits = of_bit_strings(name).filter(|_| types == [Atom::Bits]);
            let name = of_bits.unwrap_or(name);
            (Family::Library(udf(library, name)?.name().into()), OutputKind::Value)
        }
    })
}

pub(super) fn want(call: &Call, family: Family, types: &[Atom]) -> StateSpec {
    let order_matters = match &family {
        Family::Library(name) => ORDER_MATTERS.contains(&&**name),
        Family::Extreme(ExtremeKind::Any) => !call.order_by.is_empty(),
        _ => false,
    };
    let within_group =
        matches!(&family, Family::Library(_) | Family::Quantile(_)) && !order_matters;
    StateSpec {
        args: match family {
            // A constant that is not NULL is not NULL in every tuple.
            Family::Count if !call.distinct && types.len() == 1 => call
                .args
                .iter()
                .filter(|arg| !matches!(arg, Expr::Constant(value, _) if !value.is_null()))
                .cloned()
                .collect(),
            _ => call.args.clone(),
        },
        filter: call.filter.clone(),
        distinct: call.distinct && !matches!(family, Family::Extreme(_)),
        order_by: if order_matters || within_group { call.order_by.clone() } else { Vec::new() },
        limit: call.limit,
        family,
    }
}

/// Reads a count from a sum over the same values, if there is one.
pub(super) fn count_from_sums(specs: &mut Vec<StateSpec>, results: &mut [(usize, OutputKind)]) {
    for count in (0..specs.len()).rev() {
        let state = &specs[count];
        if state.family != Family::Count || state.args.is_empty() {
            continue;
        }
        let sum = specs.iter().position(|other| {
            other.family == Family::Sum
                && (&other.args, &other.filter, other.distinct)
                    == (&state.args, &state.filter, state.distinct)
        });
        let Some(sum) = sum else { continue };
        specs.remove(count);
        for (index, kind) in results.iter_mut() {
            if *index == count {
                (*index, *kind) = (if sum > count { sum - 1 } else { sum }, OutputKind::Count);
            } else if *index > count {
                *index -= 1;
            }
        }
    }
}

pub(super) fn function(
    state: &StateSpec,
    atoms: &[(Atom, bool)],
    library: &Arc<Library>,
) -> Result<Function> {
    let (args, keys) = atoms.split_at(state.args.len());
    let first = || {
        let atom =
            args.first().ok_or_else(|| Error::internal("an aggregate without its argument"))?;
        Ok::<_, Error>(atom.0.arrow())
    };
    let mut order_matters = false;
    let (mut within_group, mut reversed) = (false, false);
    let function = match &state.family {
        Family::Null => Function::Null,
        Family::Count => Function::Count { merged: false },
        Family::MergedCount => Function::Count { merged: true },
        Family::Sum => Function::Sum(first()?),
        Family::Extreme(keep) => {
            order_matters = *keep == ExtremeKind::Any && !state.order_by.is_empty();
            Function::Extreme(*keep, first()?)
        }
        Family::Variance => Function::Variance(first()?),
        Family::Regression => Function::Regression,
        Family::Moments => Function::Moments,
        Family::CompensatedSum => Function::CompensatedSum,
        Family::Product => Function::Product,
        Family::Counted(kind) => Function::Counted(*kind, first()?),
        Family::Quantile(kind) => {
            within_group = true;
            let descending = state.order_by.first().is_some_and(|key| key.descending);
            Function::Quantile(Arc::new(QuantileSpec { kind: *kind, descending, values: first()? }))
        }
        Family::Library(name) => {
            order_matters = ORDER_MATTERS.contains(&&**name);
            within_group = !order_matters;
            match (&**name, args) {
                ("array_agg", _) => Function::List,
                ("string_agg", _) => Function::Joined,
                _ => {
                    let descending =
                        state.order_by.first().filter(|_| within_group).map(|key| key.descending);
                    // The last value is the first one in the reverse order.
                    reversed = &**name == "last_value" && !state.distinct;
                    let udf = udf(library, if reversed { "first_value" } else { name })?;
                    Function::Library(Arc::new(LibrarySpec::new(
                        udf,
                        args,
                        &state.args,
                        descending,
                    )?))
                }
            }
        }
    };
    if !state.distinct && !order_matters {
        return Ok(function);
    }
    let options = |key: &tessera_plan::SortKey| SortOptions {
        descending: key.descending != reversed,
        nulls_first: key.nulls_first != reversed,
    };
    let keys = match within_group {
        true => Vec::new(),
        false => keys
            .iter()
            .zip(&state.order_by)
            .map(|((atom, _), key)| (atom.arrow(), options(key)))
            .collect(),
    };
    Ok(Function::Ordered(Arc::new(OrderedSpec {
        function,
        args: args.iter().map(|(atom, _)| atom.arrow()).collect(),
        keys,
        distinct: state.distinct,
        order_matters,
        reversed,
        first: match &state.family {
            Family::Library(name) if keeps_first(name) && !state.distinct => Some(1),
            _ => state.limit,
        },
    })))
}
