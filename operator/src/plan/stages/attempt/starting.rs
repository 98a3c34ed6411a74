//! What an unready candidate waits for, and when it can no longer become ready.

use crate::{
    api::{Candidate, Server},
    plan::{
        facts::{PodFacts, Probed, Termination, pods::describe_end},
        objects::is_of_candidate,
        settings::pods::pods_of,
    },
};

/// Kubelet may restart a crashed container once: the container may have started before a service that it needs.
const CRASHES_ALLOWED: i32 = 1;

/// A pod whose container crashed too often before it was ready, with the container's end.
pub(super) fn crash(pods: &[PodFacts], candidate: &Candidate) -> Option<String> {
    let pod = pods.iter().find(|pod| pod.crashes > CRASHES_ALLOWED)?;
    let (of_backend, _) = server_of(pod, candidate);
    Some(format!(
        "the container{of_backend} ended {} times before it was ready: {}",
        pod.crashes,
        last_end(pod).map_or_else(|| "its exit code is not known".into(), describe_end)
    ))
}

/// Why the pods are not ready. `refused` is the API server's reason if it refuses more pods.
pub(super) fn why_not_ready(
    pods: &[PodFacts],
    candidate: &Candidate,
    swept: Option<i32>,
    refused: Option<&str>,
) -> String {
    let is_waiting = |pod: &&PodFacts| pod.ready_since_unix_seconds.is_none();
    let expected = pods_of(candidate, swept);
    pods.iter().find(is_waiting).map_or_else(
        || match refused {
            Some(refused) => refused.to_owned(),
            None => format!("{} of its {expected} pods were created", pods.len()),
        },
        |pod| of_pod(pod, candidate),
    )
}

fn of_pod(pod: &PodFacts, candidate: &Candidate) -> String {
    let (of_backend, server) = server_of(pod, candidate);
    if let Some(why) = &pod.unschedulable {
        return format!("no node takes the pod{of_backend}: {why}");
    }
    if let Some((reason, message)) = &pod.waiting {
        let end = last_end(pod).map(describe_end).unwrap_or_default();
        let said: Vec<&str> = [message.trim(), &end]
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect();
        return match said.as_slice() {
            [] => format!("{reason}{of_backend}"),
            said => format!("{reason}{of_backend}: {}", said.join(" ")),
        };
    }
    if pod.started_unix_seconds.is_none() {
        return format!(
            "the container{of_backend} is being created; the node may still pull the image"
        );
    }
    let unready = answer(pod.probed.as_ref(), server, &of_backend);
    match last_end(pod) {
        Some(end) if pod.crashes > 0 => format!(
            "the container{of_backend} ended once ({}) and was started again; {unready}",
            describe_end(end)
        ),
        _ => unready,
    }
}

/// How the server answers its readiness probe.
fn answer(probed: Option<&Probed>, server: &Server, of_backend: &str) -> String {
    let (path, port) = (&server.readiness_path, server.port);
    match probed {
        Some(Probed::Refused) => format!(
            "nothing listens on port {port}{of_backend} (connection refused). Write the server's port as candidates[].port. The server must listen on all addresses, not on 127.0.0.1 alone."
        ),
        Some(Probed::Status(status)) if !(200..400).contains(status) => format!(
            "GET {path} on port {port}{of_backend} answers {status}. Write the path that answers 200 as candidates[].readinessPath."
        ),
        Some(Probed::Failed(error)) => {
            format!("GET {path} on port {port}{of_backend} has not answered 200: {error}")
        }
        Some(Probed::Status(status)) => format!(
            "GET {path} on port {port}{of_backend} answers {status}; the kubelet has not reported the pod as ready yet"
        ),
        None => format!("GET {path} on port {port}{of_backend} was not asked yet"),
    }
}

/// The candidate's server that a pod belongs to: for a backend its name in words, and the server's settings.
fn server_of<'a>(pod: &PodFacts, candidate: &'a Candidate) -> (String, &'a Server) {
    let mut backends = candidate.backends.iter();
    match backends.find(|backend| pod.workload.as_ref() == Some(&backend.name)) {
        Some(backend) => (format!(" of its {}", backend.name), &backend.server),
        None => (String::new(), &candidate.server),
    }
}

/// The last end of the candidate's own container, or else of a failed init container.
fn last_end(pod: &PodFacts) -> Option<&Termination> {
    let mut ends = pod.terminated.iter();
    let own = ends.find(|(container, _)| is_of_candidate(container));
    let failed = || pod.terminated.iter().find(|(_, end)| end.exit_code != 0);
    own.or_else(failed).map(|(_, end)| end)
}
