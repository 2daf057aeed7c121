//! `sudare keygen`, `encrypt` and `decrypt`: what the data's owner does.

use super::{AnyPlan, any_plan, bytes, model, say, stored};
use crate::args::{self, KEY_FILES};
use crate::csv_file::Names;
use crate::error::{CliError, InFile, tell};
use crate::files::{self, Access, Output};
use crate::key_file::KeyFile;
use crate::matrices::{self, Numbers};
use crate::progress::Bar;
use std::path::{Path, PathBuf};
use sudare_plan::Plan;
use sudare_ring::ErrorKind;
use sudare_rlwe::keys::{PublicKey, SecretKey};
use sudare_rlwe::wire::{ObjectType, Wire, peek, secret_key_from_bytes, secret_key_to_bytes};
use sudare_session::{Client, Encrypted, PublicClient};

/// Most bytes of a secret key's file.
pub const MAX_SECRET_BYTES: u64 = 16 << 20;

pub fn keygen(args: &args::Args, a: &args::Keygen) -> Result<(), CliError> {
    let plan = match any_plan(&a.plan)? {
        AnyPlan::Matrices(plan) => plan,
        AnyPlan::Model(plan) => return model::keygen(args, a, &plan),
    };
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let [secret_path, public_path, eval_path] = KEY_FILES.map(|name| a.output.join(name));
    let client = Client::new(&plan, args.threads)?;
    let bar = Bar::steps("evaluation keys", args.quiet);
    let keys = client.eval_keys_with(&|done, all| bar.set(done, all))?;
    drop(bar);

    // All three are written before the first takes its place, and somebody else's that came meanwhile
    // stay: they are refused there.
    let mut secret = Output::create(&secret_path, Access::Key)?;
    secret.write_secret(&secret_key_to_bytes(client.secret_key())?)?;
    let mut public = Output::create(&public_path, Access::Usual)?;
    client.public_key()?.write_to(&mut public).in_file(&public_path)?;
    let mut eval = Output::create(&eval_path, Access::Usual)?;
    keys.write_to(&mut eval).in_file(&eval_path)?;
    let all = [secret.finish()?, public.finish()?, eval.finish()?];
    let notes =
        ["keep it to yourself: it decrypts everything", "encrypts", "for the server: computes, and reads nothing"];
    let mut lines: Vec<String> = Vec::new();
    for (whole, note) in all.iter().zip(notes) {
        lines.push(format!("{:<28} {:>9}   {note}", whole.path().display().to_string(), bytes(whole.size())));
    }
    lines.push(format!("key {}", client.key_id()));
    say(args, lines.join("\n"))?;
    files::place(all.into(), args.existing())
}

enum Encryptor {
    Secret(Client),
    Public(PublicClient),
}

pub fn encrypt(args: &args::Args, a: &args::Encrypt) -> Result<(), CliError> {
    let plan = match any_plan(&a.plan)? {
        AnyPlan::Matrices(plan) => plan,
        AnyPlan::Model(plan) => return model::encrypt(args, a, &plan),
    };
    if a.columns.is_some() {
        let message = "--columns compares columns of a model's examples, and this is a plan of matrices; leave it out";
        return Err(CliError::new(ErrorKind::Usage, message).in_file(&a.plan));
    }
    let Some(input) = plan.expression().inputs().iter().find(|i| Some(&i.name) == a.name.as_ref()) else {
        let names: Vec<&str> = plan.expression().inputs().iter().map(|i| i.name.as_str()).collect();
        let given = match &a.name {
            Some(name) => format!("--as {name} names no input of the plan"),
            None => "--as NAME is missing".into(),
        };
        return Err(CliError::new(ErrorKind::Usage, format!("{given}; the plan's inputs are {}", names.join(", "))));
    };
    let shape = (input.rows, input.cols);
    let encryptor = match peek(files::open_unbuffered(&a.keys)?).in_file(&a.keys)?.object() {
        ObjectType::SecretKey => Encryptor::Secret(
            Client::with_secret_key(&plan, secret_key(&plan, &a.keys)?, args.threads).in_file(&a.keys)?,
        ),
        _ => {
            let key = PublicKey::read_from(plan.params(), files::open(&a.keys)?).in_file(&a.keys)?;
            Encryptor::Public(PublicClient::new(&plan, key, args.threads).in_file(&a.keys)?)
        }
    };
    let bar = Bar::steps("encrypting", args.quiet);
    let progress = |done, all| bar.set(done, all);
    let reals = || matrices::read(&a.matrix, plan.batch(), shape, &a.csv);
    if a.store {
        let value = match &encryptor {
            Encryptor::Secret(client) => client.encrypt_stored(&input.name, &reals()?, &a.output, &progress),
            Encryptor::Public(client) => client.encrypt_stored(&input.name, &reals()?, &a.output, &progress),
        };
        drop(bar);
        return stored::told(args, &value.in_file(&a.matrix)?);
    }
    let value = if plan.is_exact() {
        let whole = matrices::integers(&a.matrix, plan.batch(), shape, &a.csv)?;
        match &encryptor {
            Encryptor::Secret(client) => client.encrypt_integers_batch(&input.name, &whole, &progress),
            Encryptor::Public(client) => client.encrypt_integers_batch(&input.name, &whole, &progress),
        }
    } else {
        match &encryptor {
            Encryptor::Secret(client) => client.encrypt_batch(&input.name, &reals()?, &progress),
            Encryptor::Public(client) => client.encrypt_batch(&input.name, &reals()?, &progress),
        }
    }
    .in_file(&a.matrix)?;
    drop(bar);
    store(args, &value, &a.output)
}

/// Writes an encrypted matrix and says what it is.
pub fn store(args: &args::Args, value: &Encrypted, path: &Path) -> Result<(), CliError> {
    let mut out = Output::create(path, Access::Usual)?;
    value.write_to(&mut out).in_file(path)?;
    let whole = out.finish()?;
    say(args, format!("{}  {}  {value}", path.display(), bytes(whole.size())))?;
    whole.put(args.existing())
}

/// Warns of a secret key that others on this machine can read.
pub fn warn_if_others_read(path: &Path) -> Result<(), CliError> {
    #[cfg(unix)]
    if !files::is_standard(path) {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).in_file(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            tell(format!("warning: {}: others on this machine can read this key; chmod 600 it", path.display()));
        }
    }
    let _ = path;
    Ok(())
}

fn secret_key(plan: &Plan, path: &Path) -> Result<SecretKey, CliError> {
    warn_if_others_read(path)?;
    let bytes = files::read_secret(path, MAX_SECRET_BYTES)?;
    secret_key_from_bytes(plan.params(), &bytes).in_file(path)
}

/// What the rows and columns of the result are called. Names are not encrypted and no server has them: they come from
/// the files that the inputs came from.
fn result_names(plan: &Plan, a: &args::Decrypt) -> Result<Names, CliError> {
    let expr = plan.expression();
    let (rows, cols) = expr.info(expr.output()).shape;
    let find = |file: &Option<PathBuf>, of: fn(Names) -> Option<Vec<String>>, what: &str, count: usize| {
        let Some(path) = file else { return Ok(None) };
        let found = of(matrices::names(path, &a.csv)?);
        match found {
            Some(names) if names.len() == count => Ok(Some(names)),
            Some(names) => {
                let message = format!("{} names of {what}, and the result has {count}; name another file", names.len());
                Err(CliError::new(ErrorKind::Input, message).in_file(path))
            }
            None => {
                let message = format!("this file has no names of {what}; name another file");
                Err(CliError::new(ErrorKind::Input, message).in_file(path))
            }
        }
    };
    let columns = find(&a.columns, |n| n.columns, "columns", cols)?;
    let mut names = Names { rows: find(&a.rows, |n| n.rows, "rows", rows)?, columns, corner: String::new() };
    // Means first, and the covariances under them.
    if let (Some(columns), None, true) = (&names.columns, &names.rows, expr.as_moments().is_some()) {
        names.rows = Some(["mean".to_string()].into_iter().chain(columns.iter().cloned()).collect());
    }
    Ok(names)
}

pub fn decrypt(args: &args::Args, a: &args::Decrypt) -> Result<(), CliError> {
    matrices::check_output(&a.output)?;
    let plan = match any_plan(&a.plan)? {
        AnyPlan::Matrices(plan) => plan,
        AnyPlan::Model(plan) => return model::decrypt(args, a, &plan),
    };
    if plan.release().is_some() && !a.release && !a.private {
        let message = "this plan declares releases: decrypt with --release what others will see, with --private what \
                       only the owner of the key will";
        return Err(CliError::new(ErrorKind::Release, message).in_file(&a.plan));
    }
    let names = result_names(&plan, a)?;
    // One process at a time counts in the key's file.
    let counted = a.release.then(|| KeyFile::lock(&a.keys)).transpose()?;
    let client = Client::with_secret_key(&plan, secret_key(&plan, &a.keys)?, args.threads).in_file(&a.keys)?;
    let value = match stored::is_store(&a.result) {
        true => stored::load(&plan, &a.result)?,
        false => Encrypted::read_from(&plan, files::open(&a.result)?).in_file(&a.result)?,
    };
    let numbers = match &counted {
        None if plan.is_exact() => Numbers::Integers(client.decrypt_integers_batch(&value).in_file(&a.result)?),
        None => Numbers::Reals(client.decrypt_batch(&value).in_file(&a.result)?),
        Some(file) => {
            let matrix = client.decrypt_batch_for_release(&value).in_file(&a.result)?;
            // Counted before anybody can see it.
            file.save(client.secret_key())?;
            Numbers::Reals(matrix)
        }
    };
    let whole = matrices::write(&a.output, &numbers, &names, &a.csv)?;
    let (rows, cols) = value.shape();
    say(args, format!("{}  {}  {rows}×{cols}", a.output.display(), bytes(whole.size())))?;
    if counted.is_some() {
        let (error, left) = (plan.summary().predicted_error, client.releases_left());
        say(args, format!("released to within {error:.1e}; {left} more under this key"))?;
    }
    whole.put(args.existing())
}
