//! Products and expressions on a device: the methods as they are, on batches of ciphertexts that stay there.

use crate::encrypted::{Encrypted, Values, header};
use crate::server::{Server, with_error};
use std::borrow::Cow;
use std::sync::Arc;
use sudare_cuda::Device;
use sudare_gpu::Ciphertexts;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::Bootstrapper;
use sudare_he::ckks::{Ciphertext, Evaluator, Params};
use sudare_methods::MatrixError;
use sudare_methods::tables::Tables;
use sudare_plan::{Plan, ProgramOn};
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::wire::Bundle;
use sudare_rlwe::{Backend, Counters, KeyId, RlweError};

/// A ciphertext on a device: one item of a batch, or some that are computed with alike.
pub type DeviceCiphertext = Ciphertext<Ciphertexts>;
/// What computes there.
pub type DeviceEvaluator = Evaluator<sudare_gpu::Evaluator>;

/// Copies ciphertexts to a device, those of one level and as many parts together.
///
/// # Errors
/// [`MatrixError::He`]: `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Device`.
pub fn upload(evaluator: &DeviceEvaluator, ciphertexts: &[Ciphertext]) -> Result<Vec<DeviceCiphertext>, MatrixError> {
    let mut out = Vec::with_capacity(ciphertexts.len());
    for alike in ciphertexts.chunk_by(|a, b| (a.level(), a.parts().len()) == (b.level(), b.parts().len())) {
        let batch = evaluator.backend().upload(&alike.iter().map(Ciphertext::inner).collect::<Vec<_>>());
        let batch = batch.map_err(RlweError::from).map_err(HeError::from)?;
        let items = evaluator.backend().split(&batch, alike.len()).map_err(HeError::from)?;
        for (item, c) in items.into_iter().zip(alike) {
            out.push(Ciphertext::from_parts(item, c.state())?);
        }
    }
    Ok(out)
}

/// Copies ciphertexts back, and waits for what is still being computed.
///
/// # Errors
/// [`MatrixError::He`]: `RlweError::Device` for what went wrong on the device since the last wait.
pub fn download(ciphertexts: &[DeviceCiphertext]) -> Result<Vec<Ciphertext>, MatrixError> {
    let mut out = Vec::with_capacity(ciphertexts.len());
    for c in ciphertexts {
        let items = c.inner().to_host().map_err(RlweError::from).map_err(HeError::from)?;
        for item in items {
            out.push(Ciphertext::from_parts(item, c.state())?);
        }
    }
    Ok(out)
}

/// An evaluator on a device, whose keys take up to `budget` bytes there.
///
/// # Errors
/// [`MatrixError::He`]: `RlweError::WrongParameters`.
pub fn evaluator(
    device: &Device,
    params: &Params,
    keys: Arc<dyn KeySource>,
    budget: usize,
) -> Result<DeviceEvaluator, MatrixError> {
    Ok(Evaluator::with_backend(params, sudare_gpu::Evaluator::new(device, keys, budget))?)
}

/// Ciphertexts of a value on a device, and what they are on the processor once they were asked for.
pub(crate) struct OnDevice {
    params: sudare_rlwe::Params,
    key: KeyId,
    header: Vec<u8>,
    ciphertexts: Vec<DeviceCiphertext>,
    on_host: Tables<Arc<Bundle<Ciphertext>>>,
}

impl OnDevice {
    /// Its ciphertexts on the processor.
    pub fn on_host(&self) -> Result<&Arc<Bundle<Ciphertext>>, MatrixError> {
        self.on_host.get(|| {
            let ciphertexts = download(&self.ciphertexts)?;
            Ok(Arc::new(Bundle::new(&self.params, self.key, self.header.clone(), ciphertexts)?))
        })
    }

    pub fn count(&self) -> usize {
        self.ciphertexts.len()
    }

    pub fn level(&self) -> Option<usize> {
        self.ciphertexts.iter().map(Ciphertext::level).min()
    }

    pub fn bytes(&self) -> usize {
        self.ciphertexts.iter().map(|c| c.inner().bytes()).sum()
    }

    fn device(&self) -> Option<&Device> {
        self.ciphertexts.first().map(|c| c.inner().parts().device())
    }

    pub fn device_name(&self) -> String {
        self.device().map_or(String::new(), |device| device.info().name.clone())
    }
}

/// What a server computes with on a device.
pub(crate) struct OfDevice {
    evaluator: DeviceEvaluator,
    program: ProgramOn<sudare_gpu::Evaluator>,
    bootstrapper: Option<Bootstrapper<sudare_gpu::Evaluator>>,
}

impl OfDevice {
    /// A value of a plan of real matrices.
    fn made(plan: &Plan, (node, key): (usize, KeyId), ciphertexts: Vec<DeviceCiphertext>) -> Encrypted {
        let (params, header) = (plan.params().clone(), header(plan, node));
        let value = OnDevice { params, key, header, ciphertexts, on_host: Tables::new() };
        Encrypted::of(plan, node, key, Values::Device(Arc::new(value)))
    }

    /// Ciphertexts of a value on this device: those that are there, or copies.
    fn ciphertexts<'v>(&self, value: &'v Encrypted) -> Result<Cow<'v, [DeviceCiphertext]>, MatrixError> {
        match &value.values {
            Values::Device(v) if v.device().is_some_and(|d| d.is(self.evaluator.backend().device())) => {
                Ok(Cow::Borrowed(&v.ciphertexts))
            }
            _ => Ok(Cow::Owned(upload(&self.evaluator, value.ciphertexts()?)?)),
        }
    }

    /// The same value on this device.
    pub fn bring(&self, plan: &Plan, key: KeyId, value: &Encrypted) -> Result<Encrypted, MatrixError> {
        Ok(Self::made(plan, (value.node(), key), self.ciphertexts(value)?.into_owned()))
    }

    /// A node's value from its operands'.
    pub fn value(
        &self,
        plan: &Plan,
        (node, key): (usize, KeyId),
        operands: &[&Encrypted],
        error: Option<f64>,
    ) -> Result<Encrypted, MatrixError> {
        let values = operands.iter().map(|v| self.ciphertexts(v)).collect::<Result<Vec<_>, _>>()?;
        let values: Vec<&[DeviceCiphertext]> = values.iter().map(|v| &**v).collect();
        let (goal, e) = (plan.goal(), &self.evaluator);
        let out = self.program.evaluate(goal, e, node, &values)?;
        let out = match &self.bootstrapper {
            Some(b) => self.program.refreshed(goal, (e, b), node, out)?,
            None => out,
        };
        Ok(Self::made(plan, (node, key), with_error(out, error)))
    }

    pub fn counters(&self) -> Counters {
        let own = self.evaluator.counters();
        match &self.bootstrapper {
            Some(bootstrapper) => own + bootstrapper.counters(),
            None => own,
        }
    }
}

impl Server {
    /// The same server, computing on a device. Operands are copied there, or were by [`Server::bring`]; results stay
    /// there until they are decrypted, written or wanted here. Keys take up to half of what is free of the device's
    /// memory, and are copied again past that. Stored products and parts of products stay with the processor.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for what [`Program::require_backends`](sudare_plan::Program::require_backends) refuses, and
    /// for a context.
    pub fn to_device(&self, device: &Device) -> Result<Self, MatrixError> {
        let plan = self.planned("computing on a device")?;
        plan.program().require_backends()?;
        let (engine, keys) = (plan.real()?, self.bootstrap_keys());
        // A bootstrapper has two evaluators of its own.
        let budget = device.free() / if keys.is_some() { 6 } else { 2 };
        let evaluator = evaluator(device, engine.params(), self.keys(), budget)?;
        let here =
            OfDevice {
                program: self.inner.threads.run(|| plan.program().on(plan.goal(), &evaluator))?,
                bootstrapper: match keys {
                    Some(keys) => Some(self.inner.threads.run(|| {
                        Bootstrapper::on(keys.clone(), |keys| sudare_gpu::Evaluator::new(device, keys, budget))
                    })?),
                    None => None,
                },
                evaluator,
            };
        Ok(Self { inner: self.inner.clone(), device: Some(Arc::new(here)) })
    }

    /// The device that it computes on, if it is one.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref().map(|device| device.evaluator.backend().device())
    }
}

impl Encrypted {
    /// The device that it is on, if it is on one.
    pub fn device(&self) -> Option<&Device> {
        match &self.values {
            Values::Device(value) => value.device(),
            _ => None,
        }
    }
}
