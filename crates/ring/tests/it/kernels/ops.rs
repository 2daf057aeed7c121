//! Operations on whole polynomials: fused ones against their parts, both forms against each other, one thread
//! against several, divisions against big integers.

use num_bigint::{BigInt, BigUint};
use std::slice::from_ref;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::convert::BasisConverter;
use sudare_ring::ops::{self, Digits, Division, Ending, Image, PeriodicPoly, PolyPairs, RnsGadget, Root, mask};
use sudare_ring::prime::ntt_primes;
use sudare_ring::random::Seed;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis, Threads};

const N: usize = 512;

fn bases(q: &[u32], p: &[u32]) -> (RnsBasis, RnsBasis) {
    let mut taken = Vec::new();
    let mut pick = |bits: &[u32]| {
        let primes: Vec<u64> = bits
            .iter()
            .map(|bits| {
                taken.push(ntt_primes(N, *bits, 1, &taken).unwrap()[0]);
                taken[taken.len() - 1]
            })
            .collect();
        RnsBasis::new(N, &primes).unwrap()
    };
    (pick(q), pick(p))
}

fn random(basis: &RnsBasis, index: u64) -> Poly<Eval> {
    mask(basis, &Seed::from_bytes([7; 32]).derive_mask("operations", 0), index)
}

fn assert_same(found: &[Poly<Eval>], wanted: &[Poly<Eval>]) {
    assert!(found.len() == wanted.len() && found.iter().zip(wanted).all(|(x, y)| x.words() == y.words()));
}

#[test]
fn fused_products_are_their_parts() {
    for (q_bits, p_bits, digit) in [(vec![60, 40, 40, 45], vec![61], 1), (vec![49; 5], vec![49, 50], 2)] {
        let (q, p) = bases(&q_bits, &p_bits);
        // Pairs of a level above, of which the gadget leaves out a prime.
        let whole = RnsGadget::new(&q, &p, digit).unwrap();
        let low = q.prefix(q.len() - 1);
        let gadget = RnsGadget::new(&low, &p, digit).unwrap();
        let pairs = |salt: u64| {
            let half = |part: u64| -> Vec<_> {
                (0..whole.digits() as u64).map(|j| random(whole.qp(), 100 * salt + 10 * part + j)).collect()
            };
            PolyPairs::new(&half(0), &half(1))
        };
        let (key, other) = (pairs(1), pairs(2));
        let [c0, c1, c2] = [1, 2, 3].map(|i| random(&low, i));

        let digits = gadget.decompose(&c2);
        let mut wanted = gadget.product(&digits, &key);
        assert_same(&gadget.switch(&c2, None, &key), &wanted);
        assert_same(&gadget.switch(&c2.clone().into_coeff(), None, &key), &wanted);
        let many = gadget.switch_many(&[&c1, &c2], &[], &key);
        assert_same(&many[1], &wanted);
        let permutation = EvalPermutation::new(N, 5).unwrap();
        assert_turned(&gadget, [&c0, &c1, &c2], Image { pairs: &key, permutation: &permutation });
        let images = [Some(Image { pairs: &key, permutation: &permutation }), None];
        let sum = gadget.sum_of_images([&c0, &c1], &digits, &images);
        let in_threads = Threads::new(3).run(|| gadget.sum_of_images([&c0, &c1], &digits, &images));
        assert_same(&in_threads, &sum);
        assert_same(&Threads::new(3).run(|| gadget.switch(&c2, None, &key)), &wanted);

        let mut image = wanted.clone();
        gadget.add_scaled(&mut image[0], &c0);
        let mut image = image.map(|c| c.permuted(&permutation));
        gadget.add_scaled(&mut image[0], &c0);
        gadget.add_scaled(&mut image[1], &c1);
        assert_same(&sum, &image);

        gadget.add_scaled(&mut wanted[0], &c0);
        gadget.add_scaled(&mut wanted[1], &c1);
        assert_same(&gadget.switch(&c2, Some([&c0, &c1]), &key), &wanted);
        assert_divided(&gadget, [&c0, &c1, &c2], [&other, &key], &p);
    }
}

/// Images that are divided together, and images of products, against their parts: rows of several parts, one thread and several.
#[test]
fn sums_of_images_are_their_parts() {
    let n = 8192;
    let primes = |bits, count| RnsBasis::new(n, &ntt_primes(n, bits, count, &[]).unwrap()).unwrap();
    let (q, p) = (primes(45, 3), primes(49, 1));
    let gadget = RnsGadget::new(&q, &p, q.len()).unwrap();
    let division = Division::new(&q, &p).unwrap();
    let pairs = |i: u64| PolyPairs::new(&[random(gadget.qp(), 10 + i)], &[random(gadget.qp(), 20 + i)]);
    let keys: Vec<PolyPairs> = (0..4).map(pairs).collect();
    let permutations = [1, 5, 2 * n as u64 - 1, 4099].map(|element| EvalPermutation::new(n, element).unwrap());
    let images: Vec<Image<'_>> =
        keys.iter().zip(&permutations).map(|(pairs, permutation)| Image { pairs, permutation }).collect();
    let digits = Digits::of(vec![random(gadget.qp(), 1)]);
    let mut wanted = [Poly::zero(gadget.qp()), Poly::zero(gadget.qp())];
    for image in &images {
        let product = gadget.product(&digits, image.pairs);
        wanted.iter_mut().zip(&product).for_each(|(sum, x)| sum.add_assign(&x.permuted(image.permutation)));
    }
    let wanted = division.apply(wanted);
    assert_same(&gadget.images_divided(&digits, &images, &division), &wanted);
    assert_same(&Threads::new(3).run(|| gadget.images_divided(&digits, &images, &division)), &wanted);

    let c = random(&q, 2);
    let rows = [2, 64, 1024, n].map(|words| {
        let coefficients: Vec<f64> = (0..words).map(|j| (j as f64).sin() * 1e12).collect();
        PeriodicPoly::rounded(gadget.qp(), &coefficients)
    });
    let terms: Vec<_> = rows.iter().zip(&permutations).collect();
    let mut wanted = Poly::zero(&q);
    for (row, permutation) in &terms {
        wanted.add_assign(&c.mul(&row.to_poly(&q)).permuted(permutation));
    }
    let found = [ops::images_of_products(&c, &terms), Threads::new(3).run(|| ops::images_of_products(&c, &terms))];
    assert_same(&found, &[wanted.clone(), wanted]);
}

/// Images of a root with c_0 over Q and over Q·P, alone and added to a sum, against product, sum and permutation; one
/// thread and several.
fn assert_turned(gadget: &RnsGadget, [c0, c1, c2]: [&Poly<Eval>; 3], image: Image<'_>) {
    let (digits, extended) = (gadget.decompose(c2), random(gadget.qp(), 9));
    let mut scaled = Poly::zero(gadget.qp());
    gadget.add_scaled(&mut scaled, c0);
    for (first, c0) in [(&scaled, c0), (&extended, &extended)] {
        let [mut x, y] = gadget.product(&digits, image.pairs);
        x.add_assign(first);
        let wanted = [x, y].map(|c| c.permuted(image.permutation));
        let root = Root { c0, c1: c2, digits: &digits };
        assert_same(&gadget.image(&root, &image), &wanted);
        assert_same(&Threads::new(2).run(|| gadget.image(&root, &image)), &wanted);
        let batch = [[&extended, c1], [first, c2]];
        assert_same(&gadget.turn_many(&batch, &image, None)[1], &wanted);
        let sums = || [1, 2].map(|i| [random(gadget.qp(), 10 + i), random(gadget.qp(), 20 + i)]).to_vec();
        let [u, v] = [0, 1].map(|k| sums()[1][k].add(&wanted[k]));
        assert_same(&gadget.turn_many(&batch, &image, Some(sums()))[1], &[u.clone(), v.clone()]);
        assert_same(&Threads::new(3).run(|| gadget.turn_many(&batch, &image, Some(sums())))[1], &[u, v]);
    }
}

/// What is divided on the way, against a product and a division: by P, by P and the last prime, in both forms, by one
/// thread and several.
fn assert_divided(gadget: &RnsGadget, [c0, c1, c2]: [&Poly<Eval>; 3], [other_key, key]: [&PolyPairs; 2], p: &RnsBasis) {
    let (q, permutation) = (gadget.q(), EvalPermutation::new(c2.degree(), 5).unwrap());
    let less = q.len() - 1;
    let by_p = Division::new(q, p).unwrap();
    let by_more = Division::new(&q.prefix(less), &q.select([less]).concat(p).unwrap()).unwrap();
    let turned = Ending { division: &by_p, plus: None, image: Some((c0, &permutation)) };
    let [x, y] = gadget.switch(c2, None, key);
    let [x, y] = by_p.apply([x, y]);
    let wanted = [x.add(c0), y].map(|c| c.permuted(&permutation));
    assert_same(&gadget.switch_divided(c2, key, &turned), &wanted);
    assert_same(&gadget.switch_divided(&c2.clone().into_coeff(), key, &turned), &wanted);
    assert_same(&Threads::new(3).run(|| gadget.switch_divided(c2, key, &turned)), &wanted);
    let (digits, plain) = (gadget.decompose(c2), Ending { image: None, ..turned });
    let products = || gadget.products_divided(&digits, &[(other_key, plain), (key, turned)]);
    assert_same(&products()[1], &wanted);
    assert_same(&products()[0], &by_p.apply(gadget.product(&digits, other_key)));
    assert_same(&Threads::new(3).run(products)[1], &wanted);
    let summed = Ending { division: &by_more, plus: Some([c0, c1]), image: None };
    let wanted = by_more.apply(gadget.switch(c2, Some([c0, c1]), key));
    assert_same(&gadget.switch_divided(c2, key, &summed), &wanted);
    let other = Ending { plus: None, ..summed };
    assert_same(&gadget.switch_divided_many(&[(c1, other), (c2, summed)], key)[1], &wanted);
    assert_same(&Threads::new(2).run(|| gadget.switch_divided(c2, key, &summed)), &wanted);
}

/// Digits of two primes at a usual degree: key switching against its steps, polynomial after polynomial.
#[test]
fn key_switching_is_its_steps() {
    let n = 1 << 14;
    let mut primes = ntt_primes(n, 60, 1, &[]).unwrap();
    primes.extend(ntt_primes(n, 40, 3, &[]).unwrap());
    let (q, p) = (RnsBasis::new(n, &primes).unwrap(), RnsBasis::new(n, &ntt_primes(n, 49, 2, &[]).unwrap()).unwrap());
    let gadget = RnsGadget::new(&q, &p, 2).unwrap();
    let half = |salt: u64| -> Vec<_> { (0..2).map(|j| random(gadget.qp(), salt + j)).collect() };
    let (b, a) = (half(10), half(20));
    let key = PolyPairs::new(&b, &a);
    let [c0, c1, c2] = [1, 2, 3].map(|i| random(&q, i));
    for element in [5, 2 * n as u64 - 1, 25] {
        let permutation = EvalPermutation::new(n, element).unwrap();
        assert_turned(&gadget, [&c0, &c1, &c2], Image { pairs: &key, permutation: &permutation });
    }
    // Digit by digit, by whole conversions and whole transforms.
    let coefficients = c2.to_coeff();
    let digits: Vec<Poly<Eval>> = (0..2)
        .map(|j| {
            let converter = BasisConverter::new(&q.select(2 * j..2 * j + 2), gadget.qp());
            let mut lifted = Poly::<Coeff>::dirty(gadget.qp());
            let words = &coefficients.words()[2 * j * n..(2 * j + 2) * n];
            let mut rows = words.to_vec();
            let prepared = converter.prepare(&mut rows, true);
            for t in 0..gadget.qp().len() {
                match (2 * j..2 * j + 2).contains(&t) {
                    true => lifted.limb_mut(t).copy_from_slice(coefficients.limb(t)),
                    false => converter.finish(&prepared, t, lifted.limb_mut(t)),
                }
            }
            lifted.into_eval()
        })
        .collect();
    let of = |half: &[Poly<Eval>]| digits[0].mul(&half[0]).add(&digits[1].mul(&half[1]));
    let wanted = [of(&b), of(&a)];
    assert_same(&gadget.switch(&c2, None, &key), &wanted);
    assert_same(&gadget.product(&gadget.decompose(&c2), &key), &wanted);
    assert_divided(&gadget, [&c0, &c1, &c2], [&key, &key], &p);
    let division = Division::new(&q, &p).unwrap();
    let [x, y] = wanted;
    let [coefficients] = division.apply([x.clone().into_coeff()]);
    assert_same(&division.apply([x, y])[..1], &[coefficients.into_eval()]);
}

#[test]
fn divisions_agree_and_round() {
    for (kept_bits, tail_bits) in [(vec![45, 60, 40], vec![50]), (vec![49, 30], vec![47, 61, 40])] {
        let (kept, tail) = bases(&kept_bits, &tail_bits);
        let all = kept.concat(&tail).unwrap();
        let division = Division::new(&kept, &tail).unwrap();
        let (c, b) = (random(&all, 1), random(&all, 2));
        let [wanted] = division.apply([c.clone()]);
        let [coefficients] = division.apply([c.clone().into_coeff()]);
        assert_same(
            &[coefficients.clone().into_eval(), division.apply_by_columns(c.clone())],
            &[wanted.clone(), wanted.clone()],
        );
        let mut rest = Poly::<Eval>::dirty(&tail);
        (0..tail.len()).for_each(|i| rest.limb_mut(i).copy_from_slice(c.limb(kept.len() + i)));
        assert_same(&division.apply_to_parts([c.truncated(kept.len())], [rest]), from_ref(&wanted));
        if tail.len() == 1 {
            assert_same(&division.of(from_ref(&c)), from_ref(&wanted));
            assert_same(&division.of_products(from_ref(&c), &b), &division.apply([c.mul(&b)]));
        }

        let divisor = BigInt::from(tail.product());
        let (c, modulus) = (c.into_coeff(), all.product());
        for k in 0..8 {
            let value = BigInt::from(composed(&c, k, &modulus));
            let low = BigUint::from(coefficients.limb(0)[k]);
            // Within half a unit, and one for the estimate of the quotient.
            let found = (0..3i32).map(|e| (&value + &divisor / 2 + (e - 1) * &divisor) / &divisor);
            let q = BigInt::from(kept.limb(0).q());
            assert!({ found }.any(|x| ((x % &q) + &q) % &q == BigInt::from(low.clone())), "coefficient {k}");
        }
    }
}

/// Coefficient k in [0, modulus), by the Chinese remainder theorem.
fn composed(c: &Poly<Coeff>, k: usize, modulus: &BigUint) -> BigUint {
    let term = |i: usize| {
        let m = c.basis().limb(i).modulus();
        let hat = modulus / m.value();
        let residue = u64::try_from(&hat % m.value()).unwrap();
        hat * m.mul(m.inv(residue).unwrap(), c.limb(i)[k])
    };
    (0..c.basis().len()).map(term).sum::<BigUint>() % modulus
}

#[test]
fn tensors_phases_and_longer_operands() {
    let (basis, more) = bases(&[45, 60], &[50]);
    let all = basis.concat(&more).unwrap();
    let [a0, a1, b0, b1] = [1, 2, 3, 4].map(|i| random(&all, i));
    let parts = ops::tensor(&basis, &[[&a0, &a1], [&b0, &a1]], &[[&b0, &b1], [&a1, &b1]]);
    let short = |p: &Poly<Eval>| p.truncated(2);
    let [x0, x1, y0, y1] = [&a0, &a1, &b0, &b1].map(short);
    let middle = [x0.mul(&y1), x1.mul(&y0), y0.mul(&y1), x1.mul(&x1)];
    let wanted = [x0.mul(&y0).add(&y0.mul(&x1)), sum(&middle), x1.mul(&y1).add(&x1.mul(&y1))];
    assert_same(&parts, &wanted);

    // Onto sums: of one product, of several.
    let start = [5, 6, 7].map(|i| random(&basis, i));
    let mut acc = start.clone();
    ops::tensor_add(&basis, &mut acc, &[[&a0, &a1], [&b0, &a1]], &[[&b0, &b1], [&a1, &b1]]);
    let onto: Vec<_> = start.iter().zip(&wanted).map(|(s, w)| s.add(w)).collect();
    assert_same(&acc, &onto);
    ops::tensor_add(&basis, &mut acc, &[[&a0, &b1]], &[[&b0, &a1]]);
    let more = ops::tensor(&basis, &[[&a0, &b1]], &[[&b0, &a1]]);
    assert_same(&acc, &onto.iter().zip(&more).map(|(s, w)| s.add(w)).collect::<Vec<_>>());

    // Several lists, and so many terms that a pass takes some of the words.
    let many: Vec<[&Poly<Eval>; 2]> = [[&a0, &b1], [&b0, &a1]].into_iter().cycle().take(300).collect();
    let lists = [&many[..], &[[&a1, &b0]; 300]];
    let found = ops::tensors(&basis, &lists, &many);
    for (list, found) in lists.iter().zip(&found) {
        let mut wanted = [0; 3].map(|_| Poly::<Eval>::zero(&basis));
        list.iter().zip(&many).for_each(|(x, y)| ops::tensor_add(&basis, &mut wanted, &[*x], &[*y]));
        assert_same(found, &wanted);
    }

    // c_0 + s·(c_1 + s·c_2), s over more primes.
    let phase = ops::phase(&wanted, &a0, 2);
    let horner = wanted[2].mul(&x0).add(&wanted[1]).mul(&x0).add(&wanted[0]);
    assert_same(&[phase], &[horner]);
    for parts in 0..=3 {
        let found = ops::phase_coefficients(&wanted[..parts], &a0, 2);
        assert_eq!(found.words(), ops::phase(&wanted[..parts], &a0, 2).into_coeff().words(), "{parts} parts");
    }
    assert_eq!(a0.first_to_coeff(1).words(), a0.truncated(1).into_coeff().words());
    let mut difference = x0.clone();
    difference.mul_sub(&a1, &b1);
    assert_same(&[difference], &[x0.sub(&x1.mul(&y1))]);
}

fn sum(list: &[Poly<Eval>]) -> Poly<Eval> {
    list[1..].iter().fold(list[0].clone(), |acc, x| acc.add(x))
}

#[test]
fn only_calls_from_outside_are_counted() {
    let (basis, tail) = bases(&[45, 40], &[50]);
    let before = ops::crossings();
    let a = random(&basis.concat(&tail).unwrap(), 1);
    drop(Division::new(&basis, &tail).unwrap().apply([a.clone(), a]));
    assert_eq!(ops::crossings() - before, 2);
}
