use super::{Answer, Files, THEIRS, require};
use num_complex::Complex64;
use std::error::Error;
use std::io;
use sudare_he::ckks::{Ciphertext, Decodable, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Plaintext};
use sudare_lattigo::{Claim, Exchange, Noise, Packing, params};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;

/// Values of all slots; the peer has the same formulas.
pub fn values(slots: usize) -> [Vec<Complex64>; 2] {
    let part = |i: usize, a: usize, b: usize, m: usize| ((a * i + b) % m) as f64 / (m / 2) as f64 - 1.0;
    let x = (0..slots).map(|i| Complex64::new(part(i, 7, 3, 41), part(i, 5, 1, 37)));
    let y = (0..slots).map(|i| Complex64::new(part(i, 11, 2, 29), 0.0));
    [x.collect(), y.collect()]
}

/// Bounds on both.
const BOUNDS: [f64; 2] = [1.5, 1.0];

/// A plaintext has to be right within the error that it states.
fn check<P: Decodable>(
    what: &str,
    encoder: &Encoder,
    found: &Plaintext<P>,
    expected: &[Complex64],
) -> Result<(), Box<dyn Error>> {
    let worst = encoder.decode_complex(found)?.iter().zip(expected).map(|(f, e)| (f - e).norm()).fold(0.0, f64::max);
    println!("    {what}: error 2^{:.1}, bound 2^{:.1}", worst.log2(), found.error_bound().log2());
    require(what, worst <= found.error_bound())
}

/// Reads and checks everything of theirs, and answers.
pub fn answer(read: impl Fn(&str) -> io::Result<Vec<u8>>, security: Security) -> Answer {
    let params = params::ckks_from_json(&read("params.json")?, security)?;
    let exchange = Exchange::new(params.clone())?;
    let (encoder, slots, top) = (Encoder::new(&params), exchange.all_slots(), params.max_level());
    let [x, y] = values(params.slots());
    let n = x.len();
    let product: Vec<_> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
    let rotated: Vec<_> = (0..n).map(|i| x[(i + 1) % n]).collect();
    let conjugate: Vec<_> = x.iter().map(Complex64::conj).collect();
    let few: Vec<_> = (0..n).map(|i| x[i % 8]).collect();

    // Theirs.
    let secret = exchange.read_secret_key(THEIRS, &read("secret")?)?;
    let public = exchange.read_public_key(THEIRS, &read("public")?)?;
    let server = Evaluator::new(&params, exchange.read_eval_keys(THEIRS, &read("keys")?)?)?;
    let decryptor = Decryptor::new(&secret);
    let checked = |what: &str, found: &Ciphertext, expected: &[Complex64]| -> Result<(), Box<dyn Error>> {
        check(what, &encoder, &decryptor.decrypt(found)?, expected)
    };
    let load = |name: &str, bound, noise| -> Result<(Ciphertext, Packing), Box<dyn Error>> {
        Ok(exchange.read_ciphertext(THEIRS, &read(name)?, Claim { bound, noise })?)
    };
    let plain = exchange.read_plaintext(&read("x.pt")?, BOUNDS[0])?.0;
    check("plaintext", &encoder, &plain, &x)?;
    let (a, packing) = load("x.ct", BOUNDS[0], Noise::FreshPublicKey)?;
    require("its slots", packing == slots)?;
    checked("ciphertext under the public key", &a, &x)?;
    let b = load("y.ct", BOUNDS[1], Noise::FreshSecretKey)?.0;
    checked("ciphertext under the secret key", &b, &y)?;
    let (c, packing) = load("few.ct", BOUNDS[0], Noise::FreshSecretKey)?;
    require("eight slots", packing == Packing::Slots { log_rows: 0, log_columns: 3 })?;
    checked("eight slots", &c, &few)?;
    let three = server.mul(&a, &b)?;
    let under = Encryptor::with_public_key(&public)?.encrypt(&plain)?;
    let mut files = Files::new();
    for (name, found, expected) in [
        ("product.ct", server.rescale(&server.relinearize(&three)?)?, &product),
        ("three.ct", three, &product),
        ("rotated.ct", server.rotate(&a, 1)?, &rotated),
        ("swapped.ct", server.conjugate(&a)?, &conjugate),
        ("under.ct", under, &x),
    ] {
        checked(name, &found, expected)?;
        files.push((name.into(), exchange.write_ciphertext(&found, slots)?));
    }

    // Ours.
    let secret = SecretKey::generate(&params)?;
    let elements = [(params.rotation_element(1), top), (params.conjugation_element(), top)];
    let keys = KeyGenerator::new(&secret)?.eval_keys(Some(top), &elements)?;
    let encryptor = Encryptor::with_secret_key(&secret)?;
    let at = |max_abs| EncodeAt { max_abs, ..encoder.at_top(1.0) };
    let [x, y] = [encoder.encode_complex(&x, at(BOUNDS[0]))?, encoder.encode_complex(&y, at(BOUNDS[1]))?];
    let own: [(&str, Vec<u8>); 7] = [
        ("params.json", params::ckks_to_json(&params)?.into_bytes()),
        ("secret", exchange.write_secret_key(&secret)?.to_vec()),
        ("public", exchange.write_public_key(&secret)?),
        ("keys", exchange.write_eval_keys(&keys)?),
        ("x.pt", exchange.write_plaintext(&x, slots)?),
        ("x.ct", exchange.write_ciphertext(&encryptor.encrypt(&x)?, slots)?),
        ("y.ct", exchange.write_ciphertext(&encryptor.encrypt(&y)?, slots)?),
    ];
    files.extend(own.map(|(name, bytes)| (name.to_owned(), bytes)));
    Ok(files)
}
