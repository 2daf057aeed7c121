//! Fresh randomness for everything that is published, across `fork` too, and keys from seeds.
//!
//! A forked process is a copy of its parent's memory, as a virtual machine that is started twice
//! from one snapshot is: whatever randomness an object kept, both would use.

use std::collections::HashSet;
use std::io::{Read, Write, pipe};
use sudare_he::bfv::Bfv;
use sudare_he::bgv::Bgv;
use sudare_he::ckks::{Encoder, Encryptor, ParamsLiteral};
use sudare_he::integer::{IntegerParams, Packing, Scheme, Wrap};
use sudare_he::{bv, integer};
use sudare_ring::random::{Entropy, MaskSeed, Purpose, Seed};
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::noise::ERROR_SIGMA;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_tfhe::array::ElementType;
use sudare_tfhe::boolean::fhew::{FhewKey, FhewLiteral, FhewMethod, FhewParams};
use sudare_tfhe::circuit_bootstrap::{CircuitKey, CircuitLiteral, CircuitParams, PrivateSwitchKey};
use sudare_tfhe::leveled::{LeveledClient, LeveledLiteral, LeveledServer, Selector};
use sudare_tfhe::radix::IntegerType;
use sudare_tfhe::{ClientKey, EncryptedBit, Gadget, Gate, LweCiphertext, Plaintext, TfheLiteral, TfheParams};

/// What a forked child makes of `work`, and what this process makes of it at the same time.
fn in_both(mut work: impl FnMut() -> Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let (mut receive, mut send) = pipe().unwrap();
    // SAFETY: no other thread of this process runs (the harness waits for this one), so the child
    // may go on as the parent does; it leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        drop(receive);
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| send.write_all(&work())));
        // SAFETY: the child ends here, without the parent's destructors and exit handlers.
        unsafe { libc::_exit(i32::from(!matches!(made, Ok(Ok(()))))) }
    }
    drop(send);
    let ours = work();
    let mut theirs = Vec::new();
    receive.read_to_end(&mut theirs).unwrap();
    let mut status = -1;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
    (ours, theirs)
}

fn literal() -> ParamsLiteral {
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n: 9,
            q_bits: vec![45, 40],
            p_bits: vec![46],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        },
        log_scale: 20,
    }
}

fn bits() -> TfheLiteral {
    TfheLiteral { lwe_dimension: 8, log_n: 9, ..TfheLiteral::insecure_test(Plaintext::Bit) }
}

fn integers() -> TfheLiteral {
    let plaintext = Plaintext::Integer { message_bits: 2, carry_bits: 2 };
    TfheLiteral { lwe_dimension: 8, log_n: 9, unroll: 1, ..TfheLiteral::insecure_test(plaintext) }
}

fn bv_literal(t: u64) -> bv::ParamsLiteral {
    let (q_bits, sigma) = (vec![50], ERROR_SIGMA);
    bv::ParamsLiteral { log_n: 9, q_bits, t, sigma, max_length: 2, security: Security::Insecure }
}

/// Mask seeds, or hashes of masks, each with the name of what made it.
#[derive(Default)]
struct Masks(Vec<(&'static str, [u8; 32])>);

impl Masks {
    fn seed(&mut self, of: &'static str, seed: &MaskSeed) {
        self.0.push((of, *seed.as_bytes()));
    }

    fn words<'a>(&mut self, of: &'static str, words: impl IntoIterator<Item = &'a u64>) {
        let mut hasher = blake3::Hasher::new();
        words.into_iter().for_each(|w| {
            hasher.update(&w.to_le_bytes());
        });
        self.0.push((of, *hasher.finalize().as_bytes()));
    }

    fn lwe(&mut self, of: &'static str, c: &LweCiphertext) {
        self.words(of, c.mask());
    }
}

/// Encryptors and generators of every kind, made before a fork.
struct Makers<'a> {
    plain: sudare_he::ckks::Plaintext,
    by_secret: Encryptor<'a>,
    by_public: Encryptor<'a>,
    generator: KeyGenerator<'a>,
    bfv: [integer::Encryptor<'a, Bfv>; 2],
    bgv: [integer::Encryptor<'a, Bgv>; 2],
    exact: integer::Plaintext,
    bv: bv::Encryptor<'a>,
    bv_plain: bv::Plaintext,
    bits: ClientKey,
    integers: ClientKey,
    circuit: (CircuitParams, ClientKey),
    fhew: (FhewParams, ClientKey, EncryptedBit),
    leveled: LeveledClient,
    index: Vec<Selector>,
}

impl<'a> Makers<'a> {
    fn new(params: &IntegerParams, secret: &'a SecretKey, public: &'a PublicKey, bv_public: &'a bv::PublicKey) -> Self {
        fn both<'a, S: Scheme>(
            params: &IntegerParams,
            secret: &'a SecretKey,
            public: &'a PublicKey,
        ) -> [integer::Encryptor<'a, S>; 2] {
            let by_secret = integer::Encryptor::with_secret_key(params, secret).unwrap();
            [by_secret, integer::Encryptor::with_public_key(params, public).unwrap()]
        }
        let circuit = CircuitLiteral::insecure_test().build().unwrap();
        let fhew = FhewLiteral::insecure_test(FhewMethod::Automorphisms { window: 4 }).build().unwrap();
        let client = |params: &TfheParams| ClientKey::generate(params).unwrap();
        let (circuit_client, fhew_client) = (client(circuit.tfhe()), client(fhew.tfhe()));
        let bit = fhew_client.encrypt_bit(true).unwrap();
        let leveled = LeveledClient::generate(&LeveledLiteral::insecure_test().build().unwrap()).unwrap();
        let index = leveled.encrypt_index(1, leveled.params().context().degree().ilog2() + 1).unwrap();
        Self {
            plain: Encoder::new(&sudare_he::ckks::Params::of(params.rlwe()).unwrap()).encode(&[0.5], 1.0).unwrap(),
            by_secret: Encryptor::with_secret_key(secret).unwrap(),
            by_public: Encryptor::with_public_key(public).unwrap(),
            generator: KeyGenerator::new(secret).unwrap(),
            bfv: both(params, secret, public),
            bgv: both(params, secret, public),
            exact: integer::Encoder::new(params).encode_signed(&[1], Packing::Slots, Wrap::Refuse).unwrap(),
            bv: bv::Encryptor::new(bv_public).unwrap(),
            bv_plain: bv::Plaintext::new(bv_public.params(), &[1]).unwrap(),
            bits: client(&bits().build().unwrap()),
            integers: client(&integers().build().unwrap()),
            circuit: (circuit, circuit_client),
            fhew: (fhew, fhew_client, bit),
            leveled,
            index,
        }
    }

    /// One object of each kind.
    fn publish(&self) -> Masks {
        let mut out = Masks::default();
        out.seed("CKKS, secret key", &self.by_secret.encrypt(&self.plain).unwrap().seed().unwrap());
        out.words("CKKS, public key", self.by_public.encrypt(&self.plain).unwrap().parts()[1].words());
        out.words("BFV, secret key", self.bfv[0].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BFV, public key", self.bfv[1].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BGV, secret key", self.bgv[0].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BGV, public key", self.bgv[1].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BV", self.bv.encrypt(&self.bv_plain).unwrap().parts()[1].words());
        self.keys(&mut out);
        self.tfhe(&mut out);
        self.leveled(&mut out);
        out
    }

    fn keys(&self, out: &mut Masks) {
        let element = 5;
        out.seed("public key", self.generator.public_key().unwrap().parts().1);
        out.seed("relinearisation key", self.generator.relin_key(1).unwrap().seed());
        out.seed("automorphism key", self.generator.galois_key(element, 1).unwrap().key().seed());
        let set = self.generator.eval_keys(Some(1), &[(element, 1), (25, 0)]).unwrap();
        out.seed("relinearisation key of a set", set.relin_key().unwrap().seed());
        set.galois_keys().for_each(|key| out.seed("automorphism key of a set", key.key().seed()));
    }

    fn tfhe(&self, out: &mut Masks) {
        out.lwe("bit", self.bits.encrypt_bit(true).unwrap().ciphertext());
        let server = self.bits.server_key().unwrap();
        out.seed("bootstrapping key", server.bootstrap_key().mask_seed());
        out.seed("switching key", server.switch_key().mask_seed());
        out.lwe("phase", &self.integers.encrypt_phase(1).unwrap());
        out.lwe("message", self.integers.encrypt_int(1).unwrap().ciphertext());
        out.lwe("message and carry", self.integers.encrypt_int_with_carry(1).unwrap().ciphertext());
        let kind = IntegerType::new(8, false).unwrap();
        for block in self.integers.encrypt_integer(kind, 250).unwrap().blocks() {
            out.lwe("integer", block.ciphertext());
        }
        out.lwe("boolean", self.integers.encrypt_bool(true).unwrap().block().ciphertext());
        let array = self.integers.encrypt_array(ElementType::Integer(kind), vec![2], &[250, 7]).unwrap();
        out.seed("array", array.seeded().unwrap().0);
        array.blocks().iter().for_each(|block| out.lwe("array", block.ciphertext()));
        let (params, client) = &self.circuit;
        let (gadget, seeds) = (Gadget { base_log: 8, levels: 1 }, client.object_seeds().unwrap());
        let private = PrivateSwitchKey::generate(client.glwe(), gadget, &seeds).unwrap();
        out.seed("private switching key", private.mask_seed());
        let circuit = CircuitKey::generate(params, client).unwrap();
        out.seed("trace key", circuit.trace().mask_seed());
        out.seed("scheme switching key", circuit.scheme().mask_seed());
        let (params, client, bit) = &self.fhew;
        // A gate's output is a function of its input and the key alone.
        let output = FhewKey::generate(params, client).unwrap().gate(Gate::Nand, bit, bit).unwrap();
        out.lwe("gate under a FHEW key", output.ciphertext());
    }

    fn leveled(&self, out: &mut Masks) {
        let n = self.leveled.params().context().degree();
        out.words("leveled", self.leveled.encrypt(&[1]).unwrap().ciphertext().mask(0));
        let one = std::iter::once(self.leveled.encrypt_selector(true).unwrap());
        for selector in one.chain(self.leveled.encrypt_index(3, 2).unwrap()) {
            let mut mask = vec![0; n];
            selector.ggsw().matrix().get(0, 0, 0, &mut mask);
            out.words("selector", &mask);
        }
        // So is a lookup's.
        let table = self.leveled.encrypt_table(&vec![vec![1]; 2 * n]).unwrap();
        let found = LeveledServer::new(self.leveled.params()).lookup(&table, &self.index).unwrap();
        out.words("lookup in a table", found.ciphertext().mask(0));
    }
}

#[test]
fn no_mask_repeats_across_fork() {
    let _alone = crate::alone();
    let params = IntegerParams::new(&literal().build().unwrap(), 12289).unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let public = KeyGenerator::new(&secret).unwrap().public_key().unwrap();
    let bv_secret = bv::SecretKey::generate(&bv_literal(16).build().unwrap()).unwrap();
    let bv_public = bv_secret.public_key().unwrap();
    let makers = Makers::new(&params, &secret, &public, &bv_public);
    // Twice before the fork, and twice after it on either side.
    let publish = || [makers.publish().0, makers.publish().0].concat();
    let before = publish();
    let bytes = |masks: Vec<(&str, [u8; 32])>| masks.into_iter().flat_map(|(_, mask)| mask).collect::<Vec<u8>>();
    let (ours, theirs) = in_both(|| bytes(publish()));
    let names: Vec<&str> = before.iter().map(|(name, _)| *name).collect();
    let mut seen = HashSet::new();
    for (when, masks) in [("before the fork", bytes(before)), ("parent", ours), ("child", theirs)] {
        assert_eq!(masks.len(), 32 * names.len());
        for (name, mask) in names.iter().zip(masks.chunks_exact(32)) {
            assert!(seen.insert(mask.to_vec()), "{name}, {when}: a mask that was used before");
        }
    }
}

/// The test above sees what it looks for: a seed that an object keeps gives both processes one mask.
#[test]
fn a_seed_that_is_kept_repeats_across_fork() {
    let _alone = crate::alone();
    let client = ClientKey::generate(&bits().build().unwrap()).unwrap();
    let client = client.with_entropy(Entropy::fixed(Seed::from_bytes([1; 32])));
    let (ours, theirs) = in_both(|| client.object_seeds().unwrap().masks.as_bytes().to_vec());
    assert_eq!(ours, theirs);
}

/// Half a million on either side of a fork: one by one, and in batches.
#[test]
fn a_million_mask_seeds_are_distinct() {
    let _alone = crate::alone();
    const EACH: usize = 250_000;
    let (entropy, purpose) = (Entropy::system().unwrap(), Purpose::new("a million"));
    let (ours, theirs) = in_both(|| {
        let single = (0..EACH).map(|_| entropy.object(purpose).unwrap());
        let batches = (0..EACH / 1000).flat_map(|_| {
            let batch = entropy.batch(purpose, 1000).unwrap();
            (0..1000).map(move |i| batch.seeds(i))
        });
        single.chain(batches).flat_map(|seeds| *seeds.masks.as_bytes()).collect()
    });
    let all: HashSet<&[u8]> = [&ours, &theirs].into_iter().flat_map(|seeds| seeds.chunks_exact(32)).collect();
    assert_eq!(all.len(), 1_000_000);
}

/// A seed stands for one key in a parameter set, on every machine and for good, and for keys that
/// have nothing in common in two sets or two schemes.
#[test]
fn a_seed_stands_for_another_key_in_every_set() {
    let seed = Seed::from_bytes([1; 32]);
    let mut ids: Vec<String> = Vec::new();
    let mut note = |id: KeyId, again: KeyId| {
        assert_eq!(id, again);
        ids.push(id.to_string());
    };
    let rings = [literal(), ParamsLiteral { log_scale: 21, ..literal() }].map(|l| l.build().unwrap());
    let keys = rings.each_ref().map(|p| SecretKey::from_seed(p, &seed).unwrap());
    rings.iter().zip(&keys).for_each(|(p, key)| note(key.id(), SecretKey::from_seed(p, &seed).unwrap().id()));
    unrelated("ring", 3.0, keys[0].coefficients(), keys[1].coefficients());
    let sets = [integers(), TfheLiteral { unroll: 2, ..integers() }].map(|l| l.build().unwrap());
    let keys = sets.each_ref().map(|p| ClientKey::from_seed(p, &seed).unwrap());
    sets.iter().zip(&keys).for_each(|(p, key)| note(key.id(), ClientKey::from_seed(p, &seed).unwrap().id()));
    unrelated("TFHE", 2.0, keys[0].glwe().coefficients(), keys[1].glwe().coefficients());
    let small = LeveledLiteral::insecure_test();
    for literal in [small.clone(), LeveledLiteral { log_failure: -41.0, ..small }] {
        let params = literal.build().unwrap();
        let id = || LeveledClient::from_seed(&params, &seed).unwrap().id();
        note(id(), id());
    }
    let sets = [16, 17].map(|t| bv_literal(t).build().unwrap());
    let keys = sets.each_ref().map(|p| bv::SecretKey::from_seed(p, &seed));
    sets.iter().zip(&keys).for_each(|(p, key)| note(key.id(), bv::SecretKey::from_seed(p, &seed).id()));
    let [one, other] = keys.each_ref().map(|key| *key.public_key().unwrap().parts().1);
    assert_ne!(one, other);
    // All different, and the same on every machine and for good.
    let known = [
        "076e7642dcfe",
        "8da25875f24a",
        "c04303c940d2",
        "1a6c0097382c",
        "cb824fd6e9d2",
        "1c4ef9b2f4c4",
        "233d20a02f97",
        "4f8232fadb65",
    ];
    assert_eq!(ids, known);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
}

/// Two secrets with `values` equally likely coefficients agree in about one of `values`.
fn unrelated(what: &str, values: f64, a: &[i64], b: &[i64]) {
    assert_eq!(a.len(), b.len());
    let (n, equal) = (a.len() as f64, a.iter().zip(b).filter(|(x, y)| x == y).count() as f64);
    let deviation = (n / values * (1.0 - 1.0 / values)).sqrt();
    assert!((equal - n / values).abs() < 6.0 * deviation, "{what}: {equal} of {n} coefficients agree");
}
