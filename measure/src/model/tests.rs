use proptest::prelude::*;

use super::*;

const PI: LinearModel = LinearModel {
    idle_watts: 2.7,
    watts_per_cpu: 0.925,
    uncertainty: Some(ModelUncertainty {
        idle_watts: 0.15,
        watts_per_cpu: 0.3,
    }),
};

fn parts(idle_seconds: f64, cpu_seconds: f64) -> Parts {
    Parts {
        idle_seconds,
        cpu_seconds,
    }
}

#[test]
fn an_energys_uncertainty_weights_its_parts_by_their_size() {
    assert!((PI.joules(parts(10.0, 20.0)) - 45.5).abs() < 1e-12);
    let found = PI.relative_uncertainty(parts(10.0, 20.0)).unwrap();
    assert!((found - (27.0 * 0.15 + 18.5 * 0.3) / 45.5).abs() < 1e-12);
    // At rest it equals the uncertainty of the idle watts, and for CPU time alone the uncertainty of the
    // slope.
    assert!((PI.relative_uncertainty(parts(10.0, 0.0)).unwrap() - 0.15).abs() < 1e-12);
    assert!((PI.relative_uncertainty(parts(0.0, 1.0)).unwrap() - 0.3).abs() < 1e-12);
    assert_eq!(PI.relative_uncertainty(parts(0.0, 0.0)), None);
    let unknown = LinearModel {
        uncertainty: None,
        ..PI
    };
    assert_eq!(unknown.relative_uncertainty(parts(10.0, 20.0)), None);
    assert_eq!(unknown.extremes(), None);
}

#[test]
fn the_cpu_time_follows_from_an_energy_unless_it_costs_nothing() {
    assert!((PI.cpu_seconds(45.5, 10.0).unwrap() - 20.0).abs() < 1e-12);
    let flat = LinearModel {
        watts_per_cpu: 0.0,
        ..PI
    };
    assert_eq!(flat.cpu_seconds(27.0, 10.0), None);
}

#[test]
fn a_model_is_shown_with_its_watts_and_their_uncertainty() {
    assert_eq!(
        PI.to_string(),
        "2.7 W idle (u = 15 %) + 0.925 W per CPU (u = 30 %)"
    );
    let unknown = LinearModel {
        idle_watts: 2.0,
        watts_per_cpu: (6.4 - 2.7) / 4.0,
        uncertainty: None,
    };
    assert_eq!(
        unknown.to_string(),
        "2 W idle + 0.925 W per CPU, accuracy unknown"
    );
}

proptest! {
    /// The mediant inequality, for all boards: constant power and zero idle power are included.
    #[test]
    fn an_energy_ratio_lies_between_the_ratios_of_time_and_cpu_time(
        idle_watts in prop_oneof![Just(0.0), 0.01..100.0_f64],
        watts_per_cpu in prop_oneof![Just(0.0), 0.01..100.0_f64],
        seconds in prop::array::uniform2(1e-6..10.0_f64),
        cpu_seconds in prop::array::uniform2(1e-6..40.0_f64),
        uncertainty in prop::array::uniform2(0.0..0.5_f64),
    ) {
        prop_assume!(idle_watts + watts_per_cpu > 0.0);
        let model = LinearModel {
            idle_watts,
            watts_per_cpu,
            uncertainty: Some(ModelUncertainty { idle_watts: uncertainty[0], watts_per_cpu: uncertainty[1] }),
        };
        let ratio = |model: LinearModel| {
            model.joules(parts(seconds[0], cpu_seconds[0])) / model.joules(parts(seconds[1], cpu_seconds[1]))
        };
        let (time, cpu) = (seconds[0] / seconds[1], cpu_seconds[0] / cpu_seconds[1]);
        let (least, most) = (time.min(cpu) * (1.0 - 1e-9), time.max(cpu) * (1.0 + 1e-9));
        let own = ratio(model);
        prop_assert!((least..=most).contains(&own), "{own} is not in {least}..={most}");
        let [one, other] = model.extremes().unwrap().map(ratio);
        let (lower, upper) = (one.min(other) * (1.0 - 1e-9), one.max(other) * (1.0 + 1e-9));
        prop_assert!((lower..=upper).contains(&own));
        prop_assert!(least <= lower * (1.0 + 1e-8) && upper <= most * (1.0 + 1e-8));
    }

    /// Any correlation of the coefficients is bounded: an energy at any corner of their expanded uncertainty
    /// is within the energy's own expanded uncertainty.
    #[test]
    fn the_uncertainty_bounds_every_correlation(
        idle_watts in 0.0..10.0_f64,
        watts_per_cpu in 0.1..10.0_f64,
        idle in 0.0..0.4_f64,
        per_cpu in 0.0..0.4_f64,
        seconds in 0.1..10.0_f64,
        cpu_seconds in 0.1..40.0_f64,
        correlation in -1.0..1.0_f64,
    ) {
        let uncertainty = ModelUncertainty { idle_watts: idle, watts_per_cpu: per_cpu };
        let model = LinearModel { idle_watts, watts_per_cpu, uncertainty: Some(uncertainty) };
        let amount = parts(seconds, cpu_seconds);
        let (a, b) = (idle_watts * seconds * idle, watts_per_cpu * cpu_seconds * per_cpu);
        let true_one = (a * a + b * b + 2.0 * correlation * a * b).max(0.0).sqrt() / model.joules(amount);
        let stated = model.relative_uncertainty(amount).unwrap();
        prop_assert!(true_one <= stated + 1e-12);
        prop_assert!(stated <= uncertainty.largest() + 1e-12);
    }
}
