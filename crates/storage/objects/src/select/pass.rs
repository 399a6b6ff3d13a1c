//! Rewrites scans of objects to select requests.

use std::sync::Arc;

use tessera_context::Compression;
use tessera_formats::csv::field_positions;
use tessera_formats::parquet::{FileSummary, discover};
use tessera_formats::{RecordFormat, json};
use tessera_plan::rewrite::map_nodes;
use tessera_plan::{Builder, Expr, Node, NodeId, OperatorCatalog, Params, Plan, Scalar, Value};
use tessera_types::{Atom, Field, Result, Tuple};

use super::SmartStorage;
use super::estimate::is_worthwhile;
use super::request::Input;
use super::sql::{Condition, Writer};
use super::trust::{Dialect, EXACT_MAX};
use crate::objects::Objects;

/// The most objects of a table: with more, not all could be examined, and differences between them
/// would be missed.
const OBJECTS_MAX: usize = 256;
/// The longest SQL that stores accept.
const SQL_BYTES_MAX: usize = 256 << 10;

/// Replaces scans by select requests where the store is reliable, and in mode `auto` where it is
/// worthwhile. Counts, sums and extremes directly above such a scan are pushed down, too, if the
/// whole predicate is.
///
/// For plans that other passes have optimized: scans contain their predicates and yield only fields
/// that are read.
///
/// # Errors
/// An object cannot be read, or the rewritten plan does not verify.
pub fn push_selects(
    plan: &Plan,
    catalog: &OperatorCatalog,
    objects: &Objects,
    mode: SmartStorage,
) -> Result<Plan> {
    if mode == SmartStorage::Off {
        return Ok(plan.clone());
    }
    let mut readers = vec![0; plan.nodes.len()];
    plan.nodes.iter().flat_map(|node| &node.inputs).for_each(|input| readers[input.index()] += 1);
    map_nodes(plan, &mut |out, id, mut node| {
        node.nested = node
            .nested
            .iter()
            .map(|nested| push_selects(nested, catalog, objects, mode))
            .collect::<Result<Vec<_>>>()?;
        let below =
            plan.node(id).inputs.first().map(|input| (plan.node(*input), readers[input.index()]));
        let aggregated = match (&*node.operator, below) {
            ("reduce", Some((scan, 1))) => Table::of(scan, objects)?.and_then(|table| {
                let aggregates = Aggregates::of(&node, &table, catalog)?;
                table.aggregate(&aggregates, out).map(|requested| (requested, aggregates))
            }),
            _ => None,
        };
        if let Some((requested, aggregates)) = aggregated {
            return Ok(out.add(
                "reduce",
                &[requested],
                Params::new().with("aggregates", aggregates.merged),
            ));
        }
        match Table::of(&node, objects)? {
            Some(table) => Ok(table.select(mode, out)?.unwrap_or_else(|| out.push(node))),
            None => Ok(out.push(node)),
        }
    })
}

/// A scan of objects that one store can evaluate.
pub(super) struct Table {
    paths: Value,
    pub(super) columns: Tuple,
    /// The output fields of the scan.
    pub(super) fields: Vec<Arc<str>>,
    pub(super) filter: Option<Expr>,
    dialect: Dialect,
    pub(super) input: Input,
    positions: Option<Vec<usize>>,
    /// For Parquet, the summaries of the objects.
    pub(super) footers: Vec<FileSummary>,
    /// The bytes of all objects.
    pub(super) bytes: u64,
    /// The number of columns of the objects, if known.
    pub(super) width: usize,
}

impl Table {
    /// Returns the scan of a node, if its store can evaluate it reliably.
    fn of(node: &Node, objects: &Objects) -> Result<Option<Table>> {
        let form = match &*node.operator {
            "parquet_scan" | "csv_scan" | "json_scan" => &*node.operator,
            _ => return Ok(None),
        };
        let paths = node.params.strings("paths")?;
        let columns = node.params.tuple("columns")?.clone();
        // Objects that are compressed as a whole are not pushed down, nor are scans that skip
        // records or number rows.
        let is_packed = |path: &Arc<str>| Compression::of_path(path).is_some();
        let odd = ["partitions", "compression", "ignore_errors", "file_row_number"];
        let is_odd =
            odd.iter().any(|name| node.param(name).is_some()) || paths.iter().any(is_packed);
        if paths.is_empty() || paths.len() > OBJECTS_MAX || is_odd {
            return Ok(None);
        }
        let mut dialects = paths.iter().map(|path| objects.dialect(path));
        let Some(Some(dialect)) = dialects.next() else { return Ok(None) };
        if dialects.any(|other| other != Some(dialect)) {
            return Ok(None);
        }
        let input = match form {
            "parquet_scan" => Input::Parquet,
            "json_scan" => Input::Json,
            _ => match csv(&node.params)? {
                Some(input) => input,
                None => return Ok(None),
            },
        };
        if !dialect.reads(&input, columns.fields()) {
            return Ok(None);
        }
        let fields = match node.param("fields") {
            Some(_) => node.params.names("fields")?,
            None => columns.fields().iter().map(|field| field.name.clone()).collect(),
        };
        let filter = node.params.expr_opt("filter")?.cloned();
        let width = match node.param("keys") {
            Some(Value::List(keys)) => keys.len(),
            _ => columns.len(),
        };
        let mut table = Table {
            paths: node.params.get("paths").cloned().unwrap_or(Value::List(Vec::new())),
            columns,
            fields,
            filter,
            dialect,
            input,
            positions: None,
            footers: Vec::new(),
            bytes: 0,
            width,
        };
        for path in &paths {
            let reader = objects.open(path)?;
            table.bytes += reader.len();
            match form {
                "parquet_scan" => table.footers.push(discover(&*reader)?),
                "csv_scan" => {
                    // Without a header, each column is the field at its position.
                    let Some(found) = field_positions(&*reader, &node.params, &table.columns)?
                    else {
                        return Ok(None);
                    };
                    if *table.positions.get_or_insert_with(|| found.clone()) != found {
                        return Ok(None);
                    }
                }
                "json_scan" if !json::is_lines(&*reader)? => return Ok(None),
                _ => {}
            }
        }
        let alike = table.footers.iter().all(|footer| {
            let same = |field: &Field| {
                footer.tuple.field(&field.name).is_some_and(|f| f.item == field.item)
            };
            table.columns.fields().iter().all(same)
        });
        Ok(alike.then_some(table))
    }

    fn writer(&self) -> Writer<'_> {
        Writer {
            dialect: self.dialect,
            input: &self.input,
            columns: &self.columns,
            positions: self.positions.as_deref(),
        }
    }

    /// Returns the condition for the store, and whether it is the whole filter.
    pub(super) fn pushed_filter(&self) -> (Option<Condition>, bool) {
        let Some(filter) = &self.filter else { return (None, true) };
        let written = self.writer().predicate(filter);
        let all = written.as_ref().is_some_and(|written| written.exact);
        (written, all)
    }

    /// Whether all values of an integer column are exact as doubles.
    fn is_small(&self, name: &str) -> bool {
        let small = |value: &Option<Scalar>| match value {
            Some(Scalar::Integer(value)) => value.unsigned_abs() < u128::from(EXACT_MAX),
            _ => false,
        };
        !self.footers.is_empty()
            && self.footers.iter().filter(|footer| footer.rows > 0).all(|footer| {
                let known =
                    footer.tuple.index_of(name).and_then(|position| footer.columns.get(position));
                known.is_some_and(|column| small(&column.min) && small(&column.max))
            })
    }

    /// Adds sub-operators that return the same as the scan.
    fn select(&self, mode: SmartStorage, out: &mut Builder) -> Result<Option<NodeId>> {
        let (pushed_filter, all) = self.pushed_filter();
        let mut wanted = self.fields.clone();
        if let Some(filter) = self.filter.as_ref().filter(|_| !all) {
            wanted.extend(filter.fields());
        }
        let fields: Vec<&Field> =
            self.columns.fields().iter().filter(|field| wanted.contains(&field.name)).collect();
        let output = self.dialect.output(&self.input, &fields, &|name| self.is_small(name));
        let Some(output) =
            output.filter(|_| mode == SmartStorage::On || is_worthwhile(self, &fields))
        else {
            return Ok(None);
        };
        let references: Option<Vec<String>> = fields
            .iter()
            .map(|field| self.writer().reference(self.columns.index_of(&field.name)?))
            .collect();
        let Some(references) = references else { return Ok(None) };
        let tuple = Tuple::new(fields.into_iter().cloned().collect::<Vec<_>>());
        let kept = tuple.clone();
        let Some(mut top) = self.request(&references, pushed_filter, tuple, output, out) else {
            return Ok(None);
        };
        if let Some(filter) = self.filter.as_ref().filter(|_| !all) {
            top = out.add("filter", &[top], Params::new().with("predicate", filter.clone()));
        }
        if !kept.fields().iter().map(|field| &field.name).eq(&self.fields) {
            let fields = Value::names(&self.fields);
            top = out.add("projection", &[top], Params::new().with("fields", fields));
        }
        Ok(Some(top))
    }

    /// Adds sub-operators that return a tuple of partial aggregates per object.
    fn aggregate(&self, aggregates: &Aggregates, out: &mut Builder) -> Option<NodeId> {
        let (pushed_filter, all) = self.pushed_filter();
        if !all {
            return None;
        }
        let tuple = Tuple::new(aggregates.partial.clone());
        self.request(&aggregates.sql, pushed_filter, tuple, RecordFormat::Csv, out)
    }

    fn request(
        &self,
        items: &[String],
        pushed_filter: Option<Condition>,
        columns: Tuple,
        output: RecordFormat,
        out: &mut Builder,
    ) -> Option<NodeId> {
        let mut sql = format!("SELECT {} FROM S3Object s", items.join(", "));
        if let Some(pushed_filter) = pushed_filter {
            sql += " WHERE ";
            // Removes the brackets around the whole condition.
            let text = &pushed_filter.sql;
            sql += if text.starts_with('(') && closes_last(text) {
                &text[1..text.len() - 1]
            } else {
                text
            };
        }
        if sql.len() > SQL_BYTES_MAX {
            return None;
        }
        let name = |input: &Input| match input {
            Input::Parquet => "parquet",
            Input::Csv { .. } => "csv",
            Input::Json => "json",
        };
        let mut params = Params::new()
            .with("paths", self.paths.clone())
            .with("sql", Value::string(sql))
            .with("columns", columns)
            .with("input", Value::name(name(&self.input)))
            .with("output", Value::name(if output == RecordFormat::Csv { "csv" } else { "json" }));
        if let Input::Csv { header, delimiter, quote } = &self.input {
            params.set("header", *header);
            params.set("delimiter", Value::string(delimiter.to_string()));
            params.set("quote", Value::string(quote.map(String::from).unwrap_or_default()));
        }
        let field = |name: &str| Params::new().with("field", Value::Expr(Expr::field(name)));
        let request = out.add("select_request", &[], params);
        let taken = out.add("arrow_to_collection", &[request], field("table"));
        Some(out.add("batch_scan", &[taken], field("data")))
    }
}

/// Whether the bracket at the start of a text closes at its end; brackets in quotes do not count.
fn closes_last(text: &str) -> bool {
    let (mut depth, mut inside) = (0, None);
    for (position, character) in text.char_indices() {
        match (inside, character) {
            (Some(quote), character) if quote == character => inside = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => inside = Some(character),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 && inside.is_none() {
            return position + 1 == text.len();
        }
    }
    false
}

/// Returns the dialect of CSV files, if a request can express it.
fn csv(params: &Params) -> Result<Option<Input>> {
    let text = |name: &str| match params.get(name) {
        Some(Value::String(text)) => Some(text.to_string()),
        _ => None,
    };
    if params.get("null").is_some() || params.get("escape").is_some() {
        return Ok(None);
    }
    let character = |text: String| match text.as_str() {
        "\\t" => Some('\t'),
        text => text.chars().next(),
    };
    let header = match params.get("header") {
        Some(Value::Boolean(header)) => *header,
        Some(_) => return Ok(None),
        None => true,
    };
    Ok(Some(Input::Csv {
        header,
        delimiter: text("delimiter").and_then(character).unwrap_or(','),
        quote: text("quote").map_or(Some('"'), character),
    }))
}

/// Aggregates that a store computes per object, and their merge functions.
struct Aggregates {
    sql: Vec<String>,
    /// The fields of the response.
    partial: Vec<Field>,
    merged: Value,
}

impl Aggregates {
    /// Converts the aggregates of a `reduce`, if the store computes all of them reliably.
    fn of(node: &Node, table: &Table, catalog: &OperatorCatalog) -> Option<Aggregates> {
        let Some(Value::Record(calls)) = node.param("aggregates") else { return None };
        if calls.is_empty() || node.param("partial").is_some() {
            return None;
        }
        let mut found =
            Aggregates { sql: Vec::new(), partial: Vec::new(), merged: Value::Record(Vec::new()) };
        let mut merged = Vec::new();
        for (position, (name, call)) in calls.iter().enumerate() {
            let Value::Record(entries) = call else { return None };
            if entries.iter().any(|(entry, _)| !matches!(&**entry, "function" | "args")) {
                return None;
            }
            let params = entries.iter().fold(Params::new(), |params, (entry, value)| {
                params.with(entry.clone(), value.clone())
            });
            let (sql, field, merge) = aggregate(&params, position, table, catalog)?;
            let argument = Value::List(vec![Value::Expr(Expr::Field(field.name.clone()))]);
            let call =
                vec![(Arc::from("function"), Value::name(merge)), (Arc::from("args"), argument)];
            merged.push((name.clone(), Value::Record(call)));
            found.sql.push(sql);
            found.partial.push(field);
        }
        found.merged = Value::Record(merged);
        Some(found)
    }
}

/// Converts one aggregate: its SQL, its result field, and its merge function.
fn aggregate(
    call: &Params,
    position: usize,
    table: &Table,
    catalog: &OperatorCatalog,
) -> Option<(String, Field, &'static str)> {
    let function = match call.get("function")? {
        Value::Name(name) | Value::String(name) | Value::Expr(Expr::Field(name)) => name.clone(),
        _ => return None,
    };
    let args = match call.get("args") {
        None => &[][..],
        Some(Value::List(args)) => args,
        Some(_) => return None,
    };
    let part = format!("part_{position}");
    let typed = table.input == Input::Parquet;
    let minio = table.dialect == Dialect::Minio;
    let column = match args {
        [] if &*function == "count" => {
            return Some(("COUNT(*)".to_string(), Field::new(part, Atom::Int64), "merge_count"));
        }
        [Value::Expr(Expr::Field(name))] => table.columns.index_of(name)?,
        // A constant that is not NULL is counted like tuples.
        [Value::Expr(Expr::Constant(value, _))] if &*function == "count" && !value.is_null() => {
            return Some(("COUNT(*)".to_string(), Field::new(part, Atom::Int64), "merge_count"));
        }
        _ => return None,
    };
    let field = &table.columns.fields()[column];
    let atom = field.atom()?;
    let reference = table.writer().reference(column)?;
    if &*function == "count" {
        // In text formats, only the Tessera endpoint distinguishes missing from empty.
        let counts = typed || (!minio && *atom == Atom::String);
        return counts.then(|| {
            (format!("COUNT({reference})"), Field::new(part, Atom::Int64), "merge_count")
        });
    }
    table.dialect.compares(&table.input, atom).filter(|exact| *exact)?;
    let whole = atom.is_integer();
    let merge = match &*function {
        // MinIO adds doubles.
        "sum" if !minio && (whole || (typed && matches!(atom, Atom::Decimal(..)))) => "merge_sum",
        "min" if whole || (!minio && typed && !atom.is_float()) => "min",
        "max" if whole || (!minio && typed && !atom.is_float()) => "max",
        _ => return None,
    };
    // Missing values in text abort MinIO's response.
    if minio && !typed {
        return None;
    }
    let argument = if typed { reference } else { format!("CAST({reference} AS INT)") };
    let (atom, _) =
        catalog.functions().aggregate(&function, &[(atom.clone(), field.nullable)], false).ok()?;
    let sql = format!("{}({argument})", function.to_ascii_uppercase());
    Some((sql, Field::nullable(part, atom), merge))
}
