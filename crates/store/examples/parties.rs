//! Three hospitals, each a process of its own, test which features tell malignant from benign tumours. Any two can decrypt, none alone.
//!
//! `make demo-parties`, or `cargo run -p sudare-store --example parties -- TABLE`, where TABLE is scikit-learn's breast cancer table
//! (a line of names, then 30 features and the class in each row). Messages are files of one shared folder. One hospital is killed twice on
//! the way and started again; asked for a second answer about one ciphertext, it refuses. Sums are all that a t-test takes, so no
//! evaluation keys are made.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use sudare_he::ckks::multiparty::SharedDecryption;
use sudare_he::ckks::noise::TAIL;
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Encryptor, Evaluator, Expected, Params, ParamsLiteral};
use sudare_ring::random::MaskSeed;
use sudare_rlwe::keys::{EvalKeys, PublicKey};
use sudare_rlwe::multiparty::{DecryptionShare, Party, PrivateShare, PublicKeyShare, Session, public_key};
use sudare_rlwe::params::ParamsLiteral as Ring;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::Wire;
use sudare_store::atomic::{self, Access, Durability, Over};
use sudare_store::{PartyLedger, StoreError};

type Done<T> = Result<T, Box<dyn Error>>;

const HOSPITALS: u32 = 3;
const THRESHOLD: u32 = 2;
const FEATURES: usize = 30;
/// Of a class its count, and two sums of each feature.
const SUMS: usize = 1 + 2 * FEATURES;
/// Slots that repeat: room for the sums of both classes.
const PERIOD: usize = 256;
/// More than there are rows: what sums are divided by.
const ROWS: f64 = 1024.0;
/// log2 of the scale: bits of a sum above the noise of its release.
const LOG_SCALE: f64 = 85.0;
const PATIENCE: Duration = Duration::from_secs(120);

fn params() -> Done<Params> {
    let rlwe = Ring {
        log_n: 13,
        q_bits: vec![60, 60],
        p_bits: vec![],
        digit_limbs: 1,
        secret: SecretDistribution::TernarySum { parties: HOSPITALS },
        security: Security::Bits128,
    };
    Ok(ParamsLiteral { rlwe, log_scale: LOG_SCALE as u32 }.build()?)
}

/// What two hospitals are asked: ten results may be shown in all, at 30 bits of statistical security.
fn opening(session: &Session, sum: &Ciphertext, active: &[u32]) -> Done<SharedDecryption> {
    // A sum of three fresh ciphertexts, as everybody knows: nothing of it is read off the file. What depends on keys is the errors of
    // encryption alone; that numbers were rounded when they were encoded does not.
    let params = sum.params();
    let error = f64::from(HOSPITALS) * params.sketch().public_encryption().bound(&TAIL) / LOG_SCALE.exp2();
    let expected = Expected { level: params.max_level(), scale: LOG_SCALE.exp2(), error };
    Ok(SharedDecryption::new(
        session,
        sum,
        (&expected, f64::from(HOSPITALS)),
        active,
        ReleasePolicy::new(10, 30)?,
        PERIOD,
    )?)
}

fn encrypt(params: &Params, public: &PublicKey, sums: &[f64]) -> Done<Ciphertext> {
    let repeated: Vec<f64> = (0..params.slots()).map(|i| sums.get(i % PERIOD).map_or(0.0, |x| x / ROWS)).collect();
    let at = EncodeAt { level: params.max_level(), scale: params.scale(), max_abs: 1.0 };
    let plain = Encoder::new(params).encode_at(&repeated, at)?;
    Ok(Encryptor::with_public_key(public)?.encrypt(&plain)?)
}

/// A row: its features, and whether the tumour is benign.
type Row = (Vec<f64>, bool);

fn table(path: &Path) -> Done<Vec<Row>> {
    let row = |line: &str| -> Done<Row> {
        let numbers = line.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let features = numbers.get(..FEATURES).ok_or("a row of fewer than 30 features")?;
        Ok((features.to_vec(), numbers.last() == Some(&1.0)))
    };
    fs::read_to_string(path)?.lines().skip(1).map(row).collect()
}

/// Bounds of the features, which everybody knows beforehand: powers of two above anything measured.
fn bounds(rows: &[Row]) -> Vec<f64> {
    let largest = |j: usize| rows.iter().fold(1e-3, |most: f64, (row, _)| most.max(row[j]));
    (0..FEATURES).map(|j| largest(j).log2().ceil().exp2()).collect()
}

/// Of malignant rows, then of benign ones: their count, then Σx and Σx² of each feature in units of its bound.
fn sums<'a>(rows: impl Iterator<Item = &'a Row>, bounds: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; 2 * SUMS];
    for (row, benign) in rows {
        let class = &mut out[usize::from(*benign) * SUMS..][..SUMS];
        class[0] += 1.0;
        for (j, (x, bound)) in row.iter().zip(bounds).enumerate() {
            class[1 + 2 * j] += x / bound;
            class[2 + 2 * j] += (x / bound).powi(2);
        }
    }
    out
}

/// Welch's t of each feature.
fn welch(sums: &[f64]) -> Vec<f64> {
    let (malignant, benign) = sums.split_at(SUMS);
    // The mean of a class, and the variance of that mean.
    let of = |class: &[f64], j: usize| {
        let (n, mean) = (class[0], class[1 + 2 * j] / class[0]);
        (mean, (class[2 + 2 * j] / n - mean * mean) / (n - 1.0))
    };
    let t = |j: usize| {
        let ((a, va), (b, vb)) = (of(malignant, j), of(benign, j));
        (a - b) / (va + vb).sqrt()
    };
    (0..FEATURES).map(t).collect()
}

fn put(path: &Path, bytes: &[u8], access: Access) -> Done<()> {
    Ok(atomic::write(path, &[bytes], access, Over::NoKey, Durability::Power)?)
}

/// The bytes of a file, once it is there; files appear whole.
fn wait(path: &Path) -> Done<Vec<u8>> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Ok(bytes) = fs::read(path) {
            return Ok(bytes);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err(format!("{} did not come", path.display()).into())
}

/// The folder that all see, and those that one hospital alone may open.
struct Folders(PathBuf);

impl Folders {
    fn shared(&self, name: &str) -> PathBuf {
        self.0.join("shared").join(name)
    }

    fn own(&self, hospital: u32, name: &str) -> PathBuf {
        self.0.join(format!("hospital-{hospital}")).join(name)
    }

    /// The public key, from all shares of it.
    fn public(&self, session: &Session) -> Done<PublicKey> {
        let mut collector = public_key(session);
        for i in 0..HOSPITALS {
            let bytes = wait(&self.shared(&format!("public-key-{i}")))?;
            collector.add(&PublicKeyShare::receive(session, i, &bytes)?)?;
        }
        Ok(collector.public_key()?)
    }

    fn sums(&self, params: &Params, hospital: u32) -> Done<Ciphertext> {
        Ok(Ciphertext::from_bytes(params, &wait(&self.shared(&format!("sums-{hospital}")))?)?)
    }
}

/// One hospital. It may be killed at any moment: it goes on from what it finds in its files.
fn hospital(i: u32, folders: &Folders, path: &Path) -> Done<()> {
    let params = params()?;
    let session = Session::from_bytes(&params, &wait(&folders.shared("session"))?)?;
    let (key, books) = (folders.own(i, "secrets"), folders.own(i, "ledger"));
    let mut party = match fs::read(&key) {
        Ok(bytes) => Party::from_bytes(&session, &bytes)?,
        Err(_) => {
            let party = Party::generate(&session, i)?;
            put(&key, &party.to_bytes()?, Access::Owner)?;
            party
        }
    };
    let mut ledger = match PartyLedger::open(&books, session.id(), i) {
        Err(StoreError::NotAStore { .. }) => PartyLedger::create(&books, session.id(), i)?,
        opened => opened?,
    };
    let said = folders.shared(&format!("public-key-{i}"));
    if !said.exists() {
        put(&said, &party.public_key_share().to_bytes()?, Access::Usual)?;
    }
    if !party.can_decrypt() {
        // Private channels: here files that their receivers alone may read.
        for share in party.private_shares() {
            let to = folders.own(share.to(), &format!("from-{i}"));
            if !to.exists() {
                put(&to, &share.to_bytes()?, Access::Owner)?;
            }
        }
        let receive = |from| -> Done<PrivateShare> {
            let bytes = wait(&folders.own(i, &format!("from-{from}")))?;
            Ok(PrivateShare::receive(&session, from, &bytes)?)
        };
        party.add_private_shares(&(0..HOSPITALS).map(receive).collect::<Done<Vec<_>>>()?)?;
        atomic::write(&key, &[&party.to_bytes()?], Access::Owner, Over::All, Durability::Power)?;
    }
    let said = folders.shared(&format!("sums-{i}"));
    if !said.exists() {
        let (rows, public) = (table(path)?, folders.public(&session)?);
        let mine = rows.iter().skip(i as usize).step_by(HOSPITALS as usize);
        put(&said, &encrypt(&params, &public, &sums(mine, &bounds(&rows)))?.to_bytes()?, Access::Usual)?;
    }
    // Questions name the hospitals that are asked; one to nobody is the last.
    for number in 0.. {
        let question = wait(&folders.shared(&format!("question-{number}")))?;
        let active: Vec<u32> = question.iter().map(|hospital| u32::from(*hospital)).collect();
        let answer = folders.shared(&format!("answer-{number}-{i}"));
        if active.is_empty() {
            break;
        }
        if active.contains(&i) && !answer.exists() {
            let sum = Ciphertext::from_bytes(&params, &wait(&folders.shared("sum"))?)?;
            let said = match opening(&session, &sum, &active)?.share(&party, &mut ledger) {
                Ok(share) => share.to_bytes()?,
                Err(refusal) => refusal.to_string().into_bytes(),
            };
            put(&answer, &said, Access::Usual)?;
        }
    }
    Ok(())
}

fn start(i: u32, folders: &Folders, table: &Path) -> Done<Child> {
    let program = env::current_exe()?;
    Ok(Command::new(program).arg("hospital").arg(i.to_string()).arg(&folders.0).arg(table).spawn()?)
}

/// Whoever carries messages and adds ciphertexts: it holds no secret.
fn coordinate(folders: &Folders, path: &Path) -> Done<()> {
    let params = params()?;
    let session = Session::new(&params, THRESHOLD, MaskSeed::from_entropy()?)?;
    fs::create_dir_all(folders.shared(""))?;
    (0..HOSPITALS).try_for_each(|i| fs::create_dir_all(folders.own(i, "")))?;
    put(&folders.shared("session"), &session.to_bytes()?, Access::Usual)?;
    let mut hospitals = (0..HOSPITALS).map(|i| start(i, folders, path)).collect::<Done<Vec<_>>>()?;
    let again = |hospital: &mut Child, when: &str| -> Done<()> {
        hospital.kill()?;
        hospital.wait()?;
        println!("hospital 2 is killed {when}, and starts again from its files");
        *hospital = start(2, folders, path)?;
        Ok(())
    };
    wait(&folders.shared("public-key-2"))?;
    again(&mut hospitals[2], "while keys are made")?;

    let all = (0..HOSPITALS).map(|i| folders.sums(&params, i)).collect::<Done<Vec<_>>>()?;
    let server = Evaluator::new(&params, EvalKeys::new(&params, session.key()))?;
    let sum = server.add(&server.add(&all[0], &all[1])?, &all[2])?;
    put(&folders.shared("sum"), &sum.to_bytes()?, Access::Usual)?;

    // Hospitals 0 and 2 decrypt; 1 is not asked.
    put(&folders.shared("question-0"), &[0, 2], Access::Usual)?;
    again(&mut hospitals[2], "while it is asked for its share")?;
    let opened = opening(&session, &sum, &[0, 2])?;
    let share = |i: u32| -> Done<DecryptionShare> {
        let bytes = wait(&folders.shared(&format!("answer-0-{i}")))?;
        Ok(DecryptionShare::receive(&session, i, &bytes)?)
    };
    let shares = [share(0)?, share(2)?];
    println!("their shares of the decryption have {} and {} bytes", shares[0].wire_bytes()?, shares[1].wire_bytes()?);
    let shown = Encoder::new(&params).decode(&opened.combine(&shares)?)?;
    let shown: Vec<f64> = shown.iter().take(2 * SUMS).map(|x| x * ROWS).collect();

    // Another set for the same ciphertext.
    put(&folders.shared("question-1"), &[1, 2], Access::Usual)?;
    let refusal = wait(&folders.shared("answer-1-2"))?;
    println!("asked again, with hospital 1, hospital 2 says: {}", String::from_utf8_lossy(&refusal));
    put(&folders.shared("question-2"), &[], Access::Usual)?;
    for (i, hospital) in hospitals.iter_mut().enumerate() {
        if !hospital.wait()?.success() {
            return Err(format!("hospital {i} failed").into());
        }
    }

    let rows = table(path)?;
    let (found, plain) = (welch(&shown), welch(&sums(rows.iter(), &bounds(&rows))));
    let mut order: Vec<usize> = (0..FEATURES).collect();
    order.sort_by(|a, b| found[*b].abs().total_cmp(&found[*a].abs()));
    let counts = [shown[0], shown[SUMS]].map(f64::round);
    println!(
        "Welch's t of {} malignant and {} benign rows, from encrypted sums of three hospitals:",
        counts[0], counts[1]
    );
    for j in order.into_iter().take(5) {
        println!("  feature {j:<2}  t = {:8.3}   in the clear {:8.3}", found[j], plain[j]);
    }
    let off = found.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("largest difference of all 30: {off:.1e}; promised error of a sum: {:.1e}", opened.error_bound() * ROWS);
    if off < 1e-3 { Ok(()) } else { Err("the result is not that in the clear".into()) }
}

fn main() -> Done<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hospital", i, folder, table] => hospital(i.parse()?, &Folders(folder.into()), Path::new(table)),
        [table] => {
            let folder = tempfile::tempdir()?;
            coordinate(&Folders(folder.path().into()), Path::new(table))
        }
        _ => Err("name the table: a line of names, then 30 features and the class in each row".into()),
    }
}
