//! Transciphering: words under AES-128 become words under CKKS tables, and the largest of them is found.
//!
//! The client uploads the round keys, encrypted; the server has the AES ciphertext. See `sudare_submissions::aes`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapParams, Bootstrapper};
use sudare_he::discrete::{Decryptor, Discrete, Encryptor, Evaluator, Form};
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::wire::{Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_submissions::aes::{
    Aes, BLOCK, Bytes, Cipher, Layout, Maximum, ROUNDS, SUMS, from_bytes, largest_word, literal, rotation_keys,
    to_bytes,
};
use sudare_submissions::{Outcome, Reported, Step, read, run, write, write_secret};

/// Names of the sizes 0 to 3, and their blocks.
const SIZES: [(&str, usize); 4] = [("toy", 1), ("small", 16), ("medium", 256), ("large", 4_096)];

struct Instance {
    io: PathBuf,
    data: PathBuf,
    blocks: usize,
    /// Without counters: every block alone.
    alone: bool,
    params: BootstrapParams,
    layout: Layout,
}

impl Instance {
    fn new(step: &Step) -> Outcome<Self> {
        let size = step.argument(0)?;
        let known = SIZES.iter().enumerate().find(|(i, (name, _))| size == *name || size == i.to_string());
        let (_, (name, blocks)) = known.ok_or("sizes are 0 to 3, or toy, small, medium, large")?;
        // A ring without security is for trials of the programs.
        let literal = match std::env::var("SUDARE_INSECURE") {
            Ok(log_n) => {
                eprintln!("SUDARE_INSECURE: a ring of 2^{log_n}, which has NO SECURITY");
                literal().insecure(log_n.parse()?)?
            }
            Err(_) => literal(),
        };
        let params = literal.build()?;
        let layout = Layout::new(params.params().degree(), *blocks)?;
        let (io, data) = (Path::new("io").join(name), Path::new("datasets").join(name));
        Ok(Self { io, data, blocks: *blocks, alone: *name == "toy", params, layout })
    }

    fn cipher(&self) -> Cipher {
        // In counter mode the counters are encrypted.
        if self.alone { Cipher::decryption() } else { Cipher::encryption() }
    }

    fn secret(&self) -> PathBuf {
        self.io.join("client_secret").join("secret.key")
    }

    fn secret_key(&self) -> Outcome<SecretKey> {
        Ok(secret_key_from_bytes(self.params.params(), &read(&self.secret())?)?)
    }

    fn public(&self, name: &str) -> PathBuf {
        self.io.join("public_keys").join(name)
    }

    fn round_key(&self, round: usize) -> PathBuf {
        self.io.join("ciphertexts_upload").join(format!("round_key_{round:02}.bin"))
    }

    fn state(&self) -> PathBuf {
        self.io.join("ciphertext_aes_download").join("words.bin")
    }

    fn answer(&self) -> PathBuf {
        self.io.join("ciphertexts_download").join("maximum.bin")
    }

    /// The values of a file, so many.
    fn load(&self, path: &Path, wanted: usize) -> Outcome<Vec<Discrete>> {
        let values = from_bytes(&self.params, &read(path)?)?;
        match values.len() == wanted {
            true => Ok(values),
            false => Err(format!("{}: {} values, where {wanted} belong", path.display(), values.len()).into()),
        }
    }

    fn save(&self, path: &Path, values: &[Discrete]) -> Outcome<()> {
        write(path, &to_bytes(&self.params, values)?)
    }

    /// Bytes of a file of hexadecimal digits, so many.
    fn hex(&self, name: &str, wanted: usize) -> Outcome<Vec<u8>> {
        let path = self.data.join(name);
        let wrong = |what: String| format!("{}: {what}", path.display());
        let text = read(&path)?;
        let digits: Vec<u8> = text.into_iter().filter(|b| !b.is_ascii_whitespace()).collect();
        let digit = |b: u8| (b as char).to_digit(16).ok_or_else(|| wrong("not hexadecimal".into()));
        let bytes = digits.chunks(2).map(|pair| match pair {
            [high, low] => Ok((digit(*high)? << 4 | digit(*low)?) as u8),
            _ => Err(wrong("half a byte".into())),
        });
        let bytes = bytes.collect::<Result<Vec<u8>, _>>()?;
        match bytes.len() == wanted {
            true => Ok(bytes),
            false => Err(wrong(format!("{} bytes, where {wanted} belong", bytes.len())).into()),
        }
    }

    fn blocks(&self) -> Outcome<Vec<Bytes>> {
        Ok(self.hex("db.hex", BLOCK * self.blocks)?.as_chunks::<BLOCK>().0.to_vec())
    }

    fn server(&self) -> Outcome<Evaluator> {
        let keys = BootstrapKeys::from_bytes(&self.params, &read(&self.public("bootstrap.keys"))?)?;
        let rotations = EvalKeys::from_bytes(self.params.params().rlwe(), &read(&self.public("rotations.keys"))?)?;
        Ok(Evaluator::new(Bootstrapper::new(keys, None)?)?.with_keys(rotations)?)
    }
}

/// Integers added, value by value.
fn plus(server: &Evaluator, values: &[Discrete], blocks: &[Bytes], layout: Layout) -> Outcome<Vec<Discrete>> {
    let known = layout.pack(blocks);
    values.iter().zip(&known).map(|(x, k)| Ok(server.add_known(x, k)?)).collect()
}

fn keys(instance: &Instance) -> Outcome<()> {
    let secret = SecretKey::generate(instance.params.params())?;
    write_secret(&instance.secret(), &secret_key_to_bytes(&secret)?)?;
    let bootstrap = BootstrapKeys::generate(&secret, &instance.params)?;
    write(&instance.public("bootstrap.keys"), &bootstrap.to_bytes()?)?;
    let rotations = rotation_keys(&instance.params, &secret, instance.layout)?;
    write(&instance.public("rotations.keys"), &rotations.to_bytes()?)
}

fn encrypt(instance: &Instance) -> Outcome<()> {
    let secret = instance.secret_key()?;
    let client = Encryptor::with_secret_key(&instance.params, &secret)?;
    let key: Bytes = instance.hex("aes_key.hex", BLOCK)?.try_into().map_err(|_| "a key of 16 bytes")?;
    for (round, key) in instance.cipher().round_keys(key).into_iter().enumerate() {
        let values = instance.layout.pack(&vec![key; instance.blocks]);
        let values = values.iter().map(|x| client.encrypt(x, SUMS, Form::Split)).collect::<Result<Vec<_>, _>>()?;
        instance.save(&instance.round_key(round), &values)?;
    }
    Ok(())
}

fn decipher(instance: &Instance) -> Outcome<()> {
    let mut reported = Reported::default();
    let (server, keys) = reported.timed("Loading keys", || {
        let keys = (0..=ROUNDS).map(|round| instance.load(&instance.round_key(round), instance.layout.values()));
        Ok((instance.server()?, keys.collect::<Outcome<Vec<_>>>()?))
    })?;
    let (layout, blocks) = (instance.layout, instance.blocks()?);
    let public = match instance.alone {
        true => blocks.clone(),
        false => {
            let iv: Bytes = instance.hex("aes_iv.hex", BLOCK)?.try_into().map_err(|_| "a counter of 16 bytes")?;
            let first = u128::from_be_bytes(iv);
            (0..instance.blocks as u128).map(|j| first.wrapping_add(j).to_be_bytes()).collect()
        }
    };
    let state = reported.timed("AES", || {
        let first = plus(&server, &keys[0], &public, layout)?;
        Aes::new(&server, layout, instance.cipher()).rounds(first, &keys[1..])
    })?;
    let state = if instance.alone { state } else { plus(&server, &state, &blocks, layout)? };
    instance.save(&instance.state(), &state)?;
    write(&instance.io.join("server_reported_steps.json"), reported.text().as_bytes())
}

fn compute(instance: &Instance) -> Outcome<()> {
    let mut reported = Reported::default();
    let server = reported.timed("Loading keys", || instance.server())?;
    let state = instance.load(&instance.state(), instance.layout.values())?;
    let found = reported.timed("Maximum", || Maximum::new(&server, instance.layout).find(&state))?;
    instance.save(&instance.answer(), &found)?;
    write(&instance.io.join("server_reported_steps.json"), reported.text().as_bytes())
}

fn decrypted(instance: &Instance, path: &Path, wanted: usize) -> Outcome<Vec<Vec<u64>>> {
    let secret = instance.secret_key()?;
    let owner = Decryptor::new(&instance.params, &secret)?;
    Ok(instance.load(path, wanted)?.iter().map(|x| owner.decrypt(x)).collect::<Result<_, _>>()?)
}

fn words(instance: &Instance) -> Outcome<()> {
    let blocks = instance.layout.unpack(&decrypted(instance, &instance.state(), instance.layout.values())?);
    let words = blocks.iter().flat_map(|block| block.as_chunks::<2>().0);
    let text: String = words.map(|word| format!("{}\n", u16::from_be_bytes(*word))).collect();
    write(&instance.io.join("result_aes.txt"), text.as_bytes())
}

fn largest(instance: &Instance) -> Outcome<()> {
    let digits = decrypted(instance, &instance.answer(), 2)?;
    let [low, high] = digits.as_slice() else { return Err("an answer of two digits".into()) };
    write(&instance.io.join("result.txt"), format!("{}\n", largest_word([low, high])).as_bytes())
}

fn go(step: &Step) -> Outcome<()> {
    match step.name.as_str() {
        "client_preprocess"
        | "server_preprocess_dataset"
        | "client_postprocess_aes_decryption"
        | "client_postprocess" => Ok(()),
        "client_key_generation" => keys(&Instance::new(step)?),
        "client_encode_encrypt" => encrypt(&Instance::new(step)?),
        "server_encrypted_aes_decryption" => decipher(&Instance::new(step)?),
        "server_encrypted_compute" => compute(&Instance::new(step)?),
        "client_decrypt_decode_aes_decryption" => words(&Instance::new(step)?),
        "client_decrypt_decode" => largest(&Instance::new(step)?),
        other => Err(format!("no step of transciphering: {other}").into()),
    }
}

fn main() -> ExitCode {
    run(go)
}
