//! ml-inference, MNIST: labels of encrypted images by a network of two layers with squares between them, under CKKS without any evaluation
//! key.
//!
//! A pixel has a ciphertext, and an image a slot in each. Weights are small integers, so that nothing is rescaled; squares keep three parts, which the
//! second layer takes as they are, so that nothing is relinearised.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sudare_he::ckks::{
    Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Params, ParamsLiteral, PlainMatrix,
};
use sudare_ring::threads;
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::{Bundle, Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_submissions::mnist::{LABELS, Network, middle};
use sudare_submissions::{Outcome, Reported, Step, read, run, write, write_secret};

/// log2 of the scale of pixels.
const LOG_SCALE: u32 = 18;
/// Names of the sizes 0 to 3, and their images.
const SIZES: [(&str, usize); 4] = [("single", 1), ("small", 100), ("medium", 1_000), ("large", 10_000)];
/// Names of the folders of the uploaded and the computed files.
const UPLOAD: &str = "ciphertexts_upload";
const DOWNLOAD: &str = "ciphertexts_download";

fn params() -> Outcome<Params> {
    // 84 bits where 106 are allowed; no special primes, for there are no keys.
    let rlwe = rlwe::params::ParamsLiteral {
        log_n: 12,
        q_bits: vec![28; 3],
        p_bits: vec![],
        digit_limbs: 1,
        secret: SecretDistribution::Ternary,
        security: Security::Bits128,
    };
    Ok(ParamsLiteral { rlwe, log_scale: LOG_SCALE }.build()?)
}

struct Instance {
    io: PathBuf,
    data: PathBuf,
    images: usize,
}

impl Instance {
    fn new(step: &Step) -> Outcome<Self> {
        let size: usize = step.argument(0)?.parse()?;
        let (name, images) = *SIZES.get(size).ok_or("sizes are 0 to 3")?;
        Ok(Self { io: Path::new("io").join(name), data: Path::new("datasets").join(name), images })
    }

    fn secret(&self) -> PathBuf {
        self.io.join("client_secret").join("secret.key")
    }

    /// The file of a block of images.
    fn file(&self, folder: &str, block: usize) -> PathBuf {
        self.io.join(folder).join(format!("{block:04}.bin"))
    }

    fn blocks(&self, params: &Params) -> usize {
        self.images.div_ceil(params.slots())
    }

    fn secret_key(&self, params: &Params) -> Outcome<SecretKey> {
        Ok(secret_key_from_bytes(params, &read(&self.secret())?)?)
    }

    fn bundle(&self, params: &Params, folder: &str, block: usize, wanted: usize) -> Outcome<Bundle<Ciphertext>> {
        let path = self.file(folder, block);
        let bundle = Bundle::<Ciphertext>::from_bytes(params, &read(&path)?)?;
        match bundle.ciphertexts().len() {
            found if found == wanted => Ok(bundle),
            found => Err(format!("{}: {found} ciphertexts, where {wanted} belong", path.display()).into()),
        }
    }
}

fn key(instance: &Instance) -> Outcome<()> {
    let params = params()?;
    write_secret(&instance.secret(), &secret_key_to_bytes(&SecretKey::generate(&params)?)?)
}

fn encrypt(instance: &Instance) -> Outcome<()> {
    let (params, network) = (params()?, Network::new()?);
    let secret = instance.secret_key(&params)?;
    let path = instance.data.join("intermediate").join("test_pixels.txt");
    let images = sudare_submissions::mnist::images(&path)?;
    if images.len() != instance.images {
        return Err(format!("{}: {} images, where {} belong", path.display(), images.len(), instance.images).into());
    }
    let at = EncodeAt { level: params.max_level(), scale: params.scale(), max_abs: 1.0 };
    let (encoder, encryptor) = (Encoder::new(&params), Encryptor::with_secret_key(&secret)?);
    let _ = fs::remove_dir_all(instance.io.join(UPLOAD));
    for (block, images) in images.chunks(params.slots()).enumerate() {
        let images: Vec<Vec<f64>> = images.iter().map(|image| middle(image)).collect();
        let pixels = threads::map_jobs(network.pixels(), |i| -> Outcome<Ciphertext> {
            let slots: Vec<f64> = images.iter().map(|image| image[i]).collect();
            Ok(encryptor.encrypt(&encoder.encode_at(&slots, at)?)?)
        });
        let pixels = pixels.into_iter().collect::<Outcome<Vec<_>>>()?;
        let bundle = Bundle::new(params.rlwe(), secret.id(), Vec::new(), pixels)?;
        write(&instance.file(UPLOAD, block), &bundle.to_bytes()?)?;
    }
    Ok(())
}

/// A layer: its matrix, and products with biases added.
struct Layer {
    matrix: PlainMatrix,
    biases: Vec<f64>,
}

impl Layer {
    fn apply(&self, evaluator: &Evaluator, values: &[&Ciphertext]) -> Outcome<Vec<Ciphertext>> {
        let sums = evaluator.matrix_products(&self.matrix, values)?;
        let with_bias = threads::map_jobs(sums.len(), |i| evaluator.add_constant(&sums[i], self.biases[i]));
        Ok(with_bias.into_iter().collect::<Result<_, _>>()?)
    }
}

fn layers() -> Outcome<[Layer; 2]> {
    let network = Network::new()?;
    let layer = |weights: Vec<Vec<f64>>, biases: Vec<f64>, bits: u32| -> Outcome<Layer> {
        let columns = weights.first().map_or(0, Vec::len);
        let rows: Vec<Vec<(u32, f64)>> =
            weights.iter().map(|row| (0..).zip(row.iter().copied()).filter(|(_, w)| *w != 0.0).collect()).collect();
        Ok(Layer { matrix: PlainMatrix::new(columns, &rows, f64::from(bits).exp2())?, biases })
    };
    let [first, second] = network.layers();
    Ok([layer(first.weights(), first.biases(), first.bits)?, layer(second.weights(), second.biases(), second.bits)?])
}

fn compute(instance: &Instance) -> Outcome<()> {
    let (params, [first, second]) = (params()?, layers()?);
    let pixels = Network::new()?.pixels();
    let _ = fs::remove_dir_all(instance.io.join(DOWNLOAD));
    let mut reported = Reported::default();
    for block in 0..instance.blocks(&params) {
        let what = |step: &str| format!("Block {block}: {step}");
        let bundle = reported.timed(&what("reading"), || instance.bundle(&params, UPLOAD, block, pixels))?;
        let evaluator = Evaluator::new(&params, EvalKeys::new(params.rlwe(), bundle.key()))?;
        let scores = reported.timed(&what("network"), || {
            let values: Vec<&Ciphertext> = bundle.ciphertexts().iter().collect();
            let hidden = first.apply(&evaluator, &values)?;
            let squares = threads::map_jobs(hidden.len(), |i| evaluator.mul(&hidden[i], &hidden[i]));
            let squares = squares.into_iter().collect::<Result<Vec<_>, _>>()?;
            second.apply(&evaluator, &squares.iter().collect::<Vec<_>>())
        })?;
        let answer = Bundle::new(params.rlwe(), bundle.key(), Vec::new(), scores)?;
        reported.timed(&what("writing"), || write(&instance.file(DOWNLOAD, block), &answer.to_bytes()?))?;
    }
    write(&instance.io.join("server_reported_steps.json"), reported.text().as_bytes())
}

fn decrypt(instance: &Instance) -> Outcome<()> {
    let params = params()?;
    let secret = instance.secret_key(&params)?;
    let (encoder, decryptor) = (Encoder::new(&params), Decryptor::new(&secret));
    let mut text = String::new();
    let mut left = instance.images;
    for block in 0..instance.blocks(&params) {
        let answer = instance.bundle(&params, DOWNLOAD, block, LABELS)?;
        let scores =
            threads::map_jobs(LABELS, |label| encoder.decode(&decryptor.decrypt(&answer.ciphertexts()[label])?));
        let scores = scores.into_iter().collect::<Result<Vec<Vec<f64>>, _>>()?;
        let best = |image: usize| (0..LABELS).max_by(|a, b| scores[*a][image].total_cmp(&scores[*b][image]));
        let labels = (0..params.slots()).take(left).map(best).collect::<Option<Vec<usize>>>();
        labels.ok_or("a network has labels")?.iter().for_each(|label| text.push_str(&format!("{label}\n")));
        left = left.saturating_sub(params.slots());
    }
    write(&instance.io.join("encrypted_model_predictions.txt"), text.as_bytes())
}

fn go(step: &Step) -> Outcome<()> {
    match step.name.as_str() {
        // Weights are part of the program.
        "server_preprocess_model" | "client_preprocess_input" | "client_postprocess" => Ok(()),
        "client_key_generation" => key(&Instance::new(step)?),
        "client_encode_encrypt_input" => encrypt(&Instance::new(step)?),
        "server_encrypted_compute" => compute(&Instance::new(step)?),
        "client_decrypt_decode" => decrypt(&Instance::new(step)?),
        other => Err(format!("no step of ml-inference: {other}").into()),
    }
}

fn main() -> ExitCode {
    run(go)
}
