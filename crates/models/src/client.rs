//! The owner of inputs: encrypts them, and reads answers. It needs the plan alone.

use crate::approximate::divided;
use crate::error::ModelError;
use crate::keys::Keys;
use crate::layout::{Layout, period};
use crate::message::{Answer, Request};
use crate::plan::Plan;
use crate::shared::Shared;
use std::sync::Arc;
use sudare_he::circuits::bootstrapping::BootstrapKeys;
use sudare_he::ckks::{Decryptor, EncodeAt, Encoder, Encryptor};
use sudare_ring::threads;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use zeroize::Zeroizing;

/// Holds the secret key for a plan of a network, or of a forest. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Client<P = Plan> {
    pub(crate) plan: P,
    pub(crate) secret: Arc<SecretKey>,
}

impl<P: Shared> Client<P> {
    /// A client with a new key.
    ///
    /// # Errors
    /// [`ModelError::He`] if the system gives no entropy.
    pub fn new(plan: &P) -> Result<Self, ModelError> {
        Self::with_secret(plan, SecretKey::generate(plan.params())?)
    }

    /// A client with a key that was kept.
    ///
    /// # Errors
    /// [`ModelError::He`] for a key of other parameters.
    pub fn with_secret(plan: &P, secret: SecretKey) -> Result<Self, ModelError> {
        plan.params().hash().require("the secret key", secret.params().hash())?;
        Ok(Self { plan: plan.clone(), secret: Arc::new(secret) })
    }

    /// The plan.
    pub fn plan(&self) -> &P {
        &self.plan
    }

    /// The secret key, for its owner's file.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// What the server computes with: the keys of the plan, each at its level, and those of its bootstrapping set.
    ///
    /// # Errors
    /// [`ModelError::He`].
    pub fn eval_keys(&self) -> Result<Keys, ModelError> {
        let (relin, galois) = self.plan.key_levels();
        let eval = match relin.is_none() && galois.is_empty() {
            true => EvalKeys::new(self.plan.params(), self.secret.id()),
            false => KeyGenerator::new(&self.secret)?.eval_keys(relin, galois)?,
        };
        let set = self.plan.refresh().map(|set| BootstrapKeys::generate(&self.secret, &set.build()?));
        Ok(Keys { eval, bootstrap: set.transpose()? })
    }
}

impl Client {
    /// Encrypts examples, row by row.
    ///
    /// # Errors
    /// [`ModelError::Shape`], [`ModelError::NotFinite`]; [`ModelError::Range`] for a number outside of the calibrated range.
    pub fn encrypt(&self, examples: &[f64]) -> Result<Request, ModelError> {
        let (inputs, figures, params) = (self.plan.inputs(), self.plan.figures(), self.plan.params());
        if examples.is_empty() || !examples.len().is_multiple_of(inputs) {
            return Err(ModelError::Shape { what: "the examples", found: examples.len(), expected: inputs });
        }
        let scaled: Vec<_> =
            examples.chunks_exact(inputs).map(|x| Zeroizing::new(divided(x, &figures.factors))).collect();
        let rows: Vec<&[f64]> = scaled.iter().map(|x| x.as_slice()).collect();
        for (row, values) in rows.iter().enumerate() {
            if values.iter().any(|x| !x.is_finite()) {
                return Err(ModelError::NotFinite { row });
            }
            if let Some(column) = values.iter().position(|x| x.abs() > figures.input_bound) {
                let bound = figures.input_bound * figures.factors.get(column).map_or(1.0, |factor| *factor);
                return Err(ModelError::Range { row, column, bound });
            }
        }
        let (encoder, encryptor) = (Encoder::new(params), Encryptor::with_secret_key(&self.secret)?);
        let at = EncodeAt {
            level: figures.input_level,
            scale: params.scale() / figures.input_bound,
            max_abs: figures.input_bound,
        };
        let layout = Layout::plain(inputs);
        let lots: Vec<&[&[f64]]> = rows.chunks(figures.images).collect();
        let one = |i: usize| {
            let values = Zeroizing::new(match figures.apart {
                false => layout.slots(lots[i], figures.images, params.slots()),
                true => lots[i / inputs].iter().map(|x| x[i % inputs]).collect(),
            });
            Ok::<_, ModelError>(encryptor.encrypt(&encoder.encode_at(&values, at)?)?)
        };
        let count = self.plan.ciphertexts(rows.len(), false);
        let ciphertexts = threads::map_jobs(count, one).into_iter().collect::<Result<_, _>>()?;
        Request::new(&self.plan, rows.len(), ciphertexts)
    }

    /// The answers, row by row.
    ///
    /// # Errors
    /// [`ModelError::Mixed`] for another plan's; [`ModelError::He`] for an answer under another key; [`ModelError::Left`] where a value on the way left the
    /// interval of its polynomial, as far as the answer shows it: a number over its bound, an imaginary part, or copies that differ.
    pub fn decrypt(&self, answer: &Answer) -> Result<Vec<f64>, ModelError> {
        if !answer.is_of(&self.plan) {
            return Err(ModelError::Mixed { what: "the answer" });
        }
        let (outputs, figures, params) = (self.plan.outputs(), self.plan.figures(), self.plan.params());
        if figures.apart {
            return self.decrypt_apart(answer);
        }
        let (encoder, decryptor) = (Encoder::new(params), Decryptor::new(&self.secret));
        let (images, p) = (figures.images, period(outputs));
        let read = |i: usize| {
            let slots = encoder.decode_complex(&decryptor.decrypt(&answer.ciphertexts()[i])?)?;
            let here = images.min(answer.examples() - i * images);
            let mut out = Vec::with_capacity(here * outputs);
            for b in 0..here {
                let left = |what| Err(ModelError::Left { row: i * images + b, what });
                for e in 0..outputs {
                    let first = slots[e * images + b];
                    let mut copies = slots.iter().skip(e * images + b).step_by(p * images);
                    if first.re.abs() > figures.output_bound + figures.error {
                        return left("over the bound on answers");
                    }
                    if copies.any(|z| z.im.abs() > figures.error || (z.re - first.re).abs() > 2.0 * figures.error) {
                        return left("not the same real number in all of its slots");
                    }
                    out.push(first.re);
                }
            }
            Ok(out)
        };
        let all = threads::map_jobs(answer.ciphertexts().len(), read).into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Answers of which each number has a ciphertext of its own.
    fn decrypt_apart(&self, answer: &Answer) -> Result<Vec<f64>, ModelError> {
        let (outputs, figures) = (self.plan.outputs(), self.plan.figures());
        let (encoder, decryptor) = (Encoder::new(self.plan.params()), Decryptor::new(&self.secret));
        let read = |i: usize| {
            let first = i / outputs * figures.images;
            let here = figures.images.min(answer.examples() - first);
            let slots = encoder.decode_complex(&decryptor.decrypt(&answer.ciphertexts()[i])?)?;
            let left = |row: usize, what| Err(ModelError::Left { row: first + row, what });
            for (row, z) in slots.iter().take(here).enumerate() {
                if z.re.abs() > figures.output_bound + figures.error {
                    return left(row, "over the bound on answers");
                }
                if z.im.abs() > figures.error {
                    return left(row, "not a real number");
                }
            }
            Ok(slots.into_iter().take(here).map(|z| z.re).collect::<Vec<_>>())
        };
        let columns = threads::map_jobs(answer.ciphertexts().len(), read).into_iter().collect::<Result<Vec<_>, _>>()?;
        let rows =
            columns.chunks(outputs).flat_map(|lot| (0..lot[0].len()).map(move |row| lot.iter().map(move |c| c[row])));
        Ok(rows.flatten().collect())
    }

    /// The labels of answers; none for a model of numbers.
    pub fn labels(&self, answers: &[f64]) -> Vec<Option<usize>> {
        answers.chunks_exact(self.plan.outputs()).map(|a| self.plan.figures().label.of(a)).collect()
    }
}
