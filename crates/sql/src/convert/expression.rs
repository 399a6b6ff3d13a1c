//! Expressions.

use datafusion_expr::expr::{InList, Like, ScalarFunction};
use datafusion_expr::{Between, BinaryExpr, Case, Expr as Logical, ExprSchemable, Operator};
use tessera_ops::expression::common_type;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, TimeUnit};

use super::{Converter, Scope};
use crate::error::from_datafusion;
use crate::relation::Relation;
use crate::types::from_scalar_value;

const DAY_MICROSECONDS: i128 = 86_400_000_000;

impl Converter<'_> {
    /// An expression over the fields of `input`, which gains fields where the expression holds subqueries.
    pub(super) fn expr(&mut self, expr: &Logical, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
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
                Expr::Not(Box::new(Expr::IsNull(Box::new(self.expr(inner, scope, input)?))))
            }
            Logical::IsTrue(inner) => self.truth(inner, false, scope, input)?,
            Logical::IsNotTrue(inner) => Expr::Not(Box::new(self.truth(inner, false, scope, input)?)),
            Logical::IsNotFalse(inner) => self.truth(inner, true, scope, input)?,
            Logical::IsFalse(inner) => Expr::Not(Box::new(self.truth(inner, true, scope, input)?)),
            Logical::Negative(inner) => Expr::call("neg", vec![self.expr(inner, scope, input)?]),
            Logical::Like(like) => self.like(like, scope, input)?,
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
                )));
            }
            Logical::SimilarTo(_) => {
                return Err(Error::unsupported(
                    "SIMILAR TO is not supported; use ~ with a regular expression",
                ));
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
        Ok(Expr::Coalesce(vec![self.expr(inner, scope, input)?, Expr::boolean(null_is)]))
    }

    fn binary(&mut self, binary: &BinaryExpr, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        if let Operator::And | Operator::Or = binary.op {
            // A long chain leans to one side; walking it keeps the depth of the recursion small.
            let mut operands = Vec::new();
            let mut pending = vec![&*binary.right, &*binary.left];
            while let Some(next) = pending.pop() {
                match next {
                    Logical::BinaryExpr(inner) if inner.op == binary.op => {
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
            _ => Expr::call(name, vec![left, right]),
        };
        Ok(if negated { Expr::Not(Box::new(call)) } else { call })
    }

    fn like(&mut self, like: &Like, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let value = self.expr(&like.expr, scope, input)?;
        let mut pattern = self.expr(&like.pattern, scope, input)?;
        if let Some(escape) = like.escape_char {
            pattern = match pattern {
                Expr::Constant(Scalar::String(text), atom) => {
                    Expr::Constant(Scalar::String(with_backslash(&text, escape).into()), atom)
                }
                pattern if escape == '\\' => pattern,
                _ => {
                    return Err(Error::unsupported(
                        "LIKE … ESCAPE with a pattern that is no constant is not supported",
                    ));
                }
            };
        }
        let call = Expr::call(if like.case_insensitive { "ilike" } else { "like" }, vec![value, pattern]);
        Ok(if like.negated { Expr::Not(Box::new(call)) } else { call })
    }

    fn between(&mut self, between: &Between, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let value = self.expr(&between.expr, scope, input)?;
        let low = self.expr(&between.low, scope, input)?;
        let high = self.expr(&between.high, scope, input)?;
        Ok(if between.negated {
            Expr::Or(vec![self.compare("lt", value.clone(), low), self.compare("gt", value, high)])
        } else {
            Expr::And(vec![self.compare("gt_eq", value.clone(), low), self.compare("lt_eq", value, high)])
        })
    }

    fn in_list(&mut self, list: &InList, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let value = self.expr(&list.expr, scope, input)?;
        let mut equal = Vec::with_capacity(list.list.len());
        for item in &list.list {
            let item = self.expr(item, scope, input)?;
            equal.push(self.compare("eq", value.clone(), item));
        }
        let any = match equal.len() {
            0 => Expr::boolean(false),
            1 => equal.remove(0),
            _ => Expr::Or(equal),
        };
        Ok(if list.negated { Expr::Not(Box::new(any)) } else { any })
    }

    fn case(&mut self, case: &Case, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let operand = case.expr.as_ref().map(|expr| self.expr(expr, scope, input)).transpose()?;
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

    /// Casts NULLs of no type, and whatever else differs, to the type the others have.
    fn same_type(&self, values: Vec<&mut Expr>) -> Result<()> {
        let atoms = values.iter().map(|value| self.atom_of(value)).collect::<Result<Vec<_>>>()?;
        let Some(wanted) = atoms.iter().find(|atom| **atom != Atom::Null).cloned() else { return Ok(()) };
        for (value, atom) in values.into_iter().zip(atoms) {
            if atom != wanted {
                let inner = std::mem::replace(value, Expr::boolean(false));
                *value = match inner {
                    Expr::Constant(Scalar::Null, _) => Expr::null(wanted.clone()),
                    other => other.cast(wanted.clone()),
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
        Ok(match inner {
            Expr::Constant(Scalar::Null, _) => Expr::null(to),
            inner if self.atom_of(&inner)? == to => inner,
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
        match name {
            "coalesce" | "nvl" => {
                self.same_type(args.iter_mut().collect())?;
                return Ok(Expr::Coalesce(args));
            }
            "add" | "sub" | "mul" | "div" | "mod" | "neg" => return Ok(Expr::call(name, args)),
            _ => {}
        }
        let call = Expr::call(name, args);
        // Where the library's type differs from the planner's, the planner's was promised to what stands above.
        let promised = expr.get_type(scope.schema).map_err(from_datafusion)?;
        let promised = Atom::from_arrow(&promised)?;
        Ok(if self.atom_of(&call)? == promised { call } else { call.cast(promised) })
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
    /// A comparison; one of a date with a timestamp becomes one of dates, so that scans can prune by it.
    pub(super) fn compare(&self, name: &str, left: Expr, right: Expr) -> Expr {
        if let (Expr::Constant(..), Expr::Cast { .. }) = (&left, &right) {
            return self.compare(flipped(name), right, left);
        }
        if let Expr::Cast { input, to: Atom::Timestamp(unit, None), .. } = &left
            && let Expr::Constant(Scalar::Integer(count), _) = &right
            && let Expr::Field(field) = &**input
            && self.atoms.get(field) == Some(&Atom::Date)
            && let Some((name, day)) = date_comparison(name, *unit, *count)
        {
            let day = Expr::Constant(Scalar::Integer(day), Atom::Date);
            return Expr::call(name, vec![Expr::Field(field.clone()), day]);
        }
        let (left, right) = self.unified(left, right);
        Expr::call(name, vec![left, right])
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
            expr => expr.cast(common.clone()),
        };
        (convert(left, &a), convert(right, &b))
    }
}

fn date_comparison(name: &str, unit: TimeUnit, count: i128) -> Option<(&'static str, i128)> {
    let per_day = match unit {
        TimeUnit::Second => DAY_MICROSECONDS / 1_000_000,
        TimeUnit::Millisecond => DAY_MICROSECONDS / 1_000,
        TimeUnit::Microsecond => DAY_MICROSECONDS,
        TimeUnit::Nanosecond => DAY_MICROSECONDS * 1_000,
    };
    let (day, midnight) = (count.div_euclid(per_day), count.rem_euclid(per_day) == 0);
    Some(match (name, midnight) {
        ("lt", true) => ("lt", day),
        ("lt", false) | ("lt_eq", _) => ("lt_eq", day),
        ("gt_eq", true) => ("gt_eq", day),
        ("gt_eq", false) | ("gt", _) => ("gt", day),
        ("eq", true) => ("eq", day),
        ("not_eq", true) => ("not_eq", day),
        _ => return None,
    })
}

fn flipped(name: &str) -> &'static str {
    match name {
        "lt" => "gt",
        "lt_eq" => "gt_eq",
        "gt" => "lt",
        "gt_eq" => "lt_eq",
        "not_eq" => "not_eq",
        "is_distinct" => "is_distinct",
        "is_not_distinct" => "is_not_distinct",
        _ => "eq",
    }
}
