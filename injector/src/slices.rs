//! Reads the slices that Fortio writes at the end of the measured run.

use std::{
    io::{self, PipeReader, Read},
    process::Stdio,
};

use frugality_measure::{fortio::FortioResult, slices::Slices};
use serde::Deserialize;

/// Path to which Fortio writes its slices: its standard input, a pipe that Fortio uses for nothing else.
pub(crate) const PATH: &str = "/proc/self/fd/0";

/// Longer than any slices. A pipe holds as much, so Fortio never waits for a reader.
const LIMIT_BYTES: u64 = 1 << 16;

/// The text that `injector/fortio` writes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(flatten)]
    slices: Slices,
    /// Requests that Fortio counts as successes although they had no answer in time, and their time. Fortio sent them
    /// again.
    repeated_requests: u64,
    repeated_seconds: f64,
    /// Answers without a length in their headers. Fortio did not read them to their ends.
    endless_answers: u64,
    /// Answers that are longer than Fortio's buffer.
    cut_answers: u64,
    /// The repeated requests whose connection the server closed. The others were late.
    closed_requests: u64,
}

/// Largest share of requests on closed connections that are errors. With more, the server closes each connection on
/// purpose, as HTTP/1.0 does.
const MAX_CLOSED_SHARE: f64 = 0.4;

impl Written {
    /// Why the successes are not whole answers, if they are not.
    fn fault(&self, requests: u64) -> Option<String> {
        if self.endless_answers > 0 {
            return Some(format!(
                "{} answers have neither Content-Length nor chunks, so Fortio did not read them and opened a connection \
                 for each: answer with Content-Length (200 with a length of 0 instead of 204), or use a scenario",
                self.endless_answers
            ));
        }
        if self.cut_answers > 0 {
            return Some(format!(
                "{} answers are longer than Fortio's buffer: request smaller answers, use fewer connections, or use a \
                 scenario",
                self.cut_answers
            ));
        }
        (self.closed_requests as f64 > MAX_CLOSED_SHARE * requests as f64).then(|| {
            format!(
                "the server closed its connections without announcing it, so Fortio sent {} of {requests} requests twice: \
                 answer with Connection: close, or keep the connections open (HTTP/1.1)",
                self.closed_requests
            )
        })
    }
}

/// The readable end of the pipe.
pub(crate) struct SlicesPipe(PipeReader);

impl SlicesPipe {
    /// Returns the pipe with its writable end, which becomes Fortio's standard input.
    pub(crate) fn open() -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(reader), writer.into()))
    }

    /// The slices of a Fortio that has ended, after the repeated requests are counted as errors of its result. `None` if no
    /// request was sent, or if the text is invalid. `Err` if Fortio did not read all answers, or if the text is
    /// invalid and the result does not exclude this.
    pub(crate) fn read(
        self,
        result: &mut FortioResult,
        timeout_seconds: f64,
    ) -> Result<Option<Slices>, String> {
        let mut text = String::new();
        let read = self.0.take(LIMIT_BYTES).read_to_string(&mut text);
        let parsed = read.and_then(|_| Ok(serde_json::from_str::<Written>(&text)?));
        match parsed {
            Ok(written) => {
                if let Some(fault) = written.fault(result.latency.count) {
                    return Err(fault);
                }
                result.count_repeated(written.repeated_requests, written.repeated_seconds);
                Ok(Some(written.slices).filter(|it| !it.successes.is_empty()))
            }
            Err(error)
                if result.latency.max_seconds > timeout_seconds
                    || result.sockets > u64::from(result.threads) =>
            {
                Err(format!(
                    "it is not known whether each request had a whole answer in time, because Fortio wrote no slices: {error}"
                ))
            }
            Err(error) => {
                eprintln!("Fortio wrote no slices, so the report has none: {error}");
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::io::Write as _;

    use super::*;

    /// A result of Fortio: 50 requests.
    fn result() -> FortioResult {
        let sample = include_str!("../../measure/tests/data/fortio-sample.json");
        frugality_measure::fortio::parse(sample).unwrap()
    }

    fn read_into(
        result: &mut FortioResult,
        text: &str,
        timeout_seconds: f64,
    ) -> Result<Option<Slices>, String> {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        SlicesPipe(reader).read(result, timeout_seconds)
    }

    fn read(text: &str) -> Option<Slices> {
        read_into(&mut result(), text, 3.0).unwrap()
    }

    #[test]
    fn the_slices_of_a_run_are_read() {
        let slices = read(
            r#"{"sliceSeconds":0.5,"wholeSeconds":0.9,"successes":[2,1],"errors":[0,1],
                "meanNanoseconds":[1500000,2000000],"p99Nanoseconds":[null,null],
                "repeatedRequests":0,"repeatedSeconds":0,"endlessAnswers":0,"cutAnswers":0,"closedRequests":0}"#,
        );
        let slices = slices.unwrap();
        assert_eq!((slices.successes, slices.errors), (vec![2, 1], vec![0, 1]));
    }

    #[test]
    fn repeated_requests_are_errors_of_the_result() {
        let before = result();
        let mut after = before.clone();
        let text = r#"{"sliceSeconds":0.5,"wholeSeconds":0.9,"successes":[1],"errors":[2],
            "meanNanoseconds":[1500000],"p99Nanoseconds":[null],"repeatedRequests":2,"repeatedSeconds":0.003,
            "endlessAnswers":0,"cutAnswers":0,"closedRequests":0}"#;
        read_into(&mut after, text, 0.001).unwrap();
        assert_eq!(after.span().errors, before.span().errors + 2);
        assert_eq!(after.codes[&200], before.codes[&200] - 2);
        assert_eq!(after.codes[&-1], 2);
        let moved = after.error_latency.sum_seconds - before.error_latency.sum_seconds;
        assert!((moved - 0.003).abs() < 1e-9, "{moved}");
        // Which code they had is not known. The most frequent one is the most likely.
        let mut mixed = before;
        mixed.codes = std::collections::BTreeMap::from([(200, 5), (201, 995)]);
        mixed.count_repeated(3, 0.003);
        assert_eq!(
            mixed.codes.values().copied().collect::<Vec<_>>(),
            [3, 5, 992]
        );
    }

    #[test]
    fn without_slices_the_errors_of_a_slow_run_are_unknown() {
        let slowest = result().latency.max_seconds;
        assert!(read_into(&mut result(), "", slowest / 2.0).is_err());
        assert_eq!(read_into(&mut result(), "", 2.0 * slowest), Ok(None));
        // Answers without an end close their connections.
        let mut reconnected = result();
        reconnected.sockets = u64::from(reconnected.threads) + 1;
        assert!(read_into(&mut reconnected, "", 2.0 * slowest).is_err());
    }

    #[test]
    fn a_run_without_requests_and_a_run_that_was_killed_have_no_slices() {
        let none = r#"{"sliceSeconds":0.5,"wholeSeconds":0,"successes":[],"errors":[],
            "meanNanoseconds":[],"p99Nanoseconds":[],"repeatedRequests":0,"repeatedSeconds":0,"endlessAnswers":0,"cutAnswers":0,"closedRequests":0}"#;
        assert_eq!(read(none), None);
        assert_eq!(read(""), None);
        assert_eq!(read("{\"sliceSeconds\":"), None);
    }
}
