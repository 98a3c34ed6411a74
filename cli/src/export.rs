//! The ledger as a table for other tools: one row per attempt, void attempts included. Their courses as a long table.

mod attempt;
pub mod columns;
pub mod course;

use std::io::Read;

use frugality_operator::api::FrugalityTrial;
use kube::ResourceExt;
use serde::{Serialize, Serializer};

use self::{attempt::ExportedAttempt, columns::COLUMNS};
use crate::items::{Item, collect_items};

/// Form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// An array of flat objects, each with every field; `null` is unknown.
    Json,
    /// RFC 4180: a header, then a line per attempt, ended by CR LF; an empty cell is unknown.
    Csv,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The input is no list and no object, or it can't be read to its end.
    #[error(
        "the input is not understood: {0}. It must be the text that kubectl get fbt -o json prints."
    )]
    Json(#[from] serde_json::Error),
    /// An entry of the ledger can't be read. None is left out silently.
    #[error(
        "entry {name} is not a FrugalityTrial: {source}. Use the version of this program that belongs to the operator's version."
    )]
    Entry {
        /// Its name.
        name: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The course of an attempt can't be read. None is left out silently.
    #[error(
        "{name} is not a FrugalityTrace: {source}. Use the version of this program that belongs to the operator's version."
    )]
    Trace {
        /// Its name.
        name: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The ledger has no attempt of the benchmark. An empty file could be taken for its ledger.
    #[error(
        "there is no attempt of a benchmark {0} here. Check its name, and the namespace (--namespace)."
    )]
    NoAttempts(String),
    /// The CSV could not be written.
    #[error("cannot write CSV: {0}")]
    Csv(#[from] csv::Error),
}

/// The entries in the text of `kubectl get fbt -o json`, a list or one alone, by benchmark and time. With `benchmark`, only the
/// entries of this benchmark.
pub fn export(
    input: impl Read,
    benchmark: Option<&str>,
    format: ExportFormat,
) -> Result<Vec<u8>, ExportError> {
    let wanted = |it: &FrugalityTrial| benchmark.is_none_or(|name| it.spec.benchmark == name);
    let mut trials = collect_items(input, |item| attempt(item).map(|it| it.filter(wanted)))?;
    if let Some(name) = benchmark.filter(|_| trials.is_empty()) {
        return Err(ExportError::NoAttempts(name.to_owned()));
    }
    in_order(&mut trials);
    match format {
        ExportFormat::Json => json(&trials),
        ExportFormat::Csv => csv(&trials),
    }
}

/// Sorts entries by benchmark and time.
pub(crate) fn in_order(trials: &mut [FrugalityTrial]) {
    trials.sort_by_cached_key(|trial| {
        let spec = &trial.spec;
        let created = trial.creation_timestamp().map(|time| time.0);
        (
            trial.namespace(),
            spec.benchmark.clone(),
            created,
            spec.block,
            spec.attempt,
            spec.position,
        )
    });
}

/// The attempt in an entry of the ledger. The entry with the frozen releases of a run has none.
pub(crate) fn attempt(item: Item<'_>) -> Result<Option<FrugalityTrial>, ExportError> {
    let mut entry: FrugalityTrial = item.parse().map_err(|source| ExportError::Entry {
        name: item.name(),
        source,
    })?;
    // No form of an export has them, and they are the largest part.
    entry.metadata.managed_fields = None;
    Ok(Some(entry).filter(|entry| entry.spec.frozen.is_none()))
}

fn json(trials: &[FrugalityTrial]) -> Result<Vec<u8>, ExportError> {
    let rows: Vec<_> = rows(trials).collect();
    let mut text = serde_json::to_vec_pretty(&rows)?;
    text.push(b'\n');
    Ok(text)
}

/// Each attempt as one flat object.
pub(crate) fn rows(trials: &[FrugalityTrial]) -> impl Iterator<Item = impl Serialize> {
    ExportedAttempt::all(trials).map(Row)
}

/// An attempt as one flat object, with the columns in their order.
struct Row<'a>(ExportedAttempt<'a>);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            COLUMNS
                .iter()
                .map(|column| (column.name, (column.cell)(&self.0))),
        )
    }
}

pub(crate) fn csv(trials: &[FrugalityTrial]) -> Result<Vec<u8>, ExportError> {
    written(|writer| {
        writer.write_record(COLUMNS.iter().map(|column| column.name))?;
        for attempt in ExportedAttempt::all(trials) {
            let cells: Vec<_> = COLUMNS
                .iter()
                .map(|column| (column.cell)(&attempt))
                .collect();
            writer.serialize(cells)?;
        }
        Ok(())
    })
}

/// The text of a CSV file.
fn written(
    write: impl FnOnce(&mut csv::Writer<Vec<u8>>) -> Result<(), csv::Error>,
) -> Result<Vec<u8>, ExportError> {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    write(&mut writer)?;
    Ok(writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?)
}
