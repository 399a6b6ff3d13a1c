//! The catalog of sub-operators and functions; the crates above fill it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tessera_types::{Atom, Error, Result, Tuple, did_you_mean};

use crate::edge::Edge;
use crate::expr::Expr;
use crate::graph::Node;

/// The surroundings of a node, as its descriptor sees them.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The input edges in order; for a leaf, one edge with the plan's parameter tuple and its
    /// initial traits.
    pub edges: &'a [Edge],
    /// The results of the node's nested plans, in order; already verified.
    pub nested: &'a [Edge],
    /// The parameter tuple of the plan that contains the node.
    pub parameters: &'a Tuple,
    /// The types of functions.
    pub functions: &'a dyn Functions,
}

/// How a sub-operator consumes its inputs. All other inputs are *sides*: complete before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Starts a pipeline; all inputs are sides.
    Source,
    /// Streams this input, chunk by chunk.
    Stream(usize),
    /// Consumes this input completely before the first output (a pipeline breaker).
    Sink(usize),
    /// Streams all inputs, one after the other.
    Union,
}

/// How a scan can be restricted to some of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnPush {
    /// Not at all.
    None,
    /// By its output: the parameter `fields`. It needs all `columns`, such as to find them by
    /// position.
    Output,
    /// By its output and by what it reads: the parameters `fields` and `columns`.
    Read,
}

/// What a scan accepts from the nodes above it. Passes push nothing else into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushes {
    /// Which columns are needed.
    pub columns: ColumnPush,
    /// Whether it takes predicates: the parameter `filter`.
    pub predicates: bool,
    /// Whether it takes filters of keys, the parameter `filters`, and tests them before it decodes
    /// other columns.
    pub key_filters: bool,
    /// Whether it takes the threshold of a `top_k`: the parameter `threshold`.
    pub thresholds: bool,
}

impl Pushes {
    /// Nothing.
    pub const NONE: Pushes = Pushes {
        columns: ColumnPush::None,
        predicates: false,
        key_filters: false,
        thresholds: false,
    };
    /// Columns and predicates, as most scans do.
    pub const SCAN: Pushes = Pushes { columns: ColumnPush::Read, predicates: true, ..Pushes::NONE };
}

/// The definition of a sub-operator: typing, traits, blocking.
pub trait Descriptor: Send + Sync + std::fmt::Debug {
    /// The name in plans: lower case with underscores.
    fn name(&self) -> &'static str;

    /// One sentence for the reference documentation.
    fn summary(&self) -> &'static str;

    /// The names of its parameters; the verifier rejects others.
    fn parameters(&self) -> &'static [&'static str];

    /// The minimum and maximum number of inputs.
    fn arity(&self) -> (usize, usize);

    /// The number of nested plans.
    fn nested(&self) -> usize {
        0
    }

    /// Returns the parameter tuple of nested plan `index` and the initial traits of its streams.
    fn nested_input(&self, _node: &Node, _inputs: &[Edge], _index: usize) -> Result<Edge> {
        Err(Error::internal(format!("sub-operator {} has no nested plans", self.name())))
    }

    /// Checks the node and derives type, traits and order of its output.
    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge>;

    /// Checks the parameters of the nodes that produce the inputs, where types are not sufficient.
    /// `edges` are their output edges.
    fn check_producers(&self, _node: &Node, _producers: &[&Node], _edges: &[&Edge]) -> Result<()> {
        Ok(())
    }

    /// Whether the producer of its input must have no other reader, because it depends on where
    /// the producer's morsels end. With several readers, the tuples are collected first.
    fn is_only_reader(&self) -> bool {
        false
    }

    /// How it consumes its inputs; plans are divided into pipelines by this.
    fn role(&self, node: &Node) -> Role;

    /// What it accepts from the nodes above it, if it is a scan.
    fn pushes(&self) -> Pushes {
        Pushes::NONE
    }

    /// Whether platforms implement it differently.
    fn is_platform_specific(&self) -> bool {
        false
    }

    /// Whether it takes packets; all others take chunks.
    fn takes_packets(&self) -> bool {
        false
    }
}

/// The types of scalar and aggregate functions.
pub trait Functions: Send + Sync + std::fmt::Debug {
    /// Returns the result type of a scalar function, and whether the result may be NULL. An
    /// argument is its type, whether it may be NULL, and the expression, since some result types
    /// depend on constant arguments.
    fn scalar(&self, name: &str, args: &[(Atom, bool, &Expr)]) -> Result<(Atom, bool)>;

    /// Returns the result type of an aggregate function, and whether the result may be NULL.
    fn aggregate(&self, name: &str, args: &[(Atom, bool)], distinct: bool) -> Result<(Atom, bool)>;

    /// Whether a scalar function can raise an error for these arguments (see
    /// [`Functions::scalar`]). Predicates that can raise an error are not moved before others.
    fn can_raise(&self, _name: &str, _args: &[(Atom, bool, &Expr)]) -> bool {
        true
    }

    /// Whether some value of `from` cannot be converted to `to`.
    fn cast_can_raise(&self, _from: &Atom, _to: &Atom) -> bool {
        true
    }

    /// Whether each call of a scalar function may return a different value, so that calls must be
    /// neither shared nor repeated.
    fn is_volatile(&self, _name: &str) -> bool {
        false
    }
}

/// Descriptors and functions by name.
#[derive(Debug, Clone)]
pub struct OperatorCatalog {
    descriptors: BTreeMap<&'static str, Arc<dyn Descriptor>>,
    functions: Arc<dyn Functions>,
}

impl OperatorCatalog {
    /// Creates a catalog without sub-operators.
    pub fn new(functions: Arc<dyn Functions>) -> Self {
        OperatorCatalog { descriptors: BTreeMap::new(), functions }
    }

    /// Adds a descriptor; it replaces an earlier one of the same name.
    pub fn register(&mut self, descriptor: Arc<dyn Descriptor>) {
        self.descriptors.insert(descriptor.name(), descriptor);
    }

    /// Returns the descriptor of a sub-operator.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn descriptor(&self, name: &str) -> Result<&Arc<dyn Descriptor>> {
        self.descriptors.get(name).ok_or_else(|| {
            let hint = did_you_mean(name, self.descriptors.keys().copied());
            Error::semantic(format!(
                "unknown sub-operator '{name}'{hint}; docs/reference/sub-operators.md lists all"
            ))
        })
    }

    /// Returns what a sub-operator accepts from the nodes above it; nothing if it is unknown.
    pub fn pushes(&self, name: &str) -> Pushes {
        self.descriptors.get(name).map_or(Pushes::NONE, |descriptor| descriptor.pushes())
    }

    /// Iterates over all descriptors, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Descriptor>> {
        self.descriptors.values()
    }

    /// The types of functions.
    pub fn functions(&self) -> &dyn Functions {
        &*self.functions
    }
}
