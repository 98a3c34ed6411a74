//! The command line of the gate, and its files.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use frugality_operator::api::HumanDuration;
use jiff::Zoned;

use super::{
    outcome::Outcome,
    report::{
        Report, annotations::annotations, junit::junit, markdown::markdown, outputs::outputs,
    },
    wait::{Ended, GateError, Patience, wait},
};
use crate::{cluster::Access, cluster::ClusterError, summarize::summary};

/// Help below the options.
pub const HELP: &str = "\
Exit codes:
   0  Pass: the gate is open
  10  Fail: a budget is exceeded
  11  Inconclusive: the data do not decide
  12  Invalid: the experiment can't give a trustworthy figure
  13  Error: something did not work
  14  no verdict within --timeout
  15  nothing was judged: no budgets, or none about the image
  16  the benchmark measures other images than --image
   1  the cluster could not be asked, or a file could not be written
   2  the command line is wrong

Examples:
  # After kubectl apply, in a pipeline
  kubectl frugality gate shop-release --image ghcr.io/you/shop@sha256:… --timeout 3h

  # For GitHub Actions
  kubectl frugality gate shop-release --summary \"$GITHUB_STEP_SUMMARY\" --outputs \"$GITHUB_OUTPUT\" --annotations

  # For any tool that reads JUnit XML
  kubectl frugality gate shop-release --junit energy.xml";

/// The options of `kubectl frugality gate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Gate {
    /// Benchmark to wait for.
    name: String,
    /// The cluster.
    #[command(flatten)]
    access: Access,
    /// Image that the verdict must be about. May be repeated. With a digest, the tag does not matter.
    #[arg(long = "image", value_name = "IMAGE")]
    images: Vec<String>,
    /// Longest time until the verdict.
    #[arg(long, default_value = "3h", value_parser = duration)]
    timeout: Duration,
    /// Longest time until the benchmark exists and measures --image, for pipelines that apply it meanwhile.
    #[arg(long, default_value = "0s", value_parser = duration)]
    wait_for_image: Duration,
    /// Time between two questions to the API server.
    #[arg(long, default_value = "5s", value_parser = duration)]
    interval: Duration,
    /// File to append a summary in Markdown to.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// File to write the verdict and each budget to, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// File to append verdict=, open=, code= and message= to.
    #[arg(long, value_name = "FILE")]
    outputs: Option<PathBuf>,
    /// Print GitHub's annotations after the summary.
    #[arg(long)]
    annotations: bool,
}

/// Why a gate has no outcome. It stays closed.
#[derive(Debug, thiserror::Error)]
pub enum GateFailure {
    /// The cluster can't be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The benchmark can't be asked for.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// A report can't be written.
    #[error("cannot write {path}: {source}. Name a file in a folder that exists.", path = path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The report has no XML form.
    #[error("cannot write JUnit XML: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}

fn duration(text: &str) -> Result<Duration, String> {
    let seconds = HumanDuration::from(text).seconds();
    seconds
        .map(Duration::from_secs_f64)
        .map_err(|error| error.to_string())
}

/// Waits, writes the reports, and returns the text for standard output. The reports are written for every outcome.
pub async fn run(options: &Gate) -> Result<(Outcome, String), GateFailure> {
    let cluster = options.access.connect().await?;
    let patience = Patience {
        verdict: options.timeout,
        image: options.wait_for_image,
        interval: options.interval.max(Duration::from_millis(100)),
    };
    let progress = |line: &str| {
        let now = Zoned::now().strftime("%H:%M:%S").to_string();
        eprintln!("{now} {}: {line}", options.name);
    };
    let ended = wait(&cluster, &options.name, &options.images, patience, progress).await?;
    let report = Report {
        key: format!("{}/{}", cluster.namespace, options.name),
        ended: &ended,
        images: &options.images,
    };
    if let Some(path) = &options.junit {
        write(path, &junit(&report)?, false)?;
    }
    if let Some(path) = &options.summary {
        write(path, &markdown(&report), true)?;
    }
    if let Some(path) = &options.outputs {
        write(path, &outputs(&report), true)?;
    }
    Ok((ended.outcome, text(options, &report, &ended)))
}

fn text(options: &Gate, report: &Report<'_>, ended: &Ended) -> String {
    let figures = ended.benchmark.as_ref().map(summary);
    let warnings = report.warnings().into_iter();
    let result = format!("{}: {}\n", report.heading(), ended.message);
    figures
        .into_iter()
        .chain(warnings.map(|warning| format!("warning: {warning}\n")))
        .chain([result])
        .chain(options.annotations.then(|| annotations(report)))
        .collect()
}

fn write(path: &Path, text: &str, append: bool) -> Result<(), GateFailure> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .append(append)
        .truncate(!append)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| GateFailure::Write {
            path: path.to_owned(),
            source,
        })
}
