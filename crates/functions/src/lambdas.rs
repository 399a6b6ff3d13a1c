//! Functions that call a lambda for the elements of a list: `list_transform`, `list_filter`, and
//! `list_reduce`, which starts with the first element, or `list_reduce_from` with a given value.
//!
//! A call is `f(list, lambda, …)`. Values that the lambda takes from its surroundings follow, and
//! are the last parameters of the lambda. The elements of all lists of a chunk are computed
//! together, in pieces of at most [`CHUNK_ROWS`].

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, UInt32Array, new_empty_array,
    new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, filter, interleave, take};
use arrow::datatypes::DataType;
use tessera_context::interrupt::check_here;
use tessera_plan::{Expr, Lambda};
use tessera_types::{Atom, Error, Result, Slot, SqlState, Tuple};
use tessera_vector::{CHUNK_ROWS, Chunk, Column};

use super::bind::{FieldReads, Node};
use super::evaluate::{View, evaluate, is_raised};
use tessera_values::hidden_values::without_hidden_items;
use tessera_values::kernel::{as_boolean, unexpected};

/// The assumed number of elements of a list.
const ELEMENTS: u32 = 10;

/// The names of the functions in plans.
pub(crate) const NAMES: [&str; 4] =
    ["list_transform", "list_filter", "list_reduce", "list_reduce_from"];

/// DuckDB's names, and the functions they denote. SQL has `list_reduce` with a first value, too.
pub const ALIASES: [(&str, &str); 11] = [
    ("list_transform", "list_transform"),
    ("list_apply", "list_transform"),
    ("array_transform", "list_transform"),
    ("array_apply", "list_transform"),
    ("apply", "list_transform"),
    ("list_filter", "list_filter"),
    ("array_filter", "list_filter"),
    ("filter", "list_filter"),
    ("list_reduce", "list_reduce"),
    ("array_reduce", "list_reduce"),
    ("reduce", "list_reduce"),
];

/// What a function does with the values of its lambda.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// They are the new elements.
    Elements,
    /// They say which elements stay.
    Condition,
    /// Each is the first parameter for the next element; `given` says whether the first one is an
    /// argument.
    Accumulate { given: bool },
}

impl Use {
    fn of(function: &str) -> Option<Use> {
        Some(match function {
            "list_transform" => Use::Elements,
            "list_filter" => Use::Condition,
            "list_reduce" => Use::Accumulate { given: false },
            "list_reduce_from" => Use::Accumulate { given: true },
            _ => return None,
        })
    }

    /// The number of arguments before the values of the surroundings.
    fn arguments(self) -> usize {
        if self == (Use::Accumulate { given: true }) { 3 } else { 2 }
    }
}

/// A bound call.
#[derive(Debug)]
pub(crate) struct LambdaCall {
    function: Arc<str>,
    usage: Use,
    /// The list, the first value of `list_reduce_from`, and the values of the surroundings.
    pub(crate) args: Vec<Node>,
    body: Box<Node>,
    /// The type of the result.
    atom: Atom,
}

/// Whether a function takes a lambda.
pub(crate) fn takes_lambda(function: &str) -> bool {
    NAMES.contains(&function)
}

/// The type of a call; `None` for other functions.
pub(crate) fn type_of(
    function: &str,
    args: &[(Atom, bool, &Expr)],
) -> Option<Result<(Atom, bool)>> {
    Use::of(function).map(|usage| typed(function, usage, args))
}

fn typed(function: &str, usage: Use, args: &[(Atom, bool, &Expr)]) -> Result<(Atom, bool)> {
    let wrong = |hint: &str| {
        Err(Error::semantic(format!("function {function} {hint}"))
            .with_state(SqlState::UNDEFINED_FUNCTION))
    };
    let [(list, nullable, _), (body, _, Expr::Lambda(lambda)), rest @ ..] = args else {
        return wrong("takes a list and a lambda, as in lambda x: x + 1");
    };
    let Atom::List(slot) = list else {
        return wrong(&format!("takes a list first, not {list}"));
    };
    let accumulated = match usage {
        Use::Accumulate { .. } => vec![body.clone()],
        _ => Vec::new(),
    };
    let captured = rest.iter().skip(usage.arguments() - 2).map(|(atom, ..)| atom.clone());
    let wanted = accumulated.into_iter().chain([slot.atom.clone(), Atom::Int64]).chain(captured);
    let wanted: Vec<Atom> = wanted.collect();
    let given: Vec<&Atom> = lambda.parameters.fields().iter().flat_map(|f| f.atom()).collect();
    if given.len() != lambda.parameters.len() || given != wanted.iter().collect::<Vec<_>>() {
        let wanted = wanted.iter().map(Atom::to_string).collect::<Vec<_>>().join(", ");
        return wrong(&format!("needs a lambda of ({wanted}), not of {}", lambda.parameters));
    }
    match usage {
        Use::Elements => {
            Ok((Atom::List(Box::new(Slot { atom: body.clone(), nullable: true })), *nullable))
        }
        Use::Condition if *body == Atom::Boolean => Ok((list.clone(), *nullable)),
        Use::Condition => wrong(&format!("needs a lambda with a boolean result, not {body}")),
        Use::Accumulate { given: true } if rest.first().map(|(atom, ..)| atom) != Some(body) => {
            wrong(&format!("needs a first value of type {body}, which its lambda returns"))
        }
        Use::Accumulate { given: false } if slot.atom != *body => {
            wrong(&format!("needs a lambda that returns {}, as the elements", slot.atom))
        }
        Use::Accumulate { .. } => Ok((body.clone(), true)),
    }
}

/// Whether the function itself fails for some list.
pub(crate) fn raises(function: &str) -> bool {
    function == "list_reduce"
}

impl LambdaCall {
    /// Binds a call; returns it and its cost. `args` are the arguments without the lambda.
    pub(crate) fn new(
        function: &str,
        args: Vec<Node>,
        body: Node,
        atom: Atom,
    ) -> Result<(LambdaCall, u32)> {
        let usage = Use::of(function)
            .ok_or_else(|| Error::internal(format!("{function} takes no lambda")))?;
        let cost = body.cost.saturating_mul(ELEMENTS).saturating_add(20);
        let call = LambdaCall { function: function.into(), usage, args, body: body.into(), atom };
        Ok((call, cost))
    }

    /// Whether some value makes the call fail.
    pub(crate) fn raises(&self) -> bool {
        self.body.raises || raises(&self.function)
    }

    /// Computes the call for `rows` tuples, with one value of each argument for each.
    pub(crate) fn compute(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let (Some(array), Some(captured)) = (args.first(), args.get(self.usage.arguments() - 1..))
        else {
            return Err(Error::internal("a lambda without a list"));
        };
        let lists = array.as_list_opt::<i32>().ok_or_else(|| unexpected(array))?;
        let visible = without_hidden_items(array, lists.offsets())?;
        let lists = visible.as_list::<i32>();
        match self.usage {
            Use::Elements => self.transformed(lists, captured),
            Use::Condition => self.filtered(lists, captured),
            Use::Accumulate { given } => {
                let first = if given { args.get(1) } else { None };
                self.reduced(lists, first, captured, rows)
            }
        }
    }

    /// Evaluates the body for some elements.
    fn evaluated(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
        check_here()?;
        let columns: Vec<Column> = columns.into_iter().map(Column::Plain).collect();
        let unit = Chunk::unit();
        let value = evaluate(&self.body, &View::all(&columns, rows, &unit));
        value.and_then(|column| column.plain()).map_err(|error| match is_raised(&error) {
            true => error.context(format!("in the lambda of {}", self.function)),
            false => error,
        })
    }

    /// Evaluates the body for all elements, in pieces.
    fn of_elements(
        &self,
        values: &ArrayRef,
        offsets: &[i32],
        captured: &[ArrayRef],
    ) -> Result<Vec<ArrayRef>> {
        let mut pieces = Vec::new();
        let (mut row, mut at) = (0, 0);
        while at < values.len() {
            let count = CHUNK_ROWS.min(values.len() - at);
            let (mut rows, mut places) = (Vec::with_capacity(count), Vec::with_capacity(count));
            for element in at..at + count {
                while offsets[row + 1] as usize <= element {
                    row += 1;
                }
                rows.push(row as u32);
                places.push((element - offsets[row] as usize) as i64 + 1);
            }
            let mut columns = vec![values.slice(at, count), Arc::new(Int64Array::from(places))];
            let rows = UInt32Array::from(rows);
            for value in captured {
                columns.push(take(value, &rows, None)?);
            }
            pieces.push(self.evaluated(columns, count)?);
            at += count;
        }
        Ok(pieces)
    }

    fn transformed(&self, lists: &ListArray, captured: &[ArrayRef]) -> Result<ArrayRef> {
        let DataType::List(item) = self.atom.arrow() else {
            return Err(Error::internal("elements without a list"));
        };
        let (values, offsets) = elements(lists);
        let pieces = self.of_elements(&values, &offsets, captured)?;
        let values = joined(&pieces, item.data_type())?;
        Ok(Arc::new(ListArray::try_new(item, offsets, values, lists.nulls().cloned())?))
    }

    fn filtered(&self, lists: &ListArray, captured: &[ArrayRef]) -> Result<ArrayRef> {
        let (values, offsets) = elements(lists);
        let pieces = self.of_elements(&values, &offsets, captured)?;
        let mask = joined(&pieces, &DataType::Boolean)?;
        let mask = as_boolean(&mask)?;
        let stays = |at: usize| mask.is_valid(at) && mask.value(at);
        let sizes = offsets
            .windows(2)
            .map(|pair| (pair[0] as usize..pair[1] as usize).filter(|at| stays(*at)).count());
        let sizes: Vec<usize> = sizes.collect();
        let stays = BooleanArray::from_iter((0..mask.len()).map(|at| Some(stays(at))));
        let values = filter(&values, &stays)?;
        let DataType::List(item) = lists.data_type() else { return Err(unexpected(lists)) };
        let offsets = OffsetBuffer::from_lengths(sizes);
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, lists.nulls().cloned())?))
    }

    /// Goes through all lists side by side, one element of each at a time.
    fn reduced(
        &self,
        lists: &ListArray,
        first: Option<&ArrayRef>,
        captured: &[ArrayRef],
        rows: usize,
    ) -> Result<ArrayRef> {
        let (values, offsets) = elements(lists);
        let length = |row: u32| (offsets[row as usize + 1] - offsets[row as usize]) as usize;
        let at = |rows: &[u32], place: usize| -> Result<ArrayRef> {
            let places = rows.iter().map(|row| offsets[*row as usize] as u32 + place as u32);
            Ok(take(&values, &UInt32Array::from_iter_values(places), None)?)
        };
        let mut open: Vec<u32> = (0..rows as u32).filter(|r| lists.is_valid(*r as usize)).collect();
        if first.is_none() && open.iter().any(|row| length(*row) == 0) {
            let message = format!(
                "{} of an empty list has no value; give a first value as the third argument",
                self.function
            );
            let error = Error::data(message);
            return Err(error.with_state(SqlState::INVALID_PARAMETER_VALUE));
        }
        let mut place = usize::from(first.is_none());
        let mut reached = match first {
            Some(first) => take(first, &UInt32Array::from(open.clone()), None)?,
            None => at(&open, 0)?,
        };
        // Values of finished lists, and where each tuple's value is; a NULL list is NULL.
        let mut done: Vec<ArrayRef> = vec![new_null_array(&self.atom.arrow(), 1)];
        let mut found: Vec<(usize, usize)> = vec![(0, 0); rows];
        while !open.is_empty() {
            if open.iter().any(|row| length(*row) <= place) {
                let mut more = Vec::with_capacity(open.len());
                for (index, row) in open.iter().enumerate() {
                    match length(*row) <= place {
                        true => found[*row as usize] = (done.len(), index),
                        false => more.push(index as u32),
                    }
                }
                done.push(reached.clone());
                open = more.iter().map(|index| open[*index as usize]).collect();
                reached = take(&reached, &UInt32Array::from(more), None)?;
                continue;
            }
            let position = Int64Array::from_value(place as i64 + 1, open.len());
            let mut columns = vec![reached, at(&open, place)?, Arc::new(position)];
            let indices = UInt32Array::from(open.clone());
            for value in captured {
                columns.push(take(value, &indices, None)?);
            }
            reached = self.evaluated(columns, open.len())?;
            place += 1;
        }
        let done: Vec<&dyn Array> = done.iter().map(|array| array.as_ref()).collect();
        Ok(interleave(&done, &found)?)
    }
}

/// The elements of all lists, and where each list begins and ends in them.
fn elements(lists: &ListArray) -> (ArrayRef, OffsetBuffer<i32>) {
    let offsets = lists.offsets();
    let (start, end) = (offsets[0], offsets[offsets.len() - 1]);
    let values = lists.values().slice(start as usize, (end - start) as usize);
    let offsets = match start {
        0 => offsets.clone(),
        _ => OffsetBuffer::from_lengths(offsets.windows(2).map(|p| (p[1] - p[0]) as usize)),
    };
    (values, offsets)
}

fn joined(pieces: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    match pieces {
        [] => Ok(new_empty_array(data_type)),
        [piece] => Ok(piece.clone()),
        pieces => Ok(concat(&pieces.iter().map(|piece| piece.as_ref()).collect::<Vec<_>>())?),
    }
}

impl super::bind::Binder<'_> {
    /// Binds a call of a function that takes a lambda.
    pub(crate) fn lambda_call(&self, function: &str, exprs: &[Expr]) -> Result<Node> {
        let mut lambda: Option<&Lambda> = None;
        let mut args = Vec::with_capacity(exprs.len());
        for expr in exprs {
            match expr {
                Expr::Lambda(found) => lambda = Some(found),
                expr => args.push(self.node(expr)?),
            }
        }
        let Some(lambda) = lambda else {
            return Err(Error::semantic(format!("function {function} needs a lambda")));
        };
        let none = Tuple::empty();
        let within = super::bind::Binder {
            tuple: &lambda.parameters,
            parameters: &none,
            library: self.library,
        };
        let body = within.bind(&lambda.body)?;
        let mut nodes = args.iter();
        let seen = exprs.iter().map(|expr| match expr {
            Expr::Lambda(_) => (body.atom.clone(), body.nullable, expr),
            expr => nodes
                .next()
                .map_or((Atom::Null, true, expr), |node| (node.atom.clone(), node.nullable, expr)),
        });
        let usage = Use::of(function).unwrap_or(Use::Elements);
        let (atom, nullable) = typed(function, usage, &seen.collect::<Vec<_>>())?;
        let volatile = tessera_plan::rewrite::is_volatile(&lambda.body, self.library);
        let (call, cost) = LambdaCall::new(function, args, body, atom.clone())?;
        let raises = call.raises();
        let mut node = Node::new(super::bind::NodeKind::Lambda(call), atom, nullable);
        node.raises = raises;
        if volatile {
            node.reads = FieldReads::Many;
        }
        Ok(node.over(cost))
    }
}
