//! Relations to sub-operators.

mod aggregate;
mod correlated;
mod join;
mod node;
mod recursive;
mod scan;
mod sort;
mod union;
mod unnest;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::{Expr, Node, NodeId, Params, Plan, Value};
use tessera_types::{Error, Result, Tuple};

use self::node::{add, fields_of, filter, with_fields};
use self::sort::counted;
use crate::logical::estimate::Estimates;
use crate::logical::raise::Types;
use crate::logical::relation::{Name, Relation};

/// A node that has been made, and what it yields.
#[derive(Debug, Clone)]
struct Made {
    id: NodeId,
    tuple: Tuple,
}

/// A plan in the making: the top one, or a nested one.
#[derive(Debug)]
struct Level {
    parameters: Tuple,
    nodes: Vec<Node>,
    /// For the step of a recursion: its name, and the parameter that holds what the last run gave.
    recursion: Option<(Name, Name)>,
    /// Shared relations so far, by their id.
    shared: HashMap<Name, Made>,
}

impl Level {
    fn new(parameters: Tuple) -> Self {
        Level { parameters, nodes: Vec::new(), recursion: None, shared: HashMap::new() }
    }
}

/// Makes plans of relations.
#[derive(Debug)]
pub(crate) struct Lowering<'a> {
    types: Types<'a>,
    estimates: &'a Estimates,
    /// How many tuples each relation is believed to have.
    rows: HashMap<*const Relation, f64>,
    /// Numbers for names that no query can write.
    fresh: usize,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(types: Types<'a>, estimates: &'a Estimates) -> Self {
        Lowering { types, estimates, rows: HashMap::new(), fresh: 0 }
    }

    /// The plan that yields these fields of a relation, in this order, under these names.
    pub(crate) fn query(
        &mut self,
        relation: &Relation,
        output: &[(Name, Name)],
    ) -> Result<(Plan, Tuple)> {
        self.rows = self.estimates.rows_of_all(relation);
        let mut level = Level::new(Tuple::empty());
        let needed: HashSet<Name> = output.iter().map(|(_, field)| field.clone()).collect();
        let made = self.lower(relation, &needed, &mut level)?;
        let unchanged = output.len() == made.tuple.len()
            && output
                .iter()
                .zip(made.tuple.fields())
                .all(|((name, field), made)| name == field && *field == made.name);
        let made = if unchanged {
            made
        } else if output.iter().all(|(name, field)| name == field) {
            self.project(&mut level, made, output.iter().map(|(name, _)| name.clone()).collect())?
        } else {
            let exprs = output
                .iter()
                .map(|(name, field)| (name.clone(), Expr::Field(field.clone())))
                .collect();
            self.map(&mut level, made, exprs)?
        };
        let Level { parameters, nodes, .. } = level;
        Ok((Plan { parameters, nodes, root: made.id }, made.tuple))
    }

    fn name(&mut self, base: &str) -> Name {
        self.fresh += 1;
        Arc::from(format!("{base}${}", self.fresh))
    }

    /// How many tuples a relation is believed to have.
    fn rows(&self, relation: &Relation) -> f64 {
        let known = self.rows.get(&std::ptr::from_ref(relation)).copied();
        known.unwrap_or_else(|| self.estimates.profile(relation).rows)
    }

    fn lower(
        &mut self,
        relation: &Relation,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let made = self.lowered(relation, needed, level)?;
        // A nested plan runs many times, and what is measured is the sum.
        if level.parameters.is_empty() {
            estimated(level, made.id, self.rows(relation));
        }
        Ok(made)
    }

    fn lowered(
        &mut self,
        relation: &Relation,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
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
                let made = self.lower(input, &with_fields(needed, predicates), level)?;
                Ok(filter(level, made, predicates))
            }
            Relation::Map { input, exprs } => {
                let wanted: Vec<(Name, Expr)> =
                    exprs.iter().filter(|(name, _)| needed.contains(name)).cloned().collect();
                let below = fields_of(wanted.iter().map(|(_, expr)| expr));
                let made = self.lower(input, &below, level)?;
                if wanted
                    .iter()
                    .all(|(name, expr)| matches!(expr, Expr::Field(field) if field == name))
                {
                    return Ok(made);
                }
                self.map(level, made, wanted)
            }
            Relation::Join(join) if join.correlated => self.correlated(join, needed, level),
            Relation::Join(join) => self.join(join, needed, level),
            Relation::Aggregate(aggregate) => self.aggregate(aggregate, needed, level),
            Relation::Sort { input, keys, offset, limit } => {
                self.sort(input, keys, *offset, *limit, needed, level)
            }
            Relation::Limit { input, offset, limit } => {
                let made = self.lower(input, needed, level)?;
                let tuple = made.tuple.clone();
                Ok(add(level, "limit", &[made.id], counted(Params::new(), *offset, *limit)?, tuple))
            }
            Relation::Union { inputs, names } => self.union(inputs, names, needed, level),
            Relation::Recursive(recursive) => self.recursive(recursive, needed, level),
            Relation::Work { recursion, columns } => self.work(recursion, columns, needed, level),
            Relation::Shared { .. } if !level.parameters.is_empty() => {
                // A nested plan would compute it again for each row.
                Err(Error::unsupported(
                    "a common table expression with a volatile function, read in a correlated subquery that does not become \
                     a join, is not supported; join with it, or keep its rows in a table",
                ))
            }
            Relation::Shared { id, input } => {
                if let Some(made) = level.shared.get(id) {
                    return Ok(made.clone());
                }
                let made = self.lower(input, &input.names().into_iter().collect(), level)?;
                level.shared.insert(id.clone(), made.clone());
                Ok(made)
            }
            Relation::Unnest { input, lists, outer } => {
                self.unnest(input, lists, *outer, needed, level)
            }
        }
    }
}

/// Notes what a node is believed to yield, and those below it that pass on as many tuples as they
/// get.
fn estimated(level: &mut Level, id: NodeId, rows: f64) {
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
