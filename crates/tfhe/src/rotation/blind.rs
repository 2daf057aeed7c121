//! Bootstrapping keys and blind rotation: X^(−b + Σ a_i·s_i) times an accumulator.

mod seeded;

use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, write_ggsw};
use crate::rotation::steps::Steps;
use crate::{GlweCiphertext, GlweSecretKey, LweSecretKey, RotationExponents, SecretKind, TfheError};
use sudare_ring::buffer::Buffer;
use sudare_ring::interrupt::check;
use sudare_ring::kernel::{Ahead, Gadget, PackedMatrix};
use sudare_ring::random::ObjectSeeds;
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
    steps: Steps,
    unroll: usize,
    dimension: usize,
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
                reason: format!(
                    "a bootstrapping key takes a binary LWE key and 1 to {MAX_UNROLL} bits a step, not {unroll}"
                ),
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
        Ok(Self { steps: Steps::new(context, gadget, seeds.masks, steps), unroll, dimension })
    }

    /// Its rows, step after step, with ring, gadget and seed.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Key bits a step.
    pub fn unroll(&self) -> usize {
        self.unroll
    }

    /// Dimension of the LWE ciphertexts it takes.
    pub fn dimension(&self) -> usize {
        self.dimension
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
            self.steps.context().check(acc.context())?;
            check_shape("LWE dimension", self.dimension, by.mask.len())?;
        }
        let (steps, two_n) = (&self.steps, 2 * self.steps.context().degree());
        let words = steps.context().words();
        let mut digits = Buffer::dirty(words * steps.gadget().levels as usize);
        let mut rotations: Vec<Rotation> = accs
            .iter_mut()
            .zip(by)
            .map(|(acc, by)| {
                *acc = acc.rotated(two_n - by.body as usize % two_n);
                steps.begin(acc.words_mut());
                Rotation { acc, product: Buffer::dirty(words), pending: false }
            })
            .collect();
        // What is left of a step's key to ask for, and of the next one's.
        let mut asked = [steps.ahead(0), steps.ahead(1)];
        for i in 0..steps.len() {
            if i % STEPS_BETWEEN_CHECKS == 0 {
                check();
            }
            let bits = i * self.unroll..self.dimension.min((i + 1) * self.unroll);
            for (rotation, by) in rotations.iter_mut().zip(by) {
                self.rotate_step(i, &by.mask[bits.clone()], rotation, &mut digits, &mut asked);
            }
            asked = [asked[1], steps.ahead(i + 2)];
        }
        for Rotation { acc, product, pending } in rotations {
            steps.end(acc.words_mut(), pending.then_some(&product));
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
        let (steps, n) = (&self.steps, self.steps.context().degree());
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
        // One bit a step: the difference is decomposed, and no product with X^e − 1 is left.
        let (turn, exponents) = match self.unroll {
            1 => (Some(exponents[0]), None),
            _ => (None, Some(&exponents[..groups])),
        };
        let rows = digits.chunks_exact_mut(steps.gadget().levels as usize * n);
        for ((rows, acc), product) in rows.zip(acc.words_mut().chunks_exact_mut(n)).zip(product.chunks_exact(n)) {
            steps.decompose(acc, pending.then_some(product), turn, rows);
            rows.chunks_exact_mut(n).for_each(|d| steps.forward(d, own));
        }
        steps.multiply(step, product, digits, exponents);
        product.chunks_exact_mut(n).for_each(|p| steps.inverse(p, next));
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
