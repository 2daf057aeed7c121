#!/usr/bin/env bash
# Exchange with Lattigo, both ways: the peer makes keys and ciphertexts, Sudare reads, checks and answers, the peer checks the
# answers. Prints a JSON object for each check: bench/lattigo/run.sh > bench/runs/exchange-DATE.json
# Needs Go 1.24 or newer, which fetches Lattigo.
set -euo pipefail
cd "$(dirname "$0")/../.."

sets=(tiny-ckks tiny-exact ckks-13 ckks-14 exact-12 exact-13 exact-14)
folder=$PWD/target/exchange
rm -rf "$folder"
go run -C bench/lattigo . make "$folder" "${sets[@]}" >&2
cargo run --locked --quiet -p sudare-lattigo --example exchange -- "$folder" "${sets[@]}" >&2
go run -C bench/lattigo . check "$folder" "${sets[@]}"
