//! The aggregates of one node, bound: what is evaluated, which states there are, which results are
//! read from them.

use std::sync::{Arc, OnceLock};

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion_expr::AggregateUDF;
use tessera_context::Run;
use tessera_context::interrupt::check_here;
use tessera_functions::growth::each_piece;
use tessera_functions::{Bound, Library};
use tessera_plan::Expr;
use tessera_plan::rewrite::is_volatile;
use tessera_types::{Atom, Error, Field, Item, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::area::Area;
use super::call::Call;
use super::compiled::{Asked, Compiled};
use super::extreme::Keep;
use super::groups::{Groups, Shape};
use super::library::LibrarySpec;
use super::ordered::OrderedSpec;
use super::quantile::{Quantile, QuantileSpec};
use super::regression::Regression;
use super::share::share;
use super::{Aggregate, Function, Output, OutputKind, is_summable};

/// Library functions whose result depends on the order of their input.
const ORDER_MATTERS: [&str; 5] =
    ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// The aggregate functions of one table, in the order of their states.
pub type States = Vec<Box<dyn Aggregate>>;

/// Arguments that are evaluated for the same tuples.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) filter: Option<Bound>,
    pub(super) args: Vec<Bound>,
}

impl Stage {
    fn exprs(&self) -> impl Iterator<Item = &Bound> {
        self.filter.iter().chain(&self.args)
    }
}

/// One state: a function, and where its arguments come from.
#[derive(Debug)]
pub(super) struct State {
    pub(super) function: Function,
    pub(super) stage: usize,
    pub(super) args: Vec<usize>,
    pub(super) offset: usize,
}

/// Aggregates over chunks of one tuple type.
#[derive(Debug)]
pub struct Program {
    pub(super) shared: Vec<Bound>,
    pub(super) stages: Vec<Stage>,
    pub(super) states: Vec<State>,
    outputs: Vec<(usize, Output)>,
    stride: usize,
    /// Whether values on the way may be far longer than those of the fields.
    grows: bool,
    /// What was asked of a compiler, by the first run.
    pub(super) asked: OnceLock<Option<Arc<Asked>>>,
}

/// A state while programs are made: calls with equal ones share it.
#[derive(Debug, PartialEq)]
struct Wanted {
    family: Family,
    args: Vec<Expr>,
    filter: Option<Expr>,
    distinct: bool,
    order_by: Vec<tessera_plan::SortKey>,
    limit: Option<u64>,
}

impl Wanted {
    fn is_volatile(&self, library: &Library) -> bool {
        self.args.iter().chain(&self.filter).any(|expr| is_volatile(expr, library))
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Family {
    Nothing,
    Count,
    MergedCount,
    Sum,
    Keep(Keep),
    Variance,
    Regression,
    Quantile(Quantile),
    Library(Arc<str>),
}

impl Program {
    /// No aggregates.
    pub fn nothing(base: usize) -> Program {
        let (shared, stages) = (Vec::new(), Vec::new());
        Program {
            shared,
            stages,
            states: Vec::new(),
            outputs: Vec::new(),
            stride: base,
            grows: false,
            asked: OnceLock::new(),
        }
    }

    /// Binds aggregates over `tuple`. States start `base` words into a group's record.
    ///
    /// # Errors
    /// A function does not take its arguments; a node that the verifier passed gives none but
    /// internal ones.
    pub fn bind(
        calls: &[Call],
        outputs: &[Field],
        tuple: &Tuple,
        parameters: &Tuple,
        library: &Arc<Library>,
        base: usize,
    ) -> Result<Program> {
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut results: Vec<(usize, OutputKind)> = Vec::new();
        for call in calls {
            let types = call
                .args
                .iter()
                .map(|arg| Ok(Bound::new(arg, tuple, parameters, library)?.atom().0.clone()))
                .collect::<Result<Vec<_>>>()?;
            let (family, kind) = family(call, &types, library)?;
            let state = want(call, family, &types);
            // Two calls of what is volatile are two.
            let same = wanted
                .iter()
                .position(|other| *other == state)
                .filter(|_| !state.is_volatile(library));
            let index = same.unwrap_or_else(|| {
                wanted.push(state);
                wanted.len() - 1
            });
            results.push((index, kind));
        }
        count_from_sums(&mut wanted, &mut results);

        // Arguments, each once for every filter; in the first stage (no filter) parts of them are
        // shared.
        let mut stages: Vec<(Option<Expr>, Vec<Expr>)> = vec![(None, Vec::new())];
        let mut places: Vec<(usize, Vec<usize>)> = Vec::new();
        for state in &wanted {
            let same = stages.iter().position(|(filter, _)| *filter == state.filter);
            let is_drawn =
                state.filter.as_ref().is_some_and(|filter| is_volatile(filter, &**library));
            let stage = same.filter(|_| !is_drawn).unwrap_or_else(|| {
                stages.push((state.filter.clone(), Vec::new()));
                stages.len() - 1
            });
            let keys = state.order_by.iter().map(|key| Expr::Field(key.field.clone()));
            let list = &mut stages[stage].1;
            let place = |expr: Expr| {
                let same = list.iter().position(|other| *other == expr);
                same.filter(|_| !is_volatile(&expr, &**library)).unwrap_or_else(|| {
                    list.push(expr);
                    list.len() - 1
                })
            };
            places.push((stage, state.args.iter().cloned().chain(keys).map(place).collect()));
        }
        let mut extended = tuple.clone();
        let mut shared = Vec::new();
        for (name, expr) in
            share(&mut stages[0].1.iter_mut().collect::<Vec<_>>(), tuple, &**library)
        {
            let bound = Bound::new(&expr, &extended, parameters, library)?;
            let (atom, nullable) = bound.atom();
            let field = Field { name, item: Item::Atom(atom.clone()), nullable };
            extended = extended.concat(&Tuple::new(vec![field]));
            shared.push(bound);
        }
        let stages = stages
            .into_iter()
            .map(|(filter, args)| {
                let bind = |expr: &Expr| Bound::new(expr, &extended, parameters, library);
                Ok(Stage {
                    filter: filter.as_ref().map(bind).transpose()?,
                    args: args.iter().map(bind).collect::<Result<_>>()?,
                })
            })
            .collect::<Result<Vec<_>>>()?;

        let mut stride = base;
        let mut states = Vec::new();
        for (state, (stage, args)) in wanted.iter().zip(places) {
            let atoms: Vec<(Atom, bool)> = args
                .iter()
                .map(|&arg| {
                    let (atom, nullable) = stages[stage].args[arg].atom();
                    (atom.clone(), nullable)
                })
                .collect();
            let function = function(state, &atoms, library)?;
            let words = function.words();
            states.push(State { function, stage, args, offset: stride });
            stride += words;
        }
        let outputs = results
            .into_iter()
            .zip(outputs)
            .map(|((state, kind), field)| {
                let atom =
                    field.atom().ok_or_else(|| Error::internal("an aggregate of collections"))?;
                Ok((state, Output { kind, data_type: atom.arrow() }))
            })
            .collect::<Result<_>>()?;
        let grows = shared.iter().chain(stages.iter().flat_map(Stage::exprs)).any(Bound::grows);
        Ok(Program { shared, stages, states, outputs, stride, grows, asked: OnceLock::new() })
    }

    /// Words of a group's record, `base` included.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all of every state lies in its words, so that it can be copied.
    pub fn is_flat(&self) -> bool {
        self.states.iter().all(|state| match &state.function {
            Function::Nothing | Function::Count { .. } | Function::Sum(_) => true,
            Function::Variance(_) | Function::Regression => true,
            Function::Extreme(_, data_type) => {
                data_type.is_primitive() || *data_type == DataType::Boolean
            }
            Function::Quantile(_)
            | Function::Library(_)
            | Function::List
            | Function::Joined
            | Function::Ordered(_) => false,
        })
    }

    /// The functions over a new table.
    pub fn make(&self) -> Result<States> {
        self.states.iter().map(|state| state.function.make(state.offset)).collect()
    }

    /// Takes a chunk into the states of the groups its tuples belong to, by compiled code where
    /// there is some.
    pub fn update(
        &self,
        compiled: Option<&Compiled>,
        states: &mut States,
        area: &mut Area,
        chunk: &Chunk,
        groups: &Groups<'_>,
        run: &Run,
    ) -> Result<()> {
        let Some(compiled) = compiled else {
            return self.update_left(None, states, area, &chunk.clone().compact()?, groups, run);
        };
        let done = compiled.update(area, chunk, groups)?;
        if done > 0 && compiled.states().contains(&false) {
            if done < groups.rows {
                // Of several errors the one is told that the vectorised tier meets first.
                self.evaluate(&chunk.clone().compact()?, run)?;
            }
            let (chunk, groups) = (chunk.slice(0, done).compact()?, groups.slice(0, done));
            self.update_left(Some(compiled.states()), states, area, &chunk, &groups, run)?;
        }
        let left = groups.rows - done;
        if left == 0 {
            return Ok(());
        }
        let chunk = chunk.slice(done, left).compact()?;
        let groups = if done == 0 { *groups } else { groups.slice(done, left) };
        self.update_left(None, states, area, &chunk, &groups, run)
    }

    /// Takes a chunk without selection into the states that are not done with; in pieces where
    /// arguments on the way are long.
    fn update_left(
        &self,
        done: Option<&[bool]>,
        states: &mut States,
        area: &mut Area,
        chunk: &Chunk,
        groups: &Groups<'_>,
        run: &Run,
    ) -> Result<()> {
        if !self.grows {
            return self.update_at_once(done, states, area, chunk, groups, run);
        }
        let evaluate = |sample: &Chunk| self.evaluate(&sample.clone().compact()?, run);
        let update = |start: usize, piece: &Chunk| {
            let all = piece.rows() == groups.rows;
            let groups = if all { *groups } else { groups.slice(start, piece.rows()) };
            self.update_at_once(done, states, area, piece, &groups, run)
        };
        each_piece(chunk, run, evaluate, update).map(drop)
    }

    fn update_at_once(
        &self,
        done: Option<&[bool]>,
        states: &mut States,
        area: &mut Area,
        chunk: &Chunk,
        groups: &Groups<'_>,
        run: &Run,
    ) -> Result<()> {
        let left = |number: usize| {
            let is_left = move |state: usize| done.is_none_or(|done| !done[state]);
            self.states.iter().enumerate().any(|(i, state)| state.stage == number && is_left(i))
        };
        let update =
            |number, states: &mut States, area: &mut Area, chunk: &Chunk, groups: &Groups<'_>| {
                self.update_stage((number, done), states, area, chunk, groups, run)
            };
        let chunk = self.with_shared(chunk, run)?;
        for (number, stage) in self.stages.iter().enumerate() {
            if !left(number) {
                continue;
            }
            let Some(filter) = &stage.filter else {
                update(number, states, area, &chunk, groups)?;
                continue;
            };
            let chosen = filter.select(chunk.clone(), run)?;
            if chosen.is_empty() {
                continue;
            }
            let list: Vec<u32> = match (groups.shape, chosen.selection()) {
                (_, None) => {
                    update(number, states, area, &chosen, groups)?;
                    continue;
                }
                (Shape::One(group), Some(rows)) => {
                    let groups = Groups::one(group, rows.len(), groups.position);
                    update(number, states, area, &chosen, &groups)?;
                    continue;
                }
                (_, Some(rows)) => {
                    rows.values().iter().map(|&row| groups.group(row as usize)).collect()
                }
            };
            let groups = Groups::each(&list, groups.position);
            update(number, states, area, &chosen, &groups)?;
        }
        Ok(())
    }

    /// Raises the error that some tuple of a chunk without selection raises, if one does.
    fn evaluate(&self, chunk: &Chunk, run: &Run) -> Result<()> {
        let chunk = self.with_shared(chunk, run)?;
        for stage in &self.stages {
            let chosen = match &stage.filter {
                Some(filter) => filter.select(chunk.clone(), run)?,
                None => chunk.clone(),
            };
            stage.args.iter().try_for_each(|arg| arg.evaluate(&chosen, run).map(drop))?;
        }
        Ok(())
    }

    /// A chunk with the values that arguments share.
    fn with_shared(&self, chunk: &Chunk, run: &Run) -> Result<Chunk> {
        let mut columns = chunk.stored().to_vec();
        for shared in &self.shared {
            let value = shared.evaluate(&Chunk::new(columns.clone(), chunk.rows()), run)?;
            columns.push(value);
        }
        Ok(Chunk::new(columns, chunk.rows()))
    }

    /// The states of a stage, but for those that are done with.
    fn update_stage(
        &self,
        (number, done): (usize, Option<&[bool]>),
        states: &mut States,
        area: &mut Area,
        chunk: &Chunk,
        groups: &Groups<'_>,
        run: &Run,
    ) -> Result<()> {
        let is_left = |(i, state): &(usize, &State)| {
            state.stage == number && done.is_none_or(|done| !done[*i])
        };
        let left: Vec<(usize, &State)> = self.states.iter().enumerate().filter(is_left).collect();
        let mut args: Vec<Option<Column>> = Vec::new();
        for (number, arg) in self.stages[number].args.iter().enumerate() {
            let is_read = left.iter().any(|(_, state)| state.args.contains(&number));
            args.push(is_read.then(|| plain_dictionary(arg.evaluate(chunk, run)?)).transpose()?);
        }
        for (i, state) in left {
            let args: Vec<Column> =
                state.args.iter().filter_map(|&arg| args[arg].clone()).collect();
            states[i].update(area, groups, &args)?;
        }
        Ok(())
    }

    /// The results of all groups.
    pub fn finish(&self, states: &mut States, area: &mut Area) -> Result<Vec<ArrayRef>> {
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (i, (state, output)) in self.outputs.iter().enumerate() {
            check_here()?;
            let same = self.outputs[..i].iter().position(|(other, o)| {
                other == state && o.kind == output.kind && o.data_type == output.data_type
            });
            let array = match same {
                Some(same) => arrays[same].clone(),
                None => states[*state].finish(area, output)?,
            };
            arrays.push(array);
        }
        Ok(arrays)
    }
}

/// A dictionary column with fewer values than it has room for is decoded once for all functions
/// that read it.
fn plain_dictionary(column: Column) -> Result<Column> {
    match column {
        Column::Dictionary(_) => Ok(Column::Plain(column.plain()?)),
        other => Ok(other),
    }
}

fn udf(library: &Library, name: &str) -> Result<Arc<AggregateUDF>> {
    library
        .aggregate_udf(name)
        .ok_or_else(|| Error::semantic(format!("there is no aggregate function {name}")))
}

/// Which states a call needs, and what is read from them.
fn family(call: &Call, types: &[Atom], library: &Arc<Library>) -> Result<(Family, OutputKind)> {
    let kept = types.first().is_some_and(|atom| *atom != Atom::Null) && types.len() == 1;
    let numeric = kept && types.first().is_some_and(|atom| is_summable(&atom.arrow()));
    let boolean = kept && types.first() == Some(&Atom::Boolean);
    let variance = |sample, root| (Family::Variance, OutputKind::Variance { sample, root });
    let of_null = types == [Atom::Null];
    if let (Some(kind), 2) = (Regression::named(&call.function), types.len()) {
        return Ok((Family::Regression, OutputKind::Regression(kind)));
    }
    Ok(match &*call.function {
        "sum" | "avg" | "mean" | "min" | "max" | "any_value" | "bool_and" | "bool_or" | "every"
        | "var_samp" | "var_pop" | "stddev" | "stddev_pop" | "mode"
            if of_null =>
        {
            (Family::Nothing, OutputKind::Value)
        }
        "sum" if types == [Atom::Interval] => (Family::Sum, OutputKind::Value),
        "avg" | "mean" if types == [Atom::Interval] => (Family::Sum, OutputKind::Average),
        "count" => (Family::Count, OutputKind::Value),
        "sum" if numeric => (Family::Sum, OutputKind::Value),
        "avg" | "mean" if numeric => (Family::Sum, OutputKind::Average),
        "merge_count" => (Family::MergedCount, OutputKind::Value),
        "merge_sum" => (Family::Sum, OutputKind::Value),
        "merge_avg" => (Family::Sum, OutputKind::Average),
        "min" if kept => (Family::Keep(Keep::Min), OutputKind::Value),
        "max" if kept => (Family::Keep(Keep::Max), OutputKind::Value),
        "any_value" if kept => (Family::Keep(Keep::Any), OutputKind::Value),
        "bool_and" | "every" if boolean => (Family::Keep(Keep::Min), OutputKind::Value),
        "bool_or" if boolean => (Family::Keep(Keep::Max), OutputKind::Value),
        "percentile_cont" => (Family::Quantile(Quantile::Continuous), OutputKind::Value),
        "percentile_disc" => (Family::Quantile(Quantile::Discrete), OutputKind::Value),
        "mode" => (Family::Quantile(Quantile::Mode), OutputKind::Value),
        "var" | "var_samp" | "var_sample" | "variance" if numeric => variance(true, false),
        "var_pop" | "var_population" if numeric => variance(false, false),
        "stddev" | "stddev_samp" if numeric => variance(true, true),
        "stddev_pop" if numeric => variance(false, true),
        name => (Family::Library(udf(library, name)?.name().into()), OutputKind::Value),
    })
}

fn want(call: &Call, family: Family, types: &[Atom]) -> Wanted {
    let order_matters = match &family {
        Family::Library(name) => ORDER_MATTERS.contains(&&**name),
        Family::Keep(Keep::Any) => !call.order_by.is_empty(),
        _ => false,
    };
    let within_group =
        matches!(&family, Family::Library(_) | Family::Quantile(_)) && !order_matters;
    Wanted {
        args: match family {
            // A constant that is not NULL is not NULL in every tuple.
            Family::Count if !call.distinct && types.len() == 1 => call
                .args
                .iter()
                .filter(|arg| !matches!(arg, Expr::Constant(value, _) if !value.is_null()))
                .cloned()
                .collect(),
            _ => call.args.clone(),
        },
        filter: call.filter.clone(),
        distinct: call.distinct && !matches!(family, Family::Keep(_)),
        order_by: if order_matters || within_group { call.order_by.clone() } else { Vec::new() },
        limit: call.limit,
        family,
    }
}

/// A count of values that are summed as well is read from the sum.
fn count_from_sums(wanted: &mut Vec<Wanted>, results: &mut [(usize, OutputKind)]) {
    for count in (0..wanted.len()).rev() {
        let state = &wanted[count];
        if state.family != Family::Count || state.args.is_empty() {
            continue;
        }
        let sum = wanted.iter().position(|other| {
            other.family == Family::Sum
                && (&other.args, &other.filter, other.distinct)
                    == (&state.args, &state.filter, state.distinct)
        });
        let Some(sum) = sum else { continue };
        wanted.remove(count);
        for (index, kind) in results.iter_mut() {
            if *index == count {
                (*index, *kind) = (if sum > count { sum - 1 } else { sum }, OutputKind::Count);
            } else if *index > count {
                *index -= 1;
            }
        }
    }
}

fn function(state: &Wanted, atoms: &[(Atom, bool)], library: &Arc<Library>) -> Result<Function> {
    let (args, keys) = atoms.split_at(state.args.len());
    let first = || {
        let atom =
            args.first().ok_or_else(|| Error::internal("an aggregate without its argument"))?;
        Ok::<_, Error>(atom.0.arrow())
    };
    let mut order_matters = false;
    let mut within_group = false;
    let function = match &state.family {
        Family::Nothing => Function::Nothing,
        Family::Count => Function::Count { merged: false },
        Family::MergedCount => Function::Count { merged: true },
        Family::Sum => Function::Sum(first()?),
        Family::Keep(keep) => {
            order_matters = *keep == Keep::Any && !state.order_by.is_empty();
            Function::Extreme(*keep, first()?)
        }
        Family::Variance => Function::Variance(first()?),
        Family::Regression => Function::Regression,
        Family::Quantile(kind) => {
            within_group = true;
            let descending = state.order_by.first().is_some_and(|key| key.descending);
            Function::Quantile(Arc::new(QuantileSpec { kind: *kind, descending, values: first()? }))
        }
        Family::Library(name) => {
            order_matters = ORDER_MATTERS.contains(&&**name);
            within_group = !order_matters;
            match (&**name, args) {
                ("array_agg", _) => Function::List,
                ("string_agg", _) => Function::Joined,
                _ => {
                    let descending =
                        state.order_by.first().filter(|_| within_group).map(|key| key.descending);
                    let udf = udf(library, name)?;
                    Function::Library(Arc::new(LibrarySpec::new(
                        udf,
                        args,
                        &state.args,
                        descending,
                    )?))
                }
            }
        }
    };
    if !state.distinct && !order_matters {
        return Ok(function);
    }
    let options = |key: &tessera_plan::SortKey| SortOptions {
        descending: key.descending,
        nulls_first: key.nulls_first,
    };
    let keys = match within_group {
        true => Vec::new(),
        false => keys
            .iter()
            .zip(&state.order_by)
            .map(|((atom, _), key)| (atom.arrow(), options(key)))
            .collect(),
    };
    Ok(Function::Ordered(Arc::new(OrderedSpec {
        function,
        args: args.iter().map(|(atom, _)| atom.arrow()).collect(),
        keys,
        distinct: state.distinct,
        order_matters,
        first: state.limit,
    })))
}
