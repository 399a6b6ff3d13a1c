//! TABLESAMPLE and USING SAMPLE.

use sqlparser::ast::{
    Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Spanned, TableFactor,
    TableSampleKind, Value,
};
use tessera_optimizer::logical::relation::{Key, Relation};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use super::cte::Env;
use super::list::idents;
use super::scope::Scope;
use super::{Binder, Place, unsupported_at, with_span};
use crate::sample_clause::CLAUSE;

/// The number of successive tuples of a morsel that `SYSTEM` keeps or drops together.
const BLOCK_ROWS: u64 = 1_024;

/// Returns the arguments of USING SAMPLE, if the item of FROM stands for it.
pub(super) fn using_sample(factor: &TableFactor) -> Option<&[FunctionArg]> {
    match factor {
        TableFactor::Table { name, args: Some(args), .. } => is_clause(name).then_some(&args.args),
        _ => None,
    }
}

fn is_clause(name: &ObjectName) -> bool {
    matches!(idents(name).as_deref(), Ok([name]) if name.value == CLAUSE)
}

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
        if let Some(quantity) = &sample.quantity
            && let Ast::Function(call) = &quantity.value
            && is_clause(&call.name)
            && let FunctionArguments::List(list) = &call.args
        {
            return self.sampled(relation, &list.args);
        }
        let message = "SAMPLE after a table is not supported; write TABLESAMPLE or USING SAMPLE";
        Err(with_span(Error::unsupported(message), place.span()))
    }

    /// Binds a sample of a relation: method, size, unit and seed.
    pub(super) fn sampled(&mut self, relation: Relation, args: &[FunctionArg]) -> Result<Relation> {
        let args: Vec<&Ast> = args.iter().filter_map(expr_of).collect();
        let [method, size, unit, ..] = args[..] else {
            return Err(Error::internal("a sample clause without arguments"));
        };
        let (method, unit) = (text_of(method), text_of(unit));
        let seed = match args.get(3) {
            Some(seed) => self.seed(seed)?,
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
        match (method, unit) {
            ("reservoir", "rows") => {
                if !(0.0..=i64::MAX as f64).contains(&number) {
                    return Err(size_error("the number of rows of a sample must not be negative"));
                }
                Ok(self.reservoir(input, number as u64, seed))
            }
            (_, "percent") if method != "reservoir" => {
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

    /// Evaluates a number; `None` for NULL.
    fn number(&mut self, expr: &Ast) -> Result<Option<f64>> {
        let scope = Scope::empty(None, Env::default());
        let mut steps = Vec::new();
        let mut place =
            Place { scope: &scope, steps: &mut steps, clause: "TABLESAMPLE", unnests: None };
        let value = self.expr(expr, &mut place)?;
        let value = match value.atom.is_numeric() {
            true => self.cast_to(value, &Atom::Float64, false)?,
            false => self.implicitly(value, &Atom::Float64, "TABLESAMPLE")?,
        };
        match self.evaluated(value)?.expr {
            Expr::Constant(Scalar::Null, _) if steps.is_empty() => Ok(None),
            Expr::Constant(Scalar::Float(number), _) if steps.is_empty() => Ok(Some(number)),
            _ => Err(unsupported_at("a size or seed of a sample that is not constant", expr)),
        }
    }
}

fn expr_of(arg: &FunctionArg) -> Option<&Ast> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

fn text_of(expr: &Ast) -> &str {
    match expr {
        Ast::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text,
            _ => "",
        },
        _ => "",
    }
}
