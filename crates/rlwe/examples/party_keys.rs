//! Keys of several parties, from the first message to the last: what a party computes and sends, with times and bytes.
//!
//! `cargo run --release -p sudare-rlwe --example party_keys -- 3 1` for three parties on one thread.

use std::time::Instant;
use sudare_ring::random::MaskSeed;
use sudare_ring::threads::Threads;
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::multiparty::{
    Entry, Ledger, Party, PartyError, RelinSum, Session, Share, galois_keys, public_key, relin_key, relin_sum,
};
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::Wire;

/// An example answers once and forgets; a party keeps `sudare_store::PartyLedger`.
struct Once;

impl Ledger for Once {
    fn admit(&mut self, _: &Entry) -> Result<(), PartyError> {
        Ok(())
    }
}

/// What one step takes: the least of five times in milliseconds, and its result.
fn timed<T>(work: impl Fn() -> T) -> (f64, T) {
    let one = || {
        let start = Instant::now();
        let made = work();
        (start.elapsed().as_secs_f64() * 1e3, made)
    };
    (1..5).fold(one(), |best, _| {
        let next = one();
        if next.0 < best.0 { next } else { best }
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u32>());
    let parties = arguments.next().transpose()?.unwrap_or(3);
    let threads = arguments.next().transpose()?.unwrap_or(1);
    Threads::new(threads as usize).run(|| run(parties, threads).map_err(|e| e.to_string()))?;
    Ok(())
}

fn run(parties: u32, threads: u32) -> Result<(), Box<dyn std::error::Error>> {
    let literal = ParamsLiteral {
        log_n: 14,
        q_bits: vec![60, 40, 40, 40],
        p_bits: vec![60],
        digit_limbs: 1,
        secret: SecretDistribution::TernarySum { parties },
        security: Security::Bits128,
    };
    let params = literal.build(SchemeTag(40))?;
    let session = Session::new(&params, parties, MaskSeed::from_entropy()?)?;
    let all = (0..parties).map(|i| Party::generate(&session, i)).collect::<Result<Vec<_>, _>>()?;
    let (first, top) = (&all[0], params.max_level());
    let elements: Vec<_> = (0..10).map(|i| (params.rotation_element(1 << i), top)).collect();

    // What one party computes, its bytes included.
    let (pk, pk_bytes) = timed(|| first.public_key_share().to_bytes());
    let (r1, r1_bytes) = timed(|| first.relin_first_share(top).map(|share| share.to_bytes()));
    let (gk, gk_bytes) = timed(|| first.galois_share(&elements).map(|share| share.to_bytes()));
    let firsts = all.iter().map(|p| p.relin_first_share(top)).collect::<Result<Vec<_>, _>>()?;
    let sum: RelinSum = relin_sum(&session, top)?.all(&firsts)?.relin_sum()?;
    let (r2, r2_bytes) = timed(|| first.relin_second_share(&sum, &mut Once).map(|share| share.to_bytes()));

    // Whoever adds the messages.
    let shares: Vec<Share<_>> = all.iter().map(Party::public_key_share).collect();
    let seconds = all.iter().map(|p| p.relin_second_share(&sum, &mut Once)).collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let public = public_key(&session).all(&shares)?.public_key()?;
    relin_sum(&session, top)?.all(&firsts)?.relin_sum()?;
    let relin = relin_key(&sum).all(&seconds)?.relin_key()?;
    let added = start.elapsed().as_secs_f64() * 1e3;
    let turns = all.iter().map(|p| p.galois_share(&elements)).collect::<Result<Vec<_>, _>>()?;
    let mut keys = EvalKeys::new(&params, session.key());
    keys.set_relin(relin)?;
    galois_keys(&session, &elements)?.all(&turns)?.galois_keys()?.into_iter().try_for_each(|key| keys.insert(key))?;

    let bytes = [pk_bytes?.len(), r1_bytes??.len(), r2_bytes??.len(), gk_bytes??.len()];
    println!(
        "{parties} parties, {threads} threads, ms a party: public key {pk:.2}, round 1 {r1:.2}, round 2 {r2:.2}, 10 Galois keys {gk:.2}; \
         to add all but the last {added:.2}; bytes {bytes:?}; public key {}, evaluation keys {} bytes",
        public.to_bytes()?.len(),
        keys.to_bytes()?.len()
    );
    Ok(())
}
