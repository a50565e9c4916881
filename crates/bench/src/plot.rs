//! Line charts as SVG: what a report shows, without another program.

use std::fmt::Write;

/// A chart of some lines over a common axis.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Above the chart.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical axis, which begins at 0.
    pub y: String,
    /// Whether equal ratios of x have equal distances; all x are positive then.
    pub is_log: bool,
    /// Name and points of each line, with x ascending.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Up to so many places of points are named, and marked on their lines.
const MOST_LABELS: usize = 24;

/// Told apart also by those who see few colours (Okabe and Ito).
const COLOURS: [&str; 8] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
];

impl Plot {
    /// The chart; without points an empty one.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let place = |x: f64| if self.is_log { x.ln() } else { x };
        let xs = points().map(|(x, _)| place(*x));
        let (least, most) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| {
            (least.min(x), most.max(x))
        });
        let width = if most > least { most - least } else { 1.0 };
        let highest = points().map(|(_, y)| *y).fold(0.0, f64::max);
        let rise = step(highest);
        let top = (highest / rise).ceil().max(1.0) * rise;
        let at = |x: f64, y: f64| {
            (
                LEFT + (place(x) - least) / width * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM),
            )
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let mut put = |element: std::fmt::Arguments<'_>| {
            svg.write_fmt(element).expect("a string takes everything");
            svg.push('\n');
        };
        let (middle, base, end) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - BOTTOM, WIDTH - RIGHT);
        put(format_args!(
            "<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>",
            escaped(&self.title)
        ));
        put(format_args!(
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 12.0,
            escaped(&self.x)
        ));
        put(format_args!(
            "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            HEIGHT / 2.0,
            escaped(&self.y)
        ));
        for tick in 0..=(top / rise).round() as u32 {
            let value = f64::from(tick) * rise;
            let y = base - value / top * (HEIGHT - TOP - BOTTOM);
            put(format_args!(
                "<line x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                short(value)
            ));
        }
        let mut xs: Vec<f64> = points().map(|(x, _)| *x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        if xs.len() > MOST_LABELS && !self.is_log {
            let step = step(most - least);
            let first = (least / step).ceil() as i64;
            let labels = (first..).map(|number| number as f64 * step);
            xs = labels.take_while(|label| *label <= most).collect();
        }
        for x in xs {
            put(format_args!(
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                at(x, 0.0).0,
                base + 18.0,
                short(x)
            ));
        }
        for (number, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            // Beyond the colours, lines are broken.
            let dashes = 5 * (number / COLOURS.len());
            let path = points.iter().map(|(x, y)| {
                let (x, y) = at(*x, *y);
                format!("{x:.1},{y:.1}")
            });
            let path = path.collect::<Vec<_>>().join(" ");
            put(format_args!(
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
                 stroke-dasharray=\"{dashes}\"/>"
            ));
            // Of many, the line is enough.
            for (x, y) in points.iter().filter(|_| points.len() <= MOST_LABELS) {
                let (x, y) = at(*x, *y);
                put(format_args!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
                ));
            }
            let y = TOP + 16.0 * number as f64;
            put(format_args!(
                "<line x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"3\"/>\
                 <text x=\"{}\" y=\"{}\">{}</text>",
                end + 10.0,
                end + 26.0,
                end + 31.0,
                y + 4.0,
                escaped(name)
            ));
        }
        svg + "</svg>\n"
    }
}

/// A distance of ticks so that there are up to six of them: one, two or five times a power of ten.
fn step(highest: f64) -> f64 {
    let rough = (highest / 6.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let found = steps.into_iter().find(|step| *step >= rough * 0.999);
    found.unwrap_or(10.0 * power)
}

/// With k, M and G for thousands, millions and thousands of millions.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e4 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{}{unit}", (value * 100.0).round() / 100.0)
}

fn escaped(text: &str) -> String {
    (text.replace('&', "&amp;").replace('<', "&lt;")).replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_where_their_values_say() {
        let plot = Plot {
            title: "a < b & c".to_owned(),
            x: "keys".to_owned(),
            y: "rate".to_owned(),
            is_log: true,
            lines: vec![
                ("one".to_owned(), vec![(1e6, 0.0), (4e6, 6.0), (16e6, 3.0)]),
                ("two".to_owned(), vec![(4e6, 1.0)]),
            ],
        };
        let svg = plot.svg();
        // From the left end at the bottom, to the middle at the top, to the right end half-way up.
        assert!(
            svg.contains("points=\"70.0,350.0 260.0,40.0 450.0,195.0\""),
            "{svg}"
        );
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains(">16M</text>"));
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn ticks_are_few_and_round() {
        for (highest, expected) in [(6.0, 1.0), (7.0, 2.0), (31.0, 10.0), (0.25, 0.05)] {
            assert!((step(highest) - expected).abs() < 1e-9, "{highest}");
        }
        assert!(step(0.0) > 0.0);
        assert_eq!(short(1_500_000.0), "1.5M");
        assert_eq!(short(0.8), "0.8");
    }
}
