//! The database of a run: created once, filled once, checked before every trial.

use kube::ResourceExt;

use super::{
    database::{Standing, standing},
    facts::{ChildKind, PodFacts, Refused},
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
        let age = pass.now_unix_seconds - made.created_unix_seconds;
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
    let (reason, message) = filling(pass, made.data_since_unix_seconds);
    let Some(seed_created) = seed_created else {
        return Prepared::waiting(reason, message, vec![builder.seed(database, &on)]);
    };
    let pod = pass
        .observed
        .pods
        .iter()
        .find(|pod| pod.role == Role::Seed.as_str() && pod.run == pass.run);
    let refused = job.and_then(|job| job.pods_refused.as_deref());
    let age = pass.now_unix_seconds - seed_created;
    let refused = refused.filter(|_| pod.is_none());
    if let Some(refused) = refused.and_then(|it| await_leave("the seed's pod", it, age)) {
        return refused;
    }
    seeded(database, seed_created, pod, pass, (reason, message))
}

/// What the Job is doing: it fills a database, or makes the one that it has filled anew for the next attempt.
fn filling(pass: &Pass<'_>, data_since_unix_seconds: f64) -> (&'static str, &'static str) {
    if has_begun_since(pass, data_since_unix_seconds) {
        (reason::MEASURING, RESTORING)
    } else {
        (reason::SEEDING, "filling the database")
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
    seed_created: f64,
    pod: Option<&PodFacts>,
    pass: &Pass<'_>,
    (reason, message): (&'static str, &'static str),
) -> Prepared {
    let waiting = || Prepared::waiting(reason, message, Vec::new());
    let Some(pod) = pod else {
        // Before a trial counts, rows and digest are read again, so a seed whose pod was since
        // collected needs no second proof. A young Job's pod is not there yet.
        return if has_begun_since(pass, seed_created) {
            Prepared::Ready
        } else {
            waiting()
        };
    };
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
            return Prepared::Failed {
                reason: reason::SEED_FAILED,
                message: format!("the seed's pod {} did not run: {why}", pod.name),
            };
        }
        return waiting();
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
        _ => Prepared::Failed {
            reason: reason::SEED_FAILED,
            message: format!("the seed Job failed: {}", last_words(end)),
        },
    }
}
