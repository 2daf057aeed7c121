//! The numbers.

use crate::params::published::{
    Plaintext, PublishedLwe, PublishedNoise, PublishedRotation, PublishedSecret, PublishedSet,
};
use PublishedNoise::{Fraction, TUniform};
use PublishedSecret::{Binary, Gaussian, HalfZero, Ternary};

const fn lwe(dimension: usize, log_modulus: u32, noise: PublishedNoise, secret: PublishedSecret) -> PublishedLwe {
    PublishedLwe { dimension, log_modulus, noise, secret }
}

/// A deviation of 2^−`log`.
const fn power(log: u32) -> PublishedNoise {
    Fraction(1.0 / (1u64 << log) as f64)
}

const fn gates(name: &'static str, source: &'static str, degree: usize) -> PublishedSet {
    PublishedSet {
        name,
        source,
        plaintext: Plaintext::Bit,
        lwe: lwe(0, 32, TUniform(0), Binary),
        glwe: lwe(0, 32, TUniform(0), Binary),
        degree,
        rotation: PublishedRotation::Cmux,
        bootstrap_digits: (0, 0),
        switch_digits: (0, 0),
        log_failure: None,
        claimed_bits: None,
    }
}

/// Two bits of message and two of carry with N = 2048 and k = 1, modulo 2^64.
const fn integers(name: &'static str, source: &'static str, log_failure: f64) -> PublishedSet {
    PublishedSet {
        plaintext: Plaintext::Integer { message_bits: 2, carry_bits: 2 },
        bootstrap_digits: (1 << 23, 1),
        switch_digits: (1 << 3, 5),
        log_failure: Some(log_failure),
        claimed_bits: Some(132),
        ..gates(name, source, 2048)
    }
}

/// The ring of the sets with Gaussian noise among them.
const GAUSSIAN_RING: PublishedLwe = lwe(2048, 64, Fraction(2.845267479601915e-15), Binary);

/// The sets of TFHEpp, tfhe-rs and FHEW.
pub const SETS: [PublishedSet; 12] = [
    PublishedSet {
        lwe: lwe(500, 32, Fraction(2.44e-5), Binary),
        glwe: lwe(1024, 32, Fraction(3.73e-9), Binary),
        bootstrap_digits: (1 << 10, 2),
        switch_digits: (1 << 2, 8),
        ..gates("tfhepp cggi16", "TFHEpp, include/params/CGGI16.hpp", 1024)
    },
    PublishedSet {
        lwe: lwe(630, 32, power(15), Binary),
        glwe: lwe(1024, 32, power(25), Binary),
        bootstrap_digits: (1 << 7, 3),
        switch_digits: (1 << 2, 8),
        ..gates(
            "tfhepp cggi19",
            "TFHEpp, include/params/CGGI19.hpp (commit 91c47a4); the default gates of the TFHE library",
            1024,
        )
    },
    PublishedSet {
        lwe: lwe(636, 16, Fraction(9.25119974676756e-5), Binary),
        glwe: lwe(1024, 32, power(25), Ternary),
        bootstrap_digits: (1 << 6, 3),
        switch_digits: (1 << 2, 7),
        claimed_bits: Some(128),
        ..gates("tfhepp 128bit", "TFHEpp, include/params/128bit.hpp (commit 76548bc), levels 0 and 1", 1024)
    },
    PublishedSet {
        lwe: lwe(805, 32, Fraction(5.8615896642671336e-6), Binary),
        glwe: lwe(1536, 32, Fraction(9.315272083503367e-10), Binary),
        bootstrap_digits: (1 << 10, 2),
        switch_digits: (1 << 3, 5),
        log_failure: Some(-64.344),
        claimed_bits: Some(132),
        ..gates("tfhe-rs default", "tfhe-rs 1.8.2, boolean DEFAULT_PARAMETERS", 512)
    },
    PublishedSet {
        lwe: lwe(739, 32, Fraction(1.8304520733507305e-5), Binary),
        glwe: lwe(1536, 32, Fraction(9.315272083503367e-10), Binary),
        bootstrap_digits: (1 << 10, 2),
        switch_digits: (1 << 3, 4),
        log_failure: Some(-64.017),
        claimed_bits: Some(132),
        ..gates("tfhe-rs default ks-pbs", "tfhe-rs 1.8.2, boolean DEFAULT_PARAMETERS_KS_PBS", 512)
    },
    PublishedSet {
        lwe: lwe(770, 32, Fraction(1.0721931696480342e-5), Binary),
        glwe: lwe(2048, 32, Fraction(9.313225746198247e-10), Binary),
        bootstrap_digits: (1 << 10, 2),
        switch_digits: (1 << 3, 5),
        log_failure: Some(-165.0),
        claimed_bits: Some(132),
        ..gates("tfhe-rs 2^-165", "tfhe-rs 1.8.2, boolean PARAMETERS_ERROR_PROB_2_POW_MINUS_165_KS_PBS", 1024)
    },
    PublishedSet {
        lwe: lwe(918, 64, TUniform(45), Binary),
        glwe: lwe(2048, 64, TUniform(17), Binary),
        switch_digits: (1 << 4, 4),
        ..integers(
            "tfhe-rs 2_2 tuniform 2^-128",
            "tfhe-rs 1.8.2, V1_4_PARAM_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128, also of 1.8",
            -129.581,
        )
    },
    PublishedSet {
        lwe: lwe(866, 64, Fraction(2.046151696979124e-6), Binary),
        glwe: GAUSSIAN_RING,
        ..integers(
            "tfhe-rs 2_2 gaussian 2^-128",
            "tfhe-rs 1.8.2, V1_4_PARAM_MESSAGE_2_CARRY_2_KS_PBS_GAUSSIAN_2M128, also of 1.8",
            -128.597,
        )
    },
    PublishedSet {
        lwe: lwe(879, 64, TUniform(46), Binary),
        glwe: lwe(2048, 64, TUniform(17), Binary),
        ..integers(
            "tfhe-rs 2_2 tuniform 2^-64",
            "tfhe-rs 1.8.2, V0_11_PARAM_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M64",
            -71.625,
        )
    },
    PublishedSet {
        lwe: lwe(834, 64, Fraction(3.5539902359442825e-6), Binary),
        glwe: GAUSSIAN_RING,
        ..integers(
            "tfhe-rs 2_2 gaussian 2^-64",
            "tfhe-rs 1.8.2, V0_11_PARAM_MESSAGE_2_CARRY_2_KS_PBS_GAUSSIAN_2M64",
            -64.074,
        )
    },
    PublishedSet {
        lwe: lwe(796, 64, Fraction(6.8462551852215656e-6), Binary),
        glwe: GAUSSIAN_RING,
        ..integers(
            "tfhe-rs 2_2 gaussian 2^-40",
            "tfhe-rs 1.8.2, V1_1_PARAM_MESSAGE_2_CARRY_2_KS_PBS_GAUSSIAN_2M40",
            -40.489,
        )
    },
    PublishedSet {
        lwe: lwe(500, 32, power(15), HalfZero),
        // A deviation of 1.4 modulo 2^32.
        glwe: lwe(1024, 32, Fraction(3.259629011154175e-10), Gaussian(1.4)),
        rotation: PublishedRotation::Digits(23),
        bootstrap_digits: (1 << 11, 3),
        switch_digits: (25, 7),
        ..gates("fhew 1.0", "FHEW 1.0 (2014), params.h and distrib.h; ciphertexts between gates are modulo 512", 1024)
    },
];
