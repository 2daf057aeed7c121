//! Arrays of encrypted integers or booleans, as they travel and as a NumPy user sees them.
//!
//! One type of array stands over two kinds of sets: sets of integers, whose arrays hold integers and booleans
//! as blocks ([`crate::radix`]), and sets of gates, whose arrays hold booleans alone ([`crate::boolean`]),
//! with smaller keys and quicker bootstraps. [`ArrayEvaluator`] is what both can do. What is made of its operations
//! (division, sorting, scans, powers, products of matrices) are methods of `dyn ArrayEvaluator`, each layer of
//! bootstraps over all elements at once.

mod division;
pub(crate) mod evaluator;
mod folding;
mod lines;
mod names;
pub(crate) mod progress;
mod sorting;
pub(crate) mod table;
mod value;

pub use division::Divisor;
pub use evaluator::{ArrayEvaluator, Elementwise, Reduction};
pub use progress::Progress;
pub use value::{ElementType, EncryptedArray, MAX_AXES, MAX_ELEMENTS};
pub(crate) use value::{check_element, elements_of, phases};
