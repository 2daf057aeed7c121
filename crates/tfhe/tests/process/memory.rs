//! Secrets do not outlive what holds them: a scan of all memory after keys and what uses them were dropped.

use crate::needles::polynomial;
use sudare_ring::{RnsBasis, Threads};
use sudare_testkit::memory::{Keep, NARROW, Needles, gone_after_drop};
use sudare_tfhe::boolean::fhew::{FhewKey, FhewLiteral, FhewMethod};
use sudare_tfhe::circuit_bootstrap::{CircuitKey, CircuitLiteral, PrivateSwitchKey};
use sudare_tfhe::leveled::LeveledClient;
use sudare_tfhe::{ClientKey, Gadget, GlweContext, LweSecretKey, Noise, Plaintext, TfheLiteral};

#[global_allocator]
static ALLOCATOR: Keep = Keep;

/// Both secrets of a TFHE client, in every form.
fn tfhe(needles: &mut Needles, client: &ClientKey) {
    glwe(needles, client.glwe().context(), client.glwe().coefficients());
    lwe(needles, "the LWE secret", client.lwe());
    lwe(needles, "the extracted LWE secret", client.extracted());
}

fn lwe(needles: &mut Needles, name: &str, key: &LweSecretKey) {
    needles.add(name, key.coefficients().iter().map(|x| *x as u64), NARROW);
}

fn glwe(needles: &mut Needles, context: &GlweContext, coefficients: &[i64]) {
    let basis = RnsBasis::new(context.degree(), &[context.q()]).unwrap();
    for s in coefficients.chunks_exact(context.degree()) {
        polynomial(needles, "the GLWE secret", &basis, s, "");
    }
}

#[test]
fn tfhe_clients_and_the_keys_that_they_make() {
    let by_rows = TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 });
    let in_the_ring = TfheLiteral { lwe_noise: Noise::Uniform { bound: 500 }, module_switch: true, ..by_rows.clone() };
    for literal in [by_rows, in_the_ring] {
        gone_after_drop(|needles| {
            let params = literal.build().unwrap();
            let client = ClientKey::generate(&params).unwrap();
            tfhe(needles, &client);
            let server = Threads::new(2).run(|| client.server_key().unwrap());
            let ciphertext = client.encrypt_int(3).unwrap();
            assert_eq!(client.decrypt_int(&ciphertext).unwrap(), 3);
            let bytes = sudare_tfhe::wire::tfhe_client_key_to_bytes(&client).unwrap();
            let again = sudare_tfhe::wire::tfhe_client_key_from_bytes(&params, &bytes).unwrap();
            (client, server, ciphertext, bytes, again)
        });
    }
}

#[test]
fn leveled_clients_circuit_bootstraps_and_fhew() {
    gone_after_drop(|needles| {
        let params = CircuitLiteral::insecure_test().build().unwrap();
        let client = ClientKey::generate(params.tfhe()).unwrap();
        glwe(needles, params.context(), client.glwe().coefficients());
        let key = CircuitKey::generate(&params, &client).unwrap();
        let gadget = Gadget { base_log: 16, levels: 2 };
        let private = PrivateSwitchKey::generate(client.glwe(), gadget, &client.object_seeds().unwrap()).unwrap();
        let leveled = LeveledClient::sharing(params.leveled(), &client).unwrap();
        let selector = leveled.encrypt_selector(true).unwrap();
        let ciphertext = leveled.encrypt(&[1]).unwrap();
        assert_eq!(leveled.decrypt(&ciphertext, 1).unwrap(), [1]);
        (client, key, private, leveled, selector)
    });
    for method in [FhewMethod::Digits { base_log: 2 }, FhewMethod::Automorphisms { window: 4 }] {
        gone_after_drop(|needles| {
            let params = FhewLiteral::insecure_test(method).build().unwrap();
            let client = ClientKey::generate(params.tfhe()).unwrap();
            tfhe(needles, &client);
            (FhewKey::generate(&params, &client).unwrap(), client)
        });
    }
}
