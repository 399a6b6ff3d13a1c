//! Nodes that many relations end in: maps, projections, filters.

use std::collections::HashSet;

use tessera_plan::{Expr, Node, NodeId, Params, Plan, Scope, Value, type_of};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use super::{Level, Lowering, Made};
use crate::logical::relation::Name;

impl Lowering<'_> {
    /// A projection to what is needed, where there is more.
    pub(super) fn prune(
        &mut self,
        level: &mut Level,
        made: Made,
        needed: &HashSet<Name>,
    ) -> Result<Made> {
        if made.tuple.fields().iter().all(|field| needed.contains(&field.name)) {
            return Ok(made);
        }
        let names = made.tuple.fields().iter().map(|field| field.name.clone());
        let names = names.filter(|name| needed.contains(name)).collect();
        self.project(level, made, names)
    }

    pub(super) fn project(
        &mut self,
        level: &mut Level,
        made: Made,
        names: Vec<Name>,
    ) -> Result<Made> {
        let fields = names
            .iter()
            .map(|name| field(&made.tuple, name).cloned())
            .collect::<Result<Vec<_>>>()?;
        let params = Params::new().with("fields", Value::names(&names));
        Ok(add(level, "projection", &[made.id], params, Tuple::new(fields)))
    }

    pub(super) fn map(
        &mut self,
        level: &mut Level,
        made: Made,
        exprs: Vec<(Name, Expr)>,
    ) -> Result<Made> {
        let mut fields = Vec::with_capacity(exprs.len());
        for (name, expr) in &exprs {
            fields.push(match expr {
                Expr::Field(from) => field(&made.tuple, from)?.renamed(name.clone()),
                expr => {
                    let (atom, nullable) = self.type_of(expr, &made.tuple, level)?;
                    Field::new(name.clone(), atom).with_nullable(nullable)
                }
            });
        }
        let params = Params::new().with("exprs", Value::exprs(exprs));
        Ok(add(level, "map", &[made.id], params, Tuple::new(fields)))
    }

    pub(super) fn type_of(
        &self,
        expr: &Expr,
        tuple: &Tuple,
        level: &Level,
    ) -> Result<(Atom, bool)> {
        type_of(
            expr,
            Scope { tuple, parameters: &level.parameters, functions: &**self.types.library },
        )
    }

    /// The tuples of `made` with one more field for each expression that is no field yet; the
    /// fields' names.
    pub(super) fn with_computed(
        &mut self,
        level: &mut Level,
        made: Made,
        exprs: &[Expr],
        base: &str,
    ) -> Result<(Made, Vec<Name>)> {
        let mut names = Vec::with_capacity(exprs.len());
        let mut computed: Vec<(Name, Expr)> = Vec::new();
        for expr in exprs {
            names.push(match expr {
                Expr::Field(name) => name.clone(),
                expr => match computed.iter().find(|(_, known)| known == expr) {
                    Some((name, _)) => name.clone(),
                    None => {
                        let name = self.name(base);
                        computed.push((name.clone(), expr.clone()));
                        name
                    }
                },
            });
        }
        if computed.is_empty() {
            return Ok((made, names));
        }
        let mut all = Expr::identity(&made.tuple);
        all.extend(computed);
        Ok((self.map(level, made, all)?, names))
    }
}

pub(super) fn filter(level: &mut Level, made: Made, predicates: &[Expr]) -> Made {
    let params = Params::new().with("predicate", Expr::all(predicates.to_vec()));
    let tuple = made.tuple.clone();
    add(level, "filter", &[made.id], params, tuple)
}

pub(super) fn add(
    level: &mut Level,
    operator: &str,
    inputs: &[NodeId],
    params: Params,
    tuple: Tuple,
) -> Made {
    add_nested(level, operator, inputs, params, Vec::new(), tuple)
}

pub(super) fn add_nested(
    level: &mut Level,
    operator: &str,
    inputs: &[NodeId],
    params: Params,
    nested: Vec<Plan>,
    tuple: Tuple,
) -> Made {
    level.nodes.push(Node::new(operator, inputs.to_vec(), params, nested));
    Made { id: NodeId(level.nodes.len() as u32 - 1), tuple }
}

pub(super) fn field<'t>(tuple: &'t Tuple, name: &str) -> Result<&'t Field> {
    tuple
        .field(name)
        .ok_or_else(|| Error::internal(format!("field {name} was lost on the way to {tuple}")))
}

pub(super) fn fields_of<'e>(exprs: impl Iterator<Item = &'e Expr>) -> HashSet<Name> {
    exprs.flat_map(Expr::fields).collect()
}

pub(super) fn with_fields(needed: &HashSet<Name>, exprs: &[Expr]) -> HashSet<Name> {
    let mut all = needed.clone();
    all.extend(fields_of(exprs.iter()));
    all
}
