#!/bin/sh
# Makes the programs of a fetch-by-similarity submission. In a fork this is scripts/build_task.sh, and the sources of this workspace are
# in submission/sudare. The argument is the submission's folder.
set -eu
folder=${1:-submission}
sources=${SUDARE_SOURCES:-$folder/sudare}
cargo build --locked --release --manifest-path "$sources/Cargo.toml" -p sudare-submissions --bin sudare-fetch --target-dir "$folder/target"
mkdir -p "$folder/build"
for step in client_preprocess_dataset client_key_generation client_encode_encrypt_db server_preprocess_dataset client_preprocess_query \
            client_encode_encrypt_query server_encrypted_compute client_decrypt_decode client_postprocess; do
    ln -f "$folder/target/release/sudare-fetch" "$folder/build/$step"
done
