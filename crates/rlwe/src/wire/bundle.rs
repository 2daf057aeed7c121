//! Several ciphertexts in one container, with an application's own header: an encrypted matrix,
//! say.

use super::bytes::Fields;
use super::container::{Reader, Writer};
use super::error::WireError;
use super::header::{Header, State};
use super::{ObjectType, Wire};
use crate::ids::{KeyId, ParamsHash};
use std::fmt;
use std::io::Write;

/// Most bytes of an application's header.
pub const MAX_APPLICATION_BYTES: usize = 64 << 10;
/// Most ciphertexts of a bundle.
pub const MAX_BUNDLE: usize = 1 << 16;

/// A scheme's ciphertexts, which travel together as well: one record each in the bundle's header.
pub trait Bundled: Wire<Params: Clone> {
    /// What the container of several says that it holds.
    const BUNDLE: ObjectType;

    /// What the header says of one.
    type Record;

    /// The parameters' hash and the key of this one.
    fn owner(&self) -> (ParamsHash, KeyId);

    /// The record of this one.
    ///
    /// # Errors
    /// Those of a state that no ciphertext has.
    fn record(&self) -> Result<Self::Record, WireError>;

    /// Writes a record.
    fn write_record(params: &Self::Params, record: &Self::Record, meta: &mut Vec<u8>);

    /// Reads a record.
    ///
    /// # Errors
    /// [`WireError::Corrupt`], [`WireError::Oversize`].
    fn read_record(params: &Self::Params, fields: &mut Fields<'_>) -> Result<Self::Record, WireError>;

    /// Bytes of each segment of a record's ciphertext.
    fn lengths(params: &Self::Params, record: &Self::Record) -> impl Iterator<Item = u64>;

    /// Reads the segments of a record's ciphertext.
    ///
    /// # Errors
    /// Every [`WireError`].
    fn load(
        params: &Self::Params,
        key: KeyId,
        record: Self::Record,
        reader: &mut Reader<'_>,
    ) -> Result<Self, WireError>;
}

/// Ciphertexts of one key, in order, and what the application says of them.
#[derive(Clone)]
pub struct Bundle<C: Bundled> {
    params: C::Params,
    key: KeyId,
    application: Vec<u8>,
    ciphertexts: Vec<C>,
}

impl<C: Bundled + fmt::Debug> fmt::Debug for Bundle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.application.len();
        write!(f, "Bundle({:?}, {bytes} bytes of the application's, key {})", self.ciphertexts, self.key)
    }
}

impl<C: Bundled> Bundle<C> {
    /// Puts ciphertexts of one key together with an application's header, which travels openly
    /// and is checked by the application alone.
    ///
    /// # Errors
    /// [`WireError::Oversize`] over [`MAX_BUNDLE`] ciphertexts or [`MAX_APPLICATION_BYTES`],
    /// [`WireError::WrongParameters`], [`WireError::WrongKey`].
    pub fn new(params: &C::Params, key: KeyId, application: Vec<u8>, ciphertexts: Vec<C>) -> Result<Self, WireError> {
        check_sizes(application.len(), ciphertexts.len())?;
        let expected = C::params_hash(params);
        for c in &ciphertexts {
            let (found, owner) = c.owner();
            if found != expected {
                return Err(WireError::WrongParameters { found, expected });
            }
            if owner != key {
                return Err(WireError::WrongKey { found: owner, expected: key });
            }
        }
        Ok(Self { params: params.clone(), key, application, ciphertexts })
    }

    /// The parameters.
    pub fn params(&self) -> &C::Params {
        &self.params
    }

    /// The name of the secret key that all ciphertexts are under.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// The application's header.
    pub fn application(&self) -> &[u8] {
        &self.application
    }

    /// The ciphertexts.
    pub fn ciphertexts(&self) -> &[C] {
        &self.ciphertexts
    }

    /// The application's header and the ciphertexts.
    pub fn into_parts(self) -> (Vec<u8>, Vec<C>) {
        (self.application, self.ciphertexts)
    }
}

fn check_sizes(application: usize, ciphertexts: usize) -> Result<(), WireError> {
    let over =
        |what, found: usize, limit: usize| Err(WireError::Oversize { what, found: found as u64, limit: limit as u64 });
    if application > MAX_APPLICATION_BYTES {
        return over("an application's header", application, MAX_APPLICATION_BYTES);
    }
    if ciphertexts > MAX_BUNDLE {
        return over("the number of ciphertexts", ciphertexts, MAX_BUNDLE);
    }
    Ok(())
}

impl<C: Bundled> Wire for Bundle<C> {
    type Params = C::Params;
    const TYPE: ObjectType = C::BUNDLE;

    fn params_hash(params: &C::Params) -> ParamsHash {
        C::params_hash(params)
    }

    fn header(&self) -> Result<Header, WireError> {
        let mut meta = Vec::new();
        meta.extend((self.application.len() as u32).to_le_bytes());
        meta.extend((self.ciphertexts.len() as u32).to_le_bytes());
        meta.extend(&self.application);
        let mut lengths = Vec::new();
        for c in &self.ciphertexts {
            let record = c.record()?;
            C::write_record(&self.params, &record, &mut meta);
            lengths.extend(C::lengths(&self.params, &record));
        }
        Header::new(Self::TYPE, (C::params_hash(&self.params), self.key), State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        self.ciphertexts.iter().try_for_each(|c| c.write_segments(writer))
    }

    fn read_segments(params: &C::Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        let (application, count) = (fields.u32()? as usize, fields.u32()? as usize);
        check_sizes(application, count)?;
        let application = fields.take(application)?.to_vec();
        let records = (0..count).map(|_| C::read_record(params, &mut fields)).collect::<Result<Vec<_>, _>>()?;
        fields.finish()?;
        header.expect_segments(records.iter().flat_map(|r| C::lengths(params, r)))?;
        let key = header.key();
        let ciphertexts = records.into_iter().map(|r| C::load(params, key, r, reader)).collect::<Result<_, _>>()?;
        Ok(Self { params: params.clone(), key, application, ciphertexts })
    }
}
