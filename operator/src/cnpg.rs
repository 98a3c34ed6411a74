//! The few fields of CloudNativePG's `Cluster` that the product owns and reads.
//!
//! Facts are from CloudNativePG 1.30 (`api/v1/cluster_types.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
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

/// Settings of PostgreSQL, whoever runs it: the spec's own over those for a small node.
#[must_use]
pub fn parameters(database: &Database) -> BTreeMap<String, String> {
    let mut parameters: BTreeMap<String, String> = PARAMETERS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    parameters.extend(database.parameters.clone());
    parameters
}

/// A PostgreSQL all of whose instances are on one node: what a replica does for a request is part of what
/// the request costs, and is measured only there.
#[must_use]
pub fn cluster(
    metadata: ObjectMeta,
    database: &Database,
    image: &str,
    node_selector: &BTreeMap<String, String>,
    tolerations: &[Toleration],
) -> DynamicObject {
    let mut storage = json!({ "size": database.storage.size });
    if let Some(class) = &database.storage.storage_class {
        storage["storageClass"] = json!(class);
    }
    let spec = json!({
        "instances": database.instances,
        "imageName": image,
        "enablePDB": false,
        "enableSuperuserAccess": false,
        "storage": storage,
        "postgresql": { "parameters": parameters(database) },
        "monitoring": { "disableDefaultQueries": true },
        "affinity": { "nodeSelector": node_selector, "tolerations": tolerations },
        "resources": resources(&database.resources),
        "inheritedMetadata": { "labels": metadata.labels },
        // Deletion waits for these; the data are thrown away with the run.
        "smartShutdownTimeout": 2,
        "stopDelay": 10,
        "bootstrap": { "initdb": {
            "database": APPLICATION,
            "owner": APPLICATION,
            // So the application's role can restore the database and start each trial with a CHECKPOINT.
            "postInitApplicationSQL": [
                format!("GRANT pg_checkpoint TO {APPLICATION}"),
                format!("ALTER ROLE {APPLICATION} CREATEDB"),
            ],
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
        ready: ready_condition && status["readyInstances"] == cluster.data["spec"]["instances"],
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

#[cfg(test)]
mod tests {
    use super::*;

    fn database(changes: &Value) -> Database {
        let mut database = json!({ "seed": { "contacts": 10 } });
        let fields = changes.as_object().unwrap().clone();
        database.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(database).unwrap()
    }

    fn made(changes: &Value) -> DynamicObject {
        let node = BTreeMap::from([(HOSTNAME_LABEL.to_owned(), "pi-1".to_owned())]);
        let image = "example.org/postgresql:15";
        cluster(ObjectMeta::default(), &database(changes), image, &node, &[])
    }

    #[test]
    fn replicas_are_on_the_measured_node_and_all_of_them_must_be_ready() {
        let mut cluster = made(&json!({ "instances": 2 }));
        assert_eq!(cluster.data["spec"]["instances"], 2);
        let ready = |cluster: &mut DynamicObject, instances: i32| {
            cluster.data["status"] = json!({
                "readyInstances": instances,
                "conditions": [{ "type": "Ready", "status": "True" }],
            });
            facts(cluster)
        };
        assert_eq!(ready(&mut cluster, 1).hostname, "pi-1");
        assert!(!ready(&mut cluster, 1).ready);
        assert!(ready(&mut cluster, 2).ready);
        let mut alone = made(&json!({}));
        assert_eq!(alone.data["spec"]["instances"], 1);
        assert!(ready(&mut alone, 1).ready);
    }

    #[test]
    fn parameters_go_over_those_for_a_small_node() {
        let cluster = made(&json!({ "parameters": { "jit": "on", "work_mem": "4MB" } }));
        let parameters = &cluster.data["spec"]["postgresql"]["parameters"];
        assert_eq!(
            (&parameters["jit"], &parameters["work_mem"]),
            (&json!("on"), &json!("4MB"))
        );
        assert_eq!(parameters["autovacuum"], "off");
    }
}
