//! Lists as tuples.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Value};
use tessera_types::{Atom, Field, Item, Result, TimeUnit, Tuple};

use super::node::{add, fields_of};
use super::{Level, Lowering, Made};
use crate::logical::relation::{Name, Relation};

impl Lowering<'_> {
    pub(super) fn unnest(
        &mut self,
        input: &Relation,
        lists: &[(Name, Name)],
        outer: bool,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        if let (Relation::Map { input, exprs }, [(list, element)], false) = (input, lists, outer)
            && let Some(series) = self.series(exprs, list)?
        {
            return self.series_of(input, exprs, &series, (list, element), needed, level);
        }
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

    /// The bounds of the numbers or moments that a list is; none where it is another list, or where
    /// the fields beside it must be computed once for each list.
    fn series(&self, exprs: &[(Name, Expr)], list: &Name) -> Result<Option<Bounds>> {
        let Some((_, Expr::Call { function, args })) = exprs.iter().find(|(name, _)| name == list)
        else {
            return Ok(None);
        };
        if !matches!(&**function, "generate_series" | "range")
            || exprs.iter().any(|(_, expr)| self.types.volatile(expr))
        {
            return Ok(None);
        }
        let Some(Atom::List(slot)) = self.types.atoms.get(list) else { return Ok(None) };
        let apart = match &slot.atom {
            Atom::Int64 => Atom::Int64,
            Atom::Timestamp(TimeUnit::Microsecond, _) => Atom::Interval,
            _ => return Ok(None),
        };
        let (start, stop, step) = match &args[..] {
            [stop] if apart == Atom::Int64 => (Expr::int64(0), stop.clone(), Expr::int64(1)),
            [start, stop] if apart == Atom::Int64 => (start.clone(), stop.clone(), Expr::int64(1)),
            [start, stop, step] => (start.clone(), stop.clone(), step.clone()),
            _ => return Ok(None),
        };
        let of_atom = |expr: Expr, to: &Atom| match &expr {
            Expr::Constant(_, atom) if atom == to => expr,
            Expr::Field(name) if self.types.atoms.get(name) == Some(to) => expr,
            _ => expr.cast(to.clone()),
        };
        let atom = slot.atom.clone();
        Ok(Some(Bounds {
            start: of_atom(start, &atom),
            stop: of_atom(stop, &atom),
            step: of_atom(step, &apart),
            atom,
            inclusive: &**function == "generate_series",
        }))
    }

    /// Numbers or moments as they are read, in the place of lists of them.
    fn series_of(
        &mut self,
        input: &Relation,
        exprs: &[(Name, Expr)],
        series: &Bounds,
        (list, element): (&Name, &Name),
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let others = exprs.iter().filter(|(name, _)| name != list && needed.contains(name));
        let others: Vec<(Name, Expr)> = others.cloned().collect();
        let bounds = [&series.start, &series.stop, &series.step];
        let below = fields_of(others.iter().map(|(_, expr)| expr).chain(bounds));
        let made = self.lower(input, &below, level)?;
        let made = self.prune(level, made, &below)?;
        let into = self.name("series");
        let mut fields = made.tuple.fields().to_vec();
        fields.push(Field {
            name: into.clone(),
            item: Item::Atom(series.atom.clone()),
            nullable: false,
        });
        let mut params = Params::new()
            .with("into", Expr::Field(into.clone()))
            .with("start", series.start.clone())
            .with("stop", series.stop.clone())
            .with("step", series.step.clone());
        if series.inclusive {
            params.set("inclusive", true);
        }
        let made = add(level, "series", &[made.id], params, Tuple::new(fields));
        let mut exprs = others;
        exprs.push((element.clone(), Expr::Field(into)));
        self.map(level, made, exprs)
    }
}

/// The numbers or moments between two bounds.
struct Bounds {
    start: Expr,
    stop: Expr,
    step: Expr,
    atom: Atom,
    inclusive: bool,
}
