//! Checks an installation, and says for each defect what to do. It only reads.

mod findings;
mod power;
mod runs;

use std::{fmt::Write as _, time::Duration};

use frugality_measure::reading::read;
use frugality_operator::api::{FrugalityBenchmark, LABEL_BENCHMARK_UID};
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
    storage::v1::StorageClass,
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep, timeout};

pub use findings::{Finding, Level};
use findings::{
    Found, Meters, database, definitions, meter_pods, meters, meters_of, operator, storage,
    tolerations_of,
};
use power::{Page, PageError, clocks, power};
use runs::{Binding, images, namespaces, nodes, rights};

use crate::{
    cluster::{Cluster, ClusterError, Place},
    input::duration,
};

/// Help below the options.
pub const HELP: &str = "\
Checks:
  definitions  the API server knows each field of this version's resources
  operator     the operator's pod is ready
  meters       the nodes' meters are ready: each reads its source of power
  database     CloudNativePG is installed
  storage      there is a default StorageClass
  nodes        there is a node for the servers and one for the load
  power        the source of each node's power: an instrument or a model
  clocks       the nodes' clocks agree with the clock of this machine
  namespaces   where the operator may run benchmarks
  rights       you may create benchmarks in the namespace of your context
  images       no pod of a benchmark waits for an image that can't be pulled

SKIP: your account lacks the right for this check. In this case the checks operator and meters FAIL,
because every benchmark depends on them, and the check storage is a warning.

Exit codes:
  0  no check failed; there can be warnings
  1  a check failed

Examples:
  kubectl frugality doctor
  kubectl frugality doctor --namespace measuring --output json";

/// Longest time for one answer of the API server.
const ANSWER: Duration = Duration::from_secs(10);
/// Time between two examinations with --wait.
const PAUSE: Duration = Duration::from_secs(1);
/// Why nothing says where the meters are.
const NO_OPERATOR: &str = "the operator's Deployment could not be read";
/// Path at which an API server describes the resources, readable for every account.
const DESCRIPTION: &str = "/openapi/v3/apis/frugality.dev/v1alpha1";
/// Path of the resources of CloudNativePG, readable for every account.
const CLOUD_NATIVE_PG: &str = "/apis/postgresql.cnpg.io/v1";

/// The options of `kubectl frugality doctor`.
#[derive(Clone, Debug, clap::Args)]
pub struct Doctor {
    /// Namespace of the operator.
    #[arg(long, short, default_value = "frugality-system")]
    namespace: String,
    /// The cluster.
    #[command(flatten)]
    place: Place,
    /// Repeat the checks until none fails, for at most this time.
    #[arg(long, default_value = "0s", value_parser = duration)]
    wait: Duration,
    /// Form of the result.
    #[arg(long, short, value_enum, default_value_t = Form::Text)]
    output: Form,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A line per check, and a line with what to do.
    Text,
    /// A JSON array with check, level, message and remedy.
    Json,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

impl Doctor {
    /// The result as text, and whether no check failed.
    pub async fn run(&self) -> Result<(String, bool), ClusterError> {
        let cluster = self.place.connect().await?;
        let begin = Instant::now();
        let mut findings = self.examine(&cluster).await;
        while has_failed(&findings) && begin.elapsed() < self.wait {
            sleep(PAUSE).await;
            findings = self.examine(&cluster).await;
        }
        let text = match self.output {
            Form::Text => text(&findings),
            Form::Json => serde_json::to_string_pretty(&findings)? + "\n",
        };
        Ok((text, !has_failed(&findings)))
    }

    async fn examine(&self, cluster: &Cluster) -> Vec<Finding> {
        let deployment: Found<Deployment> = ask(
            cluster,
            &format!(
                "/apis/apps/v1/namespaces/{}/deployments/frugality-operator",
                self.namespace
            ),
        )
        .await;
        let places = deployment.as_ref().map(meters_of);
        let tolerations = deployment.as_ref().map(tolerations_of).unwrap_or_default();
        let mut daemon_sets = Vec::new();
        let mut pages = Vec::new();
        if let Ok(Some(places)) = &places {
            for name in &places.daemon_sets {
                let namespace = &places.namespace;
                let path = format!("/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}");
                daemon_sets.push(ask(cluster, &path).await);
            }
            pages = pages_of(cluster, places).await;
        }
        let (power, clocks) = match &places {
            Ok(_) => (power(&pages), clocks(&pages)),
            Err(_) => (
                Finding::skip("power", NO_OPERATOR),
                Finding::skip("clocks", NO_OPERATOR),
            ),
        };
        let classes = ask_list::<StorageClass>(cluster, "/apis/storage.k8s.io/v1/storageclasses");
        let bindings = bindings(cluster).await;
        let of_benchmarks = format!("/api/v1/pods?labelSelector={LABEL_BENCHMARK_UID}");
        vec![
            definitions(&ask(cluster, DESCRIPTION).await),
            operator(&deployment, &self.namespace),
            meters(&places, &daemon_sets),
            database(&ask(cluster, CLOUD_NATIVE_PG).await),
            storage(&classes.await),
            nodes(
                &ask_list::<Node>(cluster, "/api/v1/nodes").await,
                &tolerations,
            ),
            power,
            clocks,
            namespaces(&bindings),
            rights(
                &cluster.namespace,
                self.place.is_pod(),
                &may_create(cluster).await,
            ),
            images(&ask_list::<Pod>(cluster, &of_benchmarks).await),
        ]
    }
}

/// The answer of each meter, through the API server.
async fn pages_of(cluster: &Cluster, places: &Meters) -> Vec<Page> {
    let Meters {
        namespace,
        selector,
        port,
        ..
    } = places;
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let found = ask_list::<Pod>(cluster, &format!("{pods}?labelSelector={selector}")).await;
    let now = unix_seconds();
    match found {
        Ok(found) => {
            let pods_of_meters = meter_pods(&found, &places.daemon_sets);
            let pages = pods_of_meters.into_iter().map(|(node, pod)| {
                let path = format!("{pods}/{pod}:{port}/proxy/metrics");
                async move { page(cluster, node, &path).await }
            });
            join_all(pages).await
        }
        Err(error) => vec![Page {
            node: "each node".to_owned(),
            asked_unix_seconds: now,
            answered_unix_seconds: now,
            reading: Err(error.into()),
        }],
    }
}

async fn page(cluster: &Cluster, node: String, path: &str) -> Page {
    let asked_unix_seconds = unix_seconds();
    let text = ask_text(cluster, path).await;
    let answered_unix_seconds = unix_seconds();
    let reading = text
        .map_err(PageError::from)
        .and_then(|text| read(&text, &node, None, answered_unix_seconds).map_err(PageError::from));
    Page {
        node,
        asked_unix_seconds,
        answered_unix_seconds,
        reading,
    }
}

fn unix_seconds() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}

/// All bindings of roles, of namespaces and of the cluster.
async fn bindings(cluster: &Cluster) -> Found<Vec<Binding>> {
    let mut all = Vec::new();
    for kind in ["rolebindings", "clusterrolebindings"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{kind}");
        all.extend(ask_list(cluster, &path).await?);
    }
    Ok(all)
}

async fn may_create(cluster: &Cluster) -> Found<bool> {
    timeout(ANSWER, cluster.may_create::<FrugalityBenchmark>())
        .await
        .unwrap_or(Err(ClusterError::Silent(ANSWER.as_secs())))
}

async fn ask_list<T: DeserializeOwned>(cluster: &Cluster, path: &str) -> Found<Vec<T>> {
    let list: List<T> = ask(cluster, path).await?;
    Ok(list.items)
}

async fn ask<T: DeserializeOwned>(cluster: &Cluster, path: &str) -> Found<T> {
    Ok(serde_json::from_str(&ask_text(cluster, path).await?)?)
}

async fn ask_text(cluster: &Cluster, path: &str) -> Found<String> {
    timeout(ANSWER, cluster.raw(path))
        .await
        .unwrap_or(Err(ClusterError::Silent(ANSWER.as_secs())))
}

fn has_failed(findings: &[Finding]) -> bool {
    findings.iter().any(|it| it.level == Level::Fail)
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let level = match finding.level {
            Level::Ok => "OK",
            Level::Warn => "WARN",
            Level::Fail => "FAIL",
            Level::Skip => "SKIP",
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{level:<5} {:<12} {}", finding.check, finding.message);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "{:18} {remedy}", "");
        }
    }
    text
}
