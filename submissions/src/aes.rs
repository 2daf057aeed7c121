//! AES-128 of encrypted blocks under an encrypted key (FIPS 197), both ways, by tables of CKKS slots.
//!
//! The N integers of a value are two halves of N/2 slots. Row 2d + p of column c of block j has its bits in half p, at slot
//! c·N/8 + g·R + j, where g = d·P + (bit mod P) is one of 2P regions of R slots; P planes of bits share a value, as many as leave R room for all
//! blocks. Blocks are thus dear by the value, not by the block.
//!
//! A round takes the bits, known modulo 2: a table for each of them brings it to its place in a byte, and rotations by regions bring
//! all planes together, where tables give the bits of the S-box. ShiftRows is a rotation of columns, MixColumns is sums of
//! bits. Regions but the first then hold what means nothing, so that a mask comes before planes go back to their regions, and the
//! round's key is added there.

use crate::Outcome;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapParams};
use sudare_he::ckks::Ciphertext;
use sudare_he::discrete::{Discrete, Evaluator, Form, Table};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::wire::{Bundle, Wire};

/// What bits are known modulo.
pub const SUMS: u64 = 2;
/// What bytes are known modulo.
const BYTES: u64 = 256;
/// Rounds of the cipher.
pub const ROUNDS: usize = 10;
/// Bytes of a block.
pub const BLOCK: usize = 16;

/// A block, or a round's key.
pub type Bytes = [u8; BLOCK];
/// A bit of all rows: rows 0 and 1, and rows 2 and 3.
type Plane = [Discrete; 2];

/// W16 with a level for masks, and special primes that outweigh a digit of its primes: log2 QP = 1,676.
pub fn literal() -> BootstrapLiteral {
    let mut literal = BootstrapLiteral::w16();
    let rlwe = &mut literal.params.rlwe;
    rlwe.q_bits.insert(4, 38);
    rlwe.p_bits.push(49);
    literal
}

/// Which way, and its tables.
#[derive(Clone, Debug)]
pub struct Cipher {
    sbox: [u8; 256],
    /// MixColumns: what multiplies rows r, r + 1, r + 2, r + 3 for row r.
    mix: [u8; 4],
    /// Columns that row 1 is rotated to the left, and row 3: 1 and 3, or the other way round.
    inverse: bool,
}

/// x·y modulo X^8 + X^4 + X^3 + X + 1.
fn times(x: u8, y: u8) -> u8 {
    (0..8).rev().fold(0u8, |acc, i| {
        let doubled = acc << 1 ^ if acc & 0x80 != 0 { 0x1b } else { 0 };
        doubled ^ if y >> i & 1 == 1 { x } else { 0 }
    })
}

impl Cipher {
    /// Encryption.
    pub fn encryption() -> Self {
        let sbox = std::array::from_fn(|x| {
            // x^254 is the inverse.
            let inverse = (0..254).fold(1u8, |acc, _| times(acc, x as u8));
            let inverse = if x == 0 { 0 } else { inverse };
            (0..5).fold(0x63, |acc, turn| acc ^ inverse.rotate_left(turn))
        });
        Self { sbox, mix: [2, 3, 1, 1], inverse: false }
    }

    /// Decryption, in the order of the equivalent inverse cipher: the same steps with other tables.
    pub fn decryption() -> Self {
        let mut sbox = [0; 256];
        (0..=255u8).zip(Self::encryption().sbox).for_each(|(x, y)| sbox[usize::from(y)] = x);
        Self { sbox, mix: [14, 11, 13, 9], inverse: true }
    }

    fn mixed(&self, state: Bytes) -> Bytes {
        std::array::from_fn(|k| {
            let at = |i: usize| times(state[k / 4 * 4 + (k + i) % 4], self.mix[i]);
            at(0) ^ at(1) ^ at(2) ^ at(3)
        })
    }

    /// The keys of all rounds in the order in which they are added.
    pub fn round_keys(&self, key: Bytes) -> Vec<Bytes> {
        let forward = Self::encryption();
        let mut words: Vec<[u8; 4]> = key.chunks(4).map(|w| [w[0], w[1], w[2], w[3]]).collect();
        let mut constant = 1u8;
        for i in 4..4 * (ROUNDS + 1) {
            let mut word = words[i - 1];
            if i % 4 == 0 {
                word.rotate_left(1);
                word.iter_mut().for_each(|x| *x = forward.sbox[usize::from(*x)]);
                word[0] ^= constant;
                constant = times(constant, 2);
            }
            let before = words[i - 4];
            words.push(std::array::from_fn(|k| word[k] ^ before[k]));
        }
        let mut keys: Vec<Bytes> = words.chunks(4).map(|w| std::array::from_fn(|k| w[k / 4][k % 4])).collect();
        if self.inverse {
            keys.reverse();
            keys[1..ROUNDS].iter_mut().for_each(|key| *key = self.mixed(*key));
        }
        keys
    }

    /// A block in the clear; the last of the keys' rounds has no MixColumns.
    pub fn apply(&self, block: Bytes, keys: &[Bytes]) -> Bytes {
        let add = |x: Bytes, y: &Bytes| std::array::from_fn(|k| x[k] ^ y[k]);
        let mut state = add(block, &keys[0]);
        for (round, key) in keys.iter().enumerate().skip(1) {
            // Byte 4c + r is row r of column c.
            let from = |k: usize| (k + if self.inverse { 12 * (k % 4) } else { 4 * (k % 4) }) % BLOCK;
            let shifted = std::array::from_fn(|k| self.sbox[usize::from(state[from(k)])]);
            state = add(if round + 1 < keys.len() { self.mixed(shifted) } else { shifted }, key);
        }
        state
    }

    /// The table of a bit of the S-box.
    ///
    /// # Errors
    /// None: a byte has 256 values.
    pub fn sbox_bit(&self, bit: usize) -> Outcome<Table> {
        Ok(Table::of(BYTES, SUMS, |x| u64::from(self.sbox[x as usize] >> bit & 1))?)
    }

    /// The bits of rows r + i whose sum is bit `bit` of row r: (bit, i).
    fn terms(&self, bit: usize) -> Vec<(usize, usize)> {
        let all = (0..8).flat_map(|from| (0..4).map(move |i| (from, i)));
        all.filter(|(from, i)| times(self.mix[*i], 1 << from) >> bit & 1 == 1).collect()
    }
}

/// Where bits of blocks stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    degree: usize,
    blocks: usize,
    /// P.
    planes: usize,
}

impl Layout {
    /// For so many blocks, in a ring of a degree.
    ///
    /// # Errors
    /// For more than N/16 blocks.
    pub fn new(degree: usize, blocks: usize) -> Outcome<Self> {
        let fits = |planes: &usize| blocks <= degree / 16 / planes;
        let planes = [8, 4, 2, 1].into_iter().find(fits);
        let planes = planes.ok_or_else(|| format!("{blocks} blocks, where {} have room", degree / 16))?;
        Ok(Self { degree, blocks, planes })
    }

    /// Values that the bits of all blocks take.
    pub fn values(self) -> usize {
        8 / self.planes
    }

    /// R: blocks that have room.
    pub fn region(self) -> usize {
        self.degree / 16 / self.planes
    }

    fn column(self) -> usize {
        self.degree / 8
    }

    /// Rotations that a server's keys have to be for.
    pub fn rotations(self) -> Vec<i64> {
        let region = self.region() as i64;
        let strides = (0..=self.planes.ilog2()).map(|k| region << k);
        let both = strides.flat_map(|stride| [stride, -stride]);
        both.chain(self.folds()).collect()
    }

    /// Rotations that bring all words together at the first place: block to block, column to column, rows 2 and 3 to rows 0 and 1.
    fn folds(self) -> Vec<i64> {
        let (region, column) = (self.region() as i64, self.column() as i64);
        let blocks = (0..self.blocks.next_power_of_two().ilog2()).map(|k| 1 << k);
        blocks.chain([column, 2 * column, self.planes as i64 * region]).collect()
    }

    /// Value and place of bit `bit` of byte `byte` of a block.
    fn place(self, block: usize, byte: usize, bit: usize) -> (usize, usize) {
        let (column, row) = (byte / 4, byte % 4);
        let region = row / 2 * self.planes + bit % self.planes;
        let slot = column * self.column() + region * self.region() + block;
        (bit / self.planes, row % 2 * (self.degree / 2) + slot)
    }

    /// The bits of blocks as integers of values.
    pub fn pack(self, blocks: &[Bytes]) -> Vec<Vec<u64>> {
        let mut all = vec![vec![0; self.degree]; self.values()];
        for (j, block) in blocks.iter().enumerate() {
            for (byte, x) in block.iter().enumerate() {
                for bit in 0..8 {
                    let (value, place) = self.place(j, byte, bit);
                    all[value][place] = u64::from(x >> bit & 1);
                }
            }
        }
        all
    }

    /// Blocks of values' integers.
    pub fn unpack(self, values: &[Vec<u64>]) -> Vec<Bytes> {
        let bit = |j: usize, byte: usize, bit: usize| {
            let (value, place) = self.place(j, byte, bit);
            ((values[value][place] % SUMS) as u8) << bit
        };
        (0..self.blocks).map(|j| std::array::from_fn(|byte| (0..8).map(|b| bit(j, byte, b)).sum())).collect()
    }
}

/// A server's side of the cipher.
#[derive(Debug)]
pub struct Aes<'a> {
    server: &'a Evaluator,
    layout: Layout,
    cipher: Cipher,
    /// The slots of blocks in the first region.
    kept: Vec<bool>,
}

impl<'a> Aes<'a> {
    /// On a server with keys for the layout's rotations.
    pub fn new(server: &'a Evaluator, layout: Layout, cipher: Cipher) -> Self {
        let kept = |i: usize| i % layout.column() < layout.blocks;
        Self { server, layout, cipher, kept: (0..layout.degree).map(kept).collect() }
    }

    /// Bootstraps of so many rounds, each of one value.
    pub fn bootstraps(&self, rounds: usize) -> usize {
        rounds * (self.layout.values() + 1)
    }

    /// The state with the first key added goes through as many rounds as there are further keys, the last one without MixColumns.
    ///
    /// # Errors
    /// Those of [`Evaluator`].
    pub fn rounds(&self, mut state: Vec<Discrete>, keys: &[Vec<Discrete>]) -> Outcome<Vec<Discrete>> {
        for (round, key) in keys.iter().enumerate() {
            let bits = self.sub_bytes(&self.bytes(&state)?)?;
            let mut shifted = bits.iter().map(|plane| self.shift_rows(plane)).collect::<Outcome<Vec<_>>>()?;
            if round + 1 < keys.len() {
                shifted = self.mix_columns(&shifted)?;
            }
            state = self.to_regions(&shifted)?;
            state = state.iter().zip(key).map(|(x, k)| Ok(self.server.add(x, k)?)).collect::<Outcome<_>>()?;
        }
        Ok(state)
    }

    /// Bytes of rows 0 and 1 in region 0, and of rows 2 and 3 in region P.
    fn bytes(&self, state: &[Discrete]) -> Outcome<Discrete> {
        let (e, planes) = (self.server, self.layout.planes);
        let mut sums: Vec<Discrete> = Vec::new();
        for (value, bits) in state.iter().enumerate() {
            let table = |k: usize| Table::new(&[0, 1 << (value * planes + k)], BYTES);
            let tables = (0..planes).map(table).collect::<Result<Vec<_>, _>>()?;
            let found = e.tables_many(&[bits], &tables, Form::Split)?.concat();
            sums = match sums.is_empty() {
                true => found,
                false => sums.iter().zip(&found).map(|(x, y)| e.add(x, y)).collect::<Result<_, _>>()?,
            };
        }
        gathered(e, sums, self.layout.region() as i64)
    }

    /// The bits of the S-box of bytes, in region 0.
    fn sub_bytes(&self, bytes: &Discrete) -> Outcome<Vec<Plane>> {
        let tables = (0..8).map(|bit| self.cipher.sbox_bit(bit)).collect::<Outcome<Vec<_>>>()?;
        let found = self.server.tables_many(&[bytes], &tables, Form::Split)?.concat();
        let steps = (self.layout.planes * self.layout.region()) as i64;
        found.into_iter().map(|x| Ok([x.clone(), self.server.rotate(&x, steps)?])).collect()
    }

    /// A value of halves of others.
    fn pick(&self, parts: [(&Discrete, usize); 2]) -> Outcome<Discrete> {
        let range = (0, parts[0].0.range().1.max(parts[1].0.range().1));
        let error = parts[0].0.error().max(parts[1].0.error());
        let chosen = parts.map(|(value, part)| value.parts()[part].clone());
        Ok(Discrete::from_parts(self.server.params(), chosen.into(), SUMS, range, error)?)
    }

    /// Two rows of a plane, which has rows as they stand in a column.
    fn rows(&self, [first, second]: &Plane, rows: [usize; 2]) -> Outcome<Discrete> {
        let of = |row: usize| if row % 4 < 2 { (first, row % 2) } else { (second, row % 2) };
        self.pick(rows.map(of))
    }

    /// Row r a column r times to the left, or to the right: rows 2 and 3 by two, or rows 2 and 1, then rows 1 and 3 by one.
    fn shift_rows(&self, plane: &Plane) -> Outcome<Plane> {
        let (e, column) = (self.server, self.layout.column() as i64);
        let far = if self.cipher.inverse { 1 } else { 3 };
        let twice = e.rotate(&self.rows(plane, [2, far])?, 2 * column)?;
        let near = (&plane[if far == 1 { 1 } else { 0 }], 1);
        let odd = if far == 1 { [(&twice, 1), near] } else { [near, (&twice, 1)] };
        let odd = e.rotate(&self.pick(odd)?, column)?;
        Ok([self.pick([(&plane[0], 0), (&odd, 0)])?, self.pick([(&twice, 0), (&odd, 1)])?])
    }

    /// Sums of bits whose parity is MixColumns.
    fn mix_columns(&self, planes: &[Plane]) -> Outcome<Vec<Plane>> {
        // Rows k and k + 1 of each plane.
        let turned =
            planes.iter().map(|plane| (0..4).map(|k| self.rows(plane, [k, k + 1])).collect::<Outcome<Vec<_>>>());
        let turned = turned.collect::<Outcome<Vec<_>>>()?;
        let one = |bit: usize, base: usize| -> Outcome<Discrete> {
            let mut sum: Option<Discrete> = None;
            for (from, i) in self.cipher.terms(bit) {
                let term = &turned[from][(base + i) % 4];
                sum = Some(match sum {
                    None => term.clone(),
                    Some(sum) => self.server.add(&sum, term)?,
                });
            }
            sum.ok_or_else(|| "a bit of MixColumns has terms".into())
        };
        (0..8).map(|bit| Ok([one(bit, 0)?, one(bit, 2)?])).collect()
    }

    /// Every plane in its own region of its value.
    fn to_regions(&self, planes: &[Plane]) -> Outcome<Vec<Discrete>> {
        let value = |planes: &[Plane]| -> Outcome<Discrete> {
            let order = || [0, 1].into_iter().flat_map(|d| planes.iter().map(move |plane| &plane[d]));
            let alone = order().map(|x| self.server.mask(x, &self.kept)).collect::<Result<Vec<_>, _>>()?;
            let sum = gathered(self.server, alone, -(self.layout.region() as i64))?;
            // A place has one plane's integer and error; of the others it has no more than what masks and rotations add.
            let errors = || order().map(Discrete::error);
            let largest = errors().fold(0.0, f64::max);
            let error = sum.error() - errors().sum::<f64>() + largest;
            let range = (0, order().map(|x| x.range().1).max().unwrap_or(0));
            Ok(Discrete::from_parts(self.server.params(), sum.parts().to_vec(), SUMS, range, error.max(largest))?)
        };
        planes.chunks(self.layout.planes).map(value).collect()
    }
}

/// Σ_k of value k, rotated k times by some steps; of a power of two of values.
fn gathered(server: &Evaluator, mut values: Vec<Discrete>, mut steps: i64) -> Outcome<Discrete> {
    while values.len() > 1 {
        let pair = |pair: &[Discrete]| -> Outcome<Discrete> {
            match pair {
                [x, y] => Ok(server.add(x, &server.rotate(y, steps)?)?),
                _ => Err("values come in pairs".into()),
            }
        };
        values = values.chunks(2).map(pair).collect::<Outcome<_>>()?;
        steps *= 2;
    }
    values.pop().ok_or_else(|| "a sum of no values".into())
}

/// The largest of the words of 16 bits, big-endian, in the blocks of a layout.
///
/// Words are compared digit by digit, four bits each: a table says of each difference whether it is below, at or above zero, one more
/// of all four which word is larger, and a product takes it.
#[derive(Debug)]
pub struct Maximum<'a> {
    server: &'a Evaluator,
    layout: Layout,
}

/// What digits are known modulo: differences of two are below it.
const DIGITS: u64 = 32;
/// What four comparisons are known modulo: 0, 1, 2 for below, at, above, times powers of three.
const ORDERS: u64 = 81;

impl<'a> Maximum<'a> {
    /// On a server with keys for the layout's rotations.
    pub fn new(server: &'a Evaluator, layout: Layout) -> Self {
        Self { server, layout }
    }

    /// Bootstraps, each of one value.
    pub fn bootstraps(&self) -> usize {
        self.layout.values() + 5 * self.layout.folds().len()
    }

    /// The low and the high digits of both bytes of the largest word, at the first place of both halves; other places hold what means
    /// nothing.
    ///
    /// # Errors
    /// Those of [`Evaluator`].
    pub fn find(&self, state: &[Discrete]) -> Outcome<[Discrete; 2]> {
        let mut digits = self.digits(state)?;
        // A digit, and beyond what a digit is, what makes the table smooth.
        let same = Table::of(DIGITS, DIGITS, |x| x.min(DIGITS - 1 - x))?;
        for steps in self.layout.folds() {
            let e = self.server;
            let others = [e.rotate(&digits[0], steps)?, e.rotate(&digits[1], steps)?];
            let larger = self.larger(&digits, &others)?;
            let one = |i: usize| -> Outcome<Discrete> {
                let chosen = e.mul(&larger, &e.sub(&digits[i], &others[i])?)?;
                let sum = e.add(&chosen, &others[i])?;
                // What is stated of a sum of products is twice of what a digit can be.
                Ok(Discrete::from_parts(e.params(), sum.parts().to_vec(), DIGITS, (0, 15), sum.error())?)
            };
            let chosen = [one(0)?, one(1)?];
            let fresh = e.tables_many(&[&chosen[0], &chosen[1]], std::slice::from_ref(&same), Form::Split)?.concat();
            digits = fresh.try_into().map_err(|_| "two digits")?;
        }
        Ok(digits)
    }

    /// Digits of bits 0 to 3 and 4 to 7 of both bytes, where rows 0 and 1 and rows 2 and 3 stand.
    fn digits(&self, state: &[Discrete]) -> Outcome<[Discrete; 2]> {
        let (e, planes) = (self.server, self.layout.planes);
        // Terms of each digit that are rotated by so many regions.
        let mut terms: [Vec<Option<Discrete>>; 2] = [vec![None; planes], vec![None; planes]];
        for (value, bits) in state.iter().enumerate() {
            let table = |k: usize| Table::new(&[0, 1 << ((value * planes + k) % 4)], DIGITS);
            let tables = (0..planes).map(table).collect::<Result<Vec<_>, _>>()?;
            for (k, found) in e.tables_many(&[bits], &tables, Form::Split)?.concat().into_iter().enumerate() {
                let term = &mut terms[(value * planes + k) / 4][k];
                *term = Some(match term.take() {
                    None => found,
                    Some(sum) => e.add(&sum, &found)?,
                });
            }
        }
        let one = |terms: Vec<Option<Discrete>>| -> Outcome<Discrete> {
            let mut sum: Option<Discrete> = None;
            for (k, term) in terms.into_iter().enumerate() {
                let Some(mut term) = term else { continue };
                for step in (0..planes.ilog2()).filter(|step| k >> step & 1 == 1) {
                    term = e.rotate(&term, (self.layout.region() << step) as i64)?;
                }
                sum = Some(match sum {
                    None => term,
                    Some(sum) => e.add(&sum, &term)?,
                });
            }
            sum.ok_or_else(|| "a digit has bits".into())
        };
        let [low, high] = terms;
        Ok([one(low)?, one(high)?])
    }

    /// Whether words are larger than others, in both halves.
    fn larger(&self, digits: &[Discrete; 2], others: &[Discrete; 2]) -> Outcome<Discrete> {
        let e = self.server;
        let order = |weight: u64| {
            Table::of(DIGITS, ORDERS, |x| match x {
                0 | 16 => weight,
                1..16 => 2 * weight,
                _ => 0,
            })
        };
        let mut sum: Option<(Ciphertext, f64)> = None;
        let ring = e.bootstrapper().evaluator();
        for (i, weights) in [[9, 1], [27, 3]].iter().enumerate() {
            let tables = weights.map(order).into_iter().collect::<Result<Vec<_>, _>>()?;
            let found = e.tables(&e.sub(&digits[i], &others[i])?, &tables)?;
            // The first byte of a word stands in the first half.
            for (half, found) in found.iter().enumerate() {
                let part = &found.parts()[half];
                sum = Some(match sum {
                    None => (part.clone(), found.error()),
                    Some((sum, error)) => (ring.add(&sum, part)?, error + found.error()),
                });
            }
        }
        let (sum, error) = sum.ok_or("words have digits")?;
        let both = Discrete::from_parts(e.params(), vec![sum.clone(), sum], ORDERS, (0, 80), error)?;
        Ok(e.table(&both, &Table::of(ORDERS, DIGITS, |x| u64::from(x > 40))?)?)
    }
}

/// The largest word of decrypted digits.
pub fn largest_word([low, high]: [&[u64]; 2]) -> u16 {
    let half = low.len() / 2;
    let byte = |at: usize| high[at] << 4 | low[at];
    (byte(0) << 8 | byte(half)) as u16
}

/// Values in a file: ciphertexts, and what is known of their integers.
///
/// # Errors
/// For values under several keys.
pub fn to_bytes(params: &BootstrapParams, values: &[Discrete]) -> Outcome<Vec<u8>> {
    let first = values.first().ok_or("a file of no values")?;
    let mut header = Vec::new();
    for x in values {
        header.extend(x.modulus().to_le_bytes());
        [x.range().0, x.range().1].iter().for_each(|end| header.extend(end.to_le_bytes()));
        header.extend(x.error().to_le_bytes());
    }
    let ciphertexts = values.iter().flat_map(|x| x.parts().iter().cloned()).collect();
    Ok(Bundle::new(params.params().rlwe(), first.key(), header, ciphertexts)?.to_bytes()?)
}

/// Split values of a file.
///
/// # Errors
/// For a file that is not whole, or of other parameters.
pub fn from_bytes(params: &BootstrapParams, bytes: &[u8]) -> Outcome<Vec<Discrete>> {
    let bundle = Bundle::<Ciphertext>::from_bytes(params.params().rlwe(), bytes)?;
    let fields = bundle.application().as_chunks::<8>().0;
    if fields.len() % 4 != 0 || 2 * fields.len() != 4 * bundle.ciphertexts().len() {
        return Err("a file of values says of others".into());
    }
    let values = fields.chunks(4).zip(bundle.ciphertexts().chunks(2)).map(|(about, parts)| {
        let range = (i64::from_le_bytes(about[1]), i64::from_le_bytes(about[2]));
        let (modulus, error) = (u64::from_le_bytes(about[0]), f64::from_le_bytes(about[3]));
        Ok(Discrete::from_parts(params, parts.to_vec(), modulus, range, error)?)
    });
    values.collect()
}

/// Keys for the rotations of a layout, at the level where tables end.
///
/// # Errors
/// If the system gives no entropy.
pub fn rotation_keys(params: &BootstrapParams, secret: &SecretKey, layout: Layout) -> Outcome<EvalKeys> {
    let (ring, level) = (params.params(), params.output_level());
    let mut elements: Vec<(u64, usize)> =
        layout.rotations().into_iter().map(|steps| (ring.rotation_element(steps), level)).collect();
    elements.sort_unstable();
    elements.dedup();
    Ok(KeyGenerator::new(secret)?.eval_keys(None, &elements)?)
}
