//! The common type of operands, where ours is not DataFusion's.
//!
//! A decimal beside a double becomes a double, as in PostgreSQL; DataFusion makes both decimals,
//! which hold less. Whole numbers and doubles beside `real` are compared as doubles; DataFusion
//! takes `real`, which rounds them. A date beside a timestamp becomes one of the timestamp's unit;
//! DataFusion takes nanoseconds, which end in 2262. Times of several units, as files have them,
//! become those of the finest; DataFusion finds no type for them.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::{Column, DFSchema, NullEquality};
use datafusion_expr::expr::InSubquery;
use datafusion_expr::{
    Case, Cast, Expr, ExprSchemable, Join, LogicalPlan, Operator, Projection, TryCast, Union, Values,
    binary_expr,
};
use tessera_ops::expression::cast::check_cast;
use tessera_plan::Scalar;
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Error, SqlState};

use crate::context::Surroundings;
use crate::error::to_datafusion;
use crate::functions::as_decimal;
use crate::logical::PlannerResult;
use crate::text_literals::{is_text, literals_as_numbers, typed_columns, typed_literals};

/// Functions whose arguments have one type.
const OF_ONE_TYPE: [&str; 5] = ["coalesce", "nvl", "greatest", "least", "make_array"];

/// Functions of a list and a value of its element type.
const OF_ELEMENTS: [&str; 7] = [
    "array_append",
    "array_has",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_replace_all",
];

/// The names of the functions that compare decimals whose common type has more than 38 digits, without converting them.
fn exact_comparison(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Eq => "eq_exact",
        Operator::NotEq => "not_eq_exact",
        Operator::Lt => "lt_exact",
        Operator::LtEq => "lt_eq_exact",
        Operator::Gt => "gt_exact",
        Operator::GtEq => "gt_eq_exact",
        Operator::IsDistinctFrom => "is_distinct_exact",
        Operator::IsNotDistinctFrom => "is_not_distinct_exact",
        _ => return None,
    })
}

/// Digits before and behind the point of a decimal or an integer; a literal has those that are written.
pub(crate) fn digits(expr: Option<&Expr>, data_type: &DataType) -> Option<(i16, i16)> {
    if let Some(Expr::Literal(value, _)) = expr
        && data_type.is_integer()
        && let Ok((Scalar::Integer(number), _)) = crate::types::from_scalar_value(value)
    {
        return Some((number.unsigned_abs().checked_ilog10().map_or(1, |log| log as i16 + 1), 0));
    }
    match as_decimal(data_type)? {
        DataType::Decimal128(precision, scale) => {
            Some((i16::from(precision) - i16::from(scale), i16::from(scale)))
        }
        _ => None,
    }
}

/// Whether values of these types have no common type that holds all of them.
fn too_long(left: (i16, i16), right: (i16, i16)) -> bool {
    left.0.max(right.0) + left.1.max(right.1) > i16::from(DECIMAL_PRECISION_MAX)
}

/// A comparison as a call that converts neither side, where the common type would not hold all values.
pub(crate) fn compared_exactly(
    (left, operator, right): (&Expr, Operator, &Expr),
    schema: &DFSchema,
    surroundings: &Surroundings<'_>,
) -> Option<Expr> {
    let name = exact_comparison(operator)?;
    let (from, to) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    if let Some((left, right)) = moments_apart((left, &from), (right, &to)) {
        return Some(surroundings.number_function(name)?.call(vec![left, right]));
    }
    if !(from.is_decimal() || to.is_decimal())
        || from == to
        || !too_long(digits(Some(left), &from)?, digits(Some(right), &to)?)
    {
        return None;
    }
    Some(surroundings.number_function(name)?.call(vec![left.clone(), right.clone()]))
}

/// A timestamp in nanoseconds and a moment that 64 bits of nanoseconds may not hold: it is outside
/// of the years 1678 to 2261, or a column's. A text becomes such a moment.
fn moments_apart(left: (&Expr, &DataType), right: (&Expr, &DataType)) -> Option<(Expr, Expr)> {
    let nanos = |data_type: &DataType| matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, _));
    let other = |(fine, fine_type): (&Expr, &DataType), (expr, data_type): (&Expr, &DataType)| {
        let DataType::Timestamp(TimeUnit::Nanosecond, zone) = fine_type else { return None };
        let alike = match data_type {
            DataType::Timestamp(_, other) => zone.is_some() == other.is_some() && !nanos(data_type),
            DataType::Date32 => zone.is_none(),
            other => other.is_string() && matches!(expr, Expr::Literal(..)),
        };
        if !alike || is_null(fine) || is_null(expr) || has_nanos(expr, fine_type) {
            return None;
        }
        let mut found = expr.clone();
        if data_type.is_string() {
            cast(&mut found, DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
        }
        Some(found)
    };
    match other(left, right) {
        Some(right) => Some((left.0.clone(), right)),
        None => Some((other(right, left)?, right.0.clone())),
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// Whether a literal is a moment that nanoseconds hold.
pub(crate) fn has_nanos(expr: &Expr, nanos: &DataType) -> bool {
    match expr {
        Expr::Literal(value, _) => value.cast_to(nanos).is_ok(),
        Expr::Cast(cast) => matches!(&*cast.expr, Expr::Literal(value, _) if value.cast_to(nanos).is_ok()),
        _ => false,
    }
}

/// `BETWEEN` and `IN` by such comparisons, where one of theirs is one.
pub(crate) fn list_compared_exactly(
    expr: &Expr,
    schema: &DFSchema,
    surroundings: &Surroundings<'_>,
) -> Option<Expr> {
    let concerned = |expr: &Expr| {
        expr.get_type(schema).is_ok_and(|data_type| {
            data_type.is_decimal() || matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, _))
        })
    };
    let any = match expr {
        Expr::Between(between) => {
            [&between.expr, &between.low, &between.high].into_iter().any(|e| concerned(e))
        }
        Expr::InList(list) => concerned(&list.expr) || list.list.iter().any(concerned),
        _ => false,
    };
    if !any {
        return None;
    }
    let mut found = false;
    let mut compare = |left: &Expr, operator: Operator, right: &Expr| match compared_exactly(
        (left, operator, right),
        schema,
        surroundings,
    ) {
        Some(call) => {
            found = true;
            call
        }
        None => {
            let (mut left, mut right) = (left.clone(), right.clone());
            unify_as_compared(vec![&mut left, &mut right], schema);
            binary_expr(left, operator, right)
        }
    };
    let (whole, negated) = match expr {
        Expr::Between(between) if !between.expr.is_volatile() => {
            let low = compare(&between.expr, Operator::GtEq, &between.low);
            (low.and(compare(&between.expr, Operator::LtEq, &between.high)), between.negated)
        }
        Expr::InList(list) if !list.expr.is_volatile() => {
            let equal = list.list.iter().map(|item| compare(&list.expr, Operator::Eq, item));
            (equal.reduce(Expr::or)?, list.negated)
        }
        _ => return None,
    };
    found.then(|| if negated { Expr::Not(Box::new(whole)) } else { whole })
}

/// `CASE operand WHEN …` as a CASE of such comparisons, where one of them is one. Whether it
/// changed.
pub(crate) fn case_compared_exactly(
    case: &mut Case,
    schema: &DFSchema,
    surroundings: &Surroundings<'_>,
) -> bool {
    let Some(operand) = case.expr.take_if(|operand| !operand.is_volatile()) else { return false };
    let exact = |when: &Expr| compared_exactly((&operand, Operator::Eq, when), schema, surroundings);
    if !case.when_then_expr.iter().any(|(when, _)| exact(when).is_some()) {
        case.expr = Some(operand);
        return false;
    }
    for (when, _) in &mut case.when_then_expr {
        **when = exact(when).unwrap_or_else(|| {
            let (mut left, mut right) = ((*operand).clone(), (**when).clone());
            unify_as_compared(vec![&mut left, &mut right], schema);
            binary_expr(left, Operator::Eq, right)
        });
    }
    true
}

/// Casts values that become one column to their common type, where it is not the one that
/// DataFusion would find. Whether it did.
pub(crate) fn unify(mut operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let typed = typed_literals(&mut operands, schema) || literals_as_numbers(&mut operands, schema);
    unify_as(column_type, operands, schema) || typed
}

/// The same of operands that are compared or computed with.
fn unify_as_compared(operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    unify_as(common, operands, schema)
}

fn unify_as(
    common: impl Fn(&[DataType]) -> Option<DataType>,
    operands: Vec<&mut Expr>,
    schema: &DFSchema,
) -> bool {
    let types: Vec<Option<DataType>> = operands.iter().map(|expr| expr.get_type(schema).ok()).collect();
    let known: Vec<DataType> = types.iter().flatten().cloned().collect();
    let Some(common) = common(&known) else { return false };
    let mut changed = false;
    for (operand, from) in operands.into_iter().zip(types) {
        if from.is_some_and(|from| gives_way(&from, &common)) {
            cast(operand, common.clone());
            changed = true;
        }
    }
    changed
}

/// The same, and a text beside a timestamp becomes one of microseconds at least. DataFusion
/// takes nanoseconds.
///
/// # Errors
/// Two of them can in no way be compared. DataFusion casts one to the other's type all the same.
pub(crate) fn unify_compared(mut operands: Vec<&mut Expr>, schema: &DFSchema) -> PlannerResult<bool> {
    let types: Vec<Option<DataType>> = operands.iter().map(|expr| expr.get_type(schema).ok()).collect();
    let atoms: Vec<Atom> =
        types.iter().flatten().filter_map(|data_type| Atom::from_arrow(data_type).ok()).collect();
    for pair in atoms.windows(2) {
        let [left, right] = pair else { continue };
        if check_cast(left, right).is_err() && check_cast(right, left).is_err() {
            let message = format!("{left} and {right} cannot be compared; cast one to the type of the other");
            return Err(to_datafusion(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)));
        }
    }
    let moment = finest_moment(types.iter().flatten());
    let mut changed = typed_literals(&mut operands, schema);
    if let Some(DataType::Timestamp(unit, zone)) = moment {
        let moment = DataType::Timestamp((*unit).max(TimeUnit::Microsecond), zone.clone());
        for (operand, from) in operands.iter_mut().zip(&types) {
            if from.as_ref().is_some_and(DataType::is_string) {
                cast(operand, moment.clone());
                changed = true;
            }
        }
    }
    Ok(unify_as_compared(operands, schema) || changed)
}

pub(crate) fn cast(operand: &mut Expr, to: DataType) {
    let inner = std::mem::take(operand);
    *operand = Expr::Cast(Cast::new(Box::new(inner), to));
}

/// The type of a column that has values of several types: the one in which they are compared,
/// but decimals and whole numbers beside `real` become `real`.
fn column_type(types: &[DataType]) -> Option<DataType> {
    match common(types)? {
        DataType::Float64 if !types.contains(&DataType::Float64) => Some(DataType::Float32),
        common => Some(common),
    }
}

/// The type that a mixture of types is brought to; none where DataFusion does right.
fn common(types: &[DataType]) -> Option<DataType> {
    let any = |test: fn(&DataType) -> bool| types.iter().any(test);
    let double = |data_type: &DataType| {
        data_type.is_decimal() || data_type.is_integer() || *data_type == DataType::Float64
    };
    if any(DataType::is_floating) && any(DataType::is_decimal)
        || types.contains(&DataType::Float32) && types.iter().any(double)
    {
        return Some(DataType::Float64);
    }
    let times = types.iter().filter(|data_type| is_time(data_type));
    if let Some(finest) = times.clone().max_by_key(|data_type| time_unit(data_type))
        && times.clone().any(|data_type| data_type != finest)
    {
        return Some(finest.clone());
    }
    // One with a time zone, where there is one.
    let in_zone = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, Some(_)));
    let without = |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Timestamp(_, None));
    let mixed = any(|data_type| *data_type == DataType::Date32)
        || (types.iter().any(in_zone) && types.iter().any(without));
    finest_moment(types.iter()).filter(|_| mixed).cloned()
}

/// The timestamp type that holds those of the others.
pub(crate) fn finest_moment<'a>(types: impl Iterator<Item = &'a DataType>) -> Option<&'a DataType> {
    let moments = types.filter(|data_type| matches!(data_type, DataType::Timestamp(..)));
    moments.max_by_key(|data_type| match data_type {
        DataType::Timestamp(unit, zone) => (zone.is_some(), *unit),
        _ => (false, TimeUnit::Second),
    })
}

fn is_time(data_type: &DataType) -> bool {
    time_unit(data_type).is_some()
}

/// The unit of a time of day.
pub(crate) fn time_unit(data_type: &DataType) -> Option<TimeUnit> {
    match data_type {
        DataType::Time32(unit) | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}

/// Whether a value of type `from` is cast in a mixture of this common type.
fn gives_way(from: &DataType, common: &DataType) -> bool {
    match common {
        DataType::Time32(_) | DataType::Time64(_) => is_time(from) && from != common,
        DataType::Float64 => from.is_decimal() || *from == DataType::Float32,
        DataType::Float32 => from.is_decimal(),
        DataType::Timestamp(_, Some(_)) => matches!(from, DataType::Date32 | DataType::Timestamp(_, None)),
        _ => *from == DataType::Date32,
    }
}

/// The arguments of a call, where they have one type.
pub(crate) fn arguments(name: &str, args: &mut [Expr], schema: &DFSchema) -> bool {
    if OF_ONE_TYPE.contains(&name) {
        return unify(args.iter_mut().collect(), schema);
    }
    if let ([list, value, ..], true) = (&mut *args, OF_ELEMENTS.contains(&name))
        && let (Ok(DataType::List(item)), Ok(from)) = (list.get_type(schema), value.get_type(schema))
        && item.data_type().is_floating()
        && from.is_decimal()
    {
        cast(value, item.data_type().clone());
        return true;
    }
    false
}

/// The longest type for decimals whose common type would have more than 38 digits, and nanoseconds
/// for timestamps of which one has them.
fn narrow_common([left, right]: &[DataType; 2]) -> Option<DataType> {
    for (fine, other) in [(left, right), (right, left)] {
        match (fine, other) {
            (DataType::Timestamp(TimeUnit::Nanosecond, zone), DataType::Timestamp(unit, other))
                if *unit != TimeUnit::Nanosecond && zone.is_some() == other.is_some() =>
            {
                return Some(fine.clone());
            }
            (DataType::Timestamp(TimeUnit::Nanosecond, None), DataType::Date32) => {
                return Some(fine.clone());
            }
            _ => {}
        }
    }
    let (a, b) = (digits(None, left)?, digits(None, right)?);
    let decimals = left.is_decimal() || right.is_decimal();
    (decimals && left != right && too_long(a, b))
        .then(|| DataType::Decimal128(DECIMAL_PRECISION_MAX, a.1.max(b.1) as i8))
}

/// The two sides of each equality of a join.
pub(crate) fn join(mut join: Join) -> PlannerResult<LogicalPlan> {
    let mut nulls = Vec::new();
    for (left, right) in &mut join.on {
        let types = [left.get_type(join.left.schema())?, right.get_type(join.right.schema())?];
        if let Some(common) = narrow_common(&types) {
            // What does not fit the common type equals nothing of the other side, and is not its
            // NULL.
            if join.null_equality == NullEquality::NullEqualsNull {
                nulls.push((left.clone().is_null(), right.clone().is_null()));
            }
            for side in [left, right] {
                let inner = std::mem::take(side);
                *side = Expr::TryCast(TryCast::new(Box::new(inner), common.clone()));
            }
            continue;
        }
        if let Some(DataType::Timestamp(unit, zone)) = finest_moment(types.iter())
            && types.iter().any(DataType::is_string)
        {
            // DataFusion takes nanoseconds.
            let moment = DataType::Timestamp((*unit).max(TimeUnit::Microsecond), zone.clone());
            for (side, from) in [left, right].into_iter().zip(&types) {
                if from.is_string() {
                    cast(side, moment.clone());
                }
            }
            continue;
        }
        // The sides of INTERSECT and EXCEPT, which treat NULLs as equal, become one column.
        let common = match join.null_equality {
            NullEquality::NullEqualsNull => column_type(&types),
            NullEquality::NullEqualsNothing => common(&types),
        };
        let Some(common) = common else { continue };
        for (side, from) in [left, right].into_iter().zip(&types) {
            if gives_way(from, &common) {
                cast(side, common.clone());
            }
        }
    }
    join.on.extend(nulls);
    Ok(LogicalPlan::Join(join))
}

/// The value and the column of `value IN (SELECT column …)`. Whether it changed.
pub(crate) fn in_subquery(test: &mut InSubquery, schema: &DFSchema) -> PlannerResult<bool> {
    let inner = test.subquery.subquery.clone();
    let (Ok(value), Some(column)) = (test.expr.get_type(schema), inner.schema().fields().first()) else {
        return Ok(false);
    };
    let types = [value, column.data_type().clone()];
    if let Some(common) = narrow_common(&types).filter(|_| !test.negated) {
        let value = std::mem::take(&mut *test.expr);
        *test.expr = Expr::TryCast(TryCast::new(Box::new(value), common.clone()));
        test.subquery.subquery = converted_columns(inner, &[Some(common)], true)?;
        return Ok(true);
    }
    let Some(common) = common(&types) else { return Ok(false) };
    if gives_way(&types[0], &common) {
        cast(&mut test.expr, common.clone());
    }
    if gives_way(&types[1], &common) {
        test.subquery.subquery = cast_columns(inner, &[Some(common)])?;
    }
    Ok(true)
}

/// The rows of VALUES, of which the planner has cast what is not of the type it found.
pub(crate) fn values(mut values: Values) -> Values {
    let schema = DFSchema::empty();
    for (column, field) in values.schema.fields().iter().enumerate() {
        // One of the values is a double, and so are all. A cast of the user's looks like the
        // planner's.
        if *field.data_type() == DataType::Float64 {
            continue;
        }
        let given = |row: &Vec<Expr>| row.get(column).map(|expr| uncast(expr, field.data_type()).clone());
        let mut exprs: Vec<Expr> = values.values.iter().filter_map(given).collect();
        if unify(exprs.iter_mut().collect(), &schema) {
            for (row, expr) in values.values.iter_mut().zip(exprs) {
                row[column] = expr;
            }
        }
    }
    values
}

/// What a cast to this type casts; an expression that is no such cast stays, and so does a text
/// literal, which may have been given its type.
fn uncast<'a>(expr: &'a Expr, to: &DataType) -> &'a Expr {
    match expr {
        Expr::Cast(cast) if cast.field.data_type() == to && !is_text(&cast.expr) => &cast.expr,
        other => other,
    }
}

/// The inputs of a union.
pub(crate) fn union(mut union: Union) -> PlannerResult<Union> {
    typed_columns(&mut union)?;
    let columns = union.inputs.first().map_or(0, |input| input.schema().fields().len());
    let types = |input: &LogicalPlan, column: usize| {
        input.schema().fields().get(column).map(|field| field.data_type().clone())
    };
    let common: Vec<Option<DataType>> = (0..columns)
        .map(|column| {
            let all: Vec<DataType> = union.inputs.iter().filter_map(|input| types(input, column)).collect();
            // The planner takes the first input's type until it has found the common one: what
            // looks at a union before sees floats at once.
            let float = [DataType::Float64, DataType::Float32].into_iter().find(|float| all.contains(float));
            column_type(&all).or(float.filter(|_| all.iter().any(DataType::is_integer)))
        })
        .collect();
    for input in &mut union.inputs {
        let wanted: Vec<Option<DataType>> = common
            .iter()
            .enumerate()
            .map(|(column, common)| {
                let common = common.as_ref()?;
                let gives_way =
                    |from: &DataType| gives_way(from, common) || (common.is_floating() && from.is_integer());
                types(input, column).filter(gives_way).map(|_| common.clone())
            })
            .collect();
        if wanted.iter().any(Option::is_some) {
            *input = cast_columns(input.clone(), &wanted)?;
        }
    }
    Ok(union)
}

/// The plan with some columns cast, all under their names.
pub(crate) fn cast_columns(
    plan: std::sync::Arc<LogicalPlan>,
    types: &[Option<DataType>],
) -> PlannerResult<std::sync::Arc<LogicalPlan>> {
    converted_columns(plan, types, false)
}

/// The same; `safe`: what does not convert becomes NULL.
fn converted_columns(
    plan: std::sync::Arc<LogicalPlan>,
    types: &[Option<DataType>],
    safe: bool,
) -> PlannerResult<std::sync::Arc<LogicalPlan>> {
    let exprs = plan
        .schema()
        .iter()
        .enumerate()
        .map(|(index, (qualifier, field))| {
            let column = Expr::Column(Column::from((qualifier, field)));
            match types.get(index).cloned().flatten() {
                Some(to) => {
                    let cast = match safe {
                        true => Expr::TryCast(TryCast::new(Box::new(column), to)),
                        false => Expr::Cast(Cast::new(Box::new(column), to)),
                    };
                    cast.alias_qualified(qualifier.cloned(), field.name())
                }
                None => column,
            }
        })
        .collect();
    Ok(std::sync::Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, plan)?)))
}
