//! Refusals as the protocol has them: RFC 9457, `application/problem+json`.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::io;
use sudare_genome::GenomeError;
use sudare_matrix::MatrixError;
use sudare_ring::ErrorKind;
use sudare_rlwe::wire::WireError;

/// Where an upload goes on.
pub(crate) const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The layers below refused.
    Refused(ErrorKind),
    /// No token, or one that is not known.
    Unauthorized,
    /// No such object, job, panel or path. Another tenant's are not told from none.
    NotFound,
    /// A method that the path does not have.
    Method,
    /// Headers or a body that are none of this protocol.
    Request,
    /// A body without its length.
    LengthRequired,
    /// An object over the limit.
    TooLarge,
    /// The tenant's storage is full.
    Quota,
    /// The server's disk is full.
    DiskFull,
    /// A job that ran as long as a job may.
    TimeLimit,
    /// As many of the tenant's requests or jobs are under way as may be.
    TooMany,
    /// As many requests or jobs of all tenants are under way as may be.
    Busy,
    /// The server stops.
    Stopping,
    /// Bytes that are not those of the name.
    Digest,
    /// An upload that does not go on where the last one ended.
    Offset,
    /// A secret key, or what only a client keeps.
    Secret,
    /// A body slower than the least rate, or that stood still.
    Slow,
    /// A job that was cancelled, or has no result yet.
    State,
    /// An idempotency key that came with another request.
    Idempotency,
}

/// All kinds with their names and statuses.
const KINDS: [(Kind, &str, u16); 34] = [
    (Kind::Refused(ErrorKind::Parameters), "parameters", 422),
    (Kind::Refused(ErrorKind::Insecure), "insecure", 422),
    (Kind::Refused(ErrorKind::Mismatch), "mismatch", 409),
    (Kind::Refused(ErrorKind::MissingKey), "missing-key", 409),
    (Kind::Refused(ErrorKind::Levels), "levels", 422),
    (Kind::Refused(ErrorKind::Precision), "precision", 422),
    (Kind::Refused(ErrorKind::Input), "input", 422),
    (Kind::Refused(ErrorKind::Shape), "shape", 422),
    (Kind::Refused(ErrorKind::Unsupported), "unsupported", 422),
    (Kind::Refused(ErrorKind::NotPlanned), "not-planned", 422),
    (Kind::Refused(ErrorKind::Release), "release", 422),
    (Kind::Refused(ErrorKind::Format), "format", 422),
    (Kind::Refused(ErrorKind::WrongType), "wrong-type", 415),
    (Kind::Refused(ErrorKind::Io), "io", 500),
    (Kind::Refused(ErrorKind::Machine), "machine", 503),
    (Kind::Refused(ErrorKind::Internal), "internal", 500),
    (Kind::Unauthorized, "unauthorized", 401),
    (Kind::NotFound, "not-found", 404),
    (Kind::Method, "method", 405),
    (Kind::Request, "request", 400),
    (Kind::LengthRequired, "length-required", 411),
    (Kind::TooLarge, "too-large", 413),
    (Kind::Quota, "quota", 413),
    (Kind::DiskFull, "disk-full", 507),
    (Kind::TimeLimit, "time-limit", 422),
    (Kind::TooMany, "too-many", 429),
    (Kind::Busy, "busy", 503),
    (Kind::Stopping, "stopping", 503),
    (Kind::Digest, "digest", 422),
    (Kind::Offset, "offset", 409),
    (Kind::Secret, "secret", 422),
    (Kind::Slow, "slow", 408),
    (Kind::State, "state", 409),
    (Kind::Idempotency, "idempotency", 422),
];

impl Kind {
    fn entry(self) -> (&'static str, u16) {
        let found = KINDS.iter().find(|(kind, ..)| *kind == self);
        found.map_or(("internal", 500), |(_, name, status)| (*name, *status))
    }

    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// Its HTTP status.
    pub fn status(self) -> u16 {
        self.entry().1
    }

    /// The kind of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| *kind)
    }

    /// The kind that an error of the layers below would have.
    pub fn error_kind(self) -> ErrorKind {
        match self {
            Self::Refused(kind) => kind,
            Self::Digest => ErrorKind::Format,
            Self::Secret => ErrorKind::WrongType,
            Self::NotFound | Self::Idempotency | Self::State => ErrorKind::Mismatch,
            Self::Unauthorized
            | Self::Method
            | Self::Request
            | Self::LengthRequired
            | Self::TooLarge
            | Self::Quota
            | Self::DiskFull
            | Self::TimeLimit
            | Self::TooMany
            | Self::Busy
            | Self::Stopping
            | Self::Offset
            | Self::Slow => ErrorKind::Io,
        }
    }
}

/// A refusal with its words, and what would help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    #[serde(rename = "type")]
    uri: String,
    kind: String,
    status: u16,
    detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

impl Problem {
    /// A refusal of a kind.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let (name, status) = kind.entry();
        let (uri, kind) = (format!("urn:sudare:problem:{name}"), name.to_owned());
        Self { uri, kind, status, detail: detail.into(), retry_after: None, offset: None }
    }

    /// The same, to be tried again after so many seconds.
    #[must_use]
    pub(crate) fn retry(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The same, saying where an upload goes on.
    #[must_use]
    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(Kind::NotFound, format!("there is no such {what}"))
    }

    pub(crate) fn request(detail: impl Into<String>) -> Self {
        Self::new(Kind::Request, detail)
    }

    /// Its kind; a name that this release does not know is a fault of the server.
    pub fn kind(&self) -> Kind {
        Kind::from_name(&self.kind).unwrap_or(Kind::Refused(ErrorKind::Internal))
    }

    /// The words.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Seconds after which it is worth another try.
    pub fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    /// Bytes of an upload that the server has.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }
}

impl From<MatrixError> for Problem {
    fn from(e: MatrixError) -> Self {
        Self::new(Kind::Refused(e.kind()), e.to_string())
    }
}

impl From<GenomeError> for Problem {
    fn from(e: GenomeError) -> Self {
        Self::new(Kind::Refused(e.kind()), e.to_string())
    }
}

impl From<WireError> for Problem {
    fn from(e: WireError) -> Self {
        Self::new(Kind::Refused(e.kind()), e.to_string())
    }
}

impl From<io::Error> for Problem {
    /// Names of files stay with the operator.
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::NotFound => Self::not_found("object"),
            io::ErrorKind::StorageFull => {
                Self::new(Kind::DiskFull, "the server's disk is full; its operator has to make room")
            }
            kind => Self::new(Kind::Refused(ErrorKind::Io), format!("reading or writing failed: {kind}")),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(offset) = self.offset {
            headers.insert(UPLOAD_OFFSET, offset.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for (i, (kind, name, status)) in KINDS.iter().enumerate() {
            assert_eq!(Kind::from_name(name), Some(*kind));
            assert!((400..600).contains(status));
            assert!(KINDS[..i].iter().all(|(other, text, _)| other != kind && text != name));
        }
        // Of the layers below none is forgotten: an unknown one would be called internal.
        assert_eq!(KINDS.iter().filter(|(kind, ..)| matches!(kind, Kind::Refused(_))).count(), 16);
    }
}
