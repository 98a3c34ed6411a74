//! Reads meters twice per second, outside reconcile, and keeps the readings of each trial in memory. If the
//! process ends, the readings are lost, on purpose: a window with a gap is void, and the ledger records this.
//!
//! Each meter has one task, which all benchmarks share that watch the meter. So a silent meter delays no other
//! meter, and benchmarks that wait for a node add no scrapes to its meter.

use std::{
    collections::{BTreeMap, HashSet, btree_map},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use frugality_measure::reading::{Reading, ReadingError, read};
use jiff::Timestamp;
use reqwest::{StatusCode, header::LOCATION, redirect};
use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior},
};
use tracing::{debug, warn};

use crate::{
    io::metrics::Metrics,
    plan::{
        action::MeterWatch,
        facts::{Session, is_preflight},
        protocol::SCRAPE_INTERVAL,
    },
    text::authority,
    time::unix_seconds,
};

/// Longest wait for a meter's answer.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(2);
/// A session of preflight is dropped after this time without a request from a pass.
const FORGET_PREFLIGHT_AFTER: Duration = Duration::from_secs(120);
/// The session of a trial is dropped after this time without a request. If the API server does not answer for some minutes,
/// passes fail, and an hour of readings is still needed.
const FORGET_AFTER: Duration = Duration::from_secs(15 * 60);
/// Time between two scrapes for preflight, after the first answer.
const PREFLIGHT_INTERVAL: Duration = Duration::from_secs(30);
/// Readings kept for preflight, which needs only the newest.
const PREFLIGHT_READINGS: usize = 5;
/// Number of new readings after which the readings of a long load are thinned again: a minute.
const THIN_AFTER: usize = 120;
/// Longest page that the reader accepts. Stock Kepler serves about 2 kB per process in its three usual zones, so
/// this is enough for a node with 4,000 processes. The node meter serves less than 1 kB per pod.
const LARGEST_PAGE_BYTES: usize = 8 << 20;

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
    /// The meter answered with another status than 200.
    #[error("{url} answered with status {status} instead of a page of metrics")]
    Status {
        /// Address.
        url: String,
        /// Status of the answer.
        status: StatusCode,
    },
    /// The meter redirects to another place. Only a meter on the node can measure the node.
    #[error(
        "{url} answered with status {status}, a redirect to {to}: the operator follows no redirect, because only a \
         meter on the node can measure the node"
    )]
    Redirect {
        /// Address.
        url: String,
        /// Status of the answer.
        status: StatusCode,
        /// Target of the redirect.
        to: String,
    },
    /// The page is longer than the limit.
    #[error("{url} answered with more than {} MiB, which is too long for a page of metrics", LARGEST_PAGE_BYTES >> 20)]
    TooLong {
        /// Address.
        url: String,
    },
    /// The page is not UTF-8.
    #[error("the answer of {url} is not UTF-8")]
    NoText {
        /// Address.
        url: String,
    },
    /// The node has no ready meter pod, so there is no address.
    #[error("no ready meter on node {node}")]
    NoMeter {
        /// Node.
        node: String,
    },
    /// The page contains no reading.
    #[error(transparent)]
    Reading(#[from] ReadingError),
}

/// The readings of all benchmarks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reader {
    client: reqwest::Client,
    meter_port: u16,
    metrics: Metrics,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<Key, Entry>,
    meters: BTreeMap<Meter, Scraping>,
}

/// UID of the benchmark and name of the trial.
type Key = (String, String);

/// Identity of a meter. A replaced pod has another address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Meter {
    node: String,
    ip: String,
}

impl Meter {
    fn of(watch: &MeterWatch) -> Option<Self> {
        Some(Self {
            node: watch.node.clone(),
            ip: watch.meter_ip.clone()?,
        })
    }
}

/// The scrapes of one meter.
#[derive(Debug)]
struct Scraping {
    /// The last scrape, which may still run.
    task: JoinHandle<()>,
    began: Instant,
    /// The last reading.
    newest: Option<Reading>,
    /// Whether the last scrape failed.
    failed: bool,
}

impl Scraping {
    /// Benchmarks that only wait for their nodes cause few scrapes of the measured node.
    fn is_due(&self, watched_by_a_trial: bool) -> bool {
        self.task.is_finished()
            && (watched_by_a_trial || self.failed || self.began.elapsed() >= PREFLIGHT_INTERVAL)
    }

    /// For preflight: the last reading, if it is as good as the result of a scrape now.
    fn recent(&self) -> Option<&Reading> {
        self.newest
            .as_ref()
            .filter(|_| !self.failed && self.began.elapsed() < PREFLIGHT_INTERVAL)
    }
}

impl Drop for Scraping {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn forget_after(trial: &str) -> Duration {
    if is_preflight(trial) {
        FORGET_PREFLIGHT_AFTER
    } else {
        FORGET_AFTER
    }
}

#[derive(Clone, Debug)]
struct Entry {
    watch: MeterWatch,
    session: Session,
    /// Readings that are not yet in the session.
    newest: Vec<Reading>,
    /// Number of readings at which to thin them again.
    thin_at: usize,
    asked: Instant,
}

impl Entry {
    /// Moves the new readings into the session, unless a pass holds its readings. A copy of hours of readings
    /// might not fit into memory.
    fn settle(&mut self) {
        let Some(readings) = Arc::get_mut(&mut self.session.readings) else {
            return;
        };
        readings.append(&mut self.newest);
        if is_preflight(&self.watch.trial) {
            let surplus = readings.len().saturating_sub(PREFLIGHT_READINGS);
            readings.drain(..surplus);
        }
        if let Some(steady) = &self.watch.steady
            && readings.len() >= self.thin_at
        {
            steady.thin(readings);
            self.thin_at = readings.len() + THIN_AFTER;
        }
    }

    fn watches(&self, meter: &Meter) -> bool {
        self.watch.node == meter.node && self.watch.meter_ip.as_ref() == Some(&meter.ip)
    }

    fn take(&mut self, reading: Reading) {
        self.session.last_error = None;
        self.newest.push(reading);
        self.settle();
    }

    fn fail(&mut self, error: &ScrapeError) {
        let text = error.to_string();
        if let ScrapeError::Reading(ReadingError::NoNodeSeries { .. }) = error {
            self.session.without_power = Some(text.clone());
        }
        self.session.last_error = Some(text);
    }
}

impl State {
    fn ask(&mut self, benchmark_uid: &str, watch: MeterWatch) {
        let key = (benchmark_uid.to_owned(), watch.trial.clone());
        let entry = match self.sessions.entry(key) {
            btree_map::Entry::Occupied(entry) => entry.into_mut(),
            btree_map::Entry::Vacant(place) => {
                let recent = Meter::of(&watch)
                    .filter(|_| is_preflight(&watch.trial))
                    .and_then(|meter| self.meters.get(&meter)?.recent().cloned());
                place.insert(Entry {
                    watch: watch.clone(),
                    session: Session {
                        started_unix_seconds: unix_seconds(Timestamp::now()),
                        ..Session::default()
                    },
                    newest: recent.into_iter().collect(),
                    thin_at: THIN_AFTER,
                    asked: Instant::now(),
                })
            }
        };
        entry.session.injector_seen |= watch.injector_seen;
        if watch.check_ended {
            let now = || unix_seconds(Timestamp::now());
            entry
                .session
                .check_ended_unix_seconds
                .get_or_insert_with(now);
        }
        entry.watch = watch;
        entry.asked = Instant::now();
    }

    /// The watched meters, and whether any trial watches them, not only preflight.
    fn wanted(&self) -> BTreeMap<Meter, bool> {
        let mut wanted = BTreeMap::new();
        for entry in self.sessions.values() {
            if let Some(meter) = Meter::of(&entry.watch) {
                *wanted.entry(meter).or_default() |= !is_preflight(&entry.watch.trial);
            }
        }
        wanted
    }

    /// Gives an error to the sessions whose node has no meter.
    fn miss(&mut self) {
        for entry in self.sessions.values_mut() {
            if entry.watch.meter_ip.is_none() {
                let node = entry.watch.node.clone();
                let error = ScrapeError::NoMeter { node };
                warn!(trial = entry.watch.trial, %error, "no reading");
                entry.fail(&error);
            }
        }
    }
}

impl Reader {
    /// A reader without sessions.
    ///
    /// # Errors
    ///
    /// The HTTP client can't be built.
    pub fn new(meter_port: u16) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: reqwest::Client::builder()
                .timeout(SCRAPE_TIMEOUT)
                .redirect(redirect::Policy::none())
                .no_proxy()
                .build()?,
            meter_port,
            metrics: Metrics::default(),
            state: Arc::default(),
        })
    }

    /// The same reader, which counts its scrapes in these metrics.
    #[must_use]
    pub fn counting(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// Reads for these trials of a benchmark from now on.
    pub fn watch(&self, benchmark_uid: &str, watches: Vec<MeterWatch>) {
        let mut state = self.state();
        for watch in watches {
            state.ask(benchmark_uid, watch);
        }
    }

    /// Drops the readings of all trials of a benchmark but these.
    pub fn watch_only(&self, benchmark_uid: &str, trials: &[String]) {
        self.state()
            .sessions
            .retain(|(uid, trial), _| uid != benchmark_uid || trials.contains(trial));
    }

    /// Drops the readings of all benchmarks but these.
    pub fn keep_benchmarks(&self, uids: &HashSet<String>) {
        self.state()
            .sessions
            .retain(|(uid, _), _| uids.contains(uid));
    }

    /// The sessions of a benchmark, by trial.
    #[must_use]
    pub fn sessions(&self, benchmark_uid: &str) -> BTreeMap<String, Session> {
        self.state()
            .sessions
            .iter_mut()
            .filter(|((uid, _), _)| uid == benchmark_uid)
            .map(|((_, trial), entry)| {
                entry.settle();
                (trial.clone(), entry.session.clone())
            })
            .collect()
    }

    /// Scrapes until the process ends.
    pub async fn run(self) {
        let mut ticks = tokio::time::interval(SCRAPE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.begin_scrapes();
        }
    }

    /// Begins a scrape of every due meter, without waiting. A meter has at most one scrape at a time.
    fn begin_scrapes(&self) {
        let mut state = self.state();
        let state = &mut *state;
        state
            .sessions
            .retain(|(_, trial), entry| entry.asked.elapsed() < forget_after(trial));
        state.miss();
        let wanted = state.wanted();
        state.meters.retain(|meter, _| wanted.contains_key(meter));
        for (meter, by_a_trial) in wanted {
            let scrape = || tokio::spawn(self.clone().scrape_and_keep(meter.clone()));
            match state.meters.entry(meter.clone()) {
                btree_map::Entry::Vacant(place) => {
                    place.insert(Scraping {
                        task: scrape(),
                        began: Instant::now(),
                        newest: None,
                        failed: false,
                    });
                }
                btree_map::Entry::Occupied(mut scraping) if scraping.get().is_due(by_a_trial) => {
                    let scraping = scraping.get_mut();
                    scraping.task = scrape();
                    scraping.began = Instant::now();
                }
                btree_map::Entry::Occupied(_) => {}
            }
        }
    }

    async fn scrape_and_keep(self, meter: Meter) {
        let result = self.scrape(&meter).await;
        self.keep(&meter, result);
    }

    async fn scrape(&self, meter: &Meter) -> Result<Reading, ScrapeError> {
        let Meter { node, ip } = meter;
        let url = format!("http://{}/metrics", authority(ip, self.meter_port));
        let text = self.page(&url).await?;
        let scraped_at = unix_seconds(Timestamp::now());
        Ok(read(&text, node, None, scraped_at)?)
    }

    async fn page(&self, url: &str) -> Result<String, ScrapeError> {
        let url = || url.to_owned();
        let failed = |source| ScrapeError::Http { url: url(), source };
        let mut response = self.client.get(url()).send().await.map_err(failed)?;
        let status = response.status();
        if let Some(to) = response.headers().get(LOCATION)
            && status.is_redirection()
        {
            return Err(ScrapeError::Redirect {
                url: url(),
                status,
                to: String::from_utf8_lossy(to.as_bytes()).into_owned(),
            });
        }
        if status != StatusCode::OK {
            return Err(ScrapeError::Status { url: url(), status });
        }
        let mut page = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if page.len() + chunk.len() > LARGEST_PAGE_BYTES {
                return Err(ScrapeError::TooLong { url: url() });
            }
            page.extend_from_slice(&chunk);
        }
        String::from_utf8(page).map_err(|_| ScrapeError::NoText { url: url() })
    }

    /// Gives the result of a scrape to all sessions that watch the meter.
    fn keep(&self, meter: &Meter, result: Result<Reading, ScrapeError>) {
        let mut state = self.state();
        let state = &mut *state;
        let watching = state
            .sessions
            .values_mut()
            .filter(|entry| entry.watches(meter));
        let scraping = state.meters.get_mut(meter);
        match result {
            Ok(mut reading) => {
                debug!(node = meter.node, joules = reading.node_joules, "reading");
                self.metrics
                    .count_reading(&meter.node, reading.scraped_at_unix_seconds);
                if let Some(scraping) = scraping {
                    if let Some(earlier) = &scraping.newest {
                        reading.share(earlier);
                    }
                    scraping.newest = Some(reading.clone());
                    scraping.failed = false;
                }
                watching.for_each(|entry| entry.take(reading.clone()));
            }
            Err(error) => {
                warn!(node = meter.node, %error, "no reading");
                self.metrics.count_failed_scrape(&meter.node);
                if let Some(scraping) = scraping {
                    scraping.failed = true;
                }
                watching.for_each(|entry| entry.fail(&error));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
