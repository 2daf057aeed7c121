//! `sudare party`: what those do who hold a key together.

use super::party_args::{Combine, Init, Join, Party, Round, Share, Status};
use super::{bytes, load_plan, remote, say};
use crate::args::Args;
use crate::csv_file::Names;
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output};
use crate::matrices::{self, Numbers};
use std::path::Path;
use std::time::{Duration, Instant};
use sudare_methods::MatrixError;
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::wire::Wire;
use sudare_serve::Request as Job;
use sudare_session::Encrypted;
use sudare_session::parties::{Member, Missing, Opened, Request, Room};

/// Pauses between two looks at the messages: at first, and where nothing has come for long.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

pub fn run(args: &Args, a: &Party) -> Result<(), CliError> {
    match a {
        Party::Init(a) => init(args, a),
        Party::Join(a) => join(args, a),
        Party::Round(a) => round(args, a),
        Party::Status(a) => status(args, a),
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

/// Who is missing.
fn missing(room: &Room) -> Result<String, MatrixError> {
    Ok(shown(&room.missing()?))
}

/// Who is missing, a line for each step.
fn shown(missing: &[Missing]) -> String {
    let line = |m: &Missing| format!("{:<8} waits for {}", m.step.name(), m.names.join(", "));
    match missing.is_empty() {
        true => "nobody is missing: keys are made by sudare party combine".into(),
        false => missing.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

fn join(args: &Args, a: &Join) -> Result<(), CliError> {
    let own = Member::join(a.room.messages()?, &a.name, &a.home, args.threads).in_file(&a.home)?;
    let (mut lines, absent) = joined(own.room()).in_file(&a.room.at)?;
    lines.push(match absent.is_empty() {
        true => "compare these with the others by another way than this one, before the first round".into(),
        false => format!("{} not joined yet; once they have, run this again, and compare", have(&absent)),
    });
    say(args, lines.join("\n"))
}

fn have(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "has" } else { "have" })
}

/// Fingerprints of all who have joined, and the parties that have not.
fn joined(room: &Room) -> Result<(Vec<String>, Vec<String>), MatrixError> {
    let joined = room.joined()?;
    let line = |name: &String| Ok(format!("{name:<12} {}", room.key_of(name)?.fingerprint()));
    let absent = room.names().iter().filter(|name| !joined.contains(name)).cloned().collect();
    Ok((joined.iter().map(line).collect::<Result<_, MatrixError>>()?, absent))
}

/// What there is to see of a session: nothing of it changes.
fn status(args: &Args, a: &Status) -> Result<(), CliError> {
    let at = &a.room.at;
    let room = Room::open(a.room.messages()?).in_file(at)?;
    let session = room.session();
    let mut lines =
        vec![format!("session {}: any {} of {} decrypt", session.id(), session.threshold(), session.parties())];
    let (fingerprints, absent) = joined(&room).in_file(at)?;
    lines.extend(fingerprints);
    lines.extend(absent.iter().map(|name| format!("{name:<12} has not joined")));
    lines.push(missing(&room).in_file(at)?);
    for asked in room.requests().in_file(at)? {
        lines.push(format!("result {}  {}", &asked.result, decrypt(&asked.request, &asked.unanswered)));
    }
    if let Some(home) = &a.home {
        let own = Member::open(a.room.messages()?, home, args.threads).in_file(home)?;
        if let Some(policy) = room.plan().goal().release.filter(|_| room.index(own.name()).is_some()) {
            let left = policy.releases().saturating_sub(own.releases());
            lines.push(format!("{} has {left} of {} releases left", own.name(), policy.releases()));
        }
    }
    say(args, lines.join("\n"))
}

/// Who decrypts a result for whom, and who has not answered.
fn decrypt(request: &Request, unanswered: &[String]) -> String {
    let asked = format!("{} decrypt it for {}", request.parties.join(", "), request.receivers.join(", "));
    match unanswered.is_empty() {
        true => format!("{asked}; all have answered"),
        false => format!("{asked}; it waits for {}", unanswered.join(", ")),
    }
}

fn round(args: &Args, a: &Round) -> Result<(), CliError> {
    let mut own = Member::open(a.room.messages()?, &a.home, args.threads).in_file(&a.home)?;
    let Some(seconds) = a.wait else {
        own.round().in_file(&a.room.at)?;
        return say(args, missing(own.room()).in_file(&a.room.at)?);
    };
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds.into()));
    let (mut pause, mut said) = (PAUSES.0, String::new());
    loop {
        let error = match own.round().and_then(|()| own.room().missing()) {
            Ok(absent) if absent.is_empty() => {
                // Takes over what came since.
                own.round().in_file(&a.room.at)?;
                return say(args, missing(own.room()).in_file(&a.room.at)?);
            }
            Ok(absent) => {
                let lines = shown(&absent);
                if lines != said {
                    say(args, &lines)?;
                    // Somebody is at work.
                    (pause, said) = (PAUSES.0, lines);
                }
                let others = own.room().names().iter().filter(|name| *name != own.name());
                let late = others.filter(|name| absent.iter().any(|missing| missing.names.contains(name)));
                let names = late.map(String::as_str).collect::<Vec<_>>().join(", ");
                CliError::new(
                    ErrorKind::Shape,
                    format!("messages of {names} have not come in {seconds} s; run this again"),
                )
            }
            // A message that has not arrived completely, or a server that starts again.
            Err(error) if matches!(error.kind(), ErrorKind::Format | ErrorKind::Io) => error.into(),
            Err(error) => return Err(error).in_file(&a.room.at),
        };
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(error.in_file(&a.room.at));
        }
        std::thread::sleep(pause.min(left));
        pause = (2 * pause).min(PAUSES.1);
    }
}

fn value(room: &Room, path: &Path) -> Result<Encrypted, CliError> {
    Encrypted::read_from(room.plan(), files::open(path)?).in_file(path)
}

fn share(args: &Args, a: &Share) -> Result<(), CliError> {
    let mut own = Member::open(a.room.messages()?, &a.home, args.threads).in_file(&a.home)?;
    let value = value(own.room(), &a.result)?;
    let request = match a.by.is_empty() {
        true => own.room().asked(&value).in_file(&a.result)?,
        false => Request { parties: a.by.clone(), receivers: a.to.clone() },
    };
    let shown = a.by.is_empty() && !a.agree;
    if !shown {
        own.share(&value, &request).in_file(&a.result)?;
    }
    let asked = decrypt(&request, &own.room().unanswered(&value).in_file(&a.result)?);
    match shown && request.parties.iter().any(|name| name == own.name()) {
        true => say(args, format!("{asked}\nnothing was sent; to answer: --agree, or --by and --to with these names")),
        false => say(args, asked),
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
    let done = match &at {
        // The server adds what it has: no share of a party travels again.
        Some(at) => {
            let job = Job::Combine { room: at.name().to_owned() };
            let done = remote::result(args, at.remote(), &job, &mut second)?;
            Some((at, done))
        }
        None => {
            room.server_keys().in_file(name)?.write_to(&mut second).in_file(&eval_path)?;
            None
        }
    };
    let all = [first.finish()?, second.finish()?];
    let notes = ["encrypts", "for the server: computes, and reads nothing"];
    let line = |(whole, note): (&files::Whole, &str)| {
        format!("{:<28} {:>9}   {note}", whole.path().display().to_string(), bytes(whole.size()))
    };
    say(args, all.iter().zip(notes).map(line).collect::<Vec<_>>().join("\n"))?;
    files::place(all.into(), args.existing())?;
    if let Some((at, done)) = done {
        remote::forget(at.remote(), done);
    }
    Ok(())
}
