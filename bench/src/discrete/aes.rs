//! AES-128 of encrypted blocks under an encrypted key, as the entry for transciphering computes it (`sudare_submissions::aes`).

use super::World;
use super::work::{Found, Server};
use crate::Outcome;
use std::time::Instant;
use sudare_he::discrete::{Decryptor, Discrete, DiscreteSet, Encryptor, Form};
use sudare_submissions::aes::{Aes, Bytes, Cipher, Layout, SUMS, literal, rotation_keys};
use sudare_testkit::Random;

pub use sudare_submissions::aes::ROUNDS;

/// Blocks: so many, or as many as have room where all planes of bits share a value.
fn layout(degree: usize, blocks: Option<usize>) -> Outcome<(Layout, usize)> {
    let blocks = blocks.unwrap_or(degree / 128);
    Ok((Layout::new(degree, blocks)?, blocks))
}

/// W16 with a level for masks, over 2^`log_n` where that is given, and the layout's rotations.
pub fn world(log_n: Option<u32>, blocks: Option<usize>) -> Outcome<World> {
    let start = Instant::now();
    let World { set, secret, server, .. } = World::of(DiscreteSet::W16, literal(), log_n)?;
    let (layout, _) = layout(server.params().params().degree(), blocks)?;
    let keys = rotation_keys(server.params(), &secret, layout)?;
    Ok(World { set, secret, server: server.with_keys(keys)?, setup_s: start.elapsed().as_secs_f64() })
}

/// Encrypts blocks in `rounds` rounds, 10 for the cipher.
pub fn run(w: &World, (rounds, blocks): (usize, Option<usize>), server: &mut Server) -> Outcome<Found> {
    let params = w.server.params();
    let (layout, blocks) = layout(params.params().degree(), blocks)?;
    let (cipher, client) = (Cipher::encryption(), Encryptor::with_secret_key(params, &w.secret)?);
    let mut random = Random(47);
    let mut any = || -> Bytes { std::array::from_fn(|_| random.below(256) as u8) };
    let (key, plain) = (any(), (0..blocks).map(|_| any()).collect::<Vec<_>>());
    let keys = &cipher.round_keys(key)[..=rounds];
    let encrypt = |state: &[Bytes]| -> Outcome<Vec<Discrete>> {
        let values = layout.pack(state);
        Ok(values.iter().map(|x| client.encrypt(x, SUMS, Form::Split)).collect::<Result<_, _>>()?)
    };
    let encrypted = keys.iter().map(|key| encrypt(&vec![*key; blocks])).collect::<Outcome<Vec<_>>>()?;
    let state = encrypt(&plain)?;
    let aes = Aes::new(&w.server, layout, cipher.clone());
    let found = server.run(aes.bootstraps(rounds), || {
        let first = state.iter().zip(&encrypted[0]).map(|(x, k)| w.server.add(x, k)).collect::<Result<_, _>>()?;
        aes.rounds(first, &encrypted[1..])
    })?;
    let owner = Decryptor::new(params, &w.secret)?;
    let values = found.iter().map(|x| owner.decrypt(x)).collect::<Result<Vec<_>, _>>()?;
    let found = layout.unpack(&values);
    let wrong = found.iter().zip(&plain).filter(|(x, block)| **x != cipher.apply(**block, keys)).count();
    Ok(Found { case: format!("AES-128, {rounds} rounds"), results: blocks, wrong })
}
