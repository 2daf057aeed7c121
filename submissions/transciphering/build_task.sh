#!/bin/sh
# Makes the programs of a transciphering submission. In a fork this is scripts/build_task.sh, run from the root, and the sources of this
# workspace are in submission/sudare.
set -eu
sources=${SUDARE_SOURCES:-submission/sudare}
cargo build --locked --release --manifest-path "$sources/Cargo.toml" -p sudare-submissions --bin sudare-transcipher --target-dir submission/target
for step in client_preprocess client_key_generation client_encode_encrypt server_preprocess_dataset server_encrypted_aes_decryption \
            server_encrypted_compute client_decrypt_decode_aes_decryption client_postprocess_aes_decryption client_decrypt_decode \
            client_postprocess; do
    ln -f submission/target/release/sudare-transcipher "submission/target/release/$step"
done
