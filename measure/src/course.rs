//! How latency goes in the course of a long run.

use serde::{Deserialize, Serialize};

use crate::NUMBERS_END;

/// Slices that a course has at most, so that it stays small however long the run is.
const MOST_SLICES: usize = 16;

/// Slices without which no drift is told.
const LEAST_SLICES: usize = 6;

/// The shortest slice, and the length of all at first.
const FIRST_SLICE_SECONDS: f64 = 1.0;

/// Mean latencies of successful requests (of a script, of its cycles; of a program, of its executions) in slices of
/// equal length, from the first one that was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Course {
    /// Length of each slice.
    pub slice_seconds: f64,
    /// For how long all connections were in use. Where a number of requests is shared out, those that were served
    /// faster end first, and what is left of the load is another one.
    pub whole_seconds: f64,
    /// Successful requests of each slice: those that began in it; of a script, the cycles that ended in it.
    pub requests: Vec<u64>,
    /// Their mean latency, to seven digits; 0 where there was none.
    pub mean_seconds: Vec<f64>,
}

impl Course {
    /// How fast the mean latency rises, in seconds per second: the slope by least squares over the slices that lie
    /// within `whole_seconds` and have requests, each at its middle, and of equal weight, for it is a function of
    /// time. `None` with too few of them.
    #[must_use]
    pub fn drift_seconds_per_second(&self) -> Option<f64> {
        let slices = self.requests.iter().zip(&self.mean_seconds).enumerate();
        // The last one of a script's window ends where that does, but for rounding.
        let end_seconds = self.whole_seconds * (1.0 + 1e-9);
        let points: Vec<(f64, f64)> = slices
            .take_while(|(index, _)| (index + 1) as f64 * self.slice_seconds <= end_seconds)
            .filter(|(_, (requests, _))| **requests > 0)
            .map(|(index, (_, mean))| ((index as f64 + 0.5) * self.slice_seconds, *mean))
            .collect();
        let n = points.len() as f64;
        if points.len() < LEAST_SLICES {
            return None;
        }
        let mean_of = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x_mean, y_mean) = (mean_of(|point| point.0), mean_of(|point| point.1));
        let products = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean));
        let squares = points.iter().map(|(x, _)| (x - x_mean).powi(2));
        Some(products.sum::<f64>() / squares.sum::<f64>())
    }

    /// Whether it can be one, whoever wrote it down.
    pub(crate) fn is_possible(&self) -> bool {
        let is_number = |value: &f64| (0.0..NUMBERS_END).contains(value);
        self.requests.len() == self.mean_seconds.len()
            && self.requests.len() <= MOST_SLICES
            && self.slice_seconds > 0.0
            && is_number(&self.slice_seconds)
            && is_number(&self.whole_seconds)
            && self.mean_seconds.iter().all(is_number)
    }
}

/// Makes a [`Course`] of a run whose length is not known, in constant memory: when there are too many slices,
/// each two become one.
#[derive(Clone, Debug)]
pub struct CourseRecorder {
    slice_seconds: f64,
    slices: Vec<Slice>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    requests: u64,
    sum_seconds: f64,
}

impl Default for CourseRecorder {
    fn default() -> Self {
        Self {
            slice_seconds: FIRST_SLICE_SECONDS,
            slices: Vec::with_capacity(MOST_SLICES),
        }
    }
}

impl CourseRecorder {
    /// Notes a successful request that began so long after the first one. Before it, is at its beginning.
    pub fn add(&mut self, at_seconds: f64, latency_seconds: f64) {
        if !(at_seconds.is_finite() && latency_seconds.is_finite()) {
            return;
        }
        while at_seconds >= self.slice_seconds * MOST_SLICES as f64 {
            self.widen();
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 0 to the number of slices"
        )]
        let index = (at_seconds / self.slice_seconds).max(0.0) as usize;
        if index >= self.slices.len() {
            self.slices.resize(index + 1, Slice::default());
        }
        let slice = &mut self.slices[index];
        slice.requests += 1;
        slice.sum_seconds += latency_seconds;
    }

    fn widen(&mut self) {
        self.slice_seconds *= 2.0;
        let pairs = self.slices.chunks(2);
        self.slices = pairs
            .map(|pair| Slice {
                requests: pair.iter().map(|slice| slice.requests).sum(),
                sum_seconds: pair.iter().map(|slice| slice.sum_seconds).sum(),
            })
            .collect();
    }

    /// What was noted, of a load that was whole for so long; `None` where that is nothing.
    #[must_use]
    pub fn course(&self, whole_seconds: f64) -> Option<Course> {
        let mean = |slice: &Slice| {
            let mean = slice.sum_seconds / slice.requests.max(1) as f64;
            format!("{mean:.6e}").parse().unwrap_or(mean)
        };
        (!self.slices.is_empty()).then(|| Course {
            slice_seconds: self.slice_seconds,
            whole_seconds,
            requests: self.slices.iter().map(|slice| slice.requests).collect(),
            mean_seconds: self.slices.iter().map(mean).collect(),
        })
    }
}
