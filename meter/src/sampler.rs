//! The one task that reads, and what it publishes.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::bridge::{Bridge, BridgeError};
use crate::cgroup::CgroupError;
use crate::conditions::Conditions;
use crate::feed::Feed;
use crate::pods::PodNames;
use crate::power::Source;
use crate::power::supply::Settled;
use frugality_measure::attribution::{Accounts, Break};

/// Energy that is later than this many intervals beyond its usual lag is missing.
const LATE_INTERVALS: u32 = 2;
/// Shorter than this, lateness is the machine's and not the instrument's.
const LEAST_LATE: Duration = Duration::from_secs(1);

/// How the last attempt to read ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// What is published is of the last interval.
    Fresh,
    /// It ages, and will be followed by something newer once the reason is gone.
    Aging(String),
    /// Nothing can follow: the meter must be started anew.
    Broken(String),
}

/// What the server sees: everything that was true at one reading.
#[derive(Debug)]
pub(crate) struct Published {
    /// Counters; none until the power source has been read.
    pub(crate) accounts: Option<Accounts>,
    /// What the joules come from.
    pub(crate) source: Source,
    /// Standard uncertainty of a minute's energy as a share of it.
    pub(crate) relative_uncertainty: Option<f64>,
    /// Unix time of the instrument's last reading; none for a model.
    pub(crate) last_true_reading_unix_seconds: Option<f64>,
    /// Readings so far at the end of the instrument's scale, where that is known.
    pub(crate) saturated_readings: Option<u64>,
    /// Names of the pods, as far as known.
    pub(crate) names: PodNames,
    /// Throttling, temperature, frequency.
    pub(crate) conditions: Conditions,
    /// Unix time at which the meter began to count.
    pub(crate) start_unix_seconds: f64,
    /// Whether it is fresh.
    pub(crate) health: Health,
}

/// Why an attempt gave nothing new.
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
pub(crate) struct Sampler {
    feed: Feed,
    bridge: Option<Bridge>,
    cpus: u32,
    interval: Duration,
    /// Node energy of the last reading that was attributed, in joules.
    joules: f64,
    settled: Duration,
}

impl Sampler {
    /// Takes the first reading. An instrument that is elsewhere may not have answered then.
    pub(crate) fn start(
        mut feed: Feed,
        bridge: Option<Bridge>,
        names: PodNames,
        conditions: Conditions,
        (cpus, interval): (u32, Duration),
    ) -> Result<(Self, Published), CgroupError> {
        feed.read()?;
        let mut published = Published {
            accounts: None,
            source: feed.supply().source().clone(),
            relative_uncertainty: None,
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

    /// Publishes what is new every interval, until nobody listens.
    pub(crate) async fn run(&mut self, publish: watch::Sender<Published>) {
        let mut ticks = tokio::time::interval(self.interval);
        // A tick that comes late is one longer interval, not two in a row.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        while !publish.is_closed() {
            ticks.tick().await;
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
                Health::Fresh => tracing::info!("reading again"),
                Health::Aging(reason) => {
                    tracing::warn!(reason, "no reading; the last one ages");
                }
                Health::Broken(reason) => {
                    tracing::error!(reason, "counting has ended; start the meter anew");
                }
            }
            published.health = health;
        }
    }

    /// Counts everything whose energy is known by now.
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
