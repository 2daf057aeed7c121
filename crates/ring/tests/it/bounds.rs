//! Shapes whose arithmetic wraps, and operands of another limb: every one is refused, by every family,
//! before a kernel reads. The messages are looked at, since a build with overflow checks panics earlier
//! than one without; `make test` runs this file in a release build as well, where words wrap silently.

use std::panic::{AssertUnwindSafe, catch_unwind};
use sudare_ring::kernel::{Gadget, MonomialTable, PackedMatrix, round_quotients, sub_scaled_rows};
use sudare_ring::packed::PackedPairs;
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Family, Limb};

const N: usize = 512;

fn primes(bits: u32, count: usize) -> Vec<u64> {
    ntt_primes(N, bits, count, &[]).unwrap()
}

fn limbs() -> Vec<Limb> {
    let all = [40, 60].into_iter().flat_map(|bits| Family::ALL.into_iter().map(move |f| (bits, f)));
    all.filter_map(|(bits, f)| Limb::with_family(primes(bits, 1)[0], N, f).ok()).collect()
}

/// Asserts that `work` panics with `message`.
fn refused(message: &str, work: impl FnOnce()) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else { panic!("not refused: {message}") };
    let found = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    assert!(found.is_some_and(|found| found.contains(message)), "{found:?} is not: {message}");
}

/// `(m − 1)·stride + row` is 7, 5 or 13 modulo 2^64 in turn.
#[test]
fn strides_that_wrap() {
    let (a, b) = (vec![1; 64], vec![1; 64]);
    for limb in limbs() {
        for (lda, ldb, ldc, shape) in [
            (usize::MAX, 8, 8, (2, 8, 8)),
            (usize::MAX - 2, 8, 8, (2, 8, 8)),
            (usize::MAX / 2 + 4, 8, 8, (3, 5, 8)),
            (8, usize::MAX, 8, (2, 2, 8)),
            (8, usize::MAX / 3 + 3, 8, (2, 4, 8)),
            (8, 8, usize::MAX, (2, 8, 8)),
            (8, 8, usize::MAX / 2 + 4, (3, 5, 8)),
            // Nothing to sum, but a result to clear.
            (8, 8, usize::MAX, (2, 0, 8)),
        ] {
            for accumulate in [false, true] {
                let mut c = vec![3; 64];
                refused("a matrix reaches beyond its slice", || {
                    limb.gemm(&mut c, ldc, &a, lda, &b, ldb, shape, accumulate);
                });
                assert_eq!(c, [3; 64]);
            }
        }
        // The stride of a single row is never used.
        let mut c = vec![3; 8];
        limb.gemm(&mut c, usize::MAX, &a[..1], usize::MAX, &b[..8], usize::MAX, (1, 1, 8), false);
        assert_eq!(c, [1; 8]);
    }
}

#[test]
fn matrices_that_no_memory_holds() {
    for limb in limbs() {
        // 2^64 bytes and a few: all of it would have been 64 bytes long.
        let rows = (usize::MAX / N).div_ceil(limb.modulus().bits().div_ceil(8) as usize);
        refused("no memory holds", || drop(PackedMatrix::zeroed(&limb, 1, rows, 1)));
        refused("no memory holds", || drop(PackedMatrix::zeroed(&limb, 7, rows, 4)));
    }
}

#[test]
fn gadgets_whose_bits_wrap() {
    for limb in limbs() {
        let gadget = Gadget { base_log: 1 << 16, levels: 1 << 16 };
        refused("more bits than the modulus", || limb.decompose(&mut [0; N], gadget));
        let (mut a, b) = ([0; N], [0; N]);
        refused("more bits than the modulus", || limb.add_decompose(&mut a, &b, gadget, &mut [0; N]));
        refused("without digits", || limb.decompose(&mut [], Gadget { base_log: 1 << 16, levels: 0 }));
    }
}

#[test]
fn operands_of_another_limb() {
    for limb in limbs() {
        let bits = limb.modulus().bits();
        let row = vec![1; N];
        for (q, n) in
            [(primes(bits, 1)[0], N), (primes(100 - bits, 1)[0], N), (ntt_primes(1024, bits, 1, &[]).unwrap()[0], 1024)]
        {
            let other = Limb::new(q, n).unwrap();
            let long = vec![1; n];
            let pairs = PackedPairs::new(&other, &[[&long, &long]]);
            let (mut x, mut y) = (vec![0; N], vec![0; N]);
            let mut product = || limb.dot_pair_packed([&mut x, &mut y], &[&row], &pairs, None);
            if (q, n) == (limb.q(), N) {
                product();
                continue;
            }
            refused("pairs of another limb", product);
        }
        let other = Limb::new(primes(bits, 2)[1], N).unwrap();
        let (m, table) = (PackedMatrix::zeroed(&limb, 1, 1, 1), MonomialTable::new(&other));
        refused("monomials of another limb", || {
            limb.external_product_monomials(&mut vec![0; N], &row, &m, &table, &[1]);
        });
        let wide = Limb::new(primes(100 - bits, 1)[0], N).unwrap();
        let m = PackedMatrix::zeroed(&wide, 1, 1, 1);
        refused("a matrix of another limb", || limb.external_product(&mut vec![0; N], &row, &m));
    }
}

#[test]
fn rows_of_other_lengths() {
    let row = [1u64; 64];
    refused("rows and reciprocals differ", || round_quotients(&mut [0; 64], &[&row, &row], &[0.5]));
    refused("rows and reciprocals differ", || round_quotients(&mut [0; 8], &[&row], &[0.5]));
    refused("rows of another length", || sub_scaled_rows(&mut [0; 8], &[1; 15], &[1, 1]));
    sub_scaled_rows(&mut [], &[], &[1, 1]);
}
