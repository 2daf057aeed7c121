//! Objects of both libraries in each other's hands. `tests/data` was written by Lattigo v6.2.0 (`bench/lattigo`, sets
//! `tiny-ckks` and `tiny-exact`).

#[allow(dead_code)]
#[path = "../../examples/exchange/answer/mod.rs"]
mod answer;
mod hostile;
mod known;
mod refusals;
mod round_trip;
mod world;
