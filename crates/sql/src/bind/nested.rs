//! Lists, structs and maps: literals, and access to what is in them.

use sqlparser::ast::{
    AccessExpr, Array, DictionaryField, Expr as Ast, Ident, MapEntry, StructField, Subscript, Value,
};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::scope::{Column, as_parameter};
use super::typed::Typed;
use super::{Binder, Place, normalized, placed, refuse_at, without_parentheses};

impl Binder<'_> {
    /// `[1, 2]` or `ARRAY[1, 2]`.
    pub(super) fn array(&mut self, array: &Array, place: &mut Place<'_, '_>) -> Result<Typed> {
        let Array { elem, named: _ } = array;
        let items = elem.iter().map(|item| self.expr(item, place)).collect::<Result<Vec<_>>>()?;
        self.list_of(items)
    }

    /// A list of values.
    pub(super) fn list_of(&self, items: Vec<Typed>) -> Result<Typed> {
        let (items, _) = self.unified(items, "a list")?;
        self.call("make_array", items)
    }

    /// `{'a': 1}`.
    pub(super) fn dictionary(
        &mut self,
        fields: &[DictionaryField],
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let mut args = Vec::with_capacity(2 * fields.len());
        for DictionaryField { key, value } in fields {
            args.push(Typed::text(&key.value));
            let value = self.expr(value, place)?;
            args.push(value.known());
        }
        self.call("named_struct", args)
    }

    /// `STRUCT(a AS b, …)`.
    pub(super) fn structure(
        &mut self,
        values: &[Ast],
        fields: &[StructField],
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
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
            args.push(Typed::text(&name));
            let value = self.expr(value, place)?;
            args.push(value.known());
        }
        self.call("named_struct", args)
    }

    /// `MAP {'a': 1}`.
    pub(super) fn map(&mut self, entries: &[MapEntry], place: &mut Place<'_, '_>) -> Result<Typed> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for MapEntry { key, value } in entries {
            keys.push(self.expr(key, place)?);
            values.push(self.expr(value, place)?);
        }
        self.call("map", vec![self.list_of(keys)?, self.list_of(values)?])
    }

    /// `a.b[1]['c']`: names first, as many as are a column's; what follows reads within it.
    pub(super) fn access(
        &mut self,
        root: &Ast,
        chain: &[AccessExpr],
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let mut names: Vec<Ident> = match root {
            Ast::Identifier(name) => vec![name.clone()],
            Ast::CompoundIdentifier(parts) => parts.clone(),
            // `(t).a`, where t is a table.
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
                    return Err(refuse_at(&format!("the access .{other}"), other));
                }
                AccessExpr::Subscript(subscript) => self.subscript(value, subscript, place)?,
            };
        }
        Ok(value)
    }

    /// What a name in parts stands for.
    pub(super) fn name(&mut self, parts: &[Ident], place: &mut Place<'_, '_>) -> Result<Typed> {
        let found = match (place.scope.resolve(parts), parts) {
            (Ok(found), _) => found,
            (Err(error), [table]) => match place.scope.whole_row(table) {
                Some(row) => return self.row_as_struct(table, row),
                None => return Err(error),
            },
            (Err(error), _) => return Err(error),
        };
        let mut value = found.value;
        for slot in &parts[found.parts..] {
            value = self.slot(value, slot)?;
        }
        Ok(value)
    }

    /// A row of a table as a struct; with `outer`, of a query around this one.
    pub(super) fn row_as_struct(
        &mut self,
        table: &Ident,
        (columns, outer): (Vec<Column>, bool),
    ) -> Result<Typed> {
        if columns.iter().any(|column| column.extended) {
            let message = format!(
                "a row of {} as one value, which an outer join may supply NULL for, is not supported; name its columns",
                table.value
            );
            return Err(placed(Error::unsupported(message), table.span));
        }
        let mut args = Vec::with_capacity(2 * columns.len());
        for column in columns {
            args.push(Typed::text(&column.name));
            args.push(Typed::new(Expr::Field(column.field), column.atom));
        }
        let row = self.call("named_struct", args)?;
        Ok(if outer { as_parameter(row) } else { row })
    }

    /// A slot of a struct, or what a map has for a key.
    fn slot(&self, value: Typed, name: &Ident) -> Result<Typed> {
        let error = |message: String, state: SqlState| {
            Err(placed(Error::semantic(message).with_state(state), name.span))
        };
        match &value.atom {
            Atom::Struct(slots) => {
                let exact = slots.iter().find(|(slot, _)| **slot == *normalized(name));
                let found = exact.or_else(|| {
                    slots.iter().find(|(slot, _)| slot.eq_ignore_ascii_case(&name.value))
                });
                let Some((slot, _)) = found else {
                    let known =
                        slots.iter().map(|(slot, _)| &**slot).collect::<Vec<_>>().join(", ");
                    return error(
                        format!("there is no field {}; there are {known}", name.value),
                        SqlState::UNDEFINED_COLUMN,
                    );
                };
                let slot = Typed::text(slot);
                self.call("get_field", vec![value, slot])
            }
            other => error(
                format!("the field {} of a value that is {other}, not a struct", name.value),
                SqlState::WRONG_OBJECT_TYPE,
            ),
        }
    }

    fn subscript(
        &mut self,
        value: Typed,
        subscript: &Subscript,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        match subscript {
            Subscript::Index { index: Ast::Value(text) }
                if matches!(value.atom, Atom::Struct(_))
                    && matches!(text.value, Value::SingleQuotedString(_)) =>
            {
                let Value::SingleQuotedString(name) = &text.value else {
                    return Err(Error::internal("a text is none"));
                };
                self.slot(value, &Ident::with_quote_and_span('"', text.span, name))
            }
            Subscript::Index { index } => {
                let index = self.expr(index, place)?;
                match &value.atom {
                    Atom::Map(key, _) => {
                        let index = match index.unknown {
                            true => self.beside(index, &key.atom.clone())?,
                            false => index,
                        };
                        self.call("get_field", vec![value, index])
                    }
                    Atom::Struct(_) => {
                        let message = "a struct's field is named in quotes, as s['a'], or behind a point, as s.a";
                        Err(Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH))
                    }
                    _ => {
                        let index = match index.unknown {
                            true => self.cast_to(index, &Atom::Int64, false)?,
                            false => index,
                        };
                        self.call("array_element", vec![value, index])
                    }
                }
            }
            Subscript::Slice { lower_bound, upper_bound, stride } => {
                let mut bound = |bound: &Option<Ast>, default: i64| match bound {
                    Some(bound) => self.expr(bound, place),
                    None => Ok(Typed::int64(default)),
                };
                let args = [bound(lower_bound, 1)?, bound(upper_bound, -1)?, bound(stride, 1)?];
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
