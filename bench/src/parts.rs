//! `parts`: what the operations on ciphertexts are made of, to see where their time goes.

use crate::Outcome;
use crate::machine::Machine;
use crate::ops::Set;
use crate::record::{Record, Sink};
use crate::timing::{Budget, Unit, fill, measure};
use std::sync::Arc;
use sudare_he::ckks::Params;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::BasisConverter;
use sudare_ring::kernel::round_to_i64;
use sudare_ring::packed::PackedPairs;
use sudare_ring::random::{GaussianSampler, Seed, ternary, uniform};
use sudare_ring::{Limb, RnsBasis};
use sudare_testkit::Random;

/// Measures one part after another.
pub struct Bench<'a> {
    unit: Unit,
    budget: Budget,
    machine: &'a Machine,
    sink: &'a mut Sink,
    params: &'a Params,
}

impl Bench<'_> {
    fn case(&mut self, name: String, method: &str, mut op: impl FnMut()) -> Outcome<()> {
        let run = || {
            op();
            Ok(())
        };
        let timing = measure(&mut self.unit, self.budget, run, None)?;
        let mut record = Record::new("parts", name, 1, self.machine).with_params(self.params);
        record.method = Some(method.to_owned());
        self.sink.put(record.with_timing(timing))
    }

    /// A part that has to read and write so many bytes.
    pub fn moved(&mut self, name: &str, bytes: usize, mut op: impl FnMut()) -> Outcome<()> {
        let run = || {
            op();
            Ok(())
        };
        let timing = measure(&mut self.unit, self.budget, run, None)?;
        let record = Record::new("parts", name.to_owned(), 1, self.machine).with_params(self.params);
        self.sink.put(record.with_timing(timing).with_bytes(bytes))
    }
}

/// Runs the suite on the set's primes, one of each size.
pub fn run(set: &Set, budget: Budget, machine: &Machine, sink: &mut Sink) -> Outcome<()> {
    let params = &set.build()?;
    let n = params.degree();
    let mut bench = Bench { unit: Unit::new()?, budget, machine, sink, params };
    let seed = Seed::from_entropy()?;

    let mut limbs: Vec<Arc<Limb>> = Vec::new();
    for limb in params.q().limbs().iter().chain(params.p().limbs()) {
        if limbs.iter().all(|l| l.modulus().bits() != limb.modulus().bits()) {
            limbs.push(limb.clone());
        }
    }
    crate::traffic::run(&mut bench, params, &seed)?;
    for limb in &limbs {
        of_limb(&mut bench, limb, params, &seed)?;
    }

    let mut signed = vec![0i64; n];
    bench.case("ternary, N".into(), "", || ternary(&mut seed.stream(1), &mut signed))?;
    let gaussian = GaussianSampler::standard();
    bench.case("gaussian, N".into(), "", || gaussian.sample(&mut seed.stream(2), &mut signed))?;

    let mut random = Random(5);
    let values: Vec<f64> = (0..n).map(|_| random.unit()).collect();
    let (mut re, mut im) = (values[..n / 2].to_vec(), values[n / 2..].to_vec());
    let embedding = params.embedding();
    bench.case("embed inverse".into(), "", || embedding.embed_inverse_split(&mut re, &mut im))?;
    let (mut re, mut im) = (values[..n / 2].to_vec(), values[n / 2..].to_vec());
    let shrink = 1.0 / (n as f64).sqrt();
    bench.case("embed".into(), "", || {
        embedding.embed_split(&mut re, &mut im);
        // Keeps the values away from overflow over many rounds.
        re.iter_mut().chain(&mut im).for_each(|x| *x *= shrink);
    })?;
    bench.case("round to integers, N".into(), "", || round_to_i64(&mut signed, &values, 2f64.powi(40)))?;

    let element = params.rotation_element(1);
    let permutation = EvalPermutation::new(n, element)?;
    let mut source = Buffer::zeroed(n);
    fill(&mut source, limbs[0].q(), 6);
    let mut target = Buffer::zeroed(n);
    bench.case("permutation".into(), "", || permutation.apply(&mut target, &source))?;
    bench.case("copy".into(), "", || target.copy_from_slice(&source))?;
    bench.case("prepare a permutation".into(), "", || {
        std::hint::black_box(EvalPermutation::new(n, element).is_ok());
    })
}

fn of_limb(bench: &mut Bench<'_>, limb: &Limb, params: &Params, seed: &Seed) -> Outcome<()> {
    let (n, bits, family) = (limb.degree(), limb.modulus().bits(), limb.family().name());
    let named = |what: &str| format!("{what}, {bits} bits");
    let random = |salt: u64| {
        let mut out = Buffer::zeroed(n);
        fill(&mut out, limb.q(), salt);
        out
    };
    let mut a = random(1);
    bench.case(named("forward"), family, || limb.forward(&mut a))?;
    bench.case(named("inverse"), family, || limb.inverse(&mut a))?;
    let b = random(2);
    let mut out = random(3);
    bench.case(named("add"), family, || limb.add(&mut out, &a, &b))?;
    bench.case(named("mul"), family, || limb.mul(&mut out, &a, &b))?;
    bench.case(named("mul_add"), family, || limb.mul_add(&mut out, &a, &b))?;
    let w = limb.modulus().shoup(b[0]);
    bench.case(named("sub_mul_scalar"), family, || limb.sub_mul_scalar(&mut out, &b, &w))?;
    let other = params.q().limb(0).q();
    let mut foreign = Buffer::zeroed(n);
    fill(&mut foreign, other, 4);
    bench.case(named("reduce_centered"), family, || limb.reduce_centered(&mut out, &foreign, other))?;
    let signed: Vec<i64> = b.iter().map(|x| limb.modulus().center(*x)).collect();
    bench.case(named("from_i64"), family, || limb.from_i64(&mut out, &signed))?;
    let mask = seed.derive_mask("sudare bench mask", 0);
    bench.case(named("uniform"), family, || uniform(&mut mask.stream(0), limb.modulus(), &mut out))?;

    let digits = params.digits_at(params.max_level());
    let rows: Vec<Buffer> = (0..3 * digits as u64).map(|i| random(10 + i)).collect();
    let view: Vec<&[u64]> = rows.iter().map(|r| &r[..]).collect();
    let mut second = random(4);
    bench.case(named(&format!("dot_pair of {digits}")), family, || {
        let (x, rest) = view.split_at(digits);
        let (y, z) = rest.split_at(digits);
        limb.dot_pair([&mut out, &mut second], x, y, z);
    })?;
    let pairs: Vec<[&[u64]; 2]> = (0..digits).map(|j| [view[digits + j], view[2 * digits + j]]).collect();
    let packed = PackedPairs::new(limb, &pairs);
    bench.case(named(&format!("packed dot_pair of {digits}")), family, || {
        limb.dot_pair_packed([&mut out, &mut second], &view[..digits], &packed, None);
    })?;
    // Keys that no cache holds: what a circuit with many rotations sees.
    const FAR_BYTES: usize = 256 << 20;
    let far = vec![packed.clone(); FAR_BYTES.div_ceil(packed.bytes().max(1))];
    let mut next = 0;
    bench.case(named(&format!("packed dot_pair of {digits}, far keys")), family, || {
        limb.dot_pair_packed([&mut out, &mut second], &view[..digits], &far[next], None);
        next = (next + 1) % far.len();
    })?;
    drop(far);
    // A digit's mod-up and a mod-down to this prime.
    for (what, source) in [("digit", params.q().prefix(params.literal().digit_limbs)), ("P", params.p().clone())] {
        if source.is_empty() || source.primes().any(|q| q == limb.q()) {
            continue;
        }
        let limbs = params.q().limbs().iter().chain(params.p().limbs()).filter(|l| l.q() == limb.q());
        let target = RnsBasis::from_limbs(n, limbs.cloned().collect())?;
        let converter = BasisConverter::new(&source, &target);
        let mut words = Buffer::zeroed(n * source.len());
        for (row, q) in words.chunks_exact_mut(n).zip(source.primes()) {
            fill(row, q, q);
        }
        let prepared = converter.prepare(&mut words, true);
        bench.case(named(&format!("convert from a {what}")), family, || converter.finish(&prepared, 0, &mut out))?;
        bench.case(format!("prepare a {what}"), "", || {
            std::hint::black_box(converter.prepare(&mut words, true));
        })?;
    }
    Ok(())
}
