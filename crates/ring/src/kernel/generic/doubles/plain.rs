//! The shape of two lanes in plain Rust, so that what Arm runs is tested on every machine.

use super::DoubleLimb;
use super::lanes::{Doubles, Packing, Reals};
use crate::kernel::contract::{LimbKernels, Rows, RowsMut};
use crate::kernel::generic::scalar::ScalarLimb;
use crate::kernel::generic::{limb_kernels_of, without_features};
use crate::kernel::{Ahead, Limb, MonomialTable, PackedMatrix};
use crate::packed::PackedPairs;
use crate::prime::ntt_primes;
use sudare_testkit::Random;

#[derive(Clone, Copy, Debug)]
struct Plain;

fn map(x: [f64; 2], y: [f64; 2], op: impl Fn(f64, f64) -> f64) -> [f64; 2] {
    [op(x[0], y[0]), op(x[1], y[1])]
}

impl Reals for Plain {
    type V = [f64; 2];
    const PARTS: usize = 4;

    fn splat(self, x: f64) -> [f64; 2] {
        [x; 2]
    }
    fn load(self, x: &[u64; 8], part: usize) -> [f64; 2] {
        x.as_chunks().0[part].map(f64::from_bits)
    }
    fn store(self, x: &mut [u64; 8], part: usize, v: [f64; 2]) {
        x.as_chunks_mut().0[part] = v.map(f64::to_bits);
    }
    fn load_words(self, x: &[u64; 8], part: usize) -> [f64; 2] {
        x.as_chunks().0[part].map(|x| {
            assert!(x < 1 << 52);
            x as f64
        })
    }
    fn store_words(self, x: &mut [u64; 8], part: usize, v: [f64; 2]) {
        x.as_chunks_mut().0[part] = v.map(|x| {
            assert!((0.0..4_503_599_627_370_496.0).contains(&x) && x.fract() == 0.0);
            x as u64
        });
    }
    fn add(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        map(x, y, |x, y| x + y)
    }
    fn sub(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        map(x, y, |x, y| x - y)
    }
    fn mul(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        map(x, y, |x, y| x * y)
    }
    fn mul_add(self, x: [f64; 2], y: [f64; 2], z: [f64; 2]) -> [f64; 2] {
        [x[0].mul_add(y[0], z[0]), x[1].mul_add(y[1], z[1])]
    }
    fn neg_mul_add(self, x: [f64; 2], y: [f64; 2], z: [f64; 2]) -> [f64; 2] {
        self.mul_add(x.map(|x| -x), y, z)
    }
    fn add_if_negative(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        map(x, y, |x, y| if x < 0.0 { x + y } else { x })
    }
    fn transpose(self, mut v: [[f64; 2]; 8]) -> [[f64; 2]; 8] {
        (v[0], v[1]) = ([v[0][0], v[1][0]], [v[0][1], v[1][1]]);
        v
    }
}

impl Doubles for Plain {
    const RADIX: usize = 3;

    fn load_halves(self, x: &[u64; 8], part: usize) -> [[f64; 2]; 2] {
        let [a, b]: [u64; 2] = x.as_chunks().0[part];
        [[(a >> 32) as f64, (b >> 32) as f64], [a as u32, b as u32].map(f64::from)]
    }
    fn join_bytes(self, low: &[u32; 8], high: &[u8; 8], part: usize) -> [f64; 2] {
        [2 * part, 2 * part + 1].map(|i| (u64::from(low[i]) | u64::from(high[i]) << 32) as f64)
    }
    fn join_shorts(self, low: &[u32; 8], high: &[u16; 8], part: usize) -> [f64; 2] {
        [2 * part, 2 * part + 1].map(|i| (u64::from(low[i]) | u64::from(high[i]) << 32) as f64)
    }
    fn unpack(self, bytes: &[u8; 64], packing: &Packing, part: usize) -> [f64; 2] {
        let sixteen = packing.pair(bytes, 2 * part);
        let words = packing.index.map(|i| if i < 16 { sixteen[usize::from(i)] } else { 0 });
        words.as_chunks::<8>().0.iter().map(|x| u64::from_le_bytes(*x) as f64).collect::<Vec<_>>().try_into().unwrap()
    }
    fn mul_sub(self, x: [f64; 2], y: [f64; 2], z: [f64; 2]) -> [f64; 2] {
        self.mul_add(x, y, z.map(|z| -z))
    }
}

limb_kernels_of!(DoubleLimb<Plain>, without_features, this => this);

#[test]
fn two_lanes_agree_with_plain_words() {
    let n = 512;
    for bits in [20, 25, 26, 40, 46, 47, 48, 49, 50] {
        let q = ntt_primes(n, bits, 1, &[]).unwrap()[0];
        let limb = Limb::new(q, n).unwrap();
        let ours = DoubleLimb::new(Plain, limb.modulus(), n, limb.root());
        let plain = ScalarLimb::new(limb.modulus(), n, limb.root());
        let both: [&dyn LimbKernels; 2] = [&ours, &plain];
        let agree = |what: &str, work: &dyn Fn(&dyn LimbKernels) -> Vec<u64>| {
            let [found, wanted] = both.map(work);
            assert!(found == wanted, "{what}, {bits} bits");
        };
        let rows: Vec<Vec<u64>> = (1..40).map(|i| Random(i).edges(q, n)).collect();
        let refs: Vec<&[u64]> = rows.iter().map(Vec::as_slice).collect();
        for a in [rows[0].clone(), vec![q - 1; n]] {
            let transform = |step: &dyn Fn(&dyn LimbKernels, &mut [u64])| {
                agree("transform", &|k| {
                    let mut x = a.clone();
                    step(k, &mut x);
                    x
                });
            };
            transform(&|k, x| k.forward(x, &mut Ahead::of(&[])));
            transform(&|k, x| k.inverse(x, &mut Ahead::of(&[])));
            for layers in 0..=9 {
                transform(&|k, x| k.forward_partial(x, layers));
                transform(&|k, x| k.inverse_partial(x, layers));
            }
            transform(&|k, x| k.mul_assign(x, &rows[1]));
            transform(&|k, x| k.mul_add(x, &rows[1], &rows[2]));
            transform(&|k, x| k.mul_scalar_add(x, &rows[1], &limb.modulus().shoup(q - 2)));
            transform(&|k, x| k.reduce_centered(x, &rows[1], (1 << 50) + 1));
        }
        agree("dot", &|k| {
            let mut out = vec![0; n];
            k.dot(&mut out, &refs, &refs);
            out
        });
        let pairs: Vec<[&[u64]; 2]> = refs.iter().map(|r| [*r, refs[0]]).collect();
        let packed = PackedPairs::new(&limb, &pairs);
        agree("dot_pair_packed", &|k| {
            let (mut x, mut y) = (vec![0; n], vec![0; n]);
            k.dot_pair_packed([&mut x, &mut y], &refs, packed.from(0), Some(refs[1]));
            [x, y].concat()
        });
        for bound in [bits, 52, 60] {
            agree("combine", &|k| {
                let mut out = vec![0; n];
                k.combine(&mut out, &refs, &rows[3][..refs.len()], bound);
                out
            });
        }
        agree("gemm", &|k| {
            let mut out = rows[5].clone();
            let (a, b) = (Rows { words: &rows[1], stride: 19 }, Rows { words: &rows[2], stride: 24 });
            k.gemm(RowsMut { words: &mut out, stride: 16 }, a, b, (3, 17, 16), true);
            out
        });
        let mut matrix = PackedMatrix::zeroed(&limb, 3, 2, 3);
        (0..18).for_each(|i| matrix.set(i / 6, i / 3 % 2, i % 3, &rows[i]));
        let table = MonomialTable::new(&limb);
        agree("external product", &|k| {
            let mut out = vec![0; 3 * n];
            k.external_product(&mut out, &rows[..2].concat(), &matrix, Some((&table, &[1, 700, 1023])));
            out
        });
    }
}
