//! 4. A product on a device: the first card, or the emulator that runs the same kernels on the processor.
//!
//! Run with `make demo-gpu`.

use sudare_cuda::{Device, Kernels, Trial};
use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Planner};
use sudare_rlwe::security::Security;
use sudare_session::Client;

fn main() -> Result<(), MatrixError> {
    let device = Device::open(0, &Kernels::default()).unwrap_or_else(|why| {
        println!("no card: {why}\nthe emulator takes its place: the same words, and no times\n");
        Device::emulator(Trial::default(), 1 << 30)
    });

    // A small ring, so that the emulator is done in seconds; a real plan leaves the security as it is.
    let [left, right] = ["A", "B"].map(|name| InputSpec::new(name, (12, 12), 1.0));
    let goal = Goal { security: Security::Insecure, ..Goal::new(Expr::product(left, right)?, 1e-4) };
    let planner = Planner { method: Some("tiled".into()), ..Planner::new(CostModel::default()) };
    let plan = planner.plan(&goal)?;
    println!("{plan}\n");

    let client = Client::new(&plan, 0)?;
    let here = client.server()?;
    let there = here.to_device(&device)?;
    let a = Matrix::from_fn(12, 12, |i, j| ((i * 7 + j * 3) % 11) as f64 / 11.0 - 0.5)?;
    let b = Matrix::from_fn(12, 12, |i, j| ((i * 5 + j) % 13) as f64 / 13.0 - 0.5)?;
    let (x, y) = (client.encrypt("A", &a)?, client.encrypt("B", &b)?);

    // Operands are copied there once; the product stays there until it is decrypted.
    let product = there.matmul(&there.bring(&x)?, &there.bring(&y)?)?;
    println!("{product}");
    let error = client.decrypt(&product)?.max_difference(&a.matmul(&b)?);
    println!("largest error {error:.1e}, predicted {:.1e}", plan.summary().predicted_error);
    assert!(error <= plan.summary().predicted_error);

    // The processor computes the same words.
    assert!(product.to_bytes()? == here.matmul(&x, &y)?.to_bytes()?);
    println!("every word is the processor's");
    Ok(())
}
