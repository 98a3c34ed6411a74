//! The report that the injector leaves as its container's termination message, and how the operator
//! reads it. The message is cut at 4096 bytes, so the report is JSON, gzipped, in base64: reading it
//! needs no right to read a pod's log.
//!
//! An injector that has no measured run to report leaves a small plain JSON object instead
//! ([`Failure`]), which a person can read with kubectl; [`InjectionReport::decode`] tells the two apart.

use std::io::{Read, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use thiserror::Error;

use crate::{NUMBERS_END, course::Course, load::LoadResult, pace::InjectorCpu};

/// Most bytes that Kubernetes keeps of a termination message.
pub const LIMIT_BYTES: usize = 4096;

/// The form of the report that this version writes and reads.
pub const REPORT_VERSION: u32 = 4;

/// More than any report unpacks to: a message that claims more is not ours.
const UNPACKED_LIMIT_BYTES: u64 = 1 << 20;

/// What one injector did: warm-up, measured run and tail, back to back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectionReport {
    /// [`REPORT_VERSION`] of the injector that wrote it.
    pub version: u32,
    /// The measured run. Its times are by the clock of the injector's node.
    pub measured: LoadResult,
    /// Whether the buckets of `measured`'s two histograms were left out to keep within the limit. Counts,
    /// sums and percentiles are always whole.
    pub histogram_dropped: bool,
    /// The load that was asked for before the measured run, in seconds; 0 for none.
    pub asked_warm_up_seconds: f64,
    /// Likewise after it.
    pub asked_tail_seconds: f64,
    /// The load before the measured run; absent where none was asked for, or it left no result.
    pub warm_up: Option<LoadSpan>,
    /// The load after the measured run; absent likewise.
    pub tail: Option<LoadSpan>,
    /// Seconds without load between the end of the warm-up and the start of the measured run, by the load
    /// generator's own times. An end of the window lies in steady load only if this is short.
    pub gap_before_measured_seconds: Option<f64>,
    /// Likewise between the end of the measured run and the start of the tail.
    pub gap_after_measured_seconds: Option<f64>,
    /// Why the load ended early, if it did: which run, and by what.
    pub interrupted: Option<String>,
    /// The meter's clock compared with the injector's, shortly before the warm-up; absent where no meter
    /// answered.
    pub clock: Option<ClockOffset>,
    /// The same right after the tail.
    pub clock_after: Option<ClockOffset>,
    /// How latency went in the measured run; absent where nobody asked for it, where it is not known, and where there
    /// is no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// How busy the injector's CPUs were in the measured run; absent if the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<InjectorCpu>,
}

/// When load was on, by the clock of the injector's node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSpan {
    /// Start, Unix seconds.
    pub start_unix_seconds: f64,
    /// Length.
    pub duration_seconds: f64,
    /// All requests in it; of a script, cycles.
    pub requests: u64,
    /// Those that failed: by Fortio's own rule ([`crate::fortio::is_success`]), or by the script.
    pub errors: u64,
}

impl LoadSpan {
    /// End of the load, Unix seconds.
    #[must_use]
    pub fn end_unix_seconds(&self) -> f64 {
        self.start_unix_seconds + self.duration_seconds
    }

    /// All requests over the length; absent where there was none.
    #[must_use]
    pub fn requests_per_second(&self) -> Option<f64> {
        (self.requests > 0 && self.duration_seconds > 0.0)
            .then(|| self.requests as f64 / self.duration_seconds)
    }
}

/// How far two clocks are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClockOffset {
    /// The meter's clock minus the injector's: add it to a time of the injector to have the meter's.
    pub offset_seconds: f64,
    /// Half the round trip of the exchange: the true offset is at most this far from `offset_seconds`.
    pub uncertainty_seconds: f64,
}

/// What an injector without a measured run leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What went wrong, for a person.
    pub error: String,
    /// The load generator's exit code, if it ran and ended by itself.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The end of what it said on its standard error.
    #[serde(default)]
    pub stderr_tail: String,
}

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// It does not fit, even without its histograms' buckets.
    #[error("the report takes {0} bytes, and a termination message keeps {LIMIT_BYTES}")]
    TooLong(usize),
    /// No message: the injector was killed before it could leave one.
    #[error("the injector left no report")]
    Empty,
    /// The injector says that it has nothing to report.
    #[error("the injector has no measured run: {message}")]
    InjectorFailed {
        /// Its reason.
        message: String,
        /// The load generator's exit code, if it ran and ended by itself.
        exit_code: Option<i32>,
        /// The end of what it said.
        stderr_tail: String,
    },
    /// Neither a report nor a failure: a log's end, perhaps, from an injector that could not start.
    #[error("not an injector's report ({problem}): {text}")]
    NotAReport {
        /// What is wrong with it.
        problem: String,
        /// How it begins.
        text: String,
    },
    /// Written by an injector of another version.
    #[error("the report has version {0}, and this operator reads {REPORT_VERSION}")]
    Version(u32),
}

impl InjectionReport {
    /// The report as a termination message of at most [`LIMIT_BYTES`]. Where it would be longer, the course goes,
    /// and then the buckets of the histograms, and `histogram_dropped` says so. At last the names of a script's checks go.
    pub fn encode(&self) -> Result<String, ReportError> {
        let whole = pack(self);
        if whole.len() <= LIMIT_BYTES {
            return Ok(whole);
        }
        let mut shorter = self.clone();
        shorter.course = None;
        let packed = pack(&shorter);
        if packed.len() <= LIMIT_BYTES {
            return Ok(packed);
        }
        shorter.histogram_dropped = true;
        shorter.measured.drop_buckets();
        let packed = pack(&shorter);
        if packed.len() <= LIMIT_BYTES {
            return Ok(packed);
        }
        shorter.measured.drop_names();
        let packed = pack(&shorter);
        if packed.len() <= LIMIT_BYTES {
            Ok(packed)
        } else {
            Err(ReportError::TooLong(packed.len()))
        }
    }

    /// Reads a termination message.
    pub fn decode(message: &str) -> Result<Self, ReportError> {
        let text = message.trim();
        if text.is_empty() {
            return Err(ReportError::Empty);
        }
        let refuse = |problem: String| ReportError::NotAReport {
            problem,
            text: text.chars().take(200).collect(),
        };
        if text.starts_with('{') {
            return match serde_json::from_str::<Failure>(text) {
                Ok(failure) => Err(ReportError::InjectorFailed {
                    message: failure.error,
                    exit_code: failure.exit_code,
                    stderr_tail: failure.stderr_tail,
                }),
                Err(error) => Err(refuse(error.to_string())),
            };
        }
        let packed = BASE64_STANDARD
            .decode(text)
            .map_err(|error| refuse(error.to_string()))?;
        let mut json = Vec::new();
        GzDecoder::new(packed.as_slice())
            .take(UNPACKED_LIMIT_BYTES)
            .read_to_end(&mut json)
            .map_err(|error| refuse(error.to_string()))?;
        // The version is read first, so that another form is not taken for a damaged one.
        let header: Header =
            serde_json::from_slice(&json).map_err(|error| refuse(error.to_string()))?;
        if header.version != REPORT_VERSION {
            return Err(ReportError::Version(header.version));
        }
        let document: Value =
            serde_json::from_slice(&json).map_err(|error| refuse(error.to_string()))?;
        if let Some(number) = too_large(&document) {
            return Err(refuse(format!("it has the number {number}")));
        }
        let mut report: Self =
            serde_json::from_value(document).map_err(|error| refuse(error.to_string()))?;
        report.measured.keep_to_limits();
        let checked = report.measured.check();
        checked.map_err(|error| refuse(error.to_string()))?;
        if !report.course.as_ref().is_none_or(Course::is_possible) {
            return Err(refuse("its course cannot be".to_owned()));
        }
        if !report.cpu.as_ref().is_none_or(InjectorCpu::is_possible) {
            return Err(refuse("its CPU times cannot be".to_owned()));
        }
        Ok(report)
    }
}

/// A number that no time, count or amount of a report can have.
fn too_large(document: &Value) -> Option<&Number> {
    match document {
        Value::Number(number) => {
            let is_usual = |value: f64| value.abs() < NUMBERS_END;
            (!number.as_f64().is_some_and(is_usual)).then_some(number)
        }
        Value::Array(items) => items.iter().find_map(too_large),
        Value::Object(fields) => fields.values().find_map(too_large),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

#[derive(Deserialize)]
struct Header {
    version: u32,
}

/// JSON, gzip, base64. All three write to memory, where only a bug of theirs could fail; an empty text
/// would then be refused by [`InjectionReport::decode`].
fn pack(report: &InjectionReport) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    serde_json::to_vec(report)
        .map_err(std::io::Error::from)
        .and_then(|json| packed.write_all(&json))
        .and_then(|()| packed.finish())
        .map(|bytes| BASE64_STANDARD.encode(bytes))
        .unwrap_or_default()
}

impl Failure {
    /// A failure in which the load generator had no part.
    #[must_use]
    pub fn of(error: &dyn std::fmt::Display) -> Self {
        Self {
            error: error.to_string(),
            exit_code: None,
            stderr_tail: String::new(),
        }
    }

    /// The failure as a termination message of at most [`LIMIT_BYTES`]: the error is kept from its
    /// beginning, what the load generator said from its end.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut failure = self.clone();
        loop {
            let text = serde_json::to_string(&failure).unwrap_or_default();
            if text.len() <= LIMIT_BYTES {
                return text;
            }
            if failure.stderr_tail.is_empty() {
                let kept = failure.error.chars().count() / 2;
                failure.error = failure.error.chars().take(kept).collect();
            } else {
                let dropped = failure.stderr_tail.chars().count().div_ceil(2);
                failure.stderr_tail = failure.stderr_tail.chars().skip(dropped).collect();
            }
        }
    }
}
