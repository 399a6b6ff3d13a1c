//! A conformance suite for [`Format`], as plain functions that a test calls. They panic if a format
//! breaks a rule.
//!
//! [`format()`] is for formats that can be written: what is written is read back. [`files()`]
//! checks how any files are read: in chunks of every size, with columns and predicates pushed, from
//! a store that answers later, and damaged.
//!
//! ```
//! use tessera_formats::{conformance, ipc};
//!
//! let types = conformance::format(&ipc::Ipc, &[]);
//! assert!(types.len() > 10);
//! ```

mod memory;
mod values;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Float32Type, Float64Type};

use tessera_context::testing::Numbers;
use tessera_context::{Context, Run};
use tessera_functions::{BoundExpr, Library};
use tessera_operator::format::{
    Format, OptionKind, ReadOptions, TableDescription, TableFiles, set_defaults,
};
use tessera_operator::testing::TestPlan;
use tessera_plan::{ColumnPush, Expr, Params, Pushes, Scalar, Value};
use tessera_types::{Atom, Code, Field, Result, Tuple};
use tessera_vector::Chunk;

use memory::MemoryFiles;
use values::samples;

/// The chunk sizes, each with a number of workers.
const CHUNKS: [(usize, usize); 3] = [(1, 1), (7, 3), (8_192, 2)];
/// The damaged copies of a file.
const MUTATIONS: usize = 300;
/// The memory of a damaged file's reader.
const MUTATION_BYTES: usize = 64 << 20;

/// Checks a format that can be written, and returns the types that it stores. Types in `lost` are
/// written, but not read back as the same values.
///
/// # Panics
/// The format breaks a rule, or stores no type.
pub fn format(format: &dyn Format, lost: &[Atom]) -> Vec<Atom> {
    let materialize = format.entry().materialize.expect("a format that can be written");
    let mut stored: Vec<Atom> = Vec::new();
    for (number, sample) in samples().into_iter().enumerate() {
        let batch = numbered(&sample);
        let tuple = tuple_of(&batch);
        let atom = tuple.fields()[1].atom().expect("an atom").clone();
        if lost.contains(&atom) {
            continue;
        }
        let (chunk, files) = (CHUNKS[number % 3], MemoryFiles::new(CHUNKS[number % 3]));
        let path = format!("{number}.{}", format.entry().name);
        if let Err(error) = write(format, (materialize, &path), &batch, &files) {
            // A value that the format cannot store is refused, and no file appears.
            assert!(error.code() != Code::Internal && !files.exists(&path), "{atom}: {error}");
            continue;
        }
        let table = Table::open(format, vec![path], Some(&tuple), &files);
        let table = table.unwrap_or_else(|error| panic!("{atom}: {error}"));
        for chunk in [chunk, CHUNKS[(number + 1) % 3]] {
            let read = table.read(&files.with(chunk));
            let read = read.unwrap_or_else(|error| panic!("{atom}: {error}"));
            assert_eq!(plain(&read), plain(&batch), "{atom} in chunks of {chunk:?}");
        }
        if !stored.contains(&atom) {
            stored.push(atom);
        }
    }
    assert!(!stored.is_empty(), "the format stores no type");
    let (files, path) = (MemoryFiles::new(CHUNKS[2]), format!("x.{}", format.entry().name));
    let batch = mixed();
    write(format, (materialize, &path), &batch, &files).expect("numbers and texts");
    let bytes = files.bytes(&path);
    self::files(format, &[(&path, &bytes)], Some(&tuple_of(&batch)));
    stored
}

/// Checks how files of one table are read. `declared` are their columns, for formats whose columns
/// can be declared.
///
/// # Panics
/// The format breaks a rule.
pub fn files(format: &dyn Format, given: &[(&str, &[u8])], declared: Option<&Tuple>) {
    let files = MemoryFiles::new(CHUNKS[2]);
    given.iter().for_each(|(path, bytes)| files.put(path, bytes));
    let paths: Vec<String> = given.iter().map(|(path, _)| path.to_string()).collect();
    let table = Table::open(format, paths.clone(), declared, &files).expect("files of this format");
    let all = table.read(&files).expect("files of this format");
    if format.entry().counts_rows {
        assert_eq!(table.rows, Some(all.num_rows() as f64), "the number of rows");
    }
    for chunk in CHUNKS {
        for later in [false, true] {
            let files = files.with(chunk).answering_later(later);
            assert_eq!(table.read(&files).expect("the same rows"), all, "{chunk:?}, {later}");
        }
    }
    columns(&table, &all, &files);
    predicates(&table, &all, &files);
    damaged(format, &paths, declared, &files);
    let empty = Table::open(format, vec!["none".to_string()], declared, &files);
    let missing = empty.and_then(|table| table.read(&files)).expect_err("a missing file");
    assert!(missing.message().contains("none"), "{missing}");
}

/// A table of files.
struct Table<'a> {
    format: &'a dyn Format,
    columns: Tuple,
    rows: Option<f64>,
    params: Params,
}

impl<'a> Table<'a> {
    fn open(
        format: &'a dyn Format,
        paths: Vec<String>,
        declared: Option<&Tuple>,
        files: &Arc<MemoryFiles>,
    ) -> Result<Table<'a>> {
        let entry = format.entry();
        let mut options = ReadOptions::default();
        let has_columns =
            entry.read_options.iter().any(|option| matches!(option.kind, OptionKind::Columns));
        if let Some(declared) = declared.filter(|_| has_columns) {
            options.columns = Some(declared.fields().to_vec());
        }
        set_defaults(&mut options.params, entry.read_options);
        format.check_options(&mut options)?;
        let open = |paths: &[String]| paths.iter().map(|path| files.open(path)).collect();
        let TableDescription { columns, statistics, mut params } =
            format.describe(&TableFiles {
                paths: &paths,
                params: &options.params,
                declared: options.columns.as_deref(),
                open: &open,
            })?;
        let columns = options.columns.map_or(columns, Tuple::new);
        params.set("paths", paths.iter().map(|path| Value::string(&**path)).collect::<Vec<_>>());
        Ok(Table { format, columns, rows: statistics.rows, params })
    }

    fn read(&self, files: &Arc<MemoryFiles>) -> Result<RecordBatch> {
        self.read_with(Params::new(), files)
    }

    /// Reads the table with more parameters.
    fn read_with(&self, more: Params, files: &Arc<MemoryFiles>) -> Result<RecordBatch> {
        let mut params = self.params.clone();
        params.set("columns", self.columns.clone());
        for (name, value) in more.iter() {
            params.set(name.clone(), value.clone());
        }
        let mut plan = TestPlan::new(|registry| self.format.register(registry));
        let scan = plan.add(self.format.entry().scan, &[], params);
        let read = plan.run_in(scan, files.clone());
        assert_eq!(files.used(), 0, "memory still held after the scan");
        read
    }

    fn pushes(&self) -> Pushes {
        let plan = TestPlan::new(|registry| self.format.register(registry));
        plan.registry.catalog().pushes(self.format.entry().scan)
    }
}

fn write(
    format: &dyn Format,
    (materialize, path): (&str, &str),
    batch: &RecordBatch,
    files: &Arc<MemoryFiles>,
) -> Result<()> {
    let mut params = Params::new();
    set_defaults(&mut params, format.entry().write_options);
    params.set("path", Value::string(path));
    let mut plan = TestPlan::new(|registry| format.register(registry));
    let table = plan.table(batch.clone());
    let sink = plan.add(materialize, &[table], params);
    let written = plan.run_in(sink, files.clone())?;
    assert_eq!(files.used(), 0, "memory still held after the file was written");
    let rows = written.column(1).as_primitive::<arrow::datatypes::Int64Type>().value(0);
    assert_eq!(rows, batch.num_rows() as i64, "the number of rows written");
    Ok(())
}

/// Checks that a part of the columns, in any order, is that part of all columns.
fn columns(table: &Table<'_>, all: &RecordBatch, files: &Arc<MemoryFiles>) {
    let push = table.pushes().columns;
    let count = table.columns.len();
    let mut parts: Vec<Vec<usize>> = (0..count).map(|column| vec![column]).collect();
    parts.push((0..count).rev().collect());
    for part in parts {
        let expected = all.project(&part).expect("some columns");
        let fields: Vec<Field> =
            part.iter().map(|column| table.columns.fields()[*column].clone()).collect();
        let names = Value::names(fields.iter().map(|field| &field.name));
        let output = Params::new().with("fields", names);
        if push != ColumnPush::None {
            let read = table.read_with(output, files).expect("some columns");
            assert_eq!(read, expected, "the fields {part:?}");
        }
        if push == ColumnPush::Read {
            let read = Params::new().with("columns", Tuple::new(fields));
            let read = table.read_with(read, files).expect("some columns");
            assert_eq!(read, expected, "the columns {part:?}");
        }
    }
}

/// Checks that a scan with a predicate gives the rows that a filter of all rows keeps.
fn predicates(table: &Table<'_>, all: &RecordBatch, files: &Arc<MemoryFiles>) {
    if !table.pushes().predicates {
        return;
    }
    let library = Arc::new(Library::default());
    let mut exprs: Vec<Expr> = Vec::new();
    for (field, array) in table.columns.fields().iter().zip(all.columns()) {
        let column = || Expr::field(field.name.clone());
        exprs.push(Expr::IsNull(Box::new(column())));
        let Some(constant) = constant(array, array.len() / 2) else { continue };
        for function in ["eq", "lt", "gt_eq", "is_distinct"] {
            exprs.push(Expr::call(function, vec![column(), constant.clone()]));
        }
    }
    let last = exprs.last().cloned();
    let both = exprs.first().cloned().into_iter().chain(last).collect();
    exprs.push(Expr::Not(Box::new(Expr::Or(both))));
    exprs.push(Expr::boolean(false));
    for expr in exprs {
        let bound = BoundExpr::new(&expr, &table.columns, &Tuple::empty(), &library);
        let run = Run::new(files.clone());
        let chunk = Chunk::from_arrays(all.columns().to_vec());
        let kept = bound.expect("a predicate").select(chunk, &run).expect("a predicate");
        let kept = kept.to_batch(&table.columns).expect("the rows that pass");
        let filter = || Params::new().with("filter", expr.clone());
        for chunk in CHUNKS {
            let read = table.read_with(filter(), &files.with(chunk)).expect("a pushed predicate");
            assert_eq!(read, kept, "{expr:?} in chunks of {chunk:?}");
        }
        // The predicate reads columns that the output lacks.
        if let Some(last) = table.columns.fields().last() {
            let params = filter().with("fields", Value::names([&last.name]));
            let read = table.read_with(params, files).expect("a pushed predicate");
            assert_eq!(
                read,
                kept.project(&[kept.num_columns() - 1]).expect("a column"),
                "{expr:?}"
            );
        }
    }
}

/// Checks that damaged files give rows, or an error that names the file.
fn damaged(
    format: &dyn Format,
    paths: &[String],
    declared: Option<&Tuple>,
    files: &Arc<MemoryFiles>,
) {
    let mut numbers = Numbers::new(14);
    for path in paths {
        let whole = files.bytes(path);
        for number in 0..MUTATIONS {
            let files = files.copy().limited_to(MUTATION_BYTES);
            files.put(path, &mutated(&whole, &mut numbers));
            let table = Table::open(format, paths.to_vec(), declared, &files);
            if let Err(error) = table.and_then(|table| table.read(&files)) {
                let names_file = paths.iter().any(|path| error.message().contains(&**path));
                assert!(error.code() != Code::Internal && names_file, "mutation {number}: {error}");
            }
        }
    }
}

/// Changes, moves or removes some bytes.
fn mutated(whole: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=numbers.below(3) {
        let below =
            |limit: usize, numbers: &mut Numbers| numbers.below(limit.max(1) as u64) as usize;
        let at = below(bytes.len(), numbers);
        match numbers.below(5) {
            0 | 1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (at % 8)),
            2 => bytes.truncate(at),
            3 => bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte = 0xff),
            _ => {
                let end = (at + below(64, numbers)).min(bytes.len());
                let moved: Vec<u8> = bytes[at..end].to_vec();
                let to = below(bytes.len(), numbers);
                bytes.splice(to..to, moved);
            }
        }
    }
    bytes
}

/// A table of row numbers and the values of an array.
fn numbered(array: &ArrayRef) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..array.len() as i64));
    RecordBatch::try_from_iter_with_nullable([("row", numbers, false), ("x", array.clone(), true)])
        .expect("columns of one length")
}

/// A table of numbers and texts, with repeated values, odd characters and NULLs.
fn mixed() -> RecordBatch {
    let texts = ["", "a", "two words", "a,b", "say \"no\"", "line\nend", "häßlich €", " ", "tab\t"];
    let text = |row: usize| {
        (!row.is_multiple_of(11)).then(|| texts[row % texts.len()].repeat(1 + row % 3))
    };
    let texts: ArrayRef = Arc::new((0..500).map(text).collect::<StringViewArray>());
    let number = |row: i64| (row % 7 > 0).then_some(row * 7_919 % 1_009 - 500);
    let numbers: ArrayRef = Arc::new((0..500).map(number).collect::<Int64Array>());
    let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(0..500));
    RecordBatch::try_from_iter_with_nullable([
        ("row", rows, false),
        ("n", numbers, true),
        ("t", texts, true),
    ])
    .expect("columns of one length")
}

fn tuple_of(batch: &RecordBatch) -> Tuple {
    let tuple = Tuple::from_arrow_schema(&batch.schema()).expect("types of the engine");
    let fields = tuple.fields().iter().map(|field| field.with_nullable(true));
    Tuple::new(fields.collect::<Vec<_>>())
}

/// The value of a row as a constant, for some types.
fn constant(array: &ArrayRef, row: usize) -> Option<Expr> {
    if row >= array.len() || array.is_null(row) {
        return None;
    }
    let atom = Atom::from_arrow(array.data_type()).ok()?;
    Some(match &atom {
        Atom::Int64 => Expr::int64(array.as_primitive::<arrow::datatypes::Int64Type>().value(row)),
        Atom::String => Expr::string(array.as_string_view().value(row)),
        Atom::Bytes => {
            Expr::Constant(Scalar::Bytes(array.as_binary_view().value(row).into()), atom)
        }
        _ => return None,
    })
}

/// The columns, with one kind of NaN.
fn plain(batch: &RecordBatch) -> Vec<ArrayRef> {
    let one = |array: &ArrayRef| -> ArrayRef {
        if let Some(values) = array.as_primitive_opt::<Float64Type>() {
            return Arc::new(
                values.unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x }),
            );
        }
        if let Some(values) = array.as_primitive_opt::<Float32Type>() {
            return Arc::new(
                values.unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x }),
            );
        }
        array.clone()
    };
    // Slices of the same values are the same.
    let rows = Int64Array::from_iter_values(0..batch.num_rows() as i64);
    let batch = take_record_batch(batch, &rows).expect("all rows");
    batch.columns().iter().map(one).collect()
}

#[cfg(test)]
mod tests;
