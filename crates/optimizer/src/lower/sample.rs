//! Lowering of samples.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Scalar, Value};
use tessera_types::{Atom, Field, Result, Tuple};

use super::node::add;
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Name, Relation};

impl Lowering<'_> {
    /// Lowers a sample: its percentage, the size of its blocks, its seed, and the field for the
    /// random numbers.
    pub(super) fn sample(
        &mut self,
        input: &Relation,
        (percent, block, seed, into): (f64, u64, &Expr, Option<&Name>),
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let mut below = needed.clone();
        into.iter().for_each(|into| {
            below.remove(*into);
        });
        let lowered = self.lower(input, &below, level)?;
        let percent = Expr::Constant(Scalar::Float(percent), Atom::Float64);
        let mut params = Params::new().with("percent", percent).with("seed", seed.clone());
        if block > 1 {
            params.set("block", block as i64);
        }
        let mut fields = lowered.tuple.fields().to_vec();
        if let Some(into) = into {
            params.set("into", Value::Expr(Expr::Field(into.clone())));
            fields.push(Field::new(into.clone(), Atom::Int64));
        }
        Ok(add(level, "sample", &[lowered.id], params, Tuple::new(fields)))
    }
}
