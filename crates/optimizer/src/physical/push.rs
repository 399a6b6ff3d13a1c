//! Pushdown of filters into scans.

use tessera_plan::expr::Expr;
use tessera_plan::graph::{Node, Plan};
use tessera_plan::operator_catalog::{Functions, OperatorCatalog};
use tessera_plan::rewrite::{can_raise, is_volatile, map_nodes, readers};
use tessera_plan::rule::{Rule, Rules};
use tessera_plan::typing::Scope;
use tessera_types::{Result, Tuple};

/// Moves conjuncts of a filter into the `filter` of the scan directly below it, which prunes row
/// groups and decodes columns late. A conjunct that can raise an error stays, since the scan may
/// see rows that another conjunct rejects; its *try* form goes into the scan
/// (`docs/architecture.md` §6).
///
/// # Errors
/// A filter has no predicate: the plan is invalid.
pub fn push_filters(plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
    let readers = readers(plan);
    map_nodes(plan, &mut |out, id, mut node| {
        node.nested = node
            .nested
            .iter()
            .map(|inner| push_filters(inner, catalog, rules))
            .collect::<Result<Vec<_>>>()?;
        let old = &plan.nodes[id.index()];
        let (true, Some(&input), Some(old_input)) =
            (&*node.operator == "filter", node.inputs.first(), old.inputs.first())
        else {
            return Ok(out.push(node));
        };
        let below = out.nodes()[input.index()].clone();
        if !catalog.pushes(&below.operator).predicates || readers[old_input.index()] != 1 {
            return Ok(out.push(node));
        }
        let predicate = node.params.expr("predicate")?;
        let (mut scan, rest) =
            split(below, predicate, &plan.parameters, (catalog.functions(), rules))?;
        scan.estimated_rows = node.estimated_rows;
        let scan = out.push(scan);
        if rest.is_empty() {
            return Ok(scan);
        }
        node.inputs = vec![scan];
        node.params.set("predicate", Expr::all(rest));
        Ok(out.push(node))
    })
}

/// Returns the scan with the conjuncts that it accepts, and the rest.
fn split(
    mut scan: Node,
    predicate: &Expr,
    parameters: &Tuple,
    (functions, rules): (&dyn Functions, Rules),
) -> Result<(Node, Vec<Expr>)> {
    let columns = scan.params.tuple("columns")?.clone();
    let scope = Scope { tuple: &columns, parameters, functions };
    let mut pushed = scan.params.expr_opt("filter")?.map(Expr::conjuncts).unwrap_or_default();
    let mut rest = Vec::new();
    for conjunct in predicate.conjuncts() {
        let mut has_parameter = false;
        conjunct.walk(&mut |expr| has_parameter |= matches!(expr, Expr::Parameter(_)));
        if has_parameter || is_volatile(&conjunct, functions) {
            rest.push(conjunct);
        } else if can_raise(&conjunct, scope) {
            let tried = Expr::Try(Box::new(conjunct.clone()));
            if rules.has(Rule::TryInScans) && !pushed.contains(&tried) {
                pushed.push(tried);
            }
            rest.push(conjunct);
        } else if !rules.has(Rule::PushIntoScans) {
            rest.push(conjunct);
        } else if !pushed.contains(&conjunct) {
            pushed.push(conjunct);
        }
    }
    if !pushed.is_empty() {
        scan.params.set("filter", Expr::all(pushed));
    }
    Ok((scan, rest))
}
