#!/usr/bin/env python3
"""Tests damaged files: many mutated inputs, read in little memory, must return rows or an error.

    tests/damaged.py --tessera target/release/tessera [--mutations N] [--seed S] [--inputs FOLDER]
                     [--only NAME] [--golden N]

Inputs are the files of --inputs, the files under 100 KB that tests/files.py generates, and files of
rare types. Each is mutated --mutations times: bits and bytes are flipped, ends are cut, parts
are copied from elsewhere, lengths and counts are replaced by extreme values. One process reads many
mutations, one statement each. Rows, or an error that names the file, are good. Bad outcomes are an
internal error, a panic, an abort, no end within ten seconds, memory above the budget, and an error
that does not name the file. A bad outcome is printed with a command that repeats it, and its file is
written to --keep. The long form is --mutations 10000.
"""

from __future__ import annotations

import argparse
import bz2
import collections
import lzma
import os
import random
import shutil
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from foreign import mutate
from program import Program, judged

LARGEST = 100_000
# Statements in flight: a round trip between two processes on busy cores takes longer than a small
# file.
TOGETHER = 50
TEXT = {".csv", ".json", ".tsv", ".jsonl", ".ndjson", ".txt"}
PACKED = {".gz", ".zst", ".bz2", ".xz"}
FORMATS = ["arrow", "parquet", "handmade", "csv", "json"]


@dataclass
class Input:
    """An input file to damage, and how it is read."""

    name: str
    content: bytes
    suffix: str
    reader: str = ""
    options: str = ""
    columns: list[str] = field(default_factory=list)

    def source(self, path: Path) -> str:
        return f"{self.reader}('{path}'{self.options})" if self.reader else f"'{path}'"

    def is_text(self) -> bool:
        return self.suffix.split(".")[1] in {kind[1:] for kind in TEXT} if self.suffix.count(".") == 1 else False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", required=True)
    parser.add_argument("--mutations", type=int, default=60, help="of each input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=Path, action="append", default=[], help="a folder of files to damage")
    parser.add_argument("--golden", type=int, default=40, help="files generated for each format")
    parser.add_argument("--only", help="inputs whose name holds this")
    parser.add_argument("--first", type=int, default=0, help="the first mutation")
    parser.add_argument("--keep", type=Path, help="a folder in which files of bad outcomes stay")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", type=int, default=3, help="bad outcomes of each kind that are printed")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    inputs = found(options.inputs) + odd() + made(options.golden, options.seed)
    everything = inputs
    if options.only:
        exact = [one for one in inputs if one.name == options.only]
        inputs = exact or [one for one in inputs if options.only in one.name]
    counts: collections.Counter = collections.Counter()
    bad: dict[str, list[str]] = collections.defaultdict(list)
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=home) as folder, ThreadPoolExecutor(options.jobs) as pool:
        run = lambda one: damage(options, Path(folder), one, [other.content for other in everything if alike(one, other)])
        for one, outcomes in zip(inputs, pool.map(run, inputs), strict=True):
            for kind, message in outcomes:
                counts[kind] += 1
                if message:
                    bad[kind].append(message)
            if options.mutations >= 1000:
                print(f"{one.name}: {collections.Counter(kind for kind, _ in outcomes)}", flush=True)
    for kind, messages in bad.items():
        for message in messages[: options.show]:
            print(f"FAILED: {kind}: {message}")
    print(f"{len(inputs)} inputs, {sum(counts.values())} mutations: {dict(counts)}")
    return 1 if bad else 0


def alike(one: Input, other: Input) -> bool:
    return one.suffix == other.suffix and one is not other


def found(folders: list[Path]) -> list[Input]:
    """Returns the files of folders."""
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [
        Input(str(path).replace("/", "-").strip("-"), path.read_bytes(), "".join(path.suffixes))
        for path in files
        if path.suffix in {".arrow", ".parquet", ".xlsx", *TEXT, *PACKED} and path.stat().st_size < LARGEST
    ]


def odd() -> list[Input]:
    """Returns Arrow and Parquet files of rare types, packed texts, and workbooks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ["a", None, "longer than twelve bytes", ""]
    kinds = pa.array([0, 1, 0, 1], pa.int8())
    numbers, halves = pa.array([1, 2, 3, 4]), pa.array([0.5, 1.5, 2.5, 3.5])
    columns = {
        "sparse": pa.UnionArray.from_sparse(kinds, [numbers, halves]),
        "dense": pa.UnionArray.from_dense(kinds, pa.array([0, 0, 1, 1], pa.int32()), [numbers, halves]),
        "words": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["x", None, "y"])),
        "views": pa.array(texts, pa.string_view()),
        "bytes": pa.array([text and text.encode() for text in texts], pa.binary_view()),
        "lists": pa.array([[1], [], None, [2, None]], pa.list_view(pa.int32())),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([3, 4], pa.int32()), pa.array(["r", None])),
        "maps": pa.array([[("k", 1)], [], None, [("l", None)]], pa.map_(pa.string(), pa.int64())),
        "pairs": pa.array([[1, 2], None, [3, 4], [5, None]], pa.list_(pa.int16(), 2)),
        "structs": pa.array([{"f": 1, "g": ["x"]}, None, {"f": None, "g": []}, {"f": 2, "g": None}]),
        "wide": pa.array([1, None, 3, 4], pa.decimal256(60, 2)),
        "none": pa.nulls(4),
    }
    inputs = []
    for codec in (None, "lz4", "zstd"):
        for name, maker in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
            for of, chosen in [("all", [*columns]), *((column, [column]) for column in columns)]:
                if of != "all" and (codec or name == "stream"):
                    continue
                table = pa.table({column: columns[column] for column in chosen})
                sink = pa.BufferOutputStream()
                with maker(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
                    writer.write_table(table, max_chunksize=3)
                content = sink.getvalue().to_pybytes()
                inputs.append(Input(f"odd-{name}-{codec}-{of}", content, ".arrow", columns=chosen))
    unread = {"sparse", "dense", "words", "views", "bytes", "lists", "runs"}
    table = pa.table({name: column for name, column in columns.items() if name not in unread})
    for version in ("1.0", "2.0"):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="none", data_page_version=version, write_page_index=True)
        content = sink.getvalue().to_pybytes()
        inputs.append(Input(f"odd-parquet-{version}", content, ".parquet", columns=table.column_names))
    return inputs + packed() + books()


def packed() -> list[Input]:
    """Returns texts that are compressed as a whole, and read with and without errors."""
    text = b"i,t\n" + b"".join(b"%d,text %d\n" % (i, i * i % 9_973) for i in range(2_000))
    delta = [{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 1}]
    two = bz2.compress(text[:9_000]) + bz2.compress(text[9_000:])
    lenient = ", ignore_errors = true, columns = {'i': 'int', 't': 'varchar'}"
    return [
        Input("odd-bz2", bz2.compress(text), ".csv.bz2", columns=["i", "t"]),
        Input("odd-bz2-two", two, ".csv.bz2", columns=["i", "t"]),
        Input("odd-xz", lzma.compress(text), ".csv.xz", columns=["i", "t"]),
        Input("odd-xz-delta", lzma.compress(text, filters=delta, check=lzma.CHECK_SHA256), ".csv.xz", columns=["i", "t"]),
        Input("odd-lenient", text[:20_000], ".csv", "read_csv", lenient, ["i", "t"]),
        Input("odd-json-lenient", b'{"a":1,"b":[1]}\n{"a":2}\n' * 200, ".json", "read_json", ", ignore_errors = true", ["a"]),
    ]


def books() -> list[Input]:
    """Returns workbooks: as they are, and with parts that are not compressed, so that damage reaches the XML."""
    import messy_cases
    import workbooks

    inputs = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.xlsx"
        for name in ("Main", "texts", "off", "errors"):
            for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
                workbooks.write(path, {name: messy_cases.SHEETS[name]}, compression)
                for options in ("", ", ignore_errors = true"):
                    inputs.append(Input(f"odd-xlsx-{name}-{compression}-{len(options)}", path.read_bytes(), ".xlsx", "read_xlsx", options))
    return inputs


def made(count: int, seed: int) -> list[Input]:
    """Returns the small files among those of tests/files.py."""
    if count == 0:
        return []
    import files

    inputs = []
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMATS:
            for number in range(count):
                case = files.made(form, seed, number, Path(folder))
                if case.path.is_file() and case.path.stat().st_size < LARGEST:
                    name = f"{form}-{number}"
                    columns = [name for name in next(iter(case.judges.values()), {}) if name.isalnum()]
                    suffix = "".join(case.path.suffixes)
                    inputs.append(Input(name, case.path.read_bytes(), suffix, case.reader, case.options, columns))
    return inputs


def damage(options: argparse.Namespace, folder: Path, one: Input, others: list[bytes]) -> list[tuple[str, str]]:
    """Runs all mutations of an input; returns the outcomes, and the bad ones with a message."""
    program, outcomes = Program(options.tessera), []
    numbers = range(options.first, options.first + options.mutations)
    try:
        for start in range(0, len(numbers), TOGETHER):
            mutations = [Mutation(options.seed, one, others, folder, number) for number in numbers[start : start + TOGETHER]]
            for mutation, (kind, said) in zip(mutations, program.ask_all([mutation.sql for mutation in mutations]), strict=True):
                kind = kind or judged(said, str(mutation.path))
                message = ""
                if kind not in GOOD:
                    again = f"--seed {options.seed} --only {one.name} --first {mutation.number} --mutations 1"
                    message = f"{one.name} with {mutation.done}: {said[-700:]}\n  again: {again}"
                    if options.keep:
                        shutil.copy(mutation.path, options.keep)
                outcomes.append((kind, message))
                mutation.path.unlink()
    finally:
        program.end()
    return outcomes


class Mutation:
    """A damaged file, and a statement that reads it."""

    def __init__(self, seed: int, one: Input, others: list[bytes], folder: Path, number: int) -> None:
        rng = random.Random(f"{seed}:{one.name}:{number}")
        self.number = number
        self.done, content = mutate.mutated(rng, one.content, others, one.is_text())
        self.path = folder / f"{one.name}-{number}{one.suffix}"
        self.path.write_bytes(content)
        self.sql = statement(rng, one, self.path)


GOOD = {"rows", "error"}


def statement(rng: random.Random, one: Input, path: Path) -> str:
    """Returns a statement that usually reads the whole file, and sometimes reads it in another
    way."""
    source, some = one.source(path), rng.random()
    if some < 0.15:
        return f"select count(*) from {source}"
    if some < 0.35 and one.columns:
        column = rng.choice(one.columns)
        rest = [f"where {column} is not null", f"order by {column} limit 3", f"where {column} is null limit 5"]
        return f'select {column} from {source} {rng.choice(rest)}'
    return f"select * from {source}"


if __name__ == "__main__":
    sys.exit(main())
