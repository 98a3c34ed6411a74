//! The rules by which the API server refuses a spec, evaluated without an API server. For each rule, a test
//! has a spec that breaks the rule, the rule's message, and a spec just inside the limit. The rule of
//! `load.rate` uses the function `type`, which only an API server has. The tests on a cluster cover that
//! rule.

use std::collections::BTreeMap;

use frugality_operator::api::{
    ALLOWED_PARAMETERS, FrugalityBaseline, FrugalityBenchmark, FrugalityTrial,
};
use kube::CustomResourceExt;
use kube_cel::Validator;
use serde_json::{Value, json};

fn schema<K: CustomResourceExt>() -> Value {
    let mut definition = serde_json::to_value(K::crd()).unwrap();
    let mut schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
    if let Some(rate) = schema
        .pointer_mut("/properties/spec/properties/load/properties/rate/x-kubernetes-validations")
    {
        *rate = json!([]);
    }
    schema
}

/// The messages of the rules that the object breaks.
fn refusals(schema: &Value, object: &Value, earlier: Option<&Value>) -> Vec<String> {
    match Validator::new().validate(schema, object, earlier) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_vec().into_iter().map(|e| e.message).collect(),
    }
}

/// Puts a value at a path such as `spec/load/duration` or `spec/candidates/0/env`.
fn put(object: &mut Value, path: &str, value: Value) {
    let place = path.split('/').fold(object, |place, key| match place {
        Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
        _ => &mut place[key],
    });
    *place = value;
}

/// The API server treats null as absent.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        _ => {}
    }
}

fn benchmark(changes: &[(&str, Value)]) -> Value {
    let mut object: Value = serde_yaml::from_str(include_str!("fixtures/smallest.yaml")).unwrap();
    for (path, value) in changes {
        put(&mut object, path, value.clone());
    }
    without_nulls(&mut object);
    object
}

/// `broken` breaks the rule, `kept` satisfies the rule.
#[track_caller]
fn rule(message: &str, broken: &[(&str, Value)], kept: &[(&str, Value)]) {
    let schema = schema::<FrugalityBenchmark>();
    let told = refusals(&schema, &benchmark(broken), None);
    assert!(
        told.len() == 1 && told[0].starts_with(message),
        "{broken:?} is answered with {told:?}"
    );
    let told = refusals(&schema, &benchmark(kept), None);
    assert!(told.is_empty(), "{kept:?} is answered with {told:?}");
}

/// Names of two candidates. The smallest benchmark has the first one.
const SERVER: &str = "server";
const BEFORE: &str = "before";

fn candidate(name: &str) -> Value {
    json!({"name": name, "image": "example.org/server:1"})
}

/// A database with this field set.
fn database(field: &str, value: Value) -> [(&'static str, Value); 1] {
    let mut database = json!({"seed": {"contacts": 10}});
    database[field] = value;
    [("spec/database", database)]
}

/// Checks both limits of a duration. `least` and `most` each hold a value just outside and the limit, which
/// is allowed.
fn duration_rule(message: &str, path: &str, least: [&str; 2], most: [&str; 2]) {
    for [outside, inside] in [least, most] {
        let long = ("spec/deadline", json!("336h"));
        let of = |duration: &str| [long.clone(), (path, json!(duration))];
        rule(message, &of(outside), &of(inside));
    }
}

#[test]
fn the_smallest_benchmark_is_accepted() {
    let schema = schema::<FrugalityBenchmark>();
    assert_eq!(
        refusals(&schema, &benchmark(&[]), None),
        Vec::<String>::new()
    );
}

#[test]
fn names_leave_room_for_derived_names() {
    let message = "metadata.name must be a DNS label of at most 30 characters";
    let name = |text: &str| [("metadata/name", json!(text))];
    rule(message, &name(&"a".repeat(31)), &name(&"a".repeat(30)));
    rule(message, &name("1a"), &name("a1"));
    rule(message, &name("a.b"), &name("a-b"));
}

#[test]
fn a_backend_has_another_name_and_valid_fields() {
    let of = |name: &str| {
        let backend = candidate(name);
        [("spec/candidates/0/backends", json!([backend]))]
    };
    let message = "a backend has the candidate's own name";
    rule(message, &of("server"), &of("service"));
    let bad = |field: &str, value: Value| {
        let mut backend = candidate("service");
        backend[field] = value;
        [("spec/candidates/0/backends", json!([backend]))]
    };
    let message = "env must not set PORT";
    let env = |name: &str| bad("env", json!([{"name": name, "value": "1"}]));
    rule(message, &env("PORT"), &env("PORTS"));
    let message = "a candidate's image is a name without blanks";
    let image = |name: &str| bad("image", json!(name));
    rule(
        message,
        &image("https://example.org/a"),
        &image("example.org/a:1"),
    );
}

#[test]
fn budgets_need_enough_blocks() {
    let with = |blocks: i32| {
        [
            (
                "spec/budgets",
                json!([{"candidate": "server", "maxErrorRatio": "0.01"}]),
            ),
            ("spec/trials", json!({ "blocks": blocks })),
        ]
    };
    rule(
        "budgets need spec.trials.blocks of at least 5",
        &with(4),
        &with(5),
    );
}

#[test]
fn budgets_name_a_candidate() {
    let of = |name: &str| {
        [(
            "spec/budgets",
            json!([{"candidate": name, "minRequestsPerSecond": "100"}]),
        )]
    };
    rule(
        "every budget must name a candidate",
        &of("serve"),
        &of("server"),
    );
}

#[test]
fn looks_ascend_and_end_with_the_blocks() {
    let of = |trials: Value| [("spec/trials", trials)];
    let message = "trials.looks must ascend";
    let good = json!({"blocks": 20, "looks": [10, 15, 20]});
    for looks in [
        json!([15, 10, 20]),
        json!([10, 10, 20]),
        json!([10, 25, 20]),
    ] {
        let bad = json!({"blocks": 20, "looks": looks});
        rule(message, &of(bad), &of(good.clone()));
    }
    let message = "trials.looks must end with trials.blocks";
    // 10 is also the default of `blocks`, which the API server fills in. The rule therefore accepts 10.
    let left_out = json!({"blocks": 10, "looks": [10, 15, 20]});
    let other = json!({"blocks": 15, "looks": [10, 15, 20]});
    rule(message, &of(other.clone()), &of(good));
    rule(message, &of(other), &of(left_out));
}

#[test]
fn every_connection_has_two_requests_at_least() {
    let message = "load has less than two requests for each connection";
    let of = |load: Value| [("spec/load", load)];
    let requests = |connections: i32| of(json!({"requests": 100, "connections": connections}));
    rule(message, &requests(51), &requests(50));
    let rate =
        |connections: i32| of(json!({"rate": 10, "duration": "60s", "connections": connections}));
    rule(message, &rate(301), &rate(300));
    let default = |connections: i32| of(json!({"rate": 10, "connections": connections}));
    rule(message, &default(301), &default(300));
    let swept =
        |last: i32| of(json!({"rate": 10, "duration": "60s", "sweep": {"connections": [1, last]}}));
    rule(message, &swept(301), &swept(300));
}

#[test]
fn the_size_of_a_sweep_is_limited() {
    let points = |connections: i32, trials: Value, candidates: usize| {
        let names = (1..candidates).map(|number| format!("c{number}"));
        let others: Vec<Value> = names.map(|name| candidate(&name)).collect();
        let connections: Vec<i32> = (1..=connections).collect();
        let sweep = json!({"connections": connections, "replicas": [1, 2, 3]});
        [
            (
                "spec/candidates",
                json!([vec![candidate(SERVER)], others].concat()),
            ),
            ("spec/load", json!({"duration": "20s", "sweep": sweep})),
            ("spec/trials", trials),
            ("spec/deadline", json!("336h")),
        ]
    };
    let message = "points of load.sweep × trials.blocks";
    let blocks = |blocks: i32| points(9, json!({"blocks": blocks}), 2);
    rule(message, &blocks(38), &blocks(37));
    let looks = |last: i32| points(9, json!({"looks": [6, last]}), 2);
    rule(message, &looks(38), &looks(37));
    let message = "points of load.sweep × candidates are at most 128";
    let candidates = |count: usize| points(10, json!({"blocks": 5}), count);
    rule(message, &candidates(5), &candidates(4));
}

#[test]
fn the_points_of_a_sweep_ascend() {
    let of = |sweep: Value| {
        [
            ("spec/load", json!({"duration": "20s", "sweep": sweep})),
            ("spec/deadline", json!("24h")),
        ]
    };
    let message = "load.sweep.connections must ascend";
    for connections in [json!([2, 1]), json!([4, 4]), json!([1, 2, 3, 3])] {
        let good = of(json!({"connections": [1, 2, 256]}));
        rule(message, &of(json!({"connections": connections})), &good);
    }
    let message = "load.sweep.replicas must ascend";
    let replicas = |replicas: Value| of(json!({"connections": [1, 2], "replicas": replicas}));
    rule(message, &replicas(json!([2, 1])), &replicas(json!([1, 2])));
    let message = "load.sweep has from 2 to 32 points";
    let eight_by = |replicas: Value| {
        of(json!({"connections": [1, 2, 3, 4, 5, 6, 7, 8], "replicas": replicas}))
    };
    rule(
        message,
        &eight_by(json!([1, 2, 3, 4, 5])),
        &eight_by(json!([1, 2, 3, 4])),
    );
    rule(message, &of(json!({})), &of(json!({"replicas": [1, 2]})));
    rule(
        message,
        &of(json!({"connections": [4]})),
        &of(json!({"connections": [4, 5]})),
    );
    let message = "load.sweep.maxErrorRatio ends a sweep over connections";
    let until = |sweep: Value| {
        let mut sweep = sweep;
        sweep["maxErrorRatio"] = json!("0.01");
        of(sweep)
    };
    let connections = || until(json!({"connections": [1, 2]}));
    rule(message, &until(json!({"replicas": [1, 2]})), &connections());
    let both = until(json!({"connections": [1, 2], "replicas": [1, 2]}));
    let one = until(json!({"connections": [1], "replicas": [1, 2]}));
    rule(message, &one, &both);
    let message = "load.sweep.maxErrorRatio is a share from 0 to less than 1";
    let share = |share: &str| of(json!({"connections": [1, 2], "maxErrorRatio": share}));
    rule(message, &share("1"), &share("0.999"));
}

#[test]
fn load_levels_begin_with_the_highest_rate_and_descend() {
    let of = |load: Value| [("spec/load", load), ("spec/deadline", json!("24h"))];
    let levels = |levels: Value| of(json!({"duration": "20s", "sweep": {"levels": levels}}));
    let message = "load.sweep.levels must begin with 100 and descend";
    for bad in [
        json!([100]),
        json!([90, 50]),
        json!([100, 50, 50]),
        json!([100, 50, 60]),
        json!([10, 100]),
    ] {
        rule(message, &levels(bad), &levels(json!([100, 50, 10])));
    }
    let message = "load.sweep takes levels, or connections and replicas";
    let with = |more: Value| {
        let mut sweep = json!({"levels": [100, 50]});
        sweep
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        of(json!({"duration": "20s", "connections": 8, "sweep": sweep}))
    };
    rule(
        message,
        &with(json!({"connections": [1, 2]})),
        &with(json!({})),
    );
    rule(
        message,
        &with(json!({"replicas": [1, 2]})),
        &with(json!({"of": "Common"})),
    );
    let message = "load.sweep.of says whose highest rate";
    let common = |sweep: Value| of(json!({"duration": "20s", "sweep": sweep}));
    rule(
        message,
        &common(json!({"connections": [1, 2], "of": "Common"})),
        &common(json!({"levels": [100, 50], "of": "Common"})),
    );
    let message = "load.sweep.levels are shares of the highest rate";
    let sweep = json!({"levels": [100, 50]});
    let good = of(json!({"duration": "20s", "sweep": sweep}));
    for bad in [
        json!({"duration": "20s", "rate": 100, "sweep": sweep}),
        json!({"requests": 10000, "sweep": sweep}),
    ] {
        rule(message, &of(bad), &good);
    }
    // At its levels, the load may be open, although it has no rate of its own.
    let message = "load.arrivals: Open sends requests at a rate";
    rule(
        message,
        &of(json!({"duration": "20s", "arrivals": "Open"})),
        &of(json!({"duration": "20s", "arrivals": "Open", "sweep": sweep})),
    );
    let message = "points of load.sweep × trials.blocks";
    let ten =
        json!({"duration": "20s", "sweep": {"levels": [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]}});
    let blocks = |blocks: i32| {
        [
            ("spec/load", ten.clone()),
            ("spec/deadline", json!("168h")),
            ("spec/trials/blocks", json!(blocks)),
        ]
    };
    rule(message, &blocks(91), &blocks(90));
    let message = "spec.deadline is shorter than the trials must take";
    // Two candidates, the highest rate and two levels, ten blocks: 60 trials of 69 s.
    let deadline = |deadline: &str| {
        [
            of(json!({"duration": "20s", "sweep": sweep}))[0].clone(),
            ("spec/deadline", json!(deadline)),
        ]
    };
    rule(message, &deadline("30m"), &deadline("24h"));
}

#[test]
fn the_control_is_a_candidate() {
    let of = |name: &str| [("spec/trials", json!({"blocks": 10, "control": name}))];
    rule(
        "trials.control must name a candidate",
        &of("serve"),
        &of("server"),
    );
}

/// A comparison with the release before, with this field of `spec.baseline`.
fn against(field: &str, value: Value) -> Vec<(&'static str, Value)> {
    let mut baseline = json!({"name": "shop", "maxEnergyRatio": 1.03});
    baseline[field] = value;
    vec![
        ("spec/trials", json!({"blocks": 10})),
        ("spec/baseline", baseline),
    ]
}

/// An image with a digest.
fn fixed() -> String {
    format!("example.org/server@sha256:{}", "0".repeat(64))
}

#[test]
fn the_names_of_releases_are_taken() {
    let of = |name: &str| {
        let mut changes = against("whenMissing", json!("Pass"));
        changes.push(("spec/candidates", json!([candidate(name)])));
        changes
    };
    let message = "with spec.baseline, the names baseline and anchor belong to the releases before";
    rule(message, &of("baseline"), &of("new"));
    rule(message, &of("anchor"), &of("new"));
    let alone = [("spec/candidates", json!([candidate("baseline")]))];
    rule(message, &of("baseline"), &alone);
}

#[test]
fn the_compared_candidate_is_one_of_the_candidates() {
    let message = "baseline.candidate must name the candidate of spec.candidates";
    let of = |name: &str| against("candidate", json!(name));
    rule(message, &of("serve"), &of(SERVER));
    let two = json!([SERVER, BEFORE].map(candidate));
    let mut several = against("promote", json!("Never"));
    several.push(("spec/candidates", two.clone()));
    let mut named = of(BEFORE);
    named.push(("spec/candidates", two));
    rule(message, &several, &named);
}

#[test]
fn a_comparison_of_releases_has_a_margin_above_zero_and_enough_blocks() {
    let of = |field: &'static str, value: &str| {
        let mut changes = against("anchor", json!("shop-2026"));
        changes[1].1["anchorMaxEnergyRatio"] = json!("1.1");
        changes[1].1[field] = json!(value);
        changes
    };
    rule(
        "baseline.maxEnergyRatio must be above 0",
        &of("maxEnergyRatio", "0.0"),
        &of("maxEnergyRatio", "0.9"),
    );
    rule(
        "baseline.anchorMaxEnergyRatio must be above 0",
        &of("anchorMaxEnergyRatio", "0.0"),
        &of("anchorMaxEnergyRatio", "0.9"),
    );
    let blocks = |count: i32| {
        let mut changes = against("promote", json!("Never"));
        changes[0].1 = json!({"blocks": count});
        changes
    };
    let message = "spec.baseline needs spec.trials.blocks of at least 5";
    rule(message, &blocks(4), &blocks(5));
}

#[test]
fn an_anchor_has_its_margin_and_is_not_the_baseline() {
    let of = |name: &str, margin: Value| {
        let mut changes = against("anchor", json!(name));
        changes[1].1["anchorMaxEnergyRatio"] = margin;
        changes
    };
    let good = of("shop-2026", json!("1.10"));
    let message = "baseline.anchor and baseline.anchorMaxEnergyRatio go together";
    rule(message, &of("shop-2026", Value::Null), &good);
    let message = "baseline.anchor must be another FrugalityBaseline";
    rule(message, &of("shop", json!("1.10")), &good);
}

#[test]
fn releases_are_compared_on_one_node() {
    let mut own = against("promote", json!("Never"));
    let mut board = candidate(SERVER);
    board["measuredNodeSelector"] = json!({"kubernetes.io/hostname": "pi-5"});
    own.push(("spec/candidates", json!([board])));
    let kept = against("promote", json!("Never"));
    rule(
        "with spec.baseline all candidates run on one node",
        &own,
        &kept,
    );
}

#[test]
fn a_candidate_that_may_be_promoted_has_digests() {
    let message = "with baseline.promote: OnPass the compared candidate's images need a digest";
    let of = |image: &str, backend: &str| {
        let mut changes = against("promote", json!("OnPass"));
        let mut server = candidate(SERVER);
        server["image"] = json!(image);
        server["backends"] = json!([{"name": "service", "image": backend}]);
        changes.push(("spec/candidates", json!([server])));
        changes
    };
    let good = of(&fixed(), &fixed());
    rule(message, &of("example.org/server:1", &fixed()), &good);
    rule(message, &of(&fixed(), "example.org/server:1"), &good);
    rule(message, &of(&fixed()[..80], &fixed()), &good);
    // Only the compared candidate is promoted.
    let mut both = of(&fixed(), &fixed());
    both[1].1["candidate"] = json!(SERVER);
    both[2].1.as_array_mut().unwrap().push(candidate(BEFORE));
    rule(message, &of("example.org/server:1", &fixed()), &both);
}

#[test]
fn the_control_may_be_the_release_before() {
    let of = |baseline: Value| {
        [
            ("spec/trials", json!({"blocks": 10, "control": "baseline"})),
            ("spec/baseline", baseline),
        ]
    };
    let kept = of(json!({"name": "shop", "maxEnergyRatio": "1.03"}));
    rule(
        "trials.control must name a candidate",
        &of(Value::Null),
        &kept,
    );
}

#[test]
fn a_baseline_has_digests_and_no_node_of_its_own() {
    let schema = schema::<FrugalityBaseline>();
    let refused = |changes: &[(&str, Value)]| {
        let mut object = json!({
            "apiVersion": "frugality.dev/v1alpha1", "kind": "FrugalityBaseline",
            "metadata": {"name": "shop"},
            "spec": {"candidate": {"name": "baseline", "image": fixed()}},
        });
        for (path, value) in changes {
            put(&mut object, path, value.clone());
        }
        refusals(&schema, &object, None)
    };
    assert!(refused(&[]).is_empty());
    for (path, value, message) in [
        (
            "spec/candidate/image",
            json!("example.org/server:1"),
            "a baseline's candidate.image needs a digest",
        ),
        (
            "spec/candidate/backends",
            json!([{"name": "service", "image": "example.org/service:1"}]),
            "a baseline's candidate.backends need images with a digest",
        ),
        (
            "spec/candidate/measuredNodeSelector",
            json!({"a": "b"}),
            "a baseline is measured on the node of the benchmark",
        ),
    ] {
        let told = refused(&[(path, value)]);
        assert!(told.len() == 1 && told[0].starts_with(message), "{told:?}");
    }
}

#[test]
fn a_ratio_needs_another_candidate() {
    let of = |budget: Value| {
        [
            ("spec/candidates", json!([SERVER, BEFORE].map(candidate))),
            ("spec/budgets", json!([budget])),
        ]
    };
    let good = json!({"candidate": "server", "maxEnergyRatio": "1.05", "against": "before"});
    let message = "maxEnergyRatio and against go together";
    rule(
        message,
        &of(json!({"candidate": "server", "maxEnergyRatio": "1.05"})),
        &of(good.clone()),
    );
    rule(
        message,
        &of(json!({"candidate": "server", "maxErrorRatio": "0.1", "against": "before"})),
        &of(good.clone()),
    );
    for name in ["server", "nobody"] {
        let mut bad = good.clone();
        bad["against"] = json!(name);
        rule(
            "a budget's against must name another candidate",
            &of(bad),
            &of(good.clone()),
        );
    }
    let mut bad = good.clone();
    bad["maxEnergyRatio"] = json!("0.0");
    rule("maxEnergyRatio must be above 0", &of(bad), &of(good));
}

#[test]
fn a_tie_has_a_width() {
    let of = |share: &str| {
        [
            ("spec/candidates", json!([SERVER, BEFORE].map(candidate))),
            ("spec/energy", json!({"tieWithin": share})),
        ]
    };
    let message = "energy.tieWithin is a share above 0 and up to 1";
    rule(message, &of("0.0"), &of("0.001"));
    rule(message, &of("1.1"), &of("1"));
    let alone = [("spec/energy", json!({"tieWithin": "0.05"}))];
    let message = "energy.tieWithin compares candidates";
    rule(message, &alone, &of("0.05"));
}

#[test]
fn budgets_limit_something() {
    let message = "a budget needs at least one of";
    for limit in [
        "maxJoulesPerRequest",
        "maxMillisecondsPerRequest",
        "minRequestsPerSecond",
        "maxErrorRatio",
        "maxEnergyDelayJouleSeconds",
    ] {
        rule(
            message,
            &[("spec/budgets", json!([{"candidate": "server"}]))],
            &[(
                "spec/budgets",
                json!([{"candidate": "server", limit: "0.5"}]),
            )],
        );
    }
}

#[test]
fn a_latency_target_belongs_to_a_limit_on_joules() {
    let of = |limit: &str, milliseconds: f64| {
        let target = json!({"p99Milliseconds": milliseconds});
        let budget = json!({"candidate": "server", limit: "0.5", "atMost": target});
        [("spec/budgets", json!([budget]))]
    };
    let good = of("maxJoulesPerRequest", 50.0);
    let message = "a budget's atMost goes with maxJoulesPerRequest";
    rule(message, &of("maxErrorRatio", 50.0), &good);
    let message = "atMost.p99Milliseconds must be above 0";
    rule(message, &of("maxJoulesPerRequest", 0.0), &good);
}

#[test]
fn limits_on_a_load_curve_need_levels() {
    let of = |curve: Value, sweep: Value| {
        [
            (
                "spec/budgets",
                json!([{"candidate": "server", "loadCurve": curve}]),
            ),
            ("spec/load", json!({"duration": "20s", "sweep": sweep})),
        ]
    };
    let levels = json!({"levels": [100, 50]});
    let good = of(json!({"maxIdleWatts": 3}), levels.clone());
    rule(
        "a budget's loadCurve needs load.sweep.levels",
        &of(json!({"maxIdleWatts": 3}), json!({"connections": [1, 2]})),
        &good,
    );
    rule(
        "a budget's loadCurve needs at least one of",
        &of(json!({}), levels.clone()),
        &good,
    );
    let common = json!({"levels": [100, 50], "of": "Common"});
    for field in ["maxIdleShare", "minProportionality"] {
        let curve = json!({ field: "0.5" });
        rule(
            "with load.sweep.of: Common, level 100 is not each candidate's highest rate",
            &of(curve.clone(), common.clone()),
            &of(curve, levels.clone()),
        );
    }
    rule(
        "maxIdleShare is a share from 0 to 1",
        &of(json!({"maxIdleShare": "1.1"}), levels.clone()),
        &good,
    );
    rule(
        "minProportionality is 1 or less",
        &of(json!({"minProportionality": "50"}), levels.clone()),
        &of(json!({"minProportionality": "0.5"}), levels),
    );
}

#[test]
fn an_error_ratio_is_a_share() {
    let of = |ratio: &str| {
        [(
            "spec/budgets",
            json!([{"candidate": "server", "maxErrorRatio": ratio}]),
        )]
    };
    rule(
        "maxErrorRatio is a share from 0 to 1",
        &of("1.001"),
        &of("1.0"),
    );
}

#[test]
fn candidates_must_not_set_the_operators_variables() {
    let of = |name: &str| {
        [(
            "spec/candidates/0/env",
            json!([{"name": name, "value": "1"}]),
        )]
    };
    for name in [
        "PORT",
        "DATABASE_URL",
        "POOL_SIZE",
        "PGUSER",
        "PGPASSWORD",
        "POD_IP",
        "PEERS_HOST",
        "PEERS_COUNT",
    ] {
        rule("env must not set PORT", &of(name), &of("PORTS"));
    }
}

#[test]
fn the_database_image_names_its_version() {
    let of = |image: &str| {
        [(
            "spec/database",
            json!({"image": image, "seed": {"contacts": 10}}),
        )]
    };
    let message = "database.image needs a tag";
    rule(
        message,
        &of("example.org/postgresql:latest"),
        &of("example.org/postgresql:17.5"),
    );
    rule(
        message,
        &of("example.org:5000/postgresql"),
        &of("example.org:5000/postgresql:15-bookworm"),
    );
}

#[test]
fn the_database_is_postgresql_15_or_later() {
    let message = "database.image must be PostgreSQL 15 or later";
    for (old, new) in [
        ("example.org/postgresql:14", "example.org/postgresql:15"),
        (
            "example.org:5000/pg:9.6-alpine",
            "example.org:5000/pg:17.5-alpine",
        ),
        ("example.org/pg:14@sha256:0a", "example.org/pg:16@sha256:0a"),
    ] {
        rule(
            message,
            &database("image", json!(old)),
            &database("image", json!(new)),
        );
    }
}

#[test]
fn only_allowed_parameters_in_lower_case_are_accepted() {
    for name in [
        "port",
        "Port",
        "LISTEN_ADDRESSES",
        "ssl",
        "Data_Directory",
        "Work_Mem",
        "archive_command",
        "shared_preload_libraries",
        "search_path",
        "session_replication_role",
        "track_counts",
        "pg_stat_statements.max",
        " port",
        "",
    ] {
        rule(
            &format!("database.parameters must not set {name}: allowed are"),
            &database("parameters", json!({name: "1", "work_mem": "4MB"})),
            &database("parameters", json!({"work_mem": "4MB"})),
        );
    }
}

#[test]
fn every_allowed_parameter_is_explained_and_in_lower_case() {
    let mut schema = schema::<FrugalityBenchmark>();
    let of = "/properties/spec/properties/database/properties/parameters/description";
    let explained = schema.pointer_mut(of).unwrap().take();
    for name in ALLOWED_PARAMETERS {
        let is_small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        assert!(name.chars().all(is_small), "{name}");
        assert!(
            explained.as_str().unwrap().contains(&format!("`{name}`")),
            "{name}"
        );
    }
    let all = ALLOWED_PARAMETERS
        .iter()
        .take(64)
        .map(|name| (*name, "100"));
    let all: BTreeMap<&str, &str> = all.collect();
    let told = refusals(
        &self::schema::<FrugalityBenchmark>(),
        &benchmark(&database("parameters", json!(all))),
        None,
    );
    assert_eq!(told, Vec::<String>::new());
}

#[test]
fn fields_of_one_provider_are_refused_for_the_other() {
    let of = |provider: &str, field: &str, value: Value| {
        let mut changes = database(field, value);
        changes[0].1["provider"] = json!(provider);
        changes
    };
    let user = |provider| of(provider, "runAsUser", json!(999));
    rule(
        "database.runAsUser goes with",
        &user("CloudNativePG"),
        &user("Standalone"),
    );
    rule(
        "database.runAsUser goes with",
        &database("runAsUser", json!(999)),
        &user("Standalone"),
    );
    let instances = |provider, number| of(provider, "instances", json!(number));
    rule(
        "database.instances goes with",
        &instances("Standalone", 2),
        &instances("CloudNativePG", 2),
    );
    rule(
        "database.instances goes with",
        &instances("Standalone", 2),
        &instances("Standalone", 1),
    );
    let storage = |provider, storage| of(provider, "storage", storage);
    rule(
        "database.storage.storageClass goes with",
        &storage("Standalone", json!({"storageClass": "local-path"})),
        &storage("CloudNativePG", json!({"storageClass": "local-path"})),
    );
    rule(
        "database.storage.storageClass goes with",
        &storage("Standalone", json!({"storageClass": "local-path"})),
        &storage("Standalone", json!({"size": "512Mi"})),
    );
}

#[test]
fn the_database_has_connections_for_the_pool() {
    let of = |most: &str| {
        let mut changes = database("parameters", json!({"max_connections": most}));
        changes[0].1["poolSize"] = json!(20);
        changes
    };
    let message = "database.parameters.max_connections leaves too few";
    rule(message, &of("29"), &of("30"));
    // PostgreSQL refuses a value that is not a number. The rule does not.
    rule(message, &of("5"), &of("many"));
}

#[test]
fn an_image_is_a_name() {
    let of = |image: &str| [("spec/candidates/0/image", json!(image))];
    let message = "a candidate's image is a name without blanks";
    for wrong in [
        "https://example.org/server:1",
        "example.org/server: 1",
        "\u{9}server",
    ] {
        rule(
            message,
            &of(wrong),
            &of("localhost:5000/you/server:1.2@sha256:0a"),
        );
    }
}

#[test]
fn paths_contain_no_host_and_no_blanks() {
    let readiness = |path: &str| [("spec/candidates/0/readinessPath", json!(path))];
    let request = |path: &str| [("spec/request/path", json!(path))];
    for wrong in ["healthz", "http://server/healthz", "/health z"] {
        rule(
            "readinessPath is a path without host and blanks",
            &readiness(wrong),
            &readiness("/"),
        );
        rule(
            "request.path is a path without host and blanks",
            &request(wrong),
            &request("/a?b=%20{uuid}"),
        );
    }
}

#[test]
fn headers_of_the_connection_are_refused() {
    let of = |name: &str| {
        [(
            "spec/request/headers",
            json!([{"name": name, "value": "1"}]),
        )]
    };
    for name in ["Connection", "content-length", "Transfer-Encoding"] {
        rule(
            "request.headers must not set Connection",
            &of(name),
            &of("Content-Type"),
        );
    }
}

#[test]
fn a_header_value_has_no_blanks_at_its_ends() {
    let of = |value: &str| {
        [(
            "spec/request/headers",
            json!([{"name": "X", "value": value}]),
        )]
    };
    for value in [" a", "a ", "\ta", "a\t", " "] {
        rule(
            "a header's value must not begin or end with a blank",
            &of(value),
            &of("a b\tc"),
        );
    }
    assert_eq!(
        refusals(&schema::<FrugalityBenchmark>(), &benchmark(&of("")), None),
        Vec::<String>::new()
    );
}

#[test]
fn resource_requests_do_not_exceed_the_limits() {
    let of = |requests: Value, limits: Value| {
        [(
            "spec/candidates/0/resources",
            json!({"requests": requests, "limits": limits}),
        )]
    };
    rule(
        "resources.requests.cpu is more than",
        &of(json!({"cpu": "1.1"}), json!({"cpu": "1000m"})),
        &of(
            json!({"cpu": "1"}),
            json!({"cpu": "1000m", "memory": "64Mi"}),
        ),
    );
    rule(
        "resources.requests.memory is more than",
        &of(json!({"memory": "1Gi"}), json!({"memory": "1G"})),
        &of(
            json!({"memory": "1G", "cpu": "1"}),
            json!({"memory": "1Gi"}),
        ),
    );
    let mut of_database = database(
        "resources",
        json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    );
    let broken = of_database.clone();
    of_database[0].1["resources"]["limits"]["cpu"] = json!("2");
    rule("resources.requests.cpu is more than", &broken, &of_database);
}

#[test]
fn a_number_of_requests_fills_a_window() {
    let of =
        |rate: Value, requests: i32| [("spec/load", json!({"rate": rate, "requests": requests}))];
    let message = "load.requests are sent in less than 20s";
    rule(message, &of(json!(100), 1999), &of(json!(100), 2000));
    rule(message, &of(json!(6), 119), &of(json!("Max"), 119));
}

#[test]
fn a_budget_above_the_rate_is_refused() {
    let of = |rate: Value, least: &str| {
        [
            ("spec/load", json!({"rate": rate})),
            (
                "spec/budgets",
                json!([{"candidate": "server", "minRequestsPerSecond": least}]),
            ),
        ]
    };
    let message = "a budget's minRequestsPerSecond can't be met";
    rule(message, &of(json!(100), "100.5"), &of(json!(100), "99.5"));
    rule(message, &of(json!(100), "200"), &of(json!("Max"), "200"));
}

#[test]
fn the_injector_is_not_put_on_the_measured_node() {
    let of = |injector: &str, shared: bool| {
        [(
            "spec/placement",
            json!({
                "measuredNodeSelector": {"kubernetes.io/hostname": "pi-1"},
                "injectorNodeSelector": {"kubernetes.io/hostname": injector, "board": "pi"},
                "allowSharedNode": shared,
            }),
        )]
    };
    let message = "placement puts the injector on the measured node";
    rule(message, &of("pi-1", false), &of("pi-2", false));
    rule(message, &of("pi-1", false), &of("pi-1", true));
}

#[test]
fn the_deadline_is_longer_than_the_trials() {
    // Two candidates and a control, 6 blocks, 9 + 10 + 30 + 20 s per trial: 1242 s.
    let of = |deadline: &str, trials: Value| {
        let mut trials = trials;
        trials["control"] = json!("server");
        trials["idleBaseline"] = json!("15s");
        [
            ("spec/candidates", json!([SERVER, BEFORE].map(candidate))),
            ("spec/load", json!({"duration": "20s", "warmUp": "10s"})),
            ("spec/trials", trials),
            ("spec/deadline", json!(deadline)),
        ]
    };
    let message = "spec.deadline is shorter than the trials must take";
    let six = || json!({"blocks": 6});
    rule(message, &of("1241s", six()), &of("1242s", six()));
    // The trials at every point count, unless errors may end the sweep at its first point.
    let at = |deadline: &str, sweep: Value| {
        let mut of = of(deadline, six());
        of[1].1 = json!({"duration": "20s", "warmUp": "10s", "sweep": sweep});
        of
    };
    let points = || json!({"connections": [1, 2, 4]});
    rule(message, &at("3725s", points()), &at("3726s", points()));
    let replicas = || json!({"replicas": [1, 2, 4]});
    rule(message, &at("3725s", replicas()), &at("3726s", replicas()));
    let some = || json!({"connections": [1, 2, 4], "maxErrorRatio": "0.01"});
    rule(message, &at("1241s", some()), &at("1242s", some()));
    // The run may end at the first look.
    let looks = || json!({"looks": [6, 50]});
    rule(message, &of("1241s", looks()), &of("1242s", looks()));
    // A number of requests takes at least the shortest window. Without `requests` and `duration`, the window
    // is one minute.
    let mut requests = of("1241s", six());
    requests[1].1 = json!({"requests": 1000});
    let mut longer = requests.clone();
    longer[3].1 = json!("1242s");
    rule(message, &requests, &longer);
    let mut neither = of("1961s", six());
    neither[1].1 = json!({});
    longer = neither.clone();
    longer[3].1 = json!("1962s");
    rule(message, &neither, &longer);
}

#[test]
fn the_crd_has_at_least_twenty_rules() {
    let mut kinds = std::collections::BTreeSet::new();
    collect(&schema::<FrugalityBenchmark>(), &mut |message| {
        kinds.insert(message.to_owned());
    });
    assert!(kinds.len() >= 20, "{kinds:#?}");
}

#[test]
fn a_database_is_filled_in_one_way() {
    let of = |seed: Value| [("spec/database", json!({ "seed": seed }))];
    let own = json!({"name": "sql", "key": "seed.sql", "table": "t", "rows": 3});
    let message = "database.seed needs exactly one of";
    rule(message, &of(json!({})), &of(json!({"contacts": 10})));
    rule(
        message,
        &of(json!({"contacts": 10, "configMap": own})),
        &of(json!({"configMap": own})),
    );
}

#[test]
fn costs_are_neither_empty_nor_zero() {
    let money = |node: &str| json!({"currency": "EUR", "node": node, "perKilowattHour": "0"});
    let carbon = |node: &str| json!({"nodeGrams": node, "gramsPerKilowattHour": "0"});
    let of = |lifetime: &str, name: &str, costs: Value| {
        let mut all = json!({"nodeLifetime": lifetime});
        if !name.is_empty() {
            all[name] = costs;
        }
        [("spec/costs", all)]
    };
    let some = of("24h", "money", money("90"));
    rule(
        "costs needs money, carbon or both",
        &of("24h", "", json!(null)),
        &some,
    );
    rule(
        "costs.nodeLifetime must be at least 24h",
        &of("23h", "money", money("90")),
        &some,
    );
    rule(
        "costs.money.node and perKilowattHour are both 0",
        &of("24h", "money", money("0.0")),
        &some,
    );
    rule(
        "costs.carbon.nodeGrams and gramsPerKilowattHour are both 0",
        &of("24h", "carbon", carbon("0")),
        &of("24h", "carbon", carbon("0.1")),
    );
}

#[test]
fn candidates_with_boards_have_no_database() {
    let board = |selector: Value| {
        let mut board = candidate(SERVER);
        board["measuredNodeSelector"] = selector;
        board
    };
    let of = |candidate: Value| ("spec/candidates", json!([candidate]));
    let pi = || json!({"kubernetes.io/hostname": "pi-5"});
    let [contacts] = database("seed", json!({"contacts": 10}));
    rule(
        "a database runs on one node, together with its candidates",
        &[of(board(pi())), contacts],
        &[of(board(pi()))],
    );
    rule(
        "a candidate's measuredNodeSelector names labels",
        &[of(board(json!({})))],
        &[of(board(pi()))],
    );
    let priced = |mut candidate: Value| {
        candidate["costs"] = json!({
            "nodeLifetime": "43800h",
            "carbon": {"nodeGrams": "1", "gramsPerKilowattHour": "1"},
        });
        [of(candidate)]
    };
    rule(
        "a candidate's costs need a node of its own",
        &priced(candidate(SERVER)),
        &priced(board(pi())),
    );
}

#[test]
fn the_deadline_has_limits() {
    let message = "spec.deadline must be from 1m to 336h";
    let of = |deadline: &str| {
        [
            ("spec/load", json!({"duration": "20s", "warmUp": "2s"})),
            ("spec/trials", json!({"blocks": 1, "idleBaseline": "5s"})),
            ("spec/deadline", json!(deadline)),
        ]
    };
    for (wrong, right) in [("59s", "60s"), ("337h", "336h")] {
        rule(message, &of(wrong), &of(right));
    }
}

#[test]
fn the_time_to_live_is_from_a_minute_to_a_year() {
    let of = |time: &str| [("spec/ttlAfterFinished", json!(time))];
    let message = "spec.ttlAfterFinished must be from 1m to 8784h";
    rule(message, &of("8785h"), &of("8784h"));
    rule(message, &of("59s"), &of("1m"));
}

#[test]
fn the_candidate_boundary_needs_attributed_energy() {
    let of = |figure: Value| {
        let mut energy = json!({"boundary": "Candidate"});
        if figure.is_string() {
            energy["decidingFigure"] = figure;
        }
        [("spec/energy", energy)]
    };
    let message = "energy.boundary Candidate needs energy.decidingFigure Attributed";
    rule(message, &of(json!("Gross")), &of(json!("Attributed")));
    rule(message, &of(Value::Null), &of(json!("Attributed")));
}

#[test]
fn a_window_has_a_length_or_a_number_of_requests() {
    rule(
        "load takes duration or requests, not both",
        &[("spec/load", json!({"duration": "20s", "requests": 1000}))],
        &[("spec/load", json!({"requests": 1000}))],
    );
}

#[test]
fn durations_stay_within_what_can_be_measured() {
    duration_rule(
        "load.duration must be from 20s to 1h",
        "spec/load/duration",
        ["19999ms", "20s"],
        ["3601s", "1h"],
    );
    duration_rule(
        "a candidate's readyWithin must be from 1s to 1h",
        "spec/candidates/0/readyWithin",
        ["999ms", "1s"],
        ["61m", "1h"],
    );
    duration_rule(
        "load.warmUp must be from 2s to 10m",
        "spec/load/warmUp",
        ["1s", "2s"],
        ["10m1s", "10m"],
    );
    duration_rule(
        "load.timeout must be from 100ms to 1m",
        "spec/load/timeout",
        ["99ms", "100ms"],
        ["61s", "1m"],
    );
    duration_rule(
        "trials.idleBaseline must be from 5s to 10m",
        "spec/trials/idleBaseline",
        ["4s", "5s"],
        ["11m", "10m"],
    );
}

#[test]
fn a_body_goes_with_a_method_that_has_one() {
    let of = |method: &str| {
        [(
            "spec/request",
            json!({"path": "/", "method": method, "body": "x"}),
        )]
    };
    for method in ["POST", "PUT", "PATCH"] {
        rule(
            "request.body goes with method POST, PUT or PATCH",
            &of("GET"),
            &of(method),
        );
    }
}

/// Changes that replace the request by a script.
fn scripted<'a>(scenario: Value, load: Value) -> Vec<(&'a str, Value)> {
    vec![
        ("spec/request", Value::Null),
        ("spec/scenario", scenario),
        ("spec/load", load),
    ]
}

const SCRIPT: &str = "export default () => {};";

#[test]
fn a_spec_needs_exactly_one_of_request_scenario_and_batch() {
    let message = "spec needs one of request";
    let scenario = json!({"script": SCRIPT});
    let kept = scripted(scenario.clone(), json!({}));
    rule(message, &[("spec/request", Value::Null)], &kept);
    rule(message, &[("spec/scenario", scenario)], &kept);
}

#[test]
fn a_script_imports_nothing_from_the_network() {
    let message = "scenario.script imports from the network";
    let of = |line: &str| {
        let script = format!("{line}\n{SCRIPT}");
        scripted(json!({"script": script}), json!({}))
    };
    let kept = of("import http from 'k6/http'; const url = 'https://example.org/a.js';");
    for line in [
        "import a from 'https://example.org/a.js';",
        "import { a,\n  b } from\n  \"https://example.org/a.js\";",
        "import 'https://example.org/a.js';",
        "export * from 'https://example.org/a.js';",
        "const a = require('https://example.org/a.js');",
        "const a = import( `http://example.org/a.js`);",
    ] {
        rule(message, &of(line), &kept);
    }
}

#[test]
fn a_script_has_a_cycle() {
    let of = |script: &str| scripted(json!({"script": script}), json!({}));
    rule(
        "scenario.script has no cycle",
        &of("import http from 'k6/http';"),
        &of(SCRIPT),
    );
}

#[test]
fn a_script_excludes_a_number_of_requests() {
    let of = |load: Value| scripted(json!({"script": SCRIPT}), load);
    rule(
        "load.requests counts single requests",
        &of(json!({"requests": 10_000})),
        &of(json!({"duration": "20s"})),
    );
}

#[test]
fn open_arrivals_need_single_requests_at_a_rate() {
    let of = |load: Value| vec![("spec/load", load)];
    let message = "load.arrivals: Open sends requests at a rate for some time";
    let open = |rate: Value| json!({"arrivals": "Open", "rate": rate, "duration": "20s"});
    rule(message, &of(open(json!("Max"))), &of(open(json!(100))));
    let mut without_catching_up = open(json!(100));
    without_catching_up["catchUp"] = json!(false);
    rule(message, &of(without_catching_up), &of(open(json!(100))));
    let message = "load.catchUp: false skips requests that a rate makes due";
    let skipping = |rate: Value| json!({"catchUp": false, "rate": rate, "duration": "20s"});
    rule(
        message,
        &of(skipping(json!("Max"))),
        &of(skipping(json!(100))),
    );
    let message = "load.arrivals: Open and load.catchUp: false are for request";
    for load in [open(json!(100)), skipping(json!(100))] {
        let closed = json!({"rate": 100, "duration": "20s"});
        rule(
            message,
            &scripted(json!({"script": SCRIPT}), load),
            &scripted(json!({"script": SCRIPT}), closed),
        );
    }
}

#[test]
fn agents_join_within_the_warm_up() {
    let of = |ramp_up: &str, warm_up: &str| {
        let scenario = json!({"script": SCRIPT, "rampUp": ramp_up});
        scripted(scenario, json!({"warmUp": warm_up}))
    };
    let message = "scenario.rampUp is the beginning of load.warmUp";
    rule(message, &of("11s", "10s"), &of("10s", "10s"));
    let message = "scenario.rampUp must be from 1s to 10m";
    rule(message, &of("500ms", "10s"), &of("1s", "10s"));
}

/// Changes that replace the request by a program of the candidate.
fn executed<'a>(batch: Value, load: Value, changes: &Value) -> Vec<(&'a str, Value)> {
    let mut candidate = json!({"name": "rust", "image": "x", "command": ["stockfish"]});
    for (name, value) in changes.as_object().unwrap() {
        candidate[name] = value.clone();
    }
    vec![
        ("spec/request", Value::Null),
        ("spec/batch", batch),
        ("spec/load", load),
        ("spec/candidates", json!([candidate])),
    ]
}

#[test]
fn there_is_one_execution_at_a_time() {
    let of = |load: Value| executed(json!({}), load, &json!({}));
    let kept = of(json!({"connections": 1, "duration": "20s"}));
    for load in [
        json!({"connections": 2}),
        json!({"connections": 1, "rate": 5}),
        json!({"connections": 1, "requests": 1000}),
        json!({"connections": 1, "sweep": {"replicas": [1, 2]}}),
    ] {
        rule(
            "with a batch there is one execution at a time",
            &of(load),
            &kept,
        );
    }
    rule(
        "with a batch there is one execution at a time",
        &of(json!({"connections": 2})),
        &of(json!({})),
    );
    let message = "batch.executions and load.duration both say";
    let of = |load: Value| executed(json!({"executions": 5}), load, &json!({}));
    let both = json!({"connections": 1, "duration": "20s"});
    rule(message, &of(both), &of(json!({"connections": 1})));
    let message = "batch.timeout must be from 1s to 1h";
    let of = |timeout: &str| {
        executed(
            json!({"timeout": timeout}),
            json!({"connections": 1}),
            &json!({}),
        )
    };
    rule(message, &of("61m"), &of("1h"));
}

#[test]
fn budgets_of_a_batch_need_no_latency_of_many_requests() {
    let of = |budget: Value| {
        let mut changes = executed(json!({}), json!({"connections": 1}), &json!({}));
        changes.push(("spec/budgets", json!([budget])));
        changes
    };
    let joules = |more: Value| {
        let mut budget = json!({"candidate": "rust", "maxJoulesPerRequest": "0.5"});
        let fields = more.as_object().unwrap().clone();
        budget.as_object_mut().unwrap().extend(fields);
        of(budget)
    };
    let message = "atMost and maxEnergyDelayJouleSeconds are for request and scenario";
    for bad in [
        json!({"atMost": {"p99Milliseconds": 50}}),
        json!({"maxEnergyDelayJouleSeconds": 1}),
    ] {
        rule(message, &joules(bad), &joules(json!({})));
    }
}

#[test]
fn a_batch_needs_a_command_in_one_pod() {
    let of = |changes: Value| executed(json!({}), json!({"connections": 1}), &changes);
    let message = "with a batch every candidate needs command";
    rule(message, &of(json!({"command": []})), &of(json!({})));
    let message = "with a batch each candidate is one pod";
    rule(
        message,
        &of(json!({"replicas": 2})),
        &of(json!({"replicas": 1})),
    );
    rule(
        message,
        &of(json!({"peers": true})),
        &of(json!({"peers": false})),
    );
}

#[test]
fn score_and_work_are_numbers_that_can_be_read() {
    let of = |batch: Value| executed(batch, json!({"connections": 1}), &json!({}));
    let score = |pattern: &str| of(json!({"score": {"pattern": pattern, "unit": "u"}}));
    let message = "batch.score.pattern has no group";
    rule(message, &score("score [0-9]+"), &score("score ([0-9]+)"));
    let work = |work: Value| of(json!({"work": work}));
    let pattern = |text: &str| work(json!({"pattern": text, "unit": "u"}));
    let message = "batch.work.pattern has no group";
    rule(message, &pattern("work [0-9]+"), &pattern("work ([0-9]+)"));
    let message = "batch.work needs either pattern";
    let given = work(json!({"amount": "7", "unit": "u"}));
    rule(message, &work(json!({"unit": "u"})), &given);
    let both = work(json!({"unit": "u", "amount": "7", "pattern": "(a)"}));
    rule(message, &both, &given);
    let message = "batch.work.amount must be above 0";
    rule(message, &work(json!({"amount": "0", "unit": "u"})), &given);
}

fn entry(status: &Value) -> Value {
    json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityTrial",
        "metadata": {"name": "t"},
        "spec": {
            "benchmark": "b", "run": "01234567", "point": "c4-max", "block": 1, "position": 1,
            "attempt": 1, "candidate": "rust", "measuredNode": "pi-1",
            "injectorNode": "injector-1", "seed": 1,
        },
        "status": status,
    })
}

#[test]
fn an_entry_of_the_ledger_is_not_rewritten() {
    let schema = schema::<FrugalityTrial>();
    let before = entry(&json!({}));
    let mut after = before.clone();
    assert!(refusals(&schema, &after, Some(&before)).is_empty());
    after["spec"]["candidate"] = json!("python");
    assert_eq!(
        refusals(&schema, &after, Some(&before)),
        ["an entry of the ledger can't be rewritten"]
    );
}

#[test]
fn an_entry_that_has_an_outcome_is_final() {
    let schema = schema::<FrugalityTrial>();
    let open = entry(&json!({"idleBefore": {"startUnixSeconds": 1.0, "endUnixSeconds": 2.0}}));
    let void = entry(&json!({"outcome": "Void", "reason": "PodReplaced"}));
    let measured = entry(&json!({"outcome": "Measured", "reason": "Measured"}));
    assert!(refusals(&schema, &void, Some(&open)).is_empty());
    assert!(refusals(&schema, &void, Some(&void)).is_empty());
    assert_eq!(
        refusals(&schema, &measured, Some(&void)),
        ["an entry of the ledger that has an outcome can't be rewritten"]
    );
}

#[test]
fn every_rule_is_tested() {
    let text = include_str!("cel.rs");
    let mut untried = Vec::new();
    for schema in [
        schema::<FrugalityBenchmark>(),
        schema::<FrugalityTrial>(),
        schema::<FrugalityBaseline>(),
    ] {
        collect(&schema, &mut |message| {
            let tried = text
                .split('"')
                .any(|quoted| quoted.len() >= 15 && message.starts_with(quoted));
            if !tried {
                untried.push(message.to_owned());
            }
        });
    }
    assert!(untried.is_empty(), "{untried:#?}");
}

fn collect(schema: &Value, found: &mut dyn FnMut(&str)) {
    match schema {
        Value::Object(fields) => {
            for rule in fields
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                found(
                    rule["message"]
                        .as_str()
                        .unwrap_or("a rule without a message"),
                );
            }
            fields.values().for_each(|field| collect(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
