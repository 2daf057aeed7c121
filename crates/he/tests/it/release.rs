//! Key recovery from shown decryptions (Li–Micciancio, ePrint 2020/1533): it works on private
//! decryptions and fails on those for release, whatever the ciphertext says of itself.

use crate::world::literal;
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Expected, Params, Plaintext, State};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::release::{MAX_RELEASES, ReleasePolicy, Releases};
use sudare_rlwe::wire::{Wire, secret_key_from_bytes, secret_key_to_bytes};

fn params() -> Params {
    // One 61-bit prime; the scale leaves room for the noise and double precision keeps the error.
    literal(9, &[61], &[], 1, 45).build().unwrap()
}

/// Two ciphertexts and the real parts of their slots, as somebody was shown them.
type Seen = [(Ciphertext, Vec<f64>); 2];

/// The attack: what is shown, encoded again, is p + p̄ = 2·Re for p = c_0 + c_1·s, and ¯ the
/// conjugation. Two of these are two linear equations in s and s̄ at every point.
fn recover(params: &Params, seen: &Seen) -> Vec<i64> {
    let conjugate = |p: &Poly<Eval>| -> Poly<Eval> {
        p.clone().into_coeff().automorphism(params.conjugation_element()).unwrap().into_eval()
    };
    let q = *params.q_at(0).limb(0).modulus();
    let equation = |(c, shown): &(Ciphertext, Vec<f64>)| {
        let at = EncodeAt { level: 0, scale: 2.0 * c.scale(), max_abs: 4.0 };
        let sum = Encoder::new(params).encode_at(shown, at).unwrap();
        let [c0, c1] = [&c.parts()[0], &c.parts()[1]];
        let right = sum.poly().sub(c0).sub(&conjugate(c0));
        (c1.clone(), conjugate(c1), right)
    };
    let [(a, b, x), (c, d, y)] = [equation(&seen[0]), equation(&seen[1])];
    let mut s = Poly::<Eval>::zero(params.q_at(0));
    for (i, out) in s.limb_mut(0).iter_mut().enumerate() {
        let at = |p: &Poly<Eval>| p.limb(0)[i];
        let determinant = q.sub(q.mul(at(&a), at(&d)), q.mul(at(&b), at(&c)));
        let numerator = q.sub(q.mul(at(&x), at(&d)), q.mul(at(&b), at(&y)));
        *out = q.mul(numerator, q.inv(determinant).unwrap_or(0));
    }
    s.into_coeff().limb(0).iter().map(|x| q.center(*x)).collect()
}

struct World {
    params: Params,
    secret: SecretKey,
    message: Plaintext,
}

impl World {
    fn new() -> Self {
        let params = params();
        let secret = SecretKey::generate(&params).unwrap();
        let message = Encoder::new(&params).encode(&[0.5, -0.25, 0.125], 1.0).unwrap();
        Self { params, secret, message }
    }

    fn encoder(&self) -> Encoder {
        Encoder::new(&self.params)
    }

    fn encrypt(&self) -> Ciphertext {
        Encryptor::with_secret_key(&self.secret).unwrap().encrypt(&self.message).unwrap()
    }

    fn private(&self, c: &Ciphertext) -> Vec<f64> {
        self.encoder().decode(&Decryptor::new(&self.secret).decrypt(c).unwrap()).unwrap()
    }
}

/// The same ciphertext as a server writes it that wants its error to be taken for another.
fn claiming(c: &Ciphertext, state: State) -> Ciphertext {
    let forged = Ciphertext::from_parts(c.inner().clone(), state);
    Ciphertext::from_bytes(c.params(), &forged.unwrap().to_bytes().unwrap()).unwrap()
}

#[test]
fn the_attack_needs_a_private_decryption() {
    const TRIALS: usize = 100;
    let w = World::new();
    let decryptor = Decryptor::new(&w.secret);
    let policy = ReleasePolicy::new(2 * TRIALS as u64, 20).unwrap();
    let mut recovered = 0;
    for _ in 0..TRIALS {
        let pair = [w.encrypt(), w.encrypt()];
        let private = pair.clone().map(|c| (w.private(&c), c)).map(|(shown, c)| (c, shown));
        recovered += usize::from(recover(&w.params, &private) == w.secret.coefficients());
        let released = pair.map(|c| {
            let shown = decryptor.decrypt_for_release(&w.encoder(), &c, &Expected::of(&c), policy).unwrap();
            assert!((shown[0] - 0.5).abs() < 0.05, "the message survives the noise");
            (c, shown)
        });
        assert_ne!(recover(&w.params, &released), w.secret.coefficients());
    }
    assert!(recovered > TRIALS * 9 / 10, "the attack is real: it recovered the key {recovered} times of {TRIALS}");
    assert_eq!(w.secret.releases(), Some(Releases::new(policy, 2 * TRIALS as u64).unwrap()));
}

#[test]
fn what_the_ciphertext_says_of_itself_is_not_believed() {
    let w = World::new();
    let decryptor = Decryptor::new(&w.secret);
    let policy = ReleasePolicy::new(8, 30).unwrap();
    let honest = w.encrypt();
    let expected = Expected::of(&honest);
    let state = honest.state();
    // With no noise to hide, the old decryption for release was a private one: this gave the key.
    for (claim, what) in [
        (State { noise: 0.0, ..state }, "error bound"),
        (State { noise: 0.999 * state.noise, ..state }, "error bound"),
        (State { scale: 1e-6 * state.scale, ..state }, "scale"),
        (State { scale: 1e6 * state.scale, noise: 1e6 * state.noise, ..state }, "scale"),
    ] {
        let forged = claiming(&honest, claim);
        let refused = decryptor.decrypt_for_release(&w.encoder(), &forged, &expected, policy);
        assert!(
            matches!(&refused, Err(HeError::Rlwe(RlweError::NotAsComputed { what: found, .. })) if *found == what),
            "{refused:?}"
        );
    }
    assert_eq!(w.secret.releases(), None, "what is refused is not counted");
    // What it says of the message changes nothing, and neither does a bound that says more.
    let modest = claiming(&honest, State { bound: 1e-9, noise: 1e3 * state.noise, ..state });
    let shown = decryptor.decrypt_for_release(&w.encoder(), &modest, &expected, policy).unwrap();
    let spread = shown[3..].iter().map(|x| x * x).sum::<f64>() / (shown.len() - 3) as f64;
    let deviation = (12.0 * 8.0 * shown.len() as f64).sqrt() * 2f64.powi(15) * expected.error;
    assert!((spread.sqrt() / deviation - 1.0).abs() < 0.25, "{spread:e} {deviation:e}");
    for value in &shown[3..] {
        assert!(value.abs() < policy.released_error(shown.len(), expected.error));
    }
}

#[test]
fn the_count_is_the_keys_and_outlives_the_process() {
    let w = World::new();
    let policy = ReleasePolicy::new(3, 20).unwrap();
    let c = w.encrypt();
    let expected = Expected::of(&c);
    let fresh = secret_key_to_bytes(&w.secret).unwrap();
    let load = |bytes: &[u8]| secret_key_from_bytes(&w.params, bytes).unwrap();
    let release =
        |key: &SecretKey, policy| Decryptor::new(key).decrypt_for_release(&w.encoder(), &c, &expected, policy);
    assert_eq!(load(&fresh).releases(), None);
    release(&w.secret, policy).unwrap();
    release(&w.secret, policy).unwrap();
    // Another policy is another promise, and a copy of the object knows what was used.
    let wider = ReleasePolicy::new(4, 20).unwrap();
    assert_eq!(
        release(&w.secret, wider),
        Err(HeError::Rlwe(RlweError::OtherRelease { declared: policy, wanted: wider }))
    );
    let saved = secret_key_to_bytes(&w.secret).unwrap();
    let again = load(&saved);
    assert_eq!(again.releases().map(|r| (r.used(), r.left(), r.policy())), Some((2, 1, policy)));
    release(&again, policy).unwrap();
    assert_eq!(release(&again, policy), Err(HeError::Rlwe(RlweError::ReleasesUsedUp { declared: 3 })));
    let used_up = load(&secret_key_to_bytes(&again).unwrap());
    assert_eq!(release(&used_up, policy), Err(HeError::Rlwe(RlweError::ReleasesUsedUp { declared: 3 })));
    // Only a file of before forgets, which nobody can see from it.
    release(&load(&fresh), wider).unwrap();
}

#[test]
fn what_cannot_be_kept_is_refused_with_the_figures() {
    for (releases, bits) in [(0, 30), (1, 0), (1, 19), (1, 65), (1, 128), (MAX_RELEASES + 1, 30), (u64::MAX, u32::MAX)]
    {
        let refused = ReleasePolicy::new(releases, bits).unwrap_err();
        assert_eq!(refused, RlweError::ReleasePolicy { releases, security_bits: bits });
        assert!(refused.to_string().contains("20 to 64 bits"), "{refused}");
    }
    let w = World::new();
    let decryptor = Decryptor::new(&w.secret);
    let c = w.encrypt();
    let strongest = ReleasePolicy::new(MAX_RELEASES, 64).unwrap();
    let refused = decryptor.decrypt_for_release(&w.encoder(), &c, &Expected::of(&c), strongest);
    assert!(matches!(refused, Err(HeError::NoPrecision { .. })));
    let policy = ReleasePolicy::new(1, 64).unwrap();
    for error in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut values = [1.0, 2.0];
        assert!(matches!(
            decryptor.release(policy, &mut values, |_| error),
            Err(HeError::Rlwe(RlweError::Parameters { .. }))
        ));
        assert_eq!(values, [1.0, 2.0]);
    }
    decryptor.release(policy, &mut [], |_| 1.0).unwrap();
    assert_eq!(w.secret.releases(), None);
}

/// The promise: no released value is further from the true one than it says, and the noise has the
/// width that the security asks for, also where that is wider than any machine word.
#[test]
fn released_values_keep_their_promise() {
    let w = World::new();
    let decryptor = Decryptor::new(&w.secret);
    let releases = 64;
    for (bits, error) in [(20, 1e-9), (30, 1e-3), (64, 1e12)] {
        let secret = secret_key_from_bytes(&w.params, &secret_key_to_bytes(&w.secret).unwrap()).unwrap();
        let decryptor = Decryptor::new(&secret);
        let policy = ReleasePolicy::new(releases, bits).unwrap();
        let count = 1000;
        let promised = policy.released_error(count, error);
        assert!((policy.private_error(count, promised) / error - 1.0).abs() < 1e-12);
        let (mut square, mut largest) = (0.0, 0f64);
        for _ in 0..releases {
            let truth: Vec<f64> = (0..count).map(|i| (i as f64 - 500.0) * 0.01).collect();
            // As wrong as they may be.
            let mut values: Vec<f64> = truth.iter().map(|x| x + error).collect();
            decryptor.release(policy, &mut values, |_| error).unwrap();
            for (x, y) in values.iter().zip(&truth) {
                square += (x - y).powi(2);
                largest = largest.max((x - y).abs());
            }
        }
        assert!(largest <= promised, "{bits} bits: {largest:e} {promised:e}");
        let samples = (releases as usize * count) as f64;
        let deviation = (12.0 * releases as f64 * count as f64).sqrt() * (f64::from(bits) / 2.0).exp2() * error;
        let ratio = (square / samples).sqrt() / deviation;
        assert!((ratio - 1.0).abs() < 0.02, "{bits} bits: {ratio}");
    }
    // Each value has its own bound.
    let policy = ReleasePolicy::new(1, 20).unwrap();
    let mut values = vec![0.0; 2000];
    decryptor.release(policy, &mut values, |i| if i % 2 == 0 { 1e-6 } else { 1e6 }).unwrap();
    let deviation = |odd: usize| (values.iter().skip(odd).step_by(2).map(|x| x * x).sum::<f64>() / 1000.0).sqrt();
    assert!((deviation(1) / deviation(0) / 1e12 - 1.0).abs() < 0.2);
}
