"""Writes columns of Parquet files: levels, pages, and the footer's metadata."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
from foreign.thrift import Bool, Long, encode, varint

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
REQUIRED, OPTIONAL, REPEATED = range(3)
CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4_raw", 6: "zstd", 7: "lz4_raw"}
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY, BYTE_STREAM_SPLIT = 0, 2, 3, 8, 9
MAP, MAP_KEY_VALUE, LIST = 1, 2, 3


@dataclass
class Leaf:
    """A physical type with its annotations and values."""

    physical: int
    draw: Callable[[random.Random], object]
    # The expected value for a generated value.
    means: Callable[[object], object] = lambda value: value
    # The stored value.
    write: Callable[[object], object] = lambda value: value
    length: int | None = None
    converted: int | None = None
    logical: dict | None = None
    scale: int | None = None
    precision: int | None = None
    # Whether the type's statistics are well defined, and the order of its values.
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
        """Sets paths and levels of the column."""
        self.path = [*path, self.name]
        self.definition = definition + (self.repetition != REQUIRED)
        self.repeated = repeated + (self.repetition == REPEATED)
        for child in self.children:
            child.place(self.path, self.definition, self.repeated)

    def leaves(self) -> list[Node]:
        return [self] if self.leaf else [leaf for child in self.children for leaf in child.leaves()]

    def shred(self, value: object, repeated: int, definition: int) -> None:
        """Appends a value's levels: a dict for a group, a list for a repeated field."""
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
        """Returns the column's elements in the footer's schema."""
        leaf = self.leaf or Leaf(0, lambda rng: None)
        element = {3: self.repetition, 4: self.name, 6: self.converted, 10: self.logical}
        if self.leaf:
            element |= {
                1: leaf.physical,
                2: leaf.length,
                6: leaf.converted,
                7: leaf.scale,
                8: leaf.precision,
                10: leaf.logical,
            }
        else:
            element |= {5: len(self.children)}
        return [element] + [below for child in self.children for below in child.elements()]


def write_chunk(rng: random.Random, node: Node, offset: int) -> tuple[bytes, dict]:
    """Returns the pages of a leaf, and their metadata in the footer."""
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
        # Pages of version 2 begin with a row; these of version 1 do too.
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
            # An omitted field means compressed.
            second[7] = Bool(packed) if not packed or rng.random() < 0.5 else None
            extra = len(defined) + len(repeated)
            pages += (
                encode({1: 3, 2: extra + len(body), 3: extra + len(squeezed), 8: second})
                + repeated
                + defined
                + squeezed
            )
        position = end
        if not levels:
            break
    where = offset + dictionary_len
    dictionary_offset = Long(offset) if with_dictionary else rng.choice([None, None, Long(0)])
    if with_dictionary and rng.random() < 0.2:
        # Old writers: the dictionary is the first data page.
        dictionary_offset, where = rng.choice([None, Long(0)]), offset
    metadata = {
        1: leaf.physical,
        2: sorted(encodings),
        3: node.path,
        4: codec,
        5: Long(len(levels)),
        6: Long(len(pages)),
        7: Long(len(pages)),
        9: Long(where),
        11: dictionary_offset,
        12: statistics(rng, node, stored),
    }
    return pages, {2: Long(offset), 3: metadata}


def statistics(rng: random.Random, node: Node, stored: list) -> dict | None:
    """Returns statistics: none, or valid ones, possibly in the writer's own order."""
    leaf = node.leaf
    kind = rng.choice(["none", "new", "new", "old", "nulls"])
    nulls = Long(len(node.levels) - len(stored)) if rng.random() < 0.8 else None
    if kind == "none" or not stored:
        return None if kind == "none" else {3: nulls}
    if kind == "nulls":
        return {3: nulls}
    if not leaf.ordered:
        # Such types have no defined order: their statistics must be ignored.
        junk = plain_bytes(leaf, stored[0])
        return {3: nulls, 5: junk, 6: junk}
    if kind == "old":
        # Signed bytes and numbers, as old writers compared them.
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
        # Truncated: a shorter lower bound, and a longer upper bound.
        return {3: nulls, 5: b"\xf4\x8f\xbf\xbf" * 2, 6: raw(low)[:0], 7: Bool(False), 8: Bool(False)}
    return {3: nulls, 5: raw(high), 6: raw(low)}


def ordering(leaf: Leaf) -> Callable[[object], object]:
    """Returns the sort key of a stored value, as the format defines it."""
    is_unsigned = leaf.converted in (11, 12, 13, 14) or (leaf.logical or {}).get(10, {}).get(2) == 0
    if is_unsigned:
        return lambda value: value % (1 << 64)
    if leaf.converted == 5 and leaf.physical in (FIXED, BYTE_ARRAY):
        return lambda value: int.from_bytes(value, "big", signed=True)
    return lambda value: value


def plain_bytes(leaf: Leaf, value: object) -> bytes:
    """Returns a value in the plain encoding."""
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
    """Encodes runs and bit-packed groups of eight."""
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
    # Hadoop's frames: both lengths precede the block.
    return struct.pack(">II", len(raw), len(packed)) + packed if codec == 5 else packed
