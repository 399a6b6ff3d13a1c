//! Lowering: turns relations into plans of sub-operators.

mod aggregate;
mod as_of;
mod correlated;
mod grouping_sets;
mod inequality;
mod join;
mod node;
mod recursive;
mod sample;
mod scan;
mod sort;
mod union;
mod unnest;
mod window;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::{Expr, Node, NodeId, Params, Plan, Value};
use tessera_types::{Error, Result, Tuple};

use self::node::{add, fields_of, filter, with_fields};
use self::sort::with_limit;
use crate::logical::estimate::Estimates;
use crate::logical::order::counts::Counts;
use crate::logical::relation::{Name, Relation};
use crate::logical::types::Types;

/// A node of the new plan, and its output type.
#[derive(Debug, Clone)]
struct LoweredNode {
    id: NodeId,
    tuple: Tuple,
}

/// A plan under construction: the top-level plan or a nested one.
#[derive(Debug)]
struct Level {
    parameters: Tuple,
    nodes: Vec<Node>,
    /// In the step of a recursive query: its id, and the parameter that holds the working table.
    recursion: Option<(Name, Name)>,
    /// The shared relations that are lowered already, by id.
    shared: HashMap<Name, LoweredNode>,
}

impl Level {
    fn new(parameters: Tuple) -> Self {
        Level { parameters, nodes: Vec::new(), recursion: None, shared: HashMap::new() }
    }
}

/// The state of lowering one query.
#[derive(Debug)]
pub(crate) struct Lowering<'a> {
    types: Types<'a>,
    estimates: &'a Estimates,
    /// The estimated number of tuples of each relation.
    rows: HashMap<*const Relation, f64>,
    /// The fields that count tuples.
    counts: Counts,
    /// The number of the next generated name; no query can contain such names.
    fresh: usize,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(types: Types<'a>, estimates: &'a Estimates) -> Self {
        Lowering { types, estimates, rows: HashMap::new(), counts: Counts::default(), fresh: 0 }
    }

    /// Returns the plan that yields these fields of a relation, in this order and under these
    /// names.
    pub(crate) fn query(
        &mut self,
        relation: &Relation,
        output: &[(Name, Name)],
    ) -> Result<(Plan, Tuple)> {
        self.rows = self.estimates.rows_of_all(relation);
        self.counts = Counts::of(relation);
        let mut level = Level::new(Tuple::empty());
        let needed: HashSet<Name> = output.iter().map(|(_, field)| field.clone()).collect();
        let lowered = self.lower(relation, &needed, &mut level)?;
        let unchanged = output.len() == lowered.tuple.len()
            && output
                .iter()
                .zip(lowered.tuple.fields())
                .all(|((name, field), lowered)| name == field && *field == lowered.name);
        let lowered = if unchanged {
            lowered
        } else if output.iter().all(|(name, field)| name == field) {
            self.project(
                &mut level,
                lowered,
                output.iter().map(|(name, _)| name.clone()).collect(),
            )?
        } else {
            let exprs = output
                .iter()
                .map(|(name, field)| (name.clone(), Expr::Field(field.clone())))
                .collect();
            self.map(&mut level, lowered, exprs)?
        };
        let Level { parameters, nodes, .. } = level;
        Ok((Plan { parameters, nodes, root: lowered.id }, lowered.tuple))
    }

    fn name(&mut self, base: &str) -> Name {
        self.fresh += 1;
        Arc::from(format!("{base}${}", self.fresh))
    }

    /// Returns the estimated number of tuples of a relation.
    fn rows(&self, relation: &Relation) -> f64 {
        let known = self.rows.get(&std::ptr::from_ref(relation)).copied();
        known.unwrap_or_else(|| self.estimates.profile(relation).rows)
    }

    fn lower(
        &mut self,
        relation: &Relation,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let lowered = self.lower_relation(relation, needed, level)?;
        // A nested plan runs many times, and EXPLAIN ANALYZE shows the sum.
        if level.parameters.is_empty() {
            set_estimate(level, lowered.id, self.rows(relation));
        }
        Ok(lowered)
    }

    fn lower_relation(
        &mut self,
        relation: &Relation,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        match relation {
            Relation::Scan { table, columns, predicates } => {
                self.scan(table, columns, predicates, needed, level)
            }
            Relation::Values { tuple, rows } => {
                let rows = rows
                    .iter()
                    .map(|row| Value::List(row.iter().cloned().map(Value::Expr).collect()))
                    .collect::<Vec<_>>();
                let params = Params::new().with("columns", tuple.clone()).with("rows", rows);
                Ok(add(level, "values", &[], params, tuple.clone()))
            }
            Relation::Filter { input, predicates } => {
                let lowered = self.lower(input, &with_fields(needed, predicates), level)?;
                Ok(filter(level, lowered, predicates))
            }
            Relation::Map { input, exprs } => {
                let wanted: Vec<(Name, Expr)> =
                    exprs.iter().filter(|(name, _)| needed.contains(name)).cloned().collect();
                let below = fields_of(wanted.iter().map(|(_, expr)| expr));
                let lowered = self.lower(input, &below, level)?;
                if wanted
                    .iter()
                    .all(|(name, expr)| matches!(expr, Expr::Field(field) if field == name))
                {
                    return Ok(lowered);
                }
                self.map(level, lowered, wanted)
            }
            Relation::Join(join) if join.correlated => self.correlated(join, needed, level),
            Relation::Join(join) => self.join(join, needed, level),
            Relation::AsOf(join) => self.as_of(join, needed, level),
            Relation::Positional { left, right } => self.positional(left, right, needed, level),
            Relation::Aggregate(aggregate) => self.aggregate(aggregate, needed, level),
            Relation::Window(window) => self.window(window, needed, level),
            Relation::Sort { input, keys, offset, limit } => {
                self.sort(input, keys, *offset, *limit, needed, level)
            }
            Relation::Limit { input, offset, limit } => {
                let lowered = self.lower(input, needed, level)?;
                let tuple = lowered.tuple.clone();
                Ok(add(
                    level,
                    "limit",
                    &[lowered.id],
                    with_limit(Params::new(), *offset, *limit)?,
                    tuple,
                ))
            }
            Relation::Sample { input, percent, block, seed, into } => {
                let into = into.as_ref().filter(|into| needed.contains(*into));
                self.sample(input, (*percent, *block, seed, into), needed, level)
            }
            Relation::Union { inputs, names } => self.union(inputs, names, needed, level),
            Relation::Recursive(recursive) => self.recursive(recursive, needed, level),
            Relation::WorkingTable { recursion, columns } => {
                self.work(recursion, columns, needed, level)
            }
            Relation::Shared { .. } if !level.parameters.is_empty() => {
                // A nested plan would compute it again for each row.
                Err(Error::unsupported(
                    "a correlated subquery that reads a common table expression with a volatile function is not supported; \
                     join with it, or store its rows in a table",
                ))
            }
            Relation::Shared { id, input } => {
                if let Some(lowered) = level.shared.get(id) {
                    return Ok(lowered.clone());
                }
                let lowered = self.lower(input, &input.names().into_iter().collect(), level)?;
                level.shared.insert(id.clone(), lowered.clone());
                Ok(lowered)
            }
            Relation::Unnest { input, lists, outer } => {
                self.unnest(input, lists, *outer, needed, level)
            }
        }
    }
}

/// Sets the estimate of a node, and of the maps and projections below it, which yield the same
/// number of tuples.
fn set_estimate(level: &mut Level, id: NodeId, rows: f64) {
    let mut at = Some(id);
    while let Some(node) = at.and_then(|id| level.nodes.get_mut(id.index())) {
        if node.estimated_rows.is_some() {
            return;
        }
        node.estimated_rows = Some(rows.round() as u64);
        at = match (&*node.operator, node.inputs.as_slice()) {
            ("projection" | "map", [input]) => Some(*input),
            _ => None,
        };
    }
}
