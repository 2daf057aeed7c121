//! Operators against plain references.

use crate::world::{Attr, Graph, compile, goal, tensor};
use sudare_models::Network;
use sudare_testkit::{Random, sized};

fn near(found: &[f64], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let size = wanted.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    found.iter().zip(wanted).for_each(|(a, b)| assert!((a - b).abs() < 1e-6 * size, "{what}: {a} and {b}"));
}

fn floats(random: &mut Random, count: usize) -> Vec<f64> {
    random.units(count).into_iter().map(|x| f64::from(x as f32)).collect()
}

/// A window along one axis: size, kernel, stride, dilation, pads.
#[derive(Clone, Copy, Debug)]
struct Axis {
    size: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pads: [usize; 2],
}

impl Axis {
    fn random(random: &mut Random, dilated: bool) -> Self {
        loop {
            let mut one = |from: u64, to: u64| (from + random.below(to - from + 1)) as usize;
            let axis = Self {
                size: one(1, 7),
                kernel: one(1, 4),
                stride: one(1, 3),
                dilation: if dilated { one(1, 3) } else { 1 },
                pads: [one(0, 2), one(0, 2)],
            };
            let extent = axis.dilation * (axis.kernel - 1) + 1;
            if axis.size + axis.pads[0] + axis.pads[1] >= extent && axis.pads.iter().all(|p| *p < axis.kernel) {
                return axis;
            }
        }
    }

    fn outputs(&self) -> usize {
        (self.size + self.pads[0] + self.pads[1] - self.dilation * (self.kernel - 1) - 1) / self.stride + 1
    }

    /// Where tap k of window o reads; none in the padding.
    fn place(&self, o: usize, k: usize) -> Option<usize> {
        (o * self.stride + k * self.dilation).checked_sub(self.pads[0]).filter(|x| *x < self.size)
    }
}

fn attributes(axes: [Axis; 2]) -> [Vec<i64>; 4] {
    let both = |f: fn(&Axis) -> usize| axes.iter().map(|a| f(a) as i64).collect::<Vec<_>>();
    let pads = [both(|a| a.pads[0]), both(|a| a.pads[1])].concat();
    [both(|a| a.kernel), both(|a| a.stride), both(|a| a.dilation), pads]
}

/// Every stride, padding, dilation and group, both axes apart.
#[test]
fn convolutions() {
    let mut random = Random(28);
    for case in 0..sized(150, 1000) {
        let [a, b] = [Axis::random(&mut random, true), Axis::random(&mut random, true)];
        let group = 1 + random.index(3);
        let (each, features) = (1 + random.index(3), group * (1 + random.index(2)));
        let channels = each * group;
        let x = floats(&mut random, channels * a.size * b.size);
        let w = floats(&mut random, features * each * a.kernel * b.kernel);
        let bias = floats(&mut random, features);
        let [kernel, strides, dilations, pads] = attributes([a, b]);
        let attributes = [
            ("kernel_shape", Attr::Ints(&kernel)),
            ("strides", Attr::Ints(&strides)),
            ("dilations", Attr::Ints(&dilations)),
            ("pads", Attr::Ints(&pads)),
            ("group", Attr::Int(group as i64)),
        ];
        let file = Graph::default()
            .constant(tensor("w", &[features, each, a.kernel, b.kernel], &w))
            .constant(tensor("b", &[features], &bias))
            .node("Conv", &["x", "w", "b"], "y", &attributes)
            .file(&[channels, a.size, b.size], 11);
        let mut wanted = Vec::new();
        for f in 0..features {
            for (oy, ox) in (0..a.outputs()).flat_map(|y| (0..b.outputs()).map(move |x| (y, x))) {
                let mut sum = bias[f];
                for c in 0..each {
                    for (ky, kx) in (0..a.kernel).flat_map(|y| (0..b.kernel).map(move |x| (y, x))) {
                        if let (Some(iy), Some(ix)) = (a.place(oy, ky), b.place(ox, kx)) {
                            let channel = f / (features / group) * each + c;
                            sum += w[((f * each + c) * a.kernel + ky) * b.kernel + kx]
                                * x[(channel * a.size + iy) * b.size + ix];
                        }
                    }
                }
                wanted.push(sum);
            }
        }
        let network = Network::from_onnx(&file).unwrap();
        assert_eq!(network.output, [1, features, a.outputs(), b.outputs()]);
        near(&network.evaluate(&x).unwrap(), &wanted, &format!("case {case}"));
    }
}

#[test]
fn average_pools() {
    let mut random = Random(29);
    for case in 0..sized(100, 500) {
        let [a, b] = [Axis::random(&mut random, false), Axis::random(&mut random, false)];
        let (channels, padded) = (1 + random.index(3), random.chance(50));
        let x = floats(&mut random, channels * a.size * b.size);
        let [kernel, strides, _, pads] = attributes([a, b]);
        let attributes = [
            ("kernel_shape", Attr::Ints(&kernel)),
            ("strides", Attr::Ints(&strides)),
            ("pads", Attr::Ints(&pads)),
            ("count_include_pad", Attr::Int(i64::from(padded))),
        ];
        let file = Graph::default().node("AveragePool", &["x"], "y", &attributes).file(&[channels, a.size, b.size], 13);
        let mut wanted = Vec::new();
        for c in 0..channels {
            for (oy, ox) in (0..a.outputs()).flat_map(|y| (0..b.outputs()).map(move |x| (y, x))) {
                let places = (0..a.kernel).flat_map(|ky| (0..b.kernel).map(move |kx| (ky, kx)));
                let inside: Vec<f64> = places
                    .filter_map(|(ky, kx)| Some(x[(c * a.size + a.place(oy, ky)?) * b.size + b.place(ox, kx)?]))
                    .collect();
                let divisor = if padded { a.kernel * b.kernel } else { inside.len() };
                wanted.push(inside.iter().sum::<f64>() / divisor as f64);
            }
        }
        near(&Network::from_onnx(&file).unwrap().evaluate(&x).unwrap(), &wanted, &format!("case {case}"));
    }
}

/// What is linear becomes one map, across changes of index, branches and norms.
#[test]
fn one_map() {
    let mut random = Random(30);
    let (w, v) = (floats(&mut random, 6 * 4), floats(&mut random, 4 * 6));
    let statistics: Vec<Vec<f64>> =
        (0..4).map(|k| floats(&mut random, 2).iter().map(|x| x + 1.5 + f64::from(k)).collect()).collect();
    let mut graph = Graph::default().constant(tensor("w", &[6, 4], &w)).constant(tensor("v", &[4, 6], &v));
    for (name, values) in ["gamma", "beta", "mean", "variance"].iter().zip(&statistics) {
        graph = graph.constant(tensor(name, &[2], values));
    }
    let file = graph
        .constant(tensor("two", &[], &[2.0]))
        .node("BatchNormalization", &["x", "gamma", "beta", "mean", "variance"], "n", &[])
        .node("Transpose", &["n"], "t", &[("perm", Attr::Ints(&[0, 2, 1]))])
        .node("Flatten", &["t"], "f", &[])
        .node("Gemm", &["f", "w"], "g", &[])
        .node("MatMul", &["g", "v"], "h", &[])
        .node("Mul", &["f", "two"], "d", &[])
        .node("Sub", &["h", "d"], "s", &[])
        .node("Concat", &["s", "g"], "y", &[("axis", Attr::Int(1))])
        .file(&[2, 3], 13);
    let network = Network::from_onnx(&file).unwrap();
    let x = floats(&mut random, 6);
    // The first product is a part of its own until it is compiled.
    assert_eq!(network.layers.len(), 2);
    let model = compile(&network, &x, &goal()).unwrap();
    assert_eq!(model.plan().figures().layers.len(), 1);
    let norm = |c: usize, x: f64| {
        (x - statistics[2][c]) / (statistics[3][c] + 1e-5).sqrt() * statistics[0][c] + statistics[1][c]
    };
    let f: Vec<f64> = (0..3).flat_map(|i| (0..2).map(move |c| (c, i))).map(|(c, i)| norm(c, x[c * 3 + i])).collect();
    let g: Vec<f64> = (0..4).map(|j| (0..6).map(|i| f[i] * w[i * 4 + j]).sum()).collect();
    let s = (0..6).map(|j| (0..4).map(|i| g[i] * v[i * 6 + j]).sum::<f64>() - 2.0 * f[j]);
    let wanted: Vec<f64> = s.chain(g.iter().copied()).collect();
    near(&network.evaluate(&x).unwrap(), &wanted, "in parts");
    near(&model.clear(&x).unwrap(), &wanted, "composed");
}

/// Gates of one value are functions of it, as exporters write SiLU and GELU.
#[test]
fn gates() {
    let silu = Graph::default().node("Sigmoid", &["x"], "s", &[]).node("Mul", &["x", "s"], "y", &[]).file(&[5], 17);
    let gelu = Graph::default()
        .constant(tensor("root", &[], &[std::f64::consts::SQRT_2]))
        .constant(tensor("one", &[], &[1.0]))
        .constant(tensor("half", &[], &[0.5]))
        .node("Div", &["x", "root"], "d", &[])
        .node("Erf", &["d"], "e", &[])
        .node("Add", &["e", "one"], "a", &[])
        .node("Mul", &["x", "a"], "m", &[])
        .node("Mul", &["m", "half"], "y", &[])
        .file(&[5], 17);
    let x = [-3.0, -0.5, 0.0, 0.7, 2.0];
    for (file, function) in [(silu, sudare_models::Function::Swish(1.0)), (gelu, sudare_models::Function::Gelu)] {
        let network = Network::from_onnx(&file).unwrap();
        let wanted: Vec<f64> = x.iter().map(|x| function.value(*x)).collect();
        near(&network.evaluate(&x).unwrap(), &wanted, &function.name());
        let functions = network.layers.iter().filter(|l| l.function != sudare_models::Function::Identity);
        assert_eq!(functions.count(), 1, "the inner function is no layer of its own");
    }
}
