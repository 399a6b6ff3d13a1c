"""More cases of reading.py: records that are skipped, compressed files, and workbooks."""

from __future__ import annotations

import bz2
import datetime
import lzma
import zlib
from pathlib import Path

import workbooks
from reading_cases import Case, refused, rows
from workbooks import Error, Styled

MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, 500000)
SHEETS: dict[str, object] = {
    "Main": [
        ["id", "name", "when", "flag", "ts", "t"],
        [1, "x", datetime.date(2024, 1, 2), True, MOMENT, datetime.time(10, 30)],
        [2.5, "y", datetime.date(1999, 12, 31), False, datetime.datetime(1999, 12, 31, 23, 59, 59), datetime.time(0, 0, 1)],
        [],
        [3, "z"],
    ],
    "Second": [["a", 1], ["b", 2], ["c", "q"]],
    "off": {(2, 2): "h1", (2, 3): "h2", (3, 2): 1, (3, 3): "u", (4, 2): 2, (5, 3): "late"},
    "nohead": [[1, 2], [3, 4]],
    "late": {(4, 2): 1, (4, 3): 2, (5, 2): 3, (5, 3): 4, (5, 4): 5},
    "dup": [["a", "a", None, "b"], [1, 2, 3, 4]],
    "twice": [["a", "a"], [1, 2]],
    "errors": [["n"], [1], [Error("#DIV/0!")], [3]],
    "firsterror": [["n"], [Error("#N/A")], [5]],
    "empty first": [["a", "b"], [None, 1], ["t", 2]],
    "texts": [["a"], ["5"], [6], [True], [datetime.date(2024, 5, 6)], [""], [' a&<b>\n"q" ']],
    "one": [["a", "b"]],
    "wide": [["a", "b"], [1, 2, 3], [4]],
    "gap": {(0, 0): "a", (0, 1): "b", (1, 0): 1, (1, 1): 2, (2, 5): "far", (3, 0): 3, (3, 1): 4},
    "formats": [["hours", "day", "date"], [Styled(1.25, 4), Styled(3, 5), Styled(61, 1)]],
    "old": [["d"], [Styled(1, 1)], [Styled(59, 1)]],
    "dates": [["d"], [datetime.date(2024, 5, 6)], ["2024-02-03"]],
    "void": [],
}


def make_messy_files(root: Path) -> None:
    """Writes the files that these cases read."""
    texts: dict[str, bytes] = {
        "few.csv": b"a,b,c\n1,2,3\n4,5\n6,7,8\n",
        "many.csv": b"a,b,c\n1,2,3\n4,5,6,7\n6,7,8\n",
        "trail.csv": b"a,b,c\n1,2,3\n4,5,6,\n6,7,8\n",
        "cast.csv": b"a,b\n1,2\nx,3\n6,y\nz,w\n7,8\n",
        "utf.csv": b"a,b\n1,x\n2,\xff\xfe\n3,w\n",
        "crlf.csv": b"a,b\r\n1,2\r\nx,3\r\n4,5\r\n",
        "lines.csv": b'a,b\n1,"x"\n2,"l\nm"\n3,4,5\n"6\n7",8\n9,9\n',
        "quoted.csv": b'a,b\n1,"x"\n2,"y"z\n3,"w"\n',
        "unclosed.csv": b'a,b\n1,"x"\n2,"y\n3,w\n4,q\n',
        "long.csv": b"a,b\n1,x\n2," + b"y" * 100 + b"\n3,w\n",
        "verylong.csv": b"a,b\n1,x\n2," + b"y" * 3_000_000 + b'\n3,"' + b"z\n" * 1_500_000 + b'"\n4,w\n',
        "late.csv": b"a,b\n" + b"1,2\n" * 30_000 + b"x,3\n4\n5,6\n",
        "all_bad.csv": b"a\nx\ny\nz\n",
        "head2.csv": b"a,b,c\nx,1\n1,2,3,4\ny,2,z\n5,6,7\n",
        "messy.json": b'{"a":1,"b":"x"}\nnot json\n{"a":2,"b":"y"}\n{"a":\n{"a":3,"b":"\xff"}\n[4]\n{"a":5}\n',
        "casts.json": b'{"a":1,"b":1}\n{"a":"q","b":2}\n{"a":3,"b":"r"}\n{"a":4,"b":4}\n',
        "list.json": b'[{"a":1},{"a":2}]',
        "plain.csv": b"a,b\n1,x\n2,\n",
        "plain.json": b'{"a":1}\n{"a":2}\n',
    }
    for name, content in texts.items():
        (root / name).write_bytes(content)
    long = b"i,t\n" + b"".join(b"%d,text %d\n" % (i, i % 97) for i in range(200_000))
    (root / "big.csv").write_bytes(long)
    for name, content in (("plain.csv", texts["plain.csv"]), ("plain.json", texts["plain.json"]), ("big.csv", long)):
        (root / f"{name}.bz2").write_bytes(bz2.compress(content))
        (root / f"{name}.xz").write_bytes(lzma.compress(content))
    half = len(long) // 2
    (root / "two.csv.bz2").write_bytes(bz2.compress(long[:half]) + bz2.compress(long[half:]))
    (root / "two.csv.xz").write_bytes(lzma.compress(long[:half]) + bytes(8) + lzma.compress(long[half:]))
    # Another check than the usual one, and a filter.
    raw = [{"id": lzma.FILTER_DELTA, "dist": 1}, {"id": lzma.FILTER_LZMA2, "preset": 3}]
    (root / "sha.csv.xz").write_bytes(lzma.compress(long, check=lzma.CHECK_SHA256, filters=raw))
    for end, packed in (("bz2", bz2.compress(long)), ("xz", lzma.compress(long))):
        (root / f"cut.csv.{end}").write_bytes(packed[: len(packed) * 2 // 3])
        (root / f"wrong.csv.{end}").write_bytes(b"a,b\n1,2\n")
        (root / f"none.csv.{end}").write_bytes(b"")
        (root / f"packed_{end}.dat").write_bytes(packed)
    # The encoder would hold the dictionary several times: the size is set in what it has written.
    small = bytearray(lzma.compress(b"a\n1\n", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]))
    small[16] = 36
    small[20:24] = zlib.crc32(bytes(small[12:20])).to_bytes(4, "little")
    (root / "dictionary.csv.xz").write_bytes(bytes(small))
    workbooks.write(root / "book.xlsx", SHEETS)
    workbooks.write(root / "other.xlsx", {"One": [["name", "id"], ["o", 7]]})
    (root / "wrong.xlsx").write_bytes(b"a,b\n1,2\n")
    (root / "none.xlsx").write_bytes(b"")
    (root / "old.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))


def table(names: str, *values: tuple) -> list[dict]:
    """Rows of these columns."""
    return [dict(zip(names.split(), row, strict=True)) for row in values]


NAMES = "line line_byte_position byte_position column_idx column_name kind csv_line"
INTS = "columns = {'a': 'int', 'b': 'int'}, header = true"
ERRORS = "select line, line_byte_position, byte_position, column_idx, column_name, error_type::varchar as kind, csv_line from reject_errors"
SCANS = "select file_id, file_path, delimiter, newline_delimiter, skip_rows::int as skip_rows, has_header::boolean as has_header from reject_scans"


def rejects(call: str, query: str = ERRORS, **more: object) -> Case:
    """What a scan has left in the tables of rejects."""
    made = f"create temp table rejected as from read_csv({call}, store_rejects = true); "
    drop = "drop table if exists rejected; drop table if exists reject_errors; drop table if exists reject_scans; "
    return Case(made + query, judge=drop + made + query, **more)


MESSY = [
    # Records that are skipped.
    *rows(
        "from read_csv('few.csv', ignore_errors = true)",
        "from read_csv('many.csv', ignore_errors = true)",
        "from read_csv('trail.csv', ignore_errors = true)",
        f"from read_csv('cast.csv', ignore_errors = true, {INTS})",
        "from read_csv('cast.csv', ignore_errors = true)",
        f"select a from read_csv('cast.csv', ignore_errors = true, {INTS}) where b > 2",
        "from read_csv('utf.csv', ignore_errors = true)",
        f"from read_csv('crlf.csv', ignore_errors = true, {INTS})",
        "from read_csv('lines.csv', ignore_errors = true, columns = {'a': 'int', 'b': 'varchar'}, header = true)",
        f"select count(*), sum(a), sum(b) from read_csv('late.csv', ignore_errors = true, {INTS})",
        "from read_csv('all_bad.csv', ignore_errors = true, columns = {'a': 'int'}, header = true)",
        "from read_csv('head2.csv', ignore_errors = true, columns = {'a': 'int', 'b': 'int', 'c': 'int'}, header = true)",
        "from read_csv(['few.csv', 'many.csv'], ignore_errors = true, filename = true)",
        "from read_csv('plain.csv', ignore_errors = true)",
        f"from read_csv('cast.csv', store_rejects = true, {INTS})",
    ),
    # A record is skipped for any of its values; in DuckDB for those that the statement reads.
    Case(
        f"select count(*) as n from read_csv('cast.csv', ignore_errors = true, {INTS})",
        expected=[{"n": 2}],
    ),
    # DuckDB reads quotes as characters where they do not fit.
    Case("from read_csv('quoted.csv', ignore_errors = true)", expected=[{"a": 1, "b": "x"}, {"a": 3, "b": "w"}]),
    Case("from read_csv('unclosed.csv', ignore_errors = true)", expected=[{"a": 1, "b": "x"}]),
    # DuckDB refuses what it meets while it looks for the dialect.
    Case("from read_csv('long.csv', ignore_errors = true, max_line_size = 50)", expected=[{"a": 1, "b": "x"}, {"a": 3, "b": "w"}]),
    Case("from read_csv('verylong.csv', ignore_errors = true, max_line_size = 1000)", expected=[{"a": 1, "b": "x"}, {"a": 4, "b": "w"}]),
    Case("from read_csv('verylong.csv', ignore_errors = true, max_line_size = 2500000)", expected=[{"a": 1, "b": "x"}, {"a": 4, "b": "w"}]),
    *refused("longer than 50 bytes (option max_line_size)", "from read_csv('long.csv', max_line_size = 50)"),
    # A line that cannot be read is skipped; in DuckDB it is a row of NULLs.
    Case("from read_json('messy.json', ignore_errors = true)", expected=[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 5, "b": None}]),
    *[
        Case(
            f"select {columns} from read_json('casts.json', ignore_errors = true, columns = {{'a': 'int', 'b': 'int'}})",
            expected=expected,
        )
        for columns, expected in (("*", [{"a": 1, "b": 1}, {"a": 4, "b": 4}]), ("a", [{"a": 1}, {"a": 4}]), ("count(*) as n", [{"n": 2}]))
    ],
    *refused("not one per line", "from read_json('list.json', ignore_errors = true) where a is null or a = 'x'::int"),
    # What is skipped, and where it is.
    *[rejects(call) for call in (
        "'few.csv'",
        "'many.csv'",
        "'trail.csv'",
        f"'cast.csv', {INTS}",
        "'utf.csv'",
        f"'late.csv', {INTS}",
        "'all_bad.csv', columns = {'a': 'int'}, header = true",
        "'all_bad.csv', columns = {'a': 'int'}, header = true, rejects_limit = 2",
        "['few.csv', 'many.csv']",
    )],
    rejects(f"'cast.csv', {INTS}", SCANS),
    # DuckDB counts the end of the line before as a part of the record.
    rejects(f"'crlf.csv', {INTS}", expected=table(NAMES, (3, 11, 11, 1, "a", "CAST", "x,3"))),
    # DuckDB refuses both options together.
    rejects(
        "['few.csv', 'plain.csv', 'many.csv'], union_by_name = true",
        "select count(*) as n, count(distinct file_id) as files from reject_errors",
        expected=table("n files", (2, 2)),
    ),
    Case(
        "create temp table t as from read_csv('few.csv', rejects_table = 'wrong', rejects_scan = 'read'); select count(*) as n from wrong w join read r on w.scan_id = r.scan_id",
        expected=[{"n": 1}],
    ),
    # A record with the wrong number of fields is one error, and so is one that is too long or has broken quotes.
    Case(
        "create temp table t as from read_csv('quoted.csv', store_rejects = true); select line, error_type, csv_line from reject_errors",
        expected=[{"line": 3, "error_type": "UNQUOTED VALUE", "csv_line": '2,"y"z'}],
    ),
    Case(
        "create temp table t as from read_csv('long.csv', store_rejects = true, max_line_size = 50); select line, error_type from reject_errors",
        expected=[{"line": 3, "error_type": "LINE SIZE OVER MAXIMUM"}],
    ),
    Case(
        "create temp table t as from read_csv('verylong.csv', store_rejects = true, max_line_size = 50); select line, line_byte_position as b, error_type, length(csv_line) as l from reject_errors",
        expected=[
            {"line": 3, "b": 9, "error_type": "LINE SIZE OVER MAXIMUM", "l": 65536},
            {"line": 4, "b": 3_000_012, "error_type": "LINE SIZE OVER MAXIMUM", "l": 65536},
        ],
    ),
    *refused("remove one of them", "from read_csv('few.csv', store_rejects = true, ignore_errors = false)"),
    *refused("whole number", "from read_csv('few.csv', store_rejects = true, rejects_limit = -1)"),
    *refused("which is false", "from read_csv('few.csv', store_rejects = false, rejects_limit = 3)"),
    *refused("unknown option", "from read_json('plain.json', store_rejects = true)"),
    # Compressed files, which DuckDB does not read.
    *[
        Case(f"from {kind}('plain.{end}.{packed}')", judge=f"from {kind}('plain.{end}')")
        for packed in ("bz2", "xz")
        for kind, end in (("read_csv", "csv"), ("read_json", "json"))
    ],
    *[
        Case(f"select count(*), sum(i), min(t), max(t) from {source}", judge="select count(*), sum(i), min(t), max(t) from 'big.csv'")
        for source in (
            "'big.csv.bz2'",
            "'big.csv.xz'",
            "'two.csv.bz2'",
            "'two.csv.xz'",
            "'sha.csv.xz'",
            "read_csv('packed_bz2.dat', compression = 'bz2')",
            "read_csv('packed_bz2.dat', compression = 'bzip2', header = true)",
            "read_csv('packed_xz.dat', compression = 'xz')",
            "read_csv('big.csv.xz', compression = 'auto')",
        )
    ],
    Case("select content from read_text('plain.csv.xz')", judge="select content from read_text('plain.csv')"),
    *rows("from read_csv('plain.csv', compression = 'none')"),
    *[
        Case(f"from '{name}.csv.{end}'", error=f"'{name}.csv.{end}'", ours_only=True)
        for name in ("cut", "wrong", "none")
        for end in ("bz2", "xz")
    ],
    Case("from read_csv('big.csv.xz', compression = 'bz2')", error="cannot decompress 'big.csv.xz'", ours_only=True),
    Case("from read_csv('big.csv.xz', compression = 'none')", error="compressed with xz; to read it, set the option compression", ours_only=True),
    *refused("must be auto, none, gzip, zstd, bz2 or xz", "from read_csv('plain.csv', compression = 'rar')"),
    Case("from 'dictionary.csv.xz'", error="its dictionary needs", ours_only=True, options=("--memory", "256MB")),
]


def book(sheet: str, expected: list[dict], options: str = "") -> Case:
    """A sheet and its rows, as the extension excel of DuckDB reads it where nothing else is said."""
    return Case(f"from read_xlsx('book.xlsx', sheet = '{sheet}'{options and ', ' + options})", expected=expected)


def no_book(sheet: str, error: str, options: str = "") -> Case:
    """A sheet that cannot be read."""
    return Case(f"from read_xlsx('book.xlsx', sheet = '{sheet}'{options and ', ' + options})", error=error, ours_only=True)


DATE, NONE = datetime.date, None
MAIN = table(
    "id name when flag ts t",
    (1.0, "x", DATE(2024, 1, 2), True, MOMENT, datetime.time(10, 30)),
    (2.5, "y", DATE(1999, 12, 31), False, datetime.datetime(1999, 12, 31, 23, 59, 59), datetime.time(0, 0, 1)),
)
REST = table("id name when flag ts t", (NONE,) * 6, (3.0, "z", NONE, NONE, NONE, NONE))
OFF = ((1.0, "u"), (2.0, NONE), (NONE, "late"))

BOOKS = [
    Case("from 'book.xlsx'", expected=MAIN),
    book("Main", MAIN + REST, "stop_at_empty = false"),
    book("Main", table("id name", (1.0, "x"), (2.5, "y"), (NONE, NONE), (3.0, "z")), "range = 'A:B'"),
    book("Main", table("A B", (1.0, "x"), (2.5, "y")), "range = 'A2:B3'"),
    book("Main", table("id name", (1.0, "x"), (2.5, "y"), (NONE, NONE), (3.0, "z"), (NONE, NONE)), "range = 'A1:B6'"),
    book("Main", table("id name", (1.0, "x"), (2.5, "y")), "range = 'A1:B6', stop_at_empty = true"),
    book("Main", table("id name when flag ts t", ("1", "x", "45293.0", "1", repr(workbooks.days(MOMENT)), "0.4375")), "all_varchar = true, range = '1:2'"),
    no_book("Second", "cell B3: 'q' is not a value of type float64"),
    book("Second", table("A1 B1", ("a", 1.0), ("b", 2.0), ("c", NONE)), "ignore_errors = true"),
    no_book("second", "its sheets are Main, Second"),
    book("off", table("h1 h2", *OFF)),
    book("off", table("C D", *OFF), "range = 'C4:D6', header = false"),
    book("off", table("h1 h2", *OFF), "range = 'C3:D6'"),
    book("off", table("C3 D3", ("h1", "h2"), ("1", "u"), ("2", NONE), (NONE, "late")), "header = false"),
    book(
        "off",
        table("A B C D E", *[(NONE,) * 5] * 2, (NONE, NONE, "h1", "h2", NONE), *[(NONE, NONE, *row, NONE) for row in (("1", "u"), ("2", NONE), (NONE, "late"))]),
        "range = 'A1:E6'",
    ),
    book("nohead", table("A1 B1", (1.0, 2.0), (3.0, 4.0))),
    book("nohead", table("1 2", (3.0, 4.0)), "header = true"),
    book("late", table("C5 D5", (1.0, 2.0), (3.0, 4.0))),
    book("late", table("C D E", (1.0, 2.0, NONE), (3.0, 4.0, 5.0)), "range = 'C5:E6'"),
    book("late", [], "range = 'C4:E9', stop_at_empty = true"),
    book("dup", table("A1 B1 C1 D1", ("a", "a", NONE, "b"), ("1", "2", 3.0, "4"))),
    book("twice", table("a a_1", (1.0, 2.0))),
    no_book("errors", "cell A3: '#DIV/0!'"),
    book("errors", table("n", (1.0,), (NONE,), (3.0,)), "ignore_errors = true"),
    book("errors", table("n", ("1",), ("#DIV/0!",), ("3",)), "all_varchar = true"),
    book("firsterror", table("n", ("#N/A",), ("5",))),
    no_book("empty first", "cell A3: 't'"),
    book("empty first", table("a b", (NONE, 1.0), ("t", 2.0)), "empty_as_varchar = true"),
    book("texts", table("a", ("5",), ("6",), ("1",), ("45418.0",), ("",), (' a&<b>\n"q" ',))),
    book("one", [], "header = true"),
    book("one", table("A1 B1", ("a", "b")), "header = false"),
    book("wide", table("a b", (1.0, 2.0), (4.0, NONE))),
    book("gap", table("a b", (1.0, 2.0))),
    book("gap", table("a b", (1.0, 2.0), (NONE, NONE), (3.0, 4.0)), "stop_at_empty = false"),
    # Elapsed hours are days, of which there may be several; a time of the day in DuckDB.
    book("formats", table("hours day date", (1.25, 3.0, DATE(1900, 3, 1)))),
    # The days of 1900 as Excel shows them; DuckDB is a day early before March.
    book("old", table("d", (DATE(1900, 1, 1),), (DATE(1900, 2, 28),))),
    # A date that is a text, which DuckDB refuses.
    book("dates", table("d", (DATE(2024, 5, 6),), (DATE(2024, 2, 3),))),
    no_book("void", "sheet 'void' has no rows with cells"),
    Case("select name, id from read_xlsx(['other.xlsx', 'book.xlsx']) where id < 9 order by id", expected=table("name id", ("x", 1.0), ("y", 2.5), ("o", 7.0))),
    Case("select filename, count(*) as n from read_xlsx('b*.xlsx', filename = true) group by 1", expected=table("filename n", ("book.xlsx", 2))),
    Case("select name from 'book.xlsx' where id > 2 and filename is null", error="filename", ours_only=True),
    Case("select name from 'book.xlsx' where id > 2", expected=table("name", ("y",))),
    Case("select count(*) as n from 'book.xlsx'", expected=table("n", (2,))),
    *[
        Case(f"from read_xlsx('book.xlsx', {option})", error=error, ours_only=True)
        for option, error in (
            ("range = 'A2'", "option range"),
            ("range = 'B3:A1'", "option range"),
            ("range = 'A1:ZZZZ1'", "option range"),
            ("header = 'perhaps'", "option header"),
            ("nosuch = 1", "unknown option"),
        )
    ],
    Case("from 'wrong.xlsx'", error="'wrong.xlsx': the file is not an Excel workbook", ours_only=True),
    Case("from 'none.xlsx'", error="'none.xlsx': the file is not an Excel workbook", ours_only=True),
    Case("from 'old.xlsx'", error="without a password", ours_only=True),
    Case("from 'nosuch.xlsx'", error="nosuch.xlsx", ours_only=True),
    Case("copy (select 1) to 'x.xlsx'", error="cannot tell the format", ours_only=True, folder="x.xlsx", files=["absent"]),
]
