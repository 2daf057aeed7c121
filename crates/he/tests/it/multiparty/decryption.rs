//! Decryption step by step: what is answered, once; what is refused; how long shares are.

use super::world::{Memory, World, shared};
use crate::world::literal;
use sudare_he::HeError;
use sudare_he::ckks::multiparty::{SharedDecryption, SharedHandover, flood};
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Expected, Params};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::multiparty::{PartyError, Session};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::wire::Wire;
use sudare_rlwe::{KeyId, RlweError};
use sudare_testkit::Random;

fn params() -> Params {
    shared(literal(10, &[60, 60], &[60], 1, 40), 3).build().unwrap()
}

fn encrypt(params: &Params, public: &PublicKey, values: &[f64], period: usize, log_scale: f64) -> Ciphertext {
    let repeated: Vec<f64> = (0..params.slots()).map(|i| values[i % period]).collect();
    let at = EncodeAt { level: params.max_level(), scale: log_scale.exp2(), max_abs: 1.0 };
    let plain = Encoder::new(params).encode_at(&repeated, at).unwrap();
    Encryptor::with_public_key(public).unwrap().encrypt(&plain).unwrap()
}

#[test]
fn one_ciphertext_has_one_answer() {
    let params = params();
    let mut world = World::new(&params, 2, 9);
    let public = world.public();
    let c = encrypt(&params, &public, &Random(3).units(512), 512, 80.0);
    let policy = ReleasePolicy::new(3, 20).unwrap();
    let open = |c: &Ciphertext, parties: &[u32], policy| {
        SharedDecryption::new(&world.session, c, (&Expected::of(c), 1.0), parties, policy, 512).unwrap()
    };
    let opened = open(&c, &[0, 1], policy);
    let mut ledger = Memory::default();
    let first = opened.share(&world.parties[0], &mut ledger).unwrap().to_bytes().unwrap();
    // The message was lost: the same bytes again, also of a copy of the party.
    assert_eq!(opened.share(&world.parties[0], &mut ledger).unwrap().to_bytes().unwrap(), first);
    let answered = Err(PartyError::Answered { party: 0 });
    let refused = |opened: &SharedDecryption, ledger: &mut Memory| {
        opened.share(&world.parties[0], ledger).map(drop).map_err(|e| match e {
            HeError::Party(e) => e,
            e => panic!("{e}"),
        })
    };
    // Another set, another policy, with a prime less, with a plaintext added: still the same secret times c_1.
    assert_eq!(refused(&open(&c, &[0, 2], policy), &mut ledger), answered);
    assert_eq!(refused(&open(&c, &[0, 1], ReleasePolicy::new(3, 21).unwrap()), &mut ledger), answered);
    let server = Evaluator::new(&params, EvalKeys::new(&params, world.session.key())).unwrap();
    let at = EncodeAt { level: 1, scale: c.scale(), max_abs: 1.0 };
    let shifted = server.add_plain(&c, &Encoder::new(&params).encode_at(&[0.5], at).unwrap()).unwrap();
    assert_eq!(refused(&open(&shifted, &[0, 2], policy), &mut ledger), answered);
    // Who does not take part says so.
    assert_eq!(
        opened.share(&world.parties[2], &mut world.ledgers[2]).unwrap_err(),
        HeError::Party(PartyError::NotActive { party: 2 })
    );
    // What was declared is given, and no more.
    for _ in 0..2 {
        let other = encrypt(&params, &public, &[0.25], 1, 80.0);
        refused(&open(&other, &[0, 1], policy), &mut ledger).unwrap();
    }
    let other = encrypt(&params, &public, &[0.25], 1, 80.0);
    assert_eq!(refused(&open(&other, &[0, 1], policy), &mut ledger), Err(PartyError::UsedUp { policy }));
}

#[test]
fn messages_that_do_not_belong_are_refused_with_their_party() {
    let params = params();
    let mut world = World::new(&params, 2, 10);
    let elsewhere = World::new(&params, 2, 12);
    let public = world.public();
    let policy = ReleasePolicy::new(10, 20).unwrap();
    let shares = |world: &mut World, c: &Ciphertext| {
        let opened = SharedDecryption::new(&world.session, c, (&Expected::of(c), 1.0), &[0, 1], policy, 512).unwrap();
        let shares = [0, 1].map(|i| opened.share(&world.parties[i], &mut world.ledgers[i]).unwrap());
        (opened, shares)
    };
    let [c, d] = [0.5, 0.25].map(|x| encrypt(&params, &public, &[x], 1, 80.0));
    let (opened, [first, second]) = shares(&mut world, &c);
    let (_, [_, stale]) = shares(&mut world, &d);
    let combine = |shares: &[_]| match opened.combine(shares) {
        Ok(_) => None,
        Err(HeError::Party(e)) => Some(e),
        Err(e) => panic!("{e}"),
    };
    assert_eq!(combine(&[first.clone(), second.clone()]), None);
    assert_eq!(combine(&[first.clone(), second.clone(), second.clone()]), None, "the same message twice is one");
    assert_eq!(combine(&[first.clone(), stale]), Some(PartyError::Stale { party: 1 }));
    assert_eq!(combine(std::slice::from_ref(&second)), Some(PartyError::Missing { parties: vec![0] }));
    let foreign = {
        let c = encrypt(&params, &elsewhere.public(), &[0.5], 1, 80.0);
        let mut elsewhere = elsewhere;
        shares(&mut elsewhere, &c).1[1].clone()
    };
    let expected = world.session.id();
    assert_eq!(combine(&[first, foreign.clone()]), Some(PartyError::Foreign { party: 1, expected }));
    // As bytes.
    use sudare_rlwe::multiparty::DecryptionShare;
    let bytes = second.to_bytes().unwrap();
    let receive = |party, bytes: &[u8]| DecryptionShare::receive(&world.session, party, bytes).unwrap_err();
    assert_eq!(receive(1, &foreign.to_bytes().unwrap()), PartyError::Foreign { party: 1, expected });
    assert_eq!(receive(0, &bytes), PartyError::InAnothersName { party: 0, found: 1 });
    assert_eq!(receive(3, &bytes), PartyError::NoSuchParty { party: 3, parties: 3 });
    assert!(matches!(receive(1, &bytes[..100]), PartyError::Malformed { party: 1, .. }));
    // Ciphertexts of another key, and of three parts.
    let stranger = SecretKey::generate(&params).unwrap();
    let theirs = Encryptor::with_secret_key(&stranger).unwrap();
    let plain = Encoder::new(&params).encode(&[0.5], 1.0).unwrap();
    let theirs = theirs.encrypt(&plain).unwrap();
    let refused = SharedDecryption::new(&world.session, &theirs, (&Expected::of(&theirs), 1.0), &[0, 1], policy, 512);
    assert!(matches!(refused, Err(HeError::Party(PartyError::Rlwe(RlweError::WrongKey { .. })))), "{refused:?}");
    assert_ne!(world.session.key(), KeyId::NONE);
}

#[test]
fn a_result_for_one_receiver_is_nobody_elses() {
    let params = params();
    let mut world = World::new(&params, 2, 13);
    let public = world.public();
    let values = Random(4).units(512);
    let c = encrypt(&params, &public, &values, 512, 80.0);
    let mut literal = literal(10, &[60, 60], &[60], 1, 40);
    let own = literal.build().unwrap();
    let receiver = SecretKey::generate(&own).unwrap();
    let theirs = KeyGenerator::new(&receiver).unwrap().public_key().unwrap();
    let policy = ReleasePolicy::new(10, 20).unwrap();
    let handover = SharedHandover::new(&world.session, &c, (&Expected::of(&c), 1.0), &[1, 2], policy, &theirs).unwrap();
    let shares = [1, 2].map(|i| handover.share(&world.parties[i], &mut world.ledgers[i]).unwrap());
    let switched = handover.combine(&shares).unwrap();
    assert_eq!(switched.key(), receiver.id());
    let encoder = Encoder::new(&own);
    let shown = encoder.decode(&Decryptor::new(&receiver).decrypt(&switched).unwrap()).unwrap();
    let error = shown.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(error < switched.error_bound() && switched.error_bound() < 1e-4, "{error:e} {:e}", switched.error_bound());
    // The parties' key opens nothing of it, and the ciphertext is answered for.
    assert!(Decryptor::new(&world.secret()).decrypt(&switched).is_err());
    let open = SharedDecryption::new(&world.session, &c, (&Expected::of(&c), 1.0), &[1, 2], policy, 512).unwrap();
    let again = open.share(&world.parties[1], &mut world.ledgers[1]).unwrap_err();
    assert_eq!(again, HeError::Party(PartyError::Answered { party: 1 }));
    literal.q_bits[1] = 59;
    let other = SecretKey::generate(&literal.build().unwrap()).unwrap();
    let other = KeyGenerator::new(&other).unwrap().public_key().unwrap();
    let refused = SharedHandover::new(&world.session, &c, (&Expected::of(&c), 1.0), &[1, 2], policy, &other);
    assert!(matches!(refused, Err(HeError::Party(PartyError::Receiver))), "{refused:?}");
}

/// The server floods the sum at a large modulus and divides; parties add little noise, modulo one prime, to the few coefficients that
/// values which repeat have.
#[test]
fn aided_shares_of_a_hundred_numbers_take_eight_kilobytes() {
    let params = shared(literal(14, &[56, 45], &[60], 1, 45), 3).build().unwrap();
    let mut world = World::new(&params, 2, 14);
    let public = world.public();
    // 100 numbers, of 256 slots that repeat: one of the smaller rings.
    let values: Vec<f64> = Random(5).units(100).into_iter().chain(vec![0.0; 156]).collect();
    let c = encrypt(&params, &public, &values, 256, 98.0);
    let policy = ReleasePolicy::new(10, 20).unwrap();
    let server = Evaluator::new(&params, EvalKeys::new(&params, world.session.key())).unwrap();
    let hidden = flood(&server, &public, &c, policy, c.error_bound()).unwrap();
    let (before, c) = (c, hidden.ciphertext().clone());
    // The server's noise is that many times the rounding of the division that it went through.
    let rounding = params.sketch().division(2).bound(&sudare_he::ckks::noise::TAIL);
    assert!(c.noise() > policy.deviation(2) * rounding, "{:e} {rounding:e}", c.noise());
    let opened =
        SharedDecryption::aided(&world.session, &hidden, (&Expected::of(&c), 1.0), &[0, 2], policy, 256).unwrap();
    let shares = [0, 2].map(|i| opened.share(&world.parties[i], &mut world.ledgers[i]).unwrap());
    let bytes = shares[0].to_bytes().unwrap().len();
    assert!(bytes <= 8 << 10, "{bytes} bytes");
    let shown = Encoder::new(&params).decode(&opened.combine(&shares).unwrap()).unwrap();
    let error = (0..params.slots()).map(|i| (shown[i] - values[i % 256]).abs()).fold(0.0, f64::max);
    assert!(error < opened.error_bound(), "{error:e} {:e}", opened.error_bound());
    assert!(error < 1e-3, "{error:e}");
    let session: &Session = &world.session;
    assert!(SharedDecryption::aided(session, &hidden, (&Expected::of(&c), 1.0), &[0, 2], policy, 100).is_err());
    let gap = SharedDecryption::aided(session, &hidden, (&Expected::of(&c), 1.0), &[0, 2], policy, 128);
    assert!(matches!(gap, Err(HeError::Party(PartyError::Gap { gap: 64, .. }))), "{gap:?}");
    // A scale whose bits the noise takes, and values that a file says are smaller than planned.
    let small = encrypt(&params, &public, &values, 256, 80.0);
    let refused = flood(&server, &public, &small, policy, small.error_bound());
    assert!(matches!(refused, Err(HeError::NoPrecision { .. })), "{refused:?}");
    let refused = SharedDecryption::new(session, &before, (&Expected::of(&before), 1.5), &[0, 2], policy, 256);
    assert!(matches!(refused, Err(HeError::Rlwe(RlweError::NotAsComputed { what: "value bound", .. }))), "{refused:?}");
}

/// Thirty parties, any twenty of whom decrypt; forty of those that were asked fail before they answer. One half comes back, from its file and
/// its ledger; for the other half somebody else is asked about the sum with a fresh encryption of zero. Every job ends, and with its number.
#[test]
fn forty_failures_and_returns_end_every_job() {
    const PARTIES: u32 = 30;
    const THRESHOLD: usize = 20;
    let params = shared(literal(9, &[60, 60], &[], 1, 40), PARTIES).build().unwrap();
    let mut world = World::new(&params, THRESHOLD as u32, 17);
    let public = world.public();
    let encoder = Encoder::new(&params);
    let policy = ReleasePolicy::new(200, 20).unwrap();
    let server = Evaluator::new(&params, EvalKeys::new(&params, world.session.key())).unwrap();
    let mut random = Random(30);
    let (mut failures, mut jobs, mut replaced) = (0, 0, 0);
    while failures < 40 {
        let value = random.unit();
        let mut c = encrypt(&params, &public, &[value], 1, 80.0);
        let mut set = std::collections::BTreeSet::new();
        while set.len() < THRESHOLD {
            set.insert(random.below(PARTIES.into()) as u32);
        }
        // Who fails in this job, before it answers.
        let mut failing =
            (failures < 40 && random.chance(80)).then(|| *set.iter().nth(random.index(THRESHOLD)).unwrap());
        let shown = loop {
            let active: Vec<u32> = set.iter().copied().collect();
            let opened =
                SharedDecryption::new(&world.session, &c, (&Expected::of(&c), 1.0), &active, policy, params.slots())
                    .unwrap();
            let mut shares = Vec::new();
            let mut away = None;
            for i in &active {
                if failing == Some(*i) {
                    failures += 1;
                    if random.chance(50) {
                        // It comes back, from its file; its ledger was on the disk.
                        let file = world.parties[*i as usize].to_bytes().unwrap();
                        world.parties[*i as usize] =
                            sudare_rlwe::multiparty::Party::from_bytes(&world.session, &file).unwrap();
                    } else {
                        away = Some(*i);
                        continue;
                    }
                }
                let i = *i as usize;
                shares.push(opened.share(&world.parties[i], &mut world.ledgers[i]).unwrap());
            }
            let Some(gone) = away else { break opened.combine(&shares).unwrap() };
            assert_eq!(
                opened.combine(&shares).unwrap_err(),
                HeError::Party(PartyError::Missing { parties: vec![gone] })
            );
            // Those that answered answer no other set for this ciphertext.
            set.remove(&gone);
            failing = None;
            while set.len() < THRESHOLD {
                let other = random.below(PARTIES.into()) as u32;
                if other != gone {
                    set.insert(other);
                }
            }
            let active: Vec<u32> = set.iter().copied().collect();
            let again =
                SharedDecryption::new(&world.session, &c, (&Expected::of(&c), 1.0), &active, policy, params.slots())
                    .unwrap();
            let answered = active.iter().find(|i| shares.iter().any(|share| share.party() == **i)).unwrap();
            let i = *answered as usize;
            assert_eq!(
                again.share(&world.parties[i], &mut world.ledgers[i]).unwrap_err(),
                HeError::Party(PartyError::Answered { party: *answered })
            );
            c = server.add(&c, &encrypt(&params, &public, &[0.0], 1, 80.0)).unwrap();
            replaced += 1;
        };
        let first = encoder.decode(&shown).unwrap()[0];
        assert!((first - value).abs() < 1e-6, "{first} {value}");
        jobs += 1;
    }
    assert!(jobs >= 40 && replaced > 5, "{jobs} jobs, {replaced} sets replaced");
}
