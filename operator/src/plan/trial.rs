//! One attempt, from fresh pods to its entry in the ledger.
//!
//! An attempt's stages follow from what exists: the server's pod, the idle baseline in the ledger
//! entry, the injector's Job and its last words. Readings live in the operator's memory only; an
//! operator that was restarted has none from before, and the attempt is void.

use std::collections::BTreeSet;

use frugality_measure::{
    energy::{AttemptReadings, EnergyFigures, Limits, Window, evaluate},
    fortio::{Amount, RequestFigures, figures},
    reading::Reading,
    report::{InjectionReport, ReportError},
};

use super::{
    facts::{Child, ChildKind, Observed, PodFacts, Session, Termination},
    ledger::outcome_of,
    nodes::{self, Nodes},
    resources::{Builder, ChildObject, INJECTOR_CONTAINER, PREPARE_CONTAINER, expected_rows},
    settings::TAIL_SECONDS,
    text,
};
use crate::api::{
    Candidate, DatabaseFacts, DecidingFigure, FrugalityTrial, FrugalityTrialStatus, Outcome, Role,
    TrialColumns, reason,
};

/// Rest between a pod's readiness, or the end of the load, and the idle baseline: start-up work and
/// half-closed connections are not idle.
const SETTLE_SECONDS: f64 = 3.0;
/// A meter that has shown nothing new for this long is not waited for.
const READING_PATIENCE_SECONDS: f64 = 15.0;
/// A server that is not ready by then will not be.
const START_PATIENCE_SECONDS: f64 = 180.0;
/// An image that is not there by then will not come.
const IMAGE_PATIENCE_SECONDS: f64 = 30.0;
/// Longest start of the injector's pod, its check of the database included.
const INJECTOR_PATIENCE_SECONDS: f64 = 120.0;
/// Largest uncertainty of the clocks' offset: at a window of 20 s, half a percent.
const MAX_CLOCK_UNCERTAINTY_SECONDS: f64 = 0.1;

/// What to do for the open attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Objects to create.
    pub create: Vec<ChildObject>,
    /// New record of the attempt.
    pub record: Option<FrugalityTrialStatus>,
    /// What is being done, for people.
    pub doing: String,
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
    /// Builds its objects.
    pub builder: Builder<'a>,
    /// Where it runs.
    pub nodes: &'a Nodes,
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
        match status.idle_before {
            None => self.before_load(status),
            Some(idle_before) => self.under_load(status, idle_before),
        }
    }

    fn before_load(&self, status: FrugalityTrialStatus) -> Step {
        let Some(server) = self.child(ChildKind::Deployment) else {
            let mut step = Step::wait("starting fresh pods", 1.0);
            step.create = vec![
                self.builder.server(
                    self.candidate,
                    self.name(),
                    &nodes::selector(&self.nodes.measured),
                ),
                self.builder.service(self.candidate, self.name()),
            ];
            return step;
        };
        if self.child(ChildKind::Service).is_none() {
            let mut step = Step::wait("starting fresh pods", 1.0);
            step.create = vec![self.builder.service(self.candidate, self.name())];
            return step;
        }
        if server.deleting {
            return self.void(
                status,
                reason::POD_REPLACED,
                "the server's Deployment is being deleted",
            );
        }
        let pods = self.pods(Role::Candidate);
        if let Some(failure) = pods
            .iter()
            .find_map(|pod| image_failure(pod, self.now_unix_seconds))
        {
            return self.fail(status, reason::IMAGE_PULL_FAILED, &failure);
        }
        let age = self.now_unix_seconds - server.created_unix_seconds;
        let Some(ready_since) = all_ready_since(&pods) else {
            if age > START_PATIENCE_SECONDS {
                let message = format!(
                    "not ready {START_PATIENCE_SECONDS} s after its start: {}",
                    pods.first().map_or_else(
                        || "its pod was never created".to_owned(),
                        |pod| not_ready_because(pod, self.candidate)
                    )
                );
                return self.fail(status, reason::CANDIDATE_NOT_READY, &message);
            }
            return Step::wait("waiting for the server to be ready", 1.0);
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
            if self.now_unix_seconds - session.started_unix_seconds > READING_PATIENCE_SECONDS
                && let Some(error) = &session.last_error
            {
                let message = format!("the meter has given no reading: {error}");
                return self.void(status, reason::METER_MISSING, &message);
            }
            return Step::wait("waiting for the meter's first reading", 1.0);
        };
        let start = (ready_since.max(database_ready_since) + SETTLE_SECONDS).max(first);
        let end = start + self.builder.settings.idle_seconds;
        // By the readings' own clock: by the operator's, were it ahead of the node's, the load would
        // begin within the baseline.
        let remaining = end - self.session().and_then(last_reading).unwrap_or(first);
        if remaining > 0.0 {
            if self.silent_seconds() > READING_PATIENCE_SECONDS {
                return self.void(
                    status,
                    reason::READINGS_INTERRUPTED,
                    &format!("the meter has shown nothing new for {READING_PATIENCE_SECONDS} s"),
                );
            }
            return Step::wait("measuring the idle baseline", remaining);
        }
        let record = FrugalityTrialStatus {
            idle_before: Some(Window {
                start_unix_seconds: start,
                end_unix_seconds: end,
            }),
            candidate_pods: uids(&pods),
            database_pods: uids(&database),
            ..status
        };
        let mut step = Step::record(record);
        step.doing = "starting the load".into();
        step.create = vec![self.injector()];
        step
    }

    fn under_load(&self, status: FrugalityTrialStatus, idle_before: Window) -> Step {
        let covered = self
            .session()
            .and_then(first_reading)
            .is_some_and(|first| first <= idle_before.start_unix_seconds);
        if !covered {
            return self.void(
                status,
                reason::READINGS_INTERRUPTED,
                "readings from the beginning of the attempt are missing: the operator was restarted, or the meter was not reached",
            );
        }
        if let Some(step) = self.replaced(&status) {
            return step;
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

    fn after_load(
        &self,
        mut status: FrugalityTrialStatus,
        idle_before: Window,
        injector: &PodFacts,
        end: &Termination,
    ) -> Step {
        let report = match InjectionReport::decode(&end.message) {
            Ok(report) => report,
            Err(ReportError::InjectorFailed { message, .. }) => {
                return self.void(status, reason::INJECTOR_FAILED, &message);
            }
            Err(error) => {
                let message = format!("{error}; exit code {} {}", end.exit_code, end.reason);
                return self.void(status, reason::INJECTOR_FAILED, &message);
            }
        };
        if let Some(interrupted) = &report.interrupted {
            return self.void(status, reason::FORTIO_INTERRUPTED, interrupted);
        }
        let offset = match &report.clock {
            Some(clock) if clock.uncertainty_seconds <= MAX_CLOCK_UNCERTAINTY_SECONDS => {
                clock.offset_seconds
            }
            Some(clock) => {
                let message = format!(
                    "the offset between the clocks of meter and injector is known to {} s only, and {MAX_CLOCK_UNCERTAINTY_SECONDS} s are allowed",
                    text::number(clock.uncertainty_seconds)
                );
                return self.void(status, reason::CLOCK_OFFSET_UNKNOWN, &message);
            }
            None => {
                return self.void(
                    status,
                    reason::CLOCK_OFFSET_UNKNOWN,
                    "the injector could not compare its clock with the meter's",
                );
            }
        };
        let fortio = &report.measured;
        let measured = Window {
            start_unix_seconds: fortio.start_unix_seconds + offset,
            end_unix_seconds: fortio.start_unix_seconds + offset + fortio.duration_seconds,
        };
        let load_end = report
            .tail
            .as_ref()
            .map_or(measured.end_unix_seconds + TAIL_SECONDS, |tail| {
                tail.start_unix_seconds + offset + tail.duration_seconds
            });
        let idle_start = load_end + SETTLE_SECONDS;
        let idle_after = Window {
            start_unix_seconds: idle_start,
            end_unix_seconds: idle_start + self.builder.settings.idle_seconds,
        };
        let last = self.session().and_then(last_reading).unwrap_or_default();
        let remaining = idle_after.end_unix_seconds - last;
        if remaining > 0.0 && self.silent_seconds() < READING_PATIENCE_SECONDS {
            return Step::wait("measuring the idle baseline", remaining);
        }
        status.window = Some(measured);
        status.idle_after = Some(idle_after);
        status.images = self
            .pods(Role::Candidate)
            .iter()
            .chain(&self.pods(Role::Database))
            .chain([injector])
            .flat_map(|pod| pod.images.clone())
            .collect();
        status.restarts = Some(
            self.pods(Role::Candidate)
                .iter()
                .map(|pod| pod.restarts)
                .sum(),
        );
        status.database = injector
            .terminated
            .get(PREPARE_CONTAINER)
            .and_then(|prepare| database_facts(&prepare.message));
        self.judge(status, idle_before, measured, idle_after, report)
    }

    fn judge(
        &self,
        mut status: FrugalityTrialStatus,
        idle_before: Window,
        measured: Window,
        idle_after: Window,
        report: InjectionReport,
    ) -> Step {
        if let Some(changed) = self.data_changed(&status) {
            return self.void(status, reason::DATA_CHANGED, &changed);
        }
        let requests = figures(&report.measured, &self.builder.settings.expected_status);
        let energy = {
            let restarted: BTreeSet<String> = self
                .pods(Role::Candidate)
                .iter()
                .filter(|pod| pod.restarts > 0)
                .map(|pod| pod.uid.clone())
                .collect();
            evaluate(&AttemptReadings {
                readings: self
                    .session()
                    .map_or(&[], |session| session.readings.as_slice()),
                idle_before,
                measured,
                idle_after,
                candidate_pods: &status.candidate_pods.iter().cloned().collect(),
                database_pods: &status.database_pods.iter().cloned().collect(),
                restarted_pods: &restarted,
                successes: requests.successes,
                limits: Limits::new(self.builder.config.max_node_watts),
            })
        };
        status.fortio = Some(report.measured);
        status.warm_up = report.warm_up;
        status.tail = report.tail;
        status.clock = report.clock;
        let energy = match energy {
            Ok(energy) => energy,
            Err(void) => return self.void(status, void.reason(), &void.to_string()),
        };
        if let Some(changed) = self.meter_changed(&energy) {
            return self.void(status, "MeterChanged", &changed);
        }
        status.columns = Some(columns(&requests, &energy));
        let message = match requests.errors {
            0 => format!("{} requests, all as expected", requests.successes),
            errors => format!("{} requests as expected, {errors} not", requests.successes),
        };
        status.requests = Some(requests);
        status.energy = Some(energy);
        self.end(status, Outcome::Measured, reason::MEASURED, &message)
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

    /// Rows that differ from what was seeded, or a digest from that of the run's earlier trials,
    /// where requests only read.
    fn data_changed(&self, status: &FrugalityTrialStatus) -> Option<String> {
        if !self.builder.benchmark.spec.request.method.is_safe() {
            return None;
        }
        let database = self.builder.benchmark.spec.database.as_ref()?;
        let Some(now) = &status.database else {
            return Some("rows and digest could not be read before the load".into());
        };
        let expected = expected_rows(&database.seed);
        if now.rows != expected {
            return Some(format!(
                "the database holds {} rows, and {expected} were seeded",
                now.rows
            ));
        }
        let earlier = self
            .measured_before()
            .find_map(|status| status.database.as_ref())?;
        (now != earlier).then(|| {
            format!(
                "the database holds {} rows with digest {}, and held {} rows with digest {} before",
                now.rows, now.digest, earlier.rows, earlier.digest
            )
        })
    }

    /// Joules of different meters are never averaged.
    fn meter_changed(&self, now: &EnergyFigures) -> Option<String> {
        let earlier = self
            .measured_before()
            .find_map(|status| status.energy.as_ref())?;
        let words = |energy: &EnergyFigures| {
            let meter = &energy.meter;
            format!(
                "{} {} {} {} zone {}",
                meter.name,
                meter.version,
                meter.source,
                meter.board.as_deref().unwrap_or_default(),
                energy.zone
            )
        };
        let is_same = earlier.meter == now.meter && earlier.zone == now.zone;
        (!is_same).then(|| {
            format!(
                "earlier trials of the run were measured by {}, this one by {}",
                words(earlier),
                words(now)
            )
        })
    }

    /// The run's trials that count so far.
    fn measured_before(&self) -> impl Iterator<Item = &FrugalityTrialStatus> {
        self.observed
            .trials
            .iter()
            .filter(|trial| trial.spec.run == self.trial.spec.run)
            .filter(|trial| outcome_of(trial) == Some(Outcome::Measured))
            .filter_map(|trial| trial.status.as_ref())
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
        if self.now_unix_seconds - job.created_unix_seconds > longest {
            let message = format!("the injector has not ended {longest} s after its start");
            return self.void(status, reason::INJECTOR_FAILED, &message);
        }
        Step::wait(doing, 2.0)
    }

    fn injector(&self) -> ChildObject {
        // A meter that tells no time is stamped by the operator's clock, and so is that compared.
        let latest = self.session().and_then(|session| session.readings.last());
        let config = self.builder.config;
        let meter_tells_time = latest.is_some_and(|reading| reading.meter_unix_seconds.is_some());
        let clock_url = match (&self.nodes.measured.meter_ip, meter_tells_time) {
            (Some(ip), true) => Some(format!("http://{ip}:{}/time", config.meter_port)),
            _ => config.time_url.clone(),
        };
        self.builder.injector(
            self.candidate,
            self.name(),
            &nodes::selector(&self.nodes.injector),
            clock_url.as_deref(),
        )
    }

    fn name(&self) -> &str {
        self.trial.metadata.name.as_deref().unwrap_or_default()
    }

    fn session(&self) -> Option<&Session> {
        self.observed.sessions.get(self.name())
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
            self.now_unix_seconds - reading.scraped_at_unix_seconds
        })
    }

    fn child(&self, kind: ChildKind) -> Option<&Child> {
        self.observed
            .children
            .iter()
            .find(|child| child.kind == kind && child.trial.as_deref() == Some(self.name()))
    }

    /// The attempt's pods (of the database: the run's) that are not on their way out.
    fn pods(&self, role: Role) -> Vec<PodFacts> {
        self.observed
            .pods
            .iter()
            .filter(|pod| pod.role == role.as_str() && pod.run == self.trial.spec.run)
            .filter(|pod| role == Role::Injector || !pod.deleting)
            .filter(|pod| role == Role::Database || pod.trial.as_deref() == Some(self.name()))
            .cloned()
            .collect()
    }

    fn void(&self, status: FrugalityTrialStatus, reason: &str, message: &str) -> Step {
        self.end(status, Outcome::Void, reason, message)
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

/// Rows and digest as the `prepare` and `seed` containers print them.
#[must_use]
pub fn database_facts(message: &str) -> Option<DatabaseFacts> {
    let (rows, digest) = message.trim().split_once(' ')?;
    Some(DatabaseFacts {
        rows: rows.parse().ok()?,
        digest: digest.to_owned(),
    })
}

/// What a container said at its end.
#[must_use]
pub fn last_words(end: &Termination) -> String {
    let words = end.message.trim();
    if words.is_empty() {
        format!("exit code {} {}", end.exit_code, end.reason)
    } else {
        format!("exit code {}: {words}", end.exit_code)
    }
}

fn not_ready_because(pod: &PodFacts, candidate: &Candidate) -> String {
    if let Some((reason, message)) = &pod.waiting {
        let end = pod.terminated.values().next().map(last_words);
        return format!("{reason}: {message} {}", end.unwrap_or_default());
    }
    format!(
        "GET {} on port {} has not answered 200",
        candidate.readiness_path, candidate.port
    )
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

fn columns(requests: &RequestFigures, energy: &EnergyFigures) -> TrialColumns {
    TrialColumns {
        energy: energy.gross_joules_per_request.and_then(|joules| {
            text::joules(
                &text::number(joules),
                DecidingFigure::Gross,
                energy.provenance,
            )
        }),
        rate: requests.requests_per_second.map(text::number),
        latency: requests.ms_per_request.map(text::number),
        errors: Some(requests.errors.to_string()),
    }
}
