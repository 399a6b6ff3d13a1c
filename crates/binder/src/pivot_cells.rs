//! PIVOT with many values: the aggregates are computed for each value first.
//!
//! A FILTER is evaluated for every row. With hundreds of values it is cheaper to group by the keys
//! and the values, and to distribute the few results over the columns.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, GroupByExpr, SelectItem, SetExpr, Visit, Visitor};
use tessera_types::{Error, Result};

use super::Binder;
use super::cte::Meaning;
use super::from::{FromContext, Tables};
use super::function::function_name;
use super::pivot::PivotValue;
use super::pivot_select::{INPUT, input_column, item, template};
use super::scope::{Column, OutputColumn};

/// With fewer columns, filters are cheaper.
const COLUMNS_MIN: usize = 32;
/// The aggregates that are NULL without a row, but for `count`.
const PLAIN: [&str; 10] =
    ["count", "sum", "min", "max", "avg", "any_value", "first", "last", "string_agg", "array_agg"];

/// The input of PIVOT, and what is computed of it.
pub(super) struct PivotInput {
    pub(super) tables: Tables,
    /// The keys, with their names.
    pub(super) keys: Vec<(Ast, Arc<str>)>,
    pub(super) aggregates: Vec<Ast>,
}

impl Binder<'_> {
    /// Groups the input by the keys and the values, if that pays and gives the same.
    pub(super) fn pivot_cells(
        &mut self,
        input: PivotInput,
        values: &[PivotValue],
        context: FromContext<'_, '_>,
    ) -> Result<PivotInput> {
        let mut reads = Reads::default();
        for value in values {
            let _ = value.condition.visit(&mut reads);
        }
        let read = reads.0;
        // A cell must have one row for each value: it is compared by value or as text, not both.
        let numbers: HashSet<&str> =
            read.iter().filter_map(|name| name.split(' ').next_back()).collect();
        let functions: Vec<String> = input.aggregates.iter().filter_map(plain_function).collect();
        if values.len() * input.aggregates.len() < COLUMNS_MIN
            || numbers.len() < read.len()
            || functions.len() < input.aggregates.len()
        {
            return Ok(input);
        }
        let PivotInput { tables, keys, aggregates } = input;
        let mut select = template()?;
        let key_names = (0..keys.len()).map(|number| format!("key {number}"));
        let groups = keys.iter().map(|(key, _)| key.clone()).zip(key_names);
        let groups = groups.chain(read.iter().map(|name| (input_column(name), name.clone())));
        let groups: Vec<(Ast, String)> = groups.collect();
        let cells = aggregates.into_iter().enumerate();
        let cells = cells.map(|(number, aggregate)| (aggregate, format!("cell {number}")));
        let list = groups.iter().cloned().chain(cells);
        select.projection = list.map(|(expr, name)| item(expr, &name)).collect();
        let by = groups.into_iter().map(|(expr, _)| expr).collect();
        select.group_by = GroupByExpr::Expressions(by, Vec::new());
        let env = context.env.with(INPUT.to_string(), Meaning::Tables(Rc::new(tables)));
        let bound = self.select(&select, None, context.outer, &env)?;
        let table: Rc<[Arc<str>]> = Rc::new([INPUT.into()]);
        let column = |output: OutputColumn| Column {
            table: table.clone(),
            name: output.name,
            field: output.field,
            atom: output.atom,
            hidden: true,
            pseudo: false,
            extended: false,
        };
        let columns = bound.columns.into_iter().map(column).collect();
        let key = |(number, (_, name)): (usize, (Ast, Arc<str>))| {
            (input_column(&format!("key {number}")), name)
        };
        let cell = |(number, function): (usize, &String)| of_cell(number, function);
        Ok(PivotInput {
            tables: Tables { relation: bound.relation, columns },
            keys: keys.into_iter().enumerate().map(key).collect(),
            aggregates: functions.iter().enumerate().map(cell).collect::<Result<_>>()?,
        })
    }
}

/// Collects the columns of the input that conditions read.
#[derive(Default)]
struct Reads(BTreeSet<String>);

impl Visitor for Reads {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
        if let Ast::CompoundIdentifier(parts) = expr
            && let [table, name] = parts.as_slice()
            && table.value == INPUT
        {
            self.0.insert(name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Returns the name of the function that an aggregate calls, if it has a known value without rows.
fn plain_function(aggregate: &Ast) -> Option<String> {
    let Ast::Function(function) = aggregate else { return None };
    if function.over.is_some() {
        return None;
    }
    function_name(function).filter(|name| PLAIN.contains(&name.as_str()))
}

/// Returns the aggregate of the only cell among the rows of a FILTER.
fn of_cell(number: usize, function: &str) -> Result<Ast> {
    let cell = format!("any_value(\"{INPUT}\".\"cell {number}\")");
    let value = if function == "count" { format!("coalesce({cell}, 0)") } else { cell };
    let query = tessera_parser::query(&format!("SELECT {value} FROM \"{INPUT}\""))?;
    match *query.body {
        SetExpr::Select(mut select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
            _ => Err(Error::internal("an aggregate that is parsed as something else")),
        },
        _ => Err(Error::internal("a SELECT that is parsed as something else")),
    }
}
