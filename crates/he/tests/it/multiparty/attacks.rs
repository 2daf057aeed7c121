//! Published attacks on several parties' decryptions: each works where its remedy is left out, and fails where it is not.

use super::world::{Forgetful, Memory, World, shared};
use crate::world::literal;
use sudare_exact::{Encoder, Encryptor, IntegerParams, Packing, Scheme, Wrap};
use sudare_exact::{bfv::Bfv, bgv::Bgv};
use sudare_he::ckks::Params;
use sudare_ring::modulus::Modulus;
use sudare_ring::random::{GaussianSampler, Seed, WideGaussian, ternary};
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::keys::PublicKey;
use sudare_rlwe::multiparty::{Flooding, Kind, Opening, PartyError, Refreshing, Share};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::wire::{Container, Wire, packing::unpack};
use sudare_rlwe::{Ciphertext, Encryptor as RawEncryptor, Message};
use sudare_testkit::{Random, sized};
use zeroize::Zeroizing;

const N: usize = 512;

fn params(parties: u32) -> Params {
    shared(literal(9, &[60], &[], 1, 40), parties).build().unwrap()
}

fn encrypt(params: &Params, public: &PublicKey) -> Ciphertext {
    let message = Poly::<Coeff>::from_signed(params.q(), &vec![1 << 40; N]);
    RawEncryptor::with_public_key(public).unwrap().encrypt(Message::Coefficients(message)).unwrap()
}

/// x/y at every point.
fn quotient(x: &Poly<Eval>, y: &Poly<Eval>) -> Vec<i64> {
    let q = *x.basis().modulus(0);
    let divided = x.words().iter().zip(y.words()).map(|(x, y)| q.mul(*x, q.inv(*y).unwrap_or(0)));
    Poly::<Eval>::from_words(x.basis(), &divided.collect::<Vec<_>>()).unwrap().into_coeff().centered()
}

/// a(X^−1), with which a product has Σ of squares where a was.
fn adjoint(a: &[i64]) -> Vec<i64> {
    (0..a.len()).map(|i| if i == 0 { a[0] } else { -a[a.len() - i] }).collect()
}

/// ePrint 2020/1533: what everybody sees of a decryption is c_0 + c_1·s and noise. Without noise (c_0 + c_1·s − c_0)/c_1 is the secret, from one decryption. Whoever
/// encrypts knows e_1 of the error v·e_pk + e_1·s, and over a thousand decryptions its product with what is shown adds up to the secret, also under noise that is
/// too narrow. Under that of the least policy, here for an error of 1 and so narrower than any plan's, it does not.
#[test]
fn a_shown_sum_gives_the_secret_away_without_flooding() {
    const DECRYPTIONS: u64 = 1000;
    let params = params(2);
    let world = World::new(&params, 2, 0x31);
    let (public, secret) = (world.public(), world.secret());
    let flooding = Flooding::new(ReleasePolicy::new(2000, 20).unwrap(), 1.0).unwrap();
    let basis = params.q();
    let [b, a] = public.polys();
    let small = |x: &[i64]| Poly::<Coeff>::from_signed(basis, x).into_eval();
    let mut ledgers = [Memory::default(), Memory::default()];
    let (mut recovered, mut squares) = ([0, 0], 0);
    // Under the parties' noise, and under noise 2^12 times narrower.
    let mut sums = [[0i64; N]; 2];
    for i in 0..DECRYPTIONS {
        let (mut v, mut e1) = (vec![0; N], vec![0; N]);
        ternary(&mut Seed::from_bytes([0x31; 32]).stream(2 * i), &mut v);
        GaussianSampler::standard().sample(&mut Seed::from_bytes([0x31; 32]).stream(2 * i + 1), &mut e1);
        let (v, e1_adjoint) = (small(&v), small(&adjoint(&e1)));
        squares += e1.iter().map(|e| e * e).sum::<i64>();
        // An encryption of zero.
        let mut second = small(&e1);
        second.add_assign(&v.mul(a));
        let parts = vec![v.mul(b), second];
        let c = Ciphertext::from_parts(&params, world.session.key(), parts, 0).unwrap();
        let bare = sudare_rlwe::Decryptor::new(&secret).phase(&c, 0).unwrap();
        let opening = Opening::new(&world.session, &c, &[0, 1], flooding, (0, 1)).unwrap();
        let shares = [0, 1].map(|i| world.parties[i].decryption_share(&opening, &mut ledgers[i]).unwrap());
        let shown = opening.phase(opening.collector().all(&shares).unwrap()).unwrap();
        for (count, shown) in recovered.iter_mut().zip([&bare, &Poly::clone(&shown).into_eval()]) {
            *count += usize::from(quotient(&shown.sub(&c.parts()[0]), &c.parts()[1]) == secret.coefficients());
        }
        let narrow = unmasked(&bare, 2f64.sqrt() * flooding.deviation() / 4096.0, i);
        for (sum, shown) in sums.iter_mut().zip([Poly::clone(&shown).into_eval(), narrow]) {
            let product = shown.mul(&e1_adjoint).into_coeff().centered();
            sum.iter_mut().zip(product).for_each(|(sum, x)| *sum += x);
        }
    }
    assert_eq!(recovered, [DECRYPTIONS as usize, 0], "without noise, and with it");
    let [flooded, narrow] = sums.map(|sum| sum.map(|x| (x as f64 / squares as f64).round() as i64));
    assert_eq!(narrow.as_slice(), secret.coefficients(), "under narrow noise");
    let right = flooded.iter().zip(secret.coefficients()).filter(|(x, s)| x == s).count();
    assert!(right < N / 10, "under the policy's noise {right} coefficients of {N} are right");
}

/// ePrint 2024/116: in an exact scheme the sum before rounding shows the noise, and a known message makes it an equation for the secret.
fn before_rounding<S: Scheme>(number: u8) {
    let set = params(3);
    let params = IntegerParams::new(&set, 257).unwrap();
    let world = World::new(&set, 3, number);
    let (public, secret) = (world.public(), world.secret());
    let plain = Encoder::new(&params).encode_unsigned(&[1, 2, 3], Packing::Coefficients, Wrap::Refuse).unwrap();
    let policy = ReleasePolicy::new(2000, 20).unwrap();
    let mut ledgers: Vec<Memory> = (0..3).map(|_| Memory::default()).collect();
    let (mut recovered, mut squares, mut deviation) = ([0, 0], 0.0, 0.0);
    for _ in 0..1000 {
        let c = Encryptor::<S>::with_public_key(&params, &public).unwrap().encrypt(&plain).unwrap();
        let opened =
            sudare_exact::multiparty::SharedDecryption::new(&world.session, &c, c.noise(), &[0, 1, 2], policy).unwrap();
        let flooding = opened.flooding();
        let opening = Opening::new(&world.session, c.inner(), &[0, 1, 2], flooding, (0, 1)).unwrap();
        assert_eq!(opening.question(), opened.question());
        let shares = [0, 1, 2].map(|i| opened.share(&world.parties[i], &mut ledgers[i]).unwrap());
        assert_eq!(opened.combine(&shares).unwrap(), plain);
        let shown = opening.phase(opening.collector().all(&shares).unwrap()).unwrap();
        let bare = sudare_rlwe::Decryptor::new(&secret).phase(c.inner(), 0).unwrap();
        squares += shown.sub(&bare.to_coeff()).centered().iter().map(|x| (*x as f64).powi(2)).sum::<f64>();
        deviation = flooding.deviation();
        for (count, shown) in recovered.iter_mut().zip([bare, Poly::clone(&shown).into_eval()]) {
            *count += usize::from(quotient(&shown.sub(&c.parts()[0]), &c.parts()[1]) == secret.coefficients());
        }
    }
    assert_eq!(recovered, [1000, 0], "{}", S::NAME);
    // Any noise spoils this division; what is asked for is that of the policy, from each of three.
    let ratio = squares / (1000 * N) as f64 / (3.0 * deviation.powi(2));
    assert!((ratio - 1.0).abs() < 0.03, "{}: {ratio}", S::NAME);
}

#[test]
fn noise_before_rounding_gives_the_secret_away_without_flooding() {
    before_rounding::<Bfv>(0x32);
    before_rounding::<Bgv>(0x33);
}

/// The lattice of pairs (x, y) with y = ρ·x modulo q, reduced (Gauss); the shorter vector last.
fn reduced(rho: u64, q: u64) -> [[i128; 2]; 2] {
    let (mut a, mut b) = ([0i128, i128::from(q)], [1i128, i128::from(rho)]);
    let dot = |a: [i128; 2], b: [i128; 2]| a[0] as f64 * b[0] as f64 + a[1] as f64 * b[1] as f64;
    loop {
        if dot(a, a) < dot(b, b) {
            std::mem::swap(&mut a, &mut b);
        }
        let times = (dot(a, b) / dot(b, b)).round() as i128;
        if times == 0 {
            return [a, b];
        }
        a = [a[0] - times * b[0], a[1] - times * b[1]];
    }
}

/// Small (e, e') with e' − ρ·e = z: (0, z) less the closest vector of the lattice, by Babai's rounding.
fn small_solution([a, b]: [[i128; 2]; 2], z: i64) -> [i128; 2] {
    // The determinant is ±q, and z·x below 2^120.
    let determinant = a[0] * b[1] - a[1] * b[0];
    let rounded = |x: i128| (2 * x + determinant.abs()).div_euclid(2 * determinant.abs()) * determinant.signum();
    let (x, y) = (rounded(-i128::from(z) * b[0]), rounded(i128::from(z) * a[0]));
    [-(x * a[0] + y * b[0]), i128::from(z) - (x * a[1] + y * b[1])]
}

/// The value at `x` of the polynomial that is 1 at `of` and 0 at the other points: its Lagrange factor.
fn lagrange(q: &Modulus, points: &[u64], of: u64, x: u64) -> u64 {
    let others = || points.iter().filter(|k| **k != of);
    let product = |at: u64| others().fold(1, |acc, k| q.mul(acc, q.sub(at, *k)));
    q.mul(product(x), q.inv(product(of)).unwrap())
}

/// α of parties.
fn points(parties: &[u32]) -> Vec<u64> {
    parties.iter().map(|k| u64::from(*k) + 1).collect()
}

/// `count` of some parties.
fn choose(random: &mut Random, mut from: Vec<u32>, count: usize) -> Vec<u32> {
    while from.len() > count {
        from.remove(random.index(from.len()));
    }
    from
}

fn times(poly: &Poly<Eval>, factor: u64) -> Poly<Eval> {
    let mut out = poly.clone();
    out.mul_scalars(&[poly.basis().modulus(0).shoup(factor)]);
    out
}

/// What a party without zero-sum masks would answer: a product under noise.
fn unmasked(product: &Poly<Eval>, deviation: f64, seed: u64) -> Poly<Eval> {
    let mut noise = [0i128; N];
    WideGaussian::new(deviation).unwrap().sample(&mut Seed::from_bytes([0x36; 32]).stream(seed), &mut noise);
    product.add(&Poly::<Coeff>::from_wide(product.basis(), &noise).into_eval())
}

/// Two multiples of one polynomial x under noise, μ_0·x + e and μ_1·x + e': then e' − ρ·e is known modulo q for ρ = μ_1/μ_0. Where ρ is no quotient
/// of small numbers, a lattice of two dimensions gives e and e', and x follows.
struct TwoAnswers {
    factors: [u64; 2],
    lattice: [[i128; 2]; 2],
}

impl TwoAnswers {
    /// If noise of this width is no remedy.
    fn new(q: &Modulus, factors: [u64; 2], deviation: f64) -> Option<Self> {
        let lattice = reduced(q.mul(factors[1], q.inv(factors[0]).unwrap()), q.value());
        let shortest = (lattice[1][0] as f64).hypot(lattice[1][1] as f64);
        (shortest > 20.0 * deviation).then_some(Self { factors, lattice })
    }

    fn solve(&self, answers: [&Poly<Eval>; 2]) -> Poly<Eval> {
        let basis = answers[0].basis();
        let q = basis.modulus(0);
        let rho = q.mul(self.factors[1], q.inv(self.factors[0]).unwrap());
        let [y0, y1] = answers.map(|y| y.to_coeff());
        let x = y0.words().iter().zip(y1.words()).map(|(y0, y1)| {
            let [e, _] = small_solution(self.lattice, q.center(q.sub(*y1, q.mul(rho, *y0))));
            q.mul(q.sub(*y0, q.reduce_i64(e as i64)), q.inv(self.factors[0]).unwrap())
        });
        Poly::<Coeff>::from_words(basis, &x.collect::<Vec<_>>()).unwrap().into_eval()
    }
}

const PARTIES: u32 = 40;
const THRESHOLD: usize = 16;

/// ePrint 2024/194 and 2026/031: a party answers for one ciphertext to two sets, since a member of the first one failed. Both shares have
/// the same S(α_0)·c_1 times two Lagrange factors. With the many parties of a federation noise is no remedy as long as its square is below the
/// modulus ([`TwoAnswers`]). Here each share is under the zero-sum mask of its set, and the second answer is refused.
#[test]
fn a_second_set_of_parties_gives_the_secret_share_away() {
    let params = params(PARTIES);
    let world = World::new(&params, THRESHOLD as u32, 0x34);
    let public = world.public();
    let flooding = Flooding::new(ReleasePolicy::new(2000, 20).unwrap(), 1.0).unwrap();
    let q = *params.q().modulus(0);
    let mut random = Random(34);
    let (sets, attack) = loop {
        let sets = [(); 2].map(|()| [vec![0], choose(&mut random, (1..PARTIES).collect(), THRESHOLD - 1)].concat());
        let factors = sets.each_ref().map(|set| lagrange(&q, &points(set), 1, 0));
        if let Some(attack) = TwoAnswers::new(&q, factors, flooding.deviation()) {
            break (sets, attack);
        }
    };
    let share = world.share_of(0);
    let (mut ledger, mut stolen, mut refused) = (Memory::default(), [Vec::new(), Vec::new()], 0);
    for trial in 0..1000 {
        let c = encrypt(&params, &public);
        let open = |set: &Vec<u32>| Opening::new(&world.session, &c, set, flooding, (0, 1)).unwrap();
        let openings = sets.each_ref().map(open);
        // With the ledger.
        world.parties[0].decryption_share(&openings[0], &mut ledger).unwrap();
        let second = world.parties[0].decryption_share(&openings[1], &mut ledger);
        refused += usize::from(matches!(second, Err(PartyError::Answered { party: 0 })));
        if trial >= sized(3, 1000) {
            continue;
        }
        // Without masks, and with masks but no ledger.
        let bare = [0, 1].map(|i| {
            let product = times(&c.parts()[1].mul(&share), attack.factors[i]);
            unmasked(&product, flooding.deviation(), (2 * trial + i) as u64)
        });
        let masked = openings.each_ref().map(|opening| {
            let share = world.parties[0].decryption_share(opening, &mut Forgetful).unwrap();
            said(&world, &share, 0)
        });
        for (stolen, answers) in stolen.iter_mut().zip([bare, masked]) {
            stolen.push(quotient(&attack.solve(answers.each_ref()), &c.parts()[1]));
        }
    }
    assert_eq!(refused, 1000);
    let share = share.into_coeff().centered();
    assert!(stolen[0].iter().all(|found| *found == share), "without masks: the same share each time");
    assert!(stolen[1].iter().all(|found| *found != share), "with masks");
}

/// Fewer parties than the threshold, not all of whom are asked, see the answers of two others. S has degree t − 1, so with the shares of t − 1 each other
/// S(α_j) is a known multiple of s and a known summand: two answers of **one** decryption or refresh are two multiples of c_1·s under noise. No ledger
/// could refuse that. Zero-sum masks leave the sum of both alone.
#[test]
fn one_answer_gives_the_secret_to_fewer_than_the_threshold() {
    let params = params(PARTIES);
    let world = World::new(&params, THRESHOLD as u32, 0x36);
    let (public, secret) = (world.public(), world.secret());
    let q = *params.q().modulus(0);
    let flooding = Flooding::new(ReleasePolicy::new(2000, 20).unwrap(), 1.0).unwrap();
    let mut random = Random(36);
    // Who works together, who is asked, and two of those. (Where some are both, factors cancel and fewer are large; one that is not asked is enough
    // for the least noise, that of a refresh.)
    let (corrupted, active, honest, attack) = loop {
        let corrupted = choose(&mut random, (0..PARTIES).collect(), THRESHOLD - 1);
        let others: Vec<u32> = (0..PARTIES).filter(|i| !corrupted.contains(i)).collect();
        let active = choose(&mut random, others, THRESHOLD);
        let honest = choose(&mut random, active.clone(), 2);
        let nodes = [vec![0], points(&corrupted)].concat();
        let factors = [0, 1].map(|i| {
            let alpha = u64::from(honest[i]) + 1;
            q.mul(lagrange(&q, &points(&active), alpha, 0), lagrange(&q, &nodes, 0, alpha))
        });
        if let Some(attack) = TwoAnswers::new(&q, factors, flooding.deviation()) {
            break (corrupted, active, honest, attack);
        }
    };
    let nodes = [vec![0], points(&corrupted)].concat();
    let known: Vec<(u64, Poly<Eval>)> = corrupted.iter().map(|k| (u64::from(*k) + 1, world.share_of(*k))).collect();
    // λ_j·S(α_j), and its part that the corrupted ones know.
    let weights = [0, 1].map(|i| {
        let alpha = u64::from(honest[i]) + 1;
        let lambda = lagrange(&q, &points(&active), alpha, 0);
        let mut part = Poly::<Eval>::zero(params.q());
        known.iter().for_each(|(node, share)| part.add_assign(&times(share, lagrange(&q, &nodes, *node, alpha))));
        [&world.share_of(honest[i]), &part].map(|poly| times(poly, lambda))
    });
    let steal = |times: &Poly<Eval>, answers: [Poly<Eval>; 2]| {
        let left = [0, 1].map(|i| answers[i].sub(&times.mul(&weights[i][1])));
        quotient(&attack.solve(left.each_ref()), times) == secret.coefficients()
    };
    let bare = |times: &Poly<Eval>, deviation: f64, trial: u64| {
        [0, 1].map(|i| unmasked(&times.mul(&weights[i][0]), deviation, 2 * trial + i as u64))
    };
    let (trials, mut found) = (sized(3, 50), [[0; 2]; 2]);
    for trial in 0..trials {
        let c = encrypt(&params, &public);
        let c1 = &c.parts()[1];
        let opening = Opening::new(&world.session, &c, &active, flooding, (0, 1)).unwrap();
        let masked = [0, 1].map(|i| {
            let share = world.parties[honest[i] as usize].decryption_share(&opening, &mut Forgetful).unwrap();
            said(&world, &share, 0)
        });
        found[0][0] += usize::from(steal(c1, bare(c1, flooding.deviation(), trial as u64)));
        found[0][1] += usize::from(steal(c1, masked));
        // The parts of a refresh's share add to (c_1 − a)·w_j and two errors (σ = 4.5; here 20).
        let refreshing = Refreshing::new(&world.session, &c, &active, "none", None).unwrap();
        let a = refreshing.ciphertext(Poly::zero(params.q())).unwrap().parts()[1].clone();
        let difference = c1.sub(&a);
        let none = || [(); 2].map(|()| Zeroizing::new(Poly::<Eval>::zero(params.q())));
        let masked = [0, 1].map(|i| {
            let party = &world.parties[honest[i] as usize];
            let share = party.refresh_share(&refreshing, none, &mut Forgetful).unwrap();
            said(&world, &share, 0).add(&said(&world, &share, 1))
        });
        found[1][0] += usize::from(steal(&difference, bare(&difference, 20.0, (trials + trial) as u64)));
        found[1][1] += usize::from(steal(&difference, masked));
    }
    assert_eq!(found, [[trials, 0]; 2]);
}

/// A polynomial of a share over the first primes: what a listener reads off the message.
fn said<K: Kind>(world: &World, share: &Share<K>, segment: usize) -> Poly<Eval> {
    let bytes = share.to_bytes().unwrap();
    let segment = Container::from_bytes(&bytes).unwrap().segment(segment).unwrap().to_vec();
    unpack(world.session.params().q(), &segment, 0).unwrap()
}

/// ePrint 2025/409: a message is lost and asked for again. Shares of the same product under fresh noise average it away (here of σ = 20, so
/// that 2^15 answers are enough; any width falls to its square), and the secret follows. A share that is the same bytes again says
/// nothing new.
#[test]
fn repeated_answers_with_fresh_noise_average_it_away() {
    let params = params(2);
    let world = World::new(&params, 2, 0x35);
    let public = world.public();
    let c = encrypt(&params, &public);
    let q = *params.q().modulus(0);
    let secret = world.secret_of(0);
    let product = {
        let s = Poly::<Coeff>::from_signed(params.q(), &secret).into_eval();
        c.parts()[1].mul(&s).into_coeff()
    };
    // A party without the remedy: c_1·s under fresh noise, again and again. The listener adds what it hears, less the first answer.
    let sampler = WideGaussian::new(20.0).unwrap();
    let answer = |i: u64| {
        let mut noise = [0i128; N];
        sampler.sample(&mut Seed::from_bytes([0x35; 32]).stream(i), &mut noise);
        product.add(&Poly::<Coeff>::from_wide(params.q(), &noise))
    };
    let first = answer(0);
    let (times, mut sum) = (1 << 15, [0i64; N]);
    for i in 1..times {
        let heard = answer(i).sub(&first);
        sum.iter_mut().zip(heard.words()).for_each(|(sum, x)| *sum += q.center(*x));
    }
    let mean = sum.map(|x| (x as f64 / times as f64).round() as i64);
    let found = first.add(&Poly::<Coeff>::from_signed(params.q(), &mean)).into_eval();
    assert_eq!(quotient(&found, &c.parts()[1]), secret);
    assert_ne!(quotient(&first.into_eval(), &c.parts()[1]), secret, "one answer does not give it");
    let policy = ReleasePolicy::new(1, 20).unwrap();
    let flooding = Flooding::new(policy, 1.0).unwrap();
    let opening = Opening::new(&world.session, &c, &[0, 1], flooding, (0, 1)).unwrap();
    // With the remedy every answer is the same, and any other is refused.
    let mut ledger = Memory::default();
    let first = said(&world, &world.parties[0].decryption_share(&opening, &mut ledger).unwrap(), 0);
    for _ in 0..1000 {
        let again = world.parties[0].decryption_share(&opening, &mut ledger).unwrap();
        assert_eq!(said(&world, &again, 0).words(), first.words());
    }
    let wider = Flooding::new(ReleasePolicy::new(2, 20).unwrap(), 1.0).unwrap();
    let other = Opening::new(&world.session, &c, &[0, 1], wider, (0, 1)).unwrap();
    let refused = world.parties[0].decryption_share(&other, &mut ledger).map(drop);
    assert_eq!(refused, Err(PartyError::Answered { party: 0 }));
}
