#!/bin/sh
# Makes the programs of a Zn-multiplication submission. In a fork this is scripts/build_task.sh, run from the root, and the sources of this
# workspace are in submission/sudare.
set -eu
sources=${SUDARE_SOURCES:-submission/sudare}
cargo build --locked --release --manifest-path "$sources/Cargo.toml" -p sudare-submissions --bin sudare-zn --target-dir submission/target
for step in client_preprocess_input client_key_generation client_encode_encrypt_input server_encrypted_compute client_decrypt_decode \
            client_postprocess; do
    ln -f submission/target/release/sudare-zn "submission/target/release/$step"
done
