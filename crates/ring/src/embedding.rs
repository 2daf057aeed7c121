//! The canonical embedding (plain form, to be replaced by the fast transform).
use num_complex::Complex64;
/// See the module.
#[derive(Clone, Debug)]
pub struct Embedding {
    n: usize,
    zeta: Vec<Complex64>,
    rot: Vec<usize>,
}
impl Embedding {
    /// See the module.
    pub fn new(n: usize) -> Self {
        let m = 2 * n;
        let zeta = (0..=m).map(|k| Complex64::from_polar(1.0, std::f64::consts::TAU * k as f64 / m as f64)).collect();
        let mut rot = vec![1usize; n / 2];
        for i in 1..n / 2 {
            rot[i] = rot[i - 1] * 5 % m;
        }
        Self { n, zeta, rot }
    }
    fn brv(a: &mut [Complex64]) {
        let bits = a.len().trailing_zeros();
        for i in 0..a.len() {
            let j = crate::order::bit_reverse(i, bits);
            if i < j {
                a.swap(i, j);
            }
        }
    }
    /// See the module.
    pub fn embed(&self, a: &mut [Complex64]) {
        Self::brv(a);
        let (size, m) = (a.len(), 2 * self.n);
        let mut len = 2;
        while len <= size {
            for block in a.chunks_mut(len) {
                let (h, q) = (len / 2, len * 4);
                for j in 0..h {
                    let w = self.zeta[(self.rot[j] % q) * (m / q)];
                    let (u, v) = (block[j], block[j + h] * w);
                    block[j] = u + v;
                    block[j + h] = u - v;
                }
            }
            len *= 2;
        }
    }
    /// See the module.
    pub fn embed_inverse(&self, a: &mut [Complex64]) {
        let (size, m) = (a.len(), 2 * self.n);
        let mut len = size;
        while len >= 2 {
            for block in a.chunks_mut(len) {
                let (h, q) = (len / 2, len * 4);
                for j in 0..h {
                    let w = self.zeta[(q - self.rot[j] % q) * (m / q)];
                    let (u, v) = (block[j] + block[j + h], block[j] - block[j + h]);
                    block[j] = u;
                    block[j + h] = v * w;
                }
            }
            len /= 2;
        }
        Self::brv(a);
        a.iter_mut().for_each(|x| *x /= size as f64);
    }
    /// See the module.
    pub fn embed_split(&self, re: &mut [f64], im: &mut [f64]) {
        let mut a: Vec<_> = re.iter().zip(im.iter()).map(|(r, i)| Complex64::new(*r, *i)).collect();
        self.embed(&mut a);
        for (k, z) in a.iter().enumerate() {
            re[k] = z.re;
            im[k] = z.im;
        }
    }
    /// See the module.
    pub fn embed_inverse_split(&self, re: &mut [f64], im: &mut [f64]) {
        let mut a: Vec<_> = re.iter().zip(im.iter()).map(|(r, i)| Complex64::new(*r, *i)).collect();
        self.embed_inverse(&mut a);
        for (k, z) in a.iter().enumerate() {
            re[k] = z.re;
            im[k] = z.im;
        }
    }
}
