//! Several ciphertexts under one circuit: one after the other, or as batches.

use super::{CiphertextOf, Evaluator};
use crate::ckks::{Ciphertext, Spread, State};
use crate::error::HeError;
use sudare_ring::{interrupt, threads};
use sudare_rlwe::{Backend, RlweError, Shaped};

/// How the processor goes through several circuits; a device takes as many at a time as it has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other, each with all threads: what long circuits want.
    InTurn,
    /// Each on a thread of its own: what short ones want.
    SideBySide,
}

/// The ciphertexts of a value: as many as there are, or in a simulation one that stands for all.
pub struct Batch<'c, C> {
    listed: &'c [Ciphertext<C>],
    count: usize,
}

impl<C> Clone for Batch<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Batch<'_, C> {}

impl<'c, C: Shaped> From<&'c [Ciphertext<C>]> for Batch<'c, C> {
    fn from(listed: &'c [Ciphertext<C>]) -> Self {
        Self { listed, count: listed.iter().map(|c| c.inner.count()).sum() }
    }
}

impl<'c, C: Shaped> Batch<'c, C> {
    /// Number of ciphertexts.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ciphertext at a place.
    pub fn at(&self, place: usize) -> &'c Ciphertext<C> {
        &self.listed[if self.listed.len() == self.count { place } else { 0 }]
    }

    /// Each of them; what stands for all, once.
    pub fn iter(&self) -> impl Iterator<Item = &'c Ciphertext<C>> + use<'c, C> {
        self.listed.iter()
    }

    /// The same as a list.
    pub fn to_vec(&self) -> Vec<Ciphertext<C>> {
        self.listed.to_vec()
    }

    /// Parts of `size` ciphertexts each; what stands for all stays whole.
    pub fn parts(self, size: usize) -> Vec<Self> {
        match self.listed.len() == self.count {
            true => self.listed.chunks(size.max(1)).map(Self::from).collect(),
            false => vec![self],
        }
    }
}

impl<B: Backend> Evaluator<B> {
    /// What a circuit makes of each of `count` lists of operands, which `operands` names. All lists are as long, and of
    /// one shape, place by place. Words are those of one circuit after the other; on a device, what results say of
    /// their messages holds for all that share a batch.
    ///
    /// # Errors
    /// Those of the circuit; on a device [`HeError::ScaleMismatch`] and `RlweError::Device` for operands that make no
    /// batch.
    pub fn each<'c, E>(
        &self,
        order: Order,
        count: usize,
        operands: impl Fn(usize) -> Vec<&'c CiphertextOf<B>> + Sync,
        circuit: impl Fn(&[&CiphertextOf<B>]) -> Result<CiphertextOf<B>, E> + Sync,
    ) -> Result<Vec<CiphertextOf<B>>, E>
    where
        E: From<HeError> + Send,
        B::Ciphertext: 'c,
    {
        let lists = self.each_list(order, count, operands, |list| Ok::<_, E>(vec![circuit(list)?]))?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// The same of circuits that make several ciphertexts, as many each: a list for each circuit, or in a simulation one that
    /// stands for all.
    ///
    /// # Errors
    /// As [`Evaluator::each`].
    pub fn each_list<'c, E>(
        &self,
        order: Order,
        count: usize,
        operands: impl Fn(usize) -> Vec<&'c CiphertextOf<B>> + Sync,
        circuit: impl Fn(&[&CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, E> + Sync,
    ) -> Result<Vec<Vec<CiphertextOf<B>>>, E>
    where
        E: From<HeError> + Send,
        B::Ciphertext: 'c,
    {
        let together = match count {
            0 => 1,
            _ => operands(0).first().map_or(1, |c| self.backend().width(&c.inner)),
        };
        if count > 0
            && let Some(made) = self.once(count, &operands(0), &circuit)
        {
            return Ok(vec![made?]);
        }
        if together > 1 {
            return self.in_batches(together, count, operands, circuit);
        }
        match order {
            Order::InTurn => (0..count).map(|i| circuit(&operands(i))).collect(),
            Order::SideBySide => threads::map(count, |i| circuit(&operands(i))).into_iter().collect(),
        }
    }

    /// As [`Evaluator::each`], of circuits that differ in what they add or multiply by: each gets its number. In a
    /// simulation the first stands for all.
    ///
    /// # Errors
    /// Those of the circuit.
    pub fn each_at<'c, E: From<HeError> + Send>(
        &self,
        order: Order,
        count: usize,
        operands: impl Fn(usize) -> Vec<&'c CiphertextOf<B>> + Sync,
        circuit: impl Fn(usize, &[&CiphertextOf<B>]) -> Result<CiphertextOf<B>, E> + Sync,
    ) -> Result<Vec<CiphertextOf<B>>, E>
    where
        B::Ciphertext: 'c,
    {
        let first = |list: &[&CiphertextOf<B>]| Ok(vec![circuit(0, list)?]);
        match (order, (count > 0).then(|| self.once(count, &operands(0), first)).flatten()) {
            (_, Some(made)) => made,
            (Order::InTurn, None) => (0..count).map(|i| circuit(i, &operands(i))).collect(),
            (Order::SideBySide, None) => threads::map(count, |i| circuit(i, &operands(i))).into_iter().collect(),
        }
    }

    /// A value of `count` ciphertexts from parts of it, with the place of each; `nothing` makes those that have none. In a
    /// simulation the part that is known to be worst stands for all.
    ///
    /// # Errors
    /// Those of `nothing`; `RlweError::Operands` without any part.
    pub fn assembled(
        &self,
        count: usize,
        parts: Vec<(Vec<usize>, Vec<CiphertextOf<B>>)>,
        nothing: impl Fn(&CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError>,
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let none = || RlweError::Operands { operation: "a value", left: 0, right: count };
        let first = parts.iter().flat_map(|(_, made)| made).next().ok_or_else(none)?.clone();
        if let Some(inner) = self.backend().assembled(&first.inner, count) {
            if parts.iter().map(|(places, _)| places.len()).sum::<usize>() < count {
                self.once(1, &[&first], |c| Ok::<_, HeError>(vec![nothing(c[0])?])).transpose()?;
            }
            let all = || parts.iter().flat_map(|(_, made)| made);
            let worst = |x: fn(&CiphertextOf<B>) -> f64| all().map(x).fold(0.0, f64::max);
            let state = State { bound: worst(Ciphertext::bound), noise: worst(Ciphertext::noise), ..first.state() };
            let spread = all().map(|c| c.spread).fold(first.spread, Spread::worst);
            return Ok(vec![Ciphertext::new(inner, state).with_spread(spread)]);
        }
        let mut out: Vec<Option<CiphertextOf<B>>> = vec![None; count];
        for (places, made) in parts {
            for (place, c) in places.into_iter().zip(made) {
                out[place] = Some(c);
            }
        }
        let empty = if out.iter().any(Option::is_none) { Some(nothing(&first)?) } else { None };
        out.into_iter().map(|c| c.or_else(|| empty.clone()).ok_or_else(|| none().into())).collect()
    }

    /// One circuit for all, where the backend takes them as one.
    fn once<E: From<HeError>>(
        &self,
        count: usize,
        operands: &[&CiphertextOf<B>],
        circuit: impl Fn(&[&CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, E>,
    ) -> Option<Result<Vec<CiphertextOf<B>>, E>> {
        let taken = self.backend().taken(&operands.iter().map(|c| &c.inner).collect::<Vec<_>>(), count)?;
        let list = operands.iter().zip(taken);
        let list: Vec<_> = list.map(|(c, inner)| Ciphertext::new(inner, c.state()).with_spread(c.spread)).collect();
        let made = circuit(&list.iter().collect::<Vec<_>>());
        drop(list);
        let assembled = |c: CiphertextOf<B>| {
            let all = self.backend().assembled(c.inner(), c.inner().count()).unwrap_or_else(|| c.inner().clone());
            Ciphertext::new(all, c.state()).with_spread(c.spread)
        };
        Some(made.map(|made| made.into_iter().map(assembled).collect()))
    }

    fn in_batches<'c, E: From<HeError>>(
        &self,
        together: usize,
        count: usize,
        operands: impl Fn(usize) -> Vec<&'c CiphertextOf<B>>,
        circuit: impl Fn(&[&CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, E>,
    ) -> Result<Vec<Vec<CiphertextOf<B>>>, E>
    where
        B::Ciphertext: 'c,
    {
        let mut out = Vec::with_capacity(count);
        for first in (0..count).step_by(together) {
            interrupt::check();
            let lists: Vec<_> = (first..count.min(first + together)).map(&operands).collect();
            let places = lists[0].len();
            if let Some(other) = lists.iter().find(|list| list.len() != places) {
                let operation = "a batch of circuits";
                return Err(HeError::from(RlweError::Operands { operation, left: places, right: other.len() }).into());
            }
            let batch =
                |place: usize| self.gathered(&lists.iter().filter_map(|l| l.get(place).copied()).collect::<Vec<_>>());
            let batches = (0..places).map(batch).collect::<Result<Vec<_>, HeError>>()?;
            let begun = out.len();
            out.resize_with(begun + lists.len(), Vec::new);
            for made in circuit(&batches.iter().collect::<Vec<_>>())? {
                let parts = self.backend().split(made.inner(), lists.len()).map_err(HeError::from)?;
                for (list, inner) in out[begun..].iter_mut().zip(parts) {
                    list.push(Ciphertext::new(inner, made.state()));
                }
            }
        }
        Ok(out)
    }

    /// Ciphertexts of one scale as a batch, of which is said what holds for each.
    fn gathered(&self, list: &[&CiphertextOf<B>]) -> Result<CiphertextOf<B>, HeError> {
        let inners: Vec<_> = list.iter().map(|c| &c.inner).collect();
        let inner = self.backend().join(&inners)?;
        // `join` refuses an empty list.
        let Some(mut state) = list.first().map(|c| c.state()) else { unreachable!("a batch of no ciphertexts") };
        for c in list {
            // All have the first one's scale then: what differs is an error.
            let noise = c.noise + Self::scale_error("a batch", state, c.state())?;
            state = State { bound: state.bound.max(c.bound), noise: state.noise.max(noise), ..state };
        }
        Ok(Ciphertext::new(inner, state).with_spread(list[0].spread))
    }
}
