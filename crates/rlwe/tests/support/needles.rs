//! What a scan of memory looks for, of a secret polynomial. For the tests of schemes, by path.

use sudare_ring::{Coeff, Poly, RnsBasis};
use sudare_testkit::memory::{NARROW, Needles, WIDE};
use zeroize::Zeroize;

/// A secret polynomial in every form that the library gives it: signed (which not every owner keeps), residues,
/// evaluated.
pub fn polynomial(needles: &mut Needles, name: &str, basis: &RnsBasis, coefficients: &[i64], signed: &str) {
    needles.add(&format!("{signed}{name}, signed"), coefficients.iter().map(|x| *x as u64), NARROW);
    let mut residues = Poly::<Coeff>::from_signed(basis, coefficients);
    for i in [0, basis.len() - 1] {
        // While the owner lives there are no residues of coefficients.
        needles.add(&format!("passing {name}, residues {i}"), residues.limb(i).iter().copied(), NARROW);
    }
    let mut evaluated = residues.clone().into_eval();
    residues.zeroize();
    let mut square = evaluated.mul(&evaluated);
    let mut negated = evaluated.clone();
    negated.neg_assign();
    for i in [0, basis.len() - 1] {
        needles.add(&format!("{name}, evaluated {i}"), evaluated.limb(i).iter().copied(), WIDE);
        needles.add(&format!("passing square of {name}, evaluated {i}"), square.limb(i).iter().copied(), WIDE);
        needles.add(&format!("passing {name}, negated and evaluated {i}"), negated.limb(i).iter().copied(), WIDE);
    }
    [&mut evaluated, &mut square, &mut negated].into_iter().for_each(Zeroize::zeroize);
}
