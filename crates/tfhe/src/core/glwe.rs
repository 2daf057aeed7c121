//! GLWE secret keys and ciphertexts; sample extraction.

use crate::core::context::{GlweContext, check_shape};
use crate::{LweCiphertext, LweSecretKey, TfheError};
use std::fmt;
use sudare_ring::buffer::Buffer;
use sudare_ring::random::{Seed, Stream, ternary, uniform};
use zeroize::{Zeroize, Zeroizing};

/// A GLWE secret key, k polynomials: zeroised when dropped, neither cloned nor printed.
pub struct GlweSecretKey {
    context: GlweContext,
    /// Coefficients, polynomial after polynomial.
    s: Zeroizing<Vec<i64>>,
    /// The same, evaluated.
    eval: Zeroizing<Vec<u64>>,
}

impl GlweSecretKey {
    /// Draws a key.
    pub fn generate(context: &GlweContext, stream: &mut Stream) -> Self {
        let mut s = Zeroizing::new(vec![0; context.lwe_dimension()]);
        context.secret().sample(stream, &mut s);
        Self::expand(context, s)
    }

    /// A key from its coefficients.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number, [`TfheError::Parameters`] for a coefficient that
    /// the distribution does not have.
    pub fn from_coefficients(context: &GlweContext, s: Zeroizing<Vec<i64>>) -> Result<Self, TfheError> {
        check_shape("secret coefficients", context.lwe_dimension(), s.len())?;
        let checked = LweSecretKey::from_coefficients(context.secret(), s)?;
        Ok(Self::expand(context, Zeroizing::new(checked.coefficients().to_vec())))
    }

    fn expand(context: &GlweContext, s: Zeroizing<Vec<i64>>) -> Self {
        let mut eval = Zeroizing::new(vec![0u64; s.len()]);
        context.limb().from_i64(&mut eval, &s);
        eval.chunks_exact_mut(context.degree()).for_each(|p| context.limb().forward(p));
        Self { context: context.clone(), s, eval }
    }

    /// Ring and distributions.
    pub fn context(&self) -> &GlweContext {
        &self.context
    }

    /// The coefficients, for the owner's file and for key generation. Whoever reads them reads everything.
    pub fn coefficients(&self) -> &[i64] {
        &self.s
    }

    /// S_i in evaluation form.
    pub(crate) fn eval(&self, i: usize) -> &[u64] {
        &self.eval[i * self.context.degree()..(i + 1) * self.context.degree()]
    }

    /// The key of extracted ciphertexts: the coefficients of S_1 … S_k.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for coefficients that the distribution does not have, which a key has not.
    pub fn to_lwe(&self) -> Result<LweSecretKey, TfheError> {
        LweSecretKey::from_coefficients(self.context.secret(), Zeroizing::new(self.s.to_vec()))
    }

    /// Writes a fresh row in evaluation form: masks from `masks`, body `Σ A_i·S_i + E + message`.
    /// `row` has k + 1 polynomials; the message is what its body holds at first.
    pub(crate) fn encrypt_row(&self, row: &mut [u64], masks: &mut Stream, errors: &mut Stream) {
        let (n, limb) = (self.context.degree(), self.context.limb());
        let (mask, body) = row.split_at_mut(self.context.lwe_dimension());
        uniform(masks, limb.modulus(), mask);
        let mut e = Zeroizing::new(vec![0i64; n]);
        self.context.noise().sample(errors, &mut e);
        let mut noise = Zeroizing::new(vec![0u64; n]);
        limb.from_i64(&mut noise, &e);
        limb.forward(&mut noise);
        limb.add_assign(body, &noise);
        for (i, a) in mask.chunks_exact(n).enumerate() {
            limb.mul_add(body, a, self.eval(i));
        }
    }

    /// Encrypts a polynomial with coefficients in `[0, q)`.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another length, `RlweError::Ring` for a coefficient not below q.
    pub fn encrypt(
        &self,
        message: &[u64],
        masks: &mut Stream,
        errors: &mut Stream,
    ) -> Result<GlweCiphertext, TfheError> {
        let mut c = GlweCiphertext::trivial(&self.context, message)?;
        let limb = self.context.limb();
        limb.forward(c.body_mut());
        self.encrypt_row(&mut c.words, masks, errors);
        c.words.chunks_exact_mut(self.context.degree()).for_each(|p| limb.inverse(p));
        Ok(c)
    }

    /// The phase `B − Σ A_i·S_i`: message plus noise, coefficients in `[0, q)`.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for a ciphertext of another ring.
    pub fn phase(&self, c: &GlweCiphertext) -> Result<Zeroizing<Vec<u64>>, TfheError> {
        self.context.check(&c.context)?;
        let (n, limb) = (self.context.degree(), self.context.limb());
        let mut sum = Zeroizing::new(vec![0u64; n]);
        let mut a = Zeroizing::new(vec![0u64; n]);
        for i in 0..self.context.rank() {
            a.copy_from_slice(c.mask(i));
            limb.forward(&mut a);
            limb.mul_add(&mut sum, &a, self.eval(i));
        }
        limb.inverse(&mut sum);
        limb.neg_assign(&mut sum);
        limb.add_assign(&mut sum, c.body());
        a.zeroize();
        Ok(sum)
    }
}

/// A GLWE ciphertext in coefficient form.
#[derive(Clone)]
pub struct GlweCiphertext {
    context: GlweContext,
    /// A_1 … A_k, B.
    words: Buffer,
}

impl GlweCiphertext {
    /// The noiseless encryption of a public polynomial under every key.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another length, `RlweError::Ring` for a coefficient not below q.
    pub fn trivial(context: &GlweContext, message: &[u64]) -> Result<Self, TfheError> {
        check_shape("polynomial coefficients", context.degree(), message.len())?;
        check_below(context, message)?;
        let mut c = Self::zero(context);
        c.body_mut().copy_from_slice(message);
        Ok(c)
    }

    /// The noiseless encryption of zero.
    pub fn zero(context: &GlweContext) -> Self {
        Self { context: context.clone(), words: Buffer::zeroed(context.words()) }
    }

    /// A ciphertext from its words: A_1 … A_k, then B.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a word not below q.
    pub fn from_words(context: &GlweContext, words: &[u64]) -> Result<Self, TfheError> {
        check_shape("GLWE words", context.words(), words.len())?;
        check_below(context, words)?;
        Ok(Self { context: context.clone(), words: Buffer::from_slice(words) })
    }

    /// Ring and rank.
    pub fn context(&self) -> &GlweContext {
        &self.context
    }

    /// All words: A_1 … A_k, then B.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// A_(i+1).
    pub fn mask(&self, i: usize) -> &[u64] {
        &self.words[i * self.context.degree()..(i + 1) * self.context.degree()]
    }

    /// B.
    pub fn body(&self) -> &[u64] {
        &self.words[self.context.lwe_dimension()..]
    }

    pub(crate) fn body_mut(&mut self) -> &mut [u64] {
        let at = self.context.lwe_dimension();
        &mut self.words[at..]
    }

    /// `self += other`.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`].
    pub fn add_assign(&mut self, other: &Self) -> Result<(), TfheError> {
        self.context.check(&other.context)?;
        self.context.limb().add_assign(&mut self.words, &other.words);
        Ok(())
    }

    /// `self −= other`.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`].
    pub fn sub_assign(&mut self, other: &Self) -> Result<(), TfheError> {
        self.context.check(&other.context)?;
        self.context.limb().sub_assign(&mut self.words, &other.words);
        Ok(())
    }

    /// `self = −self`.
    pub fn neg_assign(&mut self) {
        self.context.limb().neg_assign(&mut self.words);
    }

    /// `X^steps·self`, exponents modulo 2N.
    #[must_use]
    pub fn rotated(&self, steps: usize) -> Self {
        let n = self.context.degree();
        let mut out = Self { context: self.context.clone(), words: Buffer::dirty(self.words.len()) };
        for (o, x) in out.words.chunks_exact_mut(n).zip(self.words.chunks_exact(n)) {
            self.context.limb().rotate(o, x, steps % (2 * n));
        }
        out
    }

    /// Adds `Σ u_j·zeros_j + (e_1, …, e_k, e_0)` with secret ternary u_j and fresh errors: masks that tell nothing of the old
    /// ones, by module LWE of as high a rank as there are encryptions of zero. u_j is drawn from `factors(j)`.
    pub(crate) fn hide<'a>(
        &mut self,
        zeros: impl Iterator<Item = &'a Self>,
        factors: impl Fn(u64) -> Seed,
        errors: &Seed,
    ) {
        let context = self.context.clone();
        let (n, limb) = (context.degree(), context.limb());
        let mut sum = Buffer::zeroed(context.words());
        let mut small = Zeroizing::new(vec![0i64; n]);
        let mut u = Zeroizing::new(vec![0u64; n]);
        let mut p = Buffer::dirty(n);
        for (j, z) in zeros.enumerate() {
            ternary(&mut factors(j as u64).stream(0), &mut small);
            limb.from_i64(&mut u, &small);
            limb.forward(&mut u);
            for (sum, z) in sum.chunks_exact_mut(n).zip(z.words.chunks_exact(n)) {
                p.copy_from_slice(z);
                limb.forward(&mut p);
                limb.mul_add(sum, &p, &u);
            }
        }
        let mut errors = errors.stream(0);
        for (sum, out) in sum.chunks_exact_mut(n).zip(self.words.chunks_exact_mut(n)) {
            limb.inverse(sum);
            limb.add_assign(out, sum);
            context.noise().sample(&mut errors, &mut small);
            limb.from_i64(&mut u, &small);
            limb.add_assign(out, &u);
        }
        // Less what it adds, a ciphertext is its message.
        sum.zeroize();
    }

    /// The LWE ciphertext of coefficient `at` of the phase, under [`GlweSecretKey::to_lwe`].
    ///
    /// # Errors
    /// [`TfheError::Shape`] if `at` is not below N.
    pub fn extract(&self, at: usize) -> Result<LweCiphertext, TfheError> {
        let (n, q) = (self.context.degree(), self.context.modulus());
        if at >= n {
            return Err(TfheError::Shape { what: "coefficient index", expected: n - 1, found: at });
        }
        let mut words = Vec::with_capacity(self.context.lwe_dimension() + 1);
        for a in self.words[..self.context.lwe_dimension()].chunks_exact(n) {
            // Coefficient `at` of A·S is Σ_j S_j·A_(at−j), negated where the index wraps.
            words.extend(a[..=at].iter().rev());
            words.extend(a[at + 1..].iter().rev().map(|x| q.neg(*x)));
        }
        words.push(self.body()[at]);
        LweCiphertext::from_words(q, words)
    }
}

impl fmt::Debug for GlweCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.context;
        write!(f, "GlweCiphertext(N = {}, k = {}, q = {})", c.degree(), c.rank(), c.q())
    }
}

pub(crate) fn check_below(context: &GlweContext, words: &[u64]) -> Result<(), TfheError> {
    match words.iter().position(|w| *w >= context.q()) {
        Some(index) => Err(sudare_ring::RingError::Coefficient { limb: 0, index }.into()),
        None => Ok(()),
    }
}
