"""What of an analysed query ran in compiled code, and what was decoding."""

from __future__ import annotations

# Sub-operators that hand on tuples without a computation on each.
HAND_ON = {"batch_scan", "exchange", "executor", "limit", "loop", "nested_map", "parameter_lookup", "projection", "rows_scan", "union", "values", "zip"}


def rows_of_operators(plan: dict) -> tuple[int, int]:
    """How many tuples the sub-operators of a plan (as EXPLAIN (ANALYZE, FORMAT JSON) has it) take, each counted by each sub-operator
    that computes something of it, and for how many of them that sub-operator ran compiled code.

    A scan counts where it tests conditions. What a neighbor in the pipeline compiles says nothing about a sub-operator."""
    all_rows = compiled_rows = 0
    for node in plan["nodes"]:
        for nested in node["nested"]:
            found = rows_of_operators(nested)
            all_rows, compiled_rows = all_rows + found[0], compiled_rows + found[1]
        rows, share = _rows_taken(node, plan["nodes"]), _compiled_share(node["counters"])
        all_rows += rows
        compiled_rows += round(rows * share)
    return all_rows, compiled_rows


def _rows_taken(node: dict, nodes: list[dict]) -> int:
    """The tuples of which a sub-operator computes something."""
    if node["operator"] in HAND_ON:
        return 0
    if node["inputs"]:
        # The last input streams; the others are complete before.
        return next(other["rows"] for other in nodes if other["id"] == node["inputs"][-1])
    counted = sum(node["counters"].get(name, 0) for name in ("compiled_rows", "vectorized_rows"))
    # Of a scan, what its conditions were tested on, where that is counted.
    return max(counted, node["rows"]) if counted or "predicate = " in node.get("text", "") else 0


def _compiled_share(counters: dict) -> float:
    """Of a sub-operator's tuples, those that went through code: one of several pieces counts as its part."""
    compiled, vectorized = counters.get("compiled_rows", 0), counters.get("vectorized_rows", 0)
    return compiled / (compiled + vectorized) if compiled else 0.0


def decoding(plan: dict) -> tuple[float, float]:
    """What the sub-operators of a plan took, in milliseconds of all threads, and how much of that was decompressing and decoding Parquet."""
    took = of_decoding = 0.0
    for node in plan["nodes"]:
        inner = [decoding(nested) for nested in node["nested"]]
        # Who runs a nested plan is busy with nothing else meanwhile.
        took += sum(nested[0] for nested in inner) if inner else node["time_ms"]
        of_decoding += sum(nested[1] for nested in inner) + node["counters"].get("decoding_nanoseconds", 0) / 1e6
    return took, of_decoding
