//! Names in expressions: what they read, and their replacement.

use std::collections::{HashMap, HashSet};

use tessera_plan::Expr;

use super::relation::Name;

/// Returns the parameters that an expression reads.
pub fn parameters(expr: &Expr) -> HashSet<Name> {
    let mut names = HashSet::new();
    add_parameters(expr, &mut names);
    names
}

pub(super) fn add_parameters(expr: &Expr, names: &mut HashSet<Name>) {
    expr.walk(&mut |expr| {
        if let Expr::Parameter(name) = expr {
            names.insert(name.clone());
        }
    });
}

/// Whether all fields of the expression are among `names`.
pub fn covered(expr: &Expr, names: &HashSet<Name>) -> bool {
    expr.fields().iter().all(|name| names.contains(name))
}

/// Replaces fields by expressions.
pub fn substitute(expr: &mut Expr, replacement: &dyn Fn(&Name) -> Option<Expr>) {
    if let Expr::Field(name) = expr {
        if let Some(new) = replacement(name) {
            *expr = new;
        }
        return;
    }
    for child in expr.children_mut() {
        substitute(child, replacement);
    }
}

/// Replaces fields by their expressions in `exprs`.
pub fn inline(expr: &mut Expr, exprs: &[(Name, Expr)]) {
    substitute(expr, &|name| {
        exprs.iter().find(|(known, _)| known == name).map(|(_, expr)| expr.clone())
    });
}

/// Turns the parameters among `names` into fields.
pub fn parameters_to_fields(expr: &mut Expr, names: &HashSet<Name>) {
    if let Expr::Parameter(name) = expr
        && names.contains(name)
    {
        *expr = Expr::Field(name.clone());
        return;
    }
    for child in expr.children_mut() {
        parameters_to_fields(child, names);
    }
}

/// Replaces parameters by the fields in `names`.
pub fn substitute_parameters(expr: &mut Expr, names: &HashMap<Name, Name>) {
    if let Expr::Parameter(name) = expr {
        if let Some(field) = names.get(name) {
            *expr = Expr::Field(field.clone());
        }
        return;
    }
    for child in expr.children_mut() {
        substitute_parameters(child, names);
    }
}
