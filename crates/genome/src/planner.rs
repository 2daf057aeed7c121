//! The choice of a protocol for a search, with its reasons.

use crate::trie::dag;
use crate::{GenomeError, KeyPlan, Panel, Protocol, Shape, lookup, simd, trie};
use std::fmt;

/// The size of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Haplotypes, n.
    pub haplotypes: usize,
    /// Sites, starts and least sharing haplotypes.
    pub shape: Shape,
    /// Queries at once.
    pub batch: usize,
    /// External products of a window's diagram, on average.
    pub products: f64,
    /// Distinct haplotypes of a window, on average.
    pub distinct: f64,
}

impl Facts {
    /// By rules of thumb, from what is public: diagrams of panels with all sites grow with q^1.8, and little with n.
    pub fn guess(haplotypes: usize, shape: Shape, batch: usize) -> Self {
        let q = shape.sites as f64;
        let least = (haplotypes as f64).min(2f64.powf(q.min(60.0)));
        let products = (22.0 * (q / 10.0).powf(1.8)).min(q * least);
        Self { haplotypes, shape, batch, products, distinct: (1.2 * q).min(least) }
    }

    /// From sixteen windows of a panel.
    ///
    /// # Errors
    /// Those of a damaged panel; [`GenomeError::Window`] if no contig holds the window.
    pub fn of_panel(panel: &Panel, shape: Shape, batch: usize) -> Result<Self, GenomeError> {
        const WINDOWS: usize = 16;
        let outline = panel.outline();
        let fit = |s: &usize| outline.check_window(*s, shape.sites).is_ok();
        let last = outline.sites().saturating_sub(shape.sites);
        let mut windows: Vec<usize> = (0..WINDOWS).map(|i| i * last / (WINDOWS - 1)).filter(fit).collect();
        windows.dedup();
        if windows.is_empty() {
            return Err(GenomeError::Window { start: 0, sites: shape.sites as u64 });
        }
        let (mut products, mut distinct) = (0, 0);
        for start in &windows {
            products += dag::diagram(panel, *start, shape.sites, shape.eps)?.products().len();
            distinct += dag::prefixes(panel, *start, shape.sites, shape.eps)?.len();
        }
        let mean = |sum: usize| sum as f64 / windows.len() as f64;
        let (haplotypes, products, distinct) = (panel.haplotypes(), mean(products), mean(distinct));
        Ok(Self { haplotypes, shape, batch, products, distinct })
    }
}

/// Milliseconds of one thread for what protocols are made of. Measured figures of one machine: to compare protocols,
/// not to promise times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// An external product of "trie".
    pub product: f64,
    /// A circuit bootstrap.
    pub bootstrap: f64,
    /// An external product of "lookup".
    pub lookup_product: f64,
    /// A product of ciphertexts with its rotation in "simd", at N = 2^14 and ten primes.
    pub simd_product: f64,
    /// A byte that travels, at 100 Mbit/s.
    pub byte: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Self { product: 0.016, bootstrap: 28.0, lookup_product: 0.035, simd_product: 70.0, byte: 8e-5 }
    }
}

/// The cost of one protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The protocol.
    pub protocol: Protocol,
    /// Why it does not serve, if it does not.
    pub refused: Option<String>,
    /// Bytes of the queries.
    pub bytes_up: u64,
    /// Bytes of the answers.
    pub bytes_down: u64,
    /// Bytes of the evaluation keys, sent once.
    pub key_bytes: u64,
    /// Milliseconds of the server, one thread.
    pub server_ms: f64,
    /// The time that is compared: that of the server, and of queries and answers on the network.
    pub total_ms: f64,
}

/// All protocols, the chosen one first.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The request.
    pub facts: Facts,
    /// Every protocol, in the order of its total time; those that do not serve are last.
    pub offers: Vec<Offer>,
}

impl Choice {
    /// Compares the protocols.
    ///
    /// # Errors
    /// [`GenomeError::Range`] for a shape that no search has.
    pub fn of(facts: Facts, prices: &Prices) -> Result<Self, GenomeError> {
        facts.shape.check()?;
        let mut offers = Vec::new();
        for protocol in Protocol::ALL {
            let made = match protocol {
                Protocol::Trie => trie_offer(&facts, prices),
                Protocol::Lookup => lookup_offer(&facts, prices),
                Protocol::Simd => simd_offer(&facts, prices),
            };
            offers.push(match made {
                Ok([up, down, keys, server]) => Offer {
                    protocol,
                    refused: None,
                    bytes_up: up as u64,
                    bytes_down: down as u64,
                    key_bytes: keys as u64,
                    server_ms: server,
                    total_ms: server + (up + down) * prices.byte,
                },
                Err(e) => Offer {
                    protocol,
                    refused: Some(e.to_string()),
                    bytes_up: 0,
                    bytes_down: 0,
                    key_bytes: 0,
                    server_ms: 0.0,
                    total_ms: f64::INFINITY,
                },
            });
        }
        offers.sort_by(|a, b| a.total_ms.total_cmp(&b.total_ms));
        Ok(Self { facts, offers })
    }

    /// The protocol of choice.
    pub fn protocol(&self) -> Protocol {
        self.offers[0].protocol
    }

    /// The keys that it takes.
    pub fn keys(&self) -> KeyPlan {
        let shape = self.facts.shape;
        KeyPlan { protocol: self.protocol(), sites: shape.sites, hidden: shape.starts > 1 }
    }
}

/// Bytes up and down, of keys, and the server's milliseconds, for the whole batch.
type Costs = [f64; 4];

/// Bytes of a container besides its segments.
const CONTAINER: f64 = 4300.0;

fn trie_offer(f: &Facts, p: &Prices) -> Result<Costs, GenomeError> {
    let params = trie::Set::standard().build()?;
    params.check(f.shape)?;
    let batch = f.batch as f64;
    let selectors = f.shape.sites as f64 + f64::from(f.shape.start_bits());
    // Four bodies of 512 residues of five bytes; three zeros.
    let up = batch * (2.0 * CONTAINER + selectors * 10_272.0 + 3.0 * 2592.0);
    let products = f.shape.starts as f64 * (f.products + 1.0);
    Ok([up, batch * (CONTAINER + 7720.0), 0.0, batch * products * p.product])
}

fn lookup_offer(f: &Facts, p: &Prices) -> Result<Costs, GenomeError> {
    let plan = KeyPlan { protocol: Protocol::Lookup, sites: f.shape.sites, hidden: f.shape.starts > 1 };
    let (set, levels) = match plan.sites {
        0..=128 => (lookup::Set::standard(), 2.0),
        _ => (lookup::Set::deep(), 3.0),
    };
    lookup::check(&set.build()?, f.shape, f.haplotypes)?;
    let (batch, q) = (f.batch as f64, f.shape.sites as f64);
    let bits = f64::from(lookup::index_bits(f.shape, f.haplotypes));
    let entries = 2.0 * (f.shape.starts * (f.haplotypes + 1)) as f64;
    // Words of an entry share a polynomial of 2048 coefficients with as many entries as fit.
    let polynomials = (entries * (bits.log2().ceil()).exp2() / 2048.0).max(1.0);
    let products = 2.0 * q * (polynomials + bits);
    let bootstraps = 2.0 * q * bits + q;
    let up = batch * (2.0 * CONTAINER + (2.0 * bits + q) * levels * 2.0 * 12_288.0);
    let server = bootstraps * p.bootstrap * (0.6 + 0.2 * levels) + products * p.lookup_product;
    Ok([up, batch * (CONTAINER + 12_350.0), 3.3e7, batch * server])
}

fn simd_offer(f: &Facts, p: &Prices) -> Result<Costs, GenomeError> {
    let set = simd::Set::new(f.shape.sites, f.shape.starts > 1)?;
    let params = set.build()?;
    let literal = params.literal().clone();
    let most = simd::Layout::new(&params, f.shape, 1)?.haplotypes() / 2;
    let (n, primes) = (params.degree() as f64, literal.q_bits.len() as f64);
    let per_message = f.batch.min(most).next_power_of_two();
    let messages = f.batch.div_ceil(per_message) as f64;
    let layout = simd::Layout::new(&params, f.shape, per_message)?;
    let ciphertexts = f.shape.starts as f64 * (f.distinct / layout.haplotypes() as f64).ceil().max(1.0);
    let chosen = if f.shape.starts > 1 { f.shape.starts.div_ceil(layout.blocks()) as f64 } else { 0.0 };
    let scale = n * primes / (16_384.0 * 10.0);
    let doublings = f64::from(set.log_sites);
    // A copy of an indicator is a rotation for each bit of the blocks.
    let copies = if f.shape.starts > 1 { f.shape.starts as f64 * (layout.blocks() as f64).log2() * 0.4 } else { 0.0 };
    let server = (ciphertexts * doublings + copies + 8.0) * p.simd_product * scale;
    let polynomial = n * literal.q_bits.iter().map(|b| f64::from(b.div_ceil(8))).sum::<f64>();
    let digits = (primes / literal.digit_limbs as f64).ceil();
    let keys = (n.log2() + 1.0) * digits * (polynomial + n * literal.p_bits.len() as f64 * 6.0);
    let up = messages * (2.0 * CONTAINER + (1.0 + chosen) * polynomial);
    Ok([up, messages * (2.0 * CONTAINER + 4.0 * 5.0 * n), keys, messages * server])
}

fn bytes(b: u64) -> String {
    match b as f64 {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.2} GB", b / 1e9),
    }
}

impl fmt::Display for Choice {
    /// A table for people, with the reason in its first line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { haplotypes, shape, batch, products, distinct } = self.facts;
        let first = &self.offers[0];
        writeln!(
            f,
            "{}: least time for {batch} queries of {} sites among {} starts in {haplotypes} haplotypes ({products:.0} nodes and {distinct:.0} distinct haplotypes a window)",
            first.protocol, shape.sites, shape.starts
        )?;
        writeln!(f, "{:<8} {:>10} {:>10} {:>10} {:>12} {:>12}", "", "up", "down", "keys", "server ms", "total ms")?;
        for o in &self.offers {
            match &o.refused {
                Some(why) => writeln!(f, "{:<8} {why}", o.protocol.name())?,
                None => writeln!(
                    f,
                    "{:<8} {:>10} {:>10} {:>10} {:>12.0} {:>12.0}",
                    o.protocol.name(),
                    bytes(o.bytes_up),
                    bytes(o.bytes_down),
                    bytes(o.key_bytes),
                    o.server_ms,
                    o.total_ms
                )?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_takes_the_trie_and_many_share_slots() {
        let shape = |sites, starts| Shape { sites, starts, eps: 1 };
        let choose = |shape, batch| {
            let facts = Facts::guess(600, shape, batch);
            Choice::of(facts, &Prices::default()).unwrap()
        };
        for (sites, starts) in [(10, 1), (100, 1), (50, 1000), (1000, 1)] {
            let choice = choose(shape(sites, starts), 1);
            assert_eq!(choice.protocol(), Protocol::Trie, "{choice}");
        }
        let batch = choose(shape(8, 1), 4096);
        assert_eq!(batch.protocol(), Protocol::Simd, "{batch}");
        assert_eq!(batch.keys(), KeyPlan { protocol: Protocol::Simd, sites: 8, hidden: false });
        let long = choose(shape(5000, 1), 1);
        assert!(long.offers.iter().filter(|o| o.refused.is_some()).count() == 2, "{long}");
        assert!(long.to_string().contains("trie: least time"));
        assert!(Choice::of(Facts::guess(600, shape(0, 1), 1), &Prices::default()).is_err());
    }
}
