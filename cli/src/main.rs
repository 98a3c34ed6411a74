//! `kubectl-frugality`: reads its command line and calls the library.

use std::{
    io::{Cursor, Read, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use frugality_operator::api::{FrugalityBenchmark, FrugalityTrace, FrugalityTrial};
use kubectl_frugality::{
    cluster::ClusterError,
    compare::{self, Compare, CompareError, NOT_COMPARABLE},
    completion::{self, Complete, Completion},
    definitions::{self, DefinitionsError},
    doctor::{self, Doctor},
    estimate::{self, EstimateError, EstimateOptions},
    export::{ExportError, ExportFormat, course::export_courses, export},
    gate::{
        command::{self as gate, Gate, GateFailure},
        serve::{self, ServeError, ServeGate},
    },
    input::{InputError, InputSource},
    items::for_each_item,
    reference::markdown,
    report::{self, ReportCommandError, ReportOptions},
    run::{self, Done, RunError, RunOptions},
    summarize::summaries,
    table::TableStyle,
    watch::{self, Followed, WatchError, WatchOptions},
};

/// Prints and exports the results of Frugality's benchmarks.
#[derive(Debug, Parser)]
#[command(version, about, bin_name = "kubectl frugality")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure an image: write a benchmark, create it, follow it and print the result.
    #[command(after_help = run::HELP)]
    Run(Box<RunOptions>),
    /// Print how long a benchmark will take, and what the API server would refuse in it. Does not contact a cluster.
    #[command(after_help = estimate::HELP)]
    Estimate(EstimateOptions),
    /// Print benchmarks as tables, with verdict, figures, ratios and budgets.
    #[command(after_help = "\
Examples:
  # A benchmark in the cluster
  kubectl frugality summarize rust-vs-python --namespace shop

  # What kubectl printed before
  kubectl get fb rust-vs-python -o json | kubectl frugality summarize
  kubectl frugality summarize --filename benchmark.json

  # Rows only, for awk. Tools should rather read the status or an export, which name fields and units
  kubectl frugality summarize rust-vs-python --no-headers")]
    Summarize(Summarize),
    /// Print what differs between two benchmarks, and their figures side by side if they may be compared.
    #[command(after_help = compare::HELP)]
    Compare(Compare),
    /// Write a report of one benchmark: a page for people, or a form for tools.
    ///
    /// The page (HTML) is one file that loads nothing: verdict, budgets, comparisons, energy, latency, all attempts and the
    /// data. A figure that was withheld is absent, with its reason.
    #[command(after_help = report::HELP)]
    Report(ReportOptions),
    /// Print the ledger as JSON or CSV.
    ///
    /// One object or row per attempt, void attempts included with their reason, in the order of namespaces, benchmarks and
    /// time. Names of fields contain the unit; docs/api.md describes each field. An unknown figure is null or empty, never 0.
    /// With --traces, one object or row per value over the time of each attempt.
    #[command(after_help = "\
Examples:
  # All attempts in the cluster, for a spreadsheet
  kubectl frugality export --all-namespaces --format csv --output ledger.csv

  # The attempts of one benchmark
  kubectl frugality export rust-vs-python --namespace shop

  # Power, CPU and memory over the time of each attempt, for pandas or R
  kubectl frugality export rust-vs-python --namespace shop --traces --format csv

  # What kubectl printed before
  kubectl get fbt -A -o json | kubectl frugality export
  kubectl get fbtr -A -o json | kubectl frugality export --traces
  kubectl frugality export --filename ledger.json --format csv")]
    Export(Export),
    /// Follow a benchmark to its verdict: attempts, figures so far, time left.
    #[command(after_help = watch::HELP)]
    Watch(WatchOptions),
    /// Wait for a benchmark's verdict. The exit code says whether to release.
    ///
    /// Waits until the benchmark has a verdict for the current generation of its spec. With --image, the benchmark must
    /// measure this image, and a budget must apply to its candidate. Progress goes to standard error, the summary to standard
    /// output.
    #[command(after_help = gate::HELP)]
    Gate(Gate),
    /// Answer Flagger's webhooks: may this Canary be promoted, or must it be rolled back?
    ///
    /// Each question names a Canary, and its webhook's metadata name the benchmark. The image is the one in the Canary's
    /// target at this moment. The decision is the decision of the command gate. The answers contain no figures.
    #[command(after_help = serve::HELP)]
    ServeGate(ServeGate),
    /// Check an installation, and say for each defect what to do. Changes nothing.
    #[command(after_help = doctor::HELP)]
    Doctor(Doctor),
    /// Print the custom resource definitions, or write them to a folder.
    #[command(after_help = "\
Examples:
  kubectl frugality crd | kubectl apply --server-side --filename -
  kubectl frugality crd --write crds")]
    Crd {
        /// Folder to write one file per definition to.
        #[arg(long, value_name = "FOLDER")]
        write: Option<PathBuf>,
    },
    /// Print the completion of this program for a shell.
    #[command(after_help = completion::HELP)]
    Completion(Completion),
    /// Print what kubectl may complete. The script kubectl_complete-frugality calls it.
    #[command(name = "__complete", hide = true, disable_help_flag = true)]
    Complete(Complete),
    /// Print the API reference as Markdown.
    #[command(after_help = "Examples:\n  kubectl frugality reference > docs/api.md")]
    Reference,
}

#[derive(Debug, clap::Args)]
struct Summarize {
    #[command(flatten)]
    source: InputSource,
    #[command(flatten)]
    style: TableStyle,
}

#[derive(Debug, clap::Args)]
struct Export {
    #[command(flatten)]
    source: InputSource,
    /// All namespaces of the cluster.
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "filename"])]
    all_namespaces: bool,
    /// The courses of the attempts (FrugalityTrace) in place of the ledger.
    #[arg(long)]
    traces: bool,
    /// What to write: JSON (an array of flat objects) or CSV (RFC 4180, with a header).
    #[arg(long, value_enum, default_value_t = ExportFormat::Json)]
    format: ExportFormat,
    /// File to write. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Gate(#[from] GateFailure),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(
        "the input is not a benchmark as JSON: {0}. It must be the text that kubectl get fb NAME -o json prints."
    )]
    NotABenchmark(#[from] serde_json::Error),
    #[error("the types have no reference: {0}. This is a fault of this program.")]
    Reference(#[source] serde_json::Error),
    #[error(transparent)]
    Estimate(#[from] EstimateError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Report(#[from] ReportCommandError),
    #[error(transparent)]
    Definitions(#[from] DefinitionsError),
    #[error("cannot write {path}: {source}. Name a file in a folder that exists with --output.", path = path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write to standard output: {0}")]
    Print(#[source] std::io::Error),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Estimate(options) => options
            .run()
            .map_err(Failure::from)
            .and_then(|text| print(text.as_bytes())),
        Command::Summarize(options) => summarize(&options).await,
        Command::Compare(options) => return compare(&options).await,
        Command::Export(options) => export_ledger(&options).await,
        Command::Run(options) => match Box::pin(options.run()).await {
            Ok(Done::Followed(followed)) => return end_with(Ok(followed)),
            Ok(Done::Printed(text)) => print(text.as_bytes()),
            Err(error) => Err(error.into()),
        },
        Command::Watch(options) => return end_with(options.run().await.map_err(Failure::from)),
        Command::Report(options) => report(&options).await,
        Command::Gate(options) => return pass_gate(&options).await,
        Command::Doctor(options) => return examine(&options).await,
        Command::ServeGate(options) => options.run().await.map_err(Failure::from),
        Command::Crd { write: None } => definitions::print()
            .map_err(Failure::from)
            .and_then(|yaml| print(yaml.as_bytes())),
        Command::Crd {
            write: Some(folder),
        } => definitions::write(&folder).map_err(Failure::from),
        Command::Completion(options) => print(&options.script(Cli::command())),
        Command::Complete(options) => print(options.run(Cli::command()).await.as_bytes()),
        Command::Reference => markdown()
            .map_err(Failure::Reference)
            .and_then(|text| print(text.as_bytes())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    eprintln!("error: {failure}");
    ExitCode::FAILURE
}

async fn compare(options: &Compare) -> ExitCode {
    let result = options.run().await.map_err(Failure::from);
    match result.and_then(|(text, is_comparable)| print(text.as_bytes()).map(|()| is_comparable)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => NOT_COMPARABLE.into(),
        Err(failure) => failed(&failure),
    }
}

/// Prints the result of a run that was followed.
fn end_with(followed: Result<Followed, Failure>) -> ExitCode {
    match followed.and_then(|it| print(it.text().as_bytes()).map(|()| it)) {
        Ok(followed) => followed.exit_code(),
        Err(failure) => failed(&failure),
    }
}

async fn examine(options: &Doctor) -> ExitCode {
    let result = options.run().await.map_err(Failure::from);
    match result.and_then(|(text, is_well)| print(text.as_bytes()).map(|()| is_well)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => failed(&failure),
    }
}

/// A gate whose result could not be reported is closed.
async fn pass_gate(options: &Gate) -> ExitCode {
    if let Some(refusal) = options.refusal() {
        Cli::command()
            .error(ErrorKind::ValueValidation, refusal)
            .exit();
    }
    let result = options.run().await.map_err(Failure::from);
    match result.and_then(|(outcome, text)| print(text.as_bytes()).map(|()| outcome)) {
        Ok(outcome) => outcome.exit_code().into(),
        Err(failure) => failed(&failure),
    }
}

async fn summarize(options: &Summarize) -> Result<(), Failure> {
    let source = &options.source;
    let input: Box<dyn Read> = match &source.name {
        _ if !source.is_cluster() => source.open("fb NAME")?,
        Some(name) => {
            let cluster = source.access.connect().await?;
            Box::new(Cursor::new(cluster.get::<FrugalityBenchmark>(name).await?))
        }
        None => {
            let cluster = source.access.connect().await?;
            Box::new(Cursor::new(
                cluster.list::<FrugalityBenchmark>(false).await?,
            ))
        }
    };
    let mut benchmarks: Vec<FrugalityBenchmark> = Vec::new();
    for_each_item(input, |item| -> serde_json::Result<()> {
        benchmarks.push(item.parse()?);
        Ok(())
    })?;
    print(summaries(&benchmarks, options.style).as_bytes())
}

async fn report(options: &ReportOptions) -> Result<(), Failure> {
    let written = options.run().await?;
    match options.file() {
        Some(path) => std::fs::write(path, written).map_err(|source| Failure::Write {
            path: path.to_owned(),
            source,
        }),
        None => print(&written),
    }
}

async fn export_ledger(options: &Export) -> Result<(), Failure> {
    let source = &options.source;
    let input: Box<dyn Read> = if options.all_namespaces || source.is_cluster() {
        let cluster = source.access.connect().await?;
        let everywhere = options.all_namespaces;
        Box::new(Cursor::new(if options.traces {
            cluster.list::<FrugalityTrace>(everywhere).await?
        } else {
            cluster.list::<FrugalityTrial>(everywhere).await?
        }))
    } else {
        source.open(if options.traces { "fbtr -A" } else { "fbt -A" })?
    };
    let export = if options.traces {
        export_courses
    } else {
        export
    };
    let exported = export(input, source.name.as_deref(), options.format)?;
    match &options.output {
        Some(path) => std::fs::write(path, exported).map_err(|source| Failure::Write {
            path: path.clone(),
            source,
        }),
        None => print(&exported),
    }
}

/// A reader that has seen enough, such as head, is not a failure.
fn print(text: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Print(error)),
        _ => Ok(()),
    }
}
