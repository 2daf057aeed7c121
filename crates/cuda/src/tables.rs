//! Constants of primes and of conversions, as the kernels read them.

use crate::arena::{Core, Memory};
use crate::device::Device;
use crate::error::{CudaError, Result};
use bytemuck::{NoUninit, Zeroable};
use std::sync::Arc;
use sudare_ring::order::bit_reverse;
use sudare_ring::{Limb, Modulus, RnsBasis};

/// Degrees that the kernels serve, as exponents of two.
pub(crate) const LOG_DEGREES: std::ops::RangeInclusive<u32> = 10..=16;

/// Largest primes, in bits, of the families of doubles (`F64<48>` and `F64<50>` of `arith.cuh`).
const DOUBLE_BITS: [u32; 2] = [48, 50];

/// Which family transforms values modulo a prime, as `Prime::family` says it: the one place where it is chosen. Words
/// where the device has few units for doubles: an RTX 3090 has a 64th, and takes ten times as long by them.
fn family(q: &Modulus, doubles: bool) -> u32 {
    DOUBLE_BITS.iter().position(|bits| doubles && q.bits() <= *bits).unwrap_or(2) as u32
}

/// Twin of `Prime` in `arith.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
pub(crate) struct Prime {
    q: u64,
    ratio: [u64; 2],
    mu: u64,
    n_inverse: [u64; 2],
    fq: f64,
    reciprocal: f64,
    fn_inverse: f64,
    forward: u64,
    inverse: u64,
    bits: u32,
    family: u32,
}

/// Twin of `Factor` in `arith.cuh`.
#[derive(Clone, Copy, Debug, Zeroable, NoUninit)]
#[repr(C)]
pub(crate) struct Factor {
    value: u64,
    quotient: u64,
    centred: f64,
}

impl Factor {
    /// A residue in `[0, q)`.
    pub(crate) fn new(q: &Modulus, value: u64) -> Self {
        Self { value, quotient: q.shoup(value).quotient, centred: q.center(value) as f64 }
    }
}

/// A prime's constants and twiddles.
#[derive(Debug)]
pub(crate) struct PrimeTable {
    prime: Prime,
    /// Both tables of twiddles, whose addresses `prime` holds.
    _twiddles: [Arc<Memory>; 2],
}

impl PrimeTable {
    pub(crate) fn new(core: &Arc<Core>, limb: &Limb) -> Result<Self> {
        let (q, n) = (limb.modulus(), limb.degree());
        if !LOG_DEGREES.contains(&n.trailing_zeros()) {
            return Err(CudaError::Degree { degree: n });
        }
        let family = family(q, core.driver().info().doubles);
        let back = q.inverse(limb.root())?;
        let [forward, inverse] = [limb.root(), back].map(|root| core.upload(&twiddles(q, n, root, family)));
        let twiddles = [forward?, inverse?];
        let n_inverse = q.inverse(n as u64)?;
        let (high, low) = q.barrett_ratio();
        let prime = Prime {
            q: q.value(),
            ratio: [high, low],
            mu: ((1u128 << (62 + q.bits())) / u128::from(q.value())) as u64,
            n_inverse: [n_inverse, q.shoup(n_inverse).quotient],
            fq: q.value() as f64,
            reciprocal: 1.0 / q.value() as f64,
            fn_inverse: q.center(n_inverse) as f64,
            forward: twiddles[0].address(),
            inverse: twiddles[1].address(),
            bits: q.bits(),
            family,
        };
        Ok(Self { prime, _twiddles: twiddles })
    }
}

/// The powers of a root in bit-reversed order, as a family reads them: the twiddle of block b in the layer of m blocks
/// stands at m + b.
fn twiddles(q: &Modulus, n: usize, root: u64, family: u32) -> Vec<u64> {
    let mut powers = vec![0; n];
    let mut power = 1;
    for i in 0..n {
        powers[bit_reverse(i, n.trailing_zeros())] = power;
        power = q.mul(power, root);
    }
    match family {
        2 => powers.iter().flat_map(|w| [*w, q.shoup(*w).quotient]).collect(),
        _ => powers.iter().map(|w| (q.center(*w) as f64).to_bits()).collect(),
    }
}

/// The primes of a basis, in its order, one after the other on the device.
#[derive(Clone, Debug)]
pub(crate) struct Primes {
    memory: Arc<Memory>,
    narrow: Vec<bool>,
    _tables: Vec<Arc<PrimeTable>>,
}

impl Primes {
    pub(crate) fn new(device: &Device, basis: &RnsBasis) -> Result<Self> {
        if !LOG_DEGREES.contains(&basis.degree().trailing_zeros()) {
            return Err(CudaError::Degree { degree: basis.degree() });
        }
        let tables = basis.limbs().iter().map(|limb| device.prime(limb)).collect::<Result<Vec<_>>>()?;
        let mut blob = Blob::default();
        tables.iter().for_each(|table| {
            blob.push(&[table.prime]);
        });
        let memory = device.core().upload(&blob.words)?;
        let narrow = tables.iter().map(|t| t.prime.bits <= DOUBLE_BITS[1]).collect();
        Ok(Self { memory, narrow, _tables: tables })
    }

    /// Where prime `i` stands.
    pub(crate) fn at(&self, i: usize) -> u64 {
        self.memory.address() + (i * size_of::<Prime>()) as u64
    }

    /// Whether prime `i` is below 2^50.
    pub(crate) fn narrow(&self, i: usize) -> bool {
        self.narrow[i]
    }
}

/// Factors, one for each modulus of a basis.
pub(crate) fn factors<'a>(
    device: &Device,
    moduli: impl Iterator<Item = &'a Modulus>,
    value: impl Fn(&Modulus) -> Result<u64>,
) -> Result<Arc<Memory>> {
    let mut blob = Blob::default();
    for q in moduli {
        blob.push(&[Factor::new(q, value(q)?)]);
    }
    device.core().upload(&blob.words)
}

/// Plain values one after the other, each list at a multiple of eight bytes.
#[derive(Debug, Default)]
struct Blob {
    words: Vec<u64>,
}

impl Blob {
    /// Adds a list, and says at which byte it stands.
    fn push<T: NoUninit>(&mut self, list: &[T]) -> u64 {
        let at = 8 * self.words.len() as u64;
        let bytes: &[u8] = bytemuck::cast_slice(list);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_ne_bytes(word));
        }
        at
    }
}

/// Twin of `Conversion` in `switch.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
struct Conversion {
    source: u64,
    source_prime: u64,
    target: u64,
    target_prime: u64,
    hat: u64,
    weights: u64,
    count: u32,
    targets: u32,
    narrow: u32,
    pad: u32,
}

/// One centred conversion between primes of a basis: what `sudare_ring::convert::BasisConverter` computes, with N^−1 of
/// the inverse transform in its constants.
#[derive(Clone, Debug)]
pub(crate) struct Lifting {
    /// Sources by their number in the basis, and the row of an item that each is in.
    pub sources: Vec<(usize, usize)>,
    /// Targets, likewise.
    pub targets: Vec<(usize, usize)>,
}

/// Conversions on the device.
#[derive(Debug)]
pub(crate) struct Conversions {
    memory: Arc<Memory>,
    /// Where the list of `Conversion` starts.
    at: u64,
    /// How many.
    pub count: usize,
    /// Most sources of one.
    pub sources: usize,
}

impl Conversions {
    pub(crate) fn new(device: &Device, basis: &RnsBasis, primes: &Primes, list: &[Lifting]) -> Result<Self> {
        let mut blob = Blob::default();
        let mut heads = list.iter().map(|l| lay(&mut blob, basis, primes, l)).collect::<Result<Vec<_>>>()?;
        let at = blob.words.len();
        let memory = device.core().memory(at + list.len() * size_of::<Conversion>() / 8)?;
        for head in &mut heads {
            let Conversion { source, source_prime, target, target_prime, hat, weights, .. } = head;
            for field in [source, source_prime, target, target_prime, hat, weights] {
                *field += memory.address();
            }
        }
        blob.push(&heads);
        // SAFETY: the memory was made for these words.
        unsafe { device.core().driver().upload(memory.address(), &blob.words) }?;
        let sources = list.iter().map(|l| l.sources.len()).max().unwrap_or(0);
        Ok(Self { memory, at: 8 * at as u64, count: list.len(), sources })
    }

    /// Where the first stands.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address() + self.at
    }
}

/// One conversion's lists, with places in the blob for addresses.
fn lay(blob: &mut Blob, basis: &RnsBasis, primes: &Primes, lifting: &Lifting) -> Result<Conversion> {
    let numbers = |list: &[(usize, usize)], row: bool| -> Vec<u32> {
        list.iter().map(|(i, r)| if row { *r } else { *i } as u32).collect()
    };
    let values: Vec<u64> = lifting.sources.iter().map(|(i, _)| basis.limb(*i).q()).collect();
    // Q/q_i modulo another prime; Q itself for a number that is no source's.
    let product_without = |m: &Modulus, without: usize| {
        values.iter().enumerate().filter(|(i, _)| *i != without).fold(1, |acc, (_, q)| m.mul(acc, *q))
    };
    let hat = lifting.sources.iter().enumerate().map(|(at, (i, _))| {
        let m = basis.modulus(*i);
        Ok(Factor::new(m, m.inverse(m.mul(product_without(m, at), basis.degree() as u64))?))
    });
    let weights: Vec<u64> = lifting
        .targets
        .iter()
        .flat_map(|(j, _)| {
            let m = basis.modulus(*j);
            (0..values.len())
                .map(|at| product_without(m, at))
                .chain([m.neg(product_without(m, usize::MAX))])
                .collect::<Vec<_>>()
        })
        .collect();
    Ok(Conversion {
        source: blob.push(&numbers(&lifting.sources, true)),
        source_prime: blob.push(&numbers(&lifting.sources, false)),
        target: blob.push(&numbers(&lifting.targets, true)),
        target_prime: blob.push(&numbers(&lifting.targets, false)),
        hat: blob.push(&hat.collect::<Result<Vec<_>>>()?),
        weights: blob.push(&weights),
        count: lifting.sources.len() as u32,
        targets: lifting.targets.len() as u32,
        narrow: u32::from(lifting.sources.iter().all(|(i, _)| primes.narrow(*i))),
        pad: 0,
    })
}
