//! Products of polynomials with small digits in floating point: transforms of N/2 complex numbers in place of N residues.
//!
//! A blind rotation multiplies digits of some 20 bits with rows of a key modulo q. Its rows have noise, so the
//! products need not be exact: the discrete Fourier transform modulo X^N + 1 in doubles takes under half of the arithmetic of an
//! exact transform, and its rounding errors are a noise whose variance [`Fourier::relative_variance`] tells (Klemsa, 2021/480, bounds
//! such errors in TFHE; the transform is that of Chillotti, Gama, Georgieva and Izabachène, 2018/421, section 6).
//!
//! Results depend on the kernel family: each rounds in its own order. Within a family they do not depend on threads.

use crate::Limb;
use crate::buffer::{Buffer, Pages};
use crate::count::{self, What};
use crate::kernel::fourier::{FourierMatrix, FourierTables};
use crate::kernel::{Family, Gadget, PackedMatrix, WordKernels, words};
use crate::threads;
use std::fmt;

/// The square of a rounding's relative error in units of 2^−106, of two roundings a layer (measured; see the tests).
const ROUNDING: f64 = 1.25;

/// Tables of the transform for the degree and the prime of a limb.
#[derive(Debug)]
pub struct Fourier {
    tables: FourierTables,
    kernels: &'static dyn WordKernels,
}

impl Fourier {
    /// For a limb whose prime is below 2^50.
    ///
    /// # Panics
    /// If it is not.
    pub fn new(limb: &Limb) -> Self {
        assert!(limb.q() >> crate::kernel::IFMA_MODULUS_BITS == 0, "a prime of more than 50 bits");
        Self::of(limb, words())
    }

    fn of(limb: &Limb, kernels: &'static dyn WordKernels) -> Self {
        Self { tables: FourierTables::new(limb.modulus(), limb.degree()), kernels }
    }

    /// The variance of rounding in a coefficient of `inverse(product(…))` for degree `n`, as a share of the variance of the exact
    /// sum of products before its reduction modulo q.
    ///
    /// Each of the log2(n/2) layers of a transform rounds twice, to 2^−53 of what a coefficient has become: errors are
    /// independent and add up over the transforms of digits, of the matrix and of the product.
    pub fn relative_variance(n: usize) -> f64 {
        let layers = f64::from((n / 2).trailing_zeros());
        ROUNDING * (3.0 * layers + 4.0) * (-106f64).exp2()
    }

    /// Whether products in floating point are faster than exact ones of a limb: where its family has no
    /// multiplication of 52-bit words.
    pub fn is_faster(limb: &Limb) -> bool {
        limb.family() != Family::Avx512Ifma
    }

    /// Residues to centred numbers, in place: doubles that are whole numbers of magnitude up to q/2, by their bits.
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn from_residues(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.tables.n, "coefficients");
        self.kernels.fourier_from_residues(&self.tables, a);
    }

    /// Whole numbers of magnitude up to 2q to residues, in place.
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn to_residues(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.tables.n, "coefficients");
        self.kernels.fourier_to_residues(&self.tables, a);
    }

    /// `a += b` modulo q, centred.
    ///
    /// # Panics
    /// If the lengths are not the degree.
    pub fn add(&self, a: &mut [u64], b: &[u64]) {
        assert!(a.len() == self.tables.n && b.len() == self.tables.n, "coefficients");
        self.kernels.fourier_add(&self.tables, a, b);
    }

    /// `a += b` modulo q, centred, and the sum's digits as numbers: `levels` rows of `out`.
    ///
    /// # Panics
    /// If the shapes do not fit, or the gadget has more bits than the modulus.
    pub fn digits(&self, a: &mut [u64], b: Option<&[u64]>, gadget: Gadget, out: &mut [u64]) {
        let n = self.tables.n;
        assert!(a.len() == n && b.is_none_or(|b| b.len() == n), "coefficients");
        assert_eq!(out.len(), gadget.levels as usize * n, "digits");
        self.kernels.fourier_digits(&self.tables, a, b, gadget, out);
    }

    /// `out = (X^steps − 1)·a` of centred numbers, of magnitude up to q; `steps` below 2N.
    ///
    /// # Panics
    /// If the lengths are not the degree.
    pub fn rotate_minus(&self, out: &mut [u64], a: &[u64], steps: usize) {
        let n = self.tables.n;
        assert!(out.len() == n && a.len() == n && steps < 2 * n, "coefficients");
        let sign = |turned: bool| if turned { -1.0 } else { 1.0 };
        let (shift, turned) = (steps % n, steps >= n);
        let (wrapped, straight) = out.split_at_mut(shift);
        let (front, back) = a.split_at(n - shift);
        for (out, (from, sign), own) in
            [(wrapped, (back, sign(!turned)), &a[..shift]), (straight, (front, sign(turned)), &a[shift..])]
        {
            for ((out, from), own) in out.iter_mut().zip(from).zip(own) {
                *out = (f64::from_bits(*from) * sign - f64::from_bits(*own)).to_bits();
            }
        }
    }

    /// A polynomial to values, in place: N real coefficients become N/2 real and N/2 imaginary parts.
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn forward(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.tables.n, "coefficients");
        count::add(What::Transforms, 1);
        self.kernels.fourier_forward(&self.tables, a);
    }

    /// Values to centred numbers, in place.
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn inverse(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.tables.n, "values");
        count::add(What::Transforms, 1);
        self.kernels.fourier_inverse(&self.tables, a);
    }

    /// Column sums `out_c = Σ_g w_g Σ_r digits_r · m_g[r][c]` of the matrix of a step, with `w_g = X^(e_g) − 1` where
    /// there are exponents, and 1 without: values in, values out, rows and columns of N words one after the other.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn product(
        &self,
        out: &mut [u64],
        digits: &[u64],
        (matrices, step): (&FourierMatrices, usize),
        exponents: Option<&[usize]>,
    ) {
        let (n, m) = (self.tables.n, matrices.step(step));
        assert!(matrices.degree == n && m.groups == exponents.map_or(1, <[usize]>::len), "a matrix of other shape");
        assert!(out.len() == m.columns * n && digits.len() == m.rows * n, "digits of other shape");
        self.kernels.fourier_product(&self.tables, out, digits, m, exponents);
    }
}

/// Matrices of polynomials in Fourier form, one after the other in one block of memory.
pub struct FourierMatrices {
    degree: usize,
    rows: usize,
    columns: usize,
    /// Groups of each, and the word at which it begins.
    steps: Vec<(usize, usize)>,
    block: Pages,
}

impl FourierMatrices {
    /// Those of matrices of evaluated residues, which have one number of rows and columns; made in parallel inside a pool.
    ///
    /// # Panics
    /// If they have not, or are of another limb.
    pub fn new(fourier: &Fourier, limb: &Limb, matrices: &[PackedMatrix]) -> Self {
        let n = limb.degree();
        let (rows, columns) = matrices.first().map_or((0, 0), |m| (m.rows(), m.columns()));
        let words = |m: &PackedMatrix| m.groups() * rows * columns * n;
        let mut block = Pages::zeroed(matrices.iter().map(words).sum());
        let (mut places, mut steps, mut rest, mut at) = (Vec::new(), Vec::new(), &mut block[..], 0);
        for m in matrices {
            assert!((m.rows(), m.columns()) == (rows, columns), "matrices of several shapes");
            let (place, behind) = rest.split_at_mut(words(m));
            places.push(place);
            steps.push((m.groups(), at));
            (rest, at) = (behind, at + words(m));
        }
        threads::for_each_mut(&mut places, |i, place| {
            let mut values = Buffer::dirty(n);
            let entries = matrices[i].groups() * rows * columns;
            for entry in 0..entries {
                let (group, row, column) = (entry / columns / rows, entry / columns % rows, entry % columns);
                matrices[i].get(group, row, column, &mut values);
                limb.inverse(&mut values);
                fourier.from_residues(&mut values);
                fourier.forward(&mut values);
                let (re, im) = values.split_at(n / 2);
                for (v, (re, im)) in re.chunks_exact(8).zip(im.chunks_exact(8)).enumerate() {
                    let place = &mut place[16 * (v * entries + entry)..][..16];
                    place[..8].copy_from_slice(re);
                    place[8..].copy_from_slice(im);
                }
            }
        });
        Self { degree: n, rows, columns, steps, block }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Bytes in memory.
    pub fn byte_len(&self) -> usize {
        8 * self.block.len()
    }

    fn step(&self, i: usize) -> FourierMatrix<'_> {
        let (groups, at) = self.steps[i];
        let words = &self.block[at..at + groups * self.rows * self.columns * self.degree];
        FourierMatrix { groups, rows: self.rows, columns: self.columns, values: bytemuck::cast_slice(words) }
    }
}

impl fmt::Debug for FourierMatrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FourierMatrices({} of {} × {} × {})", self.len(), self.rows, self.columns, self.degree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::MonomialTable;
    use crate::prime::ntt_primes;
    use sudare_testkit::Random;

    /// Families of this machine.
    fn kernels() -> Vec<(Family, &'static dyn WordKernels)> {
        Family::ALL.into_iter().filter_map(|f| Some((f, f.words().ok()?))).collect()
    }

    #[test]
    fn values_are_those_of_the_polynomial() {
        for n in [512, 1024, 2048] {
            let q = ntt_primes(n, 40, 1, &[]).unwrap()[0];
            let limb = Limb::new(q, n).unwrap();
            let coefficients = Random(7).edges(q, n);
            for (family, kernels) in kernels() {
                let fourier = Fourier::of(&limb, kernels);
                let mut values = coefficients.clone();
                fourier.from_residues(&mut values);
                fourier.forward(&mut values);
                // The value at place p is Σ a_j ζ^(E(p)·j), and X^e there is what monomials say.
                for p in (0..n / 2).step_by(n / 16 - 1) {
                    let (mut re, mut im) = (0.0, 0.0);
                    for (j, a) in coefficients.iter().enumerate() {
                        let a = if *a > q / 2 { *a as f64 - q as f64 } else { *a as f64 };
                        let [c, s] = fourier.tables.power(j, p / 8);
                        let turns = fourier.tables.turns(j).map(|turns| f64::from_bits(turns[p % 8]));
                        re += a * (c * turns[0] - s * turns[1]);
                        im += a * (c * turns[1] + s * turns[0]);
                    }
                    let found = [values[p], values[n / 2 + p]].map(f64::from_bits);
                    let error = (found[0] - re).abs().max((found[1] - im).abs()) / q as f64;
                    assert!(error < 1e-11, "{family:?}, N = {n}, place {p}: {error}");
                }
                fourier.inverse(&mut values);
                fourier.to_residues(&mut values);
                assert!(values == coefficients, "{family:?}, N = {n}");
            }
        }
    }

    #[test]
    fn products_are_exact_ones_but_for_their_variance() {
        for (n, bits, base_log, rows, columns, groups) in
            [(512, 40, 18, 4, 4, 3), (1024, 48, 22, 3, 3, 7), (2048, 48, 22, 2, 2, 3), (2048, 49, 12, 4, 2, 1)]
        {
            let q = ntt_primes(n, bits, 1, &[]).unwrap()[0];
            let limb = Limb::new(q, n).unwrap();
            let mut random = Random(n as u64 + groups as u64);
            let mut matrix = PackedMatrix::zeroed(&limb, groups, rows, columns);
            for entry in 0..groups * rows * columns {
                let values: Vec<u64> = (0..n).map(|_| random.word() % q).collect();
                matrix.set(entry / columns / rows, entry / columns % rows, entry % columns, &values);
            }
            let half = 1u64 << (base_log - 1);
            let digits: Vec<u64> = (0..rows * n).map(|_| (random.word() % (2 * half) + q - half) % q).collect();
            let exponents: Vec<usize> = (0..groups).map(|_| random.word() as usize % (2 * n)).collect();
            let monomials = (groups > 1).then_some(&exponents[..]);
            let mut exact = vec![0; columns * n];
            let mut evaluated = digits.clone();
            evaluated.chunks_exact_mut(n).for_each(|d| limb.forward(d));
            match monomials {
                None => limb.external_product(&mut exact, &evaluated, &matrix),
                Some(e) => {
                    limb.external_product_monomials(&mut exact, &evaluated, &matrix, &MonomialTable::new(&limb), e);
                }
            }
            exact.chunks_exact_mut(n).for_each(|p| limb.inverse(p));
            let norm = if groups > 1 { 2.0 * groups as f64 } else { 1.0 };
            let digit = (2.0 * half as f64).powi(2) / 12.0;
            let sum = norm * (rows * n) as f64 * digit * (q as f64).powi(2) / 12.0;
            let told = sum * Fourier::relative_variance(n) + 1.0 / 12.0;
            let mut fused = None;
            for (family, kernels) in kernels() {
                let fourier = Fourier::of(&limb, kernels);
                let matrices = FourierMatrices::new(&fourier, &limb, std::slice::from_ref(&matrix));
                let mut values = digits.clone();
                for digit in values.chunks_exact_mut(n) {
                    fourier.from_residues(digit);
                    fourier.forward(digit);
                }
                let mut found = vec![0; columns * n];
                fourier.product(&mut found, &values, (&matrices, 0), monomials);
                for product in found.chunks_exact_mut(n) {
                    fourier.inverse(product);
                    fourier.to_residues(product);
                }
                let square = |(x, y): (&u64, &u64)| {
                    let difference = (x + q - y) % q;
                    (difference.min(q - difference) as f64).powi(2)
                };
                let variance = found.iter().zip(&exact).map(square).sum::<f64>() / found.len() as f64;
                assert!(variance < told, "{family:?}, N = {n}: {:.3}", variance / told);
                // Families that fuse products with sums round the same operations.
                if family != Family::Portable {
                    assert!(*fused.get_or_insert_with(|| found.clone()) == found, "{family:?}, N = {n}");
                }
            }
        }
    }

    #[test]
    fn digits_and_rotations_are_those_of_residues() {
        let n = 512;
        for bits in [20, 40, 48, 49] {
            let q = ntt_primes(n, bits, 1, &[]).unwrap()[0];
            let limb = Limb::new(q, n).unwrap();
            let (a, b) = (Random(3).edges(q, n), Random(4).edges(q, n));
            let mut sum = vec![0; n];
            limb.add(&mut sum, &a, &b);
            for (family, kernels) in kernels() {
                let fourier = Fourier::of(&limb, kernels);
                let numbers = |residues: &[u64]| {
                    let mut out = residues.to_vec();
                    fourier.from_residues(&mut out);
                    out
                };
                for gadget in [(18, 1), (6, 3), (1, 20), (7, 2)].map(|(base_log, levels)| Gadget { base_log, levels }) {
                    let levels = gadget.levels as usize;
                    let (mut acc, mut rows) = (numbers(&a), vec![0; levels * n]);
                    fourier.digits(&mut acc, Some(&numbers(&b)), gadget, &mut rows);
                    let half = f64::from(gadget.base_log - 1).exp2();
                    let drop = f64::from(gadget.dropped(bits)).exp2();
                    for i in 0..n {
                        let centred = if sum[i] > q / 2 { sum[i] as f64 - q as f64 } else { sum[i] as f64 };
                        let digit = |l: usize| f64::from_bits(rows[l * n + i]);
                        let whole = (0..levels).fold(0.0, |whole, l| whole * 2.0 * half + digit(l));
                        let error = (whole * drop - centred).abs();
                        // A number next to q/2 may be taken for one next to −q/2.
                        let error = error.min((q as f64 - error).abs());
                        assert!(error <= drop / 2.0 + 1.0, "{family:?}, {bits} bits, {gadget:?}: {error}");
                        assert!((0..levels).all(|l| digit(l).abs() <= half + 1.0), "{family:?}, {gadget:?}");
                    }
                    let mut added = numbers(&a);
                    fourier.add(&mut added, &numbers(&b));
                    for mut sums in [acc, added] {
                        fourier.to_residues(&mut sums);
                        assert!(sums == sum, "{family:?}, {bits} bits");
                    }
                }
                for steps in [0, 1, 7, n - 1, n, n + 1, 2 * n - 1] {
                    let (mut exact, mut found) = (vec![0; n], vec![0; n]);
                    limb.rotate_minus(&mut exact, &a, steps);
                    fourier.rotate_minus(&mut found, &numbers(&a), steps);
                    fourier.to_residues(&mut found);
                    assert!(found == exact, "{family:?}, {bits} bits, {steps} steps");
                }
            }
        }
    }
}
