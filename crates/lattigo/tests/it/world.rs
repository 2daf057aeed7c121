//! Both sets of `tests/data`.

use std::{fs, io};
use sudare_exact::IntegerParams;
use sudare_he::ckks;
use sudare_lattigo::{Exchange, params};
use sudare_rlwe::security::Security;

/// A file of Lattigo.
pub fn data(name: &str) -> io::Result<Vec<u8>> {
    fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR")))
}

pub fn ckks() -> Exchange<ckks::Params> {
    let json = data("ckks/params.json").unwrap();
    Exchange::new(params::ckks_from_json(&json, Security::Insecure).unwrap()).unwrap()
}

pub fn exact() -> Exchange<IntegerParams> {
    let json = data("exact/params.json").unwrap();
    Exchange::new(params::integer_from_json(&json, Security::Insecure).unwrap()).unwrap()
}
