//! The command line of the gate, and its files.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Zoned;

use super::{
    images::is_fixed,
    outcome::GateOutcome,
    report::{
        GateReport, annotations::annotations, junit::junit, markdown::markdown, on_one_line,
        outputs::outputs,
    },
    wait::{GateEnd, GateError, Patience, wait},
};
use crate::{cluster::Access, input::duration, summarize::summary};

/// Help below the options.
pub const HELP: &str = "\
Exit codes:
   0  Pass: the gate is open
  10  Fail: a budget is exceeded
  11  Inconclusive: the data do not decide
  12  Invalid: the experiment can't give a trustworthy figure
  13  Error: something did not work
  14  no verdict within --timeout
  15  no budget was judged for the image
  16  the benchmark measures other images than --image
   1  the benchmark could not be read, or a file could not be written
   2  the command line is wrong

Examples:
  # After kubectl apply, in a pipeline
  kubectl frugality gate shop-release --image ghcr.io/you/shop@sha256:… --timeout 8h

  # For GitHub Actions
  kubectl frugality gate --image \"$IMAGE\" --summary \"$GITHUB_STEP_SUMMARY\" --outputs \"$GITHUB_OUTPUT\" --annotations -- \"$NAME\"

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
    /// Image that the verdict must be about, with its digest (@sha256:…). May be repeated. The tag does not matter.
    #[arg(long = "image", value_name = "IMAGE", value_parser = image)]
    images: Vec<String>,
    /// Accept an --image without a digest. A tag can be moved to an image that was not measured.
    #[arg(long)]
    allow_tag: bool,
    /// Longest time until the verdict, with the time in the queue.
    #[arg(long, default_value = "8h", value_parser = duration)]
    timeout: Duration,
    /// Longest time until the benchmark exists and measures --image, for pipelines that apply or replace it meanwhile.
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
    /// Print GitHub's annotations, and the summary in a form in which GitHub finds no commands.
    #[arg(long)]
    annotations: bool,
}

/// Why the gate's result could not be reported. The gate is closed.
#[derive(Debug, thiserror::Error)]
pub enum GateFailure {
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

fn image(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the image is empty. Check the variable that should contain it".to_owned());
    }
    Ok(text.to_owned())
}

impl Gate {
    /// An image that names no fixed content, unless that is allowed. A wrong command line.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let tag = self.images.iter().find(|image| !is_fixed(image))?;
        (!self.allow_tag).then(|| {
            format!(
                "--image {tag} has no digest, and a tag can be moved to an image that was not measured. Write {tag}@sha256:…, or add --allow-tag."
            )
        })
    }

    /// Waits, writes the reports, and returns the text for standard output. The reports are written for every outcome, also
    /// if the benchmark could not be read.
    pub async fn run(&self) -> Result<(GateOutcome, String), GateFailure> {
        let images = &self.images;
        // A report of an earlier run must not stay. A path that can't be written is found before the wait.
        let begun = GateEnd {
            outcome: GateOutcome::Unknown,
            message: "The gate did not end.".to_owned(),
            benchmark: None,
        };
        let closed = GateReport {
            key: self.name.clone(),
            ended: &begun,
            images: Some(images),
        };
        self.write_junit(&closed)?;
        for path in [&self.summary, &self.outputs].into_iter().flatten() {
            write(path, "", true)?;
        }
        let (key, ended) = self.end().await;
        let report = GateReport {
            key,
            ended: &ended,
            images: Some(images),
        };
        if let Some(path) = &self.summary {
            write(path, &markdown(&report), true)?;
        }
        self.write_junit(&report)?;
        // The last one: no report says that the gate is open if another could not be written.
        if let Some(path) = &self.outputs
            && let Err(failure) = write(path, &outputs(&report), true)
        {
            self.write_junit(&closed)?;
            return Err(failure);
        }
        Ok((ended.outcome, self.text(&report)))
    }

    /// Name of the benchmark with its namespace, and how the gate ended.
    async fn end(&self) -> (String, GateEnd) {
        let cluster = match self.access.connect().await {
            Ok(cluster) => cluster,
            Err(error) => return (self.name.clone(), GateError::from(error).into()),
        };
        let patience = Patience {
            verdict: self.timeout,
            image: self.wait_for_image,
            interval: self.interval.max(Duration::from_millis(100)),
        };
        let progress = |line: &str| {
            let now = Zoned::now().strftime("%H:%M:%S").to_string();
            eprintln!("{now} {}: {}", self.name, without_commands(line));
        };
        let ended = wait(&cluster, &self.name, &self.images, patience, progress).await;
        let key = format!("{}/{}", cluster.namespace, self.name);
        (key, ended.unwrap_or_else(GateEnd::from))
    }

    fn write_junit(&self, report: &GateReport<'_>) -> Result<(), GateFailure> {
        match &self.junit {
            Some(path) => write(path, &junit(report)?, false),
            None => Ok(()),
        }
    }

    fn text(&self, report: &GateReport<'_>) -> String {
        let figures = report.ended.benchmark.as_ref().map(summary);
        let warnings = report.warnings().into_iter();
        let result = format!("{}: {}\n", report.heading(), report.ended.message);
        let text: String = figures
            .into_iter()
            .chain(warnings.map(|warning| format!("warning: {warning}\n")))
            .chain([result])
            .collect();
        if self.annotations {
            let lines: Vec<_> = text.lines().map(without_commands).collect();
            format!("{}{}\n", annotations(report), lines.join("\n"))
        } else {
            text
        }
    }
}

/// The text on one line without the signs of GitHub's workflow commands, `::` and `##[`.
fn without_commands(text: &str) -> String {
    on_one_line(text)
        .replace("::", ": :")
        .replace("##[", "## [")
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
