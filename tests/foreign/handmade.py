"""Parquet files made byte by byte: what the format allows and no writer at hand makes.

Lists of two and three levels and without an annotation, maps under other names, every combination of required and optional,
old annotations and new ones, pages of both versions, dictionaries at odd places, statistics that are old, cut, NaN or missing.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from foreign import values
from foreign.thrift import Bool, Byte, Long, encode, varint

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
REQUIRED, OPTIONAL, REPEATED = range(3)
CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4_raw", 6: "zstd", 7: "lz4_raw"}
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY, BYTE_STREAM_SPLIT = 0, 2, 3, 8, 9
MAP, MAP_KEY_VALUE, LIST = 1, 2, 3


@dataclass
class Leaf:
    """A physical type with what is said of it, and its values."""

    physical: int
    draw: Callable[[random.Random], object]
    # What a reader must give for a value that was drawn.
    means: Callable[[object], object] = lambda value: value
    # What is written for it.
    write: Callable[[object], object] = lambda value: value
    length: int | None = None
    converted: int | None = None
    logical: dict | None = None
    scale: int | None = None
    precision: int | None = None
    # Whether statistics of the type are well defined, and how its values are ordered.
    ordered: bool = True


@dataclass
class Node:
    """A column, or a part of one."""

    name: str
    repetition: int
    children: list[Node] = field(default_factory=list)
    leaf: Leaf | None = None
    converted: int | None = None
    logical: dict | None = None
    definition: int = 0
    repeated: int = 0
    path: list[str] = field(default_factory=list)
    levels: list[tuple[int, int]] = field(default_factory=list)
    found: list[object] = field(default_factory=list)

    def place(self, path: list[str], definition: int, repeated: int) -> None:
        """Fills in paths and levels of the column."""
        self.path = [*path, self.name]
        self.definition = definition + (self.repetition != REQUIRED)
        self.repeated = repeated + (self.repetition == REPEATED)
        for child in self.children:
            child.place(self.path, self.definition, self.repeated)

    def leaves(self) -> list[Node]:
        return [self] if self.leaf else [leaf for child in self.children for leaf in child.leaves()]

    def shred(self, value: object, repeated: int, definition: int) -> None:
        """Adds a value's levels: of a group a dict, of a repeated field a list."""
        if self.repetition == REQUIRED:
            self.shred_one(value, repeated, definition)
        elif value is None or value == [] and self.repetition == REPEATED:
            for leaf in self.leaves():
                leaf.levels.append((repeated, definition))
        elif self.repetition == OPTIONAL:
            self.shred_one(value, repeated, definition + 1)
        else:
            for position, item in enumerate(value):
                self.shred_one(item, repeated if position == 0 else self.repeated, definition + 1)

    def shred_one(self, value: object, repeated: int, definition: int) -> None:
        if self.leaf:
            self.levels.append((repeated, definition))
            self.found.append(value)
        else:
            for child in self.children:
                child.shred(value[child.name], repeated, definition)

    def elements(self) -> list[dict]:
        """The column in the schema of a file's footer."""
        leaf = self.leaf or Leaf(0, lambda rng: None)
        element = {3: self.repetition, 4: self.name, 6: self.converted, 10: self.logical}
        if self.leaf:
            element |= {1: leaf.physical, 2: leaf.length, 6: leaf.converted, 7: leaf.scale, 8: leaf.precision, 10: leaf.logical}
        else:
            element |= {5: len(self.children)}
        return [element] + [below for child in self.children for below in child.elements()]


def integer(bits: int, signed: bool) -> Callable[[random.Random], int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return lambda rng: rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(0, 20)])


def wrapped(bits: int) -> Callable[[int], int]:
    """A number as a signed one of as many bits."""
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
    """Nanoseconds since 1970 as nanoseconds of a day, and the Julian day."""
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
    return Leaf(INT64, lambda rng: rng.choice([0, -1, rng.randint(-most, most)]), lambda v: ("timestamp", v * scale, zoned), converted=old, logical=logical)


def time_of_day(rng: random.Random) -> Leaf:
    unit = rng.choice([1, 2, 3])
    per_day = 86_400 * {1: 10**3, 2: 10**6, 3: 10**9}[unit]
    scale = 86_400 * 10**9 // per_day
    old = {1: 7, 2: 8}.get(unit) if rng.random() < 0.5 else None
    logical = {7: {1: Bool(rng.random() < 0.5), 2: {unit: {}}}} if old is None or rng.random() < 0.7 else None
    physical = INT32 if unit == 1 else INT64
    return Leaf(physical, lambda rng: rng.choice([0, per_day - 1, rng.randrange(per_day)]), lambda v: ("time", v * scale, False), converted=old, logical=logical)


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
        lambda: Leaf(BYTE_ARRAY, lambda rng: rng.choice(['{"a": 1}', "[1, null]", '"x"']), same, raw, converted=19, logical=rng.choice([None, {12: {}}])),
        lambda: Leaf(BYTE_ARRAY, blob, converted=rng.choice([None, 20])),
        lambda: Leaf(FIXED, lambda rng: rng.randbytes(5), length=5),
        lambda: Leaf(FIXED, lambda rng: rng.randbytes(16), length=16, logical={14: {}}),
        lambda: Leaf(FIXED, lambda rng: struct.unpack("<e", half(rng.choice([0.0, -1.5, 0.25, math.inf, math.nan])))[0], same, half, 2, logical={15: {}}, ordered=False),
        lambda: Leaf(FIXED, lambda rng: (rng.randint(0, 40), rng.randint(0, 50), rng.randint(0, 10**8)), lambda v: ("interval", v[0], v[1], v[2] * 10**6), lambda v: struct.pack("<III", *v), 12, 21, ordered=False),
        lambda: Leaf(INT96, lambda rng: rng.choice([0, rng.randint(-(10**18), 4 * 10**18) // 1000 * 1000, 253_402_300_799 * 10**9, -62_135_596_800 * 10**9]), lambda v: ("timestamp", v, False), int96, ordered=False),
        lambda: Leaf(INT32, lambda rng: rng.choice([0, -1, rng.randint(-700_000, 2_900_000)]), lambda v: ("date", v), converted=6, logical=rng.choice([None, {6: {}}])),
        lambda: timestamp(rng),
        lambda: time_of_day(rng),
        lambda: decimal(rng, rng.choice([INT32, INT64, FIXED, BYTE_ARRAY])),
    ]
    bits = rng.choice([8, 16, 32, 64])
    signed = rng.random() < 0.4
    logical = {10: {1: Byte(bits), 2: Bool(signed)}}
    converted = {8: 11, 16: 12, 32: 13, 64: 14}[bits] + (4 if signed else 0)
    told = rng.choice([(converted, None), (None, logical), (converted, logical)])
    annotated = lambda: Leaf(INT64 if bits == 64 else INT32, integer(bits, signed), same, wrapped(64 if bits == 64 else 32) if not signed else same, None, *told)
    return rng.choice([*choices, annotated, annotated])()


@dataclass
class Column:
    """A root column: its nodes, how a row's value is drawn, and what it means."""

    node: Node
    draw: Callable[[random.Random], object]
    means: Callable[[object], object]


def flat(rng: random.Random, name: str, leaf: Leaf, repetition: int | None = None) -> Column:
    """A field without children; a repeated one is a list without NULLs."""
    repetition = repetition if repetition is not None else rng.choice([REQUIRED, OPTIONAL, OPTIONAL])
    draw, means = leaf.draw, leaf.means
    if repetition == OPTIONAL:
        nulls = rng.choice([0, 0.2, 1])
        return Column(Node(name, OPTIONAL, leaf=leaf), lambda rng: None if rng.random() < nulls else draw(rng), lambda v: None if v is None else means(v))
    if repetition == REPEATED:
        return Column(Node(name, REPEATED, leaf=leaf), lambda rng: [draw(rng) for _ in range(rng.choice([0, 0, 1, 3]))], lambda v: tuple(map(means, v)))
    return Column(Node(name, REQUIRED, leaf=leaf), draw, means)


def group(rng: random.Random, name: str, fields: list[Column], repetition: int | None = None) -> Column:
    """A struct; a repeated one is a list of structs."""
    repetition = repetition if repetition is not None else rng.choice([REQUIRED, OPTIONAL])
    draw_one = lambda rng: {column.node.name: column.draw(rng) for column in fields}
    mean_one = lambda v: tuple((column.node.name, column.means(v[column.node.name])) for column in fields)
    node = Node(name, repetition, [column.node for column in fields])
    if repetition == REPEATED:
        return Column(node, lambda rng: [draw_one(rng) for _ in range(rng.choice([0, 1, 2]))], lambda v: tuple(map(mean_one, v)))
    if repetition == OPTIONAL:
        return Column(node, lambda rng: None if rng.random() < 0.3 else draw_one(rng), lambda v: None if v is None else mean_one(v))
    return Column(node, draw_one, mean_one)


def annotated_list(rng: random.Random, name: str, element: Callable[[str], Column]) -> Column:
    """A list of three levels, or of two as old writers have it."""
    outer = rng.choice([REQUIRED, OPTIONAL])
    lengths = lambda rng: rng.choice([0, 0, 1, 2, 5])
    told = rng.choice([{"converted": LIST}, {"converted": LIST, "logical": {3: {}}}, {"logical": {3: {}}}])
    if rng.random() < 0.4:
        # Two levels: the repeated field is the element itself, and never NULL.
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
    """A column whose written form is another than the value that was drawn."""
    draw = lambda rng: None if node.repetition == OPTIONAL and rng.random() < 0.25 else Drawn(draw_one(rng), wrap)
    return Column(node, draw, lambda v: None if v is None else mean_one(v.value))


class Drawn:
    """A value, and the groups that it is written as."""

    def __init__(self, value: object, wrap: Callable) -> None:
        self.value = value
        self.groups = wrap(value)

    def __getitem__(self, name: str) -> object:
        return self.groups[name]


def annotated_map(rng: random.Random, name: str, item: Callable[[str], Column]) -> Column:
    key = flat(rng, rng.choice(["key", "k", "the key"]), Leaf(BYTE_ARRAY, lambda rng: rng.choice("abcdefgh"), lambda v: v, lambda v: v.encode(), converted=0), REQUIRED)
    value = item(rng.choice(["value", "v", "item"]))
    inner = Node(rng.choice(["key_value", "map", "entries"]), REPEATED, [key.node, value.node], converted=rng.choice([None, MAP_KEY_VALUE]))
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
    """A file of a few columns."""
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


def write_chunk(rng: random.Random, node: Node, offset: int) -> tuple[bytes, dict]:
    """The pages of a leaf, and what the footer says of them."""
    leaf = node.leaf
    codec = rng.choice(list(CODECS))
    version = rng.choice([1, 2])
    stored = [leaf.write(value) for value in node.found]
    with_dictionary = leaf.physical != BOOLEAN and stored and rng.random() < 0.4
    distinct = list({plain_bytes(leaf, value): value for value in stored}.values())
    pages, dictionary_len, encodings = b"", 0, {RLE}
    if with_dictionary:
        old = rng.random() < 0.5
        body = b"".join(plain_bytes(leaf, value) for value in distinct)
        compressed = compress(codec, body)
        encoding = PLAIN_DICTIONARY if old else PLAIN
        encodings |= {PLAIN_DICTIONARY if old else RLE_DICTIONARY, encoding}
        pages += encode({1: 2, 2: len(body), 3: len(compressed), 7: {1: len(distinct), 2: encoding}}) + compressed
        dictionary_len = len(pages)
    position, taken = 0, 0
    levels = node.levels
    while position < len(levels) or not levels and not pages:
        size = rng.choice([1, 20, 10_000])
        end = min(len(levels), position + size)
        # A page of the second version begins with a row; so do ours of the first.
        while end < len(levels) and levels[end][0] != 0:
            end += 1
        part = levels[position:end]
        count = sum(level == node.definition for _, level in part)
        values_here = stored[taken : taken + count]
        taken += count
        if with_dictionary:
            index = {plain_bytes(leaf, value): i for i, value in enumerate(distinct)}
            width = max(1, (len(distinct) - 1).bit_length())
            body = bytes([width]) + hybrid([index[plain_bytes(leaf, value)] for value in values_here], width, rng)
            encoding = PLAIN_DICTIONARY if old else RLE_DICTIONARY
        elif leaf.physical == BOOLEAN and rng.random() < 0.5:
            run = hybrid([int(value) for value in values_here], 1, rng)
            body, encoding = struct.pack("<I", len(run)) + run, RLE
        elif leaf.physical == BOOLEAN:
            bits = [*values_here, *[False] * (-len(values_here) % 8)]
            body = bytes(sum(bit << i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8))
            encoding = PLAIN
        elif leaf.physical in (INT32, INT64, FLOAT, DOUBLE, FIXED) and rng.random() < 0.3:
            width = len(plain_bytes(leaf, values_here[0])) if values_here else 0
            raw = [plain_bytes(leaf, value) for value in values_here]
            body, encoding = b"".join(bytes(value[i] for value in raw) for i in range(width)), BYTE_STREAM_SPLIT
        else:
            body, encoding = b"".join(plain_bytes(leaf, value) for value in values_here), PLAIN
        encodings.add(encoding)
        repeated = hybrid([r for r, _ in part], node.repeated.bit_length(), rng) if node.repeated else b""
        defined = hybrid([d for _, d in part], node.definition.bit_length(), rng) if node.definition else b""
        if version == 1:
            sized = lambda run: struct.pack("<I", len(run)) + run if run or part == [] else b""
            head = (sized(repeated) if node.repeated else b"") + (sized(defined) if node.definition else b"")
            compressed = compress(codec, head + body)
            header = {1: 0, 2: len(head + body), 3: len(compressed), 5: {1: len(part), 2: encoding, 3: RLE, 4: RLE}}
            pages += encode(header) + compressed
        else:
            packed = codec != 0 and rng.random() < 0.7
            squeezed = compress(codec, body) if packed else body
            rows = sum(r == 0 for r, _ in part)
            second = {1: len(part), 2: len(part) - count, 3: rows, 4: encoding, 5: len(defined), 6: len(repeated)}
            # What is not said is that it is compressed.
            second[7] = Bool(packed) if not packed or rng.random() < 0.5 else None
            extra = len(defined) + len(repeated)
            pages += encode({1: 3, 2: extra + len(body), 3: extra + len(squeezed), 8: second}) + repeated + defined + squeezed
        position = end
        if not levels:
            break
    where = offset + dictionary_len
    dictionary_offset = Long(offset) if with_dictionary else rng.choice([None, None, Long(0)])
    if with_dictionary and rng.random() < 0.2:
        # Old writers: the dictionary is the first of the data pages.
        dictionary_offset, where = rng.choice([None, Long(0)]), offset
    metadata = {
        1: leaf.physical, 2: sorted(encodings), 3: node.path, 4: codec, 5: Long(len(levels)), 6: Long(len(pages)), 7: Long(len(pages)),
        9: Long(where), 11: dictionary_offset, 12: statistics(rng, node, stored),
    }
    return pages, {2: Long(offset), 3: metadata}


def statistics(rng: random.Random, node: Node, stored: list) -> dict | None:
    """What statistics say: nothing, or something that is true, if only in the writer's own order."""
    leaf = node.leaf
    kind = rng.choice(["none", "new", "new", "old", "nulls"])
    nulls = Long(len(node.levels) - len(stored)) if rng.random() < 0.8 else None
    if kind == "none" or not stored:
        return None if kind == "none" else {3: nulls}
    if kind == "nulls":
        return {3: nulls}
    if not leaf.ordered:
        # Orders of such types are not defined: whatever stands there must not be used.
        junk = plain_bytes(leaf, stored[0])
        return {3: nulls, 5: junk, 6: junk}
    if kind == "old":
        # Signed bytes and numbers, as writers once compared.
        signed = [plain_bytes(leaf, value) for value in stored]
        if leaf.physical in (BYTE_ARRAY, FIXED):
            raw = [value[4:] if leaf.physical == BYTE_ARRAY else value for value in signed]
            key = lambda value: [byte - 256 if byte > 127 else byte for byte in value]
            return {1: max(raw, key=key), 2: min(raw, key=key), 3: nulls}
        numbers = [value for value in stored if value == value]
        if not numbers:
            return {3: nulls}
        return {1: plain_bytes(leaf, max(numbers)), 2: plain_bytes(leaf, min(numbers)), 3: nulls}
    if leaf.physical in (FLOAT, DOUBLE):
        numbers = [value for value in stored if value == value]
        if not numbers or rng.random() < 0.2:
            nan = plain_bytes(leaf, math.nan)
            return {3: nulls, 5: nan, 6: nan}
        return {3: nulls, 5: plain_bytes(leaf, max(numbers)), 6: plain_bytes(leaf, min(numbers))}
    ordered = sorted(zip(map(ordering(leaf), stored), range(len(stored)), strict=True))
    low, high = stored[ordered[0][1]], stored[ordered[-1][1]]
    raw = lambda value: plain_bytes(leaf, value)[4 if leaf.physical == BYTE_ARRAY else 0 :]
    if leaf.physical == BYTE_ARRAY and leaf.converted == 0 and rng.random() < 0.5:
        # Cut: a lower bound that is shorter, an upper one that is longer than any.
        return {3: nulls, 5: b"\xf4\x8f\xbf\xbf" * 2, 6: raw(low)[:0], 7: Bool(False), 8: Bool(False)}
    return {3: nulls, 5: raw(high), 6: raw(low)}


def ordering(leaf: Leaf) -> Callable[[object], object]:
    """The order of what is written, as the format defines it."""
    is_unsigned = leaf.converted in (11, 12, 13, 14) or (leaf.logical or {}).get(10, {}).get(2) == 0
    if is_unsigned:
        return lambda value: value % (1 << 64)
    if leaf.converted == 5 and leaf.physical in (FIXED, BYTE_ARRAY):
        return lambda value: int.from_bytes(value, "big", signed=True)
    return lambda value: value


def plain_bytes(leaf: Leaf, value: object) -> bytes:
    """A value in the plain encoding."""
    match leaf.physical:
        case 0:
            return bytes([bool(value)])
        case 1:
            return struct.pack("<i", value)
        case 2:
            return struct.pack("<q", value)
        case 4:
            return struct.pack("<f", value)
        case 5:
            return struct.pack("<d", value)
        case 6:
            return struct.pack("<I", len(value)) + value
    return value


def hybrid(numbers: list[int], width: int, rng: random.Random) -> bytes:
    """Runs and bit-packed groups of eight."""
    out, position = b"", 0
    size = (width + 7) // 8
    while position < len(numbers):
        run = 1
        while position + run < len(numbers) and numbers[position + run] == numbers[position]:
            run += 1
        if run >= 8 or rng.random() < 0.3:
            run = min(run, rng.choice([run, run, 3]))
            out += varint(run << 1) + numbers[position].to_bytes(size, "little")
            position += run
            continue
        part = numbers[position : position + 8 * rng.choice([1, 2])]
        groups = (len(part) + 7) // 8
        bits = sum(number << (i * width) for i, number in enumerate(part))
        out += varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")
        position += len(part)
    return out


def compress(codec: int, raw: bytes) -> bytes:
    name = CODECS[codec]
    if name is None:
        return raw
    packed = pa.Codec(name).compress(raw, asbytes=True)
    # Hadoop's frames: both lengths stand before the block.
    return struct.pack(">II", len(raw), len(packed)) + packed if codec == 5 else packed
