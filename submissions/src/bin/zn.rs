//! Zn-multiplication: products of pairs of 64-bit words modulo 2^64, under BGV in slots, without any evaluation key.
//!
//! Words are taken as signed, so that |a·b| ≤ 2^126; three prime plaintext moduli of 43 bits make 2^129, and the product is exact. Products stay in three
//! parts: there is nothing to relinearise with. The client puts residues together and keeps 64 bits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sudare_exact::bgv::{Ciphertext, Decryptor, Encryptor, Evaluator};
use sudare_exact::plan::EXACT;
use sudare_exact::{Encoder, IntegerParams, Packing, Wrap};
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Modulus, threads};
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::{Bundle, Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_submissions::{Outcome, Reported, Step, read, run, write, write_secret};

/// log2 of the words of a ciphertext.
const LOG_SLOTS: u32 = 13;
/// Words of a ciphertext.
const SLOTS: usize = 1 << LOG_SLOTS;
/// Bits of a plaintext modulus.
const T_BITS: u32 = 43;
/// Ciphertexts of a file.
const TOGETHER: usize = 64;
/// Names of sizes and their pairs.
const SIZES: [(&str, usize); 4] = [("single", 1), ("small", 1_000), ("medium", 100_000), ("large", 10_000_000)];

fn params() -> Outcome<Vec<IntegerParams>> {
    // 117 bits where 214 are allowed; no special primes, for there are no keys.
    let literal = ParamsLiteral {
        log_n: LOG_SLOTS,
        q_bits: vec![39; 3],
        p_bits: vec![],
        digit_limbs: 1,
        secret: SecretDistribution::Ternary,
        security: Security::Bits128,
    };
    let params = literal.build(EXACT)?;
    let moduli = ntt_primes(SLOTS, T_BITS, 3, &[])?;
    Ok(moduli.into_iter().map(|t| IntegerParams::new(&params, t)).collect::<Result<_, _>>()?)
}

struct Instance {
    io: PathBuf,
    data: PathBuf,
}

impl Instance {
    fn named(name: &str) -> Outcome<Self> {
        if !SIZES.iter().any(|(known, _)| *known == name) {
            return Err(format!("no size {name}: single, small, medium or large").into());
        }
        Ok(Self { io: Path::new("io").join(name), data: Path::new("datasets").join(name) })
    }

    fn secret(&self) -> PathBuf {
        self.io.join("client_secret").join("secret.key")
    }

    /// A file of ciphertexts: of a side or the products, of a modulus, of a lot of blocks.
    fn file(&self, folder: &str, side: &str, t: usize, lot: usize) -> PathBuf {
        self.io.join(folder).join(format!("{side}_{t}_{lot:04}.bin"))
    }

    /// How many lots there are.
    fn lots(&self, folder: &str, side: &str) -> usize {
        (0..).take_while(|lot| self.file(folder, side, 0, *lot).exists()).count()
    }

    fn secret_key(&self, params: &IntegerParams) -> Outcome<SecretKey> {
        Ok(secret_key_from_bytes(params.rlwe(), &read(&self.secret())?)?)
    }
}

fn key(instance: &Instance) -> Outcome<()> {
    let params = params()?;
    write_secret(&instance.secret(), &secret_key_to_bytes(&SecretKey::generate(params[0].rlwe())?)?)
}

fn words(path: &Path) -> Outcome<Vec<i64>> {
    let text = read(path)?;
    let mut out = Vec::with_capacity(text.len() / 20);
    for line in text.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let digits = line.trim_ascii();
        let word = digits.iter().try_fold(0u64, |x, b| {
            let digit = b.checked_sub(b'0').filter(|d| *d < 10)?;
            x.checked_mul(10)?.checked_add(u64::from(digit))
        });
        let word =
            word.filter(|_| !digits.is_empty()).ok_or_else(|| format!("{}: not a 64-bit word", path.display()))?;
        out.push(word as i64);
    }
    Ok(out)
}

fn encrypt(instance: &Instance) -> Outcome<()> {
    let (params, folder) = (params()?, "ciphertexts_upload");
    let secret = instance.secret_key(&params[0])?;
    let _ = fs::remove_dir_all(instance.io.join(folder));
    for side in ["lhs", "rhs"] {
        let words = words(&instance.data.join(format!("{side}.txt")))?;
        let lots: Vec<&[i64]> = words.chunks(SLOTS * TOGETHER).collect();
        let jobs = threads::map_jobs(3 * lots.len(), |i| {
            let (t, lot) = (i % 3, i / 3);
            let (encoder, encryptor) = (Encoder::new(&params[t]), Encryptor::with_secret_key(&params[t], &secret)?);
            let one = |block: &[i64]| encryptor.encrypt(&encoder.encode_signed(block, Packing::Slots, Wrap::Modulo)?);
            let ciphertexts = lots[lot].chunks(SLOTS).map(one).collect::<Result<Vec<Ciphertext>, _>>()?;
            let bundle = Bundle::new(&params[t], secret.id(), Vec::new(), ciphertexts)?;
            write(&instance.file(folder, side, t, lot), &bundle.to_bytes()?)
        });
        jobs.into_iter().collect::<Outcome<()>>()?;
    }
    Ok(())
}

fn multiply(instance: &Instance) -> Outcome<()> {
    let params = params()?;
    let mut reported = Reported::default();
    let lots = instance.lots("ciphertexts_upload", "lhs");
    reported.timed("Reading, multiplying, writing", || {
        let jobs = threads::map_jobs(3 * lots, |i| {
            let (t, lot) = (i % 3, i / 3);
            let load = |side| -> Outcome<Bundle<Ciphertext>> {
                Ok(Bundle::from_bytes(&params[t], &read(&instance.file("ciphertexts_upload", side, t, lot))?)?)
            };
            let (left, right) = (load("lhs")?, load("rhs")?);
            if left.key() != right.key() || left.ciphertexts().len() != right.ciphertexts().len() {
                return Err("both sides do not belong together".into());
            }
            let evaluator = Evaluator::new(&params[t], EvalKeys::new(params[t].rlwe(), left.key()))?;
            let pairs = left.ciphertexts().iter().zip(right.ciphertexts());
            let products = pairs.map(|(a, b)| evaluator.mul(a, b)).collect::<Result<Vec<_>, _>>()?;
            let bundle = Bundle::new(&params[t], left.key(), Vec::new(), products)?;
            write(&instance.file("ciphertexts_download", "product", t, lot), &bundle.to_bytes()?)
        });
        jobs.into_iter().collect::<Outcome<()>>()
    })?;
    write(&instance.io.join("server_reported_steps.json"), reported.text().as_bytes())
}

/// The product modulo 2^64 of its residues (Garner): x = r_0 + t_0·(k_1 + t_1·k_2), less all moduli's product where it is negative.
struct Garner {
    t: [u64; 3],
    /// t_0^−1 modulo t_1 and t_2, and t_1^−1 modulo t_2.
    inverses: [u64; 3],
}

impl Garner {
    fn new(t: [u64; 3]) -> Outcome<Self> {
        let inverse = |a: usize, b: usize| Modulus::new(t[b])?.inverse(t[a]);
        Ok(Self { t, inverses: [inverse(0, 1)?, inverse(0, 2)?, inverse(1, 2)?] })
    }

    fn word(&self, r: [u64; 3]) -> u64 {
        let t = self.t;
        let mul = |a: u64, b: u64, t: u64| (u128::from(a) * u128::from(b) % u128::from(t)) as u64;
        let sub = |a: u64, b: u64, t: u64| (a % t + t - b % t) % t;
        let first = mul(sub(r[1], r[0], t[1]), self.inverses[0], t[1]);
        let second = sub(mul(sub(r[2], r[0], t[2]), self.inverses[1], t[2]), first, t[2]);
        let second = mul(second, self.inverses[2], t[2]);
        let word = r[0].wrapping_add(t[0].wrapping_mul(first.wrapping_add(t[1].wrapping_mul(second))));
        // |x| ≤ 2^126, an eighth of the product of all three.
        let negative = second > t[2] / 2;
        if negative { word.wrapping_sub(t[0].wrapping_mul(t[1]).wrapping_mul(t[2])) } else { word }
    }
}

fn decrypt(instance: &Instance, count: usize) -> Outcome<()> {
    let params = params()?;
    let secret = instance.secret_key(&params[0])?;
    let lots = instance.lots("ciphertexts_download", "product");
    let garner = Garner::new([0, 1, 2].map(|i| params[i].t()))?;
    let texts = threads::map_jobs(lots, |lot| {
        let residues = (0..3).map(|t| -> Outcome<Vec<u64>> {
            let bytes = read(&instance.file("ciphertexts_download", "product", t, lot))?;
            let bundle = Bundle::<Ciphertext>::from_bytes(&params[t], &bytes)?;
            let (encoder, decryptor) = (Encoder::new(&params[t]), Decryptor::new(&params[t], &secret)?);
            let one = |c: &Ciphertext| encoder.decode_unsigned(&decryptor.decrypt(c)?, Packing::Slots);
            Ok(bundle.ciphertexts().iter().map(one).collect::<Result<Vec<_>, _>>()?.concat())
        });
        let [a, b, c] = residues.collect::<Outcome<Vec<_>>>()?.try_into().map_err(|_| "three moduli")?;
        if a.len() != b.len() || a.len() != c.len() {
            return Err("the three residues of an answer do not belong together".into());
        }
        let first = lot * SLOTS * TOGETHER;
        let here = a.iter().zip(&b).zip(&c).take(count.saturating_sub(first));
        let mut text = String::with_capacity(21 * a.len());
        for ((a, b), c) in here {
            text.push_str(&garner.word([*a, *b, *c]).to_string());
            text.push('\n');
        }
        Ok(text)
    });
    let texts = texts.into_iter().collect::<Outcome<Vec<String>>>()?;
    let products: usize = texts.iter().map(|text| text.lines().count()).sum();
    if products != count {
        return Err(format!("{products} products in the answer, where {count} belong").into());
    }
    write(&instance.io.join("cleartext_output").join("out.txt"), texts.concat().as_bytes())
}

fn go(step: &Step) -> Outcome<()> {
    match step.name.as_str() {
        "client_preprocess_input" | "client_postprocess" => Ok(()),
        "client_key_generation" => key(&Instance::named(step.argument(0)?)?),
        "client_encode_encrypt_input" => encrypt(&Instance::named(step.argument(0)?)?),
        "server_encrypted_compute" => multiply(&Instance::named(step.argument(0)?)?),
        "client_decrypt_decode" => decrypt(&Instance::named(step.argument(0)?)?, step.argument(1)?.parse()?),
        other => Err(format!("no step of Zn-multiplication: {other}").into()),
    }
}

fn main() -> ExitCode {
    run(go)
}
