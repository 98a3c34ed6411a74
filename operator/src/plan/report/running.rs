//! Figures of a run under way. They decide nothing: the checks of the whole run are still to come.

use frugality_measure::{
    energy::EnergyFigures,
    reading::Provenance,
    statistics::{IntervalEstimate, geometric_mean},
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::{
    api::{ANCHOR, BASELINE, DecidingFigure, FrugalityBenchmark, FrugalityTrial},
    load::{LoadKind, units::Units},
    plan::ledger::Ledger,
    text::{joule_unit, rough, rounded},
};

/// Confidence of the intervals, as a share.
pub const CONFIDENCE: f64 = 0.95;

/// The figures of one candidate at one point so far, as texts. A figure that is not known for every trial is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningFigures {
    /// Load settings, for example `c4-max`.
    pub point: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Number of valid trials.
    pub trials: usize,
    /// Successful requests per second, with the t-interval over the trials.
    pub rate: Option<String>,
    /// Mean time of a successful request, with the t-interval over the trials.
    pub time: Option<String>,
    /// Gross or net joules per successful request, with their kind. The interval is over the trials, and leaves out
    /// the meter's accuracy. Modelled joules have no interval.
    pub energy: Option<String>,
}

/// The figures of the current run, in the order of points and candidates. The control's hidden name is left out.
#[must_use]
pub fn running(benchmark: &FrugalityBenchmark, trials: &[FrugalityTrial]) -> Vec<RunningFigures> {
    let status = benchmark.current_status();
    let (Some(run), Some(kind)) = (
        status.and_then(|status| status.run.as_deref()),
        LoadKind::of(&benchmark.spec),
    ) else {
        return Vec::new();
    };
    let units = kind.rules().units(&benchmark.spec);
    let valid = Ledger::of(run, trials).valid().concat();
    let mut points: Vec<&str> = Vec::new();
    for entry in &valid {
        if !points.contains(&entry.spec.point.as_str()) {
            points.push(&entry.spec.point);
        }
    }
    points
        .into_iter()
        .flat_map(|point| names(benchmark).map(move |name| (point, name)))
        .filter_map(|(point, name)| {
            let is_of = |entry: &&&FrugalityTrial| {
                entry.spec.point == point && entry.spec.candidate == name
            };
            let own: Vec<_> = valid.iter().filter(is_of).copied().collect();
            (!own.is_empty()).then(|| figures(point, name, &own, kind_of_joules(benchmark), &units))
        })
        .collect()
}

/// The candidates that a reader may see.
fn names(benchmark: &FrugalityBenchmark) -> impl Iterator<Item = &str> {
    let spec = &benchmark.spec;
    let releases = [BASELINE, ANCHOR].into_iter();
    let own = spec.candidates.iter().map(|it| it.name.as_str());
    own.chain(releases.filter(|_| spec.baseline.is_some()))
}

/// The kind of joules that decides, if it is known for a single trial.
fn kind_of_joules(benchmark: &FrugalityBenchmark) -> DecidingFigure {
    let spec = &benchmark.spec;
    let by_rate = match spec.load.rate {
        IntOrString::Int(_) => DecidingFigure::Net,
        IntOrString::String(_) => DecidingFigure::Gross,
    };
    spec.energy.deciding_figure.unwrap_or(by_rate)
}

fn figures(
    point: &str,
    candidate: &str,
    trials: &[&FrugalityTrial],
    kind: DecidingFigure,
    units: &Units,
) -> RunningFigures {
    let requests = || {
        trials
            .iter()
            .map(|it| it.status.as_ref()?.requests.as_ref())
    };
    let rate = over(requests().map(|it| it?.requests_per_second));
    let time = over(requests().map(|it| it?.ms_per_request));
    let (one, whole) = (&units.one, units.whole);
    RunningFigures {
        point: point.to_owned(),
        candidate: candidate.to_owned(),
        trials: trials.len(),
        rate: rate.map(|it| format!("{} {one}s/s", with_interval(it, 1.0))),
        time: time.map(|it| format!("{} ms/{whole}", with_interval(it, 1.0))),
        energy: energy(trials, kind, units),
    }
}

fn energy(trials: &[&FrugalityTrial], kind: DecidingFigure, units: &Units) -> Option<String> {
    let records = || {
        trials
            .iter()
            .map(|it| it.status.as_ref().and_then(|it| it.energy.as_ref()))
    };
    let joules: fn(&EnergyFigures) -> Option<f64> = match kind {
        DecidingFigure::Gross => |it| it.gross_joules_per_request,
        DecidingFigure::Net => |it| it.net_joules_per_request,
        // They follow from the whole run.
        DecidingFigure::Attributed | DecidingFigure::NetAttributed => return None,
    };
    // Such joules include the injector's.
    if trials.iter().any(|it| it.spec.is_node_shared()) {
        return None;
    }
    let estimate = over(records().map(|it| joules(it?)))?;
    let provenances: Vec<Provenance> = records().flatten().map(|it| it.provenance).collect();
    let (factor, unit) = joule_unit(estimate.value);
    let amount = if provenances.contains(&Provenance::Fake) {
        return None;
    } else if provenances.contains(&Provenance::Modelled) {
        rough(estimate.value * factor, &[])
    } else {
        with_interval(estimate, factor)
    };
    Some(format!("{amount} {unit}/{} {}", units.one, kind.word()))
}

/// The mean of the trials. Of a single trial, its value. `None` if a trial has no value.
fn over(values: impl Iterator<Item = Option<f64>>) -> Option<IntervalEstimate> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    match values.as_slice() {
        [value] => Some(IntervalEstimate {
            value: *value,
            lower: *value,
            upper: *value,
            trials: 1,
        }),
        values => geometric_mean(values, CONFIDENCE),
    }
}

/// `12.6 [12.1–13.1]`; without an interval of a single trial.
fn with_interval(estimate: IntervalEstimate, factor: f64) -> String {
    let [value, lower, upper] =
        [estimate.value, estimate.lower, estimate.upper].map(|it| it * factor);
    if estimate.trials < 2 {
        return rounded(value, value.abs() / 100.0);
    }
    // A digit more than the interval's size, so that no end moves by much.
    let step = (upper - lower) / 20.0;
    let [value, lower, upper] = [value, lower, upper].map(|it| rounded(it, step));
    format!("{value} [{lower}–{upper}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_an_interval_from_the_second_trial_on() {
        let shown = |values: &[f64]| {
            let estimate = over(values.iter().copied().map(Some))?;
            Some(with_interval(estimate, 1.0))
        };
        assert_eq!(shown(&[400.0]).as_deref(), Some("400"));
        assert_eq!(
            shown(&[390.0, 400.0, 410.0]).as_deref(),
            Some("400 [376–426]")
        );
        assert_eq!(over([Some(1.0), None].into_iter()), None);
        assert_eq!(shown(&[]), None);
    }
}
