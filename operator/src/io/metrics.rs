//! Prometheus metrics about the operator's own work.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram, info::Info},
    registry::Registry,
};

use crate::plan::action::Plan;

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

/// The operator's metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    passes: Family<PassLabels, Counter>,
    pass_seconds: Histogram,
    attempts: Family<AttemptLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let passes = Family::default();
        let pass_seconds = Histogram::new([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]);
        let attempts = Family::default();
        let mut registry = Registry::with_prefix("frugality_operator");
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
            "build",
            "Version of the operator",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self {
            registry: Arc::new(Mutex::new(registry)),
            passes,
            pass_seconds,
            attempts,
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
