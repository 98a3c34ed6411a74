//! Plays the kubelets and Kubernetes' own controllers for one namespace: Deployments and Jobs get pods, pods become
//! ready, Services get addresses, and what is deleted goes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use frugality_operator::api::{FrugalityBenchmark, LABEL_ROLE, Role};
use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{Pod, PodTemplateSpec, Service},
        discovery::v1::EndpointSlice,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::stage::{Stage, patch_status};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// What the Jobs of the database print: rows and digest.
pub(crate) const SEEDED_ROWS: i64 = 5;
const SEEDED: &str = "5 -77";

/// The present in whole seconds, as Kubernetes writes times.
pub(crate) fn now() -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    DateTimePrinter::new().timestamp_to_string(&now)
}

/// Plays until it is dropped.
pub(crate) struct Kubelet(JoinHandle<()>);

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Kubelet {
    pub(crate) fn start(stage: &Stage) -> Self {
        let player = Player {
            client: stage.admin.clone(),
            namespace: stage.namespace.clone(),
        };
        Self(tokio::spawn(async move {
            loop {
                player.look().await;
                tokio::time::sleep(INTERVAL).await;
            }
        }))
    }
}

struct Player {
    client: Client,
    namespace: String,
}

impl Player {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api().list(&ListParams::default()).await.unwrap().items
    }

    async fn look(&self) {
        // Before the benchmarks: the owner of each of these is in the later list, or is gone.
        let (deployments, jobs) = (self.list::<Deployment>().await, self.list::<Job>().await);
        let services = self.list::<Service>().await;
        let benchmarks = self.api::<FrugalityBenchmark>();
        let benchmarks = benchmarks.list_metadata(&ListParams::default()).await;
        let owners: BTreeSet<String> = benchmarks
            .unwrap()
            .items
            .iter()
            .filter_map(ResourceExt::uid)
            .collect();
        self.collect(&deployments, &owners).await;
        self.collect(&jobs, &owners).await;
        self.collect(&services, &owners).await;
        let pods = self.list::<Pod>().await;
        for deployment in &deployments {
            let template = &deployment.spec.as_ref().unwrap().template;
            self.run(deployment, "ReplicaSet", template, &pods).await;
        }
        for job in &jobs {
            let template = &job.spec.as_ref().unwrap().template;
            self.run(job, "Job", template, &pods).await;
        }
        for service in services {
            if service.metadata.deletion_timestamp.is_some() {
                self.let_go(&service).await;
            } else {
                self.addresses(&service, &pods).await;
            }
        }
    }

    /// The garbage collector's part: what belonged to a benchmark that is gone is deleted.
    async fn collect<K>(&self, objects: &[K], owners: &BTreeSet<String>)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        for object in objects {
            let mut of_benchmarks = object
                .owner_references()
                .iter()
                .filter(|owner| owner.kind == "FrugalityBenchmark");
            if of_benchmarks.any(|owner| !owners.contains(&owner.uid)) {
                let params = DeleteParams::foreground();
                _ = self.api::<K>().delete(&object.name_any(), &params).await;
            }
        }
    }

    /// The pod of an object, or its end.
    async fn run<K>(&self, object: &K, owner: &str, template: &PodTemplateSpec, pods: &[Pod])
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let uid = object.uid().unwrap();
        let is_its = |pod: &&Pod| pod.owner_references().iter().any(|it| it.uid == uid);
        let pod = pods.iter().find(is_its);
        let is_going = object.meta().deletion_timestamp.is_some();
        match pod {
            Some(pod) if is_going => {
                let now = DeleteParams::default().grace_period(0);
                _ = self.api::<Pod>().delete(&pod.name_any(), &now).await;
            }
            None if is_going => self.let_go(object).await,
            None => self.start(object, owner, template).await,
            Some(_) => {}
        }
    }

    async fn start<K: Resource>(&self, object: &K, owner: &str, template: &PodTemplateSpec) {
        let name = object.name_any();
        let owner = json!({
            "apiVersion": "apps/v1", "kind": owner, "name": format!("{name}-1"), "uid": object.uid(), "controller": true,
        });
        let mut spec = template.spec.clone().unwrap();
        spec.node_name = spec
            .node_selector
            .iter()
            .flat_map(BTreeMap::values)
            .next()
            .cloned();
        let pod = Pod {
            metadata: ObjectMeta {
                name: Some(format!("{name}-1")),
                labels: template.metadata.as_ref().and_then(|it| it.labels.clone()),
                owner_references: Some(vec![serde_json::from_value(owner).unwrap()]),
                ..ObjectMeta::default()
            },
            spec: Some(spec.clone()),
            ..Pod::default()
        };
        let api = self.api::<Pod>();
        // The name is taken while an earlier pod goes.
        if api.create(&PostParams::default(), &pod).await.is_err() {
            return;
        }
        let role = pod.labels().get(LABEL_ROLE).map(String::as_str);
        let is_done = [Role::Seed, Role::Prepare]
            .iter()
            .any(|it| Some(it.as_str()) == role);
        let container = |name: &str| {
            let state = if is_done {
                json!({ "terminated": { "exitCode": 0, "reason": "Completed", "message": SEEDED } })
            } else {
                json!({ "running": { "startedAt": now() } })
            };
            json!({
                "name": name, "ready": !is_done, "restartCount": 0, "image": "i", "imageID": "sha256:1",
                "state": state,
            })
        };
        let containers: Vec<Value> = spec
            .containers
            .iter()
            .map(|it| container(&it.name))
            .collect();
        let condition = |kind: &str, is: bool| {
            let status = if is { "True" } else { "False" };
            json!({ "type": kind, "status": status, "lastTransitionTime": now() })
        };
        let status = json!({
            "phase": if is_done { "Succeeded" } else { "Running" },
            "podIP": "127.0.0.1", "podIPs": [{ "ip": "127.0.0.1" }],
            "conditions": [condition("PodScheduled", true), condition("Ready", !is_done)],
            "containerStatuses": containers,
        });
        patch_status(&api, &pod.name_any(), status).await;
    }

    /// The garbage collector's part in a deletion in the foreground.
    async fn let_go<K>(&self, object: &K)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let params = PatchParams::default();
        _ = self
            .api::<K>()
            .patch_metadata(&object.name_any(), &params, &patch)
            .await;
    }

    async fn addresses(&self, service: &Service, pods: &[Pod]) {
        let selector = service.spec.as_ref().and_then(|it| it.selector.clone());
        let selector = selector.unwrap_or_default();
        let is_selected = |pod: &&Pod| {
            selector
                .iter()
                .all(|(key, value)| pod.labels().get(key) == Some(value))
        };
        let endpoints: Vec<Value> = pods
            .iter()
            .filter(is_selected)
            .map(|pod| {
                json!({
                    "addresses": ["10.1.0.1"],
                    "targetRef": { "kind": "Pod", "name": pod.name_any(), "uid": pod.uid() },
                })
            })
            .collect();
        let name = service.name_any();
        if selector.is_empty() || endpoints.is_empty() {
            return;
        }
        let slice = json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/service-name": name } },
            "addressType": "IPv4", "endpoints": endpoints, "ports": [],
        });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        let api = self.api::<EndpointSlice>();
        if api.get_opt(&name).await.unwrap().is_none() {
            api.create(&PostParams::default(), &slice).await.unwrap();
        }
    }
}
