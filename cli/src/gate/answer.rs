//! What the gate's server answers to Flagger. Pure: the decision itself is [`super::outcome::state`].
//!
//! Flagger takes every status up to 202 as yes, and every other one as no. A 5xx would lose the text: Flagger's client tries
//! such a request again and then reports only that it gave up.

use axum::http::StatusCode;

use super::{
    flagger::HookError,
    outcome::{GateOutcome, GateState},
    wait::GateError,
};
use crate::cluster::ClusterError;

/// What Flagger wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether the release may go on (`confirm-rollout`, `confirm-promotion`).
    Confirm,
    /// Whether the release must be taken back (`rollback`).
    Rollback,
}

/// A status and one line. The line has no figures and no images, because each client that reaches the port can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// 200 for yes, 4xx for no.
    pub(super) status: StatusCode,
    /// The reason.
    pub(super) text: String,
}

impl Answer {
    fn new(status: StatusCode, text: String) -> Self {
        Self { status, text }
    }
}

/// The answer for the state of a benchmark's gate.
pub(super) fn answer(question: Question, state: &GateState, benchmark: &str) -> Answer {
    let outcome = match state {
        GateState::Waiting(_) => {
            let text = format!(
                "Not yet: benchmark {benchmark} has no verdict for the current generation of its spec."
            );
            return Answer::new(StatusCode::CONFLICT, text);
        }
        GateState::Ended(outcome, _) => *outcome,
    };
    let is_yes = match question {
        Question::Confirm => outcome.is_open(),
        Question::Rollback => matches!(
            outcome,
            GateOutcome::Fail | GateOutcome::Invalid | GateOutcome::Error
        ),
    };
    let status = if is_yes {
        StatusCode::OK
    } else {
        StatusCode::FORBIDDEN
    };
    let what = match (question, is_yes) {
        (Question::Confirm, true) => "Open",
        (Question::Confirm, false) => "Closed",
        (Question::Rollback, true) => "Roll back",
        (Question::Rollback, false) => "No rollback",
    };
    let reason = match outcome {
        GateOutcome::OtherImage => format!(
            "benchmark {benchmark} does not measure the image that the Canary releases. Write this image into spec.candidates."
        ),
        GateOutcome::NotJudged => format!(
            "benchmark {benchmark} has no budget for the image that the Canary releases. Write spec.budgets for its candidate."
        ),
        outcome => format!("benchmark {benchmark} has the verdict {outcome:?}."),
    };
    Answer::new(status, format!("{what}: {reason}"))
}

impl From<HookError> for Answer {
    fn from(error: HookError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl From<GateError> for Answer {
    fn from(error: GateError) -> Self {
        match error {
            GateError::Cluster(error) => error.into(),
            error => Self::new(StatusCode::FORBIDDEN, format!("No answer: {error}")),
        }
    }
}

impl From<ClusterError> for Answer {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::NotFound {
                kind,
                name,
                namespace,
            } => Self::new(
                StatusCode::NOT_FOUND,
                format!("No answer: there is no {kind} {name} in namespace {namespace}."),
            ),
            error => Self::new(StatusCode::FAILED_DEPENDENCY, format!("No answer: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(question: Question, state: &GateState) -> u16 {
        answer(question, state, "shop").status.as_u16()
    }

    fn ended(outcome: GateOutcome) -> GateState {
        GateState::Ended(outcome, "12.3 mJ of you/shop:1".to_owned())
    }

    #[test]
    fn only_pass_opens_and_only_a_verdict_against_the_release_rolls_back() {
        for (outcome, confirm, rollback) in [
            (GateOutcome::Pass, 200, 403),
            (GateOutcome::Fail, 403, 200),
            (GateOutcome::Inconclusive, 403, 403),
            (GateOutcome::Invalid, 403, 200),
            (GateOutcome::Error, 403, 200),
            (GateOutcome::NotEnded, 403, 403),
            (GateOutcome::NotJudged, 403, 403),
            (GateOutcome::OtherImage, 403, 403),
            (GateOutcome::Unknown, 403, 403),
        ] {
            let state = ended(outcome);
            assert_eq!(status(Question::Confirm, &state), confirm, "{outcome:?}");
            assert_eq!(status(Question::Rollback, &state), rollback, "{outcome:?}");
        }
        let waiting = GateState::Waiting("Measuring".to_owned());
        for question in [Question::Confirm, Question::Rollback] {
            assert_eq!(status(question, &waiting), 409);
        }
    }

    #[test]
    fn an_answer_is_one_line_without_figures_and_images() {
        for outcome in [
            GateOutcome::Pass,
            GateOutcome::Fail,
            GateOutcome::NotJudged,
            GateOutcome::OtherImage,
        ] {
            for question in [Question::Confirm, Question::Rollback] {
                let text = answer(question, &ended(outcome), "shop").text;
                assert!(text.contains("benchmark shop"), "{text}");
                assert!(!text.contains("mJ") && !text.contains("you/shop"), "{text}");
                assert_eq!(text.lines().count(), 1);
            }
        }
    }

    #[test]
    fn a_cluster_that_can_t_be_asked_is_a_no() {
        let missing = ClusterError::NotFound {
            kind: "canaries".to_owned(),
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
        };
        assert_eq!(Answer::from(missing).status, StatusCode::NOT_FOUND);
        let silent = Answer::from(ClusterError::Silent(8));
        assert_eq!(silent.status, StatusCode::FAILED_DEPENDENCY);
        assert_eq!(Answer::from(HookError::Tag).status, StatusCode::BAD_REQUEST);
    }
}
