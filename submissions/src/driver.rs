//! Does what the harnesses of the public workloads do: the same files, one process a step, wall time between steps, sizes of folders, three runs,
//! answers checked in the clear.

use crate::aes::{Bytes, Cipher};
use crate::fetch::Size;
use crate::mnist::{self, Network};
use crate::{Outcome, write};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use sudare_testkit::Random;

/// What is run, and where.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The folder of the entries' programs.
    pub programs: PathBuf,
    /// The folder that stands for the harness's root; emptied before and removed after.
    pub folder: PathBuf,
    /// Threads of each program; 0 for one for each processor.
    pub threads: usize,
    /// Runs of the steps that the harness repeats.
    pub runs: usize,
    /// Test images of MNIST, as `bench/train_models.py` writes them; without them images are random.
    pub images: Option<PathBuf>,
    /// log2 of a ring without security for transciphering: a trial of its programs.
    pub insecure: Option<u32>,
}

/// What was measured of one workload at one size.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `public`.
    pub suite: &'static str,
    /// The workload and its variant.
    pub workload: String,
    /// The size's name.
    pub size: &'static str,
    /// Threads of each program; 0 for one for each processor.
    pub threads: usize,
    /// Seconds of each step: one figure for steps that come once.
    pub seconds: BTreeMap<String, Vec<f64>>,
    /// Processor seconds of each process; of the server that stays those of loading, then of each query.
    pub cpu: BTreeMap<String, Vec<f64>>,
    /// Seconds of parts of the server's step in the last run, as it reports them.
    pub reported: BTreeMap<String, f64>,
    /// Bytes of folders and files, as the harness measures them.
    pub bytes: BTreeMap<&'static str, u64>,
    /// Most megabytes of each process.
    pub peak_mb: BTreeMap<String, f64>,
    /// The share of right labels of test images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<f64>,
    /// `ok`, or what was wrong with an answer.
    pub check: String,
}

impl Measured {
    fn new(drive: &Drive, workload: &str, size: &'static str) -> Self {
        Self {
            suite: "public",
            workload: workload.into(),
            size,
            threads: drive.threads,
            seconds: BTreeMap::new(),
            cpu: BTreeMap::new(),
            reported: BTreeMap::new(),
            bytes: BTreeMap::new(),
            peak_mb: BTreeMap::new(),
            right: None,
            check: "ok".into(),
        }
    }
}

/// Bytes of all files below a folder, or of a file; none where there is nothing.
fn size_of(path: &Path) -> u64 {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            fs::read_dir(path).map_or(0, |all| all.flatten().map(|entry| size_of(&entry.path())).sum())
        }
        Ok(found) => found.len(),
        Err(_) => 0,
    }
}

fn bytes_of(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn normalised(v: Vec<f64>) -> Vec<f64> {
    let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    v.into_iter().map(|x| x / norm).collect()
}

/// The resident server, which ends when this is dropped, as it would by idling.
struct Resident(PathBuf);

impl Drop for Resident {
    fn drop(&mut self) {
        if let Ok(mut stream) = UnixStream::connect(&self.0) {
            let _ = stream.write_all(b"end\n");
        }
    }
}

impl Drive {
    fn empty(&self) -> Outcome<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(fs::create_dir_all(&self.folder)?)
    }

    /// A step by its name, as the build scripts of the entries make it; a copy where the folder is on another disk.
    fn named(&self, program: &str, step: &str) -> Outcome<PathBuf> {
        let folder = self.folder.join("build");
        fs::create_dir_all(&folder)?;
        let (here, named) = (folder.join(program), folder.join(step));
        if !here.exists() {
            let built = self.programs.join(program);
            fs::hard_link(&built, &here).or_else(|_| fs::copy(&built, &here).map(|_| ()))?;
        }
        if !named.exists() {
            fs::hard_link(&here, &named)?;
        }
        Ok(fs::canonicalize(named)?)
    }

    /// One step; its wall time goes to what was measured.
    fn step(&self, program: &str, step: &str, arguments: &[&str], out: &mut Measured) -> Outcome<()> {
        let program = self.named(program, step)?;
        let begun = Instant::now();
        let trial = self.insecure.map(|log_n| ("SUDARE_INSECURE", log_n.to_string()));
        let status = Command::new(program)
            .args(arguments)
            .envs(trial)
            .current_dir(&self.folder)
            .env("SUDARE_THREADS", self.threads.to_string())
            .env("SUDARE_PEAK", fs::canonicalize(&self.folder)?.join("peak"))
            .stdin(Stdio::null())
            .status()?;
        out.seconds.entry(step.into()).or_default().push(begun.elapsed().as_secs_f64());
        if status.success() { Ok(()) } else { Err(format!("{step} {arguments:?}: {status}").into()) }
    }

    /// fetch-by-similarity, sizes 0 (toy) to 2 (medium): rows as its generator makes them, each run with a query of its own; all but the
    /// last near a centre.
    ///
    /// # Errors
    /// A step that fails.
    pub fn fetch(&self, size: usize, count_only: bool) -> Outcome<Measured> {
        let Size { name, rows, d, .. } = Size::new(size)?;
        if size > 2 {
            return Err(
                format!("the driver makes its rows in memory, which {name} has too many for; take 0 to 2").into()
            );
        }
        let variant = if count_only { "fetch-by-similarity, count" } else { "fetch-by-similarity, payloads" };
        let mut out = Measured::new(self, variant, name);
        self.empty()?;
        let (data, io) = (self.folder.join("datasets").join(name), self.folder.join("io").join(name));
        let mut random = Random(size as u64 + 1);
        let centres: Vec<Vec<f64>> = (0..rows / 32).map(|_| random.direction(d)).collect();
        let near = |random: &mut Random| {
            let (centre, away) = (random.index(centres.len()), random.direction(d));
            normalised(centres[centre].iter().zip(away).map(|(c, a)| c + 0.3 * a).collect())
        };
        let mut table: Vec<f32> = Vec::with_capacity(rows * d);
        for _ in 0..rows {
            let row = if random.chance(50) { near(&mut random) } else { random.direction(d) };
            table.extend(row.into_iter().map(|x| x as f32));
        }
        let payloads: Vec<i16> = (0..7 * rows).map(|_| random.below(512) as i16).collect();
        write(&data.join("db.bin"), &bytes_of(table.iter().copied()))?;
        write(&data.join("payloads.bin"), &payloads.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;

        let number = size.to_string();
        let arguments: Vec<&str> = [number.as_str()].into_iter().chain(count_only.then_some("--count_only")).collect();
        let resident = Resident(io.join("server.socket"));
        let once = [
            "client_preprocess_dataset",
            "client_key_generation",
            "client_encode_encrypt_db",
            "server_preprocess_dataset",
        ];
        for step in once {
            self.step("sudare-fetch", step, &arguments, &mut out)?;
        }
        out.bytes.insert("keys", size_of(&io.join("keys")));
        out.bytes.insert("table", size_of(&io.join("ciphertexts_upload")));
        for run in 0..self.runs {
            let query = if run + 1 < self.runs || self.runs == 1 { near(&mut random) } else { random.direction(d) };
            let query: Vec<f32> = query.into_iter().map(|x| x as f32).collect();
            write(&data.join("query.bin"), &bytes_of(query.iter().copied()))?;
            let each = [
                "client_preprocess_query",
                "client_encode_encrypt_query",
                "server_encrypted_compute",
                "client_decrypt_decode",
                "client_postprocess",
            ];
            for step in each {
                self.step("sudare-fetch", step, &arguments, &mut out)?;
            }
            let matching = |row: &[f32]| row.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>() > 0.8;
            let found = table.chunks(d).enumerate().filter(|(_, row)| matching(row)).map(|(i, _)| i);
            let mut expected: Vec<&[i16]> = found.map(|i| &payloads[7 * i..7 * (i + 1)]).collect();
            expected.sort_unstable();
            let expected = match count_only {
                true => (expected.len() as i64).to_le_bytes().to_vec(),
                false => expected.concat().iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            if fs::read(io.join("results.bin"))? != expected {
                out.check = format!("run {run} answered wrongly");
            }
        }
        out.bytes.insert("query", size_of(&io.join("ciphertexts_upload/query.bin")));
        out.bytes.insert("answer", size_of(&io.join("ciphertexts_download/results.bin")));
        drop(resident);
        self.ended(&io, out)
    }

    /// Zn-multiplication of 1, 1,000, 100,000 or 10,000,000 pairs, edges among them.
    ///
    /// # Errors
    /// A step that fails.
    pub fn zn(&self, size: usize) -> Outcome<Measured> {
        const ALL: [(&str, usize); 4] = [("single", 1), ("small", 1_000), ("medium", 100_000), ("large", 10_000_000)];
        let (name, count) = *ALL.get(size).ok_or("sizes are 0 to 3")?;
        let mut out = Measured::new(self, "Zn-multiplication", name);
        self.empty()?;
        let (data, io) = (self.folder.join("datasets").join(name), self.folder.join("io").join(name));
        let mut random = Random(size as u64 + 77);
        let sides = [0, 1].map(|_| random.edges(u64::MAX, count));
        for (side, words) in ["lhs", "rhs"].iter().zip(&sides) {
            let text: String = words.iter().map(|x| format!("{x}\n")).collect();
            write(&data.join(format!("{side}.txt")), text.as_bytes())?;
        }
        let number = count.to_string();
        self.step("sudare-zn", "client_preprocess_input", &[&number], &mut out)?;
        for step in ["client_key_generation", "client_encode_encrypt_input"] {
            self.step("sudare-zn", step, &[name], &mut out)?;
        }
        for _ in 0..self.runs {
            for step in ["server_encrypted_compute", "client_decrypt_decode", "client_postprocess"] {
                self.step("sudare-zn", step, &[name, &number], &mut out)?;
            }
            let expected: String =
                sides[0].iter().zip(&sides[1]).map(|(a, b)| format!("{}\n", a.wrapping_mul(*b))).collect();
            if fs::read(io.join("cleartext_output/out.txt"))? != expected.as_bytes() {
                out.check = "a product is wrong".into();
            }
        }
        self.folders(&io, &mut out);
        self.ended(&io, out)
    }
    /// ml-inference, MNIST, of 1, 100, 1,000 or 10,000 images, which come again and again where there are fewer: labels are those of the network in
    /// the clear wherever its two best scores are not closer than errors, and of test images nine tenths are right.
    ///
    /// # Errors
    /// A step that fails; a file of images that is none.
    pub fn mnist(&self, size: usize) -> Outcome<Measured> {
        const ALL: [(&str, usize); 4] = [("single", 1), ("small", 100), ("medium", 1_000), ("large", 10_000)];
        /// Scores of the best labels that errors may turn round are closer than this.
        const CLOSE: f64 = 0.02;
        let (name, count) = *ALL.get(size).ok_or("sizes are 0 to 3")?;
        let mut out = Measured::new(self, "ml-inference, MNIST", name);
        self.empty()?;
        let (data, io) = (self.folder.join("datasets").join(name), self.folder.join("io").join(name));
        let network = Network::new()?;
        let mut random = Random(size as u64 + 7);
        let known = match &self.images {
            Some(path) => mnist::test_images(path)?,
            None => Vec::new(),
        };
        let number = size.to_string();
        for step in ["client_key_generation", "server_preprocess_model"] {
            let arguments: &[&str] = if step.starts_with("client") { &[&number] } else { &[] };
            self.step("sudare-mnist", step, arguments, &mut out)?;
        }
        let (mut right, mut seen) = (0, 0);
        for run in 0..self.runs {
            let images: Vec<(Vec<f64>, Option<usize>)> = (0..count)
                .map(|i| match known.get((run * count + i) % known.len().max(1)) {
                    Some((image, label)) => (image.clone(), Some(*label)),
                    None => (mnist::random_image(&mut || random.fraction()), None),
                })
                .collect();
            let line = |image: &[f64]| image.iter().map(|x| format!("{x:.6}")).collect::<Vec<_>>().join(" ");
            let text: String = images.iter().map(|(image, _)| line(image) + "\n").collect();
            write(&data.join("intermediate").join("test_pixels.txt"), text.as_bytes())?;
            let each = [
                "client_preprocess_input",
                "client_encode_encrypt_input",
                "server_encrypted_compute",
                "client_decrypt_decode",
                "client_postprocess",
            ];
            for step in each {
                self.step("sudare-mnist", step, &[&number], &mut out)?;
            }
            let text = fs::read_to_string(io.join("encrypted_model_predictions.txt"))?;
            let labels = text.lines().map(str::parse).collect::<Result<Vec<usize>, _>>()?;
            if labels.len() != count {
                out.check = format!("{} labels for {count} images", labels.len());
            }
            for (label, (image, wanted)) in labels.iter().zip(&images) {
                let scores = network.scores(image);
                let best = scores.iter().copied().fold(f64::MIN, f64::max);
                if scores.get(*label).is_none_or(|score| best - score > CLOSE) {
                    out.check = format!("run {run} has a label that is not the network's");
                }
                seen += usize::from(wanted.is_some());
                right += usize::from(*wanted == Some(*label));
            }
        }
        if seen > 0 {
            let share = right as f64 / seen as f64;
            out.right = Some(share);
            if share < 0.9 {
                out.check = format!("{right} of {seen} labels are right, where nine tenths are asked for");
            }
        }
        self.folders(&io, &mut out);
        self.ended(&io, out)
    }

    /// Transciphering of 1, 16, 256 or 4,096 blocks, and the largest of their words.
    ///
    /// # Errors
    /// A step that fails.
    pub fn transcipher(&self, size: usize) -> Outcome<Measured> {
        const ALL: [(&str, usize); 4] = [("toy", 1), ("small", 16), ("medium", 256), ("large", 4_096)];
        let (name, blocks) = *ALL.get(size).ok_or("sizes are 0 to 3")?;
        let mut out = Measured::new(self, "transciphering AES-128, maximum", name);
        self.empty()?;
        let (data, io) = (self.folder.join("datasets").join(name), self.folder.join("io").join(name));
        let mut random = Random(size as u64 + 31);
        let mut any = || -> Bytes { std::array::from_fn(|_| random.below(256) as u8) };
        let (key, iv, plain) = (any(), any(), (0..blocks).map(|_| any()).collect::<Vec<_>>());
        let cipher = Cipher::encryption();
        let keys = cipher.round_keys(key);
        let encrypted = plain.iter().zip(0u128..).flat_map(|(block, j)| match name {
            "toy" => cipher.apply(*block, &keys),
            _ => {
                let stream = cipher.apply(u128::from_be_bytes(iv).wrapping_add(j).to_be_bytes(), &keys);
                std::array::from_fn(|k| block[k] ^ stream[k])
            }
        });
        let hex = |bytes: &[u8]| bytes.iter().map(|x| format!("{x:02x}")).collect::<String>();
        write(&data.join("db.hex"), hex(&encrypted.collect::<Vec<u8>>()).as_bytes())?;
        write(&data.join("aes_key.hex"), hex(&key).as_bytes())?;
        if name != "toy" {
            write(&data.join("aes_iv.hex"), hex(&iv).as_bytes())?;
        }
        for step in ["client_preprocess", "client_key_generation", "client_encode_encrypt", "server_preprocess_dataset"]
        {
            self.step("sudare-transcipher", step, &[name], &mut out)?;
        }
        let words: Vec<u16> =
            plain.iter().flat_map(|block| block.as_chunks::<2>().0).map(|w| u16::from_be_bytes(*w)).collect();
        for run in 0..self.runs {
            let each = [
                "server_encrypted_aes_decryption",
                "server_encrypted_compute",
                "client_decrypt_decode_aes_decryption",
                "client_postprocess_aes_decryption",
                "client_decrypt_decode",
                "client_postprocess",
            ];
            for step in each {
                self.step("sudare-transcipher", step, &[name], &mut out)?;
            }
            let lines = |words: &[u16]| words.iter().map(|x| format!("{x}\n")).collect::<String>();
            let largest: Vec<u16> = words.iter().copied().max().into_iter().collect();
            for (file, wanted) in [("result_aes.txt", &words), ("result.txt", &largest)] {
                if fs::read_to_string(io.join(file))? != lines(wanted) {
                    out.check = format!("run {run}: {file} is wrong");
                }
            }
        }
        out.bytes.insert("words", size_of(&io.join("ciphertext_aes_download")));
        self.folders(&io, &mut out);
        self.ended(&io, out)
    }

    /// Bytes of the folders that most harnesses measure.
    fn folders(&self, io: &Path, out: &mut Measured) {
        for (what, folder) in
            [("keys", "public_keys"), ("upload", "ciphertexts_upload"), ("answer", "ciphertexts_download")]
        {
            out.bytes.insert(what, size_of(&io.join(folder)));
        }
    }

    /// With what the steps reported and their memory; nothing is left on the disk.
    fn ended(&self, io: &Path, mut out: Measured) -> Outcome<Measured> {
        let text = fs::read_to_string(io.join("server_reported_steps.json")).unwrap_or_default();
        out.reported = serde_json::from_str(&text).unwrap_or_default();
        let text = fs::read_to_string(self.folder.join("peak")).unwrap_or_default();
        for line in text.lines() {
            let [step, kilobytes, seconds] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
            let megabytes = kilobytes.parse::<f64>().unwrap_or(0.0) / 1024.0;
            let most = out.peak_mb.entry(step.into()).or_default();
            *most = most.max(megabytes);
            out.cpu.entry(step.into()).or_default().push(seconds.parse().unwrap_or(0.0));
        }
        // A process that stays says each time what it took since it began.
        if let Some(all) = out.cpu.get_mut("server_resident") {
            (1..all.len()).rev().for_each(|i| all[i] -= all[i - 1]);
        }
        fs::remove_dir_all(&self.folder)?;
        Ok(out)
    }
}
