//! One attempt, from fresh pods to its entry in the ledger.
//!
//! An attempt's stages follow from what exists: the server's pod, the idle baseline in the ledger
//! entry, the injector's Job and its last words. Readings live in the operator's memory only; an
//! operator that was restarted has none from before, and the attempt is void.

mod addresses;
mod judging;
mod starting;

use frugality_measure::{energy::Window, fortio::Amount, reading::Reading};

use self::addresses::CLUSTER_GENERATION;
use super::{
    facts::{Child, ChildKind, NodeFacts, Observed, PodFacts, Refused, Session, Termination},
    nodes,
    resources::{
        Builder, ChildObject, INJECTOR_CONTAINER, PREPARE_CONTAINER, SEED_CONTAINER,
        backend_pods_of, pods_of,
    },
    settings::{Point, TAIL_SECONDS},
    text::authority,
};
use crate::api::{
    Candidate, DatabaseFacts, FrugalityTrial, FrugalityTrialStatus, Outcome, Role, reason,
};

/// Rest between a pod's readiness, or the end of the load, and the idle baseline: start-up work and
/// half-closed connections are not idle.
pub(super) const SETTLE_SECONDS: f64 = 3.0;
/// How much warmer than the first trial of its block a trial may start, in kelvins. At about 1 % of idle power per kelvin
/// (leakage) this is 3 % of idle power at most, and far less of the window, in which both warm up.
pub(super) const START_BAND_KELVIN: f64 = 3.0;
/// How long a trial waits for that, in seconds. A judgement: a board with a heat sink loses half of its excess in about a
/// minute.
const COOLING_PATIENCE_SECONDS: f64 = 60.0;
/// A meter that has shown nothing new for this long is not waited for.
const READING_PATIENCE_SECONDS: f64 = 15.0;
/// A server that is not ready by then will not be, unless its candidate's `readyWithin` says otherwise.
const START_PATIENCE_SECONDS: f64 = 180.0;
/// An image that is not there by then will not come.
const IMAGE_PATIENCE_SECONDS: f64 = 30.0;
/// What forbids a pod for this long is not about to be changed: a namespace and its policies may be applied
/// together with the benchmark.
pub(super) const FORBIDDEN_PATIENCE_SECONDS: f64 = 30.0;
/// Longest start of the injector's pod, its check of the database included.
const INJECTOR_PATIENCE_SECONDS: f64 = 120.0;

/// What to do for the open attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Objects to create.
    pub create: Vec<ChildObject>,
    /// New record of the attempt.
    pub record: Option<FrugalityTrialStatus>,
    /// What is being done, for people.
    pub doing: String,
    /// Reason code for the conditions, where the attempt can't go on by itself.
    pub waits_because: Option<&'static str>,
    /// When to look again, in seconds.
    pub again_seconds: f64,
}

impl Step {
    fn wait(doing: impl Into<String>, again_seconds: f64) -> Self {
        Self {
            doing: doing.into(),
            again_seconds: again_seconds.clamp(0.2, 5.0),
            ..Self::default()
        }
    }

    fn record(record: FrugalityTrialStatus) -> Self {
        Self {
            doing: "recording the attempt".into(),
            again_seconds: 0.2,
            record: Some(record),
            ..Self::default()
        }
    }
}

/// All that an attempt's next step depends on.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Its entry in the ledger.
    pub trial: &'a FrugalityTrial,
    /// Its candidate.
    pub candidate: &'a Candidate,
    /// Its point.
    pub point: &'a Point,
    /// Builds its objects.
    pub builder: Builder<'a>,
    /// Node that is measured.
    pub measured: &'a NodeFacts,
    /// Node that injects.
    pub injector: &'a NodeFacts,
    /// What the pass has seen.
    pub observed: &'a Observed,
    /// The time, in Unix seconds.
    pub now_unix_seconds: f64,
}

impl Attempt<'_> {
    /// The next step.
    #[must_use]
    pub fn step(&self) -> Step {
        let status = self.trial.status.clone().unwrap_or_default();
        if let Some(message) = self.evicted(&status) {
            return self.void(status, reason::POD_EVICTED, &message);
        }
        match status.idle_before {
            None => self.before_load(status),
            Some(idle_before) => self.under_load(status, idle_before),
        }
    }

    /// Which pod of the attempt the cluster has evicted, and why. An evicted database may be there still from
    /// before the attempt.
    fn evicted(&self, status: &FrugalityTrialStatus) -> Option<String> {
        let is_of_attempt = |pod: &&PodFacts| {
            pod.trial.as_deref() == Some(self.name()) || status.database_pods.contains(&pod.uid)
        };
        let mut pods = self.observed.pods.iter().filter(is_of_attempt);
        pods.find_map(|pod| {
            let why = pod.evicted.as_ref()?;
            Some(format!(
                "the {}'s pod {} was evicted: {why}",
                pod.role, pod.name
            ))
        })
    }

    fn before_load(&self, status: FrugalityTrialStatus) -> Step {
        if status.restored.is_none()
            && self.builder.benchmark.spec.database.is_some()
            && self.children().next().is_none()
        {
            return self.restored_before(status);
        }
        let pods = self.pods(Role::Candidate);
        let missing = self.missing_servers(&pods);
        let is_server = |child: &&Child| child.kind == ChildKind::Deployment;
        let newest = self
            .children()
            .filter(is_server)
            .map(|server| server.created_unix_seconds)
            .reduce(f64::max);
        let Some(newest) = newest.filter(|_| missing.is_empty()) else {
            let mut step = Step::wait("starting fresh pods", 1.0);
            step.create = missing;
            return step;
        };
        if let Some(step) = self.not_coming(&status, &pods) {
            return step;
        }
        // A quota or a cordon may have kept its pods back for any time.
        let begun = pods.iter().map(|pod| {
            pod.scheduled_unix_seconds
                .unwrap_or(pod.created_unix_seconds)
        });
        let age = self.now_unix_seconds - begun.fold(newest, f64::max);
        let is_complete = i32::try_from(pods.len()) == Ok(self.expected_pods());
        let Some(ready_since) = all_ready_since(&pods).filter(|_| is_complete) else {
            return self.await_server(status, age, &pods);
        };
        let database = self.pods(Role::Database);
        let database_ready_since = match (
            &self.builder.benchmark.spec.database,
            all_ready_since(&database),
        ) {
            (None, _) => ready_since,
            (Some(_), Some(since)) => since,
            (Some(_), None) if age > START_PATIENCE_SECONDS => {
                let message =
                    format!("the database was not ready {age:.0} s after the server's start");
                return self.void(status, reason::POD_REPLACED, &message);
            }
            (Some(_), None) => return Step::wait("waiting for the database to be ready", 1.0),
        };
        let Some(first) = self.session().and_then(first_reading) else {
            let Some(session) = self.session() else {
                return Step::wait("waiting for the meter's first reading", 1.0);
            };
            if self.operator_unix_seconds() - session.started_unix_seconds
                > READING_PATIENCE_SECONDS
                && let Some((reason, error)) = session.no_reading()
            {
                let message = format!("the meter has given no reading: {error}");
                return self.void(status, reason, &message);
            }
            return Step::wait("waiting for the meter's first reading", 1.0);
        };
        let settled = (ready_since.max(database_ready_since)
            + SETTLE_SECONDS
            + self.readings_ahead_seconds())
        .max(first);
        let cooled = self.cooled(settled);
        let start = *cooled.as_ref().unwrap_or(&settled);
        let end = start + self.builder.settings.idle_seconds;
        // By the readings' own clock: by the operator's, were it ahead of the node's, the load would
        // begin within the baseline.
        let remaining = end - self.session().and_then(last_reading).unwrap_or(first);
        if remaining > 0.0 || cooled.is_err() {
            if self.silent_seconds() > READING_PATIENCE_SECONDS {
                let message =
                    format!("the meter has shown nothing new for {READING_PATIENCE_SECONDS} s");
                return self.without_readings(status, reason::READINGS_INTERRUPTED, &message);
            }
            return match cooled {
                Ok(_) => Step::wait("measuring the idle baseline", remaining),
                Err(remaining) => Step::wait(
                    "waiting for the node to cool to the block's first trial",
                    remaining,
                ),
            };
        }
        let record = FrugalityTrialStatus {
            idle_before: Some(Window {
                start_unix_seconds: start,
                end_unix_seconds: end,
            }),
            candidate_pods: uids(&pods),
            database_pods: uids(&database),
            endpoints: self.endpoints_version(),
            ..status
        };
        let mut step = Step::record(record);
        step.doing = "starting the load".into();
        step.create = vec![self.injector()];
        step
    }

    /// The end of an attempt whose server will not come.
    fn not_coming(&self, status: &FrugalityTrialStatus, pods: &[PodFacts]) -> Option<Step> {
        if self
            .children()
            .any(|it| it.kind == ChildKind::Deployment && it.deleting)
        {
            return Some(self.void(
                status.clone(),
                reason::POD_REPLACED,
                "the server's Deployment is being deleted",
            ));
        }
        if let Some(failure) = pods
            .iter()
            .find_map(|pod| image_failure(pod, self.now_unix_seconds))
        {
            return Some(self.fail(status.clone(), reason::IMAGE_PULL_FAILED, &failure));
        }
        if let Some((reason, failure)) = pods.iter().find_map(user_failure) {
            return Some(self.fail(status.clone(), reason, &failure));
        }
        None
    }

    /// From when on the node is about as cool as at the first trial of the block, in Unix seconds; else how long to wait.
    /// Trials of a block are compared with each other, so they shall start alike. The time is bounded: a node that does
    /// not cool so far is measured all the same, and the verdict notes it.
    fn cooled(&self, settled: f64) -> Result<f64, f64> {
        let spec = &self.trial.spec;
        let mut of_block = self.measured_before(|it| {
            (it.block, it.attempt) == (spec.block, spec.attempt)
                && it.measured_node == spec.measured_node
        });
        let first =
            of_block.find_map(|status| status.energy.as_ref()?.conditions.idle_before_celsius);
        let Some(first) = first else {
            return Ok(settled);
        };
        let readings = || {
            let session = self.session();
            let readings = session.map_or(&[][..], |session| session.readings.as_slice());
            readings
                .iter()
                .filter(move |reading| reading.at_unix_seconds() >= settled)
                .filter_map(|reading| {
                    Some((reading.at_unix_seconds(), reading.temperature_celsius?))
                })
        };
        let cool = readings().find(|(_, celsius)| *celsius <= first + START_BAND_KELVIN);
        if let Some((at, _)) = cool {
            return Ok(at.min(settled + COOLING_PATIENCE_SECONDS));
        }
        let latest = self.session().and_then(last_reading).unwrap_or(settled);
        let remaining = settled + COOLING_PATIENCE_SECONDS - latest;
        if readings().next().is_none() {
            // A meter that reports no temperature, or no reading after the settling yet.
            return Ok(settled);
        }
        if remaining > 0.0 {
            Err(remaining.min(1.0))
        } else {
            Ok(settled + COOLING_PATIENCE_SECONDS)
        }
    }

    fn await_server(
        &self,
        status: FrugalityTrialStatus,
        age_seconds: f64,
        pods: &[PodFacts],
    ) -> Step {
        if let Some(crash) = starting::crash(pods, self.candidate) {
            return self.fail(status, reason::CANDIDATE_CRASHED, &crash);
        }
        let refused = self.pods_refused(ChildKind::Deployment);
        if let Some(step) = refused.and_then(|it| self.await_leave(&status, it, age_seconds)) {
            return step;
        }
        if !self.measured.schedulable {
            let closed = nodes::takes_no_pods(self.measured);
            if age_seconds > START_PATIENCE_SECONDS {
                return self.void(status, reason::NO_MEASURED_NODE, &closed);
            }
            return Step::wait(format!("waiting for the server to be ready; {closed}"), 1.0);
        }
        let why = starting::awaited(pods, self.candidate, self.point.replicas, refused);
        let within = self.candidate.ready_within.as_ref();
        let patience = within.and_then(|within| within.seconds().ok());
        let patience = patience.unwrap_or(START_PATIENCE_SECONDS);
        if age_seconds <= patience {
            let doing = format!("waiting for the server to be ready: {why}");
            return Step::wait(doing, 1.0);
        }
        let message = format!("not ready {patience} s after its start: {why}");
        // Its own servers come once its backends are ready.
        let mut servers = self.children();
        let is_made =
            servers.any(|child| child.kind == ChildKind::Deployment && child.name == self.name());
        let expected = if is_made {
            self.expected_pods()
        } else {
            backend_pods_of(self.candidate, self.point.replicas)
        };
        if refused.is_none() && i32::try_from(pods.len()) != Ok(expected) {
            // It is no fault of the candidate's that the cluster makes no pod.
            return self.void(status, reason::POD_REPLACED, &message);
        }
        self.fail(status, reason::CANDIDATE_NOT_READY, &message)
    }

    /// Why a controller can't create the pods of the attempt's objects of this kind.
    fn pods_refused(&self, kind: ChildKind) -> Option<&str> {
        let mut children = self.children().filter(|child| child.kind == kind);
        children.find_map(|child| child.pods_refused.as_deref())
    }

    /// What to do about pods that are refused: a quota is waited for until the run's deadline, what is
    /// forbidden ends the run, and anything else is given the usual time.
    fn await_leave(
        &self,
        status: &FrugalityTrialStatus,
        refused: &str,
        age_seconds: f64,
    ) -> Option<Step> {
        match Refused::by(refused) {
            Refused::Quota => Some(Step {
                waits_because: Some(reason::QUOTA_EXCEEDED),
                ..Step::wait(
                    format!("waiting until a quota has room for the pods: {refused}"),
                    2.0,
                )
            }),
            Refused::Forbidden if age_seconds > FORBIDDEN_PATIENCE_SECONDS => {
                let message = format!("its pods can't be created: {refused}");
                Some(self.fail(status.clone(), reason::CHILD_REFUSED, &message))
            }
            Refused::Forbidden | Refused::Other => None,
        }
    }

    fn under_load(&self, status: FrugalityTrialStatus, idle_before: Window) -> Step {
        let covered = self
            .session()
            .and_then(first_reading)
            .is_some_and(|first| first <= idle_before.start_unix_seconds);
        if !covered {
            // Reading begins when the attempt is opened, long before its baseline.
            let began_late = self.session().is_none_or(|session| {
                let began = session.started_unix_seconds - self.observed.operator_ahead_seconds;
                began > idle_before.start_unix_seconds
            });
            let why = if began_late {
                "the operator was restarted after the attempt had begun"
            } else {
                "the meter gave none until then"
            };
            let message = format!("the readings do not reach back to the idle baseline: {why}");
            return self.void(status, reason::READINGS_INTERRUPTED, &message);
        }
        if let Some(step) = self.replaced(&status) {
            return step;
        }
        if let Some((reason, message)) = self.diverted(&status, idle_before) {
            return self.void(status, reason, &message);
        }
        let restarted = self
            .pods(Role::Database)
            .into_iter()
            .find(|pod| pod.started_unix_seconds > Some(idle_before.start_unix_seconds));
        if let Some(pod) = restarted {
            let message = format!(
                "a container of the database's pod {} was restarted",
                pod.name
            );
            return self.void(status, reason::POD_REPLACED, &message);
        }
        let Some(job) = self.child(ChildKind::Job) else {
            if self.session().is_some_and(|session| session.injector_seen) {
                return self.void(
                    status,
                    reason::INJECTOR_DELETED,
                    "the injector's Job was deleted from outside",
                );
            }
            let mut step = Step::wait("starting the load", 1.0);
            step.create = vec![self.injector()];
            return step;
        };
        let pods = self.pods(Role::Injector);
        let Some(pod) = pods.first() else {
            let age_seconds = self.now_unix_seconds - job.created_unix_seconds;
            let refused = job.pods_refused.as_deref();
            if let Some(step) = refused.and_then(|it| self.await_leave(&status, it, age_seconds)) {
                return step;
            }
            return self.await_injector(status, job, "waiting for the injector's pod");
        };
        if let Some(failure) = image_failure(pod, self.now_unix_seconds) {
            return self.fail(status, reason::IMAGE_PULL_FAILED, &failure);
        }
        if let Some(end) = pod.terminated.get(PREPARE_CONTAINER)
            && end.exit_code != 0
        {
            let message = format!("the database could not be prepared: {}", last_words(end));
            return self.void(status, reason::INJECTOR_FAILED, &message);
        }
        match pod.terminated.get(INJECTOR_CONTAINER) {
            None if pod.deleting || pod.ended => self.void(
                status,
                reason::INJECTOR_DELETED,
                "the injector's pod ended without a result",
            ),
            None => self.await_injector(status, job, "load is on"),
            Some(end) => self.after_load(status, idle_before, pod, end),
        }
    }

    /// Records what database the attempt begins with, before it makes anything: its candidate can change the template
    /// of the next one.
    fn restored_before(&self, status: FrugalityTrialStatus) -> Step {
        let status = FrugalityTrialStatus {
            restored: self.restored(),
            ..status
        };
        if let Some(changed) = self.restored_otherwise(&status) {
            return self.void(status, reason::DATA_CHANGED, &changed);
        }
        let mut step = Step::record(status);
        step.doing = "recording the state of the database".into();
        step
    }

    /// What the Job reports that restored the database for this attempt, and how often its Cluster was written.
    fn restored(&self) -> Option<DatabaseFacts> {
        let of_run = |pod: &&PodFacts| {
            pod.role == Role::Seed.as_str() && pod.run == self.trial.spec.run && !pod.deleting
        };
        let pod = self.observed.pods.iter().find(of_run)?;
        let mut facts = database_facts(&pod.terminated.get(SEED_CONTAINER)?.message)?;
        let generation = self.cluster_generation();
        facts
            .state
            .extend(generation.map(|it| (CLUSTER_GENERATION.to_owned(), it)));
        Some(facts)
    }

    /// A measured pod that is not the one whose idle baseline was taken.
    fn replaced(&self, status: &FrugalityTrialStatus) -> Option<Step> {
        for (role, recorded) in [
            (Role::Candidate, &status.candidate_pods),
            (Role::Database, &status.database_pods),
        ] {
            let pods = self.pods(role);
            if uids(&pods) != *recorded {
                let message = format!(
                    "the {}'s pod is not the one that the attempt began with: {} instead of {}",
                    role.as_str(),
                    words(&uids(&pods)),
                    words(recorded)
                );
                return Some(self.void(status.clone(), reason::POD_REPLACED, &message));
            }
        }
        None
    }

    fn await_injector(&self, status: FrugalityTrialStatus, job: &Child, doing: &str) -> Step {
        let settings = self.builder.settings;
        let load = match settings.amount {
            Amount::DurationSeconds(seconds) => seconds,
            // A number of requests takes as long as it takes; the run's deadline is the limit.
            Amount::Requests(_) => settings.deadline_seconds,
        };
        let longest = INJECTOR_PATIENCE_SECONDS
            + settings.warm_up_seconds
            + load
            + TAIL_SECONDS
            + 3.0 * settings.timeout_seconds;
        // A quota may have kept its pod back for any time.
        let pods = self.pods(Role::Injector);
        let began = pods.first().map_or(job.created_unix_seconds, |pod| {
            pod.created_unix_seconds.max(job.created_unix_seconds)
        });
        if self.now_unix_seconds - began > longest {
            let mut message = format!("the injector has not ended {longest} s after its start");
            if !self.injector.schedulable {
                message = format!("{message}; {}", nodes::takes_no_pods(self.injector));
            }
            return self.void(status, reason::INJECTOR_FAILED, &message);
        }
        Step::wait(doing, 2.0)
    }

    fn injector(&self) -> ChildObject {
        // A meter that tells no time is stamped by the operator's clock, and so is that compared.
        let latest = self.session().and_then(|session| session.readings.last());
        let config = self.builder.config;
        let meter_tells_time = latest.is_some_and(|reading| reading.meter_unix_seconds.is_some());
        let clock_url = match (&self.measured.meter_ip, meter_tells_time) {
            (Some(ip), true) => Some(format!("http://{}/time", authority(ip, config.meter_port))),
            _ => config.time_url.clone(),
        };
        self.builder.injector(
            self.candidate,
            self.name(),
            self.point.connections,
            &nodes::selector(self.injector),
            clock_url.as_deref(),
        )
    }

    /// Those of the candidate's servers and addresses that are to be made now. The one that is asked comes
    /// once all others are ready: it then finds all of them at its first look, and no name server has an
    /// answer with fewer to give it.
    fn missing_servers(&self, pods: &[PodFacts]) -> Vec<ChildObject> {
        let measured = nodes::selector(self.measured);
        let swept = self.point.replicas;
        let mut servers = self
            .builder
            .servers(self.candidate, self.name(), swept, &measured);
        let is_ready_backend = |pod: &&PodFacts| {
            pod.workload.as_ref() != Some(&self.candidate.name)
                && pod.ready_since_unix_seconds.is_some()
        };
        let ready = pods.iter().filter(is_ready_backend).count();
        if i32::try_from(ready).unwrap_or(i32::MAX) < backend_pods_of(self.candidate, swept) {
            servers.retain(|object| object.name() != self.name());
        }
        servers.retain(|object| {
            let is_there =
                |child: &Child| child.kind == object.kind() && child.name == object.name();
            !self.children().any(is_there)
        });
        servers
    }

    fn expected_pods(&self) -> i32 {
        pods_of(self.candidate, self.point.replicas)
    }

    fn name(&self) -> &str {
        self.trial.metadata.name.as_deref().unwrap_or_default()
    }

    fn session(&self) -> Option<&Session> {
        self.observed.sessions.get(self.name())
    }

    /// The time by the operator's own clock, which sessions have.
    fn operator_unix_seconds(&self) -> f64 {
        self.now_unix_seconds + self.observed.operator_ahead_seconds
    }

    /// How far the readings' times are ahead of the cluster's. A meter tells its node's time; where it tells none,
    /// readings have the operator's.
    fn readings_ahead_seconds(&self) -> f64 {
        let latest = self.session().and_then(|session| session.readings.last());
        if latest.is_some_and(|reading| reading.meter_unix_seconds.is_none()) {
            self.observed.operator_ahead_seconds
        } else {
            0.0
        }
    }

    /// For how long the meter has shown nothing new, by the operator's clock alone.
    fn silent_seconds(&self) -> f64 {
        let newest = self.session().and_then(|session| {
            let readings = &session.readings;
            let at = readings.last()?.at_unix_seconds();
            let is_newest = |reading: &&Reading| reading.at_unix_seconds() >= at;
            readings.iter().rev().take_while(is_newest).last()
        });
        newest.map_or(0.0, |reading| {
            self.operator_unix_seconds() - reading.scraped_at_unix_seconds
        })
    }

    fn child(&self, kind: ChildKind) -> Option<&Child> {
        self.children().find(|child| child.kind == kind)
    }

    /// What the attempt has made.
    fn children(&self) -> impl Iterator<Item = &Child> {
        let of_attempt = |child: &&Child| child.trial.as_deref() == Some(self.name());
        self.observed.children.iter().filter(of_attempt)
    }

    /// The attempt's pods (of the database: the run's) that are not on their way out.
    fn pods(&self, role: Role) -> Vec<PodFacts> {
        self.observed
            .pods
            .iter()
            .filter(|pod| pod.role == role.as_str() && pod.run == self.trial.spec.run)
            .filter(|pod| role == Role::Injector || !pod.deleting)
            // One that was evicted stays there beside its successor.
            .filter(|pod| role != Role::Database || !pod.ended)
            .filter(|pod| role == Role::Database || pod.trial.as_deref() == Some(self.name()))
            .cloned()
            .collect()
    }

    fn void(&self, status: FrugalityTrialStatus, reason: &str, message: &str) -> Step {
        self.end(status, Outcome::Void, reason, message)
    }

    /// Void for want of readings: by its own name where the meter answered all the same.
    fn without_readings(
        &self,
        status: FrugalityTrialStatus,
        reason: &'static str,
        message: &str,
    ) -> Step {
        match self
            .session()
            .and_then(|session| session.without_power.as_ref())
        {
            Some(missing) => {
                let message = format!("{missing}, though it answers; {message}");
                self.void(status, reason::NO_POWER_METRICS, &message)
            }
            None => self.void(status, reason, message),
        }
    }

    fn fail(&self, status: FrugalityTrialStatus, reason: &str, message: &str) -> Step {
        let message = format!("candidate {}: {message}", self.trial.spec.candidate);
        self.end(status, Outcome::Failed, reason, &message)
    }

    fn end(
        &self,
        status: FrugalityTrialStatus,
        outcome: Outcome,
        reason: &str,
        message: &str,
    ) -> Step {
        Step::record(ended(
            status,
            outcome,
            reason,
            message,
            self.now_unix_seconds,
        ))
    }
}

/// A record with its outcome.
#[must_use]
pub fn ended(
    status: FrugalityTrialStatus,
    outcome: Outcome,
    reason: &str,
    message: &str,
    now_unix_seconds: f64,
) -> FrugalityTrialStatus {
    FrugalityTrialStatus {
        outcome: Some(outcome),
        reason: Some(reason.to_owned()),
        message: Some(message.chars().take(2000).collect()),
        finished_at: super::time::rfc3339(now_unix_seconds),
        ..status
    }
}

/// Why a pod's image can't be had, once there is no hope left.
#[must_use]
pub fn image_failure(pod: &PodFacts, now_unix_seconds: f64) -> Option<String> {
    let (reason, message) = pod.waiting.as_ref()?;
    let hopeless = match reason.as_str() {
        "InvalidImageName" | "ErrImageNeverPull" => true,
        "ErrImagePull" | "ImagePullBackOff" | "ImageInspectError" => {
            now_unix_seconds - pod.created_unix_seconds > IMAGE_PATIENCE_SECONDS
        }
        _ => false,
    };
    hopeless.then(|| format!("pod {}: {reason}: {message}", pod.name))
}

/// Why a kubelet does not start a candidate's container as a user other than root: reason code and
/// words. It sees that from the image, so waiting does not help.
fn user_failure(pod: &PodFacts) -> Option<(&'static str, String)> {
    let (_, message) = pod.waiting.as_ref()?;
    // The kubelet's own words (`verifyRunAsNonRoot` of kuberuntime).
    let reason = if message.contains("image will run as root") {
        reason::IMAGE_RUNS_AS_ROOT
    } else if message.contains("image has non-numeric user") {
        reason::IMAGE_USER_NOT_NUMERIC
    } else {
        return None;
    };
    Some((
        reason,
        format!(
            "pod {}: {message}; write a number above 0 into its runAsUser in spec.candidates, or build the image with a USER that is one",
            pod.name
        ),
    ))
}

/// Rows and digest as the `prepare` and `seed` containers print them, and what else `seed` found, as `kind=digest`.
#[must_use]
pub fn database_facts(message: &str) -> Option<DatabaseFacts> {
    let mut words = message.split_whitespace();
    Some(DatabaseFacts {
        rows: words.next()?.parse().ok()?,
        digest: words.next()?.to_owned(),
        state: words
            .filter_map(|word| word.split_once('='))
            .map(|(kind, digest)| (kind.to_owned(), digest.to_owned()))
            .collect(),
    })
}

/// What a container said at its end.
#[must_use]
pub fn last_words(end: &Termination) -> String {
    let words = end.message.trim();
    if words.is_empty() {
        format!("exit code {} {}", end.exit_code, end.reason)
    } else {
        // Such as OOMKilled; the others say no more than the code.
        let why = match end.reason.as_str() {
            "" | "Error" | "Completed" => String::new(),
            reason => format!(" {reason}"),
        };
        format!("exit code {}{why}: {words}", end.exit_code)
    }
}

/// When the last of the pods became ready, if there are any and all are.
fn all_ready_since(pods: &[PodFacts]) -> Option<f64> {
    pods.iter()
        .map(|pod| pod.ready_since_unix_seconds)
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .reduce(f64::max)
}

fn uids(pods: &[PodFacts]) -> Vec<String> {
    let mut uids: Vec<_> = pods.iter().map(|pod| pod.uid.clone()).collect();
    uids.sort();
    uids
}

fn words(uids: &[String]) -> String {
    match uids {
        [] => "none".into(),
        uids => uids.join(", "),
    }
}

fn first_reading(session: &Session) -> Option<f64> {
    session.readings.first().map(Reading::at_unix_seconds)
}

fn last_reading(session: &Session) -> Option<f64> {
    session.readings.last().map(Reading::at_unix_seconds)
}
