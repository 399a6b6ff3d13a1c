"""Random Arrow arrays of every type, and a plain form of values in which answers are compared."""

from __future__ import annotations

import random
import struct
import uuid
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

WORDS = [
    "",
    "a",
    "A",
    "null",
    "ab",
    "Zürich",
    "日本",
    "\U0001f600",
    "it's",
    'a "quoted" word',
    "two\nlines",
    "a,b;c|d\te",
    "x" * 12,
    "y" * 13,
    "a longer text than sixteen bytes",
    "tail\r",
    " spaces ",
    "\\N",
    "0",
    "%",
]
# Python's default context rounds to 28 digits.
EXACT = Context(prec=80)
UNITS = ["s", "ms", "us", "ns"]
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def random_type(rng: random.Random, depth: int = 2, arrow: bool = False) -> pa.DataType:
    """Generates a type; with `arrow` also types that Parquet cannot store."""
    if depth > 0 and rng.random() < 0.25:
        return nested_type(rng, depth - 1, arrow)
    kinds = [
        lambda: rng.choice(INTEGERS),
        lambda: rng.choice(INTEGERS),
        lambda: rng.choice([pa.float16(), pa.float32(), pa.float64()]),
        lambda: rng.choice([pa.string(), pa.large_string(), pa.string_view()]),
        lambda: rng.choice([pa.string(), pa.string(), pa.bool_()]),
        lambda: rng.choice([pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(rng.randint(1, 20))]),
        lambda: rng.choice([pa.date32(), pa.date64()]),
        lambda: rng.choice([pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]),
        lambda: pa.timestamp(rng.choice(UNITS), rng.choice([None, None, "UTC", "Europe/Berlin", "+05:30"])),
        lambda: pa.timestamp(rng.choice(UNITS)),
        lambda: random_decimal(rng),
        lambda: pa.dictionary(
            rng.choice([pa.int8(), pa.int16(), pa.int32()]),
            rng.choice([pa.string(), pa.string(), pa.int64(), pa.binary()]),
        ),
        lambda: rng.choice([pa.null(), pa.duration(rng.choice(UNITS))]),
    ]
    if arrow:
        kinds += [
            lambda: pa.run_end_encoded(
                rng.choice([pa.int16(), pa.int32(), pa.int64()]), rng.choice([pa.string(), pa.int64(), pa.float64()])
            ),
            lambda: rng.choice(
                [
                    pa.month_day_nano_interval(),
                    pa.dictionary(pa.uint8(), pa.string()),
                    pa.dictionary(pa.int64(), pa.float64()),
                ]
            ),
            lambda: rng.choice([pa.decimal32(9, 2), pa.decimal64(18, 3), pa.decimal256(38, 4), pa.decimal256(60, 4)]),
        ]
    return rng.choice(kinds)()


def random_decimal(rng: random.Random) -> pa.DataType:
    precision = rng.choice([1, 4, 9, 10, 18, 19, 25, 38])
    return pa.decimal128(precision, rng.randint(0, min(precision, 12)))


def nested_type(rng: random.Random, depth: int, arrow: bool) -> pa.DataType:
    inner = random_type(rng, depth, arrow)
    nullable = rng.random() < 0.8 or pa.types.is_null(inner)
    match rng.randint(0, 6 if arrow else 5):
        case 0 | 1:
            return pa.list_(pa.field("item", inner, nullable))
        case 2:
            return pa.large_list(pa.field("element", inner, nullable))
        case 3:
            fields = [
                pa.field(name, random_type(rng, depth, arrow), rng.random() < 0.8)
                for name in rng.sample(["x", "y", "Z z", "item"], 2)
            ]
            return pa.struct(fields)
        case 4:
            return pa.map_(rng.choice([pa.string(), pa.int64()]), pa.field("value", inner, nullable))
        case 5:
            return pa.list_(pa.field("item", inner, nullable), rng.randint(1, 3))
        case _:
            return pa.list_view(pa.field("item", inner, nullable))


def random_array(rng: random.Random, kind: pa.DataType, rows: int, nulls: float) -> pa.Array:
    """Generates values of a type, with a share of NULLs."""
    if pa.types.is_null(kind):
        return pa.nulls(rows)
    mask = [rng.random() < nulls for _ in range(rows)]
    if pa.types.is_dictionary(kind):
        size = rng.randint(1, 9)
        values = random_array(rng, kind.value_type, size, 0.0)
        indices = pa.array([None if null else rng.randrange(size) for null in mask], kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, values)
    if pa.types.is_run_end_encoded(kind):
        ends, end = [], 0
        while end < rows:
            end = min(rows, end + rng.randint(1, 5))
            ends.append(end)
        values = random_array(rng, kind.value_type, len(ends), nulls)
        return pa.RunEndEncodedArray.from_arrays(pa.array(ends, kind.run_end_type), values)
    if pa.types.is_fixed_size_list(kind):
        child = random_array(rng, kind.value_type, rows * kind.list_size, nulls if kind.value_field.nullable else 0)
        return pa.FixedSizeListArray.from_arrays(child, type=kind, mask=pa.array(mask, pa.bool_()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        lengths = [0 if null else rng.choice([0, 0, 1, 1, 2, 3, 9]) for null in mask]
        offsets, total = [], 0
        for length in lengths:
            offsets.append(total)
            total += length
        offsets.append(total)
        if pa.types.is_map(kind):
            keys = random_keys(rng, kind.key_type, lengths)
            items = random_array(rng, kind.item_type, total, nulls if kind.item_field.nullable else 0)
            marked = [None if null else offset for null, offset in zip(mask + [False], offsets, strict=True)]
            array = pa.MapArray.from_arrays(pa.array(marked, pa.int32()), keys, items)
            return array.cast(kind) if array.type != kind else array
        child = random_array(rng, kind.value_type, total, nulls if kind.value_field.nullable else 0)
        maker, width = (pa.ListArray, pa.int32()) if pa.types.is_list(kind) else (pa.LargeListArray, pa.int64())
        return maker.from_arrays(pa.array(offsets, width), child, type=kind, mask=pa.array(mask, pa.bool_()))
    if pa.types.is_list_view(kind):
        child = random_array(rng, kind.value_type, 7, nulls if kind.value_field.nullable else 0)
        starts = [rng.randint(0, 6) for _ in range(rows)]
        sizes = [rng.randint(0, 7 - start) for start in starts]
        return pa.ListViewArray.from_arrays(
            pa.array(starts, pa.int32()), pa.array(sizes, pa.int32()), child, type=kind, mask=pa.array(mask, pa.bool_())
        )
    if pa.types.is_struct(kind):
        children = [random_array(rng, field.type, rows, nulls if field.nullable else 0) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(mask, pa.bool_()))
    values = [None if null else random_value(rng, kind) for null in mask]
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(kind)
    return pa.array(values, kind)


def random_keys(rng: random.Random, kind: pa.DataType, lengths: list[int]) -> pa.Array:
    """Generates keys of maps, distinct within each map."""
    pool = [w for w in WORDS if w] if pa.types.is_string(kind) else list(range(-9, 10))
    return pa.array([key for length in lengths for key in rng.sample(pool, length)], kind)


def random_value(rng: random.Random, kind: pa.DataType) -> object:
    """Generates a value; a temporal one as a number."""
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)
        return rng.choice([low, high, 0, 1, high - 1, rng.randint(low, high), max(low, min(high, rng.randint(-5, 50)))])
    if pa.types.is_floating(kind):
        value = rng.choice(
            [
                0.0,
                -0.0,
                float("inf"),
                float("-inf"),
                float("nan"),
                1.5,
                -2.25,
                rng.uniform(-9, 9),
                rng.uniform(-1, 1) * 10 ** rng.randint(-4, 4),
            ]
        )
        return struct.unpack("e", struct.pack("e", value))[0] if pa.types.is_float16(kind) else value
    if pa.types.is_decimal(kind):
        digits = rng.choice([1, kind.precision, rng.randint(1, kind.precision)])
        whole = rng.randint(0, 10**digits - 1) * rng.choice([1, -1])
        return Decimal((whole < 0, tuple(map(int, str(abs(whole)))), -kind.scale))
    if pa.types.is_fixed_size_binary(kind):
        return rng.randbytes(kind.byte_width)
    if is_text(kind):
        return (
            rng.choice(WORDS)
            if rng.random() < 0.9
            else "".join(rng.choice("abcdé") for _ in range(rng.randint(0, 200)))
        )
    if is_bytes(kind):
        return rng.choice([b"", b"\x00", b"\xff\xfe", rng.randbytes(rng.randint(0, 30))])
    if pa.types.is_interval(kind):
        return pa.MonthDayNano([rng.randint(-30, 30), rng.randint(-40, 40), rng.randint(-(10**9), 10**9) * 1000])
    if pa.types.is_date32(kind):
        return rng.choice([0, -1, rng.randint(-25_567, 60_000), -719_162, 2_932_896])
    if pa.types.is_date64(kind):
        return rng.choice([0, -1, rng.randint(-25_567, 60_000)]) * 86_400_000
    if pa.types.is_time(kind):
        return rng.choice([0, 1, 86_400 * PER_SECOND[kind.unit] - 1, rng.randrange(86_400 * PER_SECOND[kind.unit])])
    # The years 1678 to 2261 fit every unit.
    second = rng.choice([0, -1, rng.randint(-2_000_000_000, 4_000_000_000), rng.randint(-9_000_000_000, 9_000_000_000)])
    return second * PER_SECOND[kind.unit] + rng.randrange(PER_SECOND[kind.unit])


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def plain(array: pa.Array | pa.ChunkedArray) -> list:
    """Converts values to numbers, text, bytes and tuples, which two readers must agree on despite
    different types."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in plain(chunk)]
    kind = array.type
    if isinstance(kind, pa.UuidType):
        return [None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()]
    if isinstance(kind, pa.BaseExtensionType):
        return plain(array.storage)
    if pa.types.is_null(kind):
        return [None] * len(array)
    if pa.types.is_dictionary(kind):
        values = plain(array.dictionary)
        return [None if index is None else values[index] for index in array.indices.to_pylist()]
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if pa.types.is_struct(kind):
        fields = [plain(array.field(i)) for i in range(kind.num_fields)]
        rows = [tuple((kind.field(i).name, fields[i][row]) for i in range(len(fields))) for row in range(len(array))]
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        return [
            None if not value.is_valid else tuple(tuple(v for _, v in pair) for pair in plain(value.values))
            for value in array
        ]
    if pa.types.is_nested(kind):
        return [None if not value.is_valid else tuple(plain(value.values)) for value in array]
    if pa.types.is_decimal(kind):
        return [None if value is None else number(value) for value in array.to_pylist()]
    if pa.types.is_floating(kind):
        return [None if value is None else float(value) for value in array.to_pylist()]
    if pa.types.is_interval(kind):
        return [
            None if value is None else ("interval", value.months, value.days, value.nanoseconds)
            for value in array.to_pylist()
        ]
    if pa.types.is_date32(kind):
        return [None if value is None else ("date", value) for value in array.view(pa.int32()).to_pylist()]
    if pa.types.is_date64(kind):
        return [
            None if value is None else ("date", value // 86_400_000) for value in array.view(pa.int64()).to_pylist()
        ]
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        name = "time" if pa.types.is_time(kind) else "duration" if pa.types.is_duration(kind) else "timestamp"
        zoned = name == "timestamp" and kind.tz is not None
        scale = 10**9 // PER_SECOND[kind.unit]
        return [None if value is None else (name, value * scale, zoned) for value in array.view(width).to_pylist()]
    return array.to_pylist()


def number(value: Decimal) -> object:
    """Converts a decimal to an int if it is an integer."""
    whole = int(value)
    return whole if whole == value else EXACT.normalize(value)


def same(left: object, right: object) -> bool:
    """Returns whether two values in plain form are equal."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right
