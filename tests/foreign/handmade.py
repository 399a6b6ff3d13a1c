"""Handmade Parquet files: what the format allows but no available writer produces.

Lists of two and three levels and without annotation, maps with other names, all combinations of
required and optional, old and new annotations, pages of both versions, dictionaries at unusual
positions, and old, truncated, NaN or missing statistics.
"""

from __future__ import annotations

import math
import random
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from foreign import values
from foreign.pages import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    INT96,
    LIST,
    MAP,
    MAP_KEY_VALUE,
    OPTIONAL,
    REPEATED,
    REQUIRED,
    Leaf,
    Node,
    write_chunk,
)
from foreign.thrift import Bool, Byte, Long, encode


def integer(bits: int, signed: bool) -> Callable[[random.Random], int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return lambda rng: rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(0, 20)])


def wrapped(bits: int) -> Callable[[int], int]:
    """Returns a number as a signed number of the given width."""
    return lambda value: value - (1 << bits) if value >= 1 << (bits - 1) else value


def decimal(rng: random.Random, physical: int) -> Leaf:
    length = rng.choice([1, 4, 5, 8, 9, 12, 16]) if physical == FIXED else None
    most = {INT32: 9, INT64: 18, BYTE_ARRAY: 38}.get(physical) or min(38, int(math.log10(2 ** (8 * (length or 1) - 1))))
    precision = rng.randint(1, most)
    scale = rng.randint(0, precision)
    limit = 10**precision - 1
    draw = lambda rng: rng.choice([0, limit, -limit, rng.randint(-limit, limit)])
    write: Callable[[object], object] = lambda value: value
    if physical == FIXED:
        write = lambda value: value.to_bytes(length, "big", signed=True)
    elif physical == BYTE_ARRAY:
        write = lambda value: value.to_bytes(max(1, (value.bit_length() + 8) // 8), "big", signed=True)
    logical = rng.choice([None, {5: {1: scale, 2: precision}}])
    means = lambda value: values.number(Decimal((value < 0, tuple(map(int, str(abs(value)))), -scale)))
    return Leaf(physical, draw, means, write, length, 5, logical, scale, precision)


def int96(value: int) -> bytes:
    """Returns nanoseconds since 1970 as nanoseconds of the day and the Julian day."""
    day, within = divmod(value, 86_400 * 10**9)
    return struct.pack("<qi", within, day + 2_440_588)


def timestamp(rng: random.Random) -> Leaf:
    unit = rng.choice([1, 2, 3])
    scale = {1: 10**6, 2: 10**3, 3: 1}[unit]
    zoned = rng.random() < 0.5
    old = {1: 9, 2: 10}.get(unit) if rng.random() < 0.5 else None
    logical = {8: {1: Bool(zoned), 2: {unit: {}}}} if old is None or rng.random() < 0.7 else None
    # Without the new annotation it is a time in UTC.
    zoned = zoned if logical else True
    most = 4 * 10**18 // scale
    return Leaf(
        INT64,
        lambda rng: rng.choice([0, -1, rng.randint(-most, most)]),
        lambda v: ("timestamp", v * scale, zoned),
        converted=old,
        logical=logical,
    )


def time_of_day(rng: random.Random) -> Leaf:
    unit = rng.choice([1, 2, 3])
    per_day = 86_400 * {1: 10**3, 2: 10**6, 3: 10**9}[unit]
    scale = 86_400 * 10**9 // per_day
    old = {1: 7, 2: 8}.get(unit) if rng.random() < 0.5 else None
    logical = {7: {1: Bool(rng.random() < 0.5), 2: {unit: {}}}} if old is None or rng.random() < 0.7 else None
    physical = INT32 if unit == 1 else INT64
    return Leaf(
        physical,
        lambda rng: rng.choice([0, per_day - 1, rng.randrange(per_day)]),
        lambda v: ("time", v * scale, False),
        converted=old,
        logical=logical,
    )


def random_leaf(rng: random.Random) -> Leaf:
    same = lambda value: value
    text = lambda rng: rng.choice(values.WORDS)
    blob = lambda rng: rng.choice([b"", b"\xff\x00", rng.randbytes(rng.randint(0, 20))])
    raw = lambda value: value.encode()
    double = lambda rng: rng.choice([0.0, -0.0, math.nan, math.inf, 1.5, rng.uniform(-9, 9)])
    half = lambda value: struct.pack("<e", value)
    choices: list[Callable[[], Leaf]] = [
        lambda: Leaf(BOOLEAN, lambda rng: rng.random() < 0.5),
        lambda: Leaf(INT32, integer(32, True)),
        lambda: Leaf(INT64, integer(64, True)),
        lambda: Leaf(FLOAT, lambda rng: struct.unpack("f", struct.pack("f", double(rng)))[0]),
        lambda: Leaf(DOUBLE, double),
        lambda: Leaf(BYTE_ARRAY, text, same, raw, converted=0),
        lambda: Leaf(BYTE_ARRAY, text, same, raw, logical={1: {}}),
        lambda: Leaf(BYTE_ARRAY, text, same, raw, converted=4, logical=rng.choice([None, {4: {}}])),
        lambda: Leaf(
            BYTE_ARRAY,
            lambda rng: rng.choice(['{"a": 1}', "[1, null]", '"x"']),
            same,
            raw,
            converted=19,
            logical=rng.choice([None, {12: {}}]),
        ),
        lambda: Leaf(BYTE_ARRAY, blob, converted=rng.choice([None, 20])),
        lambda: Leaf(FIXED, lambda rng: rng.randbytes(5), length=5),
        lambda: Leaf(FIXED, lambda rng: rng.randbytes(16), lambda v: str(uuid.UUID(bytes=v)), length=16, logical={14: {}}),
        lambda: Leaf(
            FIXED,
            lambda rng: struct.unpack("<e", half(rng.choice([0.0, -1.5, 0.25, math.inf, math.nan])))[0],
            same,
            half,
            2,
            logical={15: {}},
            ordered=False,
        ),
        lambda: Leaf(
            FIXED,
            lambda rng: (rng.randint(0, 40), rng.randint(0, 50), rng.randint(0, 10**8)),
            lambda v: ("interval", v[0], v[1], v[2] * 10**6),
            lambda v: struct.pack("<III", *v),
            12,
            21,
            ordered=False,
        ),
        lambda: Leaf(
            INT96,
            lambda rng: rng.choice(
                [0, rng.randint(-(10**18), 4 * 10**18) // 1000 * 1000, 253_402_300_799 * 10**9, -62_135_596_800 * 10**9]
            ),
            lambda v: ("timestamp", v, False),
            int96,
            ordered=False,
        ),
        lambda: Leaf(
            INT32,
            lambda rng: rng.choice([0, -1, rng.randint(-700_000, 2_900_000)]),
            lambda v: ("date", v),
            converted=6,
            logical=rng.choice([None, {6: {}}]),
        ),
        lambda: timestamp(rng),
        lambda: time_of_day(rng),
        lambda: decimal(rng, rng.choice([INT32, INT64, FIXED, BYTE_ARRAY])),
    ]
    bits = rng.choice([8, 16, 32, 64])
    signed = rng.random() < 0.4
    logical = {10: {1: Byte(bits), 2: Bool(signed)}}
    converted = {8: 11, 16: 12, 32: 13, 64: 14}[bits] + (4 if signed else 0)
    told = rng.choice([(converted, None), (None, logical), (converted, logical)])
    annotated = lambda: Leaf(
        INT64 if bits == 64 else INT32,
        integer(bits, signed),
        same,
        wrapped(64 if bits == 64 else 32) if not signed else same,
        None,
        *told,
    )
    return rng.choice([*choices, annotated, annotated])()


@dataclass
class Column:
    """A root column: its nodes, a generator of a row's value, and the expected value."""

    node: Node
    draw: Callable[[random.Random], object]
    means: Callable[[object], object]


def flat(rng: random.Random, name: str, leaf: Leaf, repetition: int | None = None) -> Column:
    """A field without children; a repeated one is a list without NULLs."""
    repetition = repetition if repetition is not None else rng.choice([REQUIRED, OPTIONAL, OPTIONAL])
    draw, means = leaf.draw, leaf.means
    if repetition == OPTIONAL:
        nulls = rng.choice([0, 0.2, 1])
        return Column(
            Node(name, OPTIONAL, leaf=leaf),
            lambda rng: None if rng.random() < nulls else draw(rng),
            lambda v: None if v is None else means(v),
        )
    if repetition == REPEATED:
        return Column(
            Node(name, REPEATED, leaf=leaf),
            lambda rng: [draw(rng) for _ in range(rng.choice([0, 0, 1, 3]))],
            lambda v: tuple(map(means, v)),
        )
    return Column(Node(name, REQUIRED, leaf=leaf), draw, means)


def group(rng: random.Random, name: str, fields: list[Column], repetition: int | None = None) -> Column:
    """A struct; a repeated one is a list of structs."""
    repetition = repetition if repetition is not None else rng.choice([REQUIRED, OPTIONAL])
    draw_one = lambda rng: {column.node.name: column.draw(rng) for column in fields}
    mean_one = lambda v: tuple((column.node.name, column.means(v[column.node.name])) for column in fields)
    node = Node(name, repetition, [column.node for column in fields])
    if repetition == REPEATED:
        return Column(
            node, lambda rng: [draw_one(rng) for _ in range(rng.choice([0, 1, 2]))], lambda v: tuple(map(mean_one, v))
        )
    if repetition == OPTIONAL:
        return Column(
            node,
            lambda rng: None if rng.random() < 0.3 else draw_one(rng),
            lambda v: None if v is None else mean_one(v),
        )
    return Column(node, draw_one, mean_one)


def annotated_list(rng: random.Random, name: str, element: Callable[[str], Column]) -> Column:
    """A list of three levels, or of two as old writers produce it."""
    outer = rng.choice([REQUIRED, OPTIONAL])
    lengths = lambda rng: rng.choice([0, 0, 1, 2, 5])
    told = rng.choice([{"converted": LIST}, {"converted": LIST, "logical": {3: {}}}, {"logical": {3: {}}}])
    if rng.random() < 0.4:
        # Two levels: the repeated field is the element itself, which is never NULL.
        leaf = random_leaf(rng)
        inner = Node(rng.choice(["array", "element", f"{name}_tuple", "item"]), REPEATED, leaf=leaf)
        draw_list = lambda rng: [leaf.draw(rng) for _ in range(lengths(rng))]
        mean_list = lambda v: tuple(map(leaf.means, v))
        wrap = lambda v: {inner.name: v}
    else:
        item = element(rng.choice(["element", "item", "array_element", "bag", "x"]))
        inner = Node(rng.choice(["list", "bag", "my list"]), REPEATED, [item.node])
        draw_list = lambda rng: [item.draw(rng) for _ in range(lengths(rng))]
        mean_list = lambda v: tuple(map(item.means, v))
        wrap = lambda v: {inner.name: [{item.node.name: value} for value in v]}
    node = Node(name, outer, [inner], **told)
    return wrapping(node, draw_list, mean_list, wrap)


def wrapping(node: Node, draw_one: Callable, mean_one: Callable, wrap: Callable) -> Column:
    """A column whose stored form differs from the generated value."""
    draw = lambda rng: None if node.repetition == OPTIONAL and rng.random() < 0.25 else Drawn(draw_one(rng), wrap)
    return Column(node, draw, lambda v: None if v is None else mean_one(v.value))


class Drawn:
    """A value, and the groups that represent it."""

    def __init__(self, value: object, wrap: Callable) -> None:
        self.value = value
        self.groups = wrap(value)

    def __getitem__(self, name: str) -> object:
        return self.groups[name]


def annotated_map(rng: random.Random, name: str, item: Callable[[str], Column]) -> Column:
    key = flat(
        rng,
        rng.choice(["key", "k", "the key"]),
        Leaf(BYTE_ARRAY, lambda rng: rng.choice("abcdefgh"), lambda v: v, lambda v: v.encode(), converted=0),
        REQUIRED,
    )
    value = item(rng.choice(["value", "v", "item"]))
    inner = Node(
        rng.choice(["key_value", "map", "entries"]),
        REPEATED,
        [key.node, value.node],
        converted=rng.choice([None, MAP_KEY_VALUE]),
    )
    told = rng.choice([{"converted": MAP}, {"converted": MAP, "logical": {2: {}}}, {"logical": {2: {}}}])
    node = Node(name, rng.choice([REQUIRED, OPTIONAL]), [inner], **told)
    draw_map = lambda rng: [(k, value.draw(rng)) for k in rng.sample("abcdefgh", rng.choice([0, 1, 3]))]
    wrap = lambda v: {inner.name: [{key.node.name: k, value.node.name: item} for k, item in v]}
    return wrapping(node, draw_map, lambda v: tuple((k, value.means(item)) for k, item in v), wrap)


def random_column(rng: random.Random, name: str, depth: int = 2) -> Column:
    inner = lambda inner_name: random_column(rng, inner_name, depth - 1)
    roll = rng.random() if depth > 0 else 0
    if roll < 0.55:
        return flat(rng, name, random_leaf(rng))
    if roll < 0.63:
        return flat(rng, name, random_leaf(rng), REPEATED) if depth == 2 else flat(rng, name, random_leaf(rng))
    if roll < 0.7:
        return group(rng, name, [inner("x"), inner("Y y")], REPEATED if depth == 2 and rng.random() < 0.4 else None)
    if roll < 0.9:
        return annotated_list(rng, name, inner)
    return annotated_map(rng, name, inner)


def parquet(rng: random.Random, folder: Path, number: int):
    """Returns a file of a few columns."""
    from foreign.typed import Case

    names = rng.sample(["a", "B", "c c", "d", "é", "A", "x", "X"], rng.randint(1, 5))
    columns = [random_column(rng, name) for name in names]
    for column in columns:
        column.node.place([], 0, 0)
    content, judge, groups = b"PAR1", {name: [] for name in names}, []
    for rows in [rng.choice([0, 1, 3, 60, 500]) for _ in range(rng.choice([0, 1, 1, 1, 3]))]:
        chunks, total = [], 0
        for column in columns:
            for leaf in column.node.leaves():
                leaf.levels, leaf.found = [], []
            drawn = [column.draw(rng) for _ in range(rows)]
            judge[column.node.name] += map(column.means, drawn)
            for value in drawn:
                column.node.shred(value, 0, 0)
            for leaf in column.node.leaves():
                written, chunk = write_chunk(rng, leaf, len(content))
                content += written
                total += len(written)
                chunks.append(chunk)
        groups.append({1: chunks, 2: Long(total), 3: Long(rows)})
    root = {4: rng.choice(["schema", "root", ""]), 5: len(columns)}
    footer = {
        1: rng.choice([1, 2]),
        2: [root] + [element for column in columns for element in column.node.elements()],
        3: Long(sum(group[3] for group in groups)),
        4: groups,
        6: rng.choice([None, "parquet-mr version 1.8.0 (build abc)", "impala version 1.3.0", "somebody"]),
        7: rng.choice([None, [{1: {}}] * sum(len(column.node.leaves()) for column in columns)]),
    }
    footer_bytes = encode(footer)
    path = folder / f"t{number}.parquet"
    path.write_bytes(content + footer_bytes + struct.pack("<I", len(footer_bytes)) + b"PAR1")
    made = "by hand: " + "; ".join(map(shape, (column.node for column in columns)))
    return Case(path, made, judges={"made": judge})


def shape(node: Node) -> str:
    word = ["required", "optional", "repeated"][node.repetition]
    if node.leaf:
        leaf = node.leaf
        return f"{word} {node.name!r} physical {leaf.physical} converted {leaf.converted} logical {leaf.logical}"
    return f"{word} group {node.name!r} converted {node.converted} logical {node.logical} ({', '.join(map(shape, node.children))})"
