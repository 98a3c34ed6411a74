//! The few fields of CloudNativePG's `Cluster` that the product owns and reads.
//!
//! Facts are from CloudNativePG 1.30 (`api/v1/cluster_types.go`).

use std::collections::BTreeMap;

use kube::{
    api::{ApiResource, DynamicObject, ObjectMeta},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    api::{Database, Resources},
    plan::{facts::ClusterFacts, nodes::HOSTNAME_LABEL},
};

/// Database and role that the candidates use.
pub const APPLICATION: &str = "app";
/// User ID of `postgres` in CloudNativePG's images.
pub const POSTGRES_UID: i64 = 26;

/// Settings for a small node, over which the spec's own go. Autovacuum and archiving would work at
/// times of their own and be measured as somebody's request.
const PARAMETERS: [(&str, &str); 8] = [
    ("archive_timeout", "0"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("max_connections", "60"),
    ("max_worker_processes", "8"),
    ("shared_buffers", "64MB"),
    ("wal_keep_size", "64MB"),
    ("checkpoint_timeout", "1d"),
];

/// CloudNativePG's `Cluster` for the dynamic client.
#[must_use]
pub fn api_resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("postgresql.cnpg.io", "v1", "Cluster"),
        "clusters",
    )
}

/// A PostgreSQL of one instance on `node`.
#[must_use]
pub fn cluster(
    metadata: ObjectMeta,
    database: &Database,
    image: &str,
    node_selector: &BTreeMap<String, String>,
) -> DynamicObject {
    let mut parameters: BTreeMap<String, String> = PARAMETERS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    parameters.extend(database.parameters.clone());
    let mut storage = json!({ "size": database.storage.size });
    if let Some(class) = &database.storage.storage_class {
        storage["storageClass"] = json!(class);
    }
    let spec = json!({
        "instances": 1,
        "imageName": image,
        "enablePDB": false,
        "enableSuperuserAccess": false,
        "storage": storage,
        "postgresql": { "parameters": parameters },
        "monitoring": { "disableDefaultQueries": true },
        "affinity": { "nodeSelector": node_selector },
        "resources": resources(&database.resources),
        "inheritedMetadata": { "labels": metadata.labels },
        // Deletion waits for these; the data are thrown away with the run.
        "smartShutdownTimeout": 2,
        "stopDelay": 10,
        "bootstrap": { "initdb": {
            "database": APPLICATION,
            "owner": APPLICATION,
            // The application's role may then start each trial with a CHECKPOINT.
            "postInitApplicationSQL": [format!("GRANT pg_checkpoint TO {APPLICATION}")],
        } },
    });
    DynamicObject {
        types: Some(kube::api::TypeMeta {
            api_version: "postgresql.cnpg.io/v1".into(),
            kind: "Cluster".into(),
        }),
        metadata,
        data: json!({ "spec": spec }),
    }
}

fn resources(resources: &Resources) -> Value {
    serde_json::to_value(resources).unwrap_or_default()
}

/// What the cluster's status says.
#[must_use]
pub fn facts(cluster: &DynamicObject) -> ClusterFacts {
    let status = &cluster.data["status"];
    let ready_condition = status["conditions"].as_array().is_some_and(|conditions| {
        conditions
            .iter()
            .any(|c| c["type"] == "Ready" && c["status"] == "True")
    });
    let phase = status["phase"].as_str().unwrap_or_default();
    let reason = status["phaseReason"].as_str().unwrap_or_default();
    ClusterFacts {
        ready: ready_condition && status["readyInstances"] == 1,
        broken: phase.starts_with("Cluster is unrecoverable")
            || phase.starts_with("Invalid cluster definition"),
        hostname: cluster.data["spec"]["affinity"]["nodeSelector"][HOSTNAME_LABEL]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        phase: match (phase, reason) {
            ("", _) => "no status yet".to_owned(),
            (phase, "") => phase.to_owned(),
            (phase, reason) => format!("{phase}: {reason}"),
        },
    }
}
