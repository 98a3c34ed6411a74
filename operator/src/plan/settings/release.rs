//! The comparison with the release before. The spec here has the release as a candidate, if it exists.

use super::error::{SettingsError, no_candidate};
use crate::api::{ANCHOR, BASELINE, FrugalityBenchmarkSpec, WhenMissing};

/// A release that did not exist when the run got its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoBaseline {
    /// Name of the FrugalityBaseline.
    pub name: String,
    /// Verdict if all other budgets are met.
    pub verdict: WhenMissing,
}

/// Admission refuses what this function refuses. The check is for an object that was stored before admission had the
/// rules.
pub(super) fn no_baseline(
    spec: &FrugalityBenchmarkSpec,
) -> Result<Option<NoBaseline>, SettingsError> {
    let Some(asked) = &spec.baseline else {
        return Ok(None);
    };
    let count = |name: &str| spec.candidates.iter().filter(|c| c.name == name).count();
    if let Some(taken) = [BASELINE, ANCHOR].into_iter().find(|name| count(name) > 1) {
        return Err(SettingsError::ReleaseName(taken));
    }
    if let Some(name) = &asked.candidate
        && count(name) == 0
    {
        return Err(no_candidate("baseline.candidate", name));
    }
    if spec
        .candidates
        .iter()
        .any(|c| c.measured_node_selector.is_some())
    {
        return Err(SettingsError::ReleaseOnOneNode);
    }
    Ok((count(BASELINE) == 0).then(|| NoBaseline {
        name: asked.name.clone(),
        verdict: asked.when_missing,
    }))
}
