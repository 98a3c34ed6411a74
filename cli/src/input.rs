//! Where a command reads resources from: the cluster by kubectl, a file, or standard input.

use std::{
    io::IsTerminal as _,
    path::PathBuf,
    process::{Command, Stdio},
};

/// The flags that say it. `NAME`, `--namespace`, `--all-namespaces` and `--context` ask the cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Source {
    /// Benchmark to ask the cluster for.
    pub name: Option<String>,
    /// File with what kubectl get -o json printed, - for standard input. Default: standard input.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["name", "namespace", "context"])]
    pub filename: Option<PathBuf>,
    /// Namespace in the cluster. Default: the namespace of kubectl's context.
    #[arg(long, short)]
    pub namespace: Option<String>,
    /// Context of the kubeconfig. Default: kubectl's current context.
    #[arg(long)]
    pub context: Option<String>,
}

/// Why there is no input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A terminal is no input.
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
    /// There is no kubectl.
    #[error(
        "cannot run kubectl: {0}. Install kubectl, or pass the text of kubectl get -o json by --filename or a pipe."
    )]
    NoKubectl(#[source] std::io::Error),
    /// kubectl failed. It wrote the reason to standard error.
    #[error("`{command}` failed ({status}). Its message is above.")]
    Kubectl {
        /// The command line.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// kubectl printed something else than text.
    #[error("`{0}` printed no UTF-8. Check which program kubectl is.")]
    NotText(String),
}

impl Source {
    /// Whether to ask the cluster.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.name.is_some() || self.namespace.is_some() || self.context.is_some()
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

    /// The text that `kubectl get` prints for `what` as JSON.
    pub fn get<'a>(&self, what: impl IntoIterator<Item = &'a str>) -> Result<String, InputError> {
        let flag =
            |name, value: &Option<String>| value.as_ref().map(|value| format!("--{name}={value}"));
        let flags = [
            flag("context", &self.context),
            flag("namespace", &self.namespace),
        ];
        let mut kubectl = Command::new("kubectl");
        kubectl
            .args(flags.into_iter().flatten())
            .arg("get")
            .args(what)
            .args(["--output", "json"]);
        let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
        let command: Vec<_> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let command = command.join(" ");
        let done = kubectl
            .stderr(Stdio::inherit())
            .output()
            .map_err(InputError::NoKubectl)?;
        if !done.status.success() {
            return Err(InputError::Kubectl {
                command,
                status: done.status,
            });
        }
        String::from_utf8(done.stdout).map_err(|_| InputError::NotText(command))
    }
}
