//! A table in the clear at the server, and encrypted questions: the scores of all rows, without any evaluation key.
//!
//! The question is d ciphertexts of constants q_j in a ring of degree 2,048 with one prime of 31 bits; rows are coefficients of d
//! plaintexts a block. A block's scores are Σ_j x_j·q_j: two inner products of polynomials. The asker learns the scores of all rows.
//!
//! Answers are not flooded: who has the key learns from each both parts of Σ_j x_j·q_j modulo the prime, two linear equations in each
//! transform slot, for d unknowns. So d/2 questions give the rows themselves, and fewer do if their ciphertexts are made for it.

use crate::client::normalised;
use crate::error::SearchError;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Params, ParamsLiteral, State};
use sudare_ring::{Eval, Poly, threads};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::noise::ERROR_VARIANCE;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::{Bundle, Wire};

/// Scale of questions.
const QUERY_SCALE: f64 = (1u64 << 19) as f64;
/// How far a score and its error reach.
const REACH: f64 = 1.01;

/// A plan of scores against a table in the clear.
#[derive(Clone, Debug)]
pub struct PlainIndex {
    d: usize,
    params: Params,
}

/// Scores of all rows, encrypted.
#[derive(Clone, Debug)]
pub struct PlainAnswer {
    rows: usize,
    bundle: Bundle<Ciphertext>,
}

/// A question, or several.
#[derive(Clone, Debug)]
pub struct PlainQuery(Bundle<Ciphertext>);

/// A table in the clear, prepared.
#[derive(Debug)]
pub struct PlainTable {
    index: PlainIndex,
    rows: usize,
    /// For each block of rows the polynomials of its coordinates.
    blocks: Vec<Vec<Poly<Eval>>>,
}

/// Who asks. Holds the secret key.
#[derive(Debug)]
pub struct PlainClient {
    index: PlainIndex,
    secret: SecretKey,
}

impl PlainIndex {
    /// A plan for vectors of `d` coordinates, with 128 bits of security: N = 2,048 and 31 bits, where 53 are allowed.
    ///
    /// # Errors
    /// [`SearchError::Goal`] for no coordinates, or more than 4,096.
    pub fn new(d: usize) -> Result<Self, SearchError> {
        if !(1..=crate::plan::MAX_D).contains(&d) {
            let (what, wanted) = ("the number of coordinates", "1 to 4096");
            return Err(SearchError::Goal { what, found: d.to_string(), wanted });
        }
        let rlwe = rlwe::params::ParamsLiteral {
            log_n: 11,
            q_bits: vec![31],
            p_bits: vec![],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Bits128,
        };
        Ok(Self { d, params: ParamsLiteral { rlwe, log_scale: 19 }.build()? })
    }

    /// Coordinates.
    pub fn d(&self) -> usize {
        self.d
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Rows of a block.
    pub fn block_rows(&self) -> usize {
        self.params.degree()
    }

    /// What a question says of itself: its coordinates, which the parameters do not tell.
    fn header(&self) -> Vec<u8> {
        (self.d as u64).to_le_bytes().to_vec()
    }

    /// Whether a bundle is a question, or several, of this plan.
    fn asks(&self, bundle: &Bundle<Ciphertext>) -> bool {
        let fresh = |c: &Ciphertext| (c.scale(), c.parts().len()) == (QUERY_SCALE, 2);
        bundle.params().hash() == self.params.hash()
            && bundle.application() == self.header()
            && !bundle.ciphertexts().is_empty()
            && bundle.ciphertexts().len().is_multiple_of(self.d)
            && bundle.ciphertexts().iter().all(fresh)
    }

    /// Scale of scores: they and their errors fill the modulus.
    fn score_scale(&self) -> f64 {
        (self.params.prime_at(0) as f64 / (2.0 * REACH)).floor()
    }

    fn row_scale(&self) -> f64 {
        self.score_scale() / QUERY_SCALE
    }

    /// Standard deviation of a score's error: that of encryption times rows of length one, and of both roundings.
    pub fn deviation(&self) -> f64 {
        let n = self.params.degree() as f64;
        let (encrypted, rows) = (n * ERROR_VARIANCE / QUERY_SCALE.powi(2), 1.0 / (12.0 * self.row_scale().powi(2)));
        (encrypted + rows + 1.0 / (12.0 * QUERY_SCALE.powi(2))).sqrt()
    }

    fn state(&self) -> State {
        let scale = self.score_scale();
        State { scale, bound: 1.0, noise: 8.0 * self.deviation() * scale }
    }
}

impl PlainClient {
    /// A client with a new key.
    ///
    /// # Errors
    /// [`SearchError::He`] if the system gives no entropy.
    pub fn new(index: &PlainIndex) -> Result<Self, SearchError> {
        Self::with_secret(index, SecretKey::generate(&index.params)?)
    }

    /// A client with a key that was kept.
    ///
    /// # Errors
    /// [`SearchError::He`] for a key of other parameters.
    pub fn with_secret(index: &PlainIndex, secret: SecretKey) -> Result<Self, SearchError> {
        index.params.hash().require("the secret key", secret.params().hash())?;
        Ok(Self { index: index.clone(), secret })
    }

    /// The secret key, for its owner's file.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// A question of one or more vectors, row by row.
    ///
    /// # Errors
    /// [`SearchError::Shape`], [`SearchError::NotFinite`], [`SearchError::ZeroQuery`].
    pub fn query(&self, vectors: &[f32]) -> Result<PlainQuery, SearchError> {
        let d = self.index.d;
        if vectors.is_empty() || !vectors.len().is_multiple_of(d) {
            let (what, found) = ("a question", vectors.len());
            return Err(SearchError::Shape { what, found, expected: d * vectors.len().div_ceil(d).max(1) });
        }
        let (encoder, encryptor) = (Encoder::new(&self.index.params), Encryptor::with_secret_key(&self.secret)?);
        let at = EncodeAt { level: 0, scale: QUERY_SCALE, max_abs: 1.0 };
        let mut ciphertexts = Vec::with_capacity(vectors.len());
        for (row, vector) in vectors.chunks_exact(d).enumerate() {
            let unit = normalised(vector, row)?;
            if unit.iter().all(|x| *x == 0.0) {
                return Err(SearchError::ZeroQuery { row });
            }
            for x in unit {
                ciphertexts.push(encryptor.encrypt(&encoder.encode_constant(x.clamp(-1.0, 1.0), at)?)?);
            }
        }
        let header = self.index.header();
        Ok(PlainQuery(Bundle::new(self.index.params.rlwe(), self.secret.id(), header, ciphertexts)?))
    }

    /// The scores of all rows with each question.
    ///
    /// # Errors
    /// [`SearchError::He`] for an answer under another key.
    pub fn scores(&self, answer: &PlainAnswer) -> Result<Vec<Vec<f64>>, SearchError> {
        let each = answer.rows.div_ceil(self.index.block_rows());
        let (encoder, decryptor) = (Encoder::new(&self.index.params), Decryptor::new(&self.secret));
        let one = |blocks: &[Ciphertext]| {
            let block = |c: &Ciphertext| Ok(encoder.decode_coefficients(&decryptor.decrypt(c)?)?);
            let mut scores = blocks.iter().map(block).collect::<Result<Vec<Vec<f64>>, SearchError>>()?.concat();
            scores.truncate(answer.rows);
            Ok(scores)
        };
        answer.bundle.ciphertexts().chunks(each.max(1)).map(one).collect()
    }
}

impl PlainTable {
    /// A table of rows, which are normalised.
    ///
    /// # Errors
    /// [`SearchError::Shape`], [`SearchError::NotFinite`].
    pub fn new(index: &PlainIndex, rows: &[f32]) -> Result<Self, SearchError> {
        let d = index.d;
        if rows.is_empty() || !rows.len().is_multiple_of(d) {
            let expected = d * rows.len().div_ceil(d).max(1);
            return Err(SearchError::Shape { what: "vectors", found: rows.len(), expected });
        }
        let units = rows.chunks_exact(d).enumerate().map(|(row, v)| normalised(v, row));
        let units = units.collect::<Result<Vec<_>, _>>()?;
        let encoder = Encoder::new(&index.params);
        let at = EncodeAt { level: 0, scale: index.row_scale(), max_abs: 1.0 };
        let block = |rows: &[Vec<f64>]| {
            let column = |j: usize| {
                let values: Vec<f64> = rows.iter().map(|row| row[j].clamp(-1.0, 1.0)).collect();
                Ok(encoder.encode_coefficients(&values, at)?.poly().clone())
            };
            threads::map(d, column).into_iter().collect::<Result<Vec<_>, SearchError>>()
        };
        let blocks = units.chunks(index.block_rows()).map(block).collect::<Result<_, _>>()?;
        Ok(Self { index: index.clone(), rows: units.len(), blocks })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The scores of all rows with each question.
    ///
    /// # Errors
    /// [`SearchError::Mixed`] for a question of another plan.
    pub fn scores(&self, query: &PlainQuery) -> Result<PlainAnswer, SearchError> {
        let (params, bundle) = (&self.index.params, &query.0);
        if !self.index.asks(bundle) {
            return Err(SearchError::Mixed { what: "the question" });
        }
        let queries: Vec<[Vec<&Poly<Eval>>; 2]> = bundle
            .ciphertexts()
            .chunks(self.index.d)
            .map(|one| [0, 1].map(|part| one.iter().map(|c| &c.parts()[part]).collect()))
            .collect();
        let basis = params.q_at(0);
        let jobs = threads::map_jobs(queries.len() * self.blocks.len(), |i| {
            let (query, block) = (&queries[i / self.blocks.len()], &self.blocks[i % self.blocks.len()]);
            let rows: Vec<&Poly<Eval>> = block.iter().collect();
            let parts = query.iter().map(|q| Poly::<Eval>::dot(basis, &rows, q)).collect();
            let inner = rlwe::Ciphertext::from_parts(params.rlwe(), bundle.key(), parts, 0)?;
            Ok(Ciphertext::from_parts(inner, self.index.state())?)
        });
        let ciphertexts = jobs.into_iter().collect::<Result<Vec<_>, SearchError>>()?;
        let header = [self.index.header(), (self.rows as u64).to_le_bytes().to_vec()].concat();
        let bundle = Bundle::new(params.rlwe(), bundle.key(), header, ciphertexts)?;
        Ok(PlainAnswer { rows: self.rows, bundle })
    }
}

impl PlainQuery {
    /// Its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, SearchError> {
        Ok(self.0.to_bytes()?)
    }

    /// A question of its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`] for damaged bytes or other parameters; [`SearchError::Mixed`] for another plan's.
    pub fn from_bytes(index: &PlainIndex, bytes: &[u8]) -> Result<Self, SearchError> {
        let bundle = Bundle::from_bytes(index.params.rlwe(), bytes)?;
        if index.asks(&bundle) { Ok(Self(bundle)) } else { Err(SearchError::Mixed { what: "the question" }) }
    }
}

impl PlainAnswer {
    /// Its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, SearchError> {
        Ok(self.bundle.to_bytes()?)
    }

    /// An answer of its bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`] for damaged bytes or other parameters; [`SearchError::Mixed`] for another message.
    pub fn from_bytes(index: &PlainIndex, bytes: &[u8]) -> Result<Self, SearchError> {
        let bundle = Bundle::<Ciphertext>::from_bytes(index.params.rlwe(), bytes)?;
        let rows = bundle.application().strip_prefix(index.header().as_slice());
        let rows =
            rows.and_then(|rows| rows.try_into().ok()).map(u64::from_le_bytes).and_then(|r| usize::try_from(r).ok());
        let each = |rows: usize| rows.div_ceil(index.block_rows());
        let rows = rows.filter(|r| *r > 0 && bundle.ciphertexts().len().is_multiple_of(each(*r)));
        match rows.filter(|_| !bundle.ciphertexts().is_empty()) {
            Some(rows) => Ok(Self { rows, bundle }),
            None => Err(SearchError::Mixed { what: "the answer" }),
        }
    }
}
