//! The requested load, and Fortio's arguments for it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{FortioError, FortioResult};
use crate::latency::PERCENTAGES;

/// Width of the histogram's finest buckets, in seconds. With Fortio's default of 1 ms the median of a service
/// that answers in 0.13 ms is reported as 0.51 ms.
const RESOLUTION_SECONDS: &str = "0.0001";

/// Memory for the answers of all connections together, in KiB. Fortio reads an answer into a buffer per
/// connection, and cuts it to the buffer's length. Unused parts of a buffer take no memory.
const BUFFERS_KIB: u32 = 64 * 1024;
/// The smallest buffer of a connection, in KiB: Fortio's default.
const LEAST_BUFFER_KIB: u32 = 128;
/// The largest buffer of a connection, in KiB.
const MOST_BUFFER_KIB: u32 = 4096;

/// The amount of load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Amount {
    /// This many seconds (> 0). Fortio first sends one uncounted request on each connection.
    DurationSeconds(f64),
    /// Exactly this many requests (≥ 1; at a rate a multiple of the connections). Fortio opens its connections within the first
    /// of them.
    Requests(u64),
}

/// The body of each request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// This text.
    Text(String),
    /// The content of the file at this path, on the injector's file system.
    File(String),
}

/// One run of Fortio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSettings {
    /// `http://` or `https://`; each `{uuid}` in it is replaced by a new UUID for every request.
    pub url: String,
    /// Connections, each with one request at a time (closed loop). At least 1.
    pub connections: u32,
    /// The amount of load.
    pub amount: Amount,
    /// Requests per second over all connections (> 0). Absent: each connection sends as soon as it has the
    /// answer.
    pub rate: Option<f64>,
    /// Whether a late connection sends the missed requests as soon as it can, at a fixed rate. If not, it
    /// skips them.
    pub catch_up: bool,
    /// Timeout for connecting and, again, for each answer; seconds (> 0).
    pub timeout_seconds: f64,
    /// HTTP method. Not `HEAD`: Fortio waits for the body that a `HEAD` answer announces but never sends.
    pub method: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// The body of each request, if it has one.
    pub body: Option<Body>,
    /// Free text that Fortio copies to its result.
    pub labels: String,
}

/// Why Fortio cannot run with these settings.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FortioSettingsError {
    /// The scheme is not HTTP or HTTPS, or the host is missing.
    #[error("the URL must start with http:// or https:// and name a host, not {0:?}")]
    Url(String),
    /// No connections.
    #[error("connections must be at least 1")]
    Connections,
    /// No load, or an endless load.
    #[error("the duration must be more than 0 seconds and less than a day, not {0}")]
    Duration(f64),
    /// No requests.
    #[error("requests must be at least 1")]
    Requests,
    /// At a rate, Fortio sends the rest of the division on one connection, long after the others have ended.
    #[error(
        "at a rate, requests must be a multiple of the connections, not {requests} on {connections} connections"
    )]
    UnequalConnections {
        /// The requests.
        requests: u64,
        /// The connections.
        connections: u32,
    },
    /// Fortio interprets a rate of 0 as the maximum rate.
    #[error(
        "the rate must be more than 0 requests per second, not {0}; omit it for the maximum rate"
    )]
    Rate(f64),
    /// A timeout of 0 would fail every request.
    #[error("the timeout must be more than 0 seconds and less than a day, not {0}")]
    Timeout(f64),
    /// Not a valid method.
    #[error("the method must be letters and dashes only, such as GET, not {0:?}")]
    Method(String),
    /// Fortio never ends with `HEAD`.
    #[error("Fortio cannot send HEAD: it waits for the body until the timeout; use GET")]
    Head,
    /// Not a valid header.
    #[error("a header must be a name and a value without line breaks, not {0:?}")]
    Header(String),
}

impl LoadSettings {
    /// Length of the buffer for one connection's answer, in KiB.
    fn buffer_kib(&self) -> u32 {
        (BUFFERS_KIB / self.connections.max(1)).clamp(LEAST_BUFFER_KIB, MOST_BUFFER_KIB)
    }

    /// Checks that Fortio read whole answers. It cuts an answer that is longer than the buffer
    /// (`readResponse` in fhttp/http_client.go), and takes the rest for the connection's next answer.
    pub fn check_answers(&self, result: &FortioResult) -> Result<(), FortioError> {
        let buffer_kib = self.buffer_kib();
        let longest_bytes = result.response_sizes.map_or(0.0, |sizes| sizes.max_bytes);
        if longest_bytes < f64::from(buffer_kib) * 1024.0 {
            return Ok(());
        }
        Err(FortioError::AnswersTooLong {
            buffer_kib,
            connections: self.connections,
        })
    }

    /// When the requests are sent; absent for the maximum rate.
    #[must_use]
    pub fn schedule(&self) -> Option<Schedule> {
        let rate = self.rate?;
        Some(Schedule::new(rate, self.connections, self.amount))
    }

    /// Checks the settings before any load is generated.
    pub fn check(&self) -> Result<(), FortioSettingsError> {
        let host = self
            .url
            .strip_prefix("http://")
            .or_else(|| self.url.strip_prefix("https://"));
        if host.is_none_or(|rest| rest.is_empty() || rest.starts_with(['/', ':', '?', '#']))
            || self.url.contains(char::is_whitespace)
        {
            return Err(FortioSettingsError::Url(self.url.clone()));
        }
        if self.connections == 0 {
            return Err(FortioSettingsError::Connections);
        }
        match self.amount {
            Amount::DurationSeconds(seconds) if !is_span(seconds) => {
                return Err(FortioSettingsError::Duration(seconds));
            }
            Amount::Requests(0) => return Err(FortioSettingsError::Requests),
            Amount::Requests(requests)
                if self.rate.is_some() && requests % u64::from(self.connections) != 0 =>
            {
                return Err(FortioSettingsError::UnequalConnections {
                    requests,
                    connections: self.connections,
                });
            }
            Amount::DurationSeconds(_) | Amount::Requests(_) => {}
        }
        if let Some(rate) = self.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(FortioSettingsError::Rate(rate));
        }
        if !is_span(self.timeout_seconds) {
            return Err(FortioSettingsError::Timeout(self.timeout_seconds));
        }
        if self.method.eq_ignore_ascii_case("HEAD") {
            return Err(FortioSettingsError::Head);
        }
        let is_method = |c: char| c.is_ascii_alphabetic() || c == '-';
        if self.method.is_empty() || !self.method.chars().all(is_method) {
            return Err(FortioSettingsError::Method(self.method.clone()));
        }
        for (name, value) in &self.headers {
            let is_name = |c: char| c.is_ascii_graphic() && c != ':';
            if name.is_empty() || !name.chars().all(is_name) || value.contains(['\r', '\n', '\0']) {
                return Err(FortioSettingsError::Header(format!("{name}:{value}")));
            }
        }
        Ok(())
    }
}

/// Above 0 and below a day, as every time in a trial.
fn is_span(seconds: f64) -> bool {
    seconds > 0.0 && seconds < 86_400.0
}

/// When Fortio sends the requests of a load at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The connections in use, each for the same number of requests. Fewer than the given ones if there are fewer than two
    /// requests per connection.
    pub connections: u32,
    /// All requests.
    pub requests: u64,
    /// Time from the first request to the last, in seconds.
    pub seconds: f64,
    /// Fortio's option for the rate, in requests per second.
    fortio_rate: f64,
}

impl Schedule {
    /// The schedule of a load at `rate` requests per second (> 0), on `connections` connections (≥ 1). A duration is rounded up to
    /// the same number of requests on each connection.
    ///
    /// Of c connections, Fortio begins connection k k/q after the first, for its option q of the rate. Each connection needs N/q from
    /// the first to the last of its N/c requests (`runOne` in periodic/periodic.go). All take (N + c − 1)/q. With q = rate, the
    /// load would have a lower rate. Therefore q = rate · (N + c − 1)/N, and all take N/rate.
    #[must_use]
    pub fn new(rate: f64, connections: u32, amount: Amount) -> Self {
        let (connections, requests) = match amount {
            Amount::Requests(requests) => (connections, requests),
            Amount::DurationSeconds(seconds) => {
                let due = (rate * seconds).max(2.0);
                let in_use = f64::from(connections).min((due / 2.0).floor());
                // A product of two decimal fractions may be slightly more than a whole number.
                let of_each = (due / in_use - 1e-9).ceil();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "whole numbers from 1 to the given connections, and above 0"
                )]
                (in_use as u32, (of_each * in_use) as u64)
            }
        };
        let sent = requests as f64;
        Self {
            connections,
            requests,
            seconds: sent / rate,
            fortio_rate: rate * (sent + f64::from(connections) - 1.0) / sent,
        }
    }

    /// Fortio's option for the duration, in seconds. A late connection stops after it, so it is not less than the time of all
    /// requests. Fortio divides the product of both options by the connections, and drops the rest. Half a request more is due,
    /// because rounding must not take one away.
    fn fortio_seconds(&self) -> f64 {
        (self.requests as f64 + f64::from(self.connections) - 0.5) / self.fortio_rate
    }
}

/// Fortio's arguments (without the program) for `settings`. Fortio writes the result to the file `json_path`,
/// or for `-` to the standard output, which then contains nothing more. With `slices_path`, the
/// program `injector/fortio` writes the slices of the run to that file.
#[must_use]
pub fn argv(settings: &LoadSettings, json_path: &str, slices_path: Option<&str>) -> Vec<String> {
    let mut arguments: Vec<String> = vec!["load".into()];
    let mut flag = |name: &str, value: &str| {
        arguments.push(name.into());
        arguments.push(value.into());
    };
    flag("-json", json_path);
    // If a target refuses connections, each request would otherwise log a line.
    flag("-loglevel", "critical");
    let schedule = settings.schedule();
    let connections = schedule.map_or(settings.connections, |schedule| schedule.connections);
    flag("-c", &connections.to_string());
    flag("-httpbufferkb", &settings.buffer_kib().to_string());
    match settings.amount {
        Amount::DurationSeconds(seconds) => {
            let seconds = schedule.map_or(seconds, |schedule| schedule.fortio_seconds());
            flag("-t", &format!("{seconds}s"));
        }
        Amount::Requests(requests) => flag("-n", &requests.to_string()),
    }
    // On Fortio's command line, 0 is the maximum rate.
    let rate = schedule.map_or(0.0, |schedule| schedule.fortio_rate);
    flag("-qps", &rate.to_string());
    flag("-r", RESOLUTION_SECONDS);
    flag("-p", &PERCENTAGES.map(|it| it.to_string()).join(","));
    // By default Fortio looks for IPv4 only.
    flag("-resolve-ip-type", "ip");
    flag("-timeout", &format!("{}s", settings.timeout_seconds));
    flag("-X", &settings.method);
    for (name, value) in &settings.headers {
        flag("-H", &format!("{name}:{value}"));
    }
    match &settings.body {
        Some(Body::Text(text)) => flag("-payload", text),
        Some(Body::File(path)) => flag("-payload-file", path),
        None => {}
    }
    flag("-labels", &settings.labels);
    if let Some(path) = slices_path {
        flag("-slices-file", path);
    }
    // Otherwise Fortio sends the next request on a connection that the server has announced to close.
    arguments.push("-httpccch".into());
    // The candidate's answers are an outcome. Without these two arguments, one early error would end the run
    // without a result, and each error would log a line.
    arguments.push("-allow-initial-errors".into());
    arguments.push("-log-errors=false".into());
    // Fortio resolves the name again for each new connection (`FastClient.connect` in fhttp/http_client.go). A server that
    // closes each connection would then load the cluster's DNS, which may share the injector's CPUs.
    arguments.push("-no-reresolve".into());
    if settings.rate.is_some() {
        // Otherwise all connections send at the same moment (`runOne` in periodic/periodic.go): a burst per
        // interval.
        arguments.push("-uniform".into());
        if !settings.catch_up {
            arguments.push("-nocatchup".into());
        }
    }
    arguments.push(settings.url.clone());
    arguments
}
