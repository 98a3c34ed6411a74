//! An attempt under load: checks that its pods are unchanged, and waits for the end of the injector.

use frugality_measure::{energy::Window, fortio::Amount};

use super::step::{OpenAttempt, Step, first_reading, last_reading, uids};
use crate::{
    api::{FrugalityTrialStatus, Reason, Role},
    plan::{
        facts::{Child, pods::image_failure},
        objects::INJECTOR_CONTAINER,
        placement::nodes,
        protocol::LONGEST_EDGE_SECONDS,
    },
};

/// Time limit for the start of the injector's pod, in seconds.
const INJECTOR_TIMEOUT_SECONDS: f64 = 120.0;

impl OpenAttempt<'_> {
    pub(super) fn under_load(&self, status: FrugalityTrialStatus, idle_before: Window) -> Step {
        let covered = self
            .session()
            .and_then(first_reading)
            .is_some_and(|first| first <= idle_before.start_unix_seconds);
        if !covered {
            // The reader starts when the attempt is opened, long before the baseline.
            let began_late = self.session().is_none_or(|session| {
                let began = session.started_unix_seconds - self.observed.operator_ahead_seconds;
                began > idle_before.start_unix_seconds
            });
            let why = if began_late {
                "the operator was restarted after the attempt had begun, or did not reach the API server for a quarter of an hour"
            } else {
                "the meter gave none until then"
            };
            let message = format!("the readings do not reach back to the idle baseline: {why}");
            return self.void(status, Reason::ReadingsInterrupted, &message);
        }
        if let Some(step) = self.replaced(&status) {
            return step;
        }
        if let Some((reason, message)) = self.diverted(&status, idle_before) {
            return self.void(status, reason, &message);
        }
        let begin = self.on_nodes_clock(idle_before.start_unix_seconds);
        let restarted = self
            .pods(Role::Database)
            .into_iter()
            // A container that can't start again has no start.
            .find(|pod| pod.started_unix_seconds.is_none_or(|at| at > begin));
        if let Some(pod) = restarted {
            let message = format!(
                "a container of the database's pod {} was restarted",
                pod.name
            );
            return self.void(status, Reason::PodReplaced, &message);
        }
        let Some(job) = self.job(self.name()) else {
            if self.session().is_some_and(|session| session.injector_seen) {
                return self.void(
                    status,
                    Reason::InjectorDeleted,
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
            if let Some(step) = refused.and_then(|it| self.after_refusal(&status, it, age_seconds))
            {
                return step;
            }
            return self.await_injector(status, job, "waiting for the injector's pod");
        };
        if let Some(failure) = image_failure(pod, self.now_unix_seconds) {
            return self.fail(status, Reason::ImagePullFailed, &failure);
        }
        match pod.terminated.get(INJECTOR_CONTAINER) {
            None if pod.deleting || pod.ended => self.void(
                status,
                Reason::InjectorDeleted,
                "the injector's pod ended without a result",
            ),
            None => {
                let is_waiting = pod.started_unix_seconds.is_none();
                let now = self.session().and_then(last_reading).filter(|_| is_waiting);
                now.and_then(|now| self.after_old_baseline(&status, idle_before, now))
                    .unwrap_or_else(|| self.await_injector(status, job, "load is on"))
            }
            Some(end) => self.after_load(status, idle_before, pod, end),
        }
    }

    /// A measured pod that replaced the pod of the idle baseline.
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
                return Some(self.void(status.clone(), Reason::PodReplaced, &message));
            }
        }
        None
    }

    fn await_injector(&self, status: FrugalityTrialStatus, job: &Child, doing: &str) -> Step {
        let settings = self.builder.settings;
        let load = match settings.amount {
            Amount::DurationSeconds(seconds) => seconds,
            // The duration of a number of requests is unknown, so the run's deadline is the limit.
            Amount::Requests(_) => settings.deadline_seconds,
        };
        // At a rate, each of the three loads sends whole rounds of the connections, and at least two requests.
        let rate = self.trial.spec.rate_per_second.or(settings.rate);
        let round = rate.map_or(0.0, |rate| f64::from(self.point.connections.max(2)) / rate);
        let longest = INJECTOR_TIMEOUT_SECONDS
            + settings.warm_up_seconds
            + load
            + LONGEST_EDGE_SECONDS
            + 3.0 * (settings.timeout_seconds + round);
        // The time starts here because a quota may have delayed the pod for any time.
        let pods = self.pods(Role::Injector);
        let began = pods.first().map_or(job.created_unix_seconds, |pod| {
            pod.created_unix_seconds.max(job.created_unix_seconds)
        });
        if self.now_unix_seconds - began > longest {
            let mut message = format!("the injector has not ended {longest} s after its start");
            if !self.injector.schedulable {
                message = format!("{message}; {}", nodes::unschedulable_message(self.injector));
            }
            return self.void(status, Reason::InjectorFailed, &message);
        }
        Step::wait(doing, 2.0)
    }
}

fn words(uids: &[String]) -> String {
    match uids {
        [] => "none".into(),
        uids => uids.join(", "),
    }
}
