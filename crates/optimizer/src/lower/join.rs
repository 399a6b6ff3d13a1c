//! Lowering of joins: hash joins by keys, joins by inequalities, or nested loops over all pairs.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Rule, Value};
use tessera_types::{Atom, Field, Result, Tuple};

use super::node::{add, fields_of, with_fields};
use super::{Level, LoweredNode, Lowering};
use crate::logical::order::counts::Counts;
use crate::logical::relation::{Join, Kind, Name, covered};
use crate::logical::types::Types;

impl Lowering<'_> {
    pub(super) fn join(
        &mut self,
        join: &Join,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let (left_names, right_names): (HashSet<Name>, HashSet<Name>) =
            (join.left.names().into_iter().collect(), join.right.names().into_iter().collect());
        let keyed = JoinKeys::new(join, (&left_names, &right_names), self.types, &self.counts);
        let read = with_fields(needed, &join.conditions);
        let only =
            |names: &HashSet<Name>| read.intersection(names).cloned().collect::<HashSet<Name>>();
        if keyed.left.is_empty() {
            let (left_needed, right_needed) = (only(&left_names), only(&right_names));
            let inputs = (&left_needed, &right_needed, needed);
            return match self.inequalities(join, &left_names, &right_names) {
                Some(found) => self.inequality_join(join, found, inputs, level),
                None => self.unkeyed_join(join, inputs, level),
            };
        }
        // Besides the keys, keep only the fields that the output or the residual condition reads.
        let mut kept = with_fields(needed, &keyed.residual);
        kept.extend(fields_of(keyed.left.iter().chain(&keyed.right)));
        let left = self.lower(&join.left, &only(&left_names), level)?;
        let left = self.prune(level, left, &kept)?;
        let right = self.lower(&join.right, &only(&right_names), level)?;
        let right = self.prune(level, right, &kept)?;
        let (left_rows, right_rows) = (self.rows(&join.left), self.rows(&join.right));
        let flip = self.may_flip() && keyed.can_flip(join) && left_rows < right_rows;
        let (left, left_keys) = self.with_computed(level, left, &keyed.left, "key")?;
        let (right, right_keys) = self.with_computed(level, right, &keyed.right, "key")?;
        let (build, build_keys, stream, stream_keys) = if flip {
            (left, left_keys, right, right_keys)
        } else {
            (right, right_keys, left, left_keys)
        };
        let mut params = Params::new().with("keys", Value::names(&build_keys));
        if keyed.null_equal {
            params.set("null_equal", true);
        }
        let (build_rows, stream_rows) =
            if flip { (left_rows, right_rows) } else { (right_rows, left_rows) };
        params.set("expected_rows", build_rows as i64);
        let table = Tuple::new(vec![Field::collection("table", "hash_table", build.tuple.clone())]);
        let built = add(level, "build", &[build.id], params, table);
        let name = match (join.kind, flip) {
            (Kind::Inner, _) => "inner",
            (Kind::Left, false) => "left",
            (Kind::Left, true) => "right",
            (Kind::Full, _) => "full",
            (Kind::Semi, false) => "semi",
            (Kind::Semi, true) => "build_semi",
            (Kind::Anti, false) => "anti",
            (Kind::Anti, true) => "build_anti",
            (Kind::Mark, _) => "mark",
            (Kind::Single, _) => "single",
        };
        let mut params =
            Params::new().with("keys", Value::names(&stream_keys)).with("join", Value::name(name));
        if !keyed.residual.is_empty() {
            params.set("residual", Expr::all(keyed.residual.clone()));
        }
        set_mark(&mut params, join);
        params.set("expected_rows", stream_rows as i64);
        let tuple = joined_tuple(name, &stream.tuple, &build.tuple, join);
        let lowered = add(level, "probe", &[built.id, stream.id], params, tuple);
        self.prune(level, lowered, needed)
    }

    pub(super) fn may_flip(&self) -> bool {
        self.types.uses(Rule::BuildSmallerSide)
    }

    fn unkeyed_join(
        &mut self,
        join: &Join,
        (left_needed, right_needed, needed): JoinInputs<'_>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let left = self.lower(&join.left, left_needed, level)?;
        let left = self.prune(level, left, left_needed)?;
        let right = self.lower(&join.right, right_needed, level)?;
        let right = self.prune(level, right, right_needed)?;
        if join.kind == Kind::Inner {
            // The smaller input becomes the side.
            let flip = self.may_flip() && self.rows(&join.left) < self.rows(&join.right);
            let (side, stream) = if flip { (left, right) } else { (right, left) };
            if join.conditions.is_empty() {
                let tuple = side.tuple.concat(&stream.tuple);
                return Ok(add(
                    level,
                    "cartesian_product",
                    &[side.id, stream.id],
                    Params::new(),
                    tuple,
                ));
            }
            let lowered = nested_loop(level, &side, &stream, "inner", join);
            return self.prune(level, lowered, needed);
        }
        let lowered = nested_loop(level, &right, &left, kind_name(join.kind), join);
        self.prune(level, lowered, needed)
    }
}

/// The fields that are needed of the left input, of the right input, and of the join.
pub(super) type JoinInputs<'a> = (&'a HashSet<Name>, &'a HashSet<Name>, &'a HashSet<Name>);

/// Returns the name in plans of a kind of join whose stream is the left input.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Inner => "inner",
        Kind::Left => "left",
        Kind::Full => "full",
        Kind::Semi => "semi",
        Kind::Anti => "anti",
        Kind::Mark => "mark",
        Kind::Single => "single",
    }
}

/// The conditions of a join, split into keys and a residual condition.
#[derive(Debug, Default)]
struct JoinKeys {
    left: Vec<Expr>,
    right: Vec<Expr>,
    residual: Vec<Expr>,
    null_equal: bool,
}

impl JoinKeys {
    pub(super) fn new(
        join: &Join,
        (left_names, right_names): (&HashSet<Name>, &HashSet<Name>),
        types: Types<'_>,
        counts: &Counts,
    ) -> JoinKeys {
        let plain = join.conditions.iter().any(|condition| {
            pair(condition, left_names, right_names, "eq", join.null_aware).is_some()
        });
        let function = if plain { "eq" } else { "is_not_distinct" };
        let mut keyed = JoinKeys { null_equal: !plain, ..JoinKeys::default() };
        for (position, condition) in join.conditions.iter().enumerate() {
            match pair(condition, left_names, right_names, function, join.null_aware) {
                // Keys are computed for every tuple, so one that can raise an error must be the
                // first condition.
                Some((left, right))
                    if position == 0
                        || !(counts.may_raise(&left, types) || counts.may_raise(&right, types)) =>
                {
                    keyed.left.push(left);
                    keyed.right.push(right);
                }
                _ => keyed.residual.push(condition.clone()),
            }
        }
        keyed
    }

    /// Whether the left side may be built and the right side streamed.
    pub(super) fn can_flip(&self, join: &Join) -> bool {
        match join.kind {
            Kind::Mark | Kind::Single => false,
            Kind::Anti => !join.null_aware,
            _ => true,
        }
    }
}

/// Returns the left and the right side of an equality between both inputs; with `constants`, one
/// side may read no field.
pub(super) fn pair(
    condition: &Expr,
    left_names: &HashSet<Name>,
    right_names: &HashSet<Name>,
    wanted: &str,
    constants: bool,
) -> Option<(Expr, Expr)> {
    let Expr::Call { function, args } = condition else { return None };
    let ([a, b], true) = (args.as_slice(), &**function == wanted) else { return None };
    let fields = a.fields().len().min(b.fields().len());
    if fields == 0 && !(constants && a.fields().len() + b.fields().len() > 0) {
        return None;
    }
    if covered(a, left_names) && covered(b, right_names) {
        Some((a.clone(), b.clone()))
    } else if covered(b, left_names) && covered(a, right_names) {
        Some((b.clone(), a.clone()))
    } else {
        None
    }
}

pub(super) fn nested_loop(
    level: &mut Level,
    side: &LoweredNode,
    stream: &LoweredNode,
    name: &str,
    join: &Join,
) -> LoweredNode {
    let mut params = Params::new().with("join", Value::name(name));
    params.set("predicate", Expr::all(join.conditions.clone()));
    set_mark(&mut params, join);
    let tuple = joined_tuple(name, &stream.tuple, &side.tuple, join);
    add(level, "nested_loop", &[side.id, stream.id], params, tuple)
}

pub(super) fn set_mark(params: &mut Params, join: &Join) {
    if let Some(mark) = &join.mark {
        params.set("mark", Value::string(mark.clone()));
    }
    if join.null_aware {
        params.set("null_aware", true);
    }
}

pub(super) fn joined_tuple(name: &str, stream: &Tuple, build: &Tuple, join: &Join) -> Tuple {
    let nullable = |tuple: &Tuple| {
        Tuple::new(tuple.fields().iter().map(|field| field.with_nullable(true)).collect::<Vec<_>>())
    };
    match name {
        "semi" | "anti" => stream.clone(),
        "build_semi" | "build_anti" => build.clone(),
        "mark" => {
            let mut fields = stream.fields().to_vec();
            if let Some(mark) = &join.mark {
                fields.push(Field::new(mark.clone(), Atom::Boolean).with_nullable(join.null_aware));
            }
            Tuple::new(fields)
        }
        "left" | "single" => stream.concat(&nullable(build)),
        "right" => nullable(stream).concat(build),
        "full" => nullable(stream).concat(&nullable(build)),
        _ => stream.concat(build),
    }
}
