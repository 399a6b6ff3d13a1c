//! Tessera's own functions as DataFusion's planner sees them.
//!
//! Arithmetic goes to functions of the library (`add`, `sub`, …) whose result types and checks are ours; the planner
//! meets them as scalar functions that it can type, and never computes itself.

use std::fmt::{Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit};
use datafusion_common::{Result as PlannerResult, internal_err, not_impl_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tessera_encodings::Chunk;
use tessera_ops::expression::Library;
use tessera_ops::{Context, RangeReader, Run};
use tessera_plan::{Expr as PlanExpr, Functions};
use tessera_types::{Atom, Error, Result, SqlState, Tuple};

use crate::common_types::time_unit;
use crate::error::to_datafusion;
use crate::types::planning_type;

/// Operators that become functions of ours: the function, the sign its column headers show.
const OPERATORS: [(&str, &str); 6] =
    [("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("mod", "%"), ("neg", "-")];

/// From this many operators in a chain on, a call is named by a number instead of its text. The planner writes the name
/// of every sub-expression whenever it asks for a type, which makes chains of hundreds of terms take minutes.
const SPELT_OUT_MAX: usize = 32;

/// The scalar functions behind the arithmetic operators.
#[derive(Debug, Clone)]
pub(crate) struct Arithmetic {
    functions: Vec<Arc<ScalarUDF>>,
    library: Arc<Library>,
}

impl Arithmetic {
    pub(crate) fn new(library: &Arc<Library>) -> Self {
        let function = |(name, sign)| Arc::new(operator(name, sign, None, library));
        Arithmetic { functions: OPERATORS.into_iter().map(function).collect(), library: library.clone() }
    }

    /// Where the functions are.
    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// One of the functions, for a call by its name.
    pub(crate) fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.functions.iter().find(|function| function.name() == name).cloned()
    }

    /// A call of one of the functions.
    pub(crate) fn call(&self, name: &str, args: Vec<Expr>) -> PlannerResult<Expr> {
        match self.functions.iter().find(|function| function.name() == name) {
            Some(function) if args.first().is_some_and(is_long) => {
                let number = structure(function.name(), &args);
                let found = OPERATORS.into_iter().find(|(other, _)| *other == name);
                let named = found.map(|(name, sign)| operator(name, sign, Some(number), &self.library));
                match named {
                    Some(named) => Ok(named.call(args)),
                    None => Ok(function.call(args)),
                }
            }
            Some(function) => Ok(function.call(args)),
            None => plan_err!("there is no operator {name}"),
        }
    }
}

fn operator(
    name: &'static str,
    sign: &'static str,
    number: Option<[u64; 2]>,
    library: &Arc<Library>,
) -> ScalarUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    ScalarUDF::from(Operator { name, sign, number, signature, library: library.clone() })
}

/// Whether at least [`SPELT_OUT_MAX`] calls stand one in the first operand of the other.
fn is_long(expr: &Expr) -> bool {
    let mut next = Some(expr);
    for _ in 0..SPELT_OUT_MAX {
        next = match next {
            Some(Expr::ScalarFunction(call)) => call.args.first(),
            _ => return false,
        };
    }
    true
}

/// A number that equal calls share and others do not: two hashes of its structure.
fn structure(name: &str, args: &[Expr]) -> [u64; 2] {
    [0u64, 1].map(|seed| {
        let mut hasher = std::hash::DefaultHasher::new();
        (seed, name, args).hash(&mut hasher);
        hasher.finish()
    })
}

struct Operator {
    name: &'static str,
    sign: &'static str,
    /// What a long call is named by.
    number: Option<[u64; 2]>,
    signature: Signature,
    library: Arc<Library>,
}

impl Debug for Operator {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Operator {}

impl Hash for Operator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Operator {
    fn written(&self, args: Vec<String>) -> String {
        match &args[..] {
            [only] => format!("{}{only}", self.sign),
            _ => args.join(&format!(" {} ", self.sign)),
        }
    }
}

fn bracketed(text: String, arg: &Expr) -> String {
    let plain = matches!(arg, Expr::Column(_) | Expr::Literal(..) | Expr::Alias(_));
    if plain || !text.contains(' ') { text } else { format!("({text})") }
}

impl ScalarUDFImpl for Operator {
    fn name(&self) -> &str {
        self.name
    }

    fn display_name(&self, args: &[Expr]) -> PlannerResult<String> {
        if let Some([high, low]) = self.number {
            return Ok(format!("{}#{high:016x}{low:016x}", self.name));
        }
        Ok(self.written(args.iter().map(|arg| bracketed(arg.to_string(), arg)).collect()))
    }

    fn schema_name(&self, args: &[Expr]) -> PlannerResult<String> {
        if let Some([high, low]) = self.number {
            return Ok(format!("{}#{high:016x}{low:016x}", self.name));
        }
        Ok(self.written(args.iter().map(|arg| bracketed(arg.schema_name().to_string(), arg)).collect()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> PlannerResult<DataType> {
        let wanted = self.coerce_types(args)?;
        result_type(self.name, &wanted, &self.library).map_err(to_datafusion)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlannerResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, nullable)))
    }

    fn coerce_types(&self, args: &[DataType]) -> PlannerResult<Vec<DataType>> {
        match args {
            [DataType::Null] => Ok(vec![DataType::Int32]),
            [DataType::Duration(_)] => Ok(vec![DataType::Interval(IntervalUnit::MonthDayNano)]),
            [one] => Ok(vec![one.clone()]),
            [left, right] => match operand_types(self.name, left, right) {
                Some((left, right)) => Ok(vec![left, right]),
                None => plan_err!(
                    "operator {} does not take {} and {}; cast one of them",
                    self.sign,
                    shown(left),
                    shown(right)
                ),
            },
            _ => plan_err!("operator {} takes one or two operands", self.sign),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlannerResult<ColumnarValue> {
        not_evaluated(self.name)
    }
}

fn shown(data_type: &DataType) -> String {
    Atom::from_arrow(data_type).map_or_else(|_| data_type.to_string(), |atom| atom.to_string())
}

fn result_type(name: &str, args: &[DataType], library: &Library) -> Result<DataType> {
    let dummy = PlanExpr::field("_");
    let args = args
        .iter()
        .map(|data_type| Ok((Atom::from_arrow(data_type)?, true, &dummy)))
        .collect::<Result<Vec<_>>>()?;
    Ok(planning_type(&library.scalar(name, &args)?.0))
}

/// DataFusion's planner evaluates none of our functions.
pub(crate) fn not_evaluated(function: &str) -> PlannerResult<ColumnarValue> {
    internal_err!("{function} was evaluated by the planner")
}

/// A run in which expressions are evaluated while planning.
pub(crate) fn planning() -> Run {
    Run {
        context: Arc::new(Planning),
        parameter_tuple: Tuple::empty(),
        parameters: Chunk::unit(),
        counters: Arc::default(),
        sideways: Arc::default(),
    }
}

/// The surroundings of the samples that are looked at while planning: no files, no budget.
#[derive(Debug)]
struct Planning;

impl Context for Planning {
    fn grow(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn chunk_rows(&self) -> usize {
        tessera_encodings::CHUNK_ROWS
    }

    fn workers(&self) -> usize {
        1
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        Err(Error::unsupported(format!("reading {path} while planning")))
    }
}

/// What the operands of an operator are cast to; `None` where it does not take them.
fn operand_types(name: &str, left: &DataType, right: &DataType) -> Option<(DataType, DataType)> {
    use DataType::*;
    let pair = |left: &DataType, right: &DataType| Some((left.clone(), right.clone()));
    let month_day_nano = || Interval(IntervalUnit::MonthDayNano);
    match (left, right) {
        // What a file holds as a duration is an interval.
        (Duration(_), other) => operand_types(name, &month_day_nano(), other),
        (other, Duration(_)) => operand_types(name, other, &month_day_nano()),
        (Null, Null) => pair(&Int32, &Int32),
        (Null, Date32) if name == "sub" => pair(&Date32, right),
        (Null, Date32 | Timestamp(..) | Time32(_) | Time64(_)) => Some((month_day_nano(), right.clone())),
        (Date32 | Timestamp(..) | Time32(_) | Time64(_), Null) => Some((left.clone(), month_day_nano())),
        (Null, other) => operand_types(name, other, other),
        (other, Null) => operand_types(name, other, other),
        (Date32, Date32) if name == "sub" => pair(left, right),
        (Date32, other) if matches!(name, "add" | "sub") && other.is_integer() => pair(left, right),
        (other, Date32) if name == "add" && other.is_integer() => pair(left, right),
        (Date32 | Timestamp(..) | Time32(_) | Time64(_), Interval(_)) if matches!(name, "add" | "sub") => {
            Some((left.clone(), month_day_nano()))
        }
        (Interval(_), Date32 | Timestamp(..) | Time32(_) | Time64(_)) if name == "add" => {
            Some((month_day_nano(), right.clone()))
        }
        (Time32(_) | Time64(_), Date32) if name == "add" => pair(left, right),
        (Timestamp(..) | Date32, Time32(_) | Time64(_)) if matches!(name, "add" | "sub") => pair(left, right),
        (Time32(_) | Time64(_), Timestamp(..)) if name == "add" => pair(left, right),
        // Units stay: nanoseconds of 64 bits do not hold most years.
        (Timestamp(a, zone), Timestamp(b, _)) if name == "sub" => {
            Some((Timestamp(*a, zone.clone()), Timestamp(*b, zone.clone())))
        }
        (Timestamp(unit, zone), Date32) if name == "sub" => Some((
            left.clone(),
            Timestamp((*unit).min(arrow::datatypes::TimeUnit::Microsecond), zone.clone()),
        )),
        (Date32, Timestamp(unit, zone)) if name == "sub" => Some((
            Timestamp((*unit).min(arrow::datatypes::TimeUnit::Microsecond), zone.clone()),
            right.clone(),
        )),
        (Time32(_) | Time64(_), Time32(_) | Time64(_)) if name == "sub" => {
            let finest = if time_unit(left) < time_unit(right) { right } else { left };
            pair(finest, finest)
        }
        (Interval(_), Interval(_)) if matches!(name, "add" | "sub") => {
            Some((month_day_nano(), month_day_nano()))
        }
        (Interval(_), other) if matches!(name, "mul" | "div") && numeric(other) => {
            Some((month_day_nano(), if other.is_integer() { Int64 } else { Float64 }))
        }
        (other, Interval(_)) if name == "mul" && numeric(other) => {
            Some((if other.is_integer() { Int64 } else { Float64 }, month_day_nano()))
        }
        _ if numeric(left) && numeric(right) => numeric_types(name, left, right),
        _ => None,
    }
}

fn numeric(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || data_type.is_decimal()
}

fn numeric_types(name: &str, left: &DataType, right: &DataType) -> Option<(DataType, DataType)> {
    use DataType::*;
    if left.is_floating() || right.is_floating() {
        let single = *left == Float32 && *right == Float32;
        return Some(if single { (Float32, Float32) } else { (Float64, Float64) });
    }
    if left.is_decimal() || right.is_decimal() {
        return match name {
            "div" => Some((Float64, Float64)),
            _ => Some((as_decimal(left)?, as_decimal(right)?)),
        };
    }
    let common = common_integer(left, right);
    Some((common.clone(), common))
}

/// The decimal type that holds the values of a decimal or an integer type.
pub(crate) fn as_decimal(data_type: &DataType) -> Option<DataType> {
    use DataType::*;
    Some(match data_type {
        Int8 | UInt8 => Decimal128(3, 0),
        Int16 | UInt16 => Decimal128(5, 0),
        Int32 | UInt32 => Decimal128(10, 0),
        Int64 => Decimal128(19, 0),
        UInt64 => Decimal128(20, 0),
        Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) => Decimal128(*p, *s),
        _ => return None,
    })
}

fn common_integer(left: &DataType, right: &DataType) -> DataType {
    use DataType::*;
    let rank = |data_type: &DataType| match data_type {
        Int8 | UInt8 => 1,
        Int16 | UInt16 => 2,
        Int32 | UInt32 => 3,
        _ => 4,
    };
    let (a, b) = (rank(left), rank(right));
    let unsigned = |data_type: &DataType| matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64);
    match (unsigned(left), unsigned(right)) {
        (true, true) => [UInt8, UInt16, UInt32, UInt64][a.max(b) - 1].clone(),
        (false, false) => [Int8, Int16, Int32, Int64][a.max(b) - 1].clone(),
        (true, false) => [Int8, Int16, Int32, Int64][(a + 1).max(b).min(4) - 1].clone(),
        (false, true) => [Int8, Int16, Int32, Int64][a.max(b + 1).min(4) - 1].clone(),
    }
}

/// Aggregates of our own and their other names, replacing DataFusion's.
const AGGREGATES: [(&str, &[&str]); 10] = [
    ("sum", &[]),
    ("avg", &["mean"]),
    ("var_samp", &["var", "var_sample", "variance"]),
    ("var_pop", &["var_population"]),
    ("stddev", &["stddev_samp"]),
    ("stddev_pop", &[]),
    ("percentile_cont", &["quantile_cont"]),
    ("percentile_disc", &["quantile_disc"]),
    ("mode", &[]),
    ("string_agg", &[]),
];

/// Aggregates that take values in an order: `WITHIN GROUP (ORDER BY …)`.
const OF_ORDERED: [&str; 3] = ["percentile_cont", "percentile_disc", "mode"];

/// The aggregates with our result types.
pub(crate) fn aggregates(library: &Arc<Library>) -> Vec<Arc<AggregateUDF>> {
    AGGREGATES
        .into_iter()
        .map(|(name, aliases)| {
            let signature = Signature::user_defined(Volatility::Immutable);
            let aliases = aliases.iter().map(|alias| alias.to_string()).collect();
            Arc::new(AggregateUDF::from(Aggregate { name, aliases, signature, library: library.clone() }))
        })
        .collect()
}

/// What a value and the fractions of an aggregate of ordered values are cast to.
fn ordered_types(name: &str, args: &[DataType]) -> PlannerResult<Vec<DataType>> {
    let doubles = || DataType::List(Arc::new(Field::new("item", DataType::Float64, true)));
    let fraction = |fraction: &DataType| match fraction {
        DataType::List(item) if numeric(item.data_type()) || item.data_type().is_null() => Some(doubles()),
        other => (numeric(other) || other.is_null()).then_some(DataType::Float64),
    };
    match args {
        [value] if name == "mode" => Ok(vec![if value.is_null() { DataType::Int32 } else { value.clone() }]),
        [value, given] if name != "mode" => {
            let Some(fraction) = fraction(given) else {
                return Err(unknown(name, args, "the fraction is a number or a list of numbers"));
            };
            match (name, value) {
                ("percentile_cont", value) if numeric(value) || value.is_null() => {
                    Ok(vec![DataType::Float64, fraction])
                }
                ("percentile_cont", _) => Err(unknown(name, args, "cast the value to double precision")),
                (_, value) => {
                    Ok(vec![if value.is_null() { DataType::Int32 } else { value.clone() }, fraction])
                }
            }
        }
        _ => Err(unknown(name, args, "write it as f(…) WITHIN GROUP (ORDER BY value)")),
    }
}

fn unknown(name: &str, args: &[DataType], hint: &str) -> datafusion_common::DataFusionError {
    let types = args.iter().map(shown).collect::<Vec<_>>().join(", ");
    to_datafusion(
        Error::semantic(format!("aggregate function {name} does not take ({types}); {hint}"))
            .with_state(SqlState::UNDEFINED_FUNCTION),
    )
}

struct Aggregate {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    library: Arc<Library>,
}

impl Debug for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Aggregate {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Aggregate {}

impl Hash for Aggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> PlannerResult<DataType> {
        let args = args
            .iter()
            .map(|data_type| Ok((Atom::from_arrow(data_type)?, true)))
            .collect::<Result<Vec<_>>>()
            .map_err(to_datafusion)?;
        let (atom, _) = self.library.aggregate(self.name, &args, false).map_err(to_datafusion)?;
        Ok(planning_type(&atom))
    }

    fn supports_within_group_clause(&self) -> bool {
        OF_ORDERED.contains(&self.name)
    }

    fn coerce_types(&self, args: &[DataType]) -> PlannerResult<Vec<DataType>> {
        if OF_ORDERED.contains(&self.name) {
            return ordered_types(self.name, args);
        }
        if self.name == "string_agg" {
            return match args {
                [value, _] if value.is_binary() => Ok(vec![DataType::BinaryView, DataType::BinaryView]),
                [_, _] => Ok(vec![DataType::Utf8View, DataType::Utf8View]),
                _ => Err(unknown(self.name, args, "it takes a text and a separator")),
            };
        }
        match args {
            [DataType::Null] => Ok(vec![DataType::Int64]),
            [DataType::Duration(_)] => Ok(vec![DataType::Interval(IntervalUnit::MonthDayNano)]),
            [one] if numeric(one) || matches!(one, DataType::Interval(_)) => Ok(vec![one.clone()]),
            [DataType::Boolean] => plan_err!("{} does not take boolean; count or cast instead", self.name),
            [other] => plan_err!("{} does not take {}; cast it to a number", self.name, shown(other)),
            _ => plan_err!("{} takes one argument", self.name),
        }
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> PlannerResult<Box<dyn Accumulator>> {
        not_impl_err!("computing {} while planning", self.name)
    }

    fn state_fields(&self, _args: StateFieldsArgs<'_>) -> PlannerResult<Vec<FieldRef>> {
        Ok(Vec::new())
    }
}
