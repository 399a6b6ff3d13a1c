//! The SELECT list: expansion of `*`, column names, and `unnest`.

use std::borrow::Cow;
use std::rc::Rc;

use sqlparser::ast::{
    ExcludeSelectItem, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, LikeSelectItem, LikeSelectKind, ObjectName, RenameSelectItem, SelectItem,
    SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::columns::{columns_call, none_selected};
use super::function::argument;
use super::scope::{Column, Scope, matches, of_one_table, unknown_column};
use super::steps::{Step, with_fields};
use super::typed::TypedExpr;
use super::{Binder, Place, normalized, refuse, unsupported_at, with_span};

/// A column of the SELECT list.
#[derive(Debug)]
pub(crate) struct Item<'q> {
    pub(crate) name: Rc<str>,
    /// Whether the name is an explicit alias.
    pub(crate) has_alias: bool,
    /// The expression; `None` if the item is part of an expanded `*`.
    written: Option<Cow<'q, Ast>>,
    /// The value, if it is not that of the expression.
    value: Option<ItemValue<'q>>,
}

impl Item<'_> {
    pub(crate) fn expr(&self) -> Option<&Ast> {
        self.written.as_deref()
    }

    /// Returns the value, if it is bound already.
    pub(crate) fn known(&self) -> Option<&TypedExpr> {
        match &self.value {
            Some(ItemValue::Known(value)) => Some(value),
            _ => None,
        }
    }

    /// Sets the value, which a clause before the list reads.
    pub(crate) fn set_known(&mut self, value: TypedExpr) {
        self.value = Some(ItemValue::Known(value));
    }
}

/// The value of a list item that is not that of its expression.
#[derive(Debug)]
enum ItemValue<'q> {
    /// A column of an expanded `*`, or an expression that is bound already.
    Known(TypedExpr),
    /// A slot of the struct argument of `unnest`, or of `(struct).*`.
    Slot(&'q Ast, String),
}

/// A call of `unnest`: its list, and the field that holds the elements.
#[derive(Debug)]
pub(crate) struct UnnestCall {
    pub(crate) list: TypedExpr,
    pub(crate) element: Name,
}

impl Binder<'_> {
    /// Expands the items of a SELECT list.
    pub(super) fn items<'q>(
        &mut self,
        projection: &'q [SelectItem],
        scope: &Scope<'_>,
    ) -> Result<Vec<Item<'q>>> {
        let mut items = Vec::with_capacity(projection.len());
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }
                    if columns_call(expr).is_some() =>
                {
                    let alias = match item {
                        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
                        _ => None,
                    };
                    for (name, expr) in self.expanded_columns(expr, alias, scope)? {
                        let has_alias = alias.is_some();
                        let written = Some(Cow::Owned(expr));
                        items.push(Item { name, has_alias, written, value: None });
                    }
                }
                SelectItem::UnnamedExpr(expr) => match self.slots_of_unnest(expr, scope) {
                    Some((argument, slots)) => items.extend(slots.into_iter().map(|slot| Item {
                        name: slot.as_str().into(),
                        has_alias: false,
                        written: Some(Cow::Borrowed(expr)),
                        value: Some(ItemValue::Slot(argument, slot)),
                    })),
                    None => items.push(Item {
                        name: shown_name(expr).into(),
                        has_alias: false,
                        written: Some(Cow::Borrowed(expr)),
                        value: None,
                    }),
                },
                SelectItem::ExprWithAlias { expr, alias } => {
                    check_quotes(alias)?;
                    items.push(Item {
                        name: normalized(alias).into(),
                        has_alias: true,
                        written: Some(Cow::Borrowed(expr)),
                        value: None,
                    });
                }
                SelectItem::ExprWithAliases { expr, .. } => {
                    return Err(unsupported_at("several aliases for one column", expr));
                }
                SelectItem::Wildcard(options) => {
                    let columns: Vec<Column> = scope.visible().cloned().collect();
                    if columns.is_empty() {
                        let error = Error::new(Code::Syntax, "SELECT * without a table in FROM");
                        return Err(with_span(error, options.wildcard_token.0.span));
                    }
                    self.wildcard(columns, options, &mut items)?;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                    return Err(unsupported_at(
                        "(value).* of an expression that is not a name",
                        expr,
                    ));
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => match self.wildcard_columns(name, scope) {
                    Ok(columns) => self.wildcard(columns, options, &mut items)?,
                    Err(error) => match self.slots_of_name(name, options, scope)? {
                        Some(slots) => items.extend(slots),
                        None => return Err(error),
                    },
                },
            }
        }
        Ok(items)
    }

    /// Returns the columns that `table.*` expands to.
    pub(super) fn wildcard_columns(
        &mut self,
        name: &ObjectName,
        scope: &Scope<'_>,
    ) -> Result<Vec<Column>> {
        let parts = idents(name)?;
        let mut current = Some(scope);
        let mut outer = false;
        while let Some(near) = current {
            if let Some(columns) = near.of_table(&parts) {
                return match outer {
                    true => Err(Error::unsupported(
                        "table.* of an enclosing query is not supported; name the columns",
                    )),
                    false => Ok(columns),
                };
            }
            current = near.outer;
            outer = true;
        }
        Err(scope.unknown_table(&parts))
    }

    pub(super) fn wildcard<'q>(
        &mut self,
        columns: Vec<Column>,
        options: &'q WildcardAdditionalOptions,
        items: &mut Vec<Item<'q>>,
    ) -> Result<()> {
        let WildcardAdditionalOptions {
            wildcard_token,
            opt_ilike,
            opt_like,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let place = wildcard_token.0.span;
        refuse(opt_alias.is_some(), "an alias for *", place)?;
        let mut excluded: Vec<Vec<Ident>> = match opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => vec![idents(name)?],
            Some(ExcludeSelectItem::Multiple(names)) => {
                names.iter().map(idents).collect::<Result<_>>()?
            }
            None => Vec::new(),
        };
        if let Some(except) = opt_except {
            let names = std::iter::once(&except.first_element).chain(&except.additional_elements);
            excluded.extend(names.map(|name| vec![name.clone()]));
        }
        let replaced: Vec<_> = opt_replace.iter().flat_map(|replace| &replace.items).collect();
        let renamed = match opt_rename {
            Some(RenameSelectItem::Single(pair)) => std::slice::from_ref(pair),
            Some(RenameSelectItem::Multiple(pairs)) => pairs,
            None => &[],
        };
        let is = |name: &Ident, column: &Column| {
            matches(name, &column.name, true) || matches(name, &column.name, false)
        };
        let missing = |name: &Ident, clause: &str| {
            unknown_column(name, &format!("{} in {clause}", of_one_table(&columns)), &columns)
        };
        let is_excluded = |parts: &[Ident], column: &Column| match parts.split_last() {
            Some((name, table)) => {
                is(name, column)
                    && table.iter().rev().zip(column.table.iter().rev()).all(|(part, table)| {
                        matches(part, table, true) || matches(part, table, false)
                    })
            }
            None => false,
        };
        for parts in &excluded {
            if let (Some(name), false) =
                (parts.last(), columns.iter().any(|column| is_excluded(parts, column)))
            {
                return Err(missing(name, "EXCLUDE"));
            }
        }
        for element in &replaced {
            if !columns.iter().any(|column| is(&element.column_name, column)) {
                return Err(missing(&element.column_name, "REPLACE"));
            }
        }
        for pair in renamed {
            if !columns.iter().any(|column| is(&pair.ident, column)) {
                return Err(missing(&pair.ident, "RENAME"));
            }
        }
        let ilike = opt_ilike.as_ref().map(|ilike| LikeSelectItem {
            negated: false,
            kind: LikeSelectKind::ILike,
            pattern: ilike.pattern.clone(),
        });
        let mut selected = Vec::with_capacity(columns.len());
        for column in &columns {
            let mut is_like = true;
            for like in opt_like.iter().chain(&ilike) {
                is_like &= self.is_like(&column.name, like).map_err(|e| with_span(e, place))?;
            }
            if is_like {
                selected.push(column.clone());
            }
        }
        if selected.is_empty() && !columns.is_empty() {
            return Err(with_span(none_selected(&columns), place));
        }
        for column in selected {
            if excluded.iter().any(|parts| is_excluded(parts, &column)) {
                continue;
            }
            let name: Rc<str> = (*column.name).into();
            let renamed = renamed.iter().find(|pair| is(&pair.ident, &column));
            let name = renamed.map_or(name, |pair| normalized(&pair.alias).into());
            match replaced.iter().find(|element| is(&element.column_name, &column)) {
                Some(element) => {
                    let written = Some(Cow::Borrowed(&element.expr));
                    items.push(Item { name, has_alias: false, written, value: None });
                }
                None => {
                    let value = TypedExpr::new(Expr::Field(column.field), column.atom);
                    let value = Some(ItemValue::Known(value));
                    items.push(Item { name, has_alias: false, written: None, value });
                }
            }
        }
        Ok(())
    }

    /// Returns the struct argument of an `unnest` call and its slot names; `None` for other
    /// expressions.
    fn slots_of_unnest<'q>(
        &mut self,
        expr: &'q Ast,
        scope: &Scope<'_>,
    ) -> Option<(&'q Ast, Vec<String>)> {
        let argument = unnest_argument(expr)?;
        // Only the type is used here.
        let place = &mut Place { scope, steps: &mut Vec::new(), clause: "SELECT", unnests: None };
        match self.expr(argument, place).ok()?.atom {
            Atom::Struct(slots) => {
                Some((argument, slots.iter().map(|(name, _)| name.to_string()).collect()))
            }
            _ => None,
        }
    }

    /// Returns the slots that `(name).*` expands to if the name is a struct.
    fn slots_of_name<'q>(
        &mut self,
        name: &ObjectName,
        options: &WildcardAdditionalOptions,
        scope: &Scope<'_>,
    ) -> Result<Option<Vec<Item<'q>>>> {
        let place = &mut Place { scope, steps: &mut Vec::new(), clause: "SELECT", unnests: None };
        let Ok(value) = self.name(&idents(name)?, place) else { return Ok(None) };
        let Atom::Struct(slots) = &value.atom else { return Ok(None) };
        if *options != WildcardAdditionalOptions::default() {
            return Err(unsupported_at("an option after * of a struct", name));
        }
        let slot = |(slot, _): &(std::sync::Arc<str>, _)| {
            let field = self.call("get_field", vec![value.clone(), TypedExpr::text(slot)])?;
            let name: Rc<str> = (**slot).into();
            Ok(Item { name, has_alias: false, written: None, value: Some(ItemValue::Known(field)) })
        };
        slots.iter().map(slot).collect::<Result<_>>().map(Some)
    }

    /// Binds the values of the items. Each alias is added to the results of the scope, where later
    /// items can read it.
    pub(super) fn list(
        &mut self,
        items: &[Item<'_>],
        scope: &mut Scope<'_>,
        steps: &mut Vec<Step>,
        unnests: &mut Vec<UnnestCall>,
    ) -> Result<Vec<(Rc<str>, TypedExpr)>> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            let mut place =
                Place { scope, steps: &mut *steps, clause: "SELECT", unnests: Some(&mut *unnests) };
            let value = match (&item.value, item.expr()) {
                (Some(ItemValue::Known(value)), _) => value.clone(),
                (Some(ItemValue::Slot(argument, slot)), _) => {
                    let value = self.expr(argument, &mut place)?;
                    self.call("get_field", vec![value, TypedExpr::text(slot)])?
                }
                (None, Some(expr)) => self.expr(expr, &mut place)?,
                (None, None) => return Err(Error::internal("SELECT item without a value")),
            };
            let value = match item.has_alias {
                true => self.readable_result(&item.name, value, scope, steps, unnests)?,
                false => value,
            };
            list.push((item.name.clone(), value));
        }
        Ok(list)
    }

    /// Binds `unnest` in a SELECT list: one row per element.
    pub(super) fn unnest_call(
        &mut self,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(unsupported_at("unnest with a subquery", function));
        };
        let [arg] = &list.args[..] else {
            let message = "unnest takes one list here";
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        let written = argument(arg, function)?;
        let list = {
            let scope = place.scope;
            let inner =
                &mut Place { scope, steps: &mut *place.steps, clause: "unnest", unnests: None };
            self.expr(written, inner)?
        };
        let Some(unnests) = place.unnests.as_deref_mut() else {
            let message = format!(
                "unnest is not supported in {}; call it in the list of SELECT or in FROM",
                place.clause
            );
            return Err(Error::unsupported(message));
        };
        let list = match list.is_null() {
            true => self.cast_to(list, &super::table_function::list_of(Atom::Int32), false)?,
            false => list,
        };
        let Atom::List(slot) = &list.atom else {
            let message = format!("unnest takes a list, not {}", list.atom);
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        let atom = slot.atom.clone();
        if let Some(known) = unnests.iter().find(|known| known.list.expr == list.expr)
            && !self.fields.types().volatile(&list.expr)
        {
            return Ok(TypedExpr::new(Expr::Field(known.element.clone()), atom));
        }
        let element = self.fields.fresh("unnest", atom.clone());
        unnests.push(UnnestCall { list, element: element.clone() });
        Ok(TypedExpr::new(Expr::Field(element), atom))
    }

    /// Applies the collected `unnest` calls to a relation.
    pub(super) fn unnested(
        &mut self,
        relation: Relation,
        unnests: Vec<UnnestCall>,
    ) -> Result<Relation> {
        if unnests.is_empty() {
            return Ok(relation);
        }
        let (mut fields, mut lists) = (Vec::new(), Vec::new());
        for UnnestCall { list, element } in unnests {
            let list = self.finished(list)?;
            let name = self.fields.fresh("list", list.atom.clone());
            fields.push((name.clone(), list.expr));
            lists.push((name, element));
        }
        let input = Box::new(with_fields(relation, fields));
        Ok(Relation::Unnest { input, lists, outer: false })
    }
}

/// Rejects an alias in single quotes, because `'a' 'b'` does not mean `'a' AS "b"`.
pub(super) fn check_quotes(alias: &Ident) -> Result<()> {
    match alias.quote_style {
        Some('\'') => {
            let message = format!(
                "'{0}' in single quotes is a string; write a name in double quotes",
                alias.value
            );
            Err(with_span(Error::new(Code::Syntax, message), alias.span))
        }
        _ => Ok(()),
    }
}

/// Returns the only argument of an `unnest` call; `None` for other expressions.
fn unnest_argument(expr: &Ast) -> Option<&Ast> {
    let Ast::Function(function) = expr else { return None };
    if !is_called(function, "unnest") {
        return None;
    }
    match &function.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some(argument),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a call names this function.
pub(super) fn is_called(function: &Function, name: &str) -> bool {
    match function.name.0.as_slice() {
        [part] => part.as_ident().is_some_and(|ident| normalized(ident) == name),
        _ => false,
    }
}

/// Returns the parts of a name.
pub(super) fn idents(name: &ObjectName) -> Result<Vec<Ident>> {
    let parts = name.0.iter().map(|part| part.as_ident().cloned());
    parts
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| unsupported_at(&format!("the name {name}"), name))
}

/// Returns the output name of an expression without an alias: a column's name, or the expression's
/// text.
pub(super) fn shown_name(expr: &Ast) -> String {
    match expr {
        Ast::Identifier(name) => normalized(name),
        Ast::CompoundIdentifier(parts) => parts.last().map_or_else(|| expr.to_string(), normalized),
        other => other.to_string(),
    }
}
