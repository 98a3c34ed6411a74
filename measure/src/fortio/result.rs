//! The parser of Fortio's JSON.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Amount;
use crate::figures::LoadSpan;
use crate::latency::{Bucket, Histogram, Percentile};
use crate::{LEAST_SECONDS, NUMBERS_END};

/// Fortio's code of a request without an answer (`SocketError` in fhttp/http_client.go).
const NO_ANSWER: i32 = -1;

/// Fortio's observations in one run, with one unit per quantity. Only [`parse`] creates it from Fortio's
/// JSON. The ledger stores its own serialised form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FortioResult {
    /// Fortio's version.
    pub version: String,
    /// The URL under load.
    pub url: String,
    /// The labels from the command line.
    pub labels: String,
    /// When the first counted request was sent: Unix seconds by the clock of the injector's node.
    pub start_unix_seconds: f64,
    /// Time from there to the last answer, in seconds. 0 only in a run that was interrupted before it began.
    pub duration_seconds: f64,
    /// The requested amount of load.
    pub requested: Amount,
    /// The requested rate, in requests per second; absent for the maximum rate.
    pub requested_rate: Option<f64>,
    /// Whether the connections' requests were spread evenly over the time between two requests of one
    /// connection.
    #[serde(default)]
    pub uniform: bool,
    /// Whether a late connection skipped requests. Otherwise it sent them as soon as it could.
    #[serde(default)]
    pub skips_late: bool,
    /// Requests per second over all requests, including the failed ones.
    pub actual_rate: f64,
    /// Connections in use. Fortio uses fewer than requested if there are fewer than two requests per
    /// connection.
    pub threads: u32,
    /// Latencies of all requests, including the failed ones.
    pub latency: Histogram,
    /// Latencies of the requests that failed by Fortio's definition ([`is_success`]).
    pub error_latency: Histogram,
    /// Number of answers by status code; −1 is a request without an answer (refused, reset, timed out), even if Fortio
    /// repeated it with success.
    pub codes: BTreeMap<i32, u64>,
    /// Number of connections opened. If it exceeds `threads`, some connections were closed during the run.
    pub sockets: u64,
    /// Sizes of the answers with their headers; absent without requests.
    pub response_sizes: Option<ResponseSizes>,
}

/// Sizes of the answers in bytes, headers included. Fortio counts a truncated answer as a success. If all
/// answers should have the same length, a truncated answer shows here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResponseSizes {
    /// The smallest.
    pub min_bytes: f64,
    /// The largest.
    pub max_bytes: f64,
    /// The mean.
    pub mean_bytes: f64,
    /// The standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_deviation_bytes: Option<f64>,
    /// The mean of the headers alone. Fortio counts no headers for an answer that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_header_bytes: Option<f64>,
}

/// Why a text is not a usable result.
#[derive(Debug, Error)]
pub enum FortioError {
    /// The text is not JSON, or a field is missing or has another type. A negative count is also reported as
    /// this error.
    #[error("not a result of Fortio: {0}")]
    Json(#[from] serde_json::Error),
    /// Fortio reports that the run did not take place.
    #[error("Fortio did not run: {0}")]
    Failed(String),
    /// A field has an impossible value.
    #[error("Fortio's result has {field} = {value}")]
    Value {
        /// Fortio's name of the field.
        field: &'static str,
        /// The field's value.
        value: String,
    },
    /// Answers are longer than the buffer that Fortio reads them into, so Fortio cut them.
    #[error(
        "the answers are longer than the {buffer_kib} KiB that Fortio reads with {connections} connections: \
         request smaller answers, use fewer connections, or use a scenario"
    )]
    AnswersTooLong {
        /// Length of the buffer of a connection, in KiB.
        buffer_kib: u32,
        /// Number of connections.
        connections: u32,
    },
    /// Two counts of the same thing differ.
    #[error(
        "Fortio's result disagrees with itself: {what} is {count}, but {other_what} is {other_count}"
    )]
    CountsDisagree {
        /// One count.
        what: &'static str,
        /// Its value.
        count: u64,
        /// The other count.
        other_what: &'static str,
        /// Its value.
        other_count: u64,
    },
}

impl FortioResult {
    /// Whether the run ended before the requested amount. Fortio's exit code does not show this.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self.requested {
            Amount::Requests(requests) => self.latency.count < requests,
            // At a fixed rate the last request may be due up to one interval of a thread early.
            Amount::DurationSeconds(seconds) => {
                let early = self
                    .requested_rate
                    .map_or(0.0, |rate| f64::from(self.threads) / rate);
                self.duration_seconds < seconds - early
            }
        }
    }

    /// Counts repeated requests as requests without an answer. If a used connection gives no answer in time,
    /// Fortio sends the request again and counts only the second answer (`Fetch` in fhttp/http_client.go). `seconds` is the sum of these requests' times.
    pub fn count_repeated(&mut self, repeated: u64, seconds: f64) {
        if repeated == 0 {
            return;
        }
        let mut left = repeated;
        let mut successes: Vec<&mut u64> = (self.codes.iter_mut())
            .filter(|(code, _)| is_success(**code))
            .map(|(_, count)| count)
            .collect();
        // Fortio does not say which code a repeated request had. Most of them had the most frequent one.
        successes.sort_by_key(|count| Reverse(**count));
        for count in successes {
            let moved = left.min(*count);
            *count -= moved;
            left -= moved;
        }
        *self.codes.entry(NO_ANSWER).or_default() += repeated - left;
        self.error_latency.count += repeated - left;
        self.error_latency.sum_seconds += seconds;
    }

    /// The load's interval and counts.
    #[must_use]
    pub fn span(&self) -> LoadSpan {
        LoadSpan {
            start_unix_seconds: self.start_unix_seconds,
            duration_seconds: self.duration_seconds,
            requests: self.latency.count,
            errors: self.error_latency.count,
        }
    }

    /// Time of the last answer, in Unix seconds by the clock of the injector's node.
    #[must_use]
    pub fn end_unix_seconds(&self) -> f64 {
        self.start_unix_seconds + self.duration_seconds
    }
}

/// Fortio's definition of success, independent of the benchmark's: 2xx and 418. On any other code it also
/// closes the connection. If the expected code is another one, the load therefore measures connecting.
#[must_use]
pub fn is_success(code: i32) -> bool {
    (200..300).contains(&code) || code == 418
}

/// Parses the JSON that Fortio wrote for an HTTP run.
pub fn parse(json: &str) -> Result<FortioResult, FortioError> {
    let raw: Raw = serde_json::from_str(json)?;
    if raw.error {
        return Err(FortioError::Failed(raw.message));
    }
    let start: Timestamp = raw
        .start_time
        .parse()
        .map_err(|_| value("StartTime", &raw.start_time))?;
    let requested_rate = match raw.requested_qps.as_str() {
        "max" => None,
        text => Some(
            text.parse()
                .ok()
                .filter(|rate: &f64| *rate > 0.0 && *rate < NUMBERS_END)
                .ok_or_else(|| value("RequestedQPS", &text))?,
        ),
    };
    let codes = raw
        .ret_codes
        .iter()
        .map(|(code, count)| Ok((code.parse().map_err(|_| value("RetCodes", code))?, *count)))
        .collect::<Result<BTreeMap<i32, u64>, FortioError>>()?;
    let result = FortioResult {
        start_unix_seconds: start.as_duration().as_secs_f64(),
        duration_seconds: raw.actual_duration as f64 / 1e9,
        requested: requested_amount(&raw)?,
        requested_rate,
        uniform: raw.uniform,
        skips_late: raw.no_catch_up,
        actual_rate: not_negative("ActualQPS", raw.actual_qps)?,
        threads: raw.num_threads,
        latency: histogram(raw.duration_histogram)?,
        error_latency: histogram(raw.errors_duration_histogram)?,
        codes,
        sockets: raw.socket_count,
        response_sizes: response_sizes(raw.sizes.as_ref(), raw.header_sizes.as_ref())?,
        version: raw.version,
        url: raw.url,
        labels: raw.labels,
    };
    result.check()?;
    Ok(result)
}

/// Fortio's own names and types of the fields that are used.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    #[serde(default)]
    labels: String,
    start_time: String,
    #[serde(rename = "RequestedQPS")]
    requested_qps: String,
    requested_duration: String,
    #[serde(rename = "ActualQPS")]
    actual_qps: f64,
    actual_duration: u64,
    num_threads: u32,
    version: String,
    duration_histogram: RawHistogram,
    errors_duration_histogram: RawHistogram,
    exactly: u64,
    #[serde(default)]
    uniform: bool,
    #[serde(default)]
    no_catch_up: bool,
    #[serde(rename = "URL")]
    url: String,
    #[serde(default)]
    ret_codes: BTreeMap<String, u64>,
    #[serde(default)]
    sizes: Option<RawSizes>,
    #[serde(default)]
    header_sizes: Option<RawSizes>,
    #[serde(default)]
    socket_count: u64,
    #[serde(default, rename = "error")]
    error: bool,
    #[serde(default, rename = "message")]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawHistogram {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    std_dev: f64,
    data: Option<Vec<RawBucket>>,
    percentiles: Option<Vec<RawPercentile>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawBucket {
    start: f64,
    end: f64,
    count: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawPercentile {
    percentile: f64,
    value: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawSizes {
    count: u64,
    min: f64,
    max: f64,
    avg: f64,
    std_dev: f64,
}

fn value(field: &'static str, value: &dyn std::fmt::Display) -> FortioError {
    FortioError::Value {
        field,
        value: value.to_string(),
    }
}

fn not_negative(field: &'static str, number: f64) -> Result<f64, FortioError> {
    if (0.0..NUMBERS_END).contains(&number) {
        Ok(number)
    } else {
        Err(value(field, &number))
    }
}

/// "exactly 20000 calls", possibly followed by ", interrupted after 17"; or a Go duration.
fn requested_amount(raw: &Raw) -> Result<Amount, FortioError> {
    if raw.exactly > 0 {
        return Ok(Amount::Requests(raw.exactly));
    }
    raw.requested_duration
        .parse::<SignedDuration>()
        .ok()
        .map(|duration| duration.as_secs_f64())
        .filter(|seconds| *seconds > 0.0 && *seconds < NUMBERS_END)
        .map(Amount::DurationSeconds)
        .ok_or_else(|| value("RequestedDuration", &raw.requested_duration))
}

fn histogram(raw: RawHistogram) -> Result<Histogram, FortioError> {
    let buckets = raw
        .data
        .unwrap_or_default()
        .into_iter()
        .map(|bucket| {
            Ok(Bucket {
                start_seconds: not_negative("Start", bucket.start)?,
                end_seconds: not_negative("End", bucket.end)?,
                count: bucket.count,
            })
        })
        .collect::<Result<Vec<_>, FortioError>>()?;
    let in_buckets = total(buckets.iter().map(|bucket| bucket.count));
    if in_buckets != raw.count {
        return Err(FortioError::CountsDisagree {
            what: "a histogram's Count",
            count: raw.count,
            other_what: "the sum over its Data",
            other_count: in_buckets,
        });
    }
    let percentiles = raw
        .percentiles
        .unwrap_or_default()
        .into_iter()
        .map(|one| {
            Ok(Percentile {
                percentile: not_negative("Percentile", one.percentile)?,
                seconds: not_negative("Value", one.value)?,
            })
        })
        .collect::<Result<Vec<_>, FortioError>>()?;
    Ok(Histogram {
        count: raw.count,
        min_seconds: not_negative("Min", raw.min)?,
        max_seconds: not_negative("Max", raw.max)?,
        sum_seconds: not_negative("Sum", raw.sum)?,
        standard_deviation_seconds: not_negative("StdDev", raw.std_dev)?,
        buckets,
        percentiles,
    })
}

fn response_sizes(
    raw: Option<&RawSizes>,
    headers: Option<&RawSizes>,
) -> Result<Option<ResponseSizes>, FortioError> {
    let Some(raw) = raw.filter(|raw| raw.count > 0) else {
        return Ok(None);
    };
    Ok(Some(ResponseSizes {
        min_bytes: not_negative("Sizes.Min", raw.min)?,
        max_bytes: not_negative("Sizes.Max", raw.max)?,
        mean_bytes: not_negative("Sizes.Avg", raw.avg)?,
        standard_deviation_bytes: Some(not_negative("Sizes.StdDev", raw.std_dev)?),
        mean_header_bytes: headers
            .map(|headers| not_negative("HeaderSizes.Avg", headers.avg))
            .transpose()?,
    }))
}

/// The sum of counts. It saturates, because any counts can be in the JSON.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl FortioResult {
    /// Checks that figures can be computed from this result, which may come from any writer. Counts of the
    /// same requests must agree, and divisors must be above 0.
    pub(crate) fn check(&self) -> Result<(), FortioError> {
        let requested = match self.requested {
            Amount::Requests(requests) => requests,
            Amount::DurationSeconds(_) => 0,
        };
        for (field, count) in [
            ("DurationHistogram.Count", self.latency.count),
            ("SocketCount", self.sockets),
            ("Exactly", requested),
        ] {
            if count as f64 >= NUMBERS_END {
                return Err(value(field, &count));
            }
        }
        let by_code = total(self.codes.values().copied());
        if by_code != self.latency.count {
            return Err(FortioError::CountsDisagree {
                what: "DurationHistogram.Count",
                count: self.latency.count,
                other_what: "the sum over RetCodes",
                other_count: by_code,
            });
        }
        let failures = self.codes.iter().filter(|(code, _)| !is_success(**code));
        let failed = total(failures.map(|(_, count)| *count));
        if failed != self.error_latency.count {
            return Err(FortioError::CountsDisagree {
                what: "ErrorsDurationHistogram.Count",
                count: self.error_latency.count,
                other_what: "the sum over the RetCodes of failures",
                other_count: failed,
            });
        }
        let (all, errors) = (self.latency.sum_seconds, self.error_latency.sum_seconds);
        // Both are sums of the same numbers in another order. If all requests failed, they are equal except
        // for rounding.
        if errors > all * (1.0 + 1e-9) {
            return Err(value("ErrorsDurationHistogram.Sum", &errors));
        }
        if self.latency.count > 0 && self.duration_seconds < LEAST_SECONDS {
            return Err(value("ActualDuration", &self.duration_seconds));
        }
        if self.latency.count > 0 && self.threads == 0 {
            return Err(value("NumThreads", &self.threads));
        }
        match self.requested_rate {
            Some(rate) if rate <= 0.0 => Err(value("RequestedQPS", &rate)),
            _ => Ok(()),
        }
    }
}
