//! Circuit bootstraps: both bits on small and real sets, a lookup through a refreshed index, noise.

use crate::support::{context, key, mean_square, streams, words};
use sudare_he::ring::Threads;
use sudare_he::ring::random::Seed;
use sudare_he::tfhe::circuit_bootstrap::{self as circuit, CircuitKey, CircuitLiteral};
use sudare_he::tfhe::circuit_bootstrap::{PrivateSwitchKey, SchemeSwitchKey, TraceKey};
use sudare_he::tfhe::leveled::*;
use sudare_he::tfhe::*;

struct Side {
    client: ClientKey,
    leveled: LeveledClient,
    key: CircuitKey,
}

fn side(literal: CircuitLiteral, number: u8) -> Side {
    let params = literal.build().unwrap();
    let seed = Seed::from_bytes([number; 32]);
    let client = ClientKey::from_seed(params.tfhe(), &seed).unwrap().with_seed_for_tests(seed.derive("fresh", 0));
    let key = CircuitKey::generate(&params, &client).unwrap();
    let leveled = LeveledClient::sharing(params.leveled(), &client).unwrap();
    Side { client, leveled, key }
}

/// What a selector selects, and that its noise is under its bound.
fn selected(side: &Side, selector: &Selector) -> bool {
    let server = LeveledServer::new(side.leveled.params());
    let n = side.leveled.params().context().degree();
    let (ones, zeros) = (side.leveled.encrypt(&vec![1; n]).unwrap(), side.leveled.encrypt(&vec![0; n]).unwrap());
    let c = server.cmux(selector, &ones, &zeros).unwrap();
    let found = side.leveled.decrypt(&c, n).unwrap();
    assert!(found.iter().all(|x| *x == found[0]));
    // Errors of a selector are common to all coefficients: allow its few large ones some deviations.
    let noise = side.leveled.noise_for_tests(&c, &found).unwrap();
    assert!(noise < 16.0 * c.variance(), "{noise} {}", c.variance());
    found[0] == 1
}

fn every_bit(side: &Side) {
    for bit in [false, true] {
        let c = side.client.encrypt_bit(bit).unwrap();
        assert_eq!(selected(side, &side.key.bootstrap(&c).unwrap()), bit);
        let gate = side.key.server().gate(Gate::Nand, &c, &c).unwrap();
        assert_eq!(selected(side, &side.key.bootstrap(&gate).unwrap()), !bit);
        let leveled = side.leveled.encrypt(&[0, u64::from(bit)]).unwrap().extract(1).unwrap();
        assert_eq!(selected(side, &side.key.bootstrap_leveled(&leveled).unwrap()), bit);
        assert_eq!(side.client.decrypt_bit(&side.key.to_bit(&leveled).unwrap()).unwrap(), bit);
    }
}

#[test]
fn both_bits() {
    let small = CircuitLiteral::insecure_test();
    every_bit(&side(small.clone(), 1));
    every_bit(&side(CircuitLiteral { output_digits: (7, 2), trace_digits: (8, 5), ..small.clone() }, 2));
    every_bit(&side(CircuitLiteral { output_digits: (14, 1), trace_digits: (8, 6), ..small.clone() }, 3));
    let rank2 = TfheLiteral { rank: 2, unroll: 1, ..small.tfhe.clone() };
    every_bit(&side(CircuitLiteral { tfhe: rank2, output_digits: (4, 4), ..small }, 4));
    let real = side(CircuitLiteral::three_levels(), 5);
    every_bit(&real);
    let bits = [true, false].map(|b| real.client.encrypt_bit(b).unwrap());
    let one = real.key.bootstraps(&bits).unwrap();
    let many = Threads::new(2).run(|| real.key.bootstraps(&bits).unwrap());
    let n = real.leveled.params().context().degree();
    let (mut x, mut y) = (vec![0; n], vec![0; n]);
    for (one, many) in one.iter().zip(&many) {
        for row in 0..6 {
            for column in 0..2 {
                one.ggsw().matrix().get(0, row, column, &mut x);
                many.ggsw().matrix().get(0, row, column, &mut y);
                assert_eq!(x, y);
            }
        }
    }
}

/// What the sets state about multiplexers in a row before the next bootstrap.
#[test]
fn depths() {
    for (literal, depth) in [(CircuitLiteral::three_levels(), 800.0), (CircuitLiteral::two_levels(), 200.0)] {
        let params = literal.build().unwrap();
        let decision = params.decision_variance(depth * params.selector_noise().bound());
        assert!(sudare_he::tfhe::variance::log2_tail(0.25, decision) <= -128.0);
    }
}

#[test]
fn the_classical_way() {
    let side = side(CircuitLiteral::insecure_test(), 6);
    let private =
        PrivateSwitchKey::generate(side.client.glwe(), Gadget { base_log: 16, levels: 2 }, &side.client.object_seeds())
            .unwrap();
    for bit in [false, true] {
        let c = side.client.encrypt_bit(bit).unwrap();
        assert_eq!(selected(&side, &side.key.bootstrap_classical(&c, &private).unwrap()), bit);
    }
}

/// Index after index: a permutation iterated, each round's outputs bootstrapped to selectors.
#[test]
fn lookups_through_bootstrapped_indices() {
    let side = side(CircuitLiteral::insecure_test(), 7);
    let server = LeveledServer::new(side.leveled.params());
    let next = |i: u64| (5 * i + 3) % 16;
    let entries: Vec<Vec<u64>> = (0..16).map(|i| (0..4).map(|j| next(i) >> j & 1).collect()).collect();
    let table = PackedTable::plain(side.leveled.params(), &entries).unwrap();
    let mut index = side.leveled.encrypt_index(9, 4).unwrap();
    let mut plain = 9;
    for _ in 0..20 {
        let found = server.lookup_words(&table, &index).unwrap();
        plain = next(plain);
        let bits: Vec<u64> = found.iter().map(|b| side.leveled.decrypt_lwe(b).unwrap()).collect();
        assert_eq!(bits.iter().enumerate().map(|(j, b)| b << j).sum::<u64>(), plain);
        index = side.key.bootstraps_leveled(&found).unwrap();
    }
}

#[test]
fn typed_errors() {
    let (a, b) = (side(CircuitLiteral::insecure_test(), 8), side(CircuitLiteral::insecure_test(), 9));
    let foreign = b.client.encrypt_bit(true).unwrap();
    assert!(matches!(a.key.bootstrap(&foreign), Err(TfheError::WrongKey { .. })));
    let foreign = b.leveled.encrypt(&[1]).unwrap().extract(0).unwrap();
    assert!(matches!(a.key.bootstrap_leveled(&foreign), Err(TfheError::WrongKey { .. })));
    assert!(matches!(CircuitKey::generate(a.key.params(), &gate_client()), Err(TfheError::WrongParameters { .. })));
    // A leveled bit that still decrypts, but that the switches before the decision would spoil.
    let set = CircuitLiteral::insecure_test();
    let noisy = TfheLiteral { switch_digits: (4, 1), log_failure: -40.0, noise_factor: 1, ..set.tfhe.clone() };
    assert!(matches!(CircuitLiteral { tfhe: noisy, ..set.clone() }.build(), Err(TfheError::FailureProbability { .. })));
    let all = CircuitLiteral { output_digits: (16, 3), ..set.clone() };
    assert!(matches!(all.build(), Err(TfheError::Parameters { .. })));
    let coarse = CircuitLiteral { output_digits: (2, 1), ..set };
    assert!(matches!(coarse.build(), Err(TfheError::LeveledNoise { .. })));
    // As much noise as one-bit messages bear, by sums of doublings.
    let server = LeveledServer::new(a.leveled.params());
    let mut powers = vec![a.leveled.encrypt(&[1; 512]).unwrap().extract(0).unwrap()];
    let refused = loop {
        let last = &powers[powers.len() - 1];
        match server.add_lwe(last, last) {
            Ok(sum) => powers.push(sum),
            Err(e) => break e,
        }
    };
    assert!(matches!(refused, TfheError::LeveledNoise { .. }), "{refused}");
    let mut c = powers[powers.len() - 1].clone();
    for power in powers.iter().rev() {
        c = server.add_lwe(&c, power).unwrap_or(c);
    }
    assert!(matches!(a.key.bootstrap_leveled(&c), Err(TfheError::FailureProbability { .. })));
}

fn gate_client() -> ClientKey {
    let params = TfheLiteral::insecure_test(Plaintext::Bit).build().unwrap();
    ClientKey::from_seed(&params, &Seed::from_bytes([1; 32])).unwrap()
}

fn near(what: &str, measured: f64, predicted: f64) {
    let ratio = measured / predicted;
    assert!((0.97..1.03).contains(&ratio), "{what}: measured / predicted = {ratio}");
}

#[test]
fn trace_and_scheme_switch_noise() {
    let gadget = Gadget { base_log: 11, levels: 4 };
    let (mut constant, mut energy, mut masks, mut bodies, mut count) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (context, output) = (context(47, 1, SecretKind::Binary), Gadget { base_log: 20, levels: 1 });
    let (q, n) = (context.q(), context.degree());
    let keys = 60;
    for number in 0..keys {
        let (key, seed) = key(&context, number);
        let trace = TraceKey::generate(&key, gadget, &ObjectSeeds::derive(&seed, "trace", 0)).unwrap();
        let scheme = SchemeSwitchKey::generate(&key, gadget, &ObjectSeeds::derive(&seed, "scheme", 0)).unwrap();
        let (mut s_masks, mut errors) = streams(&seed, 0);
        for i in 0..160 {
            let c = GlweCiphertext::from_words(&context, &words(&seed, i, q, 2 * n)).unwrap();
            let mut expected = vec![0; n];
            expected[0] = key.phase(&c).unwrap()[0];
            let phase = key.phase(&trace.constant(&c).unwrap()).unwrap();
            constant += mean_square(q, &phase[..1], &expected[..1]);
            energy += n as f64 * mean_square(q, &phase, &expected);
            count += 1.0;
            if i < 10 {
                // The row of the mask is an encryption of −S·phase.
                let m = words(&seed, 1000 + i, q, n);
                let c = key.encrypt(&m, &mut s_masks, &mut errors).unwrap();
                let ggsw = scheme.switch(std::slice::from_ref(&c), output).unwrap();
                let rows: Vec<_> = (0..2).map(|r| row(&context, &ggsw, r)).collect();
                let phase = key.phase(&c).unwrap();
                let product = GlweCiphertext::from_words(&context, &[phase.to_vec(), vec![0; n]].concat()).unwrap();
                masks += mean_square(q, &key.phase(&rows[0]).unwrap(), &key.phase(&product).unwrap()) / 10.0;
                bodies += mean_square(q, &key.phase(&rows[1]).unwrap(), &phase) / 10.0;
            }
        }
    }
    assert!(count * n as f64 >= 1e5 && f64::from(keys as u32) * 10.0 * n as f64 >= 1e5);
    near("trace, all coefficients", energy / count, circuit::variance::trace_energy(&context, gadget));
    // One sample a trace: a wider interval.
    let ratio = constant / count / circuit::variance::trace_constant(&context, gadget);
    assert!((0.93..1.07).contains(&ratio), "trace, constant: {ratio}");
    near("scheme switch", masks / keys as f64, circuit::variance::scheme_switch(&context, gadget));
    assert_eq!(bodies, 0.0);
}

fn row(context: &GlweContext, ggsw: &GgswCiphertext, row: usize) -> GlweCiphertext {
    let n = context.degree();
    let mut words = vec![0; 2 * n];
    for (column, p) in words.chunks_exact_mut(n).enumerate() {
        ggsw.matrix().get(0, row, column, p);
        context.limb().inverse(p);
    }
    GlweCiphertext::from_words(context, &words).unwrap()
}

/// Products by bootstrapped selectors against the formula, with and without the rotation's noise in charge.
#[test]
fn product_noise() {
    let small = CircuitLiteral::insecure_test();
    let sets = [
        CircuitLiteral { trace_digits: (13, 3), ..small.clone() },
        CircuitLiteral { output_digits: (4, 4), trace_digits: (7, 6), ..small },
    ];
    for (number, set) in sets.into_iter().enumerate() {
        let (mut sum, mut classical, mut count) = (0.0, 0.0, 0.0);
        let params = set.clone().build().unwrap();
        let gadget = Gadget { base_log: 12, levels: 2 };
        for i in 0..20 {
            let side = side(set.clone(), (20 * number + i) as u8);
            let seeds = side.client.object_seeds();
            let private = PrivateSwitchKey::generate(side.client.glwe(), gadget, &seeds).unwrap();
            let (context, q) = (params.context(), params.context().q());
            let n = context.degree();
            let uniform = |j: u64| {
                let seed = Seed::from_bytes([i as u8; 32]);
                GlweCiphertext::from_words(context, &words(&seed, j, q, 2 * n)).unwrap()
            };
            let noise = |selector: &Selector, c: &GlweCiphertext| {
                let found = side.client.glwe().phase(&selector.ggsw().external_product(c).unwrap()).unwrap();
                mean_square(q, &found, &side.client.glwe().phase(c).unwrap())
            };
            for j in 0..40 {
                let bit = side.client.encrypt_bit(true).unwrap();
                let c = uniform(j);
                sum += noise(&side.key.bootstrap(&bit).unwrap(), &c) / 800.0;
                count += n as f64;
                if j < 8 {
                    classical += noise(&side.key.bootstrap_classical(&bit, &private).unwrap(), &c) / 160.0;
                }
            }
        }
        assert!(count >= 1e5);
        // A bootstrap's largest error is one number, common to a whole product.
        let ratio = sum / params.selector_noise().expected();
        assert!((0.96..1.04).contains(&ratio), "circuit bootstrap, set {number}: {ratio}");
        let rotation = params.rotation_variance();
        let expected =
            circuit::variance::classical(params.context(), params.output_gadget(), gadget, rotation).expected();
        assert!((0.85..1.15).contains(&(classical / expected)), "classical, set {number}: {}", classical / expected);
    }
}
