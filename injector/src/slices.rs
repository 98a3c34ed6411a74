//! Reads the slices that Fortio writes at the end of the measured run.

use std::{
    io::{self, PipeReader, Read},
    process::Stdio,
};

use frugality_measure::slices::Slices;

/// Path to which Fortio writes its slices: its standard input, a pipe that Fortio uses for nothing else.
pub(crate) const PATH: &str = "/proc/self/fd/0";

/// Longer than any slices. A pipe holds as much, so Fortio never waits for a reader.
const LIMIT_BYTES: u64 = 1 << 16;

/// The readable end of the pipe.
pub(crate) struct SlicesPipe(PipeReader);

impl SlicesPipe {
    /// Returns the pipe with its writable end, which becomes Fortio's standard input.
    pub(crate) fn open() -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(reader), writer.into()))
    }

    /// The slices of a Fortio that has ended. `None` if no request was sent or the text is invalid.
    pub(crate) fn read(self) -> Option<Slices> {
        let mut text = String::new();
        let read = self.0.take(LIMIT_BYTES).read_to_string(&mut text);
        let parsed = read.and_then(|_| Ok(serde_json::from_str::<Slices>(&text)?));
        match parsed {
            Ok(slices) => Some(slices).filter(|it| !it.successes.is_empty()),
            Err(error) => {
                eprintln!("Fortio wrote no slices, so the report has none: {error}");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::io::Write as _;

    use super::*;

    fn read(text: &str) -> Option<Slices> {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        SlicesPipe(reader).read()
    }

    #[test]
    fn the_slices_of_a_run_are_read() {
        let slices = read(
            r#"{"sliceSeconds":0.5,"wholeSeconds":0.9,"successes":[2,1],"errors":[0,1],
                "meanNanoseconds":[1500000,2000000],"p99Nanoseconds":[null,null]}"#,
        );
        let slices = slices.unwrap();
        assert_eq!((slices.successes, slices.errors), (vec![2, 1], vec![0, 1]));
    }

    #[test]
    fn a_run_without_requests_and_a_run_that_was_killed_have_no_slices() {
        let none = r#"{"sliceSeconds":0.5,"wholeSeconds":0,"successes":[],"errors":[],
            "meanNanoseconds":[],"p99Nanoseconds":[]}"#;
        assert_eq!(read(none), None);
        assert_eq!(read(""), None);
        assert_eq!(read("{\"sliceSeconds\":"), None);
    }
}
