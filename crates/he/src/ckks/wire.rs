//! Plaintexts and ciphertexts of CKKS on the wire.

use super::{Ciphertext, Plaintext, State};
use std::io::Write;
use sudare_rlwe::wire::{Bundled, Fields, Form, Header, ObjectType, Reader, Wire, WireError, Writer, packing};
use sudare_rlwe::{KeyId, Params, ParamsHash, wire};

/// What a header says of one ciphertext.
pub struct Record {
    state: wire::State,
    form: Form,
}

fn header_state(level: usize, State { scale, bound, noise }: State, params: &Params) -> Result<wire::State, WireError> {
    let state = wire::State { level: level as u32, scale, bound, noise };
    state.check(params)?;
    Ok(state)
}

fn write_form(form: &Form, meta: &mut Vec<u8>) {
    form.counts().iter().for_each(|x| meta.extend(x.to_le_bytes()));
    meta.extend(form.seed_bytes());
}

fn read_form(params: &Params, state: wire::State, fields: &mut Fields<'_>) -> Result<Record, WireError> {
    state.check(params)?;
    let (counts, seed) = ((fields.u32()?, fields.u32()?), fields.bytes32()?);
    Ok(Record { state, form: Form::read(params, state.level, counts, seed)? })
}

impl Wire for Ciphertext {
    type Params = Params;
    const TYPE: ObjectType = ObjectType::Ciphertext;

    fn params_hash(params: &Params) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let Record { state, form } = self.record()?;
        let mut meta = Vec::new();
        write_form(&form, &mut meta);
        Header::new(Self::TYPE, self.owner(), state, meta, form.lengths(self.params()).collect())
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        Form::of(self.inner()).write(self.inner(), writer)
    }

    fn read_segments(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        let mut fields = Fields::new(header.meta());
        let record = read_form(params, header.state(), &mut fields)?;
        fields.finish()?;
        header.expect_segments(record.form.lengths(params))?;
        let key = header.key();
        Self::load(params, key, record, reader)
    }
}

impl Bundled for Ciphertext {
    const BUNDLE: ObjectType = ObjectType::Bundle;
    type Record = Record;

    fn owner(&self) -> (ParamsHash, KeyId) {
        (self.params().hash(), self.key())
    }

    fn record(&self) -> Result<Record, WireError> {
        let state = header_state(self.level(), self.state(), self.params())?;
        Ok(Record { state, form: Form::of(self.inner()) })
    }

    fn write_record(_: &Params, Record { state, form }: &Record, meta: &mut Vec<u8>) {
        write_form(form, meta);
        meta.extend(state.level.to_le_bytes());
        meta.extend([0; 4]);
        for x in [state.scale, state.bound, state.noise] {
            meta.extend(x.to_le_bytes());
        }
    }

    fn read_record(params: &Params, fields: &mut Fields<'_>) -> Result<Record, WireError> {
        /// Bytes of the counts and the seed.
        const FORM_BYTES: usize = 40;
        let form = fields.take(FORM_BYTES)?;
        let level = fields.u32()?;
        fields.zeros(4)?;
        let state = wire::State { level, scale: fields.f64()?, bound: fields.f64()?, noise: fields.f64()? };
        read_form(params, state, &mut Fields::new(form))
    }

    fn lengths(params: &Params, record: &Record) -> impl Iterator<Item = u64> {
        record.form.lengths(params)
    }

    fn load(params: &Params, key: KeyId, record: Record, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let wire::State { scale, bound, noise, .. } = record.state;
        Ok(Self::from_parts(record.form.load(params, key, reader)?, State { scale, bound, noise })?)
    }
}

/// Plaintexts: not encrypted.
impl Wire for Plaintext {
    type Params = Params;
    const TYPE: ObjectType = ObjectType::Plaintext;

    fn params_hash(params: &Params) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let (scale, bound, noise) = (self.scale, self.bound, self.noise);
        let state = header_state(self.level, State { scale, bound, noise }, &self.params)?;
        let lengths = vec![packing::packed_bytes(self.poly.basis())];
        Header::new(Self::TYPE, (self.params.hash(), KeyId::NONE), state, Vec::new(), lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        writer.poly(&self.poly)
    }

    fn read_segments(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_key(KeyId::NONE)?;
        let state = header.state();
        state.check(params)?;
        header.expect_no_meta()?;
        let level = state.level as usize;
        header.expect_segments([packing::packed_bytes(params.q_at(level))])?;
        let poly = reader.poly(params.q_at(level))?;
        let (scale, bound, noise) = (state.scale, state.bound, state.noise);
        Ok(Self::from_parts(params, poly, State { scale, bound, noise })?)
    }
}
