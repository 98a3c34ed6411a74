//! A benchmark at rest: suspended, or at its end until its time to live is over.

use kube::ResourceExt;

use super::{BUSY_REQUEUE_SECONDS, Pass};
use crate::{
    api::{FrugalityTrial, FrugalityTrialStatus, Outcome, reason},
    plan::{
        Plan, ledger::Next, log, nodes::Nodes, settings::Settings, status::State, time,
        trial::ended, verdict::Judgement,
    },
};

/// How often a benchmark at rest is looked at.
const REST_REQUEUE_SECONDS: f64 = 30.0;
/// How a benchmark ended can be read for as long as this at least before it is deleted. The shortest
/// `ttlAfterFinished` is as long.
const READABLE_SECONDS: f64 = 60.0;

impl Pass<'_> {
    /// Paused: the attempt in hand ends as void, then all objects go, then the locks. A block of which a
    /// part was measured is begun anew, because its trials must be neighbours in time.
    pub(super) fn suspend(&self, settings: &Settings) -> Plan {
        match self.ledger.next(settings) {
            Next::Open(trial) => {
                let mut plan = self.suspending(trial, trial.status.clone().unwrap_or_default());
                plan.record_version = trial.resource_version();
                plan
            }
            Next::Start(start) if start.position > 1 => {
                let entry = self.entry(settings, None, &start);
                let mut plan = self.suspending(&entry, FrugalityTrialStatus::default());
                plan.open = Some(Box::new(entry));
                plan
            }
            _ => self.suspended(settings),
        }
    }

    fn suspending(&self, trial: &FrugalityTrial, status: FrugalityTrialStatus) -> Plan {
        let record = ended(
            status,
            Outcome::Void,
            reason::SUSPENDED,
            "the benchmark was suspended",
            self.now_unix_seconds,
        );
        let mut plan = self.running(
            None,
            reason::MEASURING,
            "suspending: the block in hand becomes void",
            BUSY_REQUEUE_SECONDS / 5.0,
        );
        plan.events.extend(log::of_trial(trial, &record));
        plan.record = Some((trial.name_any(), Box::new(record)));
        plan
    }

    fn suspended(&self, settings: &Settings) -> Plan {
        let go_on = if self.ledger.is_begun() {
            "measured blocks are kept; set spec.suspend to false to go on"
        } else {
            "nothing has been measured; set spec.suspend to false to begin"
        };
        let left = self.estimate(settings);
        let message = format!("suspended with {left} to go: {go_on}");
        let mut plan = self.report(None, None, &State::Suspended { message });
        self.clear(&mut plan);
        plan
    }

    /// The end: the status says so, everything but the ledger goes, and then the lock.
    pub(in crate::plan) fn conclude(&self, nodes: Option<&Nodes>, judgement: Judgement) -> Plan {
        let mut plan = self.report(nodes, None, &State::Ended(judgement));
        self.clear(&mut plan);
        if let Some(left) = self.seconds_to_live() {
            plan.expire = left <= 0.0;
            plan.requeue_seconds = plan.requeue_seconds.min(left.max(BUSY_REQUEUE_SECONDS));
        }
        plan
    }

    /// All objects go, and once nothing is left on the nodes, the locks.
    fn clear(&self, plan: &mut Plan) {
        plan.delete = self.all_children();
        plan.requeue_seconds = REST_REQUEUE_SECONDS;
        let locks = self.queue.releases();
        if self.is_clean() {
            plan.locks = locks;
        } else if !locks.is_empty() {
            plan.requeue_seconds = BUSY_REQUEUE_SECONDS;
        }
    }

    /// For how long an ended benchmark is kept, where its spec limits that and its ledger can be read. It
    /// is at least until nothing is left of it but the ledger, and people could read how it ended: an end
    /// may be dated long before it was told, by the last entry of the ledger.
    fn seconds_to_live(&self) -> Option<f64> {
        let ttl = self.settings?.ttl_seconds?;
        if !self.observed.unreadable.is_empty() {
            return None;
        }
        let told = self.told()?;
        let is_over = self.is_clean() && self.queue.releases().is_empty();
        let Some(end) = told.end().filter(|_| is_over) else {
            return Some(BUSY_REQUEUE_SECONDS);
        };
        let reason = told.columns.as_ref().and_then(|c| c.reason.as_deref());
        let told_for = match &self.observed.waiting_since {
            Some((same, since)) if Some(same.as_str()) == reason => self.now_unix_seconds - since,
            _ => 0.0,
        };
        let age = self.now_unix_seconds - time::unix_seconds(end.last_transition_time.0);
        Some((ttl - age).max(READABLE_SECONDS - told_for))
    }
}
