//! TFHE or tables: which takes less work for as many independent values.
//!
//! TFHE bootstraps every value by itself; a table of a CKKS ciphertext takes the same time for one value as for all N. Both were measured in
//! units, one transform of degree 2^14 of the crate `tfhe-ntt` in the same run (design note 0037), so that they compare on any machine.

use super::set::DiscreteSet;
use std::fmt;

/// A gate of TFHE, and a bootstrap of its integers of 2 + 2 bits, which takes 2.03 times as long (docs/speed.md).
const GATE: f64 = 87.0;
const BLOCK: f64 = 177.0;
/// Seconds of a unit on one core of the Zen 4 that note 0016 measured on.
const UNIT: f64 = 3.0e-5;
/// What another table of the same input takes of a bootstrap; 0.07 and 0.09 were measured.
const ANOTHER: f64 = 0.1;

/// Tables of as many independent integers by one bootstrap of each ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Integers.
    pub values: usize,
    /// Ciphertexts that hold them.
    pub ciphertexts: usize,
    /// Tables of the same integers.
    pub tables: usize,
    /// Bootstraps of TFHE for each integer, at least: [`Layer::bootstraps`].
    pub each: usize,
    /// Whether these are gates.
    pub gates: bool,
}

impl Layer {
    /// The least number of TFHE's bootstraps for tables of an integer modulo t with results modulo t': one for every two bits of a result,
    /// and for integers of more than four bits one for every two of their own besides.
    pub fn bootstraps(modulus: u64, outputs: impl IntoIterator<Item = u64>) -> usize {
        let blocks = |values: u64| (values.max(2).next_power_of_two().ilog2() as usize).div_ceil(2);
        let results: usize = outputs.into_iter().map(blocks).sum();
        results + if modulus > 16 { blocks(modulus) } else { 0 }
    }
}

/// What a computation takes by tables of a set, and what it would take by TFHE.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The set.
    pub set: DiscreteSet,
    /// Layers of it, those that depend on each other and those that do not.
    pub layers: Vec<Layer>,
}

impl Choice {
    /// Bootstraps of ciphertexts.
    pub fn bootstraps(&self) -> usize {
        self.layers.iter().map(|layer| layer.ciphertexts).sum()
    }

    /// Seconds that they take on one core of a Zen 4.
    pub fn seconds(&self) -> f64 {
        let one = |layer: &Layer| layer.ciphertexts as f64 * (1.0 + ANOTHER * (layer.tables as f64 - 1.0));
        self.layers.iter().map(one).sum::<f64>() * self.set.units() * UNIT
    }

    /// Bootstraps that TFHE would take, at least.
    pub fn tfhe_bootstraps(&self) -> usize {
        self.layers.iter().map(|layer| layer.values * layer.each).sum()
    }

    /// Seconds that those take on the same core.
    pub fn tfhe_seconds(&self) -> f64 {
        let one = |layer: &Layer| (layer.values * layer.each) as f64 * if layer.gates { GATE } else { BLOCK };
        self.layers.iter().map(one).sum::<f64>() * UNIT
    }

    /// Whether tables take less.
    pub fn by_tables(&self) -> bool {
        self.seconds() < self.tfhe_seconds()
    }

    /// Values of a layer from which on tables take less, in a computation of such layers; none without a layer.
    pub fn pays_from(&self) -> Option<usize> {
        let one =
            Self { layers: self.layers.iter().map(|l| Layer { values: 1, ciphertexts: 1, ..*l }).collect(), ..*self };
        let values = (one.seconds() / one.tfhe_seconds()).ceil();
        if values.is_finite() { Some(values as usize) } else { None }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(from) = self.pays_from() else {
            return write!(f, "no bootstrap by set {}: sums and multiples alone", self.set);
        };
        let (bootstraps, others) = (self.bootstraps(), self.tfhe_bootstraps());
        let kind = if self.layers.iter().all(|layer| layer.gates) { "gates" } else { "bootstraps" };
        let seconds = |s: f64| format!("about {s:.2} s of a Zen 4 core");
        let (own, other) = (seconds(self.seconds()), seconds(self.tfhe_seconds()));
        let s = if bootstraps == 1 { "" } else { "s" };
        writeln!(f, "tables, set {}: {bootstraps} bootstrap{s} of whole ciphertexts, {own}", self.set)?;
        writeln!(f, "TFHE: at least {others} {kind}, {other}")?;
        match self.by_tables() {
            true => write!(f, "take tables: they take less from some {from} values a layer on"),
            false => write!(f, "take TFHE, sudare.bits: tables take less from some {from} values a layer on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(values: usize) -> Choice {
        let layer = Layer { values, ciphertexts: values.div_ceil(1 << 15), tables: 1, each: 1, gates: true };
        Choice { set: DiscreteSet::G15, layers: vec![layer; 3] }
    }

    #[test]
    fn few_gates_are_left_to_tfhe() {
        let from = gates(1).pays_from().unwrap();
        assert!((200..300).contains(&from), "{from}");
        assert!(!gates(from - 1).by_tables() && gates(from).by_tables());
        // A second ciphertext costs as much as the first, for more values.
        assert_eq!(gates((1 << 15) + 1).bootstraps(), 6);
        assert!(gates((1 << 15) + 1).by_tables());
        assert!(gates(10).to_string().contains("take TFHE") && gates(1000).to_string().contains("take tables"));
        let none = Choice { layers: Vec::new(), ..gates(1) };
        assert!(none.pays_from().is_none() && none.to_string().contains("no bootstrap"));
    }

    #[test]
    fn blocks_of_integers() {
        // A bit; four bits of four; a comparison of bytes; a byte of a byte; two results.
        let cases: [(u64, &[u64], usize); 5] =
            [(4, &[2], 1), (16, &[16], 2), (256, &[2], 5), (256, &[256], 8), (16, &[2, 16], 3)];
        for (modulus, outputs, expected) in cases {
            assert_eq!(Layer::bootstraps(modulus, outputs.iter().copied()), expected, "{modulus} {outputs:?}");
        }
    }
}
