//! The ciphertexts: LWE, GLWE, GLev and GGSW, their secrets, and the ring that they live in.

pub(crate) mod context;
pub(crate) mod encoding;
pub(crate) mod ggsw;
pub(crate) mod glwe;
pub(crate) mod lwe;
pub(crate) mod seeded;

pub use context::GlweContext;
pub use ggsw::{GgswCiphertext, GlevCiphertext};
pub use glwe::{GlweCiphertext, GlweSecretKey};
pub use lwe::{LweCiphertext, LweSecretKey, RotationExponents, TorusLwe};
