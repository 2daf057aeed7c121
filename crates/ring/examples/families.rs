//! The kernel families of this machine, a name a line: what `SUDARE_KERNEL` may say.

use sudare_ring::Family;

fn main() {
    for family in Family::ALL.into_iter().filter(|family| family.available()) {
        println!("{}", family.name());
    }
}
