//! Pauses that are too long: between two trials of a block, and between the idle baseline and the load.

use frugality_measure::energy::Window;

use super::step::{OpenAttempt, Step, last_reading};
use crate::{
    api::{FrugalityTrial, FrugalityTrialStatus, Reason, Role},
    plan::{
        ledger::finished_at,
        protocol::{LONGEST_BETWEEN_TRIALS_SECONDS, LONGEST_FROM_BASELINE_TO_LOAD_SECONDS},
    },
    time,
};

impl OpenAttempt<'_> {
    /// The end of an attempt whose block has paused for too long before its baseline, for example because the operator
    /// was down, or because an edit was taken back after hours. The next attempt repeats the block.
    pub(super) fn after_long_pause(&self, status: &FrugalityTrialStatus) -> Option<Step> {
        let spec = &self.trial.spec;
        let is_before = |it: &&FrugalityTrial| {
            let it = &it.spec;
            (&it.run, it.block, it.attempt) == (&spec.run, spec.block, spec.attempt)
                && it.position < spec.position
        };
        let before = self.observed.trials.iter().filter(is_before);
        let pause = self.seconds_since(before.max_by_key(|it| it.spec.position)?)?;
        let own = self.candidate.ready_within.as_ref();
        let own = own.and_then(|within| within.seconds().ok()).unwrap_or(0.0);
        // A server with backends starts after they are ready.
        let starts = if self.candidate.backends.is_empty() {
            1.0
        } else {
            2.0
        };
        // The last pass before the load is at the end of the baseline.
        let baseline = self.builder.settings.idle_seconds;
        let longest = LONGEST_BETWEEN_TRIALS_SECONDS + starts * own + baseline;
        self.void_beyond(
            longest,
            pause,
            "since the trial before it in its block",
            status,
        )
    }

    /// Time since the end of another trial. With a database, its entry gets its outcome after the restore, which may wait
    /// for hours. So the time counts from its last window, if both trials have the readings of one node's clock. Without
    /// that clock, it counts from the outcome. Candidates with nodes of their own have no database.
    fn seconds_since(&self, earlier: &FrugalityTrial) -> Option<f64> {
        let last_window = earlier.status.as_ref()?.idle_after;
        let same_clock = earlier.spec.measured_node == self.trial.spec.measured_node;
        let now = self.session().and_then(last_reading);
        match last_window.zip(now).filter(|_| same_clock) {
            Some((window, now)) => Some(now - window.end_unix_seconds),
            None => Some(self.now_unix_seconds - time::unix_seconds(finished_at(earlier)?)),
        }
    }

    /// Whether an attempt without pods waits for room in a quota. The wait may last until the deadline, and its readings would fill
    /// the operator's memory. With pods the readings are needed soon.
    pub(in crate::plan) fn waits_without_pods(&self, step: &Step) -> bool {
        step.waits_because == Some(Reason::QuotaExceeded) && self.pods(Role::Candidate).is_empty()
    }

    /// The end of an attempt whose load begins, or can begin, too long after its idle baseline. `load_unix_seconds` is a
    /// time of the readings' clock.
    pub(super) fn after_old_baseline(
        &self,
        status: &FrugalityTrialStatus,
        idle_before: Window,
        load_unix_seconds: f64,
    ) -> Option<Step> {
        let pause = load_unix_seconds - idle_before.end_unix_seconds;
        let longest = LONGEST_FROM_BASELINE_TO_LOAD_SECONDS;
        self.void_beyond(
            longest,
            pause,
            "between the idle baseline and the load",
            status,
        )
    }

    fn void_beyond(
        &self,
        longest_seconds: f64,
        pause_seconds: f64,
        place: &str,
        status: &FrugalityTrialStatus,
    ) -> Option<Step> {
        (pause_seconds > longest_seconds).then(|| {
            let message = format!(
                "{:.0} min passed {place} (limit {:.0} min)",
                pause_seconds / 60.0,
                longest_seconds / 60.0
            );
            self.void(status.clone(), Reason::PausedTooLong, &message)
        })
    }
}
