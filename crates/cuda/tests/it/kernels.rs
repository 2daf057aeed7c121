//! Every kernel against the processor's ring, every word: primes of 30 to 61 bits, residues at the edges, all degrees.

use crate::support;

use sudare_cuda::{Batch, CudaError, Device, Division, Gadget, Pairs, Trial};
use sudare_ring::automorphism::{EvalPermutation, conjugation_element, rotation_element};
use sudare_ring::{Coeff, Eval, Poly, RnsBasis, ops};
use support::*;

/// Widths around every border between families, and the extremes.
const WIDTHS: [u32; 12] = [30, 36, 40, 45, 47, 48, 49, 50, 51, 55, 60, 61];

/// A device that has doubles, and one that has few: words transform every prime there.
fn devices() -> [Device; 2] {
    [true, false].map(|doubles| Device::emulator(Trial { doubles, ..Trial::default() }, ROOM))
}

#[test]
fn transforms_of_every_width_and_degree() {
    devices().iter().for_each(transforms);
}

fn transforms(device: &Device) {
    for log_n in 10..=14 {
        let n = 1 << log_n;
        let widths: &[u32] = if log_n < 12 { &WIDTHS } else { &[48, 50, 61] };
        let basis = basis(n, widths);
        let polynomials: Vec<Poly<Coeff>> = (0..2).map(|i| coefficients(i, &basis)).collect();
        let refs: Vec<&[Poly<Coeff>]> = polynomials.chunks(1).collect();
        let up = Batch::<Coeff>::from_host(device, &basis, &refs).unwrap();
        let there = up.to_eval().unwrap();
        let want: Vec<Vec<Poly<Eval>>> = polynomials.iter().map(|p| vec![p.clone().into_eval()]).collect();
        equal(&format!("forward, 2^{log_n}"), &there, &want);
        for (got, want) in there.to_coeff().unwrap().to_host().unwrap().iter().zip(&polynomials) {
            assert_eq!(got[0].words(), want.words(), "inverse, 2^{log_n}");
        }
    }
}

#[test]
fn the_longest_rings() {
    let device = device();
    for log_n in [15, 16] {
        let basis = basis(1 << log_n, &[49, 60]);
        let p = coefficients(3, &basis);
        let up = Batch::<Coeff>::from_host(&device, &basis, &[std::slice::from_ref(&p)]).unwrap();
        let there = up.to_eval().unwrap();
        equal("forward", &there, &[vec![p.clone().into_eval()]]);
        assert_eq!(there.to_coeff().unwrap().item_to_host(0).unwrap()[0].words(), p.words());
    }
}

#[test]
fn sums_and_products_of_every_width() {
    let device = device();
    let basis = basis(1024, &WIDTHS);
    let (a, b) = (items(0, &basis, 3, 2), items(77, &basis, 3, 2));
    let (x, y) = (batch(&device, &basis, &a), batch(&device, &basis, &b));
    type Pairwise = fn(&Poly<Eval>, &Poly<Eval>) -> Poly<Eval>;
    let each = |f: Pairwise| -> Vec<Vec<Poly<Eval>>> {
        a.iter().zip(&b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| f(a, b)).collect()).collect()
    };
    equal("add", &x.add(&y).unwrap(), &each(|a, b| a.add(b)));
    equal("sub", &x.sub(&y).unwrap(), &each(|a, b| a.sub(b)));
    equal("mul", &x.mul(&y).unwrap(), &each(|a, b| a.mul(b)));
    equal(
        "neg",
        &x.neg().unwrap(),
        &each(|a, _| {
            let mut out = a.clone();
            out.neg_assign();
            out
        }),
    );
    for factor in [0, 1, -1, 7, i64::MAX, i64::MIN] {
        let want: Vec<Vec<Poly<Eval>>> = a
            .iter()
            .map(|item| {
                let scaled = |p: &Poly<Eval>| {
                    let mut out = p.clone();
                    out.mul_scalars(&Poly::<Eval>::scalar(&basis, factor));
                    out
                };
                item.iter().map(scaled).collect()
            })
            .collect();
        equal("mul_integer", &x.mul_integer(factor).unwrap(), &want);
    }
    let mut sum = x.mul(&x).unwrap();
    sum.mul_add(&x, &y).unwrap();
    equal(
        "mul_add",
        &sum,
        &each(|a, b| {
            let mut out = a.mul(a);
            out.mul_add(a, b);
            out
        }),
    );
    let products: Vec<Vec<Poly<Eval>>> =
        a.iter().zip(&b).map(|(a, b)| ops::tensor(&basis, &[[&a[0], &a[1]]], &[[&b[0], &b[1]]]).into()).collect();
    equal("tensor", &x.tensor(&y).unwrap(), &products);
    // Inner products of more terms than one reduction takes, of residues at the edges.
    let terms = 70;
    let (xs, ys) = (vec![&x; terms], (0..terms).map(|i| if i % 3 == 0 { &x } else { &y }).collect::<Vec<_>>());
    let dot = |i: usize| -> Vec<Poly<Eval>> {
        let left = vec![[&a[i][0], &a[i][1]]; terms];
        let of = |t: usize| if t.is_multiple_of(3) { &a[i] } else { &b[i] };
        ops::tensor(&basis, &left, &(0..terms).map(|t| [&of(t)[0], &of(t)[1]]).collect::<Vec<_>>()).into()
    };
    let got = device.launches(&mut || Batch::dot(&xs, &ys).map(|sum| equal("dot", &sum, &[dot(0), dot(1), dot(2)])));
    assert_eq!(got.unwrap().len(), 1);
    let rows: Vec<_> = ys.iter().map(|y| y.part(1).unwrap()).collect();
    let plain = |i: usize| -> Vec<Poly<Eval>> {
        let of = |t: usize| if t.is_multiple_of(3) { &a[i][1] } else { &b[i][1] };
        let sum = |part: &Poly<Eval>| {
            let mut sum = part.mul(of(0));
            (1..terms).for_each(|t| sum.mul_add(part, of(t)));
            sum
        };
        a[i].iter().map(sum).collect()
    };
    let sum = Batch::dot_plain(&xs, &rows.iter().collect::<Vec<_>>()).unwrap();
    equal("dot_plain", &sum, &[plain(0), plain(1), plain(2)]);
    for (xs, ys) in [(&xs[..0], &ys[..0]), (&xs[..2], &ys[..1]), (&xs[..1], &[&rows[0]][..])] {
        assert!(matches!(Batch::dot(xs, ys), Err(CudaError::Mismatch(_))));
        assert!(ys.len() == 1 || matches!(Batch::dot_plain(xs, ys), Err(CudaError::Mismatch(_))));
    }
    // Pieces of batches, wherever they are: one launch all the same.
    let scattered = Batch::gather(&[(&y, 2), (&x, 0), (&y, 0)]).unwrap();
    let straight = Batch::gather(&[(&x, 2), (&x, 1), (&x, 0)]).unwrap();
    let want: Vec<Vec<Poly<Eval>>> = [(&b[2], &a[2]), (&a[0], &a[1]), (&b[0], &a[0])]
        .map(|(s, t)| s.iter().zip(t).map(|(s, t)| s.add(t)).collect())
        .into();
    equal("scattered", &scattered.add(&straight).unwrap(), &want);
}

#[test]
fn automorphisms_in_both_forms() {
    let device = device();
    for n in [1024usize, 4096] {
        let basis = basis(n, &[30, 61]);
        let polynomials = items(5, &basis, 2, 1);
        let x = batch(&device, &basis, &polynomials);
        for g in [1, 5, rotation_element(n, -1), rotation_element(n, 37), conjugation_element(n)] {
            let permutation = EvalPermutation::new(n, g).unwrap();
            let want: Vec<Vec<Poly<Eval>>> = polynomials.iter().map(|p| vec![p[0].permuted(&permutation)]).collect();
            equal("values", &x.automorphism(g).unwrap(), &want);
            let mut sum = x.neg().unwrap();
            sum.add_automorphism(&x, g).unwrap();
            let want: Vec<_> = want.iter().zip(&polynomials).map(|(w, p)| vec![w[0].sub(&p[0])]).collect();
            equal("sum", &sum, &want);
            let coefficients: Vec<Poly<Coeff>> = (0..2).map(|i| coefficients(i, &basis)).collect();
            let refs: Vec<&[Poly<Coeff>]> = coefficients.chunks(1).collect();
            let up = Batch::<Coeff>::from_host(&device, &basis, &refs).unwrap();
            for (got, p) in up.automorphism(g).unwrap().to_host().unwrap().iter().zip(&coefficients) {
                assert_eq!(got[0].words(), p.automorphism(g).unwrap().words(), "coefficients, {g}");
            }
        }
        assert!(x.automorphism(2).is_err() && x.automorphism(2 * n as u64 + 1).is_err());
    }
}

#[test]
fn divisions_of_one_to_nine_primes() {
    let device = device();
    let sets: &[(&[u32], &[u32])] = &[
        (&[40, 40], &[49]),
        (&[61, 30, 50], &[61]),
        (&[30, 48, 50, 60], &[30]),
        (&[49, 40], &[49, 49]),
        (&[60, 40, 30], &[61, 61, 45]),
        (&[45, 50], &[50, 50, 50, 50, 50, 50, 50, 50, 50]),
        (&[60, 33], &[60, 61, 59, 58, 60, 60, 60]),
    ];
    for (kept, tail) in sets {
        let kept = basis(1024, kept);
        let tail = apart(1024, tail, &[&kept]);
        let all = kept.concat(&tail).unwrap();
        let polynomials = items(0, &all, 2, 2);
        let division = ops::Division::new(&kept, &tail).unwrap();
        let want: Vec<Vec<Poly<Eval>>> = polynomials
            .iter()
            .map(|p| p.iter().map(|p| division.apply([p.clone()]).into_iter().next().unwrap()).collect())
            .collect();
        let here = Division::new(&device, &kept, &tail).unwrap();
        equal("division", &here.apply(&batch(&device, &all, &polynomials)).unwrap(), &want);
    }
}

/// A level of a parameter set, with a key for it and one that has more primes.
struct Case {
    q: RnsBasis,
    p: RnsBasis,
    top: RnsBasis,
    digit: usize,
}

fn case(n: usize, q: &[u32], p: &[u32], below: usize, digit: usize) -> Case {
    let all = basis(n, q);
    let p = apart(n, p, &[&all]);
    Case { q: all.prefix(q.len() - below), top: all.concat(&p).unwrap(), p, digit }
}

fn cases() -> Vec<Case> {
    vec![
        case(1024, &[49, 40, 40], &[49], 0, 1),
        case(1024, &[60, 40, 40, 60], &[60, 61], 1, 2),
        case(2048, &[50, 50, 50, 50, 50], &[50, 50, 50], 0, 3),
        case(1024, &[30, 61, 48, 50, 51], &[61], 2, 1),
        case(4096, &[48, 45, 45, 45, 45, 45, 45, 45, 45], &[48, 48], 2, 2),
    ]
}

#[test]
fn key_switches_products_and_rotations() {
    devices().iter().for_each(key_switches);
}

fn key_switches(device: &Device) {
    for (number, Case { q, p, top, digit }) in cases().into_iter().enumerate() {
        let n = q.degree();
        let gadget = ops::RnsGadget::new(&q, &p, digit).unwrap();
        let here = Gadget::new(device, &q, &p, digit).unwrap();
        assert_eq!(here.digits(), gadget.digits());
        let key = pairs(40, &top, (top.len() - p.len()).div_ceil(digit));
        let keys = Pairs::from_host(device, &key).unwrap();
        let (a, b) = (items(0, &q, 3, 2), items(9, &q, 3, 2));
        let (x, y) = (batch(device, &q, &a), batch(device, &q, &b));
        let switched = items(31, &q, 3, 1);

        // Σ d_j·(b_j, a_j), with and without a sum.
        let c = batch(device, &q, &switched);
        let one = |i: usize, plus: bool| -> Vec<Poly<Eval>> {
            gadget.switch(&switched[i][0], plus.then(|| [&a[i][0], &a[i][1]]), &key).into()
        };
        let name = |what: &str| format!("{what}, case {number}");
        equal(&name("switch"), &here.switch(&c, None, &keys).unwrap(), &[one(0, false), one(1, false), one(2, false)]);
        let plus = here.switch(&c, Some(&x), &keys).unwrap();
        equal(&name("switch and add"), &plus, &[one(0, true), one(1, true), one(2, true)]);

        // A product, relinearised, and rescaled where there is a prime to rescale by.
        for kept in [q.len(), q.len() - 1] {
            let (stay, go) = (q.prefix(kept), gadget.qp().select(kept..gadget.qp().len()));
            let (division, divide) =
                (ops::Division::new(&stay, &go).unwrap(), Division::new(device, &stay, &go).unwrap());
            let product = |i: usize| -> Vec<Poly<Eval>> {
                let [d0, d1, d2] = ops::tensor(&q, &[[&a[i][0], &a[i][1]]], &[[&b[i][0], &b[i][1]]]);
                division.apply(gadget.switch(&d2, Some([&d0, &d1]), &key)).into()
            };
            let want = [product(0), product(1), product(2)];
            equal(&name("product"), &here.product(&x, &y, &keys, &divide).unwrap(), &want);
            let apart = x.tensor(&y).unwrap();
            equal(&name("relinearize"), &here.relinearize(&apart, &keys, &divide).unwrap(), &want);
        }

        // Rotations, in waves of one item.
        let (division, divide) = (ops::Division::new(&q, &p).unwrap(), Division::new(device, &q, &p).unwrap());
        device.set_wave(1);
        for g in [rotation_element(n, 3), conjugation_element(n)] {
            let permutation = EvalPermutation::new(n, g).unwrap();
            let rotate = |i: usize| -> Vec<Poly<Eval>> {
                let image = Some((&a[i][0], &permutation));
                gadget.switch_divided(&a[i][1], &key, &ops::Ending { division: &division, plus: None, image }).into()
            };
            let want = [rotate(0), rotate(1), rotate(2)];
            equal(&name("rotate"), &here.rotate(&x, g, &keys, &divide).unwrap(), &want);
        }
        device.set_wave(ROOM);
        let mixed = Batch::gather(&[(&y, 1), (&x, 2)]).unwrap();
        let permutation = EvalPermutation::new(n, 5).unwrap();
        let want: Vec<Vec<Poly<Eval>>> = [&b[1], &a[2]]
            .map(|c| {
                let image = Some((&c[0], &permutation));
                gadget.switch_divided(&c[1], &key, &ops::Ending { division: &division, plus: None, image }).into()
            })
            .into();
        equal(&name("rotate, scattered"), &here.rotate(&mixed, 5, &keys, &divide).unwrap(), &want);
    }
}

#[test]
fn a_product_in_the_longest_ring() {
    let Case { q, p, top, digit } = case(1 << 16, &[49, 40, 60], &[49, 60], 0, 2);
    let device = device();
    let gadget = ops::RnsGadget::new(&q, &p, digit).unwrap();
    let here = Gadget::new(&device, &q, &p, digit).unwrap();
    let key = pairs(40, &top, 2);
    let keys = Pairs::from_host(&device, &key).unwrap();
    let (a, b) = (items(0, &q, 1, 2), items(9, &q, 1, 2));
    let (stay, go) = (q.prefix(2), gadget.qp().select(2..5));
    let (division, divide) = (ops::Division::new(&stay, &go).unwrap(), Division::new(&device, &stay, &go).unwrap());
    let [d0, d1, d2] = ops::tensor(&q, &[[&a[0][0], &a[0][1]]], &[[&b[0][0], &b[0][1]]]);
    let want = division.apply(gadget.switch(&d2, Some([&d0, &d1]), &key));
    let got = here.product(&batch(&device, &q, &a), &batch(&device, &q, &b), &keys, &divide).unwrap();
    equal("product", &got, &[want.into()]);
}

#[test]
fn one_decomposition_serves_many_keys() {
    let device = device();
    for (number, Case { q, p, top, digit }) in cases().into_iter().enumerate() {
        let n = q.degree();
        let gadget = ops::RnsGadget::new(&q, &p, digit).unwrap();
        let here = Gadget::new(&device, &q, &p, digit).unwrap();
        let terms = (top.len() - p.len()).div_ceil(digit);
        let elements = [rotation_element(n, 3), conjugation_element(n), rotation_element(n, -1)];
        let keys: Vec<_> = (0..3).map(|i| pairs(40 + 7 * i, &top, terms)).collect();
        let up: Vec<_> = keys.iter().map(|key| Pairs::from_host(&device, key).unwrap()).collect();
        let permutations = elements.map(|g| EvalPermutation::new(n, g).unwrap());
        let (division, divide) = (ops::Division::new(&q, &p).unwrap(), Division::new(&device, &q, &p).unwrap());
        let a = items(3, &q, 3, 2);
        let digits = here.decompose(&batch(&device, &q, &a)).unwrap();
        assert_eq!(digits.bytes(), 8 * 3 * gadget.digits() * n * gadget.qp().len());
        // Waves of one item read the digits of theirs.
        for wave in [ROOM, 1] {
            device.set_wave(wave);
            for i in 0..3 {
                let want = a.iter().flat_map(|c| {
                    let image = Some((&c[0], &permutations[i]));
                    let end = ops::Ending { division: &division, plus: None, image };
                    gadget.products_divided(&gadget.decompose(&c[1]), &[(&keys[i], end)])
                });
                let want = want.map(Vec::from);
                let got = here.rotate_digits(&digits, elements[i], &up[i], &divide).unwrap();
                equal(&format!("hoisted rotation, case {number}"), &got, &want.collect::<Vec<_>>());
            }
            let images: Vec<_> = (0..3)
                .map(|i| Some(ops::Image { pairs: &keys[i], permutation: &permutations[i] }))
                .chain([None])
                .collect();
            let want = a.iter().map(|c| gadget.sum_of_images([&c[0], &c[1]], &gadget.decompose(&c[1]), &images).into());
            let mut list: Vec<_> = elements.into_iter().zip(up.iter().map(Some)).collect();
            list.push((1, None));
            let add = |sum, (g, key)| here.add_image(&digits, g, key, sum).unwrap();
            let got = list.into_iter().fold(None, |sum, image| Some(add(sum, image))).unwrap();
            equal(&format!("sum of images, case {number}"), &got, &want.collect::<Vec<_>>());
        }
        assert!(matches!(here.add_image(&digits, 3, None, None), Err(CudaError::Mismatch(_))));
    }
    // Digits of another size are of another shape, and would be read beyond their end.
    let Case { q, p, .. } = case(1024, &[49, 40, 40, 40], &[49, 49], 0, 2);
    let [one, two] = [1, 2].map(|digit| Gadget::new(&device, &q, &p, digit).unwrap());
    let digits = two.decompose(&batch(&device, &q, &items(1, &q, 1, 2))).unwrap();
    assert!(matches!(one.add_image(&digits, 1, None, None), Err(CudaError::Mismatch(_))));
}

#[test]
fn views_copy_no_words() {
    let device = device();
    let basis = basis(1024, &[30, 49, 61]);
    let (a, b) = (items(1, &basis, 3, 2), items(20, &basis, 3, 1));
    let (x, y) = (batch(&device, &basis, &a), batch(&device, &basis, &b));
    let each = |f: &dyn Fn(usize) -> Vec<Poly<Eval>>| (0..3).map(f).collect::<Vec<_>>();
    equal("part", &x.part(1).unwrap(), &each(&|i| vec![a[i][1].clone()]));
    equal("first", &x.with_first(&y).unwrap(), &each(&|i| vec![b[i][0].clone(), a[i][1].clone()]));
    equal("repeated", &y.repeated(2).unwrap(), &each(&|i| vec![b[i][0].clone(); 2]));
    let low = x.truncated(2).unwrap();
    equal("truncated", &low, &each(&|i| a[i].iter().map(|p| p.truncated(2)).collect()));
    let doubled = each(&|i| a[i].iter().map(|p| p.truncated(2)).map(|p| p.add(&p)).collect());
    equal("truncated, added", &low.add(&low).unwrap(), &doubled);
    assert!(x.part(2).is_err() && x.repeated(2).is_err() && y.repeated(0).is_err());
    assert!(x.truncated(0).is_err() && x.truncated(4).is_err() && y.with_first(&x).is_err());
    equal("all parts", &x.with_first(&x.parts_of(0..2).unwrap()).unwrap(), &a);
    assert!(x.parts_of(1..1).is_err() && x.parts_of(1..3).is_err());
}

#[test]
fn the_paper_s_sets_at_their_size() {
    let device = device();
    // 2^13: 3 + 1 primes; 2^14: 8 + 2, digits of two.
    for (n, q, p, digit) in
        [(1 << 13, &[49, 40, 40][..], &[49][..], 1), (1 << 14, &[49, 40, 40, 40, 40, 40, 40, 40], &[49, 49], 2)]
    {
        let Case { q, p, top, .. } = case(n, q, p, 0, digit);
        let gadget = ops::RnsGadget::new(&q, &p, digit).unwrap();
        let key = pairs(1, &top, gadget.digits());
        let (a, b) = (items(0, &q, 1, 2), items(5, &q, 1, 2));
        let (stay, go) = (q.prefix(q.len() - 1), gadget.qp().select(q.len() - 1..gadget.qp().len()));
        let [d0, d1, d2] = ops::tensor(&q, &[[&a[0][0], &a[0][1]]], &[[&b[0][0], &b[0][1]]]);
        let want = ops::Division::new(&stay, &go).unwrap().apply(gadget.switch(&d2, Some([&d0, &d1]), &key));
        let here = Gadget::new(&device, &q, &p, digit).unwrap();
        let (keys, divide) = (Pairs::from_host(&device, &key).unwrap(), Division::new(&device, &stay, &go).unwrap());
        let got = here.product(&batch(&device, &q, &a), &batch(&device, &q, &b), &keys, &divide).unwrap();
        equal("multiply, relinearise, rescale", &got, &[want.into()]);
    }
}

#[test]
fn the_order_of_blocks_and_threads_does_not_matter() {
    let q = basis(1024, &[49, 60]);
    let p = apart(1024, &[49], &[&q]);
    let qp = q.concat(&p).unwrap();
    let key = pairs(1, &qp, 2);
    let run = |seed| {
        let device = Device::emulator(Trial { seed, ..Trial::default() }, ROOM);
        let (x, y) = (batch(&device, &q, &items(0, &q, 2, 2)), batch(&device, &q, &items(8, &q, 2, 2)));
        let keys = Pairs::from_host(&device, &key).unwrap();
        let divide = Division::new(&device, &q, &p).unwrap();
        let out = Gadget::new(&device, &q, &p, 1).unwrap().product(&x, &y, &keys, &divide).unwrap();
        out.to_host().unwrap().concat().iter().flat_map(|p| p.words().to_vec()).collect::<Vec<u64>>()
    };
    let first = run(1);
    assert!((2..6).all(|seed| run(seed) == first));
}

#[test]
fn what_rates_are_measured_by() {
    use sudare_cuda::ops::rate::{Of, Rate};
    for of in Of::ALL {
        let mut rate = Rate::new(&device(), of, 3, 5).unwrap();
        rate.run().unwrap();
        assert_eq!(rate.wrong().unwrap(), 0, "{of:?}");
        let amount = if of == Of::Read { 4 * 5 * 32 * 1024 } else { 4 * 256 * 5 * 64 };
        assert_eq!((rate.amount(), rate.bytes()), (amount, if of == Of::Read { 4 << 15 } else { 0 }));
    }
}
