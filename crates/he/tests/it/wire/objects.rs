//! One small object of each type, from fixed seeds.

use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Encryptor, Evaluator, Params, ParamsLiteral, Plaintext};
use sudare_ring::random::{Entropy, Seed};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::wire::{
    Bundle, Wire, WireError, params_from_bytes, params_to_bytes, secret_key_from_bytes, secret_key_to_bytes,
};

pub struct Objects {
    pub params: Params,
    pub secret: SecretKey,
    pub public: PublicKey,
    pub keys: EvalKeys,
    pub plaintext: Plaintext,
    /// Fresh under the secret key: travels as a seed.
    pub seeded: Ciphertext,
    /// Fresh under the public key, two parts.
    pub plain_parts: Ciphertext,
    /// A product, three parts.
    pub product: Ciphertext,
    pub bundle: Bundle<Ciphertext>,
}

pub fn literal() -> ParamsLiteral {
    crate::world::literal(9, &[45, 25], &[46], 1, 20)
}

/// Coefficients that every machine encodes alike: multiples of 2^-6.
pub fn values() -> Vec<f64> {
    (0..512).map(|i| f64::from((i * 37) % 129 - 64) / 64.0).collect()
}

impl Objects {
    pub fn new(literal: &ParamsLiteral, seed: u8) -> Self {
        let params = literal.build().unwrap();
        Self::under(SecretKey::from_seed(&params, &Seed::from_bytes([seed; 32])).unwrap(), seed)
    }

    /// The objects under a key, from the seeds after `seed`.
    pub fn under(secret: SecretKey, seed: u8) -> Self {
        let params = Params::of(secret.params()).unwrap();
        let fixed = |number: u8| Entropy::fixed(Seed::from_bytes([seed + number; 32]));
        let generator = KeyGenerator::new(&secret).unwrap().with_entropy(fixed(1));
        let public = generator.public_key().unwrap();
        let (top, rotation) = (params.max_level(), params.rotation_element(1));
        let keys = generator.eval_keys(Some(top), &[(rotation, 0), (params.conjugation_element(), top)]).unwrap();
        let encoder = Encoder::new(&params);
        let at = EncodeAt { level: top, scale: params.scale(), max_abs: 1.0 };
        let plaintext = encoder.encode_coefficients(&values(), at).unwrap();
        let by_secret = Encryptor::with_secret_key(&secret).unwrap().with_entropy(fixed(2));
        let by_public = Encryptor::with_public_key(&public).unwrap().with_entropy(fixed(3));
        let seeded = by_secret.encrypt(&plaintext).unwrap();
        let plain_parts = by_public.encrypt(&plaintext).unwrap();
        let server = Evaluator::new(&params, keys.clone()).unwrap();
        // Bounds of a product of coefficient encodings are products of norms; declare small ones.
        let small = [&seeded, &plain_parts].map(|c| c.clone().with_bound(8.0));
        let product = server.mul(&small[0], &small[1]).unwrap();
        let members = vec![by_secret.encrypt(&plaintext).unwrap(), server.drop_to(&plain_parts, 0).unwrap()];
        let bundle = Bundle::new(params.rlwe(), secret.id(), b"an application's header".to_vec(), members).unwrap();
        Self { params, secret, public, keys, plaintext, seeded, plain_parts, product, bundle }
    }

    /// Every object's bytes, by the name of its file.
    pub fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("params", params_to_bytes(&self.params).unwrap()),
            ("secret_key", secret_key_to_bytes(&self.secret).unwrap().to_vec()),
            ("public_key", self.public.to_bytes().unwrap()),
            ("eval_keys", self.keys.to_bytes().unwrap()),
            ("plaintext", self.plaintext.to_bytes().unwrap()),
            ("ciphertext_seeded", self.seeded.to_bytes().unwrap()),
            ("ciphertext", self.plain_parts.to_bytes().unwrap()),
            ("ciphertext_product", self.product.to_bytes().unwrap()),
            ("bundle", self.bundle.to_bytes().unwrap()),
        ]
    }
}

/// Reads bytes as the object that a file's name says and writes them again.
pub fn reread(params: &Params, name: &str, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
    match name {
        "params" => {
            let stored = params_from_bytes(bytes)?;
            let literal = &stored.literal;
            // Only small sets are worth building here.
            if literal.log_n > 10 || literal.q_bits.len() + literal.p_bits.len() > 6 {
                return Err(WireError::Corrupt { what: "too large for a test" });
            }
            params_to_bytes(&stored.build()?)
        }
        "secret_key" => Ok(secret_key_to_bytes(&secret_key_from_bytes(params, bytes)?)?.to_vec()),
        "public_key" => PublicKey::from_bytes(params, bytes)?.to_bytes(),
        "eval_keys" => EvalKeys::from_bytes(params, bytes)?.to_bytes(),
        "plaintext" => Plaintext::from_bytes(params, bytes)?.to_bytes(),
        "bundle" => Bundle::<Ciphertext>::from_bytes(params, bytes)?.to_bytes(),
        _ => Ciphertext::from_bytes(params, bytes)?.to_bytes(),
    }
}
