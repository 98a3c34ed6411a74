//! Load levels: their points, their order, and the rates that the injectors get.

use crate::common::{
    entries::{Trial, judged, without_figures},
    levels::{at_levels, highest, levelled, straight},
    made, run_of, two_with,
    world::World,
};
use frugality_measure::energy::Window;
use frugality_operator::{
    api::{FrugalityBenchmark, Outcome, Reason, Verdict},
    plan::{
        action::ChildObject,
        ledger::{Ledger, Next},
        objects::PointLoad,
        settings::{Settings, SettingsError},
        verdict::judge,
    },
};
use serde_json::{Value, json};

#[test]
fn the_highest_rate_is_measured_before_its_levels() {
    let benchmark = at_levels(&[100, 50, 10], &[("/trials/blocks", json!(6))]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let names: Vec<_> = settings.points.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["c4-max", "c4-100%", "c4-50%", "c4-10%"]);
    let plan = settings.plan();
    assert_eq!(plan.len(), 24);
    let mut orders = std::collections::BTreeSet::new();
    for round in plan.chunks(4) {
        let points: Vec<_> = round.iter().map(|block| block.point).collect();
        assert_eq!(points[0], 0);
        orders.insert(points.clone());
        let mut levels = points[1..].to_vec();
        levels.sort_unstable();
        assert_eq!(levels, [1, 2, 3]);
    }
    assert!(orders.len() > 1, "the levels are in random order");
}

/// The rate of each entry at a level, with its level and the highest rate that its round has measured for its candidate.
fn rates(benchmark: &FrugalityBenchmark) -> Vec<(String, i32, f64, f64)> {
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let trials = levelled(benchmark, highest, |candidate, rate, _| {
        straight(candidate, rate)
    });
    let at_level = trials.iter().filter(|it| it.spec.rate_per_second.is_some());
    at_level
        .map(|trial| {
            let level = settings.point(&trial.spec.point).unwrap().level.unwrap();
            let round = 1 + (trial.spec.block - 1) / i32::try_from(settings.points.len()).unwrap();
            let candidate = settings.candidate_of(&trial.spec.candidate);
            let rate = trial.spec.rate_per_second.unwrap();
            (candidate.to_owned(), level, rate, highest(candidate, round))
        })
        .collect()
}

#[test]
fn each_candidate_gets_shares_of_its_own_highest_rate_in_the_same_round() {
    let rates = rates(&at_levels(&[100, 50], &[]));
    assert_eq!(rates.len(), 20);
    for (candidate, level, rate, highest) in rates {
        let expected = highest * f64::from(level) / 100.0;
        assert!(
            rate <= expected && rate > expected - 0.01,
            "{candidate} at {level} %: {rate} of {highest}"
        );
    }
}

#[test]
fn a_common_rate_is_one_that_every_candidate_reaches() {
    let sweep = json!({"levels": [100, 50], "of": "Common"});
    let benchmark = at_levels(&[100, 50], &[("/load/sweep", sweep)]);
    let python: Vec<f64> = rates(&benchmark)
        .into_iter()
        .filter(|(candidate, level, ..)| candidate == "python" && *level == 100)
        .map(|(.., rate, highest)| {
            assert!(rate <= highest && rate > highest - 0.01);
            rate
        })
        .collect();
    let rust: Vec<f64> = rates(&benchmark)
        .into_iter()
        .filter(|(candidate, level, ..)| candidate == "rust" && *level == 100)
        .map(|(.., rate, _)| rate)
        .collect();
    assert_eq!(rust, python);
}

/// Image and arguments of every injector that a run creates.
fn injectors(benchmark: FrugalityBenchmark) -> Vec<(String, Vec<String>)> {
    let mut world = World::new([benchmark]);
    let mut made = Vec::new();
    while !world.is_over() {
        let slot = world.wait();
        for object in world.plan(slot).create {
            if let Some(injector) = injector_of(object)
                && !made.contains(&injector)
            {
                made.push(injector);
            }
        }
        world.pass(slot);
    }
    made
}

/// Image and arguments of an injector's Job.
fn injector_of(object: ChildObject) -> Option<(String, Vec<String>)> {
    let ChildObject::Job(job) = object else {
        return None;
    };
    let pod = job.spec?.template.spec?;
    let container = pod
        .containers
        .into_iter()
        .find(|it| it.name == "injector")?;
    Some((container.image?, container.args?))
}

fn rate_of(args: &[String]) -> Option<f64> {
    let rate = args.iter().find_map(|it| it.strip_prefix("--rate="))?;
    Some(rate.parse().unwrap())
}

#[test]
fn injectors_get_the_rates_of_the_ledger() {
    let benchmark = at_levels(&[100, 50], &[("/trials/blocks", json!(5))]);
    let mut world = World::new([benchmark.clone()]);
    world.run_to_end();
    let mut recorded: Vec<Option<f64>> = world.slots[0]
        .trials
        .iter()
        .filter(|it| it.spec.block > 0)
        .map(|it| it.spec.rate_per_second)
        .collect();
    let mut sent: Vec<Option<f64>> = injectors(benchmark)
        .iter()
        .map(|(_, args)| rate_of(args))
        .collect();
    let order = |a: &Option<f64>, b: &Option<f64>| a.partial_cmp(b).unwrap();
    recorded.sort_by(order);
    sent.sort_by(order);
    assert_eq!(recorded.len(), 30);
    assert_eq!(recorded.iter().filter(|it| it.is_none()).count(), 10);
    assert_eq!(sent, recorded);
}

#[test]
fn only_the_levels_of_an_open_load_are_sent_by_k6() {
    let load = json!({"duration": "20s", "arrivals": "Open", "sweep": {"levels": [100, 50]}});
    let made = injectors(two_with(&[("/load", load)]));
    assert!(!made.is_empty());
    for (image, args) in made {
        let is_open = args.iter().any(|it| it == "--open");
        assert_eq!(rate_of(&args).is_some(), is_open, "{args:?}");
        assert_eq!(image.contains("k6"), is_open, "{image}");
    }
}

/// The injector's image differs between the highest rate and the levels.
#[test]
fn a_run_with_levels_of_an_open_load_ends_without_a_void_attempt() {
    let load = json!({"duration": "20s", "arrivals": "Open", "sweep": {"levels": [100, 50]}});
    let mut world = World::new([two_with(&[("/load", load)])]);
    world.run_to_end();
    let trials = &world.slots[0].trials;
    assert_eq!(trials.iter().filter(|it| it.spec.block > 0).count(), 30);
    for trial in trials {
        let status = trial.status.as_ref().unwrap();
        assert_eq!(
            status.outcome,
            Some(Outcome::Measured),
            "{:?}",
            status.message
        );
    }
}

#[test]
fn a_void_block_of_the_highest_rate_is_measured_again_before_its_levels() {
    let benchmark = at_levels(&[100, 50], &[]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let mut trials = levelled(&benchmark, highest, |candidate, rate, _| {
        straight(candidate, rate)
    });
    trials.retain(|trial| trial.spec.block == 1);
    trials[1].status = Some(without_figures(
        Outcome::Void,
        Reason::PodReplaced.as_str(),
        "gone",
    ));
    let run = run_of(&benchmark);
    let ledger = Ledger::of(&run, &trials);
    let Next::Start(start) = ledger.next(&settings) else {
        panic!("{:?}", ledger.next(&settings));
    };
    assert_eq!((start.block, start.attempt, start.position), (1, 2, 1));
    assert_eq!(ledger.level_rate(&settings, 2, "rust"), None);
}

#[test]
fn a_level_that_is_too_low_for_the_connections_ends_the_run() {
    let benchmark = at_levels(&[100, 1], &[]);
    // 20 s at 1 % of 35 requests/s are 7 requests, and four connections need eight.
    let trials = levelled(
        &benchmark,
        |_, _| 35.0,
        |candidate, rate, _| Trial {
            gross: 0.1,
            ..straight(candidate, rate)
        },
    );
    let plan = crate::common::entries::judged(&benchmark, trials);
    assert_eq!(plan.status.verdict, Some(Verdict::Invalid));
    let end = plan.status.end().unwrap();
    assert_eq!(end.reason, Reason::LevelTooLow.as_str());
    assert_eq!(
        end.message,
        "rust would get 0.35 requests/s at c4-1%, 1 % of the candidate's highest rate. That is too low for 4 connections and a window of 20 s: write fewer load.connections, a longer load.duration, or higher load.sweep.levels."
    );
}

#[test]
fn a_block_under_way_has_no_rates_and_ends_no_run() {
    let benchmark = at_levels(&[100, 1], &[]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let mut trials = levelled(
        &benchmark,
        |_, _| 35.0,
        |candidate, rate, _| straight(candidate, rate),
    );
    trials.truncate(1);
    let run = run_of(&benchmark);
    let ledger = Ledger::of(&run, &trials);
    let first = trials[0].spec.candidate.clone();
    assert_eq!(ledger.level_rate(&settings, 2, &first), None);
    assert_eq!(judge(&settings, &ledger), None);
}

#[test]
fn only_levels_that_k6_sends_have_times_of_two_kinds() {
    let script = json!({"script": "export default () => {}"});
    let scripted = [("/request", Value::Null), ("/scenario", script)];
    let open = [("/load/arrivals", json!("Open"))];
    for (more, mixes) in [(&scripted[..], true), (&open[..], true), (&[], false)] {
        let settings = Settings::parse(&at_levels(&[100, 50], more).spec).unwrap();
        assert_eq!(settings.mixes_times(), mixes, "{more:?}");
    }
}

#[test]
fn a_script_gets_levels_of_its_cycles() {
    let script = json!({"script": "export default () => {}"});
    let benchmark = at_levels(
        &[100, 50],
        &[("/request", Value::Null), ("/scenario", script)],
    );
    let rates = rates(&benchmark);
    assert_eq!(rates.len(), 20);
    let (.., rate, highest) = rates[0];
    assert!(rate < highest);

    let args = |level_rate: Option<f64>| {
        let object = made(&benchmark, |builder, candidate, node| {
            let load = PointLoad {
                level_rate,
                ..PointLoad::at(&builder.settings.points[1])
            };
            builder.injector(candidate, "trial", load, node, None)
        });
        let (image, args) = injector_of(object).unwrap();
        assert!(image.contains("k6"), "{image}");
        assert!(args.iter().any(|it| it.starts_with("--script=")));
        args
    };
    assert_eq!(rate_of(&args(None)), None);
    // Cycles are slow, and a level is seldom a whole number of them.
    assert_eq!(rate_of(&args(Some(1.9))), Some(1.9));
}

#[test]
fn levels_begin_with_100_and_go_alone() {
    let parse = |load: Value| Settings::parse(&two_with(&[("/load", load)]).spec);
    for bad in [
        json!({"sweep": {"levels": [100]}}),
        json!({"sweep": {"levels": [90, 50]}}),
        json!({"sweep": {"levels": [100, 50, 50]}}),
        json!({"sweep": {"levels": [100, 50, 0]}}),
        json!({"sweep": {"levels": [100, 50], "replicas": [1, 2]}}),
        json!({"sweep": {"levels": [100, 50], "connections": [1, 2]}}),
        json!({"rate": 100, "sweep": {"levels": [100, 50]}}),
        json!({"requests": 10000, "sweep": {"levels": [100, 50]}}),
    ] {
        assert_eq!(parse(bad.clone()), Err(SettingsError::Levels), "{bad}");
    }
    assert!(parse(json!({"duration": "20s", "sweep": {"levels": [100, 50]}})).is_ok());
}

/// A load curve combines the levels of a round.
#[test]
fn a_long_pause_between_two_levels_is_noted() {
    let benchmark = at_levels(&[100, 50], &[]);
    let noted = |pause_seconds: f64| {
        let mut trials = levelled(&benchmark, highest, |candidate, rate, _| {
            straight(candidate, rate)
        });
        for trial in &mut trials {
            let status = trial.status.as_mut().unwrap();
            let mut later = f64::from(trial.spec.block) * 120.0;
            // Between the second and the third block of the second round.
            if trial.spec.block >= 6 {
                later += pause_seconds;
            }
            status.idle_after = status.idle_before.map(|window| Window {
                start_unix_seconds: window.start_unix_seconds + 40.0,
                end_unix_seconds: window.end_unix_seconds + 40.0,
            });
            let windows = [
                &mut status.idle_before,
                &mut status.window,
                &mut status.idle_after,
            ];
            for window in windows.into_iter().flatten() {
                window.start_unix_seconds += later;
                window.end_unix_seconds += later;
            }
        }
        let notes = judged(&benchmark, trials).status.notes;
        notes.iter().any(|it| it.starts_with("In 1 of the rounds"))
    };
    assert!(noted(3600.0));
    assert!(!noted(600.0));
}
