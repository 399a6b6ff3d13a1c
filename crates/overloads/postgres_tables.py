#!/usr/bin/env python3
"""Reads PostgreSQL's types, casts, operators and functions into src/tables.rs.

    crates/overloads/postgres_tables.py          writes the tables, and the expected results in src/cases.txt
    crates/overloads/postgres_tables.py --check  checks the files against PostgreSQL and writes nothing

Needs the server programs of PostgreSQL 15 (Debian package postgresql) and rustfmt. It starts and removes its own cluster.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "judges"))

import postgres

TABLES = HERE / "src" / "tables.rs"
CASES = HERE / "src" / "cases.txt"
VERSION = 15

# PostgreSQL's name of a type and the variant of `Type`.
TYPES = {
    "bool": "Bool",
    "int2": "Int2",
    "int4": "Int4",
    "int8": "Int8",
    "numeric": "Numeric",
    "float4": "Float4",
    "float8": "Float8",
    "text": "Text",
    "varchar": "Varchar",
    "bpchar": "Bpchar",
    "bytea": "Bytea",
    "bit": "Bit",
    "varbit": "Varbit",
    "date": "Date",
    "time": "Time",
    "timetz": "Timetz",
    "timestamp": "Timestamp",
    "timestamptz": "Timestamptz",
    "interval": "Interval",
    "uuid": "Uuid",
    "unknown": "Unknown",
    "any": "Any",
    "anyelement": "AnyElement",
    "anyarray": "AnyArray",
    "anynonarray": "AnyNonArray",
    "anycompatible": "AnyCompatible",
    "anycompatiblearray": "AnyCompatibleArray",
}
PSEUDO = [name for name in TYPES if name.startswith("any")]
CATEGORIES = {
    "A": "Array",
    "B": "Boolean",
    "D": "DateTime",
    "N": "Number",
    "P": "Pseudo",
    "S": "String",
    "T": "Timespan",
    "U": "User",
    "V": "BitString",
    "X": "Unknown",
}
CONTEXTS = {"i": "Implicit", "a": "Assignment", "e": "Explicit"}
KINDS = {"f": "Scalar", "s": "Set", "w": "Window", "n": "Aggregate", "o": "OrderedSet", "h": "HypotheticalSet"}
# A row with all other types in these categories never makes a call with literals ambiguous.
HARMLESS = set("BDNST")

# Functions behind operators that the manual documents separately.
DOCUMENTED = {"starts_with", "array_cat"}
# Catalog descriptions of functions that only the server calls.
INTERNAL = re.compile(
    r"implementation of .* operator|aggregate |.*\bsupport\b|hash$|less-equal-greater|larger of two|smaller of two"
    r"|I/O$|(in|de)crement\b|float8 difference of two|.*privilege on|large object|client|server|SHOW X|SET X"
    r"|get current transaction ID|commit status|row security|current value from last|determine if a string is well formed XML"
)
# Aliases of functions with better known names.
ALIASES = re.compile(r"numeric_|d(cbrt|exp|log1|log10|pow|round|sqrt|trunc)$|textlen$|similar_escape$")


def const(name: str) -> str:
    """Returns the constant in the tables for a type of PostgreSQL."""
    if name in TYPES:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", TYPES[name]).upper()
    if name.startswith("_") and name[1:] in TYPES:
        return f"{const(name[1:])}_ARRAY"
    return "FOREIGN"


def is_own(names: list[str]) -> bool:
    return all(const(name) != "FOREIGN" for name in names)


class Catalog:
    """The catalog of a running PostgreSQL cluster."""

    def __init__(self, cluster: postgres.Cluster) -> None:
        self.cluster = cluster
        version = int(self.rows("show server_version_num")[0][0])
        if version // 10000 != VERSION:
            sys.exit(f"PostgreSQL {version // 10000} is installed; the tables are those of {VERSION}")
        self.categories = {name: category for name, category in self.rows("select typname, typcategory from pg_type")}

    def rows(self, sql: str) -> list[list[str | None]]:
        answer = self.cluster.answers([sql])[0]
        if answer.failed:
            sys.exit(f"PostgreSQL: {sql}: {answer.message}")
        return answer.rows

    def types(self) -> list[str]:
        known = {
            name: (shown, category, preferred)
            for name, shown, category, preferred in self.rows(
                "select typname, format_type(oid, null), typcategory, typispreferred from pg_type"
                " where typnamespace = 'pg_catalog'::regnamespace"
            )
        }
        lines = []
        for name, variant in TYPES.items():
            shown, category, preferred = known[name]
            shown = shown.strip('"')
            flag = "true" if preferred == "t" else "false"
            lines.append(f'Type::{variant} => facts("{name}", "{shown}", Category::{CATEGORIES[category]}, {flag}),')
        lines.append('Type::Array => facts("_", "array", Category::Array, false),')
        lines.append('Type::Other => facts("record", "record", Category::Composite, false),')
        lines.append('Type::Foreign => facts("foreign", "foreign", Category::Foreign, false),')
        return lines

    def casts(self) -> list[str]:
        lines = []
        for source, target, context, method in self.rows(
            "select s.typname, t.typname, castcontext, castmethod from pg_cast c"
            " join pg_type s on s.oid = castsource join pg_type t on t.oid = casttarget order by 1, 2"
        ):
            # A cast of a type to itself applies its length.
            if source in TYPES and target in TYPES and source != target:
                by = {"f": "Function", "b": "Binary", "i": "InOut"}[method]
                lines.append(f"cast(Type::{TYPES[source]}, Type::{TYPES[target]}, {CONTEXTS[context]}, {by}),")
        return lines

    def forms(self, rows: list[tuple[str, list[str], str, str]]) -> list[str]:
        """Returns the lines of the rows (name, arguments, result, rest of the line) that have supported types or make a
        call with literals ambiguous."""
        own = {(name, len(args)) for name, args, result, _ in rows if is_own([*args, result])}
        lines = []
        for name, args, result, rest in rows:
            if not is_own([*args, result]):
                foreign = [arg for arg in args if not is_own([arg])]
                harmless = {self.categories[arg] for arg in foreign} <= HARMLESS
                if (name, len(args)) not in own or not foreign or harmless:
                    continue
            shown = ", ".join(map(const, args))
            lines.append(f'("{name}", &[{shown}], {const(result)}{rest}),')
        # Two rows with the same types here are as ambiguous as more rows.
        kept = [line for line, count in Counter(lines).items() for _ in range(min(count, 2))]
        return sorted(kept, key=lambda line: (line.split('"')[1], line))

    def operators(self) -> list[str]:
        rows = [
            (name, [arg for arg in (left, right) if arg is not None], result, "")
            for name, left, right, result in self.rows(
                "select oprname, l.typname, r.typname, t.typname from pg_operator o"
                " left join pg_type l on l.oid = oprleft join pg_type r on r.oid = oprright"
                " join pg_type t on t.oid = oprresult"
            )
        ]
        return [f"operator{line}" for line in self.forms(rows)]

    def functions(self) -> list[str]:
        found = []
        for name, args, result, kind, variadic, defaults, description in self.rows(
            "select proname, (select string_agg(a.typname, ' ' order by n) from unnest(proargtypes)"
            " with ordinality as u(o, n) join pg_type a on a.oid = o), r.typname,"
            " case when prokind = 'f' and proretset then 's' when prokind = 'a' then aggkind else prokind end,"
            " v.typname, pronargdefaults, obj_description(p.oid, 'pg_proc') from pg_proc p"
            " join pg_type r on r.oid = prorettype left join pg_type v on v.oid = provariadic"
            " left join pg_aggregate g on g.aggfnoid = p.oid"
            " where pronamespace = 'pg_catalog'::regnamespace and prokind <> 'p'"
        ):
            internal = INTERNAL.match(description or "") and name not in DOCUMENTED
            if name.startswith("pg_") or internal or ALIASES.match(name):
                continue
            rest = f", {KINDS[kind]}, {f'Some({const(variadic)})' if variadic else None}, {defaults}"
            found.append((name, (args or "").split(), result, rest))
        return [f"function{line}" for line in self.forms(found)]

    def declared(self) -> dict[tuple[bool, str], str]:
        """Returns the argument types of each operator (true) and function, by its OID."""
        rows = self.rows(
            "select true, oid, concat_ws(', ', format_type(nullif(oprleft, 0), null), format_type(oprright, null))"
            " from pg_operator union all select false, oid, (select string_agg(format_type(o, null), ', ' order by n)"
            " from unnest(proargtypes) with ordinality as u(o, n)) from pg_proc"
        )
        return {(kind == "t", number): (types or "").replace('"', "") for kind, number, types in rows}

    def text(self) -> str:
        names = [name for name in TYPES if name != "unknown"]
        arrays = [name for name in names if name not in PSEUDO]
        casts, operators, functions = self.casts(), self.operators(), self.functions()
        used = "\n".join([*operators, *functions])
        constants = [f"const {const(name)}: Given = Given::of(Type::{TYPES[name]});" for name in names]
        constants.append("const FOREIGN: Given = Given::of(Type::Foreign);")
        for name in arrays:
            if re.search(rf"\b{const('_' + name)}\b", used):
                constants.append(f"const {const('_' + name)}: Given = Given::array(Type::{TYPES[name]});")
        lines = [
            f"//! The types, casts, operators and functions of PostgreSQL {VERSION} that have our types. Written by",
            "//! `crates/overloads/postgres_tables.py`; change that and run it again.",
            "",
            "use super::table::{By, Cast, Facts, Form, Kind, cast, facts, function, operator};",
            "use super::{Category, Context, Given, Type};",
            "",
            "use By::{Binary, Function};",
            "use Context::{Assignment, Explicit, Implicit};",
            "use Kind::{Aggregate, HypotheticalSet, OrderedSet, Scalar, Set, Window};",
            "",
            *constants,
            "",
            "/// The name, the name in messages, the category, and whether the type is preferred.",
            "pub(super) const fn of_type(ty: Type) -> Facts {",
            "match ty {",
            *self.types(),
            "}",
            "}",
            "",
            f"pub(super) static CASTS: [Cast; {len(casts)}] = [",
            *casts,
            "];",
            "",
            "/// By name.",
            f"pub(super) static OPERATORS: [Form; {len(operators)}] = [",
            *operators,
            "];",
            "",
            "/// By name.",
            f"pub(super) static FUNCTIONS: [Form; {len(functions)}] = [",
            *functions,
            "];",
        ]
        return formatted("\n".join(lines) + "\n")


def formatted(text: str) -> str:
    command = ["rustfmt", "--edition", "2024", "--config-path", str(ROOT / "rustfmt.toml")]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


CALL = re.compile(r"(?P<name>\S+) \((?P<args>.*?)\)(?: -> .*)?")
NODE = re.compile(r"\{(OPEXPR|FUNCEXPR|AGGREF|WINDOWFUNC) :(?:opno|funcid|aggfnoid|winfnoid) (\d+)")


def answered(text: str, catalog: Catalog) -> str:
    """Returns the cases with PostgreSQL's results; a view shows what its expression calls."""
    lines = text.splitlines()
    calls = {at: call for at, line in enumerate(lines) if not line.startswith("--") and (call := CALL.fullmatch(line))}
    statements = {}
    for at, call in calls.items():
        statements[f"v{at}"] = expression(call)
        statements[f"w{at}"] = f"{expression(call)} over ()"
    made = catalog.cluster.answers(
        [
            *(f"create temp view {view} as select {sql} as x" for view, sql in statements.items()),
            "select relname, ev_action, format_type(atttypid, null) from pg_rewrite"
            " join pg_class c on c.oid = ev_class join pg_attribute on attrelid = c.oid and attname = 'x'"
            " where relpersistence = 't'",
        ]
    )
    if made[-1].failed:
        sys.exit(f"PostgreSQL: {made[-1].message}")
    states = dict(zip(statements, (answer.state for answer in made), strict=False))
    views = {view: (action, shown) for view, action, shown in made[-1].rows}
    declared = catalog.declared()
    for at, call in calls.items():
        # A window function needs OVER.
        view = f"w{at}" if states[f"v{at}"] == "42809" else f"v{at}"
        said = called(*views[view], declared) if view in views else states[view]
        lines[at] = f"{call['name']} ({call['args']}) -> {said}"
    return "\n".join(lines) + "\n"


def expression(call: re.Match) -> str:
    """Returns the SQL call of a case, with NULLs of its argument types."""
    name = call["name"]
    values = [f"null::{arg}" if arg != "unknown" else "null" for arg in call["args"].split(", ") if arg]
    if re.match(r"\w", name):
        return f"pg_catalog.\"{name}\"({', '.join(values)})"
    return f"({values[0]} {name} {values[1]})" if len(values) == 2 else f"({name} {values[0]})"


def called(action: str, result: str, declared: dict[tuple[bool, str], str]) -> str:
    """Returns the arguments and the result of the call, or the cast, in a view's only column."""
    target = action[action.index(":targetList") :]
    node, first = NODE.search(target), re.search(r":expr \{(\w+)", target)
    if first and node and first[1] == node[1]:
        return f"({declared[node[1] == 'OPEXPR', node[2]]}) {result}"
    return f"cast {result}"


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    with postgres.Cluster() as cluster:
        catalog = Catalog(cluster)
        made = {TABLES: catalog.text(), CASES: answered(CASES.read_text(), catalog)}
    wrong = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in wrong:
        if check:
            print(f"{path.relative_to(ROOT)} is not what PostgreSQL says")
        else:
            path.write_text(made[path])
    return int(check and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
