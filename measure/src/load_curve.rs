//! What a server costs at part load: the power of its node over the rate of requests.
//!
//! The figures are those of SPECpower_ssj2008 (SPEC, *Result File Fields*, 4.4: Σ ssj_ops / Σ power), and the energy
//! proportionality of F. Ryckbosch, S. Polfliet and L. Eeckhout, Trends in Server Energy Proportionality, Computer 44 (9),
//! 2011, 69–72 (doi:10.1109/MC.2011.130).

/// A node's power at one load level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadLevel {
    /// Successful requests per second.
    pub requests_per_second: f64,
    /// Mean power of the node, in watts.
    pub watts: f64,
}

/// A node's power over the rate, from one block at each load level.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadCurve {
    idle_watts: f64,
    /// From the highest rate down; at least two.
    levels: Vec<LoadLevel>,
}

impl LoadCurve {
    /// A curve through these levels. `idle_watts` is the power while the server is up and gets no requests. `None` with
    /// fewer than two levels, with a rate or a power that is not above 0, or if a level's rate is not below that of the
    /// level before.
    #[must_use]
    pub fn new(idle_watts: f64, levels: Vec<LoadLevel>) -> Option<Self> {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        let is_possible = levels.len() > 1
            && is_positive(idle_watts)
            && levels
                .iter()
                .all(|it| is_positive(it.requests_per_second) && is_positive(it.watts))
            && levels
                .windows(2)
                .all(|pair| pair[0].requests_per_second > pair[1].requests_per_second);
        is_possible.then_some(Self { idle_watts, levels })
    }

    /// Power without load, in watts.
    #[must_use]
    pub fn idle_watts(&self) -> f64 {
        self.idle_watts
    }

    /// Requests per joule over all levels: the sum of the rates, divided by the sum of the powers at all levels and
    /// without load. This is the headline of a SPECpower result.
    #[must_use]
    pub fn requests_per_joule(&self) -> f64 {
        let rates: f64 = self.levels.iter().map(|it| it.requests_per_second).sum();
        let watts: f64 = self.levels.iter().map(|it| it.watts).sum();
        rates / (watts + self.idle_watts)
    }

    /// Power without load, as a share of the power at the highest level.
    #[must_use]
    pub fn idle_share(&self) -> f64 {
        self.idle_watts / self.levels[0].watts
    }

    /// Twice the area under the curve of power over rate, both as shares of the highest level: the trapezoids from no load
    /// to the highest level. 1 for a node whose power is proportional to the rate, and 2 for a node with constant power.
    #[must_use]
    pub fn double_area(&self) -> f64 {
        let highest = self.levels[0];
        let idle = LoadLevel {
            requests_per_second: 0.0,
            watts: self.idle_watts,
        };
        let points: Vec<LoadLevel> = self.levels.iter().copied().chain([idle]).collect();
        let trapezoids = points.windows(2).map(|pair| {
            (pair[0].requests_per_second - pair[1].requests_per_second)
                * (pair[0].watts + pair[1].watts)
        });
        trapezoids.sum::<f64>() / (highest.requests_per_second * highest.watts)
    }

    /// Joules that one more request costs: the slope of power over rate, by least squares through all levels and the power
    /// without load. It may be 0 or less if power does not rise with the rate.
    #[must_use]
    pub fn marginal_joules_per_request(&self) -> f64 {
        let points = || {
            let levels = self
                .levels
                .iter()
                .map(|it| (it.requests_per_second, it.watts));
            levels.chain([(0.0, self.idle_watts)])
        };
        let count = points().count() as f64;
        let mean_rate = points().map(|(rate, _)| rate).sum::<f64>() / count;
        let mean_watts = points().map(|(_, watts)| watts).sum::<f64>() / count;
        let products: f64 = points()
            .map(|(rate, watts)| (rate - mean_rate) * (watts - mean_watts))
            .sum();
        let squares: f64 = points().map(|(rate, _)| (rate - mean_rate).powi(2)).sum();
        products / squares
    }
}

/// Energy proportionality by Ryckbosch: 1 less the excess of the area under the curve over the area of a proportional
/// node. 1 is proportional, and 0 is constant power.
#[must_use]
pub fn proportionality(double_area: f64) -> f64 {
    2.0 - double_area
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(idle_watts: f64, levels: &[(f64, f64)]) -> LoadCurve {
        let levels = levels
            .iter()
            .map(|&(requests_per_second, watts)| LoadLevel {
                requests_per_second,
                watts,
            });
        LoadCurve::new(idle_watts, levels.collect()).unwrap()
    }

    fn assert_near(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-12,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_overall_figure_is_the_ratio_of_the_sums() {
        let found = curve(100.0, &[(1000.0, 200.0), (500.0, 150.0), (100.0, 110.0)]);
        assert_near(found.requests_per_joule(), 1600.0 / 560.0);
        assert_near(found.idle_share(), 0.5);
    }

    #[test]
    fn a_straight_line_has_its_slope_and_its_area() {
        // 2 W and 5 mJ per request.
        let found = curve(2.0, &[(400.0, 4.0), (200.0, 3.0), (40.0, 2.2)]);
        assert_near(found.marginal_joules_per_request(), 0.005);
        // A trapezoid between 0.5 and 1.
        assert_near(found.double_area(), 1.5);
        assert_near(proportionality(found.double_area()), 0.5);
    }

    #[test]
    fn a_curve_needs_falling_rates_and_power() {
        let level = |requests_per_second, watts| LoadLevel {
            requests_per_second,
            watts,
        };
        for (idle, levels) in [
            (2.0, vec![level(400.0, 4.0)]),
            (2.0, vec![level(400.0, 4.0), level(400.0, 4.0)]),
            (2.0, vec![level(200.0, 3.0), level(400.0, 4.0)]),
            (2.0, vec![level(400.0, 4.0), level(0.0, 3.0)]),
            (2.0, vec![level(400.0, f64::NAN), level(200.0, 3.0)]),
            (0.0, vec![level(400.0, 4.0), level(200.0, 3.0)]),
        ] {
            assert_eq!(LoadCurve::new(idle, levels), None);
        }
    }

    proptest! {
        #[test]
        fn a_meter_with_a_wrong_gain_changes_only_joules(
            idle in 1.0..5.0,
            rise in prop::collection::vec(0.1..2.0, 2..10),
            gain in 0.9..1.1,
        ) {
            let levels = |gain: f64| {
                let mut watts = idle;
                let mut levels: Vec<(f64, f64)> = rise
                    .iter()
                    .enumerate()
                    .map(|(index, more)| {
                        watts += more;
                        (100.0 * (index + 1) as f64, gain * watts)
                    })
                    .collect();
                levels.reverse();
                levels
            };
            let (right, wrong) = (curve(idle, &levels(1.0)), curve(gain * idle, &levels(gain)));
            prop_assert!((wrong.idle_share() / right.idle_share() - 1.0).abs() < 1e-9);
            prop_assert!((wrong.double_area() / right.double_area() - 1.0).abs() < 1e-9);
            prop_assert!((wrong.requests_per_joule() * gain / right.requests_per_joule() - 1.0).abs() < 1e-9);
            prop_assert!((wrong.marginal_joules_per_request() / gain / right.marginal_joules_per_request() - 1.0).abs() < 1e-9);
            // Power that rises with the rate is between constant and proportional power, or above.
            prop_assert!(right.double_area() <= 2.0 && right.double_area() > right.idle_share());
        }
    }
}
