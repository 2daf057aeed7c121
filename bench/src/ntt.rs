//! `ntt`: transforms of one limb beside those of `tfhe-ntt`.

use crate::machine::Machine;
use crate::record::{Record, Sink};
use crate::timing::{Budget, Unit, fill, measure};
use crate::{Outcome, PEER};
use sudare_ring::buffer::Buffer;
use sudare_ring::order::exponent;
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Family, Limb};
use sudare_testkit::Random;
use tfhe_ntt::prime64::Plan;

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Ring degrees.
    #[arg(long, value_delimiter = ',', default_values_t = [1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16])]
    n: Vec<usize>,
    /// Bits of the primes; each is the largest of its length.
    #[arg(long, value_delimiter = ',', default_values_t = [40, 46, 50, 60])]
    bits: Vec<u32>,
}

/// Values whose transform is checked against the definition.
const PROBES: usize = 16;

/// Runs the suite, under all families if none is given.
pub fn run(options: &Options, families: &[Family], budget: Budget, machine: &Machine, sink: &mut Sink) -> Outcome<()> {
    let mut unit = Unit::new()?;
    for &n in &options.n {
        for &bits in &options.bits {
            let q = ntt_primes(n, bits, 1, &[])?[0];
            // The peer's fast path ends at 50 bits, its next one serves 60.
            let peer_q = if bits <= 50 { ntt_primes(n, 50, 1, &[])?[0] } else { ntt_primes(n, 60, 1, &[])?[0] };
            let plan = Plan::try_new(n, peer_q).ok_or("the peer refuses a prime")?;
            for family in Family::ALL {
                let wanted = families.is_empty() || families.contains(&family);
                if !wanted || !family.serves(&sudare_ring::Modulus::new(q)?) {
                    continue;
                }
                let limb = Limb::with_family(q, n, family)?;
                let check = check(&limb);
                for forward in [true, false] {
                    let direction = if forward { "forward" } else { "inverse" };
                    let mut values = Buffer::zeroed(n);
                    let mut theirs = Buffer::zeroed(n);
                    fill(&mut values, q, 1);
                    fill(&mut theirs, peer_q, 1);
                    let ours = || {
                        if forward {
                            limb.forward(&mut values)
                        } else {
                            limb.inverse(&mut values)
                        }
                        Ok(())
                    };
                    let mut peer = || if forward { plan.fwd(&mut theirs) } else { plan.inv(&mut theirs) };
                    let timing = measure(&mut unit, budget, ours, Some(&mut peer))?;
                    let mut record = Record::new("ntt", format!("{direction} {bits} bits"), 1, machine);
                    record.n = Some(n);
                    record.method = Some(family.name().into());
                    record.params = Some(format!("q = {q}, peer's q = {peer_q}"));
                    record.peer = Some(PEER);
                    record.check.clone_from(&check);
                    sink.put(record.with_timing(timing))?;
                }
            }
        }
    }
    Ok(())
}

/// The transform against its definition at some points, and the way back exactly.
fn check(limb: &Limb) -> String {
    let (n, m) = (limb.degree(), limb.modulus());
    let mut input = Buffer::zeroed(n);
    fill(&mut input, limb.q(), 2);
    let mut values = input.clone();
    limb.forward(&mut values);
    let mut random = Random(n as u64);
    for _ in 0..PROBES {
        let i = (random.word() % n as u64) as usize;
        let x = m.pow(limb.root(), exponent(n, i) as u64);
        let wanted = input.iter().rev().fold(0, |acc, c| m.add(m.mul(acc, x), *c));
        if values[i] != wanted {
            return format!("value {i} is {} and should be {wanted}", values[i]);
        }
    }
    limb.inverse(&mut values);
    match values.iter().zip(input.iter()).position(|(a, b)| a != b) {
        Some(i) => format!("coefficient {i} does not come back"),
        None => "ok".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_passes_its_check() {
        let q = ntt_primes(512, 46, 1, &[]).unwrap()[0];
        for family in Family::ALL.into_iter().filter(|f| f.available()) {
            assert_eq!(check(&Limb::with_family(q, 512, family).unwrap()), "ok");
        }
    }
}
