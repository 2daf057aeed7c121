//! Exact matrix products, everything counted: encryption, product, decryption.

use crate::Outcome;
use crate::machine::reset_peak_rss;
use crate::record::{Record, Stages};
use crate::schemes::Bench;
use crate::timing::{Random, measure};
use std::time::Instant;
use sudare_matrix::exact::{EncryptedIntegers, ExactClient, ExactPlan, ExactServer, ExactSpec};
use sudare_matrix::packing::IntMatrix;
use sudare_matrix::{Operand, Shape};
use sudare_rlwe::security::Security;

/// Side of square matrices and bits of their entries; the first is the paper's.
const PRODUCTS: [(usize, u32); 4] = [(16, 10), (64, 8), (128, 8), (16, 40)];
/// What the 16×16 product of 10-bit entries is to stay under, in milliseconds.
const WANTED_MS: f64 = 10.0;

struct Session {
    client: ExactClient,
    server: ExactServer,
    a: IntMatrix,
    b: IntMatrix,
}

impl Session {
    fn encrypt(&self) -> Outcome<[EncryptedIntegers; 2]> {
        Ok([self.client.encrypt(Operand::Left, &self.a)?, self.client.encrypt(Operand::Right, &self.b)?])
    }

    /// Seconds of each stage.
    fn stages(&self) -> Outcome<[f64; 3]> {
        let start = Instant::now();
        let [x, y] = self.encrypt()?;
        let encrypted = start.elapsed().as_secs_f64();
        let product = self.server.multiply(&x, &y)?;
        let multiplied = start.elapsed().as_secs_f64();
        self.client.decrypt(&product)?;
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
        let shape = Shape::new(d, d, d);
        let plan = ExactPlan::new(&ExactSpec { shape, left: bound, right: bound, security: Security::Bits128 })?;
        let threads = bench.threads.count();
        let mut random = Random::new(u64::from(bits));
        let mut matrix = || {
            let data = (0..d * d).map(|_| i128::from(random.word() % (2 * bound + 1)) - i128::from(bound)).collect();
            IntMatrix::new(d, d, data)
        };
        let (a, b) = (matrix()?, matrix()?);
        let session =
            Session { client: ExactClient::new(&plan, threads)?, server: ExactServer::new(&plan, threads)?, a, b };
        reset_peak_rss();
        let mut found = None;
        let timing = measure(
            &mut bench.unit,
            bench.budget,
            || {
                let [x, y] = session.encrypt()?;
                found = Some(session.client.decrypt(&session.server.multiply(&x, &y)?)?);
                Ok(())
            },
            None,
        )?;
        let mut stages = (0..5).map(|_| session.stages()).collect::<Outcome<Vec<_>>>()?;
        let mut median = |i: usize| {
            stages.sort_by(|x, y| x[i].total_cmp(&y[i]));
            Some(stages[stages.len() / 2][i] * 1e3)
        };
        let params = plan.params.build()?;
        let mut record = Record::new("exact", name, threads, bench.machine).with_params(&params).with_timing(timing);
        record.shape = Some([d, d, d]);
        record.method = Some(format!("BGV blocks, {} moduli", plan.moduli.len()));
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
