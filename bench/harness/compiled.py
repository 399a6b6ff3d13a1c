"""What of an analysed query ran in compiled code, and what was decoding."""

from __future__ import annotations

# Sub-operators that end the pipeline of their last input.
ENDS = {"build", "reduce", "reduce_by_key", "sort", "top_k", "window", "key_filter", "partition", "rows_materialize", "executor"}


def rows_of_scans(plan: dict) -> tuple[int, int]:
    """How many rows leave the scans of a plan (as EXPLAIN (ANALYZE, FORMAT JSON) has it), and how many of them in pipelines of which at
    least one sub-operator, from the scan to the end of the pipeline, has compiled code for them."""
    readers = {source: node for node in plan["nodes"] for source in node["inputs"]}
    all_rows = compiled_rows = 0
    for node in plan["nodes"]:
        for nested in node["nested"]:
            found = rows_of_scans(nested)
            all_rows, compiled_rows = all_rows + found[0], compiled_rows + found[1]
        if node["operator"].endswith("_scan") and not node["inputs"]:
            all_rows += node["rows"]
            compiled_rows += node["rows"] if _is_compiled(node, readers) else 0
    return all_rows, compiled_rows


def _is_compiled(node: dict, readers: dict[int, dict]) -> bool:
    while not node["counters"].get("compiled_rows"):
        reader = readers.get(node["id"])
        # The first input of a join is what it looks tuples up in.
        is_side = reader is not None and len(reader["inputs"]) > 1 and reader["inputs"][-1] != node["id"]
        if node["operator"] in ENDS or reader is None or is_side:
            return False
        node = reader
    return True


def decoding(plan: dict) -> tuple[float, float]:
    """What the sub-operators of a plan took, in milliseconds of all threads, and how much of that was decompressing and decoding Parquet."""
    took = of_decoding = 0.0
    for node in plan["nodes"]:
        inner = [decoding(nested) for nested in node["nested"]]
        # Who runs a nested plan is busy with nothing else meanwhile.
        took += sum(nested[0] for nested in inner) if inner else node["time_ms"]
        of_decoding += sum(nested[1] for nested in inner) + node["counters"].get("decoding_nanoseconds", 0) / 1e6
    return took, of_decoding
