//! [`LimbKernels`](crate::kernel::contract::LimbKernels) of a type from methods of the same names.

/// Methods whose bodies need no features: what families write `with_features` as, on processors that
/// always have what their kernels use.
macro_rules! without_features {
    ($this:ident: &$type:ty; $(fn $name:ident($($arg:ident: $arg_type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {
        $(fn $name(&self, $($arg: $arg_type),*) $(-> $result)? {
            let $this = self;
            $body
        })*
    };
}

/// The kernels of `$type`: all are methods of `$limb` (an expression of `$this`) with the names of the
/// contract, expanded in functions that `$with` compiles for the family's processor; whole transforms and inner products
/// with keys may be those of another expression.
macro_rules! limb_kernels_of {
    ($type:ty, $($with:ident)::+, $this:ident => $limb:expr) => {
        crate::kernel::generic::limb_kernels_of!($type, $($with)::+, $this => $limb, transforms and key switches $limb);
    };
    ($type:ty, $($with:ident)::+, $this:ident => $limb:expr, transforms and key switches $whole:expr) => {
        impl crate::kernel::contract::LimbKernels for $type {
            fn modulus(&self) -> &crate::modulus::Modulus {
                let $this = self;
                &$limb.q
            }

            fn degree(&self) -> usize {
                let $this = self;
                $limb.n
            }

            $($with)::+! { $this: &$type;
                fn forward(a: &mut [u64], _ahead: &mut crate::kernel::Ahead<'_>) = $whole.forward(a);
                fn inverse(a: &mut [u64], _ahead: &mut crate::kernel::Ahead<'_>) = $whole.inverse(a, None);
                fn inverse_of(out: &mut [u64], values: crate::kernel::contract::Values<'_>)
                    = $whole.inverse(out, Some(crate::kernel::contract::Source { kernels: $this, values }));
                fn forward_partial(a: &mut [u64], layers: u32) = $limb.forward_partial(a, layers);
                fn inverse_partial(a: &mut [u64], layers: u32) = $limb.inverse_partial(a, layers);

                fn add(out: &mut [u64], a: &[u64], b: &[u64]) = $limb.add(out, a, b);
                fn add_assign(a: &mut [u64], b: &[u64]) = $limb.add_assign(a, b);
                fn sub(out: &mut [u64], a: &[u64], b: &[u64]) = $limb.sub(out, a, b);
                fn sub_assign(a: &mut [u64], b: &[u64]) = $limb.sub_assign(a, b);
                fn neg_assign(a: &mut [u64]) = $limb.neg_assign(a);
                fn mul(out: &mut [u64], a: &[u64], b: &[u64]) = $limb.mul(out, a, b);
                fn mul_assign(a: &mut [u64], b: &[u64]) = $limb.mul_assign(a, b);
                fn mul_add(acc: &mut [u64], a: &[u64], b: &[u64]) = $limb.mul_add(acc, a, b);
                fn mul_assign_add(a: &mut [u64], b: &[u64], c: &[u64]) = $limb.mul_assign_add(a, b, c);
                fn mul_scalar(a: &mut [u64], w: &crate::modulus::Shoup) = $limb.mul_scalar(a, w);
                fn mul_scalar_add(acc: &mut [u64], a: &[u64], w: &crate::modulus::Shoup)
                    = $limb.mul_scalar_add(acc, a, w);
                fn sub_mul_scalar(a: &mut [u64], b: &[u64], w: &crate::modulus::Shoup) = $limb.sub_mul_scalar(a, b, w);
                fn reduce(out: &mut [u64], src: &[u64]) = $limb.reduce(out, src);
                fn reduce_centered(out: &mut [u64], src: &[u64], p: u64) = $limb.reduce_centered(out, src, p);
                fn reduce_signed(out: &mut [u64], src: &[i64]) = $limb.reduce_signed(out, src);

                fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) = $limb.dot(out, a, b);
                fn dot_pair(out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]])
                    = $limb.dot_pair(out, a, b0, b1);
                fn dot_pair_packed(
                    out: [&mut [u64]; 2],
                    a: &[&[u64]],
                    b: crate::packed::PackedBlocks<'_>,
                    start: Option<&[u64]>
                ) = $whole.dot_pair_packed(out, a, b, start);
                fn combine(out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32)
                    = $limb.combine(out, src, w, bound_bits);
                fn gemm(
                    c: crate::kernel::contract::RowsMut<'_>,
                    a: crate::kernel::contract::Rows<'_>,
                    b: crate::kernel::contract::Rows<'_>,
                    shape: (usize, usize, usize),
                    accumulate: bool
                ) = $limb.gemm(c, a, b, shape, accumulate);
                fn external_product(
                    out: &mut [u64],
                    digits: &[u64],
                    m: &crate::kernel::PackedMatrix,
                    monomials: Option<crate::kernel::contract::Monomials<'_>>
                ) = $limb.external_product(out, digits, m, monomials);

                fn decompose(out: &mut [u64], gadget: crate::kernel::Gadget) = $limb.decompose(out, gadget);
                fn add_decompose(a: &mut [u64], b: &[u64], gadget: crate::kernel::Gadget, out: &mut [u64])
                    = $limb.add_decompose(a, b, gadget, out);
                fn rotate_minus(out: &mut [u64], src: &[u64], steps: usize) = $limb.rotate_minus(out, src, steps);
                fn rotate(out: &mut [u64], src: &[u64], steps: usize) = $limb.rotate(out, src, steps);
            }
        }
    };
}

pub(crate) use {limb_kernels_of, without_features};
