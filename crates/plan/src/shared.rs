//! Plans whose key several parties hold ([`sudare_rlwe::multiparty`]).
//!
//! Every decryption is a release: each party lays noise over its share that hides the error of what is decrypted, and the sum
//! of all of it is in the result. So the noise is a figure of the program, and a planner that looks for parameters within the
//! wanted error reserves room for it.

use super::goal::Sharing;
use super::{Goal, Plan};
use sudare_he::ckks::multiparty::flooded;
use sudare_he::ckks::spread::{Part, Spread};
use sudare_he::ckks::{Expected, Params};
use sudare_methods::{Holders, MatrixError};
use sudare_rlwe::RlweError;
use sudare_rlwe::multiparty::MAX_PARTIES;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::SecretDistribution;

/// How far the norm of an error polynomial may be over what is expected of it. It is a sum of N squares, which varies little.
const NORM: f64 = 2.0;
/// Largest part of a value of size one that its noise may be: past it a decryption is refused.
const MOST_NOISE: f64 = 0.5;

impl Goal {
    /// The parties that hold the key and what they open, if it is several.
    pub(crate) fn holders(&self) -> Option<Holders> {
        let (Sharing { parties, threshold }, release) = (self.sharing?, self.release?);
        Some(Holders { parties, threshold, release })
    }

    /// The distribution of the secret that a plan's key has.
    pub(crate) fn secret(&self) -> SecretDistribution {
        self.sharing.map_or(SecretDistribution::Ternary, |s| SecretDistribution::TernarySum { parties: s.parties })
    }

    /// Refuses what several parties do not decrypt.
    pub(crate) fn check_sharing(&self) -> Result<(), MatrixError> {
        let Some(Sharing { parties, threshold }) = self.sharing else { return Ok(()) };
        let refuse = |reason: String| Err(MatrixError::NoPlan { reason });
        if !(2..=MAX_PARTIES).contains(&parties) || !(2..=parties).contains(&threshold) {
            return refuse(format!(
                "{parties} parties, {threshold} of whom decrypt: a key has 2 to {MAX_PARTIES} parties and a threshold from 2 to their number"
            ));
        }
        if self.expression.as_moments().is_some() {
            let reason =
                "a key that several parties hold is for plans of matrices; compute a table's statistics from sums";
            return refuse(reason.into());
        }
        match self.release {
            Some(_) => Ok(()),
            None => {
                refuse("what several parties decrypt is released to them: say how many releases there will be".into())
            }
        }
    }
}

/// A bound on the Euclidean norm of a result's error polynomial: what noise has to hide (ePrint 2022/816).
pub(crate) fn norm(spread: &Spread) -> f64 {
    let [real, imaginary] = [spread.real, spread.imaginary];
    let variance = |part: Part| part.held.max(part.empty) / 2.0;
    NORM * (variance(real) + variance(imaginary)).sqrt() + real.common + imaginary.common
}

/// What parties add at most to the error of a result of `count` ciphertexts, each with an error polynomial up to `norm` at a scale; nothing where one owner
/// holds the key. Infinite where such noise leaves nothing of the result.
pub(crate) fn added(goal: &Goal, params: &Params, count: usize, (norm, scale): (f64, f64)) -> f64 {
    let Some(holders) = goal.holders() else { return 0.0 };
    let noise = || {
        let policy = holders.policy(count).ok()?;
        let noise = flooded(policy, norm, params.degree(), holders.threshold as usize).ok()?;
        Some(noise / scale).filter(|noise| *noise <= MOST_NOISE)
    };
    noise().unwrap_or(f64::INFINITY)
}

/// How the parties of a plan decrypt each ciphertext of its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Opening {
    /// Level, scale and error; the error is a bound on the norm of the error polynomial, which noise has to hide.
    pub expected: Expected,
    /// Bound on values.
    pub max_abs: f64,
    /// Releases of all ciphertexts.
    pub policy: ReleasePolicy,
}

impl Plan {
    /// Who holds the key together, if it is several parties.
    pub fn sharing(&self) -> Option<Sharing> {
        self.goal().sharing
    }

    /// The parties that hold the key.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a plan whose key has one owner.
    pub fn shared(&self) -> Result<Sharing, MatrixError> {
        self.sharing().ok_or_else(|| MatrixError::NotPlanned {
            operation: "a key of several parties",
            planned: "the key has one owner; plan with parties, threshold and a release".into(),
        })
    }

    /// How the parties decrypt the result, worked out from the program and not read from a file.
    ///
    /// # Errors
    /// As [`Plan::shared`].
    pub fn opening(&self) -> Result<Opening, MatrixError> {
        self.shared()?;
        let (expr, figures) = (self.expression(), self.engine().figures());
        let holders = self.goal().holders().ok_or(MatrixError::NoRelease { what: "plan" })?;
        let missing = RlweError::Internal { what: "a result has no size" };
        let count = figures.size(expr.output()).ok_or(missing)?.count;
        let max_abs = expr.info(expr.output()).max_abs;
        Ok(Opening { expected: self.expected()?, max_abs, policy: holders.policy(count)? })
    }
}
