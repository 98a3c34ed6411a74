//! The servers' log of a run's requests, and Fortio's JSON for these requests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{MILLISECOND, SECOND, Time, schedule::Chance};

/// Number of connections.
const CONNECTIONS: usize = 4;
/// Width of a histogram's buckets.
const BUCKET: Time = MILLISECOND;

/// A candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    /// Power that it adds to the node's in the measured run.
    pub(crate) milliwatts: i64,
    /// Mean latency of a successful request. Single requests vary by up to a fifth.
    pub(crate) latency: Time,
    /// Latency of an error.
    pub(crate) error_latency: Time,
    /// CPU time of the server per successful request.
    pub(crate) server_cpu: Time,
    /// CPU time of the server per error.
    pub(crate) error_cpu: Time,
    /// CPU time of the database per successful request. An error does not reach the database.
    pub(crate) database_cpu: Time,
}

/// The amount of load that Fortio is configured to send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    /// Requests for this time.
    Duration(Time),
    /// A number of requests that takes about this time.
    CountFor(Time),
}

/// One request in the servers' log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) sent: Time,
    pub(crate) latency: Time,
    pub(crate) code: i32,
    pub(crate) server_cpu: Time,
    pub(crate) database_cpu: Time,
}

/// One run of Fortio.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    amount: Amount,
    pub(crate) requests: Vec<Request>,
}

impl Run {
    /// A closed loop from `start` on: each connection sends a request, waits for the answer, and sends the next.
    pub(crate) fn new(
        candidate: &Candidate,
        amount: Amount,
        errors_percent: i64,
        start: Time,
        chance: &mut Chance,
    ) -> Self {
        let mut requests = Vec::new();
        let mut of_each = usize::MAX;
        for connection in 0..CONNECTIONS {
            let offset = i64::try_from(connection).unwrap();
            let mut now = start + offset * MILLISECOND / 5;
            let mut swing = 0;
            for number in 0.. {
                let over = match amount {
                    Amount::Duration(asked) => now >= start + asked,
                    Amount::CountFor(asked) if connection == 0 => now >= start + asked,
                    Amount::CountFor(_) => number == of_each,
                };
                if over {
                    of_each = number;
                    break;
                }
                // Pairs of opposite deviations, so a number of requests takes a known time.
                swing = if number % 2 == 0 {
                    chance.time(candidate.latency / 5)
                } else {
                    -swing
                };
                let turn = i64::try_from(number).unwrap() + 3 * offset;
                let request = if (turn * errors_percent) % 100 < errors_percent {
                    Request {
                        sent: now,
                        latency: candidate.error_latency,
                        code: if turn % 2 == 0 { 500 } else { 503 },
                        server_cpu: candidate.error_cpu,
                        database_cpu: 0,
                    }
                } else {
                    Request {
                        sent: now,
                        latency: candidate.latency + swing,
                        code: 200,
                        server_cpu: candidate.server_cpu,
                        database_cpu: candidate.database_cpu,
                    }
                };
                requests.push(request);
                now += request.latency;
            }
        }
        Self { amount, requests }
    }

    /// The same requests at another time.
    pub(crate) fn shifted(mut self, by: Time) -> Self {
        for request in &mut self.requests {
            request.sent += by;
        }
        self
    }

    pub(crate) fn start(&self) -> Time {
        self.requests.iter().map(|one| one.sent).min().unwrap()
    }

    pub(crate) fn end(&self) -> Time {
        let ends = self.requests.iter().map(|one| one.sent + one.latency);
        ends.max().unwrap()
    }

    /// Mean CPU use of the run, in nanoseconds per second.
    pub(crate) fn nanocpus(&self, of: impl Fn(&Request) -> Time) -> i64 {
        let used: i128 = self.requests.iter().map(|one| i128::from(of(one))).sum();
        let rate = used * i128::from(SECOND) / i128::from(self.end() - self.start());
        i64::try_from(rate).unwrap()
    }

    /// Fortio's JSON. Fortio's clock shows `unix_nanoseconds` at the start.
    pub(crate) fn fortio(&self, unix_nanoseconds: i64) -> String {
        let all: Vec<Time> = self.requests.iter().map(|one| one.latency).collect();
        let failed: Vec<Time> = self
            .requests
            .iter()
            .filter(|one| !(200..300).contains(&one.code))
            .map(|one| one.latency)
            .collect();
        let mut codes: BTreeMap<String, u64> = BTreeMap::new();
        for one in &self.requests {
            *codes.entry(one.code.to_string()).or_default() += 1;
        }
        let duration = self.end() - self.start();
        let count = self.requests.len();
        let (requested, exactly) = match self.amount {
            Amount::Duration(asked) => (format!("{}s", seconds(asked)), 0),
            Amount::CountFor(_) => (format!("exactly {count} calls"), count),
        };
        let started = Timestamp::from_nanosecond(i128::from(unix_nanoseconds)).unwrap();
        json!({
            "RunType": "HTTP",
            "Labels": "",
            "StartTime": started.to_string(),
            "RequestedQPS": "max",
            "RequestedDuration": requested,
            "ActualQPS": count as f64 / seconds(duration),
            "ActualDuration": duration,
            "NumThreads": CONNECTIONS,
            "Version": "1.68.2",
            "DurationHistogram": histogram(&all),
            "ErrorsDurationHistogram": histogram(&failed),
            "Exactly": exactly,
            "URL": "http://server:8080/contacts/1",
            "RetCodes": codes,
            "SocketCount": CONNECTIONS + failed.len(),
        })
        .to_string()
    }
}

fn histogram(latencies: &[Time]) -> Value {
    let count = latencies.len();
    let sum: Time = latencies.iter().sum();
    let mean = if count == 0 {
        0.0
    } else {
        seconds(sum) / count as f64
    };
    let squares: f64 = latencies
        .iter()
        .map(|one| (seconds(*one) - mean).powi(2))
        .sum();
    let (min, max) = (latencies.iter().min(), latencies.iter().max());
    let (min, max) = (
        min.copied().unwrap_or_default(),
        max.copied().unwrap_or_default(),
    );
    let mut buckets: BTreeMap<Time, u64> = BTreeMap::new();
    for one in latencies {
        *buckets.entry((one - 1) / BUCKET).or_default() += 1;
    }
    let data: Vec<Value> = buckets
        .iter()
        .map(|(number, in_it)| {
            json!({
                "Start": seconds(min.max(number * BUCKET)),
                "End": seconds(max.min((number + 1) * BUCKET)),
                "Percent": 100.0 * *in_it as f64 / count as f64,
                "Count": in_it,
            })
        })
        .collect();
    json!({
        "Count": count,
        "Min": seconds(min),
        "Max": seconds(max),
        "Sum": seconds(sum),
        "Avg": mean,
        "StdDev": (squares / count.max(1) as f64).sqrt(),
        "Data": (count > 0).then_some(data),
    })
}

pub(crate) fn seconds(time: Time) -> f64 {
    time as f64 / SECOND as f64
}
