//! Plots as SVG text, drawn here so that a page needs nothing else.

use std::fmt::Write;

/// Values of one box: which series, at which position, and all samples.
pub struct BoxOf<'a> {
    /// Number of the series, from 0.
    pub series: usize,
    /// Position on the x axis.
    pub x: usize,
    /// Samples.
    pub samples: &'a [f64],
}

/// A panel of box plots over x = 1, 2, ….
pub struct Panel<'a> {
    /// Words above.
    pub title: String,
    /// Its boxes.
    pub boxes: Vec<BoxOf<'a>>,
}

const COLOURS: [&str; 4] = ["#b5651d", "#1f6fb2", "#7a7a7a", "#2e8b57"];
const INK: &str = "#333";
const GRID: &str = "#ddd";
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 30.0;

/// A logarithmic axis from the least to the largest value, in whole decades or parts of them.
struct Axis {
    least: f64,
    most: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
        if !least.is_finite() || least <= 0.0 {
            return Self { least: 1.0, most: 10.0 };
        }
        Self { least: least * 0.8, most: most * 1.25 }
    }

    /// 0 at the least value, 1 at the largest.
    fn place(&self, value: f64) -> f64 {
        (value / self.least).ln() / (self.most / self.least).ln()
    }

    /// Round values inside: 1, 2 and 5 of each decade, fewer if there are many decades.
    fn ticks(&self) -> Vec<f64> {
        let decades = (self.most / self.least).log10();
        let steps: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let first = self.least.log10().floor() as i32;
        let all = (first..first + 12).flat_map(|e| steps.iter().map(move |s| s * 10f64.powi(e)));
        all.filter(|t| (self.least..=self.most).contains(t)).collect()
    }
}

/// The quartiles and whiskers of a box: the furthest samples within 1.5 interquartile ranges.
pub fn five_numbers(samples: &[f64]) -> Option<[f64; 5]> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let quantile = |p: f64| {
        let at = p * last as f64;
        let (low, part) = (at.floor() as usize, at.fract());
        sorted[low] + part * (sorted[(low + 1).min(last)] - sorted[low])
    };
    let (q1, median, q3) = (quantile(0.25), quantile(0.5), quantile(0.75));
    let reach = 1.5 * (q3 - q1);
    let low = sorted.iter().copied().find(|x| *x >= q1 - reach)?;
    let high = sorted.iter().rev().copied().find(|x| *x <= q3 + reach)?;
    Some([low, q1, median, q3, high])
}

/// Number with as many digits as its size asks for.
fn label(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
}

fn head(out: &mut String, columns: usize, rows: usize, legend: &[&str]) {
    let (width, height) = (columns as f64 * WIDTH, rows as f64 * HEIGHT + 28.0);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    for (i, name) in legend.iter().enumerate() {
        let x = LEFT + 200.0 * i as f64;
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(out, "<rect x=\"{x}\" y=\"8\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        let _ = writeln!(out, "<text x=\"{}\" y=\"18\">{name}</text>", x + 17.0);
    }
}

/// The frame of a panel with its y axis; returns the corner and the inner size.
fn frame(out: &mut String, at: (usize, usize), title: &str, y: &Axis) -> [f64; 4] {
    let (x0, y0) = (at.0 as f64 * WIDTH + LEFT, at.1 as f64 * HEIGHT + 28.0 + TOP);
    let (w, h) = (WIDTH - LEFT - 12.0, HEIGHT - TOP - BOTTOM);
    let _ = writeln!(out, "<text x=\"{x0}\" y=\"{}\" font-weight=\"bold\">{title}</text>", y0 - 8.0);
    for tick in y.ticks() {
        let v = y0 + h * (1.0 - y.place(tick));
        let _ = writeln!(out, "<line x1=\"{x0}\" x2=\"{}\" y1=\"{v:.1}\" y2=\"{v:.1}\" stroke=\"{GRID}\"/>", x0 + w);
        let _ =
            writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", x0 - 5.0, v + 4.0, label(tick));
    }
    let _ = writeln!(
        out,
        "<rect x=\"{x0}\" y=\"{y0}\" width=\"{w}\" height=\"{h}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"0.7\"/>"
    );
    [x0, y0, w, h]
}

/// Box plots on logarithmic y axes, panels row by row in `columns` columns.
pub fn boxes(panels: &[Panel<'_>], columns: usize, legend: &[&str], x_name: &str) -> String {
    let mut out = String::new();
    head(&mut out, columns, panels.len().div_ceil(columns), legend);
    for (i, panel) in panels.iter().enumerate() {
        let axis = Axis::of(panel.boxes.iter().flat_map(|b| b.samples.iter().copied()));
        let [x0, y0, w, h] = frame(&mut out, (i % columns, i / columns), &panel.title, &axis);
        let places = panel.boxes.iter().map(|b| b.x).max().unwrap_or(1).max(2) as f64;
        let pitch = w / places;
        for place in 1..=places as usize {
            let x = x0 + (place as f64 - 0.5) * pitch;
            let _ =
                writeln!(out, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{place}</text>", y0 + h + 13.0);
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{x_name}</text>",
            x0 + w / 2.0,
            y0 + h + 25.0
        );
        let half = (pitch / (2.0 * legend.len() as f64) * 0.8).min(9.0);
        for b in &panel.boxes {
            let Some(five) = five_numbers(b.samples) else { continue };
            let shift = (b.series as f64 - (legend.len() as f64 - 1.0) / 2.0) * 2.2 * half;
            let x = x0 + (b.x as f64 - 0.5) * pitch + shift;
            let y = |v: f64| y0 + h * (1.0 - axis.place(v));
            let [low, q1, median, q3, high] = five.map(y);
            let colour = COLOURS[b.series % COLOURS.len()];
            let _ = writeln!(
                out,
                "<g stroke=\"{colour}\"><line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>\
                 <rect x=\"{:.1}\" y=\"{q3:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" fill-opacity=\"0.3\"/>\
                 <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{median:.1}\" y2=\"{median:.1}\" stroke-width=\"2\"/></g>",
                x - half,
                2.0 * half,
                (q1 - q3).max(0.5),
                x - half,
                x + half
            );
            for outlier in b.samples.iter().filter(|s| **s < five[0] || **s > five[4]) {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"1.6\" fill=\"none\" stroke=\"{colour}\"/>",
                    y(*outlier)
                );
            }
        }
    }
    out + "</svg>\n"
}

/// Points of several series on two logarithmic axes, one panel.
pub fn points(title: &str, series: &[(&str, Vec<[f64; 2]>)], x_name: &str) -> String {
    let mut out = String::new();
    let names: Vec<&str> = series.iter().map(|s| s.0).collect();
    const COLUMNS: usize = 3;
    head(&mut out, COLUMNS, 2, &names);
    let all = || series.iter().flat_map(|s| s.1.iter());
    let (x, y) = (Axis::of(all().map(|p| p[0])), Axis::of(all().map(|p| p[1])));
    let (x0, y0) = (LEFT, 28.0 + TOP);
    let (w, h) = (COLUMNS as f64 * WIDTH - LEFT - 12.0, 2.0 * HEIGHT - TOP - BOTTOM);
    let _ = writeln!(out, "<text x=\"{x0}\" y=\"{}\" font-weight=\"bold\">{title}</text>", y0 - 8.0);
    for tick in y.ticks() {
        let v = y0 + h * (1.0 - y.place(tick));
        let _ = writeln!(out, "<line x1=\"{x0}\" x2=\"{}\" y1=\"{v:.1}\" y2=\"{v:.1}\" stroke=\"{GRID}\"/>", x0 + w);
        let _ =
            writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", x0 - 5.0, v + 4.0, label(tick));
    }
    for tick in x.ticks() {
        let u = x0 + w * x.place(tick);
        let _ = writeln!(
            out,
            "<text x=\"{u:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y0 + h + 13.0,
            label(tick)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{x_name}</text>",
        x0 + w / 2.0,
        y0 + h + 26.0
    );
    for (i, (_, values)) in series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        for p in values {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\" fill=\"{colour}\"/>",
                x0 + w * x.place(p[0]),
                y0 + h * (1.0 - y.place(p[1]))
            );
        }
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_box() {
        assert_eq!(five_numbers(&[]), None);
        assert_eq!(five_numbers(&[3.0]), Some([3.0; 5]));
        assert_eq!(five_numbers(&[1.0, 2.0, 3.0, 4.0, 100.0]), Some([1.0, 2.0, 3.0, 4.0, 4.0]));
    }

    #[test]
    fn plots_are_whole() {
        let samples = [10.0, 11.0, 12.0, 40.0];
        let panels = [Panel { title: "a".into(), boxes: vec![BoxOf { series: 0, x: 2, samples: &samples }] }];
        let svg = boxes(&panels, 3, &["one", "two"], "h");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.matches("<circle").count() == 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        let svg = points("b", &[("one", vec![[1.0, 2.0], [10.0, 30.0]])], "bytes");
        assert!(svg.matches("<circle").count() == 2 && !svg.contains("NaN"));
    }
}
