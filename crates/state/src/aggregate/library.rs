//! Aggregate functions of DataFusion's library.
//!
//! Such a function has its own representation of states, stored here in a side table by group
//! number (the state area stores nothing). To be merged, a side table is *sealed* into the
//! function's state columns.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, UInt32Array, new_empty_array};
use arrow::compute;
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type, Schema};
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{AggregateUDF, EmitTo, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::GroupsAccumulatorAdapter;
use datafusion_physical_expr::PhysicalSortExpr;
use datafusion_physical_expr::expressions::{Column as ColumnExpr, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use tessera_functions::{argument_fields, foreign_type};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result};
use tessera_values::plain::to_form;
use tessera_vector::Column;
use tessera_vector::physical::canonical64;

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::{Aggregate, Output};

/// A library function bound to its argument types.
#[derive(Debug)]
pub struct LibrarySpec {
    udf: Arc<AggregateUDF>,
    name: String,
    fields: Vec<FieldRef>,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    order_bys: Vec<PhysicalSortExpr>,
    schema: Schema,
    return_field: FieldRef,
    /// Floating-point numbers are passed as their bits.
    by_bits: bool,
}

impl LibrarySpec {
    /// Returns whether a state is one of the values.
    pub(super) fn keeps_one(&self) -> bool {
        matches!(&*self.name, "first_value" | "last_value")
    }
}

/// A function that takes values of any type except floating-point numbers.
const APPROX_DISTINCT: &str = "approx_distinct";

/// Returns the bits of floating-point numbers, identical for equal numbers.
fn bits(numbers: &ArrayRef) -> Result<ArrayRef> {
    let numbers = compute::cast(numbers, &DataType::Float64)?;
    let bits = |number: f64| canonical64(number.to_bits()) as i64;
    Ok(Arc::new(numbers.as_primitive::<Float64Type>().unary::<_, Int64Type>(bits)))
}

/// Converts a [`DataFusionError`].
pub(super) fn library_error(error: DataFusionError) -> Error {
    match error {
        DataFusionError::ArrowError(error, _) => (*error).into(),
        DataFusionError::NotImplemented(message) => Error::unsupported(message),
        DataFusionError::Plan(message) => Error::semantic(message),
        DataFusionError::ResourcesExhausted(message) => Error::new(Code::Limit, message),
        // An error of an aggregate of ours.
        DataFusionError::External(error) => match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::data(other.to_string()),
        },
        other => Error::data(other.strip_backtrace()),
    }
}

impl LibrarySpec {
    /// Binds a function. `descending` is the direction of a `WITHIN GROUP` order, if there is one.
    ///
    /// # Errors
    /// The function does not take arguments of these types.
    pub fn new(
        udf: Arc<AggregateUDF>,
        args: &[(Atom, bool)],
        exprs: &[Expr],
        descending: Option<bool>,
    ) -> Result<LibrarySpec> {
        let mut fields = argument_fields(&udf, args)?;
        let number = fields.first_mut().filter(|field| field.data_type().is_floating());
        let number = number.filter(|_| udf.name() == APPROX_DISTINCT);
        let by_bits = number.is_some();
        if let Some(field) = number {
            *field = Arc::new(field.as_ref().clone().with_data_type(DataType::Int64));
        }
        let return_field = udf.return_field(&fields).map_err(library_error)?;
        let physical = |(i, field): (usize, &FieldRef)| -> Result<Arc<dyn PhysicalExpr>> {
            match exprs.get(i) {
                Some(Expr::Constant(value, atom)) => match literal(value, atom) {
                    Some(value) => {
                        let value = value.cast_to(field.data_type()).map_err(library_error)?;
                        Ok(Arc::new(Literal::new(value)))
                    }
                    None => Ok(Arc::new(ColumnExpr::new(field.name(), i))),
                },
                _ => Ok(Arc::new(ColumnExpr::new(field.name(), i))),
            }
        };
        let exprs = fields.iter().enumerate().map(physical).collect::<Result<Vec<_>>>()?;
        let options = |descending| compute::SortOptions { descending, nulls_first: false };
        let order_bys = match (descending, exprs.first()) {
            (Some(descending), Some(expr)) => {
                vec![PhysicalSortExpr { expr: expr.clone(), options: options(descending) }]
            }
            _ => Vec::new(),
        };
        let schema = Schema::new(fields.clone());
        let name = udf.name().to_string();
        Ok(LibrarySpec { udf, name, fields, exprs, order_bys, schema, return_field, by_bits })
    }

    fn args(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: self.return_field.clone(),
            schema: &self.schema,
            ignore_nulls: false,
            order_bys: &self.order_bys,
            is_reversed: false,
            name: &self.name,
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        }
    }

    fn accumulator(self: &Arc<Self>) -> Result<Box<dyn GroupsAccumulator>> {
        if self.udf.groups_accumulator_supported(self.args()) {
            return self.udf.create_groups_accumulator(self.args()).map_err(library_error);
        }
        // Reports an unsupported function now rather than at the first group.
        self.udf.accumulator(self.args()).map_err(library_error)?;
        let spec = self.clone();
        Ok(Box::new(GroupsAccumulatorAdapter::new(move || spec.udf.accumulator(spec.args()))))
    }
}

/// Converts a constant argument, for functions that need its value (separators, fractions,
/// positions).
fn literal(value: &Scalar, atom: &Atom) -> Option<ScalarValue> {
    Some(match (value, atom) {
        (Scalar::Null, atom) => ScalarValue::try_from(&foreign_type(&atom.arrow())).ok()?,
        (Scalar::Boolean(value), _) => ScalarValue::Boolean(Some(*value)),
        (Scalar::Integer(value), atom) if atom.is_integer() => {
            ScalarValue::Int64(Some(i64::try_from(*value).ok()?))
        }
        (Scalar::Integer(value), Atom::Decimal(precision, scale)) => {
            ScalarValue::Decimal128(Some(*value), *precision, *scale)
        }
        (Scalar::Float(value), _) => ScalarValue::Float64(Some(*value)),
        (Scalar::String(value), _) => ScalarValue::Utf8(Some(value.to_string())),
        _ => return None,
    })
}

/// The states of a library function.
pub(super) struct LibraryAggregate {
    spec: Arc<LibrarySpec>,
    accumulator: Box<dyn GroupsAccumulator>,
    sealed: Option<Vec<ArrayRef>>,
}

impl std::fmt::Debug for LibraryAggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LibraryAggregate").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl LibraryAggregate {
    /// Creates the function without groups.
    ///
    /// # Errors
    /// The function cannot be run with these arguments.
    pub(super) fn new(spec: Arc<LibrarySpec>) -> Result<Self> {
        let accumulator = spec.accumulator()?;
        let mut aggregate = LibraryAggregate { spec, accumulator, sealed: None };
        aggregate.cover(0)?;
        Ok(aggregate)
    }

    /// Extends the accumulator to all groups, including those without rows. Without a filter,
    /// accumulators assume that each group gets a value with its first call; after a call with a
    /// filter, they check each row.
    fn cover(&mut self, groups: usize) -> Result<()> {
        let empty: Vec<ArrayRef> =
            self.spec.fields.iter().map(|field| new_empty_array(field.data_type())).collect();
        let none = BooleanArray::new_null(0);
        self.accumulator.update_batch(&empty, &[], Some(&none), groups).map_err(library_error)
    }
}

impl Aggregate for LibraryAggregate {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let args = args
            .iter()
            .zip(&self.spec.fields)
            .map(|(arg, field)| match self.spec.by_bits {
                true => bits(&arg.plain()?),
                false => to_form(arg.plain()?, field.data_type()),
            })
            .collect::<Result<Vec<_>>>()?;
        let indices: Vec<usize> = (0..groups.rows).map(|row| groups.group(row) as usize).collect();
        self.accumulator.update_batch(&args, &indices, None, area.groups()).map_err(library_error)
    }

    fn seal(&mut self, area: &Area) -> Result<()> {
        if self.sealed.is_none() {
            self.cover(area.groups())?;
            self.sealed = Some(self.accumulator.state(EmitTo::All).map_err(library_error)?);
        }
        Ok(())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()> {
        let other =
            other.downcast_mut::<LibraryAggregate>().and_then(|other| other.sealed.as_ref());
        let sealed = other.ok_or_else(|| Error::internal("merge of states that are not sealed"))?;
        let rows = UInt32Array::from(pairs.rows.to_vec());
        let states = sealed
            .iter()
            .map(|column| Ok(compute::take(column, &rows, None)?))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let indices: Vec<usize> = pairs.into.iter().map(|&group| group as usize).collect();
        self.accumulator.merge_batch(&states, &indices, area.groups()).map_err(library_error)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        self.cover(area.groups())?;
        let result = self.accumulator.evaluate(EmitTo::All).map_err(library_error)?;
        to_form(result, &output.data_type)
    }

    fn memory(&self) -> usize {
        self.accumulator.size()
    }
}
