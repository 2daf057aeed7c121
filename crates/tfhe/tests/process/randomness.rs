//! Fresh randomness for everything that is published, across `fork` too, and keys from seeds.

use std::collections::HashSet;
use sudare_ring::random::{Entropy, Seed};
use sudare_rlwe::KeyId;
use sudare_testkit::process::{Masks, alone, in_both, no_mask_repeats_across_fork, unrelated};
use sudare_tfhe::array::ElementType;
use sudare_tfhe::boolean::fhew::{FhewKey, FhewLiteral, FhewMethod, FhewParams};
use sudare_tfhe::circuit_bootstrap::{CircuitKey, CircuitLiteral, CircuitParams, PrivateSwitchKey};
use sudare_tfhe::leveled::{LeveledClient, LeveledLiteral, LeveledServer, Selector};
use sudare_tfhe::radix::IntegerType;
use sudare_tfhe::{ClientKey, EncryptedBit, Gadget, Gate, LweCiphertext, Plaintext, TfheLiteral, TfheParams};

fn bits() -> TfheLiteral {
    TfheLiteral { lwe_dimension: 8, log_n: 9, ..TfheLiteral::insecure_test(Plaintext::Bit) }
}

fn integers() -> TfheLiteral {
    let plaintext = Plaintext::Integer { message_bits: 2, carry_bits: 2 };
    TfheLiteral { lwe_dimension: 8, log_n: 9, unroll: 1, ..TfheLiteral::insecure_test(plaintext) }
}

/// Clients of every kind, made before a fork.
struct Makers {
    bits: ClientKey,
    integers: ClientKey,
    circuit: (CircuitParams, ClientKey),
    fhew: (FhewParams, ClientKey, EncryptedBit),
    leveled: LeveledClient,
    index: Vec<Selector>,
}

impl Makers {
    fn new() -> Self {
        let circuit = CircuitLiteral::insecure_test().build().unwrap();
        let fhew = FhewLiteral::insecure_test(FhewMethod::Automorphisms { window: 4 }).build().unwrap();
        let client = |params: &TfheParams| ClientKey::generate(params).unwrap();
        let (circuit_client, fhew_client) = (client(circuit.tfhe()), client(fhew.tfhe()));
        let bit = fhew_client.encrypt_bit(true).unwrap();
        let leveled = LeveledClient::generate(&LeveledLiteral::insecure_test().build().unwrap()).unwrap();
        let index = leveled.encrypt_index(1, leveled.params().context().degree().ilog2() + 1).unwrap();
        Self {
            bits: client(&bits().build().unwrap()),
            integers: client(&integers().build().unwrap()),
            circuit: (circuit, circuit_client),
            fhew: (fhew, fhew_client, bit),
            leveled,
            index,
        }
    }

    /// One object of each kind.
    fn publish(&self, out: &mut Masks) {
        lwe(out, "bit", self.bits.encrypt_bit(true).unwrap().ciphertext());
        let server = self.bits.server_key().unwrap();
        out.bytes("bootstrapping key", server.bootstrap_key().steps().mask_seed().as_bytes());
        out.bytes("switching key", server.switch_key().mask_seed().as_bytes());
        lwe(out, "phase", &self.integers.encrypt_phase(1).unwrap());
        lwe(out, "message", self.integers.encrypt_int(1).unwrap().ciphertext());
        lwe(out, "message and carry", self.integers.encrypt_int_with_carry(1).unwrap().ciphertext());
        let kind = IntegerType::new(8, false).unwrap();
        for block in self.integers.encrypt_integer(kind, 250).unwrap().blocks() {
            lwe(out, "integer", block.ciphertext());
        }
        lwe(out, "boolean", self.integers.encrypt_bool(true).unwrap().block().ciphertext());
        let array = self.integers.encrypt_array(ElementType::Integer(kind), vec![2], &[250, 7]).unwrap();
        out.bytes("array", array.seeded().unwrap().0.as_bytes());
        array.blocks().iter().for_each(|block| lwe(out, "array", block.ciphertext()));
        let (params, client) = &self.circuit;
        let (gadget, seeds) = (Gadget { base_log: 8, levels: 1 }, client.object_seeds().unwrap());
        let private = PrivateSwitchKey::generate(client.glwe(), gadget, &seeds).unwrap();
        out.bytes("private switching key", private.mask_seed().as_bytes());
        let circuit = CircuitKey::generate(params, client).unwrap();
        out.bytes("trace key", circuit.trace().mask_seed().as_bytes());
        out.bytes("scheme switching key", circuit.scheme().mask_seed().as_bytes());
        let (params, client, bit) = &self.fhew;
        // A gate's output is a function of its input and the key alone.
        let output = FhewKey::generate(params, client).unwrap().gate(Gate::Nand, bit, bit).unwrap();
        lwe(out, "gate under a FHEW key", output.ciphertext());
        self.leveled(out);
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

fn lwe(out: &mut Masks, of: &'static str, c: &LweCiphertext) {
    out.words(of, c.mask());
}

#[test]
fn no_mask_repeats() {
    let _alone = alone();
    let makers = Makers::new();
    no_mask_repeats_across_fork(|out| makers.publish(out));
}

/// The test above sees what it looks for: a seed that an object keeps gives both processes one mask.
#[test]
fn a_seed_that_is_kept_repeats_across_fork() {
    let _alone = alone();
    let client = ClientKey::generate(&bits().build().unwrap()).unwrap();
    let client = client.with_entropy(Entropy::fixed(Seed::from_bytes([1; 32])));
    let (ours, theirs) = in_both(|| client.object_seeds().unwrap().masks.as_bytes().to_vec());
    assert_eq!(ours, theirs);
}

/// A seed stands for one key in a parameter set, on every machine and for good, and for keys that have nothing in common
/// in two sets.
#[test]
fn a_seed_stands_for_another_key_in_every_set() {
    let seed = Seed::from_bytes([1; 32]);
    let mut ids: Vec<String> = Vec::new();
    let mut note = |id: KeyId, again: KeyId| {
        assert_eq!(id, again);
        ids.push(id.to_string());
    };
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
    // All different, and the same on every machine and for good.
    let known = ["c04303c940d2", "1a6c0097382c", "cb824fd6e9d2", "1c4ef9b2f4c4"];
    assert_eq!(ids, known);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
}
