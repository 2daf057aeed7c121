//! A reproducible generator. Nothing secret is drawn from it.

/// 2^64 over the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64 from a state: a seed stands for the same numbers on every machine and for good.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// 64 uniform bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// A number below `bound`, which is not 0. Small bounds are met almost uniformly.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// A place among `len`, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Uniform in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [−1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Whether something happens that happens `percent` times of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// `len` numbers below `bound`.
    pub fn words(&mut self, bound: u64, len: usize) -> Vec<u64> {
        (0..len).map(|_| self.below(bound)).collect()
    }

    /// `len` numbers in [−1, 1).
    pub fn units(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.unit()).collect()
    }

    /// A vector of length one: its direction is that of numbers that are nearly normal.
    pub fn direction(&mut self, d: usize) -> Vec<f64> {
        let v: Vec<f64> = (0..d).map(|_| (0..12).map(|_| self.unit()).sum()).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.into_iter().map(|x| x / norm).collect()
    }

    /// `len` numbers below `bound`, the edges of the range and its middle often among them; the first is one of these.
    pub fn edges(&mut self, bound: u64, len: usize) -> Vec<u64> {
        let edges = [bound - 1, 0, 1, bound / 2, bound / 2 + 1, bound.saturating_sub(2)];
        (0..len)
            .map(|i| {
                let r = self.word();
                let edge = edges[(r >> 8) as usize % edges.len()].min(bound - 1);
                if i == 0 || r.is_multiple_of(4) { edge } else { self.below(bound) }
            })
            .collect()
    }
}

/// The word of a place: what is filled in any order comes out alike.
pub fn word_at(seed: u64, place: u64) -> u64 {
    Random(seed.wrapping_mul(0x1234_5678_9ABC_DEF1) ^ place).word()
}

/// The number in [−1, 1) of a place of a matrix.
pub fn unit_at(seed: u64, row: usize, column: usize) -> f64 {
    Random(word_at(seed, (row as u64) << 32 | column as u64)).unit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation from 1234567: golden files lean on them.
    #[test]
    fn it_is_splitmix64() {
        let mut random = Random(1_234_567);
        let found: Vec<u64> = (0..3).map(|_| random.word()).collect();
        assert_eq!(found, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn ranges() {
        let mut random = Random(1);
        let units = random.units(10_000);
        assert!(units.iter().all(|x| (-1.0..1.0).contains(x)) && units.iter().sum::<f64>().abs() < 300.0);
        assert!((0..10_000).all(|_| (0.0..1.0).contains(&random.fraction())));
        for bound in [1, 2, 3, 1 << 40, u64::MAX] {
            let words = random.edges(bound, 1000);
            assert!(words.iter().all(|x| *x < bound) && words.contains(&(bound - 1)) && words.contains(&0), "{bound}");
        }
    }
}
