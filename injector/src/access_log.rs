//! Reads Fortio's access log, one line per request, while Fortio runs, and computes the run's course.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, PipeReader, Read},
    process::Stdio,
    thread::{self, JoinHandle},
};

use frugality_measure::course::{Course, CourseRecorder};
use serde::Deserialize;

/// Path to which Fortio writes its access log: its standard input, a pipe that Fortio uses for nothing but this log.
pub(crate) const PATH: &str = "/proc/self/fd/0";

/// The thread that reads the access log. It keeps the course only, not the lines.
pub(crate) struct AccessLog(JoinHandle<Option<Course>>);

/// One line of the log. Fortio writes it when a request ends (`fileAccessLogger` in Fortio's package `periodic`).
#[derive(Deserialize)]
struct Entry {
    /// In seconds.
    latency: f64,
    /// Start of the request, in nanoseconds since 1970.
    timestamp: i64,
    /// Number of the connection.
    thread: u32,
    /// Success, by Fortio's own rule.
    ok: bool,
}

impl AccessLog {
    /// Starts the reader. Returns it with the writable end of the pipe, which becomes Fortio's standard input.
    pub(crate) fn open() -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(thread::spawn(move || course(reader))), writer.into()))
    }

    /// Waits until Fortio has ended and returns the course. `None` if no request succeeded or a line is invalid.
    pub(crate) fn course(self) -> Option<Course> {
        self.0.join().ok().flatten()
    }
}

fn course(from: PipeReader) -> Option<Course> {
    let mut from = BufReader::with_capacity(1 << 16, from);
    let read = read(&mut from);
    // After an error, read the rest too: Fortio blocks if the pipe is full.
    let _ = io::copy(&mut from, &mut io::sink());
    read.unwrap_or_else(|error| {
        eprintln!("cannot read Fortio's access log, so the report has no course: {error}");
        None
    })
}

fn read(from: &mut impl BufRead) -> io::Result<Option<Course>> {
    /// Longer than any line that Fortio writes.
    const LINE_LIMIT_BYTES: u64 = 4096;
    let mut recorder = CourseRecorder::default();
    let (mut line, mut first) = (Vec::new(), None);
    let mut last_of_thread = BTreeMap::new();
    while from.take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line)? > 0 {
        let entry: Entry = serde_json::from_slice(&line)?;
        let began = *first.get_or_insert(entry.timestamp);
        let at_seconds = entry.timestamp.saturating_sub(began) as f64 / 1e9;
        last_of_thread.insert(entry.thread, at_seconds);
        if entry.ok {
            recorder.add(at_seconds, entry.latency);
        }
        line.clear();
    }
    // Each connection ends after its share of the requests: the course covers the time in which all are in use.
    let whole_seconds = last_of_thread.into_values().reduce(f64::min);
    Ok(whole_seconds.and_then(|seconds| recorder.course(seconds.max(0.0))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::io::Write;

    use super::*;

    fn line(thread: u32, at_seconds: i64, ok: bool) -> String {
        // The format of Fortio 1.68.2.
        let timestamp = 1_795_397_375_000_000_000 + at_seconds * 1_000_000_000;
        format!(
            "{{\"latency\":0.000082,\"timestamp\":{timestamp},\"thread\":{thread},\"iter\":7,\"ok\":{ok},\"details\":\"200\"}}\n"
        )
    }

    #[test]
    fn the_course_has_the_successes_and_covers_the_time_with_all_connections() {
        let lines = [
            line(0, 0, true),
            line(1, 1, false),
            line(1, 2, true),
            line(0, 9, true),
        ];
        let course = read(&mut lines.concat().as_bytes()).unwrap().unwrap();
        assert_eq!(course.requests, [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert!((course.whole_seconds - 2.0).abs() < 1e-9, "{course:?}");
        assert!((course.mean_seconds[9] - 82e-6).abs() < 1e-12);
    }

    #[test]
    fn a_log_without_a_success_has_no_course() {
        assert_eq!(read(&mut "".as_bytes()).unwrap(), None);
        assert_eq!(read(&mut line(0, 0, false).as_bytes()).unwrap(), None);
    }

    #[test]
    fn an_invalid_log_is_read_to_its_end_and_has_no_course() {
        for text in ["no", &format!("{{\"latency\":\"{}\"}}", "x".repeat(5000))] {
            let (reader, mut writer) = io::pipe().unwrap();
            let course = thread::spawn(move || course(reader));
            // More than a pipe holds: the write would block without a reader.
            let lines = [text.to_owned(), line(0, 0, true).repeat(10_000)].join("\n");
            writer.write_all(lines.as_bytes()).unwrap();
            drop(writer);
            assert_eq!(course.join().unwrap(), None);
        }
    }
}
