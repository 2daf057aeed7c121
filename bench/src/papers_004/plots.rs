//! The plots of the page.

use super::page::Page;
use crate::plot::{BoxOf, Panel, boxes, points};

/// Figure 5.2 and the appendix: file names after `papers-004-`, and their text.
pub fn all(page: &Page) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut series: Vec<(&str, Vec<[f64; 2]>)> = Vec::new();
    let sixty = || page.fma.iter().filter(|c| c.bits == 60);
    let ours = |time: fn(&crate::fma::Cell) -> Option<f64>| {
        sixty().filter_map(|c| Some([c.bytes as f64, time(c)?])).collect::<Vec<_>>()
    };
    series.push(("two calls, here", ours(|c| c.mult_add_us)));
    series.push(("fused, here", ours(|c| c.fma_us)));
    series.push(("MultAdd, paper", ours(|c| c.paper_us.map(|p| p[0]))));
    series.push(("FMA, paper", ours(|c| c.paper_us.map(|p| p[1]))));
    out.push(("fma.svg".into(), points("Figure 5.2: µs by bytes of operands, 60-bit primes", &series, "bytes")));
    for (m, threads) in page.tables() {
        let mut panels = Vec::new();
        for (k, level) in page.columns() {
            let here = || page.at(m, threads).filter(move |c| (c.k, c.level) == (k, level));
            let of = |portable: bool| {
                here()
                    .filter(move |c| (c.kernel == "portable") == portable && !c.samples_ms.is_empty())
                    .map(move |c| BoxOf { series: usize::from(!portable), x: c.h, samples: &c.samples_ms })
            };
            let title =
                format!("M = {m}, k = {k}, l = {level}, {threads} thread{}", if threads > 1 { "s" } else { "" });
            panels.push(Panel { title, boxes: of(true).chain(of(false)).collect() });
        }
        let svg = boxes(&panels, 3, &["portable (normal), ms", "AVX-512 (hexl), ms"], "h");
        out.push((format!("box-m{m}-t{threads}.svg"), svg));
    }
    out
}
