//! `sudare token`: who may ask a server, and until when.

use super::print;
use super::serve_args::{AddToken, ListTokens, MAX_TEXT, RemoveToken, Tokens as Arguments};
use crate::error::{CliError, InFile, tell};
use crate::files::{self, Access, Existing, Output};
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;
use sudare_ring::ErrorKind;
use sudare_serve::{Token, Tokens};
use sudare_store::LockedFile;

pub fn run(a: &Arguments) -> Result<(), CliError> {
    match a {
        Arguments::Add(a) => add(a),
        Arguments::List(a) => list(a),
        Arguments::Remove(a) => remove(a),
    }
}

/// The text of a file of tokens.
pub fn text(path: &Path) -> Result<String, CliError> {
    let bytes = files::read(path, MAX_TEXT)?;
    String::from_utf8(bytes)
        .map_err(|_| CliError::new(ErrorKind::Format, "this file of tokens is not text; copy it again").in_file(path))
}

fn add(a: &AddToken) -> Result<(), CliError> {
    let token = Token::new()?;
    let line = token.line(&a.tenant, a.name.as_deref(), a.expires)?;
    if !a.tokens.exists() {
        // Another process may make it meanwhile, and its tokens stay.
        let _ = Output::create(&a.tokens, Access::Owner)?.finish()?.put(Existing::Kept);
    }
    let held = LockedFile::wait(&a.tokens).in_file(&a.tokens)?;
    let before = text(&a.tokens)?;
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let after = format!("{before}{gap}{line}\n");
    // Nobody could tell two tokens of one name apart.
    Tokens::read(&after).in_file(&a.tokens)?;
    let mut out = Output::create(held.path(), Access::Owner)?;
    out.write_all(after.as_bytes()).in_file(&a.tokens)?;
    let whole = out.finish()?;
    // Told before the line takes effect: a token that nobody got is in no file.
    print(token.secret())?;
    whole.put(Existing::Replaced)
}

fn list(a: &ListTokens) -> Result<(), CliError> {
    let (tokens, now) = (Tokens::read(&text(&a.tokens)?).in_file(&a.tokens)?, SystemTime::now());
    let until = |at: Option<SystemTime>| at.map(|at| humantime::format_rfc3339_seconds(at).to_string());
    if a.json {
        let all = tokens.entries().iter().map(|e| {
            serde_json::json!({ "tenant": &*e.tenant, "name": &*e.name, "expires": until(e.expires), "expired": e.expired(now) })
        });
        return print(serde_json::Value::from_iter(all));
    }
    let line = |tenant: &str, name: &str, until: &str| format!("{tenant:<20} {name:<20} {until}");
    let mut lines = vec![line("tenant", "token", "expires")];
    for e in tokens.entries() {
        let mark = if e.expired(now) { " (over)" } else { "" };
        lines.push(line(&e.tenant, &e.name, &format!("{}{mark}", until(e.expires).as_deref().unwrap_or("never"))));
    }
    print(lines.join("\n"))
}

fn remove(a: &RemoveToken) -> Result<(), CliError> {
    let held = LockedFile::wait(&a.tokens).in_file(&a.tokens)?;
    let Some(after) = Tokens::without(&text(&a.tokens)?, &a.tenant, &a.name).in_file(&a.tokens)? else {
        let words =
            format!("{} has no token of the name {}; `sudare token list` shows those that there are", a.tenant, a.name);
        return Err(CliError::new(ErrorKind::Input, words).in_file(&a.tokens));
    };
    let mut out = Output::create(held.path(), Access::Owner)?;
    out.write_all(after.as_bytes()).in_file(&a.tokens)?;
    out.finish()?.put(Existing::Replaced)?;
    tell("a server that runs takes the token until it gets a SIGHUP");
    Ok(())
}
