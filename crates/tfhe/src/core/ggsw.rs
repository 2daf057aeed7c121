//! GLev and GGSW ciphertexts; external product and CMUX.

use crate::core::context::check_shape;
use crate::{GlweCiphertext, GlweContext, GlweSecretKey, TfheError};
use std::fmt;
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::{Gadget, PackedMatrix};
use sudare_ring::random::ObjectSeeds;
use zeroize::Zeroizing;

/// Checks that a gadget fits a context's modulus.
///
/// # Errors
/// [`TfheError::Parameters`].
pub(crate) fn check_gadget(context: &GlweContext, gadget: Gadget) -> Result<(), TfheError> {
    let bits = gadget.base_log.saturating_mul(gadget.levels);
    if bits == 0 || bits > context.bits() {
        return Err(TfheError::Parameters {
            reason: format!(
                "{} digits of {} bits do not fit a modulus of {} bits; take at least one digit and no more bits than \
                 that",
                gadget.levels,
                gadget.base_log,
                context.bits()
            ),
        });
    }
    Ok(())
}

/// A message with small coefficients in evaluation form, to be encrypted by a gadget.
///
/// # Errors
/// [`TfheError::Parameters`], [`TfheError::Shape`].
fn evaluated(context: &GlweContext, message: &[i64], gadget: Gadget) -> Result<Zeroizing<Vec<u64>>, TfheError> {
    check_gadget(context, gadget)?;
    check_shape("polynomial coefficients", context.degree(), message.len())?;
    let mut eval = Zeroizing::new(vec![0u64; message.len()]);
    context.limb().from_i64(&mut eval, message);
    context.limb().forward(&mut eval);
    Ok(eval)
}

/// Writes the GLev of a message as `levels` rows of a packed matrix, from row `first` of a group:
/// row l encrypts `g_l·message`. The message is in evaluation form.
pub(crate) fn write_glev(
    key: &GlweSecretKey,
    message: &[u64],
    gadget: Gadget,
    m: &mut PackedMatrix,
    (group, first): (usize, usize),
    streams: (&mut sudare_ring::random::Stream, &mut sudare_ring::random::Stream),
) {
    let context = key.context();
    let (n, limb) = (context.degree(), context.limb());
    let mut row = Zeroizing::new(vec![0u64; context.words()]);
    for l in 0..gadget.levels {
        let weight = limb.modulus().shoup(1 << gadget.log_weight(context.bits(), l));
        let body = &mut row[context.lwe_dimension()..];
        body.copy_from_slice(message);
        limb.mul_scalar(body, &weight);
        key.encrypt_row(&mut row, streams.0, streams.1);
        for (c, p) in row.chunks_exact(n).enumerate() {
            m.set(group, first + l as usize, c, p);
        }
    }
}

/// Writes the GGSW of a message (evaluation form) as group `group` of a packed matrix.
pub(crate) fn write_ggsw(
    key: &GlweSecretKey,
    message: &[u64],
    gadget: Gadget,
    m: &mut PackedMatrix,
    group: usize,
    streams: (&mut sudare_ring::random::Stream, &mut sudare_ring::random::Stream),
) {
    let (k, limb) = (key.context().rank(), key.context().limb());
    let mut scaled = Zeroizing::new(vec![0u64; message.len()]);
    for c in 0..=k {
        // −S_c·M for the masks, M for the body.
        if c < k {
            limb.mul(&mut scaled, message, key.eval(c));
            limb.neg_assign(&mut scaled);
        } else {
            scaled.copy_from_slice(message);
        }
        let first = c * gadget.levels as usize;
        write_glev(key, &scaled, gadget, m, (group, first), (&mut *streams.0, &mut *streams.1));
    }
}

/// Digits of polynomials, evaluated: what meets the rows of a packed matrix.
///
/// `polys` are polynomials one after the other; `out` has `levels` times as many words.
pub(crate) fn evaluate_digits(context: &GlweContext, gadget: Gadget, polys: &[u64], out: &mut [u64]) {
    let (n, levels) = (context.degree(), gadget.levels as usize);
    for (digits, p) in out.chunks_exact_mut(levels * n).zip(polys.chunks_exact(n)) {
        digits[..n].copy_from_slice(p);
        context.limb().decompose(digits, gadget);
        digits.chunks_exact_mut(n).for_each(|d| context.limb().forward(d));
    }
}

/// A GGSW ciphertext in evaluation form, packed: `(k+1)·levels` rows of GLWE ciphertexts. The row of
/// mask c and level l encrypts `−S_c·g_l·M`, those of the body `g_l·M`.
#[derive(Clone)]
pub struct GgswCiphertext {
    context: GlweContext,
    gadget: Gadget,
    matrix: PackedMatrix,
}

impl GgswCiphertext {
    /// Encrypts a small integer, mostly a bit.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a gadget that does not fit the modulus.
    pub fn encrypt(key: &GlweSecretKey, message: i64, gadget: Gadget, seeds: &ObjectSeeds) -> Result<Self, TfheError> {
        let mut polynomial = Zeroizing::new(vec![0i64; key.context().degree()]);
        polynomial[0] = message;
        Self::encrypt_polynomial(key, &polynomial, gadget, seeds)
    }

    /// Encrypts a polynomial with small coefficients.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a gadget that does not fit the modulus, [`TfheError::Shape`]
    /// for the wrong number of coefficients.
    pub fn encrypt_polynomial(
        key: &GlweSecretKey,
        message: &[i64],
        gadget: Gadget,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let (context, eval) = (key.context(), evaluated(key.context(), message, gadget)?);
        let columns = context.rank() + 1;
        let mut matrix = PackedMatrix::zeroed(context.limb(), 1, columns * gadget.levels as usize, columns);
        let (mut masks, mut errors) = (seeds.masks.stream(0), seeds.errors.stream(0));
        write_ggsw(key, &eval, gadget, &mut matrix, 0, (&mut masks, &mut errors));
        Ok(Self { context: context.clone(), gadget, matrix })
    }

    /// A ciphertext from its rows in evaluation form, packed: what scheme switching and files make.
    ///
    /// # Errors
    /// [`TfheError::Parameters`], [`TfheError::Shape`].
    pub fn from_matrix(context: &GlweContext, gadget: Gadget, matrix: PackedMatrix) -> Result<Self, TfheError> {
        check_gadget(context, gadget)?;
        check_shape("GGSW groups", 1, matrix.groups())?;
        check_shape("GGSW rows", (context.rank() + 1) * gadget.levels as usize, matrix.rows())?;
        check_shape("GGSW columns", context.rank() + 1, matrix.columns())?;
        Ok(Self { context: context.clone(), gadget, matrix })
    }

    /// Ring and rank.
    pub fn context(&self) -> &GlweContext {
        &self.context
    }

    /// Its decomposition.
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }

    /// The rows in evaluation form.
    pub fn matrix(&self) -> &PackedMatrix {
        &self.matrix
    }

    /// The external product: an encryption of M times the phase of `c`.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for a ciphertext of another ring.
    pub fn external_product(&self, c: &GlweCiphertext) -> Result<GlweCiphertext, TfheError> {
        self.context.check(c.context())?;
        let mut out = GlweCiphertext::zero(&self.context);
        self.product_into(c.words(), out.words_mut());
        Ok(out)
    }

    fn product_into(&self, c: &[u64], out: &mut [u64]) {
        let (n, limb) = (self.context.degree(), self.context.limb());
        let mut digits = Buffer::dirty(self.matrix.rows() * n);
        evaluate_digits(&self.context, self.gadget, c, &mut digits);
        limb.external_product(out, &digits, &self.matrix);
        out.chunks_exact_mut(n).for_each(|p| limb.inverse(p));
    }

    /// The controlled multiplexer `d0 + M·(d1 − d0)`: d1 if the bit M is one, else d0.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for ciphertexts of another ring.
    pub fn cmux(&self, d1: &GlweCiphertext, d0: &GlweCiphertext) -> Result<GlweCiphertext, TfheError> {
        self.context.check(d1.context())?;
        self.context.check(d0.context())?;
        let limb = self.context.limb();
        let mut difference = Buffer::dirty(self.context.words());
        limb.sub(&mut difference, d1.words(), d0.words());
        let mut out = GlweCiphertext::zero(&self.context);
        self.product_into(&difference, out.words_mut());
        limb.add_assign(out.words_mut(), d0.words());
        Ok(out)
    }

    /// `X^steps·c` if the bit M is one, else `c`: `c + M·(X^steps − 1)·c`, in place.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for a ciphertext of another ring.
    pub fn rotate_if(&self, c: &mut GlweCiphertext, steps: usize) -> Result<(), TfheError> {
        self.context.check(c.context())?;
        let (n, limb) = (self.context.degree(), self.context.limb());
        let mut difference = Buffer::dirty(self.context.words());
        for (d, p) in difference.chunks_exact_mut(n).zip(c.words().chunks_exact(n)) {
            limb.rotate_minus(d, p, steps % (2 * n));
        }
        let mut product = Buffer::dirty(self.context.words());
        self.product_into(&difference, &mut product);
        limb.add_assign(c.words_mut(), &product);
        Ok(())
    }
}

impl fmt::Debug for GgswCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.context;
        write!(f, "GgswCiphertext(N = {}, k = {}, {:?})", c.degree(), c.rank(), self.gadget)
    }
}

/// A GLev ciphertext in evaluation form, packed: row l encrypts `g_l·M`.
#[derive(Clone)]
pub struct GlevCiphertext {
    context: GlweContext,
    gadget: Gadget,
    matrix: PackedMatrix,
}

impl GlevCiphertext {
    /// Encrypts a polynomial with small coefficients.
    ///
    /// # Errors
    /// As for [`GgswCiphertext::encrypt_polynomial`].
    pub fn encrypt(
        key: &GlweSecretKey,
        message: &[i64],
        gadget: Gadget,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let (context, eval) = (key.context(), evaluated(key.context(), message, gadget)?);
        let mut matrix = PackedMatrix::zeroed(context.limb(), 1, gadget.levels as usize, context.rank() + 1);
        let (mut masks, mut errors) = (seeds.masks.stream(0), seeds.errors.stream(0));
        write_glev(key, &eval, gadget, &mut matrix, (0, 0), (&mut masks, &mut errors));
        Ok(Self { context: context.clone(), gadget, matrix })
    }

    /// Its decomposition.
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }

    /// Level l as a GLWE ciphertext: an encryption of `g_l·M`.
    ///
    /// # Errors
    /// [`TfheError::Shape`] if there is no such level.
    pub fn level(&self, l: usize) -> Result<GlweCiphertext, TfheError> {
        if l >= self.matrix.rows() {
            return Err(TfheError::Shape { what: "GLev level", expected: self.matrix.rows() - 1, found: l });
        }
        let mut out = GlweCiphertext::zero(&self.context);
        for (c, p) in out.words_mut().chunks_exact_mut(self.context.degree()).enumerate() {
            self.matrix.get(0, l, c, p);
            self.context.limb().inverse(p);
        }
        Ok(out)
    }

    /// An encryption of M times a public polynomial with coefficients in `[0, q)`, through its digits.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for another length or a coefficient not below q.
    pub fn mul_plain(&self, polynomial: &[u64]) -> Result<GlweCiphertext, TfheError> {
        let (n, limb) = (self.context.degree(), self.context.limb());
        check_shape("polynomial coefficients", n, polynomial.len())?;
        crate::core::glwe::check_below(&self.context, polynomial)?;
        let mut digits = Buffer::dirty(self.matrix.rows() * n);
        evaluate_digits(&self.context, self.gadget, polynomial, &mut digits);
        let mut out = GlweCiphertext::zero(&self.context);
        limb.external_product(out.words_mut(), &digits, &self.matrix);
        out.words_mut().chunks_exact_mut(n).for_each(|p| limb.inverse(p));
        Ok(out)
    }
}

impl fmt::Debug for GlevCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.context;
        write!(f, "GlevCiphertext(N = {}, k = {}, {:?})", c.degree(), c.rank(), self.gadget)
    }
}
