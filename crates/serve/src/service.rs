//! A server from its start to its end.

use crate::engine::{Engine, Served};
use crate::events::{Event, Log};
use crate::jobs::Jobs;
use crate::listen;
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::places::Places;
use crate::routes::{self, Shared};
use crate::settings::Settings;
use crate::tokens::Tokens;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use sudare_ring::{ErrorKind, Kinded};
use sudare_store::atomic::{self, Access, Durability, Over};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How often what is kept too long is removed.
const HOUSEKEEPING: Duration = Duration::from_secs(60);
/// Threads for requests: they wait, they do not compute.
const REQUEST_THREADS: usize = 2;

/// What the data folder holds it in, as this release writes it. A folder without the file is of version 1 too: releases
/// before it wrote none.
const VERSION_FILE: &str = ".version";
const DATA_VERSION: u32 = 1;

/// Why there is no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct ServeError {
    kind: ErrorKind,
    words: String,
}

impl ServeError {
    pub(crate) fn new(kind: ErrorKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into() }
    }
}

impl Kinded for ServeError {
    fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<io::Error> for ServeError {
    fn from(e: io::Error) -> Self {
        Self::new(ErrorKind::Io, e.to_string())
    }
}

/// Asks a server to stop: it admits nothing more, ends what runs within its grace, and keeps the rest on the disk.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Not asked yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Asks.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

/// TLS 1.2 and 1.3 with a certificate.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// From a chain of certificates and its key, in PEM. With `clients`, certificates of authorities, a client has to
    /// show one of theirs, beside its token.
    ///
    /// # Errors
    /// [`ServeError`] for text that is none, or a key of another certificate.
    pub fn new(chain: &[u8], key: &[u8], clients: Option<&[u8]>) -> Result<Self, ServeError> {
        let wrong = |what: &str, e: &dyn fmt::Display| ServeError::new(ErrorKind::Format, format!("{what}: {e}"));
        let read = |what: &str, pem: &[u8]| {
            let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
            let all = all.map_err(|e| wrong(what, &e))?;
            if all.is_empty() {
                Err(wrong(what, &"there is no certificate in it; give certificates in PEM"))
            } else {
                Ok(all)
            }
        };
        let chain = read("the certificate", chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| wrong("the certificate's key", &e))?;
        let provider = Arc::new(default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong("TLS", &e))?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in read("the clients' authorities", pem)? {
                    roots.add(certificate).map_err(|e| wrong("the clients' authorities", &e))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().map_err(|e| wrong("the clients' authorities", &e))?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|e| wrong("the certificate", &e))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(key hidden)")
    }
}

/// Changes what may be changed while a server runs. Connections and jobs go on.
#[derive(Clone)]
pub struct Control(Arc<Live>);

/// What is there now, of what can be changed.
struct Live {
    tokens: RwLock<Arc<Tokens>>,
    tls: RwLock<Option<Tls>>,
    objects: Arc<Objects>,
    jobs: Arc<Jobs>,
}

impl Control {
    /// Takes other tokens, for every request from now on, and another certificate, for every connection from now on. Jobs of
    /// tenants that have no token any more are done, and what they have stays.
    ///
    /// # Errors
    /// [`ServeError`] where a new tenant's folder cannot be made; nothing is changed then.
    pub fn replace(&self, tokens: Tokens, tls: Option<Tls>) -> Result<(), ServeError> {
        let new = self.0.objects.enter(&tokens.tenants())?;
        self.0.jobs.enter(&new)?;
        *self.0.tokens.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tokens);
        *self.0.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
        Ok(())
    }

    pub(crate) fn tokens(&self) -> Arc<Tokens> {
        self.0.tokens.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tls(&self) -> Option<TlsAcceptor> {
        self.0.tls.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|tls| tls.0.clone())
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Control({:?})", self.tokens())
    }
}

/// A server, its objects and jobs opened.
pub struct Service {
    settings: Settings,
    objects: Arc<Objects>,
    jobs: Arc<Jobs>,
    metrics: Arc<Metrics>,
    control: Control,
    log: Log,
    monitoring: Option<TcpListener>,
    /// Held as long as the folder is this server's.
    _lock: File,
}

impl Service {
    /// Opens the folder, with panels and models under the names that clients ask for. `log` gets an event for each request and
    /// each job that ends, and those of the audit; where it does not take one of these, what it tells of is refused.
    ///
    /// # Errors
    /// [`ServeError`] for a folder that another server has, that a newer release wrote, that cannot be written, or that
    /// holds something else and is open to others.
    pub fn open(
        settings: Settings,
        tokens: Tokens,
        served: Served,
        log: impl Fn(&Event) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let (data, limits, log) = (&settings.data, &settings.limits, Arc::new(log) as Log);
        create_private(data)?;
        let lock = atomic::own(&data.join("lock")).map_err(|e| ServeError::new(e.kind(), e.to_string()))?;
        let Some(lock) = lock else {
            return Err(ServeError::new(
                ErrorKind::Io,
                "another server has this folder; stop it, or name another folder",
            ));
        };
        check_version(data)?;
        let (objects, metrics) = (Objects::open(data, limits), Arc::new(Metrics::default()));
        let engine = Engine::new(objects.clone(), served, settings.threads, limits.memory);
        let jobs = Jobs::new(objects.clone(), engine, limits, metrics.clone(), log.clone());
        let live =
            Live { tokens: RwLock::default(), tls: RwLock::default(), objects: objects.clone(), jobs: jobs.clone() };
        let control = Control(Arc::new(live));
        control.replace(tokens, None)?;
        Ok(Self { settings, objects, jobs, metrics, control, log, monitoring: None, _lock: lock })
    }

    /// Changes what may be changed while it runs.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The same, with `/metrics` on an address of its own, which no tenant should reach.
    ///
    /// # Errors
    /// [`ServeError`] for an address that cannot be had.
    pub fn with_monitoring(mut self, address: SocketAddr) -> Result<Self, ServeError> {
        self.monitoring = Some(TcpListener::bind(address)?);
        Ok(self)
    }

    /// Where `/metrics` is.
    pub fn monitoring(&self) -> Option<SocketAddr> {
        self.monitoring.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until it is asked to stop.
    ///
    /// # Errors
    /// [`ServeError`] where the system gives no threads or the listener fails.
    pub fn run(self, listener: TcpListener, tls: Option<Tls>, stop: &Stop) -> Result<(), ServeError> {
        // Unless it was changed already.
        let mut now = self.control.0.tls.write().unwrap_or_else(PoisonError::into_inner);
        *now = now.take().or(tls);
        drop(now);
        let workers = (0..self.settings.workers).map(|i| {
            let jobs = self.jobs.clone();
            std::thread::Builder::new().name(format!("job-{i}")).spawn(move || jobs.work())
        });
        let workers = workers.collect::<io::Result<Vec<_>>>()?;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(REQUEST_THREADS).thread_name("requests").enable_all().build()?;
        let served = runtime.block_on(self.serve(listener, stop));
        self.jobs.stop();
        self.jobs.halt();
        // Only work on the disk is left there.
        runtime.shutdown_timeout(self.last_moments() / 2);
        let until = Instant::now() + self.last_moments();
        while workers.iter().any(|worker| !worker.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        for worker in workers {
            if worker.is_finished() {
                let _ = worker.join();
            } else {
                self.jobs.leave();
                let words = "a job did not end when it was asked to, and is left; the next start begins it again";
                let _ = (self.log)(&Event::note(words));
            }
        }
        served
    }

    /// What of the grace is kept for jobs to end that were asked to.
    fn last_moments(&self) -> Duration {
        (self.settings.limits.grace / 5).min(Duration::from_secs(2))
    }

    /// What all paths share.
    fn shared(&self, stop: &watch::Receiver<bool>) -> Arc<Shared> {
        Arc::new(Shared {
            objects: self.objects.clone(),
            jobs: self.jobs.clone(),
            control: self.control.clone(),
            behind_proxy: self.settings.behind_proxy,
            limits: self.settings.limits.clone(),
            metrics: self.metrics.clone(),
            log: self.log.clone(),
            stop: stop.clone(),
        })
    }

    /// What a connection is answered that brings these bytes, a mebibyte at most, and nothing more, within some time. For
    /// tests that take no sockets.
    ///
    /// # Errors
    /// [`ServeError`] where the system gives no threads.
    #[doc(hidden)]
    pub fn answer_for_tests(&self, sent: &[u8], most: Duration) -> Result<Vec<u8>, ServeError> {
        const ROOM: usize = 1 << 20;
        let (stop, limits) = (Stop::new(), &self.settings.limits);
        let stopped = stop.0.subscribe();
        let router = routes::router(self.shared(&stopped));
        let place = Places::new(limits).enter(Ipv4Addr::LOCALHOST.into());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(ROOM);
            let mut answer = Vec::new();
            client.write_all(&sent[..sent.len().min(ROOM)]).await?;
            let served = listen::speak(server, router, limits, stopped, place);
            let read = client.read_to_end(&mut answer);
            let _ = timeout(most, async { tokio::join!(served, read) }).await;
            Ok::<_, io::Error>(answer)
        })?)
    }

    /// Computes all jobs that wait, on the calling thread. For tests that take no sockets.
    #[doc(hidden)]
    pub fn compute_for_tests(&self) {
        while self.jobs.counts().0 > 0 {
            self.jobs.work_once();
        }
    }

    async fn serve(&self, listener: TcpListener, stop: &Stop) -> Result<(), ServeError> {
        let mut asked = stop.0.subscribe();
        let shared = self.shared(&asked);
        let listening = |listener: TcpListener| {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        };
        let limits = &self.settings.limits;
        let (router, metrics) = (routes::router(shared.clone()), self.metrics.clone());
        let tls = || self.control.tls();
        let main = listen::accept(listening(listener)?, tls, router, limits, metrics, asked.clone());
        if let Some(listener) = self.monitoring.as_ref().map(TcpListener::try_clone).transpose()? {
            let (limits, metrics, stop) = (limits.clone(), Arc::new(Metrics::default()), asked.clone());
            let (listener, router) = (listening(listener)?, routes::monitoring(shared.clone()));
            tokio::spawn(async move { listen::accept(listener, || None, router, &limits, metrics, stop).await });
        }
        let kept = shared.clone();
        let housekeeping = tokio::spawn(async move {
            loop {
                tokio::time::sleep(HOUSEKEEPING).await;
                let kept = kept.clone();
                let _ = tokio::task::spawn_blocking(move || {
                    kept.jobs.expire();
                    kept.objects.expire(|tenant, digest| kept.jobs.uses(tenant, digest));
                })
                .await;
            }
        });
        let ended = async {
            main.await;
            while self.jobs.counts().1 > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let grace = async {
            listen::set(&mut asked).await;
            self.jobs.stop();
            tokio::time::sleep(limits.grace.saturating_sub(2 * self.last_moments())).await;
        };
        tokio::select! {
            () = ended => {}
            () = grace => {}
        }
        housekeeping.abort();
        Ok(())
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({:?})", self.control.tokens())
    }
}

/// Refuses a folder that a newer release wrote, and says in one without a version that it is of this.
fn check_version(data: &Path) -> Result<(), ServeError> {
    let path = data.join(VERSION_FILE);
    let found = match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse::<u32>().ok(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let line = format!("{DATA_VERSION}\n");
            let written = atomic::write(&path, &[line.as_bytes()], Access::Owner, Over::NoKey, Durability::Power);
            return written.map_err(|e| ServeError::new(e.kind(), e.to_string()));
        }
        Err(e) => return Err(e.into()),
    };
    match found {
        Some(1..=DATA_VERSION) => Ok(()),
        Some(newer) if newer > DATA_VERSION => {
            let words = format!(
                "a newer release wrote this folder: it is of version {newer}, and this release knows {DATA_VERSION}; start that release, or name another folder"
            );
            Err(ServeError::new(ErrorKind::Format, words))
        }
        _ => {
            let words = format!("its file {VERSION_FILE} says no version; copy the folder again from a backup");
            Err(ServeError::new(ErrorKind::Format, words))
        }
    }
}

/// A folder that its owner alone reads. One that is there is made so if it is a server's or empty; in the place of
/// anything else others may have to read it.
fn create_private(path: &Path) -> Result<(), ServeError> {
    if path.is_dir() {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(path)?.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                if !path.join("lock").exists() && fs::read_dir(path)?.next().is_some() {
                    let words = format!(
                        "other users reach this folder (mode {mode:o}), and it holds something else; name another, or chmod 700 it"
                    );
                    return Err(ServeError::new(ErrorKind::Io, words));
                }
                fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
            }
        }
        return Ok(());
    }
    atomic::make_private_folder(path).map_err(|e| ServeError::new(e.kind(), e.to_string()))
}
