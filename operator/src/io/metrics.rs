//! Prometheus metrics: the operator's own work, and the newest state of each benchmark. docs/metrics.md describes them.

mod benchmarks;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

use crate::{
    api::{FrugalityBenchmark, FrugalityBenchmarkStatus},
    plan::action::Plan,
};
use benchmarks::Benchmarks;

/// Result of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum ReconcileResult {
    /// Completed.
    Ok,
    /// The cluster could not be read.
    ObserveError,
    /// The plan could not be carried out.
    ApplyError,
    /// The pass took too long.
    Timeout,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    result: ReconcileResult,
}

/// Result of an attempt, as labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AttemptLabels {
    outcome: String,
    reason: String,
}

impl AttemptLabels {
    /// Labels for the attempt that a plan ends; `None` if it ends no attempt.
    #[must_use]
    pub fn of(plan: &Plan) -> Option<Self> {
        let (_, record) = plan.record()?;
        Some(Self {
            outcome: format!("{:?}", record.outcome?),
            reason: record.reason.clone().unwrap_or_default(),
        })
    }
}

/// Whether a scrape of a meter gave a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum ScrapeResult {
    Ok,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScrapeLabels {
    node: String,
    result: ScrapeResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    node: String,
}

/// The operator's metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    passes: Family<PassLabels, Counter>,
    pass_seconds: Histogram,
    attempts: Family<AttemptLabels, Counter>,
    scrapes: Family<ScrapeLabels, Counter>,
    last_reading: Family<NodeLabels, Gauge<f64, AtomicU64>>,
    benchmarks: Benchmarks,
}

impl Default for Metrics {
    fn default() -> Self {
        let passes = Family::default();
        let pass_seconds = Histogram::new([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]);
        let attempts = Family::default();
        let scrapes = Family::default();
        let last_reading = Family::default();
        let benchmarks = Benchmarks::default();
        let mut root = Registry::default();
        root.register_collector(Box::new(benchmarks.clone()));
        let registry = root.sub_registry_with_prefix("frugality_operator");
        registry.register(
            "reconciles",
            "Reconcile passes over a benchmark",
            passes.clone(),
        );
        registry.register(
            "reconcile_seconds",
            "Duration of a reconcile pass",
            pass_seconds.clone(),
        );
        registry.register(
            "attempts",
            "Attempts by outcome and reason",
            attempts.clone(),
        );
        registry.register(
            "meter_scrapes",
            "Scrapes of the meter of a node, by whether they gave a reading",
            scrapes.clone(),
        );
        registry.register(
            "meter_last_reading_timestamp_seconds",
            "When the meter of a node last gave a reading; a meter is read only while a benchmark needs it",
            last_reading.clone(),
        );
        registry.register(
            "build",
            "Version of the operator",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self {
            registry: Arc::new(Mutex::new(root)),
            passes,
            pass_seconds,
            attempts,
            scrapes,
            last_reading,
            benchmarks,
        }
    }
}

impl Metrics {
    /// Counts a pass.
    pub fn count_pass(&self, result: ReconcileResult, duration: Duration) {
        self.passes.get_or_create(&PassLabels { result }).inc();
        self.pass_seconds.observe(duration.as_secs_f64());
    }

    /// Counts an attempt that has ended.
    pub fn count_attempt(&self, ended: &AttemptLabels) {
        self.attempts.get_or_create(ended).inc();
    }

    /// Counts a scrape that gave a reading, at a Unix time in seconds.
    pub fn count_reading(&self, node: &str, scraped_at_unix_seconds: f64) {
        self.count_scrape(node, ScrapeResult::Ok);
        let node = node.to_owned();
        let last = self.last_reading.get_or_create(&NodeLabels { node });
        last.set(scraped_at_unix_seconds);
    }

    /// Counts a scrape that gave no reading.
    pub fn count_failed_scrape(&self, node: &str) {
        self.count_scrape(node, ScrapeResult::Failed);
    }

    fn count_scrape(&self, node: &str, result: ScrapeResult) {
        let node = node.to_owned();
        self.scrapes
            .get_or_create(&ScrapeLabels { node, result })
            .inc();
    }

    /// Shows the newest status of a benchmark. `reason_since` is the Unix time in seconds since which its reason code
    /// is known.
    pub fn show(
        &self,
        benchmark: &FrugalityBenchmark,
        status: &FrugalityBenchmarkStatus,
        reason_since: Option<f64>,
    ) {
        self.benchmarks.show(benchmark, status, reason_since);
    }

    /// Forgets a deleted benchmark, by its UID.
    pub fn forget(&self, uid: &str) {
        self.benchmarks.forget(uid);
    }

    /// Forgets all benchmarks except these.
    pub fn keep(&self, uids: &HashSet<String>) {
        self.benchmarks.keep(uids);
    }

    /// All metrics in OpenMetrics' text format.
    ///
    /// # Errors
    ///
    /// The encoder fails.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every metric once.
    fn text() -> String {
        let metrics = Metrics::default();
        metrics.count_pass(ReconcileResult::Ok, Duration::from_secs(1));
        metrics.count_attempt(&AttemptLabels {
            outcome: "Void".to_owned(),
            reason: "CpuTaken".to_owned(),
        });
        metrics.count_reading("pi-1", 1.5e9);
        metrics.count_failed_scrape("pi-1");
        metrics.text().unwrap()
    }

    #[test]
    fn scrapes_are_counted_by_node_and_result() {
        let text = text();
        for line in [
            "frugality_operator_meter_scrapes_total{node=\"pi-1\",result=\"Ok\"} 1",
            "frugality_operator_meter_scrapes_total{node=\"pi-1\",result=\"Failed\"} 1",
            "frugality_operator_meter_last_reading_timestamp_seconds{node=\"pi-1\"} 1500000000.0",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }

    #[test]
    fn the_document_describes_each_metric() {
        let text = text();
        let types = text.lines().filter_map(|it| it.strip_prefix("# TYPE "));
        let own = types.filter_map(|it| {
            let (name, kind) = it.split_once(' ')?;
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            Some((format!("{name}{suffix}"), kind))
        });
        let of_benchmarks = benchmarks::names().map(|name| (name.to_owned(), "gauge"));
        let expected: BTreeSet<_> = own.chain(of_benchmarks).collect();
        let document = include_str!("../../../docs/metrics.md");
        let rows = document.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| `frugality_")?.split('|');
            let name = cells.next()?.trim().trim_end_matches('`');
            Some((format!("frugality_{name}"), cells.next()?.trim()))
        });
        let of_operator = |(name, _): &(String, _)| {
            name.starts_with("frugality_operator_") || name.starts_with("frugality_benchmark_")
        };
        let described: BTreeSet<_> = rows.filter(of_operator).collect();
        assert_eq!(described, expected);
    }
}
