//! The owner of rows: encrypts ranks, and reads scores. It needs the plan alone.

use super::plan::Plan;
use super::tree::compared;
use crate::error::ModelError;
use crate::message::{Answer, Request};
use crate::shared::Shared;
use num_complex::Complex64;
use std::f64::consts::SQRT_2;
use sudare_he::ckks::{Decryptor, EncodeAt, Encoder, Encryptor};
use sudare_he::discrete::packed_scale;
use sudare_ring::threads;
use sudare_ring::wipe::Wiped;
use zeroize::Zeroizing;

/// Holds the secret key for a forest's plan.
pub type Client = crate::client::Client<Plan>;

/// How a row's ranks are encrypted.
pub(crate) fn request_at(plan: &Plan) -> Result<EncodeAt, ModelError> {
    let (set, most) = (plan.set(), plan.figures().most);
    let scale = packed_scale(set, 2 * most as u64)?;
    Ok(EncodeAt { level: set.input_level() + 1, scale, max_abs: SQRT_2 * most as f64 })
}

impl Client {
    /// Of each column the rank of a row's value: how many of its thresholds are below it.
    fn ranks(&self, row: &[f64]) -> Result<Zeroizing<Vec<f64>>, ModelError> {
        let figures = self.plan.figures();
        let row = Zeroizing::new(compared(row, figures.inputs, figures.single)?);
        let rank = |x: f64, thresholds: &[f64]| thresholds.partition_point(|t| *t < x) as f64;
        Ok(Zeroizing::new(figures.columns.iter().map(|c| rank(row[c.feature], &c.thresholds)).collect()))
    }

    /// Encrypts rows, one after the other.
    ///
    /// # Errors
    /// [`ModelError::Shape`]; [`ModelError::NotFinite`] for a missing number, an infinite one, or one that single precision does not hold where
    /// the forest compares in it.
    pub fn encrypt(&self, rows: &[f64]) -> Result<Request, ModelError> {
        let (inputs, places) = (self.plan.inputs(), self.plan.places());
        if rows.is_empty() || !rows.len().is_multiple_of(inputs) {
            return Err(ModelError::Shape { what: "the rows", found: rows.len(), expected: inputs });
        }
        let one = |(row, x): (usize, &[f64])| match self.ranks(x) {
            Err(ModelError::NotFinite { .. }) => Err(ModelError::NotFinite { row }),
            found => found,
        };
        let ranks = rows.chunks_exact(inputs).enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        let (encoder, encryptor) = (Encoder::new(self.plan.params()), Encryptor::with_secret_key(&self.secret)?);
        let at = request_at(&self.plan)?;
        let lots: Vec<_> = ranks.chunks(self.plan.figures().rows).collect();
        let one = |i: usize| {
            let rank = |row: usize, s: usize| {
                // Rows and columns that are not there have the rank 0.
                lots[i].get(row).and_then(|ranks| ranks.get(s % places.period)).map_or(0.0, |rank| *rank)
            };
            let slot = |slot: usize| {
                let (place, row) = (slot / places.rows, slot % places.rows);
                Complex64::new(rank(row, place), rank(places.rows + row, place))
            };
            let slots: Wiped<Complex64> = (0..places.slots()).map(slot).collect::<Vec<_>>().into();
            Ok::<_, ModelError>(encryptor.encrypt(&encoder.encode_complex(&slots, at)?)?)
        };
        let ciphertexts = threads::map_jobs(lots.len(), one).into_iter().collect::<Result<_, _>>()?;
        Request::new(&self.plan, ranks.len(), ciphertexts)
    }

    /// The scores, row by row.
    ///
    /// # Errors
    /// [`ModelError::Mixed`] for another plan's; [`ModelError::He`] for an answer under another key, or with a score that no forest of the plan
    /// has.
    pub fn decrypt(&self, answer: &Answer) -> Result<Vec<f64>, ModelError> {
        if !answer.is_of(&self.plan) {
            return Err(ModelError::Mixed { what: "the answer" });
        }
        let (outputs, figures, places) = (self.plan.outputs(), self.plan.figures(), self.plan.places());
        let (encoder, decryptor) = (Encoder::new(self.plan.params()), Decryptor::new(&self.secret));
        let read =
            |i: usize| Ok::<_, ModelError>(encoder.decode_complex(&decryptor.decrypt(&answer.ciphertexts()[i])?)?);
        let all = threads::map_jobs(answer.ciphertexts().len(), read).into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut out = Vec::with_capacity(answer.examples() * outputs);
        for row in 0..answer.examples() {
            let (lot, at) = (row / figures.rows * places.groups(outputs), row % figures.rows);
            for o in 0..outputs {
                let z = all[lot + o / places.steps][places.score(o, at % places.rows)];
                let score = if at < places.rows { z.re } else { z.im };
                if score.abs() > figures.output_bound + figures.error {
                    return Err(ModelError::Score { row });
                }
                out.push(score);
            }
        }
        Ok(out)
    }
}
