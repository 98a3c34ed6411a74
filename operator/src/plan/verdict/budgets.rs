//! Limits against figures: decided on the bound of the interval, never on its middle.

use super::deciding_figure;
use crate::{
    api::{BudgetOutcome, BudgetResult, CandidateResult, Figure},
    plan::{
        settings::{Limit, Quantity, Settings},
        text,
    },
};

/// What became of one limit.
pub(super) fn budget(
    settings: &Settings,
    results: &[CandidateResult],
    limit: &Limit,
) -> BudgetResult {
    let figure = results
        .iter()
        .find(|result| result.candidate == limit.candidate)
        .and_then(|result| match limit.quantity {
            Quantity::JoulesPerRequest => deciding_figure(result, settings.deciding),
            Quantity::MillisecondsPerRequest => result.milliseconds_per_request,
            Quantity::RequestsPerSecond => result.requests_per_second,
            Quantity::ErrorRatio => result.error_ratio,
        });
    let outcome = match figure {
        None => BudgetOutcome::Withheld,
        Some(figure) => {
            let (keeps, breaks) = if limit.quantity.is_minimum() {
                (figure.lower > limit.value, figure.upper < limit.value)
            } else if limit.quantity == Quantity::ErrorRatio {
                // A limit of 0 asks for a run without any error, which can be seen; that the true
                // share is 0 can never be shown.
                let is_none_as_asked = limit.value == 0.0 && figure.value == 0.0;
                (
                    is_none_as_asked || figure.upper <= limit.value,
                    figure.lower > limit.value,
                )
            } else {
                (figure.upper < limit.value, figure.lower > limit.value)
            };
            match (keeps, breaks) {
                (true, _) => BudgetOutcome::Met,
                (_, true) => BudgetOutcome::Exceeded,
                _ => BudgetOutcome::Undecided,
            }
        }
    };
    BudgetResult {
        candidate: limit.candidate.clone(),
        limit: limit.quantity.field().to_owned(),
        limit_value: limit.value,
        message: budget_message(settings, limit, figure, outcome),
        figure,
        outcome,
    }
}

fn budget_message(
    settings: &Settings,
    limit: &Limit,
    figure: Option<Figure>,
    outcome: BudgetOutcome,
) -> String {
    let word = match limit.quantity {
        Quantity::JoulesPerRequest => format!("{} ", settings.deciding.word()),
        _ => String::new(),
    };
    let unit = limit.quantity.unit();
    let side = if limit.quantity.is_minimum() {
        "least"
    } else {
        "most"
    };
    let found = figure.map_or_else(
        || format!("no trustworthy figure in {word}{unit}"),
        |f| {
            format!(
                "{} [{}–{}] {word}{unit}",
                text::number(f.value),
                text::number(f.lower),
                text::number(f.upper)
            )
        },
    );
    let relation = match outcome {
        BudgetOutcome::Met => "keeps to",
        BudgetOutcome::Exceeded => "breaks",
        BudgetOutcome::Undecided => "does not decide",
        BudgetOutcome::Withheld => "for",
    };
    let more = match (outcome, figure) {
        (BudgetOutcome::Undecided, Some(f)) => more_blocks(settings.blocks, &f, limit.value),
        _ => String::new(),
    };
    format!(
        "{}: {found} {relation} the budget of at {side} {}{more}",
        limit.candidate,
        text::number(limit.value)
    )
}

/// Blocks that would decide, if figure and spread stayed as they are: the interval's half length
/// falls with the square root of the number of trials.
fn more_blocks(blocks: usize, figure: &Figure, limit: f64) -> String {
    let half = if limit > figure.value {
        figure.upper - figure.value
    } else {
        figure.value - figure.lower
    };
    let needed = blocks as f64 * (half / (limit - figure.value)).powi(2);
    let more = (needed - blocks as f64).ceil().max(1.0);
    if more < 1000.0 {
        format!(" (about {more:.0} more blocks would)")
    } else {
        " (no feasible number of blocks would)".into()
    }
}
