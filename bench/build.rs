//! Puts the compiler's version and the source's commit into the binary, for every figure to name.

use std::process::Command;

fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    println!("cargo::rustc-env=LAB_RUSTC={}", said(&rustc, &["--version"]).unwrap_or_default());
    let commit = said("git", &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    println!("cargo::rustc-env=LAB_COMMIT={}", commit.unwrap_or_default());
    // Where the commit and the sources change.
    if let Some(log) = said("git", &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    ["src", "Cargo.toml", "../crates", "../Cargo.toml"].iter().for_each(|p| println!("cargo::rerun-if-changed={p}"));
}
