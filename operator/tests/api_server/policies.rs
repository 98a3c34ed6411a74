//! The policies on the operator's account: they allow every object of a run, and nothing that gives a pod more.

use frugality_operator::{
    api::{FrugalityBaseline, FrugalityBenchmark, FrugalityTrial, FrugalityTrialStatus, Outcome},
    io::apply::Applied,
    plan::{
        action::{ChildObject, LedgerWrite, Plan},
        objects::PointLoad,
    },
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    admission::try_to_create,
    server::{User, server},
    stage::{Stage, plan_of, until},
};

/// Name of the attempt whose objects the tests create.
const ATTEMPT: &str = "attempt";

/// All objects of a run of this benchmark, as the operator creates them.
fn objects(stage: &Stage, benchmark: &FrugalityBenchmark) -> Vec<ChildObject> {
    let on = [("kubernetes.io/hostname".to_owned(), stage.measured.clone())].into();
    let candidate = &benchmark.spec.candidates[0];
    stage.build(benchmark, |builder| {
        let mut objects = builder.servers(candidate, ATTEMPT, None, &on);
        objects.push(builder.injector(
            candidate,
            ATTEMPT,
            PointLoad::at(&builder.settings.points[0]),
            &on,
            None,
        ));
        if let Some(database) = &benchmark.spec.database {
            objects.push(builder.prepare(database, ATTEMPT, &on));
            objects.push(builder.seed(database, &on, None));
            objects.push(builder.database_cluster(database, &on));
            objects.push(builder.database_service());
            objects.push(builder.database_secret("uid-of-the-service"));
            objects.push(builder.database_server(database, &on));
        }
        objects
    })
}

fn json_of(object: &ChildObject) -> Value {
    let object = match object {
        ChildObject::Deployment(object) => serde_json::to_value(object),
        ChildObject::Service(object) => serde_json::to_value(object),
        ChildObject::Job(object) => serde_json::to_value(object),
        ChildObject::Secret(object) => serde_json::to_value(object),
        ChildObject::Cluster(object) => serde_json::to_value(object),
    };
    object.unwrap()
}

/// A benchmark with all that gives pods volumes, variables, init containers and users.
async fn rich(stage: &Stage) -> FrugalityBenchmark {
    let candidate = json!({
        "name": "rust", "image": "example.org/rust:1", "peers": true, "replicas": 2, "runAsUser": 1000,
        "imagePullSecrets": [{ "name": "registry" }], "env": [{ "name": "A", "value": "b" }],
        "backends": [{ "name": "data", "image": "example.org/data:1", "port": 9000 }],
    });
    let database = json!({ "seed": { "configMap": { "name": "sql", "key": "seed.sql", "table": "t", "rows": 5 } } });
    let changes = [("candidates", json!([candidate])), ("database", database)];
    stage.benchmark("rich", &changes).await
}

/// Waits until the policies are in force: a moment after the start of the API server. These are the objects of a run
/// with a database.
async fn in_force(objects: &[Value]) {
    let wrong = [
        (
            "Deployment",
            ATTEMPT,
            "/spec/template/spec",
            "hostPID",
            json!(true),
        ),
        ("Service", ATTEMPT, "/spec", "type", json!("NodePort")),
        ("Secret", "-app", "", "type", json!("Opaque")),
        ("Cluster", "-db", "/spec", "superuserSecret", json!({})),
    ];
    for (kind, suffix, pointer, field, value) in wrong {
        let mut object = one(objects, kind, suffix).clone();
        object.pointer_mut(pointer).unwrap()[field] = value;
        until("the policies are in force", || async {
            try_to_create(User::Operator, &object).await.is_err()
        })
        .await;
    }
}

/// The object of this kind whose name ends like this.
fn one<'a>(objects: &'a [Value], kind: &str, suffix: &str) -> &'a Value {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let is_it = |object: &&Value| object["kind"] == kind && name(object).ends_with(suffix);
    objects.iter().find(is_it).unwrap()
}

#[tokio::test]
async fn every_object_of_every_kind_of_run_is_allowed() {
    let stage = Stage::new().await;
    let rich = rich(&stage).await;
    let of_rich: Vec<Value> = objects(&stage, &rich).iter().map(json_of).collect();
    in_force(&of_rich).await;
    let scenario = json!({ "script": "export default function () {}" });
    let scenario = [("request", Value::Null), ("scenario", scenario)];
    let batch = json!([{ "name": "rust", "image": "example.org/rust:1", "command": ["/work"] }]);
    let batch = [
        ("request", Value::Null),
        ("batch", json!({ "timeout": "10s" })),
        (
            "load",
            json!({ "duration": "20s", "warmUp": "2s", "connections": 1 }),
        ),
        ("candidates", batch),
    ];
    let contacts = json!({ "provider": "Standalone", "runAsUser": 999, "seed": { "contacts": 5 } });
    let standalone = [("database", contacts)];
    let benchmarks = [
        rich,
        stage.benchmark("script", &scenario).await,
        stage.benchmark("program", &batch).await,
        stage.benchmark("standalone", &standalone).await,
    ];
    for benchmark in &benchmarks {
        for object in objects(&stage, benchmark) {
            let (kind, name) = (object.kind(), object.name());
            let json = json_of(&object);
            if json["kind"] == "Secret" || !name.contains(ATTEMPT) {
                let plan = Plan {
                    create: vec![object],
                    ..plan_of(benchmark)
                };
                let applied = stage.apply(benchmark, plan).await.unwrap();
                assert_eq!(applied, Applied::Done, "{kind:?} {name}");
            } else {
                // The attempts of these benchmarks have one name.
                let answer = try_to_create(User::Operator, &json).await;
                assert!(answer.is_ok(), "{kind:?} {name}: {answer:?}");
            }
        }
    }
}

/// What CloudNativePG's webhook adds to the operator's database is no reason to refuse it.
#[tokio::test]
async fn a_database_with_the_defaults_of_its_webhook_is_allowed() {
    let stage = Stage::new().await;
    let benchmark = rich(&stage).await;
    let objects: Vec<Value> = objects(&stage, &benchmark).iter().map(json_of).collect();
    in_force(&objects).await;
    let mut database = one(&objects, "Cluster", "-db").clone();
    // From `setDefaults` of CloudNativePG 1.30 (api/v1/cluster_defaults.go), and from its schema.
    for (pointer, field, value) in [
        ("/spec", "logLevel", json!("info")),
        (
            "/spec",
            "replicationSlots",
            json!({ "highAvailability": { "enabled": true, "slotPrefix": "_cnpg_" } }),
        ),
        ("/spec", "probes", json!({ "liveness": {} })),
        (
            "/spec",
            "plugins",
            json!([{ "name": "p.example.org", "enabled": true }]),
        ),
        ("/spec", "postgresUID", json!(26)),
        ("/spec/affinity", "podAntiAffinityType", json!("preferred")),
        ("/spec/bootstrap/initdb", "encoding", json!("UTF8")),
        ("/spec/bootstrap/initdb", "localeCType", json!("C")),
    ] {
        database.pointer_mut(pointer).unwrap()[field] = value;
    }
    try_to_create(User::Operator, &database).await.unwrap();
}

/// Each change of an object of the run, and a part of the message with which the operator's account is refused.
#[rustfmt::skip]
fn changes() -> Vec<(&'static str, &'static str, &'static str, Value, &'static str)> {
    let pod = "/spec/template/spec";
    let container = "/spec/template/spec/containers/0";
    let host_path = json!([{ "name": "host", "hostPath": { "path": "/" } }]);
    let secret_volume = json!([{ "name": "s", "secret": { "secretName": "tls" } }]);
    let token = json!([{ "name": "t", "projected": { "sources": [{ "serviceAccountToken": { "path": "t" } }] } }]);
    let init = |more: Value| {
        let mut container = json!({
            "name": "first", "image": "example.org/first:1", "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
                "capabilities": { "drop": ["ALL"] },
            },
        });
        for (key, value) in more.as_object().unwrap() {
            container[key] = value.clone();
        }
        container
    };
    let mut first = init(json!({}));
    first["securityContext"]["capabilities"]["add"] = json!(["NET_RAW"]);
    let foreign = json!([{ "name": "X", "valueFrom": { "secretKeyRef": { "name": "tls", "key": "k" } } }]);
    let reading = init(json!({ "env": foreign }));
    let other_run = json!([{ "name": "X", "valueFrom": { "secretKeyRef": { "name": "b-01234567-db-app", "key": "k" } } }]);
    let all_of_it = json!([{ "secretRef": { "name": "tls" } }]);
    let port = json!([{ "containerPort": 8080, "hostPort": 8080 }]);
    vec![
        ("Deployment", pod, "serviceAccountName", json!("admin"), "service account"),
        ("Deployment", pod, "serviceAccount", json!("admin"), "service account"),
        ("Deployment", pod, "automountServiceAccountToken", json!(true), "service account"),
        ("Deployment", pod, "automountServiceAccountToken", Value::Null, "service account"),
        ("Job", pod, "serviceAccountName", json!("admin"), "service account"),
        ("Deployment", pod, "volumes", token, "volumes"),
        ("Deployment", pod, "volumes", host_path.clone(), "volumes"),
        ("Job", pod, "volumes", host_path, "volumes"),
        ("Deployment", pod, "volumes", secret_volume, "volumes"),
        ("Deployment", pod, "hostNetwork", json!(true), "the node's network"),
        ("Deployment", pod, "hostPID", json!(true), "the node's network"),
        ("Deployment", pod, "hostIPC", json!(true), "the node's network"),
        ("Deployment", container, "ports", port, "the node's network"),
        ("Deployment", container, "securityContext", json!({ "privileged": true }), "privileges"),
        ("Deployment", container, "securityContext", Value::Null, "privileges"),
        ("Deployment", "/spec/template/spec/containers/0/securityContext", "runAsUser", json!(0), "privileges"),
        ("Deployment", "/spec/template/spec/containers/0/securityContext", "runAsNonRoot", json!(false), "privileges"),
        ("Deployment", "/spec/template/spec/containers/0/securityContext/capabilities", "add", json!(["SYS_ADMIN"]), "privileges"),
        ("Deployment", "/spec/template/spec/containers/0/securityContext/capabilities", "drop", json!([]), "privileges"),
        ("Job", pod, "initContainers", json!([first]), "privileges"),
        ("Deployment", pod, "securityContext", json!({}), "privileges"),
        ("Deployment", container, "env", foreign, "variables from Secrets"),
        ("Deployment", container, "env", other_run, "variables from Secrets"),
        ("Deployment", container, "envFrom", all_of_it, "variables from Secrets"),
        ("Job", pod, "initContainers", json!([reading]), "variables from Secrets"),
        ("Deployment", "/metadata", "labels", Value::Null, "objects of a benchmark"),
        ("Deployment", "/metadata", "ownerReferences", Value::Null, "objects of a benchmark"),
        ("Deployment", "/spec/template/metadata/labels", "app", json!("shop"), "labels of other workloads"),
        ("Job", "/spec/template/metadata/labels", "app", json!("shop"), "labels of other workloads"),
        ("Service", "/spec", "type", json!("NodePort"), "inside the cluster"),
        ("Service", "/spec", "type", json!("LoadBalancer"), "inside the cluster"),
        ("Service", "/spec", "externalIPs", json!(["192.0.2.1"]), "inside the cluster"),
        ("Service", "/spec", "selector", json!({ "app": "shop" }), "inside the cluster"),
        ("Secret", "/metadata", "name", json!("admin-token"), "the login"),
        ("Secret", "", "type", json!("Opaque"), "the login"),
        ("Cluster", "/spec", "imageName", json!("example.org/evil:15"), "images"),
        ("Cluster", "/spec", "superuserSecret", json!({ "name": "tls" }), "without Secrets"),
        ("Cluster", "/spec", "serviceAccountName", json!("admin"), "without Secrets"),
        ("Cluster", "/spec", "projectedVolumeTemplate", json!({}), "without Secrets"),
        ("Cluster", "/spec", "externalClusters", json!([{ "name": "x" }]), "without Secrets"),
        ("Cluster", "/spec/postgresql", "shared_preload_libraries", json!(["x"]), "without Secrets"),
        ("Cluster", "/spec/postgresql", "pg_hba", json!(["host all postgres all trust"]), "who may connect"),
        ("Cluster", "/spec/postgresql", "pg_ident", json!(["local all postgres"]), "who may connect"),
        ("Cluster", "/spec/inheritedMetadata/labels", "app", json!("shop"), "labels of other workloads"),
        ("Cluster", "/spec/bootstrap", "recovery", json!({}), "two statements"),
        ("Cluster", "/spec/bootstrap/initdb", "postInitSQL", json!(["COPY t FROM PROGRAM 'id'"]), "two statements"),
        ("Cluster", "/spec/bootstrap/initdb", "postInitApplicationSQL", json!(["COPY t FROM PROGRAM 'id'"]), "two statements"),
    ]
}

#[tokio::test]
async fn the_operator_s_account_gives_no_pod_more_than_a_benchmark_s_pod_needs() {
    let stage = Stage::new().await;
    let benchmark = rich(&stage).await;
    let objects: Vec<Value> = objects(&stage, &benchmark).iter().map(json_of).collect();
    in_force(&objects).await;
    for (kind, pointer, field, value, message) in changes() {
        let suffix = match kind {
            "Secret" => "-app",
            "Cluster" => "-db",
            _ => ATTEMPT,
        };
        let mut object = one(&objects, kind, suffix).clone();
        object.pointer_mut(pointer).unwrap()[field] = value.clone();
        let what = format!("{kind} {pointer}/{field}: {value}");
        let refused = try_to_create(User::Operator, &object).await;
        let refused = refused.expect_err(&what);
        assert!(
            refused.contains(message) && refused.contains("frugality-operator-"),
            "{what}: {refused}"
        );
        // The object itself is valid. An administrator may create it.
        let answer = try_to_create(User::Admin, &object).await;
        assert!(answer.is_ok(), "{what}: {answer:?}");
    }
}

#[tokio::test]
async fn the_operator_s_account_does_not_change_a_pinned_baseline() {
    let stage = Stage::new().await;
    let params = PostParams::default();
    let as_operator = server().client(User::Operator);
    let as_operator = Api::<FrugalityBaseline>::namespaced(as_operator, &stage.namespace);
    let digest = "1".repeat(64);
    let candidate = json!({ "name": "old", "image": format!("example.org/shop@sha256:{digest}") });
    for (name, pinned) in [("anchor", true), ("moves", false)] {
        let new = json!({
            "metadata": { "name": name },
            "spec": { "candidate": candidate, "pinned": pinned },
        });
        let new = serde_json::from_value(new).unwrap();
        let stored: FrugalityBaseline = stage.api().create(&params, &new).await.unwrap();
        let answer = || as_operator.replace(name, &params, &stored);
        if pinned {
            until("the policy is in force", || async {
                answer().await.is_err()
            })
            .await;
            let refused = answer().await.unwrap_err().to_string();
            assert!(refused.contains("a baseline that is pinned"), "{refused}");
        } else {
            answer().await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_operator_s_account_deletes_only_objects_of_benchmarks() {
    let stage = Stage::new().await;
    let benchmark = rich(&stage).await;
    let mine = objects(&stage, &benchmark);
    let json: Vec<Value> = mine.iter().map(json_of).collect();
    in_force(&json).await;
    let operator = server().client(User::Operator);
    let deployments = Api::<Deployment>::namespaced(operator.clone(), &stage.namespace);
    let services = Api::<Service>::namespaced(operator.clone(), &stage.namespace);
    let benchmarks = Api::<FrugalityBenchmark>::namespaced(operator, &stage.namespace);
    let delete = DeleteParams::default();
    for is_mine in [false, true] {
        let mut made = one(&json, "Deployment", ATTEMPT).clone();
        let mut address = one(&json, "Service", ATTEMPT).clone();
        if !is_mine {
            for object in [&mut made, &mut address] {
                object["metadata"]["labels"] = json!({ "app": "shop" });
                object["metadata"]["name"] = "shop".into();
            }
        }
        let made: Deployment = serde_json::from_value(made).unwrap();
        let address: Service = serde_json::from_value(address).unwrap();
        let params = PostParams::default();
        stage.api().create(&params, &made).await.unwrap();
        stage.api().create(&params, &address).await.unwrap();
        if !is_mine {
            // The policy on deletions is the last one to be in force.
            let try_only = DeleteParams {
                dry_run: true,
                ..DeleteParams::default()
            };
            until("the policy on deletions is in force", || async {
                deployments.delete("shop", &try_only).await.is_err()
            })
            .await;
        }
        let results = [
            deployments.delete(&made.name_any(), &delete).await.err(),
            services.delete(&address.name_any(), &delete).await.err(),
        ];
        for error in results {
            let refused = error.map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(
                !is_mine,
                refused.contains("may delete objects of a benchmark only"),
                "{refused}"
            );
        }
    }
    // An attempt that is under way stays in the ledger. Old entries are deleted for runsToKeep.
    stage
        .apply(&benchmark, stage.opening(&benchmark, "entry"))
        .await
        .unwrap();
    let entries =
        Api::<FrugalityTrial>::namespaced(server().client(User::Operator), &stage.namespace);
    let refused = entries.delete("entry", &delete).await.unwrap_err();
    assert!(refused.to_string().contains("that have ended"), "{refused}");
    let seen = stage.observe(&benchmark).await.unwrap().trials;
    let record = FrugalityTrialStatus {
        outcome: Some(Outcome::Void),
        ..FrugalityTrialStatus::default()
    };
    let recording = Plan {
        ledger: Some(LedgerWrite::record(&seen[0], record)),
        ..plan_of(&benchmark)
    };
    stage.apply(&benchmark, recording).await.unwrap();
    entries.delete("entry", &delete).await.unwrap();
    // Without ttlAfterFinished, a benchmark is its author's.
    let refused = benchmarks.delete("rich", &delete).await.unwrap_err();
    assert!(
        refused.to_string().contains("ttlAfterFinished"),
        "{refused}"
    );
    stage
        .edit("rich", json!({ "ttlAfterFinished": "1h" }))
        .await;
    benchmarks.delete("rich", &delete).await.unwrap();
}
