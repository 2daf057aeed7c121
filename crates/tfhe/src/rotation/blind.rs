//! Bootstrapping keys and blind rotation: X^(−b + Σ a_i·s_i) times an accumulator.

mod seeded;

use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, write_ggsw};
use crate::core::seeded::{bodies_alone, bodies_of, expanded};
use crate::{GlweCiphertext, GlweContext, GlweSecretKey, LweSecretKey, RotationExponents, SecretKind, TfheError};
use std::borrow::Cow;
use sudare_ring::buffer::Buffer;
use sudare_ring::fourier::{Fourier, FourierMatrices};
use sudare_ring::interrupt::check;
use sudare_ring::kernel::{Ahead, Gadget, PackedMatrix};
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use zeroize::Zeroizing;

/// Steps of a blind rotation, each of some 20 µs, between two looks whether the work was asked to end.
const STEPS_BETWEEN_CHECKS: usize = 64;

/// Most key bits that one step of a blind rotation takes.
pub const MAX_UNROLL: usize = 3;

/// GGSW encryptions of a binary LWE key, `unroll` bits a step.
///
/// A step of u bits holds 2^u − 1 encryptions: of the indicator that exactly the bits of a non-empty
/// set are one (Zhou, Yang, Liu and Zhang, 2017/735; Bourse, Minelli, Minihold and Paillier, 2017/1114). The accumulator is
/// decomposed once a step, its digits meet X^e − 1 in evaluation form, and all 2^u − 1 products
/// end in one reduction and one inverse transform.
pub struct BootstrapKey {
    context: GlweContext,
    gadget: Gadget,
    unroll: usize,
    dimension: usize,
    masks: MaskSeed,
    steps: Steps,
}

/// The rows of every step, as the processor multiplies them fastest.
enum Steps {
    /// Residues in evaluation form.
    Exact(Vec<PackedMatrix>),
    /// Values in floating point; and of the residues the bodies, which travel and from which the masks' seed makes the rest.
    Rounded { fourier: Box<Fourier>, matrices: FourierMatrices, bodies: Vec<PackedMatrix> },
}

impl Steps {
    fn new(context: &GlweContext, steps: Vec<PackedMatrix>) -> Self {
        let limb = context.limb();
        if !Fourier::is_faster(limb) {
            return Self::Exact(steps);
        }
        let fourier = Box::new(Fourier::new(limb));
        let matrices = FourierMatrices::new(&fourier, limb, &steps);
        Self::Rounded { fourier, matrices, bodies: bodies_alone(context, &steps) }
    }
}

impl BootstrapKey {
    /// A key for blind rotations by ciphertexts under `lwe`; steps are made in parallel inside a
    /// thread pool. Step i takes its masks from stream i of the mask seed.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a key that is not binary, an `unroll` outside 1..=[`MAX_UNROLL`]
    /// or a gadget that does not fit the modulus.
    pub fn generate(
        lwe: &LweSecretKey,
        glwe: &GlweSecretKey,
        gadget: Gadget,
        unroll: usize,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let context = glwe.context();
        check_gadget(context, gadget)?;
        if lwe.kind() != SecretKind::Binary || !(1..=MAX_UNROLL).contains(&unroll) {
            return Err(TfheError::Parameters {
                reason: format!("a bootstrapping key takes a binary LWE key and 1..={MAX_UNROLL} bits a step"),
            });
        }
        let (dimension, columns) = (lwe.dimension(), context.rank() + 1);
        let rows = columns * gadget.levels as usize;
        let bits = |step: usize| &lwe.coefficients()[step * unroll..dimension.min((step + 1) * unroll)];
        let groups: Vec<usize> = (0..dimension.div_ceil(unroll)).map(|step| (1 << bits(step).len()) - 1).collect();
        let steps = PackedMatrix::streamed(context.limb(), &groups, (rows, columns), |step, m| {
            let (mut masks, mut errors) = (seeds.masks.stream(step as u64), seeds.errors.stream(step as u64));
            for group in 0..groups[step] {
                let set = group + 1;
                let indicator = bits(step)
                    .iter()
                    .enumerate()
                    .fold(1i64, |product, (j, s)| product * if set >> j & 1 == 1 { *s } else { 1 - *s });
                // A constant is its own evaluation.
                let message = Zeroizing::new(vec![indicator as u64; context.degree()]);
                write_ggsw(glwe, &message, gadget, m, group, (&mut masks, &mut errors));
            }
        });
        let steps = Steps::new(context, steps);
        Ok(Self { context: context.clone(), gadget, unroll, dimension, masks: seeds.masks, steps })
    }

    /// Ring and rank of the accumulator.
    pub fn context(&self) -> &GlweContext {
        &self.context
    }

    /// Its decomposition.
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }

    /// Key bits a step.
    pub fn unroll(&self) -> usize {
        self.unroll
    }

    /// Dimension of the LWE ciphertexts it takes.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.dimension.div_ceil(self.unroll)
    }

    /// The GGSW rows of a step, evaluated and packed. On processors that multiply in floating point they are made anew.
    ///
    /// # Errors
    /// [`TfheError::Shape`] if there is no such step.
    pub fn step(&self, step: usize) -> Result<Cow<'_, PackedMatrix>, TfheError> {
        let missing = TfheError::Shape { what: "step", expected: self.steps() - 1, found: step };
        match &self.steps {
            Steps::Exact(steps) => steps.get(step).map(Cow::Borrowed).ok_or(missing),
            Steps::Rounded { bodies, .. } => {
                let m = bodies.get(step).ok_or(missing)?;
                let (shape, bodies) = ((m.groups(), m.rows()), bodies_of(m, self.context.degree()));
                Ok(Cow::Owned(expanded(&self.context, &mut self.masks.stream(step as u64), shape, &bodies)?))
            }
        }
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        match &self.steps {
            Steps::Exact(steps) => steps.iter().map(PackedMatrix::byte_len).sum(),
            Steps::Rounded { matrices, bodies, .. } => {
                matrices.byte_len() + bodies.iter().map(PackedMatrix::byte_len).sum::<usize>()
            }
        }
    }

    /// Bytes of its bodies and seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        let bodies: usize = match &self.steps {
            Steps::Exact(steps) => steps.iter().map(PackedMatrix::byte_len).sum::<usize>() / (self.context.rank() + 1),
            Steps::Rounded { bodies, .. } => bodies.iter().map(PackedMatrix::byte_len).sum(),
        };
        bodies + 32
    }

    /// A step's key, to be asked for while something else is done. Empty beyond the last, and where the product asks for it itself.
    pub fn ahead(&self, step: usize) -> Ahead<'_> {
        match &self.steps {
            Steps::Exact(steps) => steps.get(step).map_or(Ahead::of(&[]), PackedMatrix::ahead),
            Steps::Rounded { .. } => Ahead::of(&[]),
        }
    }

    /// Brings residues modulo q of an accumulator, N words after N words, to the numbers that its steps work on, in place.
    ///
    /// # Panics
    /// If the length is no multiple of the degree.
    pub fn begin(&self, acc: &mut [u64]) {
        if let Steps::Rounded { fourier, .. } = &self.steps {
            acc.chunks_exact_mut(self.context.degree()).for_each(|p| fourier.from_residues(p));
        }
    }

    /// Adds the last product, and brings an accumulator back to residues.
    ///
    /// # Panics
    /// If the lengths are not those of a ciphertext.
    pub fn end(&self, acc: &mut [u64], product: Option<&[u64]>) {
        let (n, limb) = (self.context.degree(), self.context.limb());
        match &self.steps {
            Steps::Exact(_) => product.into_iter().for_each(|product| limb.add_assign(acc, product)),
            Steps::Rounded { fourier, .. } => {
                for p in acc.chunks_exact_mut(n) {
                    fourier.to_residues(p);
                }
                let Some(product) = product else { return };
                let mut residues = Buffer::from_slice(product);
                residues.chunks_exact_mut(n).for_each(|p| fourier.to_residues(p));
                limb.add_assign(acc, &residues);
            }
        }
    }

    /// `acc += product`, of one polynomial, and the sum's digits.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn decompose(&self, acc: &mut [u64], product: Option<&[u64]>, digits: &mut [u64]) {
        let limb = self.context.limb();
        match (&self.steps, product) {
            (Steps::Exact(_), Some(product)) => limb.add_decompose(acc, product, self.gadget, digits),
            (Steps::Exact(_), None) => {
                digits[..acc.len()].copy_from_slice(acc);
                limb.decompose(digits, self.gadget);
            }
            (Steps::Rounded { fourier, .. }, _) => fourier.digits(acc, product, self.gadget, digits),
        }
    }

    /// `acc += product`, of one polynomial, and the digits of `(X^steps − 1)·acc`.
    fn decompose_difference(&self, acc: &mut [u64], product: Option<&[u64]>, steps: usize, digits: &mut [u64]) {
        let (n, limb) = (self.context.degree(), self.context.limb());
        match &self.steps {
            Steps::Exact(_) => {
                product.into_iter().for_each(|product| limb.add_assign(acc, product));
                limb.rotate_minus(&mut digits[..n], acc, steps);
                limb.decompose(digits, self.gadget);
            }
            Steps::Rounded { fourier, .. } => {
                // The sum alone is wanted; its digits are written over.
                fourier.digits(acc, product, self.gadget, digits);
                let mut difference = Buffer::dirty(n);
                fourier.rotate_minus(&mut difference, acc, steps);
                fourier.digits(&mut difference, None, self.gadget, digits);
            }
        }
    }

    /// Transforms a polynomial of digits to what [`BootstrapKey::multiply`] takes, in place; asks for some of
    /// `ahead` meanwhile.
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn forward(&self, digit: &mut [u64], ahead: &mut Ahead<'_>) {
        match &self.steps {
            Steps::Exact(_) => self.context.limb().forward_ahead(digit, ahead),
            Steps::Rounded { fourier, .. } => fourier.forward(digit),
        }
    }

    /// The product of transformed digits with the rows of a step, whose groups are multiplied by X^e − 1 where there are
    /// exponents: `out` gets the columns, to be transformed by [`BootstrapKey::inverse`].
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn multiply(&self, step: usize, out: &mut [u64], digits: &[u64], exponents: Option<&[usize]>) {
        let limb = self.context.limb();
        match (&self.steps, exponents) {
            (Steps::Exact(steps), None) => limb.external_product(out, digits, &steps[step]),
            (Steps::Exact(steps), Some(exponents)) => {
                limb.external_product_monomials(out, digits, &steps[step], self.context.monomials(), exponents);
            }
            (Steps::Rounded { fourier, matrices, .. }, _) => fourier.product(out, digits, (matrices, step), exponents),
        }
    }

    /// Transforms a product back to polynomials, in place; `ahead` as for [`BootstrapKey::forward`].
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn inverse(&self, product: &mut [u64], ahead: &mut Ahead<'_>) {
        match &self.steps {
            Steps::Exact(_) => self.context.limb().inverse_ahead(product, ahead),
            Steps::Rounded { fourier, .. } => fourier.inverse(product),
        }
    }

    /// Multiplies the accumulator by `X^(−b + Σ a_i·s_i)`, in place.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for an accumulator of another ring or exponents
    /// of another dimension.
    pub fn blind_rotate(&self, acc: &mut GlweCiphertext, by: &RotationExponents) -> Result<(), TfheError> {
        self.blind_rotate_many(std::slice::from_mut(acc), std::slice::from_ref(by))
    }

    /// Several blind rotations side by side: each part of the key is read from memory once for all of
    /// them. Results are those of [`BootstrapKey::blind_rotate`], bit for bit.
    ///
    /// # Errors
    /// As there, and [`TfheError::Shape`] for unequal numbers.
    pub fn blind_rotate_many(&self, accs: &mut [GlweCiphertext], by: &[RotationExponents]) -> Result<(), TfheError> {
        check_shape("blind rotations", accs.len(), by.len())?;
        for (acc, by) in accs.iter().zip(by) {
            self.context.check(acc.context())?;
            check_shape("LWE dimension", self.dimension, by.mask.len())?;
        }
        let two_n = 2 * self.context.degree();
        let words = self.context.words();
        let mut digits = Buffer::dirty(words * self.gadget.levels as usize);
        let mut rotations: Vec<Rotation> = accs
            .iter_mut()
            .zip(by)
            .map(|(acc, by)| {
                *acc = acc.rotated(two_n - by.body as usize % two_n);
                self.begin(acc.words_mut());
                Rotation { acc, product: Buffer::dirty(words), pending: false }
            })
            .collect();
        // What is left of a step's key to ask for, and of the next one's.
        let mut asked = [self.ahead(0), self.ahead(1)];
        for i in 0..self.steps() {
            if i % STEPS_BETWEEN_CHECKS == 0 {
                check();
            }
            let bits = i * self.unroll..self.dimension.min((i + 1) * self.unroll);
            for (rotation, by) in rotations.iter_mut().zip(by) {
                self.rotate_step(i, &by.mask[bits.clone()], rotation, &mut digits, &mut asked);
            }
            asked = [asked[1], self.ahead(i + 2)];
        }
        for Rotation { acc, product, pending } in rotations {
            self.end(acc.words_mut(), pending.then_some(&product));
        }
        Ok(())
    }

    /// One step of one blind rotation, by the exponents `a` of its key bits; asks for its own key
    /// before the product, and for the next one's after it.
    fn rotate_step(
        &self,
        step: usize,
        a: &[u32],
        rotation: &mut Rotation<'_>,
        digits: &mut [u64],
        [own, next]: &mut [Ahead<'_>; 2],
    ) {
        let n = self.context.degree();
        let two_n = 2 * n;
        if a.iter().all(|a| (*a as usize).is_multiple_of(two_n)) {
            return;
        }
        let Rotation { acc, product, pending } = rotation;
        let mut exponents = [0usize; (1 << MAX_UNROLL) - 1];
        let groups = (1 << a.len()) - 1;
        for (set, e) in exponents.iter_mut().enumerate().take(groups) {
            let bits = a.iter().enumerate().filter(|(j, _)| (set + 1) >> j & 1 == 1);
            *e = bits.map(|(_, a)| *a as usize).sum::<usize>() % two_n;
        }
        let rows = digits.chunks_exact_mut(self.gadget.levels as usize * n);
        for ((rows, acc), product) in rows.zip(acc.words_mut().chunks_exact_mut(n)).zip(product.chunks_exact(n)) {
            let product = pending.then_some(product);
            match self.unroll {
                1 => self.decompose_difference(acc, product, exponents[0], rows),
                _ => self.decompose(acc, product, rows),
            }
            rows.chunks_exact_mut(n).for_each(|d| self.forward(d, own));
        }
        self.multiply(step, product, digits, (self.unroll > 1).then_some(&exponents[..groups]));
        product.chunks_exact_mut(n).for_each(|p| self.inverse(p, next));
        *pending = true;
    }
}

/// A blind rotation under way.
struct Rotation<'a> {
    acc: &'a mut GlweCiphertext,
    /// What the last step adds to the accumulator; the next step does so in passing.
    product: Buffer,
    /// Whether `product` still has to be added.
    pending: bool,
}
