//! Joins by order: ASOF JOIN, with the nearest row, and POSITIONAL JOIN, by position.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use sqlparser::ast::{AsOfKind, Expr as Ast, JoinConstraint, JoinOperator};
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_optimizer::logical::as_of::{AsOf, Nearest};
use tessera_optimizer::logical::relation::{Key, Kind, Name, Relation, covered, substitute};
use tessera_optimizer::logical::window::{Window, WindowCall};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result};

use super::from::{FromContext, Tables};
use super::join::{JoinType, build_join, using_names};
use super::scope::{Column, Scope};
use super::steps::joined;
use super::subquery::conjuncts;
use super::{Binder, Place, unsupported_at, with_span};

/// A join by order as written in SQL.
#[derive(Debug, Clone, Copy)]
pub(super) enum OrderedJoin<'q> {
    AsOf {
        /// The condition of MATCH_CONDITION.
        matched: Option<&'q Ast>,
        constraint: &'q JoinConstraint,
        kind: AsOfKind,
    },
    Positional,
}

/// The conditions of an ASOF JOIN by the sides that they read.
#[derive(Debug, Default)]
struct AsOfConditions {
    /// The sides of equalities, and whether NULL equals NULL.
    keys: Vec<(Expr, Expr, bool)>,
    inequality: Option<(Expr, Expr, Nearest)>,
    left: Vec<Expr>,
    right: Vec<Expr>,
    /// Whether there is another condition over both sides.
    has_other: bool,
}

impl<'q> OrderedJoin<'q> {
    /// Returns the join that an operator is, or `None` if it is none by order.
    pub(super) fn of(operator: &'q JoinOperator) -> Option<OrderedJoin<'q>> {
        match operator {
            JoinOperator::AsOfOn { constraint, kind } => {
                Some(OrderedJoin::AsOf { matched: None, constraint, kind: *kind })
            }
            // This form keeps the left rows without a match, as in Snowflake.
            JoinOperator::AsOf { match_condition, constraint } => {
                let kind = AsOfKind::Left;
                Some(OrderedJoin::AsOf { matched: Some(match_condition), constraint, kind })
            }
            JoinOperator::Positional => Some(OrderedJoin::Positional),
            _ => None,
        }
    }

    /// Returns what is not supported if the right side reads columns of the left side.
    pub(super) fn lateral(self) -> &'static str {
        match self {
            OrderedJoin::AsOf { .. } => "an ASOF JOIN whose right side reads columns of the left",
            OrderedJoin::Positional => {
                "a POSITIONAL JOIN whose right side reads columns of the left"
            }
        }
    }
}

impl Binder<'_> {
    /// Joins two sides by order.
    pub(super) fn ordered_join(
        &mut self,
        mut left: Tables,
        mut right: Tables,
        join: OrderedJoin<'_>,
        (place, context): (TokenSpan, FromContext<'_, '_>),
    ) -> Result<Tables> {
        let (matched, constraint, kind) = match join {
            OrderedJoin::AsOf { matched, constraint, kind } => (matched, constraint, kind),
            OrderedJoin::Positional => {
                let columns = left.columns.iter_mut().chain(&mut right.columns);
                columns.for_each(|column| column.extended = true);
                let (one, other) = (Box::new(left.relation), Box::new(right.relation));
                let relation = Relation::Positional { left: one, right: other };
                left.columns.append(&mut right.columns);
                return Ok(Tables { relation, columns: left.columns });
            }
        };
        let mut conditions = Vec::new();
        if let Some(condition) = matched {
            conditions = self.as_of_conditions(&left, &right, condition, context)?;
        }
        let mut used = None;
        match constraint {
            JoinConstraint::On(condition) => {
                conditions.extend(self.as_of_conditions(&left, &right, condition, context)?);
            }
            JoinConstraint::Using(names) => {
                let side = match kind {
                    AsOfKind::Inner => JoinType::Inner,
                    AsOfKind::Left => JoinType::Left,
                    AsOfKind::Right => JoinType::Right,
                    AsOfKind::Full => JoinType::Full,
                    AsOfKind::Semi => JoinType::Semi,
                    AsOfKind::Anti => JoinType::Anti,
                };
                let last = if matched.is_some() { "eq" } else { "gt_eq" };
                let mut pairs = self.using(&left, &right, side, &using_names(names)?, last)?;
                conditions.append(&mut pairs.conditions);
                used = Some(pairs);
            }
            JoinConstraint::None if matched.is_some() => {}
            JoinConstraint::None | JoinConstraint::Natural => {
                let message = "an ASOF JOIN needs ON or USING";
                return Err(with_span(Error::new(Code::Syntax, message), place));
            }
        }
        let plain = |tables: Tables| (tables, HashMap::new());
        let tables = match kind {
            AsOfKind::Inner => as_of(left, right, conditions, false).map(plain),
            AsOfKind::Left => as_of(left, right, conditions, true).map(plain),
            AsOfKind::Right => self.keeping_right(left, right, conditions, false),
            AsOfKind::Full => self.keeping_right(left, right, conditions, true),
            AsOfKind::Semi => matching(left, right, conditions, JoinType::Semi).map(plain),
            AsOfKind::Anti => matching(left, right, conditions, JoinType::Anti).map(plain),
        };
        let (tables, renamed) = tables.map_err(|error| with_span(error, place))?;
        Ok(match used {
            Some(mut used) => {
                used.rename(&renamed);
                used.merge(tables)
            }
            None => tables,
        })
    }

    /// Builds an ASOF JOIN that also keeps right rows without a match, and left ones with `outer`.
    ///
    /// The right rows are numbered. Those whose number is not in the result of the join follow it.
    /// All fields have new names, which the map holds.
    fn keeping_right(
        &mut self,
        left: Tables,
        right: Tables,
        conditions: Vec<Expr>,
        outer: bool,
    ) -> Result<(Tables, HashMap<Name, Name>)> {
        let row = self.fields.fresh("row", Atom::Int64);
        let call = WindowCall::plain("row_number", Vec::new());
        let (partition, order, calls) = (Vec::new(), Vec::new(), vec![(row.clone(), call)]);
        let numbered = Window { input: right.relation, partition, order, calls, limit: None };
        let numbered = self.shared_relation(Relation::Window(Box::new(numbered)));
        let kept = fields_of(&right.columns);
        let right = Tables { relation: numbered.clone(), columns: right.columns };
        let lost = fields_of(&left.columns);
        let Tables { relation, mut columns } = as_of(left, right, conditions, outer)?;
        let pairs = self.shared_relation(relation);

        let found = self.read_fields(&pairs, std::slice::from_ref(&row))?;
        let mut wanted = kept.clone();
        wanted.push(row);
        let others = self.read_fields(&numbered, &wanted)?;
        let same = vec![Expr::Field(others.1[kept.len()].clone()), Expr::Field(found.1[0].clone())];
        let same = vec![Expr::call("eq", same)];
        let others_only = joined(Kind::Anti, others.0, found.0, same, None, false);
        let mut exprs = Vec::with_capacity(lost.len() + kept.len());
        for field in &lost {
            let atom = self.fields.atom(field)?;
            exprs.push((self.fields.fresh(field, atom.clone()), Expr::null(atom)));
        }
        for (field, read) in kept.iter().zip(&others.1) {
            let name = self.fields.fresh(field, self.fields.atom(field)?);
            exprs.push((name, Expr::Field(read.clone())));
        }
        let names = exprs.iter().map(|(name, _)| name.clone()).collect();
        let unmatched = (Relation::Map { input: Box::new(others_only), exprs }, names);

        let all: Vec<Name> = lost.into_iter().chain(kept).collect();
        let matched = self.read_fields(&pairs, &all)?;
        let mut renamed = HashMap::with_capacity(all.len());
        let mut names = Vec::with_capacity(all.len());
        for field in all {
            let name = self.fields.fresh(&field, self.fields.atom(&field)?);
            names.push(name.clone());
            renamed.insert(field, name);
        }
        for column in &mut columns {
            column.extended = true;
            if let Some(name) = renamed.get(&column.field) {
                column.field = name.clone();
            }
        }
        let relation = Relation::Union { inputs: vec![matched, unmatched], names };
        Ok((Tables { relation, columns }, renamed))
    }

    /// Makes a relation one that several parts of a plan read.
    fn shared_relation(&mut self, input: Relation) -> Relation {
        Relation::Shared { id: self.fields.fresh("shared", Atom::Null), input: Box::new(input) }
    }

    /// Reads fields of a shared relation under new names.
    fn read_fields(&mut self, shared: &Relation, fields: &[Name]) -> Result<(Relation, Vec<Name>)> {
        let mut exprs = Vec::with_capacity(fields.len());
        for field in fields {
            let name = self.fields.fresh(field, self.fields.atom(field)?);
            exprs.push((name, Expr::Field(field.clone())));
        }
        let names = exprs.iter().map(|(name, _)| name.clone()).collect();
        Ok((Relation::Map { input: Box::new(shared.clone()), exprs }, names))
    }

    /// Binds the conditions of an ASOF JOIN.
    fn as_of_conditions(
        &mut self,
        left: &Tables,
        right: &Tables,
        condition: &Ast,
        context: FromContext<'_, '_>,
    ) -> Result<Vec<Expr>> {
        let columns: Vec<Column> = left.columns.iter().chain(&right.columns).cloned().collect();
        let mut scope = Scope::empty(context.outer, context.env.clone());
        scope.columns = Rc::new(columns);
        let mut bound = Vec::new();
        for conjunct in conjuncts(condition) {
            let mut steps = Vec::new();
            let place =
                &mut Place { scope: &scope, steps: &mut steps, clause: "JOIN", unnests: None };
            let value = self.condition(conjunct, place)?;
            if !steps.is_empty() {
                return Err(unsupported_at("a subquery in ON of an ASOF JOIN", conjunct));
            }
            bound.extend(self.finished(value)?.expr.conjuncts());
        }
        Ok(bound)
    }
}

impl AsOfConditions {
    fn new(
        conditions: &[Expr],
        left: &HashSet<Name>,
        right: &HashSet<Name>,
    ) -> Result<AsOfConditions> {
        let mut all = AsOfConditions::default();
        for condition in conditions {
            if matches!(condition, Expr::Constant(Scalar::Boolean(true), _)) {
                continue;
            }
            if covered(condition, right) {
                all.right.push(condition.clone());
            } else if covered(condition, left) {
                all.left.push(condition.clone());
            } else {
                all.add_pair(condition, left, right)?;
            }
        }
        Ok(all)
    }

    /// Adds a condition over both sides.
    fn add_pair(
        &mut self,
        condition: &Expr,
        left: &HashSet<Name>,
        right: &HashSet<Name>,
    ) -> Result<()> {
        let pair = match condition {
            Expr::Call { function, args } => match args.as_slice() {
                [a, b] if covered(a, left) && covered(b, right) => Some((function, a, b, false)),
                [a, b] if covered(a, right) && covered(b, left) => Some((function, b, a, true)),
                _ => None,
            },
            _ => None,
        };
        let Some((function, a, b, flipped)) = pair else {
            self.has_other = true;
            return Ok(());
        };
        let (a, b) = (a.clone(), b.clone());
        if let "eq" | "is_not_distinct" = &**function {
            self.keys.push((a, b, &**function == "is_not_distinct"));
        } else if let Some(nearest) = Nearest::of_comparison(function) {
            if self.inequality.is_some() {
                let message = "an ASOF JOIN has several inequalities between its sides; \
                               keep one, and put the others into WHERE";
                return Err(Error::semantic(message));
            }
            let nearest = if flipped { nearest.flipped() } else { nearest };
            self.inequality = Some((a, b, nearest));
        } else {
            self.has_other = true;
        }
        Ok(())
    }
}

/// Builds an ASOF SEMI or ANTI JOIN: a left row has a nearest row where it has any.
fn matching(left: Tables, right: Tables, conditions: Vec<Expr>, side: JoinType) -> Result<Tables> {
    let names = |tables: &Tables| tables.relation.names().into_iter().collect::<HashSet<Name>>();
    let all = AsOfConditions::new(&conditions, &names(&left), &names(&right))?;
    match all.inequality {
        Some(_) => Ok(build_join(left, right, side, conditions)),
        None => Err(without_inequality()),
    }
}

/// Returns the fields of columns, each once.
fn fields_of(columns: &[Column]) -> Vec<Name> {
    let mut seen = HashSet::new();
    let fields = columns.iter().map(|column| column.field.clone());
    fields.filter(|field| seen.insert(field.clone())).collect()
}

fn without_inequality() -> Error {
    Error::semantic("an ASOF JOIN needs an inequality between its sides: >=, >, <= or <")
}

/// Builds an ASOF JOIN.
fn as_of(left: Tables, right: Tables, conditions: Vec<Expr>, outer: bool) -> Result<Tables> {
    let names = |tables: &Tables| tables.relation.names().into_iter().collect::<HashSet<Name>>();
    let mut all = AsOfConditions::new(&conditions, &names(&left), &names(&right))?;
    let Some((left_value, right_value, nearest)) = all.inequality.take() else {
        return Err(without_inequality());
    };
    let mut columns = left.columns.clone();
    let extended =
        |column: &Column| Column { extended: outer || column.extended, ..column.clone() };
    columns.extend(right.columns.iter().map(extended));
    if all.has_other {
        let key = Key { expr: right_value, descending: !nearest.is_above(), nulls_first: false };
        let relation = nearest_of_all(left, right.relation, conditions, key, outer);
        return Ok(Tables { relation, columns });
    }
    let (mut left, mut values) = (left.relation, (left_value, right_value));
    let mut not_null = (vec![not_null(&values.0)], vec![not_null(&values.1)]);
    for (a, b, _) in all.keys.iter().filter(|(_, _, null_equal)| !null_equal) {
        not_null.0.push(self::not_null(a));
        not_null.1.push(self::not_null(b));
    }
    all.right.append(&mut not_null.1);
    if !outer {
        all.left.append(&mut not_null.0);
        left = left.filtered(all.left);
    } else if !all.left.is_empty() {
        // NULL matches nothing.
        let branches = vec![(Expr::all(all.left), values.0)];
        values.0 = Expr::Case { branches, otherwise: None };
    }
    let join = AsOf {
        left,
        right: right.relation.filtered(all.right),
        keys: all.keys.into_iter().map(|(a, b, _)| (a, b)).collect(),
        values,
        nearest,
        outer,
    };
    Ok(Tables { relation: Relation::AsOf(Box::new(join)), columns })
}

/// Joins each left row with the first of the right rows that satisfy all conditions.
fn nearest_of_all(
    left: Tables,
    right: Relation,
    mut conditions: Vec<Expr>,
    key: Key,
    outer: bool,
) -> Relation {
    let names: HashSet<Name> = left.relation.names().into_iter().collect();
    let parameter = |name: &Name| names.contains(name).then(|| Expr::Parameter(name.clone()));
    conditions.iter_mut().for_each(|condition| substitute(condition, &parameter));
    let input = Box::new(right.filtered(conditions));
    let first = Relation::Sort { input, keys: vec![key], offset: 0, limit: Some(1) };
    let kind = if outer { Kind::Left } else { Kind::Inner };
    joined(kind, left.relation, first, Vec::new(), None, false)
}

fn not_null(expr: &Expr) -> Expr {
    Expr::Not(Box::new(Expr::IsNull(Box::new(expr.clone()))))
}
