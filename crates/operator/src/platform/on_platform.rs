//! What a platform brings for a sub-operator that means the same on every platform.

use std::fmt::Debug;

use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::Result;

use crate::{Lowering, Operator, SubOperator};

/// How a platform runs a sub-operator.
pub trait Runtime: Debug + Send + Sync {
    /// As [`SubOperator::lower`].
    ///
    /// # Errors
    /// The platform cannot run this node.
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator>;
}

/// A sub-operator that means what the abstract one `M` says and is run as the platform's `R` says.
#[derive(Debug, Clone, Copy)]
pub struct OnPlatform<M, R> {
    meaning: M,
    runtime: R,
}

impl<M, R> OnPlatform<M, R> {
    /// The two in one, to be registered in the place of the abstract sub-operator.
    pub fn new(meaning: M, runtime: R) -> Self {
        OnPlatform { meaning, runtime }
    }
}

impl<M: Descriptor, R: Runtime> Descriptor for OnPlatform<M, R> {
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

    fn of_platform(&self) -> bool {
        self.meaning.of_platform()
    }

    fn takes_packets(&self) -> bool {
        self.meaning.takes_packets()
    }
}

impl<M: Descriptor, R: Runtime> SubOperator for OnPlatform<M, R> {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        self.runtime.lower(node, lowering)
    }
}
