//! The pods of a candidate: the number of pods per server, and the variables with the addresses of backends.

use crate::api::{Candidate, Server};

/// One of a candidate's servers.
pub struct Workload<'a> {
    /// Value of [`LABEL_WORKLOAD`].
    pub name: &'a str,
    /// The server's settings.
    pub server: &'a Server,
    /// Number of pods.
    pub replicas: i32,
    /// Whether it is a backend, which another server of the candidate sends requests to.
    pub is_backend: bool,
}

/// The backends, then the server that gets the load. A sweep's replicas replace the number of pods of the backends,
/// or of the server if there are no backends.
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

/// Names of the variables with host and port of each backend, for all pods of the candidate.
pub fn addresses_of(candidate: &Candidate) -> impl Iterator<Item = [String; 2]> {
    candidate.backends.iter().map(|backend| {
        let variable = backend.name.to_uppercase().replace('-', "_");
        ["HOST", "PORT"].map(|suffix| format!("{variable}_{suffix}"))
    })
}

/// Number of pods of all backends of a candidate.
#[must_use]
pub fn backend_pods_of(candidate: &Candidate, swept: Option<i32>) -> i32 {
    workloads(candidate, swept)
        .iter()
        .filter(|workload| workload.is_backend)
        .map(|workload| workload.replicas)
        .sum()
}

/// Number of pods of all servers of a candidate.
#[must_use]
pub fn pods_of(candidate: &Candidate, swept: Option<i32>) -> i32 {
    workloads(candidate, swept)
        .iter()
        .map(|workload| workload.replicas)
        .sum()
}
