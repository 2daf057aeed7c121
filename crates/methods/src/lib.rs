//! Products of encrypted matrices of any shape.
//!
//! A [`ProductSpec`] says which product (its [`Shape`](sudare_expr::Shape)), by which [`Method`], under which
//! parameters; it is what a plan stores. Its [`ProductPlan`] says which keys it needs, what it costs and
//! which error it promises, without anything being built; built, it is a [`Product`]: how operands
//! are encoded, multiplied and decoded. [`Work`](sudare_rlwe::work::Work) counts what a product costs, in operations that a
//! machine's cost model prices.
//!
//! ```
//! use sudare_expr::{Matrix, Operand, Shape};
//! use sudare_he::ckks::{Decryptor, Encryptor, Evaluator};
//! use sudare_methods::Requirements;
//! use sudare_methods::products::candidates;
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//! use sudare_rlwe::security::Security;
//!
//! # fn main() -> Result<(), sudare_methods::MatrixError> {
//! // A 2×3 times a 3×2 matrix, elements up to 4, to within 1e-3; both encrypted for it, the result decrypted.
//! let (shape, max_abs) = (Shape::new(2, 3, 2), [4.0; 2]);
//! let security = Security::Bits128;
//! let wanted = Requirements { shape, max_abs, error: 1e-3, security, fresh: [true; 2], decrypt_next: true };
//! // A planner weighs what every method proposes; here the first that promises the error will do.
//! let all = candidates(&wanted);
//! let serves = all.iter().find(|spec| spec.plan().is_ok_and(|plan| plan.serves(max_abs, wanted.error)));
//! let product = serves.expect("a method for every shape").build()?;
//!
//! let secret = SecretKey::generate(product.params())?;
//! let needed = product.figures(max_abs)?.keys;
//! let keys = KeyGenerator::new(&secret)?.eval_keys(needed.relin, &needed.galois)?;
//! let encryptor = Encryptor::with_secret_key(&secret)?;
//! let encrypt = |operand, matrix: &Matrix| -> Result<Vec<_>, sudare_methods::MatrixError> {
//!     let plain = product.encode(operand, std::slice::from_ref(matrix), 4.0)?;
//!     Ok(plain.iter().map(|p| encryptor.encrypt(p)).collect::<Result<_, _>>()?)
//! };
//! let a = Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 0.0, -1.0])?;
//! let b = Matrix::new(3, 2, vec![1.0, 0.0, 0.0, 1.0, 2.0, 2.0])?;
//! let (left, right) = (encrypt(Operand::Left, &a)?, encrypt(Operand::Right, &b)?);
//! let result = product.multiply(&Evaluator::new(product.params(), keys)?, &left, &right)?;
//!
//! let decryptor = Decryptor::new(&secret);
//! let plain = result.iter().map(|c| decryptor.decrypt(c)).collect::<Result<Vec<_>, _>>()?;
//! assert!(product.decode(&plain)?[0].max_difference(&a.matmul(&b)?) <= 1e-3);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod blocked;
pub mod circuit;
pub mod claims;
pub mod error;
pub mod exact;
pub mod holders;
pub mod portable;
pub mod product;
pub mod products;
pub mod rounding;
pub mod sizing;
pub mod slots;
pub mod statistics;
pub mod tables;

pub use error::MatrixError;
pub use holders::Holders;
pub use product::{Figures, KeyDemand, Product, ProductPlan, Requirements};
pub use products::{Method, ProductSpec};
