//! Evaluation keys that stay in their file: the bits of keys in memory, in a bounded memory.

use crate::support::put;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{Ciphertext, Encoder, Encryptor, Evaluator, Params, ParamsLiteral};
use sudare_ring::{ErrorKind, Kinded, Threads, threads};
use sudare_rlwe::keys::{EvalKeys, GaloisKey, KeyGenerator, KeySource, KeySwitchKey, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::{Container, Wire, WireError};
use sudare_rlwe::{KeyId, RlweError};
use sudare_store::{KeyFile, StoreError};

const STEPS: [i64; 6] = [3, 1, 7, -2, 5, 0];

struct World {
    params: Params,
    keys: EvalKeys,
    trace: TracePlan,
    x: Ciphertext,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let rlwe = sudare_rlwe::params::ParamsLiteral {
            log_n: 9,
            q_bits: vec![50, 40, 40],
            p_bits: vec![50],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        let params = ParamsLiteral { rlwe, log_scale: 40 }.build().unwrap();
        let secret = SecretKey::generate(&params).unwrap();
        let trace = TraceFunction::partial_sums(&params, 16).unwrap().doubling();
        let top = params.max_level();
        let mut elements = trace.keys(top);
        elements.extend(STEPS.map(|step| (params.rotation_element(step), top)));
        let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(top), &elements).unwrap();
        let values: Vec<f64> = (0..params.slots()).map(|i| (i as f64).sin()).collect();
        let plain = Encoder::new(&params).encode(&values, 1.0).unwrap();
        let x = Encryptor::with_secret_key(&secret).unwrap().encrypt(&plain).unwrap();
        let world = Self { params, keys, trace, x, folder: tempfile::tempdir().unwrap() };
        fs::write(world.path(), world.keys.to_bytes().unwrap()).unwrap();
        world
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("eval.keys")
    }

    fn open(&self, memory: usize) -> KeyFile {
        KeyFile::open(&self.path(), &self.params, memory).unwrap()
    }

    /// Bytes of one key.
    fn key(&self) -> usize {
        self.keys.relin_key().unwrap().bytes()
    }

    /// Iterations of one key each, rotations in fours, a product.
    fn circuit(&self, server: &Evaluator) -> Vec<Vec<u8>> {
        let mut all = vec![server.trace(&self.x, &self.trace).unwrap()];
        all.extend(server.rotate_many(&self.x, &STEPS).unwrap());
        all.push(server.relinearize(&server.mul(&self.x, &self.x).unwrap()).unwrap());
        all.iter().map(|c| c.to_bytes().unwrap()).collect()
    }
}

/// Writes down what is announced and asked for, and the most bytes.
#[derive(Debug)]
struct Spy {
    keys: KeyFile,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    announced: Vec<u64>,
    asked: Vec<u64>,
    most: usize,
}

impl Spy {
    fn told(&self, element: u64) {
        let mut told = self.told.lock().unwrap();
        told.asked.push(element);
        told.most = told.most.max(self.keys.bytes());
    }
}

impl KeySource for Spy {
    fn params(&self) -> &sudare_rlwe::Params {
        self.keys.params()
    }
    fn id(&self) -> KeyId {
        self.keys.id()
    }
    fn bytes(&self) -> usize {
        self.keys.bytes()
    }
    fn relin_level(&self) -> Option<usize> {
        self.keys.relin_level()
    }
    fn galois_level(&self, element: u64) -> Option<usize> {
        self.keys.galois_level(element)
    }
    fn relin(&self) -> Result<Arc<KeySwitchKey>, RlweError> {
        let key = self.keys.relin()?;
        self.told(0);
        Ok(key)
    }
    fn galois(&self, element: u64, step: i64) -> Result<Arc<GaloisKey>, RlweError> {
        let key = self.keys.galois(element, step)?;
        self.told(element);
        Ok(key)
    }
    fn prefetch(&self, elements: &[u64]) {
        self.told.lock().unwrap().announced.extend(elements.iter().filter(|e| **e != 1));
        self.keys.prefetch(elements);
    }
}

/// With room for no key but those in use, for one, for some and for all.
#[test]
fn circuits_have_the_bits_of_keys_in_memory_within_the_memory_given() {
    let world = World::new();
    let expected = world.circuit(&Evaluator::new(&world.params, world.keys.clone()).unwrap());
    let (one, all) = (world.key(), world.open(0).all_bytes());
    assert_eq!(all, world.keys.bytes());
    let trace: Vec<u64> = world.trace.terms().iter().flatten().copied().filter(|e| *e != 1).collect();
    let steps = STEPS.map(|step| world.params.rotation_element(step));
    let relin = 0;
    let order: Vec<u64> = trace.iter().chain(steps.iter().filter(|e| **e != 1)).copied().chain([relin]).collect();
    for room in [0, one, 5 * one, all] {
        let spy = Arc::new(Spy { keys: world.open(room), told: Mutex::default() });
        let source: Arc<dyn KeySource> = spy.clone();
        assert!(world.circuit(&Evaluator::new(&world.params, source).unwrap()) == expected, "{room}");
        let told = spy.told.lock().unwrap();
        // `rotate_many` takes four keys at once.
        assert!(told.most <= room.max(4 * one), "{} bytes with room for {room}", told.most);
        assert_eq!(told.asked, order, "order of use");
        // The whole trace is announced before its first step, and each step again.
        assert_eq!(told.announced[..trace.len()], trace);
        assert!(told.announced.ends_with(&order[trace.len()..order.len() - 1]));
        let keys = all / one;
        let loads = spy.keys.loads() as usize;
        assert!(if room == all { loads <= keys } else { loads >= 4 }, "{loads} of {keys} keys read");
    }
    let spy = Spy { keys: world.open(one), told: Mutex::default() };
    let spy = Arc::new(spy);
    let source: Arc<dyn KeySource> = spy.clone();
    let server = Evaluator::new(&world.params, source).unwrap();
    server.trace(&world.x, &world.trace).unwrap();
    assert_eq!(spy.told.lock().unwrap().most, one, "one key at a time");
}

#[test]
fn announced_keys_are_read_before_they_are_asked_for() {
    let world = World::new();
    // The identity has a key in the file, for which nobody asks: it is not read, and takes no room from others.
    let all = || world.keys.galois_keys().map(GaloisKey::element);
    let elements: Vec<u64> = all().filter(|e| *e != 1).collect();
    assert_eq!(elements.len() + 1, all().count());
    let (count, keys) = (elements.len(), world.open(world.keys.bytes()));
    let wait = |keys: &KeyFile, loads: usize| {
        let started = Instant::now();
        while keys.loads() < loads as u64 && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(keys.loads(), loads as u64);
    };
    keys.prefetch(&[&[1], &elements[..]].concat());
    wait(&keys, count);
    elements.iter().for_each(|e| drop(keys.galois(*e, 0).unwrap()));
    assert_eq!(keys.loads(), count as u64, "none was read again");
    // No further ahead than there is room, and the first of them first.
    let keys = world.open(2 * world.key());
    keys.prefetch(&[&[1], &elements[..]].concat());
    wait(&keys, 2);
    std::thread::sleep(Duration::from_millis(50));
    wait(&keys, 2);
    assert_eq!(keys.bytes(), 2 * world.key());
    drop([keys.galois(elements[0], 0).unwrap(), keys.galois(elements[1], 0).unwrap()]);
    let held = keys.galois(elements[2], 0).unwrap();
    wait(&keys, 4);
    std::thread::sleep(Duration::from_millis(50));
    wait(&keys, 4);
    assert_eq!((keys.bytes(), held.element()), (2 * world.key(), elements[2]));
}

/// Many threads, in a pool and beside it, on few keys at a time.
#[test]
fn threads_share_keys() {
    let world = World::new();
    let expected = world.circuit(&Evaluator::new(&world.params, world.keys.clone()).unwrap());
    let server = Evaluator::new(&world.params, world.open(2 * world.key())).unwrap();
    let pool = Threads::new(4);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| (0..5).all(|_| world.circuit(&server) == expected));
        assert!(pool.run(|| threads::map(20, |_| world.circuit(&server) == expected)).into_iter().all(|same| same));
        assert!(beside.join().unwrap());
    });
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let world = World::new();
    let whole = fs::read(world.path()).unwrap();
    let elements: Vec<u64> = world.keys.galois_keys().map(GaloisKey::element).collect();
    let first = Container::from_bytes(&whole).unwrap().header().bytes() as usize;
    // Every byte of the header, and bytes all over the rest: segments, padding, checksums.
    for at in (0..first).chain((first..whole.len()).step_by(1009)).chain(whole.len() - 32..whole.len()) {
        put(&world.path(), at, whole[at] ^ 0x10);
        let opened = KeyFile::open(&world.path(), &world.params, usize::MAX);
        let Ok(keys) = opened else {
            put(&world.path(), at, whole[at]);
            continue;
        };
        assert!(at >= first, "byte {at} of the header");
        let found: Vec<_> = std::iter::once(keys.relin().map(drop))
            .chain(elements.iter().map(|e| keys.galois(*e, 0).map(drop)))
            .filter_map(Result::err)
            .collect();
        assert_eq!(found.len(), 1, "byte {at}: {found:?}");
        assert!(matches!(&found[0], RlweError::KeyNotLoaded { reason, kind: ErrorKind::Format }
            if reason.contains("eval.keys")));
        put(&world.path(), at, whole[at]);
    }
    for cut in [0, 1, first - 1, first, whole.len() / 2, whole.len() - 1] {
        fs::write(world.path(), &whole[..cut]).unwrap();
        assert!(KeyFile::open(&world.path(), &world.params, 0).is_err_and(|e| e.kind() == ErrorKind::Format), "{cut}");
    }
    fs::write(world.path(), [&whole[..], &[0]].concat()).unwrap();
    let longer = KeyFile::open(&world.path(), &world.params, 0).unwrap_err();
    assert!(matches!(longer, StoreError::Damaged { .. }));
    // Keys of other parameters, and what is no file of keys.
    fs::write(world.path(), &whole).unwrap();
    let other = ParamsLiteral::with_depth(1, 40, Security::Bits128).unwrap().build().unwrap();
    let foreign = KeyFile::open(&world.path(), &other, 0).unwrap_err();
    assert!(matches!(foreign, StoreError::Wire(WireError::WrongParameters { .. })));
    fs::write(world.path(), world.x.to_bytes().unwrap()).unwrap();
    let none = KeyFile::open(&world.path(), &world.params, 0).unwrap_err();
    assert!(matches!(none, StoreError::Wire(WireError::WrongType { .. })));
    // Cut after it was opened, by somebody who should not: an error as well.
    fs::write(world.path(), &whole).unwrap();
    let keys = world.open(0);
    fs::OpenOptions::new().write(true).open(world.path()).unwrap().set_len(first as u64).unwrap();
    keys.prefetch(&elements);
    assert!(matches!(keys.galois(elements[0], 0), Err(RlweError::KeyNotLoaded { kind: ErrorKind::Format, .. })));
    assert!(matches!(keys.galois(999_999, 4), Err(RlweError::MissingRotationKey { step: 4, element: 999_999 })));
}

/// Keys of another library travel without seeds: between others, each is found where it is.
#[test]
fn keys_without_seeds_are_found_among_others() {
    let world = World::new();
    let mut keys = EvalKeys::new(&world.params, world.keys.id());
    keys.set_relin(without_seed(world.keys.relin_key().unwrap())).unwrap();
    for (at, key) in world.keys.galois_keys().enumerate() {
        let own = if at % 2 == 0 { key.key().clone() } else { without_seed(key.key()) };
        keys.insert(GaloisKey::from_parts(key.element(), own).unwrap()).unwrap();
    }
    fs::write(world.path(), keys.to_bytes().unwrap()).unwrap();
    let file = world.open(0);
    let same = |a: &KeySwitchKey, b: &KeySwitchKey| {
        assert_eq!((a.level(), a.digits()), (b.level(), b.digits()));
        (0..a.digits()).for_each(|j| assert!(a.a(j).words() == b.a(j).words() && a.b(j).words() == b.b(j).words()));
    };
    same(&file.relin().unwrap(), world.keys.relin_key().unwrap());
    for key in world.keys.galois_keys() {
        same(file.galois(key.element(), 0).unwrap().key(), key.key());
    }
}

fn without_seed(key: &KeySwitchKey) -> KeySwitchKey {
    let part = |of: fn(&KeySwitchKey, usize) -> sudare_ring::Poly<sudare_ring::Eval>| -> Vec<_> {
        (0..key.digits()).map(|j| of(key, j)).collect()
    };
    KeySwitchKey::from_pairs(key.params(), key.level(), &part(KeySwitchKey::b), &part(KeySwitchKey::a)).unwrap()
}
