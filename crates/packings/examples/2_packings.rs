//! 2. Exact integers: a covariance, a pattern in a text, and a matrix product, encrypted.
//!
//! Run with `cargo run -p sudare-packings --example 2_packings`.

use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_packings::PackingError;
use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, SecretKey};
use sudare_packings::{Entries, FirstMethod, MatrixPacking, PatternMatching, Statistics};
use sudare_rlwe::security::Security;

/// Speeds in miles an hour and stopping distances in feet of fifty cars (M. Ezekiel, 1930).
const SPEED: [i128; 50] = [
    4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16, 16, 17, 17,
    17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25,
];
const DISTANCE: [i128; 50] = [
    2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54, 32, 40, 32,
    40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85,
];

fn main() -> Result<(), PackingError> {
    covariance()?;
    pattern()?;
    product()
}

/// Two owners encrypt a column each; the server multiplies; only sums are ever decrypted.
fn covariance() -> Result<(), PackingError> {
    // 50 entries below 2^7 in base 16: parameters for that, and for nothing else.
    let params = Statistics::parameters(50, 7, 16, false, Security::Bits128)?.build()?;
    println!("{params:?}");
    let statistics = Statistics::new(&params, 50, 7, 16, false)?;
    let secret = SecretKey::generate(&params)?;
    let public = secret.public_key()?;
    let encryptor = Encryptor::new(&public)?;
    let columns = [statistics.encrypt(&encryptor, &SPEED)?, statistics.encrypt(&encryptor, &DISTANCE)?];

    let encrypted = statistics.moments(&Evaluator::new(&params), &columns)?;

    let moments = statistics.decrypt(&Decryptor::new(&secret), &encrypted)?;
    assert_eq!(moments.sums(), [770, 2149]);
    assert_eq!(moments.products().get(0, 1), 38482);
    let (covariance, correlation) = (moments.covariance(0, 1, 1), moments.correlation(0, 1));
    println!("sums {:?}, covariance {covariance:?}, correlation {correlation:?}\n", moments.sums());
    Ok(())
}

/// Where a short sequence occurs in a longer one, up to one difference.
fn pattern() -> Result<(), PackingError> {
    // Letters as two bits, so that the Hamming distance counts bits.
    let bits = |text: &str| -> Vec<i128> {
        let code = |c| match c {
            'A' => [0, 0],
            'C' => [0, 1],
            'G' => [1, 0],
            _ => [1, 1],
        };
        text.chars().flat_map(code).collect()
    };
    let (text, pattern) = (bits("ACGTTGCATGTCGCATGATGCATGAGAGCT"), bits("GCATGA"));
    let params = PatternMatching::parameters(text.len(), pattern.len(), Entries::BINARY, Security::Bits128)?.build()?;
    let matching = PatternMatching::new(&params, text.len(), pattern.len(), Entries::BINARY)?;
    let secret = SecretKey::generate(&params)?;
    let public = secret.public_key()?;
    let encryptor = Encryptor::new(&public)?;
    let (x, y) = (matching.encrypt_text(&encryptor, &text)?, matching.encrypt_pattern(&encryptor, &pattern)?);

    let distances = matching.distances(&Evaluator::new(&params), &x, &y)?;

    let distances = matching.decode(&Decryptor::new(&secret).decrypt(&distances)?);
    let exact: Vec<usize> = distances.iter().step_by(2).enumerate().filter(|d| *d.1 == 0).map(|d| d.0).collect();
    println!("the pattern begins at letters {exact:?}\n");
    assert_eq!(exact, [12, 19]);
    Ok(())
}

/// A 20×12 with a 12×5 matrix of entries of either sign, by one multiplication for each column.
fn product() -> Result<(), PackingError> {
    let (shape, entries) = (Shape::new(20, 12, 5), Entries::digits(12, 64, true)?);
    let params = FirstMethod::parameters(shape, entries, Security::Bits128)?.build()?;
    let packing = FirstMethod::new(&params, shape, entries)?;
    let secret = SecretKey::generate(&params)?;
    let public = secret.public_key()?;
    let encryptor = Encryptor::new(&public)?;
    let a = Matrix::<i128>::from_fn(20, 12, |i, j| (i * 397 + j * 211) as i128 % 8191 - 4095)?;
    let b = Matrix::<i128>::from_fn(12, 5, |i, j| (i * 1009 + j * 613) as i128 % 8191 - 4095)?;
    let x = packing.encrypt(&encryptor, Operand::Left, &a)?;
    let y = packing.encrypt(&encryptor, Operand::Right, &b)?;
    let product = packing.multiply(&Evaluator::new(&params), &x, &y)?;
    assert_eq!(packing.decrypt(&Decryptor::new(&secret), &product)?, a.matmul(&b)?);
    println!("20×12 · 12×5 by the {} method: exact", packing.name());

    // What does not fit is refused, and the message says by how much.
    match FirstMethod::new(&params, Shape::new(20, 512, 5), entries) {
        Err(error) => println!("refused: {error}"),
        Ok(_) => panic!("512 terms do not fit these parameters"),
    }
    Ok(())
}
