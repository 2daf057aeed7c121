//! What is precomputed on the device for each level: the twin of `sudare_rlwe::switching::LevelTables`.

use crate::error::Result;
use sudare_cuda::{Device, Division, Gadget};
use sudare_rlwe::{Params, RlweError};

/// Tables of one level.
#[derive(Debug)]
pub(crate) struct Level {
    /// Division by q_level; `None` at level 0.
    rescale: Option<Division>,
    /// `None` without special primes.
    switching: Option<Switching>,
}

/// Digits over Q_level·P, and what ends a key switch.
#[derive(Debug)]
pub(crate) struct Switching {
    pub gadget: Gadget,
    /// Division by P.
    pub mod_down: Division,
    /// Division by q_level·P; `None` at level 0.
    pub mod_down_rescale: Option<Division>,
}

impl Switching {
    /// Division by P and the last prime.
    pub(crate) fn with_rescale(&self) -> Result<&Division> {
        let none = RlweError::OutOfLevels { operation: "rescale", needed: 1, level: 0 };
        Ok(self.mod_down_rescale.as_ref().ok_or(none)?)
    }
}

impl Level {
    pub(crate) fn new(device: &Device, params: &Params, level: usize) -> Result<Self> {
        let (q, p) = (params.q_at(level), params.p());
        let lower = (level > 0).then(|| (q.prefix(level), q.select([level])));
        let rescale = lower.as_ref().map(|(lower, last)| Division::new(device, lower, last)).transpose()?;
        let switching = match p.is_empty() {
            true => None,
            false => {
                let all = params.qp_at(level);
                let lower = lower.as_ref().map(|(lower, _)| lower);
                let tail = |lower| Division::new(device, lower, &all.select(level..all.len()));
                Some(Switching {
                    gadget: Gadget::new(device, q, p, params.literal().digit_limbs)?,
                    mod_down: Division::new(device, q, p)?,
                    mod_down_rescale: lower.map(tail).transpose()?,
                })
            }
        };
        Ok(Self { rescale, switching })
    }

    pub(crate) fn rescale(&self) -> Result<&Division> {
        Ok(self.rescale.as_ref().ok_or(RlweError::OutOfLevels { operation: "rescale", needed: 1, level: 0 })?)
    }

    pub(crate) fn switching(&self) -> Result<&Switching> {
        let reason = "key switching needs special primes; give p_bits";
        Ok(self.switching.as_ref().ok_or_else(|| RlweError::Parameters { reason: reason.into() })?)
    }
}
