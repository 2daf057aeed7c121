//! Who may ask, and until when: a file with a line for each token, which names a tenant and has the token's hash alone.

use crate::digest::Digest;
use crate::problem::Problem;
use crate::service::ServeError;
use humantime::{format_rfc3339_seconds, parse_rfc3339};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
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
            .map_err(|e| ServeError::new(ErrorKind::Machine, format!("the system gives no randomness: {e}")))?;
        Ok(Self(Zeroizing::new(format!("{PREFIX}{}", Digest(*bytes)))))
    }

    /// The token itself, for the tenant.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// The line for the server's file, with a name that no other token of the tenant has and the moment from which the
    /// token is no longer taken.
    ///
    /// # Errors
    /// [`ServeError`] for a name that is no tenant's or no token's.
    pub fn line(&self, tenant: &str, name: Option<&str>, expires: Option<SystemTime>) -> Result<String, ServeError> {
        check_name(tenant, "tenant")?;
        let mut line = format!("{tenant} {}", Digest::of(self.0.as_bytes()));
        if let Some(name) = name {
            check_name(name, "token")?;
            line.push_str(&format!(" name={name}"));
        }
        if let Some(at) = expires {
            line.push_str(&format!(" expires={}", format_rfc3339_seconds(at)));
        }
        Ok(line)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// What the file says of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// What it is called among the tenant's: as the file says, or the first eight digits of its hash.
    pub name: Arc<str>,
    /// The moment from which it is no longer taken.
    pub expires: Option<SystemTime>,
    hash: Digest,
}

impl Entry {
    /// What a line says; nothing for an empty one and for one that starts with `#`.
    fn read(line: &str) -> Option<Result<Self, ServeError>> {
        let mut words = line.split_whitespace();
        let tenant = words.next().filter(|word| !word.starts_with('#'))?;
        Some((|| {
            check_name(tenant, "tenant")?;
            let wrong = |why: &str| ServeError::new(ErrorKind::Format, why);
            let hash: Digest = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| {
                wrong(
                    "the line has no SHA-256 of a token after the tenant's name; `sudare token add` writes such lines",
                )
            })?;
            let (mut name, mut expires) = (None, None);
            for word in words {
                match word.split_once('=') {
                    Some(("name", text)) if name.is_none() => {
                        check_name(text, "token")?;
                        name = Some(text.into());
                    }
                    Some(("expires", text)) if expires.is_none() => {
                        let at = parse_rfc3339(text);
                        expires = Some(
                            at.map_err(|_| wrong("the end of a token is written as expires=2030-01-31T00:00:00Z"))?,
                        );
                    }
                    _ => {
                        return Err(wrong(
                            "after the hash come name=… and expires=…, each at most once, and nothing else",
                        ));
                    }
                }
            }
            let name = name.unwrap_or_else(|| hash.to_string()[..8].into());
            Ok(Self { tenant: tenant.into(), name, expires, hash })
        })())
    }

    /// Whether it is no longer taken.
    pub fn expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// Tenants and the hashes of their tokens.
#[derive(Clone, Default)]
pub struct Tokens(Vec<Entry>);

impl Tokens {
    /// Reads lines of a tenant's name and the SHA-256 of a token, then `name=` and `expires=` where they are said; a
    /// tenant may have several tokens. Empty lines and those that start with `#` say nothing.
    ///
    /// # Errors
    /// [`ServeError`] for any other line, and for two tokens of a tenant with one name.
    pub fn read(text: &str) -> Result<Self, ServeError> {
        let mut out: Vec<Entry> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let Some(read) = Entry::read(line) else { continue };
            let wrong = |why: String| ServeError::new(ErrorKind::Format, format!("line {}: {why}", at + 1));
            let entry = read.map_err(|e| wrong(e.to_string()))?;
            if out.iter().any(|other| (&other.tenant, &other.name) == (&entry.tenant, &entry.name)) {
                return Err(wrong(format!(
                    "{} has another token of the name {}; give each a name of its own",
                    entry.tenant, entry.name
                )));
            }
            out.push(entry);
        }
        Ok(Self(out))
    }

    /// The text of a file without the line of a token; none where it has no such line. Comments stay.
    ///
    /// # Errors
    /// As [`Tokens::read`].
    pub fn without(text: &str, tenant: &str, name: &str) -> Result<Option<String>, ServeError> {
        Self::read(text)?;
        let named = |entry: &Entry| (&*entry.tenant, &*entry.name) == (tenant, name);
        let kept = |line: &&str| !Entry::read(line).and_then(Result::ok).is_some_and(|entry| named(&entry));
        let out: String = text.lines().filter(kept).map(|line| format!("{line}\n")).collect();
        Ok((out.lines().count() < text.lines().count()).then_some(out))
    }

    /// All of them, in the file's order.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// The token that is shown, if it may ask now. Takes as long for any token.
    pub(crate) fn shown(&self, token: &str, now: SystemTime) -> Result<&Entry, Problem> {
        let presented = Digest::of(token.as_bytes());
        let mut found = None;
        for entry in &self.0 {
            if bool::from(presented.0.ct_eq(&entry.hash.0)) {
                found = Some(entry);
            }
        }
        match found {
            Some(entry) if !entry.expired(now) => Ok(entry),
            Some(_) => {
                Err(Problem::new(ErrorKind::Unauthorized, "this token has expired; ask the operator for a new one"))
            }
            None => Err(Problem::new(
                ErrorKind::Unauthorized,
                "the server does not know this token; ask the operator for one",
            )),
        }
    }

    /// Whether a token is there still, and may ask now.
    pub(crate) fn has(&self, tenant: &str, name: &str, now: SystemTime) -> bool {
        self.0.iter().any(|entry| (&*entry.tenant, &*entry.name) == (tenant, name) && !entry.expired(now))
    }

    /// The tenants, each once.
    pub(crate) fn tenants(&self) -> Vec<Arc<str>> {
        self.0.iter().map(|entry| entry.tenant.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// Names of tenants are names of folders, beside the server's own file `lock`.
fn check_name(name: &str, whose: &str) -> Result<(), ServeError> {
    let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(good) && name != "lock" {
        return Ok(());
    }
    let words = format!(
        "the name of a {whose} has 1 to 64 lower-case letters, digits, hyphens and underscores, and is not lock"
    );
    Err(ServeError::new(ErrorKind::Input, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn tokens_are_known_by_their_hashes() {
        let (one, two) = (Token::new().unwrap(), Token::new().unwrap());
        let now = SystemTime::now();
        let line = |token: &Token, tenant, name, expires| token.line(tenant, name, expires).unwrap();
        let text = format!(
            "# tenants\n\n{}\n{}\n",
            line(&one, "clinic", None, None),
            line(&two, "lab", Some("laptop"), Some(now + Duration::from_secs(60)))
        );
        assert!(!text.contains(one.secret()));
        let tokens = Tokens::read(&text).unwrap();
        let who = |token: &str| tokens.shown(token, now).ok().map(|entry| entry.tenant.to_string());
        assert_eq!(who(one.secret()).as_deref(), Some("clinic"));
        assert_eq!(who(two.secret()).as_deref(), Some("lab"));
        for wrong in ["", "sudare_", &one.secret()[1..], &format!("{} ", one.secret())] {
            assert_eq!(who(wrong), None);
        }
        // The other has no end, and a name that its hash gives it.
        let later = now + Duration::from_secs(61);
        assert!(tokens.shown(two.secret(), later).unwrap_err().detail().contains("expired"));
        assert!(tokens.shown(one.secret(), later).is_ok());
        assert!(tokens.has("lab", "laptop", now) && !tokens.has("lab", "laptop", later));
        let name = &*tokens.entries()[0].name;
        assert_eq!(name, &Digest::of(one.secret().as_bytes()).to_string()[..8]);
        let without = Tokens::without(&text, "clinic", name).unwrap().unwrap();
        assert!(without.starts_with("# tenants\n\nlab "), "{without}");
        assert_eq!(Tokens::without(&text, "clinic", "laptop").unwrap(), None);
        assert_eq!(format!("{one:?}{tokens:?}"), "Token(hidden)Tokens(2)");
        assert!(Tokens::read("# nobody\n").unwrap().entries().is_empty());
        let hash = Digest::of(b"x");
        for wrong in [
            "a",
            &format!("../b {hash}"),
            &format!("lock {hash}"),
            &format!("A {hash}"),
            &format!("a {hash} b"),
            &format!("a {hash} name=A"),
            &format!("a {hash} name=b name=c"),
            &format!("a {hash} expires=tomorrow"),
            &format!("a {hash} name=b\na {hash} name=b"),
        ] {
            assert!(Tokens::read(wrong).is_err(), "{wrong}");
        }
    }
}
