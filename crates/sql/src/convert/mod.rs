//! The logical plan as relations: names made unique, expressions in the plan's own language, subqueries as joins.

mod bag;
mod expression;
mod join;
mod node;
mod recursive;
mod subquery;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion_common::{Column, DFSchema};
use datafusion_expr::LogicalPlan;
use tessera_ops::expression::{Library, Simplifier};
use tessera_plan::{Expr, Scope as TypeScope, type_of};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::clock::Moment;
use crate::relation::{Name, Relation};

/// A relation and, by position of the logical plan's schema, the names of its fields.
#[derive(Debug, Clone)]
pub(crate) struct Converted {
    pub(crate) relation: Relation,
    pub(crate) names: Vec<Name>,
}

/// Where columns of an expression resolve.
#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    schema: &'a DFSchema,
    names: &'a [Name],
    outer: Option<&'a Scope<'a>>,
}

/// Turns logical plans into relations.
#[derive(Debug)]
pub(crate) struct Converter<'a> {
    pub(crate) library: &'a Arc<Library>,
    moment: Moment,
    used: HashSet<Name>,
    atoms: HashMap<Name, Atom>,
    /// Groupings converted so far that read nothing from outside.
    groupings: Vec<(LogicalPlan, Converted)>,
    /// Recursive queries whose steps are being converted, the innermost last, and how many there have been.
    open: Vec<recursive::Open>,
    recursions: usize,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(library: &'a Arc<Library>, moment: Moment) -> Self {
        Converter {
            library,
            moment,
            used: HashSet::new(),
            atoms: HashMap::new(),
            groupings: Vec::new(),
            open: Vec::new(),
            recursions: 0,
        }
    }

    /// The relation a query's logical plan means.
    pub(crate) fn query(&mut self, plan: &LogicalPlan) -> Result<Converted> {
        self.node(plan, None)
    }

    /// The types of all fields named so far.
    pub(crate) fn atoms(self) -> HashMap<Name, Atom> {
        self.atoms
    }

    /// The types of the fields named so far, and the functions.
    pub(crate) fn types(&self) -> crate::raise::Types<'_> {
        crate::raise::Types { library: self.library, atoms: &self.atoms }
    }

    /// The types of the fields named so far.
    pub(crate) fn field_atoms(&self) -> &HashMap<Name, Atom> {
        &self.atoms
    }

    /// A name not used yet, for a field of this type.
    pub(crate) fn fresh_name(&mut self, base: &str, atom: Atom) -> Name {
        self.fresh(base, atom)
    }

    /// The type of an expression over fields named so far.
    pub(crate) fn atom_of_expr(&self, expr: &Expr) -> Result<Atom> {
        self.atom_of(expr)
    }

    /// A name not used yet, as close to `base` as can be.
    fn fresh(&mut self, base: &str, atom: Atom) -> Name {
        let base = crate::check::shown_name(base);
        let mut name: Name = Arc::from(base);
        let mut number = 2;
        while !self.used.insert(name.clone()) {
            name = Arc::from(format!("{base}_{number}"));
            number += 1;
        }
        self.atoms.insert(name.clone(), atom);
        name
    }

    /// A name for a column of a table: its own, or with the table's in front.
    fn fresh_column(&mut self, qualifier: &str, column: &str, atom: Atom) -> Name {
        if self.used.contains(column) {
            let qualifier = qualifier.rsplit(['/', '.']).next().unwrap_or(qualifier);
            return self.fresh(&format!("{qualifier}_{column}"), atom);
        }
        self.fresh(column, atom)
    }

    /// An expression whose operands are simple already, simplified.
    fn simple(&self, expr: Expr) -> Expr {
        Simplifier::new(self.library, self.types()).node(expr)
    }

    /// The type of an expression over fields named so far.
    fn atom_of(&self, expr: &Expr) -> Result<Atom> {
        self.type_of(expr).map(|(atom, _)| atom)
    }

    fn type_of(&self, expr: &Expr) -> Result<(Atom, bool)> {
        let mut fields = HashSet::new();
        expr.walk(&mut |expr| {
            if let Expr::Field(name) | Expr::Parameter(name) = expr {
                fields.insert(name.clone());
            }
        });
        let field = |name: Name| {
            let atom = self
                .atoms
                .get(&name)
                .ok_or_else(|| Error::internal(format!("field {name} has no type yet")))?;
            Ok(Field::nullable(name, atom.clone()))
        };
        let tuple = Tuple::new(fields.into_iter().map(field).collect::<Result<Vec<_>>>()?);
        type_of(expr, TypeScope { tuple: &tuple, parameters: &tuple, functions: &**self.library })
    }
}

impl Scope<'_> {
    fn resolve(&self, column: &Column) -> Result<Name> {
        self.try_resolve(column).ok_or_else(|| {
            Error::internal(format!("column {} is not in {}", column.flat_name(), self.schema))
        })
    }

    fn try_resolve(&self, column: &Column) -> Option<Name> {
        self.names.get(self.schema.maybe_index_of_column(column)?).cloned()
    }

    fn resolve_outer(&self, column: &Column) -> Result<Name> {
        let mut scope = self.outer;
        while let Some(outer) = scope {
            if let Some(name) = outer.try_resolve(column) {
                return Ok(name);
            }
            scope = outer.outer;
        }
        Err(Error::internal(format!("column {} of an outer query was not found", column.flat_name())))
    }
}
