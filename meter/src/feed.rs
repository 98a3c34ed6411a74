//! Reads CPU time and the power source as the readings come, and joins them.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cgroup::{CgroupError, CgroupReader};
use crate::power::choice::{Chosen, Instrument};
use crate::power::polled::{self, News, poll};
use crate::power::supply::{Settled, Supply};
use crate::power::timeline::Interruption;
use crate::power::{InstrumentError, LocalInstrument, TrueReading};

/// Why the instrument gives no energy.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The instrument gives no reading.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
    /// Energy was lost between two readings of the instrument.
    #[error(transparent)]
    Interruption(#[from] Interruption),
}

impl Trouble {
    /// Whether the next readings can follow the last ones.
    fn heals(&self) -> bool {
        !matches!(
            self,
            Self::Interruption(_) | Self::Instrument(InstrumentError::WentBack { .. })
        )
    }
}

/// The origin of the instrument's readings.
#[derive(Debug)]
enum Readings {
    None,
    Local(Box<dyn LocalInstrument>),
    Polled {
        queue: mpsc::Receiver<News>,
        task: JoinHandle<()>,
    },
}

impl Drop for Readings {
    fn drop(&mut self) {
        if let Self::Polled { task, .. } = self {
            task.abort();
        }
    }
}

/// Reads CPU time and the power source.
#[derive(Debug)]
pub(crate) struct Feed {
    reader: CgroupReader,
    supply: Supply,
    readings: Readings,
    trouble: Option<Trouble>,
}

impl Feed {
    /// Starts reading. Must be called within a runtime.
    pub(crate) fn start(reader: CgroupReader, chosen: Chosen) -> Self {
        let Chosen { supply, instrument } = chosen;
        let readings = match instrument {
            None => Readings::None,
            Some(Instrument::Local(instrument)) => Readings::Local(instrument),
            Some(Instrument::Polled {
                instrument,
                interval,
            }) => {
                let (send, queue) = polled::queue();
                let task = tokio::spawn(poll(*instrument, interval, reader.began(), send));
                Readings::Polled { queue, task }
            }
        };
        let mut feed = Self {
            reader,
            supply,
            readings,
            trouble: None,
        };
        // A local instrument must be read once before the first reading of CPU time. The first reading of CPU
        // time then lies between two readings of the instrument.
        feed.learn();
        feed
    }

    /// The power source, with the readings that wait for its energy.
    pub(crate) fn supply(&self) -> &Supply {
        &self.supply
    }

    /// Whether there is an instrument; false for a model alone.
    pub(crate) fn has_instrument(&self) -> bool {
        !matches!(self.readings, Readings::None)
    }

    /// Readings so far at the end of the instrument's scale; `None` if the end is unknown.
    pub(crate) fn saturated_readings(&self) -> Option<u64> {
        match &self.readings {
            Readings::Local(instrument) => instrument.saturated_readings(),
            Readings::None | Readings::Polled { .. } => None,
        }
    }

    /// Time since the meter began.
    pub(crate) fn now(&self) -> Duration {
        self.reader.began().elapsed()
    }

    /// Reads CPU time, and the instrument's new readings.
    pub(crate) fn read(&mut self) -> Result<(), CgroupError> {
        let observed = self.reader.read().map(|it| self.supply.observe(it));
        self.learn();
        observed
    }

    /// The next reading of CPU time whose energy is known.
    pub(crate) fn next(&mut self) -> Option<Settled> {
        let now = self.now();
        self.supply.settle(now)
    }

    /// Why energy is late, for people.
    pub(crate) fn trouble(&self) -> String {
        self.trouble.as_ref().map_or_else(
            || "waiting for a new reading of the instrument".to_owned(),
            ToString::to_string,
        )
    }

    /// Whether the late energy can never come.
    pub(crate) fn is_broken(&self) -> bool {
        self.trouble.as_ref().is_some_and(|it| !it.heals())
    }

    fn learn(&mut self) {
        match &mut self.readings {
            Readings::None => {}
            Readings::Local(instrument) => {
                let outcome = instrument.read();
                let at = self.now();
                self.take(outcome.map(|quantity| TrueReading { at, quantity }));
            }
            Readings::Polled { queue, .. } => {
                let news: Vec<_> = std::iter::from_fn(|| queue.try_recv().ok()).collect();
                for reading in news {
                    self.take(reading);
                }
            }
        }
    }

    /// Takes no reading after an interruption: the lost energy would be missing without notice.
    fn take(&mut self, reading: News) {
        if self.is_broken() {
            return;
        }
        let learnt = reading
            .map_err(Trouble::from)
            .and_then(|reading| Ok(self.supply.learn(reading)?));
        self.trouble = learnt.err();
    }
}
