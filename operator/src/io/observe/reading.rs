//! One list of objects, and the creation time of an object.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Toleration;
use kube::{Api, ResourceExt, api::ListParams};
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

/// When an object was created, in Unix seconds. The API server sets this time in each object.
pub(super) fn created(object: &impl ResourceExt) -> f64 {
    object
        .creation_timestamp()
        .map_or(0.0, |time| unix_seconds(time.0))
}
