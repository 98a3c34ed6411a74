//! A report of one benchmark: a page for people, or a form for tools.

mod chart;
mod command;
mod input;
mod page;

pub use self::{
    command::{HELP, ReportFormat, ReportOptions},
    input::{Objects, ReportCommandError},
};
use crate::{
    export::{csv, rows},
    gate::report::{verdict_junit, verdict_markdown},
    summarize::summary,
};

/// The report in this form.
pub fn report(objects: &Objects, format: ReportFormat) -> Result<Vec<u8>, ReportCommandError> {
    let benchmark = &objects.benchmark;
    Ok(match format {
        ReportFormat::Html => page::html(objects)?.into_bytes(),
        ReportFormat::Markdown => verdict_markdown(benchmark).into_bytes(),
        ReportFormat::Text => summary(benchmark).into_bytes(),
        ReportFormat::Junit => verdict_junit(benchmark)?.into_bytes(),
        ReportFormat::Csv => csv(&objects.trials)?,
        ReportFormat::Json => json(objects)?,
    })
}

/// The benchmark as the API server has it, and the attempts as the command export writes them.
fn json(objects: &Objects) -> Result<Vec<u8>, ReportCommandError> {
    let ledger: Vec<_> = rows(&objects.trials).collect();
    let all = serde_json::json!({ "benchmark": objects.source, "ledger": ledger });
    let mut text = serde_json::to_vec_pretty(&all)?;
    text.push(b'\n');
    Ok(text)
}
