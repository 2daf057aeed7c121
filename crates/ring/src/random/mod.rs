//! Seeds, streams and the samplers of lattice cryptography.
//!
//! Secrets and noise come from a [`Seed`], public masks from a [`MaskSeed`]: two types, because
//! only the second may leave the machine. Whatever is published draws both anew from [`Entropy`].
//! Either opens numbered [`Stream`]s of ChaCha20 (20 rounds), and the samplers turn a stream into
//! coefficients:
//!
//! | sampler | draws from the stream | time depends on |
//! |---|---|---|
//! | [`uniform`] | ceil(bits/8) bytes a try, rejection | rejected tries (never on a value it returns) |
//! | [`ternary`] | 128 bytes for 128 values | the length |
//! | [`fixed_weight_ternary`] | 8 bytes a value | the length (see there) |
//! | [`GaussianSampler`] | 16 bytes a value | the length and σ |
//! | [`WideGaussian`] | 16 bytes a digit of a value | the length and σ |
//!
//! Every sampler's output is a function of the seed alone, the same on every machine.

mod entropy;
mod gaussian;
mod seed;
mod stream;
mod ternary;
mod uniform;
mod wide;

pub use entropy::{Batch, Entropy, ObjectSeeds, Purpose};
pub use gaussian::{GaussianSampler, SIGMA};
pub use seed::{MaskSeed, Seed};
pub use stream::Stream;
pub use ternary::{fixed_weight_ternary, ternary};
pub use uniform::uniform;
pub use wide::WideGaussian;
