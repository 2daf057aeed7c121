//! The one door from code without a processor's features into code with them. A *token* is a value that
//! detection alone makes; types that hold one prove what the processor can do.

/// A value that is or holds the token `T`.
pub(super) trait Proof<T> {
    fn proof(&self) -> T;
}

/// Methods whose bodies are compiled with features that a token proves. In a body the receiver is called
/// `this`; `&` in front of its type makes the methods take it by reference, `[const G: bool]` in front of
/// `this` names a parameter of the type. Methods are expanded where they are called, and their bodies
/// into callers that have the features themselves.
macro_rules! with_features {
    ($features:literal, $token:ty; $generics:tt $this:ident: $type:ty;
     $(fn $name:ident $arguments:tt $(-> $result:ty)? = $body:expr;)*) => {
        $(crate::kernel::features::featured! {
            $features, $token, [self] self, $generics, $this: $type, $name $arguments ($($result)?) $body
        })*
    };
    ($features:literal, $token:ty; $this:ident: &$type:ty;
     $(fn $name:ident $arguments:tt $(-> $result:ty)? = $body:expr;)*) => {
        $(crate::kernel::features::featured! {
            $features, $token, [&self] self, [], $this: &$type, $name $arguments ($($result)?) $body
        })*
    };
    ($features:literal, $token:ty; $this:ident: $type:ty;
     $(fn $name:ident $arguments:tt $(-> $result:ty)? = $body:expr;)*) => {
        $(crate::kernel::features::featured! {
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
            use crate::kernel::features::Proof as _;
            let _: $token = $me.proof();
            // SAFETY: the token above exists only where these very features were detected, and with them
            // the function is safe.
            unsafe { featured($me, $($arg),*) }
        }
    };
}

pub(super) use {featured, with_features};
