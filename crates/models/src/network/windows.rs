//! Windows of convolutions and pools.

use crate::error::{ModelError, format};
use crate::onnx::Node;
use crate::tensor::{elements, strides};

/// Windows over some axes.
pub(super) struct Windows {
    input: Vec<usize>,
    pub kernel: Vec<usize>,
    pub output: Vec<usize>,
    stride: Vec<usize>,
    dilation: Vec<usize>,
    begin: Vec<usize>,
    end: Vec<usize>,
}

fn sizes(node: &Node, name: &str, count: usize, least: usize) -> Result<Vec<usize>, ModelError> {
    let Some(values) = node.integers(name) else { return Ok(vec![least; count]) };
    let good: Option<Vec<usize>> =
        values.iter().map(|v| usize::try_from(*v).ok().filter(|v| (least..1 << 20).contains(v))).collect();
    match good {
        Some(good) if good.len() == count => Ok(good),
        _ => format(format!(
            "layer {}: {name} is {values:?}, and {count} numbers from {least} on are needed",
            node.label()
        )),
    }
}

impl Windows {
    /// Of a node, over the axes of an input, with a kernel of some size.
    pub fn new(node: &Node, input: &[usize], kernel: &[usize]) -> Result<Self, ModelError> {
        let rank = input.len();
        if kernel.len() != rank || kernel.contains(&0) {
            return format(format!(
                "layer {}: a kernel of the shape {kernel:?} does not fit an input of the shape {input:?}",
                node.label()
            ));
        }
        let (stride, dilation) = (sizes(node, "strides", rank, 1)?, sizes(node, "dilations", rank, 1)?);
        let pads = sizes(node, "pads", 2 * rank, 0)?;
        let (mut begin, mut end) = (pads[..rank].to_vec(), pads[rank..].to_vec());
        let auto = node.text("auto_pad", "NOTSET");
        let ceil = node.integer("ceil_mode", 0) != 0;
        let mut output = Vec::with_capacity(rank);
        for i in 0..rank {
            let extent = dilation[i] * (kernel[i] - 1) + 1;
            match auto.as_str() {
                "NOTSET" | "" => {}
                "VALID" => (begin[i], end[i]) = (0, 0),
                "SAME_UPPER" | "SAME_LOWER" => {
                    let out = input[i].div_ceil(stride[i]);
                    let total = ((out.saturating_sub(1)) * stride[i] + extent).saturating_sub(input[i]);
                    let (less, more) = (total / 2, total.div_ceil(2));
                    (begin[i], end[i]) = if auto == "SAME_UPPER" { (less, more) } else { (more, less) };
                }
                other => {
                    return format(format!(
                        "layer {}: auto_pad is {other}; it can be NOTSET, VALID, SAME_UPPER or SAME_LOWER",
                        node.label()
                    ));
                }
            }
            let padded = input[i] + begin[i] + end[i];
            let Some(free) = padded.checked_sub(extent) else {
                return format(format!(
                    "layer {}: a kernel of the length {extent} is longer than its padded input of {padded}",
                    node.label()
                ));
            };
            let mut out = (if ceil { free.div_ceil(stride[i]) } else { free / stride[i] }) + 1;
            // The last window begins inside of the input or of what is before it.
            if ceil && (out - 1) * stride[i] >= input[i] + begin[i] {
                out -= 1;
            }
            output.push(out);
        }
        let (input, kernel) = (input.to_vec(), kernel.to_vec());
        if elements(&output).is_none() {
            return format(format!("layer {}: a result of {output:?} is too large", node.label()));
        }
        Ok(Self { input, kernel, output, stride, dilation, begin, end })
    }

    /// The places of a window: flat place in the kernel and, inside of the input, flat place there; none in the padding. Places beyond
    /// the padding are left out.
    pub fn places(&self, window: usize) -> Vec<(usize, Option<usize>)> {
        let (rank, mut at) = (self.input.len(), window);
        let mut start = vec![0; rank];
        for i in (0..rank).rev() {
            start[i] = (at % self.output[i]) * self.stride[i];
            at /= self.output[i];
        }
        let steps = strides(&self.input);
        let mut out = vec![(0, Some(0))];
        for i in 0..rank {
            let mut next = Vec::with_capacity(out.len() * self.kernel[i]);
            for (tap, place) in &out {
                for k in 0..self.kernel[i] {
                    let padded = start[i] + k * self.dilation[i];
                    if padded >= self.input[i] + self.begin[i] + self.end[i] {
                        continue;
                    }
                    let inside = padded.checked_sub(self.begin[i]).filter(|x| *x < self.input[i]);
                    let place = place.and_then(|p| Some(p + inside? * steps[i]));
                    next.push((tap * self.kernel[i] + k, place));
                }
            }
            out = next;
        }
        out
    }
}
