//! Products of encrypted matrices on a device, by the methods that run there: operands, keys and results stay.

use super::{Bench, Cell, model};
use crate::Outcome;
use std::sync::Arc;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{Ciphertext, Decryptor, Encryptor, Evaluator};
use sudare_methods::ProductSpec;
use sudare_ring::threads;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;
use sudare_session::{device::download, device::evaluator, device::upload};
use sudare_testkit::Random;

/// Method, side of square matrices, how many products together; on a card and on the emulator. The last are the largest.
type Case = (&'static str, usize, usize);
const ON_CARD: [Case; 6] = [
    ("improved3d", 16, 256),
    ("tiled", 64, 1),
    ("coefficient", 64, 1),
    ("tiled", 256, 1),
    ("coefficient", 256, 1),
    ("coefficient", 1024, 1),
];
const ON_EMULATOR: [Case; 3] = [("improved3d", 4, 3), ("tiled", 12, 1), ("coefficient", 8, 1)];
/// Multiplications in the clear up to which the processor's product is compared word by word; above, the decrypted
/// product with the plain one alone.
const WORDS: usize = 1 << 21;

/// All cases that there is time for; each begins with keys and encryptions on the processor.
pub fn run(bench: &Bench, put: &mut dyn FnMut(Cell) -> Outcome<()>) -> Outcome<()> {
    let (cases, security): (&[Case], _) = match bench.small {
        true => (&ON_EMULATOR, Security::Insecure),
        false => (&ON_CARD, Security::Bits128),
    };
    for (method, d, batch) in cases {
        if bench.late() {
            eprintln!("no time is left for products of {d}×{d} matrices by the method {method}");
            continue;
        }
        let shape = Shape { batch: *batch, ..Shape::new(*d, *d, *d) };
        let proposed = model::proposals(shape, Some(method), security)?;
        let Some((us, spec)) = proposed.first() else {
            eprintln!("the method {method} proposes nothing for {d}×{d} matrices");
            continue;
        };
        put(one(bench, spec, *us)?)?;
    }
    Ok(())
}

/// Random matrices with elements in [−1, 1).
fn matrices(salt: u64, (rows, cols): (usize, usize), count: usize) -> Outcome<Vec<Matrix>> {
    let mut random = Random(salt);
    (0..count).map(|_| Ok(Matrix::new(rows, cols, (0..rows * cols).map(|_| random.unit()).collect())?)).collect()
}

fn one(bench: &Bench, spec: &ProductSpec, model: f64) -> Outcome<Cell> {
    let product = spec.build()?;
    product.prepare()?;
    let (params, shape, figures) = (product.params(), product.shape(), product.figures([1.0; 2])?);
    let demand = &figures.keys;
    let secret = SecretKey::generate(params)?;
    let keys = match (demand.relin, demand.galois.is_empty()) {
        (None, true) => EvalKeys::new(params, secret.id()),
        (relin, _) => KeyGenerator::new(&secret)?.eval_keys(relin, &demand.galois)?,
    };
    let encryptor = Encryptor::with_secret_key(&secret)?;
    let encrypt = |operand, of: &[Matrix]| -> Outcome<Vec<Ciphertext>> {
        let plain = product.encode(operand, of, 1.0)?;
        Ok(threads::map(plain.len(), |i| encryptor.encrypt(&plain[i])).into_iter().collect::<Result<_, _>>()?)
    };
    let a = matrices(1, shape.of(Operand::Left), shape.batch)?;
    let b = matrices(2, shape.of(Operand::Right), shape.batch)?;
    let (left, right) = (encrypt(Operand::Left, &a)?, encrypt(Operand::Right, &b)?);

    let there = evaluator(&bench.device, params, Arc::new(keys.clone()), usize::MAX)?;
    let (x, y) = (upload(&there, &left)?, upload(&there, &right)?);
    let method = spec.on(&there)?;
    let multiply = || Ok(method(&there, &x, &y)?);
    let got = download(&multiply()?)?;
    let copied = there.backend().keys_held().1;
    let wall_us = bench.times(1, &mut || {
        let result: Outcome<_> = multiply();
        result?;
        Ok(bench.device.synchronize()?)
    })?;
    let device_us = bench.device_time(&mut || multiply().map(drop))?;

    let mut check = String::from("ok");
    let decryptor = Decryptor::new(&secret);
    let plain = got.iter().map(|c| decryptor.decrypt(c)).collect::<Result<Vec<_>, _>>()?;
    let predicted = figures.error;
    for ((c, a), b) in product.decode(&plain)?.iter().zip(&a).zip(&b) {
        let error = c.max_difference(&a.matmul(b)?);
        if error.is_nan() || error > predicted {
            check = format!("error {error:e}, predicted {predicted:e}");
        }
    }
    if shape.m * shape.k * shape.n * shape.batch <= WORDS {
        let want = product.multiply(&Evaluator::new(params, keys)?, &left, &right)?;
        let same = |(x, y): (&Ciphertext, &Ciphertext)| {
            x.parts().len() == y.parts().len() && x.parts().iter().zip(y.parts()).all(|(x, y)| x.words() == y.words())
        };
        if got.len() != want.len() || !got.iter().zip(&want).all(same) {
            check = "words differ from the processor's".into();
        }
    }
    let again = there.backend().keys_held().1;
    if again != copied {
        check = format!("{again} keys were copied where {copied} stay");
    }
    let literal = params.literal();
    let bytes = |list: &[Ciphertext]| {
        list.iter().map(|c| c.parts().len() * (c.level() + 1) * params.degree() * 8).sum::<usize>()
    };
    Ok(Cell {
        operation: "matrix product".into(),
        method: format!("{}, {}×{}×{}", product.name(), shape.m, shape.k, shape.n),
        n: params.degree(),
        primes: format!("{} + {}", literal.q_bits.len(), literal.p_bits.len()),
        d: shape.batch,
        wall_us,
        device_us,
        bytes: bytes(&left) + bytes(&right) + bytes(&got),
        floor_us: model,
        printed_us: None,
        check,
    })
}
