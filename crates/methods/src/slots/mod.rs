//! Matrices packed into slots: layouts, and what is done on them.
//!
//! * [`cube`]: three-dimensional arrays, into which operands are spread and out of which sums are folded.
//! * [`tiles`]: matrices of any shape cut into tiles, for whole expressions.
//! * [`lines`]: their rows and columns moved and repeated.
//! * [`grid`]: tables element by element, with broadcasting and sums over axes.

pub mod common;
pub mod cube;
pub mod grid;
pub mod lines;
pub mod tiles;
