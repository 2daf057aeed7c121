//! 3. Rotations: sums over slots, with exactly the keys that they need.
//!
//! Run with `cargo run -p sudare-he --example 3_rotations`.

use sudare_he::HeError;
use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;

fn main() -> Result<(), HeError> {
    let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
    let secret = SecretKey::generate(&params)?;
    let top = params.max_level();

    // Each rotation step needs a key of its own, and only the ones asked for are made.
    let steps = [1, 2, 3, 4, 8];
    let elements: Vec<(u64, usize)> = steps.iter().map(|s| (params.rotation_element(*s), top)).collect();
    let server = Evaluator::new(&params, KeyGenerator::new(&secret)?.eval_keys(Some(top), &elements)?)?;

    let encoder = Encoder::new(&params);
    let values: Vec<f64> = (0..params.slots()).map(|i| (i as f64 * 0.01).sin()).collect();
    let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&values, 1.0)?)?;
    let decryptor = Decryptor::new(&secret);

    // Slot i of the result is slot i + 3 of the operand; slots wrap around.
    let turned = server.rotate(&x, 3)?;
    let shown = encoder.decode(&decryptor.decrypt(&turned)?)?;
    let n = params.slots();
    for i in 0..n {
        assert!((shown[i] - values[(i + 3) % n]).abs() <= turned.error_bound());
    }

    // Many rotations of one ciphertext share the dear half of their work (hoisting).
    let many = server.rotate_many(&x, &[1, 2, 3])?;
    assert_eq!(many.len(), 3);

    // A logarithmic fold: after rotations by 8, 4, 2, 1 each slot holds a sum of 16.
    let mut sum = x.clone();
    for step in [8, 4, 2, 1] {
        sum = server.add(&sum, &server.rotate(&sum, step)?)?;
    }
    let shown = encoder.decode(&decryptor.decrypt(&sum)?)?;
    for i in 0..n {
        let wanted: f64 = (0..16).map(|k| values[(i + k) % n]).sum();
        assert!((shown[i] - wanted).abs() <= sum.error_bound());
    }
    println!("sums of 16 neighbours: {sum:?}");

    // A step without a key is refused by its name.
    match server.rotate(&x, 5) {
        Err(error @ HeError::Rlwe(RlweError::MissingRotationKey { step: 5, .. })) => println!("refused: {error}"),
        other => panic!("a rotation without a key has to be refused, and gave {other:?}"),
    }
    Ok(())
}
