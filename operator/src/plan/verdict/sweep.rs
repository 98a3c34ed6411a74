//! Where over the points of a sweep each candidate does best.

use frugality_measure::statistics::{geometric_mean, paired_ratio};

use super::evidence::{Evidence, Measure};
use crate::{
    api::{FrugalityTrialStatus, Optimum, SweepResult},
    plan::settings::ERROR,
};

/// Where each candidate does best; nothing where there is one point only.
pub(super) fn sweep(points: &[Evidence<'_>]) -> Vec<SweepResult> {
    let [first, _, ..] = points else {
        return Vec::new();
    };
    // Each comparison with the best has its part of the error, over all looks.
    let share = ERROR / (points.len() - 1) as f64;
    let Some(level) = first.settings.level_of_looks(share) else {
        return Vec::new();
    };
    let candidates = first.settings.candidates.iter();
    candidates
        .map(|candidate| {
            let best = Best {
                points,
                candidate,
                level,
            };
            SweepResult {
                candidate: candidate.clone(),
                most_requests_per_second: best.of(throughput, |_| Some(0.0)),
                most_requests_per_joule: best.of(
                    |evidence, trial| Some(evidence.value(trial, joules(evidence))?.recip()),
                    |evidence| evidence.ends_uncertainty(candidate, joules(evidence)),
                ),
                knee: best.of(
                    |evidence, trial| {
                        let waiting = evidence.value(trial, Measure::MillisecondsPerRequest)?;
                        Some(throughput(evidence, trial)? / waiting)
                    },
                    |_| Some(0.0),
                ),
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

/// Looks for the point at which a candidate has most of something.
struct Best<'a> {
    points: &'a [Evidence<'a>],
    candidate: &'a str,
    /// Two-sided error of each comparison.
    level: f64,
}

impl Best<'_> {
    /// The point of the greatest value, and the others that may be it. Of the blocks of one round, one a
    /// point, the ratio of two points is taken in pairs, so that drift cancels; `beside` is the share of a
    /// value that the spread does not show and that is another one at another point, which widens the
    /// interval (2·u, as in every expanded one). Each of the n − 1 comparisons has an n − 1th of the error,
    /// so that the points that are told hold the true best with the confidence of all intervals (Bonferroni;
    /// the task is J. C. Hsu's, Annals of Statistics 12 (1984), 1136–1144). None where a trial lacks the
    /// value, for then the best point may be one without it.
    fn of(
        &self,
        value: impl Fn(&Evidence<'_>, &FrugalityTrialStatus) -> Option<f64>,
        beside: impl Fn(&Evidence<'_>) -> Option<f64>,
    ) -> Option<Optimum> {
        let by_point: Vec<Vec<f64>> = self
            .points
            .iter()
            .map(|evidence| {
                let trials = evidence.trials(self.candidate);
                let values = trials.into_iter().map(|trial| value(evidence, trial));
                values.collect()
            })
            .collect::<Option<_>>()?;
        let unseen: Vec<f64> = self.points.iter().map(beside).collect::<Option<_>>()?;
        let means: Vec<f64> = by_point
            .iter()
            .map(|values| Some(geometric_mean(values, 1.0 - self.level)?.value))
            .collect::<Option<_>>()?;
        let best = (0..means.len()).max_by(|&a, &b| means[a].total_cmp(&means[b]))?;
        let mut among = Vec::new();
        for (index, values) in by_point.iter().enumerate() {
            let pairs: Vec<(f64, f64)> = values
                .iter()
                .copied()
                .zip(by_point[best].iter().copied())
                .collect();
            let upper = paired_ratio(&pairs, 1.0 - self.level)?.upper;
            let wider = upper * (2.0 * unseen[index].hypot(unseen[best])).exp();
            if index == best || wider >= 1.0 {
                among.push(self.points[index].point.name.clone());
            }
        }
        Some(Optimum {
            point: self.points[best].point.name.clone(),
            among,
        })
    }
}
