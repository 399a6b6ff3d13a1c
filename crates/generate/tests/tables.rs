//! Reads the generated files with a standard Parquet reader and checks their contents.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tessera_generate::{Error, Options, Suite, TableReport, generate};

fn threads(count: usize) -> Options<'static> {
    Options { threads: NonZeroUsize::new(count).unwrap(), ..Options::default() }
}

fn read(directory: &Path, table: &str) -> RecordBatch {
    let file = File::open(directory.join(format!("{table}.parquet"))).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

fn column(batch: &RecordBatch, name: &str) -> ArrayRef {
    batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}")).clone()
}

fn integers(batch: &RecordBatch, name: &str) -> Vec<i64> {
    cast(&column(batch, name), &DataType::Int64)
        .unwrap()
        .as_primitive::<Int64Type>()
        .values()
        .to_vec()
}

fn strings(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = cast(&column(batch, name), &DataType::Utf8).unwrap();
    column.as_string::<i32>().iter().map(|value| value.unwrap().to_owned()).collect()
}

fn distinct<T: Eq + Hash>(values: Vec<T>) -> HashSet<T> {
    values.into_iter().collect()
}

fn rows(tables: &[TableReport]) -> Vec<(&'static str, u64)> {
    tables.iter().map(|table| (table.name, table.rows)).collect()
}

fn assert_subset(parent: (&RecordBatch, &str), child: (&RecordBatch, &str)) {
    let parents = distinct(integers(parent.0, parent.1));
    let missing = integers(child.0, child.1).into_iter().find(|key| !parents.contains(key));
    assert_eq!(missing, None, "{} without its {}", child.1, parent.1);
}

fn assert_range(batch: &RecordBatch, name: &str, low: i64, high: i64) {
    let values = integers(batch, name);
    let range = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
    assert_eq!(range, (low, high), "{name}");
}

#[test]
fn tpch_has_the_tables_of_the_specification() {
    let directory = tempfile::tempdir().unwrap();
    let report = generate(Suite::Tpch, 0.01, directory.path(), &threads(2)).unwrap();
    assert_eq!(
        rows(&report.tables),
        [
            ("lineitem", 60_175),
            ("orders", 15_000),
            ("partsupp", 8_000),
            ("part", 2_000),
            ("customer", 1_500),
            ("supplier", 100),
            ("nation", 25),
            ("region", 5),
        ]
    );

    // The first line that every TPC-H generator prints at this scale factor.
    let lines = read(directory.path(), "lineitem");
    let first = |name: &str| integers(&lines, name)[0];
    assert_eq!(
        ["l_orderkey", "l_partkey", "l_suppkey", "l_linenumber"].map(first),
        [1, 1552, 93, 1]
    );
    let money = |name: &str| {
        let column = column(&lines, name);
        assert_eq!(column.data_type(), &DataType::Decimal128(15, 2));
        column.as_primitive::<Decimal128Type>().value(0)
    };
    let names = ["l_quantity", "l_extendedprice", "l_discount", "l_tax"];
    assert_eq!(names.map(money), [1_700, 2_471_035, 4, 2]);
    let shipped = column(&lines, "l_shipdate");
    assert_eq!(shipped.as_primitive::<Date32Type>().value(0), 9_568, "1996-03-13");
    assert_eq!(strings(&lines, "l_comment")[0], "egular courts above the");

    let table = |name: &str| read(directory.path(), name);
    let (orders, parts, suppliers) = (table("orders"), table("part"), table("supplier"));
    assert_subset((&orders, "o_orderkey"), (&lines, "l_orderkey"));
    assert_subset((&parts, "p_partkey"), (&lines, "l_partkey"));
    assert_subset((&suppliers, "s_suppkey"), (&lines, "l_suppkey"));
    assert_subset((&table("customer"), "c_custkey"), (&orders, "o_custkey"));
    assert_subset((&table("nation"), "n_nationkey"), (&suppliers, "s_nationkey"));
}

#[test]
fn files_carry_what_readers_prune_by() {
    let directory = tempfile::tempdir().unwrap();
    // Enough for three row groups of lineorder.
    generate(Suite::Ssb, 0.05, directory.path(), &threads(2)).unwrap();
    let file = File::open(directory.path().join("lineorder.parquet")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(
        file,
        parquet::arrow::arrow_reader::ArrowReaderOptions::new()
            .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required),
    )
    .unwrap();
    let metadata = builder.metadata();
    assert_eq!(metadata.num_row_groups(), 3);
    for group in metadata.row_groups() {
        assert!((100_000..140_000).contains(&group.num_rows()), "{}", group.num_rows());
        assert!(group.columns().iter().all(|column| column.statistics().is_some()));
    }
    assert!(metadata.column_index().is_some() && metadata.offset_index().is_some());
}

#[test]
fn ssb_has_the_tables_of_the_specification() {
    let directory = tempfile::tempdir().unwrap();
    let report = generate(Suite::Ssb, 0.01, directory.path(), &threads(2)).unwrap();
    let counts: HashMap<_, _> = rows(&report.tables).into_iter().collect();
    assert!((59_000..61_000).contains(&counts["lineorder"]), "{counts:?}");
    assert_eq!(
        ["customer", "supplier", "part", "date"].map(|name| counts[name]),
        [300, 20, 2_000, 2_556]
    );

    let table = |name: &str| read(directory.path(), name);
    let lines = table("lineorder");
    assert_subset((&table("customer"), "c_custkey"), (&lines, "lo_custkey"));
    assert_subset((&table("part"), "p_partkey"), (&lines, "lo_partkey"));
    assert_subset((&table("supplier"), "s_suppkey"), (&lines, "lo_suppkey"));
    assert_subset((&table("date"), "d_datekey"), (&lines, "lo_orderdate"));
    assert_subset((&table("date"), "d_datekey"), (&lines, "lo_commitdate"));
    assert_range(&lines, "lo_quantity", 1, 50);
    assert_range(&lines, "lo_discount", 0, 10);
    assert_range(&lines, "lo_tax", 0, 8);
    assert_range(&lines, "lo_linenumber", 1, 7);
    assert!(integers(&lines, "lo_custkey").iter().all(|key| key % 3 != 0));
    assert_eq!(distinct(strings(&lines, "lo_shipmode")).len(), 7);
    assert_eq!(distinct(strings(&lines, "lo_orderpriority")).len(), 5);

    let customers = table("customer");
    assert_eq!(distinct(strings(&customers, "c_nation")).len(), 25);
    assert_eq!(distinct(strings(&customers, "c_region")).len(), 5);
    assert_eq!(distinct(strings(&customers, "c_mktsegment")).len(), 5);
    for (city, nation) in strings(&customers, "c_city").iter().zip(strings(&customers, "c_nation"))
    {
        assert_eq!(city.len(), 10, "{city}");
        assert_eq!(city[..9].trim_end(), nation[..nation.len().min(9)].trim_end());
    }
}

#[test]
fn ssb_parts_are_a_hierarchy() {
    let directory = tempfile::tempdir().unwrap();
    generate(Suite::Ssb, 0.1, directory.path(), &threads(2)).unwrap();
    let parts = read(directory.path(), "part");
    let level = |name: &str| strings(&parts, name);
    let counts = ["p_mfgr", "p_category", "p_brand1"].map(|name| distinct(level(name)).len());
    assert_eq!(counts, [5, 25, 1_000]);
    let rows = level("p_mfgr").into_iter().zip(level("p_category")).zip(level("p_brand1"));
    for ((manufacturer, category), brand) in rows {
        assert!(category.starts_with(&manufacturer) && brand.starts_with(&category), "{brand}");
    }
    assert!(level("p_brand1").contains(&"MFGR#2221".to_owned()));
    assert_range(&parts, "p_size", 1, 50);
    for (name, color) in level("p_name").iter().zip(level("p_color")) {
        assert_eq!(name.split(' ').count(), 2, "{name}");
        assert!(!name.split(' ').any(|word| word == color), "{name}, {color}");
    }
}

#[test]
fn ssb_prices_agree_with_each_other() {
    let directory = tempfile::tempdir().unwrap();
    generate(Suite::Ssb, 0.001, directory.path(), &threads(1)).unwrap();
    let lines = read(directory.path(), "lineorder");
    let names = ["lo_extendedprice", "lo_discount", "lo_revenue", "lo_tax", "lo_ordtotalprice"];
    let [price, discount, revenue, tax, total] = names.map(|name| {
        assert_eq!(column(&lines, name).data_type(), &DataType::Int32);
        integers(&lines, name)
    });
    let key = column(&lines, "lo_orderkey");
    let key = key.as_primitive::<Int64Type>().values().to_vec();
    let mut totals: HashMap<i64, i64> = HashMap::new();
    for row in 0..lines.num_rows() {
        assert_eq!(revenue[row], price[row] * (100 - discount[row]) / 100);
        *totals.entry(key[row]).or_default() += revenue[row] * (100 + tax[row]) / 100;
    }
    for row in 0..lines.num_rows() {
        assert_eq!(total[row], totals[&key[row]]);
    }
    let number = column(&lines, "lo_linenumber");
    assert_eq!(number.as_primitive::<Int32Type>().value(0), 1);
}

#[test]
fn ssb_dates_are_days_of_the_calendar() {
    let directory = tempfile::tempdir().unwrap();
    generate(Suite::Ssb, 0.001, directory.path(), &threads(1)).unwrap();
    let dates = read(directory.path(), "date");
    assert_eq!(dates.num_columns(), 17);
    let row = integers(&dates, "d_datekey").iter().position(|&key| key == 19980322).unwrap();
    let text = |name: &str| strings(&dates, name)[row].clone();
    assert_eq!(
        ["d_date", "d_dayofweek", "d_month", "d_yearmonth", "d_sellingseason"].map(text),
        ["March 22, 1998", "Sunday", "March", "Mar1998", "Winter"]
    );
    let int = |name: &str| integers(&dates, name)[row];
    let names = ["d_yearmonthnum", "d_daynuminweek", "d_daynuminmonth", "d_daynuminyear"];
    assert_eq!(names.map(int), [199803, 1, 22, 81]);
    let weekdays = column(&dates, "d_weekdayfl");
    assert!(!weekdays.as_boolean().value(row));
    assert_range(&dates, "d_weeknuminyear", 1, 53);
    let month_ends = column(&dates, "d_lastdayinmonthfl");
    assert_eq!(month_ends.as_boolean().true_count(), 83, "84 months, the last without its end");
}

#[test]
fn threads_do_not_change_a_byte() {
    for (suite, scale) in [(Suite::Ssb, 0.05), (Suite::Tpch, 0.05)] {
        let files = [1, 3].map(|count| {
            let directory = tempfile::tempdir().unwrap();
            let report = generate(suite, scale, directory.path(), &threads(count)).unwrap();
            report.tables.iter().map(|table| fs::read(&table.path).unwrap()).collect::<Vec<_>>()
        });
        assert!(files[0] == files[1], "{suite}");
    }
}

#[test]
fn the_seed_changes_ssb() {
    let files = [1, 2].map(|seed| {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { seed, ..threads(1) };
        generate(Suite::Ssb, 0.001, directory.path(), &options).unwrap();
        fs::read(directory.path().join("lineorder.parquet")).unwrap()
    });
    assert!(files[0] != files[1]);
}

#[test]
fn progress_ends_at_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let last = Mutex::new(HashMap::new());
    let progress = |table: &str, done: u64, expected: u64| {
        last.lock().unwrap().insert(table.to_owned(), (done, expected));
    };
    let options = Options { progress: &progress, ..threads(2) };
    let report = generate(Suite::Ssb, 0.05, directory.path(), &options).unwrap();
    let last = last.into_inner().unwrap();
    for table in report.tables {
        assert_eq!(last[table.name], (table.rows, table.rows), "{}", table.name);
    }
}

#[test]
fn cancelling_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("new/deep");
    for count in [1, 3] {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let cancelled = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 20;
        let options = Options { cancelled: &cancelled, ..threads(count) };
        let error = generate(Suite::Ssb, 0.05, &out, &options).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn tables_that_are_there_are_kept_unless_told_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let part = directory.path().join("part.parquet");
    fs::write(&part, "mine").unwrap();
    let error = generate(Suite::Ssb, 0.001, directory.path(), &threads(1)).unwrap_err();
    assert!(matches!(&error, Error::Exists(path) if *path == part), "{error:?}");
    assert_eq!(fs::read(&part).unwrap(), b"mine");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let options = Options { overwrite: true, ..threads(1) };
    generate(Suite::Ssb, 0.001, directory.path(), &options).unwrap();
    assert_eq!(read(directory.path(), "part").num_rows(), 200);
}

#[test]
fn scale_factors_out_of_range_are_refused_with_the_range() {
    let directory = tempfile::tempdir().unwrap();
    for scale in [0.0, -1.0, 0.000_1, 10_001.0, f64::NAN, f64::INFINITY] {
        let error = generate(Suite::Tpch, scale, directory.path(), &threads(1)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("0.001") && text.contains("10000"), "{text}");
    }
    assert!("tpcds".parse::<Suite>().unwrap_err().to_string().contains("tpch or ssb"));
}

#[test]
fn a_file_in_the_directorys_place_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("taken");
    fs::write(&out, "").unwrap();
    let error = generate(Suite::Ssb, 0.001, &out, &threads(1)).unwrap_err();
    assert!(error.to_string().contains("taken"), "{error}");
}

#[cfg(unix)]
#[test]
fn what_is_there_keeps_its_kind_and_its_mode() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("elsewhere")).unwrap();
    fs::write(at("elsewhere/part"), "old").unwrap();
    fs::set_permissions(at("elsewhere/part"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("elsewhere/part", at("part.parquet")).unwrap();
    symlink("elsewhere/date", at("date.parquet")).unwrap();
    fs::write(at("elsewhere/.date.tessera-AbCdEf012345.tmp"), "left by a killed program").unwrap();
    let options = Options { overwrite: true, ..threads(1) };
    generate(Suite::Ssb, 0.001, directory.path(), &options).unwrap();
    assert!(at("part.parquet").is_symlink() && at("date.parquet").is_symlink());
    assert_eq!(fs::metadata(at("elsewhere/part")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(read(directory.path(), "part").num_rows(), 200);
    assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 2);
    symlink("/dev/null", at("elsewhere/null")).unwrap();
    fs::remove_file(at("date.parquet")).unwrap();
    symlink("elsewhere/null", at("date.parquet")).unwrap();
    let error = generate(Suite::Ssb, 0.001, directory.path(), &options).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}
