//! A room of a server, for the parties that meet there.

use crate::client::{Remote, RemoteError};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use sudare_methods::MatrixError;
use sudare_ring::{ErrorKind, Kinded};
use sudare_session::parties::{Messages, too_long};

/// The messages of several parties at a server, in a room of the tenant that all of them are.
///
/// A message is an object, sent in pieces that go on after an interruption, and then given its name, which no other message gets.
pub struct RemoteRoom {
    remote: Remote,
    name: String,
}

impl RemoteRoom {
    /// The room of a name: up to 64 letters, digits, hyphens, underscores and dots. It is made with its first message.
    pub fn new(remote: Remote, name: &str) -> Arc<Self> {
        Arc::new(Self { remote, name: name.to_owned() })
    }

    /// The way to the server.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The room's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<RemoteError> for MatrixError {
    fn from(error: RemoteError) -> Self {
        Self::Messages { kind: error.kind(), words: error.to_string() }
    }
}

impl Messages for RemoteRoom {
    fn names(&self, beginning: &str) -> Result<BTreeSet<String>, MatrixError> {
        Ok(self.remote.messages(&self.name, beginning)?.into_keys().collect())
    }

    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, MatrixError> {
        let absent = || RemoteError::Answer(format!("it has lost the message {name}"));
        let message = self.remote.messages(&self.name, name)?.remove(name).ok_or_else(absent)?;
        if message.bytes > limit {
            return Err(too_long(&self.place(name)));
        }
        let mut bytes = Vec::new();
        self.remote.fetch_within(message.object, message.bytes, &mut bytes)?;
        Ok(bytes)
    }

    fn post(&self, name: &str, bytes: &[u8]) -> Result<bool, MatrixError> {
        let object = self.remote.send(&mut Cursor::new(bytes))?;
        match self.remote.post(&self.name, name, object) {
            Err(RemoteError::Refused(problem)) if problem.kind() == ErrorKind::State => Ok(false),
            posted => Ok(posted.map(|()| true)?),
        }
    }

    fn place(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}/v1/rooms/{}/{name}", self.remote.address(), self.name))
    }
}

impl fmt::Debug for RemoteRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteRoom({}, {:?})", self.name, self.remote)
    }
}
