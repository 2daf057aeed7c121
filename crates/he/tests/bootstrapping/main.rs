//! CKKS bootstrapping and the circuits that it is made of.

mod polynomial;
mod world;
