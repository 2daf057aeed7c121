//! Kernels of every family, randomness, and the bounds of shapes.

mod bounds;
mod kernels;
mod random;
