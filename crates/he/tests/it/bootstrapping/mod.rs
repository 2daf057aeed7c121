//! CKKS bootstrapping and the circuits that it is made of.

mod iterated;
mod linear_map;
mod polynomial;
mod refresh;
mod wire;
