//! Keys that several parties hold: steps and messages, no sockets.
//!
//! Each of n parties has a ternary secret s_i, and s = Σ s_i decrypts; nobody ever has s. The parties agree on a [`Session`]:
//! parameters whose secret is a sum of n ternary ones, a threshold t, and a public seed that all masks come from. Then
//! ([Mouchet–Troncoso-Pastoriza–Bossuat–Hubaux, ePrint 2020/304](https://eprint.iacr.org/2020/304)):
//!
//! | step | a party sends | whoever adds the messages has |
//! |---|---|---|
//! | public key | −a·s_i + e_i | [`PublicKey`](crate::keys::PublicKey) |
//! | Galois keys | −a_j·ψ^−1(s_i) + e_ij + P·g_j·s_i | [`GaloisKey`](crate::keys::GaloisKey)s |
//! | relinearisation key, round 1 | −a_j·u_i + P·g_j·s_i + e_0ij and a_j·s_i + e_1ij | [`RelinSum`] |
//! | relinearisation key, round 2 | s_i·h_0j + u_i·h_1j − a'_j·s_i + e_2ij | the key |
//! | t of n: secret shares, each for one party alone | f_i(α_k), f_i(0) = s_i, and half of a key k_ik | party k: S(α_k) = Σ f_i(α_k) |
//! | decryption | c_1·w_i + flood | c_0 + Σ: the phase |
//! | key switch to a public key (b, a) | c_1·w_i + v_i·b + flood, v_i·a + e_i | a ciphertext under that key |
//! | refresh | c_1·w_i − M_i + e_i, −a·w_i + M_i + e'_i | a ciphertext with all primes |
//!
//! w_i is s_i, or λ_i·S(α_i) for the Lagrange factor λ_i of the parties that take part: it stands **inside** the share, since
//! it would make the noise as large as the modulus outside (Mouchet–Bertrand–Hubaux, ePrint 2022/780). With t < n the w_i of honest parties are
//! known multiples of one unknown for t − 1 others, so everything with a w_i also has a mask Σ_{k≠i} ±PRF(k_ik, question), whose sum over the t
//! parties is zero. Sums do not depend on
//! who adds or in what order. Evaluation is that under one key, and [`crate::noise`] counts the parties.
//!
//! Everybody follows the protocol; up to t − 1 parties, all networks and the server may look at whatever they see. What a
//! party says is derived from its seed and from what it answers, so a repeated answer is the same bytes. Where others choose what is
//! answered (round 2 of the relinearisation key, decryption, key switch, refresh) it first asks its [`Ledger`], which admits one answer for a
//! subject. The public key, Galois keys, round 1 and the secret shares follow from seed and session alone, so that there is nothing to ask.
//! `docs/security.md` says what is proven and what is not.

mod collector;
mod decryption;
mod error;
mod handover;
mod keys;
mod ledger;
mod party;
mod private;
mod question;
mod refresh;
mod session;
mod share;
#[cfg(test)]
mod tests;

pub use collector::Collector;
pub use decryption::{Flooding, Opening};
pub use error::PartyError;
pub use handover::Handover;
pub use keys::{RelinSum, galois_keys, public_key, relin_key, relin_sum};
pub use ledger::{Entry, Ledger};
pub use party::Party;
pub use private::PrivateShare;
pub use question::Digest;
pub use refresh::Refreshing;
pub use session::{Session, SessionId};
pub use share::{
    DecryptionShare, GaloisShare, HandoverShare, Kind, PublicKeyShare, Record, RefreshShare, RelinFirstShare,
    RelinSecondShare, Share,
};

/// Most parties of a session.
pub const MAX_PARTIES: u32 = 100;
