//! Functions of the library that stand before DataFusion's of the same names: the planner types them by asking the library.

use std::collections::HashMap;
use std::fmt::{Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result as PlannerResult, internal_err};
use datafusion_expr::{
    ColumnarValue, Expr as Logical, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use tessera_ops::expression::{Library, moments_and_texts};
use tessera_plan::{Expr, Functions};
use tessera_types::{Atom, Result};

use crate::error::to_datafusion;
use crate::functions::not_evaluated;
use crate::types::{from_scalar_value, planning_type};

/// The functions by name. Their types depend on no session, so that they are made once.
pub(crate) static OWN: LazyLock<HashMap<&'static str, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let library = Arc::new(Library::new());
    let function = |name: &'static str| {
        let signature = TypeSignature::OneOf(vec![TypeSignature::VariadicAny, TypeSignature::Nullary]);
        let signature = Signature::new(signature, Volatility::Immutable);
        (name, Arc::new(ScalarUDF::from(Own { name, signature, library: library.clone() })))
    };
    moments_and_texts().map(function).collect()
});

/// A call of such a function.
pub(crate) fn call(name: &str, args: Vec<Logical>) -> PlannerResult<Logical> {
    match OWN.get(name) {
        Some(function) => Ok(function.call(args)),
        None => internal_err!("the library has no function {name}"),
    }
}

struct Own {
    name: &'static str,
    signature: Signature,
    library: Arc<Library>,
}

impl Debug for Own {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Own {}

impl Hash for Own {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Own {
    fn typed(&self, args: &ReturnFieldArgs<'_>) -> Result<(Atom, bool)> {
        let column = Expr::field("_");
        let constants = args
            .scalar_arguments
            .iter()
            .map(|value| {
                let value = value.map(from_scalar_value).transpose()?;
                Ok(value.map(|(value, atom)| Expr::Constant(value, atom)))
            })
            .collect::<Result<Vec<_>>>()?;
        let exprs = constants.iter().map(|constant| constant.as_ref().unwrap_or(&column));
        let given = args
            .arg_fields
            .iter()
            .zip(exprs)
            .map(|(field, expr)| Ok((Atom::from_arrow(field.data_type())?, field.is_nullable(), expr)))
            .collect::<Result<Vec<_>>>()?;
        self.library.scalar(self.name, &given)
    }
}

impl ScalarUDFImpl for Own {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlannerResult<DataType> {
        internal_err!("the type of {} depends on its arguments", self.name)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlannerResult<FieldRef> {
        let (atom, nullable) = self.typed(&args).map_err(to_datafusion)?;
        Ok(Arc::new(Field::new(self.name, planning_type(&atom), nullable)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlannerResult<ColumnarValue> {
        not_evaluated(self.name)
    }
}
