//! Integers from their residues modulo coprime moduli.

/// Composition of residues modulo coprime moduli, digit by digit (Garner).
pub(super) struct Garner {
    moduli: Vec<u64>,
    /// For each modulus the inverse of the product of those before it.
    inverses: Vec<u64>,
    product: i128,
}

impl Garner {
    pub(super) fn new(moduli: &[u64]) -> Self {
        let product = moduli.iter().fold(1i128, |all, t| all * i128::from(*t));
        let inverse = |i: usize| {
            let t = i128::from(moduli[i]);
            let before = moduli[..i].iter().fold(1i128, |all, u| all * i128::from(*u) % t);
            inverse(before, t) as u64
        };
        Self { moduli: moduli.to_vec(), inverses: (0..moduli.len()).map(inverse).collect(), product }
    }

    /// The integer of least absolute value with these residues.
    pub(super) fn centred(&self, residues: impl Iterator<Item = u64>) -> i128 {
        let (mut value, mut before) = (0i128, 1i128);
        for ((t, inverse), residue) in self.moduli.iter().zip(&self.inverses).zip(residues) {
            let t = i128::from(*t);
            let digit = (i128::from(residue) - value % t).rem_euclid(t) * i128::from(*inverse) % t;
            value += digit * before;
            before *= t;
        }
        if value > self.product / 2 { value - self.product } else { value }
    }
}

/// a^−1 modulo a coprime t.
fn inverse(a: i128, t: i128) -> i128 {
    let (mut old, mut new, mut x, mut y) = (t, a.rem_euclid(t), 0i128, 1i128);
    while new != 0 {
        let quotient = old / new;
        (old, new) = (new, old - quotient * new);
        (x, y) = (y, x - quotient * y);
    }
    x.rem_euclid(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_compose() {
        for moduli in [vec![3], vec![5, 7, 9, 11], vec![(1 << 58) + 1, (1 << 58) + 3]] {
            let garner = Garner::new(&moduli);
            let half = garner.product / 2;
            for value in [0, 1, -1, half, -half, half / 3, -half / 5] {
                let residues = moduli.iter().map(|t| value.rem_euclid(i128::from(*t)) as u64);
                assert_eq!(garner.centred(residues), value);
            }
        }
    }
}
