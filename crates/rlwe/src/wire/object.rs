//! The numbers of all types of objects.
//!
//! They stand together, so that no two are the same and whoever meets an object of another crate can say
//! what it is; how an object is encoded, its own crate says ([`super::Wire`]).

use std::fmt;

impl ObjectType {
    /// Whether it is a secret key: what it encrypted is lost with it.
    pub const fn is_secret(self) -> bool {
        matches!(
            self,
            Self::SecretKey | Self::TfheClientKey | Self::GenomeClientKey | Self::PartyKey | Self::PrivateShare
        )
    }
}

/// The first number that no crate of Sudare takes.
const FIRST_APPLICATION_CODE: u16 = 0x8000;

macro_rules! object_types {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// What a container holds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ObjectType {
            $($(#[$doc])* $name,)*
            /// An object of an application that Sudare knows nothing of: a number from 0x8000 on.
            Application(u16),
        }

        impl ObjectType {
            /// Its number on the wire.
            pub const fn code(self) -> u16 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Application(code) => code,
                }
            }

            /// The type with a number.
            pub const fn from_code(code: u16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    FIRST_APPLICATION_CODE.. => Some(Self::Application(code)),
                    _ => None,
                }
            }
        }

        impl fmt::Display for ObjectType {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)*
                    Self::Application(code) => write!(f, "an application's object of type {code}"),
                }
            }
        }
    };
}

object_types! {
    /// A parameter set.
    Params = 1, "parameters";
    /// A secret key.
    SecretKey = 2, "a secret key";
    /// A public encryption key.
    PublicKey = 3, "a public key";
    /// Evaluation keys.
    EvalKeys = 4, "evaluation keys";
    /// A plaintext.
    Plaintext = 5, "a plaintext";
    /// A ciphertext.
    Ciphertext = 6, "a ciphertext";
    /// Several ciphertexts with an application's own header.
    Bundle = 7, "a bundle of ciphertexts";
    /// Keys for bootstrapping CKKS.
    BootstrapKeys = 8, "bootstrapping keys";
    /// Keys between CKKS and the LWE ciphertexts of TFHE.
    LweKeys = 9, "keys between CKKS and LWE";
    /// A parameter set with a plaintext modulus.
    IntegerParams = 16, "parameters with a plaintext modulus";
    /// A plaintext of an exact scheme.
    IntegerPlaintext = 17, "a plaintext of an exact scheme";
    /// A ciphertext of an exact scheme.
    IntegerCiphertext = 18, "a ciphertext of an exact scheme";
    /// Several ciphertexts of an exact scheme with an application's own header.
    IntegerBundle = 19, "a bundle of ciphertexts of an exact scheme";
    /// Keys for refreshing BFV and BGV ciphertexts.
    RefreshKeys = 20, "keys of a refresh";
    /// A TFHE parameter set.
    TfheParams = 32, "TFHE parameters";
    /// A TFHE client key.
    TfheClientKey = 33, "a TFHE client key";
    /// A TFHE server key.
    TfheServerKey = 34, "a TFHE server key";
    /// An array of encrypted integers or booleans.
    TfheArray = 35, "an array of encrypted integers";
    /// Parameters of circuit bootstrapping.
    CircuitParams = 36, "parameters of circuit bootstrapping";
    /// Keys of circuit bootstrapping.
    CircuitKey = 37, "keys of circuit bootstrapping";
    /// Parameters of FHEW's gates.
    FhewParams = 38, "parameters of FHEW";
    /// Keys of FHEW's gates.
    FhewKey = 39, "keys of FHEW";
    /// A public key of TFHE.
    TfhePublicKey = 40, "a TFHE public key";
    /// A haplotype panel.
    GenomePanel = 64, "a haplotype panel";
    /// The public description of a panel.
    GenomeSites = 65, "a panel's public description";
    /// Tables of a panel, prepared for searches.
    GenomeTables = 66, "prepared tables of a panel";
    /// The secret seed of a genome client.
    GenomeClientKey = 67, "a genome client's secret key";
    /// What a genome client remembers of its query.
    GenomePending = 68, "the private half of a genome query";
    /// An encrypted query for a panel.
    GenomeQuery = 69, "an encrypted genome query";
    /// The encrypted answer to it.
    GenomeAnswer = 70, "an encrypted genome answer";
    /// What a server needs besides queries: evaluation keys.
    GenomeKeys = 71, "a genome client's evaluation keys";
    /// What several parties agree on before they make keys.
    PartySession = 80, "a session of several parties";
    /// A party's secrets.
    PartyKey = 81, "a party's secrets";
    /// A party's share of the public key.
    PublicKeyShare = 82, "a share of a public key";
    /// A party's shares of Galois keys.
    GaloisShare = 83, "shares of Galois keys";
    /// A party's share of round 1 of the relinearisation key.
    RelinFirstShare = 84, "a share of round 1 of a relinearisation key";
    /// The sum of round 1.
    RelinSum = 85, "the sum of round 1 of a relinearisation key";
    /// A party's share of round 2.
    RelinSecondShare = 86, "a share of round 2 of a relinearisation key";
    /// A share of a party's secret for another party alone.
    PrivateShare = 87, "a secret share for one party";
    /// A party's share of a decryption.
    DecryptionShare = 88, "a share of a decryption";
    /// A party's share of a key switch to a public key.
    HandoverShare = 89, "a share of a key switch";
    /// A party's share of a refresh.
    RefreshShare = 90, "a share of a refresh";
}
