//! Products of many ciphertexts on a GPU, in five launches for all of them: encrypted here, multiplied there,
//! decrypted here, and word by word what the processor's evaluator computes.
//!
//! Runs on the first card; on the emulator where there is none.

use std::error::Error;
use sudare_cuda::{Batch, Device, Division, Gadget, Kernels, Pairs, Trial};
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral};
use sudare_ring::Eval;
use sudare_rlwe::Params;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};

const CIPHERTEXTS: usize = 4;

fn device() -> Device {
    match Device::open(0, &Kernels::default()) {
        Ok(device) => device,
        Err(error) => {
            println!("no card: {error}");
            println!("the emulator runs the same kernels on the processor; its times say nothing");
            Device::emulator(Trial::default(), 1 << 30)
        }
    }
}

fn upload(device: &Device, params: &Params, ciphertexts: &[Ciphertext]) -> sudare_cuda::Result<Batch<Eval>> {
    let parts: Vec<_> = ciphertexts.iter().map(Ciphertext::parts).collect();
    Batch::<Eval>::from_host(device, params.q_at(params.max_level()), &parts)
}

fn main() -> Result<(), Box<dyn Error>> {
    // The client: a key, and two lists of encrypted vectors.
    let literal = ParamsLiteral::paper_matmul();
    let params = literal.build()?;
    let secret = SecretKey::generate(&params)?;
    let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
    let (encoder, encryptor) = (Encoder::new(&params), Encryptor::with_secret_key(&secret)?);
    let vector = |salt: usize| (0..params.slots()).map(move |i| ((i * salt) as f64).sin());
    let encrypted = |first: usize| -> Result<Vec<Ciphertext>, Box<dyn Error>> {
        (first..first + CIPHERTEXTS)
            .map(|salt| Ok(encryptor.encrypt(&encoder.encode(&vector(salt).collect::<Vec<_>>(), 1.0)?)?))
            .collect()
    };
    let (x, y) = (encrypted(1)?, encrypted(100)?);

    // The server: tables and keys go to the device once, ciphertexts as they come.
    let device = device();
    println!("device: {}", device.info().name);
    let (level, relin) = (params.max_level(), keys.relin_key().ok_or("no relinearisation key")?);
    let gadget = Gadget::new(&device, params.q_at(level), params.p(), literal.digit_limbs)?;
    let all = gadget.qp();
    let division = Division::new(&device, &params.q_at(level).prefix(level), &all.select(level..all.len()))?;
    let pairs = Pairs::from_host(&device, relin.pairs())?;
    let product = gadget.product(&upload(&device, &params, &x)?, &upload(&device, &params, &y)?, &pairs, &division)?;

    // Every word is the processor's, and the client reads the products.
    let (server, decryptor) = (Evaluator::new(&params, keys.clone())?, Decryptor::new(&secret));
    let mut worst = 0f64;
    for i in 0..CIPHERTEXTS {
        let want = server.mul_rescale(&x[i], &y[i])?;
        let parts = product.item_to_host(i)?;
        assert!(
            parts.iter().zip(want.parts()).all(|(a, b)| a.words() == b.words()),
            "another word than the processor's"
        );
        let inner = want.inner().with_parts(parts, want.level());
        let values = encoder.decode(&decryptor.decrypt(&Ciphertext::from_parts(inner, want.state())?)?)?;
        for ((z, a), b) in values.iter().zip(vector(1 + i)).zip(vector(100 + i)) {
            worst = worst.max((z - a * b).abs());
        }
    }
    println!("{CIPHERTEXTS} products, every word as the processor's; largest error {worst:.1e}");
    assert!(worst < 1e-6);
    Ok(())
}
