//! Two benchmarks that have ended, side by side: what changed, and whether their figures may be compared.

mod figures;
mod settings;
mod side;

use std::path::PathBuf;

use frugality_operator::api::{FrugalityBenchmark, FrugalityTrial, LABEL_BENCHMARK_UID};

use self::{
    settings::{Change, changes},
    side::Side,
};
use crate::{
    cluster::{Access, ClusterError},
    input::{InputError, InputSource},
    items::for_each_item,
    table::{Table, TableStyle, paragraphs},
};

/// Help below the options.
pub const HELP: &str = "\
Prints what differs between two benchmarks: images by digest, node, kernel, meter, load, database. The figures follow side by
side. If a difference changes the meaning of a figure, no figures are printed. They show a trend and decide nothing: there is no ratio. To
decide, measure both images in the same blocks: kubectl frugality run NEW --against OLD.

A file must have one benchmark and its ledger: kubectl get fb,fbt -o json, in a namespace with one benchmark.

Exit codes:
   0  the figures are printed
  17  the figures may not be compared
   1  a benchmark can't be read, or has no result
   2  the command line is wrong

Examples:
  kubectl frugality compare shop-1-2 shop-1-3 --namespace shop
  kubectl frugality compare --filename monday.json --filename tuesday.json";

/// Exit code if the figures may not be compared.
pub const NOT_COMPARABLE: u8 = 17;
/// What stored figures are worth.
const TREND: &str = "± is the interval over the trials of one run; summarize lists its parts. Stored figures show a trend and decide nothing. Between two runs, a node can change by more than the intervals show, so no ratio is printed. To decide, measure both in the same blocks: kubectl frugality run NEW --against OLD.";

/// The options of `kubectl frugality compare`.
#[derive(Clone, Debug, clap::Args)]
pub struct Compare {
    /// Two benchmarks of the namespace.
    #[arg(num_args = 2, value_names = ["A", "B"], required_unless_present = "filename")]
    names: Vec<String>,
    /// File with a benchmark and its ledger, as kubectl get fb,fbt -o json prints them. Write it twice.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["names", "access", "place"])]
    filename: Vec<PathBuf>,
    /// The cluster.
    #[command(flatten)]
    access: Access,
    /// The tables.
    #[command(flatten)]
    style: TableStyle,
}

/// Why two benchmarks are not next to each other.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The cluster refused.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A file can't be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// One file, or three.
    #[error("--filename was given {0} times: write it twice, once per benchmark")]
    Files(usize),
    /// No benchmark in a file, or several.
    #[error("{0} has {1} benchmarks: it must have one, with its ledger")]
    Benchmarks(String, usize),
    /// Not understood.
    #[error(
        "{0} is not understood: {1}. It must be what kubectl get fb,fbt -o json prints, of this version."
    )]
    NotUnderstood(String, serde_json::Error),
    /// No result.
    #[error("{0} has no result yet. `kubectl frugality watch` follows it.")]
    NotEnded(String),
    /// Ended without figures.
    #[error("{0} ended without figures. `kubectl describe fb {0}` has the reason.")]
    NoFigures(String),
}

impl Compare {
    /// The text, and whether the figures may be compared.
    pub async fn run(&self) -> Result<(String, bool), CompareError> {
        let [one, other] = if self.filename.is_empty() {
            self.of_cluster().await?
        } else {
            let [one, other] = self.filename.as_slice() else {
                return Err(CompareError::Files(self.filename.len()));
            };
            [of_file(one)?, of_file(other)?]
        };
        for side in [&one, &other] {
            if !side.benchmark.is_complete() {
                return Err(CompareError::NotEnded(side.name.clone()));
            }
            let status = side.benchmark.current_status();
            if status.is_none_or(|status| status.results.is_empty()) {
                return Err(CompareError::NoFigures(side.name.clone()));
            }
        }
        Ok(comparison(&one, &other, self.style))
    }

    async fn of_cluster(&self) -> Result<[Side; 2], CompareError> {
        let cluster = self.access.connect().await?;
        let mut sides = Vec::new();
        for name in &self.names {
            let text = cluster.get::<FrugalityBenchmark>(name).await?;
            let not_understood = |error| CompareError::NotUnderstood(name.clone(), error);
            let benchmark: FrugalityBenchmark =
                serde_json::from_str(&text).map_err(not_understood)?;
            let uid = benchmark.metadata.uid.clone().unwrap_or_default();
            let selector = format!("{LABEL_BENCHMARK_UID}={uid}");
            let trials = cluster.labelled::<FrugalityTrial>(&selector).await?;
            sides.push(Side::new(name.clone(), benchmark, trials));
        }
        <[Side; 2]>::try_from(sides).map_err(|sides| CompareError::Files(sides.len()))
    }
}

fn of_file(path: &std::path::Path) -> Result<Side, CompareError> {
    let source = InputSource {
        filename: Some(path.to_owned()),
        ..InputSource::default()
    };
    let file = path.display().to_string();
    let mut benchmarks: Vec<FrugalityBenchmark> = Vec::new();
    let mut trials: Vec<FrugalityTrial> = Vec::new();
    for_each_item(source.open("fb,fbt")?, |item| {
        match item.kind().as_str() {
            "FrugalityBenchmark" => benchmarks.push(item.parse()?),
            "FrugalityTrial" => trials.push(item.parse()?),
            _ => {}
        }
        Ok(())
    })
    .map_err(|error| CompareError::NotUnderstood(file.clone(), error))?;
    let count = benchmarks.len();
    let [benchmark] = <[FrugalityBenchmark; 1]>::try_from(benchmarks)
        .map_err(|_| CompareError::Benchmarks(file, count))?;
    let name = benchmark.metadata.name.clone().unwrap_or_default();
    Ok(Side::new(name, benchmark, trials))
}

/// Where the power of a side's figures is from, and what a reader of them must know.
fn remarks(side: &Side, name: &str) -> Vec<String> {
    let Some(status) = side.benchmark.current_status() else {
        return Vec::new();
    };
    let provenance = status.provenance.as_deref().unwrap_or("of unknown source");
    let meter = status.meter.as_deref().unwrap_or("an unknown meter");
    let power = format!("power is {}, by {meter}", provenance.to_lowercase());
    std::iter::once(&power)
        .chain(&status.notes)
        .map(|it| format!("{name}: {it}"))
        .collect()
}

/// The text, and whether the figures may be compared. Pure.
fn comparison(one: &Side, other: &Side, style: TableStyle) -> (String, bool) {
    let changes = changes(one, other);
    let [left, right] = side::headings(one, other);
    let table = Table::of(&changes)
        .text("WHAT", |it: &&Change| it.what.clone())
        .text(left.clone(), |it| it.one.clone())
        .text(right.clone(), |it| it.other.clone());
    let listed = table
        .print(style)
        .unwrap_or_else(|| "Nothing is known to differ.\n".to_owned());
    let reasons: Vec<String> = changes
        .iter()
        .filter_map(|it| Some(format!("{}: {}", it.what, it.forbids?)))
        .chain(side::unknown(one, other))
        .collect();
    let is_comparable = reasons.is_empty();
    let rest = if is_comparable {
        let figures = figures::table(one, other, [left, right]);
        let figures = figures.map(|it| it.print(style)).unwrap_or_default();
        let sides = [one, other].into_iter().zip(side::headings(one, other));
        let remarks = sides.flat_map(|(side, name)| remarks(side, &name));
        let remarks = paragraphs(remarks.chain([TREND.to_owned()]));
        format!("{figures}\n{remarks}")
    } else {
        format!("The figures may not be compared:\n{}", paragraphs(reasons))
    };
    (format!("{listed}\n{rest}"), is_comparable)
}
