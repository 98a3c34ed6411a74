//! The inputs before damage: files in `corpus/`, and the real texts of the measure crate's tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use frugality_operator::digest::hex_digest;

use super::Parser;
use crate::Error;

/// The corpus of one parser.
#[derive(Clone, Debug)]
pub struct Corpus {
    inputs: Vec<Vec<u8>>,
    folder: PathBuf,
}

impl Corpus {
    /// Reads a parser's corpus.
    pub fn read(parser: Parser) -> Result<Self, Error> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("corpus").join(parser.name());
        let mut files = if folder.exists() {
            files(&folder)?
        } else {
            Vec::new()
        };
        let real = root.join("../../measure/tests/data");
        match parser {
            Parser::Exposition => files.extend(with_ending(&real.join("kepler-v0.11.4"), "prom")?),
            Parser::Fortio => files.extend(with_ending(&real.join("fortio"), "json")?),
            Parser::K6 => files.extend(with_ending(&real.join("k6"), "json")?),
            Parser::Report => {}
        }
        let inputs = files
            .iter()
            .map(|file| fs::read(file).map_err(|source| corpus_error(file, source)))
            .collect::<Result<_, _>>()?;
        Ok(Self { inputs, folder })
    }

    /// The undamaged inputs.
    #[must_use]
    pub fn inputs(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    /// Writes inputs to the corpus' folder under a hash of their content, and returns the paths.
    pub fn keep<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Vec<u8>>,
    ) -> Result<Vec<PathBuf>, Error> {
        fs::create_dir_all(&self.folder).map_err(|source| corpus_error(&self.folder, source))?;
        inputs
            .map(|input| {
                let path = self.folder.join(format!("found-{}", hex_digest(input, 6)));
                fs::write(&path, input).map_err(|source| corpus_error(&path, source))?;
                Ok(path)
            })
            .collect()
    }
}

/// Removes the output of the panic hook, because the code that catches a panic reports it.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// Sorted by name, because a seed must select the same inputs on every machine.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = fs::read_dir(folder)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()
        })
        .map_err(|source| corpus_error(folder, source))?;
    files.sort();
    Ok(files)
}

fn with_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Error> {
    let mut files = files(folder)?;
    files.retain(|file| file.extension().is_some_and(|own| own == ending));
    Ok(files)
}

fn corpus_error(path: &Path, source: std::io::Error) -> Error {
    Error::Corpus {
        path: path.display().to_string(),
        source,
    }
}
