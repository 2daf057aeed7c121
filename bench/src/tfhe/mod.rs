//! `tfhe`: gates, bootstraps and their parts, CMUX, encrypted integers and keys, every answer checked.

pub mod failure;
pub mod gates;
mod integers;
mod keys;
mod line;
pub mod noise;
mod others;
mod peer;
pub mod published;
mod shares;

pub use line::{Line, claims, mb};

use crate::Outcome;
use crate::lines::Lines;
use crate::machine::{Machine, peak_rss_mb, reset_peak_rss, thread_times};
use crate::timing::{Budget, Samples, Timing, Unit, measure};
use std::time::Instant;
use sudare_ring::Threads;
use sudare_ring::prime::ntt_primes;
use sudare_ring::random::{ObjectSeeds, Seed};
use sudare_testkit::Random;
use sudare_tfhe::{
    ClientKey, EncryptedBit, EncryptedInt, Gadget, Gate, GgswCiphertext, GlweCiphertext, GlweContext, GlweSecretKey,
    LookupTable, Noise, SecretKind, ServerKey, TfheLiteral, TfheParams,
};

/// Which lines to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only groups whose name contains one of these words: gates, bootstrap, cmux, circuit, fhew,
    /// integers, keys.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Threads of the lines that use several; 0 means one for each processor.
    #[arg(long, default_value_t = 0)]
    pool: usize,
    /// Gates and lookups in one batch for each thread.
    #[arg(long, default_value_t = 8)]
    batch: usize,
}

impl Options {
    fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|w| group.contains(w.as_str()))
    }
}

/// What every group needs, and the lines so far.
struct Lab<'a> {
    unit: Unit,
    budget: Budget,
    machine: &'a Machine,
    out: &'a mut Lines,
    lines: Vec<Line>,
    /// The caller's thread alone.
    one: Threads,
    pool: Threads,
    batch: usize,
}

impl Lab<'_> {
    fn put(&mut self, line: Line) -> Outcome<()> {
        self.out.put(&line)?;
        self.lines.push(line);
        Ok(())
    }

    fn time(&mut self, ours: impl FnMut() -> Outcome<()>) -> Outcome<Timing> {
        reset_peak_rss();
        measure(&mut self.unit, self.budget, ours, None)
    }

    /// Times `work(i)` for i = 0, 1, …, in turn with the peer if it has this case, then counts the results
    /// that `right(i, result)` refuses.
    fn checked<T>(
        &mut self,
        line: Line,
        mut work: impl FnMut(usize) -> Outcome<T>,
        right: impl Fn(usize, &T) -> Outcome<bool>,
    ) -> Outcome<()> {
        let mut results = Vec::new();
        let mut ours = || {
            results.push(work(results.len())?);
            Ok(())
        };
        let alone = (line.threads, line.batch) == (1, 1);
        let (timing, peer) = match peer::find(&line.case).filter(|_| alone) {
            None => (self.time(&mut ours)?, None),
            Some(make) => {
                // Memory is told before the peer's keys fill it.
                reset_peak_rss();
                ours()?;
                let peak = peak_rss_mb();
                let mut peer = make()?;
                let timing = measure(&mut self.unit, self.budget, &mut ours, Some(&mut || peer.run()))?;
                (timing, Some((peer, peak)))
            }
        };
        let [waited, idle] = if line.threads > 1 { unused(line.threads, &mut ours)? } else { [None; 2] };
        let mut wrong = 0;
        for (i, result) in results.iter().enumerate() {
            wrong += usize::from(!right(i, result)?);
        }
        let mut line = line.with_timing(timing).with_answers(wrong, results.len());
        (line.cpu_waited, line.cpu_idle) = (waited, idle);
        if let Some((peer, peak)) = peer {
            line = line.with_peer(&*peer);
            line.peak_rss_mb = peak;
        }
        self.put(line)
    }
}

/// Shares of the time of a pool's threads, in the median of some runs: waiting for a processor that
/// others had, and without work.
fn unused(threads: usize, mut work: impl FnMut() -> Outcome<()>) -> Outcome<[Option<f64>; 2]> {
    let mut shares: [Samples; 2] = Default::default();
    for _ in 0..7 {
        let (before, clock) = (thread_times(), Instant::now());
        work()?;
        let all = clock.elapsed().as_secs_f64() * threads as f64;
        if let (Some(before), Some(after)) = (before, thread_times()) {
            let [ran, waited] = [0, 1].map(|i| after[i].saturating_sub(before[i]).as_secs_f64() / all);
            shares[0].0.push(waited);
            shares[1].0.push((1.0 - ran - waited).max(0.0));
        }
    }
    Ok(shares.map(|s| s.median()))
}

/// Measures and prints; gives the lines back.
pub fn run(options: &Options, budget: Budget, machine: &Machine, out: &mut Lines) -> Outcome<Vec<Line>> {
    let mut lab = Lab {
        unit: Unit::new()?,
        budget,
        machine,
        out,
        lines: Vec::new(),
        one: Threads::new(1),
        pool: Threads::new(options.pool),
        batch: options.batch.max(1),
    };
    if !cfg!(feature = "peer-tfhe") {
        eprintln!("sudare-bench: {}", peer::HOW);
    }
    if options.wants("gates") {
        gates(&mut lab, "2^-128", TfheLiteral::gates())?;
        gates(&mut lab, "2^-64", TfheLiteral::gates_failure_64())?;
    }
    if options.wants("bootstrap") {
        for (name, literal) in integer_sets() {
            bootstraps(&mut lab, name, literal)?;
        }
    }
    if options.wants("cmux") {
        // Digits as the default sets have them.
        cmux(&mut lab, 1024, 48, Gadget { base_log: 22, levels: 1 })?;
        cmux(&mut lab, 2048, 48, Gadget { base_log: 22, levels: 1 })?;
        cmux(&mut lab, 1024, 48, Gadget { base_log: 8, levels: 3 })?;
        cmux(&mut lab, 2048, 48, Gadget { base_log: 12, levels: 2 })?;
    }
    if options.wants("circuit") {
        others::circuit(&mut lab)?;
    }
    if options.wants("fhew") {
        others::fhew(&mut lab)?;
    }
    if options.wants("integers") {
        integers::run(&mut lab)?;
    }
    if options.wants("keys") {
        let sets = [("gates, 2^-128", TfheLiteral::gates()), ("gates, 2^-64", TfheLiteral::gates_failure_64())];
        let integers = integer_sets().map(|(name, literal)| (name, literal));
        for (name, literal) in sets.into_iter().chain(integers) {
            keys::run(&mut lab, name, literal)?;
        }
    }
    Ok(lab.lines)
}

fn integer_sets() -> [(&'static str, TfheLiteral); 2] {
    [
        ("2+2, 2^-128", TfheLiteral::message_2_carry_2()),
        ("2+2 LWE switch, 2^-128", TfheLiteral::message_2_carry_2_lwe_switch()),
    ]
}

/// Both sides of a set.
fn sides(params: &TfheParams) -> Outcome<(ClientKey, ServerKey)> {
    let client = ClientKey::generate(params)?;
    let server = client.server_key()?;
    Ok((client, server))
}

/// Encrypted bits and what they are.
fn bits(client: &ClientKey, count: usize) -> Outcome<Vec<(bool, EncryptedBit)>> {
    let mut random = Random(5);
    (0..count)
        .map(|_| {
            let bit = random.word() & 1 == 1;
            Ok((bit, client.encrypt_bit(bit)?))
        })
        .collect()
}

fn gates(lab: &mut Lab<'_>, name: &str, literal: TfheLiteral) -> Outcome<()> {
    let params = literal.build()?;
    let (client, server) = sides(&params)?;
    let pool = bits(&client, 64)?;
    // Inputs of gates are outputs of gates.
    let pool: Vec<_> = pool.iter().map(|(x, c)| Ok((!x, server.gate(Gate::Nand, c, c)?))).collect::<Outcome<_>>()?;
    let at = |i: usize| &pool[i % pool.len()];
    let line = |case: String, lab: &Lab<'_>| Line {
        rotations: Some(1),
        ..Line::new(case, lab.machine).with_params(&params).with_keys(&server)
    };
    let mut nand = line(format!("NAND, {name}"), lab);
    let zero = pool[0].1.ciphertext();
    let sign = LookupTable::constant(params.context(), params.context().q() / 8);
    nand.shares = shares::measure(&server, zero, &sign, repeats(lab))?;
    let work = |i: usize| Ok(server.gate(Gate::Nand, &at(i).1, &at(7 * i + 1).1)?);
    let right = |i: usize, c: &EncryptedBit| -> Outcome<bool> {
        Ok(client.decrypt_bit(c)? == Gate::Nand.plain(at(i).0, at(7 * i + 1).0))
    };
    lab.checked(nand, work, right)?;
    let beside = format!("NAND, {name}, the peer's default");
    if peer::find(&beside).is_some() {
        lab.checked(line(beside, lab), work, right)?;
    }
    let mut mux = line(format!("MUX, {name}"), lab);
    mux.rotations = Some(2);
    lab.checked(
        mux,
        |i| Ok(server.mux(&at(i).1, &at(3 * i + 1).1, &at(5 * i + 2).1)?),
        |i, c| Ok(client.decrypt_bit(c)? == if at(i).0 { at(3 * i + 1).0 } else { at(5 * i + 2).0 }),
    )?;
    // A batch on one thread, then on all.
    for all in [false, true] {
        let threads = if all { std::mem::replace(&mut lab.pool, Threads::new(1)) } else { Threads::new(1) };
        let mut batch = line(format!("NAND, batch, {name}"), lab);
        batch.threads = threads.count();
        batch.batch = lab.batch * threads.count();
        let count = batch.batch;
        let jobs: Vec<_> = (0..count).map(|j| (Gate::Nand, &at(j).1, &at(7 * j + 1).1)).collect();
        let measured = lab.checked(
            batch,
            |_| Ok(threads.run(|| server.gates(&jobs))?),
            |_, cs| {
                let right = |(j, c)| -> Outcome<bool> {
                    Ok(client.decrypt_bit(c)? == Gate::Nand.plain(at(j).0, at(7 * j + 1).0))
                };
                cs.iter().enumerate().map(right).try_fold(cs.len() == count, |all, one| Ok(all & one?))
            },
        );
        if all {
            lab.pool = threads;
        }
        measured?;
    }
    Ok(())
}

/// Bootstraps that are taken apart.
fn repeats(lab: &Lab<'_>) -> usize {
    ((lab.budget.seconds * 30.0) as usize).clamp(lab.budget.least, 100)
}

fn bootstraps(lab: &mut Lab<'_>, name: &str, literal: TfheLiteral) -> Outcome<()> {
    let params = literal.build()?;
    let (client, server) = sides(&params)?;
    let space = params.space();
    let square = |x: u64| (x * x + 3) % space;
    let table = LookupTable::new(&params, square)?;
    let identity = LookupTable::new(&params, |x| x)?;
    let fresh = |x: u64| -> Outcome<(u64, EncryptedInt)> {
        Ok((x, server.lookup(&client.encrypt_int_with_carry(x)?, &identity)?))
    };
    let inputs = (0..space).map(fresh).collect::<Outcome<Vec<_>>>()?;
    let at = |i: usize| &inputs[i % inputs.len()];
    let line = |case: String, lab: &Lab<'_>| Line {
        rotations: Some(1),
        ..Line::new(case, lab.machine).with_params(&params).with_keys(&server)
    };
    let mut whole = line(format!("bootstrap {name}"), lab);
    whole.shares = shares::measure(&server, at(1).1.ciphertext(), &table, repeats(lab))?;
    lab.checked(whole, |i| Ok(server.lookup(&at(i).1, &table)?), |i, c| Ok(client.decrypt_int(c)? == square(at(i).0)))?;
    let two_n = 2 * params.context().degree();
    // The key switch, and what comes after it: together they are the checked bootstrap.
    lab.checked(
        line(format!("key switch {name}"), lab),
        |i| Ok(server.switch_key().switch(at(i).1.ciphertext())?),
        |i, c| {
            // The phase is within half a box of the message's.
            let phase = f64::from(client.lwe().phase_torus(c)?) / 32f64.exp2();
            let off = phase - at(i).0 as f64 / (2 * space) as f64;
            Ok((off - off.round()).abs() < params.literal().plaintext.half_box())
        },
    )?;
    // Modulus switch, blind rotation and extraction, as the peer has them in one function.
    let switched = server.switch_key().switch(at(2).1.ciphertext())?;
    lab.checked(
        line(format!("bootstrap after the key switch {name}"), lab),
        |_| {
            let exponents = switched.switch_modulus(two_n, SecretKind::Binary);
            let mut acc = GlweCiphertext::trivial(params.context(), table.coefficients())?;
            server.bootstrap_key().blind_rotate(&mut acc, &exponents)?;
            Ok(acc.extract(0)?)
        },
        |_, c| {
            let c = EncryptedInt::from_parts(c.clone(), at(2).1.owner(), space - 1, 1);
            Ok(client.decrypt_int(&c)? == square(at(2).0))
        },
    )?;
    let mut batch = line(format!("bootstrap, batch, {name}"), lab);
    let threads = std::mem::replace(&mut lab.pool, Threads::new(1));
    batch.threads = threads.count();
    batch.batch = lab.batch * threads.count();
    let jobs: Vec<_> = (0..batch.batch).map(|j| (&at(j).1, &table)).collect();
    let measured = lab.checked(
        batch,
        |_| Ok(threads.run(|| server.lookups(&jobs))?),
        |_, cs| {
            let right = |(j, c)| -> Outcome<bool> { Ok(client.decrypt_int(c)? == square(at(j).0)) };
            cs.iter().enumerate().map(right).try_fold(cs.len() == jobs.len(), |all, one| Ok(all & one?))
        },
    );
    lab.pool = threads;
    measured
}

fn cmux(lab: &mut Lab<'_>, degree: usize, bits: u32, gadget: Gadget) -> Outcome<()> {
    let q = ntt_primes(degree, bits, 1, &[])?[0];
    let context = GlweContext::new(degree, q, 1, SecretKind::Binary, Noise::Gaussian { sigma: 3.19 })?;
    let seed = Seed::from_entropy()?;
    let key = GlweSecretKey::generate(&context, &mut seed.derive("lab cmux key", 0).stream(0));
    let (mut masks, mut errors) = (seed.derive("lab masks", 0).stream(0), seed.derive("lab errors", 0).stream(0));
    let messages: [Vec<u64>; 2] = [1, 2].map(|salt| {
        let mut random = Random(salt);
        (0..degree).map(|_| (random.word() % 8) * (q / 8)).collect()
    });
    let d0 = key.encrypt(&messages[0], &mut masks, &mut errors)?;
    let d1 = key.encrypt(&messages[1], &mut masks, &mut errors)?;
    for bit in [0usize, 1] {
        let selector =
            GgswCiphertext::encrypt(&key, bit as i64, gadget, &ObjectSeeds::derive(&seed, "lab", bit as u64))?;
        let mut last = None;
        let timing = lab.time(|| {
            last = Some(selector.cmux(&d1, &d0)?);
            Ok(())
        })?;
        let chosen = last.ok_or("nothing was measured")?;
        let eighth = |x: u64| ((u128::from(x) * 8 + u128::from(q) / 2) / u128::from(q)) as u64 % 8;
        let phase = key.phase(&chosen)?;
        let wrong = phase.iter().zip(&messages[bit]).filter(|(x, m)| eighth(**x) != eighth(**m)).count();
        if bit == 1 {
            let case = if gadget.levels == 1 {
                format!("CMUX N={degree}")
            } else {
                format!("CMUX N={degree}, {} digits", gadget.levels)
            };
            let mut line = Line::new(case, lab.machine);
            line.params = Some(format!("N {degree} k 1 q 2^{bits} digits {}x{}", gadget.base_log, gadget.levels));
            line.key_bytes = Some(selector.matrix().byte_len());
            lab.put(line.with_timing(timing).with_answers(wrong, degree))?;
        } else if wrong > 0 {
            return Err("a CMUX by zero took the other ciphertext".into());
        }
    }
    Ok(())
}
