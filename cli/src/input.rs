//! Where a command reads resources from: the cluster, a file, or standard input.

use std::{
    fs::File,
    io::{BufRead, BufReader, IsTerminal as _},
    path::PathBuf,
    time::Duration,
};

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

    /// The file or standard input. `example` completes the message for a user who gave neither.
    pub fn open(&self, example: &'static str) -> Result<Box<dyn BufRead>, InputError> {
        let file = self.filename.as_ref().filter(|it| it.as_os_str() != "-");
        if self.filename.is_none() && std::io::stdin().is_terminal() {
            return Err(InputError::Terminal(example));
        }
        let input = match file {
            Some(path) => {
                File::open(path).map(|it| Box::new(BufReader::new(it)) as Box<dyn BufRead>)
            }
            None => Ok(Box::new(std::io::stdin().lock()) as Box<dyn BufRead>),
        };
        // A folder can be opened, but not read.
        input
            .and_then(|mut input| input.fill_buf().map(|_| ()).map(|()| input))
            .map_err(|source| self.failure(source))
    }

    /// The text from the file or from standard input.
    pub fn read(&self, example: &'static str) -> Result<String, InputError> {
        std::io::read_to_string(self.open(example)?).map_err(|source| self.failure(source))
    }

    fn failure(&self, source: std::io::Error) -> InputError {
        match &self.filename {
            Some(path) if path.as_os_str() != "-" => InputError::File {
                path: path.clone(),
                source,
            },
            _ => InputError::Stdin(source),
        }
    }
}
