//! A client and a server for one product.

use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{Ciphertext, Decryptor, Encryptor, Evaluator, ParamsLiteral};
use sudare_methods::{Figures, Method, Product, ProductSpec, Requirements};
use sudare_ring::Threads;
use sudare_rlwe::Counters;
use sudare_rlwe::keys::{KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_testkit::random::unit_at;

/// Elements in [−1, 1) that follow no line.
pub fn random(seed: u64, rows: usize, cols: usize) -> Matrix {
    scaled(seed, rows, cols, 1.0)
}

/// The same, larger by a factor.
pub fn scaled(seed: u64, rows: usize, cols: usize, max_abs: f64) -> Matrix {
    Matrix::from_fn(rows, cols, |i, j| max_abs * unit_at(seed, i, j)).unwrap()
}

/// What is asked of a method.
pub fn require(shape: Shape, max_abs: [f64; 2], error: f64) -> Requirements {
    Requirements { shape, max_abs, error, security: Security::Bits128, fresh: [true, true], decrypt_next: true }
}

pub struct World {
    /// The product.
    pub product: Box<dyn Product>,
    /// What is told of it.
    pub figures: Figures,
    secret: SecretKey,
    public: PublicKey,
    server: Evaluator,
}

impl World {
    pub fn new(spec: &ProductSpec) -> Self {
        let product = spec.build().unwrap();
        // What is told without building is what is built.
        let figures = product.figures([1.0; 2]).unwrap();
        assert_eq!(spec.plan().unwrap().figures([1.0; 2]).unwrap(), figures);
        let secret = SecretKey::generate(product.params()).unwrap();
        let generator = KeyGenerator::new(&secret).unwrap();
        let keys = generator.eval_keys(figures.keys.relin, &figures.keys.galois).unwrap();
        let public = generator.public_key().unwrap();
        let server = Evaluator::new(product.params(), keys).unwrap();
        Self { product, figures, public, server, secret }
    }

    /// Multiplies random matrices; returns the largest error and the operations done.
    pub fn run(&self, seed: u64) -> (f64, Counters) {
        self.run_within(seed, [1.0; 2], true, false)
    }

    /// The same of larger matrices, under the public key or the secret one; if `pooled`, threads have to give the same bits.
    pub fn run_within(&self, seed: u64, max_abs: [f64; 2], public: bool, pooled: bool) -> (f64, Counters) {
        let shape = self.product.shape();
        let make = |operand: Operand, salt: u64, max_abs: f64| -> Vec<Matrix> {
            let (rows, cols) = shape.of(operand);
            (0..shape.batch as u64).map(|t| scaled(seed * 1009 + t * 31 + salt, rows, cols, max_abs)).collect()
        };
        let (a, b) = (make(Operand::Left, 1, max_abs[0]), make(Operand::Right, 2, max_abs[1]));
        let (public_key, secret) = (&self.public, &self.secret);
        let encryptor =
            if public { Encryptor::with_public_key(public_key) } else { Encryptor::with_secret_key(secret) }.unwrap();
        let encrypt = |operand, matrices: &[Matrix], max_abs| -> Vec<_> {
            let plains = self.product.encode(operand, matrices, max_abs).unwrap();
            assert_eq!(plains.len(), self.product.ciphertexts(operand));
            plains.iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
        };
        let (left, right) = (encrypt(Operand::Left, &a, max_abs[0]), encrypt(Operand::Right, &b, max_abs[1]));
        self.server.reset_counters();
        let output = self.product.multiply(&self.server, &left, &right).unwrap();
        let counters = self.server.counters();
        if pooled {
            let again = Threads::new(3).run(|| self.product.multiply(&self.server, &left, &right)).unwrap();
            let words = |c: &Ciphertext| c.parts().iter().map(|p| p.words().to_vec()).collect::<Vec<_>>();
            assert!(output.iter().zip(&again).all(|(x, y)| words(x) == words(y)));
        }
        assert_eq!(output.len(), self.product.ciphertexts(Operand::Output));
        assert_eq!(output.len(), self.figures.ciphertexts);
        for c in &output {
            let told = (self.figures.parts, self.figures.level, self.figures.scale);
            assert_eq!((c.parts().len(), c.level(), c.scale()), told);
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
        let predicted = self.figures.error;
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
