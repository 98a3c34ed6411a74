//! Benchmarks as the operator keeps them in memory: what a benchmark needs to know of the others. A thousand whole
//! benchmarks, with their specs and figures, would not fit into the memory that the chart gives to the operator.

use std::sync::Arc;

use kube::{Resource, api::ObjectMeta, core::DeserializeGuard};
use serde::Deserialize;

use crate::{api::FrugalityBenchmark, io::observe::peer, plan::facts::Peer};

/// A benchmark, readable or not.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = FrugalityBenchmark)]
#[serde(from = "DeserializeGuard<FrugalityBenchmark>")]
pub struct KnownBenchmark {
    /// Name, namespace, UID, version and times only.
    metadata: ObjectMeta,
    /// The benchmark as the others see it.
    pub peer: Arc<Peer>,
}

impl From<DeserializeGuard<FrugalityBenchmark>> for KnownBenchmark {
    fn from(stored: DeserializeGuard<FrugalityBenchmark>) -> Self {
        let metadata = stored.meta();
        Self {
            peer: peer(&stored),
            metadata: ObjectMeta {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone(),
                resource_version: metadata.resource_version.clone(),
                creation_timestamp: metadata.creation_timestamp.clone(),
                deletion_timestamp: metadata.deletion_timestamp.clone(),
                ..ObjectMeta::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_benchmark_is_kept_without_its_spec_and_an_unreadable_one_too() {
        let known = |spec: serde_json::Value| {
            let stored = json!({
                "apiVersion": "frugality.dev/v1alpha1",
                "kind": "FrugalityBenchmark",
                "metadata": {
                    "name": "b", "namespace": "lab", "uid": "u", "resourceVersion": "7",
                    "annotations": { "last-applied": "long" },
                    "managedFields": [{ "manager": "m", "fieldsV1": {} }],
                },
                "spec": spec,
            });
            serde_json::from_value::<KnownBenchmark>(stored).unwrap()
        };
        let readable =
            known(json!({ "candidates": [{ "name": "rust", "image": "example.org/rust" }] }));
        let broken = known(json!({ "candidates": 5 }));
        for known in [&readable, &broken] {
            assert_eq!(
                (known.name_any().as_str(), known.uid().as_deref()),
                ("b", Some("u"))
            );
            assert_eq!(known.resource_version().as_deref(), Some("7"));
            assert!(known.annotations().is_empty() && known.managed_fields().is_empty());
            assert_eq!(known.peer.name, "lab/b");
        }
        assert_eq!(
            readable.peer.request.as_ref().unwrap().measured[0].0,
            "rust"
        );
        assert_eq!(broken.peer.request, None);
    }

    #[test]
    fn it_is_read_where_benchmarks_are() {
        assert_eq!(
            KnownBenchmark::url_path(&(), Some("lab")),
            FrugalityBenchmark::url_path(&(), Some("lab"))
        );
    }
}
