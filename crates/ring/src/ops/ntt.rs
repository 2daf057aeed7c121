//! From coefficients to values and back.

use crate::poly::{Coeff, Eval, Poly};

impl Poly<Coeff> {
    /// Evaluation form.
    pub fn into_eval(mut self) -> Poly<Eval> {
        self.for_each(|_, l, x| l.forward(x));
        self.of_form()
    }
}

impl Poly<Eval> {
    /// Coefficient form.
    pub fn into_coeff(mut self) -> Poly<Coeff> {
        self.for_each(|_, l, x| l.inverse(x));
        self.of_form()
    }

    /// Coefficient form, of a polynomial that stays.
    pub fn to_coeff(&self) -> Poly<Coeff> {
        self.first_to_coeff(self.basis().len())
    }

    /// Coefficient form modulo the first `count` primes only.
    pub fn first_to_coeff(&self, count: usize) -> Poly<Coeff> {
        let mut out = Poly::<Coeff>::dirty(&self.basis().prefix(count));
        out.for_each(|i, l, x| l.inverse_of(x, self.limb(i)));
        out
    }
}
