"""Thrift's compact protocol, as far as Parquet metadata needs it."""

from __future__ import annotations

BOOL_TRUE, BOOL_FALSE, I8, I32, I64, BINARY, LIST, STRUCT = 1, 2, 3, 5, 6, 8, 9, 12


class Bool(int):
    """A boolean field."""


class Byte(int):
    """A field of one byte."""


class Long(int):
    """A field of 64 bits."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63) if value < 0 else value << 1)


def kind(value: object) -> int:
    if isinstance(value, Bool):
        return BOOL_TRUE if value else BOOL_FALSE
    if isinstance(value, Byte):
        return I8
    if isinstance(value, Long):
        return I64
    if isinstance(value, int):
        return I32
    if isinstance(value, (str, bytes)):
        return BINARY
    return LIST if isinstance(value, list) else STRUCT


def encode(value: object) -> bytes:
    """Encodes a value: dicts from field numbers to values are structs, without their None values."""
    if isinstance(value, Bool):
        return bytes([BOOL_TRUE if value else BOOL_FALSE])
    if isinstance(value, Byte):
        return bytes([value & 0xFF])
    if isinstance(value, int):
        return zigzag(value)
    if isinstance(value, (str, bytes)):
        raw = value.encode() if isinstance(value, str) else value
        return varint(len(raw)) + raw
    if isinstance(value, list):
        of = kind(value[0]) if value else STRUCT
        head = bytes([len(value) << 4 | of]) if len(value) < 15 else bytes([0xF0 | of]) + varint(len(value))
        return head + b"".join(map(encode, value))
    assert isinstance(value, dict)
    out, last = b"", 0
    for number, item in sorted(value.items()):
        if item is None:
            continue
        delta = number - last
        out += bytes([delta << 4 | kind(item)]) if delta <= 15 else bytes([kind(item)]) + zigzag(number)
        last = number
        if not isinstance(item, Bool):
            out += encode(item)
    return out + b"\0"
