//! One list of objects, and the creation time of an object.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Toleration;
use kube::{Api, ResourceExt, api::ListParams, core::PartialObjectMeta};
use serde::de::DeserializeOwned;

use crate::{plan::facts::Refusal, time::unix_seconds};

/// Places of the operator's and the meters' objects, and tolerations of the pods.
#[derive(Clone, Debug)]
pub struct Places {
    /// Namespace of the operator and of the locks.
    pub namespace: String,
    /// Namespace of the meters.
    pub meter_namespace: String,
    /// Label selector of the meters' pods.
    pub meter_selector: String,
    /// Names of the meters' DaemonSets. Only pods of these count as meters.
    pub meter_daemon_sets: Vec<String>,
    /// Taints that the pods of benchmarks tolerate.
    pub tolerations: Vec<Toleration>,
}

/// What earlier passes have left in memory about a benchmark.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The refusal in this run. An edited spec starts another run, without the refusal.
    pub refused: Option<Refusal>,
    /// The last plan's reason, and the time since which the plans have given it, in Unix seconds.
    pub waiting_since: Option<(String, f64)>,
    /// Whether the operator may have lost its rights in the namespace during the run.
    pub rights_in_doubt: bool,
    /// The Services of the last pass. Their addresses are read at the same time as everything else, not after the Services.
    pub services: BTreeSet<String>,
}

/// The operator could not read from the API server.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}: {source}")]
pub struct ObserveError {
    pub(super) what: &'static str,
    pub(super) source: kube::Error,
}

pub(super) async fn list<K>(
    what: &'static str,
    api: &Api<K>,
    params: &ListParams,
) -> Result<Vec<K>, ObserveError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    match api.list(params).await {
        Ok(list) => Ok(list.items),
        Err(source) => Err(ObserveError { what, source }),
    }
}

/// Objects per page of [`each_metadata`]. A whole page is in memory at once.
const PAGE: u32 = 50;

/// Reads the metadata of all objects, page by page. Of a thousand benchmarks at once, it would take tens of megabytes, because an
/// annotation can have the whole spec.
pub(crate) async fn each_metadata<K>(
    api: &Api<K>,
    mut take: impl FnMut(PartialObjectMeta<K>),
) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list_metadata(&params).await?;
        page.items.into_iter().for_each(&mut take);
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params.continue_token = Some(token),
            _ => return Ok(()),
        }
    }
}

/// When an object was created, in Unix seconds. The API server sets this time in each object.
pub(super) fn created(object: &impl ResourceExt) -> f64 {
    object
        .creation_timestamp()
        .map_or(0.0, |time| unix_seconds(time.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use axum::{Router, extract::RawQuery, http::HeaderMap, routing::get};
    use kube::Client;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::FrugalityBenchmark;

    /// Two pages of metadata, as an API server sends them.
    async fn pages(headers: HeaderMap, RawQuery(query): RawQuery) -> String {
        let query = query.unwrap();
        let accepted = headers["accept"].to_str().unwrap();
        assert!(accepted.contains("PartialObjectMetadataList"), "{accepted}");
        assert!(query.contains(&format!("limit={PAGE}")), "{query}");
        let (names, next): (&[&str], _) = if query.ends_with("continue=more") {
            (&["c"], "")
        } else {
            (&["a", "b"], "more")
        };
        let item = |name: &&str| -> Value {
            json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": name},
            })
        };
        json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadataList",
            "metadata": {"continue": next},
            "items": names.iter().map(item).collect::<Vec<_>>(),
        })
        .to_string()
    }

    #[tokio::test]
    async fn metadata_are_read_page_by_page() {
        let path = "/apis/frugality.dev/v1alpha1/frugalitybenchmarks";
        let client = Client::new(Router::new().route(path, get(pages)), "lab");
        let mut names = Vec::new();
        let api = Api::<FrugalityBenchmark>::all(client);
        each_metadata(&api, |meta| names.push(meta.name_any()))
            .await
            .unwrap();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
