//! Key switching: LWE to a shorter LWE modulo 2^32, GLWE to GLWE.

mod seeded;

use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, evaluate_digits, write_glev};
use crate::core::lwe::fill_torus;
use crate::core::seeded::{bodies_of, expanded};
use crate::{
    GlweCiphertext, GlweContext, GlweSecretKey, LweCiphertext, LweSecretKey, NoiseSampler, SecretKind, TfheError,
    TorusLwe,
};
use sudare_ring::buffer::{Buffer, Pages};
use sudare_ring::kernel::{Gadget, PackedMatrix, sub_scaled_rows};
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use sudare_ring::{Limb, Modulus, threads};
use zeroize::Zeroizing;

/// A key that takes LWE ciphertexts modulo q under a long key to a shorter key, modulo 2^32.
///
/// Row `(i, l)` encrypts `s_i·2^(32 − base_log·(l+1))`; a switch is one sum of scaled rows in 32-bit
/// words. The part of the digits' rounding that meets the secret's mean is taken off the body.
pub struct LweSwitchKey {
    gadget: Gadget,
    from: usize,
    to: usize,
    secret: SecretKind,
    masks: MaskSeed,
    /// Rows of `stride` 32-bit words: mask, body, zeros.
    rows: Pages,
    stride: usize,
}

/// Words of a row start at multiples of this many, one vector.
const ROW_ALIGN: usize = 16;

impl LweSwitchKey {
    /// A key from `from` to `to`.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for digits of over 32 bits in all.
    pub fn generate(
        from: &LweSecretKey,
        to: &LweSecretKey,
        gadget: Gadget,
        noise: &NoiseSampler,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let bits = gadget.base_log.saturating_mul(gadget.levels);
        if bits == 0 || bits > 32 || gadget.base_log > 24 {
            return Err(TfheError::Parameters {
                reason: format!("the digits of a key switch have 1 to 32 bits together, not {bits}, and up to 24 each"),
            });
        }
        let (n, levels) = (to.dimension(), gadget.levels as usize);
        let stride = (n + 1).next_multiple_of(ROW_ALIGN);
        let rows = threads::map(from.dimension(), |i| {
            let (mut masks, mut errors) = (seeds.masks.stream(i as u64), seeds.errors.stream(i as u64));
            let mut block = vec![0u32; levels * stride];
            let mut e = Zeroizing::new(vec![0i64; levels]);
            noise.sample(&mut errors, &mut e);
            for (l, row) in block.chunks_exact_mut(stride).enumerate() {
                fill_torus(&mut masks, &mut row[..n]);
                let message = (from.coefficients()[i] << gadget.log_weight(32, l as u32)) as u32;
                row[n] = to.inner_torus(&row[..n]).wrapping_add(message).wrapping_add(e[l] as u32);
            }
            block
        });
        // Rows are whole vectors, so an even number of 32-bit words.
        let mut gathered = Pages::zeroed(from.dimension() * levels * stride / 2);
        for (place, block) in gathered.chunks_exact_mut(levels * stride / 2).zip(&rows) {
            bytemuck::cast_slice_mut::<u64, u32>(place).copy_from_slice(block);
        }
        Ok(Self {
            gadget,
            from: from.dimension(),
            to: n,
            secret: from.kind(),
            masks: seeds.masks,
            rows: gathered,
            stride,
        })
    }

    /// Its decomposition.
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }

    /// Dimension that it takes.
    pub fn from_dimension(&self) -> usize {
        self.from
    }

    /// Dimension that it gives.
    pub fn to_dimension(&self) -> usize {
        self.to
    }

    /// The seed of its masks: rows of input coefficient i come from stream i.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        8 * self.rows.len()
    }

    /// Bytes of its bodies and seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        4 * self.from * self.gadget.levels as usize + 32
    }

    /// Switches a ciphertext.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another dimension.
    pub fn switch(&self, c: &LweCiphertext) -> Result<TorusLwe, TfheError> {
        check_shape("LWE dimension", self.from, c.dimension())?;
        let levels = self.gadget.levels as usize;
        let to_torus = TorusScale::new(c.modulus());
        let (b, drop) = (self.gadget.base_log, self.gadget.dropped(32));
        let (half, mask) = (1i64 << (b - 1), (1i64 << b) - 1);
        let rounding = (1i64 << drop) >> 1;
        let mut dropped = 0i64;
        let mut digits = vec![0i32; self.from * levels];
        for (a, out) in c.mask().iter().zip(digits.chunks_exact_mut(levels)) {
            let a = i64::from(to_torus.scale(*a) as i32);
            let mut t = (a + rounding) >> drop;
            dropped += a - (t << drop);
            for d in out.iter_mut().rev() {
                let digit = ((t + half) & mask) - half;
                t = (t - digit) >> b;
                *d = digit as i32;
            }
            // What is left is a multiple of 2^32.
        }
        let mut acc = vec![0u32; self.stride];
        let body = to_torus.scale(c.body());
        acc[self.to] = match self.secret {
            SecretKind::Binary => body.wrapping_sub((dropped >> 1) as u32),
            SecretKind::Ternary => body,
        };
        sub_scaled_rows(&mut acc, bytemuck::cast_slice(&self.rows), &digits);
        acc.truncate(self.to + 1);
        TorusLwe::from_words(acc)
    }
}

/// `x·2^32/q`, rounded.
pub(crate) struct TorusScale {
    /// floor(2^96 / q).
    ratio: u128,
}

impl TorusScale {
    pub fn new(q: &Modulus) -> Self {
        Self { ratio: (1u128 << 96) / u128::from(q.value()) }
    }

    #[inline]
    pub fn scale(&self, x: u64) -> u32 {
        ((u128::from(x) * self.ratio + (1 << 63)) >> 64) as u32
    }
}

/// A key that takes GLWE ciphertexts from one key to another of the same ring.
pub struct GlweSwitchKey {
    from_rank: usize,
    context: GlweContext,
    gadget: Gadget,
    masks: MaskSeed,
    /// Rows `(c, l)`: encryptions of `−S_c·g_l`.
    matrix: PackedMatrix,
}

impl GlweSwitchKey {
    /// A key from `from` to `to`.
    ///
    /// # Errors
    /// [`TfheError::Parameters`], [`TfheError::Modulus`], [`TfheError::Shape`] for keys of different rings.
    pub fn generate(
        from: &GlweSecretKey,
        to: &GlweSecretKey,
        gadget: Gadget,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        check_ring(from.context().limb(), to.context().limb())?;
        let secrets: Vec<&[u64]> = (0..from.context().rank()).map(|i| from.eval(i)).collect();
        Self::generate_from(&secrets, to, gadget, seeds)
    }

    /// A key from secrets that are any polynomials, say automorphic images or products of a key's, in
    /// evaluation form modulo q.
    ///
    /// # Errors
    /// [`TfheError::Parameters`], [`TfheError::Shape`].
    pub fn generate_from(
        from: &[&[u64]],
        to: &GlweSecretKey,
        gadget: Gadget,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let context = to.context();
        check_gadget(context, gadget)?;
        if from.is_empty() {
            return Err(TfheError::Shape { what: "secret polynomials", expected: 1, found: 0 });
        }
        let levels = gadget.levels as usize;
        let mut matrix = PackedMatrix::zeroed(context.limb(), 1, from.len() * levels, context.rank() + 1);
        let (mut masks, mut errors) = (seeds.masks.stream(0), seeds.errors.stream(0));
        for (c, secret) in from.iter().enumerate() {
            check_shape("polynomial values", context.degree(), secret.len())?;
            let mut message = Zeroizing::new(secret.to_vec());
            context.limb().neg_assign(&mut message);
            write_glev(to, &message, gadget, &mut matrix, (0, c * levels), (&mut masks, &mut errors));
        }
        Ok(Self { from_rank: from.len(), context: context.clone(), gadget, masks: seeds.masks, matrix })
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.matrix.byte_len()
    }

    /// Bytes of its bodies and seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        self.byte_len() / (self.context.rank() + 1) + 32
    }

    /// The bodies, polynomial after polynomial in evaluation form.
    pub fn bodies(&self) -> Vec<u64> {
        bodies_of(&self.matrix, self.context.degree())
    }

    /// A key from secrets of `from_rank` polynomials, of the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a gadget that does not fit the modulus, [`TfheError::Shape`] for the wrong number of
    /// bodies, `RlweError::Ring` for one that is too large.
    pub fn from_bodies(
        context: &GlweContext,
        from_rank: usize,
        gadget: Gadget,
        masks: MaskSeed,
        bodies: &[u64],
    ) -> Result<Self, TfheError> {
        check_gadget(context, gadget)?;
        let matrix = expanded(context, &mut masks.stream(0), (1, from_rank * gadget.levels as usize), bodies)?;
        Ok(Self { from_rank, context: context.clone(), gadget, masks, matrix })
    }

    /// Switches a ciphertext.
    ///
    /// # Errors
    /// [`TfheError::Parameters`], [`TfheError::Shape`] for a ciphertext of another ring or rank.
    pub fn switch(&self, c: &GlweCiphertext) -> Result<GlweCiphertext, TfheError> {
        check_ring(self.context.limb(), c.context().limb())?;
        check_shape("GLWE rank", self.from_rank, c.context().rank())?;
        let (n, limb) = (self.context.degree(), self.context.limb());
        let mut digits = Buffer::dirty(self.matrix.rows() * n);
        evaluate_digits(&self.context, self.gadget, &c.words()[..self.from_rank * n], &mut digits);
        let mut out = GlweCiphertext::zero(&self.context);
        limb.external_product(out.words_mut(), &digits, &self.matrix);
        out.words_mut().chunks_exact_mut(n).for_each(|p| limb.inverse(p));
        limb.add_assign(out.body_mut(), c.body());
        Ok(out)
    }
}

fn check_ring(expected: &Limb, found: &Limb) -> Result<(), TfheError> {
    if expected.q() != found.q() {
        return Err(TfheError::Modulus { expected: expected.q(), found: found.q() });
    }
    check_shape("ring degree", expected.degree(), found.degree())
}
