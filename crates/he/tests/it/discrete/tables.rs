//! Tables of every size, one at a time and several together, packed and split; sums and multiples.

use super::World;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, Kind};
use sudare_he::discrete::{Discrete, DiscreteSet, Errors, Forecast, Form, Table};
use sudare_ring::Threads;
use sudare_ring::count::{Counts, counted};
use sudare_rlwe::Counters;
use sudare_testkit::{Random, sized};

/// All functions of two values, and some of each other modulus, random ones among them, of all inputs: one at a time and all at
/// once, to any modulus.
#[test]
fn every_value_of_every_table() {
    let w = World::small(BootstrapLiteral::s15(), 9);
    let mut random = Random(11);
    for modulus in [2, 3, 4, 5, 8, 16] {
        let x = w.integers(&mut random, modulus);
        let value = w.encrypt(&x, modulus, Form::Packed);
        let mut tables: Vec<Table> = vec![
            Table::of(modulus, modulus, |x| x).unwrap(),
            Table::of(modulus, modulus, |x| x * x % modulus).unwrap(),
            Table::of(modulus, 2, |x| u64::from(x == 1)).unwrap(),
            Table::of(modulus, 3, |_| 2).unwrap(),
        ];
        for output in [2, 3, 16] {
            tables.push(Table::of(modulus, output, |_| random.below(output)).unwrap());
        }
        let together = w.server.tables(&value, &tables).unwrap();
        assert_eq!(together.len(), tables.len());
        for (table, result) in tables.iter().zip(&together) {
            let wanted: Vec<u64> = x.iter().map(|x| table.values()[*x as usize]).collect();
            assert_eq!(w.decrypt(result), wanted, "t = {modulus}: {table:?}");
            assert_eq!((result.modulus(), result.form()), (table.output(), Form::Packed));
            let signed: Vec<i64> = wanted.iter().map(|x| *x as i64).collect();
            assert!(w.error(result, &signed) < 1e-6);
        }
        for (table, several) in tables.iter().zip(&together).take(sized(2, 9)) {
            let alone = w.server.table(&value, table).unwrap();
            assert_eq!(w.decrypt(&alone), w.decrypt(several));
        }
    }
}

/// Tables of bytes.
#[test]
fn random_tables_of_256_values() {
    let w = World::small(BootstrapLiteral::w16(), 9);
    let mut random = Random(12);
    for _ in 0..sized(1, 25) {
        let x = w.integers(&mut random, 256);
        let value = w.encrypt(&x, 256, Form::Packed);
        let tables: Vec<Table> = (0..4).map(|_| Table::of(256, 256, |_| random.below(256)).unwrap()).collect();
        for (table, result) in tables.iter().zip(w.server.tables(&value, &tables).unwrap()) {
            assert_eq!(w.decrypt(&result), x.iter().map(|x| table.values()[*x as usize]).collect::<Vec<_>>());
        }
    }
}

/// Results are read again, and their errors stay what they were.
#[test]
fn tables_of_tables() {
    let w = World::small(BootstrapLiteral::s15(), 9);
    let mut random = Random(2);
    let mut x = w.integers(&mut random, 16);
    let mut value = w.encrypt(&x, 16, Form::Packed);
    let mut errors = Vec::new();
    for round in 0..sized(6, 40) {
        let table = Table::of(16, 16, |_| random.below(16)).unwrap();
        value = w.server.table(&value, &table).unwrap();
        x.iter_mut().for_each(|x| *x = table.values()[*x as usize]);
        assert_eq!(w.decrypt(&value), x, "round {round}");
        errors.push(value.error());
    }
    assert!(errors.iter().all(|e| *e < 0.02), "{errors:?}");
}

#[test]
fn sums_and_multiples_are_those_modulo_t() {
    let w = World::small(BootstrapLiteral::s15(), 9);
    let (mut random, e) = (Random(5), &w.server);
    for (modulus, form) in [(16, Form::Packed), (10, Form::Packed), (7, Form::Split)] {
        let (a, b) = (w.integers(&mut random, modulus), w.integers(&mut random, modulus));
        let [x, y] = [&a, &b].map(|v| w.encrypt(v, modulus, form));
        let t = modulus as i64;
        let expect = |value: &Discrete, f: &dyn Fn(i64, i64) -> i64, what: &str| {
            let wanted: Vec<u64> =
                a.iter().zip(&b).map(|(a, b)| f(*a as i64, *b as i64).rem_euclid(t) as u64).collect();
            assert_eq!(w.decrypt(value), wanted, "{what} modulo {modulus}");
        };
        let sum = e.add(&x, &y).unwrap();
        expect(&sum, &|a, b| a + b, "sum");
        expect(&e.sub(&x, &y).unwrap(), &|a, b| a - b, "difference");
        expect(&e.negate(&x).unwrap(), &|a, _| -a, "negation");
        expect(&e.mul_integer(&x, 5).unwrap(), &|a, _| 5 * a, "multiple");
        expect(&e.mul_integer(&x, t - 1).unwrap(), &|a, _| -a, "multiple");
        expect(&e.add_integer(&x, -3).unwrap(), &|a, _| a - 3, "sum with an integer");
        assert_eq!(sum.range(), (0, 2 * t - 2));
        assert_eq!(e.mul_integer(&x, t - 1).unwrap().range(), (1 - t, 0));
        assert!((sum.error() - x.error() - y.error()).abs() < 1e-12);
        // Out of range as they are, they are read modulo t.
        let table = Table::of(modulus, modulus, |x| (x * x + 1) % modulus).unwrap();
        expect(&e.table(&e.sub(&x, &y).unwrap(), &table).unwrap(), &|a, b| (a - b) * (a - b) + 1, "table");
        expect(&e.refresh(&sum).unwrap(), &|a, b| a + b, "refresh");
    }
}

#[test]
fn a_divisor_of_the_modulus() {
    let w = World::small(BootstrapLiteral::s15(), 9);
    let x = w.integers(&mut Random(6), 12);
    let value = w.encrypt(&x, 12, Form::Packed);
    for divisor in [2, 3, 4, 6] {
        let smaller = w.server.modulo(&value, divisor).unwrap();
        let wanted: Vec<u64> = x.iter().map(|x| x % divisor).collect();
        assert_eq!(w.decrypt(&smaller), wanted);
        let table = Table::of(divisor, 12, |x| 2 * x).unwrap();
        assert_eq!(
            w.decrypt(&w.server.table(&smaller, &table).unwrap()),
            wanted.iter().map(|x| 2 * x).collect::<Vec<_>>()
        );
    }
}

/// Packed and split, values of several ciphertexts together; any number of threads gives the same words.
#[test]
fn forms_batches_and_threads() {
    let w = World::small(BootstrapLiteral::l15(), 9);
    let mut random = Random(3);
    let not = Table::new(&[1, 0], 2).unwrap();
    for form in [Form::Packed, Form::Split] {
        let bits = [w.random_bits(&mut random), w.random_bits(&mut random)];
        let values = bits.each_ref().map(|b| w.bits(b, form));
        let all: Vec<&Discrete> = values.iter().collect();
        for to in [Form::Packed, Form::Split] {
            let tables = [not.clone()];
            let results = w.server.tables_many(&all, &tables, to).unwrap();
            for (result, bits) in results.iter().zip(&bits) {
                assert_eq!(result[0].form(), to);
                let wanted: Vec<u64> = bits.iter().map(|b| u64::from(!b)).collect();
                assert_eq!(w.decrypt(&result[0]), wanted);
            }
            let words =
                |d: &Discrete| d.parts().iter().flat_map(|c| c.parts()).map(|p| p.words().to_vec()).collect::<Vec<_>>();
            for threads in [1, 3] {
                let here = Threads::new(threads).run(|| w.server.tables_many(&all[..1], &tables, to)).unwrap();
                assert!(words(&here[0][0]) == words(&results[0][0]), "{form:?} to {to:?} on {threads} threads");
            }
        }
    }
    assert!(w.server.tables_many(&[], &[not], Form::Packed).unwrap().is_empty());
}

/// Operations and what they are made of are known before.
#[test]
fn simulation_is_the_run() {
    for set in DiscreteSet::ALL {
        let w = World::small(set.literal(), 9);
        let params = w.server.params();
        let modulus = match set {
            DiscreteSet::G15 => 4,
            DiscreteSet::L15 => 2,
            DiscreteSet::S15 => 16,
            DiscreteSet::W16 => 256,
        };
        let identity = Table::of(modulus, modulus, |x| x).unwrap();
        let value = w.encrypt(&[1], modulus, Form::Packed);
        w.server.bootstrapper().reset_counters();
        let (_, work) = counted(|| w.server.table(&value, &identity).unwrap());
        let predicted: Counters = params.operations(Kind::Complex).unwrap().into_iter().sum();
        assert_eq!(w.server.bootstrapper().counters(), predicted, "{set}");
        let predicted: Counts = params.work(Kind::Complex).unwrap().into_iter().sum();
        assert_eq!(work, predicted, "{set}");
        assert_eq!(params.key_bytes().unwrap(), w.server.bootstrapper().keys().unwrap().bytes() as u64);
    }
}

/// Rotations in each half, with keys that reach the level where tables begin and no higher.
#[test]
fn rotations_of_both_forms() {
    let World { secret, server } = World::small(BootstrapLiteral::s15(), 9);
    let params = server.params().clone();
    let elements = [1i64, -3].map(|steps| (params.params().rotation_element(steps), params.input_level()));
    let keys = sudare_rlwe::keys::KeyGenerator::new(&secret).unwrap().eval_keys(None, &elements).unwrap();
    let w = World { server: server.with_keys(keys).unwrap(), secret };
    let x = w.integers(&mut Random(9), 16);
    let half = x.len() / 2;
    for form in [Form::Packed, Form::Split] {
        let value = w.server.table(&w.encrypt(&x, 16, form), &Table::of(16, 16, |x| x).unwrap()).unwrap();
        for steps in [1i64, -3] {
            let rotated = w.server.rotate(&value, steps);
            if form == Form::Split && value.level() > params.input_level() {
                assert!(rotated.is_err());
                continue;
            }
            let rotated = rotated.unwrap();
            let at = |i: usize| i / half * half + (i as i64 + steps).rem_euclid(half as i64) as usize;
            let wanted: Vec<u64> = (0..x.len()).map(|i| x[at(i)]).collect();
            assert_eq!(w.decrypt(&rotated), wanted);
            assert!(rotated.error() > value.error());
            let signed: Vec<i64> = wanted.iter().map(|x| *x as i64).collect();
            w.error(&rotated, &signed);
        }
        assert!(w.server.rotate(&value, 2).is_err());
    }
}

/// What is foreseen of errors is what values state, to the last bit.
#[test]
fn errors_are_foreseen() {
    let World { secret, server } = World::small(BootstrapLiteral::s15(), 9);
    let params = server.params().clone();
    let element = (params.params().rotation_element(2), params.input_level());
    let keys = sudare_rlwe::keys::KeyGenerator::new(&secret).unwrap().eval_keys(None, &[element]).unwrap();
    let w = World { server: server.with_keys(keys).unwrap(), secret };
    let x = w.encrypt(&[3, 1, 4, 15], 16, Form::Packed);
    let (step, last) = (Table::of(16, 7, |x| x / 8).unwrap(), Table::of(7, 2, |x| u64::from(x == 0)).unwrap());
    let steps = w.server.table(&x, &step).unwrap();
    let sum = w.server.add(&steps, &w.server.rotate(&steps, 2).unwrap()).unwrap();
    let out = w.server.table(&sum, &last).unwrap();
    let seen = Forecast { modulus: 16, range: x.range(), errors: x.errors() }.table(&params, &step).unwrap();
    let folded = seen.folded(&params).unwrap();
    let found = folded.table(&params, &last).unwrap();
    for (value, foreseen) in [(&steps, seen), (&sum, folded), (&out, found)] {
        assert_eq!(
            (value.modulus(), value.range(), value.errors()),
            (foreseen.modulus, foreseen.range, foreseen.errors)
        );
    }
    assert_eq!(w.decrypt(&out)[..4], [1, 0, 1, 0]);
    let lost = Forecast { errors: Errors::within(0.6), ..seen };
    assert!(lost.table(&params, &last).is_err() && lost.table(&params, &step).is_err());
}

/// Integers that everybody knows are operands as encrypted ones are, with less of an error; and a range that is stated has to hold.
#[test]
fn public_operands_and_stated_ranges() {
    let w = World::small(DiscreteSet::S15.literal(), 9);
    let mut random = Random(12);
    let (a, b) = (w.integers(&mut random, 16), w.integers(&mut random, 16));
    let (x, y) = (w.encrypt(&a, 16, Form::Packed), w.server.public(&b, 16).unwrap());
    assert!(y.error() < x.error() && y.key() == x.key());
    let sum = w.server.add(&x, &y).unwrap();
    let wanted: Vec<u64> = a.iter().zip(&b).map(|(a, b)| (a + b) % 16).collect();
    assert_eq!(w.decrypt(&sum), wanted);
    let short = w.server.public(&[5], 16).unwrap();
    assert_eq!((short.range(), w.decrypt(&short)[..2].to_vec()), ((0, 5), vec![5, 0]));
    assert!(w.server.public(&[16], 16).is_err() && w.server.public(&[1], 17).is_err());

    let few = w.encrypt(&[3, 1], 16, Form::Packed).within((0, 3)).unwrap();
    assert_eq!((few.range(), w.decrypt(&few)[..2].to_vec()), ((0, 3), vec![3, 1]));
    for range in [(0, 4), (-1, 3), (2, 1)] {
        assert!(few.clone().within(range).is_err());
    }
    let wrong = few.within((0, 2)).unwrap();
    assert!(sudare_he::discrete::Decryptor::new(w.server.params(), &w.secret).unwrap().decrypt(&wrong).is_err());
}

/// Known integers are added, and masks leave what they keep, with the errors that values state; neither where it cannot be.
#[test]
fn known_integers_and_masks() {
    let w = World::small(BootstrapLiteral::l15(), 10);
    let mut random = Random(77);
    let (n, known) = (w.len(), w.integers(&mut random, 2));
    let bits = w.random_bits(&mut random);
    let signed = |values: &[u64]| values.iter().map(|x| *x as i64).collect::<Vec<_>>();
    let sums: Vec<u64> = bits.iter().zip(&known).map(|(x, k)| u64::from(*x) + k).collect();
    let parity: Vec<u64> = sums.iter().map(|x| x % 2).collect();
    for form in [Form::Packed, Form::Split] {
        let x = w.bits(&bits, form);
        let sum = w.server.add_known(&x, &known).unwrap();
        assert_eq!((w.decrypt(&sum), sum.range()), (parity.clone(), (0, 2)));
        w.error(&sum, &signed(&sums));
        assert!(w.server.add_known(&x, &known[1..]).is_err());
        assert!(w.server.add_known(&x, &vec![2; n]).is_err());
    }
    let kept: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
    let x = w.bits(&bits, Form::Split);
    let masked = w.server.mask(&x, &kept).unwrap();
    let wanted: Vec<u64> = bits.iter().zip(&kept).map(|(x, k)| u64::from(*x && *k)).collect();
    assert_eq!(w.decrypt(&masked), wanted);
    assert!(masked.level() + 1 == x.level() && masked.error() > x.error());
    w.error(&masked, &signed(&wanted));
    assert!(w.server.mask(&x, &kept[1..]).is_err());
    assert!(w.server.mask(&w.bits(&bits, Form::Packed), &kept).is_err());
    // At the level where tables begin there is none for a mask.
    let lowest = w.server.table(&w.bits(&bits, Form::Packed), &Table::of(2, 2, |x| x).unwrap()).unwrap();
    assert!(lowest.level() == w.server.params().input_level() && w.server.mask(&lowest, &kept).is_err());
}
