//! Requests and latencies over the time of a measured run.

use serde::{Deserialize, Serialize};

use crate::{NUMBERS_END, course::Course, figures::LoadSpan};

/// The largest number of slices, and the number of slices of a run whose length is known before it begins.
pub const MOST_SLICES: usize = 32;

/// The initial length of the slices of a run whose length is not known.
const FIRST_SLICE_SECONDS: f64 = 0.25;

/// Requests in slices of equal length, from the begin of the measured run. A request belongs to the slice in which it
/// began. A script has cycles instead of requests; a cycle belongs to the slice in which it ended. A program
/// has executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Slices {
    /// Length of each slice, in seconds.
    pub slice_seconds: f64,
    /// How long all connections were in use, in seconds. If a fixed number of requests is shared out, the
    /// connections with faster answers end first. The remaining load is then different.
    pub whole_seconds: f64,
    /// Successful requests per slice.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::counts"))]
    pub successes: Vec<u64>,
    /// Failed requests per slice.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::counts"))]
    pub errors: Vec<u64>,
    /// Mean latency of the successful requests, in nanoseconds. Null in a slice without a success.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::latencies"))]
    pub mean_nanoseconds: Vec<Option<u64>>,
    /// 99th percentile of their latencies, in nanoseconds. Null in a slice with fewer than 100 successes, and for
    /// executions.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::latencies"))]
    pub p99_nanoseconds: Vec<Option<u64>>,
}

impl Slices {
    /// The values per slice: name of the field, and one value per slice.
    #[must_use]
    pub fn quantities(&self) -> [(&'static str, Vec<Option<u64>>); 4] {
        let counts = |of: &[u64]| of.iter().copied().map(Some).collect();
        [
            ("successes", counts(&self.successes)),
            ("errors", counts(&self.errors)),
            ("meanNanoseconds", self.mean_nanoseconds.clone()),
            ("p99Nanoseconds", self.p99_nanoseconds.clone()),
        ]
    }

    /// Whether the slices have all requests of a load and no other. Otherwise slices and figures would describe
    /// different requests.
    #[must_use]
    pub fn is_of(&self, load: LoadSpan) -> bool {
        let sum = |of: &[u64]| of.iter().copied().fold(0, u64::saturating_add);
        let errors = sum(&self.errors);
        errors == load.errors && sum(&self.successes).saturating_add(errors) == load.requests
    }

    /// The mean latencies of the successful requests, for the drift.
    #[must_use]
    pub fn course(&self) -> Course {
        let sums = self.successes.iter().zip(&self.mean_nanoseconds);
        let sums = sums.map(|(count, mean)| (*count, *count as f64 * mean.unwrap_or(0) as f64));
        Course::of_sums(self.slice_seconds, self.whole_seconds, sums)
    }

    /// Whether the values are possible. The slices may come from any writer.
    pub(crate) fn is_possible(&self) -> bool {
        let number = self.successes.len();
        let is_time = |value: f64| (0.0..NUMBERS_END).contains(&value);
        let has_latency = |latencies: &[Option<u64>]| {
            let slices = latencies.iter().zip(&self.successes);
            latencies.len() == number
                && slices.into_iter().all(|(latency, successes)| {
                    latency.is_none_or(|it| *successes > 0 && is_time(it as f64))
                })
        };
        let mut means = self.mean_nanoseconds.iter().zip(&self.successes);
        let has_means = means.all(|(mean, successes)| mean.is_some() || *successes == 0);
        (1..=MOST_SLICES).contains(&number)
            && self.errors.len() == number
            && self.slice_seconds > 0.0
            && is_time(self.slice_seconds)
            && is_time(self.whole_seconds)
            && has_latency(&self.mean_nanoseconds)
            && has_means
            && has_latency(&self.p99_nanoseconds)
    }
}

/// Makes [`Slices`] of a run of unknown length, in constant memory: if there are too many slices, each pair becomes
/// one slice. It knows no percentiles.
#[derive(Clone, Debug)]
pub struct SliceRecorder {
    slice_seconds: f64,
    ended_seconds: f64,
    slices: Vec<Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    successes: u64,
    errors: u64,
    seconds: f64,
}

impl Default for SliceRecorder {
    fn default() -> Self {
        Self {
            slice_seconds: FIRST_SLICE_SECONDS,
            ended_seconds: 0.0,
            slices: Vec::with_capacity(MOST_SLICES),
        }
    }
}

impl SliceRecorder {
    /// Records a successful request that began `at_seconds` after the begin of the run. A negative time counts in
    /// the first slice.
    pub fn add(&mut self, at_seconds: f64, latency_seconds: f64) {
        if let Some(slice) = self.slice(at_seconds, latency_seconds) {
            slice.successes += 1;
            slice.seconds += latency_seconds;
        }
    }

    /// Records a failed request.
    pub fn add_error(&mut self, at_seconds: f64, latency_seconds: f64) {
        if let Some(slice) = self.slice(at_seconds, latency_seconds) {
            slice.errors += 1;
        }
    }

    fn slice(&mut self, at_seconds: f64, latency_seconds: f64) -> Option<&mut Sums> {
        if !(at_seconds.is_finite() && latency_seconds.is_finite()) {
            return None;
        }
        self.ended_seconds = self.ended_seconds.max(at_seconds + latency_seconds);
        while at_seconds >= self.slice_seconds * MOST_SLICES as f64 {
            self.widen();
        }
        let index = self.index(at_seconds);
        self.extend(index + 1);
        self.slices.get_mut(index)
    }

    fn index(&self, at_seconds: f64) -> usize {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 0 to the number of slices"
        )]
        let index = (at_seconds / self.slice_seconds).clamp(0.0, MOST_SLICES as f64) as usize;
        index
    }

    fn extend(&mut self, number: usize) {
        if number > self.slices.len() {
            self.slices.resize(number.min(MOST_SLICES), Sums::default());
        }
    }

    fn widen(&mut self) {
        self.slice_seconds *= 2.0;
        let pairs = self.slices.chunks(2);
        self.slices = pairs
            .map(|pair| Sums {
                successes: pair.iter().map(|slice| slice.successes).sum(),
                errors: pair.iter().map(|slice| slice.errors).sum(),
                seconds: pair.iter().map(|slice| slice.seconds).sum(),
            })
            .collect();
    }

    /// The slices of a load that was whole for `whole_seconds`. `None` if nothing was recorded.
    #[must_use]
    pub fn slices(&self, whole_seconds: f64) -> Option<Slices> {
        if self.slices.is_empty() {
            return None;
        }
        let mut all = self.clone();
        // No request begins while all connections wait for an answer.
        all.extend(all.index(all.ended_seconds) + 1);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "durations are below the limit, and not negative"
        )]
        let mean = |it: &Sums| {
            (it.successes > 0).then(|| (it.seconds / it.successes as f64 * 1e9).round() as u64)
        };
        Some(Slices {
            slice_seconds: all.slice_seconds,
            whole_seconds,
            successes: all.slices.iter().map(|it| it.successes).collect(),
            errors: all.slices.iter().map(|it| it.errors).collect(),
            mean_nanoseconds: all.slices.iter().map(mean).collect(),
            p99_nanoseconds: vec![None; all.slices.len()],
        })
    }
}

/// Schemas with their limits.
#[cfg(feature = "schema")]
mod schema {
    use schemars::{Schema, SchemaGenerator, json_schema};

    use super::MOST_SLICES;

    pub(super) fn counts(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "maxItems": MOST_SLICES,
            "items": { "type": "integer", "format": "int64", "minimum": 0 },
        })
    }

    pub(super) fn latencies(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "maxItems": MOST_SLICES,
            "items": { "type": "integer", "format": "int64", "minimum": 0, "nullable": true },
        })
    }
}
