//! Evaluates the expressions of `map` and `parametrized_map`.

use std::collections::HashMap;
use std::sync::Arc;

use tessera_context::Run;
use tessera_functions::growth::{each_piece, grows_in, piece_rows};
use tessera_functions::{BoundExpr, Computation, Library, is_written_null};
use tessera_plan::Expr;
use tessera_types::{Field, Item, Result, Tuple};
use tessera_vector::{Chunk, Column, concat_chunks};

/// The most sub-expressions that fields of one map can share.
const SHARED_MAX: usize = 64;
/// Maps with more expression nodes than this are evaluated without sharing: the search for equal
/// sub-expressions is quadratic.
const SHARED_SEARCH_NODES_MAX: usize = 2_000;

/// Bound expressions over one tuple; shared sub-expressions are evaluated once.
#[derive(Debug)]
pub(crate) struct Projector {
    /// The fields that are read.
    used: Vec<usize>,
    /// Shared expressions, each over the used fields and the shared expressions before it.
    shared: Vec<BoundExpr>,
    outputs: Vec<Output<BoundExpr>>,
    /// Whether computed values can be much longer than those of the fields.
    grows: bool,
}

#[derive(Debug)]
enum Output<T> {
    /// A field that is passed on, by its position in `used`.
    Passed(usize),
    Computed(T),
}

/// A projector in one run.
#[derive(Debug)]
pub(crate) struct Projection {
    /// Set if computed values can be much longer than those of the fields.
    run: Option<Run>,
    used: Vec<usize>,
    shared: Vec<Computation>,
    outputs: Vec<Output<Computation>>,
}

impl Projector {
    /// Binds `exprs` over `tuple`.
    pub(crate) fn new(
        exprs: &[(Arc<str>, &Expr)],
        tuple: &Tuple,
        parameters: &Tuple,
        library: &Arc<Library>,
    ) -> Result<Projector> {
        let mut exprs: Vec<Expr> = exprs.iter().map(|(_, expr)| (*expr).clone()).collect();
        let mut used: Vec<usize> =
            exprs.iter().flat_map(Expr::fields).filter_map(|name| tuple.index_of(&name)).collect();
        used.sort_unstable();
        used.dedup();
        let mut fields: Vec<Field> =
            used.iter().map(|&index| tuple.fields()[index].clone()).collect();
        let mut shared = Vec::new();
        for (name, expr) in share(&mut exprs, tuple, library) {
            let bound = BoundExpr::new(&expr, &Tuple::new(fields.clone()), parameters, library)?;
            let (atom, nullable) = bound.atom();
            fields.push(Field { name, item: Item::Atom(atom.clone()), nullable });
            shared.push(bound);
        }
        let scope = Tuple::new(fields);
        let grows = shared.iter().any(BoundExpr::grows) || exprs.iter().any(grows_in);
        let output = |expr: &Expr| match expr {
            Expr::Field(name) if scope.index_of(name).is_some() => {
                Ok(Output::Passed(scope.index_of(name).unwrap_or_default()))
            }
            _ => Ok(Output::Computed(BoundExpr::new(expr, &scope, parameters, library)?)),
        };
        let outputs = exprs.iter().map(output).collect::<Result<Vec<_>>>()?;
        Ok(Projector { used, shared, outputs, grows })
    }

    /// Compiles the expressions for a run.
    pub(crate) fn start(&self, run: &Run) -> Projection {
        let output = |output: &Output<BoundExpr>| match output {
            Output::Passed(index) => Output::Passed(*index),
            Output::Computed(bound) => Output::Computed(Computation::start(bound, run)),
        };
        Projection {
            run: self.grows.then(|| run.clone()),
            used: self.used.clone(),
            shared: self.shared.iter().map(|bound| Computation::start(bound, run)).collect(),
            outputs: self.outputs.iter().map(output).collect(),
        }
    }
}

impl Projection {
    /// The number of tuples to compute at a time, if values can be long.
    pub(crate) fn piece_rows(&self, chunk: &Chunk) -> Option<usize> {
        let run = self.run.as_ref()?;
        piece_rows(chunk, run, |sample| self.apply_at_once(sample).map(drop))
    }

    /// Computes the fields of a chunk. If every field is passed on, the selection stays; otherwise
    /// the selected tuples are compacted once, so that no expression sees the others.
    pub(crate) fn apply(&self, chunk: &Chunk) -> Result<Chunk> {
        let Some(run) = &self.run else { return self.apply_at_once(chunk) };
        let apply = |piece: &Chunk| self.apply_at_once(piece);
        concat_chunks(&each_piece(
            chunk,
            run,
            |sample| apply(sample).map(drop),
            |_, piece| apply(piece),
        )?)
    }

    /// Like [`Projection::apply`], without limiting the length of values.
    pub(crate) fn apply_at_once(&self, chunk: &Chunk) -> Result<Chunk> {
        let stored = chunk.stored();
        let mut chunk =
            chunk.with_stored(self.used.iter().map(|&field| stored[field].clone()).collect());
        let passed_only = self.outputs.iter().all(|output| matches!(output, Output::Passed(_)));
        if !(passed_only && self.shared.is_empty()) {
            chunk = chunk.compact()?;
        }
        for shared in &self.shared {
            let mut columns = chunk.stored().to_vec();
            columns.push(shared.evaluate(&chunk)?);
            chunk = chunk.with_stored(columns);
        }
        let column = |output: &Output<Computation>| match output {
            Output::Passed(index) => Ok(chunk.stored()[*index].clone()),
            Output::Computed(computation) => computation.evaluate(&chunk),
        };
        let columns = self.outputs.iter().map(column).collect::<Result<Vec<Column>>>()?;
        Ok(chunk.with_stored(columns))
    }
}

/// Extracts sub-expressions that occur more than once and are always evaluated, and replaces them
/// in `exprs` by a field. Returns them with their names, in the order of evaluation.
fn share(exprs: &mut [Expr], tuple: &Tuple, library: &Library) -> Vec<(Arc<str>, Expr)> {
    let mut nodes = 0;
    let mut volatile = false;
    for expr in exprs.iter() {
        expr.walk(&mut |_| nodes += 1);
        volatile |= tessera_plan::rewrite::is_volatile(expr, library);
    }
    if nodes > SHARED_SEARCH_NODES_MAX || volatile {
        return Vec::new();
    }
    let mut shared: Vec<(Arc<str>, Expr)> = Vec::new();
    while shared.len() < SHARED_MAX {
        let Some(expr) = largest_repeated(exprs.iter().chain(shared.iter().map(|(_, expr)| expr)))
        else {
            break;
        };
        let mut name: Arc<str> = format!("shared {}", shared.len()).into();
        while tuple.index_of(&name).is_some() {
            name = format!("{name}'").into();
        }
        let field = Expr::Field(name.clone());
        exprs.iter_mut().for_each(|place| replace(place, &expr, &field));
        shared.iter_mut().for_each(|(_, place)| replace(place, &expr, &field));
        shared.push((name, expr));
    }
    // A later expression may be part of an earlier one, but not the reverse.
    shared.reverse();
    shared
}

/// Returns the largest expression that occurs at least twice among those that are always evaluated.
fn largest_repeated<'a>(exprs: impl Iterator<Item = &'a Expr>) -> Option<Expr> {
    let mut found = Vec::new();
    exprs.for_each(|expr| unconditional(expr, &mut found));
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut best: Option<(usize, &Expr)> = None;
    for expr in found {
        let text = format!("{expr:?}");
        let length = text.len();
        let count = seen.entry(text).or_default();
        *count += 1;
        if *count == 2 && best.is_none_or(|(longest, _)| length > longest) {
            best = Some((length, expr));
        }
    }
    best.map(|(_, expr)| expr.clone())
}

/// Collects the computations in `expr` that run for every tuple. Excludes branches, later operands
/// of AND, OR and COALESCE, and `try`, where evaluating early could raise a spurious error.
fn unconditional<'a>(expr: &'a Expr, found: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Field(_)
        | Expr::Parameter(_)
        | Expr::Constant(..)
        | Expr::Lambda(_)
        | Expr::Try(_) => return,
        Expr::Call { function, args } if is_written_null(function, args) => return,
        Expr::Call { args, .. } => args.iter().for_each(|arg| unconditional(arg, found)),
        Expr::Cast { input, .. } | Expr::Not(input) | Expr::IsNull(input) => {
            unconditional(input, found)
        }
        Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list) => {
            list.first().into_iter().for_each(|first| unconditional(first, found));
        }
        Expr::Case { branches, .. } => {
            branches.first().into_iter().for_each(|(condition, _)| unconditional(condition, found));
        }
    }
    // A function's type may depend on whether an operand is constant. Constants stay in place;
    // binding evaluates them anyway.
    if reads(expr) {
        found.push(expr);
    }
}

fn reads(expr: &Expr) -> bool {
    let mut reads = false;
    expr.walk(&mut |expr| reads |= matches!(expr, Expr::Field(_) | Expr::Parameter(_)));
    reads
}

fn replace(place: &mut Expr, from: &Expr, to: &Expr) {
    if place == from {
        *place = to.clone();
    } else {
        place.children_mut().into_iter().for_each(|child| replace(child, from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, args: Vec<Expr>) -> Expr {
        Expr::call(name, args)
    }

    #[test]
    fn repeated_computations_are_taken_out_largest_first() {
        let inner = call("sub", vec![Expr::int64(1), Expr::field("d")]);
        let outer = call("mul", vec![Expr::field("p"), inner.clone()]);
        let mut exprs = vec![
            outer.clone(),
            call("mul", vec![outer.clone(), call("add", vec![Expr::int64(1), Expr::field("t")])]),
            inner.clone(),
        ];
        let shared = share(&mut exprs, &Tuple::empty(), &Library::default());
        let names: Vec<&str> = shared.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["shared 1", "shared 0"]);
        assert_eq!(shared[0].1, inner);
        assert_eq!(shared[1].1, call("mul", vec![Expr::field("p"), Expr::field("shared 1")]));
        assert_eq!(exprs[0], Expr::field("shared 0"));
        assert_eq!(exprs[2], Expr::field("shared 1"));
    }

    #[test]
    fn what_is_evaluated_conditionally_stays() {
        let divide = call("div", vec![Expr::int64(1), Expr::field("d")]);
        let guarded = Expr::Case {
            branches: vec![(Expr::boolean(false), divide.clone())],
            otherwise: Some(Box::new(divide.clone())),
        };
        let mut exprs = vec![guarded.clone(), guarded.clone(), Expr::Try(Box::new(divide.clone()))];
        let shared = share(&mut exprs, &Tuple::empty(), &Library::default());
        assert_eq!(shared.len(), 1, "the CASE itself is shared, its branches are not");
        assert_eq!(shared[0].1, guarded);
        let random = call("random", vec![]);
        assert!(
            share(&mut [random.clone(), random], &Tuple::empty(), &Library::default()).is_empty()
        );
    }
}
