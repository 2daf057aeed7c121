//! 1. Basics: parameters, keys, one sum and one product that the server cannot read.
//!
//! Run with `cargo run -p sudare-he --example 1_basics`.

use sudare_he::HeError;
use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;

fn main() -> Result<(), HeError> {
    // Parameters follow from what is wanted: one product in a row, a scale of 2^40, 128 bits of
    // security. A literal is plain data; `build` checks it and precomputes everything.
    let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
    println!("N = {}, log2(Q·P) = {:.0} bits, {} slots", params.degree(), params.log_qp(), params.slots());

    // The client's side: a secret key, and from it what the server needs to multiply.
    let secret = SecretKey::generate(&params)?;
    let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;

    // A ciphertext holds a whole vector, one value per slot. `1.0` bounds the values: a bound
    // travels openly with the ciphertext, so that overflow is refused before it happens.
    let encoder = Encoder::new(&params);
    let encryptor = Encryptor::with_secret_key(&secret)?;
    let x = [0.5, -0.25, 0.125];
    let y = [1.0, 0.5, -1.0];
    let a = encryptor.encrypt(&encoder.encode(&x, 1.0)?)?;
    let b = encryptor.encrypt(&encoder.encode(&y, 1.0)?)?;

    // The server's side: evaluation keys and ciphertexts, no secret. A product of two
    // ciphertexts has three parts and a squared scale; `mul_rescale` brings both back.
    let server = Evaluator::new(&params, keys)?;
    let sum = server.add(&a, &b)?;
    let product = server.mul_rescale(&a, &b)?;
    println!("sum:     {sum:?}");
    println!("product: {product:?}");

    // Back at the client. Errors are small, and never above the bound that travelled along.
    let decryptor = Decryptor::new(&secret);
    let sums = encoder.decode(&decryptor.decrypt(&sum)?)?;
    let products = encoder.decode(&decryptor.decrypt(&product)?)?;
    for i in 0..x.len() {
        println!("{} + {} = {:.9}    {} · {} = {:.9}", x[i], y[i], sums[i], x[i], y[i], products[i]);
        assert!((sums[i] - (x[i] + y[i])).abs() <= sum.error_bound());
        assert!((products[i] - x[i] * y[i]).abs() <= product.error_bound());
    }
    assert!(product.error_bound() < 1e-6);
    Ok(())
}
