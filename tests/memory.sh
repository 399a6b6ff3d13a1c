#!/usr/bin/env bash
# The tests of the modules with unsafe code, under valgrind: reads and writes outside of allocations, use of memory
# that nobody has written.

. "$(dirname "$0")/../scripts/lib.sh"

need_packages valgrind=valgrind
binary=$(cargo test --release --locked -p tessera-ops --lib --no-run --message-format json |
    grep -o '"executable":"[^"]*"' | tail -1 | cut -d '"' -f 4)
[ -x "$binary" ] || { say "the test binary of ops was not built" >&2; exit 1; }
valgrind --quiet --error-exitcode=9 "$binary" --quiet --test-threads=1 rows:: aggregate:: group_table:: scan::parquet::unpack
