//! The crate `fhe`: BFV as others write it in Rust.

use crate::Outcome;
use fhe::bfv::{BfvParametersBuilder, Ciphertext, Encoding, Multiplicator, Plaintext, RelinearizationKey, SecretKey};
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use std::hint::black_box;

/// The peer in the records.
pub const NAME: &str = "fhe 0.1";

/// log2 N and bits of the primes.
pub const SETS: [(u32, &[usize]); 3] = [(13, &[44; 5]), (14, &[49; 9]), (15, &[55; 15])];

/// Two operands and what multiplies them.
pub struct Peer {
    secret: SecretKey,
    multiplicator: Multiplicator,
    a: Ciphertext,
    b: Ciphertext,
    x: Vec<u64>,
    t: u64,
}

impl Peer {
    /// Keys and operands of one set.
    pub fn new(log_n: u32, t: u64, sizes: &[usize]) -> Outcome<Self> {
        let mut random = rand::rng();
        let mut builder = BfvParametersBuilder::new();
        let params = builder.set_degree(1 << log_n).set_plaintext_modulus(t).set_moduli_sizes(sizes).build_arc()?;
        let secret = SecretKey::random(&params, &mut random);
        let multiplicator = Multiplicator::default(&RelinearizationKey::new(&secret, &mut random)?)?;
        let x = sudare_testkit::Random(1).words(t, 1 << log_n);
        let plain = Plaintext::try_encode(&x, Encoding::simd(), &params)?;
        let (a, b) = (secret.try_encrypt(&plain, &mut random)?, secret.try_encrypt(&plain, &mut random)?);
        Ok(Self { secret, multiplicator, a, b, x, t })
    }

    /// One addition.
    pub fn add(&self) {
        black_box(&self.a + &self.b);
    }

    /// One product with relinearisation.
    pub fn multiply(&self) {
        let _ = black_box(self.multiplicator.multiply(&self.a, &self.b));
    }

    /// Whether its product is right: a comparison with a wrong answer would be none.
    pub fn check(&self) -> Outcome<()> {
        let product = self.multiplicator.multiply(&self.a, &self.b)?;
        let found = Vec::<u64>::try_decode(&self.secret.try_decrypt(&product)?, Encoding::simd())?;
        match self.x.iter().zip(&found).all(|(x, y)| *x * *x % self.t == *y) {
            true => Ok(()),
            false => Err("the peer's product is wrong".into()),
        }
    }
}
