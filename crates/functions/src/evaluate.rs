//! Evaluation: columns out of a bound expression and the tuples that count.
//!
//! A node is evaluated over a [`View`]: stored columns and the positions that count. Kernels see
//! dense arrays of exactly those tuples, so a value that does not count never raises. Nodes that
//! give up tuples on the way (AND, CASE, …, in [`super::logic`]) narrow the view. Constants stay
//! one value; an expression over one dictionary column is computed once per dictionary entry.

use std::cell::RefCell;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array, new_null_array};
use arrow::compute;
use tessera_types::{Code, Error, Result};
use tessera_vector::{Chunk, Column};

use super::bind::{Kind, Node, Reads};
use super::growth::note;
use super::kernel::Argument;
use super::logic;

/// Dictionaries whose results a node remembers: those of the row groups that workers are in at the
/// moment.
const DICTIONARIES_MAX: usize = 16;

/// Where a view's columns come from.
#[derive(Debug, Clone)]
enum Source<'a> {
    /// Those of a chunk.
    Chunk(&'a [Column]),
    /// One column, standing at this index.
    Single(usize, Column),
}

/// The tuples over which an expression is evaluated.
#[derive(Debug)]
pub(crate) struct View<'a> {
    source: Source<'a>,
    /// Which of the stored tuples; all when absent.
    positions: Option<UInt32Array>,
    rows: usize,
    parameters: &'a Chunk,
    /// Columns that have been gathered.
    gathered: RefCell<Vec<(usize, Column)>>,
}

impl<'a> View<'a> {
    /// All of so many stored tuples.
    pub(crate) fn all(columns: &'a [Column], rows: usize, parameters: &'a Chunk) -> Self {
        View {
            source: Source::Chunk(columns),
            positions: None,
            rows,
            parameters,
            gathered: RefCell::default(),
        }
    }

    /// The stored tuples at these positions.
    pub(crate) fn at(columns: &'a [Column], positions: UInt32Array, parameters: &'a Chunk) -> Self {
        let rows = positions.len();
        let gathered = RefCell::default();
        View {
            source: Source::Chunk(columns),
            positions: Some(positions),
            rows,
            parameters,
            gathered,
        }
    }

    /// How many tuples count.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Some of the tuples that count, by their number among them.
    pub(crate) fn narrow(&self, numbers: &[u32]) -> View<'a> {
        let positions: UInt32Array = match &self.positions {
            None => numbers.to_vec().into(),
            Some(old) => {
                numbers.iter().map(|&number| old.value(number as usize)).collect::<Vec<_>>().into()
            }
        };
        View {
            source: self.source.clone(),
            rows: positions.len(),
            positions: Some(positions),
            parameters: self.parameters,
            gathered: RefCell::default(),
        }
    }

    fn stored(&self, index: usize) -> Result<&Column> {
        match &self.source {
            Source::Chunk(columns) => columns.get(index),
            Source::Single(at, column) => (*at == index).then_some(column),
        }
        .ok_or_else(|| {
            Error::internal(format!("an expression reads column {index}, which is not there"))
        })
    }

    /// The values of a field for the tuples that count.
    fn column(&self, index: usize) -> Result<Column> {
        let stored = self.stored(index)?;
        let Some(positions) = &self.positions else { return Ok(stored.clone()) };
        if let Some((_, column)) = self.gathered.borrow().iter().find(|(at, _)| *at == index) {
            return Ok(column.clone());
        }
        let column = stored.take(positions)?;
        self.gathered.borrow_mut().push((index, column.clone()));
        Ok(column)
    }
}

/// Whether an error is one that a value raises, rather than a failure of the query.
pub(crate) fn is_raised(error: &Error) -> bool {
    matches!(error.code(), Code::Overflow | Code::DivisionByZero | Code::Data)
}

/// The values of a node, one per tuple of the view.
pub(crate) fn evaluate(node: &Node, view: &View<'_>) -> Result<Column> {
    if view.rows == 0 {
        return Ok(Column::Plain(new_empty_array(&node.atom.arrow())));
    }
    match &node.kind {
        Kind::Field(index) => return view.column(*index),
        Kind::Constant(value) => return Ok(Column::Constant(value.clone(), view.rows)),
        Kind::Parameter(index) => {
            let value = view.parameters.column(*index)?.plain()?;
            if value.len() != 1 {
                return Err(Error::internal("the parameter tuple is not one tuple"));
            }
            return Ok(Column::Constant(value, view.rows));
        }
        _ => {}
    }
    // Results on a dictionary are kept for later chunks, which a run with other parameters may
    // read, too.
    if let Reads::One(index) = node.reads
        && !node.reads_parameter
        && let Column::Dictionary(_) = view.stored(index)?
        && let Some(column) = by_dictionary(node, index, view)?
    {
        return Ok(column);
    }
    match &node.kind {
        Kind::Call { kernel, args } => {
            let columns = args.iter().map(|arg| evaluate(arg, view)).collect::<Result<Vec<_>>>()?;
            let all_constant = columns.iter().all(|column| matches!(column, Column::Constant(..)));
            // Not once for all tuples where the function is volatile; a kernel then wants one
            // argument per tuple.
            let constant = all_constant && node.reads != Reads::Many;
            let args = match all_constant && !constant {
                true => columns.iter().map(spread).collect::<Result<Vec<_>>>()?,
                false => columns
                    .into_iter()
                    .map(|c| argument(c, constant))
                    .collect::<Result<Vec<_>>>()?,
            };
            let column = match constant {
                true => Column::Constant(kernel.call(&args, 1)?, view.rows),
                false => Column::Plain(kernel.call(&args, view.rows)?),
            };
            note(&column);
            Ok(column)
        }
        Kind::And(list) => logic::connective(list, view, false),
        Kind::Or(list) => logic::connective(list, view, true),
        Kind::Not(input) => logic::not(evaluate(input, view)?),
        Kind::IsNull(input) => logic::is_null(evaluate(input, view)?),
        Kind::Case { branches, otherwise } => {
            logic::case(branches, otherwise.as_deref(), &node.atom, view)
        }
        Kind::Coalesce(list) => logic::coalesce(list, &node.atom, view),
        Kind::Try(input) => logic::attempt(input, view),
        Kind::Field(_) | Kind::Parameter(_) | Kind::Constant(_) => {
            Err(Error::internal("a leaf was not evaluated"))
        }
    }
}

/// A column as a kernel takes it. Where all are constant each is an array of one tuple.
fn argument(column: Column, all_constant: bool) -> Result<Argument> {
    match column {
        Column::Constant(array, _) => Ok(Argument { array, constant: !all_constant }),
        column => Ok(Argument { array: column.plain()?, constant: false }),
    }
}

/// A column as a kernel takes it, one value per tuple.
fn spread(column: &Column) -> Result<Argument> {
    Ok(Argument { array: column.plain()?, constant: false })
}

/// The values of a node that reads only one field, a dictionary column here, by way of the
/// dictionary; none when that does not pay, or an entry (which perhaps no tuple has) makes it fail.
fn by_dictionary(node: &Node, index: usize, view: &View<'_>) -> Result<Option<Column>> {
    let Column::Dictionary(stored) = view.stored(index)? else { return Ok(None) };
    let values = stored.as_any_dictionary().values().clone();
    let known = node
        .dictionaries
        .lock()
        .iter()
        .find(|(known, _)| same(known, &values))
        .map(|(_, r)| r.clone());
    let result = match known {
        Some(result) => result,
        None if values.len() > view.rows => return Ok(None),
        None => {
            let result =
                match on_values(node, index, view, Column::Plain(values.clone()), values.len()) {
                    Ok(result) => Some(result),
                    Err(error) if is_raised(&error) => None,
                    Err(error) => return Err(error),
                };
            let mut dictionaries = node.dictionaries.lock();
            if dictionaries.len() == DICTIONARIES_MAX {
                dictionaries.remove(0);
            }
            dictionaries.push((values, result.clone()));
            result
        }
    };
    let Some(result) = result else { return Ok(None) };
    let column = view.column(index)?;
    let Column::Dictionary(column) = &column else { return Ok(None) };
    let keys = column.as_any_dictionary().keys();
    let mapped = compute::take(&result, keys, None)?;
    if keys.null_count() == 0 {
        return Ok(Some(Column::Plain(mapped)));
    }
    // What the expression makes of NULL, where that is not NULL again.
    let null = new_null_array(stored.as_any_dictionary().values().data_type(), 1);
    let of_null = match on_values(node, index, view, Column::Plain(null), 1) {
        Ok(of_null) => of_null,
        Err(error) if is_raised(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if of_null.is_null(0) {
        return Ok(Some(Column::Plain(mapped)));
    }
    let is_null = compute::is_null(keys)?;
    let of_null = arrow::array::Scalar::new(of_null);
    Ok(Some(Column::Plain(compute::kernels::zip::zip(&is_null, &of_null, &mapped)?)))
}

fn on_values(
    node: &Node,
    index: usize,
    view: &View<'_>,
    column: Column,
    rows: usize,
) -> Result<ArrayRef> {
    let view = View {
        source: Source::Single(index, column),
        positions: None,
        rows,
        parameters: view.parameters,
        gathered: RefCell::default(),
    };
    evaluate(node, &view)?.plain()
}

/// Whether two arrays are the same one: the remembered one is kept alive, so its address cannot be
/// another's.
fn same(a: &ArrayRef, b: &ArrayRef) -> bool {
    std::ptr::addr_eq(std::sync::Arc::as_ptr(a), std::sync::Arc::as_ptr(b))
}
