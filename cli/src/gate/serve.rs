//! The gate as a server for Flagger's webhooks. It reads the cluster again for each question, and keeps nothing.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State as Shared},
    http::{HeaderValue, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use frugality_listener::{ConnectionLimits, LimitedListener, bind};
use frugality_operator::api::FrugalityBenchmark;
use jiff::Zoned;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::api::{ApiResource, GroupVersionKind};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};

use super::{
    answer::{Answer, Question, answer},
    flagger::{Hook, Target},
    outcome::{GateOutcome, GateState, state},
    report::on_one_line,
    wait::read,
};
use crate::cluster::{Cluster, ClusterError, Place};

/// Help below the options.
pub const HELP: &str = "\
Paths, for the webhooks of a Canary:
  POST /confirm   types confirm-rollout and confirm-promotion: 200 if the verdict is Pass, else 4xx
  POST /rollback  type rollback: 200 if the verdict is Fail, Invalid or Error, else 4xx
  GET  /healthz   200

Examples:
  # In a pod, with the rights of its account: the chart's gate.enabled=true
  kubectl-frugality serve-gate

  # Against the cluster of a kubeconfig
  kubectl frugality serve-gate --listen 127.0.0.1:8080 --context pis";

/// Longest time for all questions to the API server. Flagger itself gives up after 10 s.
const ANSWER: Duration = Duration::from_secs(8);
/// All questions come from one address, Flagger's: one at a time per Canary, each on a connection of its own.
const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 64,
    connections_of_one_address: 48,
    silence: Duration::from_secs(10),
};
/// Largest body, in bytes. Flagger posts less than 1 KiB and the webhook's metadata.
const LARGEST_BODY: usize = 16 * 1024;

/// The options of `kubectl frugality serve-gate`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeGate {
    /// Address to listen on.
    #[arg(long, default_value = "[::]:8080")]
    listen: SocketAddr,
    /// Accept a release whose image has no digest. A tag can be moved to an image that was not measured.
    #[arg(long)]
    allow_tag: bool,
    /// The cluster.
    #[command(flatten)]
    place: Place,
}

/// Why the gate can't be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The address can't be used, or SIGTERM can't be caught.
    #[error("cannot serve on {address}: {source}. Write another --listen.")]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Cause.
        source: std::io::Error,
    },
}

/// Asks the cluster.
struct Judge {
    cluster: Cluster,
    allow_tag: bool,
}

impl ServeGate {
    /// Serves until SIGTERM or SIGINT. Questions that are under way are answered before the end.
    pub async fn run(&self) -> Result<(), ServeError> {
        let judge = Judge {
            cluster: self.place.connect().await?,
            allow_tag: self.allow_tag,
        };
        self.serve(judge)
            .await
            .map_err(|source| ServeError::Listen {
                address: self.listen,
                source,
            })
    }

    async fn serve(&self, judge: Judge) -> Result<(), std::io::Error> {
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/confirm", post(confirm))
            .route("/rollback", post(rollback))
            .layer(DefaultBodyLimit::max(LARGEST_BODY))
            .layer(map_response(last))
            .with_state(Arc::new(judge));
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let listener = bind(self.listen).await?;
        eprintln!("serving the gate on {}", listener.local_addr()?);
        axum::serve(LimitedListener::new(listener, LIMITS), router)
            .with_graceful_shutdown(async move {
                tokio::select! {
                    _ = terminated.recv() => {}
                    _ = interrupted.recv() => {}
                }
            })
            .await
    }
}

/// The last response of its connection.
async fn last(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

async fn confirm(judge: Shared<Arc<Judge>>, body: Bytes) -> Response {
    respond(&judge.0, Question::Confirm, &body).await
}

async fn rollback(judge: Shared<Arc<Judge>>, body: Bytes) -> Response {
    respond(&judge.0, Question::Rollback, &body).await
}

async fn respond(judge: &Judge, question: Question, body: &[u8]) -> Response {
    let mut line = format!("{question:?}");
    let answer = match Hook::parse(body) {
        Ok(hook) => {
            line = format!("{}/{} {line}", hook.namespace, hook.canary);
            let asked = timeout(ANSWER, judge.ask(question, &hook, &mut line)).await;
            asked
                .unwrap_or_else(|_| Err(ClusterError::Silent(ANSWER.as_secs()).into()))
                .unwrap_or_else(|it| it)
        }
        Err(error) => error.into(),
    };
    let now = Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z");
    let (status, text) = (answer.status, on_one_line(&answer.text));
    eprintln!("{now} {}: {} {text}", on_one_line(&line), status.as_u16());
    (status, format!("{text}\n")).into_response()
}

impl Judge {
    /// The answer, or the answer for a question that can't be decided. `line` gets what only the log may show.
    async fn ask(
        &self,
        question: Question,
        hook: &Hook,
        line: &mut String,
    ) -> Result<Answer, Answer> {
        let canary = self.object(hook, &canaries(), &hook.canary).await?;
        let target = hook.target(&canary, question == Question::Confirm)?;
        let (resource, name) = match &target {
            Target::Deployment(name) => (ApiResource::erase::<Deployment>(&()), name),
            Target::DaemonSet(name) => (ApiResource::erase::<DaemonSet>(&()), name),
        };
        let target = self.object(hook, &resource, name).await?;
        let image = hook.image(&target, self.allow_tag)?;
        *line = format!("{line} {image}");
        let state = self.state(hook, image).await?;
        if let GateState::Waiting(activity) | GateState::Ended(GateOutcome::OtherImage, activity) =
            &state
        {
            *line = format!("{line} ({activity})");
        }
        Ok(answer(question, &state, &hook.benchmark))
    }

    async fn state(&self, hook: &Hook, image: String) -> Result<GateState, Answer> {
        let resource = ApiResource::erase::<FrugalityBenchmark>(&());
        let text = self.object(hook, &resource, &hook.benchmark).await?;
        Ok(state(&read(&text, &hook.benchmark)?, &[image]))
    }

    async fn object(
        &self,
        hook: &Hook,
        resource: &ApiResource,
        name: &str,
    ) -> Result<String, ClusterError> {
        self.cluster.object(resource, &hook.namespace, name).await
    }
}

/// Flagger's resource.
fn canaries() -> ApiResource {
    let kind = GroupVersionKind::gvk("flagger.app", "v1beta1", "Canary");
    ApiResource::from_gvk_with_plural(&kind, "canaries")
}
