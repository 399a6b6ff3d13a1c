//! VALUES with many rows of literals: one constant array per column, unnested, instead of one
//! expression per value.

use std::sync::Arc;

use tessera_optimizer::logical::relation::Relation;
use tessera_parser::{Literal, Literals};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Result};

use super::from::one_row;
use super::literal::number;
use super::scope::OutputColumn;
use super::table_function::list_of;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery};

/// The kinds of literals that a column holds.
#[derive(Default)]
struct ColumnLiterals {
    /// Whether the column holds strings.
    texts: bool,
    /// One number of each type.
    numbers: Vec<TypedExpr>,
}

impl Binder<'_> {
    /// Binds the text of a long list of literals. Returns `None` if rows differ in length, or if a
    /// column mixes strings and numbers, holds only NULLs, or holds a value that is not constant.
    /// The caller then binds each value, which finds types and errors.
    pub(super) fn literal_rows(&mut self, text: &str) -> Result<Option<BoundQuery>> {
        let Some(column_literals) = column_literals(text) else { return Ok(None) };
        let mut atoms = Vec::with_capacity(column_literals.len());
        for column in &column_literals {
            atoms.push(match (column.texts, column.numbers.is_empty()) {
                (true, true) => Atom::String,
                (false, false) => {
                    self.common(&column.numbers.iter().collect::<Vec<_>>(), "VALUES")?
                }
                _ => return Ok(None),
            });
        }
        let mut columns: Vec<Vec<Scalar>> = atoms.iter().map(|_| Vec::new()).collect();
        let width = atoms.len();
        for (at, (literal, _)) in Literals::new(text).enumerate() {
            let value = match literal {
                Literal::Null => Scalar::Null,
                Literal::Text(text) => Scalar::String(Literal::unquoted(text).into()),
                Literal::Number(digits, negative) => {
                    match self.number_as(digits, negative, &atoms[at % width])? {
                        Some(value) => value,
                        None => return Ok(None),
                    }
                }
            };
            columns[at % width].push(value);
        }
        let (mut exprs, mut lists, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (values, atom)) in columns.into_iter().zip(atoms).enumerate() {
            let name: Arc<str> = format!("column{}", at + 1).into();
            let list_atom = list_of(atom.clone());
            let list = self.fields.fresh("values", list_atom.clone());
            let field = self.fields.fresh(&name, atom.clone());
            exprs.push((list.clone(), Expr::Constant(Scalar::Nested(values.into()), list_atom)));
            lists.push((list, field.clone()));
            outputs.push(OutputColumn { name, field, atom, literal: None });
        }
        let input = Box::new(Relation::Map { input: Box::new(one_row()), exprs });
        let relation = Relation::Unnest { input, lists, outer: false };
        Ok(Some(BoundQuery { relation, columns: outputs }))
    }

    fn number_as(&self, digits: &str, negative: bool, atom: &Atom) -> Result<Option<Scalar>> {
        let value = number(digits, negative)?;
        let value = match value.atom == *atom || value.atom.is_integer() && atom.is_integer() {
            true => value,
            false => self.finished(self.retyped(value, atom)?)?,
        };
        match value.expr {
            Expr::Constant(value, _) => Ok(Some(value)),
            _ => Ok(None),
        }
    }
}

/// Scans the literals of each column. Returns `None` if rows differ in length or a number is
/// invalid.
fn column_literals(text: &str) -> Option<Vec<ColumnLiterals>> {
    let mut columns: Vec<ColumnLiterals> = Vec::new();
    let (mut at, mut is_first) = (0, true);
    for (literal, ends) in Literals::new(text) {
        if is_first {
            columns.push(ColumnLiterals::default());
        }
        let column = columns.get_mut(at)?;
        match literal {
            Literal::Null => {}
            Literal::Text(_) => column.texts = true,
            Literal::Number(digits, negative) => {
                let value = number(digits, negative).ok()?;
                if !column.numbers.iter().any(|known| known.atom == value.atom) {
                    column.numbers.push(value);
                }
            }
        }
        at += 1;
        if ends {
            if at != columns.len() {
                return None;
            }
            (at, is_first) = (0, false);
        }
    }
    Some(columns)
}
