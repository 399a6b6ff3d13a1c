//! `coalesce`, `greatest` and `least` as the planner sees them: a text literal beside another type
//! is a literal of that type. The planner's own see types only, not what is a literal; they take
//! their places back once names are resolved.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result as PlannerResult, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::not_evaluated;
use crate::standard::STANDARD;
use crate::text_literals::literal_type;

const NAMES: [&str; 4] = ["coalesce", "greatest", "least", "nvl"];

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    NAMES.into_iter().filter_map(|name| {
        let standard = STANDARD.scalars.get(name)?.clone();
        Some(ScalarUDF::from(OneType { standard, signature: Signature::variadic_any(Volatility::Immutable) }))
    })
}

/// The planner's own function, where this is one of these.
pub(crate) fn standard(function: &ScalarUDF) -> Option<Arc<ScalarUDF>> {
    function.inner().downcast_ref::<OneType>().map(|own| own.standard.clone())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneType {
    standard: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for OneType {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> PlannerResult<DataType> {
        plan_err!("the type of {} is asked for without its arguments", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlannerResult<FieldRef> {
        let is_text = |at: usize| match args.scalar_arguments.get(at) {
            Some(Some(value)) => is_text_literal(value),
            _ => false,
        };
        let fields = || args.arg_fields.iter().enumerate();
        let others: Vec<DataType> =
            fields().filter(|(at, _)| !is_text(*at)).map(|(_, field)| field.data_type().clone()).collect();
        let to = literal_type(&others);
        let types: Vec<DataType> = fields()
            .map(|(at, field)| match &to {
                Some(to) if is_text(at) => to.clone(),
                _ => field.data_type().clone(),
            })
            .collect();
        let types = self.standard.coerce_types(&types)?;
        let fields: Vec<FieldRef> = args
            .arg_fields
            .iter()
            .zip(types)
            .map(|(field, data_type)| Arc::new(field.as_ref().clone().with_data_type(data_type)))
            .collect();
        self.standard.return_field_from_args(ReturnFieldArgs {
            arg_fields: &fields,
            scalar_arguments: args.scalar_arguments,
        })
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> PlannerResult<ColumnarValue> {
        not_evaluated(self.name())
    }
}

/// Whether a value is a text that is written in a statement.
pub(crate) fn is_text_literal(value: &ScalarValue) -> bool {
    value.data_type().is_string() && !value.is_null()
}
