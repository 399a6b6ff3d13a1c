"""Seeded mutations of a file, as caused by a bad disk, a truncated transfer or an attacker."""

from __future__ import annotations

import random
import struct

# Extreme values for lengths, counts and offsets.
EXTREMES = [
    0, 1, -1, 2, 7, 8, 127, 128, 255, 256, 32767, -32768, 65535, 65536, 1 << 20, 1 << 24, 1 << 30, (1 << 31) - 1,
    -(1 << 31), (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63), (1 << 63) - 8,
]  # fmt: skip
TEXTS = [
    b'"', b"'", b"\\", b",", b"\n", b"\r", b"\0", b"{", b"}", b"[", b"]", b":", b"\xff", b"\xef\xbb\xbf", b"-", b"1e999",
    b"\\u0000", b"\\ud800", b"null", b"NaN", b"99999999999999999999999999999999999999999", b"9999-99-99", b"[" * 300,
]  # fmt: skip


def mutated(rng: random.Random, whole: bytes, others: list[bytes], text: bool) -> tuple[str, bytes]:
    """Returns a mutation of a file and its description. The mutation may insert parts of `others`."""
    content, done = bytearray(whole), []
    for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3, 6])):
        done.append(step(rng, content, others, text))
    return "; ".join(done), bytes(content)


def step(rng: random.Random, content: bytearray, others: list[bytes], text: bool) -> str:
    """Applies one change."""
    size = len(content)
    if size == 0:
        content += bytes(rng.randrange(256) for _ in range(rng.randint(1, 40)))
        return "filled"
    kind = rng.choice(TEXT_KINDS if text else BINARY_KINDS)
    at = place(rng, size)
    match kind:
        case "flip":
            content[at] ^= 1 << rng.randrange(8)
        case "byte":
            content[at] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)])
        case "small":
            # A nearby value: another type, another count.
            content[at] = (content[at] + rng.choice([-2, -1, 1, 2, 4, 8])) % 256
        case "cut":
            del content[at:]
        case "without":
            del content[at : at + rng.choice([1, 2, 4, 8, rng.randint(1, size)])]
        case "swap":
            other, length = place(rng, size), rng.choice([1, 4, 8, 16, 64])
            content[at : at + length], content[other : other + length] = (
                content[other : other + length],
                content[at : at + length],
            )
        case "splice":
            other = rng.choice([bytes(content), *others]) or b"\0"
            start = rng.randrange(len(other))
            piece = other[start : start + rng.choice([1, 4, 8, 24, 64, 1000])]
            content[at : at + (len(piece) if rng.random() < 0.7 else 0)] = piece
        case "zeros":
            length = rng.choice([4, 8, 16, 64])
            content[at : at + length] = bytes([rng.choice([0, 0, 0xFF])]) * len(content[at : at + length])
        case "integer":
            width = rng.choice([4, 4, 8, 8, 2])
            at -= at % width if rng.random() < 0.8 else 0
            if at + width <= size:
                mask = (1 << 8 * width) - 1
                old = int.from_bytes(content[at : at + width], "little")
                near = [old + 1, old - 1, old * 2, old + 8, -old, size, size - 1, size + 1]
                new = rng.choice(EXTREMES if rng.random() < 0.6 else near)
                content[at : at + width] = (new & mask).to_bytes(width, "little")
        case "varint":
            # Thrift and levels use variable-length integers; a footer is preceded by its length.
            content[at : at + 1] = varint(rng.choice(EXTREMES) & ((1 << 64) - 1))
            repair(content, len(content) - size)
        case "text":
            piece = rng.choice(TEXTS)
            content[at : at + rng.choice([0, 1, len(piece)])] = piece
        case "repeat":
            content[at:at] = content[at : at + rng.randint(1, 64)] * rng.choice([2, 10, 200])
    return f"{kind} at {at}"


BINARY_KINDS = [
    "flip", "flip", "flip", "byte", "byte", "small", "small", "cut", "without", "swap", "splice", "zeros", "integer",
    "integer", "integer", "varint",
]  # fmt: skip
TEXT_KINDS = ["flip", "byte", "cut", "without", "swap", "splice", "text", "text", "text", "repeat"]


def place(rng: random.Random, size: int) -> int:
    """Selects a position: anywhere, but often where formats store lengths."""
    match rng.randrange(6):
        case 0:
            return min(size - 1, rng.randrange(64))
        case 1 | 2:
            return max(0, size - 1 - rng.randrange(min(size, 600)))
        case _:
            return rng.randrange(size)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def repair(content: bytearray, longer: int) -> None:
    """Corrects the length of a Parquet footer, so that the footer is parsed."""
    if content[-4:] == b"PAR1" and len(content) >= 12:
        length = struct.unpack("<i", content[-8:-4])[0] + longer
        if 0 <= length < len(content):
            content[-8:-4] = struct.pack("<i", length)
