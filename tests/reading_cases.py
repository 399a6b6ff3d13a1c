"""The cases of reading.py, and the files that they read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb


@dataclass(frozen=True)
class Case:
    """A statement, and what is expected of it: what DuckDB does, unless it says otherwise."""

    sql: str
    # Another statement for the judge.
    judge: str | None = None
    # The rows, where Tessera differs on purpose.
    expected: list[dict] | None = None
    # A part of the message of an error.
    error: str | None = None
    # Whether only Tessera refuses or accepts the statement.
    ours_only: bool = False
    # The folder that a COPY writes, a query that reads it, and its files where Tessera differs.
    folder: str | None = None
    read: str | None = None
    files: list[str] | None = None
    options: tuple[str, ...] = ()


def make_files(root: Path) -> None:
    """Writes the files that the cases read."""
    texts = {
        "named.csv": "filename,a\nq,1\n",
        "u1.csv": "a,b\n1,x\n2,\n",
        "u2.csv": "b,c\ny,2.5\n",
        "u3.csv": "a\n1.5\n",
        "u4.csv": "c,b,a\n7,z,text\n",
        "empty.csv": "",
        "head.csv": "a,b\n",
        "semicolon.csv": "a;z\n7;2024-01-01\n",
        "d1.csv": "d\n2024-01-01\n",
        "d2.csv": "d\n2024-01-02\n",
        "n1.csv": "1,2\n3,4\n",
        "n2.csv": "5\n",
        "j1.json": '{"a":1,"b":"x"}\n{"a":null}\n',
        "j2.json": '{"c":[1],"a":2.5}\n',
        "j3.json": '{"n":{"x":1}}\n',
        "j4.json": '{"n":{"y":"t"},"b":true}\n',
        "t1.tsv": "a\tb\n1\tx\n",
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    connection = duckdb.connect()

    def copy(query: str, path: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        connection.execute(f"copy ({query}) to '{root / path}'")

    for year in (2023, 2024):
        for month in ("1", "12"):
            for end in ("parquet", "csv", "json"):
                query = f"select {year * 100 + int(month)} as v, 'x{month}' as t"
                copy(query, f"s/year={year}/month={month}/a.{end}")
    for name in ("a", "b"):
        copy("select 1 as v", f"mixed/k={name}/x.csv")
    for day in ("2024-01-01", "2024-02-29"):
        copy(f"select '{day[5:]}' as v", f"days/d={day}/x.parquet")
    copy("select 1 as v", "odd/k=__HIVE_DEFAULT_PARTITION__/x.parquet")
    copy("select 2 as v", "odd/k=3/x.parquet")
    copy("select 3 as v", "codes/k=007/x.csv")
    copy("select 5 as v", "escaped/k=a%2Fb%20c/x.csv")
    copy("select 4 as v, 9 as k", "same/k=1/x.parquet")
    copy("select 1::int a, 'x' b", "p1.parquet")
    copy("select 2.5::double a, date '2020-01-01' c", "p2.parquet")
    copy("select 'tt' a, timestamp '2020-01-01 10:00' c", "p3.parquet")
    copy("select [1] l", "p4.parquet")
    copy("select [2.5::double, null] l", "p5.parquet")
    copy("select true a, 5::decimal(4,1) d", "p6.parquet")
    copy("select 1::bigint a where false", "p7.parquet")
    copy("select null::int a, 7::tinyint e", "p8.parquet")
    copy("select {'x': 1} s", "p9.parquet")
    copy("select i, i % 7 as m from range(20000) t(i)", "rows1.parquet")
    copy("select i, i % 5 as m from range(300) t(i)", "rows2.parquet")
    copy("select 1 as file_row_number", "named.parquet")
    connection.execute(
        f"copy (select i from range(9000) t(i)) to '{root / 'groups.parquet'}' (row_group_size 2048)"
    )


def rows(*sqls: str) -> list[Case]:
    """Queries with the answer of the judge."""
    return [Case(sql) for sql in sqls]


def refused(error: str, *sqls: str) -> list[Case]:
    """Statements that both refuse."""
    return [Case(sql, error=error) for sql in sqls]


def as_one_reader(statement: str) -> list[Case]:
    """A statement over each format that has named files of its own."""
    formats = {"csv": "read_csv", "parquet": "read_parquet", "json": "read_json"}
    return [
        Case(statement.replace("READ", function).replace("END", end))
        for end, function in formats.items()
    ]


READING = [
    # The column of paths.
    *as_one_reader("from READ('s/*/*/*.END', filename = true)"),
    *as_one_reader("from READ('s/*/*/*.END', filename = 'path')"),
    *as_one_reader("from READ('s/*/*/*.END', filename = false)"),
    *as_one_reader("select filename, count(*) from READ('s/*/*/*.END', filename = 1) group by 1"),
    *as_one_reader("select v from READ('s/*/*/*.END', filename = true) where filename like '%2023%'"),
    *as_one_reader("select v from READ('s/*/*/*.END', filename = true) where filename = 'none'"),
    *rows(
        "select filename, a from read_csv(['u1.csv', 'u3.csv'], filename = true, union_by_name = true)",
        "select filename from read_csv('u1.csv', filename = true) where a = 1",
        "select filename from read_csv('head.csv', filename = true)",
        "select upper(filename) || a from read_csv('u1.csv', filename = true)",
        "select max(filename), min(filename) from read_parquet('s/**/*.parquet', filename = true)",
        "select x.filename = y.filename from read_csv('u1.csv', filename = true) x, read_csv('d1.csv', filename = true) y",
        "select filename from read_csv('t1.tsv', filename = true)",
    ),
    *refused(
        "give the column another name",
        "from read_csv('named.csv', filename = true)",
        "from read_csv('named.csv', filename = 'FileName')",
        "from read_csv('s/*/*/*.csv', filename = 'year')",
    ),
    # Hive partitions.
    *as_one_reader("from READ('s/*/*/*.END', hive_partitioning = true)"),
    *as_one_reader("from READ('s/*/*/*.END', hive_partitioning = false)"),
    *as_one_reader("from READ('s/year=2023/*/*.END', hive_partitioning = true)"),
    *as_one_reader("from READ('s/year=2024/month=12/a.END', hive_partitioning = true)"),
    *as_one_reader("from READ('s/*/*/*.END', hive_types = {'month': int, 'year': varchar})"),
    *as_one_reader("from READ('s/*/*/*.END', hive_types = {'year': 'decimal(6,1)'})"),
    *as_one_reader("from READ('s/*/*/*.END', hive_types_autocast = false)"),
    *as_one_reader("select v from READ('s/*/*/*.END') where year = 2023 and month > 5"),
    *as_one_reader("select year, sum(v) from READ('s/*/*/*.END') group by year having sum(v) > 5"),
    *rows(
        "from 's/*/*/*.csv'",
        "from 's/*/*/*.parquet'",
        "select typeof(k), k, v from read_csv('mixed/*/*.csv')",
        "select typeof(d), d, v from read_parquet('days/*/*.parquet') where d > date '2024-01-15'",
        "select k, v from read_parquet('odd/*/*.parquet')",
        "select v from read_parquet('odd/*/*.parquet') where k is null",
        "select v from read_parquet('odd/*/*.parquet') where k is not null",
        "select k, v from read_csv('codes/*/*.csv')",
        "select k, v from read_csv('codes/*/*.csv', hive_types = {'k': int})",
        "select k, v from read_csv('escaped/*/*.csv')",
        "select k, v from read_csv('u1.csv', hive_partitioning = true) t, (select 1 k, 2 v)",
        "select k, v from read_parquet('same/*/*.parquet', hive_partitioning = true)",
        "select v, filename, year from read_parquet('s/*/*/*.parquet', filename = true) where filename > 's/year=2024' and year + 1 = 2025",
        "select count(*) from read_parquet('s/*/*/*.parquet') where year = 1999",
        "select v from read_parquet('s/*/*/*.parquet') where year in (2023, 7) or month = 12 and v > 5",
    ),
    *refused("have no folder", "from read_csv('s/*/*/*.csv', hive_types = {'nomonth': int})"),
    *refused(
        "remove one of them",
        "from read_csv('s/*/*/*.csv', hive_types = {'month': int}, hive_partitioning = false)",
    ),
    *refused("2023", "from read_csv('s/*/*/*.csv', hive_types = {'year': date})"),
    *refused(
        "must be true or false", "from read_csv('s/*/*/*.csv', hive_partitioning = 'perhaps')"
    ),
    *refused("must be types by name", "from read_csv('s/*/*/*.csv', hive_types = 5)"),
    # Columns by name.
    *rows(
        "from read_csv(['u1.csv', 'u2.csv'], union_by_name = true)",
        "from read_csv(['u2.csv', 'u1.csv'], union_by_name = true)",
        "from read_csv(['u1.csv', 'u3.csv', 'u2.csv'], union_by_name = true)",
        "from read_csv(['u1.csv', 'u4.csv'], union_by_name = true)",
        "from read_csv(['u4.csv', 'u3.csv', 'u1.csv', 'u2.csv'], union_by_name = true, filename = true)",
        "from read_csv(['u1.csv', 'head.csv'], union_by_name = true)",
        "from read_csv(['d1.csv', 'd2.csv', 'u1.csv'], union_by_name = true)",
        "select count(*), count(a), count(c) from read_csv(['u1.csv', 'u2.csv'], union_by_name = true)",
        "select b from read_csv(['u1.csv', 'u2.csv'], union_by_name = true) where a is null",
        "from read_csv(['n1.csv', 'n2.csv'], union_by_name = true, header = false)",
        "from read_csv(['u1.csv', 'u3.csv'], union_by_name = true, all_varchar = true)",
        "from read_json(['j1.json', 'j2.json'], union_by_name = true)",
        "from read_json(['j2.json', 'j1.json'], union_by_name = true, filename = true)",
        "from read_json(['j1.json', 'j2.json'])",
        "from read_json(['j3.json', 'j4.json'], union_by_name = true)",
        "from read_parquet(['p1.parquet', 'p2.parquet'], union_by_name = true)",
        "from read_parquet(['p1.parquet', 'p3.parquet'], union_by_name = true)",
        "from read_parquet(['p2.parquet', 'p3.parquet'], union_by_name = true)",
        "from read_parquet(['p3.parquet', 'p2.parquet'], union_by_name = true) where c > date '2019-05-05'",
        "from read_parquet(['p4.parquet', 'p5.parquet'], union_by_name = true)",
        "from read_parquet(['p1.parquet', 'p6.parquet'], union_by_name = true)",
        "from read_parquet(['p6.parquet', 'p3.parquet'], union_by_name = true)",
        "from read_parquet(['p7.parquet', 'p1.parquet'], union_by_name = true)",
        "from read_parquet(['p8.parquet', 'p1.parquet', 'p2.parquet'], union_by_name = true, filename = true)",
        "select a, b from read_parquet(['p1.parquet', 'p2.parquet'], union_by_name = true) where a > 1.5",
        "select a from read_parquet(['p1.parquet', 'p3.parquet'], union_by_name = true) where a >= '1' and a < 'u'",
        "select sum(e), count(b) from read_parquet(['p8.parquet', 'p1.parquet'], union_by_name = true)",
        "from read_parquet('p1.parquet', union_by_name = true)",
    ),
    # An empty file has no columns; DuckDB says that it has one.
    Case(
        "from read_csv(['u3.csv', 'empty.csv'], union_by_name = true)",
        expected=[{"a": 1.5}],
    ),
    # Every format reads what other files have; in DuckDB only with the option.
    Case(
        "from read_parquet(['p7.parquet', 'p8.parquet'])",
        judge="from read_parquet(['p7.parquet', 'p8.parquet'], union_by_name = true)",
    ),
    Case(
        "from read_csv(['u1.csv', 'semicolon.csv'], union_by_name = true)",
        error="has the delimiter ';'",
        ours_only=True,
    ),
    *refused("different fields", "from read_csv(['u1.csv', 'u2.csv'])"),
    *refused("no type holds both", "from read_parquet(['p1.parquet', 'p3.parquet'], union_by_name = 0)"),
    *refused("no type holds both", "from read_parquet(['p2.parquet', 'days/*/*.parquet', 'p8.parquet', 'p3.parquet'])"),
    # Numbers of rows.
    *rows(
        "from read_parquet('p1.parquet', file_row_number = true)",
        "from read_parquet(['p1.parquet', 'p2.parquet'], file_row_number = true, union_by_name = true, filename = true)",
        "select i, file_row_number from read_parquet('rows1.parquet', file_row_number = true) where i % 4000 = 7",
        "select i - file_row_number d, count(*), max(file_row_number) from read_parquet(['rows1.parquet', 'rows2.parquet'], file_row_number = true) group by 1",
        "select i from read_parquet('groups.parquet', file_row_number = true) where file_row_number between 4090 and 4100",
        "select count(*) from read_parquet('groups.parquet', file_row_number = true) where file_row_number <> i",
        "select file_row_number from read_parquet('groups.parquet', file_row_number = true) order by i desc limit 2",
        "select count(*) from read_parquet('groups.parquet', file_row_number = true) where file_row_number < 0",
        "select typeof(file_row_number) from read_parquet('p1.parquet', file_row_number = true)",
        "select file_row_number, * from 'p1.parquet'",
        "select file_row_number as n, p.* from read_parquet(['p1.parquet', 'p2.parquet'], union_by_name = true, filename = true) p",
        "select file_row_number from 'named.parquet'",
        "select count(*) from 'groups.parquet' where file_row_number <> i",
        "select i from 'groups.parquet' where file_row_number between 4090 and 4100",
        "select a.file_row_number as x, b.file_row_number as y from 'p1.parquet' a join 'p1.parquet' b on a.file_row_number = b.file_row_number + 1",
    ),
    *refused("the files have one", "from read_parquet('named.parquet', file_row_number = true)"),
    *refused("unknown option", "from read_json('j1.json', file_row_number = true)"),
]

WRITTEN = "(select i % 3 as a, case when i % 2 = 0 then null else 'x y/=%é' end as b, i from range(6) t(i))"


def written(folder: str, settings: str, read: str | None = None, **more: object) -> Case:
    """A COPY of a few rows to a folder."""
    source = more.pop("source", WRITTEN)
    read = read or f"from read_csv('{folder}/**/*.csv', hive_partitioning = true, all_varchar = true)"
    return Case(f"copy {source} to '{folder}' ({settings})", folder=folder, read=read, **more)


PARQUET = "from read_parquet('{}/**/*.parquet', hive_partitioning = true)"
JSON = "from read_json('{}/**/*.json', hive_partitioning = true)"
ONE = "(select date '2020-01-01' as d, 1.50::decimal(4, 2) as m, true as b, '' as e, [1] as l, 1 as x)"
MANY = "(select i % 500 as k, i, 'text ' || i as t from range(20000) t(i))"

WRITING = [
    written("o1", "format csv, partition_by (a, b)"),
    written("o1", "format csv, partition_by (a, b)", error="is not empty"),
    written("o1", "format csv, partition_by (a, b), overwrite_or_ignore"),
    written("o1", "format csv, partition_by (a, b), overwrite_or_ignore true"),
    written("o1", "format csv, partition_by (a), overwrite"),
    written("o1", "format csv, partition_by (a), append", "select count(*) from 'o1/*/*.csv'"),
    written("o2", "format csv, partition_by (b)"),
    written("o3", "format csv, partition_by (a), filename_pattern 'f_{i}'"),
    written("o4", "format csv, partition_by (a), filename_pattern 'f'"),
    written("o4b", "format csv, partition_by (a), filename_pattern 'f_{uuid}'", "select count(*) from 'o4b/*/*.csv'"),
    written("o5", "format csv, partition_by (a, b, i), write_partition_columns true"),
    written("o5b", "format csv, partition_by (a), write_partition_columns"),
    written("o6", "format csv, partition_by a"),
    written("o7", "format csv, partition_by (A, \"b\")"),
    written("o8", "format parquet, partition_by (a, b)", PARQUET.format("o8")),
    written("o9", "format parquet, partition_by (a), compression zstd", PARQUET.format("o9")),
    written("o10", "format json, partition_by (b)", JSON.format("o10")),
    written("o11", "format json, partition_by (a), array true", JSON.format("o11")),
    written("o12", "format csv, partition_by (d, m, b, e)", source="(select d, m, b, e, x from " + ONE + ")"),
    written("o13", "format parquet, partition_by (l)", PARQUET.format("o13"), source=ONE),
    written("o14", "format csv, partition_by (a), header false, delimiter ';'", "from read_csv('o14/*/*.csv', delim = ';', header = false)"),
    written("o15", "format csv, partition_by (a), file_extension 'txt'", "from read_csv('o15/*/*.txt', hive_partitioning = true)"),
    written("o16", "format parquet, partition_by (k)", PARQUET.format("o16"), source=MANY),
    written("o17", "format csv, partition_by (a)", "select 1", source="(select 1 a, 2 b where false)"),
    written("o19", "format csv, partition_by (a), compression gzip", "from read_csv('o19/*/*.csv.gz', hive_partitioning = true)"),
    written("o20", "format json, partition_by (a, b), compression zstd", "from read_json('o20/*/*/*.json.zst', hive_partitioning = true)"),
    written("o18.csv", "partition_by (a)", "from read_csv('o18.csv/*/*.csv', hive_partitioning = true)"),
    # Errors leave nothing behind.
    written("e1", "format csv, partition_by (zz)", error="unknown column zz"),
    written("e2", "format csv, partition_by (a, a)", error="names column a twice"),
    written("e3", "format csv, partition_by (a, b, i)", error="names all columns"),
    written("e4/q/r", "format csv, partition_by (a)", error="no such"),
    written("e5", "format csv, partition_by (a), overwrite, append", error="contradict"),
    written("e6", "format csv, partition_by (a), append, filename_pattern 'f_{i}'", error="needs a label"),
    written("e7", "format csv, partition_by (a), overwrite perhaps", error="must be true or false", files=["absent"]),
    written("e8", "format csv, partition_by (a), filename_pattern '../x'", error="must be a file name", ours_only=True, files=["absent"]),
    written("e9", "format csv, filename_pattern 'x'", error="needs the option PARTITION_BY", ours_only=True, files=["absent"]),
    written("e10", "format csv, partition_by (a), no_such true", error="unknown option", files=["absent"]),
    written("u1.csv", "format csv, partition_by (a)", error="it is a file", read="from 'u1.csv'"),
    written("e11", "format parquet, partition_by (a)", error="x", files=["absent"], source="(select i % 2 as a, (case when i = 4999 then 'x' else '1' end)::int as x from range(5000) t(i))"),
    written("s", "format csv, partition_by (a)", error="is not empty", read="select 1"),
    # One file.
    *[
        Case(f"copy {source} to 'list.json' (format json, array true)", folder="x", read="from 'list.json'")
        for source in (WRITTEN, "(select null as n, {'a': [1, null]} as s)", "(select i from range(20000) t(i))")
    ],
    Case("copy (select 1 as a) to 'lines.json' (format json, array false)", folder="x", read="from 'lines.json'"),
    # Files that are compressed as a whole.
    *[
        Case(f"copy (select i, 'x' || i % 7 as t from range(30000) r(i)) to '{name}' ({options})", folder="x", read=read)
        for name, options, read in (
            ("packed.csv.gz", "header true", "from 'packed.csv.gz'"),
            ("packed.csv.zst", "format csv", "from 'packed.csv.zst'"),
            ("packed.json.gz", "format json", "from 'packed.json.gz'"),
            ("list.json.zst", "format json, array true", "from 'list.json.zst'"),
            ("plain.csv", "format csv, compression gzip", "from read_csv('plain.csv', compression = 'gzip')"),
            ("plain.json", "format json, compression zstd", "from read_json('plain.json', compression = 'zstd')"),
            ("named.csv.gz", "format csv, compression none", "from read_csv('named.csv.gz', compression = 'none')"),
        )
    ],
    Case("copy (select 1 as a) to 'x.csv' (compression lz4)", error="option compression must be"),
    Case("copy (select 1 as a) to 'x.json' (format json, array perhaps)", folder="x", error="option array"),
    Case(
        "copy (select i from range(10000) t(i)) to 'g.parquet' (row_group_size 2048)",
        folder="x",
        read="select count(*), sum(i) from 'g.parquet'",
    ),
    Case(
        "copy (select i from range(10000) t(i)) to 'z.parquet' (compression zstd, compression_level 9)",
        folder="x",
        read="select count(*), sum(i) from 'z.parquet'",
    ),
    *[
        Case(f"copy (select 1 as a) to 'bad.parquet' ({options})", folder="bad.parquet", error=error, files=["absent"], ours_only=own)
        for options, error, own in (
            ("compression snappy, compression_level 9", "no meaning", False),
            ("compression zstd, compression_level 99", "1 to 22", False),
            ("compression zstd, compression_level 'x'", "whole number", False),
            ("compression gzip, compression_level 11", "0 to 9", False),
            ("row_group_size 'x'", "whole number", False),
            ("row_group_size 0", "at least 1", True),
        )
    ],
    # Little memory: the sort spills, and one file is open at a time.
    written("m1", "format parquet, partition_by (k)", "select count(*), sum(i), count(distinct t), count(distinct k) from 'm1/*/*.parquet'",
        source="(select i % 200 as k, i, 'some text ' || i as t from range(200000) t(i))", options=("--memory", "48MB")),
]

NAMES = "file_name, name, type, type_length, repetition_type, num_children, converted_type, scale, precision, column_id"
# Their root, whose repetition the library leaves out, aside.
SCHEMA = f"select {NAMES} from parquet_schema('{{}}') where column_id > 0"
CHUNKS = """select file_name, row_group_id, row_group_num_rows, row_group_num_columns, row_group_bytes, column_id,
    num_values, path_in_schema, type, stats_min_value, stats_max_value, stats_null_count, compression,
    data_page_offset, total_compressed_size, total_uncompressed_size from parquet_metadata('{}')"""
SNIFFED = "select Delimiter, NewLineDelimiter, Comment, SkipRows::int as s, HasHeader, Columns from sniff_csv('{}')"

DESCRIBING = [
    *rows(
        "from glob('*.json')",
        "from glob('nothing*')",
        "from glob('u1.csv')",
        "from glob('no such file')",
        "from glob('s')",
        "from glob('s/*')",
        "from glob('s/*/*/*.csv')",
        "from glob('s/**')",
        "select count(*) as n from glob('**')",
        "from glob(['j*.json', 'u1.csv'])",
        "from glob('u[12].csv')",
        "from glob('?1.csv')",
        "select count(*) as n, max(file) as m from glob('**/*.parquet') where file like 's/%'",
        "select g.file from glob('u*.csv') as g where g.file > 'u2'",
        "select upper(f) as u from glob('u1.csv') as g(f)",
    ),
    *refused("glob takes a path", "from glob(null)", "from glob(1)", "from glob()"),
    Case("from glob('*.csv', header = true)", error="unknown option 'header'"),
    *rows(*[CHUNKS.format(name) for name in ("p1.parquet", "p2.parquet", "p6.parquet", "p7.parquet", "p8.parquet", "groups.parquet", "p?.parquet")]),
    *rows(*[SCHEMA.format(name) for name in ("p1.parquet", "p2.parquet", "p3.parquet", "p4.parquet", "p6.parquet", "p9.parquet", "s/*/*/*.parquet")]),
    *rows(
        "select name, logical_type from parquet_schema('p3.parquet') where column_id > 0",
        "select name, logical_type from parquet_schema('days/*/*.parquet') where column_id > 0",
        "from (select file_name, created_by, num_rows, num_row_groups, format_version, encryption_algorithm, file_size_bytes::bigint as b, footer_size::bigint as f from parquet_file_metadata('*.parquet'))",
        "select sum(num_rows)::bigint as n from parquet_file_metadata(['rows1.parquet', 'rows2.parquet'])",
        "select file_name, key, value from parquet_kv_metadata('p1.parquet')",
        "select count(*) as n, sum(row_group_num_rows)::bigint as s from parquet_metadata('groups.parquet')",
        *[SNIFFED.format(name) for name in ("u1.csv", "u3.csv", "head.csv", "semicolon.csv", "d1.csv", "t1.tsv", "n1.csv")],
        "select DateFormat, TimestampFormat from sniff_csv('d1.csv')",
        "select HasHeader from sniff_csv('u1.csv', header = false)",
    ),
    *refused("no such file", "from parquet_metadata('no such file')", "from sniff_csv('no such file')"),
    *refused("no file matches", "from parquet_schema('no*file.parquet')"),
    *refused("u1.csv", "from parquet_schema('u1.csv')"),
    *refused("sniff_csv takes one file", "from sniff_csv('u?.csv')"),
    *refused("unknown option", "from parquet_metadata('p1.parquet', header = true)"),
]
