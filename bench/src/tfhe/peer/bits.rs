//! The peer's gates on encrypted bits.

use super::kept::{Kept, one_thread};
use super::{Claims, Operation};
use crate::Outcome;
use rayon::ThreadPool;
use sudare_testkit::Random;
use tfhe::boolean::prelude::{BinaryBooleanGates, BooleanParameters, Ciphertext, ClientKey, ServerKey};
use tfhe::boolean::server_key::CompressedServerKey;

fn describe(p: &BooleanParameters) -> String {
    format!(
        "n {} N {} k {} digits {}x{} switch {}x{}",
        p.lwe_dimension.0,
        p.polynomial_size.0,
        p.glwe_dimension.0,
        p.pbs_base_log.0,
        p.pbs_level.0,
        p.ks_base_log.0,
        p.ks_level.0
    )
}

/// NAND of outputs of gates; `name` is that of the set among the published ones.
pub fn nand(set: &'static BooleanParameters, name: &str) -> Outcome<Box<dyn Operation>> {
    let client = ClientKey::new(set);
    let server = ServerKey::new(&client);
    let mut random = Random(5);
    let inputs: Vec<(bool, Ciphertext)> = (0..64)
        .map(|_| {
            let bit = random.word() & 1 == 1;
            let c = client.encrypt(bit);
            (!bit, server.nand(&c, &c))
        })
        .collect();
    let plain: Vec<bool> = inputs.iter().map(|(x, _)| *x).collect();
    let pair = |i: usize| [i % 64, (7 * i + 1) % 64];
    Kept::all(
        (describe(set), Claims::of(name)?),
        move |i| {
            let [a, b] = pair(i);
            server.nand(&inputs[a].1, &inputs[b].1)
        },
        move |i, c| {
            let [a, b] = pair(i);
            client.decrypt(c) != (plain[a] & plain[b])
        },
    )
}

/// Server keys, made on one thread.
pub fn server_key(set: &'static BooleanParameters, name: &str) -> Outcome<Box<dyn Operation>> {
    let client = ClientKey::new(set);
    let (bootstrap, switch, _) = CompressedServerKey::new(&client).into_raw_parts();
    let seeded_bytes = size_of_val(bootstrap.as_view().into_container()) + size_of_val(switch.as_ref());
    let claims = Claims::of(name)?;
    Ok(Box::new(Keys { set, claims, client, pool: one_thread()?, server: None, seeded_bytes }))
}

struct Keys {
    set: &'static BooleanParameters,
    claims: Claims,
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
        let c = self.client.encrypt(true);
        (usize::from(self.client.decrypt(&server.nand(&c, &c))), 1)
    }

    fn params(&self) -> String {
        describe(self.set)
    }

    fn claims(&self) -> Claims {
        self.claims
    }

    fn key_bytes(&self) -> Option<[usize; 2]> {
        let server = self.server.as_ref()?;
        Some([server.bootstrapping_key_size_bytes() + server.key_switching_key_size_bytes(), self.seeded_bytes])
    }
}
