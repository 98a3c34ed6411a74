//! PostgreSQL that the operator runs itself: a Service, the Service's Secret, and a Deployment with one pod. Its
//! data are in an `emptyDir` and are deleted with the pod.

use crate::{
    api::{Database, Reason, Role},
    plan::{
        action::{ChildObject, Deletion},
        database::provider::{DatabaseProvider, DatabaseState, Made, child},
        facts::{ChildKind, Observed, PodFacts, placement::Labels, pods::describe_end},
        objects::{
            Builder,
            builder::DATABASE_PORT,
            parts::{deployment, literal, requirements, restricted_container, service, words},
        },
        settings::postgresql::{APPLICATION, database_user, parameters},
    },
};
use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, ContainerPort, EmptyDirVolumeSource, ExecAction, PodSpec, Probe, Secret, Volume,
        VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::OwnerReference},
};

/// Starts PostgreSQL. Any image with PostgreSQL's programs works.
const START: &str = include_str!("standalone.sh");
/// Mount path of the volume. The data are in one of its folders, and the socket is next to that folder.
const VOLUME: &str = "/var/lib/frugality";
/// Time limit of a start, in seconds. After that kubelet restarts the container.
const START_SECONDS: i32 = 900;

/// After this number of restarts the operator reports that the database can't start.
const MAX_RESTARTS: i32 = 3;

/// PostgreSQL in one pod. Its data are deleted with the pod.
pub struct Standalone;

impl DatabaseProvider for Standalone {
    fn missing_in_cluster(&self, _: &Observed) -> Option<(Reason, &'static str)> {
        None
    }

    fn state(
        &self,
        observed: &Observed,
        builder: &Builder<'_>,
        database: &Database,
        on: &Labels,
    ) -> DatabaseState {
        let name = builder.database_name();
        let server = child(observed, ChildKind::Deployment, &name);
        let Some(service) = child(observed, ChildKind::Service, &builder.database_host()) else {
            return DatabaseState::to_create(vec![builder.database_service()]);
        };
        let Some(server) = server else {
            // The Secret comes first: if it is missing, kubelet waits a while before it tries the pod again.
            return DatabaseState::to_create(vec![
                builder.database_secret(&service.uid),
                builder.database_server(database, on),
            ]);
        };
        if server.created_unix_seconds < service.created_unix_seconds {
            // A user deleted the Service, and with it the password that this server was created with.
            return DatabaseState::Missing {
                create: Vec::new(),
                delete: vec![Deletion::of(server)],
            };
        }
        let pods = pods(observed, builder.run);
        let newest = pods.iter().map(|pod| pod.created_unix_seconds);
        DatabaseState::Made(Made {
            created_unix_seconds: server.created_unix_seconds,
            data_since_unix_seconds: newest.fold(server.created_unix_seconds, f64::max),
            ready: !pods.is_empty()
                && pods
                    .iter()
                    .all(|pod| pod.ready_since_unix_seconds.is_some()),
            broken: pods
                .iter()
                .any(|pod| pod.restarts >= MAX_RESTARTS && pod.ready_since_unix_seconds.is_none()),
            phase: format!("its pod: {}", phase(&pods)),
            refused: server.pods_refused.clone().filter(|_| pods.is_empty()),
        })
    }

    fn query_path(
        &self,
        builder: &Builder<'_>,
        database: &Database,
        on: &Labels,
    ) -> Vec<ChildObject> {
        vec![
            builder.database_service(),
            builder.database_server(database, on),
        ]
    }
}

impl Builder<'_> {
    /// The address of a PostgreSQL that the operator runs itself.
    #[must_use]
    pub fn database_service(&self) -> ChildObject {
        let metadata = self.metadata(&self.database_host(), Some(Role::Database), None);
        service(metadata, DATABASE_PORT)
    }

    /// The login, with the keys of CloudNativePG's Secret. Two keys are missing because only the code that creates
    /// the object knows the password: the password, and the URI that contains it. The Secret belongs to the Service
    /// and is deleted with it, because the operator may neither read nor delete Secrets.
    #[must_use]
    pub fn database_secret(&self, service_uid: &str) -> ChildObject {
        let host = self.database_host();
        let mut metadata = self.metadata(&self.database_secret_name(), Some(Role::Database), None);
        metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".into(),
            kind: "Service".into(),
            name: host.clone(),
            uid: service_uid.to_owned(),
            // The old Secret must be gone before a user can create the Service again.
            block_owner_deletion: Some(true),
            ..OwnerReference::default()
        }]);
        let data = [
            ("username", APPLICATION.to_owned()),
            ("dbname", APPLICATION.to_owned()),
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
            literal("PGDATABASE", APPLICATION),
            literal("PGDATA", &format!("{VOLUME}/data")),
            literal("SOCKETS", VOLUME),
        ]);
        let settings = parameters(database)
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
            // Kubelet probes until the first success only: a probe under load would be measured. The server listens
            // at this address only after the data have been made.
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
            // The data are discarded with the run.
            termination_grace_period_seconds: Some(3),
            ..self.pod()
        };
        deployment(metadata, 1, pod)
    }
}

/// Pods of the run's database that have not ended and are not being deleted.
fn pods<'a>(observed: &'a Observed, run: &str) -> Vec<&'a PodFacts> {
    let pods = observed.pods.iter();
    pods.filter(|pod| pod.role == Role::Database.as_str() && pod.run == run)
        .filter(|pod| !pod.deleting && !pod.ended)
        .collect()
}

fn phase(pods: &[&PodFacts]) -> String {
    let Some(pod) = pods.first() else {
        return "not created yet".into();
    };
    let end = pod.terminated.values().next().map(describe_end);
    match (&pod.waiting, end) {
        (Some((reason, message)), None) => format!("{reason}: {message}"),
        (Some((reason, _)), Some(end)) => format!("{reason}: {end}"),
        (None, Some(end)) => format!("started again after {end}"),
        (None, None) => "starting".into(),
    }
}
