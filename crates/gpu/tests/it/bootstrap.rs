//! A CKKS bootstrap on the device against the processor's: every word, what results say of their messages, and counters.

use sudare_cuda::{Device, Trial};
use sudare_gpu::Evaluator;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, Bootstrapper, Kind};
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Encryptor};
use sudare_rlwe::keys::SecretKey;

const ROOM: usize = 1 << 31;

/// All slots and few of them, alone and in pairs.
#[test]
fn a_refresh_gives_the_processors_words() {
    for (literal, kind) in [(BootstrapLiteral::c(), Kind::Pair), (BootstrapLiteral::d(), Kind::Complex)] {
        let params = literal.insecure(10).unwrap().build().unwrap();
        let secret = SecretKey::generate(params.params()).unwrap();
        let keys = BootstrapKeys::generate(&secret, &params).unwrap();
        let device = Device::emulator(Trial::default(), ROOM);
        let there = Bootstrapper::on(keys.clone(), |keys| Evaluator::new(&device, keys, ROOM)).unwrap();
        let host = Bootstrapper::new(keys, None).unwrap();

        let (encoder, encryptor) = (Encoder::new(params.params()), Encryptor::with_secret_key(&secret).unwrap());
        let value = |i: usize, salt: usize| (((i % params.slots()) * salt) as f64 * 0.7).sin();
        let encrypted = |salt: usize| -> Ciphertext {
            let x: Vec<f64> = (0..params.params().slots()).map(|i| value(i, salt)).collect();
            let at = EncodeAt { level: params.input_level(), scale: params.params().scale(), max_abs: 1.0 };
            encryptor.encrypt(&encoder.encode_at(&x, at).unwrap()).unwrap()
        };
        let inputs: Vec<Ciphertext> = (1..=if kind == Kind::Pair { 2 } else { 1 }).map(encrypted).collect();
        let up = |c: &Ciphertext| {
            let inner = there.evaluator().backend().upload(&[c.inner()]).unwrap();
            sudare_he::ckks::Ciphertext::from_parts(inner, c.state()).unwrap()
        };
        let sent: Vec<_> = inputs.iter().map(up).collect();
        let wanted = host.refresh_with_progress(&inputs.iter().collect::<Vec<_>>(), kind, &mut |_| {}).unwrap();
        let found = there.refresh_with_progress(&sent.iter().collect::<Vec<_>>(), kind, &mut |_| {}).unwrap();
        assert_eq!(there.counters(), host.counters());
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!((found.level(), found.state()), (wanted.level(), wanted.state()));
            let words = found.inner().to_host().unwrap().remove(0);
            let same = words.parts().iter().zip(wanted.parts()).all(|(a, b)| a.words() == b.words());
            assert!(same && words.parts().len() == 2, "another word");
        }
    }
}
