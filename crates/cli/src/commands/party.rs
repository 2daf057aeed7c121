//! `sudare party`: what those do who hold a key together.

use super::party_args::{Combine, Init, Join, Party, Round, Share};
use super::{bytes, load_plan, remote, say};
use crate::args::Args;
use crate::csv_file::Names;
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output};
use crate::matrices::{self, Numbers};
use std::path::Path;
use sudare_methods::MatrixError;
use sudare_rlwe::wire::Wire;
use sudare_serve::Request as Job;
use sudare_session::Encrypted;
use sudare_session::parties::{Member, Opened, Request, Room, Step};

pub fn run(args: &Args, a: &Party) -> Result<(), CliError> {
    match a {
        Party::Init(a) => init(args, a),
        Party::Join(a) => join(args, a),
        Party::Round(a) => round(args, a),
        Party::Share(a) => share(args, a),
        Party::Combine(a) => combine(args, a),
    }
}

fn init(args: &Args, a: &Init) -> Result<(), CliError> {
    let room = Room::create(a.room.messages()?, &load_plan(&a.plan)?, &a.names).in_file(&a.room.at)?;
    let (session, names) = (room.session(), a.names.join(", "));
    let begun = format!("session {}: {names}, any {} of whom decrypt", session.id(), session.threshold());
    say(args, format!("{begun}\nnext, each of them: sudare party join {} --as NAME --home FOLDER", a.room.at.display()))
}

/// Who is missing, a line for each step.
fn missing(room: &Room) -> Result<String, MatrixError> {
    let line = |step: &str, names: &[String]| format!("{step:<8} waits for {}", names.join(", "));
    let lines: Vec<String> = room.missing()?.iter().map(|m| line(m.step.name(), &m.names)).collect();
    Ok(match lines.is_empty() {
        true => "nobody is missing: keys are made by sudare party combine".into(),
        false => lines.join("\n"),
    })
}

fn join(args: &Args, a: &Join) -> Result<(), CliError> {
    let own = Member::join(a.room.messages()?, &a.name, &a.home, args.threads).in_file(&a.home)?;
    let (room, missing) = (own.room(), own.room().missing().in_file(&a.room.at)?);
    let absent: Vec<&String> = missing.iter().filter(|m| m.step == Step::Join).flat_map(|m| &m.names).collect();
    let receiver = Some(&a.name).filter(|name| room.index(name).is_none());
    let mut lines: Vec<String> = Vec::new();
    for name in room.names().iter().filter(|name| !absent.contains(name)).chain(receiver) {
        lines.push(format!("{name:<12} {}", room.key_of(name).in_file(&a.room.at)?.fingerprint()));
    }
    lines.push("compare these with the others by another way than this one".into());
    say(args, lines.join("\n"))
}

fn round(args: &Args, a: &Round) -> Result<(), CliError> {
    let mut own = Member::open(a.room.messages()?, &a.home, args.threads).in_file(&a.home)?;
    own.round().in_file(&a.room.at)?;
    say(args, missing(own.room()).in_file(&a.room.at)?)
}

fn value(room: &Room, path: &Path) -> Result<Encrypted, CliError> {
    Encrypted::read_from(room.plan(), files::open(path)?).in_file(path)
}

fn share(args: &Args, a: &Share) -> Result<(), CliError> {
    let mut own = Member::open(a.room.messages()?, &a.home, args.threads).in_file(&a.home)?;
    let value = value(own.room(), &a.result)?;
    let asked = (!a.by.is_empty()).then(|| Request { parties: a.by.clone(), receivers: a.to.clone() });
    let Request { parties, receivers } = own.share(&value, asked.as_ref()).in_file(&a.result)?;
    let agreed = format!("{} decrypt it for {}", parties.join(", "), receivers.join(", "));
    let left = own.room().unanswered(&value).in_file(&a.result)?;
    match left.is_empty() {
        true => say(args, format!("{agreed}; all have answered")),
        false => say(args, format!("{agreed}; it waits for {}", left.join(", "))),
    }
}

fn combine(args: &Args, a: &Combine) -> Result<(), CliError> {
    let (Some(result), Some(home)) = (&a.result, &a.home) else { return keys(args, a) };
    matrices::check_output(&a.output)?;
    let own = Member::open(a.room.messages()?, home, args.threads).in_file(home)?;
    let value = value(own.room(), result)?;
    let shown = match own.combine(&value).in_file(result)? {
        Opened::Reals(matrices) => Numbers::Reals(matrices),
        Opened::Integers(matrices) => Numbers::Integers(matrices),
    };
    let whole = matrices::write(&a.output, &shown, &Names::default(), &a.csv)?;
    let ((rows, cols), plan) = (value.shape(), own.room().plan());
    let within = match plan.is_exact() {
        true => "exact".to_owned(),
        false => format!("within {:.1e}", plan.summary().predicted_error),
    };
    say(args, format!("{}  {}  {rows}×{cols}, {within}", a.output.display(), bytes(whole.size())))?;
    whole.put(args.existing())
}

/// The keys to encrypt and to compute by.
fn keys(args: &Args, a: &Combine) -> Result<(), CliError> {
    let (at, name) = (a.room.remote()?, &a.room.at);
    let room = Room::open(a.room.messages()?).in_file(name)?;
    let public = room.public_key().in_file(name)?;
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let [public_path, eval_path] = a.keys();
    let mut first = Output::create(&public_path, Access::Usual)?;
    public.write_to(&mut first).in_file(&public_path)?;
    let mut second = Output::create(&eval_path, Access::Usual)?;
    match at {
        // The server adds what it has: no share of a party travels again.
        Some(at) => {
            let job = Job::Combine { room: at.name().to_owned() };
            let done = remote::result(args, at.remote(), &job, &mut second)?;
            remote::forget(at.remote(), done)?;
        }
        None => room.server_keys().in_file(name)?.write_to(&mut second).in_file(&eval_path)?,
    }
    let all = [first.finish()?, second.finish()?];
    let notes = ["encrypts", "for the server: computes, and reads nothing"];
    let line = |(whole, note): (&files::Whole, &str)| {
        format!("{:<28} {:>9}   {note}", whole.path().display().to_string(), bytes(whole.size()))
    };
    say(args, all.iter().zip(notes).map(line).collect::<Vec<_>>().join("\n"))?;
    files::place(all.into(), args.existing())
}
