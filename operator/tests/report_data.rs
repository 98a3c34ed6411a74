//! The objects that the tests of `kubectl frugality report` read (`tests/report/data`), as the operator writes them:
//!
//!     cargo test --package frugality-operator --test all -- --ignored report_data::record

use std::{collections::BTreeMap, fs, path::Path};

use frugality_measure::{
    fortio::{FortioResult, parse},
    latency::{Bucket, Histogram, PERCENTAGES, Percentile, merged_percentiles},
    model::{LinearModel, ModelUncertainty},
    reading::Platform,
};
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Role},
    time,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::common::{
    T0,
    entries::{Trial, factor, judged, ledger, on_board, ordered_ledger, swept},
    levels::{at_levels, highest, levelled, straight},
    sweep::{at, saturating},
    two_with,
    world::World,
};

const SAMPLE: &str = include_str!("../../measure/tests/data/fortio-sample.json");
/// From the begin of one attempt to the begin of the next, in seconds.
const ATTEMPT_SECONDS: f64 = 47.0;

#[test]
#[ignore = "writes the fixtures of the report"]
fn record() {
    record_as("budgets", disturbed());
    record_as("fail", one_that_fails());
    record_as("sweep", sweep());
    record_as("modelled", modelled());
    record_as("levels", levels());
}

type Objects = (FrugalityBenchmark, Vec<FrugalityTrial>);

fn record_as(name: &str, (benchmark, trials): Objects) {
    let items: Vec<Value> = std::iter::once(json!(benchmark))
        .chain(trials.iter().map(|it| json!(it)))
        .collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/report/data")
        .join(format!("{name}.json"));
    fs::write(path, list.to_string() + "\n").unwrap();
}

/// Two candidates, three budgets and a control; pods were replaced and operators died.
fn disturbed() -> Objects {
    let benchmark = two_with(&[
        (
            "/budgets",
            json!([
                { "candidate": "rust", "maxJoulesPerRequest": 0.02, "minRequestsPerSecond": 350 },
                { "candidate": "rust", "maxEnergyRatio": 0.5, "against": "python" },
            ]),
        ),
        ("/energy/tieWithin", json!("0.03")),
    ]);
    let mut world = World::new([benchmark]);
    for done in [1, 4, 7] {
        world.run_until("a load", |world| world.loads.len() == done);
        if done == 4 {
            world.replace_pod(0, Role::Candidate);
        } else {
            world.kill_operator();
        }
        world.run_until("the next load", |world| world.loads.len() > done);
    }
    world.run_to_end();
    let slot = world.slots.remove(0);
    let trials = slot.trials.into_iter().map(with_details).collect();
    judged_with(slot.benchmark, trials)
}

/// A budget that is exceeded and one that is not decided.
fn one_that_fails() -> Objects {
    let benchmark = two_with(&[(
        "/budgets",
        json!([{ "candidate": "python", "maxJoulesPerRequest": 0.02, "maxMillisecondsPerRequest": 10 }]),
    )]);
    let trials = ledger(&benchmark, |block, candidate| {
        let times = if candidate == "python" { 3.0 } else { 1.0 };
        Trial {
            gross: 0.01 * times * factor(block, 0.02 * times),
            milliseconds: 10.0 * factor(block, 0.01),
            meter_uncertainty: Some(0.01),
            ..Trial::default()
        }
    });
    judged_with(benchmark, timed(trials))
}

/// Both candidates at five numbers of connections, with a control. Without histograms, which would make a large file.
fn sweep() -> Objects {
    let benchmark = at(
        &[1, 2, 4, 8, 16],
        &[
            ("/trials/control", json!("rust")),
            ("/energy/tieWithin", json!("0.05")),
        ],
    );
    let trials = swept(&benchmark, |connections, block, _, candidate| Trial {
        meter_uncertainty: Some(0.01),
        ..saturating(connections, block, candidate)
    });
    let mut trials = timed(trials);
    for status in trials.iter_mut().filter_map(|trial| trial.status.as_mut()) {
        status.fortio = None;
    }
    judged_with(benchmark, trials)
}

/// Both candidates at three load levels, with limits on their load curves. Without histograms, which would make a large
/// file.
fn levels() -> Objects {
    let limits = json!([
        { "candidate": "rust", "loadCurve": { "maxMarginalJoulesPerRequest": "0.006", "maxIdleShare": "0.4" } },
        { "candidate": "python", "maxEnergyDelayJouleSeconds": "0.001" },
    ]);
    let benchmark = at_levels(&[100, 50, 10], &[("/budgets", limits)]);
    let trials = levelled(&benchmark, highest, |candidate, rate, round| {
        let trial = straight(candidate, rate);
        // The server slows down as the rate comes near to its highest.
        let free = 1.0 - 0.8 * rate / highest(candidate, round);
        let noise = factor(round, if candidate == "rust" { 0.004 } else { -0.006 });
        Trial {
            milliseconds: 2.0 / free * noise,
            gross: trial.gross * noise,
            net: trial.net.map(|net| net * noise),
            meter_uncertainty: Some(0.01),
            ..trial
        }
    });
    let mut trials = timed(trials);
    for status in trials.iter_mut().filter_map(|trial| trial.status.as_mut()) {
        status.fortio = None;
    }
    judged_with(benchmark, trials)
}

/// A power model of stated accuracy.
fn modelled() -> Objects {
    let mut benchmark = two_with(&[(
        "/budgets",
        json!([{ "candidate": "rust", "maxEnergyRatio": "0.8", "against": "python" }]),
    )]);
    benchmark.spec.energy.allow_modelled = true;
    let model = LinearModel {
        idle_watts: 2.0,
        watts_per_cpu: 3.0,
        uncertainty: Some(ModelUncertainty {
            idle_watts: 0.15,
            watts_per_cpu: 0.15,
        }),
    };
    let trials = ordered_ledger(&benchmark, |block, _, candidate| {
        let is_rust = candidate == "rust";
        let spread = factor(block, if is_rust { 0.01 } else { -0.01 });
        let (time, cpu) = if is_rust { (0.7, 0.4) } else { (1.0, 1.0) };
        on_board(model, 0.002 * time * spread, 0.001 * cpu * spread)
    });
    judged_with(benchmark, timed(trials))
}

/// The status for these trials.
fn judged_with(mut benchmark: FrugalityBenchmark, trials: Vec<FrugalityTrial>) -> Objects {
    benchmark.status = None;
    benchmark.status = Some(judged(&benchmark, trials.clone()).status);
    (benchmark, trials)
}

/// Attempts one after another.
fn timed(trials: Vec<FrugalityTrial>) -> Vec<FrugalityTrial> {
    let times = (0..).map(|number| T0 + 10.0 + f64::from(number) * ATTEMPT_SECONDS);
    trials
        .into_iter()
        .zip(times)
        .map(|(mut trial, at)| {
            trial.metadata.namespace = Some("shop".into());
            trial.metadata.creation_timestamp = time::timestamp(at).map(Time);
            let end = time::timestamp(at + ATTEMPT_SECONDS - 4.0);
            if let Some(status) = &mut trial.status {
                status.finished_at = end.map(|it| it.to_string());
            }
            with_details(trial)
        })
        .collect()
}

/// The attempt with a histogram, with images and with a kernel, as a cluster would have them.
fn with_details(mut trial: FrugalityTrial) -> FrugalityTrial {
    let candidate = trial.spec.candidate.clone();
    let block = trial.spec.block;
    let Some(status) = trial.status.as_mut() else {
        return trial;
    };
    if candidate.is_empty() {
        return trial;
    }
    let digest = if candidate == "python" { "b" } else { "a" };
    let digest = format!("example.org/{candidate}@sha256:{}", digest.repeat(64));
    status.images = BTreeMap::from([("server".to_owned(), digest)]);
    if let Some(energy) = &mut status.energy {
        let step = f64::from(block) + if candidate == "python" { 0.5 } else { 0.0 };
        energy.conditions.peak_celsius = Some(52.0 + 1.5 * step.ln_1p());
        energy.conditions.mean_hertz = Some(1.5e9);
        energy.conditions.platform = Platform {
            kernel: Some("6.12.34+rpt-rpi-v8".into()),
            governor: Some("performance".into()),
            firmware: Some("2026-05-08".into()),
        };
    }
    let (Some(requests), true) = (&mut status.requests, status.energy.is_some()) else {
        return trial;
    };
    let Some(mean) = requests.ms_per_request else {
        return trial;
    };
    let mut result: FortioResult = parse(SAMPLE).unwrap();
    result.latency = histogram(mean / 1000.0 * (1.0 + 0.02 * f64::from(block % 3)));
    requests.percentiles_ms = result
        .latency
        .percentiles
        .iter()
        .map(|it| (format!("p{}", it.percentile), 1000.0 * it.seconds))
        .collect();
    status.fortio = Some(result);
    trial
}

/// Ends of buckets as multiples of the mean, and the number of requests from the end before.
const SHAPE: [(f64, u64); 17] = [
    (0.4, 0),
    (0.5, 20),
    (0.6, 90),
    (0.7, 400),
    (0.8, 1500),
    (0.9, 3200),
    (1.0, 4200),
    (1.1, 3900),
    (1.2, 2700),
    (1.35, 1700),
    (1.5, 1100),
    (1.75, 600),
    (2.0, 300),
    (2.5, 150),
    (3.0, 80),
    (4.0, 40),
    (6.0, 20),
];

/// Latencies that are skewed to the right, like the latencies of servers.
fn histogram(seconds: f64) -> Histogram {
    let buckets: Vec<Bucket> = SHAPE
        .windows(2)
        .map(|pair| Bucket {
            start_seconds: seconds * pair[0].0,
            end_seconds: seconds * pair[1].0,
            count: pair[1].1,
        })
        .collect();
    let count = buckets.iter().map(|it| it.count).sum();
    let middle = |it: &Bucket| f64::midpoint(it.start_seconds, it.end_seconds) * it.count as f64;
    let merged = merged_percentiles(&[&buckets], &PERCENTAGES).unwrap();
    let percentiles = PERCENTAGES.into_iter().zip(merged);
    Histogram {
        count,
        min_seconds: seconds * SHAPE[0].0,
        max_seconds: seconds * SHAPE[SHAPE.len() - 1].0,
        sum_seconds: buckets.iter().map(middle).sum(),
        standard_deviation_seconds: 0.3 * seconds,
        percentiles: percentiles
            .map(|(percentile, seconds)| Percentile {
                percentile,
                seconds,
            })
            .collect(),
        buckets,
    }
}

/// A fixture that no longer belongs to this version's types would test nothing.
#[test]
fn the_fixtures_are_read_with_a_verdict_and_a_ledger() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/report/data");
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let list: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let items = list["items"].as_array().unwrap();
        let of = |kind: &str| {
            let items = items.iter().filter(|item| item["kind"] == kind);
            items.cloned().collect::<Vec<_>>()
        };
        let [benchmark] = of("FrugalityBenchmark").try_into().unwrap();
        let benchmark: FrugalityBenchmark = serde_json::from_value(benchmark).unwrap();
        assert!(
            benchmark.status.unwrap().verdict.is_some(),
            "{}",
            path.display()
        );
        let name = benchmark.metadata.name.unwrap();
        for trial in of("FrugalityTrial") {
            let trial: FrugalityTrial = serde_json::from_value(trial).unwrap();
            assert_eq!(trial.spec.benchmark, name, "{}", trial.name_any());
        }
    }
}
