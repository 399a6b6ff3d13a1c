//! Calls of window functions: `f(…) OVER (…)`.
//!
//! A call is bound where it stands and collected in [`Windows`]; its value is a field. Its
//! arguments and keys are over the columns of FROM and over aggregates, like all expressions of a
//! SELECT, and become expressions over the groups with them. Then `windowed` computes all calls of
//! the query.

use sqlparser::ast::{
    DuplicateTreatment, Function, FunctionArgumentClause, FunctionArguments, NullTreatment,
    WindowType,
};
use tessera_functions::{WINDOW_FUNCTIONS, window_type};
use tessera_optimizer::logical::relation::{Call, Key, Name, Relation};
use tessera_optimizer::logical::window::{Frame, Window, WindowCall};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::enums::Called;
use super::function::{argument, function_name};
use super::grouped::GroupRewriter;
use super::steps::with_fields;
use super::typed::TypedExpr;
use super::window_definition::WindowDefinition;
use super::{Binder, Place, normalized, refuse, unsupported_at, with_span};

/// The windows of a query and the calls over them.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// The windows of the WINDOW clause.
    pub(super) named: Vec<(String, WindowDefinition)>,
    calls: Vec<BoundWindowCall>,
}

/// A bound call and its window.
#[derive(Debug, Clone)]
pub(super) struct BoundWindowCall {
    /// The field of the result.
    name: Name,
    partition: Vec<Expr>,
    order: Vec<Key>,
    call: WindowCall,
}

/// The windows over which calls are computed together.
struct SharedWindow {
    partition: Vec<Name>,
    order: Vec<Key>,
    calls: Vec<(Name, WindowCall)>,
}

impl Windows {
    pub(super) fn into_calls(self) -> Vec<BoundWindowCall> {
        self.calls
    }

    /// Rewrites the calls over the fields of the groups, and checks the windows without calls.
    pub(super) fn rewrite_over(&mut self, groups: &GroupRewriter) -> Result<()> {
        for (_, definition) in &mut self.named {
            definition.exprs_mut().try_for_each(|expr| groups.rewrite(expr))?;
        }
        self.calls.iter_mut().try_for_each(|call| call.rewrite_over(groups))
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn is_result(&self, name: &Name) -> bool {
        self.calls.iter().any(|call| call.name == *name)
    }
}

impl BoundWindowCall {
    /// Returns the fields that the call reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = Name> {
        let order = self.order.iter().map(|key| &key.expr);
        self.partition.iter().chain(order).chain(self.call.exprs()).flat_map(Expr::fields)
    }

    /// Rewrites the call over the fields of the groups.
    fn rewrite_over(&mut self, groups: &GroupRewriter) -> Result<()> {
        let order = self.order.iter_mut().map(|key| &mut key.expr);
        let exprs = self.partition.iter_mut().chain(order).chain(self.call.exprs_mut());
        exprs.into_iter().try_for_each(|expr| groups.rewrite(expr))
    }
}

/// Returns the window function that a name denotes; `None` for aggregates and other functions.
fn window_function(name: &str) -> Option<&str> {
    let name = match name {
        "first" => "first_value",
        "last" => "last_value",
        name => name,
    };
    WINDOW_FUNCTIONS.contains(&name).then_some(name)
}

/// Returns the error for a call of a window function without OVER; `None` for other functions.
pub(super) fn without_over(name: &str) -> Option<Error> {
    window_function(name)?;
    let message = format!("window function {name} needs OVER (…)");
    Some(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE))
}

impl Binder<'_> {
    /// Binds a call with OVER and returns its result field.
    pub(super) fn window_call(
        &mut self,
        function: &Function,
        over: &WindowType,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let Some(windows) = place.scope.windows else { return Err(misplaced(place.clause)) };
        let scope = place.scope.without_windows();
        let mut inner = Place {
            scope: &scope,
            steps: &mut *place.steps,
            clause: "a window function",
            unnests: None,
        };
        let (mut call, atom) = self.window_function_call(function, &mut inner)?;
        let definition = match over {
            WindowType::NamedWindow(name) => {
                let windows = windows.borrow();
                let wanted = normalized(name);
                match windows.named.iter().find(|(known, _)| *known == wanted) {
                    Some((_, definition)) => definition.clone(),
                    None => return Err(super::window_definition::unknown_window(name)),
                }
            }
            WindowType::WindowSpec(spec) => {
                inner.clause = "a window definition";
                let named = windows.borrow().named.clone();
                self.window_definition(spec, &named, false, &mut inner)?
            }
        };
        let WindowDefinition { partition, order, frame, .. } = definition;
        call.frame = frame;
        let mut bound = BoundWindowCall { name: "".into(), partition, order, call };
        let mut windows = windows.borrow_mut();
        if bound.reads().any(|name| windows.is_result(&name)) {
            return Err(misplaced("a window function"));
        }
        let same = |known: &&BoundWindowCall| {
            known.partition == bound.partition
                && known.order == bound.order
                && known.call == bound.call
        };
        if let Some(known) = windows.calls.iter().find(same)
            && !bound.call.exprs().any(|expr| self.is_volatile(expr))
        {
            return Ok(TypedExpr::new(Expr::Field(known.name.clone()), atom));
        }
        bound.name = self.fields.fresh(&function.to_string(), atom.clone());
        self.keep_collation(&bound.name, &bound.call.args)?;
        let name = bound.name.clone();
        windows.calls.push(bound);
        Ok(TypedExpr::new(Expr::Field(name), atom))
    }

    /// Binds the function and its arguments; the frame is set later.
    fn window_function_call(
        &mut self,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<(WindowCall, Atom)> {
        let Some(called) = function_name(function) else {
            let name = &function.name;
            return Err(unsupported_at(&format!("the function {name} in a schema"), function));
        };
        if let Some(name) = window_function(&called) {
            return self.plain_window_call(name, function, place);
        }
        if self.aggregate_of(function).is_none() {
            let message = format!(
                "OVER needs a window function or an aggregate function, but {called} is a scalar function; remove OVER"
            );
            let error = match self.is_callable(&called) {
                true => Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE),
                false => self.unknown_function(&called, "(…)"),
            };
            return Err(with_span(error, function));
        }
        let bound = self.bind_aggregate(function, place.scope, place.clause, true)?;
        if matches!(&*called, "min" | "max") && *bound.call.function != *called {
            let construct = format!("{called} over a window");
            return Err(unsupported_at(
                &format!("{construct} of texts with a collation"),
                function,
            ));
        }
        place.steps.extend(bound.steps);
        let written = function;
        let Call { function, args, distinct, filter, order_by, limit } = bound.call;
        refuse(limit.is_some(), "LIMIT in a window function", written)?;
        let (ignore_nulls, frame) = (false, Frame::whole());
        let call = WindowCall { function, args, distinct, filter, order_by, ignore_nulls, frame };
        Ok((call, bound.atom))
    }

    /// Binds a window function that is no aggregate.
    fn plain_window_call(
        &mut self,
        name: &str,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<(WindowCall, Atom)> {
        let Function { args, filter, null_treatment, within_group, .. } = function;
        let refused = |what: &str| Err(unsupported_at(&format!("{what} of {name}"), function));
        if filter.is_some() {
            return refused("FILTER");
        }
        if !within_group.is_empty() {
            return refused("WITHIN GROUP");
        }
        let mut ignore = *null_treatment;
        let mut values = Vec::new();
        match args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) => return refused("a subquery as the argument"),
            FunctionArguments::List(list) => {
                if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
                    return refused("DISTINCT");
                }
                for clause in &list.clauses {
                    match clause {
                        FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => {
                            ignore = Some(*treatment);
                        }
                        FunctionArgumentClause::OrderBy(_) => {
                            return refused("ORDER BY in the arguments");
                        }
                        other => return refused(&other.to_string()),
                    }
                }
                for arg in &list.args {
                    values.push(self.expr(argument(arg, function)?, place)?);
                }
            }
        }
        let ignore_nulls = ignore == Some(NullTreatment::IgnoreNulls);
        let is_positional =
            matches!(name, "lag" | "lead" | "first_value" | "last_value" | "nth_value");
        if ignore_nulls && !is_positional {
            return refused("IGNORE NULLS");
        }
        let values = self.window_arguments(name, self.labeled(Called::Window, name, values)?)?;
        let given: Vec<_> = values.iter().map(|value| (value.atom.clone(), true)).collect();
        let (atom, _) = window_type(&**self.library(), name, &given, false)?;
        let args = values.into_iter().map(|value| value.expr).collect();
        Ok((WindowCall { ignore_nulls, ..WindowCall::plain(name, args) }, atom))
    }

    /// Converts arguments to the types that a window function takes.
    fn window_arguments(&self, name: &str, values: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let mut all = Vec::with_capacity(values.len());
        for (position, value) in values.into_iter().enumerate() {
            let counts = match name {
                "ntile" => position == 0,
                "lag" | "lead" | "nth_value" => position == 1,
                _ => false,
            };
            let is_whole = value.atom.is_integer() || value.unknown || value.is_null();
            all.push(match () {
                () if counts && is_whole => self.cast_to(value, &Atom::Int64, false)?,
                () if position == 2 => value,
                () if value.is_null() => self.cast_to(value, &Atom::String, false)?,
                () => value.known(),
            });
        }
        if let ("lag" | "lead", [_, _, _]) = (name, &all[..])
            && let (Some(default), Some(offset), Some(value)) = (all.pop(), all.pop(), all.pop())
        {
            let undefined = |error: Error| error.with_state(SqlState::UNDEFINED_FUNCTION);
            let (value, default, _) = self.unified_pair(value, default, name).map_err(undefined)?;
            all.extend([value, offset, default]);
        }
        Ok(all)
    }

    /// Computes the calls of a query over a relation.
    pub(super) fn windowed(
        &mut self,
        relation: Relation,
        calls: Vec<BoundWindowCall>,
    ) -> Result<Relation> {
        let mut computed: Vec<(Expr, Name)> = Vec::new();
        let mut fields: Vec<(Name, Expr)> = Vec::new();
        let mut windows: Vec<SharedWindow> = Vec::new();
        for BoundWindowCall { name, partition, order, mut call } in calls {
            let mut keys = Vec::with_capacity(order.len());
            for key in order {
                if matches!(key.expr, Expr::Constant(..)) && call.frame.key.is_none() {
                    continue;
                }
                let field = self.key_field(key.expr, &mut computed, &mut fields)?;
                keys.push(Key { expr: Expr::Field(field), ..key });
            }
            let mut partition_fields: Vec<Name> = Vec::with_capacity(partition.len());
            for expr in partition {
                if matches!(expr, Expr::Constant(..)) {
                    continue;
                }
                let field = self.key_field(expr, &mut computed, &mut fields)?;
                if !partition_fields.contains(&field) {
                    partition_fields.push(field);
                }
            }
            partition_fields.sort();
            for key in &mut call.order_by {
                let field = self.key_field(key.expr.clone(), &mut computed, &mut fields)?;
                key.expr = Expr::Field(field);
            }
            if let Some(key) = call.frame.key.take() {
                // The limits read the key, too, which is computed once.
                let field = self.key_field(key.clone(), &mut computed, &mut fields)?;
                let field = Expr::Field(field);
                call.frame.exprs_mut().for_each(|expr| replace(expr, &key, &field));
                call.frame.key = Some(field);
            }
            for expr in call.exprs_mut() {
                self.simplify(expr)?;
            }
            let same = |known: &&mut SharedWindow| {
                known.partition == partition_fields && known.order == keys
            };
            match windows.iter_mut().find(same) {
                Some(known) => known.calls.push((name, call)),
                None => windows.push(SharedWindow {
                    partition: partition_fields,
                    order: keys,
                    calls: vec![(name, call)],
                }),
            }
        }
        // Windows with fewer keys stand directly above one whose sort they can use.
        windows.sort_by_key(|window| std::cmp::Reverse(window.order.len()));
        let mut relation = with_fields(relation, fields);
        while let Some(first) = windows.first() {
            let (partition, order) = (first.partition.clone(), first.order.clone());
            let (alike, others): (Vec<_>, Vec<_>) = windows.into_iter().partition(|window| {
                window.partition == partition && order.starts_with(&window.order)
            });
            windows = others;
            for SharedWindow { partition, order, calls } in alike {
                let partition = partition.into_iter().map(Expr::Field).collect();
                relation = Relation::Window(Box::new(Window {
                    input: relation,
                    partition,
                    order,
                    calls,
                    limit: None,
                }));
            }
        }
        Ok(relation)
    }

    /// Returns the field of a key; equal keys are computed once.
    fn key_field(
        &mut self,
        expr: Expr,
        computed: &mut Vec<(Expr, Name)>,
        fields: &mut Vec<(Name, Expr)>,
    ) -> Result<Name> {
        if let Expr::Field(name) = &expr {
            return Ok(name.clone());
        }
        if let Some((_, name)) = computed.iter().find(|(known, _)| *known == expr)
            && !self.is_volatile(&expr)
        {
            return Ok(name.clone());
        }
        let atom = self.fields.atom_of(&expr)?;
        let name = self.fields.fresh("key", atom.clone());
        let value = self.finished(TypedExpr::new(expr.clone(), atom))?;
        fields.push((name.clone(), value.expr));
        computed.push((expr, name.clone()));
        Ok(name)
    }
}

/// Replaces all occurrences of an expression.
fn replace(expr: &mut Expr, old: &Expr, new: &Expr) {
    if expr == old {
        *expr = new.clone();
        return;
    }
    expr.children_mut().into_iter().for_each(|child| replace(child, old, new));
}

/// Returns the error for a window function where none is allowed.
fn misplaced(clause: &str) -> Error {
    let (message, state) = match clause {
        "a window function" => {
            ("window function calls cannot be nested".to_string(), SqlState::WINDOWING_ERROR)
        }
        "an aggregate function" => (
            "aggregate function calls cannot contain window function calls".to_string(),
            SqlState::GROUPING_ERROR,
        ),
        clause => {
            (format!("window functions are not allowed in {clause}"), SqlState::WINDOWING_ERROR)
        }
    };
    Error::semantic(message).with_state(state)
}
