//! Trained models on encrypted inputs: networks, and forests.

use crate::error::Result;
use crate::files::{read_key, write_key};
use crate::plan::cache_folder;
use crate::work::{Workers, bytes, long, with_progress};
use numpy::ndarray::Array2;
use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_models::forest::{self, Forest, Node};
use sudare_models::{
    self as models, Dense, Function, Goal, Keys, Label, ModelError, Network, NetworkOrForest, Shared, either,
};
use sudare_ring::Threads;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_rlwe::work::Work;
use sudare_session::machine;

/// A dense layer as Python gives it: its name, inputs × outputs weights, what is added, and the function as JSON.
type Layer<'py> = (String, PyReadonlyArray2<'py, f64>, Vec<f64>, String);

/// What is wanted: error, label, agreement, approximation, degree, margin, batch, the bootstrapping set by its name, and log2 of the degree of
/// a ring without security.
type Wanted = (f64, String, f64, Option<f64>, Option<usize>, f64, usize, Option<String>, Option<u32>);

/// A tree as Python gives it: of each node feature, threshold, left and right, both negative at a leaf, and its values.
type Tree<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray2<'py, f64>,
);

/// A network at this machine's prices.
fn compiled(network: &Network, examples: &[f64], wanted: Wanted) -> Result<Model> {
    let cost = machine::stored(cache_folder().as_deref());
    let prices = |work: &Work, log_n: u32| cost.price(work, log_n, 1);
    Ok(Model(NetworkOrForest::Network(models::Model::compile(network, examples, &self::wanted(wanted)?, &prices)?)))
}

/// A tree's nodes.
fn nodes((feature, threshold, left, right, values): &Tree<'_>) -> Vec<Node> {
    let rows = values.as_array();
    let all = feature.as_array().into_iter().zip(threshold.as_array()).zip(left.as_array()).zip(right.as_array());
    // What is negative and no leaf fits no tree, and is refused.
    let number = |x: &i64| usize::try_from(*x).unwrap_or(usize::MAX);
    all.zip(rows.rows())
        .map(|((((feature, threshold), left), right), row)| match *left < 0 {
            true => Node::Leaf(row.iter().copied().collect()),
            false => Node::Split {
                feature: number(feature),
                threshold: *threshold,
                left: number(left),
                right: number(right),
            },
        })
        .collect()
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
pub struct Model(NetworkOrForest<models::Model, forest::Model>);

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
            let what =
                |e: serde_json::Error| ModelError::Goal { what: format!("the function {function} is not known: {e}") };
            let function: Function = serde_json::from_str(&function).map_err(what)?;
            Ok(Dense { name, weights: rows(&weights), bias, function })
        };
        let layers = layers.into_iter().map(dense).collect::<Result<Vec<_>>>()?;
        long(py, || compiled(&Network::dense(inputs, layers)?, &examples, goal))
    }

    /// Of trees for rows of so many features, which are rounded to single precision or not; what scores begin with.
    #[staticmethod]
    fn from_trees(
        py: Python<'_>,
        single: bool,
        base: Vec<f64>,
        trees: Vec<Tree<'_>>,
        examples: PyReadonlyArray2<'_, f64>,
        goal: Wanted,
    ) -> Result<Self> {
        let (inputs, examples) = (examples.as_array().ncols(), rows(&examples));
        let trees = trees.iter().map(nodes).collect();
        long(py, || {
            let forest = Forest::new(inputs, single, base, trees)?;
            let cost = machine::stored(cache_folder().as_deref());
            let prices = |work: &Work, log_n: u32| cost.price(work, log_n, 1);
            Ok(Self(NetworkOrForest::Forest(forest::Model::compile(&forest, &examples, &wanted(goal)?, &prices)?)))
        })
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
        long(py, || Ok(Self(NetworkOrForest::<models::Model, forest::Model>::from_bytes(data)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(either!(&self.0, model => model.to_bytes())?))
    }

    #[getter]
    fn plan(&self) -> ModelPlan {
        ModelPlan(self.0.plan())
    }

    /// Answers in the clear: of the given model, or of its polynomials. A forest has none.
    fn clear<'py>(
        &self,
        py: Python<'py>,
        examples: PyReadonlyArray2<'_, f64>,
        polynomial: bool,
    ) -> Result<Bound<'py, PyArray2<f64>>> {
        let (columns, examples) = (examples.as_array().ncols(), rows(&examples));
        let one = |x: &[f64]| match &self.0 {
            NetworkOrForest::Network(model) if polynomial => model.polynomial(x),
            of => either!(of, model => model.clear(x)),
        };
        let found = long(py, || {
            let all = examples.chunks(columns.max(1)).map(one).collect::<std::result::Result<Vec<_>, _>>()?;
            Ok(all.concat())
        })?;
        table(py, found, either!(&self.0, model => model.plan().outputs()))
    }
}

/// What client and server share.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelPlan(NetworkOrForest<models::Plan, forest::Plan>);

#[pymethods]
impl ModelPlan {
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> Result<Self> {
        long(py, || Ok(Self(NetworkOrForest::<models::Plan, forest::Plan>::from_json(text)?)))
    }

    fn to_json(&self) -> &str {
        either!(&self.0, plan => plan.to_json())
    }

    /// What it takes and promises, in lines.
    fn explain(&self) -> String {
        either!(&self.0, plan => plan.to_string())
    }

    /// Its name, in hexadecimal digits.
    #[getter]
    fn hash(&self) -> String {
        either!(&self.0, plan => plan.hash()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Numbers of an example and of an answer, and examples of a ciphertext.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize) {
        match &self.0 {
            NetworkOrForest::Network(plan) => (plan.inputs(), plan.outputs(), plan.figures().images),
            NetworkOrForest::Forest(plan) => (plan.inputs(), plan.outputs(), plan.figures().rows),
        }
    }

    /// Bytes of the keys in memory.
    #[getter]
    fn key_bytes(&self) -> u64 {
        either!(&self.0, plan => plan.key_bytes())
    }

    /// Bytes of memory that a server takes.
    #[getter]
    fn memory(&self) -> u64 {
        either!(&self.0, plan => plan.memory(plan.stores()))
    }

    /// Labels of answers; none of numbers.
    fn labels(&self, answers: PyReadonlyArray2<'_, f64>) -> Vec<Option<usize>> {
        let answers = rows(&answers);
        match &self.0 {
            NetworkOrForest::Network(plan) => {
                answers.chunks(plan.outputs()).map(|a| plan.figures().label.of(a)).collect()
            }
            NetworkOrForest::Forest(plan) => plan.labels(&answers),
        }
    }
}

/// Owns the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelClient {
    inner: NetworkOrForest<models::Client, forest::Client>,
    threads: Threads,
}

impl ModelClient {
    /// With a secret key of before, or a new one.
    fn of(plan: &ModelPlan, secret: Option<SecretKey>, threads: &Workers) -> Result<Self> {
        let inner = match (&plan.0, secret) {
            (NetworkOrForest::Network(plan), None) => NetworkOrForest::Network(models::Client::new(plan)?),
            (NetworkOrForest::Network(plan), Some(secret)) => {
                NetworkOrForest::Network(models::Client::with_secret(plan, secret)?)
            }
            (NetworkOrForest::Forest(plan), None) => NetworkOrForest::Forest(forest::Client::new(plan)?),
            (NetworkOrForest::Forest(plan), Some(secret)) => {
                NetworkOrForest::Forest(forest::Client::with_secret(plan, secret)?)
            }
        };
        Ok(Self { inner, threads: Threads::new(threads.0) })
    }

    fn secret(&self) -> &SecretKey {
        either!(&self.inner, client => client.secret())
    }
}

#[pymethods]
impl ModelClient {
    #[new]
    fn new(py: Python<'_>, plan: &ModelPlan, threads: Workers) -> Result<Self> {
        long(py, || Self::of(plan, None, &threads))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, plan: &ModelPlan, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(either!(&plan.0, plan => plan.params()), secret)?;
            Self::of(plan, Some(secret), &threads)
        })
    }

    /// A client with a secret key in a file.
    #[staticmethod]
    fn load(py: Python<'_>, plan: &ModelPlan, path: PathBuf, threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(either!(&plan.0, plan => plan.params()), &read_key(&path)?)?;
            Self::of(plan, Some(secret), &threads)
        })
    }

    /// Writes the secret key to a file.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<()> {
        let secret = self.secret();
        long(py, || write_key(&path, &[&secret_key_to_bytes(secret)?], secret.id(), overwrite))
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(secret_key_to_bytes(self.secret())?))
    }

    /// The secret key's public name.
    #[getter]
    fn key_id(&self) -> String {
        self.secret().id().to_string()
    }

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, model: &Model, threads: Workers, stored: Option<bool>) -> Result<ModelServer> {
        let own = either!(&self.inner, client => client.plan().hash());
        if either!(&model.0, model => model.plan().hash()) != own {
            return Err(ModelError::Mixed { what: "the model" }.into());
        }
        long(py, || {
            let keys = self.threads.run(|| either!(&self.inner, client => client.eval_keys()))?;
            ModelServer::of(model, keys, &threads, stored)
        })
    }

    /// The bytes of new evaluation keys.
    fn keys_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.threads.run(|| either!(&self.inner, client => client.eval_keys()))?.to_bytes()?))
    }

    /// Encrypts examples.
    fn encrypt(&self, py: Python<'_>, examples: PyReadonlyArray2<'_, f64>) -> Result<ModelRequest> {
        let (columns, examples) = (examples.as_array().ncols(), rows(&examples));
        let expected = either!(&self.inner, client => client.plan().inputs());
        if columns != expected {
            return Err(ModelError::Shape { what: "an example", found: columns, expected }.into());
        }
        long(py, || Ok(ModelRequest(self.threads.run(|| either!(&self.inner, client => client.encrypt(&examples)))?)))
    }

    /// Decrypts answers.
    fn decrypt<'py>(&self, py: Python<'py>, answer: &ModelAnswer) -> Result<Bound<'py, PyArray2<f64>>> {
        let found = long(py, || Ok(self.threads.run(|| either!(&self.inner, client => client.decrypt(&answer.0)))?))?;
        table(py, found, either!(&self.inner, client => client.plan().outputs()))
    }
}

/// Computes with evaluation keys and a model's weights.
#[pyclass(frozen, module = "sudare._core")]
pub struct ModelServer {
    inner: NetworkOrForest<models::Server, forest::Server>,
    keys: Keys,
    threads: Threads,
}

impl ModelServer {
    fn of(model: &Model, keys: Keys, threads: &Workers, stored: Option<bool>) -> Result<Self> {
        let stored = stored.unwrap_or_else(|| either!(&model.0, model => model.plan().stores()));
        let threads = Threads::new(threads.0);
        let made = keys.clone();
        let inner = threads.run(|| model.0.server(made, stored))?;
        Ok(Self { inner, keys, threads })
    }
}

#[pymethods]
impl ModelServer {
    /// A server of keys' bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, model: &Model, data: &[u8], threads: Workers, stored: Option<bool>) -> Result<Self> {
        long(py, || {
            let keys = either!(&model.0, model => Keys::from_bytes(model.plan(), data))?;
            Self::of(model, keys, &threads, stored)
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
            Ok(ModelAnswer(self.threads.run(|| either!(&self.inner, server => server.run(&request.0, &tell)))?))
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
        long(py, || Ok(Self(either!(&plan.0, plan => models::Request::from_bytes(plan, data))?)))
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
        long(py, || Ok(Self(either!(&plan.0, plan => models::Answer::from_bytes(plan, data))?)))
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
