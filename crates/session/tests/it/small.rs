//! Arrays of bits and small integers by tables: against plain arithmetic, with every set, and what is refused.

use sudare_he::HeError;
use sudare_he::discrete::{DiscreteSet, Gate, Table};
use sudare_methods::MatrixError;
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::RlweError;
use sudare_rlwe::security::Security;
use sudare_session::{SmallArray, SmallContext, SmallServer, SmallSet};
use sudare_testkit::Random;

fn set(name: DiscreteSet) -> SmallSet {
    SmallSet::new(name, Security::Insecure).unwrap()
}

fn context(name: DiscreteSet, rolls: &[i64]) -> SmallContext {
    SmallContext::new(set(name), rolls, 2).unwrap()
}

fn random(seed: u64, count: usize, modulus: u64) -> Vec<u64> {
    let mut random = Random(seed);
    (0..count).map(|_| random.below(modulus)).collect()
}

/// Elementwise, of two.
fn zipped(a: &[u64], b: &[u64], f: impl Fn(u64, u64) -> u64) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

/// Sums, multiples and tables of arrays that fill a ciphertext, some, or a part of one; each set at its largest modulus.
#[test]
fn integers_are_exact() {
    for (name, t) in [(DiscreteSet::G15, 4), (DiscreteSet::S15, 16), (DiscreteSet::W16, 256)] {
        let c = context(name, &[]);
        let (server, slots) = (c.server(), c.server().set().slots());
        assert_eq!(server.set().largest_modulus().unwrap(), t);
        for count in [3, slots, slots + 5] {
            let (a, b) = (random(1, count, t), random(2, count, t / 2));
            let x = c.encrypt(&a, (t, t - 1), false).unwrap();
            let y = c.encrypt(&b, (t, t / 2 - 1), false).unwrap();
            assert_eq!(c.decrypt(&server.add(&x, &y).unwrap()).unwrap(), zipped(&a, &b, |a, b| (a + b) % t));
            let apart = server.sub(&x, &y).unwrap();
            assert_eq!(c.decrypt(&apart).unwrap(), zipped(&a, &b, |a, b| (a + t - b) % t));
            let line = server.affine(&y, -1, -3).unwrap();
            assert_eq!(c.decrypt(&line).unwrap(), zipped(&b, &b, |b, _| (2 * t - b - 3) % t));
            let square = (Table::of(t, t, |x| x * x % t).unwrap(), false);
            let odd = (Table::of(t, 4, |x| x % 2).unwrap(), true);
            let found = server.tables(&apart, &[square, odd]).unwrap();
            assert_eq!(c.decrypt(&found[0]).unwrap(), zipped(&a, &b, |a, b| (a + t - b).pow(2) % t));
            assert_eq!(c.decrypt(&found[1]).unwrap(), zipped(&a, &b, |a, b| (a + t - b) % 2));
            assert!(found[1].is_bits() && !found[0].is_bits());
            assert_eq!((found[1].len(), found[1].known().modulus), (count, 4));
        }
    }
}

#[test]
fn gates_shifts_and_repetition() {
    let c = context(DiscreteSet::G15, &[1, -3]);
    let (server, half) = (c.server(), c.server().set().slots() / 2);
    for count in [8, half] {
        let (a, b) = (random(3, count, 2), random(4, count, 2));
        let [x, y] = [&a, &b].map(|bits| c.encrypt(bits, (4, 1), true).unwrap());
        for gate in Gate::all() {
            let wanted = zipped(&a, &b, |a, b| u64::from(gate.apply(a == 1, b == 1)));
            let found = server.gate(gate, &x, &y).unwrap();
            assert_eq!(c.decrypt(&found).unwrap(), wanted, "{gate:?}");
            assert!(found.is_bits());
        }
        // What is shifted is computed with again, and shifts of a circle's length less are the same.
        for k in [1, -3, count as i64 + 1, -(count as i64), i64::MIN] {
            let wanted = |i: usize| a[(i as i64 - k % count as i64).rem_euclid(count as i64) as usize];
            let moved = server.roll(&server.gate(Gate::NOT, &x, &x).unwrap(), k).unwrap();
            assert_eq!(c.decrypt(&moved).unwrap(), (0..count).map(|i| 1 - wanted(i)).collect::<Vec<_>>(), "{k}");
            let both = server.gate(Gate::AND, &moved, &y).unwrap();
            assert_eq!(c.decrypt(&both).unwrap(), (0..count).map(|i| (1 - wanted(i)) & b[i]).collect::<Vec<_>>());
        }
        let missing = server.roll(&x, 2).unwrap_err();
        assert!(matches!(missing, MatrixError::He(HeError::Rlwe(RlweError::MissingRotationKey { step: 2, .. }))));
    }
    // One element beside an array of several ciphertexts, and a row beside a table.
    let a = random(5, 4 * half + 4, 2);
    let x = c.encrypt(&a, (4, 1), true).unwrap();
    for short in [vec![1], vec![1, 0, 1, 1]] {
        let y = c.encrypt(&short, (4, 1), true).unwrap();
        let y = server.repeated(&y, a.len()).unwrap();
        let differ = server.gate(Gate::XOR, &x, &y).unwrap();
        let wanted: Vec<u64> = a.iter().zip(short.iter().cycle()).map(|(a, b)| a ^ b).collect();
        assert_eq!(c.decrypt(&differ).unwrap(), wanted);
        let public = server.public(&short, 4, true, &x).unwrap();
        let public = server.repeated(&public, a.len()).unwrap();
        assert_eq!(c.decrypt(&server.gate(Gate::XOR, &x, &public).unwrap()).unwrap(), wanted);
    }
}

/// What is foreseen without keys is what is computed: moduli, ranges, errors; and the bootstraps that it takes.
#[test]
fn a_forecast_is_the_run() {
    let c = context(DiscreteSet::S15, &[1]);
    let dry = SmallServer::keyless(set(DiscreteSet::S15));
    let steps = |server: &SmallServer, x: &SmallArray, y: &SmallArray| -> Result<Vec<SmallArray>, MatrixError> {
        let sum = server.add(x, &server.affine(y, 2, 1)?)?;
        let low = (Table::of(16, 16, |x| x % 5)?, false);
        let three = (Table::of(16, 16, |_| 3)?, false);
        let flag = (Table::of(16, 4, |x| u64::from(x > 7))?, true);
        let found = server.tables(&sum, &[low, three, flag])?;
        // What everybody knows has no encryption's errors, and a least value.
        let public = server.public(&[5, 7].repeat(32), 16, false, x)?;
        let moved = server.roll(&server.sub(&found[0], &found[1])?, 1)?;
        let other = server.gate(Gate::NAND, &found[2], &server.gate(Gate::NOT, &found[2], &found[2])?)?;
        let again = server.tables(&moved, &[(Table::of(16, 16, |x| x)?, false)])?;
        Ok(vec![sum, moved, other, again[0].clone(), public])
    };
    let (a, b) = (random(6, 64, 16), random(7, 64, 8));
    let [x, y] = [(&a, 15), (&b, 7)].map(|(v, most)| c.encrypt(v, (16, most), false).unwrap());
    let real = steps(c.server(), &x, &y).unwrap();
    let [u, v] = [15, 7].map(|most| dry.forecast(64, (16, most), false).unwrap());
    let foreseen = steps(&dry, &u, &v).unwrap();
    for (real, foreseen) in real.iter().zip(&foreseen) {
        let (known, expected) = (real.known(), foreseen.known());
        assert_eq!(
            (known.modulus, known.range, real.is_bits()),
            (expected.modulus, expected.range, foreseen.is_bits())
        );
        let ratio = known.errors.bound / expected.errors.bound;
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
    assert_eq!(foreseen[4].known().range, (5, 7));
    // Shifts without a key are refused where there are keys.
    let keyed = c.server().forecast(64, (16, 15), false).unwrap();
    assert!(c.server().roll(&keyed, 1).is_ok() && dry.roll(&u, 2).is_ok());
    assert_eq!(c.server().roll(&keyed, 2).unwrap_err().to_string(), c.server().roll(&x, 2).unwrap_err().to_string());
    // A table counts once for all that is made of it: three layers, one of them a gate.
    let choice = dry.choice(&foreseen.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!((choice.bootstraps(), choice.layers.len()), (3, 3));
    // Two results of four bits and a bit, a gate, four bits.
    assert_eq!(choice.tfhe_bootstraps(), 64 * (2 + 1 + 1 + 2));
    assert!(!choice.by_tables() && choice.to_string().contains("take TFHE"), "{choice}");
    assert!(dry.choice(&[&real[0]]).is_err() && c.decrypt(&foreseen[0]).is_err());
    assert!(c.server().add(&x, &u).is_err() && dry.add(&x, &y).is_err());
}

/// Keys of shifts count, each once, and none is made where nothing moves.
#[test]
fn memory_counts_the_keys_of_shifts() {
    let set = set(DiscreteSet::G15);
    let half = (set.slots() / 2) as i64;
    let [none, one, two] = [&[][..], &[1], &[1, 2]].map(|rolls| set.memory(rolls).unwrap());
    assert!(one > none && two - one == one - none);
    assert_eq!(set.memory(&[0, half, -half]).unwrap(), none);
    assert_eq!(set.memory(&[1, 1, 1 + half, 0]).unwrap(), one);
    let bytes = |rolls: &[i64]| context(DiscreteSet::G15, rolls).server().bytes();
    assert_eq!(bytes(&[0]), bytes(&[]));
    assert_eq!(bytes(&[1, 1]), bytes(&[1]));
    assert_eq!((bytes(&[1]) - bytes(&[])) as u64, one - none);
}

/// The same refusals with keys and without: before any work, with a remedy.
#[test]
fn refusals() {
    let c = context(DiscreteSet::S15, &[]);
    let server = c.server();
    let x = c.encrypt(&[1, 2, 3, 4], (16, 15), false).unwrap();
    let u = server.forecast(4, (16, 15), false).unwrap();
    let mut messages = Vec::new();
    for x in [&x, &u] {
        let mut large = x.clone();
        messages.push(loop {
            match server.add(&large, &large) {
                Ok(sum) => large = sum,
                Err(error) => break error.to_string(),
            }
        });
        assert!(server.repeated(x, 0).unwrap_err().to_string().contains("power of two"));
        let mut sum = x.clone();
        let identity = [(Table::of(16, 16, |x| x).unwrap(), false)];
        let error = loop {
            if let Err(error) = server.tables(&sum, &identity) {
                break error;
            }
            sum = server.add(&sum, &sum).unwrap();
        };
        assert_eq!(error.kind(), ErrorKind::Precision, "{error}");
        let short = [(Table::new(&[0, 1, 2], 16).unwrap(), false)];
        assert_eq!(server.tables(x, &short).unwrap_err().kind(), ErrorKind::Shape);
        let wide = [(Table::of(16, 17, |x| x + 1).unwrap(), false)];
        let error = server.tables(x, &wide).unwrap_err();
        assert!(error.kind() == ErrorKind::Parameters && error.to_string().contains("larger tables"), "{error}");
        assert_eq!(server.gate(Gate::AND, x, x).unwrap_err().kind(), ErrorKind::Parameters);
        let longer = server.repeated(x, 8).unwrap();
        assert_eq!(server.add(x, &longer).unwrap_err().kind(), ErrorKind::Shape);
        assert!(server.repeated(&longer, 12).unwrap_err().to_string().contains("repeat them before"));
    }
    assert_eq!(messages[0], messages[1]);
    assert!(server.forecast(0, (16, 15), false).unwrap_err().to_string().contains("at least one element"));
    assert!(matches!(c.encrypt(&[3, 8], (16, 7), false), Err(MatrixError::OutOfRange { col: 1, low: 0, high: 7, .. })));
    assert_eq!(c.encrypt(&[3], (17, 7), false).unwrap_err().kind(), ErrorKind::Parameters);
    assert_eq!(c.encrypt(&[3], (16, 16), false).unwrap_err().kind(), ErrorKind::Parameters);
    assert_eq!(c.encrypt(&[], (16, 7), false).unwrap_err().kind(), ErrorKind::Parameters);
    let odd = c.encrypt(&[1, 2, 3], (16, 15), false).unwrap();
    assert!(server.roll(&odd, 1).unwrap_err().to_string().contains("power of two"));
    let other = context(DiscreteSet::S15, &[]);
    let foreign = other.encrypt(&[1, 2, 3, 4], (16, 15), false).unwrap();
    assert_eq!(server.add(&x, &foreign).unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(c.decrypt(&foreign).unwrap_err().kind(), ErrorKind::Mismatch);
    assert!(SmallSet::new(DiscreteSet::L15, Security::Insecure).unwrap_err().to_string().contains("take G15"));
    assert!(SmallSet::new(DiscreteSet::G15, Security::Bits192).unwrap_err().to_string().contains("128"));
}
