use std::collections::BTreeMap;

use super::*;
use crate::power::config::{NodePower, SourceConfig};
use crate::power::simulation::{IDLE_WATTS, Truth, WATTS_PER_CPU, run, surroundings};
use crate::power::{BOARD_ZONE, PowerOrEnergy, SourceProvenance};

fn observation(at: f64, cpu_seconds: f64) -> Observation {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small numbers of a test"
    )]
    let node_cpu_nanoseconds = (cpu_seconds * 1e9) as u64;
    Observation {
        unix_seconds: at,
        elapsed: Duration::from_secs_f64(at),
        processors: None,
        node_cgroup: 1,
        node_cpu_nanoseconds,
        pods: BTreeMap::new(),
    }
}

fn plug(lag: f64) -> Supply {
    let source = Source {
        name: "json",
        provenance: SourceProvenance::Metered,
        board: String::new(),
        path: "http://plug/".into(),
        zone: BOARD_ZONE,
        max_watts: None,
        relative_uncertainty: Some(0.01),
        fixed_uncertainty_watts: 0.0,
        resolution_joules: None,
        model: None,
    };
    let timeline = Timeline::new(Duration::from_secs(10), None);
    Supply::metered(source, timeline, None, Duration::from_secs_f64(lag))
}

fn counted(at: f64, joules: f64) -> TrueReading {
    TrueReading {
        at: Duration::from_secs_f64(at),
        quantity: PowerOrEnergy::Joules(joules),
    }
}

fn settled(supply: &mut Supply, now: f64) -> Vec<(f64, f64)> {
    let now = Duration::from_secs_f64(now);
    std::iter::from_fn(|| supply.settle(now))
        .map(|it| (it.observation.elapsed.as_secs_f64(), it.joules))
        .collect()
}

#[test]
fn cpu_time_waits_for_the_energy_and_for_its_time() {
    let mut supply = plug(15.0);
    for tick in 0..20 {
        supply.observe(observation(f64::from(tick), 0.0));
    }
    assert_eq!(settled(&mut supply, 19.0), [], "no reading of the plug");
    supply.learn(counted(2.5, 100.0)).unwrap();
    supply.learn(counted(12.5, 200.0)).unwrap();
    assert_eq!(
        supply.last_true_reading(),
        Some(Duration::from_millis(12_500))
    );
    // The energy before the first reading is never known.
    assert_eq!(settled(&mut supply, 19.0), [(3.0, 5.0), (4.0, 15.0)]);
    // The plug is silent: the energy ends at the plug's last reading, at any later time.
    let rest = settled(&mut supply, 1_000.0);
    assert_eq!(rest.first(), Some(&(5.0, 25.0)));
    assert_eq!(rest.last(), Some(&(12.0, 95.0)));
    supply.learn(counted(40.0, 475.0)).unwrap();
    assert_eq!(settled(&mut supply, 1_000.0).first(), Some(&(13.0, 105.0)));
}

#[test]
fn a_silent_instrument_does_not_fill_the_memory_and_loses_no_energy() {
    let mut supply = plug(0.0);
    supply.learn(counted(0.0, 0.0)).unwrap();
    for tick in 0..100_000 {
        supply.observe(observation(f64::from(tick), 0.0));
    }
    assert_eq!(supply.waiting.len(), MOST_WAITING);
    supply.learn(counted(99_999.0, 99_999.0)).unwrap();
    let all = settled(&mut supply, 1e6);
    assert_eq!(all.last(), Some(&(99_999.0, 99_999.0)));
}

#[test]
fn a_model_is_known_at_once_and_follows_its_own_truth() {
    let root = tempfile::tempdir().unwrap();
    let power = NodePower {
        idle_watts: Some(IDLE_WATTS),
        watts_per_cpu: Some(WATTS_PER_CPU),
        relative_uncertainty: Some(0.05),
        ..NodePower::only(SourceConfig::Model {})
    };
    let outcome = run(&power, &surroundings(root.path()), &Truth::bursts(), |_| {});
    // The truth depends on temperature, the model does not.
    outcome.assert_within(0.05);
}

#[test]
fn uncertainties_of_instrument_and_sampling_add_as_squares() {
    let mut supply = plug(0.0);
    for (at, joules) in [
        (0.0, 0.0),
        (10.0, 30.0),
        (20.0, 80.0),
        (30.0, 110.0),
        (40.0, 160.0),
    ] {
        supply.learn(counted(at, joules)).unwrap();
    }
    let sampling = supply.instrument.as_ref().unwrap().sampling_uncertainty();
    assert!(sampling > 0.005);
    let stated = supply.relative_uncertainty().unwrap();
    assert!((stated - 0.01_f64.hypot(sampling)).abs() < 1e-12);
}

#[test]
fn a_stated_step_of_the_counter_counts_and_an_observed_one_if_none_is_stated() {
    let observed = |stated| {
        let mut supply = plug(0.0);
        supply.source.resolution_joules = stated;
        for second in 0..40 {
            let steps = f64::from(second / 2);
            supply
                .learn(counted(f64::from(second), 3.6 * steps))
                .unwrap();
        }
        supply.resolution_joules().unwrap()
    };
    assert!((observed(None) - 3.6).abs() < 1e-3);
    assert!((observed(Some(0.36)) - 0.36).abs() < 1e-12);
}

#[test]
fn a_fixed_uncertainty_weighs_more_at_low_power() {
    let stated = |watts: f64| {
        let mut supply = plug(0.0);
        supply.source.fixed_uncertainty_watts = 0.03;
        assert_eq!(supply.relative_uncertainty(), None);
        for second in 0..5 {
            supply
                .learn(TrueReading {
                    at: Duration::from_secs(second),
                    quantity: PowerOrEnergy::Watts(watts),
                })
                .unwrap();
        }
        supply.relative_uncertainty().unwrap()
    };
    assert!((stated(3.0) - 0.01_f64.hypot(0.01)).abs() < 1e-9);
    assert!((stated(1.0) - 0.01_f64.hypot(0.03)).abs() < 1e-9);
    // An energy with a larger uncertainty is worthless.
    assert!(stated(0.001) <= 1.0);
}
