//! The servers of a candidate, new for every attempt: the server that gets the load, and its backends.

use crate::{
    api::{Backend, Candidate, LABEL_WORKLOAD, PullPolicy, Role, Server},
    plan::{
        action::ChildObject,
        names,
        objects::{
            builder::{Builder, INJECTOR_UID},
            parts::{
                TERMINATION_MESSAGE_POLICY, deployment, headless_service, literal, peers_service,
                requirements, restricted, restricted_container, service, words,
            },
        },
        settings::pods::{Workload, addresses_of, workloads},
    },
};
use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource, HTTPGetAction,
        LocalObjectReference, ObjectFieldSelector, PodSpec, Probe, SecurityContext, Volume,
        VolumeMount,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{ResourceExt, api::ObjectMeta};

/// Container of the server that gets the load.
pub const SERVER_CONTAINER: &str = "server";
/// Prefix of the names of backends' containers.
const BACKEND_CONTAINER: &str = "backend-";

/// Init container that installs the batch's runner from the injector's image.
const RUNNER_CONTAINER: &str = "runner";
/// Path of the runner in that image.
const RUNNER: &str = "/usr/bin/frugality-runner";
/// Folder that the runner is copied to. The candidate's container mounts it.
const RUNNER_FOLDER: &str = "/frugality";

/// Whether a container belongs to a candidate.
#[must_use]
pub fn is_of_candidate(container: &str) -> bool {
    container == SERVER_CONTAINER || container.starts_with(BACKEND_CONTAINER)
}

impl Builder<'_> {
    /// A candidate's servers and their addresses, backends first. The server that gets the load has the attempt's
    /// name.
    #[must_use]
    pub fn servers(
        &self,
        candidate: &Candidate,
        trial: &str,
        swept: Option<i32>,
        measured: &BTreeMap<String, String>,
    ) -> Vec<ChildObject> {
        let addresses = self.addresses(candidate, trial);
        let objects = workloads(candidate, swept)
            .into_iter()
            .flat_map(|workload| {
                let metadata = self.workload_metadata(trial, &workload);
                let mut env = addresses.clone();
                env.extend(self.peers_env(trial, &workload));
                let pod = self.server_pod(candidate, &workload, &env, measured);
                let port = workload.server.port;
                let peers = workload.server.peers.then(|| {
                    let name = self.peers_name(trial, &workload);
                    let metadata = ObjectMeta {
                        name: Some(name),
                        ..metadata.clone()
                    };
                    peers_service(metadata, port)
                });
                let address = if workload.is_backend {
                    headless_service(metadata.clone(), port)
                } else {
                    service(metadata.clone(), port)
                };
                let server = deployment(metadata, workload.replicas, pod);
                peers.into_iter().chain([server, address])
            });
        objects.collect()
    }

    fn workload_metadata(&self, trial: &str, workload: &Workload<'_>) -> ObjectMeta {
        let name = if workload.is_backend {
            names::backend_name(&self.benchmark.name_any(), trial, workload.name)
        } else {
            trial.to_owned()
        };
        let mut metadata = self.metadata(&name, Some(Role::Candidate), Some(trial));
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(LABEL_WORKLOAD.to_owned(), workload.name.to_owned());
        metadata
    }

    /// Variables with the address of each backend, for all pods of the candidate.
    fn addresses(&self, candidate: &Candidate, trial: &str) -> Vec<EnvVar> {
        let namespace = self.benchmark.namespace().unwrap_or_default();
        let address = |(backend, [host, port]): (&Backend, [String; 2])| {
            let object = names::backend_name(&self.benchmark.name_any(), trial, &backend.name);
            [
                literal(&host, &format!("{object}.{namespace}.svc")),
                literal(&port, &backend.server.port.to_string()),
            ]
        };
        let backends = candidate.backends.iter().zip(addresses_of(candidate));
        backends.flat_map(address).collect()
    }

    fn peers_name(&self, trial: &str, workload: &Workload<'_>) -> String {
        names::peers_name(&self.benchmark.name_any(), trial, workload.name)
    }

    /// Variables by which the pods of a clustered server find each other.
    fn peers_env(&self, trial: &str, workload: &Workload<'_>) -> Vec<EnvVar> {
        if !workload.server.peers {
            return Vec::new();
        }
        let namespace = self.benchmark.namespace().unwrap_or_default();
        let host = format!("{}.{namespace}.svc", self.peers_name(trial, workload));
        vec![
            EnvVar {
                name: "POD_IP".into(),
                value_from: Some(EnvVarSource {
                    field_ref: Some(ObjectFieldSelector {
                        field_path: "status.podIP".into(),
                        ..ObjectFieldSelector::default()
                    }),
                    ..EnvVarSource::default()
                }),
                ..EnvVar::default()
            },
            literal("PEERS_HOST", &host),
            literal("PEERS_COUNT", &workload.replicas.to_string()),
        ]
    }

    fn server_pod(
        &self,
        candidate: &Candidate,
        workload: &Workload<'_>,
        addresses: &[EnvVar],
        measured: &BTreeMap<String, String>,
    ) -> PodSpec {
        let server = workload.server;
        let mut env = vec![literal("PORT", &server.port.to_string())];
        if let Some(database) = &self.benchmark.spec.database {
            env.extend(self.database_env());
            env.push(literal("POOL_SIZE", &database.pool_size.to_string()));
        }
        env.extend_from_slice(addresses);
        env.extend(server.env.iter().map(|e| literal(&e.name, &e.value)));
        let is_executed = self.settings.kind.rules().is_executed() && !workload.is_backend;
        let container = Container {
            name: if workload.is_backend {
                format!("{BACKEND_CONTAINER}{}", workload.name)
            } else {
                SERVER_CONTAINER.into()
            },
            image: Some(server.image.clone()),
            command: command(server, is_executed),
            args: (!server.args.is_empty()).then(|| words(&server.args)),
            volume_mounts: is_executed.then(|| vec![runner_mount()]),
            env: Some(env),
            // The termination message of a crashed server is the end of its log.
            termination_message_policy: Some(TERMINATION_MESSAGE_POLICY.into()),
            ports: Some(vec![ContainerPort {
                container_port: server.port,
                ..ContainerPort::default()
            }]),
            resources: Some(requirements(&server.resources)),
            readiness_probe: Some(Probe {
                http_get: Some(HTTPGetAction {
                    path: Some(server.readiness_path.clone()),
                    port: IntOrString::Int(server.port),
                    ..HTTPGetAction::default()
                }),
                period_seconds: Some(1),
                timeout_seconds: Some(3),
                // An overloaded server stays in service and is measured, even if it misses probes.
                failure_threshold: Some(60),
                ..Probe::default()
            }),
            security_context: Some(SecurityContext {
                run_as_user: server.run_as_user,
                run_as_group: server.run_as_group,
                ..restricted()
            }),
            image_pull_policy: Some(
                server
                    .image_pull_policy
                    .unwrap_or(PullPolicy::IfNotPresent)
                    .as_str()
                    .into(),
            ),
            ..Container::default()
        };
        let own = candidate.image_pull_secrets.iter();
        let own = own.map(|secret| LocalObjectReference {
            name: secret.name.clone(),
        });
        let mut pull_secrets: Vec<_> = own.collect();
        for shared in &self.config.pods.image_pull_secrets {
            // The API server merges this list by name, and refuses a name that occurs twice.
            if !pull_secrets.contains(shared) {
                pull_secrets.push(shared.clone());
            }
        }
        PodSpec {
            init_containers: is_executed.then(|| vec![self.runner()]),
            volumes: is_executed.then(|| {
                vec![Volume {
                    name: RUNNER_CONTAINER.into(),
                    empty_dir: Some(EmptyDirVolumeSource::default()),
                    ..Volume::default()
                }]
            }),
            containers: vec![container],
            image_pull_secrets: Some(pull_secrets),
            node_selector: Some(measured.clone()),
            termination_grace_period_seconds: Some(10),
            ..self.pod()
        }
    }

    fn runner(&self) -> Container {
        let installed = format!("{RUNNER_FOLDER}/{RUNNER_CONTAINER}");
        Container {
            name: RUNNER_CONTAINER.into(),
            image: Some(self.config.injector_image.clone()),
            command: Some(words([RUNNER, "install", &installed])),
            volume_mounts: Some(vec![runner_mount()]),
            resources: Some(self.config.pods.helper_resources.clone()),
            ..restricted_container(INJECTOR_UID)
        }
    }
}

fn runner_mount() -> VolumeMount {
    VolumeMount {
        name: RUNNER_CONTAINER.into(),
        mount_path: RUNNER_FOLDER.into(),
        ..VolumeMount::default()
    }
}

/// The server's own command. If the program is executed, the command is the runner's, and the program is its
/// argument.
fn command(server: &Server, is_executed: bool) -> Option<Vec<String>> {
    let runner = || {
        let path = format!("{RUNNER_FOLDER}/{RUNNER_CONTAINER}");
        let port = format!("--port={}", server.port);
        [path, "serve".to_owned(), port, "--".to_owned()]
    };
    let before = is_executed.then(runner).into_iter().flatten();
    let command = words(before.chain(server.command.clone()));
    (!command.is_empty()).then_some(command)
}
