//! 4. Release: results that others will see.
//!
//! Whoever sees a ciphertext of this scheme *and* its exact decryption can compute the secret key
//! (Li–Micciancio, ePrint 2020/1533). So there are two decryptions: a private one for the key's
//! owner, and one for release, which adds noise that hides the error.
//!
//! Run with `cargo run -p sudare-he --example 4_release`.

use sudare_he::HeError;
use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, ReleasePolicy};
use sudare_he::keys::{KeyGenerator, SecretKey};
use sudare_he::params::ParamsLiteral;
use sudare_he::security::{SecretDistribution, Security};

fn main() -> Result<(), HeError> {
    // Hiding an error takes room above it: a scale of 2^55 where 2^40 would do in private.
    let params = ParamsLiteral {
        log_n: 14,
        q_bits: vec![61, 61, 55],
        p_bits: vec![61],
        digit_limbs: 1,
        log_scale: 55,
        secret: SecretDistribution::Ternary,
        security: Security::Bits128,
    }
    .build()?;
    let secret = SecretKey::generate(&params)?;
    let server = Evaluator::new(KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?);
    let encoder = Encoder::new(&params);
    let salaries = [0.31, 0.47, 0.22, 0.58];
    let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&salaries, 1.0)?)?;
    let squares = server.mul_rescale(&x, &x)?;

    let decryptor = Decryptor::new(&secret);
    let private = encoder.decode(&decryptor.decrypt(&squares)?)?;

    // Two results will be shown under this key, each with 30 bits of statistical security.
    let policy = ReleasePolicy::new(2, 30);
    let first = encoder.decode(&decryptor.decrypt_for_release(&squares, &policy)?)?;
    let second = encoder.decode(&decryptor.decrypt_for_release(&squares, &policy)?)?;
    for i in 0..salaries.len() {
        let exact = salaries[i] * salaries[i];
        println!("{exact:.6}: private {:.9}, released {:.9} and {:.9}", private[i], first[i], second[i]);
        assert!((private[i] - exact).abs() < 1e-9);
        assert!((first[i] - exact).abs() < 1e-3 && (second[i] - exact).abs() < 1e-3);
        // The noise is fresh each time, and far above the error that it hides.
        assert!((first[i] - second[i]).abs() > (private[i] - exact).abs());
    }

    // A third is not covered by what was declared.
    match decryptor.decrypt_for_release(&squares, &policy) {
        Err(error @ HeError::ReleasesUsedUp { .. }) => println!("refused: {error}"),
        other => panic!("a third release has to be refused, and gave {:?}", other.map(|_| ())),
    }
    Ok(())
}
