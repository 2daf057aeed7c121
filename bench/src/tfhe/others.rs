//! Circuit bootstraps, and the gates of FHEW: the accumulator by digits and by automorphisms.

use super::{Lab, Line, bits};
use crate::Outcome;
use crate::machine::reset_peak_rss;
use crate::timing::{Clock, Timing};
use sudare_he::tfhe::circuit_bootstrap::{CircuitKey, CircuitLiteral, PrivateSwitchKey};
use sudare_he::tfhe::fhew::{FhewKey, FhewLiteral};
use sudare_he::tfhe::leveled::{LeveledClient, LeveledServer, Selector};
use sudare_he::tfhe::{ClientKey, Gadget, Gate};

/// A bit to a selector by today's way, and by the classical one.
pub fn circuit(lab: &mut Lab<'_>) -> Outcome<()> {
    for (name, literal) in [("3 levels", CircuitLiteral::three_levels()), ("2 levels", CircuitLiteral::two_levels())] {
        let params = literal.build()?;
        let client = ClientKey::generate(params.tfhe())?;
        let key = CircuitKey::generate(&params, &client)?;
        let leveled = LeveledClient::sharing(params.leveled(), &client)?;
        let server = LeveledServer::new(params.leveled());
        let (ones, zeros) = (leveled.encrypt(&[1])?, leveled.encrypt(&[0])?);
        let inputs = bits(&client, 16)?;
        let inputs: Vec<_> =
            inputs.iter().map(|(x, c)| Ok((!x, key.server().gate(Gate::Nand, c, c)?))).collect::<Outcome<_>>()?;
        let at = |i: usize| &inputs[i % inputs.len()];
        // Only a few results are kept: each is a key of its own.
        let right = |i: usize, selector: &Option<Selector>| -> Outcome<bool> {
            let Some(selector) = selector else { return Ok(true) };
            let found = leveled.decrypt(&server.cmux(selector, &ones, &zeros)?, 1)?;
            Ok(found == [u64::from(at(i).0)])
        };
        let keep = |i: usize, selector: Selector| (i < 64).then_some(selector);
        let mut line = Line::new(format!("circuit bootstrap, {name}"), lab.machine).with_params(params.tfhe());
        line.key_bytes = Some(key.byte_len());
        line.rotations = Some(1);
        lab.checked(line, |i| Ok(keep(i, key.bootstrap(&at(i).1)?)), right)?;
        if name == "3 levels" {
            let gadget = Gadget { base_log: 16, levels: 2 };
            let private = PrivateSwitchKey::generate(client.glwe(), gadget, &client.object_seeds()?)?;
            let case = format!("circuit bootstrap, {name}, classical");
            let mut line = Line::new(case, lab.machine).with_params(params.tfhe());
            line.key_bytes = Some(key.server().byte_len() + private.byte_len());
            line.rotations = Some(1);
            lab.checked(line, |i| Ok(keep(i, key.bootstrap_classical(&at(i).1, &private)?)), right)?;
        }
    }
    Ok(())
}

/// NAND by the blind rotations of FHEW.
pub fn fhew(lab: &mut Lab<'_>) -> Outcome<()> {
    for (name, literal) in
        [("automorphisms", FhewLiteral::automorphisms()), ("digits", FhewLiteral::ducas_micciancio())]
    {
        let params = literal.build()?;
        let client = ClientKey::generate(params.tfhe())?;
        let mut timing = Timing::default();
        reset_peak_rss();
        lab.unit.sample(&mut timing.unit);
        let clock = Clock::start();
        let key = FhewKey::generate(&params, &client)?;
        clock.stop(1, &mut timing.ours);
        let inputs = bits(&client, 16)?;
        let inputs: Vec<_> =
            inputs.iter().map(|(x, c)| Ok((!x, key.gate(Gate::Nand, c, c)?))).collect::<Outcome<_>>()?;
        let at = |i: usize| &inputs[i % inputs.len()];
        let mut keys = Line::new(format!("server key FHEW, {name}"), lab.machine).with_params(params.tfhe());
        keys.key_bytes = Some(key.byte_len());
        let wrong = inputs.iter().filter(|(x, c)| client.decrypt_bit(c).ok() != Some(*x)).count();
        lab.put(keys.with_timing(timing).with_answers(wrong, inputs.len()))?;
        let mut line = Line::new(format!("FHEW NAND, {name}"), lab.machine).with_params(params.tfhe());
        line.log2_failure = Some((params.log_failure() * 10.0).round() / 10.0);
        line.key_bytes = Some(key.byte_len());
        line.rotations = Some(1);
        lab.checked(
            line,
            |i| Ok(key.gate(Gate::Nand, &at(i).1, &at(3 * i + 1).1)?),
            |i, c| Ok(client.decrypt_bit(c)? == Gate::Nand.plain(at(i).0, at(3 * i + 1).0)),
        )?;
    }
    Ok(())
}
