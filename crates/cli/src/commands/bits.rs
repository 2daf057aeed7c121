//! `sudare bits`: encrypted integers and booleans. A file is two objects one after the other: the parameters, and what
//! is under them, as Python's `save` writes it.

use super::bits_args::{self as args, KEY_FILES};
use super::client::warn_if_others_read;
use super::{bytes, say};
use crate::args::Args;
use crate::csv_file::Names;
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output, Whole};
use crate::matrices::{self, Array, Numbers};
use std::io::Write;
use std::path::Path;
use sudare_expr::Matrix;
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe::wire::peek;
use sudare_tfhe::array::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray};
use sudare_tfhe::wire::{self, tfhe_params_from_bytes, tfhe_params_to_bytes};
use sudare_tfhe::{ClientKey, ServerKey, TfheError, TfheLiteral, TfheParams};
use zeroize::Zeroizing;

/// Most bytes of a key or an array.
const MAX_OBJECT: u64 = 16 << 30;
const MAX_SECRET: u64 = 1 << 20;

pub fn run(all: &Args, command: &args::Bits) -> Result<(), CliError> {
    match command {
        args::Bits::Keygen(a) => keygen(all, a),
        args::Bits::Encrypt(a) => encrypt(all, a),
        args::Bits::Run(a) => compute(all, a),
        args::Bits::Decrypt(a) => decrypt(all, a),
    }
}

/// What the command line names; a name that there is not is wrong use.
fn named<T: std::str::FromStr<Err = TfheError>>(name: &str) -> Result<T, CliError> {
    name.parse().map_err(|e: TfheError| CliError::new(ErrorKind::Usage, e.to_string()))
}

/// The parameters that a file begins with, and the rest.
fn parted(bytes: &[u8]) -> Result<(TfheParams, &[u8]), CliError> {
    let length = usize::try_from(peek(bytes)?.total_bytes()).unwrap_or(usize::MAX);
    let Some((params, rest)) = bytes.split_at_checked(length) else {
        return Err(CliError::new(ErrorKind::Format, "the file ends within its parameters; copy it again"));
    };
    Ok((tfhe_params_from_bytes(params)?.build()?, rest))
}

fn keygen(all: &Args, a: &args::Keygen) -> Result<(), CliError> {
    let literal: TfheLiteral = named(&a.parameters)?;
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let [secret_path, eval_path] = KEY_FILES.map(|name| a.output.join(name));
    let params = literal.build()?;
    let key = ClientKey::generate(&params)?;
    let server = Threads::new(all.threads).run(|| key.server_key())?;

    let stored = tfhe_params_to_bytes(&params)?;
    let mut secret = Output::create(&secret_path, Access::Key)?;
    secret.write_secret(&stored)?;
    secret.write_secret(&wire::tfhe_client_key_to_bytes(&key)?)?;
    let mut eval = Output::create(&eval_path, Access::Usual)?;
    eval.write_all(&stored).in_file(&eval_path)?;
    wire::write_tfhe_server_key(&server, &mut eval).in_file(&eval_path)?;
    let whole = [secret.finish()?, eval.finish()?];
    let notes = ["keep it to yourself: it decrypts everything", "for the server: computes, and reads nothing"];
    let lines: Vec<String> = whole
        .iter()
        .zip(notes)
        .map(|(w, note)| format!("{:<28} {:>9}   {note}", w.path().display().to_string(), bytes(w.size())))
        .collect();
    say(all, format!("{}\nkey {}", lines.join("\n"), key.id()))?;
    files::place(whole.into(), all.existing())
}

fn secret_key(path: &Path) -> Result<(TfheParams, ClientKey), CliError> {
    warn_if_others_read(path)?;
    let bytes: Zeroizing<Vec<u8>> = files::read_secret(path, MAX_SECRET)?;
    let (params, rest) = parted(&bytes).in_file(path)?;
    let key = wire::tfhe_client_key_from_bytes(&params, rest).in_file(path)?;
    Ok((params, key))
}

fn array(params: &TfheParams, path: &Path) -> Result<EncryptedArray, CliError> {
    let bytes = files::read(path, MAX_OBJECT)?;
    let (own, rest) = parted(&bytes).in_file(path)?;
    if own.hash() != params.hash() {
        return Err(CliError::new(
            ErrorKind::Mismatch,
            "the array is under other parameters than the key; encrypt it with this key",
        )
        .in_file(path));
    }
    wire::tfhe_array_from_bytes(params, rest).in_file(path)
}

fn store(all: &Args, params: &TfheParams, array: &EncryptedArray, path: &Path) -> Result<(), CliError> {
    let mut out = Output::create(path, Access::Usual)?;
    out.write_all(&tfhe_params_to_bytes(params)?).in_file(path)?;
    out.write_all(&wire::tfhe_array_to_bytes(params, array)?).in_file(path)?;
    let whole: Whole = out.finish()?;
    let shape: Vec<String> = array.shape().iter().map(usize::to_string).collect();
    let text = format!("encrypted {} {}, key {}", array.element(), shape.join("×"), array.owner().1);
    say(all, format!("{}  {}  {text}", path.display(), bytes(whole.size())))?;
    whole.put(all.existing())
}

/// An integer as two's complement, if the type has it.
fn word(element: ElementType, x: i128) -> Option<u64> {
    let (low, high) = match element {
        ElementType::Bool => (0, 1),
        ElementType::Integer(kind) => {
            let (bits, signed) = (kind.bits(), kind.signed());
            let low = if signed { -(1i128 << (bits - 1)) } else { 0 };
            (low, (1i128 << (bits - u32::from(signed))) - 1)
        }
    };
    (low..=high).contains(&x).then_some(x as u64)
}

fn encrypt(all: &Args, a: &args::Encrypt) -> Result<(), CliError> {
    let element: ElementType = named(&a.dtype)?;
    let (params, key) = secret_key(&a.keys)?;
    let (Array { shape, data }, _) = matrices::array::<i128>(&a.array, &a.csv)?;
    // The place alone: what stands there is the owner's, and messages travel.
    let refused = |at: usize| {
        let message = format!("element {at}, counted from 0, does not fit {element}; name another --dtype");
        CliError::new(ErrorKind::Input, message).in_file(&a.array)
    };
    let words = data.iter().enumerate().map(|(at, x)| word(element, *x).ok_or_else(|| refused(at)));
    let words: Result<Vec<u64>, _> = words.collect();
    let words = words?;
    let made = Threads::new(all.threads).run(|| key.encrypt_array(element, shape, &words))?;
    store(all, &params, &made, &a.output)
}

fn decrypt(all: &Args, a: &args::Decrypt) -> Result<(), CliError> {
    matrices::check_output(&a.output)?;
    let (params, key) = secret_key(&a.keys)?;
    let value = array(&params, &a.array)?;
    let words = Threads::new(all.threads).run(|| key.decrypt_array(&value)).in_file(&a.array)?;
    let number = |w: u64| match value.element() {
        ElementType::Integer(kind) if kind.signed() => {
            // The type's sign, at whatever length the word has it.
            let unused = 64 - kind.bits();
            i128::from(((w << unused) as i64) >> unused)
        }
        _ => i128::from(w),
    };
    let (rows, cols) = match value.shape() {
        [] => (1, 1),
        [n] => (*n, 1),
        [rows, cols] => (*rows, *cols),
        other => {
            let message = format!("an array of {} axes is not a matrix; decrypt it in Python", other.len());
            return Err(CliError::new(ErrorKind::Input, message).in_file(&a.array));
        }
    };
    let found = Matrix::<i128>::new(rows, cols, words.into_iter().map(number).collect())?;
    let whole = matrices::write(&a.output, &Numbers::Integers(vec![found]), &Names::default(), &a.csv)?;
    say(all, format!("{}  {}  {rows}×{cols}", a.output.display(), bytes(whole.size())))?;
    whole.put(all.existing())
}

fn compute(all: &Args, a: &args::Run) -> Result<(), CliError> {
    let stored = files::read(&a.keys, MAX_OBJECT)?;
    let (params, rest) = parted(&stored).in_file(&a.keys)?;
    let threads = Threads::new(all.threads);
    let server: ServerKey = threads.run(|| wire::tfhe_server_key_from_bytes(&params, rest)).in_file(&a.keys)?;
    drop(stored);
    let left = array(&params, Path::new(&a.left))?;
    let done = threads.run(|| {
        let evaluator = server.arrays()?;
        operate(&*evaluator, &params, a, &left)
    })?;
    store(all, &params, &done, &a.output)
}

fn operate(
    evaluator: &dyn ArrayEvaluator,
    params: &TfheParams,
    a: &args::Run,
    left: &EncryptedArray,
) -> Result<EncryptedArray, CliError> {
    let usage = |message: String| Err(CliError::new(ErrorKind::Usage, message));
    match (a.operation.as_str(), &a.right) {
        ("invert", None) => Ok(evaluator.inverted(left)?),
        ("negative", None) => Ok(evaluator.negative(left)?),
        ("settle", None) => Ok(evaluator.settled(left)?),
        ("invert" | "negative" | "settle", Some(_)) => {
            usage(format!("{} takes one array; leave the second out", a.operation))
        }
        (name, None) => usage(format!("{name} takes two arrays, or an array and an integer; give the second")),
        (name, Some(right)) => {
            let operation: Elementwise = named(name)?;
            let right = match right.parse::<i128>() {
                Ok(number) => public(evaluator, left, number)?,
                Err(_) => array(params, Path::new(right))?,
            };
            if right.shape() != left.shape() {
                let message =
                    format!("shapes {:?} and {:?} differ; encrypt arrays of one shape", left.shape(), right.shape());
                return Err(CliError::new(ErrorKind::Input, message));
            }
            Ok(evaluator.elementwise(operation, left, &right)?)
        }
    }
}

/// An integer that everybody knows, in each element of an array like another.
fn public(evaluator: &dyn ArrayEvaluator, like: &EncryptedArray, number: i128) -> Result<EncryptedArray, CliError> {
    let Some(word) = word(like.element(), number) else {
        return Err(CliError::new(
            ErrorKind::Usage,
            format!("{number} does not fit {}; give another number", like.element()),
        ));
    };
    Ok(evaluator.public_array(like.element(), like.shape().to_vec(), &vec![word; like.len()])?)
}
