//! The fields of a query: their names, each used once, and their types.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_functions::Library;
use tessera_plan::{Expr, Rules, Scope, type_of};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::logical::raise::Types;
use crate::logical::relation::Name;

/// Names and types of a query's fields. Every step from binding to lowering adds its own.
#[derive(Debug)]
pub struct Fields<'a> {
    /// The functions that expressions call.
    pub library: &'a Arc<Library>,
    used: HashSet<Name>,
    /// The number that the next name of each base is tried with.
    numbers: HashMap<Name, usize>,
    atoms: HashMap<Name, Atom>,
    /// The rewrites that are on.
    pub rules: Rules,
}

impl<'a> Fields<'a> {
    /// No field yet.
    pub fn new(library: &'a Arc<Library>, rules: Rules) -> Self {
        Fields {
            library,
            used: HashSet::new(),
            numbers: HashMap::new(),
            atoms: HashMap::new(),
            rules,
        }
    }

    /// The types of all fields.
    pub fn into_atoms(self) -> HashMap<Name, Atom> {
        self.atoms
    }

    /// The types of the fields so far.
    pub fn atoms(&self) -> &HashMap<Name, Atom> {
        &self.atoms
    }

    /// The types of the fields so far, and the functions.
    pub fn types(&self) -> Types<'_> {
        Types { library: self.library, atoms: &self.atoms, rules: self.rules }
    }

    /// A name not used yet, as close to `base` as can be, for a field of this type.
    pub fn fresh(&mut self, base: &str, atom: Atom) -> Name {
        let mut name: Name = Arc::from(base);
        if !self.used.insert(name.clone()) {
            // No name is given back, so the search goes on behind the last one found.
            let number = self.numbers.entry(name.clone()).or_insert(2);
            while !self.used.insert(name.clone()) {
                name = Arc::from(format!("{base}_{number}"));
                *number += 1;
            }
        }
        self.atoms.insert(name.clone(), atom);
        name
    }

    /// A name for a column of a table: its own, or with the table's in front.
    pub fn fresh_column(&mut self, table: &str, column: &str, atom: Atom) -> Name {
        if self.used.contains(column) {
            let table = table.rsplit(['/', '.']).next().unwrap_or(table);
            return self.fresh(&format!("{table}_{column}"), atom);
        }
        self.fresh(column, atom)
    }

    /// The type of a field.
    ///
    /// # Errors
    /// There is no such field.
    pub fn atom(&self, name: &Name) -> Result<Atom> {
        let atom = self.atoms.get(name);
        atom.cloned().ok_or_else(|| Error::internal(format!("field {name} has no type yet")))
    }

    /// The type of an expression over these fields.
    ///
    /// # Errors
    /// It has none.
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
