//! NumPy's names for elements and operations, and those of parameter sets.

use super::{ElementType, Elementwise, Reduction};
use crate::radix::{BitOperation, Comparison, IntegerType, Shift};
use crate::{Plaintext, TfheError, TfheLiteral};
use std::str::FromStr;

fn unknown<T>(what: &str, name: &str, known: &str) -> Result<T, TfheError> {
    Err(TfheError::Parameters { reason: format!("there is no {what} {name:?}; there are {known}") })
}

impl FromStr for ElementType {
    type Err = TfheError;

    /// `bool`, `uint8`, `int8`, … `int64`.
    fn from_str(name: &str) -> Result<Self, TfheError> {
        const KNOWN: &str = "bool, int8 to int64 and uint8 to uint64";
        let (signed, bits) = match (name, name.strip_prefix("uint"), name.strip_prefix("int")) {
            ("bool", ..) => return Ok(Self::Bool),
            (_, Some(bits), _) => (false, bits),
            (_, _, Some(bits)) => (true, bits),
            _ => return unknown("element type", name, KNOWN),
        };
        match bits.parse().map(|bits| IntegerType::new(bits, signed)) {
            Ok(kind) => Ok(Self::Integer(kind?)),
            Err(_) => unknown("element type", name, KNOWN),
        }
    }
}

impl Elementwise {
    /// All operations by NumPy's names.
    pub const NAMED: [(&str, Self); 14] = [
        ("add", Self::Add),
        ("subtract", Self::Sub),
        ("multiply", Self::Mul),
        ("minimum", Self::Min),
        ("maximum", Self::Max),
        ("bitwise_and", Self::Bits(BitOperation::And)),
        ("bitwise_or", Self::Bits(BitOperation::Or)),
        ("bitwise_xor", Self::Bits(BitOperation::Xor)),
        ("equal", Self::Compare(Comparison::Eq)),
        ("not_equal", Self::Compare(Comparison::Ne)),
        ("less", Self::Compare(Comparison::Lt)),
        ("less_equal", Self::Compare(Comparison::Le)),
        ("greater", Self::Compare(Comparison::Gt)),
        ("greater_equal", Self::Compare(Comparison::Ge)),
    ];
}

/// The thing of this name.
fn named<T: Copy>(what: &str, all: &[(&str, T)], name: &str) -> Result<T, TfheError> {
    match all.iter().find(|(known, _)| *known == name) {
        Some((_, found)) => Ok(*found),
        None => unknown(what, name, &all.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ")),
    }
}

impl FromStr for Elementwise {
    type Err = TfheError;

    /// By NumPy's name: `add`, `less_equal`, …
    fn from_str(name: &str) -> Result<Self, TfheError> {
        named("operation", &Self::NAMED, name)
    }
}

impl FromStr for Shift {
    type Err = TfheError;

    /// `left_shift`, `right_shift`, `rotate_left`, `rotate_right`.
    fn from_str(name: &str) -> Result<Self, TfheError> {
        const NAMED: [(&str, Shift); 4] = [
            ("left_shift", Shift::Left),
            ("right_shift", Shift::Right),
            ("rotate_left", Shift::RotateLeft),
            ("rotate_right", Shift::RotateRight),
        ];
        named("shift", &NAMED, name)
    }
}

impl FromStr for Reduction {
    type Err = TfheError;

    /// `any`, `all`.
    fn from_str(name: &str) -> Result<Self, TfheError> {
        named("reduction", &[("any", Self::Any), ("all", Self::All)], name)
    }
}

impl FromStr for TfheLiteral {
    type Err = TfheError;

    /// A set of parameters by its name, as Python and the command know it; those that begin with `insecure` are
    /// for tests.
    fn from_str(name: &str) -> Result<Self, TfheError> {
        type Make = fn() -> TfheLiteral;
        const NAMED: [(&str, Make); 9] = [
            ("message_2_carry_2", TfheLiteral::message_2_carry_2),
            ("message_2_carry_2_lwe_switch", TfheLiteral::message_2_carry_2_lwe_switch),
            ("message_2_carry_2_failure_64", TfheLiteral::message_2_carry_2_failure_64),
            ("message_2_carry_2_failure_40", TfheLiteral::message_2_carry_2_failure_40),
            ("gates", TfheLiteral::gates),
            ("gates_failure_64", TfheLiteral::gates_failure_64),
            ("gates_failure_40", TfheLiteral::gates_failure_40),
            ("insecure_test", || TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 })),
            ("insecure_test_gates", || TfheLiteral::insecure_test(Plaintext::Bit)),
        ];
        named("parameter set", &NAMED, name).map(|make| make())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["bool", "uint8", "int16", "int64"] {
            assert_eq!(name.parse::<ElementType>().unwrap().to_string(), name);
        }
        for name in ["", "int", "int7", "int128", "uint", "float64", "intx"] {
            assert!(name.parse::<ElementType>().is_err(), "{name}");
        }
        assert!("and".parse::<Elementwise>().unwrap_err().to_string().contains("bitwise_and"));
        assert_eq!("gates".parse::<TfheLiteral>().unwrap(), TfheLiteral::gates());
        assert!("gate".parse::<TfheLiteral>().is_err() && "none".parse::<Reduction>().is_err());
    }
}
