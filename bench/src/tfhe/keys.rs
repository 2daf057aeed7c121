//! Server keys: how long they take to make, and their bytes.

use super::{Lab, Line, peer};
use crate::Outcome;
use crate::machine::{peak_rss_mb, reset_peak_rss};
use crate::timing::{Clock, Timing};
use sudare_tfhe::{ClientKey, Gate, LookupTable, ServerKey, TfheLiteral};

/// One set's server key on one thread, in turn with the peer's, and on all.
pub fn run(lab: &mut Lab<'_>, name: &str, literal: TfheLiteral) -> Outcome<()> {
    let params = literal.build()?;
    let client = ClientKey::generate(&params)?;
    for all in [false, true] {
        let threads = if all { &lab.pool } else { &lab.one };
        let mut line = Line::new(format!("server key {name}"), lab.machine).with_params(&params);
        let make = if all { None } else { peer::find(&line.case) };
        let (mut peer, mut peak) = (None, None);
        reset_peak_rss();
        let mut timing = Timing::default();
        let mut last = None;
        for _ in 0..lab.budget.least.min(3) {
            lab.unit.sample(&mut timing.unit);
            // The one before is freed outside the clock.
            drop(last.take());
            let clock = Clock::start();
            last = Some(threads.run(|| client.server_key())?);
            clock.stop(1, &mut timing.ours);
            if peer.is_none() {
                peak = peak_rss_mb();
                peer = make.map(|make| make()).transpose()?;
            }
            if let Some(peer) = &mut peer {
                peer.clear();
                let clock = Clock::start();
                peer.run();
                clock.stop(1, &mut timing.peer);
            }
        }
        let server = last.ok_or("nothing was measured")?;
        let wrong = usize::from(!works(&client, &server)?);
        line.threads = threads.count();
        line = line.with_keys(&server).with_timing(timing).with_answers(wrong, 1);
        if let Some(peer) = &peer {
            line = line.with_peer(&**peer);
        }
        line.peak_rss_mb = peak;
        lab.put(line)?;
    }
    Ok(())
}

/// Whether one bootstrap under these keys is right.
fn works(client: &ClientKey, server: &ServerKey) -> Outcome<bool> {
    if client.params().space() == 2 {
        let a = client.encrypt_bit(true)?;
        return Ok(!client.decrypt_bit(&server.gate(Gate::Nand, &a, &a)?)?);
    }
    let table = LookupTable::new(client.params(), |x| x ^ 1)?;
    Ok(client.decrypt_int(&server.lookup(&client.encrypt_int(2)?, &table)?)? == 3)
}
