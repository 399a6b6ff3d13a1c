//! Tables of TPC-H and SSB with the statistics of their files at scale factor 1.

use std::collections::BTreeMap;
use std::sync::Arc;

use tessera_optimizer::table::{Table, TableCatalog};
use tessera_plan::{ColumnStatistics, Params, Scalar, Statistics, Value};
use tessera_types::{Result, Tuple};

/// A catalog of tables by name.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    tables: BTreeMap<String, Arc<Table>>,
}

impl TableCatalog for Tables {
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        Ok(match reference {
            [name] => self.tables.get(*name).cloned(),
            _ => None,
        })
    }

    fn table_names(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }
}

/// Dictionary sizes that files report and join orders depend on.
const DICTIONARIES: [(&str, f64); 1] = [("l_returnflag", 3.0)];

impl Tables {
    /// Adds a table; a range holds the smallest and the largest value of a column.
    pub(crate) fn add(
        &mut self,
        name: &str,
        tuple: &str,
        rows: f64,
        ranges: &[(&str, i128, i128)],
    ) {
        let tuple: Tuple = tuple.parse().unwrap();
        let columns = tuple
            .fields()
            .iter()
            .map(|field| {
                let range = ranges.iter().find(|(name, ..)| *name == &*field.name);
                ColumnStatistics {
                    min: range.map(|(_, min, _)| Scalar::Integer(*min)),
                    max: range.map(|(_, _, max)| Scalar::Integer(*max)),
                    null_fraction: Some(0.0),
                    distinct: DICTIONARIES
                        .iter()
                        .find(|(name, _)| *name == &*field.name)
                        .map(|(_, size)| *size),
                }
            })
            .collect();
        let params = Params::new().with("paths", Value::List(vec![Value::string(name)]));
        let statistics = Statistics { rows: Some(rows), columns };
        let table = Table {
            name: name.to_string(),
            tuple,
            operator: "parquet_scan".into(),
            params,
            filters: true,
            statistics,
            sample: None,
            row_numbers: None,
        };
        self.tables.insert(name.to_string(), Arc::new(table));
    }

    /// Returns the eight tables of TPC-H.
    pub(crate) fn tpch() -> Tables {
        let mut tables = Tables::default();
        tables.add(
            "region",
            "<r_regionkey: int64, r_name: string, r_comment: string>",
            5.0,
            &[("r_regionkey", 0, 4)],
        );
        tables.add(
            "nation",
            "<n_nationkey: int64, n_name: string, n_regionkey: int64, n_comment: string>",
            25.0,
            &[("n_nationkey", 0, 24), ("n_regionkey", 0, 4)],
        );
        tables.add(
            "supplier",
            "<s_suppkey: int64, s_name: string, s_address: string, s_nationkey: int64, s_phone: string, \
             s_acctbal: decimal(15,2), s_comment: string>",
            10_000.0,
            &[("s_suppkey", 1, 10_000), ("s_nationkey", 0, 24), ("s_acctbal", -99_822, 999_300)],
        );
        tables.add(
            "customer",
            "<c_custkey: int64, c_name: string, c_address: string, c_nationkey: int64, c_phone: string, \
             c_acctbal: decimal(15,2), c_mktsegment: string, c_comment: string>",
            150_000.0,
            &[("c_custkey", 1, 150_000), ("c_nationkey", 0, 24), ("c_acctbal", -99_999, 999_999)],
        );
        tables.add(
            "part",
            "<p_partkey: int64, p_name: string, p_mfgr: string, p_brand: string, p_type: string, p_size: int32, \
             p_container: string, p_retailprice: decimal(15,2), p_comment: string>",
            200_000.0,
            &[("p_partkey", 1, 200_000), ("p_size", 1, 50)],
        );
        tables.add(
            "partsupp",
            "<ps_partkey: int64, ps_suppkey: int64, ps_availqty: int32, ps_supplycost: decimal(15,2), \
             ps_comment: string>",
            800_000.0,
            &[("ps_partkey", 1, 200_000), ("ps_suppkey", 1, 10_000), ("ps_availqty", 1, 9_999)],
        );
        tables.add(
            "orders",
            "<o_orderkey: int64, o_custkey: int64, o_orderstatus: string, o_totalprice: decimal(15,2), \
             o_orderdate: date, o_orderpriority: string, o_clerk: string, o_shippriority: int32, o_comment: string>",
            1_500_000.0,
            &[("o_orderkey", 1, 6_000_000), ("o_custkey", 1, 149_999), ("o_orderdate", 8_035, 10_440)],
        );
        tables.add(
            "lineitem",
            "<l_orderkey: int64, l_partkey: int64, l_suppkey: int64, l_linenumber: int32, l_quantity: decimal(15,2), \
             l_extendedprice: decimal(15,2), l_discount: decimal(15,2), l_tax: decimal(15,2), l_returnflag: string, \
             l_linestatus: string, l_shipdate: date, l_commitdate: date, l_receiptdate: date, \
             l_shipinstruct: string, l_shipmode: string, l_comment: string>",
            6_001_215.0,
            &[
                ("l_orderkey", 1, 6_000_000),
                ("l_partkey", 1, 200_000),
                ("l_suppkey", 1, 10_000),
                ("l_quantity", 100, 5_000),
                ("l_discount", 0, 10),
                ("l_tax", 0, 8),
                ("l_shipdate", 8_036, 10_561),
                ("l_commitdate", 8_065, 10_530),
                ("l_receiptdate", 8_037, 10_591),
            ],
        );
        tables
    }

    /// Returns the five tables of the Star Schema Benchmark.
    pub(crate) fn ssb() -> Tables {
        let mut tables = Tables::default();
        tables.add(
            "lineorder",
            "<lo_orderkey: int64, lo_linenumber: int32, lo_custkey: int32, lo_partkey: int32, lo_suppkey: int32, \
             lo_orderdate: int32, lo_orderpriority: string, lo_shippriority: string, lo_quantity: int32, \
             lo_extendedprice: int32, lo_ordtotalprice: int32, lo_discount: int32, lo_revenue: int32, \
             lo_supplycost: int32, lo_tax: int32, lo_commitdate: int32, lo_shipmode: string>",
            6_003_812.0,
            &[
                ("lo_orderkey", 1, 6_000_000),
                ("lo_custkey", 1, 30_000),
                ("lo_partkey", 1, 200_000),
                ("lo_suppkey", 1, 2_000),
                ("lo_orderdate", 19_920_101, 19_980_802),
                ("lo_quantity", 1, 50),
                ("lo_discount", 0, 10),
            ],
        );
        tables.add(
            "date",
            "<d_datekey: int32, d_date: string, d_dayofweek: string, d_month: string, d_year: int32, \
             d_yearmonthnum: int32, d_yearmonth: string, d_weeknuminyear: int32>",
            2_556.0,
            &[("d_datekey", 19_920_101, 19_981_231), ("d_year", 1992, 1998), ("d_weeknuminyear", 1, 53)],
        );
        tables.add(
            "customer",
            "<c_custkey: int32, c_name: string, c_address: string, c_city: string, c_nation: string, \
             c_region: string, c_phone: string, c_mktsegment: string>",
            30_000.0,
            &[("c_custkey", 1, 30_000)],
        );
        tables.add(
            "supplier",
            "<s_suppkey: int32, s_name: string, s_address: string, s_city: string, s_nation: string, \
             s_region: string, s_phone: string>",
            2_000.0,
            &[("s_suppkey", 1, 2_000)],
        );
        tables.add(
            "part",
            "<p_partkey: int32, p_name: string, p_mfgr: string, p_category: string, p_brand1: string, \
             p_color: string, p_type: string, p_size: int32, p_container: string>",
            200_000.0,
            &[("p_partkey", 1, 200_000)],
        );
        tables
    }
}
