//! Names of objects: the SHA-256 of their bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

/// The SHA-256 of an object's bytes, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// That of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// That of everything a stream has, and its length.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn of_stream(mut input: impl Read) -> io::Result<(Self, u64)> {
        let (mut hasher, mut buffer, mut length) = (Sha256::new(), vec![0; 1 << 18], 0);
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok((Self(hasher.finalize().into()), length)),
                n => {
                    hasher.update(&buffer[..n]);
                    length += n as u64;
                }
            }
        }
    }
}

/// Names what passes through it.
pub(crate) struct Naming<W> {
    inner: W,
    hasher: Sha256,
    length: u64,
}

impl<W: Write> Naming<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), length: 0 }
    }

    /// The name and the length of what passed.
    pub fn finish(mut self) -> io::Result<(Digest, u64)> {
        self.inner.flush()?;
        Ok((Digest(self.hasher.finalize().into()), self.length))
    }
}

impl<W: Write> Write for Naming<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// Text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object is named by the 64 lower-case hexadecimal digits of its SHA-256")]
pub struct NoDigest;

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let (mut out, digits) = ([0; 32], text.as_bytes());
        if digits.len() != 64 {
            return Err(NoDigest);
        }
        // One spelling alone: digests are names of files.
        let digit = |d: u8| match d {
            b'0'..=b'9' => Ok(d - b'0'),
            b'a'..=b'f' => Ok(d - b'a' + 10),
            _ => Err(NoDigest),
        };
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(out))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        let name = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), name);
        assert_eq!(name.parse(), Ok(Digest::of(b"")));
        assert_eq!(Digest::of_stream(&b""[..]).unwrap(), (Digest::of(b""), 0));
        for wrong in ["", &name[1..], &name.to_uppercase(), &name.replace('e', "g"), &format!("{name}0")] {
            assert_eq!(wrong.parse::<Digest>(), Err(NoDigest));
        }
    }
}
