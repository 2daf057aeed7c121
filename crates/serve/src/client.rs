//! The other side: a client of a server, for programs without an asynchronous runtime.

use crate::digest::Digest;
use crate::problem::{Kind, Problem};
use crate::request::{JobView, Request, State};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{Read, Seek, SeekFrom, Write};
use std::thread::sleep;
use std::time::Duration;
use sudare_ring::ErrorKind;
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

/// Bytes that are sent in one request.
const PIECE: u64 = 32 << 20;
/// How often a request is tried where another try can help.
const TRIES: u32 = 8;
/// Seconds that the server waits for a job before it answers.
const WAIT: u64 = 20;
/// Most bytes of an answer that is no object.
const MAX_ANSWER: u64 = 8 << 20;

/// Why there is no answer, or not the one asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The server refused.
    #[error("the server refused: {0}")]
    Refused(Problem),
    /// There is no way to the server.
    #[error("{url}: {reason}; check the address, the certificate, and whether the server runs")]
    Unreachable {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// An address or a token that is none.
    #[error("{0}")]
    Address(String),
    /// An answer that is none of the protocol.
    #[error("the server's answer makes no sense: {0}; is it a sudare server of this release?")]
    Answer(String),
    /// A file of the client's own.
    #[error("reading or writing failed: {0}")]
    Io(std::io::ErrorKind),
}

impl RemoteError {
    /// What kind of refusal it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(problem) => problem.kind().error_kind(),
            Self::Address(_) => ErrorKind::Input,
            Self::Unreachable { .. } | Self::Answer(_) | Self::Io(_) => ErrorKind::Io,
        }
    }

    /// Whether the same request may be answered later, and after how long.
    fn passes(&self, attempt: u32) -> Option<Duration> {
        match self {
            Self::Refused(problem) if matches!(problem.kind(), Kind::TooMany | Kind::Busy | Kind::Stopping) => {
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

/// A server far away.
#[derive(Clone)]
pub struct Remote {
    agent: Agent,
    base: String,
    authorization: Zeroizing<String>,
}

impl Remote {
    /// A server at `https://…`, or at `http://…` on this machine alone: a token never goes over an open line. `ca` are
    /// certificates of authorities in PEM that are trusted instead of the web's.
    ///
    /// # Errors
    /// [`RemoteError::Address`].
    pub fn new(url: &str, token: &str, ca: Option<&[u8]>) -> Result<Self, RemoteError> {
        let address = |why: &str| RemoteError::Address(format!("{url}: {why}"));
        let uri: Uri = url.parse().map_err(|_| address("this is no address; write it as https://HOST:PORT"))?;
        let local = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if local => {}
            _ => return Err(address("give an https address; without TLS everybody on the line reads the token")),
        }
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(RemoteError::Address("the token is none; take the one that `sudare token` printed".into()));
        }
        let mut tls = TlsConfig::builder().provider(TlsProvider::Rustls);
        if let Some(pem) = ca {
            let certificates: Result<Vec<Certificate<'static>>, _> = parse_pem(pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
                    Ok(_) => None,
                    Err(e) => Some(Err(e)),
                })
                .collect();
            let certificates = certificates.map_err(|e| RemoteError::Address(format!("the authorities: {e}")))?;
            if certificates.is_empty() {
                return Err(RemoteError::Address("there is no certificate among the authorities".into()));
            }
            tls = tls.root_certs(RootCerts::from(certificates));
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_recv_response(Some(Duration::from_secs(WAIT + 60)))
            .tls_config(tls.build())
            .build()
            .new_agent();
        let authorization = Zeroizing::new(format!("Bearer {token}"));
        Ok(Self { agent, base: url.trim_end_matches('/').to_owned(), authorization })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn unreachable(&self, reason: impl fmt::Display) -> RemoteError {
        RemoteError::Unreachable { url: self.base.clone(), reason: reason.to_string() }
    }

    /// The answer, unless it is a refusal.
    fn answer(&self, got: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, RemoteError> {
        let mut response = got.map_err(|e| self.unreachable(e))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().unwrap_or_default();
        match serde_json::from_slice(&text) {
            Ok(problem) => Err(RemoteError::Refused(problem)),
            Err(_) => Err(RemoteError::Answer(format!("status {status}"))),
        }
    }

    /// Tries again where that can help.
    fn tried<T>(&self, once: impl FnMut() -> Result<T, RemoteError>) -> Result<T, RemoteError> {
        let (mut once, mut attempt) = (once, 0);
        loop {
            match once() {
                Err(error) if attempt + 1 < TRIES => match error.passes(attempt) {
                    Some(pause) => sleep(pause),
                    None => return Err(error),
                },
                done => return done,
            }
            attempt += 1;
        }
    }

    fn json<T: DeserializeOwned>(&self, mut response: Response<Body>) -> Result<T, RemoteError> {
        let bytes = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        let bytes = bytes.map_err(|e| self.unreachable(e))?;
        serde_json::from_slice(&bytes).map_err(|e| RemoteError::Answer(e.to_string()))
    }

    fn get(&self, path: &str) -> Result<Response<Body>, RemoteError> {
        self.answer(self.agent.get(self.url(path)).header("authorization", self.authorization.as_str()).call())
    }

    /// Bytes of an object that the server has: all of them, or how many have arrived.
    fn here(&self, digest: Digest) -> Result<Result<(), u64>, RemoteError> {
        let url = self.url(&format!("/v1/objects/{digest}"));
        let got = self.agent.head(url).header("authorization", self.authorization.as_str()).call();
        let response = got.map_err(|e| self.unreachable(e))?;
        let offset = response.headers().get("upload-offset").and_then(|v| v.to_str().ok()?.parse().ok());
        match (response.status().as_u16(), offset) {
            (200, _) => Ok(Ok(())),
            (404, Some(offset)) => Ok(Err(offset)),
            (401, _) => {
                Err(RemoteError::Refused(Problem::new(Kind::Unauthorized, "the token is not known to the server")))
            }
            // An answer to HEAD has no words.
            (429 | 503, _) => Err(RemoteError::Refused(Problem::new(Kind::Busy, "the server is busy; try later"))),
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
                Err(offset) => offset.min(total),
            };
            loop {
                source.seek(SeekFrom::Start(here))?;
                let length = PIECE.min(total - here);
                let mut piece = source.by_ref().take(length);
                let request = self
                    .agent
                    .put(self.url(&format!("/v1/objects/{digest}")))
                    .header("authorization", self.authorization.as_str())
                    .header("content-length", length.to_string())
                    .header("content-range", format!("bytes {here}-{}/{total}", (here + length).saturating_sub(1)));
                match self.answer(request.send(ureq::SendBody::from_reader(&mut piece))) {
                    Ok(response) if response.status() == 202 => here += length,
                    Ok(_) => return Ok(digest),
                    Err(RemoteError::Refused(problem)) => match problem.offset() {
                        Some(offset) if offset > here => here = offset,
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
                getrandom::fill(&mut name).map_err(|e| RemoteError::Address(format!("no entropy: {e}")))?;
                name.iter().map(|b| format!("{b:02x}")).collect()
            }
        };
        self.tried(|| {
            let request = self
                .agent
                .post(self.url("/v1/jobs"))
                .header("authorization", self.authorization.as_str())
                .header("idempotency-key", own.as_str());
            self.json(self.answer(request.send(&body[..]))?)
        })
    }

    /// A job as it is now.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn job(&self, id: &str) -> Result<JobView, RemoteError> {
        self.tried(|| self.json(self.get(&format!("/v1/jobs/{id}"))?))
    }

    /// Waits for a job to end, telling how far it has come; gives its result's name and length.
    ///
    /// # Errors
    /// [`RemoteError`]; the job's own refusal.
    pub fn wait(&self, id: &str, progress: &dyn Fn(u64, u64)) -> Result<(Digest, u64), RemoteError> {
        loop {
            let view: JobView = self.tried(|| self.json(self.get(&format!("/v1/jobs/{id}?wait={WAIT}"))?))?;
            progress(view.done, view.steps);
            match view.state {
                State::Queued | State::Running => {}
                State::Done { result, bytes, .. } => return Ok((result, bytes)),
                State::Failed { problem } => return Err(RemoteError::Refused(problem)),
                State::Cancelled => {
                    return Err(RemoteError::Refused(Problem::new(Kind::State, "the job was cancelled")));
                }
            }
        }
    }

    /// Fetches an object; goes on where a connection ended. What comes is compared with its name.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn fetch(&self, digest: Digest, out: &mut impl Write) -> Result<u64, RemoteError> {
        let mut out = crate::digest::Naming::new(out);
        let mut have = 0;
        self.tried(|| {
            let request = self
                .agent
                .get(self.url(&format!("/v1/objects/{digest}")))
                .header("authorization", self.authorization.as_str())
                .header("range", format!("bytes={have}-"));
            let response = self.answer(request.call())?;
            let whole = response.headers().get("content-length").and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
            let mut left = whole.ok_or_else(|| RemoteError::Answer("an object without a length".into()))?;
            let (mut body, mut buffer) = (response.into_body().into_reader(), vec![0; 1 << 18]);
            while left > 0 {
                let most = buffer.len().min(left as usize);
                let read = body.read(&mut buffer[..most]).map_err(|e| self.unreachable(e))?;
                if read == 0 {
                    return Err(self.unreachable("the answer ended early"));
                }
                out.write_all(&buffer[..read])?;
                have += read as u64;
                left -= read as u64;
            }
            Ok(())
        })?;
        match out.finish()? {
            (found, length) if found == digest => Ok(length),
            _ => Err(RemoteError::Answer("the result has another SHA-256 than its name".into())),
        }
    }

    /// Cancels a job that waits or runs; forgets one that ended.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn delete_job(&self, id: &str) -> Result<(), RemoteError> {
        self.delete(&format!("/v1/jobs/{id}"))
    }

    /// Removes an object.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn delete_object(&self, digest: Digest) -> Result<(), RemoteError> {
        self.delete(&format!("/v1/objects/{digest}"))
    }

    fn delete(&self, path: &str) -> Result<(), RemoteError> {
        let request = self.agent.delete(self.url(path)).header("authorization", self.authorization.as_str());
        self.answer(request.call()).map(drop)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({}, token hidden)", self.base)
    }
}
