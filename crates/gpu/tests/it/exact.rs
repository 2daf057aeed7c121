//! BFV and BGV on the device against the processor's: every word, what results say of their messages, and counters.

use sudare_cuda::{Device, Trial};
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::plan::EXACT;
use sudare_exact::{
    CiphertextOf, Encoder, Encryptor, Evaluator, ExactError, IntegerParams, Packing, Plaintext, Scheme, Wrap,
};
use sudare_rlwe::Backend;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, Security};

const ROOM: usize = 1 << 30;

fn circuit<S: Scheme, B: Backend>(
    e: &Evaluator<S, B>,
    p: &Plaintext,
    [x, y]: [&CiphertextOf<S, B>; 2],
) -> Result<CiphertextOf<S, B>, ExactError> {
    let low = e.drop_to(y, y.level() - 1)?;
    let product = e.dot_relin(&[x, &low], &[y, x])?;
    let sum = e.sub(&e.mul_integer(&product, -3)?, &e.mul_plain(x, p)?)?;
    e.add_plain(&e.rotate_rows(&sum, 1)?, p)
}

fn gives_the_processors_words<S: Scheme>() {
    let (secret, security) = (SecretDistribution::Ternary, Security::Insecure);
    let literal = ParamsLiteral {
        log_n: 10,
        q_bits: vec![47, 42, 42, 42],
        p_bits: vec![45, 45],
        digit_limbs: 2,
        secret,
        security,
    };
    let params = IntegerParams::new(&literal.build(EXACT).unwrap(), 12289).unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let top = params.max_level();
    let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(top), &[(params.rotation_element(1), top)]).unwrap();
    let device = Device::emulator(Trial::default(), ROOM);
    let there =
        Evaluator::<S, _>::with_backend(&params, sudare_gpu::Evaluator::new(&device, keys.clone(), ROOM)).unwrap();
    let host = Evaluator::<S>::new(&params, keys).unwrap();

    let encoder = Encoder::new(&params);
    let encoded = |salt: u64| {
        let values: Vec<u64> = (0..1024).map(|i| i * salt % 12289).collect();
        encoder.encode_unsigned(&values, Packing::Coefficients, Wrap::Refuse).unwrap()
    };
    let encryptor = Encryptor::<S>::with_secret_key(&params, &secret).unwrap();
    let [x, y] = [7, 11].map(|salt| encryptor.encrypt(&encoded(salt)).unwrap());
    let p = encoded(5);
    let [sent_x, sent_y] = [&x, &y].map(|c| c.copied(|c| Ok(there.backend().upload(&[c])?)).unwrap());
    let wanted = circuit(&host, &p, [&x, &y]).unwrap();
    let found = circuit(&there, &p, [&sent_x, &sent_y]).unwrap();
    assert_eq!(there.counters(), host.counters());
    let found = found.copied(|c| Ok(c.to_host()?.remove(0))).unwrap();
    assert_eq!((found.level(), found.state()), (wanted.level(), wanted.state()));
    let same = found.parts().iter().zip(wanted.parts()).all(|(a, b)| a.words() == b.words());
    assert!(same && found.parts().len() == 2, "another word");
    // What is no copy is not taken for one.
    let less = there.drop_to(&sent_x, 0).unwrap();
    assert!(x.copied(|_| Ok(less.inner().clone())).is_err());
}

#[test]
fn bfv_gives_the_processors_words() {
    gives_the_processors_words::<Bfv>();
}

#[test]
fn bgv_gives_the_processors_words() {
    gives_the_processors_words::<Bgv>();
}
