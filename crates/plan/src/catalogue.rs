//! What sub-operators and functions mean to the verifier; filled by the rooms above.

use std::collections::BTreeMap;
use std::sync::Arc;

use tessera_types::{Atom, Error, Result, Tuple};

use crate::edge::Edge;
use crate::expr::Expr;
use crate::graph::Node;

/// What a descriptor sees of a node's surroundings.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The edges into the node, in order; for a leaf, one edge that carries the plan's parameter
    /// tuple and the traits the plan starts with.
    pub edges: &'a [Edge],
    /// The results of the node's nested plans, in order (verified already).
    pub nested: &'a [Edge],
    /// The parameter tuple of the plan the node stands in.
    pub parameters: &'a Tuple,
    /// Types of functions.
    pub functions: &'a dyn Functions,
}

/// How a sub-operator consumes its inputs. Inputs not named here are *sides*: complete before it
/// starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Starts a pipeline; all its inputs are sides.
    Source,
    /// Passes the tuples of this input on, chunk by chunk.
    Stream(usize),
    /// Consumes this input whole before the first output: a materialisation point.
    Sink(usize),
    /// Passes all inputs on, one after the other.
    Union,
}

/// What one sub-operator means: typing, traits, blocking.
pub trait Descriptor: Send + Sync + std::fmt::Debug {
    /// The name it stands under in plans: lower case with underscores.
    fn name(&self) -> &'static str;

    /// One sentence for the catalogue's documentation.
    fn summary(&self) -> &'static str;

    /// Names of the parameters it takes; others are rejected.
    fn parameters(&self) -> &'static [&'static str];

    /// How many inputs it takes: least and most.
    fn arity(&self) -> (usize, usize);

    /// How many nested plans it takes.
    fn nested(&self) -> usize {
        0
    }

    /// The parameter tuple handed to nested plan `index`, and the traits its streams start with.
    fn nested_input(&self, _node: &Node, _inputs: &[Edge], _index: usize) -> Result<Edge> {
        Err(Error::internal(format!("{} takes no nested plan", self.name())))
    }

    /// Checks the node and gives the type, traits and order of its output.
    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge>;

    /// Checks against the parameters of the nodes that make the inputs, in order: what no type
    /// tells. `edges` are theirs.
    fn check_producers(&self, _node: &Node, _producers: &[&Node], _edges: &[&Edge]) -> Result<()> {
        Ok(())
    }

    /// How its inputs are consumed, which is where pipelines are cut.
    fn role(&self, node: &Node) -> Role;

    /// Whether the platform owns it: it is one of the few that differ between platforms.
    fn of_platform(&self) -> bool {
        false
    }

    /// Whether its inputs flow in packets; all others take chunks.
    fn takes_packets(&self) -> bool {
        false
    }
}

/// Types of scalar and aggregate functions.
pub trait Functions: Send + Sync + std::fmt::Debug {
    /// The result type of a scalar function, and whether it may be NULL. An argument is its type,
    /// whether it may be NULL, and the expression itself (some functions' types depend on constant
    /// arguments).
    fn scalar(&self, name: &str, args: &[(Atom, bool, &Expr)]) -> Result<(Atom, bool)>;

    /// The result type of an aggregate function, and whether it may be NULL.
    fn aggregate(&self, name: &str, args: &[(Atom, bool)], distinct: bool) -> Result<(Atom, bool)>;

    /// Whether a scalar function can raise on some values of these arguments (as in
    /// [`Functions::scalar`]). Predicates that can are not moved before others (architecture §6).
    fn can_raise(&self, _name: &str, _args: &[(Atom, bool, &Expr)]) -> bool {
        true
    }

    /// Whether some value of `from` does not convert to `to`.
    fn cast_can_raise(&self, _from: &Atom, _to: &Atom) -> bool {
        true
    }

    /// Whether a scalar function gives another value each time it is called, so that calls are
    /// neither shared nor repeated.
    fn is_volatile(&self, _name: &str) -> bool {
        false
    }
}

/// Descriptors and functions by name.
#[derive(Debug, Clone)]
pub struct Catalogue {
    descriptors: BTreeMap<&'static str, Arc<dyn Descriptor>>,
    functions: Arc<dyn Functions>,
}

impl Catalogue {
    /// A catalogue without sub-operators.
    pub fn new(functions: Arc<dyn Functions>) -> Self {
        Catalogue { descriptors: BTreeMap::new(), functions }
    }

    /// Adds a descriptor; the last one of a name wins.
    pub fn register(&mut self, descriptor: Arc<dyn Descriptor>) {
        self.descriptors.insert(descriptor.name(), descriptor);
    }

    /// The descriptor of a sub-operator.
    ///
    /// # Errors
    /// No sub-operator has this name.
    pub fn descriptor(&self, name: &str) -> Result<&Arc<dyn Descriptor>> {
        self.descriptors.get(name).ok_or_else(|| {
            Error::semantic(format!(
                "there is no sub-operator called {name}; the catalogue lists those there are"
            ))
        })
    }

    /// All descriptors, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Descriptor>> {
        self.descriptors.values()
    }

    /// Types of functions.
    pub fn functions(&self) -> &dyn Functions {
        &*self.functions
    }
}
