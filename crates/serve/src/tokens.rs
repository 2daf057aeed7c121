//! Who may ask: a file with a line for each token, which names a tenant and has the token's hash alone.

use crate::digest::Digest;
use crate::service::ServeError;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use sudare_ring::ErrorKind;
use zeroize::Zeroizing;

/// Most bytes of a tenant's name.
const MAX_NAME: usize = 64;
/// What every token starts with, so that scanners for leaked secrets find it.
const PREFIX: &str = "sudare_";

/// A new token. Whoever has it is the tenant.
pub struct Token(Zeroizing<String>);

impl Token {
    /// A random token of 256 bits.
    ///
    /// # Errors
    /// [`ServeError`] if the system gives no entropy.
    pub fn new() -> Result<Self, ServeError> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice())
            .map_err(|e| ServeError::new(ErrorKind::Machine, format!("the system gives no entropy: {e}")))?;
        Ok(Self(Zeroizing::new(format!("{PREFIX}{}", Digest(*bytes)))))
    }

    /// The token itself, for the tenant.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// The line for the server's file.
    ///
    /// # Errors
    /// [`ServeError`] for a name that is no tenant's.
    pub fn line(&self, tenant: &str) -> Result<String, ServeError> {
        check_name(tenant)?;
        Ok(format!("{tenant} {}", Digest::of(self.0.as_bytes())))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Tenants and the hashes of their tokens.
#[derive(Clone)]
pub struct Tokens(Vec<(Arc<str>, Digest)>);

impl Tokens {
    /// Reads lines of a tenant's name and the SHA-256 of a token; a tenant may have several. Empty lines and those
    /// that start with `#` say nothing.
    ///
    /// # Errors
    /// [`ServeError`] for any other line, or for no token at all.
    pub fn read(text: &str) -> Result<Self, ServeError> {
        let mut out = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            let wrong = |why: &str| ServeError::new(ErrorKind::Format, format!("line {}: {why}", at + 1));
            check_name(name).map_err(|e| wrong(&e.to_string()))?;
            let hash = words.next().and_then(|word| word.parse().ok()).filter(|_| words.next().is_none());
            let hash = hash.ok_or_else(|| wrong("a tenant's name and the SHA-256 of its token are wanted"))?;
            out.push((name.into(), hash));
        }
        match out.is_empty() {
            true => Err(ServeError::new(ErrorKind::Format, "there is no token; make one with `sudare token`")),
            false => Ok(Self(out)),
        }
    }

    /// Whose token it is. Takes as long for any token.
    pub(crate) fn tenant(&self, token: &str) -> Option<Arc<str>> {
        let presented = Digest::of(token.as_bytes());
        let mut found = None;
        for (name, hash) in &self.0 {
            if bool::from(presented.0.ct_eq(&hash.0)) {
                found = Some(name.clone());
            }
        }
        found
    }

    /// The tenants.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|(name, _)| name)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// Names of tenants are names of folders.
fn check_name(name: &str) -> Result<(), ServeError> {
    let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(good) {
        return Ok(());
    }
    let words = "a tenant's name has 1 to 64 lower-case letters, digits, hyphens and underscores";
    Err(ServeError::new(ErrorKind::Input, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_known_by_their_hashes() {
        let (one, two) = (Token::new().unwrap(), Token::new().unwrap());
        let text = format!("# tenants\n\n{}\n{}\n", one.line("clinic").unwrap(), two.line("lab").unwrap());
        assert!(!text.contains(one.secret()));
        let tokens = Tokens::read(&text).unwrap();
        assert_eq!(tokens.tenant(one.secret()).as_deref(), Some("clinic"));
        assert_eq!(tokens.tenant(two.secret()).as_deref(), Some("lab"));
        for wrong in ["", "sudare_", &one.secret()[1..], &format!("{} ", one.secret())] {
            assert_eq!(tokens.tenant(wrong), None);
        }
        assert_eq!(format!("{one:?}{tokens:?}"), "Token(hidden)Tokens(2)");
        let hash = Digest::of(b"x");
        for wrong in ["", "# nobody", "a", &format!("../b {hash}"), &format!("A {hash}"), &format!("a {hash} b")] {
            assert!(Tokens::read(wrong).is_err(), "{wrong}");
        }
    }
}
