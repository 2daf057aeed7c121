//! The other side: a client of a server, for programs without an asynchronous runtime.

use crate::digest::Digest;
use crate::problem::Problem;
use crate::request::{JobView, Message, ObjectView, Request, State, TableView};
use crate::tls::TrustingConnector;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};
use sudare_ring::error::told;
use sudare_ring::{ErrorKind, Kinded};
use ureq::http::{Response, Uri};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, TcpConnector};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

/// Bytes of an object that are sent or fetched in one request.
const PIECE: u64 = 8 << 20;
/// Most bytes of an answer that is no object, and of the description of a panel.
const MAX_ANSWER: u64 = 8 << 20;
const MAX_SITES: u64 = 1 << 30;
/// Most bytes of a list of objects: each takes about 180.
const MAX_OBJECTS: u64 = 1 << 28;
/// Most bytes of an object that is fetched.
const MAX_OBJECT: u64 = 64 << 30;
/// The most time between two questions about a job.
const PAUSE: Duration = Duration::from_secs(1);

/// How long and how often a client tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Most time of a request, beyond a wait for a job.
    pub answer: Duration,
    /// Most time of a request with a piece of an object.
    pub piece: Duration,
    /// How often a request is tried where another try can help.
    pub tries: u32,
    /// Most time that the server waits for a job before it answers: how often its progress is heard of.
    pub wait: Duration,
    /// How long a job is waited for.
    pub job: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(60),
            piece: Duration::from_secs(300),
            tries: 8,
            wait: Duration::from_secs(20),
            job: Duration::from_secs(24 * 3600),
        }
    }
}

/// Why there is no answer, or not the one asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The server refused.
    #[error("the server refused: {0}")]
    Refused(Problem),
    /// There is no way to the server.
    #[error(
        "{url}: {reason}; check the address, whether the server runs, and its certificate: --ca (in Python ca=) names one that no public authority signed"
    )]
    Unreachable {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// The server took too long.
    #[error("{url}: {reason}")]
    Slow {
        /// The server.
        url: String,
        /// What took too long.
        reason: String,
    },
    /// An address or a token that is none.
    #[error("{0}")]
    Address(String),
    /// An answer that is none of the protocol.
    #[error(
        "the server's answer makes no sense: {0}; check that it is a sudare server of this release, and whether its \
         address is https:// or http://"
    )]
    Answer(String),
    /// A file of the client's own.
    #[error("reading or writing failed: {0}")]
    Io(std::io::ErrorKind),
}

impl Kinded for RemoteError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(problem) => problem.kind(),
            Self::Address(_) => ErrorKind::Input,
            Self::Unreachable { .. } | Self::Slow { .. } | Self::Answer(_) | Self::Io(_) => ErrorKind::Io,
        }
    }

    fn system(&self) -> Option<std::io::ErrorKind> {
        match self {
            Self::Io(kind) => Some(*kind),
            _ => None,
        }
    }
}

impl RemoteError {
    /// Whether the same request may be answered later, and after how long.
    fn passes(&self, attempt: u32) -> Option<Duration> {
        match self {
            Self::Refused(problem)
                if matches!(problem.kind(), ErrorKind::TooMany | ErrorKind::Busy | ErrorKind::Stopping) =>
            {
                Some(Duration::from_secs(problem.retry_after().unwrap_or(1).min(60)))
            }
            Self::Unreachable { .. } => Some(Duration::from_millis(100 << attempt.min(5))),
            _ => None,
        }
    }
}

impl From<std::io::Error> for RemoteError {
    fn from(e: std::io::Error) -> Self {
        Self::Io(e.kind())
    }
}

/// A remote server.
#[derive(Clone)]
pub struct Remote {
    agent: Agent,
    base: String,
    patience: Patience,
    authorization: Zeroizing<String>,
}

impl Remote {
    /// A server at `https://…`, or at `http://…` on this machine alone: a token never goes over an open line. `ca` are
    /// certificates of authorities in PEM that are trusted instead of the web's.
    ///
    /// # Errors
    /// [`RemoteError::Address`].
    pub fn new(url: &str, token: &str, ca: Option<&[u8]>) -> Result<Self, RemoteError> {
        // Such an address is never shown, nor kept.
        if url.contains('@') {
            let words = "the address has a name or a password in it; leave them out, for the token is all that a \
                         server asks for";
            return Err(RemoteError::Address(words.into()));
        }
        let address = |why: &str| RemoteError::Address(format!("{}: {why}", told(url)));
        let uri: Result<Uri, _> = url.parse();
        let plain = |uri: &Uri| {
            let port = uri.authority().is_some_and(|a| a.port_u16().is_some() || a.as_str() == a.host());
            port && matches!(uri.path(), "" | "/") && uri.query().is_none() && !url.contains('#')
        };
        let Some(uri) = uri.ok().filter(plain) else {
            return Err(address("this is not the address of a server; write it as https://HOST:PORT"));
        };
        let local = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if local => {}
            _ => {
                return Err(address(
                    "the address has no TLS, and everybody on the line would read the token; give one with https://",
                ));
            }
        }
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(RemoteError::Address(
                "the token is empty or has other than visible characters; take the one that `sudare token add` printed"
                    .into(),
            ));
        }
        // The system's authorities, where none are named.
        let tls = TlsConfig::builder().provider(TlsProvider::Rustls).root_certs(RootCerts::PlatformVerifier);
        let patience = Patience::default();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_global(Some(patience.wait + patience.answer))
            .tls_config(tls.build())
            .build();
        let agent = match ca {
            None => config.new_agent(),
            Some(pem) => {
                let named: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
                let named = named.map_err(|e| {
                    RemoteError::Address(format!(
                        "the file of authorities cannot be read: {e}; give certificates in PEM"
                    ))
                })?;
                if named.is_empty() {
                    return Err(RemoteError::Address(
                        "the file of authorities has no certificate; give certificates in PEM".into(),
                    ));
                }
                let tls = TrustingConnector::new(named).map_err(RemoteError::Address)?;
                Agent::with_parts(config, TcpConnector::default().chain(tls), DefaultResolver::default())
            }
        };
        let authorization = Zeroizing::new(format!("Bearer {token}"));
        Ok(Self { agent, base: url.trim_end_matches('/').to_owned(), patience, authorization })
    }

    /// The same with another patience.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// How long and how often it tries.
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.base
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn unreachable(&self, reason: impl fmt::Display) -> RemoteError {
        RemoteError::Unreachable { url: self.base.clone(), reason: told(reason) }
    }

    /// What no answer means.
    fn failed(&self, error: ureq::Error) -> RemoteError {
        match error {
            ureq::Error::BodyExceedsLimit(most) => RemoteError::Answer(format!("more than {most} bytes")),
            ureq::Error::Timeout(what) => RemoteError::Slow {
                url: self.base.clone(),
                reason: format!("no answer in time ({what}); try again later"),
            },
            ureq::Error::Io(e) if e.kind() == std::io::ErrorKind::TimedOut => {
                RemoteError::Slow { url: self.base.clone(), reason: "no answer in time; try again later".into() }
            }
            ureq::Error::Protocol(_) | ureq::Error::Http(_) | ureq::Error::LargeResponseHeader(..) => {
                RemoteError::Answer(told(error))
            }
            error => self.unreachable(error),
        }
    }

    /// The answer, unless it is a refusal.
    fn answer(&self, got: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, RemoteError> {
        let mut response = got.map_err(|e| self.failed(e))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        match text.ok().and_then(|text| serde_json::from_slice(&text).ok()) {
            Some(problem) => Err(RemoteError::Refused(problem)),
            None => Err(RemoteError::Answer(format!("status {status}"))),
        }
    }

    /// Tries again where that can help.
    fn tried<T>(&self, once: impl FnMut() -> Result<T, RemoteError>) -> Result<T, RemoteError> {
        let (mut once, mut attempt) = (once, 0);
        loop {
            match once() {
                Err(error) if attempt + 1 < self.patience.tries => match error.passes(attempt) {
                    Some(pause) => sleep(pause),
                    None => return Err(error),
                },
                done => return done,
            }
            attempt += 1;
        }
    }

    fn bytes(&self, mut response: Response<Body>, most: u64) -> Result<Vec<u8>, RemoteError> {
        response.body_mut().with_config().limit(most).read_to_vec().map_err(|e| self.failed(e))
    }

    fn json<T: DeserializeOwned>(&self, response: Response<Body>) -> Result<T, RemoteError> {
        serde_json::from_slice(&self.bytes(response, MAX_ANSWER)?).map_err(|e| RemoteError::Answer(told(e)))
    }

    fn get(&self, path: &str, most: Duration) -> Result<Response<Body>, RemoteError> {
        let request = self.agent.get(self.url(path)).config().timeout_global(Some(most)).build();
        self.answer(request.header("authorization", self.authorization.as_str()).call())
    }

    /// Version, limits and panels of the server.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn config(&self) -> Result<serde_json::Map<String, serde_json::Value>, RemoteError> {
        self.tried(|| self.json(self.get("/v1/config", self.patience.answer)?))
    }

    /// Whether it answers and takes requests; asks once, and shows no token.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn health(&self) -> Result<(), RemoteError> {
        let request = self.agent.get(self.url("/healthz")).config().timeout_global(Some(self.patience.answer)).build();
        self.answer(request.call()).map(drop)
    }

    /// The description of a panel, by the name that [`Remote::config`] has.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn sites(&self, panel: &str) -> Result<Vec<u8>, RemoteError> {
        let path = format!("/v1/panels/{}/sites", named(panel)?);
        self.tried(|| self.bytes(self.get(&path, self.patience.piece)?, MAX_SITES))
    }

    /// The plan of a model, by the name that [`Remote::config`] has.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn model_plan(&self, model: &str) -> Result<Vec<u8>, RemoteError> {
        let path = format!("/v1/models/{}/plan", named(model)?);
        self.tried(|| self.bytes(self.get(&path, self.patience.piece)?, MAX_ANSWER))
    }

    /// The names of the tenant's tables.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn tables(&self) -> Result<Vec<String>, RemoteError> {
        self.tried(|| self.json(self.get("/v1/tables", self.patience.answer)?))
    }

    /// A table; none where there is no such.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn table(&self, name: &str) -> Result<Option<TableView>, RemoteError> {
        let path = format!("/v1/tables/{}", named(name)?);
        match self.tried(|| self.json(self.get(&path, self.patience.answer)?)) {
            Err(RemoteError::Refused(problem)) if problem.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Removes a table.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn delete_table(&self, name: &str) -> Result<(), RemoteError> {
        self.delete(&format!("/v1/tables/{}", named(name)?))
    }

    /// The names of the tenant's rooms.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn rooms(&self) -> Result<Vec<String>, RemoteError> {
        self.tried(|| self.json(self.get("/v1/rooms", self.patience.answer)?))
    }

    /// The messages of a room whose names begin so; none of a room that nobody has sent anything to.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn messages(&self, room: &str, beginning: &str) -> Result<BTreeMap<String, Message>, RemoteError> {
        // An empty beginning is that of every name.
        let beginning = if beginning.is_empty() { beginning } else { in_room(beginning)? };
        let path = format!("/v1/rooms/{}?begin={beginning}", in_room(room)?);
        self.tried(|| self.json(self.get(&path, self.patience.answer)?))
    }

    /// Makes an object that was sent a message of a room, for good; the same one again changes nothing.
    ///
    /// # Errors
    /// [`RemoteError`]; of the kind [`ErrorKind::State`] where there is another message of the name.
    pub fn post(&self, room: &str, message: &str, object: Digest) -> Result<(), RemoteError> {
        let body = serde_json::json!({ "object": object }).to_string();
        let url = self.url(&format!("/v1/rooms/{}/{}", in_room(room)?, in_room(message)?));
        self.tried(|| {
            let request = self.agent.put(&url).config().timeout_global(Some(self.patience.answer)).build();
            let request = request.header("authorization", self.authorization.as_str());
            self.answer(request.send(body.as_bytes())).map(drop)
        })
    }

    /// Removes a room, and the objects that are messages of no other.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn delete_room(&self, room: &str) -> Result<(), RemoteError> {
        self.delete(&format!("/v1/rooms/{}", in_room(room)?))
    }

    /// Sends a segment of a table and waits until it is taken in; with the first one the objects of plan and keys. What was
    /// sent is not kept beside the table.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn append(
        &self,
        table: &str,
        segment: &mut (impl Read + Seek),
        begin: Option<(Digest, Digest)>,
    ) -> Result<(), RemoteError> {
        let digest = self.send(segment)?;
        let (plan, keys) = begin.unzip();
        let job = self.submit(&Request::Append { table: table.to_owned(), segment: digest, plan, keys }, None)?;
        let taken = self.wait(&job.id, &|_, _| ());
        let mut cleared = self.delete_job(&job.id);
        // Equal objects of another table are one object, which may be gone.
        let mut clear = |object| {
            let removed = self.delete_object(object);
            let gone = removed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
            if cleared.is_ok() && !gone {
                cleared = removed;
            }
        };
        clear(digest);
        // Why it was not taken in says more than what that left there.
        let (result, _) = taken?;
        clear(result);
        cleared
    }

    /// A job as the server tells it.
    fn view(&self, response: Response<Body>, id: Option<&str>) -> Result<JobView, RemoteError> {
        let view: JobView = self.json(response)?;
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let good = view.id.len() == 32 && view.id.bytes().all(digit) && id.is_none_or(|id| id == view.id);
        if good { Ok(view) } else { Err(RemoteError::Answer("it is about another job".into())) }
    }

    /// Bytes of an object that the server has: all of them, or how many have arrived.
    fn here(&self, digest: Digest) -> Result<Result<(), u64>, RemoteError> {
        let url = self.url(&format!("/v1/objects/{digest}"));
        let request = self.agent.head(url).config().timeout_global(Some(self.patience.answer)).build();
        let got = request.header("authorization", self.authorization.as_str()).call();
        let response = got.map_err(|e| self.failed(e))?;
        let offset = response.headers().get("upload-offset").and_then(|v| v.to_str().ok()?.parse().ok());
        match (response.status().as_u16(), offset) {
            (200, _) => Ok(Ok(())),
            (404, Some(offset)) => Ok(Err(offset)),
            (401, _) => {
                let words = "the server does not know the token, or it has expired; ask the operator for one";
                Err(RemoteError::Refused(Problem::new(ErrorKind::Unauthorized, words)))
            }
            (507, _) => Err(RemoteError::Refused(Problem::new(
                ErrorKind::DiskFull,
                "the server's disk is full; its operator has to make room",
            ))),
            // An answer to HEAD has no words.
            (429 | 503, _) => Err(RemoteError::Refused(Problem::new(ErrorKind::Busy, "the server is busy; try later"))),
            (status, _) => Err(RemoteError::Answer(format!("status {status}"))),
        }
    }

    /// Sends what a file or bytes in memory have, unless the server has it; what was sent before is not sent again.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn send(&self, source: &mut (impl Read + Seek)) -> Result<Digest, RemoteError> {
        source.rewind()?;
        let (digest, total) = Digest::of_stream(&mut *source)?;
        self.tried(|| {
            let mut here = match self.here(digest)? {
                Ok(()) => return Ok(digest),
                Err(offset) => offset,
            };
            // What arrived whole and was not taken in is sent again, unless another takes it in meanwhile.
            if here >= total {
                here = 0;
            }
            loop {
                source.seek(SeekFrom::Start(here))?;
                let length = PIECE.min(total - here);
                let mut piece = source.by_ref().take(length);
                let request = self
                    .agent
                    .put(self.url(&format!("/v1/objects/{digest}")))
                    .config()
                    .timeout_global(Some(self.patience.piece))
                    .build()
                    .header("authorization", self.authorization.as_str())
                    // A refusal comes before the body is sent.
                    .header("expect", "100-continue")
                    .header("content-length", length.to_string())
                    .header("content-range", format!("bytes {here}-{}/{total}", (here + length).saturating_sub(1)));
                match self.answer(request.send(ureq::SendBody::from_reader(&mut piece))) {
                    // Each answer brings the upload forward, so that there are no more than it has bytes.
                    Ok(response) if response.status() == 202 && here + length < total => here += length,
                    Ok(response) if response.status() == 202 => {
                        return Err(RemoteError::Answer("it asks for more of an object that was sent whole".into()));
                    }
                    Ok(_) => return Ok(digest),
                    Err(RemoteError::Refused(problem)) => match problem.offset() {
                        Some(offset) if offset > here && offset < total => here = offset,
                        _ => return Err(RemoteError::Refused(problem)),
                    },
                    Err(error) => return Err(error),
                }
            }
        })
    }

    /// Asks for a job. Asked again under the same key, it is the same job.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn submit(&self, request: &Request, key: Option<&str>) -> Result<JobView, RemoteError> {
        let body = serde_json::to_vec(request).map_err(|e| RemoteError::Answer(e.to_string()))?;
        let own = match key {
            Some(key) => key.to_owned(),
            // Lost answers are asked for again, and the job is not done twice.
            None => {
                let mut name = [0; 16];
                getrandom::fill(&mut name)
                    .map_err(|e| RemoteError::Address(format!("the system gives no randomness: {e}")))?;
                name.iter().map(|b| format!("{b:02x}")).collect()
            }
        };
        self.tried(|| {
            let request = self
                .agent
                .post(self.url("/v1/jobs"))
                .config()
                .timeout_global(Some(self.patience.answer))
                .build()
                .header("authorization", self.authorization.as_str())
                .header("idempotency-key", own.as_str());
            self.view(self.answer(request.send(&body[..]))?, None)
        })
    }

    /// A job as it is now.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn job(&self, id: &str) -> Result<JobView, RemoteError> {
        self.tried(|| self.view(self.get(&format!("/v1/jobs/{id}"), self.patience.answer)?, Some(id)))
    }

    /// Waits for a job to end, telling how far it has come; gives its result's name and length.
    ///
    /// # Errors
    /// [`RemoteError`]; the job's own refusal.
    pub fn wait(&self, id: &str, progress: &dyn Fn(u64, u64)) -> Result<(Digest, u64), RemoteError> {
        let (started, mut pause) = (Instant::now(), PAUSE / 64);
        loop {
            let asked = Instant::now();
            let (wait, most) = (self.patience.wait, self.patience.wait + self.patience.answer);
            let path = format!("/v1/jobs/{id}?wait={}", wait.as_secs());
            let view = self.tried(|| self.view(self.get(&path, most)?, Some(id)))?;
            progress(view.done, view.steps);
            match view.state {
                State::Queued | State::Running if started.elapsed() > self.patience.job => {
                    let reason =
                        format!("the job has not ended in {} s; wait and ask again", self.patience.job.as_secs());
                    return Err(RemoteError::Slow { url: self.base.clone(), reason });
                }
                // A server that does not wait is not asked without a pause.
                State::Queued | State::Running => {
                    sleep(pause.saturating_sub(asked.elapsed()));
                    pause = (2 * pause).min(PAUSE);
                }
                State::Done { result, bytes, .. } => return Ok((result, bytes)),
                State::Failed { problem } => return Err(RemoteError::Refused(problem)),
                State::Cancelled => {
                    return Err(RemoteError::Refused(Problem::new(
                        ErrorKind::State,
                        "the job was cancelled; ask again",
                    )));
                }
            }
        }
    }

    /// Fetches an object, piece by piece; goes on where a connection ended. What comes is compared with its name.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn fetch(&self, digest: Digest, out: &mut impl Write) -> Result<u64, RemoteError> {
        self.fetch_within(digest, MAX_OBJECT, out)
    }

    /// The same for an object of at most so many bytes.
    pub(crate) fn fetch_within(&self, digest: Digest, most: u64, out: &mut impl Write) -> Result<u64, RemoteError> {
        let mut out = crate::digest::Naming::new(out);
        let (mut have, mut total) = (0, None);
        while total.is_none_or(|total| have < total) {
            self.tried(|| {
                let response = self.piece(digest, have)?;
                let found = total_of(&response, have).filter(|found| total.is_none_or(|total| total == *found));
                let found = found.filter(|found| (1..=most).contains(found));
                let found = found.ok_or_else(|| {
                    RemoteError::Answer("it sends an object in pieces that do not fit together".into())
                })?;
                total = Some(found);
                let mut left = PIECE.min(found - have);
                let (mut body, mut buffer) = (response.into_body().into_reader(), vec![0; 1 << 18]);
                while left > 0 {
                    let most = buffer.len().min(left as usize);
                    let read = body.read(&mut buffer[..most]).map_err(|e| self.failed(e.into()))?;
                    if read == 0 {
                        return Err(self.unreachable("the answer ended early"));
                    }
                    out.write_all(&buffer[..read])?;
                    have += read as u64;
                    left -= read as u64;
                }
                Ok(())
            })?;
        }
        match out.finish()? {
            (found, length) if found == digest => Ok(length),
            _ => Err(RemoteError::Answer("it sends a result with another SHA-256 than its name".into())),
        }
    }

    /// A piece of an object, from a byte on.
    fn piece(&self, digest: Digest, start: u64) -> Result<Response<Body>, RemoteError> {
        let request = self
            .agent
            .get(self.url(&format!("/v1/objects/{digest}")))
            .config()
            .timeout_global(Some(self.patience.piece))
            .build()
            .header("authorization", self.authorization.as_str())
            .header("range", format!("bytes={start}-{}", start + PIECE - 1));
        let response = self.answer(request.call())?;
        match response.status().as_u16() {
            206 => Ok(response),
            status => Err(RemoteError::Answer(format!("status {status} for a piece of an object"))),
        }
    }

    /// Cancels a job that waits or runs; forgets one that ended.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn delete_job(&self, id: &str) -> Result<(), RemoteError> {
        self.delete(&format!("/v1/jobs/{id}"))
    }

    /// The tenant's objects, the longest unused first.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn objects(&self) -> Result<Vec<ObjectView>, RemoteError> {
        self.tried(|| {
            let text = self.bytes(self.get("/v1/objects", self.patience.piece)?, MAX_OBJECTS)?;
            serde_json::from_slice(&text).map_err(|e| RemoteError::Answer(told(e)))
        })
    }

    /// Removes an object.
    ///
    /// # Errors
    /// [`RemoteError`]; of the kind [`ErrorKind::State`] while a job that waits or runs names it, or a room has it.
    pub fn delete_object(&self, digest: Digest) -> Result<(), RemoteError> {
        self.delete(&format!("/v1/objects/{digest}"))
    }

    fn delete(&self, path: &str) -> Result<(), RemoteError> {
        let mut again = false;
        self.tried(|| {
            let request = self.agent.delete(self.url(path)).config().timeout_global(Some(self.patience.answer)).build();
            let answered = self.answer(request.header("authorization", self.authorization.as_str()).call()).map(drop);
            match answered {
                // The time before removed it, and the answer was lost.
                Err(error) if again && error.kind() == ErrorKind::NotFound => Ok(()),
                answered => {
                    again = true;
                    answered
                }
            }
        })
    }
}

/// A name of a panel, a model or a table, which stands in a path.
fn named(name: &str) -> Result<&str, RemoteError> {
    match !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
        true => Ok(name),
        false => Err(RemoteError::Address(format!(
            "{:?} is not the name of a panel, a model or a table; take letters, digits, hyphens and underscores",
            told(name)
        ))),
    }
}

/// A name of a room or of a message, which stands in a path.
fn in_room(name: &str) -> Result<&str, RemoteError> {
    match !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        true => Ok(name),
        false => Err(RemoteError::Address(format!(
            "{:?} is not the name of a room or of a message; take letters, digits, hyphens, underscores and dots",
            told(name)
        ))),
    }
}

/// How long the object is of which an answer has the piece from a byte on.
fn total_of(response: &Response<Body>, start: u64) -> Option<u64> {
    let text = response.headers().get("content-range")?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let ((first, last), total) = (range.split_once('-')?, total.parse::<u64>().ok()?);
    let fits = first.parse() == Ok(start) && total > start && last.parse() == Ok((start + PIECE).min(total) - 1);
    fits.then_some(total)
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({}, token hidden)", self.base)
    }
}
