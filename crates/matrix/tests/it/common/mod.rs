//! A client and a server for one product.

use sudare_he::ckks::{Decryptor, Encryptor, Evaluator, ParamsLiteral};
use sudare_matrix::{Matrix, Method, Operand, Product, ProductSpec, Shape};
use sudare_rlwe::Counters;
use sudare_rlwe::keys::{KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};

pub fn random(seed: u64, rows: usize, cols: usize) -> Matrix {
    let unit = |i: u64| {
        let x = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((x ^ (x >> 32)) >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    Matrix::from_fn(rows, cols, |i, j| unit((i * cols + j) as u64)).unwrap()
}

pub struct World {
    /// The product.
    pub product: Box<dyn Product>,
    secret: SecretKey,
    public: PublicKey,
    server: Evaluator,
}

impl World {
    pub fn new(spec: &ProductSpec) -> Self {
        let product = spec.build().unwrap();
        // What is told without building is what is built.
        let outline = spec.outline().unwrap();
        assert_eq!((outline.keys(), outline.work()), (product.keys(), product.work()));
        let secret = SecretKey::generate(product.params()).unwrap();
        let generator = KeyGenerator::new(&secret).unwrap();
        let demand = product.keys();
        let keys = generator.eval_keys(demand.relin, &demand.galois).unwrap();
        let public = generator.public_key().unwrap();
        let server = Evaluator::new(product.params(), keys).unwrap();
        Self { product, public, server, secret }
    }

    /// Multiplies random matrices; returns the largest error and the operations done.
    pub fn run(&self, seed: u64) -> (f64, Counters) {
        let shape = self.product.shape();
        let make = |operand: Operand, salt: u64| -> Vec<Matrix> {
            let (rows, cols) = shape.of(operand);
            (0..shape.batch as u64).map(|t| random(seed * 1009 + t * 31 + salt, rows, cols)).collect()
        };
        let (a, b) = (make(Operand::Left, 1), make(Operand::Right, 2));
        let encryptor = Encryptor::with_public_key(&self.public).unwrap();
        let encrypt = |operand, matrices: &[Matrix]| -> Vec<_> {
            let plains = self.product.encode(operand, matrices, 1.0).unwrap();
            assert_eq!(plains.len(), self.product.ciphertexts(operand));
            plains.iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
        };
        let (left, right) = (encrypt(Operand::Left, &a), encrypt(Operand::Right, &b));
        self.server.reset_counters();
        let output = self.product.multiply(&self.server, &left, &right).unwrap();
        let counters = self.server.counters();
        assert_eq!(output.len(), self.product.ciphertexts(Operand::Output));
        let outline = self.product.outline();
        for c in &output {
            assert_eq!((c.parts().len(), c.level()), (outline.parts(Operand::Output), outline.level(Operand::Output)));
        }
        let decryptor = Decryptor::new(&self.secret);
        let plains: Vec<_> = output.iter().map(|c| decryptor.decrypt(c).unwrap()).collect();
        let results = self.product.decode(&plains).unwrap();
        assert_eq!(results.len(), shape.batch);
        let error = results
            .iter()
            .zip(a.iter().zip(&b))
            .map(|(c, (a, b))| c.max_difference(&a.matmul(b).unwrap()))
            .fold(0.0, f64::max);
        (error, counters)
    }

    /// Asserts that the error is as predicted: not more, and not far less.
    #[track_caller]
    pub fn check(&self, seed: u64) -> f64 {
        let (error, _) = self.run(seed);
        let predicted = self.product.predicted_error([1.0; 2]);
        let (name, shape) = (self.product.name(), self.product.shape());
        assert!(error <= predicted, "{name} {shape:?}: error {error:e} over the predicted {predicted:e}");
        error
    }
}

/// An insecure set for breadth: `levels` rescales, N = 2^log_n.
pub fn small(log_n: u32, levels: usize) -> ParamsLiteral {
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits: std::iter::once(49).chain(std::iter::repeat_n(38, levels)).collect(),
            p_bits: vec![49],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        },
        log_scale: 38,
    }
}

pub fn spec(shape: Shape, method: Method, params: ParamsLiteral) -> ProductSpec {
    ProductSpec { shape, method, params }
}
