//! What a test works with: a namespace, two nodes, and an operator whose requests pass through a proxy.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, routing::get};
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, FrugalityTrialSpec},
    io::{
        apply::{Applied, Applier, ApplyError},
        known::KnownBenchmark,
        moments::Moments,
        observe::{ObserveError, Places, Remembered, observe},
        reader::Reader,
    },
    plan::{
        action::{LedgerWrite, LockAction, Plan},
        facts::{Config, Observed, Peer, PodPolicy},
        names::run_id,
        objects::Builder,
        settings::Settings,
    },
    time::unix_seconds,
};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Namespace, Node, Pod, ResourceQuota},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    cluster::{bind, grant},
    kubelet::now,
    proxy::Proxy,
    server::{User, server},
};

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the next whole second: Kubernetes' creation times have whole seconds.
pub(crate) async fn next_second() {
    tokio::time::sleep(Duration::from_millis(1100)).await;
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, is_met: impl Fn() -> F) {
    let began = Instant::now();
    while !is_met().await {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn namespace(admin: &Client, name: &str) {
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    let api = Api::<Namespace>::all(admin.clone());
    api.create(&PostParams::default(), &namespace)
        .await
        .unwrap();
}

/// One test's part of the cluster.
pub(crate) struct Stage {
    /// Namespace of the benchmarks, and of the operator's locks.
    pub(crate) namespace: String,
    pub(crate) admin: Client,
    pub(crate) proxy: Proxy,
    /// The operator's, by way of the proxy.
    pub(crate) client: Client,
    /// Node that is measured.
    pub(crate) measured: String,
    /// Node that injects.
    pub(crate) injector: String,
    pub(crate) reader: Reader,
    pub(crate) meter_port: u16,
}

impl Stage {
    /// A stage with its own namespace and its own nodes. The measured node has a meter.
    pub(crate) async fn new() -> Self {
        static STAGES: AtomicU32 = AtomicU32::new(1);
        // A test that fails shows the operator's warnings. Another test may have set this already.
        _ = tracing_subscriber::fmt()
            .with_test_writer()
            .with_ansi(false)
            .with_max_level(tracing::Level::WARN)
            .try_init();
        let namespace = format!("stage-{}", STAGES.fetch_add(1, Ordering::Relaxed));
        let admin = server().client(User::Admin);
        self::namespace(&admin, &namespace).await;
        grant(&admin, &namespace).await;
        bind(&admin, &namespace, User::Editor, "frugality-edit").await;
        bind(&admin, &namespace, User::Viewer, "frugality-view").await;
        let proxy = Proxy::start(&namespace).await;
        let (measured, injector) = (format!("{namespace}-pi"), format!("{namespace}-server"));
        let meter_port = meter(measured.clone()).await;
        let stage = Self {
            client: proxy.client(User::Operator),
            reader: Reader::new(meter_port).unwrap(),
            namespace,
            admin,
            proxy,
            measured,
            injector,
            meter_port,
        };
        stage.node(&stage.measured).await;
        stage.node(&stage.injector).await;
        stage.meter_pod().await;
        stage
    }

    /// A stage with a small benchmark.
    pub(crate) async fn with_benchmark() -> (Self, FrugalityBenchmark) {
        let stage = Self::new().await;
        let benchmark = stage.benchmark("b", &[]).await;
        (stage, benchmark)
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    async fn node(&self, name: &str) {
        let api = Api::<Node>::all(self.admin.clone());
        let labels = json!({ "kubernetes.io/hostname": name });
        let node = json!({ "metadata": { "name": name, "labels": labels } });
        let node = serde_json::from_value(node).unwrap();
        api.create(&PostParams::default(), &node).await.unwrap();
        let ready = json!({ "type": "Ready", "status": "True" });
        patch_status(&api, name, json!({ "conditions": [ready] })).await;
        // The admission plugin of taints gives a new node one until its controller has seen it.
        let spec = json!({ "spec": { "taints": null } });
        let params = PatchParams::default();
        api.patch(name, &params, &Patch::Merge(spec)).await.unwrap();
    }

    /// The DaemonSet of the meters, and its pod on the measured node.
    async fn meter_pod(&self) {
        let template = json!({
            "metadata": { "labels": { "app": "meter" } },
            "spec": { "containers": [{ "name": "meter", "image": "example.org/meter:1" }] },
        });
        let set = json!({
            "metadata": { "name": "frugality-meter" },
            "spec": { "selector": { "matchLabels": { "app": "meter" } }, "template": template },
        });
        let set: DaemonSet = serde_json::from_value(set).unwrap();
        let set = self
            .api()
            .create(&PostParams::default(), &set)
            .await
            .unwrap();
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": set.name_any(), "uid": set.uid(), "controller": true,
        });
        let mut pod = template;
        pod["metadata"]["name"] = "meter".into();
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod["spec"]["nodeName"] = self.measured.clone().into();
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let api = self.api::<Pod>();
        api.create(&PostParams::default(), &pod).await.unwrap();
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": now() });
        let address = json!([{ "ip": "127.0.0.1" }]);
        let status = json!({ "phase": "Running", "conditions": [ready], "podIP": "127.0.0.1", "podIPs": address });
        patch_status(&api, "meter", status).await;
    }

    pub(crate) fn places(&self) -> Places {
        Places {
            namespace: self.namespace.clone(),
            meter_namespace: self.namespace.clone(),
            meter_selector: "app=meter".into(),
            meter_daemon_sets: vec!["frugality-meter".into()],
            tolerations: Vec::new(),
        }
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            injector_image: "example.org/injector:1".into(),
            injector_k6_image: "example.org/injector-k6:1".into(),
            database_image: "ghcr.io/cloudnative-pg/postgresql:15".into(),
            meter_port: self.meter_port,
            max_node_watts: None,
            time_url: None,
            pods: PodPolicy::default(),
        }
    }

    /// The shortest benchmark of one server, on the stage's own nodes, with some changes of its spec.
    pub(crate) fn manifest(&self, name: &str, changes: &[(&str, Value)]) -> Value {
        let mut spec = json!({
            "candidates": [{ "name": "rust", "image": "example.org/rust:1" }],
            "request": { "path": "/" },
            "load": { "duration": "20s", "warmUp": "2s" },
            "trials": { "blocks": 5, "seed": 7, "idleBaseline": "5s" },
            "placement": {
                "measuredNodeSelector": { "kubernetes.io/hostname": self.measured },
                "injectorNodeSelector": { "kubernetes.io/hostname": self.injector },
            },
        });
        for (field, value) in changes {
            spec[*field] = value.clone();
        }
        spec.as_object_mut()
            .unwrap()
            .retain(|_, field| !field.is_null());
        json!({
            "apiVersion": "frugality.dev/v1alpha1", "kind": "FrugalityBenchmark",
            "metadata": { "name": name, "namespace": self.namespace }, "spec": spec,
        })
    }

    pub(crate) async fn benchmark(
        &self,
        name: &str,
        changes: &[(&str, Value)],
    ) -> FrugalityBenchmark {
        let new = serde_json::from_value(self.manifest(name, changes)).unwrap();
        self.api()
            .create(&PostParams::default(), &new)
            .await
            .unwrap()
    }

    /// A benchmark with the status that the operator has written. The same status is not written again.
    pub(crate) async fn reported_benchmark(&self, name: &str) -> FrugalityBenchmark {
        self.benchmark(name, &[]).await;
        let api = self.api::<FrugalityBenchmark>();
        patch_status(
            &api,
            name,
            json!({ "observedGeneration": 1, "phase": "Running" }),
        )
        .await;
        self.stored(name).await
    }

    pub(crate) async fn stored(&self, name: &str) -> FrugalityBenchmark {
        self.api().get(name).await.unwrap()
    }

    /// Changes a benchmark's spec, as a user does.
    pub(crate) async fn edit(&self, name: &str, spec: Value) -> FrugalityBenchmark {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap()
    }

    /// Everything that a pass reads, if the operator knows all benchmarks of the namespace.
    pub(crate) async fn observe(
        &self,
        benchmark: &FrugalityBenchmark,
    ) -> Result<Observed, ObserveError> {
        let known = self.api::<KnownBenchmark>();
        let known = known.list(&ListParams::default()).await.unwrap();
        let peers = known.items.into_iter().map(|it| it.peer);
        let peers = peers.filter(|it| Some(&it.uid) != benchmark.uid().as_ref());
        self.observe_with(benchmark, peers.collect()).await
    }

    /// Everything that a pass reads, if the operator knows only these other benchmarks.
    pub(crate) async fn observe_with(
        &self,
        benchmark: &FrugalityBenchmark,
        peers: Vec<Arc<Peer>>,
    ) -> Result<Observed, ObserveError> {
        self.observe_after(benchmark, peers, Remembered::default())
            .await
    }

    /// The same, if earlier passes have left this in memory.
    pub(crate) async fn observe_after(
        &self,
        benchmark: &FrugalityBenchmark,
        peers: Vec<Arc<Peer>>,
        remembered: Remembered,
    ) -> Result<Observed, ObserveError> {
        let places = self.places();
        Box::pin(observe(
            &self.client,
            &places,
            &self.reader,
            benchmark,
            peers,
            remembered,
        ))
        .await
    }

    pub(crate) fn applier(&self) -> Applier {
        Applier {
            client: self.client.clone(),
            namespace: self.namespace.clone(),
            instance: "operator-1".into(),
            reader: self.reader.clone(),
            moments: Moments::default(),
        }
    }

    /// Applies a plan that is made from the current observations.
    pub(crate) async fn apply(
        &self,
        benchmark: &FrugalityBenchmark,
        plan: Plan,
    ) -> Result<Applied, ApplyError> {
        Box::pin(
            self.applier()
                .apply(benchmark, plan, unix_seconds(Timestamp::now())),
        )
        .await
    }

    /// A quota that refuses every object of a resource. Its name is `small`.
    pub(crate) async fn none_of(&self, resource: &str) {
        let hard = json!({ format!("count/{resource}"): "0" });
        let quota = json!({ "metadata": { "name": "small" }, "spec": { "hard": hard } });
        let quota: ResourceQuota = serde_json::from_value(quota).unwrap();
        let api = self.api();
        api.create(&PostParams::default(), &quota).await.unwrap();
        // The part of the controller of quotas.
        patch_status(&api, "small", json!({ "hard": hard, "used": hard })).await;
    }

    /// Builds a benchmark's objects as the operator does.
    pub(crate) fn build<T>(
        &self,
        benchmark: &FrugalityBenchmark,
        make: impl FnOnce(&Builder<'_>) -> T,
    ) -> T {
        make(&Builder {
            benchmark,
            settings: &Settings::parse(&benchmark.spec).unwrap(),
            config: &self.config(),
            run: &run_id(benchmark),
        })
    }

    /// A new entry of the ledger for the first attempt.
    pub(crate) fn entry(&self, benchmark: &FrugalityBenchmark, name: &str) -> FrugalityTrial {
        let spec = FrugalityTrialSpec {
            benchmark: benchmark.name_any(),
            run: run_id(benchmark),
            point: "c4-max".into(),
            block: 1,
            position: 1,
            attempt: 1,
            candidate: "rust".into(),
            rate_per_second: None,
            measured_node: self.measured.clone(),
            injector_node: self.injector.clone(),
            seed: 7,
            frozen: None,
            images: None,
        };
        self.build(benchmark, |builder| builder.trial(name, spec))
    }

    /// A plan that opens this entry.
    pub(crate) fn opening(&self, benchmark: &FrugalityBenchmark, name: &str) -> Plan {
        Plan {
            ledger: Some(LedgerWrite::open(self.entry(benchmark, name), None)),
            ..plan_of(benchmark)
        }
    }
}

/// Writes a part of a status, as a kubelet or a controller does.
pub(crate) async fn patch_status<K>(api: &Api<K>, name: &str, status: Value)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// A meter of a node that draws two watts, and its port.
async fn meter(node: String) -> u16 {
    let began = Instant::now();
    let page = move || {
        let joules = 100.0 + 2.0 * began.elapsed().as_secs_f64();
        let page = format!(
            "kepler_node_cpu_joules_total{{node_name=\"{node}\",zone=\"package\"}} {joules}\n"
        );
        async move { page }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/metrics", get(page));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

/// A plan that changes nothing. A test adds its own actions.
pub(crate) fn plan_of(benchmark: &FrugalityBenchmark) -> Plan {
    Plan {
        status: benchmark.current_status().cloned().unwrap_or_default(),
        decided_unix_seconds: unix_seconds(Timestamp::now()),
        ..Plan::default()
    }
}

/// A plan that takes the lock of a node: a free one, or one that has this version.
pub(crate) fn locking(
    benchmark: &FrugalityBenchmark,
    node: &str,
    resource_version: Option<&str>,
) -> Plan {
    Plan {
        locks: vec![LockAction::Take {
            node: node.to_owned(),
            resource_version: resource_version.map(str::to_owned),
        }],
        ..plan_of(benchmark)
    }
}
