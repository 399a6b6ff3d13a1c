//! Calls with a lambda: `list_transform(list, lambda x: x + 1)`, `list_filter` and `list_reduce`.
//!
//! The body is bound in the scope of the call, with the parameters before the columns. Then what it
//! reads besides the parameters becomes arguments of the call, and so the lambda is closed.

use std::sync::Arc;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    CaseWhen, DictionaryField, Expr as Ast, Function, FunctionArg, FunctionArgExpr, Ident,
    LambdaFunction, LambdaFunctionParameter, LambdaSyntax, ListComprehension, OneOrManyWithParens,
};
use tessera_functions::LAMBDA_FUNCTIONS;
use tessera_optimizer::logical::relation::Name;
use tessera_plan::{Expr, Lambda};
use tessera_types::{Atom, Error, Field, Result, Slot, SqlState, Tuple};

use super::function::argument;
use super::scope::Parameter;
use super::typed::TypedExpr;
use super::{Binder, Place, normalized, with_span};

/// A value that the body takes from its surroundings: the field that the body reads, and the value.
type Captured = (Name, TypedExpr);

/// A bound body.
struct Body {
    value: TypedExpr,
    captured: Vec<Captured>,
}

impl Binder<'_> {
    /// Binds a call with a lambda; `None` for other functions.
    pub(super) fn call_with_lambda(
        &mut self,
        called: &str,
        function: &Function,
        args: &[FunctionArg],
        place: &mut Place<'_, '_>,
    ) -> Result<Option<TypedExpr>> {
        let known = LAMBDA_FUNCTIONS.iter().find(|(alias, _)| *alias == called);
        let Some((_, own)) = known else { return Ok(None) };
        let args = args.iter().map(|arg| argument(arg, function)).collect::<Result<Vec<_>>>()?;
        let is_reduce = *own == "list_reduce";
        let (list, lambda, first) = match args[..] {
            [list, Ast::Lambda(lambda)] => (list, lambda, None),
            [list, Ast::Lambda(lambda), first] if is_reduce => (list, lambda, Some(first)),
            _ => {
                let more = if is_reduce { ", and possibly a first value" } else { "" };
                let message =
                    format!("{called} takes a list and a lambda, as in lambda x: x + 1{more}");
                return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
            }
        };
        let names = self.parameter_names(called, lambda, is_reduce)?;
        let list = self.expr(list, place)?;
        let first = first.map(|first| self.expr(first, place)).transpose()?;
        if list.is_null() {
            return Ok(Some(TypedExpr::null()));
        }
        let list = match &list.atom {
            // The empty list.
            Atom::List(slot) if slot.atom == Atom::Null => {
                self.cast_to(list, &super::table_function::list_of(Atom::Int32), false)?
            }
            Atom::List(_) => list,
            other => {
                let message = format!("{called} takes a list first, not {other}");
                return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
            }
        };
        match *own {
            "list_reduce" => self.reduced((called, lambda, &names), list, first, place),
            own => self.over_elements((called, lambda, &names), own, list, place),
        }
        .map(Some)
    }

    /// Binds `[body for x in list if condition]`. As in DuckDB, the position of an element is that
    /// in the whole list.
    pub(super) fn comprehension(
        &mut self,
        comprehension: &ListComprehension,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let ListComprehension { body, params, list, condition } = comprehension;
        let list = (**list).clone();
        let lambda = |body: Ast| lambda_of(params.clone(), body);
        let call = match (condition, &params[..]) {
            (None, _) => call_of("list_transform", list, lambda((**body).clone())),
            (Some(condition), [_]) => {
                let kept = call_of("list_filter", list, lambda((**condition).clone()));
                call_of("list_transform", kept, lambda((**body).clone()))
            }
            (Some(condition), _) => {
                let (keep, value) = (Ident::new("keep"), Ident::new("value"));
                let when = CaseWhen { condition: (**condition).clone(), result: (**body).clone() };
                let kept_value = Ast::Case {
                    case_token: AttachedToken::empty(),
                    end_token: AttachedToken::empty(),
                    operand: None,
                    conditions: vec![when],
                    else_result: None,
                };
                let pair = Ast::Dictionary(vec![
                    DictionaryField { key: keep.clone(), value: condition.clone() },
                    DictionaryField { key: value.clone(), value: Box::new(kept_value) },
                ]);
                let pairs = call_of("list_transform", list, lambda(pair));
                let element = Ident::new("element");
                let slot = |slot: Ident| {
                    let body = Ast::CompoundIdentifier(vec![element.clone(), slot]);
                    lambda_of(vec![element.clone()], body)
                };
                let kept = call_of("list_filter", pairs, slot(keep));
                call_of("list_transform", kept, slot(value))
            }
        };
        self.expr(&call, place)
    }

    fn over_elements(
        &mut self,
        (called, lambda, names): (&str, &LambdaFunction, &[Ident]),
        own: &str,
        list: TypedExpr,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let Atom::List(slot) = &list.atom else {
            return Err(Error::internal("a lambda without a list"));
        };
        let parameters = self.lambda_parameters(names, &[slot.atom.clone(), Atom::Int64]);
        let mut value = self.lambda_body(lambda, names, &parameters, place)?;
        let atom = match own {
            "list_filter" => {
                let is_number = value.atom.is_integer() || value.atom == Atom::Null;
                value = match value.unknown || is_number {
                    true => self.cast_to(value, &Atom::Boolean, false)?,
                    false => {
                        self.implicitly(value, &Atom::Boolean, &format!("the lambda of {called}"))?
                    }
                };
                list.atom.clone()
            }
            _ => {
                let slot = Slot { atom: value.atom.clone(), nullable: true };
                Atom::List(Box::new(slot))
            }
        };
        let body = self.captured(value.known(), &parameters, place)?;
        Ok(TypedExpr::new(closed(own, vec![list.expr], names, &parameters, body), atom))
    }

    fn reduced(
        &mut self,
        (called, lambda, names): (&str, &LambdaFunction, &[Ident]),
        list: TypedExpr,
        first: Option<TypedExpr>,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let Atom::List(slot) = &list.atom else {
            return Err(Error::internal("a lambda without a list"));
        };
        let element = TypedExpr::new(Expr::null(slot.atom.clone()), slot.atom.clone());
        let mut atom = match &first {
            Some(first) => self.common(&[&element, first], called)?,
            None => slot.atom.clone(),
        };
        let steps = place.steps.len();
        let mut parameters =
            self.lambda_parameters(names, &[atom.clone(), atom.clone(), Atom::Int64]);
        let mut value = self.lambda_body(lambda, names, &parameters, place)?.known();
        let accumulated = TypedExpr::new(Expr::null(atom.clone()), atom.clone());
        let wider = self.common(&[&accumulated, &value], called)?;
        if wider != atom {
            // The result is the first parameter of the next call, so both have one type.
            place.steps.truncate(steps);
            atom = wider;
            parameters = self.lambda_parameters(names, &[atom.clone(), atom.clone(), Atom::Int64]);
            value = self.lambda_body(lambda, names, &parameters, place)?.known();
        }
        let value = self.cast_to(value, &atom, false)?;
        let list = self.cast_to(list, &super::table_function::list_of(atom.clone()), false)?;
        let body = self.captured(value, &parameters, place)?;
        let (own, args) = match first {
            None => ("list_reduce", vec![list.expr]),
            Some(first) => {
                let first = self.cast_to(first, &atom, false)?;
                ("list_reduce_from", vec![list.expr, first.expr])
            }
        };
        Ok(TypedExpr::new(closed(own, args, names, &parameters, body), atom))
    }

    /// Checks the number of parameters and returns their names.
    fn parameter_names(
        &self,
        called: &str,
        lambda: &LambdaFunction,
        is_reduce: bool,
    ) -> Result<Vec<Ident>> {
        let names = parameters(lambda);
        let (least, what) = match is_reduce {
            true => (2, "the value so far, an element, and possibly its position"),
            false => (1, "an element, and possibly its position"),
        };
        if names.len() < least || names.len() > least + 1 {
            let message = format!("the lambda of {called} takes {what}; it has {}", names.len());
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        }
        for (at, name) in names.iter().enumerate() {
            if names[..at].iter().any(|other| normalized(other) == normalized(name)) {
                let message = format!("the lambda of {called} has two parameters {}", name.value);
                let error = Error::semantic(message).with_state(SqlState::DUPLICATE_ALIAS);
                return Err(with_span(error, name.span));
            }
        }
        Ok(names)
    }

    /// Creates a field for each parameter; one without a name cannot be read.
    fn lambda_parameters(&mut self, names: &[Ident], atoms: &[Atom]) -> Vec<(Name, Atom)> {
        let field = |(at, atom): (usize, &Atom)| {
            let name = names.get(at).map_or_else(|| "position".to_string(), normalized);
            (self.fields.fresh(&name, atom.clone()), atom.clone())
        };
        atoms.iter().enumerate().map(field).collect()
    }

    /// Binds the body in the scope of the call.
    fn lambda_body(
        &mut self,
        lambda: &LambdaFunction,
        names: &[Ident],
        fields: &[(Name, Atom)],
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let parameters = names.iter().zip(fields).map(|(name, (field, atom))| Parameter {
            name: normalized(name).into(),
            value: TypedExpr::new(Expr::Field(field.clone()), atom.clone()),
        });
        let scope = place.scope.with_parameters(parameters.collect());
        let before = place.steps.len();
        let inner = &mut Place {
            scope: &scope,
            steps: &mut *place.steps,
            clause: "a lambda",
            unnests: None,
        };
        let value = self.expr(&lambda.body, inner)?;
        let is_parameter = |name: &Name| fields.iter().any(|(field, _)| field == name);
        if place.steps[before..].iter().any(|step| step.reads().iter().any(is_parameter)) {
            let message =
                "a volatile value that is read more than once is not supported in a lambda";
            return Err(with_span(Error::unsupported(message), &*lambda.body));
        }
        Ok(value)
    }

    /// Finds what the body reads besides the parameters, and simplifies the body.
    fn captured(
        &mut self,
        value: TypedExpr,
        parameters: &[(Name, Atom)],
        place: &Place<'_, '_>,
    ) -> Result<Body> {
        let keys: Vec<Expr> = match place.scope.groups {
            Some(groups) => groups.borrow().keys.iter().map(|key| key.value.expr.clone()).collect(),
            None => Vec::new(),
        };
        let mut value = value;
        let mut captured = Vec::new();
        self.capture(&mut value.expr, parameters, &keys, &mut captured)?;
        let value = self.finished(value)?;
        Ok(Body { value, captured })
    }

    /// Replaces what an expression reads besides the parameters by fields. A key of GROUP BY stays
    /// whole, because its columns cannot be read above the groups.
    fn capture(
        &mut self,
        expr: &mut Expr,
        parameters: &[(Name, Atom)],
        keys: &[Expr],
        captured: &mut Vec<Captured>,
    ) -> Result<()> {
        let is_outer = match &*expr {
            Expr::Field(name) => !parameters.iter().any(|(known, _)| known == name),
            Expr::Parameter(_) => true,
            Expr::Constant(..) | Expr::Lambda(_) => false,
            other => keys.contains(other),
        };
        if !is_outer {
            let mut children = expr.children_mut().into_iter();
            return children.try_for_each(|child| self.capture(child, parameters, keys, captured));
        }
        let name = match captured.iter().find(|(_, value)| value.expr == *expr) {
            Some((name, _)) => name.clone(),
            None => {
                let atom = self.fields.atom_of(expr)?;
                let name = self.fields.fresh("captured", atom.clone());
                captured.push((name.clone(), TypedExpr::new(expr.clone(), atom)));
                name
            }
        };
        *expr = Expr::Field(name);
        Ok(())
    }
}

/// Builds the call. Equal lambdas get equal parameters, whatever fields they were bound with.
fn closed(
    function: &str,
    mut args: Vec<Expr>,
    names: &[Ident],
    parameters: &[(Name, Atom)],
    body: Body,
) -> Expr {
    let Body { value, captured } = body;
    let mut fields: Vec<Field> = Vec::new();
    let mut renamed: Vec<(Name, Arc<str>)> = Vec::new();
    let written = parameters.iter().enumerate().map(|(at, (field, atom))| {
        let name = names.get(at).map_or_else(|| "position".to_string(), normalized);
        (field.clone(), name, atom.clone())
    });
    let taken = captured.iter().enumerate().map(|(at, (field, value))| {
        (field.clone(), format!("captured_{}", at + 1), value.atom.clone())
    });
    for (field, name, atom) in written.chain(taken) {
        let mut unique = name;
        while fields.iter().any(|known| *known.name == *unique) {
            unique.push('_');
        }
        let unique: Arc<str> = unique.into();
        fields.push(Field::new(unique.clone(), atom).with_nullable(true));
        renamed.push((field, unique));
    }
    let mut expr = value.expr;
    rename(&mut expr, &renamed);
    let lambda = Lambda { parameters: Tuple::new(fields), body: expr };
    args.insert(1, Expr::Lambda(Arc::new(lambda)));
    args.extend(captured.into_iter().map(|(_, value)| value.expr));
    Expr::call(function, args)
}

fn rename(expr: &mut Expr, names: &[(Name, Arc<str>)]) {
    if let Expr::Field(name) = expr {
        if let Some((_, new)) = names.iter().find(|(old, _)| old == name) {
            *name = new.clone();
        }
        return;
    }
    expr.children_mut().into_iter().for_each(|child| rename(child, names));
}

fn lambda_of(names: Vec<Ident>, body: Ast) -> Ast {
    let parameter = |name| LambdaFunctionParameter { name, data_type: None };
    Ast::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(names.into_iter().map(parameter).collect()),
        body: Box::new(body),
        syntax: LambdaSyntax::LambdaKeyword,
    })
}

fn call_of(function: &str, list: Ast, lambda: Ast) -> Ast {
    let arg = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    super::table_function::call_of(vec![Ident::new(function)].into(), vec![arg(list), arg(lambda)])
}

/// Returns the names of the parameters of a lambda.
pub(super) fn parameters(lambda: &LambdaFunction) -> Vec<Ident> {
    match &lambda.params {
        OneOrManyWithParens::One(one) => vec![one.name.clone()],
        OneOrManyWithParens::Many(many) => many.iter().map(|one| one.name.clone()).collect(),
    }
}
