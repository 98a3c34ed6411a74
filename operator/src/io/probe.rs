//! Sends the kubelet's readiness probe to candidates that are not ready. The kubelet reports the answers only in
//! events, and drops most of these.

use std::{error::Error as _, io, time::Duration};

use futures::future::join_all;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::util::intstr::IntOrString};
use reqwest::redirect::Policy;

use crate::plan::facts::{PodFacts, Probed};

/// Longest wait for an answer. A slower server counts as silent.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Time for a container to start before the first probe.
const GRACE_SECONDS: f64 = 2.0;

/// Sends readiness probes to pods that are not ready.
#[derive(Clone, Debug)]
pub struct Prober {
    client: reqwest::Client,
}

impl Prober {
    /// A prober that follows no redirect, because the operator must not send requests to a place that a candidate
    /// chooses.
    pub fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self { client })
    }

    /// Probes all pods that have a probe address and have run for a moment. `now_unix_seconds` is by the cluster's
    /// clock, as are the starts of the containers.
    pub async fn ask(&self, pods: &mut [PodFacts], now_unix_seconds: f64) {
        let is_due = |pod: &PodFacts| {
            let started = pod.started_unix_seconds;
            started.is_some_and(|at| now_unix_seconds - at > GRACE_SECONDS)
        };
        let asked = pods.iter_mut().filter(|pod| is_due(pod));
        join_all(asked.map(|pod| async move {
            if let Some(url) = &pod.readiness_url {
                pod.probed = Some(self.get(url).await);
            }
        }))
        .await;
    }

    async fn get(&self, url: &str) -> Probed {
        match self.client.get(url).send().await {
            Ok(response) => Probed::Status(response.status().as_u16()),
            Err(error) if is_refused(&error) => Probed::Refused,
            Err(error) if error.is_timeout() => {
                Probed::Failed(format!("no answer within {} s", TIMEOUT.as_secs()))
            }
            Err(error) => Probed::Failed(innermost(&error)),
        }
    }
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |&error| error.source())
}

fn is_refused(error: &reqwest::Error) -> bool {
    let refused = |cause: &io::Error| cause.kind() == io::ErrorKind::ConnectionRefused;
    causes(error).any(|cause| cause.downcast_ref::<io::Error>().is_some_and(refused))
}

/// The innermost cause, because the outer errors only repeat the address.
fn innermost(error: &reqwest::Error) -> String {
    causes(error)
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// URL of a pod's readiness probe, if a container has one.
#[must_use]
pub fn readiness_url(pod: &Pod) -> Option<String> {
    let ip = pod.status.as_ref()?.pod_ip.as_ref()?;
    let host = if ip.contains(':') {
        format!("[{ip}]")
    } else {
        ip.clone()
    };
    let containers = &pod.spec.as_ref()?.containers;
    let mut probes = containers.iter().filter_map(|container| {
        let probe = container.readiness_probe.as_ref()?;
        probe.http_get.as_ref()
    });
    let get = probes.next()?;
    let IntOrString::Int(port) = get.port else {
        return None;
    };
    let path = get.path.as_deref().unwrap_or("/");
    Some(format!("http://{host}:{port}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Router, http::StatusCode, response::Redirect, routing::get};
    use serde_json::json;
    use tokio::net::TcpListener;

    fn pod(url: &str) -> PodFacts {
        PodFacts {
            readiness_url: Some(url.into()),
            started_unix_seconds: Some(0.0),
            ..PodFacts::default()
        }
    }

    async fn asked(url: &str) -> Probed {
        let mut pods = [pod(url)];
        Prober::new().unwrap().ask(&mut pods, 10.0).await;
        pods[0].probed.clone().unwrap()
    }

    #[tokio::test]
    async fn a_refused_connection_a_status_and_silence_are_different_results() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/ready", get(|| async { "ok" }))
            .route("/busy", get(|| async { StatusCode::SERVICE_UNAVAILABLE }))
            .route("/away", get(|| async { Redirect::temporary("/ready") }))
            .route(
                "/hangs",
                get(|| async { std::future::pending::<()>().await }),
            );
        let server = tokio::spawn(async { axum::serve(listener, router).await });
        let at = |path: &str| format!("http://{address}{path}");
        assert_eq!(asked(&at("/ready")).await, Probed::Status(200));
        assert_eq!(asked(&at("/nowhere")).await, Probed::Status(404));
        assert_eq!(asked(&at("/busy")).await, Probed::Status(503));
        assert_eq!(asked(&at("/away")).await, Probed::Status(307));
        assert_eq!(
            asked(&at("/hangs")).await,
            Probed::Failed("no answer within 1 s".into())
        );
        server.abort();
        _ = server.await;
        assert_eq!(asked(&at("/ready")).await, Probed::Refused);
    }

    #[tokio::test]
    async fn a_container_is_given_a_moment_before_it_is_asked() {
        let mut pods = [pod("http://127.0.0.1:1/"), PodFacts::default()];
        Prober::new().unwrap().ask(&mut pods, 1.0).await;
        assert_eq!(pods.map(|pod| pod.probed), [None, None]);
    }

    #[test]
    fn it_asks_where_the_kubelet_does() {
        let at = |ip: &str| {
            let pod = json!({
                "metadata": {},
                "spec": { "containers": [{
                    "name": "server",
                    "readinessProbe": { "httpGet": { "path": "/healthz", "port": 8080 } },
                }] },
                "status": { "podIP": ip },
            });
            readiness_url(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(
            at("10.0.0.7").as_deref(),
            Some("http://10.0.0.7:8080/healthz")
        );
        assert_eq!(
            at("fd00::7").as_deref(),
            Some("http://[fd00::7]:8080/healthz")
        );
    }
}
