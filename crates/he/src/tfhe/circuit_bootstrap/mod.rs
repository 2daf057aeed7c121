//! Circuit bootstrapping: an encrypted bit, however noisy, becomes a fresh selector (LWE to GGSW).
//!
//! One blind rotation for all levels of the result (Chillotti, Ligier, Orfila and Tap, 2021/729,
//! section 3.2), a homomorphic trace that leaves one coefficient of each (Chen, Dai, Kim and Song,
//! 2020/015, section 3), and a scheme switch that makes the mask rows (Wang, Wen, Li, Lu, Wei, Liu
//! and Wang, 2024/323; Wang, Ha, Shen, Lu, Chen and Wang, 2024/1318). The modulus is an odd prime, so
//! the factor N of the trace is taken off beforehand without any rounding. The classical way by private
//! functional key switches (Chillotti, Gama, Georgieva and Izabachène, 2018/421, section 4.4) is
//! there to compare.

mod classical;
mod keys;
mod params;
mod scheme_switch;
mod seeded;
mod trace;
pub mod variance;

pub use classical::PrivateSwitchKey;
pub use keys::CircuitKey;
pub use params::{CircuitLiteral, CircuitParams};
pub use scheme_switch::SchemeSwitchKey;
pub use trace::TraceKey;
