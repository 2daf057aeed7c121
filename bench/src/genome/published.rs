//! What others measured, and what is to be reached. Constants, no measurements of any run here.

/// The real panel's name.
pub const REAL: &str = "chr20";
/// The simulated one's, all sites.
pub const SIMULATED: &str = "simulated";
/// The simulated one's, variants of at least 5 %.
pub const COMMON: &str = "simulated-5%";

/// Shares of time at q = 1 and q = 10 as printed (section 5.2.2): initialisation, lookup, bootstrap.
pub const SHARES: [(usize, [f64; 3]); 2] = [(1, [2.95, 76.69, 20.36]), (10, [0.70, 64.37, 34.93])];

/// The share of number-theoretic transforms in the whole, as printed (section 5.2).
pub const NTT_SHARE: f64 = 50.0;

/// Published figures of other systems.
pub const OTHERS: [(&str, &str); 5] = [
    ("PBWT-sec (2016), n = 2,184, interactive", "10.8 s server and 4.6 s client"),
    ("Nakagawa (2022), secret sharing, 202 rounds", "0.30 s"),
    ("Mahdi (2021), garbled circuits, 2,184 × 10,000", "2–2.3 s"),
    ("set-maximal search by TFHE on a GPU (2024), 128 genomes", "about 12 min"),
    ("the paper, HElib", "hours; 512 GB of memory"),
];

/// Units of processor time of a search with one start and q = 100, one thread: mean, and most where it is stated.
pub fn trie_target(panel: &str, q: usize) -> Option<(f64, Option<f64>)> {
    match (panel, q) {
        (REAL, 100) => Some((1200.0, None)),
        (SIMULATED, 100) => Some((1000.0, None)),
        (COMMON, 100) => Some((5000.0, Some(10_000.0))),
        _ => None,
    }
}

/// Units of a client's keys and encryption of q = 100; bytes up and down.
pub const CLIENT: (f64, usize, usize) = (500.0, 3_300_000, 20_000);
/// Milliseconds of 1,000 hidden starts, n = 600, q = 50, on two threads.
pub const HIDDEN_MS: f64 = 10_000.0;
/// Milliseconds of lookups, n = 600, q = 10, on one thread.
pub const LOOKUP_MS: f64 = 30_000.0;
