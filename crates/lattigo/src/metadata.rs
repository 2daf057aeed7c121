//! What Lattigo says of a message beside its polynomials: 277 bytes of JSON, always as long.

use crate::bytes::Reader;
use crate::error::LattigoError;
use serde::{Deserialize, Serialize};
use sudare_ring::error::told;

/// Length of the text: their reader takes so many bytes and no others.
const BYTES: usize = 277;
/// Digits after the point of a number.
const DIGITS: usize = 39;

/// Where a message stands in a plaintext of Lattigo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// In slots: `rows` times `columns` of them, powers of two. With fewer columns than the ring has they repeat.
    Slots {
        /// log2 of the rows: 0 for CKKS, 1 for BFV and BGV.
        log_rows: u32,
        /// log2 of the columns.
        log_columns: u32,
    },
    /// In coefficients.
    Coefficients,
}

/// A plaintext's or ciphertext's metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metadata {
    /// A decimal number.
    pub scale: String,
    /// The plaintext modulus; 0 for CKKS.
    pub modulus: String,
    pub packing: Packing,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Document {
    plaintext_meta_data: PlaintextDocument,
    ciphertext_meta_data: CiphertextDocument,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct PlaintextDocument {
    scale: ScaleDocument,
    is_batched: String,
    is_bit_reversed: String,
    log_dimensions: [String; 2],
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ScaleDocument {
    value: String,
    r#mod: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CiphertextDocument {
    #[serde(rename = "IsNTT")]
    is_ntt: String,
    #[serde(rename = "IsMontgomery")]
    is_montgomery: String,
}

fn wrong(reason: impl Into<String>) -> LattigoError {
    LattigoError::Text { what: "the metadata", reason: reason.into() }
}

/// A byte as `0x0f`.
fn byte(text: &str) -> Result<u8, LattigoError> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 2);
    digits.and_then(|d| u8::from_str_radix(d, 16).ok()).ok_or_else(|| wrong("a field is not a byte as 0x0f"))
}

impl Metadata {
    /// Reads what is before the polynomials.
    ///
    /// # Errors
    /// [`LattigoError::Text`] for what is no such JSON, and those of bytes that end too early.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, LattigoError> {
        if !reader.flag("metadata of an element")? {
            return Err(wrong("there are none, and the scale is written nowhere else"));
        }
        let document: Document = serde_json::from_slice(reader.take(BYTES)?).map_err(|e| wrong(told(e)))?;
        let PlaintextDocument { scale, is_batched, is_bit_reversed, log_dimensions } = document.plaintext_meta_data;
        let CiphertextDocument { is_ntt, is_montgomery } = document.ciphertext_meta_data;
        if (byte(&is_ntt)?, byte(&is_montgomery)?, byte(&is_bit_reversed)?) != (1, 0, 0) {
            return Err(crate::error::unsupported(
                "an element in coefficient form, in Montgomery's form or with bit-reversed slots",
                "transform it in Lattigo first, into NTT form with slots in order",
            ));
        }
        let [log_rows, log_columns] = [&log_dimensions[0], &log_dimensions[1]].map(|text| byte(text));
        let packing = match byte(&is_batched)? {
            0 => Packing::Coefficients,
            _ => Packing::Slots { log_rows: log_rows?.into(), log_columns: log_columns?.into() },
        };
        Ok(Self { scale: scale.value, modulus: scale.r#mod, packing })
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`LattigoError::Text`] for a scale of 10^100 or more, for which the format has no room.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), LattigoError> {
        let (batched, log_dimensions) = match self.packing {
            Packing::Slots { log_rows, log_columns } => (1, [log_rows, log_columns]),
            Packing::Coefficients => (0, [0, 0]),
        };
        let byte = |x: u32| format!("0x{x:02x}");
        let document = Document {
            plaintext_meta_data: PlaintextDocument {
                scale: ScaleDocument { value: self.scale.clone(), r#mod: self.modulus.clone() },
                is_batched: byte(batched),
                is_bit_reversed: byte(0),
                log_dimensions: log_dimensions.map(byte),
            },
            ciphertext_meta_data: CiphertextDocument { is_ntt: byte(1), is_montgomery: byte(0) },
        };
        let text = serde_json::to_vec(&document).map_err(|e| wrong(e.to_string()))?;
        if text.len() != BYTES {
            return Err(wrong("the scale has more digits than the format has room for; take one below 10^100"));
        }
        out.push(1);
        out.extend(text);
        Ok(())
    }

    /// The scale as CKKS has it.
    ///
    /// # Errors
    /// [`LattigoError::Text`] unless it is a finite number above zero.
    pub fn real_scale(&self) -> Result<f64, LattigoError> {
        match self.scale.parse::<f64>() {
            Ok(scale) if scale.is_finite() && scale > 0.0 => Ok(scale),
            _ => Err(wrong("the scale is not a finite number above zero")),
        }
    }

    /// The scale as BFV and BGV have it, and the plaintext modulus.
    ///
    /// # Errors
    /// [`LattigoError::Text`] unless both are integers of 64 bits.
    pub fn integer_scale(&self) -> Result<(u64, u64), LattigoError> {
        Ok((integer(&self.scale)?, integer(&self.modulus)?))
    }
}

/// A real number with its 39 digits after the point.
pub(crate) fn real_text(x: f64) -> String {
    let text = format!("{x:.DIGITS$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// An integer in the same form.
pub(crate) fn integer_text(x: u64) -> String {
    let digits = x.to_string();
    let (first, rest) = digits.split_at(1);
    format!("{first}.{rest:0<DIGITS$}e+{:02}", rest.len())
}

/// An integer of 64 bits from its decimal form.
fn integer(text: &str) -> Result<u64, LattigoError> {
    let parse = || {
        let (digits, exponent) = text.split_once('e')?;
        let (first, rest) = digits.split_once('.')?;
        let exponent = exponent.strip_prefix('+')?.parse::<usize>().ok()?;
        let (whole, fraction) = rest.split_at_checked(exponent)?;
        let sound = first.len() == 1 && exponent < 20 && fraction.bytes().all(|b| b == b'0');
        format!("{first}{whole}").parse().ok().filter(|_| sound)
    };
    parse().ok_or_else(|| wrong("the scale or modulus of integers is not an integer of 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_they_write_them() {
        assert_eq!(real_text(1099511627776.0), "1.099511627776000000000000000000000000000e+12");
        assert_eq!(real_text(0.0), "0.000000000000000000000000000000000000000e+00");
        assert_eq!(real_text(0.5), "5.000000000000000000000000000000000000000e-01");
        assert_eq!(integer_text(0), real_text(0.0));
        for x in [1, 10, 65537, (1 << 53) + 1, (1 << 60) - 1, 1_000_000] {
            assert_eq!(integer(&integer_text(x)).unwrap(), x);
        }
        assert_eq!(integer_text((1 << 53) + 1), "9.007199254740993000000000000000000000000e+15");
        for wrong in
            ["", "1", "1e+1", "1.5e+00", "-1.0e+00", "1.0e-01", "9.9999999999999999999e+19", "1.0e+99", "é.0e+00"]
        {
            assert!(integer(wrong).is_err(), "{wrong}");
        }
        for x in [1.0, 1e30, f64::from(3u32).exp2(), 2f64.powi(110) / 3.0] {
            assert_eq!(real_text(x).parse::<f64>().unwrap(), x);
        }
    }

    #[test]
    fn its_length_is_what_they_read() {
        let packing = Packing::Slots { log_rows: 1, log_columns: 12 };
        let mut out = Vec::new();
        let own = Metadata { scale: integer_text(3), modulus: integer_text(65537), packing };
        own.write(&mut out).unwrap();
        assert_eq!(out.len(), 278);
        assert_eq!(Metadata::read(&mut Reader::new(&out)).unwrap(), own);
        let large = Metadata { scale: real_text(1e200), ..own };
        assert!(matches!(large.write(&mut Vec::new()), Err(LattigoError::Text { .. })));
    }
}
