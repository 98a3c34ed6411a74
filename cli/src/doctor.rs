//! Checks an installation, and says for each defect what to do. It only reads.

mod findings;

use std::{fmt::Write as _, time::Duration};

use k8s_openapi::api::{apps::v1::Deployment, storage::v1::StorageClass};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep, timeout};

pub use findings::{Finding, Level};
use findings::{Found, database, definitions, meters, meters_of, operator, storage};

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
    /// Longest time until no check fails, for an installation that has just begun.
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
        let mut daemon_sets = Vec::new();
        if let Some((namespace, names)) = deployment.as_ref().ok().and_then(meters_of) {
            for name in names {
                let path = format!("/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}");
                daemon_sets.push(ask(cluster, &path).await);
            }
        }
        let classes: Found<List<StorageClass>> =
            ask(cluster, "/apis/storage.k8s.io/v1/storageclasses").await;
        vec![
            definitions(&ask(cluster, DESCRIPTION).await),
            operator(&deployment),
            meters(&daemon_sets),
            database(&ask(cluster, CLOUD_NATIVE_PG).await),
            storage(&classes.map(|list| list.items)),
        ]
    }
}

async fn ask<T: DeserializeOwned>(cluster: &Cluster, path: &str) -> Found<T> {
    let text = timeout(ANSWER, cluster.raw(path))
        .await
        .unwrap_or(Err(ClusterError::Silent(ANSWER.as_secs())))?;
    Ok(serde_json::from_str(&text)?)
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
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{level:<5} {:<12} {}", finding.check, finding.message);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "{:18} {remedy}", "");
        }
    }
    text
}
