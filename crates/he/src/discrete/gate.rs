//! Functions of two bits.

/// A function g of two bits a and b: bit 2a + b of the number says g(a, b).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gate(u8);

impl Gate {
    /// a and b.
    pub const AND: Self = Self(0b1000);
    /// a or b.
    pub const OR: Self = Self(0b1110);
    /// a or b, not both.
    pub const XOR: Self = Self(0b0110);
    /// Not both.
    pub const NAND: Self = Self(0b0111);
    /// Neither.
    pub const NOR: Self = Self(0b0001);
    /// Both or neither.
    pub const XNOR: Self = Self(0b1001);

    /// The function whose value g(a, b) is bit 2a + b; none for a number over 15.
    pub const fn new(values: u8) -> Option<Self> {
        if values < 16 { Some(Self(values)) } else { None }
    }

    /// Not the first, whatever the second.
    pub const NOT: Self = Self(0b0011);

    /// All 16 functions.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..16).map(Self)
    }

    /// g(a, b).
    pub const fn apply(self, a: bool, b: bool) -> bool {
        self.0 >> (2 * a as u8 + b as u8) & 1 == 1
    }

    fn number(self, a: bool, b: bool) -> i64 {
        i64::from(self.apply(a, b))
    }

    /// Whether it depends on one bit at most, so that it takes no bootstrap.
    pub fn is_free(self) -> bool {
        matches!(self.input(), Input::Free { .. })
    }

    /// g = c_0 + c_1·a + c_2·b + c_3·ab.
    pub(super) fn polynomial(self) -> [i64; 4] {
        let [none, b, a, both] =
            [(false, false), (false, true), (true, false), (true, true)].map(|(a, b)| self.number(a, b));
        [none, a - none, b - none, both - a - b + none]
    }

    /// How it is a function of one number.
    pub(super) fn input(self) -> Input {
        let [none, a, b, both] = self.polynomial();
        if both == 0 && (a == 0 || b == 0) {
            return Input::Free { constant: none, a, b };
        }
        // x = 3 does not occur: of both values the one with which f is a step, or alternates.
        let table = |f: [bool; 3]| [f[0], f[1], f[2], f[0] ^ f[1] ^ f[2]].map(u64::from);
        let g = |a, b| self.apply(a, b);
        if a == b {
            Input::Sum(table([g(false, false), g(true, false), g(true, true)]))
        } else {
            Input::Difference(table([g(false, true), g(false, false), g(true, false)]))
        }
    }
}

/// How a gate is computed: every one that depends on both bits is a function of a + b or of a + 1 − b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Without a bootstrap.
    Free { constant: i64, a: i64, b: i64 },
    /// A table of a + b.
    Sum([u64; 4]),
    /// A table of a + 1 − b.
    Difference([u64; 4]),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_is_what_its_input_says() {
        let mut counts = [0; 3];
        for gate in Gate::all() {
            for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
                let (x, y) = (i64::from(a), i64::from(b));
                let [c0, c1, c2, c3] = gate.polynomial();
                assert_eq!(c0 + c1 * x + c2 * y + c3 * x * y, i64::from(gate.apply(a, b)));
                let found = match gate.input() {
                    Input::Free { constant, a, b } => constant + a * x + b * y,
                    Input::Sum(f) => f[(x + y) as usize] as i64,
                    Input::Difference(f) => f[(x + 1 - y) as usize] as i64,
                };
                assert_eq!(found, i64::from(gate.apply(a, b)), "{gate:?} of {a} and {b}");
            }
            counts[match gate.input() {
                Input::Free { .. } => 0,
                Input::Sum(_) => 1,
                Input::Difference(_) => 2,
            }] += 1;
        }
        assert_eq!(counts, [6, 6, 4]);
        assert!(Gate::NAND.apply(true, false) && !Gate::NOR.apply(true, false) && Gate::XNOR.apply(true, true));
        assert_eq!((Gate::new(8), Gate::new(16)), (Some(Gate::AND), None));
    }
}
