//! `SELECT * REPLACE (a + 1 AS a)`: a name that is no column is an error, which DataFusion's planner does not raise.
//!
//! What replaces a column is wrapped in the function that names casts, with a number that nothing else has. A number that is not in
//! the plan belongs to a name that is no column.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr as Logical, LogicalPlan};
use sqlparser::ast::{
    Ident, Query, ReplaceSelectElement, Select, SelectItem, VisitMut, VisitorMut, visit_relations,
};
use tessera_types::{Error, Result, Span};

use crate::check::{Flow, normalised};
use crate::error::from_datafusion;
use crate::named_casts::{NAMED_CAST, named};

/// What the numbers begin with, in place of a type's name.
const PREFIX: &str = "replaced ";

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A name after AS, and the number of what stands before it.
#[derive(Debug)]
pub(crate) struct Replaced {
    name: Ident,
    number: String,
}

/// Marks what replaces columns in a query.
///
/// # Errors
/// None that text of a user could cause.
pub(crate) fn mark(query: &mut Box<Query>) -> Result<Vec<Replaced>> {
    let mut read = HashSet::new();
    let _ = visit_relations(&**query, |name| {
        read.extend(name.0.last().and_then(|part| part.as_ident()).map(normalised));
        ControlFlow::<()>::Continue(())
    });
    let mut marks = Marks { read, unread: Vec::new(), replaced: Vec::new() };
    if let ControlFlow::Break(error) = VisitMut::visit(query, &mut marks) {
        return Err(error);
    }
    let Marks { unread, mut replaced, .. } = marks;
    replaced.retain(|replaced| !unread.iter().any(|text| text.contains(&replaced.number)));
    Ok(replaced)
}

/// Rejects names that have replaced nothing.
///
/// # Errors
/// There is one.
pub(crate) fn check(plan: &LogicalPlan, replaced: &[Replaced]) -> Result<()> {
    if replaced.is_empty() {
        return Ok(());
    }
    let mut found = HashSet::new();
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Logical::ScalarFunction(function) = expr
                    && function.name() == NAMED_CAST
                    && let Some(Logical::Literal(ScalarValue::Utf8(Some(number)), _)) = function.args.get(1)
                {
                    found.insert(number.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(from_datafusion)?;
    let Some(missing) = replaced.iter().find(|replaced| !found.contains(&replaced.number)) else {
        return Ok(());
    };
    let name = &missing.name;
    let error = Error::semantic(format!("there is no column {name} for REPLACE to replace"));
    let place = name.span.start;
    Err(match place.line {
        0 => error,
        line => error.at(Span { line: line as u32, column: place.column as u32 }),
    })
}

struct Marks {
    /// Names that FROM reads.
    read: HashSet<String>,
    /// Common table expressions that nothing reads: their plans go nowhere.
    unread: Vec<String>,
    replaced: Vec<Replaced>,
}

impl VisitorMut for Marks {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> Flow {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let unread = tables.filter(|table| !self.read.contains(&normalised(&table.alias.name)));
        if !self.replaced.is_empty() {
            self.unread.extend(unread.map(|table| table.query.to_string()));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        for item in &mut select.projection {
            let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
                continue;
            };
            for element in options.opt_replace.iter_mut().flat_map(|replace| &mut replace.items) {
                if let Err(error) = self.mark(element) {
                    return ControlFlow::Break(error);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

impl Marks {
    fn mark(&mut self, element: &mut ReplaceSelectElement) -> Result<()> {
        let number = format!("{PREFIX}{}.", NUMBERS.fetch_add(1, Ordering::Relaxed));
        named(&mut element.expr, &number)?;
        // The planner compares it with columns' names as it stands.
        let name = element.column_name.clone();
        element.column_name.value = normalised(&name);
        self.replaced.push(Replaced { name, number });
        Ok(())
    }
}
