//! Where over the points of a sweep each candidate does best.

use frugality_measure::statistics::{geometric_mean, paired_ratio};

use super::evidence::{Evidence, Measure};
use crate::api::{FrugalityTrialStatus, Optimum, SweepResult};

/// Where each candidate does best; nothing where there is one point only.
pub(super) fn sweep(points: &[Evidence<'_>]) -> Vec<SweepResult> {
    let [first, _, ..] = points else {
        return Vec::new();
    };
    let candidates = first.settings.candidates.iter();
    candidates
        .map(|candidate| SweepResult {
            candidate: candidate.clone(),
            most_requests_per_second: optimum(points, candidate, throughput),
            most_requests_per_joule: optimum(points, candidate, |evidence, trial| {
                let joules = evidence.value(trial, Measure::Joules(evidence.deciding))?;
                Some(joules.recip())
            }),
            knee: optimum(points, candidate, |evidence, trial| {
                let milliseconds = evidence.value(trial, Measure::MillisecondsPerRequest)?;
                Some(throughput(evidence, trial)? / milliseconds)
            }),
        })
        .collect()
}

fn throughput(evidence: &Evidence<'_>, trial: &FrugalityTrialStatus) -> Option<f64> {
    evidence.value(trial, Measure::RequestsPerSecond)
}

/// The point of the greatest value, and the others that may be it. Of the blocks of one round, one a
/// point, the ratio of two points is taken in pairs, so that drift cancels. Each of the n − 1
/// comparisons has an n − 1th of the error, so that the points that are told hold the true best with the
/// confidence of all intervals (Bonferroni; the task is J. C. Hsu's, Annals of Statistics 12 (1984),
/// 1136–1144). None where a trial lacks the value, for then the best point may be one without it.
fn optimum(
    points: &[Evidence<'_>],
    candidate: &str,
    value: impl Fn(&Evidence<'_>, &FrugalityTrialStatus) -> Option<f64>,
) -> Option<Optimum> {
    let level = points.first()?.settings.level / (points.len() - 1) as f64;
    let by_point: Vec<Vec<f64>> = points
        .iter()
        .map(|evidence| {
            let trials = evidence.trials(candidate);
            trials
                .into_iter()
                .map(|trial| value(evidence, trial))
                .collect()
        })
        .collect::<Option<_>>()?;
    let means: Vec<f64> = by_point
        .iter()
        .map(|values| Some(geometric_mean(values, 1.0 - level)?.value))
        .collect::<Option<_>>()?;
    let best = (0..means.len()).max_by(|&a, &b| means[a].total_cmp(&means[b]))?;
    let mut among = Vec::new();
    for (index, values) in by_point.iter().enumerate() {
        let is_less = index != best && {
            let pairs: Vec<(f64, f64)> = values
                .iter()
                .copied()
                .zip(by_point[best].iter().copied())
                .collect();
            paired_ratio(&pairs, 1.0 - level)?.upper < 1.0
        };
        if !is_less {
            among.push(points[index].point.name.clone());
        }
    }
    Some(Optimum {
        point: points[best].point.name.clone(),
        value: means[best],
        among,
    })
}
