"""Determines how much of an analyzed query ran in compiled code, and how much was decoding."""

from __future__ import annotations

# Sub-operators that pass on tuples without computing on each.
HAND_ON = {"batch_scan", "exchange", "executor", "limit", "loop", "nested_map", "parameter_lookup", "projection", "rows_scan", "union", "values", "zip"}


def rows_of_operators(plan: dict) -> tuple[int, int]:
    """Returns how many tuples the sub-operators of a plan (as printed by EXPLAIN (ANALYZE, FORMAT
    JSON)) process, and how many of them in compiled code. A tuple counts once for each
    sub-operator that computes on it.

    A scan counts if it tests conditions. Code of a neighbor in the pipeline does not count for a
    sub-operator.
    """
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
    """Returns the tuples on which a sub-operator computes."""
    if node["operator"] in HAND_ON:
        return 0
    if node["inputs"]:
        # The last input is streamed; the others are complete before.
        return next(other["rows"] for other in nodes if other["id"] == node["inputs"][-1])
    counted = sum(node["counters"].get(name, 0) for name in ("compiled_rows", "vectorized_rows"))
    # For a scan, the tuples on which its conditions were tested, if that is counted.
    return max(counted, node["rows"]) if counted or "predicate = " in node.get("text", "") else 0


def _compiled_share(counters: dict) -> float:
    """Returns how many of a sub-operator's tuples were processed by code; each of several pieces
    counts as its share."""
    compiled, vectorized = counters.get("compiled_rows", 0), counters.get("vectorized_rows", 0)
    return compiled / (compiled + vectorized) if compiled else 0.0


def decoding(plan: dict) -> tuple[float, float]:
    """Returns the total time of a plan's sub-operators in milliseconds of all threads, and the
    part for decompressing and decoding Parquet."""
    took = of_decoding = 0.0
    for node in plan["nodes"]:
        inner = [decoding(nested) for nested in node["nested"]]
        # A sub-operator that runs a nested plan does nothing else meanwhile.
        took += sum(nested[0] for nested in inner) if inner else node["time_ms"]
        of_decoding += sum(nested[1] for nested in inner) + node["counters"].get("decoding_nanoseconds", 0) / 1e6
    return took, of_decoding
