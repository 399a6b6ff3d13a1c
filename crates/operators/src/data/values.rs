//! `values`: constant tuples.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute;

use tessera_context::Run;
use tessera_functions::BoundExpr;
use tessera_operator::describe::{edge, passes};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{Lowering, Operator, Source, SourceRun, SubOperator};
use tessera_plan::{
    Descriptor, Edge, Expr, Inputs, Node, Order, Role, Scalar, Scope, Value, type_of,
};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Result, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

/// Yields the tuples in `rows`, of the type `columns`.
///
/// `columns = <a: int64>, rows = [[1], [2]]` gives `1, 2`. The expressions are constants: they can
/// read parameters of the plan, but no field. Holds the tuples, never blocks, keeps the order.
/// Errors: those of the expressions.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%result = values() {columns = <x: int64?, s: string>, rows = [[1, 'a'], [NULL::int64, 'b'],
///        [3, 'c']]}",
/// );
/// assert_eq!(rows, ["1 a", "NULL b", "3 c"]);
/// ```
#[derive(Debug)]
pub struct Values;

impl Descriptor for Values {
    tessera_operator::describe!(
        "values",
        "Yields the tuples written in the plan.",
        ["columns", "rows"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let columns = node.params.tuple("columns")?;
        columns.check()?;
        let empty = Tuple::empty();
        for (position, row) in rows(node, columns)?.iter().enumerate() {
            for (field, expr) in columns.fields().iter().zip(row) {
                let scope = Scope {
                    tuple: &empty,
                    parameters: inputs.parameters,
                    functions: inputs.functions,
                };
                let here = || format!("row {position}, field {}", quote_name(&field.name));
                let (atom, nullable) =
                    type_of(expr, scope).map_err(|error| error.context(here()))?;
                if field.atom() != Some(&atom) {
                    return Err(Error::semantic(format!(
                        "{}: {atom}, but {} is declared",
                        here(),
                        field.item
                    )));
                }
                if nullable && !field.nullable {
                    return Err(Error::semantic(format!(
                        "{}: may be NULL, which {field} must not; declare it as {}?",
                        here(),
                        field.item
                    )));
                }
            }
        }
        Ok(passes(edge, columns.clone(), Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

/// Returns the expressions of each row, one per column.
fn rows(node: &Node, columns: &Tuple) -> Result<Vec<Vec<Expr>>> {
    let wrong = || Error::semantic("parameter rows must be rows in brackets: [[1, 'a'], [2, 'b']]");
    let Some(Value::List(rows)) = node.params.get("rows") else { return Err(wrong()) };
    let row = |(position, row): (usize, &Value)| {
        let Value::List(row) = row else { return Err(wrong()) };
        if row.len() != columns.len() {
            let (found, wanted) = (row.len(), columns.len());
            return Err(Error::semantic(format!(
                "row {position} has {found} values for {wanted} columns"
            )));
        }
        let cells = columns.fields().iter().zip(row);
        cells.map(|(field, value)| cell(field, value).ok_or_else(wrong)).collect()
    };
    rows.iter().enumerate().map(row).collect()
}

/// Returns a cell as an expression; a bare number, text or boolean gets its column's type.
fn cell(field: &Field, value: &Value) -> Option<Expr> {
    Some(match value {
        Value::Expr(expr) => expr.clone(),
        Value::Boolean(flag) => Expr::boolean(*flag),
        Value::String(text) => Expr::string(text),
        Value::Integer(number) => match field.atom() {
            Some(atom) if atom.is_integer() => {
                Expr::Constant(Scalar::Integer((*number).into()), atom.clone())
            }
            Some(atom) if *atom != Atom::Int64 => Expr::int64(*number).cast(atom.clone()),
            _ => Expr::int64(*number),
        },
        _ => return None,
    })
}

impl SubOperator for Values {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let columns = node.params.tuple("columns")?;
        let empty = Tuple::empty();
        let bind =
            |expr: &Expr| BoundExpr::new(expr, &empty, lowering.parameters, lowering.library);
        let rows = rows(node, columns)?
            .iter()
            .map(|row| row.iter().map(bind).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;
        Ok(Operator::Source(Arc::new(ValuesOperator { width: columns.len(), rows })))
    }
}

#[derive(Debug)]
struct ValuesOperator {
    width: usize,
    rows: Vec<Vec<BoundExpr>>,
}

impl Source for ValuesOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let chunk_rows = run.context.chunk_rows();
        let unit = Chunk::unit();
        let mut chunks = Vec::new();
        for rows in self.rows.chunks(chunk_rows) {
            run.context.check()?;
            let column = |index: usize| -> Result<Column> {
                let cells = rows
                    .iter()
                    .map(|row| row[index].evaluate(&unit, run)?.plain())
                    .collect::<Result<Vec<ArrayRef>>>()?;
                let cells: Vec<&dyn Array> = cells.iter().map(|cell| &**cell).collect();
                Ok(Column::Plain(compute::concat(&cells)?))
            };
            chunks
                .push(Chunk::new((0..self.width).map(column).collect::<Result<_>>()?, rows.len()));
        }
        Ok(chunks_source(chunks, chunk_rows))
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::same;
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::Params;

    use super::*;
    use crate::testing::test_plan;

    fn params(columns: &str, rows: Vec<Vec<Expr>>) -> Params {
        let row = |row: Vec<Expr>| Value::List(row.into_iter().map(Value::Expr).collect());
        let columns: Tuple = columns.parse().unwrap();
        Params::new()
            .with("columns", columns)
            .with("rows", Value::List(rows.into_iter().map(row).collect()))
    }

    #[test]
    fn tuples_come_as_written() {
        let mut plan = test_plan();
        let text = |text: &str| Expr::string(text);
        let rows = vec![
            vec![Expr::int64(1), text("x")],
            vec![Expr::int64(2), Expr::null(Atom::String)],
            vec![Expr::call("add", vec![Expr::int64(2), Expr::int64(1)]), text("z")],
        ];
        let root = plan.add("values", &[], params("<a: int64, b: string?>", rows));
        let none = plan.add("values", &[], params("<a: int64>", vec![]));
        let fieldless = plan.add("values", &[], params("<>", vec![vec![], vec![]]));
        for (chunk, workers) in SETTINGS {
            same(
                &plan.run(root, chunk, workers).unwrap(),
                "<a: int64, b: string?>",
                "1 x|2 NULL|3 z",
            );
            same(&plan.run(none, chunk, workers).unwrap(), "<a: int64>", "");
            assert_eq!(
                plan.collect(fieldless, tessera_context::testing::TestContext::new(chunk, workers))
                    .unwrap()
                    .rows(),
                2
            );
        }
    }

    #[test]
    fn cells_are_checked() {
        for (rows, expected) in [
            (vec![vec![Expr::string("x")]], "row 0, field a: string, but int64 is declared"),
            (vec![vec![Expr::null(Atom::Int64)]], "may be NULL"),
            (vec![vec![Expr::int64(1)], vec![]], "row 1 has 0 values for 1 columns"),
            (vec![vec![Expr::field("b")]], "unknown field b"),
        ] {
            let mut plan = test_plan();
            let root = plan.add("values", &[], params("<a: int64>", rows));
            let message = plan.verify(root).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
