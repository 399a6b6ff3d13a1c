#!/usr/bin/env bash
# The monolithic join of lab/monolith checks its own answers: here under both MPIs, on 1 to 8 ranks,
# with few and skewed tuples.
#
#   tests/monolith.sh [--full] [TARGET]    the folder that holds mpich/monolith and openmpi/monolith
#
# Open MPI takes a second to start: without --full it runs on 1 and 3 ranks only.

. "$(dirname "$0")/../scripts/lib.sh"
openmpi_ranks="1 3"
if [ "${1:-}" = --full ]; then
    openmpi_ranks="1 2 3 8"
    shift
fi
target=${1:-$target}
runs=0

# check OPTION…: an answer that is wrong, a rank that fails, noise on stderr or a minute without an
# end all count.
check() {
    local noise
    noise=$(with_mpi "$mpi" timeout 60 mpiexec -n "$ranks" "$target/$mpi/monolith" --repeat 2 "$@" 2>&1 >/dev/null) || {
        say "FAILED: $mpi, $ranks ranks: monolith $*" "$noise" >&2
        exit 1
    }
    [ -z "$noise" ] || {
        say "noise: $mpi, $ranks ranks: monolith $*" "$noise" >&2
        exit 1
    }
    runs=$((runs + 1))
}

for mpi in mpich openmpi; do
    some="1 2 3 8"
    [ $mpi = mpich ] || some=$openmpi_ranks
    for ranks in $some; do
        for way in "" "--two-sided --compress"; do
            for tuples in 0 1 5; do
                # shellcheck disable=SC2086 # options are words
                check --tuples "$tuples" $way
            done
        done
        for way in "" "--two-sided" "--compress" "--two-sided --compress" "--no-streaming --keep-window"; do
            # Small buffers and a small cache: many messages, partitioning in several passes.
            # shellcheck disable=SC2086
            check --tuples 100003 --materialize --put-bytes 64 --cache-bytes 256 --network-bits 3 $way
            # One key with 90 % of the probe side, copies of keys on both sides, and no overlap.
            # shellcheck disable=SC2086
            check --tuples 20000 --skew 90 --build-copies 3 --probe-copies 5 --buffers 1 --put-bytes 512 --seed 7 $way
        done
    done
    # One rank says what is wrong. Open MPI ends it where another one has ended before, so that it
    # is asked until it comes to that.
    for try in {1..20}; do
        if refused=$(with_mpi "$mpi" mpiexec -n 2 "$target/$mpi/monolith" --tuples 99999999999 --compress --network-bits 1 2>&1 >/dev/null); then
            say "$mpi: what does not fit a word was compressed" >&2
            exit 1
        fi
        [[ $refused != *"do not fit one word"* ]] || break
        [ "$try" != 20 ] || { say "$mpi: another error than that it does not fit a word:" "$refused" >&2; exit 1; }
    done
done
say "$runs runs of the monolithic join, all right"
