//! PostgreSQL without an operator of its own: a Service, the Secret that goes with it, and a
//! Deployment of one pod. Its data are in an `emptyDir` and end with the pod.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, ContainerPort, EmptyDirVolumeSource, ExecAction, PodSpec, Probe, Secret, Volume,
        VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::OwnerReference},
};

use super::{
    Builder, ChildObject, DATABASE_PORT,
    parts::{deployment, literal, requirements, restricted_container, service, words},
};
use crate::{
    api::{Database, Role},
    cnpg,
};

/// Starts PostgreSQL from whatever image has its programs.
const START: &str = include_str!("standalone.sh");
/// Where the volume is; the data are in a folder of it, the socket beside them.
const VOLUME: &str = "/var/lib/frugality";
/// A start that lasts longer is tried anew by the kubelet, in seconds.
const START_SECONDS: i32 = 900;

impl Builder<'_> {
    /// The address of a PostgreSQL that the operator runs itself.
    #[must_use]
    pub fn database_service(&self) -> ChildObject {
        let metadata = self.metadata(&self.database_host(), Some(Role::Database), None);
        service(metadata, DATABASE_PORT)
    }

    /// The login in the shape of CloudNativePG's Secret, but for what only the one who creates it knows:
    /// the password, and the URI that has it. It belongs to the Service and goes with it, because the
    /// operator may neither see nor delete Secrets.
    #[must_use]
    pub fn database_secret(&self, service_uid: &str) -> ChildObject {
        let host = self.database_host();
        let mut metadata = self.metadata(&self.database_secret_name(), Some(Role::Database), None);
        metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".into(),
            kind: "Service".into(),
            name: host.clone(),
            uid: service_uid.to_owned(),
            // A new Service must not find the old Secret there.
            block_owner_deletion: Some(true),
            ..OwnerReference::default()
        }]);
        let data = [
            ("username", cnpg::APPLICATION.to_owned()),
            ("dbname", cnpg::APPLICATION.to_owned()),
            ("host", host),
            ("port", DATABASE_PORT.to_string()),
        ];
        ChildObject::Secret(Box::new(Secret {
            metadata,
            string_data: Some(data.map(|(key, value)| (key.to_owned(), value)).into()),
            type_: Some("kubernetes.io/basic-auth".into()),
            ..Secret::default()
        }))
    }

    /// One pod with PostgreSQL on the measured node.
    #[must_use]
    pub fn database_server(
        &self,
        database: &Database,
        measured: &BTreeMap<String, String>,
    ) -> ChildObject {
        let metadata = self.metadata(&self.database_name(), Some(Role::Database), None);
        let mut env = self.database_login();
        env.extend([
            literal("PGDATABASE", cnpg::APPLICATION),
            literal("PGDATA", &format!("{VOLUME}/data")),
            literal("SOCKETS", VOLUME),
        ]);
        let settings = cnpg::parameters(database)
            .into_iter()
            .flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]);
        let container = Container {
            name: "postgres".into(),
            image: Some(self.database_image(database).to_owned()),
            command: Some(words(["/bin/sh", "-eu", "-c", START, "postgresql"])),
            args: Some(words(settings)),
            env: Some(env),
            ports: Some(vec![ContainerPort {
                container_port: DATABASE_PORT,
                ..ContainerPort::default()
            }]),
            resources: Some(requirements(&database.resources)),
            // Asked until it answers, and then never again: a probe under load would be measured. While the
            // data are being made, nothing listens at this address.
            startup_probe: Some(Probe {
                exec: Some(ExecAction {
                    command: Some(
                        ["pg_isready", "--quiet", "--host=127.0.0.1"]
                            .map(str::to_owned)
                            .into(),
                    ),
                }),
                period_seconds: Some(1),
                timeout_seconds: Some(3),
                failure_threshold: Some(START_SECONDS),
                ..Probe::default()
            }),
            volume_mounts: Some(vec![VolumeMount {
                name: "data".into(),
                mount_path: VOLUME.into(),
                ..VolumeMount::default()
            }]),
            ..restricted_container(database_user(database))
        };
        let pod = PodSpec {
            containers: vec![container],
            volumes: Some(vec![Volume {
                name: "data".into(),
                empty_dir: Some(EmptyDirVolumeSource {
                    size_limit: Some(Quantity(database.storage.size.clone())),
                    ..EmptyDirVolumeSource::default()
                }),
                ..Volume::default()
            }]),
            node_selector: Some(measured.clone()),
            // The data are thrown away with the run.
            termination_grace_period_seconds: Some(3),
            ..self.pod()
        };
        deployment(metadata, 1, pod)
    }
}

/// User ID of PostgreSQL and of its tools in the database's image.
pub(super) fn database_user(database: &Database) -> i64 {
    database.run_as_user.unwrap_or(cnpg::POSTGRES_UID)
}
