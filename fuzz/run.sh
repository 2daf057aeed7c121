#!/usr/bin/env bash
# Fuzzes every decoder of the wire format: fuzz/run.sh [seconds per target] [target ...]
# Needs cargo-fuzz, a nightly Rust toolchain and a C++ compiler; says which is missing.
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
((missing == 0)) || exit 1

# The system's own target: cargo-fuzz may have been built for another one.
target=$(rustc "+$toolchain" -vV | sed -n 's/^host: //p')
golden=crates/he/tests/golden/v1
genome=crates/genome/tests/golden/v1
if (($# > 0)); then targets=("$@"); else mapfile -t targets < <(cargo "+$toolchain" fuzz list); fi

# All at once, so that the seconds below are spent fuzzing.
cargo "+$toolchain" fuzz build --target "$target"
for name in "${targets[@]}"; do
    corpus=fuzz/corpus/$name
    mkdir -p "$corpus"
    case $name in
        container) cp "$golden"/*.bin "$corpus"/ ;;
        genome_variants) cp data/genome/small.bcf "$corpus"/ ;;
        genome_keys) ;;
        genome_*) cp "$genome/$name"*.bin "$corpus"/ ;;
        *) cp "$golden/$name"*.bin "$corpus"/ ;;
    esac
    echo "== $name, $seconds s"
    log=$corpus.log
    if ! cargo "+$toolchain" fuzz run --target "$target" "$name" "$corpus" -- \
        -max_total_time="$seconds" -max_len=131072 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzzing $name failed: the input is in fuzz/artifacts/$name" >&2
        exit 1
    fi
    grep -E "DONE|stat::(number_of_executed_units|peak_rss_mb)" "$log"
done
echo "all ${#targets[@]} decoders fuzzed for $seconds s each without a finding"
