//! Encoding vectors to polynomials and back.

use super::noise::TAIL;
use super::params::Params;
use super::plaintext::{Decodable, Plaintext};
use super::spread::{self, PlainSpread};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use sudare_ring::embedding::Parts;
use sudare_ring::kernel::round_to_i64;
use sudare_ring::wipe::Wiped;
use sudare_ring::{Coeff, Poly};
use sudare_rlwe::RlweError;

/// Where a plaintext is encoded: level, scale and the bound it declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncodeAt {
    /// Level, 0 to the parameters' highest.
    pub level: usize,
    /// Scale: integer units in a value of one, at least 1.
    pub scale: f64,
    /// Declared bound on the absolute values; a larger value is refused. It travels openly with
    /// a ciphertext, so it should be a property of the kind of data, not of the data.
    pub max_abs: f64,
}

/// Encodes vectors as polynomials, and decodes them, for one parameter set.
///
/// A vector has up to N/2 values in slots, or up to N in coefficients; zeros fill the rest. Slots are the values of
/// the polynomial at the primitive 2N-th roots of unity (the canonical embedding; Cheon–Kim–Kim–Song, section 3.1): sums and
/// products of polynomials are those of the slots.
///
/// ```
/// use sudare_he::ckks::{Encoder, ParamsLiteral};
/// use sudare_rlwe::security::Security;
///
/// # fn main() -> Result<(), sudare_he::HeError> {
/// let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
/// let encoder = Encoder::new(&params);
/// let plain = encoder.encode(&[0.5, -0.25], 1.0)?;
/// let values = encoder.decode(&plain)?;
/// assert_eq!(values.len(), params.slots());
/// assert!((values[1] + 0.25).abs() <= plain.error_bound());
/// // A value over the declared bound is refused, and not cut.
/// assert!(encoder.encode(&[1.5], 1.0).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    params: Params,
}

/// Largest scaled coefficient that the fast path rounds, in bits.
const FAST_BITS: f64 = 62.0;

impl Encoder {
    /// An encoder for a parameter set.
    pub fn new(params: &Params) -> Self {
        Self { params: params.clone() }
    }

    /// The parameters that it encodes for.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The highest level and the default scale, for values up to `max_abs`.
    pub fn at_top(&self, max_abs: f64) -> EncodeAt {
        EncodeAt { level: self.params.max_level(), scale: self.params.scale(), max_abs }
    }

    /// Real values to the first slots, the rest zero, at the highest level and default scale.
    ///
    /// # Errors
    /// As [`Encoder::encode_at`].
    pub fn encode(&self, values: &[f64], max_abs: f64) -> Result<Plaintext, HeError> {
        self.encode_at(values, self.at_top(max_abs))
    }

    /// Up to N/2 real values to the first slots, the rest zero.
    ///
    /// # Errors
    /// `RlweError::TooManyValues`; [`HeError::NotFinite`] and `RlweError::OverBound` with the index of the first such value;
    /// `RlweError::NoSuchLevel`; `RlweError::Parameters` for a scale under 1 or a bound that is not finite;
    /// [`HeError::TooLarge`] where the level's modulus does not hold bound · scale.
    pub fn encode_at(&self, values: &[f64], at: EncodeAt) -> Result<Plaintext, HeError> {
        self.check(values.iter().map(|x| x.abs()), values.len(), self.params.slots(), at)?;
        self.embed(at, |re, _| re[..values.len()].copy_from_slice(values))
    }

    /// Up to N/2 complex values to the first slots, the rest zero. `at.max_abs` bounds their absolute values.
    ///
    /// # Errors
    /// As [`Encoder::encode_at`].
    pub fn encode_complex(&self, values: &[Complex64], at: EncodeAt) -> Result<Plaintext, HeError> {
        self.check(values.iter().map(|z| z.norm()), values.len(), self.params.slots(), at)?;
        self.embed(at, |re, im| {
            for ((r, i), z) in re.iter_mut().zip(im).zip(values) {
                (*r, *i) = (z.re, z.im);
            }
        })
    }

    /// Up to N real values to the first coefficients, the rest zero. The plaintext's bound is the
    /// Euclidean norm that `values.len()` coefficients of `max_abs` can have.
    ///
    /// # Errors
    /// As [`Encoder::encode_at`].
    pub fn encode_coefficients(&self, values: &[f64], at: EncodeAt) -> Result<Plaintext, HeError> {
        self.check(values.iter().map(|x| x.abs()), values.len(), self.params.degree(), at)?;
        let mut coefficients = Wiped::<f64>::zeros(self.params.degree());
        coefficients[..values.len()].copy_from_slice(values);
        let bound = at.max_abs * (values.len().max(1) as f64).sqrt();
        self.quantise(coefficients.split_at(self.params.slots()).into(), at, bound)
    }

    /// One real value in every slot: a constant polynomial.
    ///
    /// # Errors
    /// As [`Encoder::encode_at`].
    pub fn encode_constant(&self, value: f64, at: EncodeAt) -> Result<Plaintext, HeError> {
        self.encode_coefficients(&[value], at)
    }

    fn check(
        &self,
        mut sizes: impl Iterator<Item = f64>,
        found: usize,
        capacity: usize,
        at: EncodeAt,
    ) -> Result<(), HeError> {
        let operation = "encoding";
        if found > capacity {
            return Err(HeError::Rlwe(RlweError::TooManyValues { found, capacity }));
        }
        self.check_at(operation, at)?;
        if let Some((index, size)) = sizes.by_ref().enumerate().find(|(_, x)| x.is_nan() || *x > at.max_abs) {
            return Err(match size.is_finite() {
                true => HeError::Rlwe(RlweError::OverBound { index, bound: at.max_abs }),
                false => HeError::NotFinite { index },
            });
        }
        Ok(())
    }

    /// Refuses a level that there is not, or values that its modulus cannot hold.
    pub(super) fn check_at(&self, operation: &'static str, at: EncodeAt) -> Result<(), HeError> {
        self.params.expect_level(operation, at.level)?;
        if !(at.scale.is_finite() && at.scale >= 1.0 && at.max_abs.is_finite() && at.max_abs >= 0.0) {
            return Err(parameters("scale and max_abs have to be finite, the scale at least 1 and max_abs at least 0"));
        }
        let modulus = self.params.log_q(at.level);
        if at.max_abs > 0.0 && at.max_abs.log2() + at.scale.log2() + 1.0 > modulus {
            let (value, scale, level) = (at.max_abs.log2(), at.scale.log2(), at.level);
            return Err(HeError::TooLarge { operation, value, scale, modulus, level });
        }
        Ok(())
    }

    /// Bound on the canonical norm of the error of an encoding: rounding, and double precision's own relative error
    /// through the transform.
    pub fn noise(&self, at: EncodeAt) -> f64 {
        let rounding = self.params.sketch().rounding().bound(&TAIL);
        rounding + at.max_abs * at.scale * (self.params.degree() as f64).log2() * f64::EPSILON
    }

    /// Encodes the slots that `fill` writes, real and imaginary parts apart; both are zero before.
    fn embed(&self, at: EncodeAt, fill: impl FnOnce(&mut [f64], &mut [f64])) -> Result<Plaintext, HeError> {
        sudare_ring::interrupt::check();
        let mut values = Parts::zeroed(self.params.slots());
        let (re, im) = values.split_mut();
        fill(re, im);
        self.params.embedding().embed_inverse_split(re, im);
        self.quantise([re, im], at, at.max_abs)
    }

    /// Scales and rounds the coefficients below N/2 and the others.
    fn quantise(&self, coefficients: [&[f64]; 2], at: EncodeAt, bound: f64) -> Result<Plaintext, HeError> {
        let basis = self.params.q_at(at.level);
        let poly = if at.max_abs.max(1e-300).log2() + at.scale.log2() < FAST_BITS {
            let mut rounded = Wiped::<i64>::zeros(self.params.degree());
            for (rounded, part) in rounded.chunks_exact_mut(self.params.slots()).zip(coefficients) {
                round_to_i64(rounded, part, at.scale);
            }
            Poly::<Coeff>::from_signed(basis, &rounded)
        } else {
            self.quantise_wide(coefficients, at)
        };
        let noise = self.noise(at);
        let spread = PlainSpread {
            size: bound,
            error: spread::encoding(&self.params, self.params.slots()) + spread::doubles(&self.params, at),
            mask: false,
        };
        Ok(Plaintext {
            params: self.params.rlwe().clone(),
            poly: poly.into_eval(),
            level: at.level,
            scale: at.scale,
            bound,
            noise,
            spread,
        })
    }

    /// Scaled coefficients past a word: mantissa times a power of two, modulo each prime.
    fn quantise_wide(&self, coefficients: [&[f64]; 2], at: EncodeAt) -> Poly<Coeff> {
        // In one piece of memory: a list that grows leaves copies behind.
        let mut scaled = Wiped::<(i64, u64)>::zeros(self.params.degree());
        for (place, x) in scaled.iter_mut().zip(coefficients.into_iter().flatten()) {
            let y = x * at.scale;
            let shift = (y.abs().max(1.0).log2().ceil() as i32 - 61).max(0);
            *place = ((y * f64::from(-shift).exp2()).round() as i64, shift as u64);
        }
        Poly::<Coeff>::from_mantissas(self.params.q_at(at.level), &scaled)
    }

    /// The real parts of all N/2 slots.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn decode<P: Decodable>(&self, plaintext: &Plaintext<P>) -> Result<Vec<f64>, HeError> {
        Ok(self.decode_split(plaintext)?.split().0.to_vec())
    }

    /// All N/2 slots.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn decode_complex<P: Decodable>(&self, plaintext: &Plaintext<P>) -> Result<Vec<Complex64>, HeError> {
        let values = self.decode_split(plaintext)?;
        let (re, im) = values.split();
        Ok(re.iter().zip(im).map(|(re, im)| Complex64 { re: *re, im: *im }).collect())
    }

    /// The real parts of all slots, then the imaginary ones.
    fn decode_split<P: Decodable>(&self, plaintext: &Plaintext<P>) -> Result<Parts, HeError> {
        let mut values = Parts::dirty(self.params.slots());
        let (re, im) = values.split_mut();
        self.write_coefficients(plaintext, [re, im])?;
        self.params.embedding().embed_split(re, im);
        Ok(values)
    }

    /// All N coefficients, divided by the scale.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn decode_coefficients<P: Decodable>(&self, plaintext: &Plaintext<P>) -> Result<Vec<f64>, HeError> {
        let mut out = vec![0.0; self.params.degree()];
        let (low, high) = out.split_at_mut(self.params.slots());
        self.write_coefficients(plaintext, [low, high])?;
        Ok(out)
    }

    /// [`Encoder::decode_coefficients`], those below N/2 and the others.
    fn write_coefficients<P: Decodable>(
        &self,
        plaintext: &Plaintext<P>,
        [low, high]: [&mut [f64]; 2],
    ) -> Result<(), HeError> {
        self.params.require("the plaintext", &plaintext.params)?;
        let basis = plaintext.poly.basis();
        let scale = 1.0 / plaintext.scale;
        // As few primes as hold the message by its static bounds, with ten bits to spare.
        let needed = (plaintext.bound * plaintext.scale + plaintext.noise).max(1.0).log2() + 11.0;
        let mut bits = 0.0;
        let fitting = basis.primes().take_while(|q| {
            let more = bits < needed;
            bits += (*q as f64).log2();
            more
        });
        let limbs = fitting.count().max(1);
        plaintext.poly.read(limbs, |poly| {
            poly.to_f64(0, low, scale)?;
            Ok(poly.to_f64(low.len(), high, scale)?)
        })
    }
}
