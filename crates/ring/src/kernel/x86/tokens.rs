//! Tokens: values that prove what a processor can do, and the one door from code without its features
//! into code with them.

/// A value that is or holds the token `T`.
pub(in crate::kernel) trait Proof<T> {
    fn proof(&self) -> T;
}

/// Methods whose bodies are compiled with features that a token proves. In a body the receiver is called
/// `this`; `&` in front of its type makes the methods take it by reference, `[const G: bool]` in front of
/// `this` names a parameter of the type. Methods are expanded where they are called, and their bodies
/// into callers that have the features themselves.
macro_rules! with_features {
    ($features:literal, $token:ty; $generics:tt $this:ident: $type:ty;
     $(fn $name:ident $arguments:tt $(-> $result:ty)? = $body:expr;)*) => {
        $(crate::kernel::x86::tokens::featured! {
            $features, $token, [self] self, $generics, $this: $type, $name $arguments ($($result)?) $body
        })*
    };
    ($features:literal, $token:ty; $this:ident: &$type:ty;
     $(fn $name:ident $arguments:tt $(-> $result:ty)? = $body:expr;)*) => {
        $(crate::kernel::x86::tokens::featured! {
            $features, $token, [&self] self, [], $this: &$type, $name $arguments ($($result)?) $body
        })*
    };
    ($features:literal, $token:ty; $this:ident: $type:ty;
     $(fn $name:ident $arguments:tt $(-> $result:ty)? = $body:expr;)*) => {
        $(crate::kernel::x86::tokens::featured! {
            $features, $token, [self] self, [], $this: $type, $name $arguments ($($result)?) $body
        })*
    };
}

/// One of [`with_features`].
macro_rules! featured {
    ($features:literal, $token:ty, [$($receiver:tt)*] $me:ident, [$($generics:tt)*], $this:ident: $type:ty,
     $name:ident($($arg:ident: $arg_type:ty),*) ($($result:ty)?) $body:expr) => {
        #[inline(always)]
        fn $name($($receiver)*, $($arg: $arg_type),*) $(-> $result)? {
            #[inline]
            #[target_feature(enable = $features)]
            #[allow(unused_variables)]
            fn featured<$($generics)*>($this: $type, $($arg: $arg_type),*) $(-> $result)? {
                $body
            }
            use crate::kernel::x86::tokens::Proof as _;
            let _: $token = $me.proof();
            // SAFETY: the token above exists only where these very features were detected, and with them
            // the function is safe.
            unsafe { featured($me, $($arg),*) }
        }
    };
}

/// [`with_features`] of the token [`Avx2`].
macro_rules! with_avx2 {
    ($($methods:tt)*) => {
        crate::kernel::x86::tokens::with_features! { "avx2,fma,bmi2,adx", crate::kernel::x86::tokens::Avx2; $($methods)* }
    };
}

/// [`with_features`] of the token [`Avx512`].
macro_rules! with_avx512 {
    ($($methods:tt)*) => {
        crate::kernel::x86::tokens::with_features! { "avx512f,avx512dq", crate::kernel::x86::tokens::Avx512; $($methods)* }
    };
}

/// [`with_features`] of the token [`Ifma`].
macro_rules! with_ifma {
    ($($methods:tt)*) => {
        crate::kernel::x86::tokens::with_features! {
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

pub(super) use {featured, with_avx2, with_avx512, with_features, with_ifma};
