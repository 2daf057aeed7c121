//! Refreshing ciphertexts.

use crate::world::{Numbers, Owner, largest_error, mean_square_error};
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, BootstrapParams, Bootstrapper};

fn world(literal: BootstrapLiteral) -> (Owner, Bootstrapper) {
    let params: BootstrapParams = literal.build().unwrap();
    let owner = Owner::new(params.params());
    let keys = BootstrapKeys::generate(&owner.secret, &params).unwrap();
    (owner, Bootstrapper::new(keys, None).unwrap())
}

#[test]
fn first() {
    let (owner, b) = world(BootstrapLiteral::a().insecure(10).unwrap());
    let x = Numbers::new(1).complex(512);
    let c = owner.encrypt(&x, b.params().input_level(), owner.params.scale(), 1.0);
    let start = std::time::Instant::now();
    let y = b.refresh(&c).unwrap();
    eprintln!("{:?} {:?}", start.elapsed(), y);
    let out = owner.decrypt(&y);
    let bits = -mean_square_error(&out, &x).log2() / 2.0;
    eprintln!("{bits} bits rms, largest {}, bound {}", largest_error(&out, &x), y.error_bound());
    assert!(bits > 20.0);
    assert_eq!(y.level(), b.params().output_level());
}
