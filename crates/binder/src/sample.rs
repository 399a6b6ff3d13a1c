//! TABLESAMPLE and USING SAMPLE.

use sqlparser::ast::{
    Expr as Ast, Spanned, TableSample, TableSampleKind, TableSampleMethod, TableSampleQuantity,
    TableSampleUnit,
};
use sqlparser::tokenizer::Span;
use tessera_optimizer::logical::relation::{Key, Relation};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use super::cte::Env;
use super::scope::Scope;
use super::{Binder, Place, unsupported_at, with_span};

/// The number of successive tuples of a morsel that `SYSTEM` keeps or drops together.
const BLOCK_ROWS: u64 = 1_024;

/// The methods of samples.
const METHODS: [&str; 3] = ["bernoulli", "system", "reservoir"];

impl Binder<'_> {
    /// Binds the TABLESAMPLE after a table, if there is one.
    pub(super) fn table_sample(
        &mut self,
        relation: Relation,
        sample: Option<&TableSampleKind>,
        place: &impl Spanned,
    ) -> Result<Relation> {
        let sample = match sample {
            None => return Ok(relation),
            Some(TableSampleKind::BeforeTableAlias(sample)) => sample,
            Some(TableSampleKind::AfterTableAlias(sample)) => sample,
        };
        self.sampled(relation, sample).map_err(|error| match error.span() {
            Some(_) => error,
            None => with_span(error, place.span()),
        })
    }

    /// Binds a sample of a relation: method, size, unit and seed.
    pub(super) fn sampled(&mut self, relation: Relation, sample: &TableSample) -> Result<Relation> {
        let TableSample { modifier: _, name, quantity, seed, bucket: _, offset: _ } = sample;
        let Some(TableSampleQuantity { parenthesized: _, value: size, unit }) = quantity else {
            return Err(Error::unsupported("a sample of buckets is not supported"));
        };
        let is_percent = unit.map(|unit| unit == TableSampleUnit::Percent);
        let method = match name {
            Some(name) => known_method(name)?,
            None if is_percent == Some(true) => "system",
            None => "reservoir",
        };
        let is_percent = is_percent.unwrap_or(method != "reservoir");
        let seed = match seed {
            Some(seed) => self.seed(&seed.value)?,
            None => {
                let random = self.call("random", Vec::new())?;
                random.expr
            }
        };
        let state = SqlState::INVALID_TABLESAMPLE_ARGUMENT;
        let size_error =
            |message: &str| with_span(Error::semantic(message).with_state(state), size.span());
        let Some(number) = self.number(size)? else {
            return Err(size_error("TABLESAMPLE parameter cannot be null"));
        };
        let input = Box::new(relation);
        match (method, is_percent) {
            ("reservoir", false) => {
                if !(0.0..=i64::MAX as f64).contains(&number) {
                    return Err(size_error("the number of rows of a sample must not be negative"));
                }
                Ok(self.reservoir(input, number as u64, seed))
            }
            (_, true) if method != "reservoir" => {
                if !(0.0..=100.0).contains(&number) {
                    return Err(size_error("sample percentage must be between 0 and 100"));
                }
                let block = if method == "system" { BLOCK_ROWS } else { 1 };
                Ok(Relation::Sample { input, percent: number, block, seed, into: None })
            }
            ("reservoir", _) => Err(with_span(
                Error::unsupported(
                    "a percentage of reservoir is not supported; use bernoulli, or a number of rows",
                ),
                size.span(),
            )),
            _ => Err(with_span(
                Error::unsupported(format!(
                    "a number of rows of {method} is not supported; use reservoir, or a percentage"
                )),
                size.span(),
            )),
        }
    }

    /// A sample of a fixed size: the first tuples in the order of their random numbers.
    fn reservoir(&mut self, input: Box<Relation>, rows: u64, seed: Expr) -> Relation {
        let exprs = input.names().into_iter().map(|name| (name.clone(), Expr::Field(name)));
        let exprs = exprs.collect();
        let key = self.fields.fresh("sample", Atom::Int64);
        let into = Some(key.clone());
        let input = Box::new(Relation::Sample { input, percent: 100.0, block: 1, seed, into });
        let key = Key { expr: Expr::Field(key), descending: false, nulls_first: false };
        let first = Relation::Sort { input, keys: vec![key], offset: 0, limit: Some(rows) };
        Relation::Map { input: Box::new(first), exprs }
    }

    fn seed(&mut self, seed: &Ast) -> Result<Expr> {
        match self.number(seed)? {
            Some(number) => Ok(Expr::Constant(Scalar::Float(number), Atom::Float64)),
            None => {
                let error = Error::semantic("TABLESAMPLE REPEATABLE parameter cannot be null")
                    .with_state(SqlState::INVALID_TABLESAMPLE_REPEAT);
                Err(with_span(error, seed.span()))
            }
        }
    }

    fn number(&mut self, expr: &Ast) -> Result<Option<f64>> {
        self.constant_number(expr, "TABLESAMPLE")
    }

    /// Evaluates the number of a clause; `None` for NULL.
    pub(super) fn constant_number(
        &mut self,
        expr: &Ast,
        clause: &'static str,
    ) -> Result<Option<f64>> {
        let scope = Scope::empty(None, Env::default());
        let mut steps = Vec::new();
        let mut place = Place { scope: &scope, steps: &mut steps, clause, unnests: None };
        let value = self.expr(expr, &mut place)?;
        let value = match value.atom.is_numeric() {
            true => self.cast_to(value, &Atom::Float64, false)?,
            false => self.implicitly(value, &Atom::Float64, clause)?,
        };
        match self.evaluated(value)?.expr {
            Expr::Constant(Scalar::Null, _) if steps.is_empty() => Ok(None),
            Expr::Constant(Scalar::Float(number), _) if steps.is_empty() => Ok(Some(number)),
            _ if clause == "TABLESAMPLE" => {
                Err(unsupported_at("a size or seed of a sample that is not constant", expr))
            }
            _ => Err(unsupported_at(&format!("a {clause} that is not constant"), expr)),
        }
    }
}

/// Returns the method of this name.
fn known_method(method: &TableSampleMethod) -> Result<&'static str> {
    let (name, span) = match method {
        TableSampleMethod::Named(name) => (name.value.clone(), name.span),
        other => (other.to_string(), Span::empty()),
    };
    let found = METHODS.into_iter().find(|method| name.eq_ignore_ascii_case(method));
    found.ok_or_else(|| {
        let message =
            format!("unknown sampling method '{name}'; expected bernoulli, system or reservoir");
        with_span(Error::semantic(message).with_state(SqlState::UNDEFINED_OBJECT), span)
    })
}
