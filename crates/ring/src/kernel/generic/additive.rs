//! What needs no multiplication modulo a prime: sums, digits and rotations in plain words.

/// `x` in `[0, 2m)` to `[0, m)`: below `m` the difference wraps and loses the minimum.
#[inline(always)]
pub(crate) fn subtract_once(x: u64, m: u64) -> u64 {
    x.min(x.wrapping_sub(m))
}

/// `a − b` modulo `q`, residues below 2^63: a difference that wraps is the larger one.
#[inline(always)]
pub(crate) fn difference(a: u64, b: u64, q: u64) -> u64 {
    let d = a.wrapping_sub(b);
    d.min(d.wrapping_add(q))
}

/// Methods of a limb with a modulus `q` and a degree `n`, named as in
/// [`LimbKernels`](crate::kernel::contract::LimbKernels): plain loops, which become vector code where they
/// are expanded.
macro_rules! additive_methods {
    () => {
        #[inline(always)]
        pub(crate) fn add(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
            let q = self.q.value();
            for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
                *o = crate::kernel::generic::additive::subtract_once(*x + *y, q);
            }
        }

        #[inline(always)]
        pub(crate) fn add_assign(&self, a: &mut [u64], b: &[u64]) {
            let q = self.q.value();
            for (x, y) in a.iter_mut().zip(b) {
                *x = crate::kernel::generic::additive::subtract_once(*x + *y, q);
            }
        }

        #[inline(always)]
        pub(crate) fn sub(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
            let q = self.q.value();
            for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
                *o = crate::kernel::generic::additive::difference(*x, *y, q);
            }
        }

        #[inline(always)]
        pub(crate) fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
            let q = self.q.value();
            for (x, y) in a.iter_mut().zip(b) {
                *x = crate::kernel::generic::additive::difference(*x, *y, q);
            }
        }

        #[inline(always)]
        pub(crate) fn neg_assign(&self, a: &mut [u64]) {
            let q = self.q.value();
            for x in a {
                *x = crate::kernel::generic::additive::subtract_once(q - *x, q);
            }
        }

        #[inline(always)]
        pub(crate) fn decompose(&self, out: &mut [u64], gadget: crate::kernel::Gadget) {
            crate::kernel::generic::digits::decompose(&self.q, self.n, out, gadget);
        }

        #[inline(always)]
        pub(crate) fn add_decompose(&self, a: &mut [u64], b: &[u64], gadget: crate::kernel::Gadget, out: &mut [u64]) {
            crate::kernel::generic::digits::add_decompose(&self.q, a, b, gadget, out);
        }

        #[inline(always)]
        pub(crate) fn rotate_minus(&self, out: &mut [u64], src: &[u64], steps: usize) {
            crate::kernel::generic::digits::rotate_minus(&self.q, out, src, steps);
        }

        #[inline(always)]
        pub(crate) fn rotate(&self, out: &mut [u64], src: &[u64], steps: usize) {
            crate::kernel::generic::digits::rotate(&self.q, out, src, steps);
        }
    };
}

pub(crate) use additive_methods;
