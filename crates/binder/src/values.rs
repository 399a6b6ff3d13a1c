//! VALUES.

use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, Spanned, Values};
use sqlparser::tokenizer::Span;
use tessera_optimizer::logical::relation::{Name, Relation, parameters};
use tessera_parser::{Literals, list_text};
use tessera_plan::Expr;
use tessera_types::{Code, Error, Field, Result, Tuple};

use super::cte::Env;
use super::from::one_row;
use super::scope::{OutputColumn, Scope};
use super::steps::apply;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, Place, with_span};

/// Parses the text of a long list of literals into rows.
fn parsed_rows(text: &str, span: Span) -> Vec<Vec<Ast>> {
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    for (literal, ends) in Literals::new(text) {
        row.push(literal.parsed(span));
        if ends {
            rows.push(std::mem::take(&mut row));
        }
    }
    rows
}

impl Binder<'_> {
    /// Binds VALUES; each column has the common type of its values.
    pub(super) fn values(
        &mut self,
        values: &Values,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        let Values { explicit_row: _, value_keyword: _, rows } = values;
        let written = match &rows[..] {
            [row] => match &row.content[..] {
                [only] => list_text(only),
                _ => None,
            },
            _ => None,
        };
        if let Some((text, _)) = written
            && let Some(bound) = self.literal_rows(text)?
        {
            return Ok(bound);
        }
        let again = written.map(|(text, span)| parsed_rows(text, span)).unwrap_or_default();
        let rows: Vec<&[Ast]> = match written {
            Some(_) => again.iter().map(|row| &row[..]).collect(),
            None => rows.iter().map(|row| &row.content[..]).collect(),
        };
        let width = rows.first().map_or(0, |row| row.len());
        let scope = Scope::empty(outer, env.clone());
        let mut columns: Vec<Vec<TypedExpr>> =
            (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
        let mut steps = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            if at % 1024 == 0 {
                tessera_context::interrupt::point();
            }
            if row.len() != width {
                let message = format!(
                    "the rows of VALUES must have the same length; the first has {width} values, another has {}",
                    row.len()
                );
                let error = Error::new(Code::Syntax, message);
                return Err(row
                    .first()
                    .map_or(error.clone(), |value| with_span(error, value.span())));
            }
            let mut before = Vec::new();
            for (value, column) in row.iter().zip(&mut columns) {
                let place = &mut Place {
                    scope: &scope,
                    steps: &mut before,
                    clause: "VALUES",
                    unnests: None,
                };
                column.push(self.expr(value, place)?);
            }
            steps.push(before);
        }
        let mut outputs = Vec::with_capacity(width);
        let mut column_values: Vec<std::vec::IntoIter<TypedExpr>> = Vec::with_capacity(width);
        for (at, values) in columns.into_iter().enumerate() {
            let (values, atom) = self.unified(values, "VALUES")?;
            let values =
                values.into_iter().map(|value| self.finished(value)).collect::<Result<Vec<_>>>()?;
            let name: Arc<str> = format!("column{}", at + 1).into();
            let field = self.fields.fresh(&name, atom.clone());
            outputs.push(OutputColumn { name, field, atom, literal: None });
            column_values.push(values.into_iter());
        }
        let rows: Vec<Vec<Expr>> = (0..rows.len())
            .map(|_| {
                column_values
                    .iter_mut()
                    .filter_map(|values| values.next())
                    .map(|value| value.expr)
                    .collect()
            })
            .collect();
        // A value that may raise an error is computed where it is read.
        let types = self.fields.types();
        let reads_nothing =
            |value: &Expr| value.fields().is_empty() && parameters(value).is_empty();
        let written = |value: &Expr| {
            matches!(value, Expr::Constant(..)) || reads_nothing(value) && !types.must_stay(value)
        };
        let relation = match rows.iter().flatten().all(written) && steps.iter().all(Vec::is_empty) {
            true => {
                let field = |output: &OutputColumn| {
                    Field::nullable(output.field.clone(), output.atom.clone())
                };
                Relation::Values {
                    tuple: Tuple::new(outputs.iter().map(field).collect::<Vec<_>>()),
                    rows,
                }
            }
            false => self.computed_rows(rows, steps, &outputs),
        };
        Ok(BoundQuery { relation, columns: outputs })
    }

    /// Builds rows that read fields or may raise errors, each computed from one tuple.
    fn computed_rows(
        &mut self,
        rows: Vec<Vec<Expr>>,
        steps: Vec<Vec<super::Step>>,
        outputs: &[OutputColumn],
    ) -> Relation {
        let mut inputs = Vec::with_capacity(rows.len());
        for (row, steps) in rows.into_iter().zip(steps) {
            let exprs: Vec<(Name, Expr)> = row
                .into_iter()
                .zip(outputs)
                .map(|(value, output)| {
                    (self.fields.fresh(&output.field, output.atom.clone()), value)
                })
                .collect();
            let given = exprs.iter().map(|(name, _)| name.clone()).collect();
            let input = Box::new(apply(one_row(), steps));
            inputs.push((Relation::Map { input, exprs }, given));
        }
        Relation::Union {
            inputs,
            names: outputs.iter().map(|output| output.field.clone()).collect(),
        }
    }
}
