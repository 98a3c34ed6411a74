//! What Fortio writes of each request while it runs, read at once into the course of the run.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, PipeReader, Read},
    process::Stdio,
    thread::{self, JoinHandle},
};

use frugality_measure::course::{Course, CourseRecorder};
use serde::Deserialize;

/// Where Fortio finds the log's end that it writes to: its standard input, which it has no other use for.
pub(crate) const PATH: &str = "/proc/self/fd/0";

/// A log that is being read. Nothing of it is kept.
pub(crate) struct AccessLog(JoinHandle<Option<Course>>);

/// One line. Fortio writes it when the request has ended (`fileAccessLogger` of its package periodic).
#[derive(Deserialize)]
struct Entry {
    /// Seconds.
    latency: f64,
    /// When it began, nanoseconds since 1970.
    timestamp: i64,
    /// The connection's number.
    thread: u32,
    /// By Fortio's own rule.
    ok: bool,
}

impl AccessLog {
    /// A log, and the end of it that is Fortio's standard input.
    pub(crate) fn open() -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(thread::spawn(move || course(reader))), writer.into()))
    }

    /// The course, once Fortio has ended; `None` where no request succeeded, or a line could not be read.
    pub(crate) fn course(self) -> Option<Course> {
        self.0.join().ok().flatten()
    }
}

fn course(from: PipeReader) -> Option<Course> {
    let mut from = BufReader::with_capacity(1 << 16, from);
    let read = read(&mut from);
    // To its end even so: Fortio would wait for a reader.
    let _ = io::copy(&mut from, &mut io::sink());
    read.unwrap_or_else(|error| {
        eprintln!("the course of the measured run is not known: {error}");
        None
    })
}

fn read(from: &mut impl BufRead) -> io::Result<Option<Course>> {
    /// Longer than any line.
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
    // Each has its share of the requests, and ends when it is done.
    let whole_seconds = last_of_thread.into_values().reduce(f64::min);
    Ok(whole_seconds.and_then(|seconds| recorder.course(seconds.max(0.0))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::io::Write;

    use super::*;

    fn line(thread: u32, at_seconds: i64, ok: bool) -> String {
        // As Fortio 1.68.2 writes it.
        let timestamp = 1_795_397_375_000_000_000 + at_seconds * 1_000_000_000;
        format!(
            "{{\"latency\":0.000082,\"timestamp\":{timestamp},\"thread\":{thread},\"iter\":7,\"ok\":{ok},\"details\":\"200\"}}\n"
        )
    }

    #[test]
    fn successes_are_told_for_as_long_as_all_connections_are_in_use() {
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
    fn nothing_and_failures_alone_have_no_course() {
        assert_eq!(read(&mut "".as_bytes()).unwrap(), None);
        assert_eq!(read(&mut line(0, 0, false).as_bytes()).unwrap(), None);
    }

    #[test]
    fn what_is_no_line_of_fortio_is_read_to_its_end_and_told_as_nothing() {
        for text in ["no", &format!("{{\"latency\":\"{}\"}}", "x".repeat(5000))] {
            let (reader, mut writer) = io::pipe().unwrap();
            let course = thread::spawn(move || course(reader));
            // More than a pipe holds: it would block.
            let lines = [text.to_owned(), line(0, 0, true).repeat(10_000)].join("\n");
            writer.write_all(lines.as_bytes()).unwrap();
            drop(writer);
            assert_eq!(course.join().unwrap(), None);
        }
    }
}
