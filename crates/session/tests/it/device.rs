//! Products on a device: the same words as on the processor, by the same lines.

use crate::common::random;
use std::sync::Arc;
use sudare_cuda::{Device, Trial};
use sudare_expr::Matrix;
use sudare_expr::{Expr, InputSpec, Lines, Node, Operand, Operation, Shape};
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_he::ckks::{Ciphertext, Decryptor, Encryptor, Evaluator, ParamsLiteral};
use sudare_methods::products::coefficient::CoefficientOptions;
use sudare_methods::products::module::ModuleOptions;
use sudare_methods::products::spread3d::SpreadOptions;
use sudare_methods::slots::cube::Improvements;
use sudare_methods::{MatrixError, Method, ProductSpec};
use sudare_plan::{CostModel, Goal, Plan, Planner, Program};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_session::{Client, device::download, device::evaluator, device::upload};

/// An insecure set for breadth: `levels` rescales, N = 2^log_n.
fn small(log_n: u32, levels: usize) -> ParamsLiteral {
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits: std::iter::once(49).chain(std::iter::repeat_n(38, levels)).collect(),
            p_bits: vec![49],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        },
        log_scale: 38,
    }
}

fn spec(shape: Shape, method: Method, params: ParamsLiteral) -> ProductSpec {
    ProductSpec { shape, method, params }
}

/// The small set with other primes, of both the kernels' families, and digits as long as P.
fn literal(q_bits: &[u32], p_bits: &[u32]) -> ParamsLiteral {
    let mut literal = small(11, 0);
    (literal.rlwe.q_bits, literal.rlwe.p_bits, literal.log_scale) = (q_bits.to_vec(), p_bits.to_vec(), 40);
    literal.rlwe.digit_limbs = p_bits.len().max(1);
    literal
}

/// A batch of products on both, word by word, with room for `wave` bytes of intermediate results on the device.
fn agree(spec: &ProductSpec, wave: usize) {
    let product = spec.build().unwrap();
    let params = product.params().clone();
    let secret = SecretKey::generate(&params).unwrap();
    let demand = product.figures([1.0; 2]).unwrap().keys;
    let keys = match (demand.relin, demand.galois.is_empty()) {
        (None, true) => EvalKeys::new(&params, secret.id()),
        (relin, _) => KeyGenerator::new(&secret).unwrap().eval_keys(relin, &demand.galois).unwrap(),
    };
    let encryptor = Encryptor::with_secret_key(&secret).unwrap();
    let Shape { m, k, n, batch } = spec.shape;
    let matrices = |rows, cols| -> Vec<Matrix> { (0..batch as u64).map(|seed| random(seed, rows, cols)).collect() };
    let (a, b) = (matrices(m, k), matrices(k, n));
    let encrypt = |operand, of: &[Matrix]| -> Vec<Ciphertext> {
        product.encode(operand, of, 1.0).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
    };
    let (left, right) = (encrypt(Operand::Left, &a), encrypt(Operand::Right, &b));
    let host = Evaluator::new(&params, keys.clone()).unwrap();
    let want = product.multiply(&host, &left, &right).unwrap();

    let device = Device::emulator(Trial::default(), 1 << 30);
    device.set_wave(wave);
    let there = evaluator(&device, &params, Arc::new(keys), 1 << 29).unwrap();
    let (x, y) = (upload(&there, &left).unwrap(), upload(&there, &right).unwrap());
    let multiply = spec.on(&there).unwrap();
    let made = multiply(&there, &x, &y).unwrap();
    let got = download(&made).unwrap();
    assert_eq!(got.len(), want.len());
    for (i, (x, y)) in got.iter().zip(&want).enumerate() {
        assert_eq!((x.level(), x.parts().len(), x.state()), (y.level(), y.parts().len(), y.state()), "result {i}");
        assert!(x.parts().iter().zip(y.parts()).all(|(a, b)| a.words() == b.words()), "result {i}: another word");
    }
    assert_eq!(there.counters(), host.counters());

    let decryptor = Decryptor::new(&secret);
    let plain: Vec<_> = got.iter().map(|c| decryptor.decrypt(c).unwrap()).collect();
    for ((c, a), b) in product.decode(&plain).unwrap().iter().zip(&a).zip(&b) {
        assert!(c.max_difference(&a.matmul(b).unwrap()) < 1e-3);
    }

    // Too few operands are refused by the method itself.
    assert!(matches!(multiply(&there, &x[1..], &y), Err(MatrixError::Count { .. })));
}

const ROOMY: usize = 1 << 28;

#[test]
fn the_coefficient_method() {
    let shape = Shape { m: 10, k: 9, n: 8, batch: 2 };
    for (relinearize, p_bits) in [(false, &[][..]), (true, &[60])] {
        let options = CoefficientOptions { block: (5, 3, 8), relinearize };
        let params = literal(&[60, 45], p_bits);
        agree(&spec(shape, Method::Coefficient(options), params), ROOMY);
    }
}

#[test]
fn the_tiled_method() {
    let shape = Shape { m: 8, k: 12, n: 5, batch: 1 };
    let method = |options| Method::Tiled { tile: 4, options };
    let params = || literal(&[55, 40, 40, 40], &[50, 50]);
    for (options, wave) in [
        (Improvements { clean_output: true, real_pairing: true, ..Improvements::ALL }, ROOMY),
        // As little room as makes batches of two.
        (Improvements::ALL, 1 << 16),
        (Improvements { fused_masks: false, merged_rotations: false, ..Improvements::ALL }, ROOMY),
    ] {
        agree(&spec(shape, method(options), params()), wave);
    }
}

#[test]
fn many_products_by_the_3d_method() {
    let shape = Shape { m: 4, k: 8, n: 4, batch: 7 };
    let method = Method::Improved3d(Improvements { spare_slots: false, ..Improvements::ALL });
    agree(&spec(shape, method, literal(&[50, 40, 40], &[50])), ROOMY);
}

/// Masks, linear maps, hoisted rotations and products of blocks.
#[test]
fn every_other_method() {
    let shape = Shape { m: 4, k: 4, n: 4, batch: 3 };
    let module = ModuleOptions { side: 8, slots: 4, relinearize: true };
    for (method, params) in [
        (Method::Paper3d, literal(&[50, 40, 40, 40], &[50])),
        (Method::Jiang, literal(&[50, 40, 40, 40], &[50])),
        (Method::JiangBsgs, literal(&[50, 40, 40, 40], &[50])),
        (Method::Bicyclic, literal(&[50, 40], &[50, 50])),
        (Method::Spread3d(SpreadOptions::default()), literal(&[50, 40, 40], &[50])),
        (Method::Module(module), literal(&[50, 40], &[50])),
    ] {
        agree(&spec(shape, method, params), ROOMY);
    }
}

fn planner(method: Option<&str>) -> Planner {
    Planner { method: method.map(Into::into), ..Planner::new(CostModel::default()) }
}

/// A planned expression on the device and on the processor: the same bytes and counters, and the right result.
#[track_caller]
fn computes(planner: &Planner, goal: &Goal) -> Plan {
    let plan = planner.plan(goal).unwrap();
    let client = Client::new(&plan, 1).unwrap();
    let (here, device) = (client.server().unwrap(), Device::emulator(Trial::default(), 1 << 31));
    let there = here.to_device(&device).unwrap();
    let expr = plan.expression();
    let matrices: Vec<Matrix> = expr.inputs().iter().zip(0..).map(|(i, seed)| random(seed, i.rows, i.cols)).collect();
    let inputs: Vec<_> =
        expr.inputs().iter().zip(&matrices).map(|(i, m)| client.encrypt(&i.name, m).unwrap()).collect();
    let (found, want) = (there.run(&inputs).unwrap(), here.run(&inputs).unwrap());
    assert!(found.device().is_some_and(|d| d.is(&device)) && want.device().is_none());
    assert!(found.to_bytes().unwrap() == want.to_bytes().unwrap(), "{expr}: another word");
    assert_eq!(there.counters(), here.counters(), "{expr}");
    let mut plain: Vec<Matrix> = Vec::new();
    for node in expr.nodes() {
        plain.push(match node.operation {
            Operation::Input { input } => matrices[input].clone(),
            ref operation => {
                operation.of_plain(&node.operands.iter().map(|of| &plain[*of]).collect::<Vec<_>>()).unwrap()
            }
        });
    }
    let error = client.decrypt(&found).unwrap().max_difference(&plain[expr.output()]);
    assert!(error <= plan.summary().predicted_error, "{expr}: {error}");
    plan
}

fn goal(shapes: &[(usize, usize)], operations: &[(Operation, &[usize])], error: f64) -> Goal {
    let inputs = shapes.iter().zip(["A", "B"]).map(|(shape, name)| InputSpec::new(name, *shape, 1.0)).collect();
    let made = operations.iter().map(|(operation, of)| Node::new(operation.clone(), of));
    let nodes: Vec<_> = (0..shapes.len()).map(Node::input).chain(made).collect();
    let last = nodes.len() - 1;
    Goal { security: Security::Insecure, ..Goal::new(Expr::new(inputs, nodes, last).unwrap(), error) }
}

#[test]
fn planned_expressions() {
    let line = Lines { start: 2, step: 1, count: 1, at: 0, stride: 1, size: 1 };
    // Two products, a transpose, sums with scales that differ; several tiles, of which lines are taken and repeated.
    let products: [(Operation, &[usize]); 6] = [
        (Operation::Matmul, &[0, 1]),
        (Operation::Scale { by: 0.1 }, &[2]),
        (Operation::Matmul, &[3, 0]),
        (Operation::Transpose, &[4]),
        (Operation::Mul, &[5, 5]),
        (Operation::Sub, &[6, 1]),
    ];
    let plan = computes(&planner(None), &goal(&[(3, 3), (3, 3)], &products, 1e-2));
    assert!(matches!(plan.program(), Program::Circuit { .. }), "{plan}");
    let lines: [(Operation, &[usize]); 5] = [
        (Operation::Take { axis: 0, lines: line }, &[0]),
        (Operation::Repeat { axis: 0, size: 9 }, &[1]),
        (Operation::Sub, &[0, 2]),
        (Operation::Sum { axis: 1 }, &[3]),
        (Operation::Shift { by: 0.5 }, &[4]),
    ];
    computes(&planner(None), &goal(&[(9, 5)], &lines, 1e-3));
}

#[test]
fn refreshed_expressions() {
    let mut operations = Vec::new();
    let of: Vec<[usize; 2]> = (0..6).map(|i| [if i == 0 { 0 } else { 1 + 2 * i }, 1]).collect();
    let bounded: Vec<[usize; 1]> = (0..6).map(|i| [2 + 2 * i]).collect();
    for (of, bounded) in of.iter().zip(&bounded) {
        operations.push((Operation::Matmul, &of[..]));
        operations.push((Operation::Bounded { max_abs: 1.0 }, &bounded[..]));
    }
    let goal = goal(&[(2, 2), (2, 2)], &operations, 0.1);
    let planner = Planner { bootstrap: vec![BootstrapSet::A], ..planner(Some("bootstrapped")) };
    let plan = computes(&planner, &goal);
    assert!(plan.engine().figures().refreshes().is_some(), "{plan}");
}

/// What only the processor computes is refused by the plan, before there are any keys.
#[test]
fn what_devices_do_not_compute() {
    let integers = vec![InputSpec::integers("A", (2, 2), 9), InputSpec::integers("B", (2, 2), 9)];
    let nodes = vec![Node::input(0), Node::input(1), Node::new(Operation::Matmul, &[0, 1])];
    let exact = Goal::new(Expr::new(integers, nodes, 2).unwrap(), 0.0);
    let table = Goal::moments(50, vec![1.0; 2]).unwrap();
    for (goal, what) in [(exact, "integers"), (table, "statistics")] {
        let plan = planner(None).plan(&goal).unwrap();
        let refused = plan.program().require_backends().unwrap_err();
        assert!(matches!(refused, MatrixError::NotPlanned { .. }) && refused.to_string().contains(what), "{refused}");
        let server = Client::new(&plan, 1).unwrap().server().unwrap();
        assert_eq!(server.to_device(&Device::emulator(Trial::default(), 1 << 28)).err(), Some(refused));
    }
}
