#!/usr/bin/env bash
# The tests of the modules with unsafe code, under valgrind: reads and writes outside of
# allocations, use of memory that has not been written.

. "$(dirname "$0")/../scripts/lib.sh"

# check TEST… -- CARGO…: runs the tests of the binary that the cargo command builds.
check() {
    local tests=() binary
    while [ "$1" != -- ]; do
        tests+=("$1")
        shift
    done
    shift
    binary=$("$@" --release --locked --no-run --message-format json | grep -o '"executable":"[^"]*"' | tail -1 | cut -d '"' -f 4)
    [ -x "$binary" ] || { say "no test binary was built by: $*" >&2; exit 1; }
    local test
    for test in "${tests[@]}"; do
        # A module that has another name now would be left out in silence.
        [ "$(with_mpi mpich "$binary" --list "$test" | grep -c ': test$')" != 0 ] || { say "no test is called $test in $binary" >&2; exit 1; }
    done
    with_mpi mpich valgrind --quiet --error-exitcode=9 "$binary" --quiet --test-threads=1 "${tests[@]}"
}

need_packages valgrind=valgrind
need_mpi
# All of this room: its modules with unsafe code are used by each of its tests.
check "" -- cargo test -p tessera-rows --lib
check aggregate:: join:: -- cargo test -p tessera-state --lib
check reduce_by_key:: -- cargo test -p tessera-operators --lib
check parquet::unpack -- cargo test -p tessera-formats --lib
check packed:: segment::tests::few -- cargo test -p tessera-vector --lib
check raw:: local:: -- with_mpi mpich cargo test -p tessera-monolith
