//! How much a test does: little in `make test`, all of it in `make soak`.

/// What the environment says, or `usual`. A value that is no number is refused.
pub fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// The `usual` size, or the `whole` one where `SUDARE_SOAK` is 1.
pub fn sized<T>(usual: T, whole: T) -> T {
    if setting("SUDARE_SOAK", 0) == 1 { whole } else { usual }
}
