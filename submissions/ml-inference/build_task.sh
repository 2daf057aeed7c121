#!/bin/sh
# Makes the programs of an ml-inference submission. In a fork this is scripts/build_task.sh, and the sources of this workspace are in
# submissions/mnist/sudare. The argument is the submission's folder.
set -eu
folder=${1:-submissions/mnist}
sources=${SUDARE_SOURCES:-$folder/sudare}
cargo build --locked --release --manifest-path "$sources/Cargo.toml" -p sudare-submissions --bin sudare-mnist --target-dir "$folder/target"
mkdir -p "$folder/build"
for step in client_key_generation server_preprocess_model client_preprocess_input client_encode_encrypt_input server_encrypted_compute \
            client_decrypt_decode client_postprocess; do
    ln -f "$folder/target/release/sudare-mnist" "$folder/build/$step"
done
