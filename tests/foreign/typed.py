"""Random Parquet and Arrow IPC files, written by pyarrow, polars and DuckDB, and their contents."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from foreign import values

NAMES = ["a", "b", "A", "c d", 'q"uote', "new\nline", "é", "select", "x.y", "_1", "", "it's", "A b", "column0"]


@dataclass
class Case:
    """A file and its expected contents."""

    path: Path
    # How the file was generated, for messages.
    made: str
    # The table function; empty if the file name suffices.
    reader: str = ""
    # Contents read by other libraries, by name; the first is the judge if they differ.
    judges: dict[str, dict[str, list]] = field(default_factory=dict)
    # Columns that may be rejected: types that Tessera does not support.
    lacking: set[str] = field(default_factory=set)
    # Arguments after the path in the table function.
    options: str = ""
    # The expected error, if the file cannot be read.
    refused: str = ""
    # For text the values are compared, but not their types.
    loose: bool = False
    # Columns of structs and maps.
    named: set[str] = field(default_factory=set)
    # The judges read text where Tessera infers types.
    as_text: bool = False


def random_table(rng: random.Random, arrow: bool, kinds: list[pa.DataType] | None = None) -> pa.Table:
    """Generates a table of a few columns with distinct names, some of which differ only in case."""
    rows = rng.choice([0, 1, 2, 7, 100, 100, 333, 2000])
    columns, fields = [], []
    for name in rng.sample(NAMES, rng.randint(1, 6)):
        kind = rng.choice(kinds) if kinds else values.random_type(rng, 2, arrow)
        nulls = rng.choice([0, 0.1, 0.5, 1])
        nullable = nulls > 0 or rng.random() < 0.7 or not may_be_required(kind)
        columns.append(values.random_array(rng, kind, rows, nulls))
        fields.append(pa.field(name, kind, nullable))
    return pa.table(columns, schema=pa.schema(fields, metadata={"made by": "tests/files.py"}))


def may_be_required(kind: pa.DataType) -> bool:
    """Returns whether a column of a type may be declared NOT NULL."""
    return not pa.types.is_null(kind) and not pa.types.is_run_end_encoded(kind)


def lacks(kind: pa.DataType) -> bool:
    """Returns whether Tessera does not support a type and may reject its columns."""
    if pa.types.is_union(kind) or (pa.types.is_decimal256(kind) and kind.precision > 38):
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return lacks(kind.value_type)
    return pa.types.is_nested(kind) and any(lacks(kind.field(i).type) for i in range(kind.num_fields))


def named(schema: pa.Schema) -> set[str]:
    """Returns the columns of structs and maps."""
    return {f.name for f in schema if pa.types.is_struct(f.type) or pa.types.is_map(f.type)}


def parquet(rng: random.Random, folder: Path, number: int) -> Case:
    """A Parquet file."""
    path = folder / f"t{number}.parquet"
    if rng.random() < 0.05:
        return encrypted(rng, path)
    writer = rng.choice(["pyarrow"] * 6 + ["duckdb"] * 2 + ["polars"] * 2)
    table = random_table(rng, arrow=False)
    if writer == "pyarrow":
        made = write_pyarrow(rng, table, path)
    elif writer == "duckdb":
        table, made = write_duckdb(rng, path)
    else:
        made = write_polars(rng, table, path, "parquet")
    whole = pq.ParquetFile(path).read()
    if len(whole) != pq.read_metadata(path).num_rows:
        raise ValueError("pyarrow does not read what it wrote: lists of a fixed size, with a NULL among them")
    judges = {"pyarrow": columns_of(whole)}
    try:
        judges["duckdb"] = columns_of(ask_duckdb(f"select * from read_parquet('{path}')"))
    except (duckdb.Error, pa.ArrowException, NotImplementedError, ValueError):
        pass
    read = pq.read_schema(path)
    return Case(path, made, judges=judges, lacking={f.name for f in read if lacks(f.type)}, named=named(read))


class NoKms(pe.KmsClient):
    """A key service without encryption of keys."""

    def __init__(self, _connection: pe.KmsConnectionConfig) -> None:
        pe.KmsClient.__init__(self)

    def wrap_key(self, key: bytes, _master: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, _master: str) -> bytes:
        return base64.b64decode(wrapped)


def encrypted(rng: random.Random, path: Path) -> Case:
    """Generates a Parquet file with one encrypted column and a plain footer."""
    names = ["a", "b", "c"]
    kinds = {name: values.random_type(rng, 0) for name in names}
    table = pa.table({name: values.random_array(rng, kind, 100, 0.2) for name, kind in kinds.items()})
    hidden = rng.choice(names)
    told = pe.EncryptionConfiguration(footer_key="f", column_keys={"k": [hidden]}, plaintext_footer=True)
    factory = pe.CryptoFactory(NoKms)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), told)
    index = rng.random() < 0.5
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties, write_page_index=index) as writer:
        writer.write_table(table, row_group_size=rng.choice([10, 1000]))
    made = f"pyarrow with column {hidden} encrypted, page index {index}: {kinds}"
    return Case(path, made, judges={"made": columns_of(table)}, lacking={hidden})


def write_pyarrow(rng: random.Random, table: pa.Table, path: Path) -> str:
    plain = [f.name for f in table.schema if not pa.types.is_nested(f.type) and not pa.types.is_dictionary(f.type)]
    dictionary = rng.choice([True, False])
    # Such timestamps have no zone; pyarrow's own metadata about zones is ignored.
    zoned = any("tz=" in str(f.type) for f in table.schema)
    options: dict[str, object] = {
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "compression": rng.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        "use_dictionary": dictionary,
        "row_group_size": rng.choice([1, 7, 50, 1000]) if len(table) < 500 else rng.choice([50, 1000]),
        "data_page_size": rng.choice([1, 100, 5_000, 1 << 20]),
        "write_batch_size": rng.choice([1, 10, 1024]),
        "write_statistics": rng.choice([True, True, False]),
        "write_page_index": rng.choice([True, False]),
        "use_deprecated_int96_timestamps": rng.random() < 0.15 and not zoned,
        "store_schema": rng.random() < 0.7,
        "use_compliant_nested_type": rng.random() < 0.7,
        "store_decimal_as_integer": rng.random() < 0.4,
        "dictionary_pagesize_limit": rng.choice([1, 50, 1 << 20]),
        "write_page_checksum": rng.random() < 0.3,
    }
    if not dictionary and rng.random() < 0.7:
        encodings = {name: rng.choice(encodings_of(table.schema.field(name).type)) for name in plain}
        # A dot in a name separates path elements there.
        told = {name: encoding for name, encoding in encodings.items() if encoding and "." not in name}
        options["column_encoding"] = told
    while True:
        try:
            pq.write_table(table, path, **options)
            return f"pyarrow {table.schema.to_string(show_schema_metadata=False)!r} {options}"
        except (pa.ArrowException, ValueError, OSError):
            # Not every option is valid for every type: retry with those that are, one by one.
            if "column_encoding" in options:
                options.pop("column_encoding")
            elif options.pop("store_decimal_as_integer", None) or options.pop("use_deprecated_int96_timestamps", None):
                pass
            elif options.pop("version", None) is None:
                raise


def encodings_of(kind: pa.DataType) -> list[str | None]:
    """Returns the encodings that are valid for columns of a type."""
    if pa.types.is_boolean(kind):
        return [None, "PLAIN", "RLE"]
    if pa.types.is_floating(kind):
        return [None, "PLAIN", "BYTE_STREAM_SPLIT"]
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return [None, "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return [None, "PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"]
    if values.is_text(kind) or values.is_bytes(kind):
        return [None, "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    return [None]


DUCKDB_COLUMNS = {
    "i": "(i * 7919 % 1000 - 500)::INTEGER",
    "h": "i::HUGEINT * 1000000007",
    "u": "(i::HUGEINT * 6000000000000000)::UBIGINT",
    "s": "'text ' || (i % 9)",
    "long": "repeat('x', (i % 50)::INTEGER)",
    "iv": "to_months((i % 30)::INTEGER) + to_days((i % 9)::INTEGER) + to_seconds(i)",
    "id": "('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID",
    "t": "time '00:00:00' + to_seconds(i * 13 % 86400)",
    "tz": "timestamptz '2000-01-01 00:00:00+00' + to_seconds(i * 7777)",
    "ns": "make_timestamp_ns(i * 1000000007)",
    "day": "date '2000-01-01' + (i % 5000)::INTEGER",
    "dec": "(i / 7)::DECIMAL(9, 3)",
    "wide": "(i * 3)::DECIMAL(30, 5)",
    "e": "(['x', 'yy', 'z'])[1 + i % 3]::ENUM('x', 'yy', 'z')",
    "blob": "('b' || i)::BLOB",
    "l": "range(i % 4)",
    "ls": "[['p', NULL], [], NULL, ['q']][1:(1 + i % 4)]",
    "st": "{'a': i, 'B b': {'c': [i]}}",
    "m": "map(['k' || i, 'z'], [i, NULL])",
    "f": "(i / 3)::FLOAT",
    "d": "CASE WHEN i % 10 = 0 THEN 'nan'::DOUBLE ELSE i / 3 END",
    "b": "i % 3 = 0",
}


def write_duckdb(rng: random.Random, path: Path) -> tuple[None, str]:
    rows = rng.choice([0, 1, 10, 3000])
    columns = []
    for name, sql in rng.sample(sorted(DUCKDB_COLUMNS.items()), 5):
        some = f"CASE WHEN i % {rng.randint(2, 9)} = 1 THEN NULL ELSE {sql} END"
        columns.append(f"{some if rng.random() < 0.5 else sql} AS {name}")
    codec = rng.choice(["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"])
    version = rng.choice(["v1", "v2"])
    sql = f"select {', '.join(columns)} from range({rows}) t(i)"
    options = f"format parquet, codec '{codec}', parquet_version {version}, row_group_size {rng.choice([2048, 100000])}"
    copy = f"copy ({sql}) to '{path}' ({options})"
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.execute(copy)
    return None, f"duckdb: {copy}"


def write_polars(rng: random.Random, table: pa.Table, path: Path, form: str) -> str:
    """Writes with polars' own types; columns that it does not support are omitted."""
    frame = polars.DataFrame()
    for name in table.column_names:
        if "+05:30" in str(table.schema.field(name).type):
            continue
        try:
            frame = frame.with_columns(polars.from_arrow(table.select([name])).to_series().alias(name))
        except BaseException as error:  # A panic of polars is not an Exception.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
    if not frame.columns:
        frame = polars.DataFrame({"a": [1, None, 3]})
    if form == "parquet":
        options = {
            "compression": rng.choice(["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]),
            "statistics": rng.choice([True, False, "full"]),
            "row_group_size": rng.choice([10, 100, 5000]),
        }
        frame.write_parquet(path, **options)
    else:
        levels = [polars.CompatLevel.oldest(), polars.CompatLevel.newest()]
        options = {"compression": rng.choice(["uncompressed", "lz4", "zstd"]), "compat_level": rng.choice(levels)}
        (frame.write_ipc if rng.random() < 0.5 else frame.write_ipc_stream)(path, **options)
    return f"polars {frame.schema} {options}"


def arrow(rng: random.Random, folder: Path, number: int) -> Case:
    """An Arrow IPC file or stream."""
    path = folder / f"t{number}.{rng.choice(['arrow', 'feather', 'ipc'])}"
    if rng.random() < 0.2:
        made = write_polars(rng, random_table(rng, arrow=False), path, "arrow")
    else:
        made = write_ipc(rng, random_table(rng, arrow=True), path)
    table = read_ipc(path)
    lacking = {f.name for f in table.schema if lacks(f.type)}
    return Case(path, made, judges={"pyarrow": columns_of(table)}, lacking=lacking, named=named(table.schema))


def write_ipc(rng: random.Random, table: pa.Table, path: Path) -> str:
    stream = rng.random() < 0.5
    options = {
        "compression": rng.choice([None, "lz4", "zstd"]),
        "emit_dictionary_deltas": rng.random() < 0.5,
        "unify_dictionaries": not stream or rng.random() < 0.3,
        "use_legacy_format": stream and rng.random() < 0.2,
    }
    cut = rng.choice([1, 7, 100, 5000]) if len(table) < 500 else rng.choice([100, 5000])
    batches = table.to_batches(max_chunksize=cut)
    if rng.random() < 0.3:
        batches.insert(rng.randint(0, len(batches)), drawn(rng, table.schema, 0))
    if stream and rng.random() < 0.5:
        # Later batches have other dictionaries: replacements, or deltas.
        batches += [drawn(rng, table.schema, len(batch)) for batch in batches[:3]]
    maker = pa.ipc.new_stream if stream else pa.ipc.new_file
    with maker(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return f"pyarrow {'stream' if stream else 'file'} {table.schema.to_string(show_schema_metadata=False)!r} {options} in {len(batches)} batches"


def drawn(rng: random.Random, schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Generates a batch of new values."""
    columns = [values.random_array(rng, f.type, rows, 0.2 if f.nullable else 0) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def read_ipc(path: Path) -> pa.Table:
    """Reads the table of an Arrow IPC file or stream."""
    with pa.OSFile(str(path)) as source:
        if source.read(6) == b"ARROW1":
            return pa.ipc.open_file(str(path)).read_all()
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_stream(source).read_all()


def columns_of(table: pa.Table) -> dict[str, list]:
    """Returns columns in plain form; repeated names get numbers as in Tessera."""
    found: dict[str, list] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        unique, count = name, 0
        while unique in found:
            count += 1
            unique = f"{name}_{count}"
        found[unique] = values.plain(column)
    return found


def ask_duckdb(sql: str) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        return connection.sql(sql).to_arrow_table()


def sets(rng: random.Random, folder: Path, number: int) -> Case:
    """Generates Parquet or Arrow files that form one table: columns are missing, reordered, or
    narrower."""
    form = rng.choice(["parquet", "parquet", "arrow"])
    home = folder / f"t{number}"
    home.mkdir(exist_ok=True)
    for old in home.iterdir():
        old.unlink()
    pairs = [
        (pa.int8(), pa.int64()),
        (pa.int16(), pa.int32()),
        (pa.uint8(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(12, 4)),
        (pa.string(), pa.large_string()),
        (pa.null(), pa.string()),
        (pa.int32(), pa.float64()),
        (pa.date32(), pa.date32()),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.binary(), pa.binary()),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
    ]
    names = rng.sample(["a", "b", "A", "c d"], rng.randint(2, 4))
    kinds = {name: rng.choice(pairs) for name in names}
    expected: dict[str, list] = {}
    total = 0
    for part in range(rng.randint(2, 4)):
        rows = rng.choice([0, 1, 50])
        here = [name for name in rng.sample(names, len(names)) if part == 0 or rng.random() < 0.8] or names[:1]
        if part == 0:
            here = list(names)
        table = pa.table({name: values.random_array(rng, rng.choice(kinds[name]), rows, 0.2) for name in here})
        path = home / f"p{part}.{form}"
        if form == "parquet":
            pq.write_table(table, path, row_group_size=rng.choice([7, 1000]))
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        found = columns_of(table)
        for name in names:
            expected.setdefault(name, []).extend(found.get(name, [None] * rows))
        total += rows
    # Numbers are equal regardless of their width.
    return Case(home, f"{form} files of {kinds}", judges={"made": expected}, loose=True)


def large(tessera, folder: Path) -> list[str]:
    """Returns problems with a row group of more than 2 GB of strings, plain and in a list, in a
    small file."""
    size, rows = 1 << 20, 2_300
    one = pa.array(["x" * size], pa.large_string())
    texts = pa.chunked_array([one] * rows)
    lists = pa.chunked_array([pa.LargeListArray.from_arrays(pa.array([0, 1], pa.int64()), one)] * rows)
    problems = []
    for name, column, text in [("plain", texts, "s"), ("list", lists, "s[1]")]:
        path, out = folder / f"large-{name}.parquet", folder / f"large-{name}.arrow"
        options = {
            "row_group_size": 10**9,
            "compression": "zstd",
            "use_dictionary": False,
            "data_page_size": 8 << 20,
            "write_batch_size": 8,
        }
        pq.write_table(pa.table({"i": range(rows), "s": column}), path, **options)
        sql = f"copy (select count(*) n, sum(length({text})) l, sum(i) i from '{path}') to '{out}'"
        _, said = tessera.run([sql], "--memory", "3GB", seconds=600)
        found = columns_of(read_ipc(out)) if out.exists() else None
        if found != {"n": [rows], "l": [rows * size], "i": [rows * (rows - 1) // 2]}:
            problems.append(f"more than 2 GB of strings in one row group, {name}: {found}: {said[:500]}")
    return problems
