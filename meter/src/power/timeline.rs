//! Computes the node's energy at any moment between an instrument's readings. Pure.
//!
//! Between two readings energy is interpolated, never invented. The rise of an energy counter is distributed
//! between its two readings. Power samples are joined by straight lines (the trapezoidal rule). After the
//! last reading there is no energy yet.

use std::collections::VecDeque;
use std::time::Duration;

use super::refresh::Refresh;
use super::{PowerOrEnergy, TrueReading};

/// The time that the stated uncertainty applies to, in seconds. A measured window is about as long.
const REFERENCE_SECONDS: f64 = 60.0;
/// If power samples are further apart than this many of the instrument's intervals, and than [`LEAST_GAP`],
/// the energy between them is unknown.
const MOST_INTERVALS: u32 = 3;
const LEAST_GAP: Duration = Duration::from_secs(5);
/// The most readings that are kept. If the sampler does not fetch the energy, readings in between are
/// dropped. This loses how power varied, but no energy.
const MOST_KEPT: usize = 1024;
/// More power than any node measured this way draws. A counter that rises faster has leapt.
const MOST_WATTS: f64 = 5_000.0;
/// With fewer polls, a coarse counter may stand still or not by chance.
const LEAST_POLLS: u64 = 20;
/// With fewer rises, their common divisor may be several steps.
const LEAST_RISES: u64 = 10;
/// A counter is coarse if it stood still in more than this share of the polls. The operator has the same criterion. It sees no
/// counter that stands still, because the meter interpolates the energy between two readings.
const STILL_SHARE: f64 = 0.05;
/// Finer steps matter to no attempt. Differences of large totals are rounded by less.
const LEAST_STEP_JOULES: f64 = 1e-3;

/// Why no energy is known from here on: the energy between two readings is lost.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Interruption {
    /// The instrument's counter restarted.
    #[error("the instrument's counter went back from {from_joules} to {to_joules} J")]
    WentBack {
        /// Last value, in joules.
        from_joules: f64,
        /// Value now, in joules.
        to_joules: f64,
    },
    /// The instrument's counter leapt.
    #[error(
        "the instrument's counter rose by {joules} J in {seconds} s, more than the node can draw"
    )]
    Leapt {
        /// The rise, in joules.
        joules: f64,
        /// The time of the rise, in seconds.
        seconds: f64,
    },
    /// There was no power sample for too long.
    #[error("{seconds:.1} s without a power sample, and the instrument does not count energy")]
    Gap {
        /// The gap, in seconds.
        seconds: f64,
    },
    /// The instrument gave energy after power, or power after energy.
    #[error("the instrument changed between power and energy")]
    ChangedKind,
}

fn seconds_between(from: Duration, to: Duration) -> f64 {
    to.saturating_sub(from).as_secs_f64()
}

/// A reading, with the energy from the first reading up to it.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    at: Duration,
    joules: f64,
    quantity: PowerOrEnergy,
}

/// The readings that are still needed, the oldest first.
#[derive(Debug)]
pub(crate) struct Timeline {
    anchors: VecDeque<Anchor>,
    longest_gap: Duration,
    most_watts: f64,
    spread: Spread,
    steps: Steps,
    /// For an instrument that may repeat an old power; `None` if every poll measures.
    refresh: Option<Refresh>,
}

impl Timeline {
    /// For an instrument that is read every `interval`, on a node that draws at most `max_watts`.
    pub(crate) fn new(interval: Duration, max_watts: Option<f64>) -> Self {
        Self {
            anchors: VecDeque::new(),
            longest_gap: (interval * MOST_INTERVALS).max(LEAST_GAP),
            most_watts: max_watts.unwrap_or(MOST_WATTS),
            spread: Spread::default(),
            steps: Steps::default(),
            refresh: None,
        }
    }

    /// The same timeline for an instrument that may repeat an old power.
    pub(crate) fn refreshed(self, refresh: Refresh) -> Self {
        Self {
            refresh: Some(refresh),
            ..self
        }
    }

    /// Takes a reading. Two kinds of readings change nothing. The first kind is not later than the last
    /// reading. The second kind is a counter's unchanged value, because the counter has not made its next
    /// step yet.
    pub(crate) fn push(&mut self, reading: TrueReading) -> Result<(), Interruption> {
        let TrueReading { at, quantity } = reading;
        if let (Some(refresh), PowerOrEnergy::Watts(watts)) = (&mut self.refresh, quantity) {
            refresh.see(at, watts);
        }
        let Some(last) = self.anchors.back().copied() else {
            let joules = 0.0;
            self.anchors.push_back(Anchor {
                at,
                joules,
                quantity,
            });
            return Ok(());
        };
        if at <= last.at {
            return Ok(());
        }
        let seconds = seconds_between(last.at, at);
        let (risen, middle) = match (last.quantity, quantity) {
            (PowerOrEnergy::Joules(from_joules), PowerOrEnergy::Joules(to_joules)) => {
                let joules = to_joules - from_joules;
                if joules < 0.0 {
                    return Err(Interruption::WentBack {
                        from_joules,
                        to_joules,
                    });
                }
                if joules == 0.0 {
                    self.steps.stood_still();
                    return Ok(());
                }
                if joules > self.most_watts * (seconds + 1.0) {
                    return Err(Interruption::Leapt { joules, seconds });
                }
                self.steps.rose(joules);
                (joules, joules / seconds)
            }
            (PowerOrEnergy::Watts(from), PowerOrEnergy::Watts(to)) => {
                if seconds > self.longest_gap.as_secs_f64() {
                    return Err(Interruption::Gap { seconds });
                }
                (f64::midpoint(from, to) * seconds, to)
            }
            _ => return Err(Interruption::ChangedKind),
        };
        self.spread.add(middle, seconds);
        if self.anchors.len() >= MOST_KEPT {
            self.anchors.pop_back();
        }
        self.anchors.push_back(Anchor {
            at,
            joules: last.joules + risen,
            quantity,
        });
        Ok(())
    }

    /// The time from which energy is known.
    pub(crate) fn begins(&self) -> Option<Duration> {
        self.anchors.front().map(|anchor| anchor.at)
    }

    /// The last reading: the time up to which energy is known.
    pub(crate) fn ends(&self) -> Option<Duration> {
        self.anchors.back().map(|anchor| anchor.at)
    }

    /// The earliest time at which the instrument may have measured the value of its last reading.
    pub(crate) fn measured_at(&self) -> Option<Duration> {
        let last = self.ends()?;
        let age = self
            .refresh
            .as_ref()
            .map_or(Duration::ZERO, |it| it.age(last));
        Some(last.saturating_sub(age))
    }

    /// The stated time between two of the instrument's measurements, if any.
    pub(crate) fn stated_refresh(&self) -> Option<Duration> {
        self.refresh.as_ref()?.stated()
    }

    /// The observed step of a counter, in joules; `None` if the counter hardly ever stood still.
    pub(crate) fn step_joules(&self) -> Option<f64> {
        self.steps.joules()
    }

    /// Power between the last two readings, in watts.
    pub(crate) fn last_watts(&self) -> Option<f64> {
        self.spread.last_watts
    }

    /// Energy from the very first reading up to `at`; `None` outside the readings. `shape` is how the energy
    /// of a model grew. If the model's energy grew between two readings, the instrument's energy is
    /// distributed in the same way.
    pub(crate) fn joules_at(&self, at: Duration, shape: Option<&Shape>) -> Option<f64> {
        let after = self.anchors.partition_point(|anchor| anchor.at < at);
        let b = self.anchors.get(after)?;
        if b.at == at {
            return Some(b.joules);
        }
        let a = self.anchors.get(after.checked_sub(1)?)?;
        let risen = b.joules - a.joules;
        // A model that began later than the first reading has no shape for the time before.
        if let Some((shape, from)) = shape.and_then(|it| Some((it, it.joules_at(a.at)?))) {
            let (here, whole) = (shape.joules_at(at)? - from, shape.joules_at(b.at)? - from);
            if whole > 0.0 {
                return Some(a.joules + risen * (here / whole).clamp(0.0, 1.0));
            }
        }
        let (seconds, whole) = (seconds_between(a.at, at), seconds_between(a.at, b.at));
        let part = match (a.quantity, b.quantity) {
            (PowerOrEnergy::Watts(from), PowerOrEnergy::Watts(to)) => {
                let watts_here = from + (to - from) * seconds / whole;
                f64::midpoint(from, watts_here) * seconds
            }
            _ => risen * seconds / whole,
        };
        Some(a.joules + part.clamp(0.0, risen))
    }

    /// The last reading that is not after `at`.
    pub(crate) fn last_before(&self, at: Duration) -> Option<Duration> {
        let after = self.anchors.partition_point(|anchor| anchor.at <= at);
        Some(self.anchors.get(after.checked_sub(1)?)?.at)
    }

    /// Drops the readings that no time from `at` on needs.
    pub(crate) fn forget_before(&mut self, at: Duration) {
        while self.anchors.get(1).is_some_and(|second| second.at <= at) {
            self.anchors.pop_front();
        }
    }

    /// Relative standard uncertainty of one minute's energy that comes from sampling at intervals.
    pub(crate) fn sampling_uncertainty(&self) -> f64 {
        let is_counter = self
            .anchors
            .back()
            .is_some_and(|anchor| matches!(anchor.quantity, PowerOrEnergy::Joules(_)));
        let refresh = self
            .refresh
            .as_ref()
            .map_or(Duration::ZERO, Refresh::interval);
        self.spread.uncertainty(is_counter, refresh.as_secs_f64())
    }
}

/// How power has varied from one reading to the next over about the last minute: running means in which older
/// readings count less and less.
#[derive(Debug, Default)]
struct Spread {
    last_watts: Option<f64>,
    mean_watts: f64,
    mean_square_step: f64,
    mean_seconds: f64,
}

impl Spread {
    fn add(&mut self, watts: f64, seconds: f64) {
        let Some(last) = self.last_watts.replace(watts) else {
            (self.mean_watts, self.mean_seconds) = (watts, seconds);
            return;
        };
        let weight = (seconds / REFERENCE_SECONDS).min(1.0);
        let towards = |mean: &mut f64, value: f64| *mean += (value - *mean) * weight;
        towards(&mut self.mean_watts, watts);
        towards(&mut self.mean_seconds, seconds);
        towards(&mut self.mean_square_step, (watts - last).powi(2));
    }

    /// With σ² half of the mean square of the steps (von Neumann 1941) and n readings per minute:
    ///
    /// - The mean of n samples is uncertain by σ/√n.
    /// - A counter's total is exact at its readings, and only the two ends of a window lie between two
    ///   readings. There, power may be off by σ for up to one interval, evenly distributed. Each end is
    ///   therefore uncertain by σ × interval/√12, and both ends by σ/(n·√6) of the window.
    /// - If the instrument refreshes its power only every h seconds, readings d seconds apart repeat each
    ///   value h/d times. A step is then seen in one of h/d readings, and there are 60 s/h values: σ and 1/√n
    ///   are both √(h/d) times larger.
    fn uncertainty(&self, is_counter: bool, refresh_seconds: f64) -> f64 {
        if self.mean_watts <= 0.0 || self.mean_seconds <= 0.0 {
            return 0.0;
        }
        let sigma = (self.mean_square_step / 2.0).sqrt() / self.mean_watts;
        let readings = (REFERENCE_SECONDS / self.mean_seconds).max(1.0);
        if is_counter {
            sigma / (readings * 6_f64.sqrt())
        } else {
            let repeated = (refresh_seconds / self.mean_seconds).max(1.0);
            sigma / readings.sqrt() * repeated
        }
    }
}

/// The step of an energy counter, from its rises.
#[derive(Debug, Default)]
struct Steps {
    polls: u64,
    still: u64,
    rises: u64,
    /// The largest common divisor of all rises so far, in joules.
    common: Option<f64>,
    /// Stays true: under load a coarse counter moves at each poll.
    is_coarse: bool,
}

impl Steps {
    fn stood_still(&mut self) {
        self.still += 1;
        self.polled();
    }

    fn rose(&mut self, joules: f64) {
        let common = self.common.map_or(joules, |it| common_step(it, joules));
        self.common = Some(common);
        self.rises += 1;
        self.polled();
    }

    fn polled(&mut self) {
        self.polls += 1;
        self.is_coarse |=
            self.polls >= LEAST_POLLS && self.still as f64 > STILL_SHARE * self.polls as f64;
    }

    fn joules(&self) -> Option<f64> {
        self.common
            .filter(|_| self.is_coarse && self.rises >= LEAST_RISES)
    }
}

/// The largest common divisor of two rises, in joules (Euclid). The rises of a counter of fine steps have no larger one. This
/// also holds if its device refreshes the counter less often than the meter polls it.
fn common_step(one: f64, other: f64) -> f64 {
    let (mut larger, mut smaller) = (one.max(other), one.min(other));
    while smaller > LEAST_STEP_JOULES {
        (larger, smaller) = (smaller, larger % smaller);
    }
    larger
}

/// How the energy of a model grew, from one reading of CPU time to the next.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    points: VecDeque<(Duration, f64)>,
}

impl Shape {
    /// Adds the model's energy up to `at`, which must be after all earlier times.
    pub(crate) fn push(&mut self, at: Duration, joules: f64) {
        if self.points.len() >= MOST_KEPT {
            self.points.pop_back();
        }
        self.points.push_back((at, joules));
    }

    /// The model's energy up to `at`; `None` outside the readings of CPU time.
    pub(crate) fn joules_at(&self, at: Duration) -> Option<f64> {
        let after = self.points.partition_point(|(time, _)| *time < at);
        let &(b_at, b_joules) = self.points.get(after)?;
        if b_at == at {
            return Some(b_joules);
        }
        let &(a_at, a_joules) = self.points.get(after.checked_sub(1)?)?;
        let share = seconds_between(a_at, at) / seconds_between(a_at, b_at);
        Some(a_joules + (b_joules - a_joules) * share)
    }

    /// Drops the points that no time from `at` on needs.
    pub(crate) fn forget_before(&mut self, at: Duration) {
        while self.points.get(1).is_some_and(|(second, _)| *second <= at) {
            self.points.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
