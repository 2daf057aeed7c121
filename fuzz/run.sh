#!/usr/bin/env bash
# Fuzzes whatever reads what comes from outside: fuzz/run.sh [seconds per target] [target ...]
# Needs cargo-fuzz, a nightly Rust toolchain and a C++ compiler; for the targets in Python the package as `make build` leaves
# it, and atheris. Says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: fuzz/run.sh [seconds per target] [target ...]" >&2; exit 2; }
shift || true

missing=0
need() { # name, remedy
    echo "fuzz/run.sh needs $1: $2" >&2
    missing=1
}
toolchain=${FUZZ_TOOLCHAIN:-nightly}
cargo "+$toolchain" --version >/dev/null 2>&1 || need "a nightly Rust toolchain" "rustup toolchain install nightly"
cargo fuzz --version >/dev/null 2>&1 || need "cargo-fuzz" "cargo install cargo-fuzz --locked"
{ command -v c++ || command -v clang++ || command -v g++; } >/dev/null || need "a C++ compiler" "install g++ or clang"
python=${FUZZ_PYTHON:-.venv/bin/python}
"$python" -c 'import atheris' 2>/dev/null || need "atheris" "$python -m pip install -r requirements-fuzz.txt"
"$python" -c 'import sudare' 2>/dev/null || need "the Python package" "make build"
((missing == 0)) || exit 1

# The system's own target: cargo-fuzz may have been built for another one.
target=$(rustc "+$toolchain" -vV | sed -n 's/^host: //p')
if (($# > 0)); then targets=("$@"); else mapfile -t targets < <(cargo "+$toolchain" fuzz list; printf '%s\n' load remote); fi
# Stores and servers are made anew for each input: in memory, where there is such a folder.
[[ ! -d /dev/shm ]] || export TMPDIR=/dev/shm

# All at once, so that the seconds below are spent fuzzing.
cargo "+$toolchain" fuzz build --target "$target"
for name in "${targets[@]}"; do
    corpus=fuzz/corpus/$name
    mkdir -p "$corpus"
    case $name in
        container) files="*.bin" ;;
        genome_variants) files=small.bcf ;;
        *) files="$name*.bin" ;;
    esac
    find crates/*/tests/golden/v1 data/genome -name "$files" -exec cp -t "$corpus" {} +
    echo "== $name, $seconds s"
    log=$corpus.log
    options=(-max_total_time="$seconds" -max_len=131072 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1)
    if [[ -e fuzz/fuzz_targets/$name.py ]]; then
        mkdir -p "fuzz/artifacts/$name"
        run=("$python" fuzz/fuzz_targets/harness.py "$name" "$corpus" -artifact_prefix="fuzz/artifacts/$name/" "${options[@]}")
    else
        run=(cargo "+$toolchain" fuzz run --target "$target" "$name" "$corpus" -- "${options[@]}")
    fi
    # Targets write the seeds that they make themselves into the folder of this name.
    if ! FUZZ_CORPUS=$PWD/$corpus "${run[@]}" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzzing $name failed: the input is in fuzz/artifacts/$name" >&2
        exit 1
    fi
    grep -E "DONE|stat::(number_of_executed_units|peak_rss_mb)" "$log"
done
echo "all ${#targets[@]} targets fuzzed for $seconds s each without a finding"
