//! The keys of circuit bootstrapping, and the bootstrap.

use super::super::batch::in_groups;
use super::super::keys::check_owner;
use super::super::leveled::{LeveledLwe, Selector, SelectorNoise};
use super::super::{ClientKey, EncryptedBit, GgswCiphertext, GlweCiphertext, LweCiphertext, ServerKey, TfheError};
use super::classical::PrivateSwitchKey;
use super::scheme_switch::{SchemeSwitchKey, assemble};
use super::trace::TraceKey;
use super::{CircuitParams, variance};
use std::fmt;
use sudare_ring::buffer::Buffer;
use sudare_ring::threads;

/// What one input without an output would be; there is always one.
fn nothing() -> TfheError {
    TfheError::Shape { what: "bootstraps", expected: 1, found: 0 }
}

/// What a server needs for circuit bootstraps, and nothing secret.
pub struct CircuitKey {
    pub(super) params: CircuitParams,
    pub(super) server: ServerKey,
    pub(super) trace: TraceKey,
    pub(super) scheme: SchemeSwitchKey,
}

impl CircuitKey {
    /// The keys of a client, made in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`TfheError::WrongParameters`] for a client of another set; [`TfheError::Ring`].
    pub fn generate(params: &CircuitParams, client: &ClientKey) -> Result<Self, TfheError> {
        Self::with_server(params, client, client.server_key()?)
    }

    /// The same beside a server key that exists.
    ///
    /// # Errors
    /// [`TfheError::WrongParameters`], [`TfheError::WrongKey`] for a client or server key of another set.
    pub fn with_server(params: &CircuitParams, client: &ClientKey, server: ServerKey) -> Result<Self, TfheError> {
        let expected = (params.tfhe().hash(), client.id());
        check_owner("the client key", expected, (client.params().hash(), client.id()))?;
        check_owner("the server key", expected, (server.params().hash(), server.id()))?;
        let trace = TraceKey::generate(client.glwe(), params.trace_gadget(), &client.object_seeds()?)?;
        let scheme = SchemeSwitchKey::generate(client.glwe(), params.scheme_gadget(), &client.object_seeds()?)?;
        Ok(Self { params: params.clone(), server, trace, scheme })
    }

    /// Its parameters.
    pub fn params(&self) -> &CircuitParams {
        &self.params
    }

    /// The key of gates, with the blind rotation.
    pub fn server(&self) -> &ServerKey {
        &self.server
    }

    /// The key of the trace.
    pub fn trace(&self) -> &TraceKey {
        &self.trace
    }

    /// The key of the scheme switch.
    pub fn scheme(&self) -> &SchemeSwitchKey {
        &self.scheme
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.server.byte_len() + self.trace.byte_len() + self.scheme.byte_len()
    }

    /// A selector of the bit.
    ///
    /// # Errors
    /// [`TfheError::WrongParameters`], [`TfheError::WrongKey`].
    pub fn bootstrap(&self, bit: &EncryptedBit) -> Result<Selector, TfheError> {
        let (hash, id) = bit.owner();
        self.server.check("the bit", hash, id)?;
        self.selectors(&[bit.ciphertext()])?.pop().ok_or_else(nothing)
    }

    /// A selector of a leveled one-bit message, say a word that a lookup found.
    ///
    /// # Errors
    /// [`TfheError::WrongParameters`], [`TfheError::WrongKey`]; [`TfheError::FailureProbability`] before any
    /// work if its noise is too large.
    pub fn bootstrap_leveled(&self, bit: &LeveledLwe) -> Result<Selector, TfheError> {
        self.selectors(&[&self.leveled_input(bit)?])?.pop().ok_or_else(nothing)
    }

    /// Many bits: groups share the reading of the key, and run in parallel inside a thread pool.
    ///
    /// # Errors
    /// As for [`CircuitKey::bootstrap`].
    pub fn bootstraps(&self, bits: &[EncryptedBit]) -> Result<Vec<Selector>, TfheError> {
        for bit in bits {
            let (hash, id) = bit.owner();
            self.server.check("the bit", hash, id)?;
        }
        self.selectors(&bits.iter().map(EncryptedBit::ciphertext).collect::<Vec<_>>())
    }

    /// Many leveled bits, likewise.
    ///
    /// # Errors
    /// As for [`CircuitKey::bootstrap_leveled`].
    pub fn bootstraps_leveled(&self, bits: &[LeveledLwe]) -> Result<Vec<Selector>, TfheError> {
        let inputs = bits.iter().map(|bit| self.leveled_input(bit)).collect::<Result<Vec<_>, _>>()?;
        self.selectors(&inputs.iter().collect::<Vec<_>>())
    }

    /// The gate bit of a leveled one-bit message: one bootstrap.
    ///
    /// # Errors
    /// As for [`CircuitKey::bootstrap_leveled`].
    pub fn to_bit(&self, bit: &LeveledLwe) -> Result<EncryptedBit, TfheError> {
        let c = self.leveled_input(bit)?;
        let context = self.params.context();
        let eighth = (context.q() + 4) / 8;
        let mut acc = GlweCiphertext::trivial(context, &vec![eighth; context.degree()])?;
        self.server.rotate_by_phase(&mut acc, &c, 0)?;
        Ok(EncryptedBit::from_parts(acc.extract(0)?, self.params.tfhe().hash(), self.server.id()))
    }

    /// The classical bootstrap of a bit, by private functional key switches.
    ///
    /// # Errors
    /// As for [`CircuitKey::bootstrap`], and for a key of another ring.
    pub fn bootstrap_classical(&self, bit: &EncryptedBit, private: &PrivateSwitchKey) -> Result<Selector, TfheError> {
        let (hash, id) = bit.owner();
        self.server.check("the bit", hash, id)?;
        let acc = self.rotate(&[bit.ciphertext()])?.pop().ok_or_else(nothing)?;
        let levels = self.params.output_gadget().levels as usize;
        let inputs: Vec<LweCiphertext> = (0..levels)
            .map(|l| {
                let mut c = acc.extract(l)?;
                c.add_plain(self.half_weight(l));
                Ok(c)
            })
            .collect::<Result<_, TfheError>>()?;
        let context = self.params.context();
        let ggsw = assemble(context, &private.rows(&inputs)?, self.params.output_gadget())?;
        let rotation = self.params.rotation_variance();
        let noise = variance::classical(context, self.params.output_gadget(), private.gadget(), rotation);
        Ok(self.wrap(ggsw, noise))
    }

    /// From {0, 1/2} to ∓1/4, checked.
    fn leveled_input(&self, bit: &LeveledLwe) -> Result<LweCiphertext, TfheError> {
        let expected = (self.params.leveled().hash(), self.server.id());
        let (hash, key) = bit.owner();
        check_owner("the bit", expected, (hash, key.unwrap_or(expected.1)))?;
        self.params.check_input(0.25, bit.variance())?;
        let q = self.params.context().modulus();
        let mut c = bit.ciphertext().clone();
        c.add_plain(q.value() - (q.value() + 2) / 4);
        Ok(c)
    }

    /// g_l/2 of the selectors that come out.
    fn half_weight(&self, l: usize) -> u64 {
        1 << (self.params.output_gadget().log_weight(self.params.context().bits(), l as u32) - 1)
    }

    /// Blind rotations: coefficient l of a result is ±g_l/2 by the sign of the phase.
    fn rotate(&self, cs: &[&LweCiphertext]) -> Result<Vec<GlweCiphertext>, TfheError> {
        let (context, log) = (self.params.context(), self.params.log_tables());
        let levels = self.params.output_gadget().levels as usize;
        let halves: Vec<u64> = (0..1usize << log).map(|l| if l < levels { self.half_weight(l) } else { 0 }).collect();
        let test: Vec<u64> = halves.iter().copied().cycle().take(context.degree()).collect();
        let mut accs = vec![GlweCiphertext::trivial(context, &test)?; cs.len()];
        self.server.rotate_by_phases(&mut accs, cs, log)?;
        Ok(accs)
    }

    fn selectors(&self, cs: &[&LweCiphertext]) -> Result<Vec<Selector>, TfheError> {
        in_groups(cs.len(), |range| self.rotate(&cs[range])?.iter().map(|acc| self.switch(acc)).collect())
    }

    /// Traces and scheme switches, level by level.
    fn switch(&self, acc: &GlweCiphertext) -> Result<Selector, TfheError> {
        let (context, output) = (self.params.context(), self.params.output_gadget());
        let two_n = 2 * context.degree();
        let rows = threads::map(output.levels as usize, |l| {
            let mut c = if l == 0 { acc.clone() } else { acc.rotated(two_n - l) };
            let body = &mut c.body_mut()[0];
            *body = context.modulus().add(*body, self.half_weight(l));
            self.trace.constant_half_evaluated(&mut c)?;
            Ok(self.scheme.rows(&c))
        });
        let rows = rows.into_iter().collect::<Result<Vec<Buffer>, TfheError>>()?;
        Ok(self.wrap(self.scheme.assemble(&rows, output)?, self.params.selector_noise()))
    }

    fn wrap(&self, ggsw: GgswCiphertext, noise: SelectorNoise) -> Selector {
        Selector::from_parts(ggsw, noise, (self.params.leveled().hash(), self.server.id()))
    }
}

impl fmt::Debug for CircuitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CircuitKey({}, {} bytes)", self.server.id(), self.byte_len())
    }
}
