//! Small integers and bits: exact vectors over Z_t, with any table of their values by one bootstrap.
//!
//! An integer x stands in a real or imaginary part of a CKKS slot, with an error whose bound is part of the value and below
//! ½. Sums and multiples are linear. A table f of the integers modulo t is a bootstrap in which f takes the place of the
//! modular reduction: x comes out as f(x) with a fresh error, for all N integers of a ciphertext at once
//! (Bae–Cheon–Kim–Stehlé, ePrint 2024/767; Alexandru–Kim–Polyakov, ePrint 2024/1623). Several tables of one input share all but
//! their own polynomials. What could come out wrong is refused before any work: bounds hold with probability 1 − 2^−128.
//!
//! | Subject | Where |
//! |---|---|
//! | the value, encryption and decryption | [`Discrete`], [`Encryptor`], [`Decryptor`] |
//! | sums, multiples, tables, products | [`Evaluator`], [`Table`] |
//! | errors before there are keys | [`Forecast`] |
//! | tables or TFHE, by the number of values | [`Choice`] |
//! | the 16 gates of two bits | [`Gate`] |
//! | integers in coefficients, where other schemes meet them | [`Coefficients`] |
//! | coefficients of BFV and BGV in and out | [`Evaluator::from_exact`], [`Evaluator::to_exact`] |
//! | bits of TFHE in and out | [`LweKeys`], [`LweBits`] |
//! | sets of 128 bits of security | [`DiscreteSet`] |
//! | tables on ciphertexts, their errors | [`crate::circuits::bootstrapping`], [`crate::circuits::mod1`] |
//!
//! ```
//! use sudare_he::circuits::bootstrapping::{BootstrapKeys, Bootstrapper};
//! use sudare_he::discrete::{Decryptor, DiscreteSet, Encryptor, Evaluator, Form, Gate, Table};
//! use sudare_rlwe::keys::SecretKey;
//!
//! # fn main() -> Result<(), sudare_he::HeError> {
//! // A small ring is no secure one: `DiscreteSet::S15.literal().build()?` is.
//! let params = DiscreteSet::S15.literal().insecure(9)?.build()?;
//! let secret = SecretKey::generate(params.params())?;
//! let server = Evaluator::new(Bootstrapper::new(BootstrapKeys::generate(&secret, &params)?, None)?)?;
//!
//! let client = Encryptor::with_secret_key(&params, &secret)?;
//! let x = client.encrypt(&[3, 5, 15], 16, Form::Packed)?;
//! // x² mod 16 and whether x is even, by one bootstrap.
//! let squares = Table::of(16, 16, |x| x * x % 16)?;
//! let even = Table::of(16, 16, |x| u64::from(x % 2 == 0))?;
//! let [square, even] = &server.tables(&x, &[squares, even])?[..] else { panic!("two tables") };
//!
//! let owner = Decryptor::new(&params, &secret)?;
//! assert_eq!(owner.decrypt(square)?[..3], [9, 9, 1]);
//! assert_eq!(owner.decrypt(&server.add(square, even)?)?[..4], [9, 9, 1, 1]);
//!
//! let bits = [true, false, true].map(|bit| client.encrypt_bits(&[bit], Form::Packed));
//! let [a, b, c] = bits.map(Result::unwrap);
//! let out = server.gate(Gate::AND, &server.gate(Gate::OR, &a, &b)?, &c)?;
//! assert_eq!(owner.decrypt(&out)?[0], 1);
//! # Ok(())
//! # }
//! ```

mod choice;
mod coefficients;
mod crypt;
mod evaluator;
mod exact;
mod forecast;
mod gate;
mod lwe;
mod set;
mod table;
mod value;
mod wire;

pub use crate::circuits::bootstrapping::Errors;
pub use choice::{Choice, Layer};
pub use coefficients::{Coefficients, place, turn};
pub use crypt::{Decryptor, Encryptor};
pub use evaluator::Evaluator;
pub use exact::{entry_element, exit_element};
pub use forecast::{Forecast, packed_scale};
pub use gate::Gate;
pub use lwe::{LweBits, LweKeys, LweParams};
pub use set::DiscreteSet;
pub use table::Table;
pub use value::{Discrete, Form, largest_modulus};
