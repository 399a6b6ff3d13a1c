//! An extension in another crate: a sub-operator, a table, a file format, a function, a pass, a
//! setting, a device and a platform.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Int64Array};
use tessera_codegen::{Function, RawInput};
use tessera_context::{Place, Run};
use tessera_engine::{
    CompilerOptions, Device, Extension, Pass, Phase, Platform, Setting, SettingEntry, Setup,
};
use tessera_functions::UserFunction;
use tessera_local::Local;
use tessera_operator::format::{FirstRead, Format, FormatEntry, TableDescription, TableFiles};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{Lowering, Operator, Registry, Source, SourceRun, SubOperator};
use tessera_optimizer::table::{Table, TableCatalog};
use tessera_plan::{
    Descriptor, Edge, Inputs, Node, OperatorCatalog, Order, Params, Plan, Role, Rules, Statistics,
};
use tessera_rows::Collected;
use tessera_session::{Config, Session, StatementResult};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::Chunk;

/// The extension, and counters of its use.
#[derive(Debug, Default, Clone)]
struct Stranger {
    first: Arc<AtomicI64>,
    /// The number of plans that the pass has rewritten.
    passed: Arc<AtomicUsize>,
    log: Arc<Mutex<Vec<&'static str>>>,
    /// The number of requests for a compiler of the device.
    compilers: Arc<AtomicUsize>,
}

impl Stranger {
    /// A device without a compiler.
    fn abacus(&self) -> Device {
        let compilers = self.compilers.clone();
        let compiler = move |options: CompilerOptions<'_>| {
            assert_eq!(options.place, Place::Device);
            compilers.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        };
        Device { name: "abacus", compiler: Arc::new(compiler), lanes: 1, place: Place::Device }
    }
}

impl Extension for Stranger {
    fn name(&self) -> &'static str {
        "stranger"
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.operator(Countdown { first: self.first.clone() })?;
        setup.tables(Arc::new(Counters));
        setup.format(Sizes)?;
        setup.function(twice()?)?;
        let (first, passed) = (self.first.clone(), self.passed.clone());
        setup.setting(Setting {
            entry: SettingEntry {
                name: "countdown_from",
                default: "3",
                value_name: "N",
                help: "the first number of the table countdown",
                parse: |value| match value.parse::<i64>() {
                    Ok(first @ 1..) => Ok(first.to_string()),
                    _ => Err(Error::semantic(format!(
                        "countdown_from must be a number above 0, not '{value}'"
                    ))),
                },
            },
            apply: Arc::new(move |value| {
                first.store(value.parse().unwrap_or(0), Ordering::SeqCst);
                Ok(())
            }),
        })?;
        let logged = |name: &'static str, after, log: &Arc<Mutex<Vec<&'static str>>>| {
            let log = log.clone();
            let rewrite = move |plan: Plan, _: &OperatorCatalog, _: Rules| {
                log.lock().unwrap().push(name);
                Ok(plan)
            };
            Pass { name, phase: Phase::Optimized, after, rewrite: Arc::new(rewrite) }
        };
        setup.pass(logged("first", None, &self.log))?;
        setup.pass(logged("third", None, &self.log))?;
        setup.pass(logged("second", Some("first"), &self.log))?;
        let count = move |plan: Plan, _: &OperatorCatalog, _: Rules| {
            passed.fetch_add(1, Ordering::SeqCst);
            Ok(plan)
        };
        setup.pass(Pass {
            name: "count",
            phase: Phase::Distributed,
            after: None,
            rewrite: Arc::new(count),
        })?;
        setup.device(self.abacus())?;
        setup.platform(Arc::new(Far))
    }
}

/// Returns the numbers from the setting down to 1.
#[derive(Debug, Clone)]
struct Countdown {
    first: Arc<AtomicI64>,
}

fn tuple() -> Tuple {
    Tuple::new(vec![Field::new("n", Atom::Int64)])
}

impl Descriptor for Countdown {
    tessera_operator::describe!("countdown", "Yields numbers down to 1.", ["columns"], 0, 0);

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        Ok(Edge { tuple: tuple(), traits: inputs.edges[0].traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for Countdown {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Source(Arc::new(self.clone())))
    }
}

impl Source for Countdown {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let numbers = Int64Array::from_iter_values((1..=self.first.load(Ordering::SeqCst)).rev());
        let chunk = Chunk::from_arrays(vec![Arc::new(numbers) as ArrayRef]);
        Ok(chunks_source(vec![chunk], run.context.chunk_rows()))
    }
}

/// The table `countdown`.
#[derive(Debug)]
struct Counters;

impl TableCatalog for Counters {
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        let table = || Table {
            name: "countdown".to_string(),
            tuple: tuple(),
            operator: "countdown".into(),
            params: Params::new(),
            filters: false,
            statistics: Statistics::default(),
            sample: None,
            row_numbers: None,
        };
        Ok((reference == ["countdown"]).then(|| Arc::new(table())))
    }

    fn table_names(&self) -> Vec<String> {
        vec!["countdown".to_string()]
    }
}

/// A format whose files have one row: the number of their bytes.
#[derive(Debug, Clone, Copy)]
struct Sizes;

static SIZES: FormatEntry = FormatEntry {
    name: "sizes",
    label: "sizes",
    summary: "The number of bytes.",
    extensions: &["size"],
    aliases: &[],
    functions: &["read_sizes"],
    scan: "size_scan",
    materialize: None,
    magic: &[],
    first_read: FirstRead { head: false, tail: false },
    declares_types: false,
    counts_rows: true,
    read_options: &[],
    write_options: &[],
};

impl Format for Sizes {
    fn entry(&self) -> &'static FormatEntry {
        &SIZES
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(SizeScan { paths: Vec::new() });
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        let statistics = Statistics { rows: Some(files.paths.len() as f64), columns: Vec::new() };
        Ok(TableDescription { columns: tuple(), statistics, params: files.params.clone() })
    }
}

#[derive(Debug, Clone)]
struct SizeScan {
    paths: Vec<Arc<str>>,
}

impl Descriptor for SizeScan {
    tessera_operator::describe!("size_scan", "Yields sizes.", ["paths", "columns"], 0, 0);

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        Ok(Edge { tuple: tuple(), traits: inputs.edges[0].traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for SizeScan {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Source(Arc::new(SizeScan { paths: node.params.strings("paths")? })))
    }
}

impl Source for SizeScan {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let size = |path: &Arc<str>| Ok(run.open(path)?.len() as i64);
        let sizes = self.paths.iter().map(size).collect::<Result<Vec<_>>>()?;
        let chunk = Chunk::from_arrays(vec![Arc::new(Int64Array::from(sizes)) as ArrayRef]);
        Ok(chunks_source(vec![chunk], run.context.chunk_rows()))
    }
}

#[test]
fn a_format_of_a_stranger_conforms() {
    tessera_formats::conformance::files(&Sizes, &[("a", b"abc"), ("b", b"")], None);
}

#[test]
fn a_format_of_an_extension_is_known_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.size");
    std::fs::write(&path, "abc").unwrap();
    let path = path.to_str().unwrap();
    let mut session = session(&Stranger::default(), "local").unwrap();
    assert_eq!(rows(&mut session, &format!("FROM '{path}'")), ["3"]);
    assert_eq!(rows(&mut session, &format!("FROM read_sizes('{path}') WHERE n > 1")), ["3"]);
    let create = format!("CREATE EXTERNAL TABLE t STORED AS sizes LOCATION '{path}'; FROM t");
    assert_eq!(rows(&mut session, &create), ["3"]);
    std::fs::write(format!("{path}.unknown"), "").unwrap();
    let error = session.execute(&format!("FROM '{path}.unknown'")).unwrap_err();
    assert!(error.message().contains(".xlsx or .size"), "{error}");
}

/// A function in handwritten native code.
#[derive(Debug)]
struct Twice;

impl Function for Twice {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        rows: usize,
        values: *mut u8,
        statuses: *mut u32,
    ) -> Result<()> {
        for row in 0..rows {
            // SAFETY: the caller passes one input of `rows` values of 8 bytes, and buffers for as
            // many values and statuses.
            unsafe {
                let value = inputs[0].values.cast::<i64>().add(row).read_unaligned();
                values.cast::<i64>().add(row).write_unaligned(value.wrapping_mul(2));
                statuses.add(row).write_unaligned(0);
            }
        }
        Ok(())
    }
}

fn twice() -> Result<UserFunction> {
    let types = (vec![Atom::Int64], Atom::Int64);
    let code = UserFunction::code("twice_of_stranger", "", &types.0, &types.1)?;
    Ok(UserFunction::new(types, false, (Arc::new(code), Arc::new(Twice))))
}

/// A platform on the cores of this machine, without access to its files.
#[derive(Debug)]
struct Far;

impl Platform for Far {
    fn name(&self) -> &'static str {
        "far"
    }

    fn register(&self, registry: &mut Registry) {
        Local.register(registry);
    }

    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
        Local.pass(plan, catalog, rules)
    }
}

fn session(stranger: &Stranger, platform: &str) -> Result<Session> {
    let mut config = Config { threads: 2, platform: platform.to_string(), ..Config::default() };
    config.extensions.push(Arc::new(stranger.clone()));
    Session::new(config)
}

/// The rows, as text.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let results = session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Some(StatementResult::Rows(rows)) = results.into_iter().last() else {
        panic!("{sql} gives no rows")
    };
    let mut lines = Vec::new();
    for batch in rows.batches() {
        let batch = batch.unwrap();
        let mut text = Vec::new();
        tessera_formats::csv::write_batch(&batch, &mut text).unwrap();
        lines.extend(String::from_utf8(text).unwrap().lines().map(str::to_string));
    }
    lines
}

#[test]
fn what_an_extension_brings_is_there() {
    let stranger = Stranger::default();
    let mut session = session(&stranger, "local").unwrap();
    assert_eq!(rows(&mut session, "SELECT n FROM countdown"), ["3", "2", "1"]);
    assert_eq!(*stranger.log.lock().unwrap(), ["first", "second", "third"]);
    assert_eq!(stranger.passed.load(Ordering::SeqCst), 1);
    let sql = "SET countdown_from = '4'; SELECT twice_of_stranger(n) AS t FROM countdown WHERE n > 2 ORDER BY n";
    assert_eq!(rows(&mut session, sql), ["6", "8"]);
    assert_eq!(rows(&mut session, "SHOW countdown_from"), ["4"]);
    assert!(session.execute("SET countdown_from = '0'").is_err());
    assert_eq!(rows(&mut session, "RESET countdown_from; SELECT count(*) FROM countdown"), ["3"]);
    let settings = rows(&mut session, "SHOW ALL");
    assert!(
        settings.contains(&"countdown_from,3,the first number of the table countdown".to_string())
    );
    assert!(session.table_names().contains(&"countdown".to_string()));
}

#[test]
fn statements_run_on_the_platform_of_an_extension() {
    let mut session = session(&Stranger::default(), "far").unwrap();
    assert_eq!(rows(&mut session, "SELECT sum(n) FROM countdown"), ["6"]);
    let error = session.execute("CREATE TABLE t AS SELECT 1").unwrap_err();
    assert!(error.message().contains("platform far"), "{error}");
    assert!(session.beside().unwrap_err().message().contains("platform far"));
    let error = self::session(&Stranger::default(), "near").unwrap_err();
    assert!(error.message().contains("expected one of local, far"), "{error}");
}

#[test]
fn statements_run_on_the_device_of_an_extension() {
    let stranger = Stranger::default();
    let mut session = session(&stranger, "local").unwrap();
    rows(&mut session, "SELECT n FROM countdown");
    assert_eq!(stranger.compilers.load(Ordering::SeqCst), 0);
    assert_eq!(rows(&mut session, "SET device = 'Abacus'; SHOW device"), ["abacus"]);
    assert_eq!(rows(&mut session, "SELECT sum(n) FROM countdown"), ["6"]);
    assert!(stranger.compilers.load(Ordering::SeqCst) > 0);
    let error = session.execute("SET device = 'slide rule'").unwrap_err();
    assert!(error.message().contains("expected one of cpu, gpu, virtual-gpu, abacus"), "{error}");
}

#[test]
fn two_extensions_cannot_bring_the_same() {
    let mut config = Config::default();
    config.extensions.push(Arc::new(Stranger::default()));
    config.extensions.push(Arc::new(Stranger::default()));
    let error = Session::new(config).unwrap_err();
    assert!(error.message().contains("sub-operator countdown"), "{error}");
}

#[test]
fn the_device_of_an_extension_conforms() {
    let stranger = Stranger::default();
    let (device, report) = crate::conformance::device("abacus", &stranger);
    assert_eq!((device.lanes, report.compiles, report.peak_bytes), (1, false, 0));
    assert!(stranger.compilers.load(Ordering::SeqCst) > 0);
}

#[test]
fn the_platform_of_an_extension_conforms() {
    let folder = tempfile::tempdir().unwrap();
    tessera_session::conformance::platform(folder.path(), &mut |mut config| {
        config.extensions.push(Arc::new(Stranger::default()));
        Config { platform: "far".to_string(), ..config }
    });
}
