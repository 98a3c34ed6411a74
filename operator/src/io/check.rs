//! Checks whether an installation works, for `helm test`.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use axum::http::Request;
use kube::Client;
use serde_json::Value;

use crate::crd::definitions;

/// Longest time until a new installation works. A new operator is ready within seconds. An API server describes a
/// new definition about a second after it has accepted it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest time to wait for an answer of the operator.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Path at which an API server describes the resources, readable for every account
/// (<https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3>).
const DESCRIPTION: &str = "/openapi/v3/apis/frugality.dev/v1alpha1";

/// The defect of an installation.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No answer, or an answer that is not HTTP.
    #[error("the operator does not answer at {url}: {cause}")]
    NoAnswer {
        /// Address of the request.
        url: String,
        /// Innermost cause.
        cause: String,
    },
    /// An answer with a status other than 200.
    #[error("the operator answers {status} at {url}: {text}")]
    NotReady {
        /// Address of the request.
        url: String,
        /// Status code.
        status: u16,
        /// Text of the answer.
        text: String,
    },
    /// The API server has no description of the resources.
    #[error("the API server describes no resources of frugality.dev ({0}); {INSTALL_CRDS}")]
    NoDescription(#[source] Box<kube::Error>),
    /// The description is not JSON.
    #[error("the API server's description of frugality.dev can't be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A resource is missing.
    #[error("the API server does not know {0}; {INSTALL_CRDS}")]
    UnknownKind(String),
    /// A definition is older than the operator. The API server drops fields that it does not know.
    #[error("the API server's {kind} is older than this operator and lacks {}; {INSTALL_CRDS}", .fields.join(", "))]
    Outdated {
        /// Kind of the resource.
        kind: String,
        /// Paths of the missing fields.
        fields: Vec<String>,
    },
}

const INSTALL_CRDS: &str =
    "upgrade the chart with crds.install=true, or apply the crds/ of this version";

/// Succeeds if the operator at `operator_url` is ready and the API server knows every field of this version's
/// resources.
///
/// # Errors
///
/// The last defect, after 10 s.
pub async fn check(client: &Client, operator_url: &str) -> Result<(), CheckError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look(client, operator_url).await {
            Err(_) if Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            result => return result,
        }
    }
}

async fn look(client: &Client, operator_url: &str) -> Result<(), CheckError> {
    for path in ["/healthz", "/readyz"] {
        answers(format!("{}{path}", operator_url.trim_end_matches('/'))).await?;
    }
    let no_description = |source| CheckError::NoDescription(Box::new(source));
    let request = Request::get(DESCRIPTION)
        .body(Vec::new())
        .map_err(|source| no_description(kube::Error::HttpError(source)))?;
    let described = client.request_text(request).await.map_err(no_description)?;
    knows_this_version(&serde_json::from_str(&described)?)
}

async fn answers(url: String) -> Result<(), CheckError> {
    let no_answer = |error: reqwest::Error| CheckError::NoAnswer {
        url: url.clone(),
        cause: innermost(&error).to_string(),
    };
    let client = reqwest::Client::builder()
        .timeout(ANSWER_TIMEOUT)
        .no_proxy()
        .build()
        .map_err(no_answer)?;
    let answer = client.get(&url).send().await.map_err(no_answer)?;
    let status = answer.status().as_u16();
    let text = answer.text().await.map_err(no_answer)?.trim().to_owned();
    if status == 200 {
        Ok(())
    } else {
        Err(CheckError::NotReady { url, status, text })
    }
}

fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    error.source().map_or(error, innermost)
}

/// Whether an OpenAPI document has every field of this version's resources. More fields are allowed.
///
/// # Errors
///
/// A resource or a field is missing.
pub fn knows_this_version(document: &Value) -> Result<(), CheckError> {
    for (_, definition) in definitions() {
        let kind = definition.spec.names.kind;
        let described = document["components"]["schemas"]
            .as_object()
            .into_iter()
            .flat_map(|schemas| schemas.values())
            .find(|schema| schema["x-kubernetes-group-version-kind"][0]["kind"] == *kind)
            .ok_or_else(|| CheckError::UnknownKind(kind.clone()))?;
        for version in definition.spec.versions {
            let own = version.schema.and_then(|schema| schema.open_api_v3_schema);
            let mut fields = Vec::new();
            lacking("", &serde_json::to_value(own)?, described, &mut fields);
            if !fields.is_empty() {
                return Err(CheckError::Outdated { kind, fields });
            }
        }
    }
    Ok(())
}

/// Adds the paths of the fields that `own` has and `described` lacks, without the fields below them.
fn lacking(path: &str, own: &Value, described: &Value, fields: &mut Vec<String>) {
    for (name, field) in own["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match described["properties"].get(name) {
            Some(known) => lacking(&path, field, known, fields),
            None => fields.push(path),
        }
    }
    for inner in ["items", "additionalProperties"] {
        if own[inner].is_object() {
            lacking(path, &own[inner], &described[inner], fields);
        }
    }
}
