//! Signed digits of residues.

use crate::modulus::Modulus;

/// A signed gadget decomposition: `levels` digits of `base_log` bits.
///
/// For a modulus of `b` bits the gadget is `g_l = 2^(b − l·base_log)`, `l = 1..=levels`; the bits
/// below `g_levels` are rounded away. Digits lie in `[−B/2, B/2)` for `B = 2^base_log`, except
/// the first, which takes what is left and lies in `[−B/2, B/2]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gadget {
    /// log2 of the base B.
    pub base_log: u32,
    /// Number of digits.
    pub levels: u32,
}

impl Gadget {
    /// Bits that the decomposition drops from a number of `bits` bits.
    ///
    /// # Panics
    /// If the gadget has no digits or more bits than the modulus.
    pub const fn dropped(&self, bits: u32) -> u32 {
        assert!(self.base_log > 0 && self.levels > 0, "a gadget without digits");
        match self.base_log.checked_mul(self.levels) {
            Some(taken) if taken <= bits => bits - taken,
            _ => panic!("a gadget of more bits than the modulus"),
        }
    }

    /// Rows of digits modulo `q`: at most as many as it has bits.
    pub(super) fn rows(&self, q: &Modulus) -> usize {
        self.dropped(q.bits());
        self.levels as usize
    }

    /// log2 of `g_l`, `l` from 0 for the most significant digit.
    pub const fn log_weight(&self, bits: u32, l: u32) -> u32 {
        self.dropped(bits) + self.base_log * (self.levels - 1 - l)
    }
}
