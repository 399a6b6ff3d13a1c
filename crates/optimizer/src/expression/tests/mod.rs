//! Tests of the expression rules.

mod rules;
mod simplify;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use tessera_functions::testing::*;
use tessera_functions::{BoundExpr, Library};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Result, Tuple};
use tessera_values::scalar::scalar_to_array;
use tessera_vector::Chunk;
