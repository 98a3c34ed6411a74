//! Rules of the comparison with the release before.

use super::*;

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
        let reported = refused(&[(path, value)]);
        assert!(
            reported.len() == 1 && reported[0].starts_with(message),
            "{reported:?}"
        );
    }
}
