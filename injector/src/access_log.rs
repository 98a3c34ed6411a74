//! What Fortio writes of each request while it runs, read at once into the course of the run.

use std::{
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
    let read = record(&mut from);
    // To its end even so: Fortio would wait for a reader.
    let _ = io::copy(&mut from, &mut io::sink());
    match read {
        Ok(recorder) => recorder.course(),
        Err(error) => {
            eprintln!("the course of the measured run is not known: {error}");
            None
        }
    }
}

fn record(from: &mut impl BufRead) -> io::Result<CourseRecorder> {
    /// Longer than any line.
    const LINE_LIMIT_BYTES: u64 = 4096;
    let mut recorder = CourseRecorder::default();
    let (mut line, mut first) = (Vec::new(), None);
    while from.take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line)? > 0 {
        let entry: Entry = serde_json::from_slice(&line)?;
        let began = *first.get_or_insert(entry.timestamp);
        if entry.ok {
            let at_seconds = entry.timestamp.saturating_sub(began) as f64 / 1e9;
            recorder.add(at_seconds, entry.latency);
        }
        line.clear();
    }
    Ok(recorder)
}
