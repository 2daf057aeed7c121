//! 2. Levels and scales: x³ + 0.5·x, and what is refused on the way.
//!
//! Run with `cargo run -p sudare-he --example 2_levels_and_scales`.

use sudare_he::HeError;
use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;

fn main() -> Result<(), HeError> {
    let params = ParamsLiteral::with_depth(2, 40, Security::Bits128)?.build()?;
    let secret = SecretKey::generate(&params)?;
    let server = Evaluator::new(&params, KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?)?;
    let encoder = Encoder::new(&params);
    let values: Vec<f64> = (0..8).map(|i| f64::from(i) / 8.0).collect();
    let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&values, 1.0)?)?;

    // A fresh ciphertext is at the top level. Each product multiplies the scales, and the rescale
    // after it divides by one prime: the level goes down by one.
    assert_eq!(x.level(), 2);
    let square = server.mul_rescale(&x, &x)?;
    assert_eq!(square.level(), 1);
    println!("x²: level {}, scale 2^{:.6}", square.level(), square.scale().log2());

    // Primes are only near the scale, so scales drift. They are tracked exactly, and a sum of two
    // that differ is refused with both of them in the error, not computed a little wrong.
    let cube = server.mul_rescale(&square, &server.drop_to(&x, 1)?)?;
    let half = server.mul_constant(&x, 0.5)?;
    match server.add(&cube, &half) {
        Err(error @ HeError::ScaleMismatch { .. }) => println!("refused: {error}"),
        other => panic!("a sum at two scales has to be refused, and gave {other:?}"),
    }

    // The remedy that the error names: bring one to the scale of the other.
    let half = server.set_scale(&half, cube.scale())?;
    let result = server.add(&cube, &half)?;
    println!("x³ + 0.5·x: {result:?}");

    // No level is left for another product; that too is said before anything is computed.
    assert_eq!(result.level(), 0);
    assert!(matches!(
        server.mul_rescale(&result, &result),
        Err(HeError::TooLarge { .. } | HeError::Rlwe(RlweError::OutOfLevels { .. }))
    ));

    let shown = encoder.decode(&Decryptor::new(&secret).decrypt(&result)?)?;
    for (v, r) in values.iter().zip(&shown) {
        assert!((r - (v * v * v + 0.5 * v)).abs() <= result.error_bound());
    }
    println!("largest error allowed by the static bound: {:.1e}", result.error_bound());
    Ok(())
}
