//! PostgreSQL of a run, whoever runs it: what is still to be made of it, and how far it is.

use super::{
    facts::{Child, ChildKind, PodFacts},
    nodes::Labels,
    pass::Pass,
    resources::{Builder, ChildObject},
    trial::last_words,
};
use crate::api::{Database, Provider, Role};

/// A container that has been restarted so often does not start.
const RESTARTS_AT_MOST: i32 = 3;

/// What there is of the database.
pub(super) enum Standing {
    /// Not all of it.
    Missing {
        create: Vec<ChildObject>,
        delete: Vec<(ChildKind, String)>,
    },
    /// All of it.
    Made(Made),
}

/// A database all of whose objects exist.
pub(super) struct Made {
    /// When it was created, in Unix seconds.
    pub(super) created_unix_seconds: f64,
    /// Since when its data can have been there: what was filled earlier is gone.
    pub(super) data_since_unix_seconds: f64,
    /// Whether it works.
    pub(super) ready: bool,
    /// Whether it never will.
    pub(super) broken: bool,
    /// How far it is, for people.
    pub(super) phase: String,
    /// Why its pod can't be created, if so.
    pub(super) refused: Option<String>,
}

/// What there is of the benchmark's database in this run.
pub(super) fn standing(
    pass: &Pass<'_>,
    builder: &Builder<'_>,
    database: &Database,
    on: &Labels,
) -> Standing {
    match database.provider {
        Provider::CloudNativePg => cloud_native_pg(pass, builder, database, on),
        Provider::Standalone => standalone(pass, builder, database, on),
    }
}

fn cloud_native_pg(
    pass: &Pass<'_>,
    builder: &Builder<'_>,
    database: &Database,
    on: &Labels,
) -> Standing {
    let Some(cluster) = child(pass, ChildKind::Cluster, &builder.database_name()) else {
        return Standing::Missing {
            create: vec![builder.database_cluster(database, on)],
            delete: Vec::new(),
        };
    };
    let facts = pass.observed.database.clone().unwrap_or_default();
    Standing::Made(Made {
        created_unix_seconds: cluster.created_unix_seconds,
        // They are on a volume, which outlives the pod.
        data_since_unix_seconds: cluster.created_unix_seconds,
        ready: facts.ready,
        broken: facts.broken,
        phase: format!("CloudNativePG: {}", facts.phase),
        refused: None,
    })
}

fn standalone(
    pass: &Pass<'_>,
    builder: &Builder<'_>,
    database: &Database,
    on: &Labels,
) -> Standing {
    let name = builder.database_name();
    let server = child(pass, ChildKind::Deployment, &name);
    let Some(service) = child(pass, ChildKind::Service, &builder.database_host()) else {
        return Standing::Missing {
            create: vec![builder.database_service()],
            delete: Vec::new(),
        };
    };
    let Some(server) = server else {
        return Standing::Missing {
            // The Secret first: a pod that misses it is not looked at again for a while.
            create: vec![
                builder.database_secret(&service.uid),
                builder.database_server(database, on),
            ],
            delete: Vec::new(),
        };
    };
    if server.created_unix_seconds < service.created_unix_seconds {
        // Somebody has deleted its Service, and with it the password that it was made with.
        return Standing::Missing {
            create: Vec::new(),
            delete: vec![(ChildKind::Deployment, name)],
        };
    }
    let pods = pods(pass);
    let newest = pods.iter().map(|pod| pod.created_unix_seconds);
    Standing::Made(Made {
        created_unix_seconds: server.created_unix_seconds,
        data_since_unix_seconds: newest.fold(server.created_unix_seconds, f64::max),
        ready: !pods.is_empty()
            && pods
                .iter()
                .all(|pod| pod.ready_since_unix_seconds.is_some()),
        broken: pods
            .iter()
            .any(|pod| pod.restarts >= RESTARTS_AT_MOST && pod.ready_since_unix_seconds.is_none()),
        phase: format!("its pod: {}", phase(&pods)),
        refused: server.pods_refused.clone().filter(|_| pods.is_empty()),
    })
}

/// Pods of the run's database that have not ended and are not about to.
fn pods<'a>(pass: &'a Pass<'_>) -> Vec<&'a PodFacts> {
    let pods = pass.observed.pods.iter();
    pods.filter(|pod| pod.role == Role::Database.as_str() && pod.run == pass.run)
        .filter(|pod| !pod.deleting && !pod.ended)
        .collect()
}

fn phase(pods: &[&PodFacts]) -> String {
    let Some(pod) = pods.first() else {
        return "not created yet".into();
    };
    let end = pod.terminated.values().next().map(last_words);
    match (&pod.waiting, end) {
        (Some((reason, message)), None) => format!("{reason}: {message}"),
        (Some((reason, _)), Some(end)) => format!("{reason}: {end}"),
        (None, Some(end)) => format!("started again after {end}"),
        (None, None) => "starting".into(),
    }
}

fn child<'a>(pass: &'a Pass<'_>, kind: ChildKind, name: &str) -> Option<&'a Child> {
    let children = &pass.observed.children;
    children
        .iter()
        .find(|child| child.kind == kind && child.name == name)
}
