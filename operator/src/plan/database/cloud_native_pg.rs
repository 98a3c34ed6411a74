//! A database that CloudNativePG runs: the few fields of its `Cluster` that the operator sets and reads.
//!
//! Facts are from CloudNativePG 1.30 (`api/v1/cluster_types.go`).

use crate::{
    api::{Database, Reason, Resources, Role},
    plan::{
        action::ChildObject,
        database::provider::{DatabaseProvider, DatabaseState, Made, child},
        facts::{
            ChildKind, ClusterFacts, Observed, PodPolicy,
            placement::{HOSTNAME_LABEL, Labels},
        },
        objects::Builder,
        settings::postgresql::{APPLICATION, parameters},
    },
};
use std::collections::BTreeMap;

use kube::{
    api::{ApiResource, DynamicObject, ObjectMeta},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

/// CloudNativePG's `Cluster` for the dynamic client.
#[must_use]
pub fn api_resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("postgresql.cnpg.io", "v1", "Cluster"),
        "clusters",
    )
}

/// A PostgreSQL with all instances on one node. A replica's work for a request is part of the request's cost, and
/// the meter sees that work only on the measured node.
#[must_use]
pub fn cluster(
    metadata: ObjectMeta,
    database: &Database,
    image: &str,
    node_selector: &BTreeMap<String, String>,
    policy: &PodPolicy,
) -> DynamicObject {
    let mut storage = json!({ "size": database.storage.size });
    if let Some(class) = &database.storage.storage_class {
        storage["storageClass"] = json!(class);
    }
    let mut spec = json!({
        "instances": database.instances,
        "imageName": image,
        "enablePDB": false,
        "enableSuperuserAccess": false,
        "storage": storage,
        "postgresql": { "parameters": parameters(database) },
        "monitoring": { "disableDefaultQueries": true },
        "affinity": { "nodeSelector": node_selector, "tolerations": policy.tolerations },
        "resources": resources(&database.resources),
        "inheritedMetadata": { "labels": metadata.labels },
        // Deletion of the Cluster waits for these times. The data are discarded with the run.
        "smartShutdownTimeout": 2,
        "stopDelay": 10,
        "bootstrap": { "initdb": {
            "database": APPLICATION,
            "owner": APPLICATION,
            // With these rights the application's role can restore the database and start each trial with a
            // CHECKPOINT.
            "postInitApplicationSQL": [
                format!("GRANT pg_checkpoint TO {APPLICATION}"),
                format!("ALTER ROLE {APPLICATION} CREATEDB"),
            ],
        } },
    });
    if let Some(class) = &policy.priority_class_name {
        spec["priorityClassName"] = json!(class);
    }
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

impl Builder<'_> {
    /// The database on the measured node, run by CloudNativePG.
    #[must_use]
    pub fn database_cluster(&self, database: &Database, on: &Labels) -> ChildObject {
        ChildObject::Cluster(Box::new(cluster(
            self.metadata(&self.database_name(), Some(Role::Database), None),
            database,
            self.database_image(database),
            on,
            &self.config.pods,
        )))
    }
}

/// CloudNativePG. Its data are on a volume, which survives the pod.
pub struct CloudNativePg;

impl DatabaseProvider for CloudNativePg {
    fn missing_in_cluster(&self, observed: &Observed) -> Option<(Reason, &'static str)> {
        let missing = (
            Reason::CloudNativePgMissing,
            "the cluster does not know clusters.postgresql.cnpg.io; install CloudNativePG (https://cloudnative-pg.io/documentation/current/installation_upgrade/), write database.provider: Standalone, or drop spec.database",
        );
        (!observed.cloud_native_pg_installed).then_some(missing)
    }

    fn state(
        &self,
        observed: &Observed,
        builder: &Builder<'_>,
        database: &Database,
        on: &Labels,
    ) -> DatabaseState {
        let Some(made) = child(observed, ChildKind::Cluster, &builder.database_name()) else {
            return DatabaseState::to_create(vec![builder.database_cluster(database, on)]);
        };
        let facts = observed.database.clone().unwrap_or_default();
        DatabaseState::Made(Made {
            created_unix_seconds: made.created_unix_seconds,
            data_since_unix_seconds: made.created_unix_seconds,
            ready: facts.ready,
            broken: facts.broken,
            phase: format!("CloudNativePG: {}", facts.phase),
            refused: None,
        })
    }

    fn query_path(&self, _: &Builder<'_>, _: &Database, _: &Labels) -> Vec<ChildObject> {
        // CloudNativePG reverts a user's edits. The operator therefore compares the generation of the `Cluster`
        // instead.
        Vec::new()
    }
}

/// Facts from the Cluster's status.
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
        cluster(
            ObjectMeta::default(),
            &database(changes),
            image,
            &node,
            &PodPolicy::default(),
        )
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
    fn the_specs_parameters_override_the_defaults() {
        let cluster = made(&json!({ "parameters": { "jit": "on", "work_mem": "4MB" } }));
        let parameters = &cluster.data["spec"]["postgresql"]["parameters"];
        assert_eq!(
            (&parameters["jit"], &parameters["work_mem"]),
            (&json!("on"), &json!("4MB"))
        );
        assert_eq!(parameters["autovacuum"], "off");
    }
}
