#!/usr/bin/env bash
# Runs the plans of plans/ with the program, as plans/README.md tells people to, and compares their
# answers with SQL's.
#
#   tests/plans.sh PROGRAM

set -euo pipefail
tessera=$(realpath "${1:?usage: tests/plans.sh PROGRAM}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
"$tessera" generate tpch --sf 0.01 --out "$data/tpch" >"$data/log" 2>&1 || { cat "$data/log" >&2; exit 1; }
cd "$data/tpch"

# same NAME SQL: the plan and the SQL print the same.
same() {
    "$tessera" run "$root/plans/$1.plan" --format csv >"$data/plan.csv"
    "$tessera" . -c "$2" --format csv >"$data/sql.csv"
    if ! cmp -s "$data/plan.csv" "$data/sql.csv"; then
        echo "plans/$1.plan does not answer what its SQL answers:" >&2
        diff "$data/plan.csv" "$data/sql.csv" >&2 || true
        exit 1
    fi
    [ "$(wc -l <"$data/sql.csv")" -gt 1 ] || { echo "plans/$1.plan answers without a row, which compares nothing" >&2; exit 1; }
    tested+=("$1")
}

# The SQL in a plan's first comment.
sql_of() {
    sed -n 's/^--   //p' "$root/plans/$1.plan"
}

tested=()
same tpch-q01 "$(cat "$root/queries/tpch/q01.sql")"
same tpch-q06 "$(cat "$root/queries/tpch/q06.sql")"
for form in direct radix; do
    same "join-$form" "$(sql_of join-direct)"
    same "group-by-$form" "$(sql_of group-by-direct)"
done
same join-filtered "$(sql_of join-filtered)"
[ ${#tested[@]} = "$(ls "$root"/plans/*.plan | wc -l)" ] || { echo "a plan in plans/ is not tested here" >&2; exit 1; }

# What EXPLAIN prints is a plan: it runs, and gives the same answer again.
"$tessera" . -c "EXPLAIN $(sql_of join-direct)" >"$data/explained.plan"
"$tessera" run "$data/explained.plan" --format csv >"$data/again.csv"
"$tessera" . -c "$(sql_of join-direct)" --format csv >"$data/sql.csv"
cmp "$data/again.csv" "$data/sql.csv"

# A plan that is wrong is one message and exit code 1.
sed 's/\[saved\]/[safed]/' "$root/plans/tpch-q06.plan" >"$data/wrong.plan"
code=0
"$tessera" run "$data/wrong.plan" >"$data/out" 2>"$data/err" || code=$?
[ "$code" = 1 ] && [ ! -s "$data/out" ] && grep -q safed "$data/err" || { echo "a wrong plan was not rejected" >&2; cat "$data/err" >&2; exit 1; }
echo "${#tested[@]} plans, $(ls "$root"/plans/*.plan | wc -l) files"
