//! Exact matrix products, everything counted: encryption, product, decryption.

use crate::Outcome;
use crate::machine::reset_peak_rss;
use crate::record::{Record, Stages};
use crate::schemes::Bench;
use crate::timing::measure;
use std::time::Instant;
use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_plan::Program;
use sudare_plan::{CostModel, Goal, Planner};
use sudare_session::QUIET;
use sudare_session::{Client, Encrypted, Server};
use sudare_testkit::Random;

/// Side of square matrices and bits of their entries; the first is the paper's.
const PRODUCTS: [(usize, u32); 4] = [(16, 10), (64, 8), (128, 8), (16, 40)];
/// What the 16×16 product of 10-bit entries is to stay under, in milliseconds.
const WANTED_MS: f64 = 10.0;

struct Session {
    client: Client,
    server: Server,
    a: Matrix<i128>,
    b: Matrix<i128>,
}

impl Session {
    fn encrypt(&self) -> Outcome<[Encrypted; 2]> {
        let one = |name: &str, matrix: &Matrix<i128>| self.client.encrypt_integers(name, matrix, QUIET);
        Ok([one("A", &self.a)?, one("B", &self.b)?])
    }

    /// Seconds of each stage.
    fn stages(&self) -> Outcome<[f64; 3]> {
        let start = Instant::now();
        let [x, y] = self.encrypt()?;
        let encrypted = start.elapsed().as_secs_f64();
        let product = self.server.matmul(&x, &y)?;
        let multiplied = start.elapsed().as_secs_f64();
        self.client.decrypt_integers(&product)?;
        let decrypted = start.elapsed().as_secs_f64();
        Ok([encrypted, multiplied - encrypted, decrypted - multiplied])
    }
}

/// Runs the products on as many threads as the bench has.
pub(super) fn run(bench: &mut Bench<'_>) -> Outcome<()> {
    for (d, bits) in PRODUCTS {
        let name = format!("matrix product, {bits} bits");
        if !bench.wants(&name) {
            continue;
        }
        let bound = (1u64 << bits) - 1;
        let input = |name| InputSpec::integers(name, (d, d), bound.into());
        let goal = Goal::new(Expr::product(input("A"), input("B"))?, 0.0);
        let plan = Planner::new(CostModel::default()).plan(&goal)?;
        let Program::Exact { exact } = plan.program() else { return Err("the plan is not exact".into()) };
        let threads = bench.threads.count();
        let mut random = Random(u64::from(bits));
        let mut matrix = || {
            let data = (0..d * d).map(|_| i128::from(random.word() % (2 * bound + 1)) - i128::from(bound)).collect();
            Matrix::<i128>::new(d, d, data)
        };
        let (a, b) = (matrix()?, matrix()?);
        let session = Session { client: Client::new(&plan, threads)?, server: Server::keyless(&plan, threads)?, a, b };
        reset_peak_rss();
        let mut found = None;
        let timing = measure(
            &mut bench.unit,
            bench.budget,
            || {
                let [x, y] = session.encrypt()?;
                found = Some(session.client.decrypt_integers(&session.server.matmul(&x, &y)?)?);
                Ok(())
            },
            None,
        )?;
        let mut stages = (0..5).map(|_| session.stages()).collect::<Outcome<Vec<_>>>()?;
        let mut median = |i: usize| {
            stages.sort_by(|x, y| x[i].total_cmp(&y[i]));
            Some(stages[stages.len() / 2][i] * 1e3)
        };
        let mut record =
            Record::new("exact", name, threads, bench.machine).with_params(plan.params()).with_timing(timing);
        record.shape = Some([d, d, d]);
        record.method = Some(format!("BGV blocks, {} moduli", exact.moduli.len()));
        record.stages =
            Some(Stages { encrypt_ms: median(0), evaluate_ms: median(1), decrypt_ms: median(2), ..Stages::default() });
        if (d, bits) == (16, 10) {
            record.reference = Some("wanted".into());
            record.reference_ms = Some(WANTED_MS);
        }
        let wanted = session.a.matmul(&session.b)?;
        let wrong = found.map_or(d * d, |f| f.data().iter().zip(wanted.data()).filter(|(x, y)| x != y).count());
        bench.sink.put(record.with_error(wrong as f64, 0.0))?;
    }
    Ok(())
}
