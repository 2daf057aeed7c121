//! Pairs of polynomials modulo one prime below 2^31 as words of 32 bits: half of the memory that sums of their tensor products
//! stream through.

use super::{Crossing, runs};
use crate::RnsBasis;
use crate::kernel::add_tensors;
use crate::poly::{Eval, Poly};
use crate::threads;

/// Words of a polynomial that one pass works on: its sums stay in the first cache, and the pairs of the one factor in the second.
const CHUNK: usize = 512;

/// Pairs of polynomials of one basis of one prime, in evaluation form: ciphertexts, one after the other.
#[derive(Clone, Debug)]
pub struct NarrowPairs {
    basis: RnsBasis,
    words: Vec<u32>,
}

impl NarrowPairs {
    /// No pairs, with room for some.
    ///
    /// # Panics
    /// Unless the basis has one prime, below 2^31.
    pub fn new(basis: &RnsBasis, room: usize) -> Self {
        assert!(
            basis.len() == 1 && basis.modulus(0).bits() <= 31,
            "narrow words hold residues of one prime below 2^31"
        );
        Self { basis: basis.clone(), words: Vec::with_capacity(2 * room * basis.degree()) }
    }

    /// Adds a pair.
    ///
    /// # Panics
    /// For polynomials over another basis.
    pub fn push(&mut self, pair: [&Poly<Eval>; 2]) {
        for part in pair {
            assert!(*part.basis() == self.basis, "a polynomial of another basis");
            self.words.extend(part.words().iter().map(|x| *x as u32));
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words.len() / (2 * self.basis.degree())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        4 * self.words.len()
    }

    /// Words `at` … of each pair.
    fn rows(&self, at: usize) -> Vec<[&[u32]; 2]> {
        let n = self.basis.degree();
        self.words.chunks_exact(2 * n).map(|pair| [0, n].map(|part| &pair[part + at..][..CHUNK])).collect()
    }

    /// Σ_j a_j ⊗ b_j for each list a of some and these pairs b: three polynomials a_0·b_0, a_0·b_1 + a_1·b_0, a_1·b_1.
    ///
    /// # Panics
    /// For lists of another length or over another basis.
    pub fn tensors(&self, lists: &[&Self]) -> Vec<[Poly<Eval>; 3]> {
        let _crossing = Crossing::begin();
        let same = |list: &&Self| list.len() == self.len() && list.basis == self.basis;
        assert!(lists.iter().all(same), "lists of pairs differ");
        let (q, mut out) = (*self.basis.modulus(0), Vec::with_capacity(lists.len()));
        out.resize_with(lists.len(), || [0; 3].map(|_| Poly::<Eval>::zero(&self.basis)));
        let mut parts = runs(out.iter_mut().flatten().map(Poly::words_mut), CHUNK);
        threads::for_each_mut(&mut parts, |at, sums| {
            let own = self.rows(at * CHUNK);
            for (list, sums) in lists.iter().zip(sums.chunks_exact_mut(3)) {
                let [low, middle, high] = sums else { continue };
                add_tensors(&q, [low, middle, high], &list.rows(at * CHUNK), &own);
                sums.iter_mut().flat_map(|sum| sum.iter_mut()).for_each(|x| *x = q.reduce(*x));
            }
        });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::ntt_primes;
    use crate::threads::Threads;
    use sudare_testkit::Random;

    /// The sums of full-width polynomials, word for word, on one thread and on three.
    #[test]
    fn sums_are_those_of_whole_words() {
        for n in [512, 2048] {
            let basis = RnsBasis::new(n, &ntt_primes(n, 31, 1, &[]).unwrap()).unwrap();
            let q = basis.modulus(0).value();
            let mut random = Random(n as u64);
            let mut pairs = |count: usize| -> Vec<[Poly<Eval>; 2]> {
                let mut one = || Poly::from_words(&basis, &random.words(q, n)).unwrap();
                (0..count).map(|_| [one(), one()]).collect()
            };
            let (own, others) = (pairs(7), [pairs(7), pairs(7), pairs(7)]);
            let narrow = |pairs: &[[Poly<Eval>; 2]]| {
                let mut out = NarrowPairs::new(&basis, pairs.len());
                pairs.iter().for_each(|[x, y]| out.push([x, y]));
                out
            };
            let (query, lists) = (narrow(&own), others.each_ref().map(|pairs| narrow(pairs)));
            assert_eq!((query.len(), query.bytes()), (7, 7 * 2 * 4 * n));
            let found = query.tensors(&lists.each_ref());
            for (pairs, found) in others.iter().zip(&found) {
                let [mut low, mut middle, mut high] = [0; 3].map(|_| Poly::<Eval>::zero(&basis));
                for ([a0, a1], [b0, b1]) in pairs.iter().zip(&own) {
                    low.mul_add(a0, b0);
                    middle.mul_add(a0, b1);
                    middle.mul_add(a1, b0);
                    high.mul_add(a1, b1);
                }
                assert_eq!(found.each_ref().map(Poly::words), [low.words(), middle.words(), high.words()]);
            }
            let again = Threads::new(3).run(|| query.tensors(&lists.each_ref()));
            let words =
                |all: &[[Poly<Eval>; 3]]| all.iter().flatten().flat_map(|p| p.words().to_vec()).collect::<Vec<_>>();
            assert_eq!(words(&found), words(&again));
        }
    }
}
