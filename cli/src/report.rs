//! A report of one benchmark: a page for people, or a form for tools.

mod chart;
mod command;
mod input;
mod page;

pub use self::{
    command::{Format, HELP, Report},
    input::{Objects, ReportError},
};
use crate::{
    export::{csv, rows},
    gate::report::{verdict_junit, verdict_markdown},
    summarize::summary,
};

/// The report in this form.
pub fn report(objects: &Objects, format: Format) -> Result<Vec<u8>, ReportError> {
    let benchmark = &objects.benchmark;
    Ok(match format {
        Format::Html => page::html(objects)?.into_bytes(),
        Format::Markdown => verdict_markdown(benchmark).into_bytes(),
        Format::Text => summary(benchmark).into_bytes(),
        Format::Junit => verdict_junit(benchmark)?.into_bytes(),
        Format::Csv => csv(&objects.trials)?,
        Format::Json => json(objects)?,
    })
}

/// The benchmark as the API server has it, and the attempts as the command export writes them.
fn json(objects: &Objects) -> Result<Vec<u8>, ReportError> {
    let ledger: Vec<_> = rows(&objects.trials).collect();
    let all = serde_json::json!({ "benchmark": objects.source, "ledger": ledger });
    let mut text = serde_json::to_vec_pretty(&all)?;
    text.push(b'\n');
    Ok(text)
}
