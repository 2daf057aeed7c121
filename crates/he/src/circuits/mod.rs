//! Circuits: what is built from a scheme's operations and used by many applications.
//!
//! | Circuit | Where | Source |
//! |---|---|---|
//! | trace-type functions: sums, partial sums, replication | [`trace`] | `004`, section 2.4 |
//! | their unrolled form and the choice of h | [`unrolled`], [`cost`] | `004`, Algorithms 3.2.1 and 3.2.2 |
//! | bootstrapping: new levels for the same values | [`bootstrapping`] | ePrint 2020/1203, 2022/024 |
//! | the special FFT of the embedding in stages, both ways | [`dft`] | ePrint 2018/1043, 2018/1073 |
//! | products of blocks of matrices | [`block_product`] | ePrint 2025/1957 |
//! | one ciphertext of many numbers to many of one | [`expansion`] | ePrint 2017/1142 |
//! | inner products | [`inner_product`] | |
//! | linear maps by diagonals: hoisted, in baby and giant steps, chained | [`linear_map`] | ePrint 2014/106, 2020/1203 |
//! | matrix–vector products by diagonals | [`matrix_vector`] | Halevi–Shoup, ePrint 2014/106, 2018/244 |
//! | reduction modulo 1 of numbers near integers | [`mod1`] | ePrint 2019/688, 2021/572 |
//! | polynomials in powers or Chebyshev polynomials, and fits on intervals | [`polynomial`] | ePrint 2020/1203 |
//!
//! ```
//! use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator};
//! use sudare_he::circuits::trace::TraceFunction;
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//! use sudare_he::ckks::ParamsLiteral;
//! use sudare_rlwe::security::Security;
//!
//! # fn main() -> Result<(), sudare_he::HeError> {
//! let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
//! // Sums of eight neighbouring slots, in two iterations instead of three.
//! let plan = TraceFunction::partial_sums(&params, 8)?.unrolled(2)?;
//! let secret = SecretKey::generate(&params)?;
//! let keys = KeyGenerator::new(&secret)?.eval_keys(None, &plan.keys(params.max_level()))?;
//!
//! let encoder = Encoder::new(&params);
//! let x: Vec<f64> = (0..params.slots()).map(|i| (i % 10) as f64).collect();
//! let encrypted = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&x, 9.0)?)?;
//! let sums = Evaluator::new(&params, keys)?.trace(&encrypted, &plan)?;
//!
//! let sums = encoder.decode(&Decryptor::new(&secret).decrypt(&sums)?)?;
//! assert!((sums[0] - (0..8).sum::<i32>() as f64).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```

pub mod block_product;
pub mod bootstrapping;
pub mod cost;
pub mod dft;
pub mod expansion;
pub mod inner_product;
pub mod linear_map;
pub mod matrix_vector;
pub mod mod1;
pub(crate) mod periodic;
pub mod polynomial;
pub mod trace;
pub mod unrolled;
