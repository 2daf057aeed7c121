//! `sudare serve` and `sudare token`: what the operator of a server does.

use super::print;
use super::serve_args::{MAX_TEXT, NewToken, Serve};
use crate::error::{CliError, InFile, tell};
use crate::files::{self, Access, Output};
use crate::{args, signals};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use sudare_genome::Panel;
use sudare_ring::ErrorKind;
use sudare_serve::{Limits, ServedPanel, Service, Settings, Stop, Tls, Token, Tokens};

/// A file of tokens as text; none if there is no file yet.
fn read_tokens(path: &Path) -> Result<String, CliError> {
    let bytes = files::read(path, MAX_TEXT)?;
    String::from_utf8(bytes)
        .map_err(|_| CliError::new(ErrorKind::Format, "this file of tokens is not text").in_file(path))
}

pub fn token(a: &NewToken) -> Result<(), CliError> {
    let token = Token::new()?;
    let line = token.line(&a.tenant)?;
    let before = if a.tokens.exists() { read_tokens(&a.tokens)? } else { String::new() };
    let mut out = Output::create(&a.tokens, Access::Owner)?;
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    writeln!(out, "{before}{gap}{line}").in_file(&a.tokens)?;
    let whole = out.finish()?;
    // Told before the line takes effect: a token that nobody got is in no file.
    print(token.secret())?;
    whole.put()
}

pub fn serve(args: &args::Args, a: &Serve) -> Result<(), CliError> {
    let tls = match a.tls() {
        Some((chain, key)) => {
            let clients = a.client_ca.as_deref().map(|path| files::read(path, MAX_TEXT)).transpose()?;
            let (pem, key) = (files::read(chain, MAX_TEXT)?, files::read_secret(key, MAX_TEXT)?);
            Some(Tls::new(&pem, &key, clients.as_deref()).in_file(chain)?)
        }
        None if a.listen.ip().is_loopback() || a.behind_proxy => None,
        None => {
            let message = "without TLS everybody on the line reads tokens; give --tls-cert and --tls-key, or --behind-proxy where a proxy has TLS";
            return Err(CliError::new(ErrorKind::Usage, message));
        }
    };
    let tokens = Tokens::read(&read_tokens(&a.tokens)?).in_file(&a.tokens)?;
    let mut panels = Vec::new();
    if let Some((name, _)) = a.pad.iter().find(|(name, _)| a.panel.iter().all(|(known, _)| known != name)) {
        return Err(CliError::new(ErrorKind::Usage, format!("--pad names {name}, and no --panel does")));
    }
    for (name, path) in &a.panel {
        let padding = a.pad.iter().find(|(known, _)| known == name).map(|(_, padding)| *padding);
        let panel = Arc::new(Panel::open(path).in_file(path)?);
        panels.push(ServedPanel { name: name.clone(), panel, padding });
    }
    let usual = Limits::default();
    let limits = Limits {
        jobs: a.queue,
        tenant_bytes: a.storage,
        memory: a.memory,
        job: Duration::from_secs(a.job_seconds),
        keep: a.kept(),
        // All connections are the proxy's: it counts its clients.
        address_unauthenticated: if a.behind_proxy { usual.unauthenticated } else { usual.address_unauthenticated },
        ..usual
    };
    let settings = Settings { threads: args.threads, workers: a.jobs, limits, ..Settings::new(&a.data) };
    let quiet = args.quiet;
    let log = move |line: &str| {
        if !quiet {
            tell(line);
        }
    };
    let mut service = Service::open(settings, tokens, panels, log).in_file(&a.data)?;
    if let Some(address) = a.metrics {
        service = service.with_monitoring(address)?;
    }
    let listener =
        TcpListener::bind(a.listen).map_err(|e| CliError::new(ErrorKind::Io, format!("{}: {e}", a.listen)))?;
    let address = listener.local_addr().map_err(CliError::from)?;
    let stop = Stop::new();
    let asked = stop.clone();
    signals::end_gently(move || asked.ask());
    signals::on_hangup(move || {
        if !quiet {
            tell("hangup: tokens and certificates are read at the start; start again to have them read");
        }
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    print(format!("listening on {scheme}://{address}"))?;
    if let Some(address) = service.monitoring() {
        print(format!("figures at http://{address}/metrics"))?;
    }
    Ok(service.run(listener, tls, &stop)?)
}
