//! The network of ml-inference: its weights, its images, and its labels in the clear.

use crate::{Outcome, read};
use std::path::Path;

/// As `ml-inference/train.py` writes it.
const FILE: &[u8] = include_bytes!("../ml-inference/weights.bin");
/// Labels of digits.
pub const LABELS: usize = 10;
/// Pixels of a side of an image.
const SIDE: usize = 28;
/// Pixels that are left out on every side: nearly all are empty.
const EDGE: usize = 3;

/// A layer of integers with fractions of some bits.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Bits of fractions of weights and biases.
    pub bits: u32,
    inputs: usize,
    weights: Vec<i16>,
    biases: Vec<i32>,
}

impl Layer {
    /// Weights, row by row.
    pub fn weights(&self) -> Vec<Vec<f64>> {
        let one = self.one();
        self.weights.chunks(self.inputs).map(|row| row.iter().map(|w| f64::from(*w) / one).collect()).collect()
    }

    /// Biases.
    pub fn biases(&self) -> Vec<f64> {
        self.biases.iter().map(|b| f64::from(*b) / self.one()).collect()
    }

    fn one(&self) -> f64 {
        f64::from(self.bits).exp2()
    }

    fn apply(&self, values: &[f64]) -> Vec<f64> {
        let dot = |row: &[i16]| row.iter().zip(values).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
        self.weights.chunks(self.inputs).zip(self.biases()).map(|(row, bias)| dot(row) / self.one() + bias).collect()
    }
}

/// Two layers with squares between them.
#[derive(Clone, Debug)]
pub struct Network {
    layers: [Layer; 2],
}

impl Network {
    /// The network that comes with the entry.
    ///
    /// # Errors
    /// For a file that is not whole.
    pub fn new() -> Outcome<Self> {
        let wrong = || "the file of weights is not whole";
        let mut rest = FILE;
        let mut take = |bytes: usize| -> Outcome<&[u8]> {
            let (first, last) = rest.split_at_checked(bytes).ok_or_else(wrong)?;
            rest = last;
            Ok(first)
        };
        let head: Vec<u32> = take(20)?.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let [pixels, hidden, labels] = [0, 1, 2].map(|i| head[i] as usize);
        let mut layer = |inputs: usize, outputs: usize, bits: u32| -> Outcome<Layer> {
            let weights = take(2 * inputs * outputs)?.as_chunks::<2>().0.iter().map(|b| i16::from_le_bytes(*b));
            let weights = weights.collect();
            let biases = take(4 * outputs)?.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
            Ok(Layer { bits, inputs, weights, biases })
        };
        let layers = [layer(pixels, hidden, head[3])?, layer(hidden, labels, head[4])?];
        let side = SIDE - 2 * EDGE;
        if !rest.is_empty() || (pixels, labels) != (side * side, LABELS) {
            return Err(wrong().into());
        }
        Ok(Self { layers })
    }

    /// Both layers.
    pub fn layers(&self) -> &[Layer; 2] {
        &self.layers
    }

    /// Pixels that it reads.
    pub fn pixels(&self) -> usize {
        self.layers[0].inputs
    }

    /// The scores of an image's labels, in the clear.
    pub fn scores(&self, image: &[f64]) -> Vec<f64> {
        let hidden = self.layers[0].apply(&middle(image));
        self.layers[1].apply(&hidden.iter().map(|h| h * h).collect::<Vec<_>>())
    }
}

/// The pixels in the middle of an image, row by row.
pub fn middle(image: &[f64]) -> Vec<f64> {
    image.chunks(SIDE).skip(EDGE).take(SIDE - 2 * EDGE).flat_map(|row| row[EDGE..SIDE - EDGE].iter().copied()).collect()
}

/// Images of a file of the harness: 784 numbers from 0 to 1 a line.
///
/// # Errors
/// For a file that is not there, another number of pixels, or what is no number from 0 to 1.
pub fn images(path: &Path) -> Outcome<Vec<Vec<f64>>> {
    let text = String::from_utf8(read(path)?)?;
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("{}, line {}: {what}", path.display(), i + 1);
        let pixels = line.split_ascii_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
        let pixels = pixels.map_err(|e| wrong(&e.to_string()))?;
        if pixels.len() != SIDE * SIDE {
            return Err(wrong(&format!("{} pixels, where {} belong", pixels.len(), SIDE * SIDE)).into());
        }
        if !pixels.iter().all(|x| (0.0..=1.0).contains(x)) {
            return Err(wrong("a pixel that is no number from 0 to 1").into());
        }
        all.push(pixels);
    }
    Ok(all)
}

/// Test images and labels of a file that `bench/train_models.py` writes: what it calls test images.
///
/// # Errors
/// For a file that is not there or not whole, or has images of another size.
pub fn test_images(path: &Path) -> Outcome<Vec<(Vec<f64>, usize)>> {
    let bytes = read(path)?;
    let wrong = || format!("{}: no file of images of 28 x 28 pixels", path.display());
    let (head, rest) = bytes.split_at_checked(12).ok_or_else(wrong)?;
    let head: Vec<usize> = head.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b) as usize).collect();
    let [calibration, test, numbers] = [head[0], head[1], head[2]];
    let images = calibration.saturating_add(test);
    if numbers != SIDE * SIDE || images.saturating_mul(4 * numbers + 1) != rest.len() {
        return Err(wrong().into());
    }
    let (pixels, labels) = rest.split_at(4 * numbers * images);
    let images = crate::floats(pixels);
    let images = images.chunks(numbers).map(|image| image.iter().map(|x| f64::from(*x)).collect());
    Ok(images.zip(labels).skip(calibration).map(|(image, label)| (image, usize::from(*label))).collect())
}

/// An image of strokes: some soft dots along lines.
pub fn random_image(unit: &mut dyn FnMut() -> f64) -> Vec<f64> {
    let mut image = vec![0.0; SIDE * SIDE];
    let place = |unit: &mut dyn FnMut() -> f64| [4.0 + 20.0 * unit(), 4.0 + 20.0 * unit()];
    let mut from = place(unit);
    for _ in 0..3 {
        let to = place(unit);
        for step in 0..40 {
            let at = [0, 1].map(|k| from[k] + (to[k] - from[k]) * f64::from(step) / 40.0);
            for (i, pixel) in image.iter_mut().enumerate() {
                let (x, y) = ((i % SIDE) as f64 - at[0], (i / SIDE) as f64 - at[1]);
                *pixel = f64::max(*pixel, (1.5 - (x * x + y * y).sqrt()).clamp(0.0, 1.0));
            }
        }
        from = to;
    }
    image
}
