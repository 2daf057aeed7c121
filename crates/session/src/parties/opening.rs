//! How several parties open a result: ciphertext by ciphertext, of real numbers or of integers.

use super::request::Request;
use super::room::Room;
use crate::Encrypted;
use crate::client::require_plan;
use sudare_exact::bgv::Bgv;
use sudare_exact::multiparty::SharedDecryption as ExactDecryption;
use sudare_expr::Matrix;
use sudare_he::ckks;
use sudare_he::ckks::multiparty::SharedDecryption;
use sudare_methods::MatrixError;
use sudare_rlwe::RlweError;
use sudare_rlwe::multiparty::{DecryptionShare, Ledger, Party};
use zeroize::Zeroizing;

/// The decryption of a result by the parties of a request: all of them work it out from the plan, and so put the same questions.
pub(super) enum Openings {
    /// Of real numbers.
    Real(Vec<SharedDecryption>),
    /// Of integers, under each plaintext modulus.
    Integers(Vec<Vec<ExactDecryption<Bgv>>>),
}

/// What a result is once it is opened.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// Real numbers, within what the plan promises.
    Reals(Vec<Matrix>),
    /// Integers, exactly.
    Integers(Vec<Matrix<i128>>),
}

impl Openings {
    pub fn new(room: &Room, value: &Encrypted, request: &Request) -> Result<Self, MatrixError> {
        let (plan, session) = (room.plan(), room.session());
        require_plan(plan.hash(), value)?;
        if value.node() != plan.expression().output() {
            let planned = "only the result of the expression is decrypted".into();
            return Err(MatrixError::NotPlanned { operation: "a decryption of this value", planned });
        }
        let active = room.active(request)?;
        if let Some(engine) = plan.engine().integers() {
            let (noises, policy) = engine.opening().ok_or(MatrixError::NoRelease { what: "plan" })?;
            let under = |(noise, list): (&f64, &[_])| {
                let one = |c| Ok(ExactDecryption::new(session, c, *noise, &active, policy)?);
                list.iter().map(one).collect::<Result<Vec<_>, MatrixError>>()
            };
            let lists = value.residues()?;
            return Ok(Self::Integers(noises.iter().zip(lists).map(under).collect::<Result<_, _>>()?));
        }
        let (opening, slots) = (plan.opening()?, session.params().degree() / 2);
        let one = |ciphertext| {
            let bounds = (&opening.expected, opening.max_abs);
            Ok(SharedDecryption::new(session, ciphertext, bounds, &active, opening.policy, slots)?)
        };
        Ok(Self::Real(value.ciphertexts()?.iter().map(one).collect::<Result<_, MatrixError>>()?))
    }

    /// How many ciphertexts there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Real(all) => all.len(),
            Self::Integers(all) => all.iter().map(Vec::len).sum(),
        }
    }

    /// A party's shares of all ciphertexts, in their order.
    pub fn shares(&self, party: &Party, ledger: &mut impl Ledger) -> Result<Vec<DecryptionShare>, MatrixError> {
        match self {
            Self::Real(all) => all.iter().map(|opening| Ok(opening.share(party, ledger)?)).collect(),
            Self::Integers(all) => all.iter().flatten().map(|opening| Ok(opening.share(party, ledger)?)).collect(),
        }
    }

    /// The result, from the shares of each ciphertext.
    pub fn combine(&self, room: &Room, node: usize, shares: &[Vec<DecryptionShare>]) -> Result<Opened, MatrixError> {
        let plan = room.plan();
        match self {
            Self::Real(all) => {
                let plain = all.iter().zip(shares).map(|(opening, shares)| Ok(opening.combine(shares)?));
                let plain = Zeroizing::new(plain.collect::<Result<Vec<ckks::Decrypted>, MatrixError>>()?);
                Ok(Opened::Reals(plan.real()?.decode(plan.goal(), node, &plain)?))
            }
            Self::Integers(all) => {
                let mut shares = shares.iter();
                let mut one = |opening: &ExactDecryption<Bgv>| {
                    let missing = RlweError::Internal { what: "a ciphertext without shares" };
                    Ok(opening.combine(shares.next().ok_or(missing)?)?)
                };
                let plain = all.iter().map(|list| list.iter().map(&mut one).collect::<Result<Vec<_>, MatrixError>>());
                Ok(Opened::Integers(plan.exact()?.decode(node, &plain.collect::<Result<Vec<_>, _>>()?)?))
            }
        }
    }
}

impl Opened {
    /// Real numbers.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for integers.
    pub fn reals(self) -> Result<Vec<Matrix>, MatrixError> {
        match self {
            Self::Reals(matrices) => Ok(matrices),
            Self::Integers(_) => Err(MatrixError::NotPlanned {
                operation: "a result of real numbers",
                planned: "the plan computes with integers; read its results as integers".into(),
            }),
        }
    }

    /// Integers.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for real numbers.
    pub fn integers(self) -> Result<Vec<Matrix<i128>>, MatrixError> {
        match self {
            Self::Integers(matrices) => Ok(matrices),
            Self::Reals(_) => Err(MatrixError::NotPlanned {
                operation: "a result of integers",
                planned: "the plan computes with real numbers; read its results as such".into(),
            }),
        }
    }
}
