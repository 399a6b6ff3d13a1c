//! The types of text literals beside other types in the planner's expressions: PostgreSQL reads
//! such a literal as one of the type that the others have.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::DFSchema;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, Union};
use tessera_types::DECIMAL_PRECISION_MAX;

use crate::common_types::{cast, cast_columns, digits, finest_moment, has_nanos};
use crate::logical::PlannerResult;
use crate::one_type::is_text_literal;

/// Casts text literals beside numbers of one column to a type of numbers that holds them. Whether
/// there are some.
pub(crate) fn literals_as_numbers(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let texts: Vec<String> = operands.iter().filter_map(|expr| text_of(expr)).collect();
    let others = operands.iter().filter(|expr| !is_text(expr));
    let types: Vec<DataType> = others.filter_map(|expr| expr.get_type(schema).ok()).collect();
    let Some(to) = number_type(&types, &texts).filter(|_| !texts.is_empty()) else { return false };
    for operand in operands.iter_mut().filter(|expr| is_text(expr)) {
        cast(operand, to.clone());
    }
    true
}

/// The type of text literals beside numbers of these types; decimals keep all digits of the
/// literals.
fn number_type(types: &[DataType], texts: &[String]) -> Option<DataType> {
    let types: Vec<&DataType> = types.iter().filter(|data_type| !data_type.is_null()).collect();
    if types.is_empty() || !types.iter().all(|data_type| data_type.is_numeric()) {
        return None;
    }
    if let Some(float) = types.iter().find(|data_type| data_type.is_floating()) {
        let single = types.iter().all(|data_type| **data_type == DataType::Float32);
        return Some(if single { (*float).clone() } else { DataType::Float64 });
    }
    let scales = types.iter().filter_map(|data_type| digits(None, data_type)).map(|(_, scale)| scale);
    let scale = scales.max()?;
    if types.iter().all(|data_type| data_type.is_integer()) {
        let width = |data_type: &&&DataType| data_type.primitive_width();
        return types.iter().max_by_key(width).map(|widest| (*widest).clone());
    }
    let fraction = |text: &String| {
        let digits = text.split(['e', 'E']).next().and_then(|text| text.split_once('.'));
        digits.map_or(0, |(_, digits)| digits.trim_end().len().min(37) as i16)
    };
    let scale = texts.iter().map(fraction).fold(scale, i16::max);
    Some(DataType::Decimal128(DECIMAL_PRECISION_MAX, i8::try_from(scale).ok()?))
}

fn text_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(value, _) if is_text_literal(value) => value.try_as_str().flatten().map(str::to_string),
        _ => None,
    }
}

/// Casts text literals among operands of one type to the type of the others. Whether there are
/// some.
pub(crate) fn typed_literals(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    if !operands.iter().any(|expr| is_text(expr)) {
        return false;
    }
    let others = operands.iter().filter(|expr| !is_text(expr));
    let types: Vec<DataType> = others.filter_map(|expr| expr.get_type(schema).ok()).collect();
    let Some(to) = literal_type(&types) else { return false };
    for operand in operands.iter_mut().filter(|expr| is_text(expr)) {
        let to = holding(&to, operand);
        cast(operand, to);
    }
    true
}

/// The type for a literal beside values of this one: nanoseconds end in 2262, and a literal beyond
/// is in microseconds.
pub(crate) fn holding(to: &DataType, literal: &Expr) -> DataType {
    match to {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if !has_nanos(literal, to) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        _ => to.clone(),
    }
}

pub(crate) fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if is_text_literal(value))
}

/// The type of a text literal beside values of these types; none where it is a text or a number,
/// which the planner sees to.
pub(crate) fn literal_type(types: &[DataType]) -> Option<DataType> {
    use DataType::{Binary, Boolean, Date32, Interval, List, Time32, Time64, Timestamp};
    let mut types = types.iter().filter(|data_type| !data_type.is_null()).peekable();
    let first = (*types.peek()?).clone();
    let all: Vec<&DataType> = types.collect();
    if let Some(Timestamp(unit, zone)) = finest_moment(all.iter().copied()) {
        let fits = all.iter().all(|data_type| matches!(data_type, Timestamp(..) | Date32));
        return fits.then(|| Timestamp((*unit).max(TimeUnit::Microsecond), zone.clone()));
    }
    let takes = matches!(first, Binary | Boolean | Date32 | Interval(_) | List(_) | Time32(_) | Time64(_));
    (takes && all.iter().all(|data_type| **data_type == first)).then_some(first)
}

/// Gives literals of text that are columns of an input the type that the others have there, as
/// PostgreSQL does.
pub(crate) fn typed_columns(union: &mut Union) -> PlannerResult<()> {
    let columns = union.inputs.first().map_or(0, |input| input.schema().fields().len());
    for column in 0..columns {
        let data_type = |input: &LogicalPlan| Some(input.schema().fields().get(column)?.data_type().clone());
        let literals: Vec<Option<String>> =
            union.inputs.iter().map(|input| literal_column(input, column)).collect();
        let others = union.inputs.iter().zip(&literals).filter(|(_, literal)| literal.is_none());
        let types: Vec<DataType> = others.filter_map(|(input, _)| data_type(input)).collect();
        let texts: Vec<String> = literals.iter().flatten().cloned().collect();
        let to = literal_type(&types).or_else(|| number_type(&types, &texts)).filter(|_| !texts.is_empty());
        let Some(to) = to else { continue };
        for (input, literal) in union.inputs.iter_mut().zip(literals) {
            if literal.is_some() {
                let mut wanted = vec![None; columns];
                wanted[column] = Some(to.clone());
                *input = cast_columns(input.clone(), &wanted)?;
            }
        }
    }
    Ok(())
}

/// The text that a column of a plan is, where it is written there.
fn literal_column(plan: &LogicalPlan, column: usize) -> Option<String> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let mut expr = projection.expr.get(column);
    while let Some(Expr::Alias(alias)) = expr {
        expr = Some(&alias.expr);
    }
    expr.and_then(text_of)
}
