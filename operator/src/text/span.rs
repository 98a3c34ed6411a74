//! A number or a range with the interval around it, as text.

use super::number::{Shown, WHOLE, fewest_decimals, magnitude};
use crate::api::{BoardRange, BoardVerdict, Comparison, Figure};

/// Most decimals of a ratio in a cell, unless an end is nearer to 1.
const MOST_RATIO_DECIMALS: i32 = 5;

/// One number or a range, and the interval around it.
#[derive(Clone, Copy)]
pub struct Span {
    /// The least and the most. They are equal for one number.
    pub(super) values: (f64, f64),
    pub(super) bounds: (f64, f64),
}

impl From<&Figure> for Span {
    fn from(figure: &Figure) -> Self {
        Self {
            values: (figure.value, figure.value),
            bounds: figure.bounds(),
        }
    }
}

impl From<&BoardRange> for Span {
    /// The extremes over all boards, and an interval that contains both of their intervals.
    fn from(range: &BoardRange) -> Self {
        Self {
            values: range.values(),
            bounds: range.bounds(),
        }
    }
}

impl Span {
    /// Half of the interval, on the side that is nearer: the interval must be visible on both sides.
    fn half(&self) -> f64 {
        (self.values.0 - self.bounds.0).min(self.bounds.1 - self.values.1)
    }

    /// Whether the whole interval is on one side of the edge. If it is not, the values may be rounded to the edge.
    fn excludes(&self, edge: f64) -> bool {
        self.bounds.0 > edge || self.bounds.1 < edge
    }

    /// Values and interval, each number on its side of each edge: `0.342–0.371 [0.334–0.380]`.
    #[must_use]
    pub fn beside(&self, edges: &[f64]) -> String {
        self.in_decimals(edges, |value| WHOLE.decimals(value, self.half()))
    }

    /// The same with these decimals, unless an edge needs more.
    fn in_decimals(&self, edges: &[f64], decimals: impl Fn(f64) -> i32) -> String {
        let shown = |value: f64| Shown {
            value,
            decimals: decimals(value),
        };
        let [values, ends] = [self.values, self.bounds].map(|(from, to)| [from, to].map(shown));
        let outside = edges.iter().filter(|edge| self.excludes(**edge));
        let mut pairs = against(ends, edges);
        pairs.extend(outside.flat_map(|edge| against(values, &[*edge])));
        let fewest = fewest_decimals(&pairs);
        let texts = |numbers: [Shown; 2]| numbers.map(|number| number.text(fewest));
        let [lower, upper] = texts(ends);
        format!("{} [{lower}–{upper}]", from_to(&texts(values)))
    }

    /// The values alone: `0.342–0.371`.
    #[must_use]
    pub fn values_beside(&self, edges: &[f64]) -> String {
        from_to(&self.part_beside(self.values, edges))
    }

    /// The interval alone: `0.334–0.380`.
    #[must_use]
    pub fn interval_beside(&self, edges: &[f64]) -> String {
        let [lower, upper] = self.part_beside(self.bounds, edges);
        format!("{lower}–{upper}")
    }

    fn part_beside(&self, (from, to): (f64, f64), edges: &[f64]) -> [String; 2] {
        let numbers = [from, to].map(|value| Shown::of(value, self.half(), WHOLE));
        let fewest = fewest_decimals(&against(numbers, edges));
        numbers.map(|number| number.text(fewest))
    }
}

/// Each number with each edge.
fn against(numbers: [Shown; 2], edges: &[f64]) -> Vec<(Shown, f64)> {
    let of_edge = |edge: &f64| numbers.map(|number| (number, *edge));
    edges.iter().flat_map(of_edge).collect()
}

/// A range; one number if both texts are equal.
fn from_to([least, most]: &[String; 2]) -> String {
    if least == most {
        least.clone()
    } else {
        format!("{least}–{most}")
    }
}

/// A ratio with its deciding interval: `0.380 [0.360–0.400]`. An end that is not 1 is not rounded to 1.
#[must_use]
pub fn ratio(ratio: &Figure) -> String {
    Span::from(ratio).beside(&[1.0])
}

/// A ratio with its deciding interval in a cell: `0.39 [0.38–0.40]`. The nearer end shows one digit of its distance. An end that
/// is not 1 is not rounded to 1.
#[must_use]
pub fn brief_ratio(ratio: &Figure) -> String {
    let span = Span::from(ratio);
    let decimals = (-magnitude(span.half())).clamp(2, MOST_RATIO_DECIMALS);
    span.in_decimals(&[1.0], |_| decimals)
}

/// The extremes of a ratio over all boards, with an interval that contains both of their intervals:
/// `0.342–0.371 [0.334–0.380]`.
#[must_use]
pub fn board_range(range_of_boards: &BoardRange) -> String {
    Span::from(range_of_boards).beside(&[1.0])
}

/// The ratio over all boards if known, unless the stated accuracy of this board's watts decides. Otherwise the
/// ratio.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    match &comparison.boards {
        Some(range) if comparison.board != Some(BoardVerdict::StatedAccuracy) => board_range(range),
        _ => ratio(&comparison.ratio),
    }
}
