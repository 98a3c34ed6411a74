//! What shows only in time: growing memory, latency that drifts, and containers that end.

use frugality_measure::statistics::arithmetic_mean;

use crate::{api::Figure, plan::verdict::evidence::Evidence};

const SECONDS_PER_HOUR: f64 = 3600.0;

impl Evidence<'_> {
    /// How fast the candidate's working set grows, over windows that are long enough to tell; none where a
    /// trial lacks it.
    pub(super) fn memory_growth(&self, candidate: &str) -> Option<Figure> {
        let slopes: Option<Vec<f64>> = self
            .trials(candidate)
            .into_iter()
            .map(|trial| {
                let energy = trial.energy.as_ref()?;
                let slope = energy.candidate_working_set_growth_bytes_per_second?;
                Some(slope * SECONDS_PER_HOUR)
            })
            .collect();
        arithmetic_mean(&slopes?, 1.0 - self.settings.level).map(Figure::from)
    }

    /// How fast the candidate's mean latency rises, in milliseconds per hour, over windows that are long enough to
    /// tell; none where a trial lacks it.
    pub(super) fn latency_drift(&self, candidate: &str) -> Option<Figure> {
        let slopes: Option<Vec<f64>> = self
            .trials(candidate)
            .into_iter()
            .map(|trial| {
                let slope = trial.latency_drift_seconds_per_second()?;
                Some(1000.0 * SECONDS_PER_HOUR * slope)
            })
            .collect();
        arithmetic_mean(&slopes?, 1.0 - self.settings.level).map(Figure::from)
    }

    /// How often the candidate's containers were restarted, in all trials together.
    pub(super) fn restarts(&self, candidate: &str) -> i32 {
        let trials = self.trials(candidate).into_iter();
        trials.filter_map(|trial| trial.restarts).sum()
    }

    /// That servers ended under load: an outcome, which errors alone may not show.
    pub(super) fn restart_notes(&self) -> Vec<String> {
        let restarted = |name: &String| {
            let trials = self.trials(name);
            let with_restarts = trials.iter().filter(|trial| trial.restarts > Some(0));
            let (count, of) = (with_restarts.count(), trials.len());
            let restarts = self.restarts(name);
            (count > 0).then(|| {
                format!(
                    "the containers of {name} were restarted {restarts}×, in {count} of {of} trials"
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
