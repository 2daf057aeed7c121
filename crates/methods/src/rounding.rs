//! What double precision adds to an error: values are rounded on their way through the canonical
//! embedding, and again when a result becomes a double. No parameters make it smaller.
//!
//! An embedding of M slots has log2 M layers. A butterfly multiplies by a twiddle that is right to
//! an ulp and adds: with rounding errors independent and of variance at most u²/3 (u = 2^-53 the
//! unit roundoff) a layer adds a variance of at most u² of the values' mean square (two products and
//! a sum in the twiddle's, 4/3·u²/2 for the half that is multiplied, u²/3 for the sum). Independent
//! layers add up to √(log2 M)·u; twice that is taken, for what they have in common.

use sudare_he::ckks::spread::SIGMAS;

/// The unit roundoff of a double.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Standard deviation of a slot's error after an embedding of `points` slots in either direction,
/// as a part of the root mean square of all slots.
pub fn embedding(points: f64) -> f64 {
    2.0 * UNIT * points.log2().max(1.0).sqrt()
}

/// The same for an embedding by its definition, a sum of `2·points` products for each value.
pub fn direct_embedding(points: f64) -> f64 {
    2.0 * UNIT * points.sqrt().max(1.0)
}

/// Standard deviation of a value that is read from coefficients through an embedding with the
/// relative standard deviation `embedding`: each coefficient is rounded to a double, and again when
/// it is divided by the scale.
pub fn reading(embedding: f64) -> f64 {
    (embedding.powi(2) + 2.0 * UNIT * UNIT).sqrt()
}

/// Standard deviation of slots up to `size` of a ring of this degree when they are read.
pub fn reading_slots(degree: usize, size: f64) -> f64 {
    reading(embedding(degree as f64 / 2.0)) * size
}

/// The largest error that reading slots up to `size` adds, after `rescales` of their scale.
pub fn largest_reading(degree: usize, size: f64, rescales: usize) -> f64 {
    SIGMAS * reading_slots(degree, size) / std::f64::consts::SQRT_2 + drift(rescales) * size
}

/// What all values of a result have in common, at most: a result's own rounding to a double, and
/// after `rescales` the scale, which each multiplies and divides, and its inverse. Before them the
/// scale is a power of two.
pub fn drift(rescales: usize) -> f64 {
    match rescales {
        // A hair more than half an ulp: long results are cut to 64 bits before they are rounded.
        0 => 1.01 * UNIT,
        r => (2 * r + 3) as f64 * UNIT,
    }
}

/// A sum to about an ulp of itself, however many terms there are (Neumaier, 1974).
pub fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for x in values {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::embedding::Embedding;
    use sudare_testkit::random::unit_at;

    #[test]
    fn sums_keep_what_cancels() {
        assert_eq!(sum([1e16, 1.0, -1e16].into_iter()), 1.0);
        assert_eq!(sum((0..1000).map(|_| 0.1)), 100.0);
    }

    /// Slots to coefficients and back is right to the predicted error, for values that are smooth,
    /// alike, alone, or of alternating signs.
    #[test]
    fn embeddings_are_as_exact_as_predicted() {
        for log_n in [9, 12, 14] {
            let embedding = Embedding::new(1 << log_n).unwrap();
            let slots = embedding.slots();
            let noise = |i: usize| unit_at(1, i, 0);
            let fillings: [&dyn Fn(usize) -> f64; 5] = [
                &noise,
                &|_| 1.0 / 3.0,
                &|i| if i == 7 { 1.0 } else { 0.0 },
                &|i| if i % 2 == 0 { 0.7 } else { -0.7 },
                &|i| noise(i).signum() * 0.9,
            ];
            for filling in fillings {
                let (mut re, mut im): (Vec<f64>, Vec<f64>) = ((0..slots).map(filling).collect(), vec![0.0; slots]);
                embedding.embed_inverse_split(&mut re, &mut im);
                embedding.embed_split(&mut re, &mut im);
                let rms = ((0..slots).map(|i| filling(i).powi(2)).sum::<f64>() / slots as f64).sqrt();
                let largest = re.iter().enumerate().fold(0.0f64, |m, (i, x)| m.max((x - filling(i)).abs()));
                // There and back, of which the real part has half the variance; the largest of
                // thousands is four deviations out. A value alone among zeros keeps its own rounding.
                let predicted = (4.0 * super::embedding(slots as f64) * rms).max(8.0 * UNIT);
                assert!(largest <= predicted, "N = 2^{log_n}: {largest:e}, predicted {predicted:e}");
            }
        }
    }
}
