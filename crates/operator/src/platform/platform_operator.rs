//! The combination of a platform-independent descriptor with a platform's implementation.

use std::fmt::Debug;

use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::Result;

use crate::{Lowering, Operator, SubOperator};

/// A platform's implementation of a sub-operator.
pub trait Runtime: Debug + Send + Sync {
    /// Like [`SubOperator::lower`].
    ///
    /// # Errors
    /// The platform cannot run this node.
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator>;
}

/// A sub-operator with the descriptor `M`, run by the platform's implementation `R`.
#[derive(Debug, Clone, Copy)]
pub struct PlatformOperator<M, R> {
    meaning: M,
    runtime: R,
}

impl<M, R> PlatformOperator<M, R> {
    /// Combines the two; the result is registered in place of the abstract sub-operator.
    pub fn new(meaning: M, runtime: R) -> Self {
        PlatformOperator { meaning, runtime }
    }
}

impl<M: Descriptor, R: Runtime> Descriptor for PlatformOperator<M, R> {
    fn name(&self) -> &'static str {
        self.meaning.name()
    }

    fn summary(&self) -> &'static str {
        self.meaning.summary()
    }

    fn parameters(&self) -> &'static [&'static str] {
        self.meaning.parameters()
    }

    fn arity(&self) -> (usize, usize) {
        self.meaning.arity()
    }

    fn nested(&self) -> usize {
        self.meaning.nested()
    }

    fn nested_input(&self, node: &Node, inputs: &[Edge], index: usize) -> Result<Edge> {
        self.meaning.nested_input(node, inputs, index)
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        self.meaning.derive(node, inputs)
    }

    fn check_producers(&self, node: &Node, producers: &[&Node], edges: &[&Edge]) -> Result<()> {
        self.meaning.check_producers(node, producers, edges)
    }

    fn role(&self, node: &Node) -> Role {
        self.meaning.role(node)
    }

    fn is_platform_specific(&self) -> bool {
        self.meaning.is_platform_specific()
    }

    fn takes_packets(&self) -> bool {
        self.meaning.takes_packets()
    }
}

impl<M: Descriptor, R: Runtime> SubOperator for PlatformOperator<M, R> {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        self.runtime.lower(node, lowering)
    }
}
