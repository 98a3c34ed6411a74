//! How often an attempt without load reports net energy, and how often an attempt with a small load does.

use super::*;
use crate::energy::noise::IdleNoise;

/// Pseudo-random numbers.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A normal number, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A node of 3 W that is read twice per second, with default baselines.
#[derive(Clone, Copy)]
struct Quiet {
    /// Standard deviation of the power between two readings, in watts.
    noise_watts: f64,
    /// Correlation of consecutive powers.
    correlation: f64,
    load_watts: f64,
    /// The largest age of the counter at a reading, in seconds, if the meter reports no times. Each reading's
    /// age is random.
    late_seconds: Option<f64>,
}

const BASELINE_SECONDS: f64 = 15.0;
const WINDOW_SECONDS: f64 = 30.0;

impl Quiet {
    fn attempt(self, chance: &mut Chance) -> EnergyFigures {
        let mut lab = Lab::read_every(60.0);
        lab.idle_before = window(0.0, BASELINE_SECONDS);
        lab.measured = window(23.2, 23.2 + WINDOW_SECONDS);
        lab.idle_after = window(59.2, 59.2 + BASELINE_SECONDS);
        lab.readings.clear();
        let (mut joules, mut at, mut off) = (1000.0, -1.2, chance.normal());
        let mut watts = 3.0;
        let template = Reading {
            pods: Pods::from_iter([]),
            ..truth(0.0, 0.5)
        };
        while at < 77.0 {
            let mut reading = template.clone();
            reading.meter_unix_seconds = self.late_seconds.is_none().then_some(T0 + at);
            reading.scraped_at_unix_seconds = T0 + at;
            let late_seconds = self
                .late_seconds
                .map_or(0.0, |most| most * chance.uniform());
            reading.node_joules = joules - watts * late_seconds;
            reading.active_joules = None;
            reading.idle_joules = None;
            reading.node_cpu_seconds = None;
            lab.readings.push(reading);
            at += 0.5;
            let fresh = (1.0 - self.correlation * self.correlation).sqrt();
            off = self.correlation * off + fresh * chance.normal();
            let load = if (20.0..55.0).contains(&at) {
                self.load_watts
            } else {
                0.0
            };
            watts = 3.0 + load + self.noise_watts * off;
            joules += 0.5 * watts;
        }
        lab.unchecked().unwrap()
    }

    /// The number of attempts with net energy.
    fn found(self, attempts: u32) -> u32 {
        let mut chance = Chance(20_261_124);
        let count = (0..attempts).filter(|_| self.attempt(&mut chance).net_joules.is_some());
        u32::try_from(count.count()).unwrap()
    }
}

#[test]
fn without_load_one_attempt_in_two_thousand_reports_net_energy() {
    // The expected number is 10 of 20,000. By chance it is 20 or more once in 300 times.
    let found = |noise_watts, correlation| {
        let quiet = Quiet {
            noise_watts,
            correlation,
            load_watts: 0.0,
            late_seconds: None,
        };
        quiet.found(20_000)
    };
    let white = found(0.05, 0.0);
    assert!(white < 20, "{white} of 20000");
    // One attempt shows the correlation of steps with little certainty. The run's trials together correct
    // this.
    let with_memory = found(0.05, 0.5);
    assert!(with_memory < 40, "{with_memory} of 20000");
}

/// Two baselines of one step each can be nearly equal by chance.
#[test]
fn few_readings_whose_baselines_are_nearly_equal_do_not_show_the_noise() {
    let of = |after_watts: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-5.0, 500.0, |reading| {
            reading.source_age_seconds = Some(3.2);
        });
        (lab.idle_before, lab.idle_after) = (window(40.0, 45.0), window(380.0, 385.0));
        lab.change(370.0, 500.0, |reading| {
            reading.node_joules += after_watts * (reading.at_unix_seconds() - T0 - 370.0);
        });
        let figures = lab.unchecked().unwrap();
        (figures.net_joules, figures.net_withheld.unwrap_or_default())
    };
    for after_watts in [0.0, 1e-9, 0.01] {
        let (net_joules, withheld) = of(after_watts);
        assert_eq!(net_joules, None);
        assert!(
            withheld.contains("too few readings"),
            "{after_watts}: {withheld}"
        );
    }
    let (net_joules, withheld) = of(1.0);
    assert_eq!(net_joules, None);
    assert!(
        withheld.contains("cannot be distinguished from 0"),
        "{withheld}"
    );
}

/// A plug that answered late between the first baseline and the load.
#[test]
fn a_late_answer_outside_the_baselines_does_not_hide_the_noise() {
    let noise = |late: Option<(f64, f64)>| {
        let mut lab = Lab::read_every(0.5);
        lab.change(-5.0, 500.0, |reading| {
            reading.source_age_seconds = Some(0.4);
        });
        (lab.idle_before, lab.idle_after) = (window(40.0, 45.0), window(380.0, 385.0));
        if let Some((from, to)) = late {
            lab.change(from, to, |reading| reading.source_age_seconds = Some(3.2));
        }
        let attempt = lab.attempt();
        let evidence = AttemptEvidence::gather(&attempt).unwrap();
        IdleNoise::of(&evidence).map(|noise| noise.degrees_of_freedom)
    };
    let known = noise(None);
    assert!(known.is_some());
    assert_eq!(noise(Some((46.0, 49.0))), known);
    // A late answer in one baseline leaves only the steps of the other baseline.
    let of_one = noise(Some((42.0, 44.0)));
    assert!(of_one.is_some() && of_one < known, "{of_one:?}");
    assert_eq!(noise(Some((40.0, 385.0))), None);
}

/// Each answer inside a baseline ends an age as long as the time between two answers.
#[test]
fn a_plug_that_answers_once_in_a_baseline_shows_no_noise_at_any_phase() {
    for phase in 0..40 {
        let mut lab = Lab::read_every(0.5);
        through_a_plug(&mut lab, 4.0, 0.1 * f64::from(phase));
        (lab.idle_before, lab.idle_after) = (window(40.0, 45.0), window(380.0, 385.0));
        let attempt = lab.attempt();
        let noise = IdleNoise::of(&AttemptEvidence::gather(&attempt).unwrap());
        assert!(noise.is_none(), "phase {phase}");
    }
}

#[test]
fn without_load_a_meter_without_times_reports_net_energy_no_more_often() {
    for noise_watts in [0.02, 0.1, 0.3, 1.0] {
        for late_seconds in [0.0, 0.1, 0.25, 0.5] {
            let quiet = Quiet {
                noise_watts,
                correlation: 0.0,
                load_watts: 0.0,
                late_seconds: Some(late_seconds),
            };
            let found = quiet.found(20_000);
            assert!(
                found < 20,
                "noise {noise_watts} W, late by up to {late_seconds} s: {found} of 20000"
            );
        }
    }
}

#[test]
fn two_baselines_alone_estimate_the_noise_badly() {
    // A meter that is read every 2.4 s has one step in a baseline of 5 s. The noise within a baseline is then
    // unknown, and two means may be close by chance. The load takes 1100 J.
    let figures = |watts: f64| {
        let mut lab = Lab::read_every(2.4);
        lab.change(340.0, 430.0, |reading| {
            let seconds = reading.at_unix_seconds() - T0 - 340.0;
            reading.node_joules += watts * seconds;
        });
        lab.idle_before = window(70.0, 75.0);
        lab.idle_after = window(370.0, 375.0);
        let attempt = lab.attempt();
        assert!(IdleNoise::of(&AttemptEvidence::gather(&attempt).unwrap()).is_none());
        lab.unchecked().unwrap()
    };
    // Student's t with one degree of freedom is 636.6 for 0.05 % of attempts.
    let far = figures(0.3);
    assert!(far.net_detection_limit_joules > 600.0 * 0.15 * 220.0);
    assert_eq!(far.net_joules, None);
    assert!(
        far.net_withheld
            .unwrap()
            .contains("cannot be distinguished from 0")
    );
    assert_eq!(figures(0.02).net_joules, None);
    assert!(figures(0.01).net_joules.is_some());
}

#[test]
fn work_right_before_a_baseline_is_not_noise_of_idle_power() {
    // Stock Kepler's counters are up to half a scrape older than the scrape: here 0.4 s, next to a neighbour
    // of 29 W.
    let mut lab = Lab::read_every(1.0).into_stock_kepler();
    lab.idle_before = window(0.5, 60.0);
    lab.change(-2.0, 430.0, |reading| {
        let at = reading.at_unix_seconds() - T0 - 0.4;
        reading.node_joules = truth(at, 1.0).node_joules + 29.0 * at.min(0.5);
    });
    let attempt = lab.attempt();
    let noise = IdleNoise::of(&AttemptEvidence::gather(&attempt).unwrap()).unwrap();
    assert!(noise.variance_of(60.0) < 1e-9, "{noise:?}");
}

#[test]
fn a_load_of_a_hundredth_of_the_idle_power_is_found() {
    // Noise of 0.05 W between readings leaves 0.0085 W over a window of 30 s and two baselines of 15 s.
    let quiet = |load_watts: f64| Quiet {
        noise_watts: 0.05,
        correlation: 0.0,
        load_watts,
        late_seconds: None,
    };
    let half = quiet(0.03).found(500);
    assert!((50..450).contains(&half), "{half} of 500 near the limit");
    let most = quiet(0.06).found(500);
    // The expected share is 97 %, and 470 is four standard deviations of 500 draws below it.
    assert!(most > 470, "{most} of 500 at twice the limit");
}

#[test]
fn the_trials_of_a_run_together_show_noise_that_one_attempt_does_not() {
    // Noise that lasts for five seconds, in 1000 runs of two candidates and ten blocks.
    let quiet = Quiet {
        noise_watts: 0.05,
        correlation: 0.9,
        load_watts: 0.0,
        late_seconds: None,
    };
    let mut chance = Chance(20_261_125);
    let (mut by_attempt, mut by_run) = (0, 0);
    for _ in 0..1000 {
        let groups: Vec<Vec<EnergyFigures>> = (0..2)
            .map(|_| (0..10).map(|_| quiet.attempt(&mut chance)).collect())
            .collect();
        let half_differences: Vec<Vec<f64>> = groups
            .iter()
            .map(|group| {
                let half = |it: &EnergyFigures| (it.idle_after_watts - it.idle_before_watts) / 2.0;
                group.iter().map(half).collect()
            })
            .collect();
        let pooled = PooledIdle::of(&half_differences).unwrap();
        for figures in groups.iter().flatten() {
            let limit_joules = pooled.detection_limit_joules(&Measured {
                node_joules: figures.node_joules,
                relative_uncertainty: figures.node_joules_relative_uncertainty,
                window_seconds: WINDOW_SECONDS,
                idle_seconds: BASELINE_SECONDS,
            });
            let found = figures.net_joules;
            by_attempt += u32::from(found.is_some());
            by_run += u32::from(found.is_some_and(|joules| joules >= limit_joules));
        }
    }
    // The expected number is at most 10 of 20,000.
    assert!(
        by_attempt > 40,
        "{by_attempt} of 20000 by the attempts alone"
    );
    assert!(by_run < 20, "{by_run} of 20000 by the run");
}
