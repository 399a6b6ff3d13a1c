"""Damaged copies of a file: cut ends, flipped bytes. Reading them returns an error or rows; it
never panics."""

from __future__ import annotations

import random
from pathlib import Path

SMALL = 200_000


def check(tessera, case, folder: Path, rng: random.Random, space: int) -> list[str]:
    """Returns the problems of reading damaged copies of a case's file in little memory."""
    whole = case.path.read_bytes()
    if len(whole) > SMALL:
        return []
    copies = folder / "damaged"
    copies.mkdir()
    suffix = "".join(case.path.suffixes)
    made: list[tuple[str, bytes]] = [
        (f"cut at {len(whole) * part // 50}", whole[: len(whole) * part // 50]) for part in range(50)
    ]
    for _ in range(40):
        flipped = bytearray(whole)
        places = [rng.randrange(len(whole)) for _ in range(rng.choice([1, 1, 1, 4]))] if whole else []
        for place in places:
            flipped[place] ^= 1 << rng.randrange(8) if rng.random() < 0.7 else 0xFF
        made.append((f"bytes {places} flipped", bytes(flipped)))
    statements = []
    for position, (_, content) in enumerate(made):
        path = copies / f"d{position}{suffix}"
        path.write_bytes(content)
        source = f"{case.reader}('{path}'{case.options})" if case.reader else f"'{path}'"
        # The aggregate keeps the output short.
        statements.append(f"select {position} as damaged, count(*) from (select * from {source} limit 100000) t")
        statements.append(f"copy (select * from {source}) to '{copies}/out.csv'")
    code, said = tessera.run(statements, "--memory", "256MB", "--threads", "2", limit=space, seconds=300)
    if code in (0, 1) and "panicked" not in said and "internal" not in said:
        return []
    # The failing copy is found one by one.
    problems = []
    for position, (what, _) in enumerate(made):
        code, said = tessera.run(
            statements[2 * position : 2 * position + 2], "--memory", "256MB", "--threads", "2", limit=space, seconds=60
        )
        if code not in (0, 1) or "panicked" in said or "internal" in said:
            problems.append(f"a copy with {what} ended with {code}: {said[:500]}")
    return problems[:3] or [f"damaged copies, read one after the other, ended with {code}: {said[-500:]}"]
