//! Published attacks on several parties' decryptions: each works where its remedy is left out, and fails where it is not.

use super::world::{Forgetful, Memory, World, shared};
use crate::world::literal;
use sudare_he::ckks::Params;
use sudare_he::integer::{Encoder, Encryptor, IntegerParams, Packing, Scheme, Wrap};
use sudare_he::{bfv::Bfv, bgv::Bgv};
use sudare_ring::modulus::Modulus;
use sudare_ring::random::{Seed, WideGaussian};
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::keys::PublicKey;
use sudare_rlwe::multiparty::{Flooding, Opening, PartyError};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::{Ciphertext, Encryptor as RawEncryptor, Message};
use sudare_testkit::{Random, sized};

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

/// ePrint 2020/1533: what everybody sees of a decryption is c_0 + c_1·s and noise. Without noise (c_0 + c_1·s − c_0)/c_1 is the secret;
/// under the noise of the least policy it is not, a thousand times of a thousand.
#[test]
fn a_shown_sum_gives_the_secret_away_without_flooding() {
    let params = params(2);
    let world = World::new(&params, 2, 0x31);
    let (public, secret) = (world.public(), world.secret());
    let flooding = Flooding::new(ReleasePolicy::new(2000, 20).unwrap(), 1000.0).unwrap();
    let mut ledgers = [Memory::default(), Memory::default()];
    let mut recovered = [0, 0];
    for _ in 0..1000 {
        let c = encrypt(&params, &public);
        let bare = sudare_rlwe::Decryptor::new(&secret).phase(&c, 0).unwrap();
        let opening = Opening::new(&world.session, &c, &[0, 1], flooding, (0, 1)).unwrap();
        let shares = [0, 1].map(|i| world.parties[i].decryption_share(&opening, &mut ledgers[i]).unwrap());
        let shown = opening.phase(opening.collector().all(&shares).unwrap()).unwrap();
        for (count, shown) in recovered.iter_mut().zip([bare, Poly::clone(&shown).into_eval()]) {
            *count += usize::from(quotient(&shown.sub(&c.parts()[0]), &c.parts()[1]) == secret.coefficients());
        }
    }
    assert_eq!(recovered, [1000, 0]);
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
    let mut recovered = [0, 0];
    for _ in 0..1000 {
        let c = Encryptor::<S>::with_public_key(&params, &public).unwrap().encrypt(&plain).unwrap();
        let opened =
            sudare_he::integer::multiparty::SharedDecryption::new(&world.session, &c, c.noise(), &[0, 1, 2], policy)
                .unwrap();
        let flooding = opened.flooding();
        let opening = Opening::new(&world.session, c.inner(), &[0, 1, 2], flooding, (0, 1)).unwrap();
        assert_eq!(opening.question(), opened.question());
        let shares = [0, 1, 2].map(|i| opened.share(&world.parties[i], &mut ledgers[i]).unwrap());
        assert_eq!(opened.combine(&shares).unwrap(), plain);
        let shown = opening.phase(opening.collector().all(&shares).unwrap()).unwrap();
        let bare = sudare_rlwe::Decryptor::new(&secret).phase(c.inner(), 0).unwrap();
        for (count, shown) in recovered.iter_mut().zip([bare, Poly::clone(&shown).into_eval()]) {
            *count += usize::from(quotient(&shown.sub(&c.parts()[0]), &c.parts()[1]) == secret.coefficients());
        }
    }
    assert_eq!(recovered, [1000, 0], "{}", S::NAME);
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

/// Party 0's Lagrange factor in a set.
fn lagrange(q: &Modulus, set: &[u32]) -> u64 {
    // α is 1 for party 0 and k + 1 for party k.
    let others = || set.iter().filter(|k| **k != 0).map(|k| u64::from(*k));
    let [above, below] = [others().fold(1, |acc, k| q.mul(acc, k + 1)), others().fold(1, |acc, k| q.mul(acc, k))];
    q.mul(above, q.inv(below).unwrap())
}

/// A set of `count` parties with party 0.
fn set_of(random: &mut Random, parties: u32, count: usize) -> Vec<u32> {
    let mut set = std::collections::BTreeSet::from([0]);
    while set.len() < count {
        set.insert(random.below(parties.into()) as u32);
    }
    set.into_iter().collect()
}

/// ePrint 2024/194 and 2026/031: a party answers for one ciphertext to two sets, since a member of the first one failed. Both shares have
/// the same S(α_0)·c_1 times two Lagrange factors λ and λ', and noise: e' − (λ'/λ)·e is known modulo q. With the many parties of a
/// federation λ'/λ is no quotient of small numbers, so that a lattice of two dimensions gives e and e', and S(α_0) follows. (Of three
/// parties it is: then two answers give a linear relation of the noise, which is too much as well.) Noise is no remedy as long as its
/// square is below the modulus; here the second answer is refused.
#[test]
fn a_second_set_of_parties_gives_the_secret_share_away() {
    const PARTIES: u32 = 40;
    const THRESHOLD: usize = 16;
    let params = params(PARTIES);
    let world = World::new(&params, THRESHOLD as u32, 0x34);
    let public = world.public();
    let flooding = Flooding::new(ReleasePolicy::new(2000, 20).unwrap(), 1.0).unwrap();
    let q = *params.q().modulus(0);
    let mut random = Random(34);
    let (sets, factors, lattice) = loop {
        let sets = [(); 2].map(|()| set_of(&mut random, PARTIES, THRESHOLD));
        let factors = sets.each_ref().map(|set| lagrange(&q, set));
        let lattice = reduced(q.mul(factors[1], q.inv(factors[0]).unwrap()), q.value());
        if (lattice[1][0] as f64).hypot(lattice[1][1] as f64) > 20.0 * flooding.deviation() {
            break (sets, factors, lattice);
        }
    };
    let rho = q.mul(factors[1], q.inv(factors[0]).unwrap());
    let (mut ledger, mut stolen, mut refused) = (Memory::default(), Vec::new(), 0);
    for trial in 0..1000 {
        let c = encrypt(&params, &public);
        let open = |set: &Vec<u32>| Opening::new(&world.session, &c, set, flooding, (0, 1)).unwrap();
        let openings = sets.each_ref().map(open);
        // With the remedy.
        world.parties[0].decryption_share(&openings[0], &mut ledger).unwrap();
        let second = world.parties[0].decryption_share(&openings[1], &mut ledger);
        refused += usize::from(matches!(second, Err(PartyError::Answered { party: 0 })));
        if trial >= sized(3, 1000) {
            continue;
        }
        // Without.
        let [y0, y1] = openings.each_ref().map(|opening| {
            single(&world, opening, &world.parties[0].decryption_share(opening, &mut Forgetful).unwrap())
        });
        let product = y0.words().iter().zip(y1.words()).map(|(y0, y1)| {
            let [e, _] = small_solution(lattice, q.center(q.sub(*y1, q.mul(rho, *y0))));
            q.mul(q.sub(*y0, q.reduce_i64(e as i64)), q.inv(factors[0]).unwrap())
        });
        let product = Poly::<Coeff>::from_words(params.q(), &product.collect::<Vec<_>>()).unwrap().into_eval();
        stolen.push(quotient(&product, &c.parts()[1]));
    }
    assert_eq!(refused, 1000);
    // The same share of the secret each time, which is no chance.
    assert!(stolen.windows(2).all(|pair| pair[0] == pair[1]), "the attack finds one and the same share");
    // Whoever has it decrypts with a party less than the threshold.
    let c = encrypt(&params, &public);
    let opening = Opening::new(&world.session, &c, &sets[0], flooding, (0, 1)).unwrap();
    let mut sum = Poly::<Coeff>::from_signed(params.q(), &stolen[0]).into_eval();
    sum.mul_scalars(&[q.shoup(factors[0])]);
    sum.mul_assign(&c.parts()[1]);
    sum.add_assign(&c.parts()[0]);
    for other in &sets[0][1..] {
        let share = world.parties[*other as usize].decryption_share(&opening, &mut Forgetful).unwrap();
        sum.add_assign(&single(&world, &opening, &share).into_eval());
    }
    let off = sum.into_coeff().centered().into_iter().map(|x| (x - (1 << 40)).abs()).max().unwrap();
    assert!(off < 1 << 30, "{off}");
}

/// A share's polynomial: what a listener reads off the message.
fn single(world: &World, opening: &Opening, share: &sudare_rlwe::multiparty::DecryptionShare) -> Poly<Coeff> {
    use sudare_rlwe::wire::{Container, Wire, packing::unpack};
    let bytes = share.to_bytes().unwrap();
    let segment = Container::from_bytes(&bytes).unwrap().segment(0).unwrap().to_vec();
    assert_eq!(opening.question(), share.answers());
    unpack(world.session.params().q(), &segment, 0).unwrap().into_coeff()
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
    let first = single(&world, &opening, &world.parties[0].decryption_share(&opening, &mut ledger).unwrap());
    for _ in 0..1000 {
        let again = world.parties[0].decryption_share(&opening, &mut ledger).unwrap();
        assert_eq!(single(&world, &opening, &again).words(), first.words());
    }
    let wider = Flooding::new(ReleasePolicy::new(2, 20).unwrap(), 1.0).unwrap();
    let other = Opening::new(&world.session, &c, &[0, 1], wider, (0, 1)).unwrap();
    let refused = world.parties[0].decryption_share(&other, &mut ledger).map(drop);
    assert_eq!(refused, Err(PartyError::Answered { party: 0 }));
}
