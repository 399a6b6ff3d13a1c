//! Evaluation of bound expressions to columns.
//!
//! A node is evaluated over a [`View`]: stored columns and the positions of the selected tuples.
//! Kernels receive dense arrays of exactly these tuples, so a tuple that is not selected never
//! raises an error. AND, CASE and the like (in [`super::logic`]) narrow the view. Constants stay
//! single values, and an expression over one dictionary column is computed once per dictionary
//! entry.

use std::cell::RefCell;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array, new_null_array};
use arrow::compute;
use tessera_types::{Code, Error, Result};
use tessera_vector::{Chunk, Column};

use super::bind::{FieldReads, Node, NodeKind};
use super::growth::record_size;
use super::logic;
use tessera_values::kernel::Argument;

/// The maximum number of dictionaries with cached results per node: enough for the row groups that
/// all workers currently read.
const DICTIONARIES_MAX: usize = 16;

/// The columns of a view.
#[derive(Debug, Clone)]
enum Source<'a> {
    /// All columns of a chunk.
    Chunk(&'a [Column]),
    /// A single column, in place of the field with this index.
    Single(usize, Column),
}

/// The tuples that an expression is evaluated for.
#[derive(Debug)]
pub(crate) struct View<'a> {
    source: Source<'a>,
    /// The positions of the selected tuples; `None` if all stored tuples are selected.
    positions: Option<UInt32Array>,
    rows: usize,
    parameters: &'a Chunk,
    /// Columns gathered so far.
    gathered: RefCell<Vec<(usize, Column)>>,
}

impl<'a> View<'a> {
    /// Creates a view of all `rows` stored tuples.
    pub(crate) fn all(columns: &'a [Column], rows: usize, parameters: &'a Chunk) -> Self {
        View {
            source: Source::Chunk(columns),
            positions: None,
            rows,
            parameters,
            gathered: RefCell::default(),
        }
    }

    /// Creates a view of the stored tuples at these positions.
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

    /// The number of selected tuples.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Narrows the view to some of its tuples, given by their index in the view.
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
            Error::internal(format!("an expression reads column {index}, which does not exist"))
        })
    }

    /// The values of a field for the selected tuples.
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

/// Whether an error was raised by a value, as opposed to a failure of the query.
pub(crate) fn is_raised(error: &Error) -> bool {
    matches!(error.code(), Code::Overflow | Code::DivisionByZero | Code::Data)
}

/// Evaluates a node to one value per tuple of the view.
pub(crate) fn evaluate(node: &Node, view: &View<'_>) -> Result<Column> {
    if view.rows == 0 {
        return Ok(Column::Plain(new_empty_array(&node.atom.arrow())));
    }
    match &node.kind {
        NodeKind::Field(index) => return view.column(*index),
        NodeKind::Constant(value) => return Ok(Column::Constant(value.clone(), view.rows)),
        NodeKind::Parameter(index) => {
            let value = view.parameters.column(*index)?.plain()?;
            if value.len() != 1 {
                return Err(Error::internal("the parameter tuple is not one tuple"));
            }
            return Ok(Column::Constant(value, view.rows));
        }
        _ => {}
    }
    // Dictionary results are cached across chunks and runs, so they must not depend on parameters.
    if let FieldReads::One(index) = node.reads
        && !node.reads_parameter
        && let Column::Dictionary(_) = view.stored(index)?
        && let Some(column) = by_dictionary(node, index, view)?
    {
        return Ok(column);
    }
    match &node.kind {
        NodeKind::Call { kernel, args } => {
            let columns = args.iter().map(|arg| evaluate(arg, view)).collect::<Result<Vec<_>>>()?;
            let all_constant = columns.iter().all(|column| matches!(column, Column::Constant(..)));
            // A volatile function is called once per tuple, with arguments of full length.
            let constant = all_constant && node.reads != FieldReads::Many;
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
            record_size(&column);
            Ok(column)
        }
        NodeKind::And(list) => logic::connective(list, view, false),
        NodeKind::Or(list) => logic::connective(list, view, true),
        NodeKind::Not(input) => logic::not(evaluate(input, view)?),
        NodeKind::IsNull(input) => logic::is_null(evaluate(input, view)?),
        NodeKind::Case { branches, otherwise } => {
            logic::case(branches, otherwise.as_deref(), &node.atom, view)
        }
        NodeKind::Coalesce(list) => logic::coalesce(list, &node.atom, view),
        NodeKind::Try(input) => logic::attempt(input, view),
        NodeKind::Lambda(call) => {
            let columns =
                call.args.iter().map(|arg| evaluate(arg, view)).collect::<Result<Vec<_>>>()?;
            let all_constant = columns.iter().all(|column| matches!(column, Column::Constant(..)));
            let column = match all_constant && node.reads != FieldReads::Many {
                true => {
                    let args = columns.into_iter().map(|column| argument(column, true));
                    let args =
                        args.map(|arg| arg.map(|arg| arg.array)).collect::<Result<Vec<_>>>()?;
                    Column::Constant(call.compute(&args, 1)?, view.rows)
                }
                false => {
                    let args = columns.iter().map(Column::plain).collect::<Result<Vec<_>>>()?;
                    Column::Plain(call.compute(&args, view.rows)?)
                }
            };
            record_size(&column);
            Ok(column)
        }
        NodeKind::Field(_) | NodeKind::Parameter(_) | NodeKind::Constant(_) => {
            Err(Error::internal("a leaf was not evaluated"))
        }
    }
}

/// Converts a column to a kernel argument. If all arguments are constant, each becomes an array of
/// length 1.
fn argument(column: Column, all_constant: bool) -> Result<Argument> {
    match column {
        Column::Constant(array, _) => Ok(Argument { array, constant: !all_constant }),
        column => Ok(Argument { array: column.plain()?, constant: false }),
    }
}

/// Converts a column to a kernel argument with one value per tuple.
fn spread(column: &Column) -> Result<Argument> {
    Ok(Argument { array: column.plain()?, constant: false })
}

/// Evaluates a node over one dictionary column once per dictionary entry. Returns `None` if that
/// does not pay, or if an entry, which may be unused, raises an error.
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
    // The result for NULL, if it is not NULL.
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

/// Whether two arrays are identical. The cached one is alive, so its address cannot be reused.
fn same(a: &ArrayRef, b: &ArrayRef) -> bool {
    std::ptr::addr_eq(std::sync::Arc::as_ptr(a), std::sync::Arc::as_ptr(b))
}
