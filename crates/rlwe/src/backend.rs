//! The seam between devices: what a backend does with ciphertexts.
//!
//! A ciphertext of a backend is a batch of one level under one key: one on the processor ([`Cpu`](crate::Cpu)), as many as are
//! computed together on a device, all that a circuit treats alike in a simulation ([`crate::simulated`]). Operations are
//! unchecked and uncounted: [`Evaluator`](crate::Evaluator) checks operands and keys, once for every backend, and counts. A
//! scheme's evaluator and all circuits are written on it once, and every word of a result is the same on every device.

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::counters::Counters;
use crate::cpu::{Blocks, MapSteps};
use crate::error::RlweError;
use crate::ids::KeyId;
use crate::keys::{GaloisKey, KeySwitchKey};
use crate::params::Params;
use crate::scaling::ScalingTables;
use std::fmt;
use std::sync::Arc;
use sudare_ring::automorphism::conjugation_element;
use sudare_ring::convert::BasisConverter;
use sudare_ring::ops::{Division, PeriodicPoly};
use sudare_ring::{Eval, Poly};
use zeroize::Zeroize;

/// What is known of a ciphertext, or of a batch of ciphertexts alike, without reading it.
pub trait Shaped: Clone {
    /// Its parameters.
    fn params(&self) -> &Params;

    /// The name of the secret key it is under.
    fn key(&self) -> KeyId;

    /// Rescales left.
    fn level(&self) -> usize;

    /// Polynomials of a ciphertext: two, or three after a product.
    fn polynomials(&self) -> usize;

    /// How many ciphertexts are in the batch.
    fn count(&self) -> usize {
        1
    }

    /// The next level down.
    ///
    /// # Errors
    /// [`RlweError::OutOfLevels`] at level 0.
    fn lower(&self, operation: &'static str) -> Result<usize, RlweError> {
        self.level().checked_sub(1).ok_or(RlweError::OutOfLevels { operation, needed: 1, level: 0 })
    }
}

impl Shaped for Ciphertext {
    fn params(&self) -> &Params {
        self.params()
    }

    fn key(&self) -> KeyId {
        self.key()
    }

    fn level(&self) -> usize {
        self.level()
    }

    fn polynomials(&self) -> usize {
        self.parts().len()
    }
}

/// What ends a linear map of a ciphertext, before it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapEnd {
    /// Nothing.
    Value,
    /// Its sum v + v̄ with its conjugate.
    Real,
    /// That, and i·(v̄ − v), twice its imaginary part.
    Parts,
}

impl MapEnd {
    /// How many ciphertexts it makes.
    pub fn values(self) -> usize {
        if self == Self::Parts { 2 } else { 1 }
    }
}

/// f·Σ a_i·b_i + Σ p_j·v_j + p of ciphertexts of two parts: a step of a polynomial, which is relinearised and rescaled once.
#[derive(Clone, Debug)]
pub struct Combination<'a, C, R> {
    /// Any ciphertext of the same key, for a sum of nothing but a constant.
    pub like: &'a C,
    /// The factors of each product.
    pub products: Vec<[&'a C; 2]>,
    /// f.
    pub factor: u64,
    /// Each ciphertext, and what multiplies it.
    pub multiples: Vec<(&'a C, &'a R)>,
    /// p.
    pub constant: Option<&'a R>,
}

impl<'a, C, R> Combination<'a, C, R> {
    /// The ciphertexts that it reads.
    pub fn operands(&self) -> impl Iterator<Item = &'a C> {
        self.products.iter().flatten().copied().chain(self.multiples.iter().map(|(v, _)| *v))
    }
}

/// Keys to a sparse secret and back.
#[derive(Clone, Debug)]
pub struct RaiseKeys {
    /// From what each part after the first is a multiple of to the sparse secret, modulo q_0·p.
    pub to_sparse: Vec<KeySwitchKey>,
    /// From the sparse secret to the dense one, modulo Q·p.
    pub to_dense: ToDense,
}

/// From a sparse secret to the dense one, modulo Q·p.
#[derive(Clone, Debug)]
pub enum ToDense {
    /// A key switch.
    Switch(KeySwitchKey),
    /// A linear map Σ_i ψ_i(m_i·x)/p: for each i a key of ψ_i with m_i times the sparse secret in it
    /// ([`KeyGenerator::map_keys`](crate::keys::KeyGenerator::map_keys)).
    Map(Vec<GaloisKey>),
}

/// The linear map Σ_i ψ_i(m_i·x)/p with which raising ends where keys hold it (ePrint 2025/1403).
#[derive(Clone, Debug)]
pub struct RaiseMap {
    /// The Galois element of each ψ_i.
    pub elements: Vec<u64>,
    /// The level whose primes hold what the map makes of c_0 over the integers.
    pub low: usize,
    /// The m_i over the primes of that level and p; none in a simulation.
    pub rows: Vec<PeriodicPoly>,
    /// From that level's primes to all of Q; none in a simulation.
    pub lift: Option<Arc<BasisConverter>>,
}

/// How a ciphertext modulo q_0 comes to all primes: to a sparse secret modulo q_0·p, and back modulo Q·p.
#[derive(Clone, Debug)]
pub struct Raise {
    /// q_0 and p.
    pub gate: Params,
    /// All of Q, and p.
    pub open: Params,
    /// The level that it leads to.
    pub top: usize,
    /// Parts after the first: one under the dense secret, two of a product under another one.
    pub entries: usize,
    /// The map that is applied on the way back.
    pub map: Option<RaiseMap>,
    /// The keys, `entries` of them to the sparse secret; `None` in a simulation.
    pub keys: Option<Arc<RaiseKeys>>,
}

impl Raise {
    /// The keys.
    ///
    /// # Errors
    /// [`RlweError::Internal`] without any.
    pub fn keys(&self) -> Result<&RaiseKeys, RlweError> {
        self.keys.as_deref().ok_or(RlweError::Internal { what: "a ciphertext is raised without keys" })
    }

    /// What one application does.
    pub fn counters(&self) -> Counters {
        // One switch back, or a product with a key for each term of the map.
        let back = self.map.as_ref().map_or(1, |map| map.elements.len()) as u64;
        Counters { add: back - 1, key_switches: self.entries as u64 + back, ..Counters::default() }
    }
}

/// ⌊F·x/D⌉ by tables that a scheme made. D is the product of the data primes above a level, and of P where x is over Q·P.
#[derive(Clone, Copy)]
pub struct Quotient<'a> {
    /// The level of the result.
    pub to: usize,
    /// The tables; a backend that computes nothing does not ask for them.
    pub tables: &'a dyn Fn() -> Result<Arc<Division>, RlweError>,
}

impl Quotient<'_> {
    /// The tables, for what is over so many primes.
    ///
    /// # Errors
    /// Theirs; [`RlweError::NoSuchLevel`] for tables over other primes.
    pub fn over(&self, primes: usize) -> Result<Arc<Division>, RlweError> {
        let division = (self.tables)()?;
        let kept = division.kept().len();
        if kept != self.to + 1 || kept + division.tail().len() != primes {
            return Err(RlweError::NoSuchLevel { operation: "division", wanted: kept, highest: self.to + 1 });
        }
        Ok(division)
    }
}

impl fmt::Debug for Quotient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quotient(to level {})", self.to)
    }
}

/// Which data primes something is divided by.
#[derive(Clone, Copy, Debug)]
pub enum Divisor<'a> {
    /// None.
    One,
    /// The last: a rescale.
    Last,
    /// Those above a level, and the result is multiplied by a factor.
    Above(Quotient<'a>),
}

impl Divisor<'_> {
    /// The level of what is divided at a level.
    ///
    /// # Errors
    /// [`RlweError::OutOfLevels`], [`RlweError::NoSuchLevel`] if there is none.
    pub fn level(&self, operation: &'static str, from: usize) -> Result<usize, RlweError> {
        match self {
            Self::One => Ok(from),
            Self::Last => from.checked_sub(1).ok_or(RlweError::OutOfLevels { operation, needed: 1, level: from }),
            Self::Above(by) if by.to <= from => Ok(by.to),
            Self::Above(by) => Err(RlweError::NoSuchLevel { operation, wanted: by.to, highest: from }),
        }
    }
}

/// How BFV multiplies: operands over the primes of a level and auxiliary ones, the sum of their products times t/R.
#[derive(Clone, Copy)]
pub struct ScaledProduct<'a> {
    /// The level of the result.
    pub level: usize,
    /// Auxiliary primes, all below 2^50; R is their product.
    pub aux: usize,
    /// The tables for operands of a level; a backend that computes nothing does not ask for them.
    pub tables: &'a dyn Fn(usize) -> Result<Arc<ScalingTables>, RlweError>,
}

impl fmt::Debug for ScaledProduct<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScaledProduct(to level {}, {} auxiliary primes)", self.level, self.aux)
    }
}

/// What a polynomial is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The data primes of a level.
    Q,
    /// These and the special primes.
    QP,
}

/// The operations of a device. Operands are of one set of parameters and one key, and have the parts that an operation takes;
/// keys are there and reach: [`Evaluator`](crate::Evaluator) sees to it. Where
/// operands have several levels, results have the lowest.
///
/// # Errors
/// An operation that returns a `Result` fails with [`RlweError::Device`] where a GPU refuses or lacks memory, and with what
/// loading a key may meet ([`KeySource`](crate::keys::KeySource)).
#[expect(clippy::missing_errors_doc, reason = "all operations fail alike, as the trait says")]
pub trait Backend: Sync {
    /// A batch of ciphertexts of one level under one key.
    type Ciphertext: Shaped + Send + Sync;

    /// A polynomial that is added or multiplied, as the backend keeps it.
    type Plaintext: Clone + Send + Sync + Zeroize;

    /// The same of one that repeats: a diagonal of a linear map, or a constant.
    type Row: Clone + Send + Sync + std::fmt::Debug;

    /// Its keys and counters.
    fn context(&self) -> &Context;

    /// A polynomial over the primes of a level, or these and the special ones, for later operations; `make` is called if
    /// the backend has a use for its words.
    ///
    /// # Errors
    /// Those of `make`.
    fn prepare<E>(
        &self,
        level: usize,
        over: Over,
        make: impl FnOnce() -> Result<Poly<Eval>, E>,
    ) -> Result<Self::Plaintext, E>;

    /// A polynomial whose slots repeat with a period, as [`Backend::prepare`].
    ///
    /// # Errors
    /// Those of `make`.
    fn prepare_row<E>(
        &self,
        at: (usize, Over),
        period: usize,
        make: impl FnOnce() -> Result<PeriodicPoly, E>,
    ) -> Result<Self::Row, E>;

    /// How many ciphertexts like this one a circuit takes at a time: more than one only if that is faster than one after the other.
    fn width(&self, like: &Self::Ciphertext) -> usize;

    /// Batches of one shape as one batch. On the processor a ciphertext is a batch of one, and joined alone.
    fn join(&self, batches: &[&Self::Ciphertext]) -> Result<Self::Ciphertext, RlweError>;

    /// The reverse: what was joined of `count` batches.
    fn split(&self, batch: &Self::Ciphertext, count: usize) -> Result<Vec<Self::Ciphertext>, RlweError>;

    /// The operands of `count` circuits that are alike, if the backend runs but one of them for all.
    fn taken(&self, _operands: &[&Self::Ciphertext], _count: usize) -> Option<Vec<Self::Ciphertext>> {
        None
    }

    /// `count` ciphertexts like this one as one, if the backend computes but one of what is alike: what such a circuit made, as
    /// the value of all, or the parts of a larger value.
    fn assembled(&self, _like: &Self::Ciphertext, _count: usize) -> Option<Self::Ciphertext> {
        None
    }

    /// Σ k·a for integers k: one term, or two of which the first has k = 1 or both are at one level.
    fn sum(&self, terms: &[(&Self::Ciphertext, i64)]) -> Result<Self::Ciphertext, RlweError>;

    /// `acc += b`; `acc` keeps its value on error.
    fn add_assign(&self, acc: &mut Self::Ciphertext, b: &Self::Ciphertext) -> Result<(), RlweError> {
        *acc = self.sum(&[(acc, 1), (b, 1)])?;
        Ok(())
    }

    /// a·X^(N/2), or with `minus` a·X^(−N/2): i or −i in every slot.
    fn mul_imaginary_unit(&self, a: &Self::Ciphertext, minus: bool) -> Result<Self::Ciphertext, RlweError>;

    /// a + p, or with `minus` a − p.
    fn add_plain(&self, a: &Self::Ciphertext, p: &Self::Plaintext, minus: bool) -> Result<Self::Ciphertext, RlweError>;

    /// a·p, or with `rescale` ⌊a·p/q_l⌉.
    fn mul_plain(
        &self,
        a: &Self::Ciphertext,
        p: &Self::Plaintext,
        rescale: bool,
    ) -> Result<Self::Ciphertext, RlweError>;

    /// Σ_i a_i·b_i with three parts.
    fn dot(&self, a: &[&Self::Ciphertext], b: &[&Self::Ciphertext]) -> Result<Self::Ciphertext, RlweError>;

    /// `acc += Σ_i a_i·b_i`; `acc` keeps its value on error.
    fn dot_assign(
        &self,
        acc: &mut Self::Ciphertext,
        a: &[&Self::Ciphertext],
        b: &[&Self::Ciphertext],
    ) -> Result<(), RlweError> {
        self.add_assign(acc, &self.dot(a, b)?)
    }

    /// ⌊t/R·Σ_i a_i·b_i⌉ with three parts, of operands scaled to Q and to R.
    fn dot_scaled(
        &self,
        a: &[&Self::Ciphertext],
        b: &[&Self::Ciphertext],
        by: &ScaledProduct<'_>,
    ) -> Result<Self::Ciphertext, RlweError>;

    /// a·b with two parts, divided as [`Backend::relinearize`] divides; in two steps unless the backend has one for both.
    fn product(
        &self,
        a: &Self::Ciphertext,
        b: &Self::Ciphertext,
        by: &Divisor<'_>,
    ) -> Result<Self::Ciphertext, RlweError> {
        self.relinearize(&self.dot(&[a], &[b])?, by)
    }

    /// Three parts to two, divided by P and some data primes at once.
    fn relinearize(&self, a: &Self::Ciphertext, by: &Divisor<'_>) -> Result<Self::Ciphertext, RlweError>;

    /// ⌊a/D⌉ for a product D of data primes.
    fn divide(&self, a: &Self::Ciphertext, by: &Divisor<'_>) -> Result<Self::Ciphertext, RlweError>;

    /// The same phase modulo the primes of a level under parameters of the same ring: its own at a lower level, or others
    /// whose primes begin with those of the level.
    fn drop_to(&self, a: &Self::Ciphertext, params: &Params, level: usize) -> Result<Self::Ciphertext, RlweError>;

    /// Automorphisms X → X^element with one decomposition (hoisting); element 1 is the ciphertext itself.
    fn automorphisms(&self, a: &Self::Ciphertext, elements: &[u64]) -> Result<Vec<Self::Ciphertext>, RlweError>;

    /// The sum of images under automorphisms with one decomposition and one division by P; with a mask over Q·P of this level or
    /// a higher one the sum times it, and divided by P·q_l.
    fn sum_of_automorphisms(
        &self,
        a: &Self::Ciphertext,
        elements: &[u64],
        mask: Option<&Self::Plaintext>,
    ) -> Result<Self::Ciphertext, RlweError>;

    /// ψ(a) − φ(b) for two automorphisms, with one division by P.
    fn difference_of_automorphisms(
        &self,
        a: (&Self::Ciphertext, u64),
        b: (&Self::Ciphertext, u64),
    ) -> Result<Self::Ciphertext, RlweError>;

    /// Linear maps of ciphertexts of one level, Σ over giant steps ψ of ψ(Σ p ⊙ baby), each divided by P and some data primes
    /// (double hoisting): each ciphertext is decomposed once for all maps, each key read once for all ciphertexts. For each map
    /// the values of all ciphertexts in turn, as many as their ends make.
    fn linear_maps(
        &self,
        sources: &[(&Self::Ciphertext, MapEnd)],
        maps: &[(&MapSteps, &[Vec<Self::Row>])],
        by: &Divisor<'_>,
    ) -> Result<Vec<Vec<Self::Ciphertext>>, RlweError>;

    /// Sums at one level, relinearised and rescaled; each key is read once for all of them.
    fn combinations(
        &self,
        sums: &[Combination<'_, Self::Ciphertext, Self::Row>],
        level: usize,
    ) -> Result<Vec<Self::Ciphertext>, RlweError>;

    /// A ciphertext at level 0 at a higher one: m modulo q_0 becomes m + q_0·I, |I| at most half of the sparse secret's weight.
    fn raise(&self, a: &Self::Ciphertext, by: &Raise) -> Result<Self::Ciphertext, RlweError>;

    /// The rows of products of blocks ([`Blocks`]): the operands of both sides in order, or in a simulation one batch each.
    fn block_products(
        &self,
        left: &[&Self::Ciphertext],
        right: &[&Self::Ciphertext],
        blocks: &Blocks,
    ) -> Result<Vec<Self::Ciphertext>, RlweError>;
}

/// The element of complex conjugation for a ciphertext.
pub fn conjugation(a: &impl Shaped) -> u64 {
    conjugation_element(a.params().degree())
}
