//! Bootstrapping keys and blind rotation: X^(−b + Σ a_i·s_i) times an accumulator.

mod seeded;

use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, evaluate_digits_ahead, write_ggsw};
use crate::{GlweCiphertext, GlweContext, GlweSecretKey, LweSecretKey, RotationExponents, SecretKind, TfheError};
use sudare_ring::buffer::Buffer;
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
    steps: Vec<PackedMatrix>,
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

    /// The GGSW rows of every step, evaluated and packed.
    pub fn steps(&self) -> &[PackedMatrix] {
        &self.steps
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.steps.iter().map(PackedMatrix::byte_len).sum()
    }

    /// Bytes of its bodies and seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        self.byte_len() / (self.context.rank() + 1) + 32
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
                Rotation { acc, product: Buffer::dirty(words), pending: false }
            })
            .collect();
        let ahead = |i: usize| self.steps.get(i).map_or(Ahead::of(&[]), PackedMatrix::ahead);
        // What is left of a step's key to ask for, and of the next one's.
        let mut asked = [ahead(0), ahead(1)];
        for (i, m) in self.steps.iter().enumerate() {
            if i % STEPS_BETWEEN_CHECKS == 0 {
                check();
            }
            let bits = i * self.unroll..self.dimension.min((i + 1) * self.unroll);
            for (rotation, by) in rotations.iter_mut().zip(by) {
                self.step(m, &by.mask[bits.clone()], rotation, &mut digits, &mut asked);
            }
            asked = [asked[1], ahead(i + 2)];
        }
        for rotation in rotations.iter_mut().filter(|r| r.pending) {
            self.context.limb().add_assign(rotation.acc.words_mut(), &rotation.product);
        }
        Ok(())
    }

    /// One step of one blind rotation, by the exponents `a` of its key bits; asks for its own key
    /// before the product, and for the next one's after it.
    fn step(
        &self,
        m: &PackedMatrix,
        a: &[u32],
        rotation: &mut Rotation,
        digits: &mut [u64],
        [own, next]: &mut [Ahead<'_>; 2],
    ) {
        let (n, limb) = (self.context.degree(), self.context.limb());
        let two_n = 2 * n;
        if a.iter().all(|a| (*a as usize).is_multiple_of(two_n)) {
            return;
        }
        let Rotation { acc, product, pending } = rotation;
        if self.unroll == 1 {
            if *pending {
                limb.add_assign(acc.words_mut(), product);
            }
            for (d, p) in product.chunks_exact_mut(n).zip(acc.words().chunks_exact(n)) {
                limb.rotate_minus(d, p, a[0] as usize % two_n);
            }
            evaluate_digits_ahead(&self.context, self.gadget, product, digits, own);
            limb.external_product(product, digits, m);
        } else {
            let mut exponents = [0usize; (1 << MAX_UNROLL) - 1];
            for (set, e) in exponents.iter_mut().enumerate().take(m.groups()) {
                let bits = a.iter().enumerate().filter(|(j, _)| (set + 1) >> j & 1 == 1);
                *e = bits.map(|(_, a)| *a as usize).sum::<usize>() % two_n;
            }
            if *pending {
                self.add_and_evaluate(acc, product, digits, own);
            } else {
                evaluate_digits_ahead(&self.context, self.gadget, acc.words(), digits, own);
            }
            let (monomials, exponents) = (self.context.monomials(), &exponents[..m.groups()]);
            limb.external_product_monomials(product, digits, m, monomials, exponents);
        }
        product.chunks_exact_mut(n).for_each(|p| limb.inverse_ahead(p, next));
        *pending = true;
    }

    /// `acc += product`, and the evaluated digits of the sum.
    fn add_and_evaluate(&self, acc: &mut GlweCiphertext, product: &[u64], digits: &mut [u64], ahead: &mut Ahead<'_>) {
        let (n, limb) = (self.context.degree(), self.context.limb());
        let rows = digits.chunks_exact_mut(self.gadget.levels as usize * n);
        for ((a, b), rows) in acc.words_mut().chunks_exact_mut(n).zip(product.chunks_exact(n)).zip(rows) {
            limb.add_decompose(a, b, self.gadget, rows);
            rows.chunks_exact_mut(n).for_each(|d| limb.forward_ahead(d, ahead));
        }
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
