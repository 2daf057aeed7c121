//! Who decrypts a result, and for whom.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use sudare_rlwe::wire::WireError;

/// Most bytes of a request: names of all parties and of a hundred receivers.
pub(super) const MAX_BYTES: u64 = 16 << 10;
/// Most receivers of a result.
const MAX_RECEIVERS: usize = 100;

/// Who decrypts a result, and for whom: what the first who asks fixes, since a ciphertext has one answer for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The parties that decrypt, as many as the threshold.
    pub parties: Vec<String>,
    /// Who reads the result: parties, or others that joined to receive.
    pub receivers: Vec<String>,
}

/// A request that stands in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What the result is called in names of files: the beginning of a digest of its bytes.
    pub result: String,
    /// Who decrypts it, and for whom.
    pub request: Request,
    /// The parties that have not answered.
    pub unanswered: Vec<String>,
}

impl Request {
    /// A request of names that are there.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] for one without parties or receivers, or with one of them twice.
    pub fn check(&self) -> Result<(), WireError> {
        let once = |names: &[String]| names.iter().enumerate().all(|(i, name)| !names[..i].contains(name));
        let plausible = !self.parties.is_empty() && !self.receivers.is_empty() && self.receivers.len() <= MAX_RECEIVERS;
        match plausible && once(&self.parties) && once(&self.receivers) {
            true => Ok(()),
            false => Err(WireError::Corrupt { what: "a request that names nobody, too many, or somebody twice" }),
        }
    }

    /// Whether both name the same parties and the same receivers, in any order.
    pub fn names_the_same(&self, other: &Self) -> bool {
        let same = |a: &[String], b: &[String]| a.iter().collect::<BTreeSet<_>>() == b.iter().collect();
        same(&self.parties, &other.parties) && same(&self.receivers, &other.receivers)
    }

    /// A request from the bytes of its file.
    ///
    /// # Errors
    /// [`WireError::Corrupt`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let request: Self =
            serde_json::from_slice(bytes).map_err(|_| WireError::Corrupt { what: "a request that is none" })?;
        request.check()?;
        Ok(request)
    }

    /// Its bytes.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] for one that is none.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        self.check()?;
        serde_json::to_vec(self).map_err(|_| WireError::Corrupt { what: "a request that is none" })
    }
}
