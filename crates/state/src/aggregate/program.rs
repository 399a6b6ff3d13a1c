//! The bound aggregates of one node: evaluated arguments, states, and results.

mod state_spec;

use std::sync::{Arc, OnceLock};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use tessera_context::Run;
use tessera_context::interrupt::check_here;
use tessera_functions::growth::each_piece;
use tessera_functions::{BoundExpr, Library};
use tessera_plan::Expr;
use tessera_plan::rewrite::is_volatile;
use tessera_types::{Atom, Error, Field, Item, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::area::Area;
use super::call::Call;
use super::compiled::{Compiled, UpdateRequest};
use super::groups::{Groups, Shape};
use super::share::share;
use super::{Aggregate, Function, Output, OutputKind};
use state_spec::{StateSpec, count_from_sums, family, function, want};

/// The aggregate functions of one table, in the order of their states.
pub type States = Vec<Box<dyn Aggregate>>;

/// Arguments that are evaluated for the same tuples.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) filter: Option<BoundExpr>,
    pub(super) args: Vec<BoundExpr>,
}

impl Stage {
    fn exprs(&self) -> impl Iterator<Item = &BoundExpr> {
        self.filter.iter().chain(&self.args)
    }
}

/// One state: a function, and the stage and positions of its arguments.
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
    pub(super) shared: Vec<BoundExpr>,
    pub(super) stages: Vec<Stage>,
    pub(super) states: Vec<State>,
    outputs: Vec<(usize, Output)>,
    stride: usize,
    /// Whether intermediate values can be much longer than those of the fields.
    grows: bool,
    /// The compilation request, made by the first run.
    pub(super) request: OnceLock<Option<Arc<UpdateRequest>>>,
}

impl Program {
    /// Creates a program without aggregates.
    pub fn empty(base: usize) -> Program {
        let (shared, stages) = (Vec::new(), Vec::new());
        Program {
            shared,
            stages,
            states: Vec::new(),
            outputs: Vec::new(),
            stride: base,
            grows: false,
            request: OnceLock::new(),
        }
    }

    /// Binds aggregates over `tuple`. States start `base` words into a group's record.
    ///
    /// # Errors
    /// A function does not take its arguments; for a verified node, only internal errors.
    pub fn bind(
        calls: &[Call],
        outputs: &[Field],
        tuple: &Tuple,
        parameters: &Tuple,
        library: &Arc<Library>,
        base: usize,
    ) -> Result<Program> {
        let mut specs: Vec<StateSpec> = Vec::new();
        let mut results: Vec<(usize, OutputKind)> = Vec::new();
        for call in calls {
            let types = call
                .args
                .iter()
                .map(|arg| Ok(BoundExpr::new(arg, tuple, parameters, library)?.atom().0.clone()))
                .collect::<Result<Vec<_>>>()?;
            let (family, kind) = family(call, &types, library)?;
            let state = want(call, family, &types);
            // Volatile calls are never shared.
            let same = specs
                .iter()
                .position(|other| *other == state)
                .filter(|_| !state.is_volatile(library));
            let index = same.unwrap_or_else(|| {
                specs.push(state);
                specs.len() - 1
            });
            results.push((index, kind));
        }
        count_from_sums(&mut specs, &mut results);

        // Each argument is evaluated once per filter; arguments in the first stage (without a
        // filter) also share sub-expressions.
        let mut stages: Vec<(Option<Expr>, Vec<Expr>)> = vec![(None, Vec::new())];
        let mut places: Vec<(usize, Vec<usize>)> = Vec::new();
        for state in &specs {
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
            let bound = BoundExpr::new(&expr, &extended, parameters, library)?;
            let (atom, nullable) = bound.atom();
            let field = Field { name, item: Item::Atom(atom.clone()), nullable };
            extended = extended.concat(&Tuple::new(vec![field]));
            shared.push(bound);
        }
        let stages = stages
            .into_iter()
            .map(|(filter, args)| {
                let bind = |expr: &Expr| BoundExpr::new(expr, &extended, parameters, library);
                Ok(Stage {
                    filter: filter.as_ref().map(bind).transpose()?,
                    args: args.iter().map(bind).collect::<Result<_>>()?,
                })
            })
            .collect::<Result<Vec<_>>>()?;

        let mut stride = base;
        let mut states = Vec::new();
        for (state, (stage, args)) in specs.iter().zip(places) {
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
        let grows = shared.iter().chain(stages.iter().flat_map(Stage::exprs)).any(BoundExpr::grows);
        Ok(Program { shared, stages, states, outputs, stride, grows, request: OnceLock::new() })
    }

    /// Words of a group's record, including `base`.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns whether there are no states.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether every state is entirely in its words, so that it can be copied.
    pub fn is_flat(&self) -> bool {
        self.states.iter().all(|state| match &state.function {
            Function::Null | Function::Count { .. } | Function::Sum(_) => true,
            Function::Variance(_) | Function::Regression | Function::Moments => true,
            Function::CompensatedSum | Function::Product => true,
            Function::Extreme(_, data_type) => {
                data_type.is_primitive() || *data_type == DataType::Boolean
            }
            Function::Quantile(_)
            | Function::Library(_)
            | Function::Counted(..)
            | Function::List
            | Function::Joined
            | Function::Ordered(_) => false,
        })
    }

    /// Creates the functions for a new table.
    pub fn make(&self) -> Result<States> {
        self.states.iter().map(|state| state.function.make(state.offset)).collect()
    }

    /// Updates the states of groups with a chunk, by compiled code where possible.
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
                // Reports the error that the vectorized tier would raise first.
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

    /// Updates the states that compiled code has not updated, with a chunk without selection; in
    /// pieces if intermediate values can be long.
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

    /// Raises the error that a tuple of a chunk without selection raises, if any.
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

    /// Returns a chunk with the values of shared sub-expressions appended.
    fn with_shared(&self, chunk: &Chunk, run: &Run) -> Result<Chunk> {
        let mut columns = chunk.stored().to_vec();
        for shared in &self.shared {
            let value = shared.evaluate(&Chunk::new(columns.clone(), chunk.rows()), run)?;
            columns.push(value);
        }
        Ok(Chunk::new(columns, chunk.rows()))
    }

    /// Updates the states of a stage that compiled code has not updated.
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

    /// Returns the results of all groups.
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

/// Decodes a sparsely used dictionary column once for all functions that read it.
fn plain_dictionary(column: Column) -> Result<Column> {
    match column {
        Column::Dictionary(_) => Ok(Column::Plain(column.plain()?)),
        other => Ok(other),
    }
}
