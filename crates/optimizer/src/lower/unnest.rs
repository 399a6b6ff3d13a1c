//! Lowering of unnest.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Value};
use tessera_types::{Atom, Field, Item, Result, TimeUnit, Tuple};

use super::node::{add, fields_of};
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Name, Relation};

impl Lowering<'_> {
    pub(super) fn unnest(
        &mut self,
        input: &Relation,
        lists: &[(Name, Name)],
        outer: bool,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        if let (Relation::Map { input, exprs }, [(list, element)], false) = (input, lists, outer)
            && let Some(series) = self.series(exprs, list)?
        {
            return self.lower_series(input, exprs, &series, (list, element), needed, level);
        }
        let mut below = needed.clone();
        below.extend(lists.iter().map(|(list, _)| list.clone()));
        let lowered = self.lower(input, &below, level)?;
        let lowered = self.prune(level, lowered, &below)?;
        let fields = lowered
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
        let lowered = add(level, "unnest", &[lowered.id], params, Tuple::new(fields));
        let exprs = lowered
            .tuple
            .fields()
            .iter()
            .map(|field| match lists.iter().find(|(list, _)| *list == field.name) {
                Some((list, element)) => (element.clone(), Expr::Field(list.clone())),
                None => (field.name.clone(), Expr::Field(field.name.clone())),
            })
            .collect();
        self.map(level, lowered, exprs)
    }

    /// Returns the bounds of a list that is a series of numbers or timestamps; `None` for other
    /// lists, or if the fields beside it must be computed once per list.
    fn series(&self, exprs: &[(Name, Expr)], list: &Name) -> Result<Option<SeriesBounds>> {
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
        Ok(Some(SeriesBounds {
            start: of_atom(start, &atom),
            stop: of_atom(stop, &atom),
            step: of_atom(step, &apart),
            atom,
            inclusive: &**function == "generate_series",
        }))
    }

    /// Generates the numbers or timestamps one by one instead of unnesting a list of them.
    fn lower_series(
        &mut self,
        input: &Relation,
        exprs: &[(Name, Expr)],
        series: &SeriesBounds,
        (list, element): (&Name, &Name),
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let others = exprs.iter().filter(|(name, _)| name != list && needed.contains(name));
        let others: Vec<(Name, Expr)> = others.cloned().collect();
        let bounds = [&series.start, &series.stop, &series.step];
        let below = fields_of(others.iter().map(|(_, expr)| expr).chain(bounds));
        let lowered = self.lower(input, &below, level)?;
        let lowered = self.prune(level, lowered, &below)?;
        let into = self.name("series");
        let mut fields = lowered.tuple.fields().to_vec();
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
        let lowered = add(level, "series", &[lowered.id], params, Tuple::new(fields));
        let mut exprs = others;
        exprs.push((element.clone(), Expr::Field(into)));
        self.map(level, lowered, exprs)
    }
}

/// The bounds of a series of numbers or timestamps.
struct SeriesBounds {
    start: Expr,
    stop: Expr,
    step: Expr,
    atom: Atom,
    inclusive: bool,
}
