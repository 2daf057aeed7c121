//! Exact integers: counts and votes added and multiplied modulo t, in slots and in coefficients,
//! and a computation that is refused before it could decrypt wrongly.

use sudare_exact::ExactError;
use sudare_exact::bgv::{Decryptor, Encryptor, Evaluator};
use sudare_exact::plan::Requirements;
use sudare_exact::{Encoder, Packing, Wrap};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};

fn main() -> Result<(), ExactError> {
    // Two products in a row and sums of ten, modulo a prime with slots.
    let params = Requirements::new(65537).depth(2).additions(9).slots().bgv()?;
    println!("{:?}", params.rlwe());
    let secret = SecretKey::generate(&params)?;
    let top = params.max_level();
    let rotations: Vec<_> = params.sum_elements(true).into_iter().map(|element| (element, top)).collect();
    let keys = KeyGenerator::new(&secret)?.eval_keys(Some(top), &rotations)?;

    let encoder = Encoder::new(&params);
    let encryptor = Encryptor::with_secret_key(&params, &secret)?;
    let decryptor = Decryptor::new(&params, &secret)?;
    let votes: Vec<i64> = (0..100).map(|i| i64::from(i % 3 == 0) - i64::from(i % 7 == 0)).collect();
    let x = encryptor.encrypt(&encoder.encode_signed(&votes, Packing::Slots, Wrap::Refuse)?)?;

    let server = Evaluator::new(&params, keys)?;
    let total = server.sum_slots(&x, true)?;
    let squares = server.sum_slots(&server.square(&x)?, true)?;
    let open = |c| encoder.decode_signed(&decryptor.decrypt(c)?, Packing::Slots);
    println!("sum {}, sum of squares {}", open(&total)?[0], open(&squares)?[0]);
    assert_eq!(open(&total)?[0], votes.iter().sum::<i64>());
    assert_eq!(open(&squares)?[0], votes.iter().map(|v| v * v).sum::<i64>());

    // A value that t does not hold is refused, unless wrapping is asked for.
    assert!(matches!(
        encoder.encode_signed(&[40_000], Packing::Slots, Wrap::Refuse),
        Err(ExactError::DoesNotFit { index: 0, .. })
    ));

    // So is a product too many, before it could decrypt wrongly.
    let mut power = x;
    let refused = loop {
        match server.square(&power) {
            Ok(next) => power = next,
            Err(error) => break error,
        }
    };
    println!("refused: {refused}");
    assert!(matches!(refused, ExactError::Rlwe(RlweError::NoBudget { .. })));
    assert_eq!(open(&power)?[3], 1);
    Ok(())
}
