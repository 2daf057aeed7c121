//! Arrays of encrypted integers or booleans, as they travel and as a NumPy user sees them.
//!
//! One type of array stands over two kinds of sets: sets of integers, whose arrays hold integers and booleans
//! as blocks ([`crate::radix`]), and sets of gates, whose arrays hold booleans alone ([`crate::boolean`]),
//! with smaller keys and quicker bootstraps. [`ArrayEvaluator`] is what both can do.

pub(crate) mod evaluator;
mod names;
mod value;

pub use evaluator::{ArrayEvaluator, Elementwise, Reduction};
pub use value::{ElementType, EncryptedArray, MAX_AXES, MAX_ELEMENTS};
pub(crate) use value::{check_element, elements_of};
