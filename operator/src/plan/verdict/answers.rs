//! What a candidate answered instead of a success.

use crate::{
    api::{FrugalityTrial, FrugalityTrialStatus, TrialLoad},
    text,
};

/// Most characters about answers in a message, because an object's size is limited.
const MOST_ANSWER_CHARS: usize = 2000;

/// What failed, as the end of a sentence.
pub(super) fn answers(trial: &FrugalityTrial) -> String {
    let load = trial.status.as_ref().and_then(FrugalityTrialStatus::load);
    let all = load.map(TrialLoad::failures).unwrap_or_default();
    if all.is_empty() {
        return String::new();
    }
    text::shortened(&format!(": {}", all.join(", ")), MOST_ANSWER_CHARS)
}
