//! Protobuf's wire format, as far as ONNX uses it: keys are varints, unknown fields are skipped, nothing is allocated for a claim.

use crate::error::{ModelError, format};

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

/// The fields of a message, one after the other: number and value.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a>(pub &'a [u8]);

impl<'a> Message<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ModelError> {
        match self.0.split_at_checked(count) {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(taken)
            }
            None => {
                format("a field is longer than what is left of the file, so it is damaged or cut off; copy it again")
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        match self.take(N)?.try_into() {
            Ok(bytes) => Ok(bytes),
            Err(_) => format("a field is cut off; copy the file again"),
        }
    }

    fn varint(&mut self) -> Result<u64, ModelError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        format("a number has more than 64 bits")
    }

    /// The next field; none at the end.
    pub fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, ModelError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(self.array()?),
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => Field::Fixed32(self.array()?),
            kind => return format(format!("a field of the unknown wire type {kind}")),
        };
        Ok(Some((key >> 3, value)))
    }
}

impl<'a> Field<'a> {
    pub fn bytes(self) -> Result<&'a [u8], ModelError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => format("a number where a message or text belongs"),
        }
    }

    pub fn text(self) -> Result<String, ModelError> {
        match std::str::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => format("a name is not UTF-8"),
        }
    }

    pub fn integer(self) -> Result<i64, ModelError> {
        match self {
            Self::Varint(value) => Ok(value as i64),
            _ => format("a message where a number belongs"),
        }
    }

    pub fn float(self) -> Result<f64, ModelError> {
        match self {
            Self::Fixed32(bytes) => Ok(f64::from(f32::from_le_bytes(bytes))),
            Self::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            _ => format("an integer or a message where a floating point number belongs"),
        }
    }

    /// Adds one number of a repeated field, or all of a packed one.
    pub fn integers(self, to: &mut Vec<i64>) -> Result<(), ModelError> {
        match self {
            Self::Bytes(packed) => {
                let mut rest = Message(packed);
                while !rest.0.is_empty() {
                    to.push(rest.varint()? as i64);
                }
            }
            one => to.push(one.integer()?),
        }
        Ok(())
    }

    /// The same of floating point numbers of `width` bytes each.
    pub fn floats(self, width: usize, to: &mut Vec<f64>) -> Result<(), ModelError> {
        match self {
            Self::Bytes(packed) if !packed.len().is_multiple_of(width) => {
                format("a list of numbers is cut off; copy the file again")
            }
            Self::Bytes(packed) => {
                let mut rest = Message(packed);
                while !rest.0.is_empty() {
                    let one = if width == 4 { Field::Fixed32(rest.array()?) } else { Field::Fixed64(rest.array()?) };
                    to.push(one.float()?);
                }
                Ok(())
            }
            one => {
                to.push(one.float()?);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_type() {
        // 1: 300, 2: "ab", 3: 1.0f32, 4: 2.0f64
        let mut bytes = vec![0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1d];
        bytes.extend(1f32.to_le_bytes());
        bytes.push(0x21);
        bytes.extend(2f64.to_le_bytes());
        let mut message = Message(&bytes);
        assert_eq!(message.next().unwrap(), Some((1, Field::Varint(300))));
        assert_eq!(message.next().unwrap().unwrap().1.text().unwrap(), "ab");
        assert_eq!(message.next().unwrap().unwrap().1.float().unwrap(), 1.0);
        assert_eq!(message.next().unwrap().unwrap().1.float().unwrap(), 2.0);
        assert_eq!(message.next().unwrap(), None);
        for cut in 1..bytes.len() {
            let mut message = Message(&bytes[..cut]);
            while let Ok(Some(_)) = message.next() {}
            assert!(message.0.len() < cut);
        }
    }

    #[test]
    fn negative_and_overlong_numbers() {
        let minus_one = [&[0xff; 9][..], &[1]].concat();
        assert_eq!(Message(&minus_one).varint().unwrap() as i64, -1);
        assert!(Message(&[&[0xff; 9][..], &[2]].concat()).varint().is_err());
        assert!(Message(&[0xff; 20]).varint().is_err());
        let mut all = Vec::new();
        Field::Bytes(&minus_one).integers(&mut all).unwrap();
        assert_eq!(all, [-1]);
        assert!(Field::Bytes(&[0; 5]).floats(4, &mut Vec::new()).is_err());
    }
}
