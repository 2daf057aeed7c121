//! The tokens of x86-64 processors.

use crate::kernel::features::Proof;

/// [`with_features`] of the token [`Avx2`].
macro_rules! with_avx2 {
    ($($methods:tt)*) => {
        crate::kernel::features::with_features! { "avx2,fma,bmi2,adx", crate::kernel::x86::tokens::Avx2; $($methods)* }
    };
}

/// [`with_features`] of the token [`Avx512`].
macro_rules! with_avx512 {
    ($($methods:tt)*) => {
        crate::kernel::features::with_features! { "avx512f,avx512dq", crate::kernel::x86::tokens::Avx512; $($methods)* }
    };
}

/// [`with_features`] of the token [`Ifma`].
macro_rules! with_ifma {
    ($($methods:tt)*) => {
        crate::kernel::features::with_features! {
            "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi", crate::kernel::x86::tokens::Ifma; $($methods)*
        }
    };
}

/// Proof of AVX2, FMA, BMI2 and ADX: the features of [`with_avx2`]. (Processors with AVX2 and FMA have BMI2, and
/// all since 2014 from one maker, 2017 from the other, ADX.)
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Avx2(());

impl Avx2 {
    /// The token, where the processor has the features.
    pub(in crate::kernel) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("adx");
        found.then_some(Self(()))
    }
}

impl Proof<Avx2> for Avx2 {
    #[inline(always)]
    fn proof(&self) -> Self {
        *self
    }
}

/// Proof of AVX-512 F and DQ: the features of [`with_avx512`].
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Avx512(());

impl Avx512 {
    /// The token, where the processor has the features.
    pub(in crate::kernel) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")).then_some(Self(()))
    }
}

impl Proof<Avx512> for Avx512 {
    #[inline(always)]
    fn proof(&self) -> Self {
        *self
    }
}

/// Proof of AVX-512 F, DQ, VL, BW, IFMA and VBMI: the features of [`with_ifma`]. (Every processor with
/// IFMA has them all.)
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Ifma(Avx512);

impl Ifma {
    /// The token, where the processor has the features.
    pub(in crate::kernel) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("avx512vbmi");
        Avx512::detect().filter(|_| found).map(Self)
    }

    /// What it also proves.
    #[inline(always)]
    pub(super) fn avx512(&self) -> &Avx512 {
        &self.0
    }
}

impl Proof<Ifma> for Ifma {
    #[inline(always)]
    fn proof(&self) -> Self {
        *self
    }
}

pub(super) use {with_avx2, with_avx512, with_ifma};
