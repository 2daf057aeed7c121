//! Families of x86-64 processors.
//!
//! A family's type is a *token* ([`tokens`]): it can be made by detection alone, so a value is the proof
//! that the processor has the family's features, and its methods are safe. Kernels are
//! `#[target_feature]` functions, which call each other and the processor's intrinsics without `unsafe`;
//! `with_features` ([`super::features`]) alone calls into them from code without the features, on a token's word.

mod avx2;
mod avx512;
mod chacha;
mod ifma;
mod lanes;
mod permute;
mod tokens;
mod words;

pub(super) use tokens::{Avx2, Avx512, Ifma};

/// [`LimbKernels`](super::contract::LimbKernels) of a type with `q` and `n`, the bodies compiled by
/// `with`: what differs between families is a method of the type itself, what does not works in its
/// `field()`.
macro_rules! limb_kernels {
    ($type:ty, $with:ident) => {
        impl crate::kernel::contract::LimbKernels for $type {
            fn modulus(&self) -> &Modulus {
                &self.q
            }

            fn degree(&self) -> usize {
                self.n
            }

            crate::kernel::x86::tokens::$with! { this: &$type;
                fn forward(a: &mut [u64], ahead: &mut Ahead<'_>) = this.forward(a, ahead);
                fn inverse(a: &mut [u64], ahead: &mut Ahead<'_>) = this.inverse(a, ahead, None);
                fn inverse_of(out: &mut [u64], values: crate::kernel::contract::Values<'_>)
                    = this.inverse(
                        out,
                        &mut Ahead::of(&[]),
                        Some(crate::kernel::contract::Source { kernels: this, values })
                    );
                fn forward_partial(a: &mut [u64], layers: u32) = this.forward_partial(a, layers);
                fn inverse_partial(a: &mut [u64], layers: u32) = this.inverse_partial(a, layers);

                fn add(out: &mut [u64], a: &[u64], b: &[u64]) = elementwise::add(this.field(), out, a, b);
                fn add_assign(a: &mut [u64], b: &[u64]) = elementwise::add_assign(this.field(), a, b);
                fn sub(out: &mut [u64], a: &[u64], b: &[u64]) = elementwise::sub(this.field(), out, a, b);
                fn sub_assign(a: &mut [u64], b: &[u64]) = elementwise::sub_assign(this.field(), a, b);
                fn neg_assign(a: &mut [u64]) = elementwise::neg_assign(this.field(), a);
                fn mul(out: &mut [u64], a: &[u64], b: &[u64]) = elementwise::mul(this.field(), out, a, b);
                fn mul_assign(a: &mut [u64], b: &[u64]) = elementwise::mul_assign(this.field(), a, b);
                fn mul_add(acc: &mut [u64], a: &[u64], b: &[u64]) = this.mul_add(acc, a, b);
                fn mul_assign_add(a: &mut [u64], b: &[u64], c: &[u64]) = this.mul_assign_add(a, b, c);
                fn mul_scalar(a: &mut [u64], w: &Shoup) = elementwise::mul_scalar(this.field(), a, w);
                fn mul_scalar_add(acc: &mut [u64], a: &[u64], w: &Shoup)
                    = elementwise::mul_scalar_add(this.field(), acc, a, w);
                fn sub_mul_scalar(a: &mut [u64], b: &[u64], w: &Shoup)
                    = elementwise::sub_mul_scalar(this.field(), a, b, w);
                fn reduce(out: &mut [u64], src: &[u64]) = elementwise::reduce(this.field(), out, src);
                fn reduce_centered(out: &mut [u64], src: &[u64], p: u64)
                    = elementwise::reduce_centered(this.field(), &this.q, out, src, p);
                fn reduce_signed(out: &mut [u64], src: &[i64]) = elementwise::reduce_signed(this.field(), out, src);

                fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) = this.dot(out, a, b);
                fn dot_pair(out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]])
                    = this.dot_pair(out, a, b0, b1);
                fn dot_pair_packed(out: [&mut [u64]; 2], a: &[&[u64]], b: PackedBlocks<'_>, start: Option<&[u64]>)
                    = this.dot_pair_packed(out, a, b, start);
                fn combine(out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32)
                    = this.combine(out, src, w, bound_bits);
                fn gemm(c: RowsMut<'_>, a: Rows<'_>, b: Rows<'_>, shape: (usize, usize, usize), accumulate: bool)
                    = this.gemm(c, a, b, shape, accumulate);
                fn external_product(out: &mut [u64], digits: &[u64], m: &PackedMatrix, monomials: Option<Monomials<'_>>)
                    = this.external_product(out, digits, m, monomials);

                fn decompose(out: &mut [u64], gadget: Gadget) = digits::decompose(&this.q, this.n, out, gadget);
                fn add_decompose(a: &mut [u64], b: &[u64], gadget: Gadget, out: &mut [u64])
                    = digits::add_decompose(&this.q, a, b, gadget, out);
                fn rotate_minus(out: &mut [u64], src: &[u64], steps: usize)
                    = digits::rotate_minus(&this.q, out, src, steps);
                fn rotate(out: &mut [u64], src: &[u64], steps: usize) = digits::rotate(&this.q, out, src, steps);
            }
        }
    };
}

use limb_kernels;
