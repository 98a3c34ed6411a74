//! The plans that a stage can end a pass with.

use kube::ResourceExt;

use super::{BUSY_REQUEUE_SECONDS, Context, SOON_SECONDS};
use crate::{
    api::{
        FrugalityTrial, FrugalityTrialStatus, Outcome, Promote, PromotedFrom, PromotionState,
        Reason, Verdict,
    },
    plan::{
        action::{LedgerWrite, Plan, Wait},
        baseline::{Promotion, PromotionRequest, compared, promotion},
        ledger::{Next, Start, outcome_of, record::ended},
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

/// How long the operator waits for a cluster that is not ready before it ends the run as Invalid. The user may
/// apply chart and benchmark together, and a meter's rollout takes time.
const GRACE_SECONDS: f64 = 60.0;
/// Interval between passes of a benchmark that is suspended or has ended, and does not rest.
const REST_REQUEUE_SECONDS: f64 = 30.0;
/// Minimum time between the verdict and the deletion of the benchmark, for the user to read the verdict. It equals
/// the shortest `ttlAfterFinished`.
const READABLE_SECONDS: f64 = 60.0;

impl Context<'_> {
    /// A plan that only reports. The calling stage adds actions.
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
            turn_unix_seconds: self.turn_unix_seconds(),
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

    /// A plan for a run that continues.
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
            // Until the first trial the operator reads the meter without a break. A new session in every other pass
            // would report one failed scrape as a missing meter.
            watch: nodes
                .filter(|_| !self.ledger.is_begun())
                .map(|nodes| self.preflight_watches(nodes))
                .unwrap_or_default(),
            ..self.report(nodes, None, &state)
        }
    }

    /// Ends the open attempt as void. The attempt's own next step is ignored.
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
        plan.events.extend(events::of_trial(trial, &record, None));
        plan.ledger = Some(LedgerWrite::record(trial, record));
        plan
    }

    /// Ends the run with an entry of the ledger, from which the next pass knows the end.
    pub(in crate::plan) fn fail(
        &self,
        settings: &Settings,
        nodes: Option<&Nodes>,
        reason: Reason,
        message: &str,
    ) -> Plan {
        let mut plan = self.running(nodes, Reason::Measuring, message, SOON_SECONDS);
        let setup = self.ledger.setup();
        let open = match self.ledger.next(settings) {
            Next::Open(trial) => Some(trial),
            _ => setup.filter(|it| outcome_of(it).is_none()),
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
                attempt: setup.map_or(1, |it| it.spec.attempt + 1),
                candidate: String::new(),
            };
            let entry = self.entry(settings, nodes, &preparation);
            LedgerWrite::open(entry, Some(record(None)))
        });
        plan
    }

    /// Ends the run because of the cluster's current state. Before that the operator waits for a grace period. If
    /// the run has begun, the operator waits until the run's deadline, which counts from the start of the run's
    /// turn.
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
        let is_new = self.now_unix_seconds - since < GRACE_SECONDS && !self.has_ended_with(reason);
        if is_new || self.ledger.is_begun() {
            let wait = if is_new { Wait::Time } else { Wait::Cluster };
            return Plan {
                wait,
                ..self.running(nodes, reason, &message, BUSY_REQUEUE_SECONDS * 2.0)
            };
        }
        Plan {
            wait: Wait::Cluster,
            ..self.conclude(nodes, without_figures(verdict, reason, message))
        }
    }

    /// Ends the run: the status shows the verdict, and the operator deletes all objects except the ledger. Then it
    /// releases the locks.
    pub(in crate::plan) fn conclude(&self, nodes: Option<&Nodes>, judgement: Judgement) -> Plan {
        let promotion = self.promotion(&judgement);
        let mut plan = self.report(nodes, None, &State::Ended(judgement));
        self.clear(&mut plan);
        if let Some(left) = self.seconds_to_live() {
            plan.expire = left <= 0.0;
            let due = left.max(BUSY_REQUEUE_SECONDS);
            plan.requeue_seconds = plan.requeue_seconds.min(due);
            plan.due_seconds = Some(due);
        }
        if let (Some(promotion), Some(result)) = (promotion, &mut plan.status.baseline) {
            result.promotion = promotion.state();
            match promotion {
                Promotion::Write(write) => {
                    plan.promotion = Some(write);
                    plan.expire = false;
                    plan.requeue_seconds = SOON_SECONDS;
                }
                Promotion::Refused(why) => result.not_promoted_because = Some(why),
                Promotion::Done | Promotion::Forgotten => {}
            }
        }
        plan
    }

    /// The next step of the promotion that the spec asks for. Only a Pass promotes.
    fn promotion(&self, judgement: &Judgement) -> Option<Promotion> {
        let spec = &self.benchmark.spec;
        let asked = spec.baseline.as_ref()?;
        let figures = judgement.figures.as_ref()?;
        let is_asked_for = asked.promote == Promote::OnPass && judgement.verdict == Verdict::Pass;
        if !is_asked_for || !self.is_frozen {
            return None;
        }
        let name = compared(asked, &spec.candidates);
        let candidate = spec.candidates.iter().find(|it| it.name == name)?;
        let tries = i32::try_from(figures.tries).unwrap_or(i32::MAX);
        let from = PromotedFrom {
            benchmark: self.benchmark.name_any(),
            uid: self.benchmark.uid()?,
            run: self.run.to_owned(),
            generation: self.benchmark.metadata.generation,
            candidate: Some(candidate.name.clone()),
            image: candidate.server.image.clone(),
            ledger_digest: figures.ledger_digest.clone(),
            verdict: judgement.verdict,
            reason: judgement.reason.clone(),
            tries: (tries > 1).then_some(tries),
            at: time::rfc3339(self.now_unix_seconds)?,
        };
        let request = PromotionRequest {
            name: &asked.name,
            namespace: self.benchmark.namespace(),
            frozen: self.releases.baseline.as_ref(),
            candidate,
            from,
            was_promoted: self.has_promoted(name),
        };
        Some(promotion(request, self.observed.baselines.get(&asked.name)))
    }

    /// Whether the status shows that this run promoted the candidate. A person may have deleted the FrugalityBaseline since.
    fn has_promoted(&self, candidate: &str) -> bool {
        let status = self.benchmark.current_status();
        let status = status.filter(|status| status.run.as_deref() == Some(self.run));
        status
            .and_then(|status| status.baseline.as_ref())
            .is_some_and(|it| {
                it.candidate == candidate && it.promotion == Some(PromotionState::Promoted)
            })
    }

    /// Deletes all objects. When the nodes are empty, releases the locks. Then the benchmark is at rest.
    pub(in crate::plan) fn clear(&self, plan: &mut Plan) {
        plan.wait = Wait::Benchmark;
        plan.delete = self.all_children();
        plan.requeue_seconds = REST_REQUEUE_SECONDS;
        let locks = self.queue.releases();
        if self.is_clean() {
            plan.locks = locks;
        } else if !locks.is_empty() {
            plan.requeue_seconds = BUSY_REQUEUE_SECONDS;
        }
    }

    /// How long the operator keeps an ended benchmark. `None` if the spec sets no limit or an entry of the ledger
    /// can't be read. The benchmark stays at least until only its ledger is left and the verdict was readable for
    /// [`READABLE_SECONDS`]. That minimum is needed because the end has the time of the ledger's last entry, which
    /// may be long before the status showed the end.
    fn seconds_to_live(&self) -> Option<f64> {
        let ttl = self.settings?.ttl_seconds?;
        if !self.observed.unreadable.is_empty() {
            return None;
        }
        let current = self.judged_status()?;
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
