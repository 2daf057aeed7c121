//! Derived parameter sets: they keep their bounds, their bootstraps are right, and their keys are as long as said.

use sudare_ring::fourier::Fourier;
use sudare_rlwe::security::Security;
use sudare_tfhe::params::derive::{Wanted, derive};
use sudare_tfhe::*;

#[test]
fn a_set_for_gates() {
    let hand = TfheLiteral::gates();
    let wanted = Wanted { plaintext: hand.plaintext, noise_factor: hand.noise_factor, log_failure: hand.log_failure };
    let found = derive(&wanted).unwrap();
    assert!(found.log_failure <= -128.0 && found.literal.security == Security::Bits128);
    let client = ClientKey::generate(&found.literal.build().unwrap()).unwrap();
    let server = client.server_key().unwrap();
    let ratio = server.byte_len() as f64 / found.key_bytes as f64;
    let rounded = Fourier::is_faster(client.params().context().limb());
    let expected = if rounded { 1.0..2.2 } else { 0.99..1.01 };
    assert!(expected.contains(&ratio), "{ratio}");
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        let (x, y) = (client.encrypt_bit(a).unwrap(), client.encrypt_bit(b).unwrap());
        let out = server.gate(Gate::Nand, &x, &y).unwrap();
        assert_eq!(client.decrypt_bit(&out).unwrap(), Gate::Nand.plain(a, b));
    }
}

/// More depth, more bits or a smaller bound never make a set quicker by the model.
#[test]
fn more_costs_more() {
    let model = |bits: u32, noise_factor: u64, log_failure: f64| {
        let plaintext = Plaintext::Integer { message_bits: bits, carry_bits: 1 };
        let found = derive(&Wanted { plaintext, noise_factor, log_failure }).unwrap();
        assert!(found.log_failure <= log_failure);
        found.model_ms
    };
    let base = model(1, 4, -40.0);
    assert!(base <= model(2, 4, -40.0) && base <= model(1, 25, -40.0) && base <= model(1, 4, -128.0));
}

#[test]
fn what_cannot_be_is_refused() {
    let integer = |message_bits, carry_bits| Plaintext::Integer { message_bits, carry_bits };
    for (plaintext, noise_factor, log_failure) in
        [(integer(0, 2), 1, -64.0), (integer(9, 9), 1, -64.0), (integer(2, 2), 0, -64.0), (integer(2, 2), 1, 1.0)]
    {
        let refused = derive(&Wanted { plaintext, noise_factor, log_failure });
        assert!(matches!(refused, Err(TfheError::Parameters { .. })));
    }
}
