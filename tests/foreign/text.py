"""Random CSV and JSON lines files, and their contents.

The generator knows the values of its own files. DuckDB reads them too, as text if it would infer
other types; if it rejects a file, the generator's values are the reference.
"""

from __future__ import annotations

import datetime
import gzip
import json
import random
from decimal import Decimal
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.csv
from foreign import typed, values

TEXTS = [
    "x",
    "Zürich",
    "日本",
    "\U0001f600",
    "it's",
    "a b",
    " padded ",
    "NULL",
    "-",
    "1 000",
    "2024-13-01",
    "x=1",
    "#",
    "\\",
    "0x1F",
    "1_000",
    "12:99",
]
AWKWARD = ["a,b", "a;b", "a|b", "a\tb", 'say "hi"', "two\nlines", "two\r\nlines", 'ends"', "", '"', "a\rb"]
HEADERS = ["a", "b", "c c", "A", "é", "it's", "Länge", "x.y"]
EPOCH = datetime.datetime(1970, 1, 1)


def csv_column(rng: random.Random, rows: int) -> tuple[list[str | None], list[object], bool]:
    """Returns the texts of a column, their values, and whether they are text."""
    nulls = rng.choice([0, 0, 0.3])
    kind = rng.choice(
        [
            "int",
            "wide",
            "float",
            "bool",
            "date",
            "time",
            "timestamp",
            "zoned",
            "text",
            "awkward",
            "code",
            "plus",
            "mixed",
        ]
    )
    texts: list[str | None] = []
    meant: list[object] = []
    for _ in range(rows):
        text, value = csv_value(rng, kind)
        if rng.random() < nulls:
            text, value = None, None
        texts.append(text)
        meant.append(value)
    if kind == "wide" and rows and any(text is not None for text in texts):
        # At least one value exceeds int64; otherwise they are plain numbers.
        at = next(i for i, text in enumerate(texts) if text is not None)
        texts[at], meant[at] = "9223372036854775808", 9223372036854775808
    if kind in ("code", "plus", "mixed") and rows:
        at = rng.randrange(rows)
        odd = {"code": "007", "plus": "+1", "mixed": "n/a"}[kind]
        texts[at], meant[at] = odd, odd
        meant = [None if text is None else text for text in texts]
    return texts, meant, kind in ("text", "awkward", "code", "plus", "mixed") or all(text is None for text in texts)


def csv_value(rng: random.Random, kind: str) -> tuple[str, object]:
    match kind:
        case "int":
            number = rng.choice([0, -1, 2**63 - 1, -(2**63), rng.randint(-99, 99), rng.randint(-(10**12), 10**12)])
            return str(number), number
        case "wide":
            number = rng.choice([2**63, -(2**63) - 1, 10**37, rng.randint(-(10**30), 10**30), 5])
            return str(number), number
        case "float":
            text = rng.choice(
                [
                    "1.5",
                    "-0.25",
                    "1e3",
                    "1E-7",
                    ".5",
                    "5.",
                    "inf",
                    "-Infinity",
                    "NaN",
                    "0.1",
                    "1.7976931348623157e308",
                    "4.9e-324",
                    repr(rng.uniform(-1e6, 1e6)),
                ]
            )
            return text, float(text)
        case "bool":
            return rng.choice([("true", True), ("false", False), ("TRUE", True), ("False", False)])
        case "date":
            day = rng.choice(
                [
                    datetime.date(1970, 1, 1),
                    datetime.date(1, 1, 1),
                    datetime.date(9999, 12, 31),
                    datetime.date.fromordinal(rng.randint(1, 3_000_000)),
                ]
            )
            return day.isoformat(), ("date", (day - EPOCH.date()).days)
        case "time":
            second, micro = rng.randrange(86_400), rng.choice([0, 500_000, rng.randrange(10**6)])
            text = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            fraction = f"{micro:06}".rstrip("0") if micro else ""
            return text + ("." + fraction if fraction else ""), ("time", (second * 10**6 + micro) * 1000, False)
        case "timestamp" | "zoned":
            moment = EPOCH + datetime.timedelta(
                seconds=rng.randint(-(10**9), 4 * 10**9), microseconds=rng.choice([0, 0, 120_000, rng.randrange(10**6)])
            )
            text = moment.isoformat(sep=rng.choice("T "))
            micros = (moment - EPOCH) // datetime.timedelta(microseconds=1)
            if kind == "timestamp":
                return text, ("timestamp", micros * 1000, False)
            suffix, minutes = rng.choice([("Z", 0), ("+00:00", 0), ("+02:00", 120), ("-05:30", -330), ("+01", 60)])
            return text + suffix, ("timestamp", (micros - minutes * 60 * 10**6) * 1000, True)
        case "awkward":
            text = rng.choice(TEXTS + AWKWARD)
            return text, text
        case "text":
            text = rng.choice(TEXTS)
            return text, text
    number = rng.randint(10, 9_999)
    return str(number), number


def csv(rng: random.Random, folder: Path, number: int) -> typed.Case:
    """Generates a CSV file by hand or with a library."""
    if rng.random() < 0.2:
        return csv_of_library(rng, folder, number)
    if rng.random() < 0.15:
        return broken_csv(rng, folder, number)
    delimiter = rng.choice([",", ",", ";", "\t", "|"])
    end = rng.choice(["\n", "\n", "\r\n", "\r", "mixed"])
    rows = rng.choice([0, 1, 2, 10, 200, 3000])
    width = rng.choice([1, 2, 2, 4, 7])
    columns = [csv_column(rng, rows) for _ in range(width)]
    all_text = all(is_text for _, _, is_text in columns)
    header = rng.random() < 0.8 or rows == 0 or all_text
    names = [rng.choice([*HEADERS, "", "a"]) if rng.random() < 0.3 else name for name in rng.sample(HEADERS, width)]
    if width == 1 and not names[0]:
        names = ["a"]
    quote_all = rng.random() < 0.2
    lines: list[str] = []
    if header:
        lines.append(delimiter.join(csv_field(name, delimiter, quote_all and bool(name), True) for name in names))
    for row in range(rows):
        fields = [csv_field(texts[row], delimiter, quote_all, rng.random() < 0.9) for texts, _, _ in columns]
        lines.append(delimiter.join(fields))
        if width > 1 and rng.random() < 0.02:
            lines.append("")
    options = []
    if rng.random() < 0.1 and not any(line.startswith("#") for line in lines):
        for _ in range(3):
            lines.insert(rng.randint(0, len(lines)), rng.choice(["#", "# a, b", '#,"', "#\t'x"]))
        options.append("comment = '#'")
    if rng.random() < 0.1:
        preamble = [rng.choice(["A report", 'of "x', "", "1,2"]) for _ in range(rng.randint(1, 3))]
        lines = preamble + lines
        options.append(f"skip = {len(preamble)}")
    content = ""
    for line, following in zip(lines, [*lines[1:], "-"], strict=True):
        # A carriage return before a blank line would be half of a line end.
        mixed = ["\n", "\r\n", "\r"] if following else ["\n", "\r\n"]
        content += line + (rng.choice(mixed) if end == "mixed" else end)
    if rng.random() < 0.3 and lines and lines[-1]:
        content = content.rstrip("\r\n") if not lines[-1].endswith(('"', "\n", "\r")) else content
    raw = (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + content.encode()
    suffix, packed = compressed(rng, raw)
    extension = rng.choice(["csv", "csv", "csv", "tsv", "txt"])
    if extension == "tsv" and delimiter != "\t":
        extension = "csv"
    path = folder / f"t{number}.{extension}{suffix}"
    path.write_bytes(packed)
    # Options that cannot be inferred are given: one column has no delimiter, and a header may look
    # like values.
    if width == 1 or rng.random() < 0.2:
        options.append(f"delimiter = {sql_text(delimiter)}")
    told = not header or rows == 0 or rng.random() < 0.2
    if told:
        options.append(f"header = {'true' if header else 'false'}")
    reader = "read_csv" if options or extension == "txt" or rng.random() < 0.3 else ""
    unique = unique_names(names) if header else [f"column{i}" for i in range(width)]
    judge = {name: meant for name, (_, meant, _) in zip(unique, columns, strict=True)}
    judges = {"made": judge}
    made = f"CSV by hand: delimiter {delimiter!r}, line ends {end!r}, header {header}, {rows} rows, start {raw[:120]!r}"
    return typed.Case(
        path, made, reader, judges=judges, options="".join(f", {option}" for option in options), loose=True
    )


def compressed(rng: random.Random, raw: bytes) -> tuple[str, bytes]:
    """Returns a file's compression suffix, and its bytes."""
    match rng.choice(["", "", "", "", "gz", "zst", "members"]):
        case "gz":
            return ".gz", gzip.compress(raw)
        case "members":
            return ".gz", gzip.compress(raw[: len(raw) // 2]) + gzip.compress(raw[len(raw) // 2 :])
        case "zst":
            return ".zst", pa.Codec("zstd").compress(raw, asbytes=True)
    return "", raw


def csv_field(text: str | None, delimiter: str, quote: bool, quote_spaces: bool) -> str:
    """Returns a field as written: the empty text quoted, NULL unquoted."""
    if text is None:
        return ""
    special = any(c in text for c in (delimiter, '"', "\n", "\r")) or text == ""
    # A quote within a field is an ordinary character, but not at its start.
    if special or quote or quote_spaces and text != text.strip(" "):
        return '"' + text.replace('"', '""') + '"'
    return text


def unique_names(names: list[str]) -> list[str]:
    named = [name if name else f"column{i}" for i, name in enumerate(names)]
    unique: list[str] = []
    for name in named:
        candidate, count = name, 0
        while candidate in unique or count and candidate in named:
            count += 1
            candidate = f"{name}_{count}"
        unique.append(candidate)
    return unique


def broken_csv(rng: random.Random, folder: Path, number: int) -> typed.Case:
    """Generates a file with one malformed record, and the line number that its error must contain."""
    rows = rng.choice([3, 50, 5_000, 60_000])
    lines = ["a,b"] + [f"{i},{'x' * (i % 20)}y" for i in range(rows)]
    at = rng.randint(2, len(lines) - 1)
    kind = rng.choice(["few", "many", "latin"])
    raw = [line.encode() for line in lines]
    raw[at] = {"few": b"1", "many": b"1,2,3", "latin": b"1,caf\xe9"}[kind]
    path = folder / f"t{number}.csv"
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    says = {"few": "too few fields", "many": "too many fields", "latin": "UTF-8"}[kind]
    return typed.Case(
        path,
        f"a CSV file whose line {at + 1} is {raw[at]!r}",
        refused=rf"line {at + 1}: .*{says}",
        judges={"made": {"a": [], "b": []}},
        loose=True,
    )


def csv_of_library(rng: random.Random, folder: Path, number: int) -> typed.Case:
    """Generates a file with polars, pyarrow or DuckDB."""
    kinds = [pa.int64(), pa.int8(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us")]
    table = typed.random_table(rng, False, kinds)
    while table.num_rows == 0:
        table = typed.random_table(rng, False, kinds)
    path = folder / f"t{number}.csv"
    writer = rng.choice(["pyarrow", "polars", "duckdb"])
    table = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
    if writer == "pyarrow":
        pa.csv.write_csv(table, path)
    elif writer == "polars":
        polars.from_arrow(table).write_csv(path)
    else:
        with duckdb.connect() as connection:
            connection.register("given", table)
            connection.execute(f"copy (select * from given) to '{path}' (header)")
    told = connection_text(path)
    made = f"CSV by {writer}: {table.schema.to_string()!r}"
    judges = {"duckdb, as text": told}
    return typed.Case(path, made, "read_csv", judges=judges, options=", header = true", loose=True, as_text=True)


def connection_text(path: Path) -> dict[str, list]:
    """Returns a file's values as text, read by DuckDB."""
    return typed.columns_of(
        typed.ask_duckdb(
            f"select * from read_csv('{path}', all_varchar = true, header = true, delim = ',', quote = '\"', escape = '\"', max_line_size = 10000000)"
        )
    )


def alike(found: object, expected: object) -> bool:
    """Returns whether a typed value equals a text, or a value of another type."""
    if values.same(found, expected):
        return True
    if isinstance(found, bool) or isinstance(expected, bool):
        return isinstance(expected, str) and expected.lower() == str(found).lower()
    if isinstance(found, (int, float, Decimal)) and isinstance(expected, (int, float, Decimal)):
        both = float in (type(found), type(expected))
        return float(found) == float(expected) or found != found and expected != expected if both else found == expected
    if isinstance(found, tuple) and isinstance(expected, tuple):
        if found[:1] == ("date",) and expected[:1] == ("date",):
            return found == expected
        return len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(expected, str) and isinstance(found, str):
        return found == expected
    # DuckDB does not distinguish empty text and NULL.
    if expected is None and found == "":
        return True
    return isinstance(expected, str) and found is not None and alike_text(found, expected)


def alike_text(found: object, text: str) -> bool:
    try:
        if isinstance(found, int):
            return int(text) == found
        if isinstance(found, Decimal):
            return Decimal(text) == found
        if isinstance(found, float):
            return float(text) == found or found != found and text.lower().strip("-") == "nan"
        if isinstance(found, tuple) and found[0] == "date":
            return (datetime.date.fromisoformat(text) - EPOCH.date()).days == found[1]
        if isinstance(found, tuple) and found[0] == "timestamp":
            moment = datetime.datetime.fromisoformat(text[:26])
            return (moment - EPOCH) // datetime.timedelta(microseconds=1) * 1000 == found[1]
    except ValueError:
        return False
    return False


def sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def json_lines(rng: random.Random, folder: Path, number: int) -> typed.Case:
    """Generates records one per line, in one list, or concatenated."""
    rows = rng.choice([0, 1, 2, 10, 200, 3000])
    names = rng.sample(["a", "b", "A", "c c", "é", 'a"b', "x\\y", "n\nl"], rng.randint(1, 5))
    kinds = {name: json_kind(rng, 2) for name in names}
    missing = {name: rng.choice([0, 0, 0.3]) for name in names}
    records, meant = [], {name: [] for name in names}
    for row in range(rows):
        record = []
        for name in rng.sample(names, len(names)) if rng.random() < 0.3 else names:
            # The first row has all keys, so that they are known.
            if row and rng.random() < missing[name]:
                meant[name].append(None)
                continue
            text, value = json_value(rng, kinds[name])
            record.append(json_text(rng, name) + rng.choice([":", ": ", " : "]) + text)
            meant[name].append(value)
        records.append("{" + rng.choice([",", ", "]).join(record) + "}")
    form = rng.choice(["lines", "lines", "lines", "list", "beside"])
    end = rng.choice(["\n", "\n", "\r\n"])
    if form == "list":
        content = "[" + f",{end}".join(records) + "]" + rng.choice(["", end])
    elif form == "beside":
        content = " ".join(records)
    else:
        blank = lambda: rng.choice(["", " ", "\t"]) + end if rng.random() < 0.03 else ""
        content = "".join(record + end + blank() for record in records)
        content = content if rng.random() < 0.7 else content.rstrip("\r\n \t")
    raw = (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + content.encode("utf-8")
    suffix, packed = compressed(rng, raw)
    extension = rng.choice(["json", "jsonl", "ndjson", "txt"])
    path = folder / f"t{number}.{extension}{suffix}"
    path.write_bytes(packed)
    judge = {name: unified(column, kinds[name]) for name, column in meant.items()} if rows else {}
    order = list(judge)
    if rows:
        seen = json_order(records)
        order = [name for name in seen if name in judge]
    judges = {"made": {name: judge[name] for name in order}}
    made = f"JSON by hand: {form}, line ends {end!r}, kinds {kinds}, start {raw[:160]!r}"
    empty = not rows
    return typed.Case(
        path,
        made,
        "read_json" if extension == "txt" else "",
        judges=judges,
        loose=True,
        refused="empty|no records|no columns|holds no" if empty else "",
        named={name for name, kind in kinds.items() if isinstance(kind, list) and kind[0] == "struct"},
    )


def json_order(records: list[str]) -> list[str]:
    """Returns keys in the order of their first occurrence."""
    order: list[str] = []
    for record in records:
        for key in json.loads(record):
            if key not in order:
                order.append(key)
    return order


def json_kind(rng: random.Random, depth: int) -> object:
    if depth and rng.random() < 0.25:
        return ["list", json_kind(rng, depth - 1)]
    if depth and rng.random() < 0.2:
        return ["struct", {name: json_kind(rng, depth - 1) for name in ["x", "y z"]}]
    return rng.choice(["int", "wide", "float", "number", "bool", "text", "text", "null"])


def json_value(rng: random.Random, kind: object) -> tuple[str, object]:
    """Generates a value's text and meaning."""
    if rng.random() < 0.1 or kind == "null":
        return "null", None
    if isinstance(kind, list) and kind[0] == "list":
        items = [json_value(rng, kind[1]) for _ in range(rng.choice([0, 1, 1, 2, 4]))]
        return "[" + ",".join(text for text, _ in items) + "]", tuple(value for _, value in items)
    if isinstance(kind, list):
        fields = [(name, json_value(rng, inner)) for name, inner in kind[1].items()]
        text = "{" + ",".join(f"{json.dumps(name)}:{text}" for name, (text, _) in fields) + "}"
        return text, tuple((name, value) for name, (_, value) in fields)
    match kind:
        case "int":
            number = rng.choice([0, -1, 2**63 - 1, -(2**63), rng.randint(-999, 999)])
            return str(number), number
        case "wide":
            number = rng.choice([2**63, -(2**63) - 1, 10**37, 7])
            return str(number), number
        case "float":
            text = rng.choice(["1.5", "-0.25", "1e3", "1E-7", "0.1", "-0.0", repr(rng.uniform(-1e9, 1e9))])
            return text, float(text)
        case "number":
            text = rng.choice(["1.5", "2", "-7", "1e2"])
            return text, float(text)
        case "bool":
            return rng.choice([("true", True), ("false", False)])
    text = rng.choice([*TEXTS, *AWKWARD, "\x01", "/", "\u2028", "é" * 30])
    return json_text(rng, text), text


def json_text(rng: random.Random, text: str) -> str:
    """Returns a string, sometimes with unnecessary escapes."""
    match rng.randint(0, 2):
        case 0:
            return json.dumps(text)
        case 1:
            return json.dumps(text, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False).replace("/", "\\/").replace("a", "\\u0061")


def unified(column: list, kind: object) -> list:
    return column
