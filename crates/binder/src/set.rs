//! UNION, INTERSECT and EXCEPT, with and without ALL.

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier, Spanned};
use tessera_optimizer::logical::relation::{Aggregate, Call, Kind, Name, Relation};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use super::cte::Env;
use super::scope::{OutputColumn, Scope};
use super::steps::joined;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, unsupported_at, with_span};

impl Binder<'_> {
    /// Binds a set operation. Chains are left-deep, so a loop follows the left sides.
    pub(super) fn set_operation(
        &mut self,
        body: &SetExpr,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        let mut chain = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { left, right, op, set_quantifier } = first {
            chain.push((*op, quantifier(*op, set_quantifier, first)?, &**right));
            first = left;
        }
        let mut bound = self.term(first, outer, env)?;
        let mut rest = chain.into_iter().rev().peekable();
        while let Some((op, Quantifier { all, by_name }, right)) = rest.next() {
            let mut other = self.term(right, outer, env)?;
            if by_name {
                [bound, other] = self.matched_by_name([bound, other], right)?;
            }
            bound = match op {
                SetOperator::Union => self.union([bound, other], right)?,
                SetOperator::Intersect => {
                    self.intersect_or_except([bound, other], right, all, false)?
                }
                SetOperator::Except | SetOperator::Minus => {
                    self.intersect_or_except([bound, other], right, all, true)?
                }
            };
            // In a chain of UNIONs, only the last one needs to remove duplicates.
            let is_distinct = |quantifier: &Quantifier| !quantifier.all;
            let again =
                matches!(rest.peek(), Some((SetOperator::Union, next, _)) if is_distinct(next));
            if op == SetOperator::Union && !all && !again {
                let BoundQuery { relation, mut columns } = bound;
                let (relation, _) = self.distinct_tuples(relation, &mut columns)?;
                bound = BoundQuery { relation, columns };
            }
        }
        Ok(bound)
    }

    /// Builds UNION ALL.
    fn union(&mut self, inputs: [BoundQuery; 2], written: &SetExpr) -> Result<BoundQuery> {
        let ([left, right], columns) = self.with_common_types(inputs, written)?;
        let mut columns = columns;
        for (at, column) in columns.iter_mut().enumerate() {
            column.field = self.fields.fresh(&column.name, column.atom.clone());
            let values = [&left.1[at], &right.1[at]].map(|name| Expr::Field(name.clone()));
            self.keep_collation(&column.field, &values)?;
        }
        let mut flat: Vec<(Relation, Vec<Name>)> = Vec::new();
        for (relation, given) in [left, right] {
            match relation {
                // A chain is left-deep: its list of inputs is extended in place.
                Relation::Union { inputs: inner, names } if names == given && flat.is_empty() => {
                    flat = inner
                }
                Relation::Union { inputs: inner, names } if names == given => flat.extend(inner),
                other => flat.push((other, given)),
            }
        }
        let names = columns.iter().map(|column| column.field.clone()).collect();
        Ok(BoundQuery { relation: Relation::Union { inputs: flat, names }, columns })
    }

    /// Builds INTERSECT, or EXCEPT with `except`. NULLs are equal.
    fn intersect_or_except(
        &mut self,
        inputs: [BoundQuery; 2],
        written: &SetExpr,
        all: bool,
        except: bool,
    ) -> Result<BoundQuery> {
        if all {
            let ([left, right], columns) = self.with_common_types(inputs, written)?;
            let pairs: Vec<[Expr; 2]> = left
                .1
                .iter()
                .zip(&right.1)
                .map(|(left, right)| [left, right].map(|name| Expr::Field(name.clone())))
                .collect();
            for (column, pair) in columns.iter().zip(&pairs) {
                let values = pair.clone().map(|value| TypedExpr::new(value, column.atom.clone()));
                self.refuse_joined("INTERSECT or EXCEPT ALL", &values)?;
            }
            let bound = self.multiset_operation(left, right, columns, except)?;
            for (column, pair) in bound.columns.iter().zip(&pairs) {
                self.keep_collation(&column.field, pair)?;
            }
            return Ok(bound);
        }
        let atoms = self.common_atoms(&inputs, written)?;
        let [left, right] = inputs;
        // If no type holds the values of both sides, compare them in their own types.
        let mut types = [left.columns.clone(), right.columns.clone()]
            .map(|columns| columns.into_iter().map(|column| column.atom).collect::<Vec<_>>());
        for (at, atom) in atoms.iter().enumerate() {
            if holds_all(atom, [&types[0][at], &types[1][at]]) {
                types.iter_mut().for_each(|atoms| atoms[at] = atom.clone());
            }
        }
        let names: Vec<_> = left.columns.iter().map(|column| column.name.clone()).collect();
        let (left, lefts) = self.with_types(left, &types[0])?;
        let (right, rights) = self.with_types(right, &types[1])?;
        let columns = names.into_iter().zip(lefts).zip(&types[0]);
        let mut columns: Vec<OutputColumn> = columns
            .map(|((name, field), atom)| OutputColumn {
                name,
                field,
                atom: atom.clone(),
                literal: None,
            })
            .collect();
        let (left, _) = self.distinct_tuples(left, &mut columns)?;
        let mut conditions = Vec::with_capacity(columns.len());
        for (a, b) in columns.iter().map(|column| &column.field).zip(&rights) {
            let same = self.compared("is_not_distinct", self.field(a)?, self.field(b)?)?;
            conditions.push(self.finished(same)?.expr);
        }
        let kind = if except { Kind::Anti } else { Kind::Semi };
        let relation = joined(kind, left, right, conditions, None, false);
        Ok(BoundQuery { relation, columns })
    }

    /// Builds INTERSECT ALL or EXCEPT ALL: groups both sides together and counts the tuples of
    /// each. A group of l and r tuples yields min(l, r) or max(l - r, 0) copies by unnesting a
    /// list.
    fn multiset_operation(
        &mut self,
        (left, lefts): (Relation, Vec<Name>),
        (right, rights): (Relation, Vec<Name>),
        columns: Vec<OutputColumn>,
        except: bool,
    ) -> Result<BoundQuery> {
        let left = self.counted(left, &lefts, &columns, [1, 0]);
        let right = self.counted(right, &rights, &columns, [0, 1]);
        let mut fresh =
            |column: &OutputColumn| self.fields.fresh(&column.name, column.atom.clone());
        let groups: Vec<Name> = columns.iter().map(&mut fresh).collect();
        let ones =
            [self.fields.fresh("left", Atom::Int32), self.fields.fresh("right", Atom::Int32)];
        let names = groups.iter().chain(&ones).cloned().collect();
        let calls = ones.map(|one| {
            let call = Call {
                function: "sum".into(),
                args: vec![Expr::Field(one)],
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                limit: None,
            };
            (self.fields.fresh("count", Atom::Int64), call)
        });
        let [l, r] = [&calls[0].0, &calls[1].0].map(|name| Expr::Field(name.clone()));
        let grouped = Relation::Aggregate(Box::new(Aggregate {
            input: Relation::Union { inputs: vec![left, right], names },
            keys: groups.iter().map(|name| (name.clone(), Expr::Field(name.clone()))).collect(),
            sets: None,
            grouping: None,
            calls: calls.to_vec(),
        }));
        let copies = match except {
            true => Expr::call("sub", vec![l, r]),
            false => {
                let fewer = Expr::call("lt", vec![l.clone(), r.clone()]);
                Expr::Case { branches: vec![(fewer, l)], otherwise: Some(Box::new(r)) }
            }
        };
        let zero = Expr::Constant(Scalar::Integer(0), Atom::Int64);
        let list = Expr::call("range", vec![zero, copies]);
        let list_name = self.fields.fresh("copies", self.fields.atom_of(&list)?);
        let element = self.fields.fresh("copy", Atom::Int64);
        let mut exprs: Vec<(Name, Expr)> =
            groups.iter().map(|name| (name.clone(), Expr::Field(name.clone()))).collect();
        exprs.push((list_name.clone(), list));
        let input = Box::new(Relation::Map { input: Box::new(grouped), exprs });
        let relation = Relation::Unnest { input, lists: vec![(list_name, element)], outer: false };
        let columns =
            columns.into_iter().zip(groups).map(|(column, field)| OutputColumn { field, ..column });
        Ok(BoundQuery { relation, columns: columns.collect() })
    }

    /// Adds two fields to the tuples that count them for the left and the right side.
    fn counted(
        &mut self,
        relation: Relation,
        names: &[Name],
        columns: &[OutputColumn],
        counts: [i128; 2],
    ) -> (Relation, Vec<Name>) {
        let mut exprs: Vec<(Name, Expr)> = Vec::with_capacity(names.len() + 2);
        for (name, column) in names.iter().zip(columns) {
            let key = self.fields.fresh(&column.name, column.atom.clone());
            exprs.push((key, Expr::Field(name.clone())));
        }
        for count in counts {
            let one = Expr::Constant(Scalar::Integer(count), Atom::Int32);
            exprs.push((self.fields.fresh("one", Atom::Int32), one));
        }
        let names = exprs.iter().map(|(name, _)| name.clone()).collect();
        (Relation::Map { input: Box::new(relation), exprs }, names)
    }

    /// Returns the common types of the columns of both sides.
    fn common_atoms(&self, inputs: &[BoundQuery; 2], written: &SetExpr) -> Result<Vec<Atom>> {
        let [left, right] = inputs;
        if left.columns.len() != right.columns.len() {
            let message = format!(
                "both sides of UNION, INTERSECT and EXCEPT need the same number of columns, not {} and {}",
                left.columns.len(),
                right.columns.len()
            );
            let error = Error::semantic(message).with_state(SqlState::SYNTAX_ERROR);
            return Err(with_span(error, written.span()));
        }
        let pairs = left.columns.iter().zip(&right.columns);
        let common = |(a, b)| self.common(&[&value_of(a), &value_of(b)], "UNION");
        pairs.map(common).collect::<Result<_>>().map_err(|error| with_span(error, written.span()))
    }

    /// Converts both sides to their common types; the columns take the names of the left side.
    fn with_common_types(
        &mut self,
        inputs: [BoundQuery; 2],
        written: &SetExpr,
    ) -> Result<([(Relation, Vec<Name>); 2], Vec<OutputColumn>)> {
        let atoms = self.common_atoms(&inputs, written)?;
        let columns = inputs[0].columns.iter().zip(&atoms).map(|(column, atom)| OutputColumn {
            name: column.name.clone(),
            field: column.field.clone(),
            atom: atom.clone(),
            literal: None,
        });
        let columns = columns.collect();
        let [left, right] = inputs;
        Ok(([self.with_types(left, &atoms)?, self.with_types(right, &atoms)?], columns))
    }

    /// Converts the columns of a query to these types, in place of their fields.
    pub(super) fn retyped_columns(
        &mut self,
        bound: BoundQuery,
        atoms: Vec<Atom>,
    ) -> Result<BoundQuery> {
        let columns = bound.columns.clone();
        let (relation, fields) = self.with_types(bound, &atoms)?;
        let typed = columns.into_iter().zip(fields.into_iter().zip(atoms));
        let columns = typed.map(|(column, (field, atom))| OutputColumn { field, atom, ..column });
        Ok(BoundQuery { relation, columns: columns.collect() })
    }

    /// Converts the columns of a query to these types; returns the relation and its fields.
    pub(super) fn with_types(
        &mut self,
        bound: BoundQuery,
        atoms: &[Atom],
    ) -> Result<(Relation, Vec<Name>)> {
        let BoundQuery { relation, columns } = bound;
        if columns.iter().zip(atoms).all(|(column, atom)| column.atom == *atom) {
            return Ok((relation, columns.into_iter().map(|column| column.field).collect()));
        }
        let mut exprs: Vec<(Name, Expr)> = Vec::with_capacity(columns.len());
        let mut output = Vec::with_capacity(columns.len());
        for (column, atom) in columns.iter().zip(atoms) {
            if column.atom == *atom {
                if !exprs.iter().any(|(known, _)| *known == column.field) {
                    exprs.push((column.field.clone(), Expr::Field(column.field.clone())));
                }
                output.push(column.field.clone());
                continue;
            }
            let value = self.cast_to(self.field(&column.field)?, atom, false)?;
            let value = self.finished(value)?;
            let name = self.fields.fresh(&column.name, atom.clone());
            exprs.push((name.clone(), value.expr));
            output.push(name);
        }
        Ok((Relation::Map { input: Box::new(relation), exprs }, output))
    }
}

/// Returns whether a type holds all values of two others; a decimal may have too few whole digits.
fn holds_all(atom: &Atom, others: [&Atom; 2]) -> bool {
    let Atom::Decimal(precision, scale) = atom else { return true };
    let whole = i16::from(*precision) - i16::from(*scale);
    others.iter().all(|other| match other {
        Atom::Decimal(precision, scale) => i16::from(*precision) - i16::from(*scale) <= whole,
        other => tessera_values::cast::whole_digits(other)
            .is_none_or(|digits| i16::from(digits) <= whole),
    })
}

/// Returns a column as a value; a literal stays untyped.
fn value_of(column: &OutputColumn) -> TypedExpr {
    match &column.literal {
        Some(text) => TypedExpr::unknown(text),
        None => TypedExpr::new(Expr::Field(column.field.clone()), column.atom.clone()),
    }
}

/// How a set operation matches and keeps tuples.
struct Quantifier {
    /// Whether it keeps duplicates.
    all: bool,
    /// Whether it matches columns by their names.
    by_name: bool,
}

fn quantifier(op: SetOperator, quantifier: &SetQuantifier, body: &SetExpr) -> Result<Quantifier> {
    let (all, by_name) = match quantifier {
        SetQuantifier::All => (true, false),
        SetQuantifier::Distinct | SetQuantifier::None => (false, false),
        SetQuantifier::AllByName => (true, true),
        SetQuantifier::ByName | SetQuantifier::DistinctByName => (false, true),
    };
    match by_name && op != SetOperator::Union {
        true => Err(unsupported_at("BY NAME after INTERSECT or EXCEPT", body)),
        false => Ok(Quantifier { all, by_name }),
    }
}
