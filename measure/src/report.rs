//! The report that the injector writes as its container's termination message, and the operator's parser of
//! it. Kubernetes cuts the message at 4096 bytes. The report is therefore JSON, gzipped, in base64. The
//! operator needs no right to read a pod's log.
//!
//! An injector without a measured run writes a small plain JSON object instead ([`Failure`]), which a person
//! can read with kubectl. [`InjectionReport::decode`] distinguishes the two.

use crate::figures::LoadSpan;
use std::io::{Read, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use thiserror::Error;

use crate::{NUMBERS_END, course::Course, load::LoadResult, pace::InjectorCpu, slices::Slices};

/// The most bytes that Kubernetes keeps of a termination message.
pub const LIMIT_BYTES: usize = 4096;

/// The version of the report that this program writes and reads.
pub const REPORT_VERSION: u32 = 4;

/// The largest size of an unpacked report. A message that unpacks to more is not from an injector.
const UNPACKED_LIMIT_BYTES: u64 = 1 << 20;

/// The loads of one injector: warm-up, measured run and tail, back to back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectionReport {
    /// [`REPORT_VERSION`] of the injector.
    pub version: u32,
    /// The measured run. Its times are by the clock of the injector's node.
    pub measured: LoadResult,
    /// Whether the buckets of `measured`'s two histograms were dropped because of the size limit. Counts,
    /// sums and percentiles are always complete.
    pub histogram_dropped: bool,
    /// The requested load before the measured run, in seconds; 0 for none.
    pub asked_warm_up_seconds: f64,
    /// The requested load after the measured run, in seconds; 0 for none.
    pub asked_tail_seconds: f64,
    /// The load before the measured run. Absent if none was requested, or if it left no result.
    pub warm_up: Option<LoadSpan>,
    /// The load after the measured run. Absent if none was requested, or if it left no result.
    pub tail: Option<LoadSpan>,
    /// Seconds without load between the end of the warm-up and the start of the measured run, by the load
    /// generator's own times. An end of the window lies in steady load only if this time is short.
    pub gap_before_measured_seconds: Option<f64>,
    /// Seconds without load between the end of the measured run and the start of the tail.
    pub gap_after_measured_seconds: Option<f64>,
    /// Why the load ended early, if it did: the run and the cause.
    pub interrupted: Option<String>,
    /// The meter's clock compared with the injector's, shortly before the warm-up. Absent if no meter
    /// answered.
    pub clock: Option<ClockOffset>,
    /// The same comparison right after the tail.
    pub clock_after: Option<ClockOffset>,
    /// Latency over the time of the measured run. Absent if it was not requested, if it is unknown, and if
    /// the message has no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// Requests and latencies over the time of the measured run. Absent if they are unknown, and if the message has no
    /// room for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// How busy the injector's CPUs were in the measured run; absent if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<InjectorCpu>,
}

/// The difference of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClockOffset {
    /// The meter's clock minus the injector's clock. Added to a time of the injector, it gives the meter's
    /// time.
    pub offset_seconds: f64,
    /// Half the round trip of the exchange: the true offset differs from `offset_seconds` by at most this.
    pub uncertainty_seconds: f64,
}

/// The message of an injector without a measured run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The error, for a person.
    pub error: String,
    /// The load generator's exit code, if it ran and ended by itself.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The end of its standard error.
    #[serde(default)]
    pub stderr_tail: String,
}

/// Why no report exists.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The report exceeds the limit even without its histograms' buckets.
    #[error("the report has {0} bytes, and the limit of a termination message is {LIMIT_BYTES}")]
    TooLong(usize),
    /// The message is empty: the injector was killed before it could write one.
    #[error("the injector left no report")]
    Empty,
    /// The injector reports a failure.
    #[error("the injector has no measured run: {message}")]
    InjectorFailed {
        /// Its reason.
        message: String,
        /// The load generator's exit code, if it ran and ended by itself.
        exit_code: Option<i32>,
        /// The end of its standard error.
        stderr_tail: String,
    },
    /// Neither a report nor a failure: possibly the end of a log, from an injector that could not start.
    #[error("not an injector's report ({problem}): {text}")]
    NotAReport {
        /// The error in the text.
        problem: String,
        /// The beginning of the text.
        text: String,
    },
    /// An injector of another version wrote the report.
    #[error("the report has version {0}, and this operator reads {REPORT_VERSION}")]
    Version(u32),
}

impl InjectionReport {
    /// The slices, if they are about the requests of the figures. `expected` are the status codes of a success. `None` if
    /// the figures have no mean latency, for example because cycles were dropped.
    #[must_use]
    pub fn slices_of_figures(&self, expected: &[u16]) -> Option<&Slices> {
        let figures = self.measured.figures(expected);
        let counts = LoadSpan {
            requests: figures.requests,
            errors: figures.errors,
            ..self.measured.span()
        };
        let is_timed = figures.successes == 0 || figures.ms_per_request.is_some();
        let slices = self.slices.as_ref();
        slices.filter(|slices| is_timed && slices.is_of(counts))
    }

    /// The report as a termination message of at most [`LIMIT_BYTES`]. If it is too long, the function drops
    /// the slices first, then the course, then the buckets of the histograms (and sets `histogram_dropped`), and last the
    /// names of a script's checks.
    pub fn encode(&self) -> Result<String, ReportError> {
        let whole = pack(self);
        if whole.len() <= LIMIT_BYTES {
            return Ok(whole);
        }
        let mut shorter = self.clone();
        shorter.slices = None;
        let packed = pack(&shorter);
        if packed.len() <= LIMIT_BYTES {
            return Ok(packed);
        }
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

    /// Parses a termination message.
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
        // The version is parsed first. Another version is then not mistaken for a damaged report.
        let header: Header =
            serde_json::from_slice(&json).map_err(|error| refuse(error.to_string()))?;
        if header.version != REPORT_VERSION {
            return Err(ReportError::Version(header.version));
        }
        let document: Value =
            serde_json::from_slice(&json).map_err(|error| refuse(error.to_string()))?;
        if let Some(number) = too_large(&document) {
            return Err(refuse(format!(
                "it contains the number {number}, which is too large"
            )));
        }
        let mut report: Self =
            serde_json::from_value(document).map_err(|error| refuse(error.to_string()))?;
        report.measured.keep_to_limits();
        let checked = report.measured.check();
        checked.map_err(|error| refuse(error.to_string()))?;
        if !report.course.as_ref().is_none_or(Course::is_possible) {
            return Err(refuse("its course has an impossible value".to_owned()));
        }
        let span = report.measured.span();
        let is_whole = |slices: &Slices| slices.is_possible() && slices.is_of(span);
        if !report.slices.as_ref().is_none_or(is_whole) {
            return Err(refuse(
                "its slices have an impossible value, or other counts than its result".to_owned(),
            ));
        }
        if !report.cpu.as_ref().is_none_or(InjectorCpu::is_possible) {
            return Err(refuse("its CPU times have an impossible value".to_owned()));
        }
        Ok(report)
    }
}

/// The first number that no time, count or amount of a report can have.
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

/// JSON, gzip, base64. All three write to memory and could fail only because of a bug in them.
/// [`InjectionReport::decode`] would then refuse the empty text.
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
    /// A failure that is not the load generator's.
    #[must_use]
    pub fn of(error: &dyn std::fmt::Display) -> Self {
        Self {
            error: error.to_string(),
            exit_code: None,
            stderr_tail: String::new(),
        }
    }

    /// The failure as a termination message of at most [`LIMIT_BYTES`]. It keeps the beginning of the error
    /// and the end of the load generator's standard error.
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
