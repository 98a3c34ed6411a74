//! What the API server refuses, fills in and keeps, by the definitions and the chart's policy.

use std::{collections::BTreeSet, path::Path};

use axum::http::Request;
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial},
    plan::names::run_id,
};
use kube::{
    Api, CustomResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    cluster::{documents, has_admission_policies},
    server::{User, server},
    stage::{Stage, until},
};

/// Asks the API server to create an object, as `kubectl create --dry-run=server` does: unknown fields are refused.
pub(super) async fn try_to_create(user: User, object: &Value) -> Result<Value, String> {
    try_to_create_with("Strict", user, object).await
}

async fn try_to_create_with(validation: &str, user: User, object: &Value) -> Result<Value, String> {
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let group = match object["apiVersion"].as_str().unwrap() {
        "v1" => "/api/v1".to_owned(),
        other => format!("/apis/{other}"),
    };
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let path =
        format!("{group}/namespaces/{namespace}/{kind}s?dryRun=All&fieldValidation={validation}");
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(object).unwrap());
    let answer = server().client(user).request(request.unwrap()).await;
    answer.map_err(|error| match error {
        kube::Error::Api(status) => status.message,
        error => error.to_string(),
    })
}

/// A small valid benchmark, with other values for some fields of its spec.
fn benchmark(name: &str, changes: &Value) -> Value {
    let mut spec = json!({
        "candidates": [{ "name": "rust", "image": "example.org/rust:1" }],
        "request": { "path": "/contacts/{uuid}" },
        "load": { "duration": "20s", "warmUp": "2s" },
        "trials": { "blocks": 1, "idleBaseline": "5s" },
    });
    for (field, value) in changes.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "frugality.dev/v1alpha1", "kind": "FrugalityBenchmark",
        "metadata": { "name": name }, "spec": spec,
    })
}

#[rustfmt::skip]
fn nonsense() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"trials": {"blocks": 4}, "budgets": [{"candidate": "rust", "maxErrorRatio": 0}]}), "budgets need spec.trials.blocks of at least 5"),
        (json!({"trials": {"blocks": 5}, "budgets": [{"candidate": "go", "maxErrorRatio": 0}]}), "every budget must name a candidate of spec.candidates"),
        (json!({"trials": {"blocks": 5}, "budgets": [{"candidate": "rust"}]}), "a budget needs at least one of maxJoulesPerRequest"),
        (json!({"trials": {"blocks": 5}, "budgets": [{"candidate": "rust", "maxErrorRatio": 1.5}]}), "maxErrorRatio is a share from 0 to 1"),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1", "env": [{"name": "DATABASE_URL", "value": "postgresql://mine"}]}]}), "env must not set PORT, DATABASE_URL"),
        (json!({"database": {"seed": {"contacts": 1000}, "image": "postgres"}}), "database.image needs a tag that begins with"),
        (json!({"database": {"seed": {}}}), "database.seed needs exactly one of contacts"),
        (json!({"request": {"path": "/", "body": "x"}}), "request.body goes with method POST, PUT or PATCH"),
        (json!({"load": {"duration": "20s", "requests": 1000}}), "load takes duration or requests, not both"),
        (json!({"load": {"duration": "5s"}}), "load.duration must be from 20s to 1h"),
        (json!({"load": {"rate": 10, "duration": "60s", "connections": 301}}), "load has less than two requests for each connection"),
        (json!({"load": {"sweep": {"connections": [8, 4]}}}), "load.sweep.connections must ascend"),
        (json!({"load": {"sweep": {"connections": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], "replicas": [1, 2, 3]}}}), "load.sweep has from 2 to 32 points"),
        (json!({"load": {"sweep": {"replicas": [1, 2], "maxErrorRatio": 0.01}}}), "load.sweep.maxErrorRatio ends a sweep over connections"),
        (json!({"load": {"rate": "Fast"}}), "load.rate must be Max or a whole number of requests per second"),
        (json!({"load": {"warmUp": "1s"}}), "load.warmUp must be from 2s to 10m"),
        (json!({"trials": {"idleBaseline": "1s"}}), "trials.idleBaseline must be from 5s to 10m"),
        (json!({"energy": {"boundary": "Candidate"}}), "energy.boundary Candidate needs energy.decidingFigure Attributed"),
        (json!({"deadline": "10s"}), "spec.deadline must be from 1m to 336h"),
        (json!({"costs": {"nodeLifetime": "43800h"}}), "costs needs money, carbon or both"),
        (json!({"load": {"rate": 100, "requests": 2002}}), "load.requests must be a multiple of the connections at a load.rate"),
        (json!({"load": {"rate": 100, "requests": 500}}), "load.requests are sent in less than 20s at this load.rate"),
        (json!({"trials": {"blocks": 50}, "deadline": "10m"}), "spec.deadline is shorter than the trials must take"),
        (json!({"load": {"rate": 50}, "trials": {"blocks": 5}, "budgets": [{"candidate": "rust", "minRequestsPerSecond": 60}]}), "a budget's minRequestsPerSecond can't be met at the same load.rate or a lower one"),
        (json!({"energy": {"tieWithin": 0.05}}), "energy.tieWithin compares candidates: name a second one"),
        (json!({"candidates": [{"name": "rust", "image": "https://ghcr.io/you/server:1"}]}), "a candidate's image is a name without blanks and without https://"),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1", "backends": [{"name": "rust", "image": "example.org/rust:1"}]}]}), "a backend has the candidate's own name"),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1", "readinessPath": "healthz"}]}), "readinessPath is a path without host and blanks that begins with /"),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "500m"}}}]}), "resources.requests.cpu is more than resources.limits.cpu"),
        (json!({"request": {"path": "http://server/contacts"}}), "request.path is a path without host and blanks that begins with /"),
        (json!({"request": {"path": "/", "headers": [{"name": "Connection", "value": "close"}]}}), "request.headers must not set Connection"),
        (json!({"database": {"seed": {"contacts": 1000}, "image": "postgres:14"}}), "database.image must be PostgreSQL 15 or later"),
        (json!({"database": {"seed": {"contacts": 1000}, "parameters": {"port": "6000"}}}), "database.parameters must not set port"),
        (json!({"database": {"seed": {"contacts": 1000}, "runAsUser": 999}}), "database.runAsUser goes with provider: Standalone"),
        (json!({"database": {"seed": {"contacts": 1000}, "provider": "Standalone", "instances": 2}}), "database.instances goes with CloudNativePG"),
        (json!({"database": {"seed": {"contacts": 1000}, "provider": "Standalone", "storage": {"storageClass": "fast"}}}), "database.storage.storageClass goes with CloudNativePG"),
        (json!({"database": {"seed": {"contacts": 1000}, "poolSize": 50, "parameters": {"max_connections": "50"}}}), "database.parameters.max_connections leaves too few connections"),
        (json!({"placement": {"measuredNodeSelector": {"kubernetes.io/hostname": "pi-1"}, "injectorNodeSelector": {"kubernetes.io/hostname": "pi-1"}}}), "placement puts the injector on the measured node"),
        (json!({"trials": {"blocks": 5}, "budgets": [{"candidate": "rust", "maxJoulesPerRequest": "0.02"}]}), "spec.budgets[0].maxJoulesPerRequest in body must be of type number: \"string\""),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1", "readyWithin": "2h"}]}), "a candidate's readyWithin must be from 1s to 1h"),
        (json!({"trials": {"blocks": 5}, "baseline": {"name": "shop"}}), "spec.baseline.maxEnergyRatio: Required value"),
        (json!({"trials": {"blocks": 5}, "baseline": {"name": "shop", "maxEnergyRatio": "1.03"}}), "spec.baseline.maxEnergyRatio in body must be of type number: \"string\""),
        (json!({"trials": {"blocks": 5}, "baseline": {"name": "shop", "maxEnergyRatio": 1.03}, "candidates": [{"name": "baseline", "image": "example.org/rust:1"}]}), "the names baseline and anchor belong to the releases before"),
        (json!({"trials": {"blocks": 5}, "baseline": {"name": "shop", "maxEnergyRatio": 1.03, "promote": "OnPass"}}), "the compared candidate's images need a digest"),
        (json!({"trials": {"blocks": 5}, "baseline": {"name": "shop", "maxEnergyRatio": 1.03, "anchor": "old"}}), "baseline.anchor and baseline.anchorMaxEnergyRatio go together"),
        (json!({"trials": {"blocks": 5}, "baseline": {"name": "shop", "maxEnergyRatio": 1.03, "whenMissing": "Fail"}}), "Unsupported value: \"Fail\""),
        (json!({"rerun": 0}), "spec.rerun"),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1", "runAsUser": 0}]}), "spec.candidates[0].runAsUser"),
        (json!({"candidates": []}), "spec.candidates"),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1"}, {"name": "rust", "image": "example.org/rust:1"}]}), "spec.candidates[1]: Duplicate value: "),
        (json!({"candidates": [{"name": "rust", "image": "example.org/rust:1", "hostNetwork": true}]}), "hostNetwork"),
    ]
}

#[tokio::test]
async fn nonsense_is_refused_with_what_to_write_instead() {
    let accepted = try_to_create(User::Admin, &benchmark("sense", &Value::Null)).await;
    accepted.unwrap();
    let mut faults = Vec::new();
    for (changes, message) in nonsense() {
        match try_to_create(User::Admin, &benchmark("nonsense", &changes)).await {
            Err(text) if text.contains(message) => {}
            other => faults.push((changes, message, other.map(|_| "accepted"))),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn a_baseline_needs_digests_and_its_candidate_no_name() {
    let baseline = |image: &str| {
        json!({
            "apiVersion": "frugality.dev/v1alpha1", "kind": "FrugalityBaseline",
            "metadata": { "name": "shop" }, "spec": { "candidate": { "image": image } },
        })
    };
    let fixed = format!("example.org/rust@sha256:{}", "0".repeat(64));
    let stored = try_to_create(User::Admin, &baseline(&fixed)).await.unwrap();
    assert_eq!(stored["spec"]["candidate"]["name"], "baseline");
    let text = try_to_create(User::Admin, &baseline("example.org/rust:1"))
        .await
        .unwrap_err();
    assert!(
        text.contains("a baseline's candidate.image needs a digest"),
        "{text}"
    );
}

#[tokio::test]
async fn a_name_that_is_too_long_or_no_label_is_refused() {
    let label =
        "metadata.name must be a DNS label of at most 30 characters that begins with a letter";
    for name in ["9-lives", &"a".repeat(31)] {
        let text = try_to_create(User::Admin, &benchmark(name, &Value::Null))
            .await
            .unwrap_err();
        assert!(text.contains(label), "{text}");
    }
}

#[tokio::test]
async fn the_examples_are_accepted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut accepted = 0;
    for file in std::fs::read_dir(examples).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_yaml = path.extension().is_some_and(|it| it == "yaml");
        if !is_yaml || name.contains(".patch.") {
            continue;
        }
        for document in documents(&std::fs::read_to_string(&path).unwrap()) {
            let created = try_to_create(User::Admin, &document).await;
            assert!(created.is_ok(), "{name}: {created:?}");
            accepted += 1;
        }
    }
    assert!(accepted >= 10, "{accepted}");
}

/// What a run's ID is made of is the same before and after the API server has filled in its defaults.
#[tokio::test]
async fn what_the_api_server_fills_in_changes_no_id() {
    let smallest = include_str!("../fixtures/smallest.yaml");
    for text in [
        smallest,
        include_str!("../fixtures/two.yaml"),
        include_str!("../fixtures/full.yaml"),
    ] {
        let [written] = &documents(text)[..] else {
            panic!("{text}")
        };
        let mut stored = try_to_create(User::Admin, written).await.unwrap();
        if text == smallest {
            assert_eq!(stored["spec"]["trials"]["blocks"], 10);
            assert_eq!(stored["spec"]["load"]["warmUp"], "10s");
        }
        // Each try has a new UID.
        stored["metadata"]["uid"] = "uid".into();
        let mut written = written.clone();
        written["metadata"]["uid"] = "uid".into();
        let id = |object: Value| run_id(&serde_json::from_value(object).unwrap());
        assert_eq!(id(stored), id(written));
    }
}

#[tokio::test]
async fn a_file_that_is_applied_again_changes_nothing_and_a_new_benchmark_is_unseen() {
    let stage = Stage::new().await;
    let manifest = stage.manifest(
        "b",
        &[(
            "budgets",
            json!([{ "candidate": "rust", "maxJoulesPerRequest": 0.02 }]),
        )],
    );
    let created = super::cluster::create(&stage.admin, manifest.clone()).await;
    // Before the operator writes: in progress for Flux and Helm, which take no status for ready.
    assert_eq!(created.data["status"], json!({ "observedGeneration": -1 }));
    let api: Api<FrugalityBenchmark> = stage.api();
    // kubectl compares lists as wholes: one that the API server had filled in would differ from the file's.
    for list in ["candidates", "budgets"] {
        assert_eq!(created.data["spec"][list], manifest["spec"][list]);
    }
    let again = Patch::Merge(manifest);
    let again = api
        .patch("b", &PatchParams::default(), &again)
        .await
        .unwrap();
    assert_eq!(again.metadata.generation, Some(1));
}

#[tokio::test]
async fn not_even_an_administrator_rewrites_an_entry_of_the_ledger() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let plan = stage.opening(&benchmark, "attempt");
    stage.apply(&benchmark, plan).await.unwrap();
    let api: Api<FrugalityTrial> = stage.api();
    let forged = Patch::Merge(json!({ "spec": { "candidate": "forged" } }));
    let error = api
        .patch("attempt", &PatchParams::default(), &forged)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("can't be rewritten"), "{error}");
    let status = |outcome: &str| Patch::Merge(json!({ "status": { "outcome": outcome } }));
    api.patch_status("attempt", &PatchParams::default(), &status("Void"))
        .await
        .unwrap();
    let error = api
        .patch_status("attempt", &PatchParams::default(), &status("Measured"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("can't be rewritten"), "{error}");
}

#[tokio::test]
async fn the_image_of_the_database_is_one_that_the_chart_allows() {
    let database = |image: &str| {
        benchmark(
            "b",
            &json!({ "database": { "image": image, "seed": { "contacts": 5 } } }),
        )
    };
    if !has_admission_policies() {
        // The gap that docs/limits.md states for Kubernetes 1.29.
        let other = try_to_create(User::Admin, &database("example.com/evil:15")).await;
        other.unwrap();
        return;
    }
    for image in [
        "example.com/evil:15",
        "ghcr.io/cloudnative-pgx/a:15",
        "example.com/ghcr.io/cloudnative-pg/a:15",
    ] {
        // The API server reads a new policy a moment later.
        until("the policy", || async {
            try_to_create(User::Admin, &database(image)).await.is_err()
        })
        .await;
        let text = try_to_create(User::Admin, &database(image))
            .await
            .unwrap_err();
        for words in ["database.image must be of", "database.allowedImages"] {
            assert!(text.contains(words), "{text}");
        }
    }
    let allowed = try_to_create(User::Admin, &database("ghcr.io/cloudnative-pg/a:17")).await;
    allowed.unwrap();
}

/// Fields by which a candidate's pod would get more rights than its author has.
const GREEDY_CANDIDATE_FIELDS: [&str; 22] = [
    "privileged",
    "securityContext",
    "podSecurityContext",
    "capabilities",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "hostPort",
    "volumes",
    "volumeMounts",
    "serviceAccountName",
    "serviceAccount",
    "automountServiceAccountToken",
    "envFrom",
    "initContainers",
    "sidecars",
    "nodeName",
    "runtimeClassName",
    "priorityClassName",
    "template",
    "podSpec",
    "annotations",
];
/// Fields by which the database's pod would get more.
const GREEDY_DATABASE_FIELDS: [&str; 10] = [
    "superuserSecret",
    "enableSuperuserAccess",
    "env",
    "envFrom",
    "projectedVolumeTemplate",
    "serviceAccountTemplate",
    "externalClusters",
    "bootstrap",
    "securityContext",
    "spec",
];
const GREEDY_SPEC_FIELDS: [&str; 4] = ["serviceAccountName", "podTemplate", "injector", "meter"];

/// A candidate with one backend.
fn rust_with_backend(candidate: &Value, backend: &Value) -> Value {
    let mut candidate = candidate.clone();
    candidate["backends"] = json!([backend]);
    candidate
}

fn rust(name: &str) -> Value {
    json!({ "name": name, "image": "example.org/rust:1" })
}

fn with_fields(mut object: Value, fields: &[&str]) -> Value {
    for field in fields {
        object[field] = json!({ "any": "thing" });
    }
    object
}

/// An environment variable that would also read a Secret.
fn env_from_secret() -> Value {
    json!([{
        "name": "A",
        "value": "x",
        "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } },
    }])
}

#[tokio::test]
async fn a_field_that_would_give_more_rights_is_unknown() {
    let mut asking = Vec::new();
    for field in GREEDY_CANDIDATE_FIELDS {
        let candidate = with_fields(rust("rust"), &[field]);
        asking.push((
            json!({ "candidates": [candidate] }),
            format!("spec.candidates[0].{field}"),
        ));
        let backend = with_fields(rust("service"), &[field]);
        asking.push((
            json!({ "candidates": [rust_with_backend(&rust("rust"), &backend)] }),
            format!("spec.candidates[0].backends[0].{field}"),
        ));
    }
    for field in GREEDY_DATABASE_FIELDS {
        let database = with_fields(json!({ "seed": { "contacts": 5 } }), &[field]);
        asking.push((
            json!({ "database": database }),
            format!("spec.database.{field}"),
        ));
    }
    for field in GREEDY_SPEC_FIELDS {
        asking.push((
            json!({ field: { "any": "thing" } }),
            format!("spec.{field}"),
        ));
    }
    let mut secret = rust("rust");
    secret["env"] = env_from_secret();
    asking.push((
        json!({ "candidates": [secret] }),
        "spec.candidates[0].env[0].valueFrom".into(),
    ));
    for (changes, path) in asking {
        let text = try_to_create(User::Admin, &benchmark("greedy", &changes))
            .await
            .unwrap_err();
        assert!(
            text.contains(&format!("unknown field \"{path}\"")),
            "{path}: {text}"
        );
    }
}

/// A client that ignores the refusal, as `kubectl create --validate=ignore` does, gains nothing.
#[tokio::test]
async fn fields_that_would_give_more_rights_are_never_stored() {
    let spec = |candidate: Value, backend: Value, database: Value| {
        let candidate = rust_with_backend(&candidate, &backend);
        benchmark(
            "greedy",
            &json!({ "candidates": [candidate], "database": database }),
        )
    };
    let seed = json!({ "seed": { "contacts": 5 } });
    let greedy = |name| {
        let mut candidate = with_fields(rust(name), &GREEDY_CANDIDATE_FIELDS);
        candidate["env"] = env_from_secret();
        candidate
    };
    let modest = |name| {
        let mut candidate = rust(name);
        candidate["env"] = json!([{ "name": "A", "value": "x" }]);
        candidate
    };
    let mut asked = spec(
        greedy("rust"),
        greedy("service"),
        with_fields(seed.clone(), &GREEDY_DATABASE_FIELDS),
    );
    asked["spec"] = with_fields(asked["spec"].take(), &GREEDY_SPEC_FIELDS);
    let stored = try_to_create_with("Ignore", User::Admin, &asked).await;
    let expected = try_to_create(User::Admin, &spec(modest("rust"), modest("service"), seed)).await;
    assert_eq!(stored.unwrap()["spec"], expected.unwrap()["spec"]);
}

/// The names of all properties in a schema.
fn property_names(schema: &Value) -> BTreeSet<&str> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let named = properties.clone().map(|(name, _)| name.as_str());
    let inner = properties
        .map(|(_, inner)| inner)
        .chain([&schema["items"], &schema["additionalProperties"]])
        .filter(|inner| inner.is_object());
    named.chain(inner.flat_map(property_names)).collect()
}

#[test]
fn no_field_of_the_resource_is_a_forbidden_feature_of_a_pod() {
    let definition = serde_json::to_value(FrugalityBenchmark::crd()).unwrap();
    let schema =
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let names = property_names(schema);
    assert!(names.contains("candidates"));
    let words = [
        "privileged",
        "host",
        "secret",
        "serviceaccount",
        "volume",
        "securitycontext",
        "valuefrom",
        "envfrom",
        "podspec",
    ];
    let suspects: Vec<&str> = names
        .into_iter()
        .filter(|name| {
            let name = name.to_lowercase();
            words.iter().any(|word| name.contains(word))
        })
        .collect();
    // Names of Secrets. Only the kubelet reads them, to pull images.
    assert_eq!(suspects, ["imagePullSecrets"]);
    // The author chooses a candidate's image, and therefore its command. The author can't choose the database's
    // image.
    let holders: Vec<&String> = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, part)| property_names(part).contains("command"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(holders, ["candidates"]);
    let text = definition.to_string();
    for open in ["preserve-unknown-fields", "embedded-resource"] {
        assert!(!text.contains(&format!("x-kubernetes-{open}")), "{open}");
    }
}
