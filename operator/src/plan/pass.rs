//! One pass: which of the decisions comes next, and the plan that follows from it.

use kube::ResourceExt;

use super::{
    EventNote, LockAction, Plan, Watch,
    facts::{self, ChildKind, Config, Observed, PREFLIGHT},
    identity,
    ledger::{Ledger, Next, Start},
    nodes::{Nodes, choose},
    prepare::{self, Prepared},
    resources::Builder,
    settings::Settings,
    status::{Report, State},
    time,
    trial::{Attempt, ended},
    turn::{Place, Turn, turn},
    verdict::{self, Judgement, judge, without_figures},
};
use crate::api::{
    FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialSpec,
    FrugalityTrialStatus, Outcome, Role, Verdict, reason,
};

/// A cluster that is not ready for the run is waited for this long before the run ends as Invalid:
/// chart and benchmark may have been applied together, a meter may be rolled out.
const GRACE_SECONDS: f64 = 60.0;
/// How often a benchmark that has ended or waits for its turn is looked at.
const IDLE_REQUEUE_SECONDS: f64 = 15.0;
/// How often something is looked at that moves by itself.
const BUSY_REQUEUE_SECONDS: f64 = 1.0;

/// One look at one benchmark.
pub(super) struct Pass<'a> {
    pub(super) benchmark: &'a FrugalityBenchmark,
    pub(super) observed: &'a Observed,
    pub(super) config: &'a Config,
    pub(super) now_unix_seconds: f64,
    pub(super) run: &'a str,
    pub(super) ledger: &'a Ledger<'a>,
    pub(super) settings: Option<&'a Settings>,
}

impl Pass<'_> {
    pub(super) fn decide(&self, settings: &Settings) -> Plan {
        if let Some(judgement) = judge(settings, self.ledger) {
            return self.conclude(None, judgement);
        }
        if let Some(started) = self.started_unix_seconds()
            && self.now_unix_seconds - started > settings.deadline_seconds
        {
            let message = format!(
                "no verdict {} after its turn began; raise spec.deadline or ask for fewer blocks",
                self.benchmark.spec.deadline
            );
            return self.fail(settings, None, reason::DEADLINE_EXCEEDED, &message);
        }
        let nodes = match choose(&self.benchmark.spec.placement, self.observed, self.ledger) {
            Ok(nodes) => nodes,
            Err(misplaced) => {
                return self.not_possible(
                    None,
                    Verdict::Invalid,
                    misplaced.reason,
                    misplaced.message,
                );
            }
        };
        if let Some(plan) = self.preflight(settings, &nodes) {
            return plan;
        }
        match turn(&self.place(), self.observed) {
            Turn::Mine => self.measure(settings, &nodes),
            Turn::Take { resource_version } => {
                let mut plan = self.running(
                    Some(&nodes),
                    reason::QUEUED,
                    "taking its turn",
                    BUSY_REQUEUE_SECONDS,
                );
                plan.lock = Some(LockAction::Take { resource_version });
                plan
            }
            Turn::WaitFor(name) => {
                let message = format!("waits for {name}: one benchmark is measured at a time");
                let mut plan = self.running(
                    Some(&nodes),
                    reason::QUEUED,
                    &message,
                    IDLE_REQUEUE_SECONDS / 3.0,
                );
                plan.delete = self.all_children();
                plan
            }
        }
    }

    /// What must be right before a run may begin. Nothing of it is remembered: once the cluster is
    /// put right, the run begins by itself.
    fn preflight(&self, settings: &Settings, nodes: &Nodes) -> Option<Plan> {
        if self.ledger.is_begun() {
            return None;
        }
        if let Some(refusal) = &self.observed.refused {
            let judgement =
                without_figures(Verdict::Error, refusal.reason, refusal.message.clone());
            return Some(self.conclude(Some(nodes), judgement));
        }
        if self.benchmark.spec.database.is_some() && !self.observed.cloud_native_pg_installed {
            return Some(self.not_possible(
                Some(nodes),
                Verdict::Error,
                reason::CLOUD_NATIVE_PG_MISSING,
                "the cluster does not know clusters.postgresql.cnpg.io; install CloudNativePG (https://cloudnative-pg.io/documentation/current/installation_upgrade/) or drop spec.database".into(),
            ));
        }
        let watch = self.watch(PREFLIGHT, nodes);
        let session = self.observed.sessions.get(PREFLIGHT);
        let Some(reading) = session.and_then(|session| session.readings.last()) else {
            let mut plan = match session.and_then(facts::Session::no_reading) {
                Some((reason, error)) => self.not_possible(
                    Some(nodes),
                    Verdict::Invalid,
                    reason,
                    format!(
                        "the meter on node {} gives no reading: {error}",
                        nodes.measured.name
                    ),
                ),
                None => self.running(
                    Some(nodes),
                    reason::WAITING,
                    "waiting for the meter's first reading",
                    BUSY_REQUEUE_SECONDS,
                ),
            };
            if let (None, Some(told)) = (plan.status.verdict, self.told()) {
                plan.status = told.clone();
            }
            plan.watch = Some(watch);
            return Some(plan);
        };
        let provenance = reading.meter.provenance;
        let judgement = match provenance {
            frugality_measure::reading::Provenance::Fake => without_figures(
                Verdict::Invalid,
                reason::METER_FAKE,
                format!(
                    "the meter on node {} invents its numbers ({}); switch its development mode off",
                    nodes.measured.name, reading.meter.source
                ),
            ),
            frugality_measure::reading::Provenance::Modelled
                if settings.gates_on_joules() && !settings.allow_modelled =>
            {
                verdict::modelled_not_allowed()
            }
            _ => return None,
        };
        let mut plan = self.conclude(Some(nodes), judgement);
        plan.watch = Some(watch);
        Some(plan)
    }

    fn measure(&self, settings: &Settings, nodes: &Nodes) -> Plan {
        if let Some(refusal) = &self.observed.refused {
            return self.fail(settings, Some(nodes), refusal.reason, &refusal.message);
        }
        let strangers = self.strangers();
        if !strangers.is_empty() || self.observed.pods.iter().any(|pod| pod.run != self.run) {
            let mut plan = self.running(
                Some(nodes),
                reason::CLEANING_UP,
                "removing the objects of an earlier spec",
                BUSY_REQUEUE_SECONDS,
            );
            plan.delete = strangers;
            return plan;
        }
        if !self.observed.foreign_pods.is_empty() {
            let message = format!(
                "waits until the pods of other benchmarks have ended: {}",
                self.observed.foreign_pods.join(", ")
            );
            return self.running(
                Some(nodes),
                reason::CLEANING_UP,
                &message,
                BUSY_REQUEUE_SECONDS,
            );
        }
        match prepare::database(self, settings, nodes) {
            Prepared::Ready => {}
            Prepared::Waiting {
                reason,
                message,
                create,
                delete,
            } => {
                // An attempt that has begun must hear of a database that went away.
                if !matches!(self.ledger.next(settings), Next::Open(_)) {
                    let mut plan =
                        self.running(Some(nodes), reason, &message, BUSY_REQUEUE_SECONDS);
                    plan.create = create;
                    plan.delete = delete;
                    return plan;
                }
            }
            Prepared::Failed { reason, message } => {
                return self.fail(settings, Some(nodes), reason, &message);
            }
        }
        match self.ledger.next(settings) {
            Next::Open(trial) => self.advance(settings, nodes, trial),
            Next::Start(start) => self.start(settings, nodes, &start),
            Next::Finished | Next::Failed(_) | Next::Exhausted(_) => {
                // `judge` has ended the run before.
                self.running(
                    Some(nodes),
                    reason::MEASURING,
                    "judging",
                    BUSY_REQUEUE_SECONDS,
                )
            }
        }
    }

    fn start(&self, settings: &Settings, nodes: &Nodes, start: &Start) -> Plan {
        let leftovers = self.attempt_children();
        let pods_left = self
            .observed
            .pods
            .iter()
            .any(|pod| is_of_attempt(&pod.role));
        if !leftovers.is_empty() || pods_left {
            let mut plan = self.running(
                Some(nodes),
                reason::MEASURING,
                "removing the pods of the last attempt",
                BUSY_REQUEUE_SECONDS / 2.0,
            );
            plan.delete = leftovers;
            return plan;
        }
        let name = identity::trial_name(
            &self.benchmark.name_any(),
            self.run,
            start.block,
            &start.candidate,
            start.attempt,
        );
        let trial = self.builder(settings).trial(
            &name,
            FrugalityTrialSpec {
                benchmark: self.benchmark.name_any(),
                run: self.run.to_owned(),
                point: settings.point.clone(),
                block: start.block,
                position: start.position,
                attempt: start.attempt,
                candidate: start.candidate.clone(),
                measured_node: nodes.measured.name.clone(),
                injector_node: nodes.injector.name.clone(),
                seed: self.benchmark.spec.trials.seed,
            },
        );
        let mut plan = self.running(
            Some(nodes),
            reason::MEASURING,
            &format!("starting {name}"),
            BUSY_REQUEUE_SECONDS / 5.0,
        );
        plan.watch = Some(self.watch(&name, nodes));
        plan.open = Some(Box::new(trial));
        plan
    }

    fn advance(&self, settings: &Settings, nodes: &Nodes, trial: &FrugalityTrial) -> Plan {
        let name = trial.name_any();
        let candidate = self
            .benchmark
            .spec
            .candidates
            .iter()
            .find(|candidate| candidate.name == settings.candidate_of(&trial.spec.candidate));
        let Some(candidate) = candidate else {
            // The run's ID covers the candidates, so an entry of this run names one of them.
            return self.fail(
                settings,
                Some(nodes),
                reason::INVALID_SPEC,
                "an entry of the ledger names no candidate",
            );
        };
        let step = Attempt {
            trial,
            candidate,
            builder: self.builder(settings),
            nodes,
            observed: self.observed,
            now_unix_seconds: self.now_unix_seconds,
        }
        .step();
        let mut plan = self.report(
            Some(nodes),
            Some(name.clone()),
            &State::Running {
                reason: reason::MEASURING,
                message: format!("{name}: {}", step.doing),
            },
        );
        plan.watch = Some(self.watch(&name, nodes));
        plan.events.extend(
            step.record
                .as_ref()
                .and_then(|record| trial_event(trial, record)),
        );
        plan.record = step.record.map(|record| (name, Box::new(record)));
        plan.create = step.create;
        plan.requeue_seconds = step.again_seconds;
        plan
    }

    /// Ends the run through the ledger, so that the end is remembered.
    fn fail(
        &self,
        settings: &Settings,
        nodes: Option<&Nodes>,
        reason: &'static str,
        message: &str,
    ) -> Plan {
        let mut plan = self.running(
            nodes,
            reason::MEASURING,
            message,
            BUSY_REQUEUE_SECONDS / 5.0,
        );
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
        if let Some(trial) = open {
            plan.record = Some((trial.name_any(), Box::new(record(trial.status.clone()))));
        } else {
            let name = identity::setup_name(&self.benchmark.name_any(), self.run);
            plan.open = Some(Box::new(self.builder(settings).trial(
                &name,
                FrugalityTrialSpec {
                    benchmark: self.benchmark.name_any(),
                    run: self.run.to_owned(),
                    point: settings.point.clone(),
                    block: 0,
                    position: 0,
                    attempt: 1,
                    candidate: String::new(),
                    measured_node: nodes.map_or_else(String::new, |n| n.measured.name.clone()),
                    injector_node: nodes.map_or_else(String::new, |n| n.injector.name.clone()),
                    seed: self.benchmark.spec.trials.seed,
                },
            )));
            plan.record = Some((name, Box::new(record(None))));
        }
        plan
    }

    /// An end that follows from the cluster as it is now. For a while, and once a run has begun for
    /// as long as its deadline allows, the cluster is waited for instead.
    fn not_possible(
        &self,
        nodes: Option<&Nodes>,
        verdict: Verdict,
        reason: &'static str,
        message: String,
    ) -> Plan {
        let since = match &self.observed.waiting_since {
            Some((waiting_for, since)) if waiting_for == reason => *since,
            _ => self.now_unix_seconds,
        };
        let is_new = self.now_unix_seconds - since < GRACE_SECONDS && !self.has_ended_so(reason);
        if is_new || self.ledger.is_begun() {
            return self.running(nodes, reason, &message, BUSY_REQUEUE_SECONDS * 2.0);
        }
        self.conclude(nodes, without_figures(verdict, reason, message))
    }

    /// The end that people have been told of this very spec. An operator that was restarted does not
    /// take it back before it knows better.
    fn told(&self) -> Option<&FrugalityBenchmarkStatus> {
        self.benchmark.status.as_ref().filter(|status| {
            status.verdict.is_some()
                && status.run.as_deref() == Some(self.run)
                && status.observed_generation == self.benchmark.metadata.generation
        })
    }

    fn has_ended_so(&self, reason: &str) -> bool {
        self.told()
            .and_then(|status| status.columns.as_ref()?.reason.as_deref())
            == Some(reason)
    }

    /// The end: the status says so, everything but the ledger goes, and then the lock.
    pub(super) fn conclude(&self, nodes: Option<&Nodes>, judgement: Judgement) -> Plan {
        let mut plan = self.report(nodes, None, &State::Ended(judgement));
        plan.delete = self.all_children();
        plan.requeue_seconds = IDLE_REQUEUE_SECONDS * 2.0;
        let is_clean = self.observed.children.is_empty() && self.observed.pods.is_empty();
        if let Some(lock) = &self.observed.lock
            && lock
                .holder
                .as_ref()
                .is_some_and(|(uid, _)| *uid == self.uid())
        {
            if is_clean {
                plan.lock = Some(LockAction::Release {
                    resource_version: lock.resource_version.clone(),
                });
            } else {
                plan.requeue_seconds = BUSY_REQUEUE_SECONDS;
            }
        }
        plan
    }

    fn running(
        &self,
        nodes: Option<&Nodes>,
        reason: &'static str,
        message: &str,
        requeue_seconds: f64,
    ) -> Plan {
        let state = State::Running {
            reason,
            message: message.to_owned(),
        };
        Plan {
            requeue_seconds,
            // Until the first trial the meter is read without a break: a session begun anew in every
            // other pass would take one failed scrape for a missing meter.
            watch: nodes
                .filter(|_| !self.ledger.is_begun())
                .map(|nodes| self.watch(PREFLIGHT, nodes)),
            ..self.report(nodes, None, &state)
        }
    }

    fn report(&self, nodes: Option<&Nodes>, current: Option<String>, state: &State) -> Plan {
        let report = Report {
            benchmark: self.benchmark,
            settings: self.settings,
            run: self.run,
            ledger: self.ledger,
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

    pub(super) fn verdict_event(&self, status: &FrugalityBenchmarkStatus) -> Option<EventNote> {
        let verdict = status.verdict?;
        let earlier = self.benchmark.status.as_ref();
        let is_new = earlier
            .is_none_or(|earlier| earlier.verdict != status.verdict || earlier.run != status.run);
        let columns = status.columns.as_ref()?;
        is_new.then(|| EventNote {
            warning: verdict != Verdict::Pass,
            reason: columns.reason.clone().unwrap_or_default(),
            note: format!(
                "{verdict:?}: {}",
                columns.message.clone().unwrap_or_default()
            ),
        })
    }

    fn watch(&self, trial: &str, nodes: &Nodes) -> Watch {
        Watch {
            trial: trial.to_owned(),
            node: nodes.measured.name.clone(),
            meter_ip: nodes.measured.meter_ip.clone(),
            injector_seen: self
                .observed
                .children
                .iter()
                .any(|child| child.kind == ChildKind::Job && child.trial.as_deref() == Some(trial)),
        }
    }

    pub(super) fn builder<'b>(&'b self, settings: &'b Settings) -> Builder<'b> {
        Builder {
            benchmark: self.benchmark,
            settings,
            config: self.config,
            run: self.run,
        }
    }

    fn uid(&self) -> String {
        self.benchmark.uid().unwrap_or_default()
    }

    fn created_unix_seconds(&self) -> f64 {
        self.benchmark
            .creation_timestamp()
            .map_or(0.0, |created| time::unix_seconds(created.0))
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "Kubernetes' timestamps are whole seconds"
    )]
    fn place(&self) -> Place {
        Place {
            created_unix_seconds: self.created_unix_seconds() as i64,
            uid: self.uid(),
        }
    }

    /// When it got its turn, if it has it.
    fn started_unix_seconds(&self) -> Option<f64> {
        let lock = self.observed.lock.as_ref()?;
        let (holder, _) = lock.holder.as_ref()?;
        lock.acquired_unix_seconds.filter(|_| *holder == self.uid())
    }

    fn all_children(&self) -> Vec<(ChildKind, String)> {
        self.children_where(|_| true)
    }

    fn strangers(&self) -> Vec<(ChildKind, String)> {
        self.children_where(|child| child.run != self.run)
    }

    fn attempt_children(&self) -> Vec<(ChildKind, String)> {
        self.children_where(|child| child.trial.is_some())
    }

    fn children_where(&self, is_meant: impl Fn(&facts::Child) -> bool) -> Vec<(ChildKind, String)> {
        self.observed
            .children
            .iter()
            .filter(|child| is_meant(child))
            .map(|child| (child.kind, child.name.clone()))
            .collect()
    }
}

fn is_of_attempt(role: &str) -> bool {
    role == Role::Candidate.as_str() || role == Role::Injector.as_str()
}

fn trial_event(trial: &FrugalityTrial, record: &FrugalityTrialStatus) -> Option<EventNote> {
    let outcome = record.outcome?;
    Some(EventNote {
        warning: outcome != Outcome::Measured,
        reason: record.reason.clone().unwrap_or_default(),
        note: format!(
            "block {} attempt {} {}: {outcome:?}: {}",
            trial.spec.block,
            trial.spec.attempt,
            trial.spec.candidate,
            record.message.clone().unwrap_or_default()
        ),
    })
}
