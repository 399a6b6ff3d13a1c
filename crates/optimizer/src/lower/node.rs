//! Nodes that several relations use: maps, projections, filters.

use std::collections::HashSet;

use tessera_plan::{Expr, Node, NodeId, Params, Plan, Scope, Value, type_of};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::Name;

impl Lowering<'_> {
    /// Adds a projection to the needed fields if there are others.
    pub(super) fn prune(
        &mut self,
        level: &mut Level,
        lowered: LoweredNode,
        needed: &HashSet<Name>,
    ) -> Result<LoweredNode> {
        if lowered.tuple.fields().iter().all(|field| needed.contains(&field.name)) {
            return Ok(lowered);
        }
        let names = lowered.tuple.fields().iter().map(|field| field.name.clone());
        let names = names.filter(|name| needed.contains(name)).collect();
        self.project(level, lowered, names)
    }

    pub(super) fn project(
        &mut self,
        level: &mut Level,
        lowered: LoweredNode,
        names: Vec<Name>,
    ) -> Result<LoweredNode> {
        let fields = names
            .iter()
            .map(|name| field(&lowered.tuple, name).cloned())
            .collect::<Result<Vec<_>>>()?;
        let params = Params::new().with("fields", Value::names(&names));
        Ok(add(level, "projection", &[lowered.id], params, Tuple::new(fields)))
    }

    pub(super) fn map(
        &mut self,
        level: &mut Level,
        lowered: LoweredNode,
        exprs: Vec<(Name, Expr)>,
    ) -> Result<LoweredNode> {
        let mut fields = Vec::with_capacity(exprs.len());
        for (name, expr) in &exprs {
            fields.push(match expr {
                Expr::Field(from) => field(&lowered.tuple, from)?.renamed(name.clone()),
                expr => {
                    let (atom, nullable) = self.type_of(expr, &lowered.tuple, level)?;
                    Field::new(name.clone(), atom).with_nullable(nullable)
                }
            });
        }
        let params = Params::new().with("exprs", Value::exprs(exprs));
        Ok(add(level, "map", &[lowered.id], params, Tuple::new(fields)))
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

    /// Adds a field for each expression that is not a field yet; returns the names of all.
    pub(super) fn with_computed(
        &mut self,
        level: &mut Level,
        lowered: LoweredNode,
        exprs: &[Expr],
        base: &str,
    ) -> Result<(LoweredNode, Vec<Name>)> {
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
            return Ok((lowered, names));
        }
        let mut all = Expr::identity(&lowered.tuple);
        all.extend(computed);
        Ok((self.map(level, lowered, all)?, names))
    }
}

pub(super) fn filter(level: &mut Level, lowered: LoweredNode, predicates: &[Expr]) -> LoweredNode {
    let params = Params::new().with("predicate", Expr::all(predicates.to_vec()));
    let tuple = lowered.tuple.clone();
    add(level, "filter", &[lowered.id], params, tuple)
}

pub(super) fn add(
    level: &mut Level,
    operator: &str,
    inputs: &[NodeId],
    params: Params,
    tuple: Tuple,
) -> LoweredNode {
    add_nested(level, operator, inputs, params, Vec::new(), tuple)
}

pub(super) fn add_nested(
    level: &mut Level,
    operator: &str,
    inputs: &[NodeId],
    params: Params,
    nested: Vec<Plan>,
    tuple: Tuple,
) -> LoweredNode {
    level.nodes.push(Node::new(operator, inputs.to_vec(), params, nested));
    LoweredNode { id: NodeId(level.nodes.len() as u32 - 1), tuple }
}

pub(super) fn field<'t>(tuple: &'t Tuple, name: &str) -> Result<&'t Field> {
    tuple.field(name).ok_or_else(|| Error::internal(format!("field {name} is missing in {tuple}")))
}

pub(super) fn fields_of<'e>(exprs: impl Iterator<Item = &'e Expr>) -> HashSet<Name> {
    exprs.flat_map(Expr::fields).collect()
}

pub(super) fn with_fields(needed: &HashSet<Name>, exprs: &[Expr]) -> HashSet<Name> {
    let mut all = needed.clone();
    all.extend(fields_of(exprs.iter()));
    all
}
