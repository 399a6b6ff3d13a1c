//! Helpers for descriptors of sub-operators: checks with their messages, and output edges.

use std::sync::Arc;

use tessera_plan::{
    Edge, Expr, Granularity, Inputs, Locality, Node, Order, Parallelism, Scope, SortKey, Traits,
    Value, type_of,
};
use tessera_types::{Collection, Error, Field, Item, Result, Tuple, quote_name};

/// The constant methods of a [`tessera_plan::Descriptor`]: name, summary, parameters, least and
/// most inputs.
///
/// Used inside the `impl` block, before `derive` and `role`.
#[macro_export]
macro_rules! describe {
    ($name:literal, $summary:literal, [$($parameter:literal),*], $least:expr, $most:expr) => {
        fn name(&self) -> &'static str {
            $name
        }
        fn summary(&self) -> &'static str {
            $summary
        }
        fn parameters(&self) -> &'static [&'static str] {
            &[$($parameter),*]
        }
        fn arity(&self) -> (usize, usize) {
            ($least, $most)
        }
    };
}

/// Returns the input edges of a sub-operator that works on chunks: all on one device, none of
/// packets.
///
/// # Errors
/// Names the input, its trait, and the missing converter.
pub fn edges<'a>(inputs: &'a Inputs<'_>) -> Result<&'a [Edge]> {
    for (position, edge) in inputs.edges.iter().enumerate() {
        if edge.traits.granularity == Granularity::Packet {
            return Err(Error::semantic(format!(
                "input {position} has granularity packet where chunk is needed; insert an unpack"
            )));
        }
        let (first, this) = (inputs.edges[0].traits.device, edge.traits.device);
        if first != this {
            return Err(Error::semantic(format!(
                "input {position} has device {this} where {first}, as of input 0, is needed; insert a device_cross"
            )));
        }
    }
    Ok(inputs.edges)
}

/// Returns the only input edge, with the checks of [`edges`].
///
/// # Errors
/// Those of [`edges`].
pub fn edge<'a>(inputs: &'a Inputs<'_>) -> Result<&'a Edge> {
    edges(inputs)?.first().ok_or_else(|| Error::internal("a sub-operator has no input edge"))
}

/// Rejects an input that is partitioned among workers.
///
/// # Errors
/// The locality is `worker`: an exchange is missing.
pub fn require_all(edge: &Edge, input: usize) -> Result<()> {
    match edge.traits.locality {
        Locality::All => Ok(()),
        Locality::Worker => Err(Error::semantic(format!(
            "input {input} ({}) has locality worker where all is needed, because each worker would \
             see only its own part; insert an exchange",
            edge.tuple
        ))),
    }
}

/// Like [`require_all`], unless the node is `partial`: then each worker processes its own part, and
/// the output is partial as well.
///
/// # Errors
/// Those of [`require_all`].
pub fn require_all_unless_partial(node: &Node, edge: &Edge, input: usize) -> Result<()> {
    if node.params.flag("partial")? { Ok(()) } else { require_all(edge, input) }
}

/// The output edge of a sub-operator that forwards `edge` as `tuple`, with the same traits.
pub fn passes(edge: &Edge, tuple: Tuple, order: Order) -> Edge {
    Edge { tuple, traits: edge.traits, order }
}

/// The output edge of a sub-operator with shared state: parallelism `one`.
pub fn single_edge(edge: &Edge, tuple: Tuple, order: Order) -> Edge {
    Edge { tuple, traits: Traits { parallelism: Parallelism::One, ..edge.traits }, order }
}

/// The output edge of a sub-operator that stores all tuples in one collection of format `form`: one
/// tuple with the field `data`.
///
/// # Errors
/// Those of [`edge`] and [`require_all`].
pub fn collection_edge(inputs: &Inputs<'_>, form: &str) -> Result<Edge> {
    let edge = edge(inputs)?;
    require_all(edge, 0)?;
    let data = Field::collection("data", form, edge.tuple.clone());
    Ok(single_edge(edge, Tuple::new(vec![data]), Order::Source))
}

/// Returns a field by name, with its position.
///
/// # Errors
/// The field does not exist; the message calls it `what`.
pub fn field<'a>(tuple: &'a Tuple, name: &str, what: &str) -> Result<(usize, &'a Field)> {
    match tuple.index_of(name) {
        Some(index) => Ok((index, &tuple.fields()[index])),
        None => {
            Err(Error::semantic(format!("{what} {} is not a field of {tuple}", quote_name(name))))
        }
    }
}

/// Returns the position of a key field, which must hold atoms.
///
/// # Errors
/// The field does not exist, or it holds a collection.
pub fn key(tuple: &Tuple, name: &str, what: &str) -> Result<usize> {
    let (index, field) = field(tuple, name, what)?;
    match &field.item {
        Item::Atom(_) => Ok(index),
        Item::Collection(collection) => Err(Error::semantic(format!(
            "{what} {} holds a collection ({}); expected a value",
            quote_name(name),
            collection.format
        ))),
    }
}

/// Returns the positions of key fields.
///
/// # Errors
/// Those of [`key`].
pub fn keys(tuple: &Tuple, names: &[Arc<str>], what: &str) -> Result<Vec<usize>> {
    names.iter().map(|name| key(tuple, name, what)).collect()
}

/// Checks that keys have the types of the keys they are compared with; a plan must cast where they
/// differ. A side is the word for its keys, its tuple, and the positions of the keys.
///
/// # Errors
/// Two keys differ; the message has both names and types.
pub fn same_types(left: (&str, &Tuple, &[usize]), right: (&str, &Tuple, &[usize])) -> Result<()> {
    for (a, b) in left.2.iter().zip(right.2) {
        let (a, b) = (&left.1.fields()[*a], &right.1.fields()[*b]);
        if a.item != b.item {
            return Err(Error::semantic(format!(
                "{} {} is {} and {} {} is {}; cast one of them",
                left.0,
                quote_name(&a.name),
                a.item,
                right.0,
                quote_name(&b.name),
                b.item
            )));
        }
    }
    Ok(())
}

/// Returns a field that holds a collection in `format`: its position and the collection.
///
/// # Errors
/// The field does not exist, or has another type; the message has both types.
pub fn collection<'a>(
    tuple: &'a Tuple,
    name: &str,
    format: &str,
) -> Result<(usize, &'a Collection)> {
    let (index, field) = field(tuple, name, "field")?;
    match &field.item {
        Item::Collection(collection) if &*collection.format == format => Ok((index, collection)),
        other => Err(Error::semantic(format!(
            "field {} is {other}; expected a collection in format {format}",
            quote_name(name)
        ))),
    }
}

/// Returns the field that an expression of a map produces: a forwarded collection, or a value.
///
/// # Errors
/// Those of [`type_of`], with the name of the field.
pub fn typed(name: &Arc<str>, expr: &Expr, tuple: &Tuple, inputs: &Inputs<'_>) -> Result<Field> {
    if let Expr::Field(source) = expr
        && let Some(field) = tuple.field(source)
    {
        return Ok(field.renamed(name.clone()));
    }
    let scope = Scope { tuple, parameters: inputs.parameters, functions: inputs.functions };
    let (atom, nullable) = type_of(expr, scope)
        .map_err(|error| error.context(format!("field {}", quote_name(name))))?;
    Ok(Field { name: name.clone(), item: Item::Atom(atom), nullable })
}

/// Checks that `expr` is a boolean expression over `tuple`.
///
/// # Errors
/// Those of [`type_of`], or the type is not boolean.
pub fn predicate(expr: &Expr, tuple: &Tuple, inputs: &Inputs<'_>) -> Result<()> {
    let scope = Scope { tuple, parameters: inputs.parameters, functions: inputs.functions };
    tessera_plan::typing::check_predicate(expr, scope)
}

/// Returns the sort keys of a node with the positions of their fields.
///
/// # Errors
/// The list is empty, or a key is not a field of atoms.
pub fn sort_keys(node: &Node, tuple: &Tuple) -> Result<Vec<(usize, SortKey)>> {
    let keys = node.params.sort_keys("keys")?;
    if keys.is_empty() {
        return Err(Error::semantic("parameter keys must name at least one field to sort by"));
    }
    keys.into_iter().map(|k| Ok((key(tuple, &k.field, "sort key")?, k))).collect()
}

/// The order of a stream after fields were renamed or dropped: the longest prefix of keys that
/// remain.
///
/// `rename` returns the new name of a field, or `None` if it was dropped.
pub fn renamed_order(order: &Order, rename: impl Fn(&str) -> Option<Arc<str>>) -> Order {
    let Order::Sorted(keys) = order else { return order.clone() };
    let remaining: Vec<SortKey> = keys
        .iter()
        .map_while(|key| Some(SortKey { field: rename(&key.field)?, ..key.clone() }))
        .collect();
    if remaining.is_empty() { Order::Source } else { Order::Sorted(remaining) }
}

/// Returns a parameter that is a non-negative integer.
///
/// # Errors
/// The parameter is negative or not an integer.
pub fn count(node: &Node, name: &str) -> Result<Option<usize>> {
    let Some(value) = node.params.integer_opt(name)? else { return Ok(None) };
    usize::try_from(value).map(Some).map_err(|_| {
        Error::semantic(format!("parameter {name} must not be negative, it is {value}"))
    })
}

/// Returns a parameter that names one field.
///
/// # Errors
/// The parameter is missing or not a name.
pub fn field_name(node: &Node, name: &str) -> Result<Arc<str>> {
    match node.params.get(name) {
        Some(Value::Expr(Expr::Field(field)) | Value::Name(field)) => Ok(field.clone()),
        _ => Err(Error::semantic(format!("parameter {name} must be the name of a field"))),
    }
}
