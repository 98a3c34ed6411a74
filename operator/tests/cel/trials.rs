//! Rules of trials, looks, control and times of a run.

use super::*;

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
fn the_control_is_a_candidate() {
    let of = |name: &str| [("spec/trials", json!({"blocks": 10, "control": name}))];
    rule(
        "trials.control must name a candidate",
        &of("serve"),
        &of("server"),
    );
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
