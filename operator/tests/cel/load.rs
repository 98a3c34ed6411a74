//! Rules of the load, of sweeps and of windows.

use super::*;

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
fn a_number_of_requests_fills_a_window() {
    let of =
        |rate: Value, requests: i32| [("spec/load", json!({"rate": rate, "requests": requests}))];
    let message = "load.requests are sent in less than 20s";
    rule(message, &of(json!(100), 1996), &of(json!(100), 2000));
    rule(message, &of(json!(6), 116), &of(json!("Max"), 116));
}

#[test]
fn at_a_rate_each_connection_sends_the_same_number_of_requests() {
    let of = |load: Value| [("spec/load", load)];
    let message = "load.requests must be a multiple of the connections";
    let load = |requests: i32| of(json!({"rate": 10, "requests": requests, "connections": 64}));
    rule(message, &load(1000), &load(1024));
    // By default there are four connections.
    let load = |requests: i32| of(json!({"rate": 10, "requests": requests}));
    rule(message, &load(1001), &load(1000));
    let load = |rate: Value| of(json!({"rate": rate, "requests": 1001}));
    rule(message, &load(json!(10)), &load(json!("Max")));
    let swept = |last: i32| {
        let sweep = json!({"connections": [4, last]});
        of(json!({"rate": 10, "requests": 1000, "sweep": sweep}))
    };
    rule(message, &swept(64), &swept(50));
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
