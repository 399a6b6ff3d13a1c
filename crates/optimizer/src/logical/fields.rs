//! The fields of a query: their unique names and their types.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_functions::Library;
use tessera_plan::{Expr, Rules, Scope, type_of};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::logical::relation::Name;
use crate::logical::types::Types;

/// The names and types of a query's fields. Every step from binding to lowering adds its own.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    /// The functions that expressions call.
    pub library: &'a Arc<Library>,
    used: HashSet<Name>,
    /// For each base name, the number to try next.
    numbers: HashMap<Name, usize>,
    atoms: HashMap<Name, Atom>,
    /// The enabled rewrite rules.
    pub rules: Rules,
}

impl<'a> Fields<'a> {
    /// Creates an empty set of fields.
    pub fn new(library: &'a Arc<Library>, rules: Rules) -> Self {
        Fields {
            library,
            used: HashSet::new(),
            numbers: HashMap::new(),
            atoms: HashMap::new(),
            rules,
        }
    }

    /// Returns the types of all fields.
    pub fn into_atoms(self) -> HashMap<Name, Atom> {
        self.atoms
    }

    /// The types of the fields so far.
    pub fn atoms(&self) -> &HashMap<Name, Atom> {
        &self.atoms
    }

    /// The types of the fields so far, with the function library and the rules.
    pub fn types(&self) -> Types<'_> {
        Types { library: self.library, atoms: &self.atoms, rules: self.rules }
    }

    /// Creates a field of this type with an unused name, `base` if possible.
    pub fn fresh(&mut self, base: &str, atom: Atom) -> Name {
        let mut name: Name = Arc::from(base);
        if !self.used.insert(name.clone()) {
            // Names are never released, so the search continues after the last number.
            let number = self.numbers.entry(name.clone()).or_insert(2);
            while !self.used.insert(name.clone()) {
                name = Arc::from(format!("{base}_{number}"));
                *number += 1;
            }
        }
        self.atoms.insert(name.clone(), atom);
        name
    }

    /// Creates a field for a column of a table, named like the column or prefixed with the table.
    pub fn fresh_column(&mut self, table: &str, column: &str, atom: Atom) -> Name {
        if self.used.contains(column) {
            let table = table.rsplit(['/', '.']).next().unwrap_or(table);
            return self.fresh(&format!("{table}_{column}"), atom);
        }
        self.fresh(column, atom)
    }

    /// Returns the type of a field.
    ///
    /// # Errors
    /// The field is unknown.
    pub fn atom(&self, name: &Name) -> Result<Atom> {
        let atom = self.atoms.get(name);
        atom.cloned().ok_or_else(|| Error::internal(format!("field {name} has no type yet")))
    }

    /// Returns the type of an expression over these fields.
    ///
    /// # Errors
    /// The expression is ill-typed.
    pub fn atom_of(&self, expr: &Expr) -> Result<Atom> {
        if let Expr::Field(name) | Expr::Parameter(name) = expr {
            return self.atom(name);
        }
        let mut names = HashSet::new();
        expr.walk(&mut |expr| {
            if let Expr::Field(name) | Expr::Parameter(name) = expr {
                names.insert(name.clone());
            }
        });
        let field = |name: Name| Ok(Field::nullable(name.clone(), self.atom(&name)?));
        let tuple = Tuple::new(names.into_iter().map(field).collect::<Result<Vec<_>>>()?);
        let scope = Scope { tuple: &tuple, parameters: &tuple, functions: &**self.library };
        type_of(expr, scope).map(|(atom, _)| atom)
    }
}
