//! Whole polynomials, under the family that the process has, against their coefficients.

use sudare_ring::prime::ntt_primes;
use sudare_ring::{Coeff, Poly, RnsBasis};
use sudare_testkit::Random;

const N: usize = 1024;

fn basis(bits: &[u32]) -> RnsBasis {
    let mut primes = Vec::new();
    for bits in bits {
        let prime = ntt_primes(N, *bits, 1, &primes).unwrap()[0];
        primes.push(prime);
    }
    RnsBasis::new(N, &primes).unwrap()
}

#[test]
fn the_imaginary_unit_is_a_monomial() {
    let basis = basis(&[45, 61, 50, 30]);
    let coefficients: Vec<i64> = Random(1).edges(1 << 28, N).iter().map(|x| *x as i64 - (1 << 27)).collect();
    // a·X^(N/2): the upper half comes back below with the other sign.
    let mut turned = coefficients.clone();
    turned.rotate_right(N / 2);
    turned[..N / 2].iter_mut().for_each(|x| *x = -*x);
    for (negative, sign) in [(false, 1), (true, -1)] {
        let mut found = Poly::<Coeff>::from_signed(&basis, &coefficients).into_eval();
        found.mul_imaginary_unit(negative);
        let wanted: Vec<i64> = turned.iter().map(|x| sign * x).collect();
        assert!(found.into_coeff().words() == Poly::<Coeff>::from_signed(&basis, &wanted).words());
    }
}

#[test]
fn one_prime_is_lifted_by_centred_residues() {
    for first in [30, 50, 61] {
        let target = basis(&[first, 45, 61, 50]);
        let from = target.limb(0).q();
        let one = RnsBasis::new(N, &[from]).unwrap();
        let half = (from / 2) as i64;
        let mut coefficients: Vec<i64> = Random(2).edges(from, N).iter().map(|x| *x as i64 - half).collect();
        coefficients[..4].copy_from_slice(&[half, -half, 0, -1]);
        let lifted = Poly::<Coeff>::from_signed(&one, &coefficients).into_eval().lifted(&target);
        assert!(lifted.into_coeff().words() == Poly::<Coeff>::from_signed(&target, &coefficients).words(), "{first}");
    }
}
