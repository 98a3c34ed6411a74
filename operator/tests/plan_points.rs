//! The points that a spec asks for, and their order in time.

use crate::common::{
    entries::{swept, without_figures},
    run_of,
    sweep::{at, saturating},
    two_with,
};
use frugality_operator::{
    api::{Outcome, Reason},
    plan::{
        ledger::{Ledger, Next},
        settings::{Settings, SettingsError},
    },
};
use serde_json::{Value, json};

#[test]
fn rounds_go_over_all_points_and_each_is_balanced() {
    let benchmark = at(&[1, 2, 4], &[("/trials/blocks", json!(6))]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let plan = settings.plan();
    assert_eq!(plan.len(), 18);
    for round in plan.chunks(3) {
        let mut points: Vec<_> = round.iter().map(|block| block.point).collect();
        points.sort_unstable();
        assert_eq!(points, [0, 1, 2]);
    }
    for point in 0..3 {
        let first = plan
            .iter()
            .filter(|b| b.point == point && b.order[0] == 0)
            .count();
        assert_eq!(
            first, 3,
            "each candidate comes first in half of the blocks of a point"
        );
    }
    let orders: std::collections::BTreeSet<Vec<usize>> = plan
        .chunks(3)
        .map(|round| round.iter().map(|b| b.point).collect())
        .collect();
    assert!(orders.len() > 1, "the points are in random order");
    assert_eq!(
        settings.point_of(1).unwrap(),
        &settings.points[plan[0].point]
    );
    assert_eq!((settings.point_of(0), settings.point_of(19)), (None, None));
}

#[test]
fn a_void_attempt_repeats_its_block_at_its_point() {
    let benchmark = at(&[1, 2], &[]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let mut trials = swept(&benchmark, |connections, block, _, name| {
        saturating(connections, block, name)
    });
    trials.retain(|trial| trial.spec.block <= 3);
    let third = settings.point_of(3).unwrap().name.clone();
    let last = trials.iter_mut().rfind(|t| t.spec.block == 3).unwrap();
    last.status = Some(without_figures(
        Outcome::Void,
        Reason::PodReplaced.as_str(),
        "gone",
    ));
    let run = run_of(&benchmark);
    let ledger = Ledger::of(&run, &trials);
    let Next::Start(start) = ledger.next(&settings) else {
        panic!("{:?}", ledger.next(&settings));
    };
    assert_eq!((start.block, start.attempt, start.position), (3, 2, 1));
    assert_eq!(settings.point_of(start.block).unwrap().name, third);
}

/// A benchmark that was stored before the API server had the rule.
#[test]
fn at_a_rate_the_connections_divide_the_requests() {
    let parse = |load: Value| Settings::parse(&two_with(&[("/load", load)]).spec);
    let unequal = Err(SettingsError::UnequalConnections);
    assert_eq!(
        parse(json!({"connections": 64, "rate": 10, "requests": 1000})),
        unequal
    );
    let sweep = json!({"connections": [10, 64]});
    assert_eq!(
        parse(json!({"rate": 10, "requests": 1000, "sweep": sweep})),
        unequal
    );
    for load in [
        json!({"connections": 50, "rate": 10, "requests": 1000}),
        json!({"connections": 64, "requests": 1000}),
    ] {
        assert!(parse(load.clone()).is_ok(), "{load}");
    }
}

#[test]
fn every_connection_has_two_requests_at_least() {
    let parse = |load: Value| Settings::parse(&two_with(&[("/load", load)]).spec);
    let too_many = Err(SettingsError::TooManyConnections);
    for (load, is_enough) in [
        (json!({"connections": 50, "requests": 100}), true),
        (json!({"connections": 51, "requests": 100}), false),
        (
            json!({"connections": 300, "rate": 10, "duration": "60s"}),
            true,
        ),
        (
            json!({"connections": 301, "rate": 10, "duration": "60s"}),
            false,
        ),
        (
            json!({"rate": 10, "duration": "60s", "sweep": {"connections": [1, 301]}}),
            false,
        ),
        (json!({"connections": 1024, "duration": "20s"}), true),
    ] {
        let parsed = parse(load.clone());
        assert_eq!(parsed.is_ok(), is_enough, "{load}");
        assert!(is_enough || parsed == too_many);
    }
}

#[test]
fn points_ascend() {
    let parse = |sweep: Value| Settings::parse(&at(&[1, 2], &[("/load/sweep", sweep)]).spec);
    for bad in [
        json!([4]),
        json!([2, 2]),
        json!([4, 2]),
        json!((1..=33).collect::<Vec<_>>()),
    ] {
        assert_eq!(
            parse(json!({"connections": bad})),
            Err(SettingsError::Sweep)
        );
    }
    for bad in [
        json!({}),
        json!({"replicas": [1]}),
        json!({"replicas": [2, 1]}),
        json!({"connections": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "replicas": [1, 2, 3]}),
        json!({"connections": [1], "replicas": [1, 2], "maxErrorRatio": "0.1"}),
        json!({"replicas": [1, 2], "maxErrorRatio": "0.1"}),
    ] {
        assert_eq!(parse(bad), Err(SettingsError::Sweep));
    }
    // With five blocks and two candidates, 27 points are allowed.
    let grid = json!({"connections": [1, 2, 4, 8, 16, 32, 64, 128, 256], "replicas": [1, 2, 3]});
    assert!(parse(grid.clone()).is_ok());
    let many = at(
        &[1, 2],
        &[("/load/sweep", grid), ("/trials/blocks", json!(38))],
    );
    assert_eq!(
        Settings::parse(&many.spec),
        Err(SettingsError::SweepTooLarge)
    );
    let settings = parse(json!({"connections": [4, 8], "replicas": [1, 3]})).unwrap();
    let points: Vec<_> = settings
        .points
        .iter()
        .map(|p| (p.name.as_str(), p.connections, p.replicas))
        .collect();
    assert_eq!(
        points,
        [
            ("c4-max-x1", 4, Some(1)),
            ("c4-max-x3", 4, Some(3)),
            ("c8-max-x1", 8, Some(1)),
            ("c8-max-x3", 8, Some(3)),
        ]
    );
    // If the sweep names no connections, the connections of the load apply.
    let settings = parse(json!({"replicas": [1, 2]})).unwrap();
    assert_eq!(settings.points[1].name, "c4-max-x2");
    let settings = parse(json!({"connections": [3, 40]})).unwrap();
    let names: Vec<_> = settings
        .points
        .iter()
        .map(|p| (p.name.as_str(), p.connections))
        .collect();
    assert_eq!(names, [("c3-max", 3), ("c40-max", 40)]);
}
