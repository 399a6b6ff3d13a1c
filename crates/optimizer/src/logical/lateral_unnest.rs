//! Rewrites `FROM t, unnest(t.l)` as an unnest of the outer relation, without a nested plan.

use std::collections::HashSet;

use tessera_plan::Expr;

use crate::logical::relation::{Join, Kind, Name, Relation, parameters_to_fields};

/// A map or filter above the lists of a lateral side, the lowest last.
enum LateralStep {
    Map(Vec<(Name, Expr)>),
    Filter(Vec<Expr>),
}

/// A lateral side that unnests lists of the outer row.
struct LateralLists {
    /// The lists as expressions over the outer row.
    lists: Vec<(Name, Expr)>,
    /// The list fields with the fields of their elements.
    elements: Vec<(Name, Name)>,
    steps: Vec<LateralStep>,
}

/// Rewrites the join as an unnest of its left side.
///
/// # Errors
/// Returns the join itself if it has another form.
pub(crate) fn unnested(join: Join) -> Result<Relation, Box<Join>> {
    let plain = join.mark.is_none() && !join.null_aware;
    let outer = match join.kind {
        Kind::Inner if plain => false,
        Kind::Left if plain && join.conditions.is_empty() => true,
        _ => return Err(Box::new(join)),
    };
    let Some(lateral) = lateral(&join.right, outer) else { return Err(Box::new(join)) };
    let kept: Vec<(Name, Expr)> =
        join.left.names().into_iter().map(|name| (name.clone(), Expr::Field(name))).collect();
    let names: HashSet<Name> = kept.iter().map(|(name, _)| name.clone()).collect();
    let beside = |exprs: Vec<(Name, Expr)>| {
        let mut all = kept.clone();
        all.extend(exprs.into_iter().map(|(name, mut expr)| {
            parameters_to_fields(&mut expr, &names);
            (name, expr)
        }));
        all
    };
    let input = Relation::Map { input: Box::new(join.left), exprs: beside(lateral.lists) };
    let mut relation = Relation::Unnest { input: Box::new(input), lists: lateral.elements, outer };
    for step in lateral.steps.into_iter().rev() {
        relation = match step {
            LateralStep::Map(exprs) => {
                Relation::Map { input: Box::new(relation), exprs: beside(exprs) }
            }
            LateralStep::Filter(mut predicates) => {
                predicates.iter_mut().for_each(|predicate| parameters_to_fields(predicate, &names));
                relation.filtered(predicates)
            }
        };
    }
    Ok(relation.filtered(join.conditions))
}

/// Matches a lateral side that unnests lists of one row; with `outer`, only without computations on
/// elements, which may be missing.
fn lateral(relation: &Relation, outer: bool) -> Option<LateralLists> {
    match relation {
        Relation::Map { input, exprs } => {
            let renames = exprs.iter().all(|(_, expr)| matches!(expr, Expr::Field(_)));
            if outer && !renames {
                return None;
            }
            let mut lateral = lateral(input, outer)?;
            lateral.steps.insert(0, LateralStep::Map(exprs.clone()));
            Some(lateral)
        }
        Relation::Filter { input, predicates } if !outer => {
            let mut lateral = lateral(input, outer)?;
            lateral.steps.insert(0, LateralStep::Filter(predicates.clone()));
            Some(lateral)
        }
        Relation::Unnest { input, lists, outer: false } => {
            let Relation::Map { input, exprs } = &**input else { return None };
            let one_row = matches!(&**input, Relation::Values { tuple, rows } if tuple.is_empty() && rows.len() == 1);
            let only_lists =
                exprs.iter().all(|(name, _)| lists.iter().any(|(list, _)| list == name));
            (one_row && only_lists).then(|| LateralLists {
                lists: exprs.clone(),
                elements: lists.clone(),
                steps: Vec::new(),
            })
        }
        _ => None,
    }
}
