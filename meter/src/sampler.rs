//! The one task that reads: a snapshot an interval, published whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::attribution::{Accounts, Break};
use crate::cgroup::{CgroupError, Reader};
use crate::cli::Settings;
use crate::pods::{PodName, PodNames};
use crate::power::{PowerSource, Source};

/// Everything that was true at one reading. Never changed once it is published.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Counters.
    pub(crate) accounts: Accounts,
    /// What the joules come from.
    pub(crate) source: Source,
    /// Names of the pods in it, as far as known, by UID.
    pub(crate) names: HashMap<String, PodName>,
    /// Unix time at which the meter began to count.
    pub(crate) start_unix_seconds: f64,
}

/// How the last attempt to read ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// The snapshot is of the last interval.
    Fresh,
    /// The snapshot ages, and will be followed by another once the reason is gone.
    Aging(String),
    /// No snapshot can follow this one: the meter must be started anew.
    Broken(String),
}

/// What the server sees.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// The last good snapshot.
    pub(crate) snapshot: Arc<Snapshot>,
    /// Whether it is fresh.
    pub(crate) health: Health,
}

/// Why an attempt gave no snapshot.
#[derive(Debug, thiserror::Error)]
enum SampleError {
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error(transparent)]
    Break(#[from] Break),
}

impl SampleError {
    fn into_health(self) -> Health {
        match self {
            Self::Break(reason) if !reason.heals() => Health::Broken(reason.to_string()),
            other => Health::Aging(other.to_string()),
        }
    }
}

/// Reads, attributes and publishes.
#[derive(Debug)]
pub(crate) struct Sampler<P> {
    reader: Reader,
    names: PodNames,
    power: P,
    accounts: Accounts,
    start_unix_seconds: f64,
}

impl<P: PowerSource> Sampler<P> {
    /// Takes the first snapshot, from which all counting starts.
    pub(crate) fn start(settings: &Settings, power: P) -> Result<(Self, Published), CgroupError> {
        let mut reader = Reader::new(&settings.cgroup_fs, &settings.cgroup_root)?;
        let accounts = Accounts::open(reader.read()?, settings.cpus);
        let mut sampler = Self {
            start_unix_seconds: accounts.reading_unix_seconds(),
            reader,
            names: PodNames::new(settings.pod_logs.clone()),
            power,
            accounts,
        };
        let first = Published {
            snapshot: sampler.snapshot(),
            health: Health::Fresh,
        };
        Ok((sampler, first))
    }

    /// Publishes a snapshot every `interval`, until nobody listens.
    pub(crate) async fn run(&mut self, interval: Duration, publish: watch::Sender<Published>) {
        let mut ticks = tokio::time::interval(interval);
        // A tick that comes late is one longer interval, not two in a row.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        while !publish.is_closed() {
            ticks.tick().await;
            self.step(&publish);
        }
    }

    fn step(&mut self, publish: &watch::Sender<Published>) {
        if matches!(publish.borrow().health, Health::Broken(_)) {
            return;
        }
        let outcome = self.sample();
        publish.send_modify(|published| {
            let health = match outcome {
                Ok(()) => {
                    published.snapshot = self.snapshot();
                    Health::Fresh
                }
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
        });
    }

    fn sample(&mut self) -> Result<(), SampleError> {
        let observation = self.reader.read()?;
        let power = &mut self.power;
        self.accounts
            .advance(observation, |interval| power.joules(interval))?;
        Ok(())
    }

    fn snapshot(&mut self) -> Arc<Snapshot> {
        Arc::new(Snapshot {
            accounts: self.accounts.clone(),
            source: self.power.source(),
            names: self.names.of(self.accounts.pods.keys()),
            start_unix_seconds: self.start_unix_seconds,
        })
    }
}
