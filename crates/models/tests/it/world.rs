//! What the tests share: a writer of ONNX files, random networks, a client with a server.

use sudare_models::{Answer, Client, Dense, Function, Goal, Label, Model, ModelError, Network, Request, Server};
use sudare_rlwe::work::Work;
use sudare_testkit::Random;

pub const QUIET: &(dyn Fn(usize, usize) + Sync) = &|_, _| ();

/// Seconds of some work, about those of a core of today.
pub fn prices(work: &Work, log_n: u32) -> f64 {
    let limb = (f64::from(log_n) - 13.0).exp2() * 1e-6;
    (work.ntt + work.ntt_wide) * 10.0 * limb
        + (work.pass + work.pass_wide) * 4.0 * limb
        + (work.term + work.term_wide) * 1.5 * limb
        + (work.mac + work.mac_narrow) * 7e-11
        + work.key_bytes / 5e9
}

/// A model in a small ring.
pub fn compile(network: &Network, examples: &[f64], goal: &Goal) -> Result<Model, ModelError> {
    Model::compile(network, examples, goal, &prices)
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

pub fn number(field: u64, value: i64) -> Vec<u8> {
    [varint(field << 3), varint(value as u64)].concat()
}

pub fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A tensor of floats, or of integers.
pub fn tensor(name: &str, dims: &[usize], data: &[f64]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|d| number(1, *d as i64)).collect();
    let raw: Vec<u8> = data.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
    [dims, number(2, 1), bytes(8, name.as_bytes()), bytes(9, &raw)].concat()
}

pub fn integers(name: &str, data: &[i64]) -> Vec<u8> {
    let packed: Vec<u8> = data.iter().flat_map(|x| varint(*x as u64)).collect();
    [number(1, data.len() as i64), number(2, 7), bytes(7, &packed), bytes(8, name.as_bytes())].concat()
}

/// Texts, of which a tensor names classes.
pub fn texts(name: &str, data: &[&str]) -> Vec<u8> {
    let all: Vec<u8> = data.iter().flat_map(|text| bytes(6, text.as_bytes())).collect();
    [number(1, data.len() as i64), number(2, 8), all, bytes(8, name.as_bytes())].concat()
}

/// An attribute's value.
pub enum Attr<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Floats(&'a [f32]),
    Text(&'a str),
}

pub fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, Attr<'_>)]) -> Vec<u8> {
    let mut out: Vec<u8> = inputs.iter().flat_map(|i| bytes(1, i.as_bytes())).collect();
    out.extend(bytes(2, output.as_bytes()));
    out.extend(bytes(3, format!("{operator} of {output}").as_bytes()));
    out.extend(bytes(4, operator.as_bytes()));
    for (name, value) in attributes {
        let value = match value {
            Attr::Int(x) => [number(3, *x), number(20, 2)].concat(),
            Attr::Ints(all) => [all.iter().flat_map(|x| number(8, *x)).collect(), number(20, 7)].concat(),
            Attr::Floats(all) => {
                let packed: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
                [bytes(7, &packed), number(20, 6)].concat()
            }
            Attr::Text(text) => [bytes(4, text.as_bytes()), number(20, 3)].concat(),
        };
        out.extend(bytes(5, &[bytes(1, name.as_bytes()), value].concat()));
    }
    out
}

/// A graph in the making: `x` comes in, `y` goes out.
#[derive(Default)]
pub struct Graph {
    body: Vec<u8>,
}

impl Graph {
    pub fn constant(mut self, tensor: Vec<u8>) -> Self {
        self.body.extend(bytes(5, &tensor));
        self
    }

    pub fn node(mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, Attr<'_>)]) -> Self {
        self.body.extend(bytes(1, &node(operator, inputs, output, attributes)));
        self
    }

    /// A node of the domain for estimators.
    pub fn estimator(
        mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[(&str, Attr<'_>)],
    ) -> Self {
        let more: Vec<u8> = outputs[1..].iter().flat_map(|output| bytes(2, output.as_bytes())).collect();
        let one = [node(operator, inputs, outputs[0], attributes), more, bytes(7, b"ai.onnx.ml")].concat();
        self.body.extend(bytes(1, &one));
        self
    }

    /// Another output than `y`.
    pub fn output(mut self, name: &str) -> Self {
        self.body.extend(bytes(12, &bytes(1, name.as_bytes())));
        self
    }

    /// The file; the first dimension of the input is symbolic.
    pub fn file(mut self, dims: &[usize], opset: i64) -> Vec<u8> {
        let dim = |d: &usize| bytes(1, &number(1, *d as i64));
        let symbolic = bytes(1, &bytes(2, b"batch"));
        let shape = [symbolic, dims.iter().flat_map(dim).collect()].concat();
        let kind = bytes(1, &[number(1, 1), bytes(2, &shape)].concat());
        self.body.extend(bytes(11, &[bytes(1, b"x"), bytes(2, &kind)].concat()));
        self.body.extend(bytes(12, &bytes(1, b"y")));
        [number(1, 8), bytes(7, &self.body), bytes(8, &number(2, opset))].concat()
    }
}

/// A chain of dense layers with random weights.
pub fn mlp(random: &mut Random, sizes: &[usize], function: &Function) -> Network {
    let last = sizes.len() - 2;
    let layer = |(k, pair): (usize, &[usize])| {
        let scale = 1.0 / (pair[0] as f64).sqrt();
        Dense {
            name: format!("layer {k}"),
            weights: random.units(pair[0] * pair[1]).iter().map(|w| 1.5 * w * scale).collect(),
            bias: random.units(pair[1]).iter().map(|b| 0.2 * b).collect(),
            function: if k == last { Function::Identity } else { function.clone() },
        }
    };
    let layers = sizes.windows(2).enumerate().map(layer).collect();
    Network::dense(sizes[0], layers).unwrap()
}

/// In a small ring.
pub fn goal() -> Goal {
    Goal { insecure: Some(9), label: Label::Numbers, approximation: Some(0.5), error: 1e-3, ..Goal::default() }
}

/// A client and a server of a model.
pub struct World {
    pub model: Model,
    pub client: Client,
    pub server: Server,
}

impl World {
    pub fn new(network: &Network, examples: &[f64], goal: &Goal) -> Self {
        Self::of(compile(network, examples, goal).unwrap())
    }

    pub fn of(model: Model) -> Self {
        let client = Client::new(model.plan()).unwrap();
        let server = Server::new(&model, client.eval_keys().unwrap(), true).unwrap();
        Self { model, client, server }
    }

    /// Answers that went by bytes.
    pub fn predict(&self, examples: &[f64]) -> Result<Vec<f64>, ModelError> {
        let plan = self.model.plan();
        let request = Request::from_bytes(plan, &self.client.encrypt(examples)?.to_bytes()?)?;
        let answer = self.server.run(&request, QUIET)?;
        self.client.decrypt(&Answer::from_bytes(plan, &answer.to_bytes()?)?)
    }

    /// The largest distance of decrypted answers from the polynomial model's.
    pub fn distance(&self, examples: &[f64]) -> f64 {
        let found = self.predict(examples).unwrap();
        let wanted = examples.chunks(self.model.plan().inputs()).flat_map(|x| self.model.polynomial(x).unwrap());
        found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }
}
