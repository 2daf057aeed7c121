use super::{Answer, Files, THEIRS, require};
use std::error::Error;
use std::io;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, Packing, Plaintext, Scheme, Wrap};
use sudare_exact::{ExactError, IntegerParams};
use sudare_lattigo::{Exchange, Noise, params};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::security::Security;

/// Values of all slots; the peer has the same formulas.
pub fn values(slots: usize, t: u64) -> [Vec<u64>; 2] {
    let of = |f: fn(u64) -> u64| (0..slots as u64).map(|i| f(i) % t).collect();
    [of(|i| 3 * i * i + 5 * i + 1), of(|i| 7 * i + 2)]
}

/// Everything of one set.
struct World {
    exchange: Exchange<IntegerParams>,
    encoder: Encoder,
    secret: SecretKey,
    public: PublicKey,
    keys: EvalKeys,
    /// Values, their products, rotated by one in both rows, with rows swapped.
    x: Vec<u64>,
    y: Vec<u64>,
    product: Vec<u64>,
    rotated: Vec<u64>,
    swapped: Vec<u64>,
}

impl World {
    fn plain(&self, values: &[u64]) -> Result<Plaintext, ExactError> {
        self.encoder.encode_unsigned(values, Packing::Slots, Wrap::Refuse)
    }

    fn check(&self, what: &str, found: &Plaintext, expected: &[u64]) -> Result<(), Box<dyn Error>> {
        require(what, self.encoder.decode_unsigned(found, Packing::Slots)? == expected)
    }

    /// Checks what they encrypted, and computes with it, as ciphertexts of a scheme.
    fn of_scheme<S: Scheme>(
        &self,
        read: impl Fn(&str) -> io::Result<Vec<u8>>,
        second: &str,
        own: &SecretKey,
    ) -> Answer {
        let (exchange, params, slots) = (&self.exchange, self.exchange.params(), self.exchange.all_slots()?);
        let name = S::NAME.to_lowercase();
        let decryptor = Decryptor::<S>::new(params, &self.secret)?;
        let server = Evaluator::<S>::new(params, self.keys.clone())?;
        let checked = |what: &str, found: &Ciphertext<S>, expected: &[u64]| -> Result<(), Box<dyn Error>> {
            println!("    {name}, {what}: {:.1} bits of noise left", found.headroom());
            self.check(what, &decryptor.decrypt(found)?, expected)
        };
        let (a, packing) = exchange.read_ciphertext::<S>(THEIRS, &read("x.ct")?, Noise::FreshPublicKey)?;
        require("its slots", packing == slots)?;
        checked("ciphertext under the public key", &a, &self.x)?;
        let b = exchange.read_ciphertext::<S>(THEIRS, &read(second)?, Noise::FreshSecretKey)?.0;
        checked("ciphertext under the secret key", &b, &self.y)?;
        let under = Encryptor::<S>::with_public_key(params, &self.public)?.encrypt(&self.plain(&self.x)?)?;
        let mut results = vec![
            ("rotated", server.rotate_rows(&a, 1)?, &self.rotated),
            ("swapped", server.rotate_columns(&a)?, &self.swapped),
            ("under", under, &self.x),
        ];
        // Small sets hold no product.
        match server.mul_relin(&a, &b) {
            Ok(product) => results.push(("product", product, &self.product)),
            Err(ExactError::Rlwe(RlweError::NoBudget { .. })) => println!("    {name}: no room for a product"),
            Err(error) => return Err(error.into()),
        }
        let mut files = Files::new();
        for (what, found, expected) in results {
            checked(what, &found, expected)?;
            files.push((format!("{name}-{what}.ct"), exchange.write_ciphertext(&found, slots)?));
        }
        let encryptor = Encryptor::<S>::with_secret_key(params, own)?;
        for (what, values) in [("x", &self.x), ("y", &self.y)] {
            let ciphertext = encryptor.encrypt(&self.plain(values)?)?;
            files.push((format!("{name}-{what}.ct"), exchange.write_ciphertext(&ciphertext, slots)?));
        }
        Ok(files)
    }
}

/// Reads and checks everything of theirs, and answers.
pub fn answer(read: impl Fn(&str) -> io::Result<Vec<u8>>, security: Security) -> Answer {
    let params = params::integer_from_json(&read("params.json")?, security)?;
    let exchange = Exchange::new(params.clone())?;
    let [x, y] = values(params.slots(), params.t());
    let (n, row, t) = (params.slots(), params.row(), params.t());
    let world = World {
        encoder: Encoder::new(&params),
        secret: exchange.read_secret_key(THEIRS, &read("secret")?)?,
        public: exchange.read_public_key(THEIRS, &read("public")?)?,
        keys: exchange.read_eval_keys(THEIRS, &read("keys")?)?,
        exchange,
        product: x.iter().zip(&y).map(|(x, y)| x * y % t).collect(),
        rotated: (0..n).map(|i| x[i / row * row + (i + 1) % row]).collect(),
        swapped: (0..n).map(|i| x[(i + row) % n]).collect(),
        x,
        y,
    };
    let (exchange, slots) = (&world.exchange, world.exchange.all_slots()?);
    world.check("plaintext", &exchange.read_plaintext(&read("x.pt")?)?.0, &world.x)?;
    let (secret, top) = (SecretKey::generate(&params)?, params.max_level());
    let elements = [(params.rotation_element(1), top), (params.row_swap_element(), top)];
    let keys = KeyGenerator::new(&secret)?.eval_keys(Some(top), &elements)?;
    let mut files = vec![
        ("params.json".to_owned(), params::integer_to_json(&params)?.into_bytes()),
        ("secret".to_owned(), exchange.write_secret_key(&secret)?.to_vec()),
        ("public".to_owned(), exchange.write_public_key(&secret)?),
        ("keys".to_owned(), exchange.write_eval_keys(&keys)?),
        ("x.pt".to_owned(), exchange.write_plaintext(&world.plain(&world.x)?, top, slots)?),
    ];
    files.extend(world.of_scheme::<Bgv>(&read, "y.ct", &secret)?);
    files.extend(world.of_scheme::<Bfv>(&read, "bfv-y.ct", &secret)?);
    Ok(files)
}
