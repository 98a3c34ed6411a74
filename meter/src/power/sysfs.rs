//! Numbers in files of the kernel.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::InstrumentError;

/// A file that holds one whole number. The file stays open: the kernel computes its content again for every
/// read from its beginning.
#[derive(Debug)]
pub(crate) struct NumberFile {
    path: PathBuf,
    file: Option<File>,
}

impl NumberFile {
    /// The number in the file `path`. The first reading opens the file.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the number. After an error, the next reading opens the file again: the device may have come
    /// back.
    pub(crate) fn read(&mut self) -> Result<i64, InstrumentError> {
        let outcome = self.read_open();
        if outcome.is_err() {
            self.file = None;
        }
        outcome
    }

    /// Reads a number that must not be negative.
    pub(crate) fn read_unsigned(&mut self) -> Result<u64, InstrumentError> {
        let number = self.read()?;
        u64::try_from(number).map_err(|_| {
            let (from, text) = (self.path.display().to_string(), number.to_string());
            InstrumentError::malformed(
                from,
                &text,
                "number above 0 (is the sensor wired in reverse?)",
            )
        })
    }

    fn read_open(&mut self) -> Result<i64, InstrumentError> {
        let unreadable = |source| InstrumentError::Unreadable {
            path: self.path.display().to_string(),
            source,
        };
        let file = match &self.file {
            Some(file) => file,
            None => self
                .file
                .insert(File::open(&self.path).map_err(unreadable)?),
        };
        let mut buffer = [0; 64];
        let length = file.read_at(&mut buffer, 0).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        text.trim().parse().map_err(|_| {
            InstrumentError::malformed(self.path.display().to_string(), &text, "whole number")
        })
    }
}

/// The content of a file without its white space; `None` if the file is unreadable.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(
        text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
            .to_owned(),
    )
}

/// The entries of a directory in the order of their names; empty if the directory is unreadable.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

/// The last part of a path, as text.
pub(crate) fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}
