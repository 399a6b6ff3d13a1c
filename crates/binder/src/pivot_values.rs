//! The values that PIVOT without a list in IN finds: a query is planned and run for them.

use std::sync::Arc;

use sqlparser::ast::Query;
use tessera_optimizer::logical::relation::{Aggregate, Key, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result};

use super::from::FromContext;
use super::pivot::{PIVOT_COLUMNS_MAX, check_count};
use super::projection::least;
use super::typed::TypedExpr;
use super::{Binder, with_span};

impl Binder<'_> {
    /// Binds IN (query) and the text of its only column.
    pub(super) fn value_query(
        &mut self,
        query: &Query,
        context: FromContext<'_, '_>,
    ) -> Result<(Relation, Expr)> {
        let bound = self.query(query, None, context.env)?;
        let [column] = bound.columns.as_slice() else {
            let message = format!(
                "the query in IN of PIVOT has {} columns; it must have one",
                bound.columns.len()
            );
            return Err(with_span(Error::semantic(message), query));
        };
        let value = self.field(&column.field)?;
        let text = self.finished(self.cast_to(value, &Atom::String, false)?)?;
        Ok((bound.relation, text.expr))
    }

    /// Runs a query for the distinct texts of a relation, in their order.
    pub(super) fn distinct_texts(
        &mut self,
        relation: Relation,
        text: Expr,
    ) -> Result<Vec<Arc<str>>> {
        if !relation.parameters().is_empty() || reads_working_table(&relation) {
            let message = "PIVOT without IN is not supported where it reads an enclosing query; \
                           name the values in IN";
            return Err(Error::unsupported(message));
        }
        let field = self.fields.fresh("pivot value", Atom::String);
        let is_null = Expr::IsNull(Box::new(text.clone()));
        let value = TypedExpr::new(text.clone(), Atom::String);
        let collation = self.text_collation(&value)?;
        // Of equal texts, the first by its bytes names the column.
        let (keys, calls) = match collation.as_ref().filter(|collation| collation.joins_texts()) {
            Some(collation) => {
                let key = self.finished(self.equal_key(value, collation)?)?;
                let name = self.fields.fresh("key", Atom::String);
                (vec![(name, key.expr)], vec![(field.clone(), least(text))])
            }
            None => (vec![(field.clone(), text)], Vec::new()),
        };
        let input = relation.filtered(vec![Expr::Not(Box::new(is_null))]);
        let aggregate = Aggregate { input, keys, sets: None, grouping: None, calls };
        let ascending = |expr| Key { expr, descending: false, nulls_first: false };
        let mut keys = vec![ascending(Expr::Field(field.clone()))];
        if let Some(collation) = &collation {
            let text = TypedExpr::new(Expr::Field(field.clone()), Atom::String);
            keys.insert(0, ascending(self.finished(self.order_key(text, collation)?)?.expr));
        }
        let sorted = Relation::Sort {
            input: Box::new(Relation::Aggregate(Box::new(aggregate))),
            keys,
            offset: 0,
            limit: Some(PIVOT_COLUMNS_MAX as u64 + 1),
        };
        let output = [(field.clone(), field)];
        let (plan, _) = tessera_optimizer::plan(sorted, &output, self.fields.clone(), true)?;
        let texts: Vec<Arc<str>> = self.catalog.texts(&plan)?.into_iter().flatten().collect();
        check_count(texts.len())?;
        Ok(texts)
    }
}

/// Whether a relation reads the tuples of the previous iteration of a recursive query around it.
fn reads_working_table(relation: &Relation) -> bool {
    matches!(relation, Relation::WorkingTable { .. })
        || relation.inputs().into_iter().any(reads_working_table)
}
