//! Effects of a long run: growing memory, latency drift, and restarts of containers.

use frugality_measure::statistics::arithmetic_mean;

use crate::{
    api::{Figure, FrugalityTrialStatus},
    plan::verdict::evidence::{Evidence, in_every},
};

const SECONDS_PER_HOUR: f64 = 3600.0;

impl Evidence<'_> {
    /// How fast the candidate's working set grows, in bytes per hour. `None` if a window is short.
    pub(super) fn memory_growth(&self, trials: &[&FrugalityTrialStatus]) -> Option<Figure> {
        self.per_hour(trials, |trial| {
            let energy = trial.energy.as_ref()?;
            energy.candidate_working_set_growth_bytes_per_second
        })
    }

    /// How fast the candidate's mean latency rises, in milliseconds per hour. `None` if a window is short.
    pub(super) fn latency_drift(&self, trials: &[&FrugalityTrialStatus]) -> Option<Figure> {
        self.per_hour(trials, |trial| {
            Some(1000.0 * trial.latency_drift_seconds_per_second()?)
        })
    }

    /// The mean of the trials' slopes per second, per hour.
    fn per_hour(
        &self,
        trials: &[&FrugalityTrialStatus],
        slope: fn(&FrugalityTrialStatus) -> Option<f64>,
    ) -> Option<Figure> {
        let slopes = in_every(trials, |trial| Some(SECONDS_PER_HOUR * slope(trial)?))?;
        arithmetic_mean(&slopes, 1.0 - self.settings.level).map(Figure::from)
    }

    /// Number of restarts of the candidate's containers in all trials.
    pub(super) fn restarts(&self, candidate: &str) -> i32 {
        let trials = self.trials(candidate).into_iter();
        trials.filter_map(|trial| trial.restarts).sum()
    }

    /// Notes about servers that ended under load, because errors alone may not show this.
    pub(super) fn restart_notes(&self) -> Vec<String> {
        let restarted = |name: &String| {
            let trials = self.trials(name);
            let with_restarts = trials.iter().filter(|trial| trial.restarts > Some(0));
            let (count, of) = (with_restarts.count(), trials.len());
            let restarts = self.restarts(name);
            (count > 0).then(|| {
                format!(
                    "The containers of {name} were restarted {restarts}×, in {count} of {of} trials."
                )
            })
        };
        self.settings
            .candidates
            .iter()
            .filter_map(restarted)
            .collect()
    }
}
