//! The kernel suite: every family that this machine has, through [`Limb`](sudare_ring::Limb) and the
//! permutations and embeddings, against naive arithmetic at the edges of the ranges that the contract
//! states (`src/kernel/contract.rs`), the worst case of every accumulator included. A new family is in
//! it by being in `Family::ALL`. (What has no modulus is tested beside the code, in `kernel/words.rs`
//! and `kernel/random.rs`; shapes that no kernel may see in `tests/bounds.rs`.)

mod automorphism;
mod embedding;
mod external;
mod limbs;
mod ops;
mod platform;
mod polynomials;
mod reference;
mod support;
mod transforms;
