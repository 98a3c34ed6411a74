use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn observation(at_milliseconds: u64, node_cpu: u64, pods: &[(&str, u64, u64)]) -> Observation {
    Observation {
        unix_seconds: 1_000.0 + at_milliseconds as f64 / 1e3,
        elapsed: Duration::from_millis(at_milliseconds),
        processors: None,
        node_cgroup: 1,
        node_cpu_nanoseconds: node_cpu,
        pods: pods
            .iter()
            .map(|&(uid, cgroup, cpu_nanoseconds)| {
                let pod = PodObservation {
                    cgroup,
                    cpu_nanoseconds,
                    working_set_bytes: None,
                };
                (uid.into(), pod)
            })
            .collect(),
    }
}

/// The energy of a node whose power is linear in its CPU use.
fn drawn(interval: Interval, idle_watts: f64, watts_per_cpu: f64) -> f64 {
    idle_watts * interval.elapsed_seconds + watts_per_cpu * interval.node_cpu_seconds
}

/// 2 W idle, 3 W per CPU, two CPUs.
fn advance(accounts: &mut Accounts, now: Observation) -> Result<(), Break> {
    accounts.advance(now, |interval| drawn(interval, 2.0, 3.0))
}

fn assert_near(actual: f64, expected: f64) {
    assert!(
        (actual - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        "{actual} is not {expected}"
    );
}

#[test]
fn energy_is_shared_by_keplers_formulas() {
    let mut accounts = Accounts::open(
        observation(0, 70 * SECOND, &[("a", 1, 5 * SECOND), ("b", 2, 0)]),
        2,
    );
    let later = [("a", 1, 5 * SECOND + 600_000_000), ("b", 2, 300_000_000)];
    advance(&mut accounts, observation(1_000, 71 * SECOND, &later)).unwrap();

    // 2 W x 1 s + 3 J; half of the two CPUs was used.
    assert_near(accounts.node.total_joules, 5.0);
    assert_near(accounts.node.active_joules, 2.5);
    assert_near(accounts.node.idle_joules, 2.5);
    assert_near(accounts.pods["a"].joules, 1.5);
    assert_near(accounts.pods["b"].joules, 0.75);
    assert_near(accounts.node.system_joules, 0.25);
    let rates = accounts.rates.clone().unwrap();
    assert_near(rates.usage_ratio, 0.5);
    assert_near(rates.total_watts, 5.0);
    assert_near(accounts.pods["a"].watts.unwrap(), 1.5);
    assert_near(seconds(accounts.pods["a"].cpu_nanoseconds), 5.6);
}

#[test]
fn the_models_energy_equals_the_energy_of_a_real_node_that_followed_it() {
    // Real readings of a node whose meter followed 2 W + 3 J per CPU-second, at 10 Hz.
    let truth = include_str!("../../../measure/tests/data/kepler-v0.11.4/truth.txt");
    let readings: HashMap<&str, (f64, f64, u64)> = truth
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let value = |word: &str| word.split_once('=').unwrap().1.to_owned();
            let joules = value(words[2]).parse::<f64>().unwrap() / 1e6;
            let cpu = value(words[3]).parse().unwrap();
            (words[0], (words[1].parse().unwrap(), joules, cpu))
        })
        .collect();
    let (t0, joules0, cpu0) = readings["1-idle"];
    let (t1, joules1, cpu1) = readings["3-under-load"];

    let at = |time: f64, cpu| Observation {
        elapsed: Duration::from_secs_f64(time - t0),
        ..observation(0, cpu, &[])
    };
    let mut accounts = Accounts::open(at(t0, cpu0), 2);
    advance(&mut accounts, at(t1, cpu1)).unwrap();
    let (ours, theirs) = (accounts.node.total_joules, joules1 - joules0);
    assert!((ours / theirs - 1.0).abs() < 0.005, "{ours} J, {theirs} J");
}

#[test]
fn a_pod_seen_for_the_first_time_counts_from_its_beginning_only_if_the_meter_was_there() {
    let mut accounts = Accounts::open(observation(0, 0, &[("old", 1, 900 * SECOND)]), 2);
    assert_near(accounts.pods["old"].joules, 0.0);
    assert_eq!(accounts.pods["old"].watts, None);

    let both = [("old", 1, 900 * SECOND), ("new", 2, SECOND)];
    advance(&mut accounts, observation(1_000, SECOND, &both)).unwrap();
    assert_near(accounts.pods["old"].joules, 0.0);
    assert_near(accounts.pods["new"].joules, accounts.node.active_joules);
    assert_near(seconds(accounts.pods["old"].cpu_nanoseconds), 900.0);
}

#[test]
fn a_pod_whose_cgroup_is_created_again_continues_to_count() {
    let mut accounts = Accounts::open(observation(0, 0, &[("a", 1, 8 * SECOND)]), 2);
    advance(
        &mut accounts,
        observation(1_000, SECOND, &[("a", 1, 9 * SECOND)]),
    )
    .unwrap();
    let before = accounts.pods["a"].joules;
    // The new cgroup's counter exceeds the old one's: only the identity distinguishes them.
    let anew = [("a", 7, 10 * SECOND)];
    advance(&mut accounts, observation(9_000, 11 * SECOND, &anew)).unwrap();
    assert_near(seconds(accounts.pods["a"].cpu_nanoseconds), 19.0);
    assert_near(accounts.pods["a"].joules, accounts.node.active_joules);
    assert!(accounts.pods["a"].joules > before);
}

#[test]
fn an_ended_pods_energy_stays_in_the_sum() {
    let mut accounts = Accounts::open(observation(0, 0, &[("a", 1, 0)]), 2);
    advance(
        &mut accounts,
        observation(1_000, SECOND, &[("a", 1, SECOND)]),
    )
    .unwrap();
    let spent = accounts.pods["a"].joules;
    assert!(spent > 1.0);
    advance(&mut accounts, observation(2_000, SECOND, &[])).unwrap();
    assert!(accounts.pods.is_empty());
    assert_near(accounts.node.ended_pods_joules, spent);
}

#[test]
fn pods_that_seem_to_have_used_more_than_the_node_share_all_of_it() {
    let mut accounts = Accounts::open(observation(0, 0, &[("a", 1, 0), ("b", 2, 0)]), 2);
    let used = [("a", 1, 750_000_000), ("b", 2, 250_000_000 + 1_000_000)];
    advance(&mut accounts, observation(1_000, SECOND, &used)).unwrap();
    let sum = accounts.pods["a"].joules + accounts.pods["b"].joules;
    assert_near(sum, accounts.node.active_joules);
    assert_near(accounts.node.system_joules, 0.0);
}

#[test]
fn no_energy_is_counted_across_a_break() {
    let mut accounts = Accounts::open(observation(0, 0, &[("a", 1, 0)]), 2);
    advance(
        &mut accounts,
        observation(1_000, SECOND, &[("a", 1, SECOND)]),
    )
    .unwrap();
    let before = accounts.clone();

    let back = observation(2_000, SECOND - 1, &[("a", 1, SECOND)]);
    let went_back = advance(&mut accounts, back).unwrap_err();
    let other = Observation {
        processors: None,
        node_cgroup: 2,
        ..observation(2_000, 2 * SECOND, &[])
    };
    let replaced = advance(&mut accounts, other).unwrap_err();
    let no_time = advance(&mut accounts, observation(1_000, 2 * SECOND, &[])).unwrap_err();

    assert_eq!(replaced, Break::Replaced);
    assert!(!went_back.heals() && !replaced.heals() && no_time.heals());
    assert_eq!(accounts.node, before.node);
    assert_eq!(accounts.pods, before.pods);
    assert_near(accounts.reading_unix_seconds(), 1_001.0);
}

/// One pod in an interval: absent, present, or present with a new cgroup.
#[derive(Clone, Copy, Debug)]
struct Turn {
    present: bool,
    anew: bool,
    cpu: u64,
}

fn turns() -> impl Strategy<Value = Vec<(u64, u64, [Turn; 3])>> {
    let turn = (any::<bool>(), prop::bool::weighted(0.1), 0..2 * SECOND)
        .prop_map(|(present, anew, cpu)| Turn { present, anew, cpu });
    let turn = prop::array::uniform3(turn);
    prop::collection::vec((1_u64..5_000, 0..SECOND, turn), 1..60)
}

proptest! {
    #[test]
    fn parts_add_up_and_nothing_decreases(
        turns in turns(),
        idle_watts in 0.0..50.0,
        watts_per_cpu in 0.0..20.0,
        cpus in 1_u32..8,
    ) {
        let mut accounts = Accounts::open(observation(0, 0, &[]), cpus);
        let (mut at, mut node_cpu, mut cgroups) = (0, 0, 100);
        let mut live: HashMap<&str, (u64, u64)> = HashMap::new();
        for (milliseconds, system_cpu, pods) in turns {
            at += milliseconds;
            node_cpu += system_cpu;
            for (uid, turn) in ["a", "b", "c"].into_iter().zip(pods) {
                if !turn.present {
                    live.remove(uid);
                    continue;
                }
                node_cpu += turn.cpu;
                cgroups += 1;
                let pod = live.entry(uid).or_insert((cgroups, 0));
                if turn.anew {
                    *pod = (cgroups, 0);
                }
                pod.1 += turn.cpu;
            }
            let pods: Vec<_> = live.iter().map(|(uid, &(cgroup, cpu))| (*uid, cgroup, cpu)).collect();
            let before = accounts.clone();
            accounts
                .advance(observation(at, node_cpu, &pods), |interval| drawn(interval, idle_watts, watts_per_cpu))
                .unwrap();

            let node = &accounts.node;
            let exact = idle_watts * (at as f64 / 1e3) + watts_per_cpu * seconds(node_cpu);
            assert_near(node.total_joules, exact);
            assert_near(node.active_joules + node.idle_joules, exact);
            let pods: f64 = accounts.pods.values().map(|pod| pod.joules).sum();
            assert_near(pods + node.ended_pods_joules + node.system_joules, node.active_joules);

            prop_assert!(node.total_joules >= before.node.total_joules);
            prop_assert!(node.active_joules >= before.node.active_joules);
            prop_assert!(node.idle_joules >= before.node.idle_joules);
            prop_assert!(node.system_joules >= before.node.system_joules);
            prop_assert!(node.ended_pods_joules >= before.node.ended_pods_joules);
            for (uid, pod) in &accounts.pods {
                if let Some(earlier) = before.pods.get(uid) {
                    prop_assert!(pod.joules >= earlier.joules);
                    prop_assert!(pod.cpu_nanoseconds >= earlier.cpu_nanoseconds);
                }
            }
        }
    }
}
