//! Figures of others for the same work: constants, measured elsewhere or printed, never in this run.

/// Where the figures of other libraries come from.
pub const PEERS_FROM: &str = "other libraries on one Sapphire Rapids core, constants from another run";
/// Where the paper's figures come from.
pub const PAPER_FROM: &str = "the paper's Figures 18 to 21 and its text";

/// What one case of the lab is held against.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The case's name.
    pub case: &'static str,
    /// Milliseconds to reach; none where only comparison is asked for.
    pub target_ms: Option<f64>,
    /// Others' milliseconds.
    pub peers: &'static [(&'static str, f64)],
}

const fn published(case: &'static str, target_ms: f64, peers: &'static [(&'static str, f64)]) -> Published {
    Published { case, target_ms: Some(target_ms), peers }
}

/// A case that has no figure to reach, only a peer in the same run.
const fn compared(case: &'static str) -> Published {
    Published { case, target_ms: None, peers: &[] }
}

/// By case. Where a library's figure is a range, its lower end. Names of sets are those of the lines.
pub const PUBLISHED: &[Published] = &[
    published("NAND, 2^-128", 10.0, &[("tfhe-rs 2^-128", 23.9)]),
    published(
        "NAND, 2^-64",
        7.0,
        &[("tfhe-rs 2^-64", 16.3), ("TFHEpp, about 120-bit", 14.2), ("OpenFHE+HEXL GINX", 47.0)],
    ),
    Published { case: "NAND, 2^-64, the peer's default", target_ms: None, peers: &[("tfhe-rs 2^-64", 17.9)] },
    published("bootstrap 2+2, 2^-128", 10.0, &[("tfhe-rs", 26.1)]),
    published("bootstrap 2+2 LWE switch, 2^-128", 10.0, &[("tfhe-rs", 26.1)]),
    Published { case: "bootstrap after the key switch 2+2, 2^-128", target_ms: None, peers: &[("tfhe-rs", 19.5)] },
    Published { case: "key switch 2+2, 2^-128", target_ms: None, peers: &[("tfhe-rs", 5.0)] },
    compared("bootstrap after the key switch 2+2 LWE switch, 2^-128"),
    compared("key switch 2+2 LWE switch, 2^-128"),
    published("CMUX N=1024", 0.020, &[]),
    published("CMUX N=2048", 0.040, &[]),
    published("circuit bootstrap, 3 levels", 20.0, &[("TFHEpp", 42.8), ("tfhe-rs", 149.0)]),
    published("circuit bootstrap, 2 levels", 20.0, &[("TFHEpp", 42.8), ("tfhe-rs", 149.0)]),
    compared("circuit bootstrap, 3 levels, classical"),
    published("FHEW NAND, automorphisms", 15.0, &[("OpenFHE+HEXL LMKCDEY", 38.2)]),
    published("FHEW NAND, digits", 40.0, &[("OpenFHE+HEXL AP, native build", 118.0)]),
    published("8-bit add", 97.5, &[("tfhe-rs", 195.0)]),
    published("8-bit multiply", 345.0, &[("tfhe-rs", 690.0)]),
    published("8-bit compare", 60.0, &[("tfhe-rs", 120.0)]),
    published("64-bit add", 786.5, &[("tfhe-rs", 1573.0)]),
    published("server key 2+2, 2^-128", 2000.0, &[("tfhe-rs", 2000.0)]),
    compared("server key 2+2 LWE switch, 2^-128"),
    compared("server key gates, 2^-128"),
    compared("server key gates, 2^-64"),
];

/// Bytes of tfhe-rs's server key for 2 + 2 bits: expanded, and compressed.
pub const TFHE_RS_KEY_BYTES: [usize; 2] = [181_000_000, 60_000_000];
/// Bytes of OpenFHE's keys for gates: bootstrapping and key switching.
pub const OPENFHE_KEY_BYTES: usize = 550_000_000;
/// Processor use that a batch on all threads should reach.
pub const CPU_USE: f64 = 0.9;

/// A row of the paper's section 5.4.2.
#[derive(Clone, Copy, Debug)]
pub struct PaperRow {
    /// Library and scheme.
    pub library: &'static str,
    /// One bootstrap.
    pub bootstrap_ms: f64,
    /// The keys of the gates.
    pub gate_key_ms: f64,
    /// Memory.
    pub memory_gb: f64,
}

const fn row(library: &'static str, bootstrap_ms: f64, gate_key_ms: f64, memory_gb: f64) -> PaperRow {
    PaperRow { library, bootstrap_ms, gate_key_ms, memory_gb }
}

/// Figure 18 and the memory of section 5.4.2, as printed (the order of the printed times of the gate key
/// puts OpenFHE (TFHE) between 10,047 and 106,221 ms, so its 1,156 may lack a digit).
pub const PAPER: [PaperRow; 4] = [
    row("TFHEpp (TFHE)", 69.21, 10_047.0, 3.0),
    row("FHEW (DM)", 1_243.012_5, 106_221.0, 21.7),
    row("OpenFHE (TFHE)", 21_723.0, 1_156.0, 7.4),
    row("OpenFHE (DM)", 33_403.0, 202_303.0, 107.7),
];

/// Shares of time that the text gives for Figures 20 and 21, and whose.
pub const PAPER_SHARES: [(&str, &str, f64); 4] = [
    ("forward transforms", "OpenFHE, ForwardTransformToBitReverseInPlace", 47.61),
    ("multiply-accumulate", "OpenFHE, ModMulEq", 23.29),
    ("multiply-accumulate", "TFHEpp, trgswfftExternalProduct", 31.0),
    ("key switch", "TFHEpp, IdentityKeySwitch", 6.06),
];

/// What is known of a case.
pub fn find(case: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|p| p.case == case)
}
