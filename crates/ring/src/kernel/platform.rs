//! The one place where a kernel family is chosen.
//!
//! Which families the processor can run is found out once. Which of them may be used is decided once,
//! by the program ([`Family::limit`]) or by the first use of any; from then on everything in the process
//! follows that choice: limbs as [`Family::choose`] says, work without a modulus as [`words`].

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::arm;
use super::contract::{Kernels, WordKernels};
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::error::RingError;
use crate::modulus::Modulus;
use once_cell::race::OnceBox;

/// A line for each family, the most general first: its name, its name in words, and what makes it where
/// the processor has what it needs.
macro_rules! families {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal $([$cfg:meta])? $detect:path;)+) => {
        /// A set of kernels written for one kind of processor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Family {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Family {
            /// Every family, the most general first; a later one is preferred where it serves.
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }

        /// The families' names, as an error tells them.
        pub(crate) const NAMES: &[&str] = &[$($text),+];

        fn detect() -> [Option<Box<dyn Kernels>>; Family::ALL.len()] {
            [$({
                #[allow(unused_mut, unused_assignments)]
                let mut found: Option<Box<dyn Kernels>> = None;
                $(#[cfg($cfg)])?
                {
                    found = $detect().map(|kernels| Box::new(kernels) as Box<dyn Kernels>);
                }
                found
            }),+]
        }
    };
}

families! {
    /// Plain Rust: runs everywhere.
    Portable "portable" Portable::detect;
    /// 64-bit Arm: doubles for primes below 2^50, 64-bit words above.
    Neon "neon" [all(target_arch = "aarch64", target_endian = "little")] arm::Neon::detect;
    /// AVX2 + FMA, BMI2, ADX: doubles for primes below 2^50, 64-bit words above.
    Avx2 "avx2" [target_arch = "x86_64"] x86::Avx2::detect;
    /// AVX-512 F + DQ: doubles for primes below 2^50, 32-bit products above.
    Avx512Dq "avx512dq" [target_arch = "x86_64"] x86::Avx512::detect;
    /// AVX-512 IFMA, primes below 2^50.
    Avx512Ifma "avx512ifma" [target_arch = "x86_64"] x86::Ifma::detect;
}

/// The family's kernels, if the processor can run them.
pub(super) fn kernels(family: Family) -> Option<&'static dyn Kernels> {
    static DETECTED: OnceBox<[Option<Box<dyn Kernels>>; Family::ALL.len()]> = OnceBox::new();
    DETECTED.get_or_init(|| Box::new(detect()))[family as usize].as_deref()
}

/// The best family that may be used. Without a lock, as everything here: see [`crate::memo`].
static LIMIT: OnceBox<Family> = OnceBox::new();

fn limit() -> Family {
    *LIMIT.get_or_init(|| Box::new(default_limit()))
}

#[cfg(not(debug_assertions))]
fn default_limit() -> Family {
    Family::ALL[Family::ALL.len() - 1]
}

/// Without a limit set by the program, a build with debug assertions takes it from `SUDARE_KERNEL`: so
/// test suites, which have no `main` of their own, run under each family. A release build never reads
/// the environment.
///
/// # Panics
/// If the variable names no family of this machine.
#[cfg(debug_assertions)]
fn default_limit() -> Family {
    let Some(name) = std::env::var_os("SUDARE_KERNEL") else { return Family::ALL[Family::ALL.len() - 1] };
    match name.to_string_lossy().parse::<Family>().and_then(Family::here) {
        Ok(family) => family,
        Err(error) => panic!("SUDARE_KERNEL: {error}"),
    }
}

/// The kernels for work without a modulus.
pub(crate) fn words() -> &'static dyn WordKernels {
    static WORDS: OnceBox<&'static dyn WordKernels> = OnceBox::new();
    *WORDS.get_or_init(|| Box::new(kernels(Family::best()).map_or(&Portable, |kernels| kernels.words())))
}

impl Family {
    /// Whether this processor can run the family.
    pub fn available(self) -> bool {
        kernels(self).is_some()
    }

    /// Whether this processor can run the family and the modulus is in its range.
    pub fn serves(self, modulus: &Modulus) -> bool {
        kernels(self).is_some_and(|kernels| kernels.serves(modulus))
    }

    /// Makes this family the best that anything in the process may use: moduli that it does not serve,
    /// and machines' other work, take the best of those before it in [`Family::ALL`]. For the start of a
    /// program, before anything of the ring is built.
    ///
    /// # Errors
    /// [`RingError::KernelMissing`] if the machine cannot run the family, and
    /// [`RingError::KernelDecided`] if another choice has been made or used already.
    pub fn limit(self) -> Result<(), RingError> {
        let wanted = self.here()?;
        let decided = *LIMIT.get_or_init(|| Box::new(wanted));
        if decided == wanted {
            return Ok(());
        }
        Err(RingError::KernelDecided { wanted: wanted.name(), decided: decided.name() })
    }

    /// The family's kernels without a modulus.
    pub(crate) fn words(self) -> Result<&'static dyn WordKernels, RingError> {
        kernels(self).map(|kernels| kernels.words()).ok_or_else(|| {
            let available = Self::ALL.into_iter().filter(|f| f.available()).map(Self::name).collect();
            RingError::KernelMissing { family: self.name(), available }
        })
    }

    /// The family, if the machine has it.
    fn here(self) -> Result<Self, RingError> {
        self.words().map(|_| self)
    }

    /// The best family for a modulus, no better than [`Family::limit`] allows.
    pub fn choose(modulus: &Modulus) -> Self {
        Self::first(|kernels| kernels.serves(modulus))
    }

    /// The best family for work without a modulus, under the same limit.
    pub fn best() -> Self {
        Self::first(|_| true)
    }

    fn first(serves: impl Fn(&dyn Kernels) -> bool) -> Self {
        let allowed = Self::ALL.into_iter().rev().skip_while(|f| *f > limit());
        allowed.into_iter().find(|f| kernels(*f).is_some_and(&serves)).unwrap_or(Self::Portable)
    }
}

impl std::str::FromStr for Family {
    type Err = RingError;

    /// The family of a name.
    ///
    /// # Errors
    /// [`RingError::KernelName`] for any other word.
    fn from_str(name: &str) -> Result<Self, RingError> {
        let named = Self::ALL.into_iter().find(|f| f.name() == name);
        named.ok_or_else(|| RingError::KernelName { value: name.to_owned() })
    }
}
