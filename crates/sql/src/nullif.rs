//! `nullif` as the planner sees it: its result has the type of its first argument, whatever it is compared with.

use arrow::datatypes::DataType;
use datafusion_common::{Result as PlannerResult, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use tessera_ops::expression::common_type;
use tessera_types::Atom;

use crate::error::to_datafusion;
use crate::functions::not_evaluated;

/// The function, in place of the planner's own, which has the type that the arguments have in common.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(NullIf { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullIf {
    signature: Signature,
}

impl ScalarUDFImpl for NullIf {
    fn name(&self) -> &str {
        "nullif"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> PlannerResult<DataType> {
        match args {
            [first, second] => Ok(if first.is_null() { second.clone() } else { first.clone() }),
            _ => plan_err!("nullif takes two arguments, not {}", args.len()),
        }
    }

    fn coerce_types(&self, args: &[DataType]) -> PlannerResult<Vec<DataType>> {
        let [first, second] = args else {
            return plan_err!("nullif takes two arguments, not {}", args.len());
        };
        let atom = |data_type: &DataType| Atom::from_arrow(data_type).map_err(to_datafusion);
        let (a, b) = (atom(first)?, atom(second)?);
        match (&a, &b) {
            (Atom::Null, _) => Ok(vec![second.clone(), second.clone()]),
            (_, Atom::Null) => Ok(vec![first.clone(), first.clone()]),
            // A text beside another type is a literal of that type.
            (Atom::String, other) if *other != Atom::String => Ok(vec![second.clone(), second.clone()]),
            (other, Atom::String) if *other != Atom::String => Ok(vec![first.clone(), first.clone()]),
            _ if common_type(&a, &b).is_some() => Ok(vec![first.clone(), second.clone()]),
            _ => plan_err!("nullif does not compare {a} with {b}; cast one of them"),
        }
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> PlannerResult<ColumnarValue> {
        not_evaluated(self.name())
    }
}
