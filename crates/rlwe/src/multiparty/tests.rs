//! Sums of shares against one key under the same randomness, with the crate's own insight.

use super::*;
use crate::keys::inverse_element;
use crate::params::{Params, ParamsLiteral, SchemeTag};
use crate::sample::error_coefficients;
use crate::security::{SecretDistribution, Security};
use crate::wire::Wire;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::ops::mask;
use sudare_ring::random::{MaskSeed, Seed, ternary};
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use zeroize::Zeroizing;

const PARTIES: u32 = 3;

/// Admits everything: for steps whose refusals are not asked about.
struct Anything;

impl Ledger for Anything {
    fn admit(&mut self, _: &Entry) -> Result<(), PartyError> {
        Ok(())
    }
}

fn params() -> Params {
    let literal = ParamsLiteral {
        log_n: 9,
        q_bits: vec![45, 40, 40],
        p_bits: vec![45, 45],
        digit_limbs: 2,
        secret: SecretDistribution::TernarySum { parties: PARTIES },
        security: Security::Insecure,
    };
    literal.build(SchemeTag(1)).unwrap()
}

fn world() -> (Session, Vec<Party>) {
    let session = Session::new(&params(), PARTIES, MaskSeed::from_bytes([7; 32])).unwrap();
    let party = |i: u32| Party::from_seed(&session, i, Zeroizing::new([i as u8 + 1; 32])).unwrap();
    let parties = (0..PARTIES).map(party).collect();
    (session, parties)
}

/// Σ of the parties' small polynomials, in evaluation form: what one key holder has in their place.
fn total(parties: &[Party], basis: &RnsBasis, small: impl Fn(&Party) -> Vec<i64>) -> Poly<Eval> {
    let mut sum = vec![0i64; basis.degree()];
    for party in parties {
        sum.iter_mut().zip(small(party)).for_each(|(sum, x)| *sum += x);
    }
    Poly::<Coeff>::from_signed(basis, &sum).into_eval()
}

fn errors(party: &Party, question: &Digest, stream: u64) -> Vec<i64> {
    let seed: Seed = party.randomness("errors", question);
    error_coefficients(&mut seed.stream(stream), party.session().params().degree()).to_vec()
}

fn secrets(party: &Party) -> Vec<i64> {
    party.secret.coefficients().to_vec()
}

#[test]
fn the_public_key_is_that_of_the_summed_secret() {
    let (session, parties) = world();
    let shares: Vec<_> = parties.iter().map(Party::public_key_share).collect();
    let key = public_key(&session).all(&shares).unwrap().public_key().unwrap();
    let basis = session.params().q();
    let question = shares[0].answers();
    let ([b, a], seed) = (key.polys(), key.seed().unwrap());
    let [s, e] = [total(&parties, basis, secrets), total(&parties, basis, |p| errors(p, &question, 0))];
    assert_eq!(a.words(), mask(basis, seed, 0).words());
    assert_eq!(b.words(), crate::sample::zero(a, &s, &e).words());
    assert_eq!(key.id(), session.key());
}

#[test]
fn galois_keys_are_those_of_the_summed_secret() {
    let (session, parties) = world();
    let params = session.params();
    let elements = [(5, 2), (2 * 512 - 1, 1), (25, 0), (5, 1)];
    let shares: Vec<_> = parties.iter().map(|p| p.galois_share(&elements).unwrap()).collect();
    let keys = galois_keys(&session, &elements).unwrap().all(&shares).unwrap().galois_keys().unwrap();
    assert_eq!(keys.iter().map(|k| (k.element(), k.key().level())).collect::<Vec<_>>(), [(5, 2), (25, 0), (1023, 1)]);
    for key in &keys {
        let (element, level) = (key.element(), key.key().level());
        let basis = params.qp_at(level);
        let s = total(&parties, basis, secrets);
        let inverse = EvalPermutation::new(512, inverse_element(element, 512)).unwrap();
        // The same errors as in a list of its own.
        let alone = parties[0].galois_share(&[(element, level)]).unwrap();
        let numbers = [element, level as u64];
        let question = question::Question::of(&session, "galois key").numbers(numbers).digest();
        for j in 0..key.key().digits() {
            let e = total(&parties, basis, |p| errors(p, &question, j as u64));
            let a = mask(basis, key.key().seed().unwrap(), j as u64);
            let expected = keys::digit(params, (level, j), (&a, &s.permuted(&inverse), &e), &s);
            assert_eq!(key.key().b(j).words(), expected.words(), "element {element}, digit {j}");
            let at = shares[0].records().iter().position(|r| r.element == element).unwrap();
            let before: usize = shares[0].records()[..at].iter().map(|r| params.digits_at(r.level)).sum();
            assert_eq!(alone.polys[j].words(), shares[0].polys[before + j].words());
        }
    }
}

#[test]
fn the_relinearisation_key_is_that_of_the_summed_secret() {
    let (session, parties) = world();
    let params = session.params();
    for level in 0..=2 {
        let firsts: Vec<_> = parties.iter().map(|p| p.relin_first_share(level).unwrap()).collect();
        let sum = relin_sum(&session, level).unwrap().all(&firsts).unwrap().relin_sum().unwrap();
        let sum = RelinSum::from_bytes(&session, &sum.to_bytes().unwrap()).unwrap();
        let seconds: Vec<_> = parties.iter().map(|p| p.relin_second_share(&sum, &mut Anything).unwrap()).collect();
        let key = relin_key(&sum).all(&seconds).unwrap().relin_key().unwrap();
        let (basis, first, second) = (params.qp_at(level), firsts[0].answers(), seconds[0].answers());
        let s = total(&parties, basis, secrets);
        let u = total(&parties, basis, |p| {
            let mut u = vec![0i64; 512];
            ternary(&mut p.randomness("ephemeral secret", &first).stream(0), &mut u);
            u
        });
        let masks = session.key_masks("relinearisation 1", &Record { element: 0, level });
        for j in 0..key.digits() {
            let error = |question, stream| total(&parties, basis, |p| errors(p, question, stream));
            let [e0, e1] = [0, 1].map(|half| error(&first, 2 * j as u64 + half));
            // One holder of s and u: P·g_j·s² + s·e_0 + u·e_1 + e_2 − a'·s.
            let a = mask(basis, &masks, j as u64);
            let h0 = keys::digit(params, (level, j), (&a, &u, &e0), &s);
            let mut h1 = a.mul(&s);
            h1.add_assign(&e1);
            let own = mask(basis, key.seed().unwrap(), j as u64);
            let mut expected = crate::sample::zero(&own, &s, &error(&second, j as u64));
            expected.mul_add(&s, &h0);
            expected.mul_add(&u, &h1);
            assert_eq!(key.b(j).words(), expected.words());
            let mut direct = error(&second, j as u64);
            direct.mul_add(&s, &e0);
            direct.mul_add(&u, &e1);
            let direct = keys::digit(params, (level, j), (&own, &s, &direct), &s.mul(&s));
            assert_eq!(key.b(j).words(), direct.words(), "the key is one of s²");
        }
    }
}

#[test]
fn a_session_and_its_parties_are_what_their_bytes_say() {
    let (session, mut parties) = world();
    let again = Session::from_bytes(session.params(), &session.to_bytes().unwrap()).unwrap();
    assert_eq!((&again, again.id(), again.key()), (&session, session.id(), session.key()));
    let other = Session::new(session.params(), 2, *session.seed()).unwrap();
    assert_ne!((other.id(), other.key()), (session.id(), session.key()));
    let shares: Vec<Vec<_>> = parties.iter().map(Party::private_shares).collect();
    let for_first: Vec<_> = shares.into_iter().map(|mut shares| shares.remove(0)).collect();
    parties[0].add_private_shares(&for_first).unwrap();
    for party in &parties {
        let read = Party::from_bytes(&session, &party.to_bytes().unwrap()).unwrap();
        assert_eq!(read.secret.coefficients(), party.secret.coefficients());
        assert_eq!(read.public_key_share().polys[0].words(), party.public_key_share().polys[0].words());
        assert_eq!(read.joint.is_some(), party.index() == 0);
        assert!(Party::from_bytes(&other, &party.to_bytes().unwrap()).is_err());
    }
    for threshold in [0, 1, 4, u32::MAX] {
        assert!(matches!(Session::new(session.params(), threshold, *session.seed()), Err(PartyError::Session { .. })));
    }
    assert!(matches!(Party::generate(&session, 3), Err(PartyError::NoSuchParty { party: 3, parties: 3 })));
    assert_ne!(parties[0].secret.coefficients(), parties[1].secret.coefficients());
    let elsewhere = Party::from_seed(&other, 0, Zeroizing::new([1; 32])).unwrap();
    assert_ne!(
        elsewhere.secret.coefficients(),
        parties[0].secret.coefficients(),
        "a seed is another secret in another session"
    );
}

/// χ² of the top 6 bits of residues against uniform: 63 degrees of freedom, so 63 ± 11, and over 140 once in 10^7.
fn chi_square(poly: &Poly<Eval>) -> f64 {
    let mut cells = [0f64; 64];
    let mut count = 0.0;
    for (i, q) in poly.basis().primes().enumerate() {
        for x in poly.limb(i) {
            cells[(u128::from(*x) * 64 / u128::from(q)) as usize] += 1.0;
            count += 1.0;
        }
    }
    cells.iter().map(|seen| (seen - count / 64.0).powi(2) / (count / 64.0)).sum()
}

#[test]
fn fewer_shares_than_the_threshold_are_uniform() {
    let literal = ParamsLiteral {
        log_n: 9,
        q_bits: vec![45, 40, 40, 40],
        p_bits: vec![],
        digit_limbs: 1,
        secret: SecretDistribution::TernarySum { parties: 5 },
        security: Security::Insecure,
    };
    let params = literal.build(SchemeTag(1)).unwrap();
    let session = Session::new(&params, 3, MaskSeed::from_bytes([9; 32])).unwrap();
    let make = |i: u32| Party::from_seed(&session, i, Zeroizing::new([i as u8 + 40; 32])).unwrap();
    let mut parties: Vec<Party> = (0..5).map(make).collect();
    let mut shares: Vec<Vec<_>> = parties.iter().map(Party::private_shares).collect();
    for party in &mut parties {
        assert!(!party.can_decrypt());
        let own: Vec<_> = shares.iter_mut().map(|shares| shares.remove(0)).collect();
        party.add_private_shares(&own).unwrap();
    }
    let basis = params.q();
    let secret = total(&parties, basis, secrets);
    // What a set of parties makes of its shares: the secret, or nothing.
    let together = |set: &[u32]| {
        let mut sum = Poly::<Eval>::zero(basis);
        for i in set {
            let mut share = Poly::clone(&parties[*i as usize].joint.as_ref().unwrap().share);
            share.mul_scalars(&private::lagrange(basis, set, *i).unwrap());
            sum.add_assign(&share);
        }
        sum
    };
    let small = |poly: &Poly<Eval>| poly.to_coeff().centered().iter().all(|c| c.abs() <= 5);
    for set in (0u32..32).map(|mask| (0..5).filter(|i| mask >> i & 1 == 1).collect::<Vec<u32>>()) {
        let found = together(&set);
        match set.len() {
            3.. => assert_eq!(found.words(), secret.words(), "{set:?}"),
            // In coefficient form, where the secret is far from uniform.
            1 | 2 => {
                let left = secret.sub(&found);
                assert!(!small(&found) && !small(&left), "{set:?}");
                let coefficients =
                    |poly: &Poly<Eval>| Poly::<Eval>::from_words(basis, poly.to_coeff().words()).unwrap();
                let of_secret = chi_square(&coefficients(&secret));
                let [of_found, of_left] = [&found, &left].map(|poly| chi_square(&coefficients(poly)));
                assert!(of_secret > 10_000.0 && of_found < 140.0 && of_left < 140.0, "{set:?}: {of_found} {of_left}");
            }
            _ => assert!(found.is_zero()),
        }
    }
    // Only t are asked, and none twice.
    for set in [&[0, 1][..], &[0, 1, 2, 3], &[0, 0, 1]] {
        assert!(matches!(session.active(set), Err(PartyError::ActiveSet { threshold: 3, .. })), "{set:?}");
    }
    // One share too few, too many of one party, of another party's, of another session: the party as it was.
    let mut party = make(0);
    let fresh = |i: u32, to: usize| make(i).private_shares().remove(to);
    let missing = party.add_private_shares(&[fresh(0, 0), fresh(2, 0), fresh(3, 0), fresh(4, 0)]);
    assert_eq!(missing, Err(PartyError::Missing { parties: vec![1] }));
    let twice = party.add_private_shares(&[fresh(0, 0), fresh(0, 0)]);
    assert_eq!(twice, Err(PartyError::Twice { party: 0 }));
    assert_eq!(party.add_private_shares(&[fresh(1, 2)]), Err(PartyError::ForAnother { party: 1, to: 2 }));
    let other = Session::new(&params, 2, MaskSeed::from_bytes([9; 32])).unwrap();
    let foreign = Party::from_seed(&other, 1, Zeroizing::new([41; 32])).unwrap().private_shares().remove(0);
    let expected = session.id();
    assert_eq!(party.add_private_shares(&[foreign]), Err(PartyError::Foreign { party: 1, expected }));
    assert!(!party.can_decrypt());
    let bytes = fresh(1, 0).to_bytes().unwrap();
    assert_eq!(PrivateShare::receive(&session, 1, &bytes).unwrap().to(), 0);
    assert_eq!(
        PrivateShare::receive(&session, 2, &bytes).unwrap_err(),
        PartyError::InAnothersName { party: 2, found: 1 }
    );
    assert_eq!(
        PrivateShare::receive(&other, 1, &bytes).unwrap_err(),
        PartyError::Foreign { party: 1, expected: other.id() }
    );
}

/// With more parties than the threshold, Σ α_j^r·λ_j·S(α_j) = 0 for r up to their surplus: everybody sees that sum of their noise. Masks whose
/// sum is zero leave uniform numbers of it.
#[test]
fn more_answers_than_the_threshold_have_relations_without_masks() {
    let literal = ParamsLiteral {
        log_n: 9,
        q_bits: vec![60],
        p_bits: vec![],
        digit_limbs: 1,
        secret: SecretDistribution::TernarySum { parties: 5 },
        security: Security::Insecure,
    };
    let params = literal.build(SchemeTag(1)).unwrap();
    let session = Session::new(&params, 2, MaskSeed::from_bytes([9; 32])).unwrap();
    let make = |i: u32| Party::from_seed(&session, i, Zeroizing::new([i as u8 + 60; 32])).unwrap();
    let mut parties: Vec<Party> = (0..5).map(make).collect();
    let mut shares: Vec<Vec<_>> = parties.iter().map(Party::private_shares).collect();
    for party in &mut parties {
        let own: Vec<_> = shares.iter_mut().map(|shares| shares.remove(0)).collect();
        party.add_private_shares(&own).unwrap();
    }
    let (basis, active) = (params.q(), [0, 1, 3, 4]);
    let question = question::Question::of(&session, "test").digest();
    let c1 = mask(basis, &MaskSeed::from_bytes([3; 32]), 0);
    let noise = |i: usize| Poly::<Coeff>::from_signed(basis, &errors(&parties[i], &question, 0)).into_eval();
    let largest = |poly: &Poly<Eval>| poly.to_coeff().centered().iter().map(|x| x.abs()).max().unwrap();
    let mut whole = [(); 2].map(|()| Poly::<Eval>::zero(basis));
    for r in 0..3 {
        let mut sums = [(); 2].map(|()| Poly::<Eval>::zero(basis));
        let mut of_noise = Poly::<Eval>::zero(basis);
        for i in active {
            let power = Poly::<Eval>::scalar(basis, (i64::from(i) + 1).pow(r));
            let mut bare = parties[i as usize].weighted(&active, 0).unwrap().mul(&c1);
            bare.add_assign(&noise(i as usize));
            let mut masked = bare.clone();
            parties[i as usize].hide(&mut masked, &active, &question, 0);
            for (sum, mut answer) in sums.iter_mut().zip([bare, masked]) {
                answer.mul_scalars(&power);
                sum.add_assign(&answer);
            }
            let mut noise = noise(i as usize);
            noise.mul_scalars(&power);
            of_noise.add_assign(&noise);
        }
        if r == 0 {
            whole = sums;
            continue;
        }
        assert_eq!(sums[0].words(), of_noise.words(), "r = {r}");
        assert!(largest(&sums[0]) < 1 << 14 && largest(&sums[1]) > 1 << 50, "r = {r}");
    }
    assert_eq!(whole[0].words(), whole[1].words(), "the sum of the masks is zero");
    assert_eq!(session.active(&active), Err(PartyError::ActiveSet { found: 4, threshold: 2 }));
}
