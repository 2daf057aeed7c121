//! Refusals as the protocol has them: RFC 9457, `application/problem+json`.

use serde::{Deserialize, Serialize};
use std::io;
use sudare_ring::{ErrorKind, Kinded};

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
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        let (name, status) = (kind.name(), kind.status());
        let (uri, kind) = (format!("urn:sudare:problem:{name}"), name.to_owned());
        Self { uri, kind, status, detail: detail.into(), retry_after: None, offset: None }
    }

    /// The name of its kind.
    pub fn name(&self) -> &str {
        &self.kind
    }

    /// Its kind; a name that this release does not know is a fault of the server.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::named(&self.kind).unwrap_or(ErrorKind::Internal)
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

impl<E: Kinded> From<E> for Problem {
    /// Names of files stay with the operator.
    fn from(e: E) -> Self {
        match e.system() {
            Some(io::ErrorKind::StorageFull) => {
                Self::new(ErrorKind::DiskFull, "the server's disk is full; its operator has to make room")
            }
            Some(kind) => Self::new(e.kind(), format!("reading or writing failed: {kind}")),
            None => Self::new(e.kind(), e.to_string()),
        }
    }
}

/// What a server makes of it.
#[cfg(feature = "server")]
pub(crate) mod answer {
    use super::Problem;
    use axum::http::{HeaderName, HeaderValue, StatusCode, header};
    use axum::response::{IntoResponse, Response};
    use sudare_ring::ErrorKind;

    /// Where an upload goes on.
    pub(crate) const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");

    impl Problem {
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
            Self::new(ErrorKind::NotFound, format!("there is no such {what}"))
        }

        pub(crate) fn request(detail: impl Into<String>) -> Self {
            Self::new(ErrorKind::Request, detail)
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
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;
    use sudare_store::StoreError;

    #[test]
    fn what_the_system_refuses_names_no_file_of_the_server() {
        let refused = |kind: io::ErrorKind| {
            Problem::from(StoreError::Io { path: "/srv/panel".into(), kind, reason: "why".into() })
        };
        assert_eq!(refused(io::ErrorKind::StorageFull).kind(), ErrorKind::DiskFull);
        let problem = refused(io::ErrorKind::PermissionDenied);
        assert_eq!((problem.kind(), problem.detail()), (ErrorKind::Io, "reading or writing failed: permission denied"));
        assert_eq!(Problem::from(io::Error::from(io::ErrorKind::StorageFull)).kind(), ErrorKind::DiskFull);
    }
}
