"""Plans of sub-operators over the lab's relations, as text."""

from __future__ import annotations

NETWORK_SHIFT = 40
SUM = "{function = :sum, args = [%s]}"


def key(relation: int) -> str:
    """Returns the key field of a relation."""
    return "k" if relation == 0 else f"k{relation + 1}"


def payload(relation: int) -> str:
    """Returns the payload field of a relation."""
    return "p" if relation == 0 else f"p{relation + 1}"


def tuple_type(relations: list[int]) -> str:
    """Returns the type of tuples with the fields of these relations."""
    return "<" + ", ".join(f"{key(r)}: int64, {payload(r)}: int64" for r in relations) + ">"


class Text:
    """Lines of the executor's plan, and names of nodes."""

    def __init__(self, network_bits: int):
        self.lines: list[str] = []
        self.bits, self.shift = network_bits, NETWORK_SHIFT

    def add(self, name: str, node: str) -> str:
        """Adds a node; returns its name."""
        self.lines.append(f"      %{name} = {node}")
        return f"%{name}"

    def relation(self, number: int) -> str:
        """Adds a relation in memory."""
        return self.add(f"r{number}", f"lab_tuples() {{relation = {number}}}")

    def _params(self, by: str) -> str:
        return f"keys = [{by}], bits = {self.bits}, shift = {self.shift}"

    def exchanged(self, name: str, inputs: list[tuple[str, str, list[int]]], way: str, together: bool = True) -> list[str]:
        """Adds an exchange for each input (node, key, relations whose fields it has); returns
        their partitions."""
        if way in ("two-sided", "split", "rounds"):
            how = "" if way == "two-sided" else f"{way} = true"
            params = [self._params(by) + (f", {how}" if how else "") for _, by, _ in inputs]
            sent = [self.add(f"{name}s{i}", f"mpi_send({node}) {{{params[i]}}}") for i, (node, _, _) in enumerate(inputs)]
            received = "{rounds = true}" if way == "rounds" else ""
            return [self.add(f"{name}x{i}", f"mpi_receive({node}) {received}") for i, node in enumerate(sent)]
        counted = []
        for i, (node, by, relations) in enumerate(inputs):
            fields = ", ".join(f"{key(r)}, {payload(r)}" for r in relations)
            ranges = f", strings = true, ranges = [{fields}]" if way == "packed" else ""
            counted.append(self.add(f"{name}h{i}", f"local_histogram({node}) {{{self._params(by)}{ranges}}}"))
        types = [tuple_type(relations) for _, _, relations in inputs]
        if not together or len(inputs) == 1:
            windows = []
            for i, node in enumerate(counted):
                added = self.add(f"{name}m{i}", f"mpi_histogram({node})")
                windows.append((self.add(f"{name}w{i}", f"mpi_window({added}) {{columns = {types[i]}}}"), "window"))
        else:
            both = self.add(f"{name}h", f"union({', '.join(counted)})")
            added = self.add(f"{name}m", f"mpi_histogram({both})")
            window = self.add(f"{name}w", f"mpi_window({added}) {{columns = [{', '.join(types)}]}}")
            windows = [(window, f"window_{i + 1}") for i in range(len(inputs))]
        return [
            self.add(f"{name}x{i}", f"mpi_exchange({node}, {windows[i][0]}) {{{self._params(by)}, window = :{windows[i][1]}}}")
            for i, (node, by, _) in enumerate(inputs)
        ]

    def scan(self, name: str, node: str, field: str = "data") -> str:
        """Adds a scan of collections."""
        return self.add(name, f"rows_scan({node}) {{field = {field}}}")

    def total(self, node: str, count: str, total: str) -> str:
        """Adds a sum of two numbers over all ranks; returns the plan."""
        self.add("part", f"reduce({node}) {{aggregates = {{n = {count}, s = {total}}}, partial = true}}")
        self.add("all", "mpi_broadcast(%part)")
        self.scan("parts", "%all")
        merged = "matches = {function = :merge_count, args = [n]}, checksum = {function = :merge_sum, args = [s]}"
        self.add("total", f"reduce(%parts) {{aggregates = {{{merged}}}}}")
        body = "\n".join(self.lines)
        return f"plan {{\n  %sum = executor() {{platform = :mpi}}\n    plan {{\n{body}\n      return %total\n    }}\n  return %sum\n}}\n"


COUNT = "{function = :count, args = []}"


def join(network_bits: int, way: str = "one-sided", together: bool = True, local_bits: int | None = None) -> str:
    """Returns the join of two relations; with `local_bits` partitions are partitioned further
    until a part fits the cache (Modularis, Fig 2.3); with 0 each network partition is a part."""
    text = Text(network_bits)
    inputs = [(text.relation(r), key(r), [r]) for r in (0, 1)]
    left, right = text.exchanged("n", inputs, way, together)
    if local_bits is None:
        text.add("table", f"build({text.scan('left', left)}) {{keys = [k]}}")
        text.add("joined", f"probe(%table, {text.scan('right', right)}) {{keys = [k2], join = :inner}}")
        return text.total("%joined", COUNT, SUM % "p + p2")
    if way == "rounds":
        # Data that arrives in rounds is unordered: it is merged by parts that fit the cache.
        by = f"bits = {local_bits}, shift = {NETWORK_SHIFT + network_bits}"
        left = text.add("lp", f"partition({text.scan('left', left)}) {{keys = [k], {by}}}")
        right = text.add("rp", f"partition({text.scan('right', right)}) {{keys = [k2], {by}}}")
        local_bits = 0
    text.add("ln", f"map({left}) {{exprs = {{left = data}}}}")
    text.add("rn", f"map({right}) {{exprs = {{right = data}}}}")
    text.add("pairs", "zip(%ln, %rn)")
    text.lines.append("      %joined = nested_map(%pairs)")
    types = f"<left: rows{tuple_type([0])}, right: rows{tuple_type([1])}>"
    text.lines.append(_local_join(types, local_bits) if local_bits else PART_JOIN % types)
    return text.total("%joined", "{function = :merge_count, args = [n]}", "{function = :merge_sum, args = [s]}")


# The join of two parts, one of which fits the cache.
PART_JOIN = f"""            plan %s {{
              %%in = parameter_lookup()
              %%left = rows_scan(%%in) {{field = left}}
              %%right = rows_scan(%%in) {{field = right}}
              %%table = build(%%left) {{keys = [k]}}
              %%matches = probe(%%table, %%right) {{keys = [k2], join = :inner}}
              %%sum = reduce(%%matches) {{aggregates = {{n = {COUNT}, s = {SUM % "p + p2"}}}}}
              return %%sum
            }}"""


def _local_join(types: str, bits: int) -> str:
    """Processes a pair of network partitions."""
    by = f"bits = {bits}, shift = {NETWORK_SHIFT + 4}"
    return f"""        plan {types} {{
          %in = parameter_lookup()
          %left = rows_scan(%in) {{field = left}}
          %right = rows_scan(%in) {{field = right}}
          %lh = local_histogram(%left) {{keys = [k], {by}}}
          %rh = local_histogram(%right) {{keys = [k2], {by}}}
          %lp = local_partition(%left, %lh) {{keys = [k], {by}}}
          %rp = local_partition(%right, %rh) {{keys = [k2], {by}}}
          %ln = map(%lp) {{exprs = {{left = data}}}}
          %rn = map(%rp) {{exprs = {{right = data}}}}
          %pairs = zip(%ln, %rn)
          %joined = nested_map(%pairs)
{PART_JOIN % types}
          %sum = reduce(%joined) {{aggregates = {{n = {{function = :merge_count, args = [n]}}, s = {{function = :merge_sum, args = [s]}}}}}}
          return %sum
        }}"""


def sequence(network_bits: int, joins: int, optimized: bool) -> str:
    """Returns joins of `joins` + 1 relations on one key, each building a table of the next
    relation: naive, with every join's result exchanged again, or optimized, with every relation
    exchanged once before (Modularis, Fig 2.4)."""
    text = Text(network_bits)
    relations = list(range(joins + 1))
    nodes = [text.relation(r) for r in relations]
    if optimized:
        partitions = text.exchanged("n", [(nodes[r], key(r), [r]) for r in relations], "one-sided")
        streams = [text.scan(f"t{r}", partitions[r]) for r in relations]
    stream = streams[0] if optimized else nodes[0]
    for r in relations[1:]:
        side = streams[r] if optimized else None
        if not optimized:
            # Partitioned by other bits than before, so that the last join's result is exchanged.
            text.shift = NETWORK_SHIFT + (r - 1) * network_bits % 20
            inputs = [(stream, "k", relations[:r]), (nodes[r], key(r), [r])]
            came = text.exchanged(f"n{r}", inputs, "one-sided")
            stream, side = text.scan(f"s{r}", came[0]), text.scan(f"t{r}", came[1])
        text.add(f"table{r}", f"build({side}) {{keys = [{key(r)}]}}")
        stream = text.add(f"joined{r}", f"probe(%table{r}, {stream}) {{keys = [k], join = :inner}}")
    return text.total(stream, COUNT, SUM % " + ".join(payload(r) for r in relations))


def grouping(network_bits: int, local_bits: int | None, pre_aggregated: bool) -> str:
    """Returns sums by key. All tuples are exchanged and partitioned further (Modularis, Fig 2.5),
    or each rank's groups."""
    text = Text(network_bits)
    node = text.relation(0)
    if pre_aggregated:
        node = text.add("part0", f"reduce_by_key({node}) {{keys = [k], aggregates = {{p = {{function = :any_value, args = [p]}}, c = {COUNT}}}, partial = true}}")
        came = _exchange_of_groups(text, node)
        text.add("groups", f"reduce_by_key({came}) {{keys = [k], aggregates = {{p = {{function = :any_value, args = [p]}}, c = {{function = :merge_count, args = [c]}}}}}}")
        text.add("sums", "map(%groups) {exprs = {k = k, s = p * c}}")
        return text.total("%sums", COUNT, SUM % "s")
    (partitions,) = text.exchanged("n", [(node, "k", [0])], "one-sided")
    if local_bits is None:
        text.add("groups", f"reduce_by_key({text.scan('t', partitions)}) {{keys = [k], aggregates = {{s = {SUM % 'p'}}}}}")
        return text.total("%groups", COUNT, SUM % "CAST(s AS int64)")
    by = f"bits = {local_bits}, shift = {NETWORK_SHIFT + 4}"
    text.lines.append(f"      %counts = nested_map({partitions})")
    text.lines.append(f"""        plan <partition: int64, data: rows{tuple_type([0])}> {{
          %in = parameter_lookup()
          %rows = rows_scan(%in) {{field = data}}
          %h = local_histogram(%rows) {{keys = [k], {by}}}
          %p = local_partition(%rows, %h) {{keys = [k], {by}}}
          %counts = nested_map(%p)
            plan <partition: int64, data: rows{tuple_type([0])}> {{
              %in = parameter_lookup()
              %rows = rows_scan(%in) {{field = data}}
              %groups = reduce_by_key(%rows) {{keys = [k], aggregates = {{s = {SUM % 'p'}}}}}
              %sum = reduce(%groups) {{aggregates = {{n = {COUNT}, s = {SUM % 'CAST(s AS int64)'}}}}}
              return %sum
            }}
          %sum = reduce(%counts) {{aggregates = {{n = {{function = :merge_count, args = [n]}}, s = {{function = :merge_sum, args = [s]}}}}}}
          return %sum
        }}""")
    return text.total("%counts", "{function = :merge_count, args = [n]}", "{function = :merge_sum, args = [s]}")


def _exchange_of_groups(text: Text, node: str) -> str:
    """Exchanges groups with a count by key; returns their tuples."""
    by = f"keys = [k], bits = {text.bits}, shift = {NETWORK_SHIFT}"
    text.add("gh", f"local_histogram({node}) {{{by}}}")
    text.add("gm", "mpi_histogram(%gh)")
    text.add("gw", "mpi_window(%gm) {columns = <k: int64, p: int64?, c: int64>}")
    text.add("gx", f"mpi_exchange({node}, %gw) {{{by}}}")
    return text.scan("gt", "%gx")
