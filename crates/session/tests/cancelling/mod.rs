//! Statements that are cancelled at random moments, and how long each then takes to give everything
//! back.

#![allow(dead_code, reason = "the test and the measuring program use a part each")]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tessera_generate::{Options, Suite, generate};
use tessera_session::{Config, Session};
use tessera_types::Code;

use crate::server::{Fault, Server};

/// How late the store on loopback answers.
const STORE_LATENCY: Duration = Duration::from_millis(30);

/// A statement, and what it reaches.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) sql: String,
    /// The budget where it is not the session's: too small for the state of the statement.
    memory_bytes: Option<usize>,
}

impl Case {
    fn new(name: &'static str, sql: &str) -> Case {
        Case { name, sql: sql.to_string(), memory_bytes: None }
    }

    fn begin(&self, session: &mut Session) {
        match self.memory_bytes {
            Some(bytes) => session.execute(&format!("SET memory = '{bytes}'")).unwrap(),
            None => session.execute("RESET memory").unwrap(),
        };
    }
}

/// Tables to run them on: TPC-H as Parquet, some of it as text, and in a store.
pub(crate) struct Data {
    pub(crate) folder: PathBuf,
    scale: f64,
    server: Server,
}

impl Data {
    /// Makes in a folder what is not there yet.
    pub(crate) fn make(folder: &Path, scale: f64) -> Data {
        if !folder.join("lineitem.parquet").exists() {
            let options = Options { threads: NonZeroUsize::new(2).unwrap(), ..Options::default() };
            generate(Suite::Tpch, scale, folder, &options).unwrap();
        }
        let server = Server::start();
        let data = Data { folder: folder.to_path_buf(), scale, server };
        let mut session = data.session(2);
        for format in ["csv", "jsonl", "arrow"] {
            let path = folder.join("text").join(format!("lines.{format}"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if !path.exists() {
                session.execute(&format!("COPY lineitem TO '{}'", path.display())).unwrap();
            }
        }
        for (object, path) in
            [("orders.parquet", "orders.parquet"), ("part.parquet", "part.parquet")].into_iter()
        {
            data.server.put(&format!("bucket/{object}"), std::fs::read(folder.join(path)).unwrap());
        }
        let csv = std::fs::read(folder.join("text/lines.csv")).unwrap();
        let some = csv[..csv.len().min(32 << 20)].iter().rposition(|byte| *byte == b'\n').unwrap();
        data.server.put("bucket/lines.csv", &csv[..=some]);
        data.server.fail(|_| Fault::Late(STORE_LATENCY));
        data
    }

    pub(crate) fn session(&self, threads: usize) -> Session {
        let database = Some(self.folder.clone());
        Session::new(Config {
            threads,
            database,
            stores: self.server.settings(),
            ..Config::default()
        })
        .unwrap()
    }

    /// Statements that reach every kind of sub-operator, and values as large as a chunk must hold.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let text = |name: &str| format!("'{}/text/{name}'", self.folder.display());
        let out = |name: &str| format!("'{}/out.{name}'", self.folder.display());
        let query = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../queries/tpch").join(name);
            std::fs::read_to_string(path).unwrap()
        };
        let comments = "(SELECT string_agg(l_comment, ',') AS s FROM lineitem)";
        let case = Case::new;
        let memory_bytes = Some((16 << 20) + (self.scale * f64::from(112 << 20)) as usize);
        let spilling = |name, sql| Case { memory_bytes, ..Case::new(name, sql) };
        vec![
            spilling(
                "spilling join",
                "SELECT count(a.l_comment) FROM lineitem a JOIN lineitem b ON a.l_orderkey = b.l_orderkey AND a.l_comment < b.l_comment",
            ),
            spilling(
                "spilling groups",
                "SELECT count(*), max(s) FROM (SELECT l_comment, l_orderkey, sum(l_quantity) AS s FROM lineitem GROUP BY 1, 2)",
            ),
            spilling(
                "spilling sort",
                "SELECT l_linenumber > 3 FROM lineitem ORDER BY l_comment, l_orderkey",
            ),
            case(
                "build",
                "SELECT count(l_comment || o_comment) FROM orders JOIN lineitem ON o_custkey = l_partkey AND o_comment < l_comment",
            ),
            case(
                "probe",
                "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_suppkey = b.l_suppkey AND a.l_tax < b.l_discount",
            ),
            case(
                "full join",
                "SELECT count(a.l_comment) FROM lineitem a FULL JOIN lineitem b ON a.l_orderkey = b.l_partkey AND a.l_comment = b.l_comment",
            ),
            case(
                "one key",
                "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_linenumber = b.l_linenumber AND a.l_comment > b.l_comment",
            ),
            case(
                "semi join",
                "SELECT count(*) FROM orders WHERE o_orderkey NOT IN (SELECT l_partkey FROM lineitem)",
            ),
            case(
                "many groups",
                "SELECT count(*), max(s) FROM (SELECT l_orderkey, l_partkey, sum(l_quantity) AS s FROM lineitem GROUP BY ALL)",
            ),
            case(
                "few groups",
                "SELECT l_returnflag, sum(l_quantity), avg(l_tax) FROM lineitem GROUP BY 1",
            ),
            case(
                "text groups",
                "SELECT count(*) FROM (SELECT l_comment, max(l_shipinstruct) FROM lineitem GROUP BY 1)",
            ),
            case(
                "distinct",
                "SELECT count(DISTINCT l_comment), count(DISTINCT l_extendedprice) FROM lineitem",
            ),
            case(
                "median",
                "SELECT median(l_extendedprice), approx_distinct(l_comment) FROM lineitem",
            ),
            case(
                "medians",
                "SELECT count(*) FROM (SELECT l_partkey, median(l_extendedprice) FROM lineitem GROUP BY 1)",
            ),
            case("array_agg", "SELECT array_length(array_agg(l_comment)) FROM lineitem"),
            case(
                "array_agg in order",
                "SELECT array_length(array_agg(l_comment ORDER BY l_shipdate, l_comment)) FROM lineitem",
            ),
            case(
                "unnest",
                "SELECT count(*) FROM (SELECT unnest(array_agg(l_orderkey)) FROM lineitem)",
            ),
            case("string_agg", "SELECT length(string_agg(l_comment, ',')) FROM lineitem"),
            case(
                "regular expression",
                &format!("SELECT regexp_count(s, '(a|b)+e') FROM {comments}"),
            ),
            case(
                "like",
                &format!("SELECT s LIKE '%x%y%zzzzz%', s LIKE '%_a_b_%qqqq' FROM {comments}"),
            ),
            case(
                "long strings",
                &format!(
                    "SELECT length(replace(upper(s), 'A', 'bcd')), strpos(s, 'zzzz') FROM {comments}"
                ),
            ),
            case(
                "many matches",
                "SELECT count(*) FROM lineitem WHERE regexp_like(l_comment || l_comment, '(e|i).*(ly|s)[a-z]+.*x{2,5}')",
            ),
            case(
                "series",
                "SELECT count(*) FROM (SELECT unnest(generate_series(1, o_custkey % 500)) FROM orders)",
            ),
            case("sort", "SELECT * FROM lineitem ORDER BY l_comment, l_orderkey"),
            case("sort numbers", "SELECT l_extendedprice, l_orderkey FROM lineitem ORDER BY 1, 2"),
            case("top", "SELECT * FROM lineitem ORDER BY l_comment DESC LIMIT 10000"),
            case("result", "SELECT * FROM lineitem"),
            case(
                "intersect",
                "SELECT l_orderkey, l_comment FROM lineitem INTERSECT SELECT l_orderkey, l_comment FROM lineitem",
            ),
            case(
                "nested loop",
                "SELECT count(*) FROM orders JOIN customer ON o_totalprice < c_acctbal",
            ),
            case(
                "cross product",
                "SELECT count(*) FROM lineitem, orders WHERE l_tax + o_totalprice < 0",
            ),
            case("wide cross product", "SELECT count(*) FROM (SELECT * FROM lineitem, orders)"),
            case(
                "correlated",
                "SELECT count(*) FROM orders WHERE o_totalprice > (SELECT max(l_extendedprice) FROM lineitem WHERE l_orderkey < o_orderkey)",
            ),
            case(
                "recursion",
                "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
            ),
            case(
                "recursion without repeats",
                "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + 1 FROM t) SELECT count(*) FROM t",
            ),
            case(
                "recursion with a join",
                "WITH RECURSIVE t(k, d) AS (SELECT l_orderkey, 0 FROM lineitem UNION ALL SELECT o_custkey, d + 1 FROM t JOIN orders ON o_orderkey = k) SELECT count(*) FROM t",
            ),
            case(
                "parquet",
                "SELECT max(l_comment), max(l_shipmode), min(l_shipinstruct), sum(l_tax) FROM lineitem WHERE l_comment LIKE '%x%'",
            ),
            case("csv", &format!("SELECT count(*), max(l_comment) FROM {}", text("lines.csv"))),
            case("json", &format!("SELECT count(*), max(l_comment) FROM {}", text("lines.jsonl"))),
            case(
                "arrow",
                &format!("SELECT sum(l_tax), max(l_comment) FROM {}", text("lines.arrow")),
            ),
            case("copy to parquet", &format!("COPY lineitem TO {}", out("parquet"))),
            case(
                "copy to csv",
                &format!("COPY (SELECT * FROM lineitem ORDER BY l_shipdate) TO {}", out("csv")),
            ),
            case("copy to json", &format!("COPY lineitem TO {}", out("jsonl"))),
            case("copy to a store", "COPY orders TO 's3://bucket/out.parquet'"),
            case(
                "parquet in a store",
                "SELECT max(o_comment), sum(o_totalprice) FROM 's3://bucket/orders.parquet'",
            ),
            case("csv in a store", "SELECT count(*), max(l_comment) FROM 's3://bucket/lines.csv'"),
            case(
                "join in a store",
                "SELECT count(*) FROM 's3://bucket/part.parquet' JOIN lineitem ON p_partkey = l_partkey",
            ),
            case("tpch q1", &query("q01.sql")),
            case("tpch q9", &query("q09.sql")),
            case("tpch q13", &query("q13.sql")),
            case("tpch q18", &query("q18.sql")),
            case("tpch q21", &query("q21.sql")),
        ]
    }
}

/// What came of one moment.
#[derive(Debug)]
pub(crate) struct Moment {
    /// From the start of the statement.
    pub(crate) at: Duration,
    /// From there to the statement's return; nothing where it had ended before.
    pub(crate) took: Option<Duration>,
    /// Bytes of the budget that were not given back.
    pub(crate) held_bytes: usize,
    /// What was done last.
    pub(crate) last: String,
}

/// Cancels a statement at this moment after its start.
///
/// # Panics
/// It ends with another error.
pub(crate) fn cancel_at(session: &mut Session, case: &Case, at: Duration) -> Moment {
    case.begin(session);
    let cancel = session.cancel_handle();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(at);
        let told = Instant::now();
        cancel.cancel();
        told
    });
    let done = session.execute(&case.sql);
    let returned = Instant::now();
    let told = canceller.join().unwrap();
    let (took, stopped) = match done {
        Ok(_) => (None, None),
        Err(error) if error.code() == Code::Cancelled => {
            (Some(returned.saturating_duration_since(told)), session.cancel_handle().stopped())
        }
        Err(error) => panic!("{}: {error}", case.name),
    };
    let (held_bytes, last) =
        stopped.map_or((0, "planning".to_string()), |s| (s.held_bytes, s.last));
    Moment { at, took, held_bytes, last }
}

/// A generator of moments: the same seed gives the same.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below one (SplitMix64: Steele et al., OOPSLA 2014).
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How long a statement runs, at most `longest`: with that, moments hit all of its phases.
pub(crate) fn length(session: &mut Session, case: &Case, longest: Duration) -> Duration {
    case.begin(session);
    session.execute(&format!("SET deadline = '{}'", longest.as_secs_f64())).unwrap();
    let started = Instant::now();
    match session.execute(&case.sql) {
        Ok(results) => drop(results),
        Err(error) => assert_eq!(error.code(), Code::Cancelled, "{}: {error}", case.name),
    }
    let took = started.elapsed().min(longest);
    session.execute("SET deadline = 'none'").unwrap();
    took
}
