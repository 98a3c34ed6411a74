//! The result of all executions in a measured window.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{ExecutionOutcome, Spread};
use crate::figures::{LoadSpan, RequestFigures};
use crate::{
    LEAST_SECONDS, NUMBERS_END,
    latency::{Bucket, Histogram, PERCENTAGES, merged_percentiles},
};

/// How many failures are kept as text.
const FAILURES_KEPT: usize = 3;

/// Executions of a measured window, one after another. The window begins with the first execution and ends
/// with the last one, so all executions are whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "BatchFigures")
)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionsResult {
    /// Start of the first execution, in Unix seconds by the clock of the injector's node.
    pub start_unix_seconds: f64,
    /// Time from that start to the end of the last execution, in seconds.
    pub duration_seconds: f64,
    /// Durations of the successful executions.
    pub executions: Histogram,
    /// Durations of the failed executions, without buckets.
    pub failed_executions: Histogram,
    /// Scores of the successful executions; absent if the benchmark has no score.
    pub score: Option<Spread>,
    /// Work of the successful executions; absent if the benchmark does not count work.
    pub work: Option<Spread>,
    /// Why executions failed: the first few reasons as text.
    pub first_failures: Vec<String>,
}

/// Why a result cannot be used.
#[derive(Debug, Error)]
pub enum BatchError {
    /// A field has an impossible value.
    #[error("the result of the executions has {field} = {value}")]
    Value {
        /// The field's name.
        field: &'static str,
        /// The field's value.
        value: f64,
    },
}

impl ExecutionsResult {
    /// A result without any execution.
    #[must_use]
    pub fn starting(start_unix_seconds: f64) -> Self {
        Self {
            start_unix_seconds,
            duration_seconds: 0.0,
            executions: empty(),
            failed_executions: empty(),
            score: None,
            work: None,
            first_failures: Vec::new(),
        }
    }

    /// Adds a successful execution.
    pub fn add(&mut self, outcome: &ExecutionOutcome) {
        let seconds = outcome.duration_seconds;
        note(&mut self.executions, seconds);
        let buckets = &mut self.executions.buckets;
        match buckets.binary_search_by(|bucket| bucket.end_seconds.total_cmp(&seconds)) {
            Ok(index) => buckets[index].count += 1,
            Err(index) => buckets.insert(
                index,
                Bucket {
                    start_seconds: seconds,
                    end_seconds: seconds,
                    count: 1,
                },
            ),
        }
        let with = |spread: Option<Spread>, number: Option<f64>| {
            Spread::over(spread.into_iter().chain(number.map(Spread::of)))
        };
        self.score = with(self.score, outcome.score);
        self.work = with(self.work, outcome.work);
    }

    /// Adds an execution that failed after `duration_seconds`.
    pub fn add_failure(&mut self, duration_seconds: f64, why: String) {
        note(&mut self.failed_executions, duration_seconds);
        if self.first_failures.len() < FAILURES_KEPT && !self.first_failures.contains(&why) {
            self.first_failures.push(why);
        }
    }

    /// The number of all executions, including the failed ones.
    #[must_use]
    pub fn all_executions(&self) -> u64 {
        let (good, failed) = (&self.executions, &self.failed_executions);
        good.count.saturating_add(failed.count)
    }

    /// Start, length and counts of the window.
    #[must_use]
    pub fn span(&self) -> LoadSpan {
        LoadSpan {
            start_unix_seconds: self.start_unix_seconds,
            duration_seconds: self.duration_seconds,
            requests: self.all_executions(),
            errors: self.failed_executions.count,
        }
    }

    /// The figures for the status. An execution counts as a request. If work is counted, requests/s and
    /// joules are per unit of work.
    #[must_use]
    pub fn figures(&self) -> RequestFigures {
        let (all, successes) = (self.all_executions(), self.executions.count);
        let seconds = self.duration_seconds;
        let ran = all > 0 && seconds > 0.0;
        let work = self.work.map(|work| work.sum());
        let taken = self.executions.sum_seconds + self.failed_executions.sum_seconds;
        let percentiles = merged_percentiles(&[&self.executions.buckets], &PERCENTAGES);
        let named = |(percentage, seconds): (&f64, f64)| (format!("p{percentage}"), 1e3 * seconds);
        RequestFigures {
            requests: all,
            successes,
            errors: self.failed_executions.count,
            requests_per_second: (successes > 0 && ran)
                .then(|| work.unwrap_or(successes as f64) / seconds),
            ms_per_request: (successes > 0)
                .then(|| 1e3 * self.executions.sum_seconds / successes as f64),
            percentiles_ms: PERCENTAGES
                .iter()
                .zip(percentiles.unwrap_or_default())
                .map(named)
                .collect(),
            dropped: 0,
            error_rate: (all > 0).then(|| self.failed_executions.count as f64 / all as f64),
            // After a failure, the injector does not execute the program again at once.
            occupancy: (successes > 0 && ran).then(|| taken / seconds),
            shortfall: None,
            mean_body_bytes: None,
            mean_body_standard_error_bytes: None,
            requests_per_cycle: None,
            work,
        }
    }

    /// Checks that figures can be computed from this result. It may come from any writer.
    pub(crate) fn check(&self) -> Result<(), BatchError> {
        let refuse = |field, value| Err(BatchError::Value { field, value });
        let of_window = [
            ("startUnixSeconds", self.start_unix_seconds, 0.0),
            ("durationSeconds", self.duration_seconds, LEAST_SECONDS),
        ];
        let of_histogram = |it: &Histogram| {
            let buckets = it.buckets.iter();
            let ends = buckets.flat_map(|bucket| [bucket.start_seconds, bucket.end_seconds]);
            let own = [it.min_seconds, it.max_seconds, it.sum_seconds];
            let count = it.count as f64;
            own.into_iter()
                .chain(ends)
                .chain([it.standard_deviation_seconds, count])
                .collect::<Vec<f64>>()
        };
        let of_executions = [&self.executions, &self.failed_executions]
            .into_iter()
            .flat_map(of_histogram)
            .map(|value| ("executions", value, 0.0));
        let mut values = of_window.into_iter().chain(of_executions);
        if let Some((field, value, _)) =
            values.find(|(_, value, least)| !(*least..NUMBERS_END).contains(value))
        {
            return refuse(field, value);
        }
        for (field, spread) in [("score", self.score), ("work", self.work)] {
            match spread {
                Some(it) if !it.is_possible() || it.count != self.executions.count => {
                    return refuse(field, it.mean);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn empty() -> Histogram {
    Histogram {
        count: 0,
        min_seconds: 0.0,
        max_seconds: 0.0,
        sum_seconds: 0.0,
        standard_deviation_seconds: 0.0,
        buckets: Vec::new(),
        percentiles: Vec::new(),
    }
}

/// Adds one duration to the histogram.
fn note(histogram: &mut Histogram, seconds: f64) {
    let n = histogram.count as f64;
    // Fortio's standard deviation is over the requests themselves (n, not n − 1); this one is over the
    // executions.
    let of_all = histogram.standard_deviation_seconds;
    let before = (histogram.count > 0).then(|| Spread {
        count: histogram.count,
        mean: histogram.sum_seconds / n,
        deviation: of_all * (n / (n - 1.0).max(1.0)).sqrt(),
        least: histogram.min_seconds,
        most: histogram.max_seconds,
    });
    let one = Spread::of(seconds);
    let after = before.map_or(one, |before| before.and(one));
    histogram.count = after.count;
    histogram.min_seconds = after.least;
    histogram.max_seconds = after.most;
    histogram.sum_seconds += seconds;
    histogram.standard_deviation_seconds = (after.squares() / after.count as f64).sqrt();
}
