//! The pods of a candidate: how many of which server, and by which variables they find each other.

use crate::api::{Candidate, Server};

/// One of a candidate's servers.
pub struct Workload<'a> {
    /// Value of [`LABEL_WORKLOAD`].
    pub name: &'a str,
    /// Its settings.
    pub server: &'a Server,
    /// Its pods.
    pub replicas: i32,
    /// Whether others of the candidate ask it.
    pub is_backend: bool,
}

/// The others, then the server that is asked. The replicas of a sweep are those of what scales: of the
/// backends, where there are any.
#[must_use]
pub fn workloads(candidate: &Candidate, swept: Option<i32>) -> Vec<Workload<'_>> {
    let scaled = |server: &Server| swept.unwrap_or(server.replicas);
    let asked = Workload {
        name: &candidate.name,
        server: &candidate.server,
        replicas: if candidate.backends.is_empty() {
            scaled(&candidate.server)
        } else {
            candidate.server.replicas
        },
        is_backend: false,
    };
    let backends = candidate.backends.iter().map(|backend| Workload {
        name: &backend.name,
        server: &backend.server,
        replicas: scaled(&backend.server),
        is_backend: true,
    });
    backends.chain([asked]).collect()
}

/// Names of the variables by which a candidate's pods are told host and port of each backend.
pub fn addresses_of(candidate: &Candidate) -> impl Iterator<Item = [String; 2]> {
    candidate.backends.iter().map(|backend| {
        let variable = backend.name.to_uppercase().replace('-', "_");
        ["HOST", "PORT"].map(|suffix| format!("{variable}_{suffix}"))
    })
}

/// How many pods a candidate's backends have.
#[must_use]
pub fn backend_pods_of(candidate: &Candidate, swept: Option<i32>) -> i32 {
    workloads(candidate, swept)
        .iter()
        .filter(|workload| workload.is_backend)
        .map(|workload| workload.replicas)
        .sum()
}

/// How many pods a candidate has, all its servers together.
#[must_use]
pub fn pods_of(candidate: &Candidate, swept: Option<i32>) -> i32 {
    workloads(candidate, swept)
        .iter()
        .map(|workload| workload.replicas)
        .sum()
}
