//! Repeated looks at growing data. An analysis that stops at the first favourable interval is wrong more
//! often than each interval states. Each look therefore needs a stricter level than the whole analysis.

use std::f64::consts::{FRAC_PI_2, PI};

use super::t_quantile;

/// Nodes of the quadratures over θ and over ψ, and of the interpolation over r (see [`stays_within`]). Three
/// times as many nodes change the chance by less than a thousandth of its value.
const USUAL: [usize; 3] = [24, 12, 16];
/// The same numbers for looks that are a block or two apart: the chance then has kinks.
const CLOSE: [usize; 3] = [48, 12, 40];
/// Values farther from a density's middle than this many of its widths are not counted.
const WIDTHS: f64 = 7.0;
/// Steps of the search for the level. It ends earlier if a step changes almost nothing.
const STEPS: usize = 12;

/// The two-sided level of each of several t-intervals, at `looks` blocks (ascending, from 2). With this
/// level, the chance that any of them finds an effect is `overall` (between 0 and 1) if there is no effect.
///
/// The level is the same at every look (S. J. Pocock, Biometrika 64 (1977), 191–199), for looks at any
/// distance from each other. For looks at 10, 15 and 20 and 0.05 it is 0.0234. A single look has `overall`
/// itself. `None` if the arguments are outside these ranges.
///
/// The chance is found by integration from look to look, as in P. Armitage, C. K. McPherson and B. C. Rowe
/// (Journal of the Royal Statistical Society A 132 (1969), 235–244), but for the t statistic itself: its
/// spread is estimated again at each look. With the levels for a known spread (0.0245 in the example) the
/// chance would be 5.2 %, and more for looks at fewer blocks. See `stays_within`.
#[must_use]
pub fn nominal_level(looks: &[usize], overall: f64) -> Option<f64> {
    let is_ascending = looks.windows(2).all(|pair| pair[0] < pair[1]);
    if looks.is_empty() || looks[0] < 2 || !is_ascending || !(overall > 0.0 && overall < 1.0) {
        return None;
    }
    if looks.len() == 1 {
        return Some(overall);
    }
    let is_close = looks.windows(2).any(|pair| pair[1] - pair[0] < 3);
    let [swing, turn, r_nodes] = if is_close { CLOSE } else { USUAL };
    let rules = Rules {
        swing: legendre(swing),
        turn: legendre(turn),
        r_nodes,
    };
    let excess = |level: f64| Some(1.0 - stays_within(level, looks, &rules)? - overall);
    // Secants from the least strict level (for one look) and from a level that is too strict (Bonferroni: the
    // level divided by the number of looks).
    let (mut before, mut level) = (overall, overall / looks.len() as f64);
    let (mut excess_before, mut excess_now) = (excess(before)?, excess(level)?);
    for _ in 0..STEPS {
        let step = excess_now * (level - before) / (excess_now - excess_before);
        if step.abs() < 1e-9 * overall {
            return Some(level);
        }
        (before, excess_before) = (level, excess_now);
        level -= step;
        excess_now = excess(level)?;
    }
    None
}

/// Nodes and weights on [−1, 1], and the nodes over r.
struct Rules {
    swing: Vec<(f64, f64)>,
    turn: Vec<(f64, f64)>,
    r_nodes: usize,
}

/// Chance that |t| stays within its two-sided `level` at every look, for independent normal differences of
/// mean 0.
///
/// Let r = S/√Q for the first n differences, with their sum S and the sum Q of their squares. t is a function
/// of r alone: |t| ≤ c exactly if |r| ≤ c·√n/√(n − 1 + c²). The direction of the vector of differences is
/// uniform and independent of its length √Q. All that follows a look therefore depends only on r.
///
/// After m more differences, with sum a and squares W about their own mean, r becomes
/// (r·√Q + a)/√(Q + W + a²/m) = r·cos ψ·cos θ + √m·sin θ. Here cos²ψ = Q/(Q + W) and
/// tan²θ = (a²/m)/(Q + W) are independent, with densities in proportion to cosⁿ⁻¹ψ·sinᵐ⁻²ψ (from 0 to π/2)
/// and cosⁿ⁺ᵐ⁻²θ (from −π/2 to π/2).
fn stays_within(level: f64, looks: &[usize], rules: &Rules) -> Option<f64> {
    let edges: Option<Vec<f64>> = looks.iter().map(|&look| edge(level, look)).collect();
    let edges = edges?;
    // From the last look to the first: the chance to stay within the limits from a look on, by r.
    let mut after = Chances::Certain;
    for (index, pair) in looks.windows(2).enumerate().rev() {
        let (now, next) = (edges[index], edges[index + 1]);
        let turns = turns(pair[0], pair[1] - pair[0], &rules.turn);
        let swings = Swing::of(pair[0], pair[1] - pair[0], &rules.swing);
        let by_r = chebyshev(now, rules.r_nodes)
            .into_iter()
            .map(|(r, weight)| {
                let chance = turns
                    .iter()
                    .map(|(turn, share)| {
                        share * swings.chance(r * turn, next, &after, &rules.swing)
                    })
                    .sum();
                (r, weight, chance)
            })
            .collect();
        after = Chances::ByR(by_r);
    }
    // The first look is a step like the others, without earlier differences: r = √n·sin θ.
    Some(Swing::of(0, looks[0], &rules.swing).chance(0.0, edges[0], &after, &rules.swing))
}

/// The largest |r| of n differences for which |t| is within its two-sided `level`.
fn edge(level: f64, n: usize) -> Option<f64> {
    let n = n as f64;
    let t = t_quantile(1.0 - level / 2.0, n - 1.0)?;
    Some(t * n.sqrt() / (n - 1.0 + t * t).sqrt())
}

/// cos ψ with its weights (their sum is 1), after `n` differences and `more`.
fn turns(n: usize, more: usize, rule: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if more == 1 {
        // A single difference has no squares about its own mean.
        return vec![(1.0, 1.0)];
    }
    let (n, m) = (n as f64, more as f64);
    let middle = ((m - 2.0) / (n - 1.0)).sqrt().atan();
    // There the density's logarithm has a curvature of at least 2·(n + m − 3), or n − 1 if m is 2.
    let width = WIDTHS / (2.0 * (n + m)).sqrt();
    let (from, to) = ((middle - width).max(0.0), (middle + width).min(FRAC_PI_2));
    let density = |angle: f64| {
        ((n - 1.0) * (angle.cos() / middle.cos()).ln()).exp()
            * if m > 2.0 {
                ((m - 2.0) * (angle.sin() / middle.sin()).ln()).exp()
            } else {
                1.0
            }
    };
    let weights: Vec<(f64, f64)> = over(from, to, rule)
        .map(|(angle, weight)| (angle.cos(), weight * density(angle)))
        .collect();
    let whole: f64 = weights.iter().map(|(_, weight)| weight).sum();
    weights
        .into_iter()
        .map(|(cos, w)| (cos, w / whole))
        .collect()
}

/// The distribution of θ.
struct Swing {
    /// Exponent of the cosine.
    exponent: f64,
    /// √m.
    reach: f64,
    /// Angles beyond this are not counted.
    farthest: f64,
    /// The integral of the density, from end to end.
    whole: f64,
}

impl Swing {
    fn of(n: usize, more: usize, rule: &[(f64, f64)]) -> Self {
        let exponent = (n + more - 2) as f64;
        let mut swing = Self {
            exponent,
            reach: (more as f64).sqrt(),
            farthest: FRAC_PI_2.min(WIDTHS / exponent.max(1.0).sqrt()),
            whole: 1.0,
        };
        swing.whole = over(-swing.farthest, swing.farthest, rule)
            .map(|(angle, weight)| weight * swing.density(angle))
            .sum();
        swing
    }

    /// Chance that r·cos θ + √m·sin θ is within ±`edge`, and that |r| stays within its limits at the later
    /// looks, for r ≥ 0.
    fn chance(&self, r: f64, edge: f64, after: &Chances, rule: &[(f64, f64)]) -> f64 {
        // The expression is ρ·sin(θ + φ). It exceeds the upper edge and, after its peak, returns. If the peak
        // is within the edge, the two parts join.
        let (peak, phase) = (r.hypot(self.reach), r.atan2(self.reach));
        let leaves = (edge / peak).min(1.0).asin();
        let stays: f64 = [
            (-leaves - phase, leaves - phase),
            (PI - leaves - phase, FRAC_PI_2),
        ]
        .into_iter()
        .map(|(from, to)| {
            let from = from.max(-self.farthest);
            let to = to.min(self.farthest);
            if from >= to {
                return 0.0;
            }
            over(from, to, rule)
                .map(|(angle, weight)| {
                    let next = r * angle.cos() + self.reach * angle.sin();
                    weight * self.density(angle) * after.at(next.abs())
                })
                .sum()
        })
        .sum();
        stays / self.whole
    }

    fn density(&self, angle: f64) -> f64 {
        (self.exponent * angle.cos().ln()).exp()
    }
}

/// Chance that |r| stays within the limits at every later look, by |r| at this look.
enum Chances {
    /// No more looks.
    Certain,
    /// Nodes and weights of [`chebyshev`], and the chance at each node.
    ByR(Vec<(f64, f64, f64)>),
}

impl Chances {
    /// Barycentric interpolation (J.-P. Berrut and L. N. Trefethen, SIAM Review 46 (2004), 501–517,
    /// equations 4.2 and 5.3).
    fn at(&self, r: f64) -> f64 {
        let Self::ByR(nodes) = self else { return 1.0 };
        let (mut above, mut below) = (0.0, 0.0);
        for (node, weight, chance) in nodes {
            let distance = r - node;
            if distance.abs() < 1e-12 {
                return *chance;
            }
            above += weight / distance * chance;
            below += weight / distance;
        }
        above / below
    }
}

/// Chebyshev nodes of the first kind from 0 to `edge`, with their interpolation weights.
fn chebyshev(edge: f64, count: usize) -> Vec<(f64, f64)> {
    (0..count)
        .map(|index| {
            let angle = PI * (2.0 * index as f64 + 1.0) / (2.0 * count as f64);
            let sign = if index % 2 == 0 { 1.0 } else { -1.0 };
            (edge * f64::midpoint(1.0, angle.cos()), sign * angle.sin())
        })
        .collect()
}

/// A quadrature's nodes and weights between two ends.
fn over(from: f64, to: f64, rule: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
    rule.iter()
        .map(move |(node, weight)| (middle + half * node, half * weight))
}

/// Nodes and weights of the Gauss–Legendre quadrature on [−1, 1] (M. Abramowitz and I. A. Stegun, Handbook of
/// Mathematical Functions (1964), 25.4.29). Newton's method finds the nodes.
fn legendre(count: usize) -> Vec<(f64, f64)> {
    let n = count as f64;
    (1..=count)
        .map(|index| {
            let mut node = (PI * (index as f64 - 0.25) / (n + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..8 {
                let (mut value, mut earlier) = (1.0, 0.0);
                for degree in 0..count {
                    let d = degree as f64;
                    let next = ((2.0 * d + 1.0) * node * value - d * earlier) / (d + 1.0);
                    (value, earlier) = (next, value);
                }
                slope = n * (node * value - earlier) / (node * node - 1.0);
                node -= value / slope;
            }
            (node, 2.0 / ((1.0 - node * node) * slope * slope))
        })
        .collect()
}
