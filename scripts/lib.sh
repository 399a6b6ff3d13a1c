# Shared by scripts/demo and scripts/test: installing what is missing, and stages with their times.
# To be sourced, from any directory.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}

# say TEXT: a line about what happens.
say() { printf '%s\n' "$*"; }

# as_root COMMAND…: runs it as root, through sudo where needed.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# need_packages COMMAND=PACKAGE…: installs the Debian package of each command that is missing.
need_packages() {
    local missing=() pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || {
        say "missing: ${missing[*]}; this script installs packages only on Debian and Ubuntu: install them and run it again" >&2
        exit 1
    }
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# need_rust: a toolchain, and a linker for it.
need_rust() {
    need_packages cc=gcc ld=binutils
    command -v cargo >/dev/null || {
        say "missing: a Rust toolchain (1.94 or newer); install rustup's stable toolchain and run this again" >&2
        exit 1
    }
}

# need_python: a virtual environment with the peers that answers are compared with.
need_python() {
    local wanted="$root/bench/requirements.txt"
    venv="$target/venv"
    if [ ! -x "$venv/bin/python" ]; then
        need_packages python3=python3
        if ! python3 -m venv "$venv" 2>/dev/null; then
            need_packages no-such-command=python3-venv
            python3 -m venv "$venv"
        fi
    fi
    if ! cmp -s "$wanted" "$venv/installed.txt"; then
        say "installing $(grep -cv '^#' "$wanted") Python packages"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$wanted"
        cp "$wanted" "$venv/installed.txt"
    fi
    python="$venv/bin/python"
}

stage_names=()
stage_times=()

# stage NAME COMMAND…: runs it, stops the script when it fails, remembers the time.
stage() {
    local name=$1 start=$SECONDS
    shift
    say "== $name"
    "$@" || {
        say "FAILED: $name (after $((SECONDS - start)) s)" >&2
        exit 1
    }
    stage_names+=("$name")
    stage_times+=($((SECONDS - start)))
}

# skip NAME REASON: a stage that does not run, said aloud.
skip() {
    say "== $1: skipped ($2)"
    stage_names+=("$1: skipped ($2)")
    stage_times+=("-")
}

# summary: each stage with its time.
summary() {
    local i
    say ""
    for i in "${!stage_names[@]}"; do
        printf '%6s s  %s\n' "${stage_times[$i]}" "${stage_names[$i]}"
    done
}
