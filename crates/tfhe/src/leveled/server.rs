//! What a server computes on leveled ciphertexts. It needs no key.

use crate::core::context::check_shape;
use crate::core::ggsw::evaluate_digits;
use crate::leveled::ciphertext::{LeveledGlwe, LeveledLwe, Owner, Selector, meet};
use crate::leveled::table::{Leaf, PackedTable};
use crate::leveled::{LeveledParams, TableLayout};
use crate::{GlweCiphertext, TfheError};
use sudare_ring::buffer::Buffer;
use sudare_ring::threads;

/// Tree nodes with at least this many leaves below may run on several threads.
const PARALLEL_LEAVES: usize = 8;

/// Leveled operations. Each checks parameters, keys and the noise of its result first.
#[derive(Clone, Debug)]
pub struct LeveledServer {
    params: LeveledParams,
}

/// The variance of a sum of two noises that may be the same one.
fn correlated(a: f64, b: f64) -> f64 {
    (a.sqrt() + b.sqrt()).powi(2)
}

impl LeveledServer {
    /// The operations of a parameter set.
    pub fn new(params: &LeveledParams) -> Self {
        Self { params: params.clone() }
    }

    /// Its parameters.
    pub fn params(&self) -> &LeveledParams {
        &self.params
    }

    fn no_one(&self) -> Owner {
        (self.params.hash(), None)
    }

    fn wrap(&self, c: GlweCiphertext, variance: f64, owner: Owner) -> LeveledGlwe {
        LeveledGlwe { c, variance, owner }
    }

    /// Messages that everybody knows, one a coefficient from the first on.
    ///
    /// # Errors
    /// [`TfheError::Message`], [`TfheError::Shape`] for more than N of them.
    pub fn trivial(&self, messages: &[u64]) -> Result<LeveledGlwe, TfheError> {
        let n = self.params.context().degree();
        if messages.len() > n {
            return Err(TfheError::Shape { what: "messages", expected: n, found: messages.len() });
        }
        let mut phases = messages.iter().map(|m| self.params.encode(*m)).collect::<Result<Vec<_>, _>>()?;
        phases.resize(n, 0);
        Ok(self.wrap(GlweCiphertext::trivial(self.params.context(), &phases)?, 0.0, self.no_one()))
    }

    fn pair(&self, a: Owner, b: Owner) -> Result<Owner, TfheError> {
        meet("the second operand", meet("the first operand", self.no_one(), a)?, b)
    }

    /// a + b, coefficient by coefficient modulo the message space.
    ///
    /// # Errors
    /// [`TfheError::LeveledNoise`], `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn add(&self, a: &LeveledGlwe, b: &LeveledGlwe) -> Result<LeveledGlwe, TfheError> {
        let owner = self.pair(a.owner, b.owner)?;
        let variance = correlated(a.variance, b.variance);
        self.params.check_variance("addition", variance)?;
        let mut c = a.c.clone();
        c.add_assign(&b.c)?;
        Ok(self.wrap(c, variance, owner))
    }

    /// a − b, coefficient by coefficient modulo the message space.
    ///
    /// # Errors
    /// As for [`LeveledServer::add`].
    pub fn sub(&self, a: &LeveledGlwe, b: &LeveledGlwe) -> Result<LeveledGlwe, TfheError> {
        let owner = self.pair(a.owner, b.owner)?;
        let variance = correlated(a.variance, b.variance);
        self.params.check_variance("subtraction", variance)?;
        let mut c = a.c.clone();
        c.sub_assign(&b.c)?;
        Ok(self.wrap(c, variance, owner))
    }

    /// a + b of extracted coefficients.
    ///
    /// # Errors
    /// As for [`LeveledServer::add`].
    pub fn add_lwe(&self, a: &LeveledLwe, b: &LeveledLwe) -> Result<LeveledLwe, TfheError> {
        let owner = self.pair(a.owner, b.owner)?;
        let variance = correlated(a.variance, b.variance);
        self.params.check_variance("addition", variance)?;
        let mut c = a.c.clone();
        c.add_assign(&b.c)?;
        Ok(LeveledLwe { c, variance, owner })
    }

    /// `X^steps·a`, exponents modulo 2N.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn rotate(&self, a: &LeveledGlwe, steps: usize) -> Result<LeveledGlwe, TfheError> {
        let owner = meet("the ciphertext", self.no_one(), a.owner)?;
        Ok(self.wrap(a.c.rotated(steps % (2 * self.params.context().degree())), a.variance, owner))
    }

    /// The product of a selector's bit and a ciphertext.
    ///
    /// # Errors
    /// As for [`LeveledServer::cmux`].
    pub fn product(&self, by: &Selector, a: &LeveledGlwe) -> Result<LeveledGlwe, TfheError> {
        let owner = self.pair(by.as_owner(), a.owner)?;
        let variance = a.variance + by.noise().bound();
        self.params.check_variance("external product", variance)?;
        Ok(self.wrap(by.ggsw().external_product(&a.c)?, variance, owner))
    }

    /// d1 if the selector's bit is one, else d0.
    ///
    /// # Errors
    /// [`TfheError::LeveledNoise`] before any work if the result could decrypt wrongly;
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn cmux(&self, by: &Selector, d1: &LeveledGlwe, d0: &LeveledGlwe) -> Result<LeveledGlwe, TfheError> {
        let owner = meet("the second operand", self.pair(by.as_owner(), d1.owner)?, d0.owner)?;
        let variance = d1.variance.max(d0.variance) + by.noise().bound();
        self.params.check_variance("CMUX", variance)?;
        Ok(self.wrap(by.ggsw().cmux(&d1.c, &d0.c)?, variance, owner))
    }

    /// `X^steps·a` if the selector's bit is one, else a.
    ///
    /// # Errors
    /// As for [`LeveledServer::cmux`].
    pub fn rotate_if(&self, by: &Selector, a: &LeveledGlwe, steps: usize) -> Result<LeveledGlwe, TfheError> {
        let owner = self.pair(by.as_owner(), a.owner)?;
        let variance = a.variance + by.noise().bound();
        self.params.check_variance("rotation", variance)?;
        let mut c = a.c.clone();
        by.ggsw().rotate_if(&mut c, steps % (2 * self.params.context().degree()))?;
        Ok(self.wrap(c, variance, owner))
    }

    /// The entry at an encrypted index, its words in the first coefficients of the result.
    ///
    /// The high bits drive a tree of CMUX over the table's polynomials, the low ones rotate inside
    /// the polynomial that is left. Subtrees run in parallel inside a thread pool. An index past
    /// the last entry gives some entry, or zeros.
    ///
    /// Source: Chillotti, Gama, Georgieva and Izabachène, 2018/421, section 5.1 (horizontal and
    /// vertical packing, mixed).
    ///
    /// # Errors
    /// [`TfheError::Shape`] unless there are as many selectors (least significant first) as
    /// [`TableLayout::index_bits`]; [`TfheError::LeveledNoise`] before any work if the result could decrypt
    /// wrongly; `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn lookup(&self, table: &PackedTable, index: &[Selector]) -> Result<LeveledGlwe, TfheError> {
        let layout = table.layout();
        check_shape("index bits", layout.index_bits() as usize, index.len())?;
        let mut owner = meet("the table", self.no_one(), table.owner())?;
        for selector in index {
            owner = meet("the index", owner, selector.as_owner())?;
        }
        let variance = table.variance() + index.iter().map(|s| s.noise().bound()).sum::<f64>();
        self.params.check_variance("lookup", variance)?;
        let (inside, above) = index.split_at(layout.log_per_polynomial() as usize);
        let mut c = self.tree(table.leaves(), above)?;
        self.rotate_to_entry(&mut c, layout, inside)?;
        Ok(self.wrap(c, variance, owner))
    }

    /// [`LeveledServer::lookup`] with the words of the entry extracted.
    ///
    /// # Errors
    /// As for [`LeveledServer::lookup`].
    pub fn lookup_words(&self, table: &PackedTable, index: &[Selector]) -> Result<Vec<LeveledLwe>, TfheError> {
        let entry = self.lookup(table, index)?;
        (0..table.layout().outputs()).map(|i| entry.extract(i)).collect()
    }

    /// Brings the entry with these low index bits to coefficient 0.
    fn rotate_to_entry(
        &self,
        c: &mut GlweCiphertext,
        layout: &TableLayout,
        inside: &[Selector],
    ) -> Result<(), TfheError> {
        let two_n = 2 * self.params.context().degree();
        for (j, selector) in inside.iter().enumerate() {
            selector.ggsw().rotate_if(c, two_n - (layout.stride() << j))?;
        }
        Ok(())
    }

    /// The leaf with these index bits.
    fn tree(&self, leaves: &[Leaf], above: &[Selector]) -> Result<GlweCiphertext, TfheError> {
        let Some((selector, below)) = above.split_last() else {
            return match leaves.first() {
                Some(Leaf::Plain(words)) => GlweCiphertext::trivial(self.params.context(), words),
                Some(Leaf::Encrypted(c)) => Ok(c.clone()),
                None => Ok(GlweCiphertext::zero(self.params.context())),
            };
        };
        let half = 1usize << below.len();
        if leaves.len() <= half {
            return self.tree(leaves, below);
        }
        if let [Leaf::Plain(d0), Leaf::Plain(d1)] = leaves {
            return Ok(self.plain_cmux(selector, d1, d0));
        }
        if let [Leaf::Encrypted(d0), Leaf::Encrypted(d1)] = leaves {
            return selector.ggsw().cmux(d1, d0);
        }
        let (low, high) = leaves.split_at(half);
        let branch = |i: usize| self.tree(if i == 0 { low } else { high }, below);
        let (d0, d1) = if leaves.len() >= PARALLEL_LEAVES {
            let mut both = threads::map(2, branch).into_iter();
            match (both.next(), both.next()) {
                (Some(d0), Some(d1)) => (d0?, d1?),
                _ => (branch(0)?, branch(1)?),
            }
        } else {
            (branch(0)?, branch(1)?)
        };
        selector.ggsw().cmux(&d1, &d0)
    }

    /// A CMUX of two public polynomials: only the body has digits.
    fn plain_cmux(&self, selector: &Selector, d1: &[u64], d0: &[u64]) -> GlweCiphertext {
        let (context, ggsw) = (self.params.context(), selector.ggsw());
        let (n, limb) = (context.degree(), context.limb());
        let mut difference = Buffer::dirty(n);
        limb.sub(&mut difference, d1, d0);
        let mut digits = Buffer::zeroed(ggsw.matrix().rows() * n);
        let body = context.lwe_dimension() * ggsw.gadget().levels as usize;
        evaluate_digits(context, ggsw.gadget(), &difference, &mut digits[body..]);
        let mut out = GlweCiphertext::zero(context);
        limb.external_product(out.words_mut(), &digits, ggsw.matrix());
        out.words_mut().chunks_exact_mut(n).for_each(|p| limb.inverse(p));
        limb.add_assign(out.body_mut(), d0);
        out
    }
}
