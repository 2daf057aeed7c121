//! The peer's bootstraps of two message and two carry bits, and its radix integers.

use super::kept::{Kept, one_thread};
use super::{Claims, Operation};
use crate::Outcome;
use rayon::ThreadPool;
use sudare_testkit::Random;
use tfhe::core_crypto::prelude::{
    LweCiphertext, LweCiphertextOwned, decrypt_lwe_ciphertext, keyswitch_lwe_ciphertext,
    programmable_bootstrap_lwe_ciphertext,
};
use tfhe::integer::{BooleanBlock, RadixCiphertext, gen_keys_radix};
use tfhe::shortint::atomic_pattern::compressed::CompressedAtomicPatternServerKey;
use tfhe::shortint::atomic_pattern::{AtomicPatternServerKey, StandardAtomicPatternServerKey};
use tfhe::shortint::client_key::atomic_pattern::AtomicPatternClientKey;
use tfhe::shortint::parameters::PARAM_MESSAGE_2_CARRY_2_KS_PBS as SET;
use tfhe::shortint::server_key::{LookupTableOwned, ShortintBootstrappingKey};
use tfhe::shortint::{Ciphertext, ClientKey, CompressedServerKey, ServerKey, gen_keys};

fn describe() -> String {
    format!(
        "n {} N {} k {} digits {}x{} switch {}x{}",
        SET.lwe_dimension.0,
        SET.polynomial_size.0,
        SET.glwe_dimension.0,
        SET.pbs_base_log.0,
        SET.pbs_level.0,
        SET.ks_base_log.0,
        SET.ks_level.0
    )
}

/// The library's own figure, and the bits that it claims for all its sets.
fn claims() -> Claims {
    Claims { log2_failure: Some(SET.log2_p_fail), security_bits: Some(132) }
}

/// Values of message and carry.
const SPACE: usize = 16;

fn square(x: u64) -> u64 {
    (x * x + 3) % SPACE as u64
}

/// Keys, and every number as an output of a bootstrap.
struct Side {
    client: ClientKey,
    server: ServerKey,
    inputs: Vec<Ciphertext>,
    table: LookupTableOwned,
}

impl Side {
    fn new() -> Self {
        let (client, server) = gen_keys(SET);
        let identity = server.generate_lookup_table(|x| x);
        let fresh = |x: usize| server.apply_lookup_table(&client.unchecked_encrypt(x as u64), &identity);
        let inputs = (0..SPACE).map(fresh).collect();
        let table = server.generate_lookup_table(square);
        Self { client, server, inputs, table }
    }
}

/// The parts of a server key; its default sets have no others.
fn parts(server: &ServerKey) -> Outcome<&StandardAtomicPatternServerKey> {
    match &server.atomic_pattern {
        AtomicPatternServerKey::Standard(parts) => Ok(parts),
        _ => Err("the peer's default set has another order of key switch and bootstrap".into()),
    }
}

/// A whole programmable bootstrap.
pub fn bootstrap() -> Outcome<Box<dyn Operation>> {
    let Side { client, server, inputs, table } = Side::new();
    Kept::all(
        (describe(), claims()),
        move |i| server.apply_lookup_table(&inputs[i % SPACE], &table),
        move |i, c| client.decrypt_message_and_carry(c) == square((i % SPACE) as u64),
    )
}

/// Its key switch alone.
pub fn key_switch() -> Outcome<Box<dyn Operation>> {
    let Side { client, server, inputs, .. } = Side::new();
    parts(&server)?;
    Kept::all(
        (describe(), claims()),
        move |i| switched(&server, &inputs[i % SPACE]),
        move |i, c| {
            let (Some(c), AtomicPatternClientKey::Standard(secret)) = (c, &client.atomic_pattern) else {
                return false;
            };
            // The phase is within half a box of the message's.
            let phase = decrypt_lwe_ciphertext(&secret.small_lwe_secret_key(), c).0 as f64 / 64f64.exp2();
            let off = phase - (i % SPACE) as f64 / (2 * SPACE) as f64;
            (off - off.round()).abs() < 0.5 / (2 * SPACE) as f64
        },
    )
}

/// A ciphertext under the key that bootstraps read.
fn switched(server: &ServerKey, c: &Ciphertext) -> Option<LweCiphertextOwned<u64>> {
    let key = &parts(server).ok()?.key_switching_key;
    let mut out = LweCiphertext::new(0u64, key.output_lwe_size(), key.ciphertext_modulus());
    keyswitch_lwe_ciphertext(key, &c.ct, &mut out);
    Some(out)
}

/// The rest of it: modulus switch, blind rotation and extraction.
pub fn after_key_switch() -> Outcome<Box<dyn Operation>> {
    let Side { client, server, inputs, table } = Side::new();
    let at = 2;
    let short = switched(&server, &inputs[at]).ok_or("the peer switched no key")?;
    let AtomicPatternServerKey::Standard(StandardAtomicPatternServerKey {
        bootstrapping_key: ShortintBootstrappingKey::Classic { bsk, .. },
        ..
    }) = server.atomic_pattern
    else {
        return Err("the peer's default set has another bootstrapping key".into());
    };
    let like = inputs[at].clone();
    Kept::all(
        (describe(), claims()),
        move |_| {
            let mut out = like.clone();
            programmable_bootstrap_lwe_ciphertext(&short, &mut out.ct, &table.acc, &bsk);
            out
        },
        move |_, c| client.decrypt_message_and_carry(c) == square(at as u64),
    )
}

/// Server keys, made on one thread.
pub fn server_key() -> Outcome<Box<dyn Operation>> {
    let client = ClientKey::new(SET);
    let CompressedAtomicPatternServerKey::Standard(seeded) = CompressedServerKey::new(&client).compressed_ap_server_key
    else {
        return Err("the peer's default set has another order of key switch and bootstrap".into());
    };
    let seeded_bytes =
        seeded.bootstrapping_key().bootstrapping_key_size_bytes() + size_of_val(seeded.key_switching_key().as_ref());
    Ok(Box::new(Keys { client, pool: one_thread()?, server: None, seeded_bytes }))
}

struct Keys {
    client: ClientKey,
    pool: ThreadPool,
    server: Option<ServerKey>,
    seeded_bytes: usize,
}

impl Operation for Keys {
    fn run(&mut self) {
        self.server = Some(self.pool.install(|| ServerKey::new(&self.client)));
    }

    fn clear(&mut self) {
        self.server = None;
    }

    fn answers(&self) -> (usize, usize) {
        let Some(server) = &self.server else { return (0, 0) };
        let table = server.generate_lookup_table(square);
        let c = server.apply_lookup_table(&self.client.encrypt(2), &table);
        (usize::from(self.client.decrypt_message_and_carry(&c) != square(2)), 1)
    }

    fn params(&self) -> String {
        describe()
    }

    fn claims(&self) -> Claims {
        claims()
    }

    fn key_bytes(&self) -> Option<[usize; 2]> {
        let parts = parts(self.server.as_ref()?).ok()?;
        let expanded =
            parts.bootstrapping_key.bootstrapping_key_size_bytes() + size_of_val(parts.key_switching_key.as_ref());
        Some([expanded, self.seeded_bytes])
    }
}

/// An operation on radix integers.
#[derive(Clone, Copy)]
pub enum Radix {
    Add,
    Multiply,
    Less,
}

/// A result: a number or a bit.
enum Found {
    Number(RadixCiphertext),
    Bit(BooleanBlock),
}

/// An operation on fresh integers of some bits, carries propagated, as its operators on unsigned
/// integers do; in a pool of one thread.
pub fn radix(bits: u32, operation: Radix) -> Outcome<Box<dyn Operation>> {
    let (client, server) = gen_keys_radix(SET, bits as usize / 2);
    let pool = one_thread()?;
    let mut random = Random(21);
    let mask = u64::MAX >> (64 - bits);
    let plain: Vec<u64> = (0..16).map(|_| random.word() & mask).collect();
    let inputs: Vec<RadixCiphertext> = plain.iter().map(|x| client.encrypt(*x)).collect();
    let pair = |i: usize| [i % 16, (5 * i + 1) % 16];
    Kept::all(
        (describe(), claims()),
        move |i| {
            let [a, b] = pair(i).map(|i| &inputs[i]);
            pool.install(|| match operation {
                Radix::Add => Found::Number(server.add_parallelized(a, b)),
                Radix::Multiply => Found::Number(server.mul_parallelized(a, b)),
                Radix::Less => Found::Bit(server.lt_parallelized(a, b)),
            })
        },
        move |i, found| {
            let [a, b] = pair(i).map(|i| plain[i]);
            match (operation, found) {
                (Radix::Add, Found::Number(c)) => client.decrypt::<u64>(c) == a.wrapping_add(b) & mask,
                (Radix::Multiply, Found::Number(c)) => client.decrypt::<u64>(c) == a.wrapping_mul(b) & mask,
                (Radix::Less, Found::Bit(c)) => client.decrypt_bool(c) == (a < b),
                _ => false,
            }
        },
    )
}
