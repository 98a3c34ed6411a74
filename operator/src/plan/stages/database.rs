//! The database of a run: created once, filled once, checked before every trial.

use crate::{
    api::{Database, Reason, Role},
    plan::{
        action::{ChildObject, Deletion, Plan},
        context::{BUSY_REQUEUE_SECONDS, Context, Stage},
        database::{
            of as provider_of,
            provider::{DatabaseState, Made},
        },
        facts::{
            Child, ChildKind, PodFacts, Refused,
            contents::{contents_of, difference},
            pods::{database_facts, image_failure, last_words},
        },
        ledger::Next,
        names,
        objects::{SEED_CONTAINER, expected_rows},
        placement::nodes::Nodes,
        protocol::FORBIDDEN_PATIENCE_SECONDS,
        settings::Settings,
    },
    time,
};
use kube::ResourceExt;
use std::ops::ControlFlow::{Break, Continue};

/// A database that is not ready by then will not be. On a Pi with a cold image cache and an SD card
/// the start takes minutes.
const START_PATIENCE_SECONDS: f64 = 900.0;

/// A seed whose pod has not started by then waits for something that is not there.
const SEED_START_PATIENCE_SECONDS: f64 = 180.0;

/// What is done between two attempts.
const RESTORING: &str = "restoring the database for the next attempt";

/// How far the database is.
enum Prepared {
    /// Filled and checked, or not asked for.
    Ready,
    /// Under way.
    Waiting {
        reason: Reason,
        message: String,
        create: Vec<ChildObject>,
        delete: Vec<Deletion>,
    },
    /// It will not come.
    Failed { reason: Reason, message: String },
}

impl Prepared {
    fn waiting(reason: Reason, message: impl Into<String>, create: Vec<ChildObject>) -> Self {
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
fn has_begun_since(context: &Context<'_>, unix_seconds: f64) -> bool {
    context
        .ledger
        .entries()
        .iter()
        .filter_map(|entry| entry.creation_timestamp())
        .any(|opened| time::unix_seconds(opened.0) > unix_seconds)
}

/// Stops a run whose database is not filled. An open attempt goes on: it notices by itself that the database
/// went away.
pub(in crate::plan) fn is_ready(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
) -> Stage<()> {
    match database(context, settings, nodes) {
        Prepared::Ready => Continue(()),
        Prepared::Waiting { .. } if matches!(context.ledger.next(settings), Next::Open(_)) => {
            Continue(())
        }
        Prepared::Waiting {
            reason,
            message,
            create,
            delete,
        } => Break(Plan {
            create,
            delete,
            ..context.running(Some(nodes), reason, &message, BUSY_REQUEUE_SECONDS)
        }),
        Prepared::Failed { reason, message } => {
            Break(context.fail(settings, Some(nodes), reason, &message))
        }
    }
}

/// The next step towards a filled database.
fn database(context: &Context<'_>, settings: &Settings, nodes: &Nodes) -> Prepared {
    let on = nodes.database();
    let Some(database) = &context.benchmark.spec.database else {
        return Prepared::Ready;
    };
    let builder = context.builder(settings);
    let made = match provider_of(database).state(context.observed, &builder, database, &on) {
        DatabaseState::Made(made) => made,
        DatabaseState::Missing { create, delete } => {
            return Prepared::Waiting {
                reason: Reason::StartingDatabase,
                message: "creating the database".into(),
                create,
                delete,
            };
        }
    };
    if !made.ready && has_begun_since(context, made.created_unix_seconds) {
        // An attempt that is under way notices by itself; the next one waits.
        return Prepared::waiting(
            Reason::StartingDatabase,
            format!("waiting for the database to be ready again: {}", made.phase),
            Vec::new(),
        );
    }
    if !made.ready {
        let failure = context
            .observed
            .pods
            .iter()
            .filter(|pod| pod.role == Role::Database.as_str() && pod.run == context.run)
            .find_map(|pod| image_failure(pod, context.now_unix_seconds));
        if let Some(message) = failure {
            return Prepared::Failed {
                reason: Reason::ImagePullFailed,
                message: format!("database: {message}"),
            };
        }
        // A quota may have kept its pod back for any time.
        let age = context.now_unix_seconds - made.data_since_unix_seconds;
        let refused = made.refused.as_deref();
        if let Some(refused) = refused.and_then(|it| await_leave("the database's pod", it, age)) {
            return refused;
        }
        if made.broken || age > START_PATIENCE_SECONDS {
            return Prepared::Failed {
                reason: Reason::DatabaseFailed,
                message: format!(
                    "the database is not ready {age:.0} s after its creation: {}",
                    made.phase
                ),
            };
        }
        return Prepared::waiting(
            Reason::StartingDatabase,
            format!("waiting for {}", made.phase),
            Vec::new(),
        );
    }
    filled(context, database, &made, builder.seed(database, &on))
}

/// The next step towards a database that works and is filled, with the Job that fills it.
fn filled(
    context: &Context<'_>,
    database: &Database,
    made: &Made,
    filler: ChildObject,
) -> Prepared {
    let seed = names::seed_name(&context.benchmark.name_any(), context.run);
    let job = context
        .observed
        .children
        .iter()
        .find(|child| child.kind == ChildKind::Job && child.name == seed);
    if let Some(job) = job
        && job.created_unix_seconds < made.data_since_unix_seconds
    {
        // It filled a database that has gone since, or whose pod took the data with it.
        return Prepared::Waiting {
            reason: Reason::Seeding,
            message: "the database is new: filling it again".into(),
            create: Vec::new(),
            delete: vec![Deletion::of(job)],
        };
    }
    // Times are whole seconds, and a Job that has filled the database took one at least.
    if let Some(job) = job
        && has_begun_since(context, job.created_unix_seconds - 1.0)
    {
        // The attempt has left its traces: the next one begins with the database as it was filled.
        return Prepared::Waiting {
            reason: Reason::Measuring,
            message: RESTORING.into(),
            create: Vec::new(),
            delete: vec![Deletion::of(job)],
        };
    }
    let filling = Filling::of(context, made.data_since_unix_seconds);
    let Some(job) = job else {
        return Prepared::waiting(filling.reason, filling.message, vec![filler]);
    };
    let pod = context
        .observed
        .pods
        .iter()
        .find(|pod| pod.role == Role::Seed.as_str() && pod.run == context.run);
    let refused = job.pods_refused.as_deref();
    let age = context.now_unix_seconds - job.created_unix_seconds;
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
    seeded(database, pod, context, &filling, job)
}

/// What the Job is doing: it fills a database, or makes the one that it has filled anew for the next attempt.
struct Filling {
    reason: Reason,
    message: &'static str,
    /// Whether the database has been filled before.
    is_restoring: bool,
    /// For how long it has been tried.
    tried_seconds: f64,
}

impl Filling {
    fn of(context: &Context<'_>, data_since_unix_seconds: f64) -> Self {
        let last_end = context.ledger.last_finished();
        let last_end = last_end.map_or(0.0, time::unix_seconds);
        let tried_seconds = context.now_unix_seconds - data_since_unix_seconds.max(last_end);
        let is_restoring = has_begun_since(context, data_since_unix_seconds);
        let (reason, message) = if is_restoring {
            (Reason::Measuring, RESTORING)
        } else {
            (Reason::Seeding, "filling the database")
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
                reason: Reason::SeedFailed,
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
            delete: vec![Deletion::of(job)],
        }
    }

    /// The end of the run if the database was never filled: the same seed would fail again. What has worked before is
    /// tried again.
    fn failed(&self, job: &Child, why: String) -> Prepared {
        if self.is_restoring {
            return self.again(job, &why);
        }
        Prepared::Failed {
            reason: Reason::SeedFailed,
            message: why,
        }
    }
}

/// What to do about a pod that is refused: a quota is waited for until the run's deadline, what is forbidden
/// ends the run, and anything else is given the usual time.
fn await_leave(what: &str, refused: &str, age_seconds: f64) -> Option<Prepared> {
    match Refused::by(refused) {
        Refused::Quota => Some(Prepared::waiting(
            Reason::QuotaExceeded,
            format!("waiting until a quota has room for {what}: {refused}"),
            Vec::new(),
        )),
        Refused::Forbidden if age_seconds > FORBIDDEN_PATIENCE_SECONDS => Some(Prepared::Failed {
            reason: Reason::ChildRefused,
            message: format!("{what} can't be created: {refused}"),
        }),
        Refused::Forbidden | Refused::Other => None,
    }
}

fn seeded(
    database: &Database,
    pod: &PodFacts,
    context: &Context<'_>,
    filling: &Filling,
    job: &Child,
) -> Prepared {
    if let Some(why) = &pod.evicted {
        return filling.again(job, &format!("the pod {} was evicted: {why}", pod.name));
    }
    if let Some(message) = image_failure(pod, context.now_unix_seconds) {
        return Prepared::Failed {
            reason: Reason::ImagePullFailed,
            message: format!("seed: {message}"),
        };
    }
    let Some(end) = pod.terminated.get(SEED_CONTAINER) else {
        let age = context.now_unix_seconds - pod.created_unix_seconds;
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
            reason: Reason::SeedFailed,
            message: format!(
                "the seed left {} rows, and {expected} were expected",
                facts.rows
            ),
        },
        _ => filling.failed(job, format!("the seed Job failed: {}", last_words(end))),
    }
}
