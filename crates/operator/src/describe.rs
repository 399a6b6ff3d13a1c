//! What descriptors of sub-operators have in common: checks with their messages, and edges made
//! from edges.

use std::sync::Arc;

use tessera_plan::{
    Edge, Expr, Granularity, Inputs, Locality, Node, Order, Parallelism, Scope, SortKey, Traits,
    Value, type_of,
};
use tessera_types::{Collection, Error, Field, Item, Result, Tuple, quote_name};

/// The constant methods of a [`tessera_plan::Descriptor`]: name, summary, parameters, least and
/// most inputs.
///
/// To be written inside the `impl` block, before `derive` and `role`.
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

/// The input edges of a sub-operator that works on chunks: all on the same device, none flowing as
/// packets.
///
/// # Errors
/// Names the input, its trait, and the converter that is missing.
pub fn edges<'a>(inputs: &'a Inputs<'_>) -> Result<&'a [Edge]> {
    for (position, edge) in inputs.edges.iter().enumerate() {
        if edge.traits.granularity == Granularity::Packet {
            return Err(Error::semantic(format!(
                "input {position} flows as packets and chunks are wanted; insert an unpack"
            )));
        }
        let (first, this) = (inputs.edges[0].traits.device, edge.traits.device);
        if first != this {
            return Err(Error::semantic(format!(
                "input 0 is on {first} and input {position} on {this}; insert a device_cross"
            )));
        }
    }
    Ok(inputs.edges)
}

/// The only input edge, checked as [`edges`] does.
///
/// # Errors
/// As [`edges`].
pub fn edge<'a>(inputs: &'a Inputs<'_>) -> Result<&'a Edge> {
    edges(inputs)?.first().ok_or_else(|| Error::internal("a sub-operator without an edge"))
}

/// Rejects an input of which each worker sees only a part.
///
/// # Errors
/// The locality is `worker`: an exchange is missing.
pub fn wants_all(edge: &Edge, input: usize) -> Result<()> {
    match edge.traits.locality {
        Locality::All => Ok(()),
        Locality::Worker => Err(Error::semantic(format!(
            "input {input} ({}) has locality worker, so that each worker would see only its own part, where \
             locality all is wanted; insert an exchange",
            edge.tuple
        ))),
    }
}

/// As [`wants_all`], unless the node is `partial`: then each worker works on its own part, and what
/// it gives is a part again.
///
/// # Errors
/// As [`wants_all`].
pub fn wants_all_unless_partial(node: &Node, edge: &Edge, input: usize) -> Result<()> {
    if node.params.flag("partial")? { Ok(()) } else { wants_all(edge, input) }
}

/// The edge out of a sub-operator that passes `edge` on as `tuple`: same traits.
pub fn passes(edge: &Edge, tuple: Tuple, order: Order) -> Edge {
    Edge { tuple, traits: edge.traits, order }
}

/// The edge out of a sub-operator whose state is shared, so that the output exists once.
pub fn gives_one(edge: &Edge, tuple: Tuple, order: Order) -> Edge {
    Edge { tuple, traits: Traits { parallelism: Parallelism::One, ..edge.traits }, order }
}

/// The edge out of a sub-operator that keeps all tuples in one collection in this form, and yields
/// it as the only field of one tuple.
///
/// # Errors
/// As [`edge`] and [`wants_all`].
pub fn gives_collection(inputs: &Inputs<'_>, form: &str) -> Result<Edge> {
    let edge = edge(inputs)?;
    wants_all(edge, 0)?;
    let data = Field::collection("data", form, edge.tuple.clone());
    Ok(gives_one(edge, Tuple::new(vec![data]), Order::Source))
}

/// A field by name, with its position.
///
/// # Errors
/// There is none; `what` says whose field it is.
pub fn field<'a>(tuple: &'a Tuple, name: &str, what: &str) -> Result<(usize, &'a Field)> {
    match tuple.index_of(name) {
        Some(index) => Ok((index, &tuple.fields()[index])),
        None => {
            Err(Error::semantic(format!("{what} {} is not a field of {tuple}", quote_name(name))))
        }
    }
}

/// The position of a field that can be a key: an atom.
///
/// # Errors
/// There is no such field, or it holds a collection.
pub fn key(tuple: &Tuple, name: &str, what: &str) -> Result<usize> {
    let (index, field) = field(tuple, name, what)?;
    match &field.item {
        Item::Atom(_) => Ok(index),
        Item::Collection(collection) => Err(Error::semantic(format!(
            "{what} {} holds a collection ({}) where a value is wanted",
            quote_name(name),
            collection.format
        ))),
    }
}

/// The positions of key fields.
///
/// # Errors
/// As [`key`].
pub fn keys(tuple: &Tuple, names: &[Arc<str>], what: &str) -> Result<Vec<usize>> {
    names.iter().map(|name| key(tuple, name, what)).collect()
}

/// Rejects keys that differ in type from those they are compared with: the maker of the plan casts.
/// A side is what its keys are called, its tuple, and their positions.
///
/// # Errors
/// Two keys differ: names both and their types.
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

/// A field that holds a collection in `format`: its position and the collection.
///
/// # Errors
/// There is no such field, or it holds something else; the message has both types.
pub fn collection<'a>(
    tuple: &'a Tuple,
    name: &str,
    format: &str,
) -> Result<(usize, &'a Collection)> {
    let (index, field) = field(tuple, name, "field")?;
    match &field.item {
        Item::Collection(collection) if &*collection.format == format => Ok((index, collection)),
        other => Err(Error::semantic(format!(
            "field {} is {other} where a collection in format {format} is wanted",
            quote_name(name)
        ))),
    }
}

/// The field that an expression of a map gives: a collection passed on, or a value.
///
/// # Errors
/// As [`type_of`], with the field named.
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

/// Checks a boolean expression over `tuple`.
///
/// # Errors
/// As [`type_of`], or another type.
pub fn predicate(expr: &Expr, tuple: &Tuple, inputs: &Inputs<'_>) -> Result<()> {
    let scope = Scope { tuple, parameters: inputs.parameters, functions: inputs.functions };
    tessera_plan::typing::check_predicate(expr, scope)
}

/// Sort keys of a node with the positions of their fields.
///
/// # Errors
/// None are given, or one is not a field that holds a value.
pub fn sort_keys(node: &Node, tuple: &Tuple) -> Result<Vec<(usize, SortKey)>> {
    let keys = node.params.sort_keys("keys")?;
    if keys.is_empty() {
        return Err(Error::semantic("parameter keys must name at least one field to sort by"));
    }
    keys.into_iter().map(|k| Ok((key(tuple, &k.field, "sort key")?, k))).collect()
}

/// The order of a stream whose fields have been renamed or dropped: the longest prefix of the keys
/// that is left.
///
/// `rename` gives the new name of a field, or nothing where it was dropped.
pub fn renamed_order(order: &Order, rename: impl Fn(&str) -> Option<Arc<str>>) -> Order {
    let Order::Sorted(keys) = order else { return order.clone() };
    let kept: Vec<SortKey> = keys
        .iter()
        .map_while(|key| Some(SortKey { field: rename(&key.field)?, ..key.clone() }))
        .collect();
    if kept.is_empty() { Order::Source } else { Order::Sorted(kept) }
}

/// A whole number of a node that is not negative.
///
/// # Errors
/// It is negative, or not a whole number.
pub fn count(node: &Node, name: &str) -> Result<Option<usize>> {
    let Some(value) = node.params.integer_opt(name)? else { return Ok(None) };
    usize::try_from(value).map(Some).map_err(|_| {
        Error::semantic(format!("parameter {name} must not be negative, but is {value}"))
    })
}

/// A parameter that names one field.
///
/// # Errors
/// It is missing, or not a name.
pub fn field_name(node: &Node, name: &str) -> Result<Arc<str>> {
    match node.params.get(name) {
        Some(Value::Expr(Expr::Field(field)) | Value::Name(field)) => Ok(field.clone()),
        _ => Err(Error::semantic(format!("parameter {name} must be the name of a field"))),
    }
}
