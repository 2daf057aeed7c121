//! What a plan file says, against what is worked out.

use crate::error::MatrixError;
use sudare_he::ckks;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::Security;

/// The refusal of a field of a plan.
pub fn field(field: &'static str, found: impl ToString, expected: impl ToString) -> MatrixError {
    MatrixError::PlanField { field, found: found.to_string(), expected: expected.to_string() }
}

/// Refuses a file without security: whoever wants none says so in code.
///
/// # Errors
/// [`MatrixError::PlanField`] with `name`.
pub fn check_claim(name: &'static str, claimed: Security) -> Result<(), MatrixError> {
    match claimed {
        Security::Insecure => Err(field(name, "none", "128, 192 or 256 bits")),
        _ => Ok(()),
    }
}

/// Refuses parameters of a file that differ from those that are worked out, by the first field that
/// does, and those without security.
///
/// # Errors
/// [`MatrixError::PlanField`] with the name of the field.
pub fn check_params(found: &ParamsLiteral, expected: &ParamsLiteral) -> Result<(), MatrixError> {
    check_same(found, expected)?;
    check_claim("params.security", found.security)
}

/// Refuses parameters that differ from those that are worked out, by the first field that does.
///
/// # Errors
/// [`MatrixError::PlanField`] with the name of the field.
pub fn check_same(found: &ParamsLiteral, expected: &ParamsLiteral) -> Result<(), MatrixError> {
    let bits = |s: Security| format!("{} bits", s.bits());
    let fields = [
        ("params.security", bits(found.security), bits(expected.security)),
        ("params.secret", format!("{:?}", found.secret), format!("{:?}", expected.secret)),
        ("params.log_n", found.log_n.to_string(), expected.log_n.to_string()),
        ("params.q_bits", format!("{:?}", found.q_bits), format!("{:?}", expected.q_bits)),
        ("params.p_bits", format!("{:?}", found.p_bits), format!("{:?}", expected.p_bits)),
        ("params.digit_limbs", found.digit_limbs.to_string(), expected.digit_limbs.to_string()),
    ];
    match fields.into_iter().find(|(_, found, expected)| found != expected) {
        Some((name, found, expected)) => Err(field(name, found, expected)),
        None => Ok(()),
    }
}

/// Refuses a scale of a file that differs from the one that is worked out.
///
/// # Errors
/// [`MatrixError::PlanField`].
pub fn check_scale(found: &ckks::ParamsLiteral, expected: &ckks::ParamsLiteral) -> Result<(), MatrixError> {
    match found.log_scale == expected.log_scale {
        true => Ok(()),
        false => Err(field("params.log_scale", found.log_scale, expected.log_scale)),
    }
}
