//! Recursive queries.

use std::sync::Arc;

use tessera_ops::expression::common_type;
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::{Converted, Converter, Scope};
use crate::context;
use crate::relation::{Name, Recursive, Relation};

/// A recursive query whose step is being converted.
#[derive(Debug)]
pub(super) struct Open {
    /// What its work table is called in the step.
    name: String,
    id: Name,
    names: Vec<Name>,
}

impl Converter<'_> {
    pub(super) fn recursive(
        &mut self,
        recursion: &context::Recursion,
        outer: Option<&Scope<'_>>,
    ) -> Result<Converted> {
        // What was promised to the step, which may be other than what the base has: fields of outer queries keep stale types.
        let fields = recursion.schema.fields();
        let atoms = fields.iter().map(|field| Atom::from_arrow(field.data_type()));
        let atoms = atoms.collect::<Result<Vec<_>>>()?;
        let base = self.node(&recursion.base, outer)?;
        let base = self.as_types(base.relation, base.names, &atoms)?;
        let names: Vec<Name> =
            fields.iter().zip(&atoms).map(|(field, atom)| self.fresh(field.name(), atom.clone())).collect();
        self.recursions += 1;
        let id: Name = Arc::from(format!("{}${}", recursion.name, self.recursions));
        self.open.push(Open { name: recursion.name.clone(), id: id.clone(), names: names.clone() });
        let step = self.node(&recursion.step, outer);
        self.open.pop();
        let step = step?;
        for ((field, first), next) in fields.iter().zip(&atoms).zip(self.atoms_of(&step.names)?) {
            if !fits(&next, first) {
                return Err(Error::semantic(format!(
                    "column {} of the recursive query {} is {first} in its first term and {next} in the recursive one; \
                     cast one of them",
                    field.name(),
                    recursion.name
                ))
                .with_state(SqlState::DATATYPE_MISMATCH));
            }
        }
        let step = self.as_types(step.relation, step.names, &atoms)?;
        let distinct = recursion.distinct;
        let recursive = Recursive { id, base, step, names: names.clone(), distinct };
        Ok(Converted { relation: Relation::Recursive(Box::new(recursive)), names })
    }

    /// The innermost recursive query of this name, as its step sees it.
    pub(super) fn work_table(&mut self, name: &str) -> Result<Converted> {
        let open = self.open.iter().rev().find(|open| open.name == name);
        let open =
            open.ok_or_else(|| Error::internal(format!("the work table {name} is outside its query")))?;
        let (recursion, fields) = (open.id.clone(), open.names.clone());
        let mut columns = Vec::with_capacity(fields.len());
        for (position, field) in fields.iter().enumerate() {
            let atom = self.atom_of(&Expr::Field(field.clone()))?;
            columns.push((self.fresh(field, atom), position));
        }
        let names = columns.iter().map(|(name, _)| name.clone()).collect();
        Ok(Converted { relation: Relation::Work { recursion, columns }, names })
    }

    fn atoms_of(&self, names: &[Name]) -> Result<Vec<Atom>> {
        names.iter().map(|name| self.atom_of(&Expr::Field(name.clone()))).collect()
    }
}

/// Whether values of a type may become ones of another without asking: none is rounded.
fn fits(from: &Atom, to: &Atom) -> bool {
    match (from, to) {
        (Atom::Null, _) => true,
        (Atom::Decimal(_, from), Atom::Decimal(_, to)) => from <= to,
        _ => common_type(from, to).as_ref() == Some(to),
    }
}
