//! The plans that a stage may stop a pass with.

use super::{BUSY_REQUEUE_SECONDS, Context, SOON_SECONDS};
use crate::{
    api::{FrugalityTrial, FrugalityTrialStatus, Outcome, Reason, Verdict},
    plan::{
        action::{LedgerWrite, Plan},
        ledger::{Next, Start, record::ended},
        placement::nodes::Nodes,
        report::{
            events,
            status::{Report, State},
        },
        settings::Settings,
        verdict::{Judgement, without_figures},
    },
    time,
};

/// A cluster that is not ready for the run is waited for this long before the run ends as Invalid:
/// chart and benchmark may have been applied together, a meter may be rolled out.
const GRACE_SECONDS: f64 = 60.0;
/// How often a benchmark at rest is looked at.
const REST_REQUEUE_SECONDS: f64 = 30.0;
/// The verdict stays readable for at least this long before the benchmark is deleted. The shortest
/// `ttlAfterFinished` is as long.
const READABLE_SECONDS: f64 = 60.0;

impl Context<'_> {
    /// A plan that only reports, for a stage to add to.
    pub(in crate::plan) fn report(
        &self,
        nodes: Option<&Nodes>,
        current: Option<String>,
        state: &State,
    ) -> Plan {
        let report = Report {
            benchmark: self.benchmark,
            settings: self.settings,
            run: self.run,
            ledger: self.ledger,
            turn_unix_seconds: self.queue.started_unix_seconds(),
            nodes,
            current,
            state,
            now_unix_seconds: self.now_unix_seconds,
        };
        Plan {
            status: report.status(),
            requeue_seconds: BUSY_REQUEUE_SECONDS,
            ..Plan::default()
        }
    }

    /// A run that goes on.
    pub(in crate::plan) fn running(
        &self,
        nodes: Option<&Nodes>,
        reason: Reason,
        message: &str,
        requeue_seconds: f64,
    ) -> Plan {
        let state = State::Running {
            reason,
            message: message.to_owned(),
        };
        Plan {
            requeue_seconds,
            // Until the first trial the meter is read without a break: a session begun again in every
            // other pass would take one failed scrape for a missing meter.
            watch: nodes
                .filter(|_| !self.ledger.is_begun())
                .map(|nodes| self.preflight_watches(nodes))
                .unwrap_or_default(),
            ..self.report(nodes, None, &state)
        }
    }

    /// Ends the open attempt as void, whatever its own next step is.
    pub(in crate::plan) fn void(
        &self,
        nodes: Option<&Nodes>,
        trial: &FrugalityTrial,
        reason: Reason,
        message: &str,
    ) -> Plan {
        let record = ended(
            trial.status.clone().unwrap_or_default(),
            Outcome::Void,
            reason,
            message,
            self.now_unix_seconds,
        );
        let mut plan = self.running(nodes, Reason::Measuring, message, SOON_SECONDS);
        plan.events.extend(events::of_trial(trial, &record));
        plan.ledger = Some(LedgerWrite::record(trial, record));
        plan
    }

    /// Ends the run through the ledger, so that the next pass knows the end.
    pub(in crate::plan) fn fail(
        &self,
        settings: &Settings,
        nodes: Option<&Nodes>,
        reason: Reason,
        message: &str,
    ) -> Plan {
        let mut plan = self.running(nodes, Reason::Measuring, message, SOON_SECONDS);
        let open = match self.ledger.next(settings) {
            Next::Open(trial) => Some(trial),
            _ => self.ledger.setup(),
        };
        let record = |status: Option<FrugalityTrialStatus>| {
            ended(
                status.unwrap_or_default(),
                Outcome::Failed,
                reason,
                message,
                self.now_unix_seconds,
            )
        };
        plan.ledger = Some(if let Some(trial) = open {
            LedgerWrite::record(trial, record(trial.status.clone()))
        } else {
            let preparation = Start {
                block: 0,
                position: 0,
                attempt: 1,
                candidate: String::new(),
            };
            let entry = self.entry(settings, nodes, &preparation);
            LedgerWrite::open_ended(entry, record(None))
        });
        plan
    }

    /// An end that follows from the cluster as it is now. The operator waits for the cluster during a grace period, and
    /// once a run has begun until the run's deadline, which counts while the run has its turn.
    pub(in crate::plan) fn not_possible(
        &self,
        nodes: Option<&Nodes>,
        verdict: Verdict,
        reason: Reason,
        message: String,
    ) -> Plan {
        let since = match &self.observed.waiting_since {
            Some((waiting_for, since)) if waiting_for == reason.as_str() => *since,
            _ => self.now_unix_seconds,
        };
        let is_new =
            self.now_unix_seconds - since < GRACE_SECONDS && !self.has_ended_with(reason.as_str());
        if is_new || self.ledger.is_begun() {
            return self.running(nodes, reason, &message, BUSY_REQUEUE_SECONDS * 2.0);
        }
        self.conclude(nodes, without_figures(verdict, reason, message))
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
    pub(in crate::plan) fn clear(&self, plan: &mut Plan) {
        plan.delete = self.all_children();
        plan.requeue_seconds = REST_REQUEUE_SECONDS;
        let locks = self.queue.releases();
        if self.is_clean() {
            plan.locks = locks;
        } else if !locks.is_empty() {
            plan.requeue_seconds = BUSY_REQUEUE_SECONDS;
        }
    }

    /// For how long an ended benchmark is kept, if its spec limits that and its ledger can be read. The
    /// benchmark stays at least until only its ledger is left and its verdict was readable: the end
    /// has the time of the ledger's last entry, which may be long before the status showed it.
    fn seconds_to_live(&self) -> Option<f64> {
        let ttl = self.settings?.ttl_seconds?;
        if !self.observed.unreadable.is_empty() {
            return None;
        }
        let current = self.current_status()?;
        let is_over = self.is_clean() && self.queue.releases().is_empty();
        let Some(end) = current.end().filter(|_| is_over) else {
            return Some(BUSY_REQUEUE_SECONDS);
        };
        let reason = current.columns.as_ref().and_then(|c| c.reason.as_deref());
        let shown_for = match &self.observed.waiting_since {
            Some((same, since)) if Some(same.as_str()) == reason => self.now_unix_seconds - since,
            _ => 0.0,
        };
        let age = self.now_unix_seconds - time::unix_seconds(end.last_transition_time.0);
        Some((ttl - age).max(READABLE_SECONDS - shown_for))
    }
}
