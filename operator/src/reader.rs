//! Reads meters twice a second, outside reconcile, and keeps the readings of each trial in
//! memory. They are lost with the process, on purpose: a window that was not read from end to end
//! is void, and the ledger says so.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use frugality_measure::reading::{Reading, ReadingError, read};
use futures::future::join_all;
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior};
use tracing::{debug, warn};

use crate::plan::{
    Watch,
    facts::{Session, is_preflight},
    time::unix_seconds,
};

/// Time between two scrapes of a meter. Load that changes within the second around a window's end is
/// interpolated linearly: at 1 s that cost up to 3 % of a 20 s window on a noisy machine, at half of
/// that about 1 %.
pub const SCRAPE_INTERVAL: Duration = Duration::from_millis(500);
/// Longest time a meter may take to answer.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(2);
/// A session that no pass has asked for in this long is dropped.
const FORGET_AFTER: Duration = Duration::from_secs(120);
/// Time between two scrapes for the check before a run, once it has an answer.
const PREFLIGHT_INTERVAL: Duration = Duration::from_secs(30);
/// Readings kept for the check before a run, which only needs the newest.
const PREFLIGHT_READINGS: usize = 5;

/// Why a scrape gave no reading.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// The meter did not answer.
    #[error("no answer from {url}: {source}")]
    Http {
        /// Address.
        url: String,
        /// Cause.
        source: reqwest::Error,
    },
    /// The meter has no address: no ready pod of it on the node.
    #[error("no ready meter on node {node}")]
    NoMeter {
        /// Node.
        node: String,
    },
    /// The text is no reading.
    #[error(transparent)]
    Reading(#[from] ReadingError),
}

/// The sessions of all benchmarks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reader {
    client: reqwest::Client,
    meter_port: u16,
    sessions: Arc<Mutex<BTreeMap<Key, Entry>>>,
}

/// UID of the benchmark and name of the trial.
type Key = (String, String);

#[derive(Clone, Debug)]
struct Entry {
    watch: Watch,
    session: Session,
    /// Readings that the session has not yet.
    newest: Vec<Reading>,
    asked: Instant,
    scraped: Option<Instant>,
}

impl Entry {
    /// Gives the session what was read since, unless a pass looks at it: hours of readings are not copied for
    /// that, they may not fit into memory twice.
    fn settle(&mut self) {
        let Some(readings) = Arc::get_mut(&mut self.session.readings) else {
            return;
        };
        readings.append(&mut self.newest);
        if is_preflight(&self.watch.trial) {
            let surplus = readings.len().saturating_sub(PREFLIGHT_READINGS);
            readings.drain(..surplus);
        }
    }

    /// Benchmarks that only wait for their turn leave the measured node in peace.
    fn is_due(&self) -> bool {
        !is_preflight(&self.watch.trial)
            || self.session.readings.is_empty()
            || self
                .scraped
                .is_none_or(|at| at.elapsed() >= PREFLIGHT_INTERVAL)
    }
}

impl Reader {
    /// A reader that has nothing to read yet.
    pub fn new(meter_port: u16) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: reqwest::Client::builder()
                .timeout(SCRAPE_TIMEOUT)
                .no_proxy()
                .build()?,
            meter_port,
            sessions: Arc::default(),
        })
    }

    /// Reads for these trials from now on, and for no others of the benchmark.
    pub fn watch(&self, benchmark_uid: &str, watches: Vec<Watch>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(uid, trial), _| {
            uid != benchmark_uid || watches.iter().any(|watch| watch.trial == *trial)
        });
        for watch in watches {
            Self::ask(&mut sessions, benchmark_uid, watch);
        }
    }

    fn ask(sessions: &mut BTreeMap<Key, Entry>, benchmark_uid: &str, watch: Watch) {
        let key = (benchmark_uid.to_owned(), watch.trial.clone());
        let entry = sessions.entry(key).or_insert_with(|| Entry {
            watch: watch.clone(),
            session: Session {
                started_unix_seconds: unix_seconds(Timestamp::now()),
                ..Session::default()
            },
            newest: Vec::new(),
            asked: Instant::now(),
            scraped: None,
        });
        entry.session.injector_seen |= watch.injector_seen;
        entry.watch = watch;
        entry.asked = Instant::now();
    }

    /// The sessions of a benchmark, by trial.
    #[must_use]
    pub fn sessions(&self, benchmark_uid: &str) -> BTreeMap<String, Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions
            .iter_mut()
            .filter(|((uid, _), _)| uid == benchmark_uid)
            .map(|((_, trial), entry)| {
                entry.settle();
                (trial.clone(), entry.session.clone())
            })
            .collect()
    }

    /// Scrapes for ever.
    pub async fn run(self) {
        let mut ticks = tokio::time::interval(SCRAPE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // At the same time: a meter that does not answer must not delay the others.
            join_all(self.targets().into_iter().map(|(key, watch)| {
                let reader = &self;
                async move {
                    let result = reader.scrape(&watch).await;
                    reader.keep(&key, &watch, result);
                }
            }))
            .await;
        }
    }

    fn targets(&self) -> Vec<(Key, Watch)> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, entry| entry.asked.elapsed() < FORGET_AFTER);
        sessions
            .iter_mut()
            .filter(|(_, entry)| entry.is_due())
            .map(|(key, entry)| {
                entry.scraped = Some(Instant::now());
                (key.clone(), entry.watch.clone())
            })
            .collect()
    }

    async fn scrape(&self, watch: &Watch) -> Result<Reading, ScrapeError> {
        let Some(ip) = &watch.meter_ip else {
            return Err(ScrapeError::NoMeter {
                node: watch.node.clone(),
            });
        };
        let url = format!("http://{ip}:{}/metrics", self.meter_port);
        let failed = |source| ScrapeError::Http {
            url: url.clone(),
            source,
        };
        let response = self.client.get(&url).send().await.map_err(failed)?;
        let text = response
            .error_for_status()
            .map_err(failed)?
            .text()
            .await
            .map_err(failed)?;
        let scraped_at = unix_seconds(Timestamp::now());
        Ok(read(&text, &watch.node, None, scraped_at)?)
    }

    fn keep(&self, key: &Key, watch: &Watch, result: Result<Reading, ScrapeError>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = sessions.get_mut(key) else {
            return;
        };
        match result {
            Ok(mut reading) => {
                debug!(trial = watch.trial, joules = reading.node_joules, "reading");
                entry.session.last_error = None;
                if let Some(earlier) = entry.newest.last().or(entry.session.readings.last()) {
                    reading.share(earlier);
                }
                entry.newest.push(reading);
                entry.settle();
            }
            Err(error) => {
                warn!(trial = watch.trial, node = watch.node, %error, "no reading");
                let text = error.to_string();
                if let ScrapeError::Reading(ReadingError::NoNodeSeries { .. }) = error {
                    entry.session.without_power = Some(text.clone());
                }
                entry.session.last_error = Some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::facts::preflight;

    const UID: &str = "uid";

    fn watch(trial: &str) -> Watch {
        Watch {
            trial: trial.to_owned(),
            node: "pi-1".to_owned(),
            meter_ip: None,
            injector_seen: false,
        }
    }

    /// Keeps a reading that shows so many joules.
    fn keep(reader: &Reader, trial: &str, joules: u32) {
        let text = format!(
            "kepler_node_cpu_joules_total{{node_name=\"pi-1\",zone=\"package\"}} {joules}\n"
        );
        let reading = read(&text, "pi-1", None, f64::from(joules)).unwrap();
        let key = (UID.to_owned(), trial.to_owned());
        reader.keep(&key, &watch(trial), Ok(reading));
    }

    fn joules(session: &Session) -> Vec<f64> {
        session.readings.iter().map(|it| it.node_joules).collect()
    }

    #[test]
    fn a_pass_neither_sees_what_is_read_meanwhile_nor_has_it_copied_nor_lost() {
        let reader = Reader::new(0).unwrap();
        reader.watch(UID, vec![watch("trial")]);
        keep(&reader, "trial", 1);
        let of_pass = reader.sessions(UID).remove("trial").unwrap();
        keep(&reader, "trial", 2);
        keep(&reader, "trial", 3);
        assert_eq!(joules(&of_pass), [1.0]);
        let meanwhile = reader.sessions(UID).remove("trial").unwrap();
        assert!(Arc::ptr_eq(&of_pass.readings, &meanwhile.readings));
        drop((of_pass, meanwhile));
        let after = reader.sessions(UID).remove("trial").unwrap();
        assert_eq!(joules(&after), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn before_a_run_only_the_newest_readings_are_kept() {
        let reader = Reader::new(0).unwrap();
        let trial = &preflight("pi-1");
        reader.watch(UID, vec![watch(trial)]);
        (1..=7).for_each(|at| keep(&reader, trial, at));
        let session = reader.sessions(UID).remove(trial).unwrap();
        assert_eq!(joules(&session), [3.0, 4.0, 5.0, 6.0, 7.0]);
    }
}
