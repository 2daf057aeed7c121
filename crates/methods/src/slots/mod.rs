//! Products of matrices packed into slots.
//!
//! * [`paper3d`]: three-dimensional arrays as `000` prints them (Algorithms 1–4).
//! * [`improved3d`]: the same idea with merged and hoisted rotations, no last mask, spare slots
//!   carrying more products, and real pairs.
//! * [`spread3d`]: fresh operands encrypted already spread out.
//! * [`tiles`]: matrices of any shape cut into tiles, for whole expressions.
//! * [`lines`]: their rows and columns moved and repeated.
//! * [`grid`]: tables element by element, with broadcasting and sums over axes.
//! * [`jiang`]: Jiang–Kim–Lauter–Song, as laid out in `000`'s \[15\] and with hoisted linear maps.

pub mod common;
pub mod cube;
pub mod grid;
pub mod improved3d;
pub mod jiang;
pub mod lines;
pub mod paper3d;
pub mod spread3d;
pub mod tiles;
