//! AES-128 of encrypted blocks under an encrypted key (FIPS 197), two bootstraps of 2^16 bytes for each step of a round.
//!
//! The four rows of the state are four real ciphertexts; slot c·B + j has column c of block j, so that ShiftRows is a rotation and
//! MixColumns are sums of ciphertexts. A byte is read by eight tables at once, one for each bit of the S-box. Bits are known modulo 2, so
//! that sums of them, the key's among them, are exclusive ors; a table of two values brings each to its place in the next byte. Two sums
//! in one table, s + 16·s' modulo 32, would take half of the bootstraps, and errors of eight bits times 16 would grow from round to round.

use super::World;
use super::work::{Found, Server};
use crate::Outcome;
use sudare_he::discrete::{Decryptor, Discrete, Encryptor, Form, Table};
use sudare_testkit::Random;

/// What sums of bits are known modulo.
const SUMS: u64 = 2;
pub const ROUNDS: usize = 10;

/// A bit of all rows: rows 0 and 1, and rows 2 and 3.
type Plane = [Discrete; 2];

/// Rotations of ShiftRows: by one column and by two.
pub fn steps(degree: usize) -> Vec<i64> {
    let blocks = degree as i64 / 8;
    vec![blocks, 2 * blocks]
}

/// x·y modulo X^8 + X^4 + X^3 + X + 1.
fn times(x: u8, y: u8) -> u8 {
    (0..8).rev().fold(0u8, |acc, i| {
        let doubled = acc << 1 ^ if acc & 0x80 != 0 { 0x1b } else { 0 };
        doubled ^ if y >> i & 1 == 1 { x } else { 0 }
    })
}

/// The S-box.
fn sbox() -> [u8; 256] {
    std::array::from_fn(|x| {
        // x^254 is the inverse.
        let inverse = (0..254).fold(1u8, |acc, _| times(acc, x as u8));
        let inverse = if x == 0 { 0 } else { inverse };
        (0..5).fold(0x63, |acc, turn| acc ^ inverse.rotate_left(turn))
    })
}

/// Round keys of a key, 16 bytes each.
fn round_keys(key: [u8; 16], sbox: &[u8; 256]) -> Vec<[u8; 16]> {
    let mut words: Vec<[u8; 4]> = key.chunks(4).map(|w| [w[0], w[1], w[2], w[3]]).collect();
    let mut constant = 1u8;
    for i in 4..4 * (ROUNDS + 1) {
        let mut word = words[i - 1];
        if i % 4 == 0 {
            word.rotate_left(1);
            word.iter_mut().for_each(|x| *x = sbox[usize::from(*x)]);
            word[0] ^= constant;
            constant = times(constant, 2);
        }
        let before = words[i - 4];
        words.push(std::array::from_fn(|k| word[k] ^ before[k]));
    }
    words.chunks(4).map(|w| std::array::from_fn(|k| w[k / 4][k % 4])).collect()
}

/// A block in plain arithmetic.
fn encrypt_block(block: [u8; 16], keys: &[[u8; 16]], sbox: &[u8; 256]) -> [u8; 16] {
    let add = |x: [u8; 16], y: &[u8; 16]| std::array::from_fn(|k| x[k] ^ y[k]);
    let mut state = add(block, &keys[0]);
    for (round, key) in keys.iter().enumerate().skip(1) {
        // Byte 4c + r is row r of column c.
        let shifted: [u8; 16] = std::array::from_fn(|k| sbox[usize::from(state[(k + 4 * (k % 4)) % 16])]);
        let mixed: [u8; 16] = std::array::from_fn(|k| {
            let at = |i: usize| shifted[k / 4 * 4 + (k + i) % 4];
            times(at(0), 2) ^ times(at(1), 3) ^ at(2) ^ at(3)
        });
        state = add(if round + 1 < keys.len() { mixed } else { shifted }, key);
    }
    state
}

/// Encrypted blocks, and how they are computed on.
struct Aes<'a> {
    world: &'a World,
    client: Encryptor<'a>,
    /// Blocks.
    blocks: usize,
}

impl Aes<'_> {
    /// Bit `bit` of row `row` of every slot.
    fn bits(&self, state: &[[u8; 16]], bit: usize, row: usize) -> Vec<u64> {
        let slot = |i: usize| state[i % self.blocks][4 * (i / self.blocks) + row];
        (0..4 * self.blocks).map(|i| u64::from(slot(i) >> bit & 1)).collect()
    }

    /// The planes of blocks.
    fn encrypt(&self, state: &[[u8; 16]]) -> Outcome<Vec<Plane>> {
        let pair = |bit: usize, row: usize| -> Outcome<Discrete> {
            let values = [self.bits(state, bit, row), self.bits(state, bit, row + 1)].concat();
            let all = self.client.encrypt(&values, SUMS, Form::Split)?;
            Ok(Discrete::from_parts(self.world.server.params(), all.parts().to_vec(), SUMS, (0, 1), all.error())?)
        };
        (0..8).map(|bit| Ok([pair(bit, 0)?, pair(bit, 2)?])).collect()
    }

    /// Two rows of a plane, which has rows as they stand in a column.
    fn rows(&self, [first, second]: &Plane, rows: [usize; 2]) -> Outcome<Discrete> {
        let of = |row: usize| if row % 4 < 2 { (first, row % 2) } else { (second, row % 2) };
        self.pick(rows.map(of))
    }

    fn pick(&self, parts: [(&Discrete, usize); 2]) -> Outcome<Discrete> {
        let range = (0, parts[0].0.range().1.max(parts[1].0.range().1));
        let error = parts[0].0.error().max(parts[1].0.error());
        let chosen = parts.map(|(value, part)| value.parts()[part].clone());
        Ok(Discrete::from_parts(self.world.server.params(), chosen.into(), SUMS, range, error)?)
    }

    fn sum(&self, terms: &[&Discrete]) -> Outcome<Discrete> {
        let mut sum = terms[0].clone();
        for term in &terms[1..] {
            sum = self.world.server.add(&sum, term)?;
        }
        Ok(sum)
    }

    /// Row r one slot of a column r times to the left.
    fn shift_rows(&self, plane: &Plane) -> Outcome<Plane> {
        let (e, column) = (&self.world.server, self.blocks as i64);
        let twice = e.rotate(&plane[1], 2 * column)?;
        let odd = e.rotate(&self.pick([(&plane[0], 1), (&twice, 1)])?, column)?;
        Ok([self.pick([(&plane[0], 0), (&odd, 0)])?, self.pick([(&twice, 0), (&odd, 1)])?])
    }

    /// Sums of bits whose parity is MixColumns.
    fn mix_columns(&self, planes: &[Plane]) -> Outcome<Vec<Plane>> {
        // Rows k and k + 1 of each plane.
        let turned =
            planes.iter().map(|plane| (0..4).map(|k| self.rows(plane, [k, k + 1])).collect::<Outcome<Vec<_>>>());
        let turned = turned.collect::<Outcome<Vec<_>>>()?;
        let one = |bit: usize, base: usize| {
            let at = |bit: usize, k: usize| &turned[bit][(base + k) % 4];
            let mut terms = vec![at(bit, 1), at(bit, 2), at(bit, 3)];
            // Twice a byte: its bits one place up, and the highest where the polynomial has a term.
            for k in [0, 1] {
                if bit > 0 {
                    terms.push(at(bit - 1, k));
                }
                if 0x1b >> bit & 1 == 1 {
                    terms.push(at(7, k));
                }
            }
            self.sum(&terms)
        };
        (0..8).map(|bit| Ok([one(bit, 0)?, one(bit, 2)?])).collect()
    }

    /// Sums of bits with those of another plane.
    fn add(&self, a: &[Plane], b: &[Plane]) -> Outcome<Vec<Plane>> {
        let e = &self.world.server;
        a.iter().zip(b).map(|(x, y)| Ok([e.add(&x[0], &y[0])?, e.add(&x[1], &y[1])?])).collect()
    }

    /// Bytes of sums of bits.
    fn bytes(&self, sums: &[Plane]) -> Outcome<Plane> {
        let e = &self.world.server;
        let mut bytes: Option<Plane> = None;
        for (bit, [first, second]) in sums.iter().enumerate() {
            let table = Table::new(&[0, 1 << bit], 256)?;
            let found = e.tables_many(&[first, second], &[table], Form::Split)?;
            bytes = Some(match bytes {
                None => [found[0][0].clone(), found[1][0].clone()],
                Some([x, y]) => [e.add(&x, &found[0][0])?, e.add(&y, &found[1][0])?],
            });
        }
        Ok(bytes.ok_or("a byte has bits")?)
    }

    /// The bits of the S-box of bytes.
    fn sub_bytes(&self, [first, second]: &Plane, sbox: &[u8; 256]) -> Outcome<Vec<Plane>> {
        let table = |bit: usize| Table::of(256, SUMS, |x| u64::from(sbox[x as usize] >> bit & 1));
        let tables = (0..8).map(table).collect::<Result<Vec<_>, _>>()?;
        let found = self.world.server.tables_many(&[first, second], &tables, Form::Split)?;
        Ok(found[0].iter().zip(&found[1]).map(|(x, y)| [x.clone(), y.clone()]).collect())
    }
}

/// Encrypts as many blocks as two ciphertexts have room for, in `rounds` rounds, 10 for the cipher.
pub fn run(w: &World, rounds: usize, server: &mut Server) -> Outcome<Found> {
    let params = w.server.params();
    let blocks = params.params().degree() / 8;
    let aes = Aes { world: w, client: Encryptor::with_secret_key(params, &w.secret)?, blocks };
    let sbox = sbox();
    let mut random = Random(47);
    let key: [u8; 16] = std::array::from_fn(|_| random.below(256) as u8);
    let plain: Vec<[u8; 16]> = (0..blocks).map(|_| std::array::from_fn(|_| random.below(256) as u8)).collect();
    let mut keys = round_keys(key, &sbox);
    keys.truncate(rounds + 1);
    let encrypted_key = |round: usize| aes.encrypt(&vec![keys[round]; blocks]);
    let (state, first) = (aes.encrypt(&plain)?, encrypted_key(0)?);
    let mut sums = server.run(0, || aes.add(&state, &first))?;
    for round in 1..=rounds {
        let key = encrypted_key(round)?;
        sums = server.run(18, || {
            let bits = aes.sub_bytes(&aes.bytes(&sums)?, &sbox)?;
            let shifted = bits.iter().map(|plane| aes.shift_rows(plane)).collect::<Outcome<Vec<_>>>()?;
            let mixed = if round < rounds { aes.mix_columns(&shifted)? } else { shifted };
            aes.add(&mixed, &key)
        })?;
    }
    let owner = Decryptor::new(params, &w.secret)?;
    let mut found = vec![[0u8; 16]; blocks];
    for (bit, plane) in sums.iter().enumerate() {
        for (pair, value) in plane.iter().enumerate() {
            for (i, sum) in owner.decrypt(value)?.into_iter().enumerate() {
                let (row, slot) = (2 * pair + i / (4 * blocks), i % (4 * blocks));
                found[slot % blocks][4 * (slot / blocks) + row] |= ((sum & 1) as u8) << bit;
            }
        }
    }
    let wrong = found.iter().zip(&plain).filter(|(x, block)| **x != encrypt_block(**block, &keys, &sbox)).count();
    Ok(Found { case: format!("AES-128, {rounds} rounds"), results: blocks, wrong })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix C.1.
    #[test]
    fn the_plain_cipher_is_aes() {
        let sbox = sbox();
        assert_eq!((sbox[0], sbox[0x53], sbox[255]), (0x63, 0xed, 0x16));
        let key = std::array::from_fn(|k| k as u8);
        let block = std::array::from_fn(|k| 0x11 * k as u8);
        let found = encrypt_block(block, &round_keys(key, &sbox), &sbox);
        let wanted = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes();
        assert_eq!(found, wanted);
    }
}
