//! Bits of TFHE into a bootstrap's coefficients and back: time of packing and of the way back, bytes of the keys; every bit is decrypted
//! by TFHE's key at the end.

use super::World;
use crate::Outcome;
use crate::lines::Line as Row;
use crate::machine::Machine;
use crate::timing::{Budget, Unit, measure};
use serde::Serialize;
use sudare_he::discrete::{Coefficients, Form, LweKeys, LweParams, Table};
use sudare_ring::Threads;
use sudare_rlwe::security::Security;
use sudare_rlwe::wire::Wire;
use sudare_testkit::Random;
use sudare_tfhe::exchange::LweForm;
use sudare_tfhe::{ClientKey, EncryptedBit, TfheLiteral, TorusLwe};

/// Units of packing 2^15 ciphertexts of dimension 640, and bytes of its keys.
const TARGET: (f64, u64) = (4_000.0, 9_000_000);

/// A measured step.
#[derive(Clone, Debug, Serialize)]
pub struct Exchanged {
    /// `discrete`.
    pub suite: &'static str,
    /// The set, the form of LWE ciphertexts and the step.
    pub case: String,
    /// Ring degree: so many bits.
    pub n: usize,
    /// Dimension of the LWE ciphertexts.
    pub dimension: usize,
    /// Threads.
    pub threads: usize,
    /// Security by the limits; 0 where nothing is claimed.
    pub security_bits: u32,
    /// Median processor time.
    pub cpu_ms: Option<f64>,
    /// Processor time in units.
    pub cpu_units: Option<f64>,
    /// What the units should be at most.
    pub target_units: Option<f64>,
    /// Processor microseconds of a bit.
    pub us_each: Option<f64>,
    /// Bytes of all keys of the exchange on the wire.
    pub wire_bytes: u64,
    /// What they should be at most.
    pub target_bytes: Option<u64>,
    /// log2 of the bound of a bit after packing, and before it is taken to gates.
    pub log_bound: f64,
    /// Wrong bits of all.
    pub wrong: usize,
    /// `ok`, or what is wrong.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
}

impl Row for Exchanged {
    const HEAD: &'static str =
        "case                                     N    n    cpu ms  cpu units  target  us each   bound  wire MB check";

    fn row(&self) -> String {
        let number = |x: Option<f64>, digits: usize| x.map_or_else(String::new, |x| format!("{x:.digits$}"));
        format!(
            "{:<36} {:>6} {:>4} {:>9} {:>10} {:>7} {:>8} {:>7.2} {:>8.2} {}",
            self.case,
            self.n,
            self.dimension,
            number(self.cpu_ms, 1),
            number(self.cpu_units, 0),
            number(self.target_units, 0),
            number(self.us_each, 2),
            self.log_bound,
            self.wire_bytes as f64 / 1e6,
            self.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// Bits go in, are negated by one bootstrap, and come back, in both forms.
pub fn run(
    w: &World,
    (budget, threads, machine): (Budget, &Threads, &Machine),
    unit: &mut Unit,
    put: &mut dyn FnMut(Exchanged) -> Outcome<()>,
) -> Outcome<()> {
    let (server, params) = (&w.server, w.server.params());
    let (degree, security) = (params.params().degree(), params.params().security());
    let literal = match security {
        Security::Insecure => TfheLiteral { lwe_dimension: 64, security, ..TfheLiteral::gates() },
        _ => TfheLiteral::gates(),
    };
    let client = ClientKey::generate(&literal.build()?)?;
    let plain: Vec<bool> = (0..degree).scan(Random(53), |random, _| Some(random.chance(50))).collect();
    let bits = plain.iter().map(|bit| client.encrypt_bit(*bit)).collect::<Result<Vec<EncryptedBit>, _>>()?;
    let noise = client.params().lwe_noise();
    let variance = noise.noise().variance() / 64f64.exp2();
    for form in [LweForm::Switched, LweForm::AtRest] {
        let both = LweParams::new(params, client.params(), form)?;
        let keys = threads.run(|| LweKeys::generate(&both, &w.secret, &client))?;
        let switched = match form {
            // As the short key encrypts them: bits that a key switch has made short are noisier.
            LweForm::Switched => {
                let seeds = client.object_seeds()?;
                let (mut masks, mut errors) = (seeds.masks.stream(0), seeds.errors.stream(0));
                let phase = |bit: &bool| if *bit { 1 << 29 } else { 7 << 29 };
                plain
                    .iter()
                    .map(|bit| TorusLwe::encrypt(client.lwe(), phase(bit), noise, &mut masks, &mut errors))
                    .collect()
            }
            LweForm::AtRest => Vec::<TorusLwe>::new(),
        };
        let mut packed: Option<Coefficients> = None;
        let pack = threads.run(|| {
            measure(
                unit,
                budget,
                || {
                    packed = Some(match form {
                        LweForm::Switched => server.from_switched_bits(&keys, &switched, variance)?,
                        LweForm::AtRest => server.from_bits(&keys, &bits)?,
                    });
                    Ok(())
                },
                None,
            )
        })?;
        let packed = packed.ok_or("packing ran")?;
        let modulus = packed.modulus();
        let not = Table::of_bit(modulus, modulus, [1, 0])?;
        let result = threads.run(|| server.tables_of(&[&packed], &[not], Form::Packed))?.remove(0).remove(0);
        let mut back = None;
        let leave = threads.run(|| {
            measure(
                unit,
                budget,
                || {
                    back = Some(server.to_bits(&keys, &result)?);
                    Ok(())
                },
                None,
            )
        })?;
        let back = back.ok_or("the way back ran")?;
        let mut wrong = 0;
        for (i, bit) in plain.iter().enumerate() {
            wrong += usize::from(client.decrypt_bit(&back.get(i)?)? == *bit);
        }
        let steps = [("in", &pack, packed.error()), ("out", &leave, result.error())];
        for (step, timing, bound) in steps {
            let (ours, unit) = (timing.ours.cpu.median(), timing.unit.cpu.median());
            let one = step == "in" && form == LweForm::Switched && security.bits() > 0;
            put(Exchanged {
                suite: "discrete",
                case: format!("{}, bits of TFHE {step}, {form:?}", w.set),
                n: degree,
                dimension: both.exchange().dimension(),
                threads: threads.count(),
                security_bits: security.bits(),
                cpu_ms: ours,
                cpu_units: ours.zip(unit).map(|(a, b)| a / b),
                target_units: one.then_some(TARGET.0),
                us_each: ours.map(|ms| ms * 1e3 / degree as f64),
                wire_bytes: keys.wire_bytes()?,
                target_bytes: one.then_some(TARGET.1),
                log_bound: bound.log2(),
                wrong,
                check: if wrong == 0 { "ok".into() } else { format!("{wrong} bits are wrong") },
                machine: machine.clone(),
            })?;
        }
    }
    Ok(())
}
