//! The fewest joules of a candidate among the points that keep a latency.

use frugality_measure::{latency::Bucket, pace::MAX_SHORTFALL};

use crate::{
    api::{Expanded, Figure, FrugalityTrialStatus},
    plan::verdict::{
        evidence::Evidence,
        latency::{REQUESTS_BEYOND, distribution},
        measure::Measure,
    },
    text,
};

/// Share of all requests that may take longer or fail.
const BEYOND: f64 = 0.01;

/// Relative rounding of a bucket's end: Fortio's end for 30 ms is 300 · 0.0001 s, which is not 0.03 s.
const ROUNDING: f64 = 1e-9;

/// The fewest joules, and the point that has them.
pub(super) struct Fewest {
    pub(super) point: String,
    pub(super) figure: Figure,
    /// Whether each point is known to keep the latency, or known not to.
    pub(super) is_certain: bool,
}

/// Whether a trial, or each trial of a point, keeps the latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
    /// Not known, or only some trials do.
    Unsure,
}

/// The fewest joules at a point at which 99 % of all requests succeed within `milliseconds`. Otherwise, why there is no
/// figure.
///
/// With the two-sided error `level`, the interval contains the least of the points' true values: its upper end is the least
/// upper end of all points that keep the latency, and its lower end is the least of all points that may keep it. Each
/// point's interval has an equal part of the error (Bonferroni), also if the point does not keep the latency: the trials
/// choose the points.
pub(super) fn fewest_joules(
    points: &[Evidence<'_>],
    candidate: &str,
    milliseconds: f64,
    level: f64,
) -> Result<Fewest, String> {
    let target = format!("p99 ≤ {} ms", text::all_digits(milliseconds));
    let comparable: Vec<&Evidence<'_>> = points
        .iter()
        .filter(|evidence| evidence.has_comparable_times())
        .collect();
    let possible: Vec<(&Evidence<'_>, Kept)> = comparable
        .iter()
        .copied()
        .map(|evidence| (evidence, kept(evidence, candidate, milliseconds)))
        .filter(|(_, kept)| *kept != Kept::No)
        .collect();
    if possible.is_empty() {
        return Err(format!("no point meets {target}"));
    }
    let looks = possible[0].0.settings.looks.len();
    let share = level / (comparable.len() * looks) as f64;
    let mut figures = Vec::new();
    for (evidence, kept) in &possible {
        let joules = Measure::Joules(evidence.deciding);
        let figure = evidence.figure(candidate, joules, share);
        let figure = figure.ok_or_else(|| {
            format!(
                "{} may meet {target}, but its joules are withheld",
                evidence.point.name
            )
        })?;
        figures.push((*evidence, *kept, figure));
    }
    let keeping = figures.iter().filter(|(_, kept, _)| *kept == Kept::Yes);
    let fewest = keeping.min_by(|(.., a), (.., b)| a.value.total_cmp(&b.value));
    let Some((evidence, _, fewest)) = fewest else {
        return Err(format!(
            "no point is shown to meet {target}: at {}, trials disagree or are too few",
            names(&possible)
        ));
    };
    let least = |of: &dyn Fn(&Figure) -> f64, is_upper: bool| {
        figures
            .iter()
            .filter(|(_, kept, _)| !is_upper || *kept == Kept::Yes)
            .map(|(.., figure)| of(figure))
            .fold(f64::INFINITY, f64::min)
    };
    let expanded = figures.iter().filter_map(|(.., figure)| figure.expanded);
    let expanded: Vec<Expanded> = expanded.collect();
    Ok(Fewest {
        point: evidence.point.name.clone(),
        is_certain: possible.iter().all(|(_, kept)| *kept == Kept::Yes),
        figure: Figure {
            value: fewest.value,
            lower: least(&|it| it.lower, false),
            upper: least(&|it| it.upper, true),
            expanded: (!expanded.is_empty()).then(|| Expanded {
                lower: least(&|it| it.bounds().0, false),
                upper: least(&|it| it.bounds().1, true),
                covers_meter: expanded.iter().all(|it| it.covers_meter),
                repeatability_only: expanded.iter().any(|it| it.repeatability_only),
            }),
        },
    })
}

fn kept(evidence: &Evidence<'_>, candidate: &str, milliseconds: f64) -> Kept {
    let trials = evidence.trials(candidate);
    let of_trials: Vec<Kept> = trials
        .iter()
        .map(|trial| kept_in(trial, milliseconds / 1000.0).unwrap_or(Kept::Unsure))
        .collect();
    let is_limited = evidence.limited_by_injector(candidate).is_some();
    match of_trials.first() {
        Some(first) if !is_limited && of_trials.iter().all(|it| it == first) => *first,
        _ => Kept::Unsure,
    }
}

/// Whether 99 % of a trial's requests succeed within so many seconds. A bucket that contains the latency decides nothing:
/// some are wide. `None` if the latencies are not known, too few, or not of the rate that was due.
fn kept_in(trial: &FrugalityTrialStatus, seconds: f64) -> Option<Kept> {
    let requests = trial.requests.as_ref()?;
    let (all, errors) = (requests.requests as f64, requests.errors as f64);
    if BEYOND * all < REQUESTS_BEYOND {
        return None;
    }
    if errors > BEYOND * all {
        return Some(Kept::No);
    }
    if requests.shortfall.is_some_and(|it| it > MAX_SHORTFALL) {
        return None;
    }
    let (buckets, mixed) = match trial.load() {
        Some(load) if load.mixes_errors_into_latency() => {
            (load.latency().buckets.as_slice(), errors)
        }
        _ => (distribution(trial)?, 0.0),
    };
    if buckets.is_empty() {
        return None;
    }
    let count = |is_in: &dyn Fn(&Bucket) -> bool| {
        let counted = buckets.iter().filter(|bucket| is_in(bucket));
        counted.map(|bucket| bucket.count).sum::<u64>() as f64
    };
    let within = count(&|bucket| bucket.end_seconds <= seconds * (1.0 + ROUNDING));
    let slow = count(&|bucket| bucket.start_seconds >= seconds * (1.0 - ROUNDING));
    if within - mixed >= (1.0 - BEYOND) * all {
        return Some(Kept::Yes);
    }
    let beyond = slow.max(mixed) + (errors - mixed);
    (beyond > BEYOND * all).then_some(Kept::No)
}

fn names(points: &[(&Evidence<'_>, Kept)]) -> String {
    let names = points.iter().map(|(it, _)| it.point.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}
