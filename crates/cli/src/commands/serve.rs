//! `sudare serve` and `sudare health`: what the operator of a server does.

use super::logs::Logs;
use super::serve_args::{Health, MAX_TEXT, Serve};
use super::{model, print, token};
use crate::error::{CliError, InFile};
use crate::files;
use crate::{args, signals};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use sudare_genome::Panel;
use sudare_ring::ErrorKind;
use sudare_serve::{
    CompiledModel, Event, Limits, Patience, Remote, Served, ServedModel, ServedPanel, Service, Settings, Stop, Tls,
    Tokens,
};

/// What is read at the start, and again on SIGHUP: tokens and certificate.
fn changeable(a: &Serve) -> Result<(Tokens, Option<Tls>), CliError> {
    let tls = match a.tls() {
        Some((chain, key)) => {
            refuse_open_key(key)?;
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
    Ok((Tokens::read(&token::text(&a.tokens)?).in_file(&a.tokens)?, tls))
}

/// A certificate's key that every user of the machine reads is everybody's.
fn refuse_open_key(path: &Path) -> Result<(), CliError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).in_file(path)?.permissions().mode();
        if mode & 0o007 != 0 {
            let words = format!(
                "all users of this machine reach this key (mode {:o}); chmod 640 it, or exchange --tls-cert and \
                 --tls-key if it is the certificate",
                mode & 0o777
            );
            return Err(CliError::new(ErrorKind::Io, words).in_file(path));
        }
    }
    let _ = path;
    Ok(())
}

pub fn health(a: &Health) -> Result<(), CliError> {
    let ca = a.ca.as_deref().map(|path| files::read(path, MAX_TEXT)).transpose()?;
    // It is not sent.
    let remote = Remote::new(&a.server, "none", ca.as_deref())?;
    let patience = Patience { answer: Duration::from_secs(5), ..remote.patience() };
    Ok(remote.with_patience(patience).health()?)
}

/// What an option says of each panel, once.
fn by_panel<T: Copy>(a: &Serve, option: &str, said: &[(String, T)]) -> Result<BTreeMap<String, T>, CliError> {
    let mut out = BTreeMap::new();
    for (name, value) in said {
        if a.panel.iter().all(|(known, _)| known != name) {
            let words = format!("{option} names {name}, and no --panel does; give --panel {name}=FILE");
            return Err(CliError::new(ErrorKind::Usage, words));
        }
        if out.insert(name.clone(), *value).is_some() {
            return Err(CliError::new(ErrorKind::Usage, format!("{option} names {name} twice; give it once")));
        }
    }
    Ok(out)
}

pub fn serve(args: &args::Args, a: &Serve) -> Result<(), CliError> {
    if !a.tokens.exists() {
        let words = "there is no such file; `sudare token add` makes it";
        return Err(CliError::new(ErrorKind::Io, words).in_file(&a.tokens));
    }
    let (tokens, tls) = changeable(a)?;
    if tokens.entries().is_empty() {
        let words = "this file has no token; make one with `sudare token add`";
        return Err(CliError::new(ErrorKind::Format, words).in_file(&a.tokens));
    }
    let (padding, most) = (by_panel(a, "--pad", &a.pad)?, by_panel(a, "--queries", &a.queries)?);
    let mut panels = Vec::new();
    for (name, path) in &a.panel {
        let (padding, most_queries) = (padding.get(name).copied(), most.get(name).copied());
        let panel = Arc::new(Panel::open(path).in_file(path)?);
        panels.push(ServedPanel { name: name.clone(), panel, padding, most_queries });
    }
    let mut models = Vec::new();
    for (name, path) in &a.model {
        let model = CompiledModel::from_bytes(&files::read(path, model::MAX_MODEL)?).in_file(path)?;
        models.push(ServedModel { name: name.clone(), model });
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
    let settings = Settings {
        threads: args.threads,
        workers: a.jobs,
        behind_proxy: a.behind_proxy,
        limits,
        ..Settings::new(&a.data)
    };
    let logs = Arc::new(Logs::open(a, args.quiet)?);
    let count = tokens.entries().len();
    let (events, ends) = (logs.clone(), logs.clone());
    let mut service = Service::open(settings, tokens, Served { panels, models }, move |event| events.write(event))
        .in_file(&a.data)?;
    if let Some(address) = a.metrics {
        service = service.with_monitoring(address)?;
    }
    let listener =
        TcpListener::bind(a.listen).map_err(|e| CliError::new(ErrorKind::Io, format!("{}: {e}", a.listen)))?;
    let address = listener.local_addr().map_err(CliError::from)?;
    let stop = Stop::new();
    let asked = stop.clone();
    signals::end_gently(move || asked.ask());
    let (control, again) = (service.control(), a.clone());
    signals::on_hangup(move || {
        let reread = || {
            logs.reopen()?;
            let (tokens, tls) = changeable(&again)?;
            let count = tokens.entries().len();
            control.replace(tokens, tls)?;
            Ok::<_, CliError>(count)
        };
        let words = match reread() {
            Ok(count) => format!("hangup: tokens ({count}), certificate and logs are read and opened again"),
            Err(error) => format!("hangup: nothing is changed: {error}"),
        };
        let _ = logs.write(&Event::note(words.as_str()));
        let _ = logs.write(&Event::audit("reload").with("words", words));
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    print(format!("listening on {scheme}://{address}"))?;
    if let Some(address) = service.monitoring() {
        print(format!("figures at http://{address}/metrics"))?;
    }
    let told = |event: &'static str, words: String| {
        let _ = ends.write(&Event::note(words.as_str()));
        let _ = ends.write(&Event::audit(event).with("words", words));
    };
    let version = env!("CARGO_PKG_VERSION");
    told(
        "start",
        format!("started: version {version}, {count} tokens, data in {}, {scheme}://{address}", a.data.display()),
    );
    let ended = service.run(listener, tls, &stop);
    told("stop", ended.as_ref().map_or_else(|e| format!("stopped: {e}"), |()| "stopped: asked to".into()));
    Ok(ended?)
}
