//! A node whose power is known exactly, in virtual time, for tests of sources.

use std::time::Duration;

use super::choice::{Chosen, Instrument, Surroundings, choose};
use super::config::NodePower;
use super::supply::Supply;
use super::{InstrumentError, TrueReading};
use frugality_measure::attribution::Observation;

/// Idle power of the node in watts, and the watts that one busy CPU adds.
pub(crate) const IDLE_WATTS: f64 = 2.7;
pub(crate) const WATTS_PER_CPU: f64 = 0.9;
/// Time between two readings of CPU time.
pub(crate) const TICK: f64 = 0.1;
const STEP: f64 = 0.01;
/// Ten minutes, and some more for late readings.
const SECONDS: f64 = 640.0;

/// The node's behaviour, at every hundredth of a second.
pub(crate) struct Truth {
    watts: Vec<f64>,
    joules: Vec<f64>,
    cpu_seconds: Vec<f64>,
}

impl Truth {
    /// A node with `cpus` CPUs in use at each time. Its power also depends on a temperature that follows the
    /// load, and on a periodic hum.
    pub(crate) fn new(cpus: impl Fn(f64) -> f64) -> Self {
        let (mut watts, mut joules, mut cpu_seconds) = (vec![], vec![0.0], vec![0.0]);
        let mut heat = 0.0;
        for step in 0.. {
            let at = f64::from(step) * STEP;
            if at > SECONDS {
                break;
            }
            let used = cpus(at);
            heat += (used - heat) * STEP / 40.0;
            let hum = 0.05 * (at * std::f64::consts::TAU / 3.7).sin();
            let now = IDLE_WATTS + WATTS_PER_CPU * used + 0.08 * heat + hum;
            watts.push(now);
            joules.push(joules.last().unwrap() + now * STEP);
            cpu_seconds.push(cpu_seconds.last().unwrap() + used * STEP);
        }
        Self {
            watts,
            joules,
            cpu_seconds,
        }
    }

    /// A benchmark: one minute idle, then one minute under nearly constant load.
    pub(crate) fn benchmark() -> Self {
        Self::new(|at| if at % 120.0 < 60.0 { 0.1 } else { 3.6 })
    }

    /// Varying load: bursts of 0.5 to 8 seconds without a period.
    pub(crate) fn bursts() -> Self {
        let mut state = 7_u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 24)
        };
        let mut changes = vec![(0.0, 0.1)];
        while changes.last().unwrap().0 < SECONDS {
            let (at, _) = *changes.last().unwrap();
            changes.push((at + 0.5 + 7.5 * random(), 4.0 * random()));
        }
        Self::new(move |at| {
            let after = changes.partition_point(|(begin, _)| *begin <= at);
            changes[after - 1].1
        })
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "virtual times are small and not negative"
    )]
    fn index(at: f64) -> usize {
        (at / STEP).round() as usize
    }

    pub(crate) fn watts(&self, at: f64) -> f64 {
        self.watts[Self::index(at)]
    }

    pub(crate) fn joules(&self, at: f64) -> f64 {
        self.joules[Self::index(at)]
    }

    fn observation(&self, at: f64) -> Observation {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "virtual times are small and not negative"
        )]
        let node_cpu_nanoseconds = (self.cpu_seconds[Self::index(at)] * 1e9) as u64;
        Observation {
            unix_seconds: 1e9 + at,
            elapsed: Duration::from_secs_f64(at),
            processors: None,
            node_cgroup: 1,
            node_cpu_nanoseconds,
            pods: std::collections::BTreeMap::new(),
        }
    }
}

/// The result of a simulated run.
#[derive(Debug)]
pub(crate) struct SimulationOutcome {
    /// Energy that the source reports for the ten minutes, as a share of the truth.
    pub(crate) ratio: f64,
    /// The stated relative standard uncertainty at the end.
    pub(crate) relative_uncertainty: Option<f64>,
    /// The largest error of any single second, in watts.
    pub(crate) worst_watts: f64,
    /// Why readings failed, in order.
    pub(crate) errors: Vec<String>,
}

/// Where the simulated node's files are.
pub(crate) fn surroundings(root: &std::path::Path) -> Surroundings {
    Surroundings {
        sysfs: root.join("sys"),
        dev: root.join("dev"),
        procfs: root.join("proc"),
        cpus: 4,
        interval: Duration::from_secs_f64(TICK),
    }
}

/// Runs a source for ten minutes of virtual time. `set` sets the device to the state at a moment.
pub(crate) fn run(
    power: &NodePower,
    surroundings: &Surroundings,
    truth: &Truth,
    set: impl FnMut(f64),
) -> SimulationOutcome {
    let Chosen { supply, instrument } = choose(power, surroundings).unwrap();
    simulate(supply, instrument, truth, set)
}

fn simulate(
    mut supply: Supply,
    mut instrument: Option<Instrument>,
    truth: &Truth,
    mut set: impl FnMut(f64),
) -> SimulationOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut errors = Vec::new();
    let mut settled: Vec<(f64, f64)> = Vec::new();
    let mut next_question = 0.0;
    for tick in 0.. {
        let at = f64::from(tick) * TICK;
        if at > SECONDS - TICK {
            break;
        }
        let now = Duration::from_secs_f64(at);
        supply.observe(truth.observation(at));
        let reading = match &mut instrument {
            Some(Instrument::Local(instrument)) => {
                set(at);
                Some(instrument.read())
            }
            Some(Instrument::Polled {
                instrument,
                interval,
            }) if at >= next_question - 1e-9 => {
                next_question += interval.as_secs_f64();
                set(at);
                let answer = runtime.block_on(instrument.ask());
                answer
                    .map(|it| it.map(|(quantity, _)| quantity))
                    .transpose()
            }
            Some(Instrument::Polled { .. }) | None => None,
        };
        match reading.map(|it| it.map(|quantity| TrueReading { at: now, quantity })) {
            Some(Ok(reading)) => {
                if let Err(error) = supply.learn(reading) {
                    errors.push(error.to_string());
                }
            }
            Some(Err(error)) => errors.push(reported(&error)),
            None => {}
        }
        while let Some(it) = supply.settle(now) {
            settled.push((it.observation.elapsed.as_secs_f64(), it.joules));
        }
    }
    let (from, first) = settled[0];
    let (to, last) = *settled.last().unwrap();
    assert!(to - from > 600.0, "only {from} to {to} s are known");
    assert!(settled.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    let seconds = settled
        .iter()
        .step_by(10)
        .zip(settled.iter().skip(10).step_by(10));
    let worst_watts = seconds
        .map(|(a, b)| ((b.1 - a.1) - (truth.joules(b.0) - truth.joules(a.0))) / (b.0 - a.0))
        .fold(0.0, |worst: f64, off| worst.max(off.abs()));
    SimulationOutcome {
        ratio: (last - first) / (truth.joules(to) - truth.joules(from)),
        relative_uncertainty: supply.relative_uncertainty(),
        worst_watts,
        errors,
    }
}

fn reported(error: &InstrumentError) -> String {
    error.to_string()
}

impl SimulationOutcome {
    /// Asserts that the error is within a share of the truth, and within twice the uncertainty that the
    /// source states.
    pub(crate) fn assert_within(&self, share: f64) {
        let off = (self.ratio - 1.0).abs();
        assert!(off <= share, "{self:?}");
        let stated = self.relative_uncertainty.unwrap();
        assert!(off <= 2.0 * stated, "{self:?}");
    }
}
