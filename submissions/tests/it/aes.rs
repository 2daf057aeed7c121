//! The cipher of the entry for transciphering.

use sudare_he::circuits::bootstrapping::{BootstrapKeys, Bootstrapper};
use sudare_he::discrete::{Decryptor, Discrete, Encryptor, Errors, Evaluator, Forecast, Form, Table};
use sudare_rlwe::keys::SecretKey;
use sudare_submissions::aes::{Aes, Bytes, Cipher, Layout, Maximum, SUMS, largest_word, literal, rotation_keys};
use sudare_testkit::{Random, sized};

/// FIPS 197, appendix C.1, both ways.
#[test]
fn the_plain_cipher_is_aes() {
    let (encryption, decryption) = (Cipher::encryption(), Cipher::decryption());
    let key = std::array::from_fn(|k| k as u8);
    let block = std::array::from_fn(|k| 0x11 * k as u8);
    let found = encryption.apply(block, &encryption.round_keys(key));
    let wanted = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes();
    assert_eq!(found, wanted);
    assert_eq!(decryption.apply(found, &decryption.round_keys(key)), block);
}

/// What is packed comes out again, whatever shares a value.
#[test]
fn layouts_hold_all_blocks() {
    for (blocks, values) in [(1, 1), (4, 1), (5, 2), (16, 4), (32, 8)] {
        let layout = Layout::new(512, blocks).unwrap();
        assert_eq!(layout.values(), values);
        let state: Vec<Bytes> = (0..blocks).map(|j| std::array::from_fn(|k| (37 * j + 11 * k) as u8)).collect();
        assert_eq!(layout.unpack(&layout.pack(&state)), state);
    }
    assert!(Layout::new(512, 33).is_err());
}

/// With 128 bits of security bounds settle, so that no round is refused: foreseen without keys, with twice the errors of the bits that MixColumns adds
/// up for what masks and rotations add.
#[test]
fn bounds_settle_at_full_size() {
    let params = literal().build().unwrap();
    let fresh = Errors::within(1e-6);
    for (cipher, terms) in [(Cipher::encryption(), 7.0), (Cipher::decryption(), 19.0)] {
        let (mut state, mut bits) = (fresh, fresh);
        for round in 0..sized(3, 10) {
            let bit = Forecast { modulus: SUMS, range: (0, terms as i64 + 1), errors: state };
            let planes = (0..8).map(|b| bit.table(&params, &Table::new(&[0, 1 << b], 256).unwrap()).unwrap().errors);
            let byte = Forecast { modulus: 256, range: (0, 255), errors: planes.reduce(Errors::plus).unwrap() };
            let found = (0..8).map(|b| byte.table(&params, &cipher.sbox_bit(b).unwrap()).unwrap().errors);
            let found = found.reduce(Errors::larger).unwrap();
            println!("round {round}: bytes 2^{:.1}, bits 2^{:.1}", byte.errors.bound.log2(), found.bound.log2());
            assert!(round < 2 || found.bound < 1.01 * bits.bound, "{found:?}, {bits:?}");
            (state, bits) = (Errors::within(2.0 * terms * found.bound), found);
        }
    }
}

/// Both ciphers over a small ring and the largest word, in layouts with one value, two, and eight.
#[test]
fn blocks_are_encrypted_and_decrypted() {
    let params = literal().insecure(9).unwrap().build().unwrap();
    let secret = SecretKey::generate(params.params()).unwrap();
    let mut random = Random(3);
    let mut any = || -> Bytes { std::array::from_fn(|_| random.below(256) as u8) };
    let rounds = sized(2, 10);
    let all = [(3, Cipher::encryption()), (8, Cipher::decryption()), (32, Cipher::decryption())];
    for (blocks, cipher) in sized(all[..2].to_vec(), all.to_vec()) {
        let layout = Layout::new(512, blocks).unwrap();
        let keys = BootstrapKeys::generate(&secret, &params).unwrap();
        let server = Evaluator::new(Bootstrapper::new(keys, None).unwrap()).unwrap();
        let server = server.with_keys(rotation_keys(&params, &secret, layout).unwrap()).unwrap();
        let client = Encryptor::with_secret_key(&params, &secret).unwrap();
        let (key, state) = (any(), (0..blocks).map(|_| any()).collect::<Vec<_>>());
        let round_keys = &cipher.round_keys(key)[..=rounds];
        let encrypt = |blocks: &[Bytes]| -> Vec<Discrete> {
            layout.pack(blocks).iter().map(|x| client.encrypt(x, SUMS, Form::Split).unwrap()).collect()
        };
        let keys: Vec<Vec<Discrete>> = round_keys.iter().map(|key| encrypt(&vec![*key; blocks])).collect();
        // What is public is added to the first key.
        let known = layout.pack(&state);
        let first = keys[0].iter().zip(&known).map(|(k, x)| server.add_known(k, x).unwrap()).collect();
        let found = Aes::new(&server, layout, cipher.clone()).rounds(first, &keys[1..]).unwrap();
        let owner = Decryptor::new(&params, &secret).unwrap();
        let values: Vec<Vec<u64>> = found.iter().map(|x| owner.decrypt(x).unwrap()).collect();
        let wanted: Vec<Bytes> = state.iter().map(|block| cipher.apply(*block, round_keys)).collect();
        assert_eq!(layout.unpack(&values), wanted);
        let largest = Maximum::new(&server, layout).find(&found).unwrap().map(|x| owner.decrypt(&x).unwrap());
        let words = wanted.iter().flat_map(|block| block.as_chunks::<2>().0).map(|word| u16::from_be_bytes(*word));
        assert_eq!(Some(largest_word(largest.each_ref().map(Vec::as_slice))), words.max());
    }
}
