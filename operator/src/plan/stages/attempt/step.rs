//! One attempt, from fresh pods to its entry in the ledger.
//!
//! An attempt's stages follow from what exists: the server's pod, the idle baseline in the ledger
//! entry, the injector's Job and its last words. Readings live in the operator's memory only; an
//! operator that was restarted has none from before, and the attempt is void.

use frugality_measure::reading::Reading;

use crate::{
    api::{Candidate, FrugalityTrial, FrugalityTrialStatus, Outcome, Reason, Role},
    plan::{
        action::ChildObject,
        facts::{Child, ChildKind, NodeFacts, Observed, PodFacts, Refused, Session},
        ledger::record::ended,
        objects::Builder,
        placement::nodes,
        protocol::FORBIDDEN_PATIENCE_SECONDS,
        settings::{Point, pods::pods_of},
    },
    text::authority,
};

/// A meter that has shown nothing new for this long is not waited for.
pub(super) const READING_PATIENCE_SECONDS: f64 = 15.0;

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
    pub waits_because: Option<Reason>,
    /// When to look again, in seconds.
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
            return self.void(status, Reason::PodEvicted, &message);
        }
        match status.idle_before {
            None => self.before_load(status),
            Some(idle_before) => self.under_load(status, idle_before),
        }
    }

    /// Which pod of the attempt the cluster has evicted, and why. An evicted database may be there still from
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

    /// The time by the operator's own clock, which sessions have.
    pub(super) fn operator_unix_seconds(&self) -> f64 {
        self.now_unix_seconds + self.observed.operator_ahead_seconds
    }

    /// How far the readings' times are ahead of the cluster's. A meter tells its node's time; where it tells none,
    /// readings have the operator's.
    pub(super) fn readings_ahead_seconds(&self) -> f64 {
        let latest = self.session().and_then(|session| session.readings.last());
        if latest.is_some_and(|reading| reading.meter_unix_seconds.is_none()) {
            self.observed.operator_ahead_seconds
        } else {
            0.0
        }
    }

    /// For how long the meter has shown nothing new, by the operator's clock alone.
    pub(super) fn silent_seconds(&self) -> f64 {
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

    pub(super) fn child(&self, kind: ChildKind) -> Option<&Child> {
        self.children().find(|child| child.kind == kind)
    }

    /// What the attempt has made.
    pub(super) fn children(&self) -> impl Iterator<Item = &Child> {
        let of_attempt = |child: &&Child| child.trial.as_deref() == Some(self.name());
        self.observed.children.iter().filter(of_attempt)
    }

    /// The attempt's pods (of the database: the run's) that are not on their way out.
    pub(super) fn pods(&self, role: Role) -> Vec<PodFacts> {
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

    /// Why a controller can't create the pods of the attempt's objects of this kind.
    pub(super) fn pods_refused(&self, kind: ChildKind) -> Option<&str> {
        let mut children = self.children().filter(|child| child.kind == kind);
        children.find_map(|child| child.pods_refused.as_deref())
    }

    /// What to do about pods that are refused: a quota is waited for until the run's deadline, what is
    /// forbidden ends the run, and anything else is given the usual time.
    pub(super) fn await_leave(
        &self,
        status: &FrugalityTrialStatus,
        refused: &str,
        age_seconds: f64,
    ) -> Option<Step> {
        match Refused::by(refused) {
            Refused::Quota => Some(Step {
                waits_because: Some(Reason::QuotaExceeded),
                ..Step::wait(
                    format!("waiting until a quota has room for the pods: {refused}"),
                    2.0,
                )
            }),
            Refused::Forbidden if age_seconds > FORBIDDEN_PATIENCE_SECONDS => {
                let message = format!("its pods can't be created: {refused}");
                Some(self.fail(status.clone(), Reason::ChildRefused, &message))
            }
            Refused::Forbidden | Refused::Other => None,
        }
    }

    pub(super) fn injector(&self) -> ChildObject {
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

    /// Void for want of readings: by its own name where the meter answered all the same.
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
                let message = format!("{missing}, though it answers; {message}");
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
    session.readings.last().map(Reading::at_unix_seconds)
}
