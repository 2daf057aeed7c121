//! Key switching from ciphertexts at rest to dimension n: by rows of LWE ciphertexts, or inside the
//! ring.

mod seeded;

use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, evaluate_digits};
use crate::keyswitch::lwe::{LweSwitchKey, TorusScale};
use crate::{
    Gadget, GlweContext, GlweSecretKey, LweCiphertext, LweSecretKey, Noise, NoiseSampler, TfheError, TorusLwe,
};
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::{MAX_COLUMNS, PackedMatrix};
use sudare_ring::random::{MaskSeed, ObjectSeeds, Stream, uniform};
use zeroize::Zeroizing;

/// Least degree d of the module's small ring: a switch takes n/d + 1 inverse transforms.
pub const LEAST_MODULE_DEGREE: usize = 16;

/// A key switch inside the ring, to module LWE: an LWE secret of n = r·d coefficients is a secret
/// of r polynomials of a small ring Z\[Y\]/(Y^d + 1), d the largest power of two in n.
///
/// With Y = X^(N/d) that ring is part of Z\[X\]/(X^N + 1), and one ciphertext of rank r there under
/// `t_1(Y) … t_r(Y)` is N/d independent ones over the small ring. So a few transforms of degree N do
/// the work of k·N·levels rows, with a key of `k·levels·(r + 1)` polynomials: the LWE ciphertext is
/// the constant coefficient of a GLWE ciphertext; its digits meet the key, and the constant
/// coefficient is extracted again, in which d mask words of each polynomial meet the secret.
///
/// Assumes that module LWE of rank r over degree d is as hard as LWE in dimension n, as the
/// bootstrapping key does of rank k over degree N (Langlois and Stehlé, *Worst-case to average-case
/// reductions for module lattices*, 2012/090; GLWE in Chillotti et al., 2018/421).
pub struct ModuleSwitchKey {
    from: GlweContext,
    dimension: usize,
    gadget: Gadget,
    masks: MaskSeed,
    /// Row `(c, l)` encrypts `−S_c·g_l`: masks of t_1 … t_r and the body, a few columns in each matrix.
    columns: Vec<PackedMatrix>,
}

/// The degree d of the small ring for a dimension n.
pub(crate) fn module_degree(from: &GlweContext, dimension: usize) -> usize {
    from.degree().min(1 << dimension.trailing_zeros().min(20))
}

impl ModuleSwitchKey {
    /// A key from the coefficients of `from` to a binary LWE key; `noise` is in units of 1/q.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a dimension that is no multiple of [`LEAST_MODULE_DEGREE`], a
    /// gadget that does not fit the modulus, or a noise out of range.
    pub fn generate(
        from: &GlweSecretKey,
        to: &LweSecretKey,
        gadget: Gadget,
        noise: Noise,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let context = from.context();
        let (n, limb, noise) = (context.degree(), context.limb(), NoiseSampler::new(noise)?);
        let mut key = Self::empty(context, to.dimension(), gadget, seeds.masks)?;
        let (d, levels) = (module_degree(context, to.dimension()), gadget.levels as usize);
        // t_j(X^(N/d)), evaluated.
        let mut target = Zeroizing::new(vec![0u64; key.rank() * n]);
        for (t, s) in target.chunks_exact_mut(n).zip(to.coefficients().chunks_exact(d)) {
            for (place, s) in t.iter_mut().step_by(n / d).zip(s) {
                *place = limb.modulus().reduce_i64(*s);
            }
            limb.forward(t);
        }
        let (mut mask, mut errors) = (vec![0u64; key.rank() * n], seeds.errors.stream(0));
        let (mut body, mut message) = (Zeroizing::new(vec![0u64; n]), Zeroizing::new(vec![0u64; n]));
        let mut e = Zeroizing::new(vec![0i64; n]);
        let mut masks = seeds.masks.stream(0);
        for row in 0..key.rows() {
            key.draw_mask(&mut masks, &mut mask);
            noise.sample(&mut errors, &mut e);
            limb.from_i64(&mut body, &e);
            limb.forward(&mut body);
            for (a, t) in mask.chunks_exact(n).zip(target.chunks_exact(n)) {
                limb.mul_add(&mut body, a, t);
            }
            message.copy_from_slice(from.eval(row / levels));
            limb.mul_scalar(
                &mut message,
                &limb.modulus().shoup(1 << gadget.log_weight(context.bits(), (row % levels) as u32)),
            );
            limb.sub_assign(&mut body, &message);
            key.set_row(row, &mask, &body);
        }
        Ok(key)
    }

    /// A key of zeros.
    fn empty(from: &GlweContext, dimension: usize, gadget: Gadget, masks: MaskSeed) -> Result<Self, TfheError> {
        check_gadget(from, gadget)?;
        let d = module_degree(from, dimension);
        if dimension == 0 || d < LEAST_MODULE_DEGREE {
            let reason = format!(
                "a key switch inside the ring goes to a dimension that is a multiple of {LEAST_MODULE_DEGREE}, not to \
                 {dimension}"
            );
            return Err(TfheError::Parameters { reason });
        }
        let (all, rows) = (dimension / d + 1, from.rank() * gadget.levels as usize);
        // Matrices of about equally many columns.
        let matrices = all.div_ceil(MAX_COLUMNS);
        let columns = (0..matrices)
            .map(|i| PackedMatrix::zeroed(from.limb(), 1, rows, all * (i + 1) / matrices - all * i / matrices))
            .collect();
        Ok(Self { from: from.clone(), dimension, gadget, masks, columns })
    }

    /// The module's rank r.
    fn rank(&self) -> usize {
        self.dimension / module_degree(&self.from, self.dimension)
    }

    /// k·levels.
    fn rows(&self) -> usize {
        self.from.rank() * self.gadget.levels as usize
    }

    fn draw_mask(&self, stream: &mut Stream, mask: &mut [u64]) {
        uniform(stream, self.from.modulus(), mask);
    }

    fn set_row(&mut self, row: usize, mask: &[u64], body: &[u64]) {
        let n = self.from.degree();
        let mut values = mask.chunks_exact(n).chain([body]);
        for matrix in &mut self.columns {
            for (column, p) in (0..matrix.columns()).zip(&mut values) {
                matrix.set(0, row, column, p);
            }
        }
    }

    /// Switches a ciphertext.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for a ciphertext of another ring.
    pub fn switch(&self, c: &LweCiphertext) -> Result<TorusLwe, TfheError> {
        let (n, q, limb) = (self.from.degree(), self.from.modulus(), self.from.limb());
        check_shape("LWE dimension", self.from.lwe_dimension(), c.dimension())?;
        if c.modulus() != q {
            return Err(TfheError::Modulus { expected: q.value(), found: c.modulus().value() });
        }
        let mut polys = Buffer::dirty(c.dimension());
        for (out, a) in polys.chunks_exact_mut(n).zip(c.mask().chunks_exact(n)) {
            // What an extraction of coefficient 0 reads back.
            out[0] = a[0];
            out[1..].iter_mut().zip(a[1..].iter().rev()).for_each(|(o, x)| *o = q.neg(*x));
        }
        let mut digits = Buffer::dirty(self.rows() * n);
        evaluate_digits(&self.from, self.gadget, &polys, &mut digits);
        let d = module_degree(&self.from, self.dimension);
        let (scale, step) = (TorusScale::new(q), n / d);
        let mut words = Vec::with_capacity(self.dimension + 1);
        let mut sums = Buffer::dirty(MAX_COLUMNS * n);
        for matrix in &self.columns {
            let sums = &mut sums[..matrix.columns() * n];
            limb.external_product(sums, &digits, matrix);
            for sum in sums.chunks_exact_mut(n) {
                limb.inverse(sum);
                if words.len() == self.dimension {
                    words.push(scale.scale(q.add(sum[0], c.body())));
                } else {
                    words.push(scale.scale(sum[0]));
                    words.extend((1..d).map(|m| scale.scale(q.neg(sum[n - m * step]))));
                }
            }
        }
        TorusLwe::from_words(words)
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.columns.iter().map(PackedMatrix::byte_len).sum()
    }

    /// Bytes of its bodies and seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        self.byte_len() / (self.rank() + 1) + 32
    }
}

/// How a server takes ciphertexts at rest to dimension n.
pub enum SwitchKey {
    /// Rows of LWE ciphertexts in 32-bit words.
    Lwe(LweSwitchKey),
    /// Inside the ring, to module LWE.
    Module(ModuleSwitchKey),
}

impl SwitchKey {
    /// Switches a ciphertext.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for a ciphertext of another ring.
    pub fn switch(&self, c: &LweCiphertext) -> Result<TorusLwe, TfheError> {
        match self {
            Self::Lwe(key) => key.switch(c),
            Self::Module(key) => key.switch(c),
        }
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        match self {
            Self::Lwe(key) => key.mask_seed(),
            Self::Module(key) => key.mask_seed(),
        }
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        match self {
            Self::Lwe(key) => key.byte_len(),
            Self::Module(key) => key.byte_len(),
        }
    }

    /// Bytes of its bodies and seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        match self {
            Self::Lwe(key) => key.seeded_byte_len(),
            Self::Module(key) => key.seeded_byte_len(),
        }
    }
}
