//! 4. Release: results that others will see.
//!
//! Whoever sees a ciphertext of this scheme *and* its exact decryption can compute the secret key
//! (Li–Micciancio, ePrint 2020/1533). So there are two decryptions: a private one for the key's
//! owner, and one for release, which adds noise that hides the error. How much follows from what the
//! computation can do to the error, which the owner works out: a ciphertext from a server says what
//! the server wrote.
//!
//! Run with `cargo run -p sudare-he --example 4_release`.

use sudare_he::HeError;
use sudare_he::ckks::noise::{division_bound, switching_bound};
use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, Expected, ReleasePolicy};
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

    // The owner knows what was asked for, x·x relinearised and rescaled, and so its level, its scale and
    // how wrong it can be: values of up to one with errors of x.noise(), then what the steps add.
    let top = params.max_level();
    let prime = params.prime_at(top) as f64;
    let scale = params.scale() * params.scale() / prime;
    let product = 2.0 * params.scale() * x.noise() + x.noise() * x.noise() + switching_bound(&params, top);
    let expected = Expected { level: top - 1, scale, error: (product / prime + division_bound(&params, 2)) / scale };

    // Two results will be shown under this key, each with 30 bits of statistical security.
    let policy = ReleasePolicy::new(2, 30)?;
    let first = decryptor.decrypt_for_release(&squares, &expected, policy)?;
    let second = decryptor.decrypt_for_release(&squares, &expected, policy)?;
    let promised = policy.released_error(params.slots(), expected.error);
    println!("released values are within {promised:.1e}");
    for i in 0..salaries.len() {
        let exact = salaries[i] * salaries[i];
        println!("{exact:.6}: private {:.9}, released {:.9} and {:.9}", private[i], first[i], second[i]);
        assert!((private[i] - exact).abs() < expected.error);
        assert!((first[i] - exact).abs() < promised && (second[i] - exact).abs() < promised);
        // The noise is fresh each time, and far above the error that it hides.
        assert!((first[i] - second[i]).abs() > 10.0 * (private[i] - exact).abs());
    }

    // A third is not covered by what was declared: the count is the key's, and its file keeps it.
    match decryptor.decrypt_for_release(&squares, &expected, policy) {
        Err(error @ HeError::ReleasesUsedUp { .. }) => println!("refused: {error}"),
        other => panic!("a third release has to be refused, and gave {:?}", other.map(|_| ())),
    }
    Ok(())
}
