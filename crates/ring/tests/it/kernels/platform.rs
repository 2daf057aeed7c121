//! The choice of a family.

use super::support::N;
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Family, Limb, Modulus, RingError};

/// In a process of its own, since the choice is the process's. Run under a limit, a limb of every size
/// has a family within it, and a later choice is refused.
#[test]
fn the_limit_holds_for_everything() {
    let here: Vec<Family> = Family::ALL.into_iter().filter(|f| f.available()).collect();
    assert_eq!(here[0], Family::Portable);
    for family in &here {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kernels::platform::under_a_limit", "--ignored"])
            .env("SUDARE_KERNEL", family.name())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}: {}", family.name(), String::from_utf8_lossy(&child.stdout));
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kernels::platform::under_a_limit", "--ignored"])
        .env("SUDARE_KERNEL", "avx")
        .output()
        .unwrap();
    assert!(!child.status.success(), "a word that names no family is taken");
}

/// Part of the test above.
#[test]
#[ignore = "is run by the_limit_holds_for_everything"]
fn under_a_limit() {
    let wanted: Family = std::env::var("SUDARE_KERNEL").unwrap().parse().unwrap();
    wanted.limit().unwrap();
    assert_eq!(Family::best(), wanted);
    for bits in [30, 50, 51, 61] {
        let q = ntt_primes(N, bits, 1, &[]).unwrap()[0];
        let modulus = Modulus::new(q).unwrap();
        let expected = Family::ALL.into_iter().filter(|f| *f <= wanted && f.serves(&modulus)).max();
        assert_eq!(Some(Limb::new(q, N).unwrap().family()), expected);
        assert_eq!(Some(Family::choose(&modulus)), expected);
    }
    wanted.limit().unwrap();
    for other in Family::ALL.into_iter().filter(|f| *f != wanted) {
        let refused = other.limit().unwrap_err();
        match other.available() {
            true => assert!(matches!(refused, RingError::KernelDecided { .. }), "{refused}"),
            false => assert!(matches!(refused, RingError::KernelMissing { .. }), "{refused}"),
        }
    }
}

/// A suite runs under the family that the variable names: what `make test-families` builds on.
#[cfg(debug_assertions)]
#[test]
fn suites_follow_the_variable() {
    if let Ok(name) = std::env::var("SUDARE_KERNEL") {
        assert_eq!(Family::best().name(), name);
    }
}

#[test]
fn families_have_names() {
    for family in Family::ALL {
        assert_eq!(family.name().parse(), Ok(family));
    }
    let refused = "AVX".parse::<Family>().unwrap_err();
    assert!(refused.to_string().contains("portable"), "{refused}");
}

#[test]
fn a_family_serves_its_range_alone() {
    let below = ntt_primes(N, 50, 1, &[]).unwrap()[0];
    let above = ntt_primes(N, 51, 1, &[]).unwrap()[0];
    for family in Family::ALL {
        let (a, b) = (Limb::with_family(below, N, family), Limb::with_family(above, N, family));
        assert_eq!(a.is_ok(), family.available());
        assert_eq!(b.is_ok(), family.available() && family != Family::Avx512Ifma);
        if let Err(refused) = b {
            assert!(matches!(refused, RingError::KernelUnavailable { .. }), "{refused}");
        }
    }
}
