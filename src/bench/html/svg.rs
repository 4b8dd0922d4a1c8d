//! A line chart as SVG: axes that are linear or logarithmic, lines, and points with names.

use crate::bench::figure::short;
use crate::timing::html::escaped;
use std::fmt::Write;

/// Width and height of the drawing, and its margins: left, right, top, bottom.
const SIZE: (f64, f64) = (520.0, 300.0);
const MARGINS: (f64, f64, f64, f64) = (52.0, 14.0, 10.0, 40.0);
/// Below this ratio of the largest to the smallest value an axis is linear and begins at zero.
const LINEAR: f64 = 3.0;

/// A line, or points by themselves.
pub(super) struct Line {
    /// Its name in the legend.
    pub(super) name: String,
    /// Where it goes, in the units of the axes.
    pub(super) points: Vec<(f64, f64)>,
    /// What is written beside each point; nothing beside those of a line.
    pub(super) labels: Vec<String>,
    /// How it is drawn.
    pub(super) style: Style,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Style {
    /// With a dot at each point.
    Solid,
    /// A figure of a paper, or a bound.
    Dashed,
    /// Without a line between the points.
    Dots,
}

/// An axis: its label, and how its numbers are written.
pub(super) struct Axis<'a> {
    pub(super) label: &'a str,
    /// As 64 KiB, and not as 65.5 k.
    pub(super) bytes: bool,
    /// Linear whatever its range: it counts steps.
    pub(super) steps: bool,
}

/// The range of an axis, or of bars.
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
}

impl Scale {
    /// For these values: logarithmic from a ratio of three on, unless they are steps.
    fn for_values(values: impl Iterator<Item = f64>, from_zero: bool, steps: bool) -> Scale {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if !steps && high / low >= LINEAR {
            Scale {
                // Some room below what goes upwards.
                low: if from_zero { 0.75 * low } else { low },
                high,
                log: true,
            }
        } else {
            Scale {
                low: if from_zero { 0.0 } else { low },
                high: if high > low { high } else { low + 1.0 },
                log: false,
            }
        }
    }

    /// The part of the range below `value`.
    pub(super) fn position(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Round numbers inside the range.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let steps: &[f64] = match self.high / self.low {
                ratio if ratio < 200.0 => &[1.0, 2.0, 5.0],
                _ => &[1.0],
            };
            let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            return decades
                .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
                .filter(|tick| (0.999 * self.low..=1.001 * self.high).contains(tick))
                .collect();
        }
        let rough = (self.high - self.low) / 4.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = step
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// A number on an axis.
fn number(value: f64, bytes: bool) -> String {
    let (unit, units) = if bytes {
        (1024.0, ["B", "KiB", "MiB", "GiB"])
    } else {
        (1000.0, ["", "k", "M", "G"])
    };
    let (mut value, mut order) = (value, 0);
    while value >= if bytes { unit } else { 10.0 * unit } && order < 3 {
        (value, order) = (value / unit, order + 1);
    }
    let digits = match value {
        value if value.fract().abs() < 1e-9 => format!("{value:.0}"),
        value if value >= 0.01 => short(value).trim_end_matches('0').into(),
        value => format!("{value:.0e}"),
    };
    format!("{digits} {}", units[order]).trim_end().into()
}

/// The chart with its title and legend.
pub(super) fn chart(title: &str, x: &Axis, y: &Axis, lines: &[Line]) -> String {
    let lines: Vec<&Line> = lines
        .iter()
        .filter(|line| !line.points.is_empty())
        .collect();
    let values = || lines.iter().flat_map(|line| &line.points);
    let (across, up) = (
        Scale::for_values(values().map(|point| point.0), false, x.steps),
        Scale::for_values(values().map(|point| point.1), true, y.steps),
    );
    let (left, right, top, bottom) = MARGINS;
    let at = |(x, y): (f64, f64)| {
        (
            left + across.position(x) * (SIZE.0 - left - right),
            SIZE.1 - bottom - up.position(y) * (SIZE.1 - top - bottom),
        )
    };
    let mut out = format!(
        "<figure><figcaption>{}</figcaption><div class=\"legend\">",
        escaped(title)
    );
    for (index, line) in lines.iter().enumerate() {
        let _ = write!(
            out,
            "<span><span class=\"key s{}\"></span>{}</span>",
            index % 7,
            escaped(&line.name)
        );
    }
    let _ = write!(
        out,
        "</div><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
        SIZE.0,
        SIZE.1,
        escaped(title)
    );
    for tick in up.ticks() {
        let (_, height) = at((across.low, tick));
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{left} {height:.1}H{}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            SIZE.0 - right,
            left - 6.0,
            height + 4.0,
            number(tick, y.bytes)
        );
    }
    // Along x the values themselves, as far as there is room.
    let mut ticks: Vec<f64> = values().map(|point| point.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let mut free = 0.0;
    for tick in ticks {
        let (place, floor) = (at((tick, up.low)).0, SIZE.1 - bottom);
        let text = number(tick, x.bytes);
        let half = 3.4 * text.chars().count() as f64;
        if place - half < free {
            continue;
        }
        free = place + half + 8.0;
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{place:.1} {floor}v4\"/><text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            floor + 17.0
        );
    }
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{left} {}H{}\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><text x=\"{left}\" y=\"{}\" text-anchor=\"start\">{}{}</text>",
        SIZE.1 - bottom,
        SIZE.0 - right,
        SIZE.0 - right,
        SIZE.1 - 6.0,
        escaped(x.label),
        SIZE.1 - 6.0,
        escaped(y.label),
        if up.log { ", logarithmic" } else { "" }
    );
    for (index, line) in lines.iter().enumerate() {
        drawn(&mut out, index % 7, line, at);
    }
    out.push_str("</svg></figure>\n");
    out
}

fn drawn(out: &mut String, colour: usize, line: &Line, at: impl Fn((f64, f64)) -> (f64, f64)) {
    let places: Vec<(f64, f64)> = line.points.iter().map(|&point| at(point)).collect();
    let _ = write!(out, "<g class=\"s{colour}\">");
    if line.style != Style::Dots {
        let path: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1} {y:.1}"))
            .collect();
        let dashed = if line.style == Style::Dashed {
            " dashed"
        } else {
            ""
        };
        let _ = write!(
            out,
            "<path class=\"curve{dashed}\" d=\"M{}\"/>",
            path.join("L")
        );
    }
    if line.style != Style::Dashed {
        for (x, y) in &places {
            let _ = write!(
                out,
                "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
            );
        }
    }
    for ((x, y), label) in places.iter().zip(&line.labels) {
        let _ = write!(
            out,
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 7.0,
            y + 12.0,
            escaped(label)
        );
    }
    out.push_str("</g>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_effects_are_linear_from_zero_and_large_ones_logarithmic() {
        let small = Scale::for_values([10.0, 25.0].into_iter(), true, false);
        assert!(!small.log && small.low == 0.0);
        assert!((small.position(12.5) - 0.5).abs() < 1e-9);
        let large = Scale::for_values([1.0, 100.0].into_iter(), false, false);
        assert!(large.log && (large.position(10.0) - 0.5).abs() < 1e-9);
        assert!(!Scale::for_values([1.0, 7.0].into_iter(), false, true).log);
        assert_eq!(large.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(small.ticks(), [0.0, 10.0, 20.0]);
    }

    #[test]
    fn numbers_on_axes_are_short() {
        let numbers = [(64.0, false), (65536.0, true), (2.5e8, false), (0.5, false)];
        let texts = numbers.map(|(value, bytes)| number(value, bytes));
        assert_eq!(texts, ["64", "64 KiB", "250 M", "0.5"]);
    }
}
