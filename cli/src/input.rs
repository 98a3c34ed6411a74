//! Where a command reads resources from: the cluster, a file, or standard input.

use std::{io::IsTerminal as _, path::PathBuf, time::Duration};

use frugality_operator::api::HumanDuration;

use crate::cluster::Access;

/// A duration on the command line, in the form of a spec.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = HumanDuration::from(text).seconds();
    seconds
        .map(Duration::from_secs_f64)
        .map_err(|error| error.to_string())
}

/// A checked duration, as the user wrote it.
pub(crate) fn duration_text(text: &str) -> Result<String, String> {
    duration(text).map(|_| text.to_owned())
}

/// The flags that say it. `NAME` and the flags of a cluster ask the cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct InputSource {
    /// Benchmark to ask the cluster for.
    pub name: Option<String>,
    /// File with what kubectl get -o json printed, - for standard input. Default: standard input.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["name", "access", "place"])]
    pub filename: Option<PathBuf>,
    /// The cluster.
    #[command(flatten)]
    pub access: Access,
}

/// Why there is no input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A terminal is not an input.
    #[error(
        "standard input is a terminal. Name a benchmark, name a file with --filename, or pipe: kubectl get {0} -o json | kubectl frugality …"
    )]
    Terminal(&'static str),
    /// Standard input can't be read.
    #[error(
        "cannot read standard input: {0}. It must be the text that kubectl get -o json prints."
    )]
    Stdin(#[source] std::io::Error),
    /// The file can't be read.
    #[error("cannot read {path}: {source}. --filename takes a file that kubectl get -o json printed.", path = path.display())]
    File {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

impl InputSource {
    /// Whether to ask the cluster.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.name.is_some() || self.access.is_given()
    }

    /// The text from the file or from standard input. `example` completes the message for a user who gave neither.
    pub fn read(&self, example: &'static str) -> Result<String, InputError> {
        match &self.filename {
            Some(path) if path.as_os_str() != "-" => {
                std::fs::read_to_string(path).map_err(|source| InputError::File {
                    path: path.clone(),
                    source,
                })
            }
            None if std::io::stdin().is_terminal() => Err(InputError::Terminal(example)),
            _ => std::io::read_to_string(std::io::stdin()).map_err(InputError::Stdin),
        }
    }
}
