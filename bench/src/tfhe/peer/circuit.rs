//! The peer's circuit bootstrap: a bootstrap for each level, then private functional key switches.

use super::kept::Kept;
use super::{Claims, Operation};
use crate::Outcome;
use tfhe::core_crypto::fft_impl::fft64::crypto::wop_pbs::{
    circuit_bootstrap_boolean, circuit_bootstrap_boolean_scratch,
};
use tfhe::core_crypto::prelude::{
    ComputationBuffers, DefaultRandomGenerator, DeltaLog, EncryptionRandomGenerator, Fft, FourierLweBootstrapKey,
    GgswCiphertext, Plaintext, SecretRandomGenerator, allocate_and_encrypt_new_lwe_ciphertext,
    allocate_and_generate_new_binary_glwe_secret_key, allocate_and_generate_new_binary_lwe_secret_key,
    decrypt_constant_ggsw_ciphertext, new_seeder, par_allocate_and_generate_new_circuit_bootstrap_lwe_pfpksk_list,
    par_allocate_and_generate_new_lwe_bootstrap_key, par_convert_standard_lwe_bootstrap_key_to_fourier,
};
use tfhe::shortint::parameters::parameters_wopbs_message_carry::LEGACY_WOPBS_PARAM_MESSAGE_2_CARRY_2_KS_PBS as SET;

/// Of one bit to a selector in coefficients. Left out are the key switch to the dimension that bootstraps
/// read and the transform to evaluations, both of which ours has.
pub fn bootstrap() -> Outcome<Box<dyn Operation>> {
    let mut seeder = new_seeder();
    let mut secret = SecretRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed());
    let mut random = EncryptionRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed(), seeder.as_mut());
    let (glwe_size, q) = (SET.glwe_dimension.to_glwe_size(), SET.ciphertext_modulus);
    let lwe = allocate_and_generate_new_binary_lwe_secret_key(SET.lwe_dimension, &mut secret);
    let glwe = allocate_and_generate_new_binary_glwe_secret_key(SET.glwe_dimension, SET.polynomial_size, &mut secret);
    let plain_key = par_allocate_and_generate_new_lwe_bootstrap_key(
        &lwe,
        &glwe,
        SET.pbs_base_log,
        SET.pbs_level,
        SET.glwe_noise_distribution,
        q,
        &mut random,
    );
    let mut key =
        FourierLweBootstrapKey::new(SET.lwe_dimension, glwe_size, SET.polynomial_size, SET.pbs_base_log, SET.pbs_level);
    par_convert_standard_lwe_bootstrap_key_to_fourier(&plain_key, &mut key);
    drop(plain_key);
    let switches = par_allocate_and_generate_new_circuit_bootstrap_lwe_pfpksk_list(
        &glwe.clone().into_lwe_secret_key(),
        &glwe,
        SET.pfks_base_log,
        SET.pfks_level,
        SET.pfks_noise_distribution,
        q,
        &mut random,
    );
    // The bit is the highest of the word.
    let inputs = [0u64, 1].map(|bit| {
        allocate_and_encrypt_new_lwe_ciphertext(&lwe, Plaintext(bit << 63), SET.lwe_noise_distribution, q, &mut random)
    });
    let fft = Fft::new(SET.polynomial_size);
    let mut buffers = ComputationBuffers::new();
    let scratch = circuit_bootstrap_boolean_scratch::<u64>(
        inputs[0].lwe_size(),
        key.output_lwe_dimension().to_lwe_size(),
        glwe_size,
        SET.polynomial_size,
        fft.as_view(),
    );
    buffers.resize(scratch.unaligned_bytes_required());
    let params = format!(
        "n {} N {} k {} digits {}x{}, {} levels {}, switch {}x{}; legacy set",
        SET.lwe_dimension.0,
        SET.polynomial_size.0,
        SET.glwe_dimension.0,
        SET.pbs_base_log.0,
        SET.pbs_level.0,
        SET.cbs_level.0,
        SET.cbs_base_log.0,
        SET.pfks_base_log.0,
        SET.pfks_level.0
    );
    Kept::first(
        64,
        (params, Claims::default()),
        move |i| {
            let mut out = GgswCiphertext::new(0u64, glwe_size, SET.polynomial_size, SET.cbs_base_log, SET.cbs_level, q);
            circuit_bootstrap_boolean(
                key.as_view(),
                inputs[i % 2].as_view(),
                out.as_mut_view(),
                DeltaLog(63),
                switches.as_view(),
                fft.as_view(),
                buffers.stack(),
            );
            out
        },
        move |i, c| decrypt_constant_ggsw_ciphertext(&glwe, c).0 == (i % 2) as u64,
    )
}
