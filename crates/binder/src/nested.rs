//! Lists, structs and maps: constructors and access to elements.

use sqlparser::ast::{
    AccessExpr, Array, DictionaryField, Expr as Ast, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, MapEntry, StructField, Subscript, Value,
};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState, suggest};

use super::scope::{Column, as_parameter};
use super::typed::TypedExpr;
use super::{Binder, Place, normalized, unsupported_at, with_span, without_parentheses};

impl Binder<'_> {
    /// Binds `[1, 2]` or `ARRAY[1, 2]`.
    pub(super) fn array(&mut self, array: &Array, place: &mut Place<'_, '_>) -> Result<TypedExpr> {
        let Array { elem, named: _ } = array;
        let unpacked = self.unpacked_list(elem, place.scope)?;
        let elem = unpacked.as_ref().unwrap_or(elem);
        let items = elem.iter().map(|item| self.expr(item, place)).collect::<Result<Vec<_>>>()?;
        self.list_of(items)
    }

    /// Builds a list of values.
    pub(super) fn list_of(&self, items: Vec<TypedExpr>) -> Result<TypedExpr> {
        let (items, _) = self.unified(items, "a list")?;
        self.call("make_array", items)
    }

    /// Binds `{'a': 1}`.
    pub(super) fn dictionary(
        &mut self,
        fields: &[DictionaryField],
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let mut args = Vec::with_capacity(2 * fields.len());
        for DictionaryField { key, value } in fields {
            args.push(TypedExpr::text(&key.value));
            let value = self.expr(value, place)?;
            args.push(value.known());
        }
        self.call("named_struct", args)
    }

    /// Binds `STRUCT(a AS b, …)`.
    pub(super) fn structure(
        &mut self,
        values: &[Ast],
        fields: &[StructField],
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        if let Some(field) = fields.first() {
            return Err(Error::unsupported(format!(
                "STRUCT with types ({}) is not supported",
                field.field_type
            )));
        }
        let mut args = Vec::with_capacity(2 * values.len());
        for (at, value) in values.iter().enumerate() {
            let (name, value) = match value {
                Ast::Named { expr, name } => (name.value.clone(), &**expr),
                value => (format!("c{at}"), value),
            };
            args.push(TypedExpr::text(&name));
            let value = self.expr(value, place)?;
            args.push(value.known());
        }
        self.call("named_struct", args)
    }

    /// Binds `MAP {'a': 1}`.
    pub(super) fn map(
        &mut self,
        entries: &[MapEntry],
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for MapEntry { key, value } in entries {
            keys.push(self.expr(key, place)?);
            values.push(self.expr(value, place)?);
        }
        self.call("map", vec![self.list_of(keys)?, self.list_of(values)?])
    }

    /// Binds `a.b[1]['c']`: leading names resolve to a column, the rest reads inside its value.
    pub(super) fn access(
        &mut self,
        root: &Ast,
        chain: &[AccessExpr],
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let is_method = |access: &AccessExpr| matches!(access, AccessExpr::Dot(Ast::Function(_)));
        if let Some(at) = chain.iter().rposition(is_method)
            && let AccessExpr::Dot(Ast::Function(method)) = &chain[at]
        {
            let mut method = method.clone();
            let mut before = chain[..at].to_vec();
            // `.a.f(…)` is the function of a field.
            let name = method.name.0.pop();
            for part in std::mem::take(&mut method.name.0) {
                let Some(field) = part.as_ident() else {
                    return Err(unsupported_at(&format!("the access .{part}"), root));
                };
                before.push(AccessExpr::Dot(Ast::Identifier(field.clone())));
            }
            method.name.0.extend(name);
            let value = match before.is_empty() {
                true => root.clone(),
                false => {
                    Ast::CompoundFieldAccess { root: Box::new(root.clone()), access_chain: before }
                }
            };
            let called = method_call(&method, value);
            return match &chain[at + 1..] {
                [] => self.expr(&called, place),
                rest => self.access(&called, rest, place),
            };
        }
        let mut names: Vec<Ident> = match root {
            Ast::Identifier(name) => vec![name.clone()],
            Ast::CompoundIdentifier(parts) => parts.clone(),
            // `(t).a` for a table `t`.
            root => match without_parentheses(root) {
                Ast::Identifier(name) if place.scope.whole_row(name).is_some() => {
                    vec![name.clone()]
                }
                _ => Vec::new(),
            },
        };
        let mut rest = chain;
        if !names.is_empty() {
            while let [AccessExpr::Dot(Ast::Identifier(name)), behind @ ..] = rest {
                names.push(name.clone());
                rest = behind;
            }
        }
        let mut value = match names.is_empty() {
            true => self.expr(root, place)?,
            false => self.name(&names, place)?,
        };
        for access in rest {
            value = match access {
                AccessExpr::Dot(Ast::Identifier(name)) => self.slot(value, name)?,
                AccessExpr::Dot(other) => {
                    return Err(unsupported_at(&format!("the access .{other}"), other));
                }
                AccessExpr::Subscript(subscript) => self.subscript(value, subscript, place)?,
            };
        }
        Ok(value)
    }

    /// Resolves a qualified name to a value.
    pub(super) fn name(&mut self, parts: &[Ident], place: &mut Place<'_, '_>) -> Result<TypedExpr> {
        let found = match (place.scope.column(parts)?, parts) {
            (Some(found), _) => found,
            (None, [table]) => match place.scope.whole_row(table) {
                Some(row) => return self.row_as_struct(table, row),
                None => place.scope.alias(parts)?,
            },
            (None, _) => place.scope.alias(parts)?,
        };
        let mut value = found.value;
        for slot in &parts[found.parts..] {
            value = self.slot(value, slot)?;
        }
        Ok(value)
    }

    /// Converts a row of a table to a struct; `outer` says whether the table belongs to an
    /// enclosing query.
    pub(super) fn row_as_struct(
        &mut self,
        table: &Ident,
        (columns, outer): (Vec<Column>, bool),
    ) -> Result<TypedExpr> {
        if columns.iter().any(|column| column.extended) {
            let message = format!(
                "a row of {} as a struct is not supported, because an outer join can make it NULL; name its columns",
                table.value
            );
            return Err(with_span(Error::unsupported(message), table.span));
        }
        let mut args = Vec::with_capacity(2 * columns.len());
        for column in columns {
            args.push(TypedExpr::text(&column.name));
            args.push(TypedExpr::new(Expr::Field(column.field), column.atom));
        }
        let row = self.call("named_struct", args)?;
        Ok(if outer { as_parameter(row) } else { row })
    }

    /// Reads a field of a struct.
    fn slot(&self, value: TypedExpr, name: &Ident) -> Result<TypedExpr> {
        let error = |message: String, state: SqlState| {
            Err(with_span(Error::semantic(message).with_state(state), name.span))
        };
        match &value.atom {
            Atom::Struct(slots) => {
                let exact = slots.iter().find(|(slot, _)| **slot == *normalized(name));
                let found = exact.or_else(|| {
                    slots.iter().find(|(slot, _)| slot.eq_ignore_ascii_case(&name.value))
                });
                let Some((slot, _)) = found else {
                    let known: Vec<&str> = slots.iter().map(|(slot, _)| &**slot).collect();
                    let hint = suggest(&name.value, "known fields are", &known);
                    return error(
                        format!("unknown struct field '{}'{hint}", name.value),
                        SqlState::UNDEFINED_COLUMN,
                    );
                };
                let slot = TypedExpr::text(slot);
                self.call("get_field", vec![value, slot])
            }
            other => error(
                format!("cannot read field {} of {other}; only structs have fields", name.value),
                SqlState::WRONG_OBJECT_TYPE,
            ),
        }
    }

    fn subscript(
        &mut self,
        value: TypedExpr,
        subscript: &Subscript,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        match subscript {
            Subscript::Index { index: Ast::Value(text) }
                if matches!(value.atom, Atom::Struct(_))
                    && matches!(text.value, Value::SingleQuotedString(_)) =>
            {
                let Value::SingleQuotedString(name) = &text.value else {
                    return Err(Error::internal("subscript without a string"));
                };
                self.slot(value, &Ident::with_quote_and_span('"', text.span, name))
            }
            Subscript::Index { index } => {
                let index = self.expr(index, place)?;
                match &value.atom {
                    Atom::Map(key, _) => {
                        let index = match index.unknown {
                            true => self.adapt_literal(index, &key.atom.clone())?,
                            false => index,
                        };
                        self.call("get_field", vec![value, index])
                    }
                    Atom::Struct(_) => {
                        let message = "a struct field needs a quoted name, as in s['a'], or a period, as in s.a";
                        Err(Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH))
                    }
                    other => {
                        let is_text = *other == Atom::String;
                        let index = match index.unknown || index.is_null() {
                            true => self.cast_to(index, &Atom::Int64, false)?,
                            false => index,
                        };
                        match is_text {
                            true => self.call("text_slice", vec![value.known(), index]),
                            false => self.call("array_element", vec![value, index]),
                        }
                    }
                }
            }
            Subscript::Slice { lower_bound, upper_bound, stride } => {
                let mut bound = |bound: &Option<Ast>, default: i64| match bound {
                    Some(bound) => self.expr(bound, place),
                    None => Ok(TypedExpr::int64(default)),
                };
                let args = [bound(lower_bound, 1)?, bound(upper_bound, -1)?, bound(stride, 1)?];
                if value.atom == Atom::String {
                    return match stride {
                        Some(stride) => Err(unsupported_at("a slice of a text with steps", stride)),
                        None => {
                            let [from, to, _] = args;
                            self.call("text_slice", vec![value.known(), from, to])
                        }
                    };
                }
                let mut all = vec![value];
                all.extend(args);
                if stride.is_none() {
                    all.pop();
                }
                self.call("array_slice", all)
            }
        }
    }
}

/// Returns the call that `value.f(…)` means: the value is the first argument.
pub(super) fn method_call(method: &Function, value: Ast) -> Ast {
    let mut call = method.clone();
    let value = FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
    match &mut call.args {
        FunctionArguments::List(list) => list.args.insert(0, value),
        args => {
            let args_and_value = FunctionArgumentList {
                duplicate_treatment: None,
                args: vec![value],
                clauses: Vec::new(),
            };
            *args = FunctionArguments::List(args_and_value);
        }
    }
    Ast::Function(call)
}

/// Returns the call that `column.f(…)` means; `None` if no column has this name.
pub(super) fn method_of_column(function: &Function, place: &Place<'_, '_>) -> Option<Ast> {
    let parts: Option<Vec<_>> = function.name.0.iter().map(|part| part.as_ident()).collect();
    let parts: Vec<_> = parts?.into_iter().cloned().collect();
    let (method, column) = parts.split_last()?;
    place.scope.column(column).ok().flatten().or_else(|| place.scope.alias(column).ok())?;
    let column = match column {
        [name] => Ast::Identifier(name.clone()),
        parts => Ast::CompoundIdentifier(parts.to_vec()),
    };
    let mut method_function = function.clone();
    method_function.name = vec![method.clone()].into();
    Some(method_call(&method_function, column))
}
