//! DuckDB's functions that build structs from named arguments: `struct_pack(a := 1)` and the like.

use sqlparser::ast::{Expr as Ast, Function, FunctionArg, FunctionArgExpr, Ident};
use tessera_types::{Atom, Error, Result, SqlState};

use super::typed::TypedExpr;
use super::{Binder, Place, with_span};

/// The names of the functions.
pub(super) const NAMES: [&str; 4] =
    ["struct_concat", "struct_insert", "struct_pack", "struct_update"];

impl Binder<'_> {
    /// Binds a call of one of these functions.
    pub(super) fn struct_function(
        &mut self,
        name: &str,
        args: &[FunctionArg],
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let wrong = |message: String| {
            let error = Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION);
            Err(with_span(error, function))
        };
        let mut fields: Vec<(String, TypedExpr)> = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let of_struct = match name {
                "struct_concat" => true,
                "struct_pack" => false,
                _ => at == 0,
            };
            match (named(arg), of_struct) {
                (Some((field, value)), false) => {
                    let value = self.expr(value, place)?.known();
                    let known = fields.iter().position(|(known, _)| known == &field.value);
                    match (known, name) {
                        (Some(known), "struct_update") => fields[known].1 = value,
                        (Some(_), _) => {
                            return wrong(format!(
                                "{name} gets two fields of the name {}; rename one of them",
                                field.value
                            ));
                        }
                        (None, _) => fields.push((field.value.clone(), value)),
                    }
                }
                (None, true) => {
                    let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg else {
                        return wrong(format!("{name} does not take {arg}; write a struct"));
                    };
                    let value = self.expr(value, place)?;
                    let value = self.once(value, place)?;
                    for (field, value) in self.fields_of(name, value)? {
                        if fields.iter().any(|(known, _)| *known == field) {
                            return wrong(format!(
                                "{name} gets two fields of the name {field}; rename one of them"
                            ));
                        }
                        fields.push((field, value));
                    }
                }
                (None, false) => {
                    return wrong(format!("{name} takes named values; write name := {arg}"));
                }
                (Some(_), true) => {
                    return wrong(format!("{name} does not take {arg}; write a struct"));
                }
            }
        }
        if fields.is_empty() {
            return wrong(format!("{name} takes at least one field"));
        }
        let mut all = Vec::with_capacity(2 * fields.len());
        for (field, value) in fields {
            all.extend([TypedExpr::text(&field), value]);
        }
        self.call("named_struct", all)
    }

    /// The fields of a struct.
    fn fields_of(&self, name: &str, value: TypedExpr) -> Result<Vec<(String, TypedExpr)>> {
        let Atom::Struct(slots) = &value.atom else {
            let message =
                format!("function {name} does not take {}; it takes a struct", value.atom);
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        let read = |field: &str| {
            let args = vec![value.clone(), TypedExpr::text(field)];
            Ok((field.to_string(), self.call("get_field", args)?))
        };
        slots.iter().map(|(field, _)| read(field)).collect()
    }
}

/// The name and the value of a named argument.
fn named(arg: &FunctionArg) -> Option<(&Ident, &Ast)> {
    match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed {
            name: Ast::Identifier(name),
            arg: FunctionArgExpr::Expr(value),
            ..
        } => Some((name, value)),
        _ => None,
    }
}
