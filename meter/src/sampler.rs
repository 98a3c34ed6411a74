//! The thread that reads, and the data that it publishes.

use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::bridge::{Bridge, BridgeError};
use crate::cgroup::CgroupError;
use crate::conditions::ConditionReader;
use crate::feed::Feed;
use crate::pods::PodNames;
use crate::power::Source;
use crate::power::supply::Settled;
use frugality_measure::attribution::{Accounts, Break};

/// Energy that is more than this many intervals later than its usual lag counts as missing.
const LATE_INTERVALS: u32 = 2;
/// A shorter delay comes from the machine, not from the instrument.
const LEAST_LATE: Duration = Duration::from_secs(1);

/// How the last attempt to read ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// The published reading is from the last interval.
    Fresh,
    /// The published reading ages. A newer reading follows once the reason is gone.
    Aging(String),
    /// No reading can follow: the meter must be restarted.
    Broken(String),
}

/// Everything that was true at one reading, for the server.
#[derive(Debug)]
pub(crate) struct Published {
    /// The counters; `None` until the meter has read the power source.
    pub(crate) accounts: Option<Accounts>,
    /// The source of the joules.
    pub(crate) source: Source,
    /// Relative standard uncertainty of one minute's energy.
    pub(crate) relative_uncertainty: Option<f64>,
    /// Step of the instrument's counter, in joules; `None` if it is neither stated nor observed.
    pub(crate) resolution_joules: Option<f64>,
    /// Unix time of the instrument's last reading; `None` for a model.
    pub(crate) last_true_reading_unix_seconds: Option<f64>,
    /// Readings so far at the end of the instrument's scale; `None` if the scale is unknown.
    pub(crate) saturated_readings: Option<u64>,
    /// Names of the pods, as far as known.
    pub(crate) names: PodNames,
    /// Throttling, temperature, frequency.
    pub(crate) conditions: ConditionReader,
    /// Unix time at which the meter began to count.
    pub(crate) start_unix_seconds: f64,
    /// How the last attempt to read ended.
    pub(crate) health: Health,
}

/// Why an attempt gave no new reading.
#[derive(Debug, thiserror::Error)]
enum SampleError {
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error(transparent)]
    Break(#[from] Break),
    #[error("{0}")]
    Late(String),
    #[error("{0}")]
    Lost(String),
    #[error(transparent)]
    Bridge(#[from] BridgeError),
}

impl SampleError {
    fn into_health(self) -> Health {
        let heals = match &self {
            Self::Break(reason) => reason.heals(),
            Self::Cgroup(_) | Self::Late(_) | Self::Bridge(_) => true,
            Self::Lost(_) => false,
        };
        if heals {
            Health::Aging(self.to_string())
        } else {
            Health::Broken(self.to_string())
        }
    }
}

/// Reads, attributes and publishes.
#[derive(Debug)]
pub(crate) struct NodeSampler {
    feed: Feed,
    bridge: Option<Bridge>,
    cpus: u32,
    interval: Duration,
    /// Node energy of the last reading that was attributed, in joules.
    joules: f64,
    settled: Duration,
}

impl NodeSampler {
    /// Takes the first reading. A remote instrument may not have answered yet.
    pub(crate) fn start(
        mut feed: Feed,
        bridge: Option<Bridge>,
        names: PodNames,
        conditions: ConditionReader,
        (cpus, interval): (u32, Duration),
    ) -> Result<(Self, Published), CgroupError> {
        feed.read()?;
        let mut published = Published {
            accounts: None,
            source: feed.supply().source().clone(),
            relative_uncertainty: None,
            resolution_joules: None,
            last_true_reading_unix_seconds: None,
            saturated_readings: None,
            names,
            conditions,
            start_unix_seconds: 0.0,
            health: Health::Fresh,
        };
        let mut sampler = Self {
            settled: feed.now(),
            feed,
            bridge,
            cpus,
            interval,
            joules: 0.0,
        };
        published.health = match sampler.attribute(&mut published) {
            Ok(()) if published.accounts.is_some() => Health::Fresh,
            Ok(()) => Health::Aging(sampler.feed.trouble()),
            Err(error) => error.into_health(),
        };
        Ok((sampler, published))
    }

    /// Publishes the new state every interval, until the receiver is dropped. Blocks its thread, because a timer of tokio
    /// wakes the thread three times per interval of 100 ms.
    pub(crate) fn run(&mut self, publish: &watch::Sender<Published>) {
        let mut due = Instant::now();
        while !publish.is_closed() {
            due = next_due(due, Instant::now(), self.interval);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            publish.send_modify(|published| self.step(published));
        }
    }

    fn step(&mut self, published: &mut Published) {
        if matches!(published.health, Health::Broken(_)) {
            return;
        }
        let outcome = self
            .feed
            .read()
            .map_err(SampleError::from)
            .and_then(|()| self.attribute(published));
        published.conditions.observe(self.feed.now());
        let health = match outcome {
            Ok(()) => Health::Fresh,
            Err(error) => error.into_health(),
        };
        if health != published.health {
            match &health {
                Health::Fresh => tracing::info!("the meter has new readings again"),
                Health::Aging(reason) => {
                    tracing::warn!(reason, "no new reading; the last reading stays published");
                }
                Health::Broken(reason) => {
                    tracing::error!(reason, "counting has stopped: restart the meter");
                }
            }
            published.health = health;
        }
    }

    /// Counts every reading of CPU time whose energy is known by now.
    fn attribute(&mut self, published: &mut Published) -> Result<(), SampleError> {
        while let Some(Settled {
            observation,
            joules,
        }) = self.feed.next()
        {
            self.settled = observation.elapsed;
            if let Some(accounts) = &mut published.accounts {
                let energy = (joules - self.joules).max(0.0);
                accounts.advance(observation, |_| energy)?;
                self.joules = joules;
                if let Some(bridge) = &mut self.bridge {
                    bridge.write(accounts.node.total_joules)?;
                }
            } else {
                published.start_unix_seconds = observation.unix_seconds;
                published.accounts = Some(Accounts::open(observation, self.cpus));
                self.joules = joules;
            }
        }
        self.describe(published);
        if self.feed.is_broken() {
            return Err(SampleError::Lost(self.feed.trouble()));
        }
        let late = (self.interval * LATE_INTERVALS).max(LEAST_LATE) + self.feed.supply().lag();
        if self.feed.now().saturating_sub(self.settled) > late || published.accounts.is_none() {
            return Err(SampleError::Late(self.feed.trouble()));
        }
        Ok(())
    }

    fn describe(&self, published: &mut Published) {
        let supply = self.feed.supply();
        published.relative_uncertainty = supply.relative_uncertainty();
        published.resolution_joules = supply.resolution_joules();
        published.saturated_readings = self.feed.saturated_readings();
        if let Some(accounts) = &published.accounts {
            published.names.keep(accounts.pods.keys(), self.feed.now());
            let clock = accounts.reading_unix_seconds() - self.settled.as_secs_f64();
            published.last_true_reading_unix_seconds = supply
                .last_true_reading()
                .map(|at| clock + at.as_secs_f64());
        }
    }
}

/// When the next reading is due. A late reading makes one longer interval, not two readings in a row.
fn next_due(due: Instant, now: Instant, interval: Duration) -> Instant {
    let next = due + interval;
    if next > now { next } else { now + interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_keep_their_interval_unless_one_is_late_by_a_whole_interval() {
        let interval = Duration::from_millis(100);
        let due = Instant::now();
        let next = |now| next_due(due, due + Duration::from_millis(now), interval) - due;
        assert_eq!(next(1), Duration::from_millis(100), "a reading takes time");
        assert_eq!(next(60), Duration::from_millis(100));
        assert_eq!(next(100), Duration::from_millis(200));
        assert_eq!(next(250), Duration::from_millis(350));
    }
}
