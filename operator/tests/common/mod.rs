//! Helpers for the tests of the operator's decisions: benchmarks, a world to plan in, and plans as text.

pub(crate) mod attempt;
pub(crate) mod delivered;
pub(crate) mod entries;
pub(crate) mod expected;
pub(crate) mod judgement;
pub(crate) mod levels;
pub(crate) mod manner;
pub(crate) mod noise;
pub(crate) mod objects;
pub(crate) mod operators;
pub(crate) mod schema;
pub(crate) mod summary;
pub(crate) mod sweep;
pub(crate) mod truth;
pub(crate) mod world;

use std::collections::BTreeMap;

use frugality_operator::{
    api::{Candidate, FrugalityBenchmark, FrugalityBenchmarkStatus},
    crd::bare_definitions,
    plan::{
        action::ChildObject,
        facts::{Config, PodPolicy},
        names,
        objects::{Builder, PointLoad},
        settings::{Point, Settings},
    },
    time,
};
use k8s_openapi::{api::core::v1::PodSpec, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt;
use serde_json::Value;

/// Time 0 of the tests, in Unix seconds.
pub(crate) const T0: f64 = 1_795_236_900.0;

pub(crate) fn config() -> Config {
    Config {
        injector_image: "example.org/injector:1".into(),
        injector_k6_image: "example.org/injector-k6:1".into(),
        database_image: "example.org/postgresql:15".into(),
        meter_port: 28282,
        max_node_watts: Some(30.0),
        time_url: Some("http://10.0.0.9:8080/time".into()),
        pods: pod_policy(),
    }
}

/// The installation's settings for all pods.
pub(crate) fn pod_policy() -> PodPolicy {
    let policy = serde_json::json!({
        "injector": { "requests": { "cpu": "100m" }, "limits": { "memory": "1Gi" } },
        "helper": { "requests": { "cpu": "10m" }, "limits": { "memory": "256Mi" } },
        "taints": [{ "key": "frugality.dev/role", "operator": "Exists" }],
        "secrets": [{ "name": "registry" }],
    });
    PodPolicy {
        injector_resources: serde_json::from_value(policy["injector"].clone()).unwrap(),
        helper_resources: serde_json::from_value(policy["helper"].clone()).unwrap(),
        tolerations: serde_json::from_value(policy["taints"].clone()).unwrap(),
        priority_class_name: Some("measuring".into()),
        image_pull_secrets: serde_json::from_value(policy["secrets"].clone()).unwrap(),
    }
}

/// The objects that the operator makes for a benchmark's first candidate, on `pi-1`.
pub(crate) fn made<T>(
    benchmark: &FrugalityBenchmark,
    make: impl FnOnce(&Builder<'_>, &Candidate, &BTreeMap<String, String>) -> T,
) -> T {
    let builder = Builder {
        benchmark,
        settings: &Settings::parse(&benchmark.spec).unwrap(),
        config: &config(),
        run: "run",
    };
    let node = [("kubernetes.io/hostname".to_owned(), "pi-1".to_owned())].into();
    make(&builder, &benchmark.spec.candidates[0], &node)
}

/// The pod of the injector for a benchmark's first candidate.
pub(crate) fn injector_pod(benchmark: &FrugalityBenchmark, connections: u32) -> PodSpec {
    let object = made(benchmark, |builder, candidate, node| {
        let point = Point {
            connections,
            ..builder.settings.points[0].clone()
        };
        builder.injector(candidate, "trial", PointLoad::at(&point), node, None)
    });
    let ChildObject::Job(job) = object else {
        panic!("not a Job");
    };
    job.spec.unwrap().template.spec.unwrap()
}

/// `fixtures/two.yaml`, created at [`T0`].
pub(crate) fn two() -> FrugalityBenchmark {
    of_yaml(include_str!("../fixtures/two.yaml"))
}

/// `two` with a third candidate, which is the first one under another name.
pub(crate) fn three() -> FrugalityBenchmark {
    let mut benchmark = two();
    let mut third = benchmark.spec.candidates[0].clone();
    third.name = "go".into();
    benchmark.spec.candidates.push(third);
    benchmark
}

/// `fixtures/two.yaml` with other values at these paths of its spec, such as `/trials/blocks`.
pub(crate) fn two_with(changes: &[(&str, Value)]) -> FrugalityBenchmark {
    edited(&two(), changes)
}

/// A benchmark as the API server stores it, created at [`T0`].
pub(crate) fn of_yaml(text: &str) -> FrugalityBenchmark {
    let mut benchmark: FrugalityBenchmark = serde_yaml::from_str(text).unwrap();
    benchmark.metadata.namespace = Some("shop".into());
    benchmark.metadata.uid = Some(format!("{}-uid", benchmark.name_any()));
    benchmark.metadata.generation = Some(1);
    benchmark.metadata.creation_timestamp = time::timestamp(T0).map(Time);
    benchmark.status = unseen();
    benchmark
}

/// The status that the CRD gives to a benchmark before an operator has seen it.
pub(crate) fn unseen() -> Option<FrugalityBenchmarkStatus> {
    let [(_, definition), ..] = bare_definitions();
    let version = definition.spec.versions.first()?;
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    let default = schema.properties.as_ref()?["status"].default.as_ref()?;
    serde_json::from_value(default.0.clone()).unwrap()
}

/// The benchmark after a user's edit of its spec.
pub(crate) fn edited(
    benchmark: &FrugalityBenchmark,
    changes: &[(&str, Value)],
) -> FrugalityBenchmark {
    let mut spec = serde_json::to_value(&benchmark.spec).unwrap();
    for (path, value) in changes {
        let place =
            path.trim_start_matches('/')
                .split('/')
                .fold(&mut spec, |place, key| match place {
                    Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
                    _ => &mut place[key],
                });
        *place = value.clone();
    }
    let mut benchmark = benchmark.clone();
    benchmark.spec = serde_json::from_value(spec).unwrap();
    benchmark.metadata.generation = benchmark.metadata.generation.map(|number| number + 1);
    benchmark
}

pub(crate) fn run_of(benchmark: &FrugalityBenchmark) -> String {
    names::run_id(benchmark)
}

/// Asserts that two numbers agree to a millionth.
#[track_caller]
pub(crate) fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-6 * expected.abs(),
        "{found} instead of {expected}"
    );
}
