//! Lists as tuples.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Value};
use tessera_types::{Atom, Field, Result, Tuple};

use super::node::add;
use super::{Level, Lowering, Made};
use crate::relation::{Name, Relation};

impl Lowering<'_> {
    pub(super) fn unnest(
        &mut self,
        input: &Relation,
        lists: &[(Name, Name)],
        outer: bool,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let mut below = needed.clone();
        below.extend(lists.iter().map(|(list, _)| list.clone()));
        let made = self.lower(input, &below, level)?;
        let made = self.prune(level, made, &below)?;
        let fields = made
            .tuple
            .fields()
            .iter()
            .map(|field| match field.atom() {
                Some(Atom::List(slot)) if lists.iter().any(|(list, _)| *list == field.name) => {
                    Field::nullable(field.name.clone(), slot.atom.clone())
                }
                _ => field.clone(),
            })
            .collect::<Vec<_>>();
        let names: Vec<&Name> = lists.iter().map(|(list, _)| list).collect();
        let mut params = Params::new().with("fields", Value::names(names));
        if outer {
            params.set("outer", true);
        }
        let made = add(level, "unnest", &[made.id], params, Tuple::new(fields));
        let exprs = made
            .tuple
            .fields()
            .iter()
            .map(|field| match lists.iter().find(|(list, _)| *list == field.name) {
                Some((list, element)) => (element.clone(), Expr::Field(list.clone())),
                None => (field.name.clone(), Expr::Field(field.name.clone())),
            })
            .collect();
        self.map(level, made, exprs)
    }
}
