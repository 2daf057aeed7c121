//! Messages of a session of parties in a shared folder, which anybody may have written there.

use super::mutation::{self, Random};
use sudare_ring::{ErrorKind, Kinded};
use sudare_session::parties::{Request, SealedKey, Sealing};

fn keys() -> [Sealing; 2] {
    [1, 2].map(|seed| Sealing::from_seed(&[seed; 32]))
}

/// A request, a receiver's key, and a message for a receiver.
pub fn seeds() -> Vec<Vec<u8>> {
    let [own, other] = keys();
    let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect();
    let request = Request { parties: names(&["north", "west"]), receivers: names(&["ministry"]) };
    let request = request.to_bytes().expect("a request is written");
    vec![request, own.key().to_bytes().to_vec(), other.seal(own.key(), b"context", b"message").expect("it is sealed")]
}

/// Changes bytes.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    mutation::bytes(random, data, other);
}

/// Reads it as each of the three; whether it was taken as one. What is taken is written as it was read.
pub fn check(data: &[u8]) -> bool {
    let [own, other] = keys();
    let request = Request::from_bytes(data);
    if let Ok(request) = &request {
        let again = request.to_bytes().and_then(|bytes| Request::from_bytes(&bytes));
        assert_eq!(again.as_ref(), Ok(request));
    }
    let key = SealedKey::from_bytes(data);
    if let Ok(key) = &key {
        assert_eq!(key.to_bytes(), data);
        // To a key of small order nothing is encrypted.
        if let Err(error) = own.seal(key, b"context", b"message") {
            assert_eq!(error.kind(), ErrorKind::Format);
        }
    }
    let opened = own.open((1, other.key()), b"context", data);
    if let Ok(opened) = &opened {
        assert_eq!(opened.as_slice(), b"message");
    }
    request.is_ok() || key.is_ok() || opened.is_ok()
}
