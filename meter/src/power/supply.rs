//! Joins the readings of CPU time with the readings of a power source. Pure.
//!
//! A reading of CPU time waits here until the node's energy at that moment is known. It also waits for the
//! lag: the usual delay of the instrument's readings. The published values therefore advance evenly, although
//! the instrument is slow.

use std::collections::VecDeque;
use std::time::Duration;

use super::board::BoardModel;
use super::timeline::{Interruption, Shape, Timeline};
use super::{LARGEST_UNCERTAINTY, Source, TrueReading};
use frugality_measure::attribution::{Interval, Observation, seconds};

/// The most readings of CPU time that wait. If more arrive, the readings in between are dropped: the counters
/// of the next reading include theirs.
const MOST_WAITING: usize = 512;

/// A reading of CPU time whose energy is known.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) observation: Observation,
    /// The node's energy from a fixed moment up to the reading, in joules; never falls.
    pub(crate) joules: f64,
}

/// A power source, and the readings of CPU time that wait for its energy.
#[derive(Debug)]
pub(crate) struct Supply {
    source: Source,
    model: Option<BoardModel>,
    modelled_joules: f64,
    last_cpu: Option<(Duration, u64)>,
    instrument: Option<Timeline>,
    shape: Shape,
    lag: Duration,
    waiting: VecDeque<Observation>,
}

impl Supply {
    /// Energy from a model alone. It is known at once.
    pub(crate) fn modelled(source: Source, model: BoardModel) -> Self {
        Self::new(source, Some(model), None, Duration::ZERO)
    }

    /// Energy from an instrument whose readings are up to `lag` late. An optional model estimates how power
    /// varied between the readings.
    pub(crate) fn metered(
        source: Source,
        timeline: Timeline,
        model: Option<BoardModel>,
        lag: Duration,
    ) -> Self {
        Self::new(source, model, Some(timeline), lag)
    }

    fn new(
        source: Source,
        model: Option<BoardModel>,
        instrument: Option<Timeline>,
        lag: Duration,
    ) -> Self {
        Self {
            source,
            model,
            modelled_joules: 0.0,
            last_cpu: None,
            instrument,
            shape: Shape::default(),
            lag,
            waiting: VecDeque::new(),
        }
    }

    /// The source of the joules.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The usual delay of the published values.
    pub(crate) fn lag(&self) -> Duration {
        self.lag
    }

    /// The stated time between two of the instrument's measurements, if any.
    pub(crate) fn stated_refresh(&self) -> Option<Duration> {
        self.instrument.as_ref()?.stated_refresh()
    }

    /// When the instrument last measured; `None` for a model, and before the first reading. An instrument
    /// that repeats an old power has not measured again.
    pub(crate) fn last_true_reading(&self) -> Option<Duration> {
        self.instrument.as_ref()?.measured_at()
    }

    /// Relative standard uncertainty of one minute's energy. It combines three independent parts: the
    /// source's own uncertainty, the sampling between two readings, and the fixed part as a share of the
    /// present power. `None` if the source states no uncertainty, or if the power is not known yet.
    pub(crate) fn relative_uncertainty(&self) -> Option<f64> {
        let Some(timeline) = &self.instrument else {
            return self.source.relative_uncertainty_at(None);
        };
        let own = self.source.relative_uncertainty_at(timeline.last_watts())?;
        Some(
            own.hypot(timeline.sampling_uncertainty())
                .min(LARGEST_UNCERTAINTY),
        )
    }

    /// Step of the instrument's counter, in joules: stated, else observed.
    pub(crate) fn resolution_joules(&self) -> Option<f64> {
        let observed = || self.instrument.as_ref()?.step_joules();
        self.source.resolution_joules.or_else(observed)
    }

    /// Takes a reading of CPU time.
    pub(crate) fn observe(&mut self, observation: Observation) {
        let (at, cpu) = (observation.elapsed, observation.node_cpu_nanoseconds);
        if let Some(model) = &self.model {
            // A counter that went back ends the counting elsewhere. Here it must only not count as energy.
            if let Some((last_at, last_cpu)) = self.last_cpu {
                self.modelled_joules += model.joules(Interval {
                    elapsed_seconds: at.saturating_sub(last_at).as_secs_f64(),
                    node_cpu_seconds: seconds(cpu.saturating_sub(last_cpu)),
                });
            }
            self.last_cpu = Some((at, cpu));
            self.shape.push(at, self.modelled_joules);
        }
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_back();
        }
        self.waiting.push_back(observation);
    }

    /// Takes a reading of the instrument.
    pub(crate) fn learn(&mut self, reading: TrueReading) -> Result<(), Interruption> {
        match &mut self.instrument {
            Some(timeline) => timeline.push(reading),
            None => Ok(()),
        }
    }

    /// The next reading of CPU time whose energy is known and whose lag has passed at `now`.
    pub(crate) fn settle(&mut self, now: Duration) -> Option<Settled> {
        loop {
            let at = self.waiting.front()?.elapsed;
            if at + self.lag > now {
                return None;
            }
            let joules = match &self.instrument {
                None => self.shape.joules_at(at),
                Some(timeline) if timeline.begins()? > at => {
                    // Before the first reading the energy is unknown forever.
                    self.waiting.pop_front();
                    continue;
                }
                Some(timeline) => {
                    let shape = self.model.is_some().then_some(&self.shape);
                    timeline.joules_at(at, shape)
                }
            }?;
            self.shape.forget_before(self.needed_from(at));
            if let Some(timeline) = &mut self.instrument {
                timeline.forget_before(at);
            }
            let observation = self.waiting.pop_front()?;
            return Some(Settled {
                observation,
                joules,
            });
        }
    }

    /// The shape is needed from the instrument's last reading before `at`.
    fn needed_from(&self, at: Duration) -> Duration {
        self.instrument
            .as_ref()
            .and_then(|timeline| timeline.last_before(at))
            .unwrap_or(at)
    }
}

#[cfg(test)]
mod tests;
