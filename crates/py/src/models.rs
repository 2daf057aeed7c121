//! Trained models on encrypted inputs.

use crate::error::Result;
use crate::files::{read_key, write_key};
use crate::plan::cache_folder;
use crate::work::{Workers, bytes, long, with_progress};
use numpy::ndarray::Array2;
use numpy::{PyArray2, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_models::{self as models, Dense, Function, Goal, Keys, Label, ModelError, Network};
use sudare_ring::Threads;
use sudare_rlwe::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_rlwe::work::Work;
use sudare_session::machine;

/// A dense layer as Python gives it: its name, inputs × outputs weights, what is added, and the function as JSON.
type Layer<'py> = (String, PyReadonlyArray2<'py, f64>, Vec<f64>, String);

/// What is wanted: error, label, agreement, approximation, degree, margin, batch, the bootstrapping set by its name, and log2 of the degree of
/// a ring without security.
type Wanted = (f64, String, f64, Option<f64>, Option<usize>, f64, usize, Option<String>, Option<u32>);

/// A model at this machine's prices.
fn compiled(network: &Network, examples: &[f64], wanted: Wanted) -> Result<Model> {
    let cost = machine::stored(cache_folder().as_deref());
    let prices = |work: &Work, log_n: u32| cost.price(work, log_n, 1);
    Ok(Model(models::Model::compile(network, examples, &self::wanted(wanted)?, &prices)?))
}

fn wanted((error, label, agreement, approximation, degree, margin, batch, set, insecure): Wanted) -> Result<Goal> {
    let bootstrap = set.map(|set| set.parse::<BootstrapSet>()).transpose()?;
    let label = match label.as_str() {
        "argmax" => Label::Argmax,
        "sign" => Label::Sign,
        _ => Label::Numbers,
    };
    Ok(Goal { error, label, agreement, approximation, degree, margin, batch, bootstrap, insecure })
}

fn rows(values: &PyReadonlyArray2<'_, f64>) -> Vec<f64> {
    values.as_array().iter().copied().collect()
}

/// Answers as a table of as many columns.
fn table<'py>(py: Python<'py>, values: Vec<f64>, columns: usize) -> Result<Bound<'py, PyArray2<f64>>> {
    let shape = (values.len() / columns.max(1), columns);
    match Array2::from_shape_vec(shape, values) {
        Ok(array) => Ok(array.to_pyarray(py)),
        Err(_) => Err(ModelError::Mixed { what: "an answer" }.into()),
    }
}

/// A compiled model, with its weights.
#[pyclass(frozen, module = "sudare._core")]
pub struct Model(models::Model);

#[pymethods]
impl Model {
    /// Of an ONNX file's bytes.
    #[staticmethod]
    fn from_onnx(py: Python<'_>, file: &[u8], examples: PyReadonlyArray2<'_, f64>, goal: Wanted) -> Result<Self> {
        let examples = rows(&examples);
        long(py, || compiled(&Network::from_onnx(file)?, &examples, goal))
    }

    /// Of dense layers.
    #[staticmethod]
    fn from_layers(
        py: Python<'_>,
        layers: Vec<Layer<'_>>,
        examples: PyReadonlyArray2<'_, f64>,
        goal: Wanted,
    ) -> Result<Self> {
        let inputs = examples.as_array().ncols();
        let examples = rows(&examples);
        let dense = |(name, weights, bias, function): Layer<'_>| {
            let what = |e: serde_json::Error| ModelError::Goal { what: format!("{function}: {e}") };
            let function: Function = serde_json::from_str(&function).map_err(what)?;
            Ok(Dense { name, weights: rows(&weights), bias, function })
        };
        let layers = layers.into_iter().map(dense).collect::<Result<Vec<_>>>()?;
        long(py, || compiled(&Network::dense(inputs, layers)?, &examples, goal))
    }

    /// Outputs of an ONNX file's network, and numbers of an example.
    #[staticmethod]
    fn sizes(py: Python<'_>, file: &[u8]) -> Result<(usize, usize)> {
        long(py, || {
            let network = Network::from_onnx(file)?;
            Ok((network.inputs(), network.outputs()))
        })
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(models::Model::from_bytes(data)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    #[getter]
    fn plan(&self) -> ModelPlan {
        ModelPlan(self.0.plan().clone())
    }

    /// Answers in the clear: of the given model, or of its polynomials.
    fn clear<'py>(
        &self,
        py: Python<'py>,
        examples: PyReadonlyArray2<'_, f64>,
        polynomial: bool,
    ) -> Result<Bound<'py, PyArray2<f64>>> {
        let (columns, examples) = (examples.as_array().ncols(), rows(&examples));
        let one = |x: &[f64]| if polynomial { self.0.polynomial(x) } else { self.0.clear(x) };
        let found = long(py, || {
            let all = examples.chunks(columns.max(1)).map(one).collect::<std::result::Result<Vec<_>, _>>()?;
            Ok(all.concat())
        })?;
        table(py, found, self.0.plan().outputs())
    }
}

/// What client and server share.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelPlan(models::Plan);

#[pymethods]
impl ModelPlan {
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> Result<Self> {
        long(py, || Ok(Self(models::Plan::from_json(text)?)))
    }

    fn to_json(&self) -> &str {
        self.0.to_json()
    }

    /// What it takes and promises, in lines.
    fn explain(&self) -> String {
        self.0.to_string()
    }

    /// Its name, in hexadecimal digits.
    #[getter]
    fn hash(&self) -> String {
        self.0.hash().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Numbers of an example and of an answer, and examples of a ciphertext.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize) {
        (self.0.inputs(), self.0.outputs(), self.0.figures().images)
    }

    /// Bytes of the keys in memory.
    #[getter]
    fn key_bytes(&self) -> u64 {
        self.0.key_bytes()
    }

    /// Bytes of memory that a server takes.
    #[getter]
    fn memory(&self) -> u64 {
        self.0.memory(self.0.stores())
    }
}

/// Owns the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelClient {
    inner: models::Client,
    threads: Threads,
}

impl ModelClient {
    fn of(inner: models::Client, threads: &Workers) -> Self {
        Self { inner, threads: Threads::new(threads.0) }
    }
}

#[pymethods]
impl ModelClient {
    #[new]
    fn new(py: Python<'_>, plan: &ModelPlan, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self::of(models::Client::new(&plan.0)?, &threads)))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, plan: &ModelPlan, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(plan.0.params(), secret)?;
            Ok(Self::of(models::Client::with_secret(&plan.0, secret)?, &threads))
        })
    }

    /// A client with a secret key in a file.
    #[staticmethod]
    fn load(py: Python<'_>, plan: &ModelPlan, path: PathBuf, threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(plan.0.params(), &read_key(&path)?)?;
            Ok(Self::of(models::Client::with_secret(&plan.0, secret)?, &threads))
        })
    }

    /// Writes the secret key to a file.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<()> {
        let secret = self.inner.secret();
        long(py, || write_key(&path, &[&secret_key_to_bytes(secret)?], secret.id(), overwrite))
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(secret_key_to_bytes(self.inner.secret())?))
    }

    /// The secret key's public name.
    #[getter]
    fn key_id(&self) -> String {
        self.inner.secret().id().to_string()
    }

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, model: &Model, threads: Workers, stored: Option<bool>) -> Result<ModelServer> {
        if model.0.plan().hash() != self.inner.plan().hash() {
            return Err(ModelError::Mixed { what: "the model" }.into());
        }
        long(py, || {
            let keys = self.threads.run(|| self.inner.eval_keys())?;
            ModelServer::of(&model.0, keys, &threads, stored)
        })
    }

    /// The bytes of new evaluation keys.
    fn keys_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.threads.run(|| self.inner.eval_keys())?.to_bytes()?))
    }

    /// Encrypts examples.
    fn encrypt(&self, py: Python<'_>, examples: PyReadonlyArray2<'_, f64>) -> Result<ModelRequest> {
        let (columns, examples) = (examples.as_array().ncols(), rows(&examples));
        let expected = self.inner.plan().inputs();
        if columns != expected {
            return Err(ModelError::Shape { what: "an example", found: columns, expected }.into());
        }
        long(py, || Ok(ModelRequest(self.threads.run(|| self.inner.encrypt(&examples))?)))
    }

    /// Decrypts answers.
    fn decrypt<'py>(&self, py: Python<'py>, answer: &ModelAnswer) -> Result<Bound<'py, PyArray2<f64>>> {
        let found = long(py, || Ok(self.threads.run(|| self.inner.decrypt(&answer.0))?))?;
        table(py, found, self.inner.plan().outputs())
    }
}

/// Computes with evaluation keys and a model's weights.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelServer {
    inner: models::Server,
    keys: Keys,
    threads: Threads,
}

impl ModelServer {
    fn of(model: &models::Model, keys: Keys, threads: &Workers, stored: Option<bool>) -> Result<Self> {
        let stored = stored.unwrap_or_else(|| model.plan().stores());
        let threads = Threads::new(threads.0);
        let inner = threads.run(|| models::Server::new(model, keys.clone(), stored))?;
        Ok(Self { inner, keys, threads })
    }
}

#[pymethods]
impl ModelServer {
    /// A server of keys' bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, model: &Model, data: &[u8], threads: Workers, stored: Option<bool>) -> Result<Self> {
        long(py, || {
            let keys = Keys::from_bytes(model.0.plan(), data)?;
            Self::of(&model.0, keys, &threads, stored)
        })
    }

    /// The keys' bytes.
    fn keys_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.keys.to_bytes()?))
    }

    /// The name of the secret key.
    #[getter]
    fn key_id(&self) -> String {
        self.keys.id().to_string()
    }

    /// Threads that work.
    #[getter]
    fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Bytes of the keys in memory.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.keys.bytes()
    }

    /// The model's answers.
    fn run(&self, py: Python<'_>, request: &ModelRequest, progress: Option<Py<PyAny>>) -> Result<ModelAnswer> {
        with_progress(py, progress, |tell| {
            let tell = |done, all| tell(done, all);
            Ok(ModelAnswer(self.threads.run(|| self.inner.run(&request.0, &tell))?))
        })
    }
}

/// Encrypted examples.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelRequest(models::Request);

#[pymethods]
impl ModelRequest {
    #[staticmethod]
    fn from_bytes(py: Python<'_>, plan: &ModelPlan, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(models::Request::from_bytes(&plan.0, data)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// Examples in it.
    #[getter]
    fn count(&self) -> usize {
        self.0.examples()
    }
}

/// Encrypted answers.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelAnswer(models::Answer);

#[pymethods]
impl ModelAnswer {
    #[staticmethod]
    fn from_bytes(py: Python<'_>, plan: &ModelPlan, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(models::Answer::from_bytes(&plan.0, data)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// Answers in it.
    #[getter]
    fn count(&self) -> usize {
        self.0.examples()
    }
}
