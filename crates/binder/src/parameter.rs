//! Parameters of the statement, variables and settings of the session.

use sqlparser::ast::{Expr as Ast, FunctionArg, Value, ValueWithSpan, VisitMut, VisitorMut};
use tessera_parser::parameter_name;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState, did_you_mean};

use super::cte::Env;
use super::inline::argument_key;
use super::scope::Scope;
use super::typed::TypedExpr;
use super::{Binder, Place, with_span};
use crate::context::{Mode, PlanContext};
use crate::parameters::{Constant, undetermined, without_value};

/// The first character of the text that stands for a parameter whose type is not known yet.
const MARK: char = '\0';

impl Binder<'_> {
    /// Binds `$1` or `$name`: an argument of the macro that is being bound, or a parameter of the
    /// statement.
    pub(super) fn placeholder(&self, name: &str, place: &Place<'_, '_>) -> Result<TypedExpr> {
        match place.scope.macro_argument(&argument_key(name)) {
            Some(value) => Ok(value),
            None => self.parameter(name),
        }
    }

    /// Binds a parameter of the statement.
    pub(super) fn parameter(&self, placeholder: &str) -> Result<TypedExpr> {
        let name = parameter_name(placeholder);
        match self.mode {
            Mode::Given(values) => {
                let value = values.get(&name).ok_or_else(|| without_value(&name))?;
                Ok(typed(value.clone()))
            }
            Mode::Inferred(inference) => Ok(match inference.type_of(&name) {
                Some(atom) => TypedExpr::new(Expr::null(atom.clone()), atom),
                None => TypedExpr::unknown(&format!("{MARK}{name}")),
            }),
        }
    }

    /// Returns the name of the parameter that a value is, if its type is not known yet.
    fn open_parameter<'v>(&self, value: &'v TypedExpr) -> Option<&'v str> {
        match self.mode {
            Mode::Inferred(_) => value.literal()?.strip_prefix(MARK),
            Mode::Given(_) => None,
        }
    }

    /// Gives a parameter the type that its context requires. `None` for other values.
    pub(super) fn inferred(&self, value: &TypedExpr, to: &Atom) -> Option<TypedExpr> {
        let (name, Mode::Inferred(inference)) = (self.open_parameter(value)?, self.mode) else {
            return None;
        };
        inference.record(name, to);
        Some(TypedExpr::new(Expr::null(to.clone()), to.clone()))
    }

    /// Gives a parameter the type that an earlier place has required.
    pub(super) fn settled(&self, value: TypedExpr) -> TypedExpr {
        let (Some(name), Mode::Inferred(inference)) = (self.open_parameter(&value), self.mode)
        else {
            return value;
        };
        match inference.type_of(name) {
            Some(atom) => TypedExpr::new(Expr::null(atom.clone()), atom),
            None => value,
        }
    }

    /// Checks that a value may have any type here, unless it is a parameter that has none yet.
    pub(super) fn check_determined(&self, value: &TypedExpr) -> Result<()> {
        match self.open_parameter(value) {
            Some(name) => Err(undetermined(name)),
            None => Ok(()),
        }
    }

    /// Replaces the parameters in arguments that are read as text, such as the path of a file.
    pub(super) fn without_parameters(&self, args: &[FunctionArg]) -> Result<Vec<FunctionArg>> {
        struct Values<'b, 'a>(&'b Binder<'a>);
        impl VisitorMut for Values<'_, '_> {
            type Break = Error;

            fn pre_visit_expr(&mut self, expr: &mut Ast) -> std::ops::ControlFlow<Error> {
                use std::ops::ControlFlow::{Break, Continue};
                let Ast::Value(ValueWithSpan { value: Value::Placeholder(name), span }) = expr
                else {
                    return Continue(());
                };
                if let Mode::Inferred(inference) = self.0.mode {
                    inference.needs_values.set(true);
                }
                let span = *span;
                let value = match self.0.parameter(name) {
                    Ok(value) => value,
                    Err(error) => return Break(with_span(error, span)),
                };
                let written = match &value.expr {
                    Expr::Constant(Scalar::String(text), _) => {
                        Value::SingleQuotedString(text.to_string())
                    }
                    Expr::Constant(Scalar::Boolean(flag), _) => Value::Boolean(*flag),
                    Expr::Constant(Scalar::Integer(number), atom) if atom.is_integer() => {
                        Value::Number(number.to_string(), false)
                    }
                    _ => {
                        let message = format!(
                            "parameter {name} must be a text, a whole number or a boolean here, not {}",
                            value.atom
                        );
                        return Break(with_span(Error::unsupported(message), span));
                    }
                };
                *expr = Ast::Value(written.with_span(span));
                Continue(())
            }
        }
        let mut args = args.to_vec();
        match args.visit(&mut Values(self)) {
            std::ops::ControlFlow::Break(error) => Err(error),
            std::ops::ControlFlow::Continue(()) => Ok(args),
        }
    }

    /// Binds `getvariable('name')`: its value, or NULL.
    pub(super) fn variable(&self, name: &TypedExpr) -> Result<TypedExpr> {
        let Some(name) = constant_text(&self.evaluated(name.clone())?) else {
            let message = "getvariable takes the name of a variable as text";
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        Ok(match self.environment.definitions.variable(&name) {
            Some(value) => typed(value.clone()),
            None => TypedExpr::null(),
        })
    }

    /// Returns the value of a variable as text; `None` for NULL.
    pub(super) fn shown(&self, constant: &Constant) -> Option<String> {
        let text = self.cast_to(typed(constant.clone()), &Atom::String, false).ok()?;
        constant_text(&self.evaluated(text).ok()?)
    }

    /// Binds `current_setting('name' [, missing_ok])`: the value as text.
    pub(super) fn current_setting(&self, args: Vec<TypedExpr>) -> Result<TypedExpr> {
        let args = args.into_iter().map(|arg| self.evaluated(arg)).collect::<Result<Vec<_>>>()?;
        let Some(name) = args.first().and_then(constant_text) else {
            let message = "current_setting takes the name of a setting as text";
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        let settings = (self.environment.settings)();
        let name = match name.to_lowercase() {
            name if name == "timezone" => "time_zone".to_string(),
            name => name,
        };
        if let Some(setting) = settings.iter().find(|setting| setting.name == name) {
            return Ok(TypedExpr::text(&setting.value));
        }
        let is_true = |arg: &TypedExpr| arg.expr == Expr::boolean(true);
        if args.get(1).is_some_and(is_true) {
            return Ok(TypedExpr::new(Expr::null(Atom::String), Atom::String));
        }
        let hint = did_you_mean(&name, settings.iter().map(|setting| setting.name.as_str()));
        let message = format!("unknown setting '{name}'{hint}; SHOW ALL lists the settings");
        Err(Error::semantic(message).with_state(SqlState::UNDEFINED_OBJECT))
    }

    /// Converts a value as an assignment does: numbers to numbers, moments to moments, anything to
    /// text.
    pub(super) fn assigned(&self, value: TypedExpr, to: &Atom, what: &str) -> Result<TypedExpr> {
        let is_moment = |atom: &Atom| matches!(atom, Atom::Timestamp(..) | Atom::Date);
        let fits = value.atom.is_numeric() && to.is_numeric()
            || is_moment(&value.atom)
                && (is_moment(to) || matches!(to, Atom::Time(_) | Atom::TimeTz))
            || value.atom == Atom::TimeTz && matches!(to, Atom::Time(_))
            || *to == Atom::String
            || matches!((&value.atom, to), (Atom::List(_), Atom::List(_)));
        match fits {
            true => self.cast_to(value, to, false),
            false => self.implicitly(value, to, what),
        }
    }
}

impl PlanContext<'_> {
    /// Evaluates the value of a parameter in EXECUTE and converts it to the parameter's type.
    ///
    /// # Errors
    /// The value is not of this type, or it is not known before the statement runs.
    pub fn parameter_value(
        &self,
        name: &str,
        written: &Ast,
        atom: Option<&Atom>,
    ) -> Result<Constant> {
        let binder = &mut self.binder();
        let scope = Scope::empty(None, Env::default());
        let mut steps = Vec::new();
        let place =
            &mut Place { scope: &scope, steps: &mut steps, clause: "EXECUTE", unnests: None };
        let value = binder.expr(written, place)?;
        if !steps.is_empty() {
            let error = Error::unsupported(
                "a subquery in EXECUTE is not supported; SET VARIABLE to its value first",
            );
            return Err(with_span(error, written));
        }
        if binder.is_volatile(&value.expr) {
            let error = Error::unsupported(
                "a volatile function in EXECUTE is not supported; SET VARIABLE to its value first",
            );
            return Err(with_span(error, written));
        }
        let what = format!("parameter ${name}");
        let is_exact = |atom: &Atom| atom.is_integer() || matches!(atom, Atom::Decimal(..));
        let text = value.literal().map(String::from);
        let value = match atom {
            None => value,
            // A number of PostgreSQL's numeric keeps its digits.
            Some(Atom::Decimal(..)) if is_exact(&value.atom) => value,
            Some(to @ Atom::Decimal(..)) if value.unknown => {
                match value.literal().and_then(exact) {
                    Some(number) => number,
                    None => binder.cast_to(value, to, false)?,
                }
            }
            Some(atom) => {
                binder.assigned(value, atom, &what).map_err(|error| with_span(error, written))?
            }
        };
        let TypedExpr { expr, atom, unknown } = binder.evaluated(value)?;
        if let (Some(text), false) = (text, matches!(expr, Expr::Constant(..))) {
            let state = match atom.is_temporal() {
                true => SqlState::INVALID_DATETIME_FORMAT,
                false => SqlState::INVALID_TEXT_REPRESENTATION,
            };
            let message = format!("'{text}' is not a value of type {atom}, as {what} needs");
            return Err(with_span(Error::data(message).with_state(state), written));
        }
        Ok(Constant { expr, atom, is_untyped: unknown })
    }
}

/// Returns the value that a constant has in a statement.
fn typed(constant: Constant) -> TypedExpr {
    let Constant { expr, atom, is_untyped } = constant;
    TypedExpr { expr, atom, unknown: is_untyped }
}

/// Returns a constant text.
fn constant_text(value: &TypedExpr) -> Option<String> {
    match &value.expr {
        Expr::Constant(Scalar::String(text), _) => Some(text.to_string()),
        _ => None,
    }
}

/// Reads a number as it stands in a statement, with all digits.
fn exact(text: &str) -> Option<TypedExpr> {
    let (digits, is_negative) = match text.trim().strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text.trim(), false),
    };
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.');
    is_plain.then(|| super::literal::number(digits, is_negative).ok()).flatten()
}
