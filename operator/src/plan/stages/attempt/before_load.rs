//! An attempt before its load: new pods, and the idle baseline.

use crate::{
    api::{DatabaseFacts, FrugalityTrialStatus, Reason, Role},
    plan::{
        action::ChildObject,
        facts::{
            Child, ChildKind, PodFacts,
            pods::{database_facts, image_failure},
        },
        placement::nodes,
        protocol::{SETTLE_SECONDS, START_BAND_KELVIN},
        settings::pods::backend_pods_of,
        stages::attempt::addresses::CLUSTER_GENERATION,
    },
    time,
};
use frugality_measure::energy::Window;
use kube::ResourceExt;

use super::{
    starting,
    step::{OpenAttempt, READING_TIMEOUT_SECONDS, Step, first_reading, last_reading, uids},
};

/// How long a trial waits for the node to cool, in seconds. The value is a judgement: a board with a heat sink
/// loses half of its excess temperature in about a minute.
const COOLING_TIMEOUT_SECONDS: f64 = 60.0;
/// Time limit for a server to become ready, in seconds, unless its candidate sets `readyWithin`.
const START_TIMEOUT_SECONDS: f64 = 180.0;
/// Time between two looks at pods that start or end. A pod that gets ready, fails or ends starts a pass at once, so these looks only
/// find the rest: a limit of time, a pod that no node takes, a pod that was deleted by force, and how an unready server answers.
pub(super) const POLL_SECONDS: f64 = 2.0;

impl OpenAttempt<'_> {
    pub(super) fn before_load(&self, status: FrugalityTrialStatus) -> Step {
        if let Some(step) = self.after_long_pause(&status) {
            return step;
        }
        let pods = self.pods(Role::Candidate);
        let missing = self.missing_servers(&pods);
        if status.restored.is_none()
            && self.builder.benchmark.spec.database.is_some()
            && self.children().next().is_none()
        {
            return self.record_restored(status, missing);
        }
        let is_server = |child: &&Child| child.kind == ChildKind::Deployment;
        let newest = self
            .children()
            .filter(is_server)
            .map(|server| server.created_unix_seconds)
            .reduce(f64::max);
        let Some(newest) = newest.filter(|_| missing.is_empty()) else {
            let mut step = Step::wait("starting fresh pods", POLL_SECONDS);
            step.create = missing;
            return step;
        };
        if let Some(step) = self.start_failure(&status, &pods) {
            return step;
        }
        // The age starts here because a quota or a cordon may have delayed the pods for any time.
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
            (Some(_), None) if age > START_TIMEOUT_SECONDS => {
                let message =
                    format!("the database was not ready {age:.0} s after the server's start");
                return self.void(status, Reason::PodReplaced, &message);
            }
            (Some(_), None) => {
                return Step::wait("waiting for the database to be ready", POLL_SECONDS);
            }
        };
        let Some(first) = self.session().and_then(first_reading) else {
            return self.await_reading(status);
        };
        let prepared = match self.prepared(&status) {
            Ok(prepared) => prepared,
            Err(step) => return *step,
        };
        let ready = ready_since.max(database_ready_since) + SETTLE_SECONDS;
        let checked = prepared.as_ref().map_or(0.0, |it| {
            it.unix_seconds + self.settle_after_check_seconds()
        });
        // Kubelet reports readiness by the measured node's clock. The end of the check is by the cluster's clock.
        let settled = (ready + self.readings_ahead_seconds())
            .max(checked + self.readings_ahead_of_cluster_seconds())
            .max(first);
        let cooled = self.cooled(settled);
        let start = *cooled.as_ref().unwrap_or(&settled);
        let end = start + self.builder.settings.idle_seconds;
        // Uses the readings' clock. If the operator's clock were ahead of the node's clock, the load would begin
        // during the baseline.
        let remaining = end - self.session().and_then(last_reading).unwrap_or(first);
        if remaining > 0.0 || cooled.is_err() {
            if self.silent_seconds() > READING_TIMEOUT_SECONDS {
                let message =
                    format!("the meter has shown nothing new for {READING_TIMEOUT_SECONDS} s");
                return self.without_readings(status, Reason::ReadingsInterrupted, &message);
            }
            return match cooled {
                Ok(_) => Step::wait("measuring the idle baseline", self.seconds_until_read(end)),
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
            database: prepared.and_then(|it| it.database),
            ..status
        };
        if let Some(changed) = self.data_changed(&record) {
            return self.void(record, Reason::DataChanged, &changed);
        }
        let mut step = Step::record(record);
        step.doing = "starting the load".into();
        step.create = vec![self.injector()];
        step
    }

    /// Records the state of the database before the attempt makes any object, because its candidate can change the
    /// template for the next attempt. The operator writes a record before it creates objects, and creates none if
    /// the write fails.
    fn record_restored(&self, status: FrugalityTrialStatus, servers: Vec<ChildObject>) -> Step {
        let status = FrugalityTrialStatus {
            restored: self.restored(),
            ..status
        };
        if let Some(changed) = self.restored_difference(&status) {
            return self.void(status, Reason::DataChanged, &changed);
        }
        let mut step = Step::record(status);
        step.doing = "starting fresh pods".into();
        step.create = servers;
        step
    }

    fn await_reading(&self, status: FrugalityTrialStatus) -> Step {
        let waiting = Step::wait("waiting for the meter's first reading", 1.0);
        let Some(session) = self.session() else {
            return waiting;
        };
        if self.operator_unix_seconds() - session.started_unix_seconds > READING_TIMEOUT_SECONDS
            && let Some((reason, error)) = session.no_reading()
        {
            let message = format!("the meter has given no reading: {error}");
            return self.void(status, reason, &message);
        }
        waiting
    }

    /// The report of the Job that restored the database for this attempt, and the generation of the database's
    /// Cluster.
    fn restored(&self) -> Option<DatabaseFacts> {
        let mut facts = database_facts(&self.seed_end()?.message)?;
        let generation = self.cluster_generation();
        facts
            .state
            .extend(generation.map(|it| (CLUSTER_GENERATION.to_owned(), it)));
        Some(facts)
    }

    /// The end of an attempt whose server can't start.
    fn start_failure(&self, status: &FrugalityTrialStatus, pods: &[PodFacts]) -> Option<Step> {
        if self
            .children()
            .any(|it| it.kind == ChildKind::Deployment && it.deleting)
        {
            return Some(self.void(
                status.clone(),
                Reason::PodReplaced,
                "the server's Deployment is being deleted",
            ));
        }
        if let Some(failure) = pods
            .iter()
            .find_map(|pod| image_failure(pod, self.now_unix_seconds))
        {
            return Some(self.fail(status.clone(), Reason::ImagePullFailed, &failure));
        }
        if let Some((reason, failure)) = pods.iter().find_map(user_failure) {
            return Some(self.fail(status.clone(), reason, &failure));
        }
        None
    }

    /// When the node is about as cool as at the first trial of the block, in Unix seconds. The error is the time to
    /// wait, in seconds. The operator compares the trials of a block with each other, so they must start at similar
    /// temperatures. The wait is limited: if the node stays warmer, the trial is measured anyway and the verdict
    /// notes it.
    fn cooled(&self, settled: f64) -> Result<f64, f64> {
        let spec = &self.trial.spec;
        let of_block = self.trials_before(|it| {
            (it.block, it.attempt) == (spec.block, spec.attempt)
                && it.measured_node == spec.measured_node
        });
        let known = of_block.filter_map(|trial| {
            let energy = trial.status.as_ref()?.energy.as_ref()?;
            Some((trial.spec.position, energy.conditions.idle_before_celsius?))
        });
        let Some((_, first)) = known.min_by_key(|(position, _)| *position) else {
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
            return Ok(at.min(settled + COOLING_TIMEOUT_SECONDS));
        }
        let latest = self.session().and_then(last_reading).unwrap_or(settled);
        let remaining = settled + COOLING_TIMEOUT_SECONDS - latest;
        if readings().next().is_none() {
            // The meter reports no temperature, or has given no reading since the node settled.
            return Ok(settled);
        }
        if remaining > 0.0 {
            Err(remaining.min(1.0))
        } else {
            Ok(settled + COOLING_TIMEOUT_SECONDS)
        }
    }

    fn await_server(
        &self,
        status: FrugalityTrialStatus,
        age_seconds: f64,
        pods: &[PodFacts],
    ) -> Step {
        if let Some(crash) = starting::crash(pods, self.candidate) {
            return match self.database_lost() {
                Some(lost) => self.void(status, Reason::PodReplaced, &format!("{lost}; {crash}")),
                None => self.fail(status, Reason::CandidateCrashed, &crash),
            };
        }
        let refused = self.pods_refused(ChildKind::Deployment);
        if let Some(step) = refused.and_then(|it| self.after_refusal(&status, it, age_seconds)) {
            return step;
        }
        if !self.measured.schedulable {
            let closed = nodes::unschedulable_message(self.measured);
            if age_seconds > START_TIMEOUT_SECONDS {
                return self.void(status, Reason::NoMeasuredNode, &closed);
            }
            return Step::wait(
                format!("waiting for the server to be ready; {closed}"),
                POLL_SECONDS,
            );
        }
        let why = starting::why_not_ready(pods, self.candidate, self.point.replicas, refused);
        let within = self.candidate.ready_within.as_ref();
        let patience = within.and_then(|within| within.seconds().ok());
        let patience = patience.unwrap_or(START_TIMEOUT_SECONDS);
        if age_seconds <= patience {
            let doing = format!("waiting for the server to be ready: {why}");
            return Step::wait(doing, POLL_SECONDS);
        }
        let message = format!("the server was not ready {patience} s after its start: {why}");
        // The operator creates the candidate's own server after its backends are ready.
        let mut servers = self.children();
        let is_made =
            servers.any(|child| child.kind == ChildKind::Deployment && child.name == self.name());
        let expected = if is_made {
            self.expected_pods()
        } else {
            backend_pods_of(self.candidate, self.point.replicas)
        };
        if let Some(lost) = self.database_lost() {
            return self.void(status, Reason::PodReplaced, &format!("{lost}; {message}"));
        }
        if refused.is_none() && i32::try_from(pods.len()) != Ok(expected) {
            // The candidate does not cause a missing pod, so it must not fail.
            return self.void(status, Reason::PodReplaced, &message);
        }
        self.fail(status, Reason::CandidateNotReady, &message)
    }

    /// Why the candidate can't be blamed if it does not start: its database is not the one that was restored for this
    /// attempt.
    fn database_lost(&self) -> Option<String> {
        self.builder.benchmark.spec.database.as_ref()?;
        let opened = time::unix_seconds(self.trial.creation_timestamp()?.0);
        let pods = self.pods(Role::Database);
        let is_kept = |pod: &PodFacts| {
            pod.ready_since_unix_seconds.is_some() && pod.created_unix_seconds <= opened
        };
        (pods.is_empty() || !pods.iter().all(is_kept))
            .then(|| "the database was lost while the server started".to_owned())
    }

    /// Servers and addresses of the candidate to create now. The server that gets the load comes after all backends
    /// are ready. It then finds all of them at its first lookup, and no DNS server has cached an answer with fewer
    /// addresses.
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
}

/// Why kubelet refuses to start a candidate's container as a non-root user: reason code and message. Kubelet
/// decides by the image, so waiting does not help.
fn user_failure(pod: &PodFacts) -> Option<(Reason, String)> {
    let (_, message) = pod.waiting.as_ref()?;
    // Kubelet's own messages (`verifyRunAsNonRoot` of kuberuntime).
    let reason = if message.contains("image will run as root") {
        Reason::ImageRunsAsRoot
    } else if message.contains("image has non-numeric user") {
        Reason::ImageUserNotNumeric
    } else {
        return None;
    };
    Some((
        reason,
        format!(
            "pod {}: {message}; write a number above 0 into its runAsUser in spec.candidates, or build the image with a numeric USER above 0",
            pod.name
        ),
    ))
}

/// When the last pod became ready, in Unix seconds. `None` if there are no pods or one is not ready.
fn all_ready_since(pods: &[PodFacts]) -> Option<f64> {
    pods.iter()
        .map(|pod| pod.ready_since_unix_seconds)
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .reduce(f64::max)
}
