//! The library's own functions of numbers as the planner sees them: typed by the library, for the arguments as written.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::Result as PlannerResult;
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tessera_ops::expression::{Library, WHOLE_QUOTIENT};
use tessera_plan::{Expr as PlanExpr, Functions, Scalar};
use tessera_types::{Atom, Result};

use crate::error::to_datafusion;
use crate::functions::not_evaluated;
use crate::types::{from_scalar_value, planning_type};

/// Functions that the planner finds under another name than the library's.
const RENAMED: [(&str, &str); 1] = [("div", WHOLE_QUOTIENT)];

/// Functions of the library that are operators and can be called, too.
const OPERATORS: [&str; 2] = ["abs", "bit_not"];

/// The functions, in place of DataFusion's of the same names.
pub(crate) fn functions(library: &Arc<Library>) -> impl Iterator<Item = Arc<ScalarUDF>> {
    let names = Library::own_functions().into_iter().chain(OPERATORS);
    names.map(|name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(NumberFunction { name, signature, library: library.clone() }))
    })
}

/// The name in the library of a function that a query names.
pub(crate) fn library_name(name: &str) -> &str {
    RENAMED.iter().find(|(written, _)| *written == name).map_or(name, |(_, own)| own)
}

#[derive(Debug)]
struct NumberFunction {
    name: &'static str,
    signature: Signature,
    library: Arc<Library>,
}

impl PartialEq for NumberFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for NumberFunction {}

impl Hash for NumberFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl NumberFunction {
    fn atom(&self, args: &[(DataType, Option<PlanExpr>)]) -> Result<Atom> {
        let dummy = PlanExpr::field("_");
        let args = args
            .iter()
            .map(|(data_type, written)| {
                Ok((Atom::from_arrow(data_type)?, true, written.as_ref().unwrap_or(&dummy)))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(self.library.scalar(self.name, &args)?.0)
    }
}

impl ScalarUDFImpl for NumberFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> PlannerResult<DataType> {
        let args: Vec<_> = args.iter().map(|data_type| (data_type.clone(), None)).collect();
        self.atom(&args).map(|atom| planning_type(&atom)).map_err(to_datafusion)
    }

    /// How many digits a decimal is rounded to decides its type.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlannerResult<FieldRef> {
        let written = args.arg_fields.iter().zip(args.scalar_arguments).map(|(field, value)| {
            let constant = value.and_then(|value| from_scalar_value(value).ok());
            let constant = constant.filter(|(value, _)| !matches!(value, Scalar::Null));
            (field.data_type().clone(), constant.map(|(value, atom)| PlanExpr::Constant(value, atom)))
        });
        let atom = self.atom(&written.collect::<Vec<_>>()).map_err(to_datafusion)?;
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name, planning_type(&atom), nullable)))
    }

    fn coerce_types(&self, args: &[DataType]) -> PlannerResult<Vec<DataType>> {
        self.return_type(args)?;
        Ok(args.to_vec())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlannerResult<ColumnarValue> {
        not_evaluated(self.name)
    }
}
