//! What admission can't check of a batch.

use frugality_measure::{batch::NumberPattern, fortio::Amount};

use crate::{
    api::{Batch, FrugalityBenchmarkSpec},
    plan::settings::{error::SettingsError, read::number},
};

/// A batch without a program, at several points or with figures that can't be read.
pub(super) fn check(spec: &FrugalityBenchmarkSpec, rate: Option<f64>) -> Result<(), SettingsError> {
    let Some(batch) = &spec.batch else {
        return Ok(());
    };
    let load = &spec.load;
    let is_one = load.connections.is_none_or(|it| it == 1) && rate.is_none();
    if !is_one || load.requests.is_some() || load.sweep.is_some() {
        return Err(SettingsError::BatchLoad);
    }
    for candidate in &spec.candidates {
        let server = &candidate.server;
        if server.command.is_empty() || server.replicas != 1 || server.peers {
            return Err(SettingsError::BatchCandidate(candidate.name.clone()));
        }
    }
    if let Some(score) = &batch.score {
        pattern("batch.score.pattern", &score.pattern)?;
    }
    if let Some(work) = &batch.work {
        match (&work.pattern, &work.amount) {
            (Some(text), None) => pattern("batch.work.pattern", text)?,
            (None, Some(amount)) if number("batch.work.amount", amount)? > 0.0 => {}
            _ => return Err(SettingsError::BatchWork),
        }
    }
    Ok(())
}

/// The executions of a window, where their number is given.
pub(super) fn amount(batch: Option<&Batch>) -> Option<Amount> {
    let executions = batch?.executions?;
    Some(Amount::Requests(executions.unsigned_abs().into()))
}

fn pattern(field: &'static str, text: &str) -> Result<(), SettingsError> {
    match NumberPattern::new(text) {
        Ok(_) => Ok(()),
        Err(source) => Err(SettingsError::Pattern { field, source }),
    }
}
