//! Sudare's side of the exchange with Lattigo: reads what the peer of `bench/lattigo` wrote into DIR/SET/theirs, computes with
//! it, and answers in DIR/SET/ours with objects under Lattigo's keys and under keys of its own.
//!
//!     cargo run -p sudare-lattigo --example exchange -- DIR SET...

mod answer;

use std::error::Error;
use std::path::Path;
use std::{env, fs};
use sudare_rlwe::security::Security;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("usage: exchange DIR SET...")?;
    for set in arguments {
        let (theirs, ours) = (Path::new(&folder).join(&set).join("theirs"), Path::new(&folder).join(&set).join("ours"));
        let security = if set.starts_with("tiny") { Security::Insecure } else { Security::Bits128 };
        let read = |name: &str| fs::read(theirs.join(name));
        let files = match set.contains("ckks") {
            true => answer::ckks(read, security)?,
            false => answer::exact(read, security)?,
        };
        fs::create_dir_all(&ours)?;
        files.iter().try_for_each(|(name, bytes)| fs::write(ours.join(name), bytes))?;
        println!("{set}: what Lattigo wrote is right, {} files in answer", files.len());
    }
    Ok(())
}
