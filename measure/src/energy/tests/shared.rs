//! The pods' shares on a node that the injector shares, by the node meter's own accounts.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::attribution::{Accounts, Observation, PodObservation};

const INJECTOR: &str = "injector-uid";

/// A node of four CPUs whose power is linear in their use, with a candidate.
#[derive(Clone, Copy, Debug)]
struct Shared {
    idle_watts: f64,
    watts_per_cpu: f64,
    /// Use by the candidate, the database and the injector under load, in CPUs.
    load: [f64; 3],
    /// The node's constant use, in CPUs.
    always: f64,
    /// The candidate's CPU time per request, in seconds.
    cpu_per_request: f64,
}

const CPUS: u32 = 4;

impl Shared {
    fn figures(&self, has_cpu_time: bool) -> EnergyFigures {
        let mut lab = Lab::read_every(60.0);
        lab.idle_before = window(0.0, 15.0);
        lab.measured = window(23.0, 53.0);
        lab.idle_after = window(59.0, 74.0);
        lab.injector_pods = pods(&[INJECTOR]);
        let seconds = lab.measured.seconds();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of requests"
        )]
        let successes = (self.load[0] * seconds / self.cpu_per_request).round() as u64;
        lab.successes = successes;
        lab.readings.clear();
        let mut used = [0.0; 4];
        let mut accounts = Accounts::open(observation(0, &used), CPUS);
        for step in 1..170 {
            let at = 0.5 * f64::from(step) - 5.0;
            let is_loaded = (18.0..56.1).contains(&at);
            let load = |cpus: f64| if is_loaded { cpus } else { 0.0 };
            let now_cpus = [
                load(self.load[0]),
                load(self.load[1]),
                load(self.load[2]),
                self.always,
            ];
            for (sum, cpus) in used.iter_mut().zip(now_cpus) {
                *sum += 0.5 * cpus;
            }
            let watts = self.idle_watts + self.watts_per_cpu * now_cpus.iter().sum::<f64>();
            accounts
                .advance(observation(step, &used), |_| 0.5 * watts)
                .unwrap();
            lab.readings.push(shown(&accounts, at, has_cpu_time));
        }
        lab.unchecked().unwrap()
    }
}

fn observation(step: u32, used: &[f64; 4]) -> Observation {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "nanoseconds of minutes"
    )]
    let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
    let pods = [CANDIDATE, DATABASE, INJECTOR].into_iter().zip(used);
    Observation {
        unix_seconds: T0 + 0.5 * f64::from(step) - 5.0,
        elapsed: Duration::from_millis(500) * step,
        node_cgroup: 1,
        node_cpu_nanoseconds: used.iter().map(|it| nanoseconds(*it)).sum(),
        processors: None,
        pods: pods
            .map(|(uid, seconds)| {
                let pod = PodObservation {
                    cgroup: 2,
                    cpu_nanoseconds: nanoseconds(*seconds),
                    working_set_bytes: None,
                };
                (uid.into(), pod)
            })
            .collect(),
    }
}

fn shown(accounts: &Accounts, at: f64, has_cpu_time: bool) -> Reading {
    let seconds = |nanoseconds: u64| has_cpu_time.then(|| nanoseconds as f64 / 1e9);
    Reading {
        node_joules: accounts.node.total_joules,
        active_joules: Some(accounts.node.active_joules),
        idle_joules: Some(accounts.node.idle_joules),
        node_cpu_seconds: has_cpu_time.then(|| accounts.node_cpu_seconds()),
        pods: accounts
            .pods
            .iter()
            .map(|(uid, account)| PodReading {
                joules: Some(account.joules),
                cpu_seconds: seconds(account.cpu_nanoseconds),
                ..PodReading::of(uid, "shop", uid)
            })
            .collect(),
        ..truth(at, 0.5)
    }
}

fn per_request(figures: &EnergyFigures) -> [f64; 2] {
    let attributed = figures.attributed.as_ref().unwrap();
    let net = figures.net_attributed.as_ref().unwrap();
    [
        attributed.candidate_joules_per_request.unwrap(),
        net.candidate_joules_per_request.unwrap(),
    ]
}

#[test]
fn a_candidate_that_takes_less_cpu_time_is_cheaper_at_full_use_too() {
    // 2.7 W and 0.9 W per CPU, as a small board: 6.3 W at full use, and 4.477 W with the candidate that waits
    // more.
    let waits = Shared {
        idle_watts: 2.7,
        watts_per_cpu: 0.9,
        load: [1.0, 0.2, 0.7254],
        always: 0.05,
        cpu_per_request: 0.001,
    };
    let frugal = Shared {
        load: [2.4, 0.3, 1.25],
        cpu_per_request: 0.000_85,
        ..waits
    };
    for has_cpu_time in [true, false] {
        let [by_use, above_idle] = [waits, frugal]
            .map(|it| per_request(&it.figures(has_cpu_time)))
            .into_iter()
            .rev()
            .reduce(|frugal, waits| [frugal[0] / waits[0], frugal[1] / waits[1]])
            .unwrap();
        assert!((by_use - 1.196).abs() < 0.001, "{by_use}");
        assert!((above_idle - 0.850).abs() < 0.001, "{above_idle}");
    }
}

#[test]
fn without_net_energy_there_is_nothing_to_share() {
    let mut lab = Lab::read_every(1.0);
    let shared = lab.unchecked().unwrap().net_attributed.unwrap();
    // 1100 J. The candidate has 60 % of the CPU time and the database 30 %.
    assert_near(shared.candidate_joules, 660.0);
    assert_near_some(shared.database_joules, 330.0);
    assert_near_some(shared.candidate_and_database_joules_per_request, 0.99);
    lab.change(-2.0, 430.0, |reading| {
        reading.node_joules = 1000.0 + 3.0 * (reading.at_unix_seconds() - T0);
    });
    assert_eq!(lab.unchecked().unwrap().net_attributed, None);
}

#[test]
fn pods_that_work_while_others_rest_are_given_all_of_their_own_work() {
    // The candidate uses 0.15 CPUs and the database 0.05. The other work, 0.09, stops for that time.
    let mut lab = Lab::read_every(1.0);
    lab.change(-2.0, 430.0, |reading| {
        let at = reading.at_unix_seconds() - T0;
        let loaded = at.clamp(80.0, 340.0) - 80.0;
        let idle = at + 2.0 - loaded;
        reading.node_cpu_seconds = Some(0.09 * idle + 0.2 * loaded);
        for (uid, cpus) in [(CANDIDATE, 0.15), (DATABASE, 0.05)] {
            reading.pods.get_mut(uid).unwrap().cpu_seconds = Some(cpus * loaded);
        }
    });
    let shared = lab.unchecked().unwrap().net_attributed.unwrap();
    // 1100 J for 0.11 CPUs more than at rest.
    assert_near(shared.candidate_joules, 1500.0);
    assert_near_some(shared.database_joules, 500.0);
    assert_near_some(shared.candidate_and_database_joules_per_request, 2.0);
}

fn any_shared() -> impl Strategy<Value = Shared> {
    let load = (0.2..1.9_f64, 0.0..0.5_f64, 0.1..1.5_f64);
    (
        1.0..10.0_f64,
        0.2..5.0_f64,
        load,
        0.0..0.1_f64,
        1e-4..1e-2_f64,
    )
        .prop_map(
            |(
                idle_watts,
                watts_per_cpu,
                (candidate, database, injector),
                always,
                cpu_per_request,
            )| {
                Shared {
                    idle_watts,
                    watts_per_cpu,
                    load: [candidate, database, injector],
                    always,
                    cpu_per_request,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any other work on the node, and for any load of the node.
    #[test]
    fn on_a_linear_node_the_figure_is_cpu_time_times_watts_per_cpu(shared in any_shared()) {
        let by_cpu_time = per_request(&shared.figures(true))[1];
        let by_joules = per_request(&shared.figures(false))[1];
        let truth = shared.watts_per_cpu * shared.cpu_per_request;
        // The number of requests is a whole number.
        prop_assert!((by_cpu_time / truth - 1.0).abs() < 2e-3, "{by_cpu_time} {truth}");
        prop_assert!((by_joules / truth - 1.0).abs() < 2e-3, "{by_joules} {truth}");
    }
}
