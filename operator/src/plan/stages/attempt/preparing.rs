//! The check of an attempt's database, between the start of its pods and the idle baseline.

use super::{
    before_load::POLL_SECONDS,
    step::{OpenAttempt, Step},
};
use crate::{
    api::{DatabaseFacts, FrugalityTrialStatus, Reason, Role},
    plan::{
        context::SOON_SECONDS,
        facts::pods::{database_facts, describe_end, image_failure},
        objects::PREPARE_CONTAINER,
        protocol::LONGEST_EDGE_SECONDS,
    },
};

/// Time limit for the check of the database, in seconds. The check itself waits a minute for the database's answer.
const PREPARE_TIMEOUT_SECONDS: f64 = 120.0;

/// The check of the database before the load.
pub(super) struct Prepared {
    /// Rows and digest of the seeded table.
    pub(super) database: Option<DatabaseFacts>,
    /// When the operator saw its end, by the cluster's clock.
    pub(super) unix_seconds: f64,
}

impl OpenAttempt<'_> {
    /// Wait from the end of the check to the idle baseline. The check is a small load on the database. Its pod ends on the
    /// injector's node. If that is also the measured node, the removal of the pod must be over too.
    pub(super) fn settle_after_check_seconds(&self) -> f64 {
        if self.injector.name == self.measured.name {
            LONGEST_EDGE_SECONDS
        } else {
            self.settle_seconds()
        }
    }

    /// The check of the database before the load. `None` without a database. The error is the step until the check is
    /// done.
    pub(super) fn prepared(
        &self,
        status: &FrugalityTrialStatus,
    ) -> Result<Option<Prepared>, Box<Step>> {
        let Some(made) = self.prepare() else {
            return Ok(None);
        };
        let waiting = || Step::wait("checking the database", POLL_SECONDS);
        let Some(job) = self.job(&made.name()) else {
            let mut step = waiting();
            step.create = vec![made];
            return Err(Box::new(step));
        };
        let void = |why: &str| {
            let message = format!("the database could not be prepared: {why}");
            Box::new(self.void(status.clone(), Reason::InjectorFailed, &message))
        };
        let pods = self.pods(Role::Prepare);
        let Some(pod) = pods.first() else {
            let age_seconds = self.now_unix_seconds - job.created_unix_seconds;
            let refused = job.pods_refused.as_deref();
            let step = refused.and_then(|it| self.after_refusal(status, it, age_seconds));
            return Err(match step {
                Some(step) => Box::new(step),
                None if job.ended => void("its pod was deleted"),
                None if age_seconds > PREPARE_TIMEOUT_SECONDS => void("it got no pod"),
                None => Box::new(waiting()),
            });
        };
        if let Some(failure) = image_failure(pod, self.now_unix_seconds) {
            return Err(Box::new(self.fail(
                status.clone(),
                Reason::ImagePullFailed,
                &failure,
            )));
        }
        match pod.terminated.get(PREPARE_CONTAINER) {
            Some(end) if end.exit_code == 0 => {
                let session = self.session();
                match session.and_then(|session| session.check_ended_unix_seconds) {
                    Some(at) => Ok(Some(Prepared {
                        database: database_facts(&end.message),
                        unix_seconds: at - self.observed.operator_ahead_seconds,
                    })),
                    // The reader learns it in this pass.
                    None => Err(Box::new(Step {
                        again_seconds: SOON_SECONDS,
                        ..waiting()
                    })),
                }
            }
            Some(end) => Err(void(&describe_end(end))),
            None if pod.deleting || pod.ended => Err(void("its pod ended without a result")),
            None if self.now_unix_seconds - pod.created_unix_seconds > PREPARE_TIMEOUT_SECONDS => {
                let why = format!("it did not end within {PREPARE_TIMEOUT_SECONDS} s");
                Err(void(&why))
            }
            None => Err(Box::new(waiting())),
        }
    }
}
