//! The database of a run: the operator creates and fills it once, and checks it before every trial.

use crate::{
    api::{Database, FrugalityTrial, Reason, Role},
    plan::{
        action::{ChildObject, Deletion, Plan},
        context::{BUSY_REQUEUE_SECONDS, Context, RESTORING, Stage},
        database::{
            of as provider_of,
            provider::{DatabaseState, Made},
        },
        facts::{
            AfterRefusal, Child, PodFacts,
            contents::{contents_of, difference},
            pods::{database_facts, describe_end, image_failure},
        },
        ledger::Next,
        objects::{SEED_CONTAINER, expected_rows},
        placement::nodes::Nodes,
        settings::Settings,
    },
    time,
};
use kube::ResourceExt;
use std::ops::ControlFlow::{Break, Continue};

/// Time limit for the database to become ready, in seconds. On a Pi with an SD card and without a cached image, the
/// start takes minutes.
const START_TIMEOUT_SECONDS: f64 = 900.0;

/// Time limit for the start of the seed's pod, in seconds. A pod that waits longer waits for an object that does
/// not exist.
const SEED_START_TIMEOUT_SECONDS: f64 = 180.0;

/// State of the database.
enum Prepared {
    /// The database is filled and checked, or the spec asks for none.
    Ready,
    /// The database is not ready yet.
    Waiting {
        reason: Reason,
        message: String,
        create: Vec<ChildObject>,
        delete: Vec<Deletion>,
    },
    /// The database can't become ready.
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

/// Stops a run whose database is not filled. An open attempt continues, because it detects the loss of the database
/// itself. With its figures it ends even if the restore failed, and the time limit of the restore begins then.
pub(in crate::plan) fn is_ready(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
) -> Stage<()> {
    let next = context.ledger.next(settings);
    let has_figures = |trial: &FrugalityTrial| {
        let status = trial.status.as_ref();
        status.is_some_and(|status| status.energy.is_some())
    };
    match database(context, settings, nodes) {
        Prepared::Ready => Continue(()),
        Prepared::Waiting { .. } if matches!(next, Next::Open(_)) => Continue(()),
        Prepared::Failed { .. } if matches!(next, Next::Open(trial) if has_figures(trial)) => {
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

/// The next step to a filled database.
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
    if !made.ready && context.has_attempt_since(made.created_unix_seconds) {
        // An open attempt detects this itself, and the next attempt waits.
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
        // The age starts here because a quota may have delayed the pod for any time.
        let age = context.now_unix_seconds - made.data_since_unix_seconds;
        let refused = made.refused.as_deref();
        if let Some(refused) = refused.and_then(|it| after_refusal("the database's pod", it, age)) {
            return refused;
        }
        if made.broken || age > START_TIMEOUT_SECONDS {
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
    // Without an attempt since, the database is new: the Job fills it, and restores nothing.
    let after = context.ledger.last_opened();
    let after = after.filter(|_| context.has_attempt_since(made.data_since_unix_seconds));
    let filler = builder.seed(database, &on, after);
    filled(context, database, &made, filler)
}

/// The next step to a filled database, if the database is ready. `filler` is the Job that fills it.
fn filled(
    context: &Context<'_>,
    database: &Database,
    made: &Made,
    filler: ChildObject,
) -> Prepared {
    let benchmark = context.benchmark.name_any();
    let mut children = context.observed.children.iter();
    let job = children.find(|child| child.is_seed_job(&benchmark, context.run));
    if let Some(job) = job
        && job.created_unix_seconds < made.data_since_unix_seconds
    {
        // The Job filled a database that was deleted since, or whose pod was deleted together with the data.
        return Prepared::Waiting {
            reason: Reason::Seeding,
            message: "the database is new: filling it again".into(),
            create: Vec::new(),
            delete: vec![Deletion::of(job)],
        };
    }
    // Creation times are whole seconds, and a Job that filled the database took at least one second.
    if let Some(job) = job
        && context.has_attempt_since(job.created_unix_seconds - 1.0)
    {
        // The attempt may have changed the database. The next attempt begins with the database as the seed filled
        // it.
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
    if let Some(refused) = refused.and_then(|it| after_refusal("the seed's pod", it, age)) {
        return refused;
    }
    let Some(pod) = pod else {
        // The Job is new, and its pod does not exist yet.
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

/// What the Job does: it fills a new database, or restores a filled database for the next attempt.
struct Filling {
    reason: Reason,
    message: &'static str,
    /// Whether the Job restores a filled database.
    is_restoring: bool,
    /// How long the operator has tried, in seconds.
    tried_seconds: f64,
}

impl Filling {
    fn of(context: &Context<'_>, data_since_unix_seconds: f64) -> Self {
        let last_end = context.ledger.last_finished();
        let last_end = last_end.map_or(0.0, time::unix_seconds);
        let tried_seconds = context.now_unix_seconds - data_since_unix_seconds.max(last_end);
        let is_restoring = context.has_attempt_since(data_since_unix_seconds);
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

    /// Starts another Job. After [`START_TIMEOUT_SECONDS`] it ends the run instead.
    fn again(&self, job: &Child, why: &str) -> Prepared {
        if self.tried_seconds > START_TIMEOUT_SECONDS {
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

    /// Ends the run if the database was never filled, because the same seed would fail again. A restore that worked
    /// before is tried again.
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

/// The step after a pod was refused.
fn after_refusal(what: &str, refused: &str, age_seconds: f64) -> Option<Prepared> {
    Some(match AfterRefusal::of(what, refused, age_seconds)? {
        AfterRefusal::Wait(message) => {
            Prepared::waiting(Reason::QuotaExceeded, message, Vec::new())
        }
        AfterRefusal::End(message) => Prepared::Failed {
            reason: Reason::ChildRefused,
            message,
        },
    })
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
        if pod.ended || (pod.started_unix_seconds.is_none() && age > SEED_START_TIMEOUT_SECONDS) {
            let why = pod.waiting.clone().map_or_else(
                || {
                    "check that the ConfigMap and the key in database.seed.configMap exist"
                        .to_owned()
                },
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
                "the seeded table has {} rows instead of {expected}",
                facts.rows
            ),
        },
        _ => filling.failed(job, format!("the seed Job failed: {}", describe_end(end))),
    }
}
