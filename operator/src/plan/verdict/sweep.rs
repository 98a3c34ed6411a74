//! The best points of each candidate in a sweep, and its costs at part load.

use frugality_measure::{
    pace::Limited,
    statistics::{geometric_mean, paired_ratio},
};

use crate::{
    api::{FrugalityTrialStatus, Optimum, SweepResult},
    plan::{
        settings::ERROR,
        verdict::{evidence::Evidence, load_curve::load_curve, measure::Measure},
    },
};

/// The best points and the load curve of each candidate. Empty if there is only one point.
pub(super) fn sweep(points: &[Evidence<'_>]) -> Vec<SweepResult> {
    let [first, _, ..] = points else {
        return Vec::new();
    };
    // Each comparison with the best point has an equal part of the error, over all looks.
    let share = ERROR / (points.len() - 1) as f64;
    let Some(level) = first.settings.level_of_looks(share) else {
        return Vec::new();
    };
    let candidates = first.settings.candidates.iter();
    candidates
        .map(|candidate| {
            // Figures cover successes only, so a point with many errors may look better than it is.
            let has_worked = |point: &&Evidence<'_>| point.too_many_errors(candidate).is_none();
            let best = Best {
                points: points.iter().filter(has_worked).collect(),
                candidate,
                level,
            };
            // At a point where the injector limited a candidate, the candidate may be better than its figures.
            let limits: Vec<Limited> = points
                .iter()
                .filter_map(|evidence| evidence.limited_by_injector(candidate))
                .collect();
            let has_own_times = limits.is_empty() && !first.settings.mixes_times();
            let is_own = !limits.iter().any(|limited| limited.is_rate);
            SweepResult {
                candidate: candidate.clone(),
                load_curve: load_curve(points, candidate),
                most_requests_per_second: best
                    .of(&[&throughput], |_| Some(Hidden::default()))
                    .filter(|_| is_own),
                most_requests_per_joule: best
                    .of(
                        &[&per_joule, &per_idle_second, &per_cpu_second],
                        |evidence| Hidden::in_joules(evidence, candidate),
                    )
                    .filter(|_| is_own),
                knee: best
                    .of(&[&over_time(throughput)], |_| Some(Hidden::default()))
                    .filter(|_| has_own_times),
                least_energy_delay: best
                    .of(
                        &[
                            &over_time(per_joule),
                            &over_time(per_idle_second),
                            &over_time(per_cpu_second),
                        ],
                        |evidence| Hidden::in_joules(evidence, candidate),
                    )
                    .filter(|_| has_own_times),
            }
        })
        .collect()
}

fn throughput(evidence: &Evidence<'_>, trial: &FrugalityTrialStatus) -> Option<f64> {
    evidence.value(trial, Measure::RequestsPerSecond)
}

fn joules(evidence: &Evidence<'_>) -> Measure<'static> {
    Measure::Joules(evidence.deciding)
}

fn per_joule(evidence: &Evidence<'_>, trial: &FrugalityTrialStatus) -> Option<f64> {
    Some(evidence.value(trial, joules(evidence))?.recip())
}

/// Requests per joule on a board that draws only idle watts. For measured power, as measured.
fn per_idle_second(evidence: &Evidence<'_>, trial: &FrugalityTrialStatus) -> Option<f64> {
    match evidence.parts(trial) {
        Some(parts) => Some(parts.idle_seconds.recip()),
        None => per_joule(evidence, trial),
    }
}

/// Requests per joule on a board that draws power only for CPU time. For measured power, as measured.
fn per_cpu_second(evidence: &Evidence<'_>, trial: &FrugalityTrialStatus) -> Option<f64> {
    match evidence.parts(trial) {
        Some(parts) => Some(parts.cpu_seconds.recip()),
        None => per_joule(evidence, trial),
    }
}

/// A value over the mean time of a request.
fn over_time(
    value: fn(&Evidence<'_>, &FrugalityTrialStatus) -> Option<f64>,
) -> impl Fn(&Evidence<'_>, &FrugalityTrialStatus) -> Option<f64> {
    move |evidence, trial| {
        let time = evidence.value(trial, Measure::MillisecondsPerRequest)?;
        Some(value(evidence, trial)? / time)
    }
}

/// Relative standard uncertainties of a candidate's value at one point that the spread does not show and that differ between
/// points.
#[derive(Clone, Copy, Default)]
struct Hidden {
    /// By the window's edges.
    edges: f64,
    /// By a power model of unknown shape. It may be wrong in opposite directions at two loads.
    model: f64,
}

impl Hidden {
    /// In joules. `None` if neither the shape nor the accuracy of a power model is known.
    fn in_joules(evidence: &Evidence<'_>, candidate: &str) -> Option<Self> {
        let has_no_shape = evidence.is_modelled(candidate) && !evidence.is_line(candidate);
        Some(Self {
            edges: evidence.edges_uncertainty(candidate, joules(evidence))?,
            model: if has_no_shape {
                evidence.stated_of(candidate)?
            } else {
                0.0
            },
        })
    }

    /// Both points together.
    fn with(self, other: Self) -> f64 {
        self.edges.hypot(other.edges) + self.model + other.model
    }
}

/// A value of a trial.
type Value = dyn Fn(&Evidence<'_>, &FrugalityTrialStatus) -> Option<f64>;

/// A search for the point at which a value of a candidate is largest.
struct Best<'a> {
    points: Vec<&'a Evidence<'a>>,
    candidate: &'a str,
    /// Two-sided error of each comparison.
    level: f64,
}

impl Best<'_> {
    /// The point with the largest value, and the other points that may be the best.
    ///
    /// The ratio of two points is paired by round, so drift cancels. `hidden` widens the interval (2·u, as in every expanded
    /// interval). Each of the n − 1 comparisons has 1/(n − 1) of the error. The reported points therefore contain the true best point with the
    /// confidence of all intervals (Bonferroni; the problem is J. C. Hsu's, Annals of Statistics 12 (1984), 1136–1144).
    ///
    /// Several `values` are one quantity on several boards. The first value finds the best point. Another point may be the
    /// best unless it is smaller by all values. `None` if a trial lacks a value, because that point may be the best.
    fn of(
        &self,
        values: &[&Value],
        hidden: impl Fn(&Evidence<'_>) -> Option<Hidden>,
    ) -> Option<Optimum> {
        let of_value = |value: &&Value| -> Option<Vec<Vec<f64>>> {
            let points = self.points.iter();
            points
                .map(|evidence| {
                    let trials = evidence.trials(self.candidate);
                    let values = trials.into_iter().map(|trial| value(evidence, trial));
                    values.collect()
                })
                .collect()
        };
        let by_value: Vec<Vec<Vec<f64>>> = values.iter().map(of_value).collect::<Option<_>>()?;
        let by_point = by_value.first()?;
        let points = self.points.iter().copied();
        let unseen: Vec<Hidden> = points.map(hidden).collect::<Option<_>>()?;
        let means: Vec<f64> = by_point
            .iter()
            .map(|values| Some(geometric_mean(values, 1.0 - self.level)?.value))
            .collect::<Option<_>>()?;
        let best = (0..means.len()).max_by(|&a, &b| means[a].total_cmp(&means[b]))?;
        let mut among = Vec::new();
        for (index, evidence) in self.points.iter().enumerate() {
            let mut may_be = index == best;
            for by_point in &by_value {
                let pairs: Vec<(f64, f64)> = by_point[index]
                    .iter()
                    .copied()
                    .zip(by_point[best].iter().copied())
                    .collect();
                let upper = paired_ratio(&pairs, 1.0 - self.level)?.upper;
                let wider = upper * (2.0 * unseen[index].with(unseen[best])).exp();
                may_be |= wider >= 1.0;
            }
            if may_be {
                among.push(evidence.point.name.clone());
            }
        }
        Some(Optimum {
            point: self.points[best].point.name.clone(),
            among,
        })
    }
}
