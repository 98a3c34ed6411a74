//! The database of a run: created once, filled once, checked before every trial.

use kube::ResourceExt;

use super::{
    contents::{contents_of, difference},
    database::{Made, Standing, standing},
    facts::{Child, ChildKind, PodFacts, Refused},
    identity,
    nodes::Nodes,
    pass::Pass,
    resources::{ChildObject, SEED_CONTAINER, expected_rows},
    settings::Settings,
    time,
    trial::{FORBIDDEN_PATIENCE_SECONDS, database_facts, image_failure, last_words},
};
use crate::api::{Database, Role, reason};

/// A database that is not ready by then will not be. On a Pi with a cold image cache and an SD card
/// the start takes minutes.
const START_PATIENCE_SECONDS: f64 = 900.0;

/// A seed whose pod has not started by then waits for something that is not there.
const SEED_START_PATIENCE_SECONDS: f64 = 180.0;

/// What is done between two attempts.
const RESTORING: &str = "restoring the database for the next attempt";

/// How far the database is.
pub(super) enum Prepared {
    /// Filled and checked, or not asked for.
    Ready,
    /// Under way.
    Waiting {
        reason: &'static str,
        message: String,
        create: Vec<ChildObject>,
        delete: Vec<(ChildKind, String)>,
    },
    /// It will not come.
    Failed {
        reason: &'static str,
        message: String,
    },
}

impl Prepared {
    fn waiting(reason: &'static str, message: impl Into<String>, create: Vec<ChildObject>) -> Self {
        Self::Waiting {
            reason,
            message: message.into(),
            create,
            delete: Vec::new(),
        }
    }
}

/// Whether an attempt began later than that, which shows that database and seed of that time had worked.
/// After a suspension both are new.
fn has_begun_since(pass: &Pass<'_>, unix_seconds: f64) -> bool {
    pass.ledger
        .entries()
        .iter()
        .filter_map(|entry| entry.creation_timestamp())
        .any(|opened| time::unix_seconds(opened.0) > unix_seconds)
}

/// The next step towards a filled database.
pub(super) fn database(pass: &Pass<'_>, settings: &Settings, nodes: &Nodes) -> Prepared {
    let on = nodes.database();
    let Some(database) = &pass.benchmark.spec.database else {
        return Prepared::Ready;
    };
    let builder = pass.builder(settings);
    let made = match standing(pass, &builder, database, &on) {
        Standing::Made(made) => made,
        Standing::Missing { create, delete } => {
            return Prepared::Waiting {
                reason: reason::STARTING_DATABASE,
                message: "creating the database".into(),
                create,
                delete,
            };
        }
    };
    if !made.ready && has_begun_since(pass, made.created_unix_seconds) {
        // An attempt that is under way notices by itself; the next one waits.
        return Prepared::waiting(
            reason::STARTING_DATABASE,
            format!("waiting for the database to be ready again: {}", made.phase),
            Vec::new(),
        );
    }
    if !made.ready {
        let failure = pass
            .observed
            .pods
            .iter()
            .filter(|pod| pod.role == Role::Database.as_str() && pod.run == pass.run)
            .find_map(|pod| image_failure(pod, pass.now_unix_seconds));
        if let Some(message) = failure {
            return Prepared::Failed {
                reason: reason::IMAGE_PULL_FAILED,
                message: format!("database: {message}"),
            };
        }
        // A quota may have kept its pod back for any time.
        let age = pass.now_unix_seconds - made.data_since_unix_seconds;
        let refused = made.refused.as_deref();
        if let Some(refused) = refused.and_then(|it| await_leave("the database's pod", it, age)) {
            return refused;
        }
        if made.broken || age > START_PATIENCE_SECONDS {
            return Prepared::Failed {
                reason: reason::DATABASE_FAILED,
                message: format!(
                    "the database is not ready {age:.0} s after its creation: {}",
                    made.phase
                ),
            };
        }
        return Prepared::waiting(
            reason::STARTING_DATABASE,
            format!("waiting for {}", made.phase),
            Vec::new(),
        );
    }
    filled(pass, database, &made, builder.seed(database, &on))
}

/// The next step towards a database that works and is filled, with the Job that fills it.
fn filled(pass: &Pass<'_>, database: &Database, made: &Made, filler: ChildObject) -> Prepared {
    let seed = identity::seed_name(&pass.benchmark.name_any(), pass.run);
    let job = pass
        .observed
        .children
        .iter()
        .find(|child| child.kind == ChildKind::Job && child.name == seed);
    let seed_created = job.map(|child| child.created_unix_seconds);
    if seed_created.is_some_and(|created| created < made.data_since_unix_seconds) {
        // It filled a database that has gone since, or whose pod took the data with it.
        return Prepared::Waiting {
            reason: reason::SEEDING,
            message: "the database is new: filling it again".into(),
            create: Vec::new(),
            delete: vec![(ChildKind::Job, seed)],
        };
    }
    // Times are whole seconds, and a Job that has filled the database took one at least.
    if seed_created.is_some_and(|created| has_begun_since(pass, created - 1.0)) {
        // The attempt has left its traces: the next one begins with the database as it was filled.
        return Prepared::Waiting {
            reason: reason::MEASURING,
            message: RESTORING.into(),
            create: Vec::new(),
            delete: vec![(ChildKind::Job, seed)],
        };
    }
    let filling = Filling::of(pass, made.data_since_unix_seconds);
    let (Some(seed_created), Some(job)) = (seed_created, job) else {
        return Prepared::waiting(filling.reason, filling.message, vec![filler]);
    };
    let pod = pass
        .observed
        .pods
        .iter()
        .find(|pod| pod.role == Role::Seed.as_str() && pod.run == pass.run);
    let refused = job.pods_refused.as_deref();
    let age = pass.now_unix_seconds - seed_created;
    let refused = refused.filter(|_| pod.is_none());
    if let Some(refused) = refused.and_then(|it| await_leave("the seed's pod", it, age)) {
        return refused;
    }
    let Some(pod) = pod else {
        // A young Job's pod is not there yet.
        return if job.ended {
            filling.again(job, "its pod was deleted")
        } else {
            filling.waiting()
        };
    };
    let contents = filler.into_pod().and_then(|made| made.spec);
    let contents = contents.as_ref().map(contents_of).unwrap_or_default();
    if let Some(what) = difference(&pod.contents, &contents) {
        let why = format!(
            "its pod {} is not as the operator made it: {what}",
            pod.name
        );
        return filling.again(job, &why);
    }
    seeded(database, pod, pass, &filling, job)
}

/// What the Job is doing: it fills a database, or makes the one that it has filled anew for the next attempt.
struct Filling {
    reason: &'static str,
    message: &'static str,
    /// Whether the database has been filled before.
    is_restoring: bool,
    /// For how long it has been tried.
    tried_seconds: f64,
}

impl Filling {
    fn of(pass: &Pass<'_>, data_since_unix_seconds: f64) -> Self {
        let last_end = pass.ledger.last_finished();
        let last_end = last_end.map_or(0.0, time::unix_seconds);
        let tried_seconds = pass.now_unix_seconds - data_since_unix_seconds.max(last_end);
        let is_restoring = has_begun_since(pass, data_since_unix_seconds);
        let (reason, message) = if is_restoring {
            (reason::MEASURING, RESTORING)
        } else {
            (reason::SEEDING, "filling the database")
        };
        Self {
            reason,
            message,
            is_restoring,
            tried_seconds,
        }
    }

    fn waiting(&self) -> Prepared {
        Prepared::waiting(self.reason, self.message, Vec::new())
    }

    /// Another Job, for what has come between; not for ever.
    fn again(&self, job: &Child, why: &str) -> Prepared {
        if self.tried_seconds > START_PATIENCE_SECONDS {
            return Prepared::Failed {
                reason: reason::SEED_FAILED,
                message: format!(
                    "{} was not done after {:.0} s: {why}",
                    self.message, self.tried_seconds
                ),
            };
        }
        Prepared::Waiting {
            reason: self.reason,
            message: format!("{} again, because {why}", self.message),
            create: Vec::new(),
            delete: vec![(ChildKind::Job, job.name.clone())],
        }
    }

    /// The end of the run if the database was never filled: the same seed would fail again. What has worked before is
    /// tried again.
    fn failed(&self, job: &Child, why: String) -> Prepared {
        if self.is_restoring {
            return self.again(job, &why);
        }
        Prepared::Failed {
            reason: reason::SEED_FAILED,
            message: why,
        }
    }
}

/// What to do about a pod that is refused: a quota is waited for until the run's deadline, what is forbidden
/// ends the run, and anything else is given the usual time.
fn await_leave(what: &str, refused: &str, age_seconds: f64) -> Option<Prepared> {
    match Refused::by(refused) {
        Refused::Quota => Some(Prepared::waiting(
            reason::QUOTA_EXCEEDED,
            format!("waiting until a quota has room for {what}: {refused}"),
            Vec::new(),
        )),
        Refused::Forbidden if age_seconds > FORBIDDEN_PATIENCE_SECONDS => Some(Prepared::Failed {
            reason: reason::CHILD_REFUSED,
            message: format!("{what} can't be created: {refused}"),
        }),
        Refused::Forbidden | Refused::Other => None,
    }
}

fn seeded(
    database: &Database,
    pod: &PodFacts,
    pass: &Pass<'_>,
    filling: &Filling,
    job: &Child,
) -> Prepared {
    if let Some(why) = &pod.evicted {
        return filling.again(job, &format!("the pod {} was evicted: {why}", pod.name));
    }
    if let Some(message) = image_failure(pod, pass.now_unix_seconds) {
        return Prepared::Failed {
            reason: reason::IMAGE_PULL_FAILED,
            message: format!("seed: {message}"),
        };
    }
    let Some(end) = pod.terminated.get(SEED_CONTAINER) else {
        let age = pass.now_unix_seconds - pod.created_unix_seconds;
        if pod.ended || (pod.started_unix_seconds.is_none() && age > SEED_START_PATIENCE_SECONDS) {
            let why = pod.waiting.clone().map_or_else(
                || "does database.seed.configMap exist, with its key?".to_owned(),
                |(reason, message)| format!("{reason}: {message}"),
            );
            let why = format!("the seed's pod {} did not run: {why}", pod.name);
            return filling.failed(job, why);
        }
        return filling.waiting();
    };
    let expected = expected_rows(&database.seed);
    match database_facts(&end.message) {
        Some(facts) if end.exit_code == 0 && facts.rows == expected => Prepared::Ready,
        Some(facts) if end.exit_code == 0 => Prepared::Failed {
            reason: reason::SEED_FAILED,
            message: format!(
                "the seed left {} rows, and {expected} were expected",
                facts.rows
            ),
        },
        _ => filling.failed(job, format!("the seed Job failed: {}", last_words(end))),
    }
}
