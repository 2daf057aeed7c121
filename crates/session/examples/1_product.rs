//! 1. A product: plan, client, server, and the check against plain arithmetic.
//!
//! Run with `cargo run -p sudare-session --example 1_product`.

use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Planner};
use sudare_session::{Client, Encrypted, Server};

fn main() -> Result<(), MatrixError> {
    // What is computed, and how exact it has to be. Shapes and bounds on the values are all that
    // the planner may know of the matrices.
    let left = InputSpec::new("A", (12, 20), 1.0);
    let right = InputSpec::new("B", (20, 6), 1.0);
    let goal = Goal::new(Expr::product(left, right)?, 1e-4);
    let plan = Planner::new(CostModel::default()).plan(&goal)?;
    println!("{plan}\n");

    // The client holds the secret key; the server gets evaluation keys and ciphertexts.
    let client = Client::new(&plan, 0)?;
    let server: Server = client.server()?;
    let a = Matrix::from_fn(12, 20, |i, j| ((i * 7 + j * 3) % 11) as f64 / 11.0 - 0.5)?;
    let b = Matrix::from_fn(20, 6, |i, j| ((i * 5 + j) % 13) as f64 / 13.0 - 0.5)?;
    let x = client.encrypt("A", &a)?;
    let y = client.encrypt("B", &b)?;

    let product = server.matmul(&x, &y)?;
    println!("{product}");

    // It travels as bytes; every size and every residue is checked on the way in.
    let arrived = Encrypted::from_bytes(&plan, &product.to_bytes()?)?;
    let result = client.decrypt(&arrived)?;
    let error = result.max_difference(&a.matmul(&b)?);
    println!("largest error {error:.1e}, predicted {:.1e}", plan.summary().predicted_error);
    assert!(error <= plan.summary().predicted_error);

    // What the plan does not have is refused, and the message says what it has.
    match server.matmul(&y, &x) {
        Err(error) => println!("refused: {error}"),
        Ok(_) => panic!("B @ A is another product, and its shapes do not go together"),
    }
    Ok(())
}
