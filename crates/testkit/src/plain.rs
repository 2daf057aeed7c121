//! Plain references: the definition, without a thought of speed.

/// a·b modulo X^N + 1 and t, for N coefficients below t < 2^61.
pub fn negacyclic(a: &[u64], b: &[u64], t: u64) -> Vec<u64> {
    let n = a.len();
    assert!(b.len() == n && t < 1 << 61);
    let t = i128::from(t);
    let mut sums = vec![0i128; n];
    // Sums that a product could take past 2^127 are reduced first.
    let add = |sum: &mut i128, x: i128| *sum = if sum.unsigned_abs() >> 126 == 0 { *sum + x } else { *sum % t + x };
    for (i, x) in a.iter().enumerate().filter(|(_, x)| **x != 0) {
        let (low, high) = b.split_at(n - i);
        low.iter().zip(&mut sums[i..]).for_each(|(y, sum)| add(sum, i128::from(*x) * i128::from(*y)));
        high.iter().zip(&mut sums).for_each(|(y, sum)| add(sum, -i128::from(*x) * i128::from(*y)));
    }
    sums.into_iter().map(|sum| sum.rem_euclid(t) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_to_the_n_is_minus_one() {
        // (1 + 2X + 3X²)·(4 + 5X²) = 4 + 8X + 17X² + 10X³ + 15X⁴.
        assert_eq!(negacyclic(&[1, 2, 3, 0], &[4, 0, 5, 0], 97), [4 + 97 - 15, 8, 17, 10]);
        // (t − 1)² is 1: the last coefficient is their number, the first is 1 less all others.
        let t = (1 << 61) - 1;
        let product = negacyclic(&[t - 1; 256], &[t - 1; 256], t);
        assert_eq!((product[0], product[255]), (t - 254, 256));
    }
}
