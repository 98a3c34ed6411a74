//! One pass: which of the decisions comes next, and the plan that follows from it.

mod rest;

use kube::ResourceExt;

use super::{
    LockAction, Plan, Watch,
    estimate::Estimate,
    facts::{self, ChildKind, Config, ForeignPod, NodeFacts, Observed, preflight},
    identity,
    ledger::{Ledger, Next, Start},
    log,
    nodes::{Nodes, Wish, choose},
    prepare::{self, Prepared},
    resources::Builder,
    settings::Settings,
    status::{Report, State},
    trial::{Attempt, ended},
    turn::{Queue, Turn},
    verdict::{self, Judgement, judge, without_figures},
};
use crate::api::{
    FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialSpec,
    FrugalityTrialStatus, Outcome, Provider, Role, Verdict, reason,
};

/// A cluster that is not ready for the run is waited for this long before the run ends as Invalid:
/// chart and benchmark may have been applied together, a meter may be rolled out.
const GRACE_SECONDS: f64 = 60.0;
/// The garbage collector finds an object without an owner within seconds. A pod that names no existing
/// benchmark and is older than this was not made by the operator.
const COLLECTED_WITHIN_SECONDS: f64 = 60.0;
/// A pod of a deleted benchmark has gone by then, whatever grace it has. Anybody can make one with our label that stays.
const REMOVED_WITHIN_SECONDS: f64 = 180.0;
/// How often a benchmark that waits for its turn is looked at.
const QUEUED_REQUEUE_SECONDS: f64 = 5.0;
/// How often an object is tried again that a quota has refused.
const REFUSED_REQUEUE_SECONDS: f64 = 5.0;
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
    pub(super) queue: &'a Queue<'a>,
    pub(super) settings: Option<&'a Settings>,
}

impl Pass<'_> {
    pub(super) fn decide(&self, settings: &Settings) -> Plan {
        if let Some(judgement) = self.unreadable() {
            return self.conclude(None, judgement);
        }
        if let Some(judgement) = judge(settings, self.ledger) {
            return self.conclude(None, judgement);
        }
        if self.benchmark.spec.suspend {
            return self.suspend(settings);
        }
        if let Some(started) = self.queue.started_unix_seconds()
            && self.now_unix_seconds - started > settings.deadline_seconds
        {
            let message = format!(
                "no verdict {} after its turn began; raise spec.deadline or ask for fewer blocks or points",
                self.benchmark.spec.deadline
            );
            return self.fail(settings, None, reason::DEADLINE_EXCEEDED, &message);
        }
        let wish = Wish::of(&self.benchmark.spec);
        let is_of = |entrant: &str, candidate: &str| settings.candidate_of(entrant) == candidate;
        let nodes = match choose(&wish, is_of, self.observed, self.ledger, self.queue) {
            Ok(nodes) => nodes,
            Err(misplaced) => {
                // Of a run that has begun, a node has gone.
                if let Next::Open(trial) = self.ledger.next(settings) {
                    return self.spoilt(None, trial, misplaced.reason, &misplaced.message);
                }
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
        match self.queue.turn(&nodes) {
            Turn::Mine => self.measure(settings, &nodes),
            Turn::Take(locks) => {
                let left = self.estimate(settings);
                let mut plan = self.running(
                    Some(&nodes),
                    reason::QUEUED,
                    &format!("taking its turn: {left}"),
                    BUSY_REQUEUE_SECONDS,
                );
                let moves = locks
                    .iter()
                    .any(|lock| matches!(lock, LockAction::Release { .. }));
                if moves {
                    plan.delete = self.all_children();
                }
                if !moves || self.is_clean() {
                    plan.locks = locks;
                }
                plan
            }
            Turn::WaitFor { name, node } => {
                let message =
                    format!("waits for {name}: node {node} works for one benchmark at a time");
                let mut plan = self.running(
                    Some(&nodes),
                    reason::QUEUED,
                    &message,
                    QUEUED_REQUEUE_SECONDS,
                );
                plan.delete = self.all_children();
                if self.is_clean() {
                    plan.locks = self.queue.releases();
                }
                plan
            }
        }
    }

    fn estimate(&self, settings: &Settings) -> Estimate {
        Estimate::of(
            settings,
            self.ledger,
            self.benchmark.spec.database.is_some(),
        )
    }

    /// Entries of this run that can't be read: what they say is unknown, so nothing may follow from
    /// the others.
    fn unreadable(&self) -> Option<Judgement> {
        let mine = |run: &Option<String>| run.as_deref().is_none_or(|run| run == self.run);
        let entry = self.observed.unreadable.iter().find(|e| mine(&e.run))?;
        Some(without_figures(
            Verdict::Error,
            reason::LEDGER_UNREADABLE,
            format!(
                "the ledger's entry {} can't be read: {}; run the version of Frugality that wrote it, or start another run with another number in spec.rerun",
                entry.name, entry.error
            ),
        ))
    }

    /// What must be right before a run may begin. Nothing of it is remembered: once the cluster is
    /// put right, the run begins by itself.
    fn preflight(&self, settings: &Settings, nodes: &Nodes) -> Option<Plan> {
        if self.ledger.is_begun() {
            return None;
        }
        if let Some(refusal) = self.refused_for_good() {
            let judgement =
                without_figures(Verdict::Error, refusal.reason, refusal.message.clone());
            return Some(self.conclude(Some(nodes), judgement));
        }
        let wants_cloud_native_pg = self
            .benchmark
            .spec
            .database
            .as_ref()
            .is_some_and(|database| database.provider == Provider::CloudNativePg);
        if wants_cloud_native_pg && !self.observed.cloud_native_pg_installed {
            return Some(self.not_possible(
                Some(nodes),
                Verdict::Error,
                reason::CLOUD_NATIVE_PG_MISSING,
                "the cluster does not know clusters.postgresql.cnpg.io; install CloudNativePG (https://cloudnative-pg.io/documentation/current/installation_upgrade/), write database.provider: Standalone, or drop spec.database".into(),
            ));
        }
        let mut measured = nodes.measured().into_iter();
        measured.find_map(|node| self.preflight_of(settings, nodes, node))
    }

    /// Whether the meter of a measured node gives what the run needs.
    fn preflight_of(&self, settings: &Settings, nodes: &Nodes, node: &NodeFacts) -> Option<Plan> {
        let session = self.observed.sessions.get(&preflight(&node.name));
        let Some(reading) = session.and_then(|session| session.readings.last()) else {
            let mut plan = match session.and_then(facts::Session::no_reading) {
                Some((reason, error)) => self.not_possible(
                    Some(nodes),
                    Verdict::Invalid,
                    reason,
                    format!("the meter on node {} gives no reading: {error}", node.name),
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
            plan.watch = self.preflight_watches(nodes);
            return Some(plan);
        };
        let provenance = reading.meter.provenance;
        let judgement = match provenance {
            frugality_measure::reading::Provenance::Fake => without_figures(
                Verdict::Invalid,
                reason::METER_FAKE,
                format!(
                    "the meter on node {} invents its numbers ({}); switch its development mode off",
                    node.name, reading.meter.source
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
        plan.watch = self.preflight_watches(nodes);
        Some(plan)
    }

    fn refused_for_good(&self) -> Option<&facts::Refusal> {
        let refusal = self.observed.refused.as_ref();
        refusal.filter(|refusal| !refusal.may_pass())
    }

    /// The next step. What a quota has refused is tried again, and the conditions say so.
    fn measure(&self, settings: &Settings, nodes: &Nodes) -> Plan {
        let plan = self.next_step(settings, nodes);
        match &self.observed.refused {
            Some(refusal) if !plan.create.is_empty() && plan.record.is_none() => {
                let message = format!("{}; waiting until it has room", refusal.message);
                let state = State::Running {
                    reason: refusal.reason,
                    message,
                };
                Plan {
                    status: self.report(Some(nodes), None, &state).status,
                    requeue_seconds: REFUSED_REQUEUE_SECONDS,
                    ..plan
                }
            }
            _ => plan,
        }
    }

    fn next_step(&self, settings: &Settings, nodes: &Nodes) -> Plan {
        if let Some(refusal) = self.refused_for_good() {
            return self.fail(settings, Some(nodes), refusal.reason, &refusal.message);
        }
        if let Next::Open(trial) = self.ledger.next(settings)
            && let Some(other) = self.beside(nodes, trial)
        {
            let message = format!("{other} was on the nodes of the attempt");
            return self.spoilt(Some(nodes), trial, reason::OTHER_PODS, &message);
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
        let foreign = self.foreign_pods(nodes);
        if !foreign.is_empty() {
            let message = format!(
                "waits until the pods of other benchmarks have ended: {}",
                foreign.join(", ")
            );
            return self.running(
                Some(nodes),
                reason::CLEANING_UP,
                &message,
                BUSY_REQUEUE_SECONDS,
            );
        }
        let is_open = matches!(self.ledger.next(settings), Next::Open(_));
        if !is_open && let Some(leaving) = self.leaving() {
            let message = format!("waits until {leaving} is gone");
            // The Job that restores the database goes after each attempt.
            let seed = identity::seed_name(&self.benchmark.name_any(), self.run);
            let reason = if self.ledger.is_begun() && leaving.contains(&seed) {
                reason::MEASURING
            } else {
                reason::CLEANING_UP
            };
            return self.running(Some(nodes), reason, &message, BUSY_REQUEUE_SECONDS);
        }
        // What is left of the last attempt could still ask the database, which is made anew for the next one.
        if !is_open && let Some(plan) = self.clear_attempt(nodes) {
            return plan;
        }
        if !is_open && let Some(closed) = nodes.closed() {
            let (reason, message) = (closed.reason, closed.message);
            return self.not_possible(Some(nodes), Verdict::Invalid, reason, message);
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
                if !is_open {
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

    /// What is on its way out of that which all attempts share, as after a suspension: nothing that
    /// follows may rest on it.
    fn leaving(&self) -> Option<String> {
        let child = || {
            let mut children = self.observed.children.iter();
            let found = children.find(|child| child.deleting && child.trial.is_none())?;
            Some(format!("{:?} {}", found.kind, found.name))
        };
        let pod = || {
            let mut pods = self.observed.pods.iter();
            let found = pods.find(|pod| pod.deleting && pod.trial.is_none())?;
            Some(format!("Pod {}", found.name))
        };
        child().or_else(pod)
    }

    /// What is on the run's nodes beside an attempt. Nothing is, unless a late write of another
    /// operator made it; whoever sees it ends the attempt before it removes the rest, so that no
    /// figure comes of an operator that did not see it.
    fn beside(&self, nodes: &Nodes, trial: &FrugalityTrial) -> Option<String> {
        let name = trial.name_any();
        let is_other = |run: &str, other: Option<&String>| {
            run != self.run || other.is_some_and(|other| *other != name)
        };
        let child = || {
            let mut children = self.observed.children.iter();
            let found = children.find(|child| is_other(&child.run, child.trial.as_ref()))?;
            Some(format!("{:?} {}", found.kind, found.name))
        };
        let pod = || {
            let mut pods = self.observed.pods.iter();
            let found = pods.find(|pod| is_other(&pod.run, pod.trial.as_ref()))?;
            Some(format!("Pod {}", found.name))
        };
        let foreign = || {
            let found = *self.foreign_pods(nodes).first()?;
            Some(format!("Pod {found} of another benchmark"))
        };
        child().or_else(pod).or_else(foreign)
    }

    /// Ends the open attempt as void, whatever its own next step is.
    fn spoilt(
        &self,
        nodes: Option<&Nodes>,
        trial: &FrugalityTrial,
        reason: &str,
        message: &str,
    ) -> Plan {
        let record = ended(
            trial.status.clone().unwrap_or_default(),
            Outcome::Void,
            reason,
            message,
            self.now_unix_seconds,
        );
        let mut plan = self.running(
            nodes,
            reason::MEASURING,
            message,
            BUSY_REQUEUE_SECONDS / 5.0,
        );
        plan.events.extend(log::of_trial(trial, &record));
        plan.record = Some((trial.name_any(), Box::new(record)));
        plan.record_version = trial.resource_version();
        plan
    }

    /// Removes what is left of the last attempt.
    fn clear_attempt(&self, nodes: &Nodes) -> Option<Plan> {
        let leftovers = self.attempt_children();
        let pods_left = self
            .observed
            .pods
            .iter()
            .any(|pod| is_of_attempt(&pod.role));
        if leftovers.is_empty() && !pods_left {
            return None;
        }
        let mut plan = self.running(
            Some(nodes),
            reason::MEASURING,
            "removing the pods of the last attempt",
            BUSY_REQUEUE_SECONDS / 2.0,
        );
        plan.delete = leftovers;
        Some(plan)
    }

    fn start(&self, settings: &Settings, nodes: &Nodes, start: &Start) -> Plan {
        let trial = self.entry(settings, Some(nodes), start);
        let name = trial.name_any();
        let mut plan = self.running(
            Some(nodes),
            reason::MEASURING,
            &format!("starting {name}"),
            BUSY_REQUEUE_SECONDS / 5.0,
        );
        plan.watch = self.trial_watch(settings, nodes, &trial);
        plan.open = Some(Box::new(trial));
        plan
    }

    /// A new entry of the ledger, on these nodes or else on those of the run so far.
    fn entry(&self, settings: &Settings, nodes: Option<&Nodes>, start: &Start) -> FrugalityTrial {
        let benchmark = self.benchmark.name_any();
        let name = if start.block == 0 {
            identity::setup_name(&benchmark, self.run)
        } else {
            identity::trial_name(
                &benchmark,
                self.run,
                start.block,
                &start.candidate,
                start.attempt,
            )
        };
        let (measured_node, injector_node) = self.node_names(settings, nodes, &start.candidate);
        self.builder(settings).trial(
            &name,
            FrugalityTrialSpec {
                benchmark,
                run: self.run.to_owned(),
                point: settings.point_name_of(start.block).to_owned(),
                block: start.block,
                position: start.position,
                attempt: start.attempt,
                candidate: start.candidate.clone(),
                measured_node,
                injector_node,
                seed: self.benchmark.spec.trials.seed,
            },
        )
    }

    /// The measured node of an entrant (of none, as for a preparation, the first) and the injector, of these
    /// nodes or else of those of the run so far; the first is empty where no trial has told it yet.
    fn node_names(
        &self,
        settings: &Settings,
        nodes: Option<&Nodes>,
        entrant: &str,
    ) -> (String, String) {
        let candidate = settings.candidate_of(entrant);
        if let Some(nodes) = nodes {
            let of_candidate = nodes.of(candidate);
            let measured = of_candidate.or_else(|| nodes.measured().first().copied());
            return (
                measured.map(|node| node.name.clone()).unwrap_or_default(),
                nodes.injector.name.clone(),
            );
        }
        let entries = self.ledger.entries();
        let wish = Wish::of(&self.benchmark.spec);
        let is_there = |e: &&&FrugalityTrial| {
            let there = settings.candidate_of(&e.spec.candidate);
            candidate.is_empty() || wish.alike(candidate).any(|name| name == there)
        };
        let name = |of: Option<&&FrugalityTrial>, node: fn(&FrugalityTrialSpec) -> &String| {
            of.map(|entry| node(&entry.spec).clone())
                .unwrap_or_default()
        };
        (
            name(entries.iter().find(is_there), |spec| &spec.measured_node),
            name(entries.first(), |spec| &spec.injector_node),
        )
    }

    fn advance(&self, settings: &Settings, nodes: &Nodes, trial: &FrugalityTrial) -> Plan {
        let name = trial.name_any();
        let candidate = self
            .benchmark
            .spec
            .candidates
            .iter()
            .find(|candidate| candidate.name == settings.candidate_of(&trial.spec.candidate));
        let measured = candidate.and_then(|candidate| nodes.of(&candidate.name));
        let (Some(candidate), Some(measured), Some(point)) =
            (candidate, measured, settings.point(&trial.spec.point))
        else {
            // The run's ID covers candidates and load, so an entry of this run names some of them.
            return self.fail(
                settings,
                Some(nodes),
                reason::INVALID_SPEC,
                "an entry of the ledger names no candidate or no point",
            );
        };
        let step = Attempt {
            trial,
            candidate,
            point,
            builder: self.builder(settings),
            measured,
            injector: &nodes.injector,
            observed: self.observed,
            now_unix_seconds: self.now_unix_seconds,
        }
        .step();
        let mut plan = self.report(
            Some(nodes),
            Some(name.clone()),
            &State::Running {
                reason: step.waits_because.unwrap_or(reason::MEASURING),
                message: format!("{name}: {}", step.doing),
            },
        );
        plan.watch = self.trial_watch(settings, nodes, trial);
        plan.events.extend(
            step.record
                .as_ref()
                .and_then(|record| log::of_trial(trial, record)),
        );
        plan.record = step.record.map(|record| (name, Box::new(record)));
        plan.record_version = trial.resource_version();
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
            plan.record_version = trial.resource_version();
        } else {
            let preparation = Start {
                block: 0,
                position: 0,
                attempt: 1,
                candidate: String::new(),
            };
            let entry = self.entry(settings, nodes, &preparation);
            plan.record = Some((entry.name_any(), Box::new(record(None))));
            plan.open = Some(Box::new(entry));
        }
        plan
    }

    /// An end that follows from the cluster as it is now. For a while, and once a run has begun until its
    /// deadline, which counts while it has its turn, the cluster is waited for instead.
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
        self.benchmark.told().filter(|status| {
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

    /// Whether nothing is left of the benchmark but its ledger.
    fn is_clean(&self) -> bool {
        self.observed.children.is_empty() && self.observed.pods.is_empty()
    }

    /// Pods of other benchmarks on these nodes. Every pod that the operator makes names its node, so a pod
    /// without a node is none of them.
    fn foreign_pods(&self, nodes: &Nodes) -> Vec<&str> {
        let ours = nodes.names();
        let is_ours = |node: &str| ours.contains(&node);
        self.observed
            .foreign_pods
            .iter()
            .filter(|pod| pod.node.as_deref().is_some_and(is_ours) && self.is_of_benchmark(pod))
            .map(|pod| pod.name.as_str())
            .collect()
    }

    /// Whether a pod belongs to a benchmark that exists in its namespace, or to a deleted one whose objects
    /// the cluster still removes.
    fn is_of_benchmark(&self, pod: &ForeignPod) -> bool {
        let namespace = |name: &str| name.split('/').next().map(str::to_owned);
        let exists = self.observed.peers.iter().any(|peer| {
            peer.uid == pod.benchmark_uid && namespace(&peer.name) == namespace(&pod.name)
        });
        let is_within = |since: f64, seconds: f64| self.now_unix_seconds - since < seconds;
        exists
            || pod
                .deleting_since_unix_seconds
                .is_some_and(|since| is_within(since, REMOVED_WITHIN_SECONDS))
            || (pod.running && is_within(pod.created_unix_seconds, COLLECTED_WITHIN_SECONDS))
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
                .map(|nodes| self.preflight_watches(nodes))
                .unwrap_or_default(),
            ..self.report(nodes, None, &state)
        }
    }

    fn report(&self, nodes: Option<&Nodes>, current: Option<String>, state: &State) -> Plan {
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

    /// The meters that are read before a run begins: of all its measured nodes.
    fn preflight_watches(&self, nodes: &Nodes) -> Vec<Watch> {
        let measured = nodes.measured().into_iter();
        measured
            .map(|node| self.watch(&preflight(&node.name), node))
            .collect()
    }

    /// The meter that is read for a trial: of its measured node.
    fn trial_watch(
        &self,
        settings: &Settings,
        nodes: &Nodes,
        trial: &FrugalityTrial,
    ) -> Vec<Watch> {
        let measured = nodes.of(settings.candidate_of(&trial.spec.candidate));
        measured
            .map(|node| self.watch(&trial.name_any(), node))
            .into_iter()
            .collect()
    }

    fn watch(&self, trial: &str, node: &NodeFacts) -> Watch {
        Watch {
            trial: trial.to_owned(),
            node: node.name.clone(),
            meter_ip: node.meter_ip.clone(),
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
