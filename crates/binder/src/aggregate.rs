//! Calls of aggregate functions.
//!
//! A call belongs to the innermost query that provides columns for its arguments; a call that reads
//! no columns belongs to its own query. So a call in a subquery may belong to an enclosing query,
//! as in `(SELECT sum(t.a)) FROM t`.

use std::collections::HashSet;

use sqlparser::ast::{
    DuplicateTreatment, Expr as Ast, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, NullTreatment, OrderByExpr,
};
use tessera_functions::is_offered;
use tessera_optimizer::logical::relation::{Call, Key, Name};
use tessera_plan::{Expr, Functions, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use super::enums::Called;
use super::function::{argument, function_name};
use super::order::direction;
use super::scope::{Scope, as_parameter};
use super::steps::Step;
use super::typed::TypedExpr;
use super::{Binder, Place, refuse, unsupported_at, with_span, without_parentheses};

/// SQL names of native aggregate functions and the functions they denote.
const NAMES: [(&str, &str); 42] = [
    ("sum", "sum"),
    ("avg", "avg"),
    ("mean", "avg"),
    ("var_samp", "var_samp"),
    ("var", "var_samp"),
    ("var_sample", "var_samp"),
    ("variance", "var_samp"),
    ("var_pop", "var_pop"),
    ("var_population", "var_pop"),
    ("stddev", "stddev"),
    ("stddev_samp", "stddev"),
    ("stddev_pop", "stddev_pop"),
    ("percentile_cont", "percentile_cont"),
    ("quantile_cont", "percentile_cont"),
    ("percentile_disc", "percentile_disc"),
    ("quantile_disc", "percentile_disc"),
    ("mode", "mode"),
    ("string_agg", "string_agg"),
    ("count", "count"),
    ("every", "bool_and"),
    ("bool_and", "bool_and"),
    ("bool_or", "bool_or"),
    ("quantile", "percentile_disc"),
    ("list", "array_agg"),
    ("group_concat", "string_agg"),
    ("listagg", "string_agg"),
    ("first", "first_value"),
    ("last", "last_value"),
    ("arbitrary", "first_value"),
    ("approx_count_distinct", "approx_distinct"),
    ("approx_top_k", "approx_top_k"),
    ("histogram", "histogram"),
    ("entropy", "entropy"),
    ("mad", "mad"),
    ("skewness", "skewness"),
    ("kurtosis", "kurtosis"),
    ("kurtosis_pop", "kurtosis_pop"),
    ("product", "product"),
    ("fsum", "fsum"),
    ("sumkahan", "fsum"),
    ("kahan_sum", "fsum"),
    ("favg", "favg"),
];

/// The names of aggregates that the binder knows itself.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// Ordered-set aggregates: `f(…) WITHIN GROUP (ORDER BY value)`.
const ORDERED_SET: [&str; 3] = ["percentile_cont", "percentile_disc", "mode"];

/// A bound aggregate call that is not yet assigned to a query.
pub(super) struct BoundAggregate {
    pub(super) call: Call,
    pub(super) atom: Atom,
    pub(super) steps: Vec<Step>,
    /// The arguments as they are written, which give the result its collation.
    written: Vec<Expr>,
}

impl Binder<'_> {
    /// Returns the aggregate function of a call; `None` for other functions.
    pub(super) fn aggregate_of(&self, function: &Function) -> Option<String> {
        let name = function_name(function)?;
        if self.is_aggregate_macro(function) {
            return Some(name);
        }
        if let Some((_, own)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Some(own.to_string());
        }
        if name == "grouping" {
            return None;
        }
        let found = self.library().aggregate_udf(&name).filter(|_| is_offered(&name));
        found.map(|found| found.name().to_string())
    }

    pub(super) fn aggregate(
        &mut self,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        self.aggregate_in(function, place.scope, place.clause)
            .map_err(|error| with_span(error, function))
    }

    /// Binds a call in the scope of its query and returns its result field.
    fn aggregate_in(
        &mut self,
        function: &Function,
        scope: &Scope<'_>,
        clause: &str,
    ) -> Result<TypedExpr> {
        let inner = scope.without_groups();
        let bound = self.bind_aggregate(function, &inner, "an aggregate function", true)?;
        if let Some(outer) = owner(&bound, scope) {
            let value = self.aggregate_in(function, outer, clause)?;
            return Ok(as_parameter(value));
        }
        let Some(groups) = scope.groups else {
            let message = match clause {
                "an aggregate function" => "aggregate function calls cannot be nested".to_string(),
                clause => format!("aggregate functions are not allowed in {clause}"),
            };
            return Err(Error::semantic(message).with_state(SqlState::GROUPING_ERROR));
        };
        let BoundAggregate { call, atom, steps, written } = bound;
        let volatile = call.args.iter().chain(&call.filter).any(|expr| self.is_volatile(expr));
        let mut groups = groups.borrow_mut();
        groups.steps.extend(steps);
        let shown = function.to_string();
        let name = groups.call(call, volatile, || self.fields.fresh(&shown, atom.clone()));
        self.keep_collation(&name, &written)?;
        Ok(TypedExpr::new(Expr::Field(name), atom))
    }

    /// Binds a call over the columns of a scope. With `simplifies`, its expressions are in the form
    /// in which they are computed.
    pub(super) fn bind_aggregate(
        &mut self,
        function: &Function,
        scope: &Scope<'_>,
        clause: &'static str,
        simplifies: bool,
    ) -> Result<BoundAggregate> {
        let finished = |binder: &Self, value| match simplifies {
            true => binder.finished(value),
            false => Ok(value),
        };
        let name = self
            .aggregate_of(function)
            .ok_or_else(|| Error::internal("call of an unknown aggregate function"))?;
        let Function { args, filter, null_treatment, within_group, .. } = function;
        let mut steps = Vec::new();
        let mut place = Place { scope, steps: &mut steps, clause, unnests: None };
        let (mut distinct, mut order_by, mut ignore) = (false, &[][..], *null_treatment);
        let mut limit = None;
        let mut values = Vec::new();
        match args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(query) => {
                return Err(unsupported_at(
                    &format!("a subquery as the argument of {name}"),
                    &**query,
                ));
            }
            FunctionArguments::List(list) => {
                distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
                for clause in &list.clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(keys) => order_by = keys,
                        FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => {
                            ignore = Some(*treatment)
                        }
                        FunctionArgumentClause::Limit(count)
                            if name == "array_agg" && !distinct =>
                        {
                            limit = Some(self.call_limit(count, &mut place)?);
                        }
                        other => {
                            return Err(unsupported_at(
                                &format!("{other} in a call of {name}"),
                                function,
                            ));
                        }
                    }
                }
                for arg in &list.args {
                    match arg {
                        FunctionArg::Unnamed(FunctionArgExpr::Wildcard)
                            if name == "count" && !distinct => {}
                        arg => values.push(self.expr(argument(arg, function)?, &mut place)?),
                    }
                }
                if name == "count" && list.args.is_empty() {
                    let message = "count takes * or a value";
                    return Err(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE));
                }
            }
        }
        if ignore == Some(NullTreatment::IgnoreNulls) {
            return Err(unsupported_at(&format!("IGNORE NULLS of {name}"), function));
        }
        let ordered = ORDERED_SET.contains(&name.as_str());
        if !within_group.is_empty() && !order_by.is_empty() {
            let message = format!(
                "{name} has both ORDER BY in its arguments and WITHIN GROUP; write one of them"
            );
            return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
        }
        if within_group.is_empty()
            && function_name(function).is_some_and(|name| name.starts_with("percentile_"))
        {
            let message = format!("{name} needs WITHIN GROUP (ORDER BY value)");
            return Err(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE));
        }
        let (keys, in_set) = match within_group.is_empty() {
            true => (order_by, false),
            false => (&within_group[..], ordered),
        };
        let mut keys = self.call_keys(keys, in_set, &mut place)?;
        if !within_group.is_empty() {
            // As in standard SQL, `listagg(x, ',') WITHIN GROUP (ORDER BY y)`.
            let is_list = function_name(function).as_deref() == Some("listagg");
            if !ordered
                && !is_list
                && !matches!(
                    name.as_str(),
                    "approx_percentile_cont" | "approx_percentile_cont_with_weight"
                )
            {
                let message = format!(
                    "{name} does not take WITHIN GROUP; write ORDER BY inside its parentheses"
                );
                return Err(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE));
            }
            if let ([(value, _, _)], false) = (&keys[..], is_list) {
                values.insert(0, value.clone());
            } else if !is_list {
                let message = format!("WITHIN GROUP (ORDER BY …) of {name} takes one value");
                return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
            }
        }
        let (name, values) = self.as_percentile(name, values)?;
        let mut values =
            self.call_arguments(&name, self.labeled(Called::Aggregate, &name, values)?)?;
        if ordered
            && !within_group.is_empty()
            && let (Some(key), Some(value)) = (keys.first_mut(), values.first())
        {
            // Sort the converted value that the function reads.
            key.0 = value.clone();
        }
        let written = values.iter().map(|value| value.expr.clone()).collect();
        let name = self.collated_call(name, &mut values, &mut keys, &mut distinct)?;
        let filter = match filter {
            Some(filter) => {
                let condition = self.condition(filter, &mut place)?;
                Some(finished(self, condition)?.expr)
            }
            None => None,
        };
        let values =
            values.into_iter().map(|value| finished(self, value)).collect::<Result<Vec<_>>>()?;
        let mut sorted = Vec::with_capacity(keys.len());
        for (value, descending, nulls_first) in keys {
            let expr = finished(self, value)?.expr;
            if !matches!(expr, Expr::Constant(..)) {
                sorted.push(Key { expr, descending, nulls_first });
            }
        }
        if distinct && sorted.iter().any(|key| !values.iter().any(|value| value.expr == key.expr)) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in the argument list";
            return Err(Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE));
        }
        let given: Vec<_> = values.iter().map(|value| (value.atom.clone(), true)).collect();
        let (atom, _) = self
            .library()
            .aggregate(&name, &given, distinct)
            .map_err(|e| Self::function_error(e, &name))?;
        let args = values.into_iter().map(|value| value.expr).collect();
        let call = Call {
            function: name.as_str().into(),
            args,
            distinct,
            filter,
            order_by: sorted,
            limit,
        };
        Ok(BoundAggregate { call, atom, steps, written })
    }

    /// Binds ORDER BY of a call. The value of an ordered-set aggregate stays as it is, because it
    /// is the result, too.
    fn call_keys(
        &mut self,
        keys: &[OrderByExpr],
        in_set: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Vec<(TypedExpr, bool, bool)>> {
        let mut sorted = Vec::with_capacity(keys.len());
        for OrderByExpr { expr, options, with_fill } in keys {
            refuse(with_fill.is_some(), "WITH FILL", expr)?;
            let value = self.expr(expr, place)?;
            let value = match in_set {
                true => value.known(),
                false => self.sort_key(value.known())?.0,
            };
            let (descending, nulls_first) = direction(options);
            sorted.push((value, descending, nulls_first));
        }
        Ok(sorted)
    }

    /// Returns the number of values that LIMIT in a call allows.
    fn call_limit(&mut self, count: &Ast, place: &mut Place<'_, '_>) -> Result<u64> {
        let count = self.expr(count, place)?;
        let value = match &self.evaluated(count)?.expr {
            Expr::Constant(Scalar::Integer(value), _) => u64::try_from(*value).ok(),
            _ => None,
        };
        value.filter(|value| *value > 0).ok_or_else(|| {
            let message = "the number of values of an aggregate must be a constant above 0";
            Error::semantic(message).with_state(SqlState::INVALID_PARAMETER_VALUE)
        })
    }

    /// Binds `grouping(a, b)`, which tells the keys that a grouping set omits.
    pub(super) fn grouping_call(
        &mut self,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(unsupported_at("grouping with a subquery", function));
        };
        let Some(groups) = place.scope.groups else {
            let message = format!("grouping is not allowed in {}", place.clause);
            let error = Error::semantic(message).with_state(SqlState::GROUPING_ERROR);
            return Err(with_span(error, function));
        };
        if list.args.is_empty() || list.args.len() > 31 {
            let message = "grouping takes 1 to 31 expressions of GROUP BY";
            return Err(Error::semantic(message).with_state(SqlState::GROUPING_ERROR));
        }
        let inner = place.scope.without_groups();
        let mut args = Vec::with_capacity(list.args.len());
        for arg in &list.args {
            let written = argument(arg, function)?;
            // A key that is drawn or computed once is known by its text.
            let key = groups.borrow().syntactic_key(without_parentheses(written));
            if let Some(key) = key {
                args.push(key.expr);
                continue;
            }
            let mut steps = Vec::new();
            let place =
                &mut Place { scope: &inner, steps: &mut steps, clause: "grouping", unnests: None };
            args.push(self.expr(written, place)?.expr);
        }
        let name = self.fields.fresh("grouping", Atom::Int32);
        groups.borrow_mut().grouping(args, name.clone());
        Ok(TypedExpr::new(Expr::Field(name), Atom::Int32))
    }
}

/// Returns the enclosing query that a call belongs to, or `None` if it belongs to the scope's
/// query.
fn owner<'s>(bound: &BoundAggregate, scope: &Scope<'s>) -> Option<&'s Scope<'s>> {
    let mut fields: HashSet<Name> = HashSet::new();
    let mut parameters: HashSet<Name> = HashSet::new();
    let keys = bound.call.order_by.iter().map(|key| &key.expr);
    for expr in bound.call.args.iter().chain(&bound.call.filter).chain(keys) {
        fields.extend(expr.fields());
        parameters.extend(tessera_optimizer::logical::relation::parameters(expr));
    }
    for step in &bound.steps {
        parameters.extend(step.reads());
    }
    let called = |scope: &Scope<'_>, name: &Name| {
        scope
            .groups
            .is_some_and(|groups| groups.borrow().calls.iter().any(|(known, _)| known == name))
    };
    let read = |scope: &Scope<'_>| {
        fields.iter().chain(&parameters).any(|name| scope.has_field(name) || called(scope, name))
    };
    if read(scope) || (fields.is_empty() && parameters.is_empty()) {
        return None;
    }
    let mut outer = scope.outer;
    while let Some(current) = outer {
        if read(current) {
            return Some(current);
        }
        outer = current.outer;
    }
    None
}
