//! Several ciphertexts in one container, with an application's own header: an encrypted matrix,
//! say.

use super::Object;
use super::bytes::Fields;
use super::ciphertext::Record;
use super::container::Reader;
use super::error::WireError;
use super::header::{Header, ObjectType, State};
use crate::ckks::Ciphertext;
use crate::keys::KeyId;
use crate::params::Params;
use sudare_ring::{Eval, Poly};

/// Most bytes of an application's header.
pub const MAX_APPLICATION_BYTES: usize = 64 << 10;
/// Most ciphertexts of a bundle.
pub const MAX_BUNDLE: usize = 1 << 16;

/// Ciphertexts of one key, in order, and what the application says of them.
#[derive(Clone, Debug)]
pub struct Bundle {
    params: Params,
    key: KeyId,
    application: Vec<u8>,
    ciphertexts: Vec<Ciphertext>,
}

impl Bundle {
    /// Puts ciphertexts of one key together with an application's header, which travels openly
    /// and is checked by the application alone.
    ///
    /// # Errors
    /// [`WireError::Oversize`] over [`MAX_BUNDLE`] ciphertexts or [`MAX_APPLICATION_BYTES`],
    /// [`WireError::WrongParameters`], [`WireError::WrongKey`].
    pub fn new(
        params: &Params,
        key: KeyId,
        application: Vec<u8>,
        ciphertexts: Vec<Ciphertext>,
    ) -> Result<Self, WireError> {
        check_sizes(application.len(), ciphertexts.len())?;
        for c in &ciphertexts {
            if !c.params().same(params) {
                return Err(WireError::WrongParameters { found: c.params().hash(), expected: params.hash() });
            }
            if c.key() != key {
                return Err(WireError::WrongKey { found: c.key(), expected: key });
            }
        }
        Ok(Self { params: params.clone(), key, application, ciphertexts })
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
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
    pub fn ciphertexts(&self) -> &[Ciphertext] {
        &self.ciphertexts
    }

    /// The application's header and the ciphertexts.
    pub fn into_parts(self) -> (Vec<u8>, Vec<Ciphertext>) {
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

impl Object for Bundle {
    const TYPE: ObjectType = ObjectType::Bundle;

    fn outline(&self) -> Result<(Header, Vec<&Poly<Eval>>), WireError> {
        let (application, ciphertexts) = (&self.application, &self.ciphertexts);
        let mut meta = Vec::with_capacity(8 + application.len() + Record::BYTES * ciphertexts.len());
        meta.extend((application.len() as u32).to_le_bytes());
        meta.extend((ciphertexts.len() as u32).to_le_bytes());
        meta.extend(application);
        let (mut lengths, mut polys) = (Vec::new(), Vec::new());
        for c in ciphertexts {
            let record = Record::of(c)?;
            record.write(&mut meta);
            lengths.extend(record.lengths(&self.params));
            polys.extend(record.polys(c));
        }
        let owner = (self.params.hash(), self.key);
        Ok((Header::new(Self::TYPE, owner, State::default(), meta, lengths)?, polys))
    }

    fn load(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        let (application, count) = (fields.u32()? as usize, fields.u32()? as usize);
        check_sizes(application, count)?;
        let application = fields.take(application)?.to_vec();
        let records = (0..count).map(|_| Record::read(params, &mut fields)).collect::<Result<Vec<_>, _>>()?;
        fields.finish()?;
        header.expect_segments(records.iter().flat_map(|r| r.lengths(params)))?;
        let key = header.key();
        let ciphertexts = records.into_iter().map(|r| r.load(params, key, reader)).collect::<Result<_, _>>()?;
        Ok(Self { params: params.clone(), key, application, ciphertexts })
    }
}
