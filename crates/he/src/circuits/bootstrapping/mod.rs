//! CKKS bootstrapping: a ciphertext that has used its levels gets new ones, with the same values.
//!
//! The order is slots to coefficients first: what is rounded and raised then has the values themselves
//! as its coefficients, so every input within its bound has room, whatever it looks like in slots.
//!
//! | Step | Where | Source |
//! |---|---|---|
//! | slots to coefficients (StC), on the last primes | [`super::dft`] | ePrint 2018/1043, 2018/1073 |
//! | to a sparse secret modulo q_0·p, to all primes, and back to the dense one | [`sudare_rlwe::Raise`] | Bossuat–Troncoso-Pastoriza–Hubaux, ePrint 2022/024 |
//! | coefficients to slots (CtS) | [`super::dft`] | |
//! | its first stage on the way back to the dense secret, in keys | `keyed` | ePrint 2025/1403 |
//! | reduction modulo q_0 of real and imaginary parts | [`super::mod1`] | ePrint 2021/572 |
//! | or tables of integers modulo t | `tables`, [`super::mod1`] | ePrint 2024/1623 |
//! | of half a bootstrap, in place of the first and the last steps: packing, and a series | `half`, [`super::mod1`] | ePrint 2020/1335 |
//! | both put together, and the rotation that the transforms left undone | `refresh` | |
//!
//! A refresh may be two, for twice the bits: `iterated`.
//!
//! A sparse secret of weight h bounds the multiples of q_0 that raising adds by h/2, so a bootstrap never
//! fails. It is under a key of its own that leaves modulo q_0·p alone ([`sudare_rlwe::security`] has its rule), and is
//! forgotten when the keys are made.
//!
//! Ciphertexts with slots that repeat every n < N/2 (declared by the set) are bootstrapped at the size of n:
//! real and imaginary parts stand side by side in 2n slots.

#[cfg(doctest)]
#[doc = include_str!("../../../../../docs/guide/2-tables-and-models/05-any-depth.md")]
struct Guide;

mod errors;
mod half;
mod iterated;
mod keyed;
mod keys;
mod layout;
mod noise;
mod params;
mod refresh;
mod search;
mod set;
mod simulated;
mod tables;
#[cfg(test)]
mod tests;
mod wire;

pub use errors::Errors;
pub use half::{SeriesNoise, SeriesProgram};
pub use keys::BootstrapKeys;
pub use noise::PredictedNoise;
pub use params::BootstrapParams;
pub use refresh::{Bootstrapper, Kind, Progress, Step};
pub use search::BootstrapGoal;
pub use set::{BootstrapLiteral, BootstrapSet, ReductionLiteral};
pub use tables::TableNoise;
pub(crate) use tables::{TableInput, TableOutput, Tables};
