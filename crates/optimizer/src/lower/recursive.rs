//! Lowering of recursive queries to loops over a working table.
//!
//! `WITH RECURSIVE t AS (base UNION ALL step)` becomes a `loop` that yields the state of each
//! iteration, so that its consumer can stop it between two iterations. With `UNION`, `remember`
//! keeps the new tuples, and the set of known tuples is part of the state.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Plan, Value};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use super::node::{add, add_nested};
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Name, Recursive};

/// The maximum number of iterations: a bound for recursions that never end.
const RECURSION_RUNS_MAX: i64 = 1_000_000_000;

/// The fields of the loop's state.
struct LoopState {
    data: Name,
    known: Option<Name>,
}

impl Lowering<'_> {
    pub(super) fn recursive(
        &mut self,
        recursive: &Recursive,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let field = |name: &Name| {
            let atom = self.types.atoms.get(name).cloned().unwrap_or(Atom::Null);
            Field::nullable(name.clone(), atom)
        };
        let tuple = Tuple::new(recursive.names.iter().map(field).collect::<Vec<_>>());
        let state = LoopState {
            data: self.name("work"),
            known: recursive.distinct.then(|| self.name("known")),
        };
        let base = self.term(&recursive.base, &tuple, level)?;
        let mut start = self.state_of(level, base, &state, None)?;
        // Parameters of this plan that the step reads are part of the state.
        let mut passed: Vec<Name> = recursive.step.0.parameters().into_iter().collect();
        passed.sort();
        if !passed.is_empty() {
            let mut exprs = Expr::identity(&start.tuple);
            exprs.extend(passed.iter().map(|name| (name.clone(), Expr::Parameter(name.clone()))));
            start = self.map(level, start, exprs)?;
        }
        let mut inner = Level::new(start.tuple.clone());
        inner.recursion = Some((recursive.id.clone(), state.data.clone()));
        let before = add(&mut inner, "parameter_lookup", &[], Params::new(), start.tuple.clone());
        let step = self.term(&recursive.step, &tuple, &mut inner)?;
        let mut next = self.state_of(&mut inner, step, &state, Some(&before))?;
        if !passed.is_empty() {
            let passed = self.project(&mut inner, before, passed)?;
            let both = next.tuple.concat(&passed.tuple);
            next = add(&mut inner, "cartesian_product", &[next.id, passed.id], Params::new(), both);
        }
        let nested = Plan { parameters: inner.parameters, nodes: inner.nodes, root: next.id };
        let data = Expr::Field(state.data);
        let params = Params::new()
            .with("while", Value::Expr(data.clone()))
            .with("limit", RECURSION_RUNS_MAX)
            .with("each", true);
        let looped = add_nested(level, "loop", &[start.id], params, vec![nested], start.tuple);
        let params = Params::new().with("field", Value::Expr(data));
        let lowered = add(level, "rows_scan", &[looped.id], params, tuple);
        self.prune(level, lowered, needed)
    }

    /// Lowers the working table within the step.
    pub(super) fn work(
        &mut self,
        recursion: &Name,
        columns: &[(Name, usize)],
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let data = match &level.recursion {
            Some((id, data)) if id == recursion => data.clone(),
            _ => {
                let name = recursion.split('$').next().unwrap_or(recursion);
                return Err(Error::unsupported(format!(
                    "a correlated subquery or an inner recursive query that reads the recursive query {name} is not \
                     supported"
                )));
            }
        };
        let state = level.parameters.clone();
        let tuple = match state.field(&data).map(|field| &field.item) {
            Some(tessera_types::Item::Collection(collection)) => collection.tuple.clone(),
            _ => return Err(Error::internal("the loop of a recursive query has no state")),
        };
        let state = add(level, "parameter_lookup", &[], Params::new(), state);
        let params = Params::new().with("field", Value::Expr(Expr::Field(data)));
        let lowered = add(level, "rows_scan", &[state.id], params, tuple);
        let column = |(name, position): &(Name, usize)| {
            let from = lowered.tuple.fields().get(*position)?;
            needed.contains(name).then(|| (name.clone(), Expr::Field(from.name.clone())))
        };
        let exprs = columns.iter().filter_map(column).collect();
        self.map(level, lowered, exprs)
    }

    /// Lowers a term and converts its tuples to the type of the recursive query.
    fn term(
        &mut self,
        (relation, names): &(crate::logical::relation::Relation, Vec<Name>),
        tuple: &Tuple,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let lowered = self.lower(relation, &names.iter().cloned().collect(), level)?;
        let exprs = tuple.fields().iter().zip(names);
        let exprs =
            exprs.map(|(field, from)| (field.name.clone(), Expr::Field(from.clone()))).collect();
        let lowered = self.map(level, lowered, exprs)?;
        if lowered.tuple == *tuple {
            return Ok(lowered);
        }
        // The union with an empty relation makes the fields nullable, since those of the other term
        // may be.
        let rows: Vec<Value> = Vec::new();
        let params = Params::new().with("columns", tuple.clone()).with("rows", rows);
        let nothing = add(level, "values", &[], params, tuple.clone());
        Ok(add(level, "union", &[lowered.id, nothing.id], Params::new(), tuple.clone()))
    }

    /// Turns tuples into a state of the loop; with `UNION`, only those that are new.
    fn state_of(
        &mut self,
        level: &mut Level,
        lowered: LoweredNode,
        state: &LoopState,
        before: Option<&LoweredNode>,
    ) -> Result<LoweredNode> {
        let mut fields = vec![Field::collection("data", "rows", lowered.tuple.clone())];
        let mut exprs = vec![(state.data.clone(), Expr::field("data"))];
        let Some(known) = &state.known else {
            let kept =
                add(level, "rows_materialize", &[lowered.id], Params::new(), Tuple::new(fields));
            return self.map(level, kept, exprs);
        };
        fields.push(Field::collection("known", "set", lowered.tuple.clone()));
        exprs.push((known.clone(), Expr::field("known")));
        let kept = match before {
            None => add(level, "remember", &[lowered.id], Params::new(), Tuple::new(fields)),
            Some(before) => {
                let params = Params::new().with("known", Value::Expr(Expr::Field(known.clone())));
                add(level, "remember", &[before.id, lowered.id], params, Tuple::new(fields))
            }
        };
        self.map(level, kept, exprs)
    }
}
