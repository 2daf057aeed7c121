//! Whole operations on batches of ciphertexts with real keys, as schemes call them: products that are relinearised and
//! rescaled in five launches, rotations alone and hoisted, with keys that stay on the device and with keys that do not.

use super::{Bench, Cell, Fault, model};
use crate::Outcome;
use sudare_gpu::{Ciphertexts, Evaluator};
use sudare_he::ckks::{Params, ParamsLiteral};
use sudare_ring::{Coeff, Eval, Poly, threads};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::{Encryptor, Message};

/// log2 N, data primes, special primes, which are as many as a digit has.
pub type Set = (u32, usize, usize);
/// Sets of the figures to reach.
pub const SETS: [Set; 4] = [(13, 3, 1), (14, 8, 2), (15, 16, 4), (16, 30, 8)];
/// Rotations of one decomposition.
const STEPS: [i64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// Room for all keys.
pub const RESIDENT: usize = usize::MAX;
/// Operands repeat after so many: what is computed does not depend on them, and all items are compared.
const DISTINCT: usize = 4;

/// A set of {49, 40, … | 49, …}. No security is asked for: times do not depend on it.
pub fn literal(log_n: u32, limbs: usize, special: usize) -> ParamsLiteral {
    let mut q_bits = vec![40; limbs];
    q_bits[0] = 49;
    let rlwe = rlwe::params::ParamsLiteral {
        log_n,
        q_bits,
        p_bits: vec![49; special],
        digit_limbs: special,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    };
    ParamsLiteral { rlwe, log_scale: 40 }
}

/// What computes on a device.
pub type There = rlwe::Evaluator<Evaluator>;

/// A set with keys and ciphertexts, all on the processor.
pub struct World {
    pub literal: ParamsLiteral,
    pub host: rlwe::Evaluator,
    keys: EvalKeys,
    some: Vec<rlwe::Ciphertext>,
}

impl World {
    /// With keys for products and for rotations by `steps`.
    pub fn new((log_n, limbs, special): Set, steps: &[i64]) -> Outcome<Self> {
        let literal = literal(log_n, limbs, special);
        let params: Params = literal.build()?;
        let secret = SecretKey::generate(&params)?;
        let top = params.max_level();
        let elements: Vec<(u64, usize)> = steps.iter().map(|s| (params.rotation_element(*s), top)).collect();
        let keys = KeyGenerator::new(&secret)?.eval_keys(Some(top), &elements)?;
        let encryptor = Encryptor::with_secret_key(&secret)?;
        let one = |salt: usize| {
            let coefficients: Vec<i64> = (0..params.degree() as i64).map(|i| (i * (salt as i64 + 3)) << 20).collect();
            encryptor.encrypt(Message::Coefficients(Poly::<Coeff>::from_signed(params.q(), &coefficients)))
        };
        let some = threads::map(DISTINCT, one).into_iter().collect::<Result<_, _>>()?;
        Ok(Self { literal, host: rlwe::Evaluator::new(keys.clone()), keys, some })
    }

    /// Which set it is.
    pub fn set(&self) -> Set {
        (self.literal.log_n, self.literal.q_bits.len(), self.literal.p_bits.len())
    }

    /// An evaluator on a device, whose keys have so many bytes of it.
    pub fn there(&self, bench: &Bench, budget: usize) -> There {
        There::with_backend(Evaluator::new(&bench.device, self.keys.clone(), budget))
    }

    /// Ciphertext number `i`.
    pub fn some(&self, i: usize) -> &rlwe::Ciphertext {
        &self.some[i % DISTINCT]
    }

    /// Numbers `first`, `first` + 1, … of the ciphertexts, each copied by itself.
    pub fn upload(&self, here: &There, first: usize, batch: usize) -> Outcome<Ciphertexts> {
        let refs: Vec<_> = (first..first + batch).map(|i| self.some(i)).collect();
        Ok(here.backend().upload(&refs)?)
    }

    /// `ok` if the items of each result are what `want` says for an item's number.
    pub fn check(&self, bench: &Bench, batch: usize, out: &[Ciphertexts], want: Want<'_>) -> Outcome<String> {
        let wanted = (0..batch.min(DISTINCT)).map(want).collect::<Result<Vec<_>, _>>()?;
        for (number, got) in out.iter().enumerate() {
            let mut parts: Vec<Vec<Poly<Eval>>> = wanted.iter().map(|w| w[number].parts().to_vec()).collect();
            if bench.fault == Some(Fault::Wrong) {
                parts[0][0].limb_mut(0)[0] ^= 1;
            }
            let said = bench.check(got.parts(), batch, &parts)?;
            if said != "ok" {
                return Ok(said);
            }
        }
        Ok("ok".into())
    }
}

/// What the processor makes of the operands of an item's number.
pub type Want<'a> = &'a dyn Fn(usize) -> Outcome<Vec<rlwe::Ciphertext>>;

/// Sets on this device, the first in any case; the emulator leaves out the largest, which takes it seconds.
pub fn run(bench: &Bench, batches: &[usize], put: &mut dyn FnMut(Cell) -> Outcome<()>) -> Outcome<()> {
    for (i, set) in SETS.iter().enumerate().filter(|(_, set)| !bench.small || set.0 < 15) {
        if i > 0 && bench.late() {
            eprintln!("no time is left for operations over N = 2^{}", set.0);
            continue;
        }
        let world = World::new(*set, &STEPS)?;
        for batch in batches {
            products(bench, &world, *batch, put)?;
            // The digits of a batch, and eight results of it, stay at a time.
            if *batch <= 64 {
                rotations(bench, &world, *batch, put)?;
            }
        }
    }
    Ok(())
}

/// One operation on a batch: what is timed, what it is compared with, and what the model says of one ciphertext.
struct Case<'a> {
    bench: &'a Bench,
    world: &'a World,
    operation: &'static str,
    method: &'static str,
    batch: usize,
    model: f64,
}

impl Case<'_> {
    /// `work` gives results whose items `i` have to be `want(i)`.
    fn run(self, work: &dyn Fn() -> Outcome<Vec<Ciphertexts>>, want: Want<'_>, bytes: usize) -> Outcome<Cell> {
        let (bench, batch) = (self.bench, self.batch);
        let out = work()?;
        let said = self.world.check(bench, batch, &out, want)?;
        let bytes = bytes + out.iter().map(Ciphertexts::bytes).sum::<usize>();
        drop(out);
        let wall_us = bench.times(batch, &mut || {
            work()?;
            Ok(bench.device.synchronize()?)
        })?;
        let device_us = bench.device_time(&mut || work().map(drop))?;
        let literal = &self.world.literal;
        Ok(Cell {
            operation: self.operation.into(),
            method: self.method.into(),
            n: 1 << literal.log_n,
            primes: format!("{} + {}", literal.q_bits.len(), literal.p_bits.len()),
            d: batch,
            wall_us,
            device_us,
            bytes,
            floor_us: self.model * batch as f64,
            printed_us: None,
            check: said,
        })
    }
}

fn products(bench: &Bench, world: &World, batch: usize, put: &mut dyn FnMut(Cell) -> Outcome<()>) -> Outcome<()> {
    let wave = bench.device.wave_items(1) * 8;
    // In waves whose intermediate results stay in the second-level cache, against as few as memory allows.
    let cached = bench.device.info().l2 * 6 / 10;
    for (method, budget, wave) in [
        ("five launches", RESIDENT, wave),
        ("waves within L2", RESIDENT, cached.max(1)),
        ("key copied each time", 0, wave),
    ] {
        let here = world.there(bench, budget);
        let (x, y) = (world.upload(&here, 0, batch)?, world.upload(&here, 1, batch)?);
        let operation = "multiply, relinearise, rescale";
        let model = model::mul_rescale(world.set());
        let before = bench.device.wave_items(1) * 8;
        bench.device.set_wave(wave);
        let cell = Case { bench, world, operation, method, batch, model }.run(
            &|| Ok(vec![here.mul_rescale(&x, &y)?]),
            &|i| Ok(vec![mul_rescale(&world.host, world.some(i), world.some(i + 1))?]),
            x.bytes() + y.bytes(),
        );
        bench.device.set_wave(before);
        let mut cell = cell?;
        // A key that is to stay was copied once.
        let (held, copied) = here.backend().keys_held();
        if cell.check == "ok" && ((budget == 0) != (held == 0) || (budget > 0 && copied != 1)) {
            cell.check = format!("{held} bytes of keys stay, {copied} were copied");
        }
        put(cell)?;
    }
    Ok(())
}

/// The product of two ciphertexts on the processor.
pub fn mul_rescale(host: &rlwe::Evaluator, a: &rlwe::Ciphertext, b: &rlwe::Ciphertext) -> Outcome<rlwe::Ciphertext> {
    Ok(host.relinearize_rescale(&host.dot(&[a], &[b])?)?)
}

fn rotations(bench: &Bench, world: &World, batch: usize, put: &mut dyn FnMut(Cell) -> Outcome<()>) -> Outcome<()> {
    let here = world.there(bench, RESIDENT);
    let x = world.upload(&here, 0, batch)?;
    let host = &world.host;
    let elements: Vec<u64> = STEPS.iter().map(|s| here.params().rotation_element(*s)).collect();
    let case = |operation, method, model| Case { bench, world, operation, method, batch, model };
    let of = |i: usize| world.some(i);
    put(case("rotation", "five launches", model::rotations(world.set(), 1)).run(
        &|| Ok(vec![here.automorphism(&x, elements[0], 1)?]),
        &|i| Ok(vec![host.automorphism(of(i), elements[0], 1)?]),
        x.bytes(),
    )?)?;
    put(case("8 rotations", "hoisted", model::rotations(world.set(), 8)).run(
        &|| Ok(here.rotate_many(&x, &STEPS)?),
        &|i| Ok(host.rotate_many(of(i), &STEPS)?),
        x.bytes(),
    )?)?;
    put(case("sum of 8 rotations", "one division", model::sum_of_rotations(&world.literal, 8)).run(
        &|| Ok(vec![here.sum_of_automorphisms(&x, &elements)?]),
        &|i| Ok(vec![host.sum_of_automorphisms(of(i), &elements)?]),
        x.bytes(),
    )?)
}
