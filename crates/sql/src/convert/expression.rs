//! Expressions.

use datafusion_expr::expr::{InList, Like, ScalarFunction};
use datafusion_expr::{Between, BinaryExpr, Case, Expr as Logical, ExprSchemable, Operator};
use tessera_ops::expression::cast::check_cast;
use tessera_ops::expression::common_type;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState, TimeUnit};

use super::{Converter, Scope};
use crate::error::from_datafusion;
use crate::relation::Relation;
use crate::types::from_scalar_value;

impl Converter<'_> {
    /// An expression over the fields of `input`, simplified. `input` gains fields where the expression holds subqueries, or
    /// reads a volatile value more than once.
    pub(super) fn expr(&mut self, expr: &Logical, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let written = self.written(expr, scope, input)?;
        Ok(self.simple(written))
    }

    /// The expression as written, of simplified operands.
    fn written(&mut self, expr: &Logical, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        Ok(match expr {
            Logical::Alias(alias) => self.expr(&alias.expr, scope, input)?,
            Logical::Column(column) => Expr::Field(scope.resolve(column)?),
            Logical::OuterReferenceColumn(_, column) => Expr::Parameter(scope.resolve_outer(column)?),
            Logical::Literal(value, _) => {
                let (value, atom) = from_scalar_value(value)?;
                Expr::Constant(value, atom)
            }
            Logical::BinaryExpr(binary) => self.binary(binary, scope, input)?,
            Logical::Not(inner) => Expr::Not(Box::new(self.expr(inner, scope, input)?)),
            Logical::IsNull(inner) | Logical::IsUnknown(inner) => {
                Expr::IsNull(Box::new(self.expr(inner, scope, input)?))
            }
            Logical::IsNotNull(inner) | Logical::IsNotUnknown(inner) => {
                let is_null = Expr::IsNull(Box::new(self.expr(inner, scope, input)?));
                Expr::Not(Box::new(self.simple(is_null)))
            }
            Logical::IsTrue(inner) => self.truth(inner, false, scope, input)?,
            Logical::IsNotTrue(inner) => Expr::Not(Box::new(self.truth(inner, false, scope, input)?)),
            Logical::IsNotFalse(inner) => self.truth(inner, true, scope, input)?,
            Logical::IsFalse(inner) => Expr::Not(Box::new(self.truth(inner, true, scope, input)?)),
            Logical::Negative(inner) => Expr::call("neg", vec![self.expr(inner, scope, input)?]),
            Logical::Like(like) => {
                let function = if like.case_insensitive { "ilike" } else { "like" };
                self.like(function, like, scope, input)?
            }
            Logical::SimilarTo(like) => self.like("similar", like, scope, input)?,
            Logical::Between(between) => self.between(between, scope, input)?,
            Logical::InList(list) => self.in_list(list, scope, input)?,
            Logical::Case(case) => self.case(case, scope, input)?,
            Logical::Cast(cast) => self.cast(&cast.expr, cast.field.data_type(), false, scope, input)?,
            Logical::TryCast(cast) => self.cast(&cast.expr, cast.field.data_type(), true, scope, input)?,
            Logical::ScalarFunction(function) => self.function(function, expr, scope, input)?,
            Logical::ScalarSubquery(subquery) => self.scalar_subquery(subquery, scope, input)?,
            Logical::Exists(exists) => self.exists(exists, scope, input)?,
            Logical::InSubquery(subquery) => self.in_subquery(subquery, scope, input)?,
            Logical::WindowFunction(function) => {
                return Err(Error::unsupported(format!(
                    "the window function {} is not supported",
                    function.fun
                )));
            }
            Logical::AggregateFunction(function) => {
                return Err(Error::semantic(format!(
                    "{} is an aggregate and cannot stand here",
                    function.func.name()
                ))
                .with_state(SqlState::GROUPING_ERROR));
            }
            Logical::Placeholder(placeholder) => {
                return Err(Error::unsupported(format!(
                    "the parameter {} is not supported; write its value",
                    placeholder.id
                )));
            }
            Logical::ScalarVariable(_, names) => {
                return Err(Error::unsupported(format!("the variable {} is not supported", names.join("."))));
            }
            other => return Err(Error::unsupported(format!("the expression {other} is not supported"))),
        })
    }

    /// The value with NULL taken as `null_is`.
    fn truth(
        &mut self,
        inner: &Logical,
        null_is: bool,
        scope: Scope<'_>,
        input: &mut Relation,
    ) -> Result<Expr> {
        let value = self.expr(inner, scope, input)?;
        Ok(self.simple(Expr::Coalesce(vec![value, Expr::boolean(null_is)])))
    }

    /// A value that is read more than once. A volatile one becomes a field of `input`, so that all readers see the same value.
    fn once(&mut self, value: Expr, input: &mut Relation) -> Result<Expr> {
        if !self.types().volatile(&value) {
            return Ok(value);
        }
        let atom = self.atom_of(&value)?;
        let name = self.fresh("value", atom);
        let mut exprs: Vec<_> =
            input.names().into_iter().map(|name| (name.clone(), Expr::Field(name))).collect();
        exprs.push((name.clone(), value));
        let inner = std::mem::replace(input, Relation::nothing());
        *input = Relation::Map { input: Box::new(inner), exprs };
        Ok(Expr::Field(name))
    }

    fn binary(&mut self, binary: &BinaryExpr, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        if let Some(between) = symmetric(binary) {
            return self.between_symmetric(between, scope, input);
        }
        if let Operator::And | Operator::Or = binary.op {
            // A long chain leans to one side; walking it keeps the depth of the recursion small.
            let mut operands = Vec::new();
            let mut pending = vec![&*binary.right, &*binary.left];
            while let Some(next) = pending.pop() {
                match next {
                    Logical::BinaryExpr(inner) if inner.op == binary.op && symmetric(inner).is_none() => {
                        pending.push(&inner.right);
                        pending.push(&inner.left);
                    }
                    other => operands.push(self.expr(other, scope, input)?),
                }
            }
            return Ok(if binary.op == Operator::And { Expr::And(operands) } else { Expr::Or(operands) });
        }
        let left = self.expr(&binary.left, scope, input)?;
        let right = self.expr(&binary.right, scope, input)?;
        let (name, negated) = match binary.op {
            Operator::Eq => ("eq", false),
            Operator::NotEq => ("not_eq", false),
            Operator::Lt => ("lt", false),
            Operator::LtEq => ("lt_eq", false),
            Operator::Gt => ("gt", false),
            Operator::GtEq => ("gt_eq", false),
            Operator::IsDistinctFrom => ("is_distinct", false),
            Operator::IsNotDistinctFrom => ("is_not_distinct", false),
            Operator::Plus => ("add", false),
            Operator::Minus => ("sub", false),
            Operator::Multiply => ("mul", false),
            Operator::Divide | Operator::IntegerDivide => ("div", false),
            Operator::Modulo => ("mod", false),
            Operator::RegexMatch => ("regex", false),
            Operator::RegexIMatch => ("iregex", false),
            Operator::RegexNotMatch => ("regex", true),
            Operator::RegexNotIMatch => ("iregex", true),
            Operator::LikeMatch => ("like", false),
            Operator::ILikeMatch => ("ilike", false),
            Operator::NotLikeMatch => ("like", true),
            Operator::NotILikeMatch => ("ilike", true),
            Operator::StringConcat => ("concat_op", false),
            Operator::BitwiseAnd => ("bit_and", false),
            Operator::BitwiseOr => ("bit_or", false),
            Operator::BitwiseXor => ("bit_xor", false),
            Operator::BitwiseShiftLeft => ("shift_left", false),
            Operator::BitwiseShiftRight => ("shift_right", false),
            other => return Err(Error::unsupported(format!("the operator {other} is not supported"))),
        };
        let call = match name {
            "eq" | "not_eq" | "lt" | "lt_eq" | "gt" | "gt_eq" | "is_distinct" | "is_not_distinct" => {
                self.compare(name, left, right)
            }
            _ => self.simple(Expr::call(name, vec![left, right])),
        };
        Ok(if negated { Expr::Not(Box::new(call)) } else { call })
    }

    fn like(&mut self, function: &str, like: &Like, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let value = self.expr(&like.expr, scope, input)?;
        let pattern = self.expr(&like.pattern, scope, input)?;
        let args = match (like.escape_char, pattern) {
            (None | Some('\\'), pattern) => vec![value, pattern],
            (Some(escape), Expr::Constant(Scalar::String(text), atom)) if function != "similar" => {
                let text = Scalar::String(with_backslash(&text, escape).into());
                vec![value, Expr::Constant(text, atom)]
            }
            (Some(escape), pattern) => vec![value, pattern, Expr::string(&escape.to_string())],
        };
        let call = self.simple(Expr::call(function, args));
        Ok(if like.negated { Expr::Not(Box::new(call)) } else { call })
    }

    fn between(&mut self, between: &Between, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let value = self.expr(&between.expr, scope, input)?;
        let value = self.once(value, input)?;
        let low = self.expr(&between.low, scope, input)?;
        let high = self.expr(&between.high, scope, input)?;
        Ok(if between.negated {
            Expr::Or(vec![self.compare("lt", value.clone(), low), self.compare("gt", value, high)])
        } else {
            Expr::And(vec![self.compare("gt_eq", value.clone(), low), self.compare("lt_eq", value, high)])
        })
    }

    /// The value and each bound are computed once, though both orders of the bounds are tried.
    fn between_symmetric(
        &mut self,
        between: &Between,
        scope: Scope<'_>,
        input: &mut Relation,
    ) -> Result<Expr> {
        let mut operands = Vec::with_capacity(3);
        for operand in [&between.expr, &between.low, &between.high] {
            let operand = self.expr(operand, scope, input)?;
            operands.push(self.once(operand, input)?);
        }
        let [value, low, high] = &operands[..] else { return Err(Error::internal("three operands are not")) };
        let within = |low: &Expr, high: &Expr| {
            let from = self.compare("gt_eq", value.clone(), low.clone());
            Expr::And(vec![from, self.compare("lt_eq", value.clone(), high.clone())])
        };
        let either = Expr::Or(vec![within(low, high), within(high, low)]);
        Ok(if between.negated { Expr::Not(Box::new(either)) } else { either })
    }

    fn in_list(&mut self, list: &InList, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let mut value = self.expr(&list.expr, scope, input)?;
        if list.list.len() > 1 {
            value = self.once(value, input)?;
        }
        let mut equal = Vec::with_capacity(list.list.len());
        for item in &list.list {
            let item = self.expr(item, scope, input)?;
            equal.push(self.compare("eq", value.clone(), item));
        }
        let any = match equal.len() {
            0 => Expr::boolean(false),
            1 => equal.remove(0),
            _ => self.simple(Expr::Or(equal)),
        };
        Ok(if list.negated { Expr::Not(Box::new(any)) } else { any })
    }

    fn case(&mut self, case: &Case, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let operand = case.expr.as_ref().map(|expr| self.expr(expr, scope, input)).transpose()?;
        let operand = operand.map(|operand| self.once(operand, input)).transpose()?;
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in &case.when_then_expr {
            let when = self.expr(when, scope, input)?;
            let condition = match &operand {
                Some(operand) => self.compare("eq", operand.clone(), when),
                None => when,
            };
            branches.push((condition, self.expr(then, scope, input)?));
        }
        let mut otherwise = case.else_expr.as_ref().map(|expr| self.expr(expr, scope, input)).transpose()?;
        let mut values: Vec<&mut Expr> = branches.iter_mut().map(|(_, value)| value).collect();
        values.extend(&mut otherwise);
        self.same_type(values)?;
        Ok(Expr::Case { branches, otherwise: otherwise.map(Box::new) })
    }

    /// Casts NULLs of no type, and whatever else differs, to the type that all have in common. The
    /// planner has made them alike, but sums with literals need fewer digits than it takes.
    fn same_type(&self, values: Vec<&mut Expr>) -> Result<()> {
        let atoms = values.iter().map(|value| self.atom_of(value)).collect::<Result<Vec<_>>>()?;
        let mut known = atoms.iter().filter(|atom| **atom != Atom::Null);
        let Some(first) = known.next().cloned() else { return Ok(()) };
        let wanted = known.fold(first, |wanted, atom| common_type(&wanted, atom).unwrap_or(wanted));
        for (value, atom) in values.into_iter().zip(atoms) {
            if atom != wanted {
                let inner = std::mem::replace(value, Expr::boolean(false));
                *value = match inner {
                    Expr::Constant(Scalar::Null, _) => Expr::null(wanted.clone()),
                    other => self.simple(other.cast(wanted.clone())),
                };
            }
        }
        Ok(())
    }

    fn cast(
        &mut self,
        inner: &Logical,
        to: &arrow::datatypes::DataType,
        safe: bool,
        scope: Scope<'_>,
        input: &mut Relation,
    ) -> Result<Expr> {
        let inner = self.expr(inner, scope, input)?;
        let to = Atom::from_arrow(to)?;
        let from = self.atom_of(&inner)?;
        check_cast(&from, &to)?;
        Ok(match inner {
            Expr::Constant(Scalar::Null, _) => Expr::null(to),
            inner if from == to => inner,
            inner => Expr::Cast { input: Box::new(inner), to, safe },
        })
    }

    fn function(
        &mut self,
        function: &ScalarFunction,
        expr: &Logical,
        scope: Scope<'_>,
        input: &mut Relation,
    ) -> Result<Expr> {
        let name = function.func.name();
        let mut args = Vec::with_capacity(function.args.len());
        for arg in &function.args {
            args.push(self.expr(arg, scope, input)?);
        }
        if let Some(constant) = self.moment.told(name) {
            return Ok(constant);
        }
        match (name, args.as_mut_slice()) {
            ("coalesce" | "nvl" | "ifnull", _) => {
                self.same_type(args.iter_mut().collect())?;
                return Ok(Expr::Coalesce(args));
            }
            ("nvl2", [_, there, absent]) => {
                self.same_type(vec![there, absent])?;
                let mut args = args.into_iter();
                let (Some(value), Some(there), absent) = (args.next(), args.next(), args.next()) else {
                    return Err(Error::internal("nvl2 lost its arguments"));
                };
                let is_there = self.simple(Expr::Not(Box::new(self.simple(Expr::IsNull(Box::new(value))))));
                return Ok(Expr::Case { branches: vec![(is_there, there)], otherwise: absent.map(Box::new) });
            }
            ("arrow_cast" | "arrow_try_cast" | "cast_to_type" | "try_cast_to_type", [value, ..]) => {
                let value = std::mem::replace(value, Expr::boolean(false));
                let to = expr.get_type(scope.schema).map_err(from_datafusion)?;
                let safe = name.contains("try");
                return Ok(Expr::Cast { input: Box::new(value), to: Atom::from_arrow(&to)?, safe });
            }
            ("add" | "sub" | "mul" | "div" | "mod" | "neg", _) => return Ok(Expr::call(name, args)),
            _ => {}
        }
        let call = Expr::call(name, args);
        // Where the library's type differs from the planner's, the planner's was promised to what stands above.
        let promised = expr.get_type(scope.schema).map_err(from_datafusion)?;
        let promised = Atom::from_arrow(&promised)?;
        let same = self.atom_of(&call)? == promised;
        let call = self.simple(call);
        Ok(if same { call } else { call.cast(promised) })
    }
}

/// A pattern whose escape is a backslash.
fn with_backslash(pattern: &str, escape: char) -> String {
    let mut out = String::with_capacity(pattern.len() + 2);
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        if next == escape {
            out.push('\\');
            out.extend(chars.next());
        } else if next == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(next);
        }
    }
    out
}

impl Converter<'_> {
    /// A comparison, simplified.
    pub(super) fn compare(&self, name: &str, left: Expr, right: Expr) -> Expr {
        let (left, right) = match (self.in_microseconds(&left), self.in_microseconds(&right)) {
            (Some(left), Some(right)) => (left, right),
            _ => (left, right),
        };
        let (left, right) = self.unified(left, right);
        self.simple(Expr::call(name, vec![left, right]))
    }

    /// A value that the planner made a timestamp of nanoseconds, in microseconds; none where that is not what it is, or would
    /// lose something. Nanoseconds reach from 1677 to 2262 only.
    fn in_microseconds(&self, expr: &Expr) -> Option<Expr> {
        let (input, zone) = match expr {
            Expr::Cast { input, to: Atom::Timestamp(TimeUnit::Nanosecond, zone), safe: false } => {
                (&**input, zone)
            }
            Expr::Constant(Scalar::Integer(count), Atom::Timestamp(TimeUnit::Nanosecond, zone))
                if count % 1_000 == 0 =>
            {
                let count = Scalar::Integer(count / 1_000);
                return Some(Expr::Constant(count, Atom::Timestamp(TimeUnit::Microsecond, zone.clone())));
            }
            _ => return None,
        };
        match self.atom_of(input).ok()? {
            Atom::Timestamp(TimeUnit::Nanosecond, _) => None,
            Atom::String if !matches!(input, Expr::Constant(..)) => None,
            Atom::String | Atom::Date | Atom::Timestamp(..) => {
                let to = Atom::Timestamp(TimeUnit::Microsecond, zone.clone());
                let same = self.atom_of(input).ok()? == to;
                Some(if same { input.clone() } else { self.simple(input.clone().cast(to)) })
            }
            _ => None,
        }
    }

    /// Both sides in one type. The planner's coercion sees to that but where it goes by a stale type, which it keeps for
    /// fields of outer queries.
    fn unified(&self, left: Expr, right: Expr) -> (Expr, Expr) {
        let (Ok(a), Ok(b)) = (self.atom_of(&left), self.atom_of(&right)) else { return (left, right) };
        if a == b || a == Atom::Null || b == Atom::Null {
            return (left, right);
        }
        let Some(common) = common_type(&a, &b) else { return (left, right) };
        let convert = |expr: Expr, from: &Atom| match expr {
            expr if *from == common => expr,
            Expr::Constant(Scalar::Integer(number), atom) if atom.is_integer() && common.is_integer() => {
                Expr::Constant(Scalar::Integer(number), common.clone())
            }
            expr => self.simple(expr.cast(common.clone())),
        };
        (convert(left, &a), convert(right, &b))
    }
}

/// What the parser makes of BETWEEN SYMMETRIC: two tests of one value, with the bounds in either
/// order.
fn symmetric(binary: &BinaryExpr) -> Option<&Between> {
    let (Logical::Between(left), Logical::Between(right)) = (&*binary.left, &*binary.right) else {
        return None;
    };
    let joined = if left.negated { Operator::And } else { Operator::Or };
    let swapped = left.negated == right.negated
        && left.expr == right.expr
        && left.low == right.high
        && left.high == right.low;
    (binary.op == joined && swapped && [&left.expr, &left.low, &left.high].iter().any(|e| e.is_volatile()))
        .then_some(left)
}
