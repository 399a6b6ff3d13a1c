//! `INTERSECT ALL` and `EXCEPT ALL`: counting, then as many copies as are left.
//!
//! Both sides are grouped together, counting the tuples of each. A group of l and r tuples gives min(l, r) or l - r copies: a
//! list as long as that, unnested. Grouping takes NULLs for equal, as set operations do.

use arrow::datatypes::DECIMAL128_MAX_PRECISION;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Result};

use super::{Converted, Converter};
use crate::relation::{Aggregate, Call, Name, Relation};

impl Converter<'_> {
    /// The tuples of the left side, `except` those of the right one or shared with it, with their multiplicity.
    pub(super) fn bag(
        &mut self,
        left: Converted,
        right: Converted,
        pairs: Vec<(Expr, Expr)>,
        except: bool,
    ) -> Result<Converted> {
        let atoms = left.names.iter().map(|name| self.atom_of(&Expr::Field(name.clone())));
        let atoms = atoms.collect::<Result<Vec<_>>>()?;
        let (lefts, rights): (Vec<Expr>, Vec<Expr>) = pairs.into_iter().unzip();
        let types = lefts.iter().zip(&rights).map(|(l, r)| Ok(both(self.atom_of(l)?, self.atom_of(r)?)));
        let keys = types.collect::<Result<Vec<_>>>()?;
        let lefts = self.cast_to(lefts, &keys)?;
        let rights = self.cast_to(rights, &keys)?;
        let left = self.counted(left.relation, lefts, &keys, [1, 0]);
        let right = self.counted(right.relation, rights, &keys, [0, 1]);
        let mut names: Vec<Name> = keys.iter().map(|atom| self.fresh("key", atom.clone())).collect();
        let groups = names.clone();
        let ones = [self.fresh("left", Atom::Int32), self.fresh("right", Atom::Int32)];
        names.extend(ones.clone());
        let calls = ones.map(|one| {
            let call = Call {
                function: "sum".into(),
                args: vec![Expr::Field(one)],
                distinct: false,
                filter: None,
                order_by: Vec::new(),
            };
            (self.fresh("count", Atom::Int64), call)
        });
        let [l, r] = [&calls[0].0, &calls[1].0].map(|name| Expr::Field(name.clone()));
        let grouped = Relation::Aggregate(Box::new(Aggregate {
            input: Relation::Union { inputs: vec![left, right], names },
            keys: groups.iter().map(|name| (name.clone(), Expr::Field(name.clone()))).collect(),
            sets: None,
            grouping: None,
            calls: calls.to_vec(),
        }));
        let copies = if except {
            Expr::call("sub", vec![l, r])
        } else {
            let fewer = Expr::call("lt", vec![l.clone(), r.clone()]);
            Expr::Case { branches: vec![(fewer, l)], otherwise: Some(Box::new(r)) }
        };
        let zero = Expr::Constant(Scalar::Integer(0), Atom::Int64);
        let list = Expr::call("range", vec![zero, copies]);
        let list_name = self.fresh("copies", self.atom_of(&list)?);
        let element = self.fresh("copy", Atom::Int64);
        let mut exprs: Vec<(Name, Expr)> =
            groups.iter().map(|name| (name.clone(), Expr::Field(name.clone()))).collect();
        exprs.push((list_name.clone(), list));
        let listed = Relation::Map { input: Box::new(grouped), exprs };
        let copied =
            Relation::Unnest { input: Box::new(listed), lists: vec![(list_name, element)], outer: false };
        // The result has the types of the left side. What is left comes from there, so that it fits.
        let (relation, names) = self.as_types(copied, groups, &atoms)?;
        Ok(Converted { relation, names })
    }

    /// Values as these types.
    fn cast_to(&self, values: Vec<Expr>, atoms: &[Atom]) -> Result<Vec<Expr>> {
        let cast = |(value, atom): (Expr, &Atom)| {
            Ok(if self.atom_of(&value)? == *atom { value } else { self.simple(value.cast(atom.clone())) })
        };
        values.into_iter().zip(atoms).map(cast).collect()
    }

    /// These keys of each tuple, and two numbers that say on which side it counts.
    fn counted(
        &mut self,
        relation: Relation,
        values: Vec<Expr>,
        keys: &[Atom],
        counts: [i128; 2],
    ) -> (Relation, Vec<Name>) {
        let mut exprs: Vec<(Name, Expr)> = Vec::new();
        for (value, atom) in values.into_iter().zip(keys) {
            exprs.push((self.fresh("key", atom.clone()), value));
        }
        for count in counts {
            let one = Expr::Constant(Scalar::Integer(count), Atom::Int32);
            exprs.push((self.fresh("one", Atom::Int32), one));
        }
        let names = exprs.iter().map(|(name, _)| name.clone()).collect();
        (Relation::Map { input: Box::new(relation), exprs }, names)
    }
}

/// A type for the values of two that the planner takes for one: the digits of decimals that are computed are ours to say.
fn both(left: Atom, right: Atom) -> Atom {
    match (&left, &right) {
        (Atom::Decimal(p, s), Atom::Decimal(q, t)) => {
            let scale = *s.max(t);
            let whole = (i16::from(*p) - i16::from(*s)).max(i16::from(*q) - i16::from(*t));
            let digits = (whole + i16::from(scale)).clamp(1, i16::from(DECIMAL128_MAX_PRECISION));
            Atom::Decimal(digits as u8, scale)
        }
        _ => left,
    }
}
