//! Every packing of the packing paper against plain integers: random sizes, entries and bases,
//! and the edges of what fits.

use num_bigint::BigInt;
use proptest::prelude::*;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_packings::PackingError;
use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, Params, ParamsLiteral, PublicKey, SecretKey};
use sudare_packings::{
    Entries, EuclideanDistance, FirstMethod, HammingDistance, InnerProduct, LargeInnerProduct, LargeIntegers,
    MatrixPacking, PatternMatching, PreviousMethod, SecondMethod, Statistics,
};
use sudare_rlwe::security::Security;
use sudare_testkit::Random;

const PLAY: Security = Security::Insecure;

struct World {
    params: Params,
    secret: SecretKey,
    public: PublicKey,
}

impl World {
    fn new(literal: &ParamsLiteral) -> Self {
        let params = literal.build().unwrap();
        let secret = SecretKey::generate(&params).unwrap();
        let public = secret.public_key().unwrap();
        Self { params, secret, public }
    }

    fn encryptor(&self) -> Encryptor<'_> {
        Encryptor::new(&self.public).unwrap()
    }

    fn evaluator(&self) -> Evaluator {
        Evaluator::new(&self.params)
    }

    fn decryptor(&self) -> Decryptor<'_> {
        Decryptor::new(&self.secret)
    }

    /// A product by a method, checked against the plain one.
    fn check(&self, packing: &dyn MatrixPacking, a: &Matrix<i128>, b: &Matrix<i128>) {
        let encryptor = self.encryptor();
        let x = packing.encrypt(&encryptor, Operand::Left, a).unwrap();
        let y = packing.encrypt(&encryptor, Operand::Right, b).unwrap();
        assert_eq!((x.len(), y.len()), (packing.count(Operand::Left), packing.count(Operand::Right)));
        let product = packing.multiply(&self.evaluator(), &x, &y).unwrap();
        assert_eq!(product.len(), packing.count(Operand::Output));
        assert_eq!(packing.decrypt(&self.decryptor(), &product).unwrap(), a.matmul(b).unwrap(), "{packing:?}");
    }
}

/// Entries over the whole range, the extremes often.
fn vector(entries: Entries, length: usize, seed: u64) -> Vec<i128> {
    let mut random = Random(seed);
    let mut one = || {
        let (kind, size) = (random.word(), i128::from(random.word() % (entries.max() + 1)));
        let size = if kind.is_multiple_of(4) { i128::from(entries.max()) } else { size };
        if entries.signed() && kind & 8 != 0 { -size } else { size }
    };
    (0..length).map(|_| one()).collect()
}

fn matrix(entries: Entries, (rows, cols): (usize, usize), seed: u64) -> Matrix<i128> {
    Matrix::<i128>::new(rows, cols, vector(entries, rows * cols, seed)).unwrap()
}

fn short() -> impl Strategy<Value = Entries> {
    prop_oneof![
        Just(Entries::BINARY),
        (1u64..300, any::<bool>()).prop_map(|(max, signed)| Entries::short(max, signed).unwrap())
    ]
}

fn digits() -> impl Strategy<Value = Entries> {
    let radix = prop_oneof![Just(2u64), 2u64..20, 2u64..5000];
    (1u32..=20, radix, any::<bool>())
        .prop_map(|(bits, radix, signed)| Entries::digits(bits, radix, signed).unwrap())
        .prop_filter("small enough", |e| e.stride() <= 24)
}

/// Any shape, squares among them.
fn shape(most: usize) -> impl Strategy<Value = Shape> {
    prop_oneof![
        (1..=most).prop_map(|m| Shape::new(m, m, m)),
        (1..=most, 1..=most, 1..=most).prop_map(|(m, k, n)| Shape::new(m, k, n))
    ]
}

fn all_methods(shape: Shape, entries: Entries, seed: u64) {
    let a = matrix(entries, shape.of(Operand::Left), seed);
    let b = matrix(entries, shape.of(Operand::Right), !seed);
    let world = World::new(&SecondMethod::parameters(shape, entries, PLAY).unwrap());
    world.check(&SecondMethod::new(&world.params, shape, entries).unwrap(), &a, &b);
    let world = World::new(&FirstMethod::parameters(shape, entries, PLAY).unwrap());
    world.check(&FirstMethod::new(&world.params, shape, entries).unwrap(), &a, &b);
    let world = World::new(&PreviousMethod::parameters(shape, entries, PLAY).unwrap());
    world.check(&PreviousMethod::new(&world.params, shape, entries).unwrap(), &a, &b);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Theorems 5 and 7, and their baseline.
    #[test]
    fn matrices_of_short_entries(shape in shape(9), entries in short(), seed: u64) {
        all_methods(shape, entries, seed);
    }

    /// Theorems 9 and 10, and their baseline.
    #[test]
    fn matrices_of_digits(shape in shape(4), entries in digits(), seed: u64) {
        all_methods(shape, entries, seed);
    }

    /// Equation 3.
    #[test]
    fn inner_products(length in 1usize..600, entries in short(), seed: u64) {
        let world = World::new(&InnerProduct::parameters(length, entries, PLAY).unwrap());
        let packing = InnerProduct::new(&world.params, length, entries).unwrap();
        let (a, b) = (vector(entries, length, seed), vector(entries, length, !seed));
        let encryptor = world.encryptor();
        let x = encryptor.encrypt(&packing.encode(Operand::Left, &a).unwrap()).unwrap();
        let y = encryptor.encrypt(&packing.encode(Operand::Right, &b).unwrap()).unwrap();
        let product = packing.multiply(&world.evaluator(), &x, &y).unwrap();
        let found = packing.decode(&world.decryptor().decrypt(&product).unwrap());
        prop_assert_eq!(found, a.iter().zip(&b).map(|(a, b)| a * b).sum::<i128>());
    }

    /// Theorem 4.
    #[test]
    fn inner_products_of_digits(length in 1usize..100, bits in 1u32..=62, radix in 2u64..3000, signed: bool, seed: u64) {
        let entries = Entries::digits(bits, radix, signed).unwrap();
        let world = World::new(&LargeInnerProduct::parameters(length, bits, radix, signed, PLAY).unwrap());
        let packing = match LargeInnerProduct::new(&world.params, length, bits, radix, signed) {
            Err(PackingError::Method { .. }) if length as f64 * f64::from(2 * bits).exp2() >= 125f64.exp2() => return Ok(()),
            other => other.unwrap(),
        };
        let (a, b) = (vector(entries, length, seed), vector(entries, length, !seed));
        let encryptor = world.encryptor();
        let x = encryptor.encrypt(&packing.encode(Operand::Left, &a).unwrap()).unwrap();
        let y = encryptor.encrypt(&packing.encode(Operand::Right, &b).unwrap()).unwrap();
        let product = packing.multiply(&world.evaluator(), &x, &y).unwrap();
        let found = packing.decode(&world.decryptor().decrypt(&product).unwrap());
        prop_assert_eq!(found, a.iter().zip(&b).map(|(a, b)| a * b).sum::<i128>());
    }

    /// Section 3.1: sums of products of large integers.
    #[test]
    fn large_integers(bits in 1usize..400, terms in 1u64..4, factors in 1usize..4, seed: u64) {
        let world = World::new(&LargeIntegers::parameters(bits, terms, factors, PLAY).unwrap());
        let packing = LargeIntegers::new(&world.params, bits, terms, factors).unwrap();
        let (encryptor, evaluator) = (world.encryptor(), world.evaluator());
        let mut random = Random(seed);
        let (mut sum, mut total) = (None, BigInt::ZERO);
        for term in 0..terms {
            let (mut product, mut value) = (None, BigInt::from(1));
            for _ in 0..factors {
                let words: Vec<u32> = (0..bits.div_ceil(32)).map(|_| random.word() as u32).collect();
                let mut x = BigInt::new(num_bigint::Sign::Plus, words) % (BigInt::from(1) << bits);
                // All bits set is where coefficients are largest.
                if random.word().is_multiple_of(3) { x = (BigInt::from(1) << bits) - 1; }
                if random.word().is_multiple_of(3) { x = -x; }
                let c = encryptor.encrypt(&packing.encode(&x).unwrap()).unwrap();
                product = Some(match product { None => c, Some(p) => evaluator.mul(&p, &c).unwrap() });
                value *= x;
            }
            let (product, minus) = (product.unwrap(), term % 2 == 1);
            sum = Some(match sum {
                None => product,
                Some(s) if minus => evaluator.sub(&s, &product).unwrap(),
                Some(s) => evaluator.add(&s, &product).unwrap(),
            });
            total += if minus { -value } else { value };
        }
        prop_assert_eq!(packing.decode(&world.decryptor().decrypt(&sum.unwrap()).unwrap()), total);
    }

    #[test]
    fn distances(length in 1usize..60, bits in 1u32..=30, radix in 2u64..200, signed: bool, seed: u64) {
        let entries = Entries::digits(bits, radix, signed).unwrap();
        let world = World::new(&EuclideanDistance::parameters(length, bits, radix, signed, PLAY).unwrap());
        let distance = EuclideanDistance::new(&world.params, length, bits, radix, signed).unwrap();
        let (a, b) = (vector(entries, length, seed), vector(entries, length, !seed));
        let encryptor = world.encryptor();
        let x = distance.encrypt(&encryptor, Operand::Left, &a).unwrap();
        let y = distance.encrypt(&encryptor, Operand::Right, &b).unwrap();
        let result = world.decryptor().decrypt(&distance.distance(&world.evaluator(), &x, &y).unwrap()).unwrap();
        prop_assert_eq!(distance.decode(&result), a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum::<i128>());
    }

    #[test]
    fn hamming_distances(length in 1usize..700, seed: u64) {
        let world = World::new(&HammingDistance::parameters(length, PLAY).unwrap());
        let distance = HammingDistance::new(&world.params, length).unwrap();
        let (a, b) = (vector(Entries::BINARY, length, seed), vector(Entries::BINARY, length, !seed));
        let encryptor = world.encryptor();
        let x = distance.encrypt(&encryptor, Operand::Left, &a).unwrap();
        let y = distance.encrypt(&encryptor, Operand::Right, &b).unwrap();
        let result = world.decryptor().decrypt(&distance.distance(&world.evaluator(), &x, &y).unwrap()).unwrap();
        prop_assert_eq!(distance.decode(&result), a.iter().zip(&b).filter(|(a, b)| a != b).count() as u64);
    }

    #[test]
    fn patterns(text in 1usize..600, share in 0.0f64..1.0, entries in short(), seed: u64) {
        let length = ((text as f64 * share) as usize).max(1);
        let world = World::new(&PatternMatching::parameters(text, length, entries, PLAY).unwrap());
        let matching = PatternMatching::new(&world.params, text, length, entries).unwrap();
        let t = vector(entries, text, seed);
        // A pattern that is there.
        let at = seed as usize % (text - length + 1);
        let p = t[at..at + length].to_vec();
        let encryptor = world.encryptor();
        let x = matching.encrypt_text(&encryptor, &t).unwrap();
        let y = matching.encrypt_pattern(&encryptor, &p).unwrap();
        let found = world.decryptor().decrypt(&matching.distances(&world.evaluator(), &x, &y).unwrap()).unwrap();
        let found = matching.decode(&found);
        let wanted: Vec<u64> = t.windows(length)
            .map(|w| w.iter().zip(&p).map(|(a, b)| ((a - b) * (a - b)) as u64).sum())
            .collect();
        prop_assert_eq!(found[at], 0);
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn moments(observations in 1usize..50, columns in 1usize..4, bits in 1u32..=24, radix in 2u64..200, signed: bool, seed: u64) {
        let entries = Entries::digits(bits, radix, signed).unwrap();
        let world = World::new(&Statistics::parameters(observations, bits, radix, signed, PLAY).unwrap());
        let statistics = Statistics::new(&world.params, observations, bits, radix, signed).unwrap();
        let data: Vec<_> = (0..columns).map(|c| vector(entries, observations, seed ^ c as u64)).collect();
        let encryptor = world.encryptor();
        let encrypted: Vec<_> = data.iter().map(|c| statistics.encrypt(&encryptor, c).unwrap()).collect();
        let moments = statistics.moments(&world.evaluator(), &encrypted).unwrap();
        let moments = statistics.decrypt(&world.decryptor(), &moments).unwrap();
        let n = observations as i128;
        for (i, x) in data.iter().enumerate() {
            prop_assert_eq!(moments.sums()[i], x.iter().sum::<i128>());
            for (j, y) in data.iter().enumerate() {
                let product: i128 = x.iter().zip(y).map(|(a, b)| a * b).sum();
                prop_assert_eq!(moments.products().get(i, j), product);
                let covariance = n * product - x.iter().sum::<i128>() * y.iter().sum::<i128>();
                prop_assert_eq!(moments.scaled_covariance(i, j), covariance);
                if let Some(r) = moments.correlation(i, j) { prop_assert!(r.abs() <= 1.0 + 1e-12); }
            }
            prop_assert!(moments.correlation(i, i).is_none_or(|r| (r - 1.0).abs() < 1e-12));
        }
        prop_assert_eq!(moments.covariance(0, 0, observations), None);
    }
}

/// The paper's own sizes, and sizes that fill the ring exactly, with all entries as large as they
/// can be; one entry more, or t less by one, is refused.
#[test]
fn edges() {
    let ten_bit = |radix| Entries::digits(10, radix, false).unwrap();
    // s·m·k·n is N in each of the first three.
    let cases = [
        (Shape::new(8, 8, 8), Entries::BINARY),
        (Shape::new(4, 8, 4), Entries::digits(4, 4, true).unwrap()),
        (Shape::new(1, 512, 1), Entries::short(7, true).unwrap()),
        (Shape::new(16, 16, 16), Entries::BINARY),
        (Shape::new(5, 5, 5), ten_bit(2)),
        (Shape::new(7, 7, 7), ten_bit(1024)),
        (Shape::new(1, 1, 1), ten_bit(3)),
    ];
    for (shape, entries) in cases {
        let world = World::new(&SecondMethod::parameters(shape, entries, PLAY).unwrap());
        let most = if entries.signed() { -i128::from(entries.max()) } else { i128::from(entries.max()) };
        let full = |(rows, cols), value| Matrix::<i128>::from_fn(rows, cols, |_, _| value).unwrap();
        let a = full(shape.of(Operand::Left), most.abs());
        let b = full(shape.of(Operand::Right), most);
        assert_eq!(u128::from(world.params.t()), entries.least_t(shape.k).max(2));
        world.check(&SecondMethod::new(&world.params, shape, entries).unwrap(), &a, &b);
        world.check(&FirstMethod::new(&world.params, shape, entries).unwrap(), &a, &b);
        world.check(&PreviousMethod::new(&world.params, shape, entries).unwrap(), &a, &b);

        let needed = (entries.stride() * shape.m * shape.k * shape.n) as u128;
        if needed == world.params.degree() as u128 {
            let larger = Shape { m: shape.m + 1, ..shape };
            let refused = SecondMethod::new(&world.params, larger, entries).unwrap_err();
            assert!(matches!(refused, PackingError::DoesNotFit { what: "N", .. }), "{refused}");
        }
        if world.params.t() > 2 {
            let literal = ParamsLiteral { t: world.params.t() - 1, ..world.params.literal().clone() };
            let refused = SecondMethod::new(&literal.build().unwrap(), shape, entries).unwrap_err();
            assert!(matches!(refused, PackingError::DoesNotFit { what: "t", .. }), "{refused}");
        }
    }
}

#[test]
fn sizes_of_the_paper() {
    let ten_bit = Entries::digits(10, 2, false).unwrap();
    let degree = |m: usize, e: Entries| {
        let shape = Shape::new(m, m, m);
        let of = |l: ParamsLiteral| (1usize << l.log_n, l.t);
        [
            of(PreviousMethod::parameters(shape, e, PLAY).unwrap()),
            of(FirstMethod::parameters(shape, e, PLAY).unwrap()),
            of(SecondMethod::parameters(shape, e, PLAY).unwrap()),
        ]
    };
    assert_eq!(degree(16, Entries::BINARY), [(512, 17), (512, 17), (4096, 17)]);
    assert_eq!(degree(32, Entries::BINARY), [(512, 33), (1024, 33), (32768, 33)]);
    assert_eq!(degree(16, ten_bit), [(512, 161), (8192, 161), (131072, 161)]);
    // Another base: a sixteenth of the ring.
    let base_32 = Entries::digits(10, 32, false).unwrap();
    assert_eq!(degree(16, base_32)[2].0, 16384);
}

#[test]
fn refusals() {
    let shape = Shape::new(3, 4, 5);
    let entries = Entries::short(9, false).unwrap();
    let world = World::new(&SecondMethod::parameters(shape, entries, PLAY).unwrap());
    let packing = SecondMethod::new(&world.params, shape, entries).unwrap();
    let encode =
        |rows, cols, value| packing.encode(Operand::Left, &Matrix::<i128>::from_fn(rows, cols, |_, _| value).unwrap());
    assert!(matches!(encode(4, 3, 1), Err(PackingError::PackedShape { expected: (3, 4), .. })));
    assert!(matches!(encode(3, 4, 10), Err(PackingError::OutOfRange { row: 0, col: 0, low: 0, high: 9 })));
    assert!(matches!(encode(3, 4, -1), Err(PackingError::OutOfRange { .. })));
    let zero = Matrix::<i128>::from_fn(3, 5, |_, _| 0).unwrap();
    assert!(packing.encode(Operand::Output, &zero).is_err());
    assert!(matches!(packing.multiply(&world.evaluator(), &[], &[]), Err(PackingError::Count { found: 0, .. })));
    assert!(matches!(packing.decode(&[]), Err(PackingError::Count { .. })));
    assert!(SecondMethod::new(&world.params, Shape { batch: 2, ..shape }, entries).is_err());
    assert!(SecondMethod::new(&world.params, Shape::new(0, 4, 5), entries).is_err());
    assert!(SecondMethod::parameters(Shape::new(64, 64, 64), entries, PLAY).is_err());
    let huge = Shape::new(usize::MAX, usize::MAX, 2);
    assert!(matches!(SecondMethod::new(&world.params, huge, entries), Err(PackingError::DoesNotFit { .. })));
    let wide = Entries::short((1 << 62) - 1, false).unwrap();
    assert!(matches!(SecondMethod::parameters(shape, wide, PLAY), Err(PackingError::DoesNotFit { what: "t", .. })));
    assert!(InnerProduct::new(&world.params, 4, Entries::digits(4, 2, false).unwrap()).is_err());
    assert!(LargeInnerProduct::new(&world.params, 4, 0, 2, false).is_err());
    let matching = |text, pattern| PatternMatching::new(&world.params, text, pattern, Entries::BINARY);
    assert!(
        matching(5, 6).is_err() && matching(5, 0).is_err() && matching(513, 2).is_err() && matching(512, 2).is_ok()
    );
    assert!(LargeIntegers::new(&world.params, 0, 1, 1).is_err());
    // Three parts hold one product.
    let refused = LargeIntegers::new(&world.params, 4, 1, 3).unwrap_err();
    assert!(matches!(refused, PackingError::DoesNotFit { what: "ciphertext length", needed: 4, available: 3, .. }));
    let integers = LargeIntegers::new(&world.params, 10, 1, 2).unwrap();
    assert!(matches!(integers.encode(&BigInt::from(1024)), Err(PackingError::TooManyBits { found: 11, most: 10 })));
    assert!(Statistics::new(&world.params, 2, 62, 1 << 20, false).is_err());
    let one = Matrix::<i128>::from_fn(2, 2, |_, _| i128::MAX).unwrap();
    assert!(one.matmul(&one).is_err() && one.matmul(&zero).is_err() && Matrix::<i128>::new(0, 3, vec![]).is_err());
}
