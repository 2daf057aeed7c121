//! What is for one receiver's eyes: HPKE (RFC 9180) between the keys of two names, X25519 with HKDF-SHA256 and AES-256-GCM, in the mode that
//! authenticates the sender.

use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable, single_shot_open, single_shot_seal_with_rng};
use std::convert::Infallible;
use sudare_methods::MatrixError;
use sudare_ring::random::{Seed, Stream};
use sudare_rlwe::RlweError;
use sudare_rlwe::multiparty::PartyError;
use sudare_rlwe::wire::WireError;
use zeroize::Zeroizing;

type Suite = X25519HkdfSha256;
type Public = <Suite as Kem>::PublicKey;
type Private = <Suite as Kem>::PrivateKey;

/// Bytes of a public key, and of what a sealed message begins with.
pub(super) const KEY_BYTES: usize = 32;

/// The public key that others encrypt to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey([u8; KEY_BYTES]);

impl SealedKey {
    /// A key from its bytes.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let corrupt = WireError::Corrupt { what: "a receiver's key that is none" };
        let bytes: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| corrupt.clone())?;
        Public::from_bytes(&bytes).map_err(|_| corrupt)?;
        Ok(Self(bytes))
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; KEY_BYTES] {
        self.0
    }

    /// What people compare over the telephone: the first bytes of its BLAKE3.
    pub fn fingerprint(&self) -> String {
        let hash = blake3::derive_key("sudare party fingerprint v1", &self.0);
        let pairs: Vec<String> = hash[..8].chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect();
        pairs.join("-")
    }

    fn public(&self) -> Result<Public, MatrixError> {
        Public::from_bytes(&self.0).map_err(|_| internal("a key that was checked is none"))
    }
}

fn internal(what: &'static str) -> MatrixError {
    RlweError::Internal { what }.into()
}

/// The generator of one message's ephemeral key.
struct Fresh(Stream);

impl TryRng for Fresh {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u64() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(out);
        Ok(())
    }
}

impl TryCryptoRng for Fresh {}

/// The key pair of a name: encrypts to others in its own name, and opens what is for it. Wiped when dropped, neither cloned nor printed.
pub struct Sealing {
    private: Private,
    public: SealedKey,
}

impl Sealing {
    /// The key pair that 32 secret bytes stand for.
    pub fn from_seed(seed: &[u8; KEY_BYTES]) -> Self {
        let (private, public) = Suite::derive_keypair(seed);
        let mut bytes = [0; KEY_BYTES];
        public.write_exact(&mut bytes);
        Self { private, public: SealedKey(bytes) }
    }

    /// The public half.
    pub fn key(&self) -> &SealedKey {
        &self.public
    }

    /// Encrypts to a receiver, bound to `context`: who says what to whom.
    ///
    /// # Errors
    /// [`MatrixError::He`] if the system gives no entropy; [`WireError::Corrupt`] for a receiver's key of small order.
    pub fn seal(&self, receiver: &SealedKey, context: &[u8], message: &[u8]) -> Result<Vec<u8>, MatrixError> {
        let mode = OpModeS::Auth((self.private.clone(), self.public.public()?));
        let mut fresh = Fresh(Seed::from_entropy()?.stream(0));
        let receiver = receiver.public()?;
        let sealed = single_shot_seal_with_rng::<AesGcm256, HkdfSha256, Suite>(
            &mode,
            &receiver,
            context,
            message,
            &[],
            &mut fresh,
        );
        // A key of small order makes no secret.
        let what = "a receiver's key that nothing can be encrypted to";
        let (key, sealed) = sealed.map_err(|_| WireError::Corrupt { what })?;
        let mut out = vec![0; KEY_BYTES];
        key.write_exact(&mut out);
        out.extend(sealed);
        Ok(out)
    }

    /// Opens what `party`, with the key `sender`, encrypted to this one in the same context.
    ///
    /// # Errors
    /// [`PartyError::Malformed`] for anything else, with the party.
    pub fn open(
        &self,
        (party, sender): (u32, &SealedKey),
        context: &[u8],
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, MatrixError> {
        let error = WireError::Corrupt { what: "an encrypted message that this party did not write to this receiver" };
        let refuse = || MatrixError::from(PartyError::Malformed { party, error: error.clone() });
        let (key, sealed) = sealed.split_at_checked(KEY_BYTES).ok_or_else(refuse)?;
        let key = <Suite as Kem>::EncappedKey::from_bytes(key).map_err(|_| refuse())?;
        let mode = OpModeR::Auth(sender.public()?);
        let open = single_shot_open::<AesGcm256, HkdfSha256, Suite>(&mode, &self.private, &key, context, sealed, &[]);
        open.map(Zeroizing::new).map_err(|_| refuse())
    }
}

impl std::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealing({}, hidden)", self.public.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_receiver_opens_and_only_the_sender_seals() {
        let [a, b, c] = [1u8, 2, 3].map(|seed| Sealing::from_seed(&[seed; 32]));
        let sealed = a.seal(b.key(), b"context", b"message").unwrap();
        assert_eq!(&**b.open((0, a.key()), b"context", &sealed).unwrap(), b"message");
        assert_ne!(sealed, a.seal(b.key(), b"context", b"message").unwrap());
        let refused = |by: &Sealing, sender: &SealedKey, context: &[u8], bytes: &[u8]| {
            let error = by.open((7, sender), context, bytes).unwrap_err().to_string();
            assert!(error.contains("party 7"), "{error}");
        };
        refused(&c, a.key(), b"context", &sealed);
        refused(&b, c.key(), b"context", &sealed);
        refused(&b, a.key(), b"another", &sealed);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            refused(&b, a.key(), b"context", &changed);
            refused(&b, a.key(), b"context", &sealed[..at]);
        }
        assert!(SealedKey::from_bytes(&[0; 31]).is_err());
        assert!(!format!("{a:?}").contains("private"));
    }
}
