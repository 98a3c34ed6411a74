//! All figures of a candidate at a point, and why some of them are withheld.

use crate::{
    api::{
        CandidateResult, DecidingFigure, FrugalityTrialStatus, Outcome, TrialLoad, seven_digits,
    },
    plan::{
        settings::costs::Cost,
        verdict::{
            costs::cost_of,
            evidence::{Evidence, in_every},
            measure::Measure,
        },
    },
};

impl Evidence<'_> {
    /// All figures of a candidate.
    pub(super) fn result(&self, candidate: &str) -> CandidateResult {
        let trials = self.trials(candidate);
        let level = self.settings.level;
        let mut withheld = Vec::new();
        let mut figure = |measure: Measure<'_>| {
            let figure = self.figure(candidate, measure, level);
            if figure.is_none() {
                withheld.push(self.withheld_because(candidate, measure, &trials));
            }
            figure
        };
        let requests_per_second = figure(Measure::RequestsPerSecond);
        let gross_joules_per_request = figure(Measure::Joules(DecidingFigure::Gross));
        let mut cost = |cost: Cost| {
            let rates = self.settings.rates(candidate, cost)?;
            let of_sums = figure(Measure::Cost(cost, rates))?;
            Some(cost_of(
                rates,
                of_sums,
                gross_joules_per_request?,
                requests_per_second?,
            ))
        };
        let (money, carbon) = (cost(Cost::Money), cost(Cost::Carbon));
        let node = self.own_node(candidate, &mut figure);
        CandidateResult {
            point: self.point.name.clone(),
            candidate: candidate.to_owned(),
            node,
            trials: i32::try_from(trials.len()).unwrap_or(i32::MAX),
            void_attempts: i32::try_from(self.ledger.count(Outcome::Void, |spec| {
                spec.candidate == candidate && spec.point == self.point.name
            }))
            .unwrap_or(i32::MAX),
            requests_per_second,
            milliseconds_per_request: figure(Measure::MillisecondsPerRequest),
            arrivals: self.arrivals(candidate),
            latency: self.latency(candidate),
            cycles: self.cycles(candidate),
            batch: self.batch(candidate),
            gross_joules_per_request,
            net_joules_per_request: figure(Measure::Joules(DecidingFigure::Net)),
            attributed_joules_per_request: figure(Measure::Joules(DecidingFigure::Attributed)),
            net_attributed_joules_per_request: match self.deciding {
                DecidingFigure::NetAttributed => figure(Measure::Joules(self.deciding)),
                _ => None,
            },
            // A withheld product needs no reason, because the reason of its joules or of its time is given.
            energy_delay_joule_seconds: self
                .settings
                .levels_of
                .and_then(|_| self.figure(candidate, Measure::EnergyDelay(self.deciding), level)),
            cpu_milliseconds_per_request: figure(Measure::CpuMilliseconds),
            error_ratio: self.error_ratio(candidate, level),
            money,
            carbon,
            idle_cpus: in_every(&trials, |it| it.energy.as_ref()?.candidate_idle_cpus)
                .and_then(|cpus| mean(&cpus)),
            workloads: self.workloads(candidate, &mut withheld),
            peak_memory_bytes: in_every(&trials, |it| {
                it.energy.as_ref()?.candidate_peak_working_set_bytes
            })
            .and_then(largest_bytes),
            memory_growth_bytes_per_hour: self.memory_growth(&trials),
            latency_drift_milliseconds_per_hour: self.latency_drift(&trials),
            injector: self.injector(candidate),
            restarts: self.restarts(candidate),
            withheld,
        }
    }

    fn withheld_because(
        &self,
        candidate: &str,
        measure: Measure<'_>,
        trials: &[&FrugalityTrialStatus],
    ) -> String {
        let name = measure.name(&self.settings.units);
        let limited = self.limited_by_injector(candidate);
        if limited.is_some_and(|limited| self.depends_on_pace(measure, limited)) {
            return format!("{name}: the injector limited {candidate}");
        }
        if self.is_shared && measure.is_of_node() {
            return format!(
                "{name}: the injector ran on the measured node and is part of its energy"
            );
        }
        let lacks_it = |trial: &&&FrugalityTrialStatus| self.value(trial, measure).is_none();
        let missing = trials.iter().filter(lacks_it).count();
        let why = trials
            .iter()
            .filter(lacks_it)
            .filter_map(|trial| Some((trial, trial.energy.as_ref()?)))
            .find_map(|(trial, energy)| match measure {
                Measure::Joules(DecidingFigure::Net) => self.why_no_net(trial, energy),
                Measure::Joules(DecidingFigure::NetAttributed) => self
                    .why_no_net(trial, energy)
                    .or_else(|| energy.pods_withheld.clone()),
                Measure::Joules(DecidingFigure::Attributed) | Measure::CpuMilliseconds => {
                    energy.pods_withheld.clone()
                }
                _ => None,
            })
            .or_else(|| dropped(measure, trials, self.settings.units.whole))
            .map(|why| format!(": {why}"))
            .unwrap_or_default();
        if missing == 0 {
            return format!(
                "{name}: the uncertainty is unknown or too large for an interval, or a trial has the value 0"
            );
        }
        format!(
            "{name} missing in {missing} of {} trials{why}",
            trials.len()
        )
    }
}

/// Why the times of a script's cycles are not known.
fn dropped(measure: Measure<'_>, trials: &[&FrugalityTrialStatus], unit: &str) -> Option<String> {
    let of_trial =
        |trial: &&FrugalityTrialStatus| trial.load().map_or(0, TrialLoad::dropped_cycles);
    let dropped: u64 = trials.iter().map(of_trial).sum();
    (dropped > 0 && matches!(measure, Measure::MillisecondsPerRequest)).then(|| {
        format!(
            "{dropped} {unit}s were due and did not begin, because all load.connections were busy"
        )
    })
}

/// The mean with seven digits, as in all figures.
fn mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (!values.is_empty()).then(|| seven_digits(sum / values.len() as f64))
}

/// The largest of some amounts of memory.
#[allow(
    clippy::cast_possible_truncation,
    reason = "bytes of memory are far below 2^53"
)]
pub(super) fn largest_bytes(amounts: Vec<f64>) -> Option<i64> {
    let largest = amounts.into_iter().reduce(f64::max)?;
    Some(largest as i64)
}
