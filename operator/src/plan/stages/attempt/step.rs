//! One attempt, from new pods to its record in the ledger.
//!
//! The stage of an attempt follows from existing data: the server's pod, the idle baseline in the ledger entry, the
//! injector's Job and its termination message, and the figures in the ledger entry. The operator keeps readings in memory only. After a restart it has
//! no earlier readings, and the attempt is void.

use frugality_measure::reading::Reading;

use crate::{
    api::{Candidate, FrugalityTrial, FrugalityTrialStatus, Outcome, Reason, Role},
    plan::{
        action::{ChildObject, Deletion},
        facts::{AfterRefusal, Child, ChildKind, NodeFacts, Observed, PodFacts, Session},
        ledger::record::ended,
        objects::{Builder, PointLoad},
        placement::nodes,
        protocol,
        settings::{Point, pods::pods_of},
    },
    text::authority,
};

/// How long the operator waits for a meter without new readings, in seconds.
pub(super) const READING_TIMEOUT_SECONDS: f64 = 15.0;

/// A meter's counters may be this much older than a scrape, in seconds. A node whose clock is behind by more has another
/// time.
const LONGEST_LAG_SECONDS: f64 = 10.0;

/// What to do for the open attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Objects to create.
    pub create: Vec<ChildObject>,
    /// Objects to delete.
    pub delete: Vec<Deletion>,
    /// New record of the attempt.
    pub record: Option<FrugalityTrialStatus>,
    /// What the operator is doing, as text for people.
    pub doing: String,
    /// Reason code for the conditions, if the attempt waits for a change from outside.
    pub waits_because: Option<Reason>,
    /// Time until the next pass, in seconds.
    pub again_seconds: f64,
}

impl Step {
    pub(super) fn wait(doing: impl Into<String>, again_seconds: f64) -> Self {
        Self {
            doing: doing.into(),
            again_seconds: again_seconds.clamp(0.2, 5.0),
            ..Self::default()
        }
    }

    pub(super) fn record(record: FrugalityTrialStatus) -> Self {
        Self {
            doing: "recording the attempt".into(),
            again_seconds: 0.2,
            record: Some(record),
            ..Self::default()
        }
    }
}

/// The input of an attempt's next step.
#[derive(Clone, Copy, Debug)]
pub struct OpenAttempt<'a> {
    /// Its entry in the ledger.
    pub trial: &'a FrugalityTrial,
    /// Its candidate.
    pub candidate: &'a Candidate,
    /// Its point.
    pub point: &'a Point,
    /// Builds its objects.
    pub builder: Builder<'a>,
    /// Measured node.
    pub measured: &'a NodeFacts,
    /// Injector's node.
    pub injector: &'a NodeFacts,
    /// Everything that the pass read.
    pub observed: &'a Observed,
    /// The cluster's time, in Unix seconds.
    pub now_unix_seconds: f64,
}

impl OpenAttempt<'_> {
    /// The next step.
    #[must_use]
    pub fn step(&self) -> Step {
        let status = self.trial.status.clone().unwrap_or_default();
        if status.energy.is_some() {
            return self.after_figures(status);
        }
        if let Some(message) = self.evicted(&status) {
            return self.void(status, Reason::PodEvicted, &message);
        }
        match status.idle_before {
            None => self.before_load(status),
            Some(idle_before) => self.under_load(status, idle_before),
        }
    }

    /// The attempt's pod that the cluster evicted, and why. An evicted pod of the database may also be left from
    /// before the attempt.
    pub(super) fn evicted(&self, status: &FrugalityTrialStatus) -> Option<String> {
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

    pub(super) fn name(&self) -> &str {
        self.trial.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.observed.sessions.get(self.name())
    }

    /// The time of the operator's clock, which sessions use.
    pub(super) fn operator_unix_seconds(&self) -> f64 {
        self.now_unix_seconds + self.observed.operator_ahead_seconds
    }

    /// How far the readings' times are ahead of the cluster's time. A meter reports its node's time. Readings of a
    /// meter that reports no time have the operator's time.
    pub(super) fn readings_ahead_seconds(&self) -> f64 {
        let latest = self.session().and_then(|session| session.readings.last());
        if latest.is_some_and(|reading| reading.meter_unix_seconds.is_none()) {
            self.observed.operator_ahead_seconds
        } else {
            0.0
        }
    }

    /// A time of the readings by the measured node's clock, by which its kubelet reports the times of pods.
    pub(super) fn on_nodes_clock(&self, unix_seconds: f64) -> f64 {
        unix_seconds - self.readings_ahead_seconds()
    }

    /// How far the readings' times are ahead of the cluster's clock, if their node has another time. A small lag is the
    /// meter's: its counters are older than the scrape.
    pub(super) fn readings_ahead_of_cluster_seconds(&self) -> f64 {
        let latest = self.session().and_then(|session| session.readings.last());
        let ahead = latest.map_or(0.0, |reading| {
            let scraped = reading.scraped_at_unix_seconds - self.observed.operator_ahead_seconds;
            reading.at_unix_seconds() - scraped
        });
        if (-LONGEST_LAG_SECONDS..=0.0).contains(&ahead) {
            0.0
        } else {
            ahead
        }
    }

    /// Time until the reader has a reading of this time or of a later one, in seconds, if the meter answers.
    pub(super) fn seconds_until_read(&self, unix_seconds: f64) -> f64 {
        let interval_seconds = protocol::SCRAPE_INTERVAL.as_secs_f64();
        let newest = self.session().and_then(newest);
        newest.map_or(interval_seconds, |newest| {
            let missing_seconds = unix_seconds - newest.at_unix_seconds();
            let scrapes = (missing_seconds / interval_seconds).ceil();
            let read = newest.scraped_at_unix_seconds + scrapes * interval_seconds;
            read - self.operator_unix_seconds()
        })
    }

    /// How long the meter has given no new reading, by the operator's clock only.
    pub(super) fn silent_seconds(&self) -> f64 {
        let newest = self.session().and_then(newest);
        newest.map_or(0.0, |reading| {
            self.operator_unix_seconds() - reading.scraped_at_unix_seconds
        })
    }

    /// The attempt's Job of this name.
    pub(super) fn job(&self, name: &str) -> Option<&Child> {
        self.children()
            .find(|child| child.kind == ChildKind::Job && child.name == name)
    }

    /// Objects that the attempt has made.
    pub(super) fn children(&self) -> impl Iterator<Item = &Child> {
        let of_attempt = |child: &&Child| child.trial.as_deref() == Some(self.name());
        self.observed.children.iter().filter(of_attempt)
    }

    /// The attempt's pods, or for the database the run's pods, that are not being deleted.
    pub(super) fn pods(&self, role: Role) -> Vec<PodFacts> {
        self.observed
            .pods
            .iter()
            .filter(|pod| pod.role == role.as_str() && pod.run == self.trial.spec.run)
            .filter(|pod| matches!(role, Role::Injector | Role::Prepare) || !pod.deleting)
            // An evicted pod still exists next to its successor.
            .filter(|pod| role != Role::Database || !pod.ended)
            .filter(|pod| role == Role::Database || pod.trial.as_deref() == Some(self.name()))
            .cloned()
            .collect()
    }

    /// Why a controller can't create pods for the attempt's objects of this kind.
    pub(super) fn pods_refused(&self, kind: ChildKind) -> Option<&str> {
        let mut children = self.children().filter(|child| child.kind == kind);
        children.find_map(|child| child.pods_refused.as_deref())
    }

    /// The step after pods were refused.
    pub(super) fn after_refusal(
        &self,
        status: &FrugalityTrialStatus,
        refused: &str,
        age_seconds: f64,
    ) -> Option<Step> {
        Some(match AfterRefusal::of("the pods", refused, age_seconds)? {
            AfterRefusal::Wait(message) => Step {
                waits_because: Some(Reason::QuotaExceeded),
                ..Step::wait(message, 2.0)
            },
            AfterRefusal::End(message) => self.fail(status.clone(), Reason::ChildRefused, &message),
        })
    }

    /// The Job that checks the database, if there is one.
    pub(super) fn prepare(&self) -> Option<ChildObject> {
        let database = self.builder.benchmark.spec.database.as_ref()?;
        let on = nodes::selector(self.injector);
        Some(self.builder.prepare(database, self.name(), &on))
    }

    /// Wait after the load, as the attempt's meter needs it.
    pub(super) fn settle_seconds(&self) -> f64 {
        protocol::settle_seconds(self.own_interval_seconds())
    }

    /// The interval of a meter that samples its sensor itself.
    fn own_interval_seconds(&self) -> Option<f64> {
        let latest = self.session()?.readings.last()?;
        // A meter that asks another instrument reports the age of that instrument's readings.
        let samples_itself = latest.source_age_seconds.is_none();
        latest.interval_seconds.filter(|_| samples_itself)
    }

    pub(super) fn injector(&self) -> ChildObject {
        // Readings of a meter that reports no time have the operator's time, so the injector compares its clock
        // with the operator's.
        let latest = self.session().and_then(|session| session.readings.last());
        let config = self.builder.config;
        let meter_reports_time = latest.is_some_and(|reading| reading.meter_unix_seconds.is_some());
        let clock_url = if meter_reports_time {
            let ip = self.measured.meter_ip.as_ref();
            ip.map(|ip| format!("http://{}/time", authority(ip, config.meter_port)))
        } else {
            config.time_url.clone()
        };
        self.builder.injector(
            self.candidate,
            self.name(),
            PointLoad {
                point: self.point,
                level_rate: self.trial.spec.rate_per_second,
                tail_seconds: protocol::tail_seconds(self.own_interval_seconds()),
            },
            &nodes::selector(self.injector),
            clock_url.as_deref(),
        )
    }

    pub(super) fn expected_pods(&self) -> i32 {
        pods_of(self.candidate, self.point.replicas)
    }

    pub(super) fn void(
        &self,
        status: FrugalityTrialStatus,
        reason: impl AsRef<str>,
        message: &str,
    ) -> Step {
        self.end(status, Outcome::Void, reason, message)
    }

    /// Void because readings are missing. If the meter answered without power metrics, the reason says so.
    pub(super) fn without_readings(
        &self,
        status: FrugalityTrialStatus,
        reason: impl AsRef<str>,
        message: &str,
    ) -> Step {
        match self
            .session()
            .and_then(|session| session.without_power.as_ref())
        {
            Some(missing) => {
                let message =
                    format!("the meter answers without power metrics ({missing}); {message}");
                self.void(status, Reason::NoPowerMetrics, &message)
            }
            None => self.void(status, reason, message),
        }
    }

    pub(super) fn fail(
        &self,
        status: FrugalityTrialStatus,
        reason: impl AsRef<str>,
        message: &str,
    ) -> Step {
        let message = format!("candidate {}: {message}", self.trial.spec.candidate);
        self.end(status, Outcome::Failed, reason, &message)
    }

    pub(super) fn end(
        &self,
        status: FrugalityTrialStatus,
        outcome: Outcome,
        reason: impl AsRef<str>,
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

/// UIDs of pods, sorted.
pub(super) fn uids(pods: &[PodFacts]) -> Vec<String> {
    let mut uids: Vec<_> = pods.iter().map(|pod| pod.uid.clone()).collect();
    uids.sort();
    uids
}

/// Time of the first reading, in Unix seconds of the readings' clock.
pub(super) fn first_reading(session: &Session) -> Option<f64> {
    session.readings.first().map(Reading::at_unix_seconds)
}

/// Time of the newest reading, in Unix seconds of the readings' clock.
pub(super) fn last_reading(session: &Session) -> Option<f64> {
    newest(session).map(Reading::at_unix_seconds)
}

/// The newest reading: the first of the scrapes that showed it. A repeated reading does not reach the end of a window.
fn newest(session: &Session) -> Option<&Reading> {
    let mut scrapes = session.readings.iter().rev();
    let last = scrapes.next()?;
    let repeated = scrapes.take_while(|earlier| last.repeats(earlier)).last();
    repeated.or(Some(last))
}
