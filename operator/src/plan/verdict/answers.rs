//! What a candidate answered instead of a success.

use crate::{
    api::{FrugalityTrial, FrugalityTrialStatus, TrialLoad},
    text,
};

/// Most characters about answers in a message, because an object's size is limited.
const MOST_ANSWER_CHARS: usize = 2000;

/// The unexpected answers, and what the script or the runner reported about them, as the end of a sentence.
pub(super) fn answers(trial: &FrugalityTrial) -> String {
    let all: Vec<String> = match trial.status.as_ref().and_then(FrugalityTrialStatus::load) {
        Some(TrialLoad::Fortio(fortio)) => {
            let codes = fortio.codes.iter().map(|(code, count)| match code {
                -1 => format!("{count} × no answer"),
                code => format!("{count} × {code}"),
            });
            codes.collect()
        }
        Some(TrialLoad::K6(k6)) => {
            let codes = k6.requests.codes.iter();
            let codes = codes.map(|(code, count)| match code.as_str() {
                "0" => format!("{count} × no answer"),
                code => format!("{count} × {code}"),
            });
            let checks = k6.checks.iter().filter(|(_, check)| check.failed > 0);
            let checks = checks.map(|(name, check)| format!("{} × not {name}", check.failed));
            let thrown = k6.first_failures.iter().cloned();
            codes.chain(checks).chain(thrown).collect()
        }
        Some(TrialLoad::Batch(batch)) => batch.first_failures.clone(),
        None => Vec::new(),
    };
    if all.is_empty() {
        return String::new();
    }
    text::shortened(&format!(": {}", all.join(", ")), MOST_ANSWER_CHARS)
}
