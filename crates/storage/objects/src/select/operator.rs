//! `select_request`: requests the tuples that satisfy a predicate from the store, instead of
//! reading whole objects.

use std::sync::Arc;

use tessera_context::{Reservation, Run};
use tessera_formats::{ArrowTable, RecordDecoder, RecordFormat};
use tessera_operator::describe::{edge, passes};
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Params, Role, Value};
use tessera_rows::Collected;
use tessera_types::{Error, Field, Item, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::answer::{Answer, Piece};
use super::request::{self, Input};
use crate::objects::Objects;

/// The tuples of a table.
const TABLE_ROWS: usize = 8_192;

/// Sends the SQL in `sql` to the store for each object in `paths`, and yields the selected records
/// as Arrow tables (Modularis §2.4.5).
///
/// `paths = ['s3://b/x.parquet'], sql = 'SELECT s."a" FROM S3Object s WHERE s."a" > 1', columns =
/// <a: int64>, input = :parquet, output = :csv` gives `<table: arrow<a: int64>>`. An object is a
/// morsel. Buffers the records of a table and received bytes, returns `Blocked` until more arrive,
/// keeps the order of the objects. Errors: the store refuses, rejects the SQL, returns another
/// version of the object, or records that do not match the columns.
/// gives another version of the object, or records that are not of these columns.
#[derive(Debug)]
pub struct SelectRequest {
    objects: Arc<Objects>,
}

impl SelectRequest {
    /// Creates the sub-operator for the stores of a session.
    pub fn new(objects: Arc<Objects>) -> SelectRequest {
        SelectRequest { objects }
    }
}

impl Descriptor for SelectRequest {
    tessera_operator::describe!(
        "select_request",
        "Asks the store for the tuples of objects that satisfy a predicate.",
        ["paths", "sql", "columns", "input", "output", "header", "delimiter", "quote"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        Request::of(&node.params)?;
        let columns = node.params.tuple("columns")?.clone();
        columns.check()?;
        if columns.fields().iter().any(|field| matches!(field.item, Item::Collection(_))) {
            return Err(Error::semantic(
                "parameter columns has a collection, which a store cannot select",
            ));
        }
        let table = Field::collection("table", "arrow", columns);
        Ok(passes(edge(inputs)?, Tuple::new(vec![table]), Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for SelectRequest {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let request = Request::of(&node.params)?;
        let body = request::body(&request.sql, &request.input, request.output).into();
        let columns = node.params.tuple("columns")?.clone();
        let (objects, paths, output) = (self.objects.clone(), request.paths.into(), request.output);
        Ok(Operator::Source(Arc::new(SelectRequestOperator {
            objects,
            paths,
            body,
            output,
            columns,
        })))
    }
}

/// The checked parameters.
struct Request {
    paths: Vec<Arc<str>>,
    sql: Arc<str>,
    input: Input,
    output: RecordFormat,
}

impl Request {
    fn of(params: &Params) -> Result<Request> {
        let name = |parameter: &str| match params.get(parameter) {
            Some(Value::Name(name)) => Ok(&**name),
            _ => Err(Error::semantic(format!("parameter {parameter} must be a name such as :csv"))),
        };
        let character = |parameter: &str, otherwise: char| match params.get(parameter) {
            None => Ok(Some(otherwise)),
            Some(Value::String(text)) if text.chars().count() <= 1 => Ok(text.chars().next()),
            Some(_) => Err(Error::semantic(format!("parameter {parameter} must be one character"))),
        };
        let input = match name("input")? {
            "parquet" => Input::Parquet,
            "json" => Input::Json,
            "csv" => Input::Csv {
                header: params.flag("header")?,
                delimiter: character("delimiter", ',')?
                    .ok_or_else(|| Error::semantic("parameter delimiter must be one character"))?,
                quote: character("quote", '"')?,
            },
            other => {
                return Err(Error::semantic(format!(
                    "parameter input must be :parquet, :csv or :json, not :{other}"
                )));
            }
        };
        let output = match name("output")? {
            "csv" => RecordFormat::Csv,
            "json" => RecordFormat::Json,
            other => {
                return Err(Error::semantic(format!(
                    "parameter output must be :csv or :json, not :{other}"
                )));
            }
        };
        Ok(Request {
            paths: params.strings("paths")?,
            sql: params.string("sql")?.clone(),
            input,
            output,
        })
    }
}

#[derive(Debug, Clone)]
struct SelectRequestOperator {
    objects: Arc<Objects>,
    paths: Arc<[Arc<str>]>,
    body: Arc<str>,
    output: RecordFormat,
    columns: Tuple,
}

impl Source for SelectRequestOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(SelectRun { operator: self.clone(), run: run.clone() }))
    }
}

#[derive(Debug)]
struct SelectRun {
    operator: SelectRequestOperator,
    run: Run,
}

impl SourceRun for SelectRun {
    fn morsels(&self) -> usize {
        self.operator.paths.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let SelectRequestOperator { objects, paths, body, output, columns } = &self.operator;
        let path = paths.get(morsel).ok_or_else(|| Error::internal("the morsel does not exist"))?;
        Ok(Box::new(SelectReader {
            decoder: RecordDecoder::new(*output, columns.clone(), path)?,
            answer: objects.select(path, body.clone())?,
            objects: objects.clone(),
            run: self.run.clone(),
            ended: false,
        }))
    }
}

struct SelectReader {
    objects: Arc<Objects>,
    run: Run,
    answer: Arc<Answer>,
    decoder: RecordDecoder,
    ended: bool,
}

impl Reader for SelectReader {
    fn step(&mut self) -> Result<Step> {
        self.run.context.check()?;
        loop {
            if let Some(batch) = self.decoder.next(TABLE_ROWS, self.ended)? {
                let mut memory = Reservation::new(self.run.context.clone());
                memory.grow(batch.get_array_memory_size())?;
                let table = ArrowTable::new(batch, memory);
                return Ok(Step::HasOutput(Chunk::new(vec![Column::handle(table)], 1)));
            }
            if self.ended {
                return Ok(Step::Done);
            }
            match self.answer.next()? {
                Piece::Bytes(bytes) => self.decoder.push(&bytes),
                Piece::End => self.ended = true,
                Piece::Blocked(token) => {
                    self.objects.interrupt().check()?;
                    return Ok(Step::Blocked(token));
                }
            }
        }
    }
}

impl Drop for SelectReader {
    fn drop(&mut self) {
        self.answer.end();
        let cost = self.answer.cost();
        let wait = u64::try_from(cost.wait.as_nanos()).unwrap_or(u64::MAX);
        for (name, amount) in [
            ("select_requests", cost.requests),
            ("select_scanned_bytes", cost.scanned),
            ("select_returned_bytes", cost.returned),
            ("store_wait_nanoseconds", wait),
        ] {
            self.run.counters.add(name, amount);
        }
    }
}
