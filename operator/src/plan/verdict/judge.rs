//! The verdict of a run, once its ledger allows one.

use frugality_measure::{fortio::Amount, reading::Provenance};

use crate::{
    api::{FrugalityTrial, LevelsOf, MIN_BLOCKS, Reason, Verdict},
    plan::{
        ledger::{Ledger, Next},
        settings::{ERROR, PlannedLook, Settings},
        verdict::{
            answers::answers,
            budgets::{MET_WITHOUT_METER, UNKNOWN_METER, UNKNOWN_MODEL},
            decision::{Decision, verdict},
            figures::figures,
            judgement::{Figures, Judgement, without_figures},
            rounding::rounded,
        },
    },
    text,
};

/// The judgement, once the ledger allows one.
#[must_use]
pub fn judge(settings: &Settings, ledger: &Ledger<'_>) -> Option<Judgement> {
    let at_try = settings.at_try(ledger.try_number());
    let settings = &*at_try;
    // The run ends at the first look that decides. Later trials, measured under budgets that were edited since, are
    // ignored.
    for (index, look) in settings.looks.iter().enumerate() {
        let is_last = index + 1 == settings.looks.len();
        if let Some(judgement) = hopeless(settings, ledger, look.blocks) {
            return Some(judgement);
        }
        match ledger.next_within(settings, look.blocks) {
            Next::Open(_) | Next::Start(_) => return None,
            Next::Failed(trial) => {
                return Some(Judgement {
                    verdict: Verdict::Error,
                    reason: reason_of(trial).unwrap_or_default().to_owned(),
                    message: message_of(trial),
                    figures: None,
                });
            }
            Next::Exhausted(trial) => return Some(exhausted(settings, trial, ledger)),
            Next::Finished => {
                let judgement = decide(settings, ledger, *look);
                if is_last || is_certain(&judgement) {
                    return Some(judgement);
                }
            }
        }
    }
    None
}

/// The judgement of a run whose first `blocks` blocks at each point show that it can have no figures.
fn hopeless(settings: &Settings, ledger: &Ledger<'_>, blocks: usize) -> Option<Judgement> {
    let within = i32::try_from(blocks * settings.points.len()).unwrap_or(i32::MAX);
    let mut entries = ledger.entries().iter();
    let fake = entries
        .find(|e| e.spec.block <= within && reason_of(e) == Some(Reason::MeterFake.as_str()));
    if let Some(fake) = fake {
        return Some(without_figures(
            Verdict::Invalid,
            Reason::MeterFake,
            message_of(fake),
        ));
    }
    // A sweep until errors expects errors, except at the point with the fewest connections.
    let fewest = settings.points.first().map(|point| point.connections);
    let is_asked_for = |e: &FrugalityTrial| {
        let connections = settings.point(&e.spec.point).map(|point| point.connections);
        settings.max_error_ratio.is_some() && connections != fewest
    };
    let failing = (1..=within)
        .flat_map(|block| ledger.valid_in(block))
        .find(|e| successes(e) == Some(0) && !is_asked_for(e));
    if let Some(failing) = failing {
        return Some(without_figures(
            Verdict::Error,
            Reason::NoSuccessfulRequest,
            format!(
                "Candidate {} {}{}{}.",
                failing.spec.candidate,
                settings.kind.rules().never_succeeded(),
                text::at(&failing.spec.point, settings.points.len() > 1),
                answers(failing)
            ),
        ));
    }
    let message = too_low(settings, ledger, blocks)?;
    Some(without_figures(
        Verdict::Invalid,
        Reason::LevelTooLow,
        message,
    ))
}

/// A load level of these blocks whose rate is too low: Fortio would use fewer connections.
fn too_low(settings: &Settings, ledger: &Ledger<'_>, blocks: usize) -> Option<String> {
    let lowest = settings.points.last()?;
    let level = lowest.level?;
    let Amount::DurationSeconds(seconds) = settings.amount else {
        return None;
    };
    let planned = (1..).zip(settings.plan());
    let (rate, entrant) = planned
        .take(blocks * settings.points.len())
        .filter(|(_, planned)| settings.points.get(planned.point) == Some(lowest))
        .find_map(|(block, _)| {
            settings.entrants().into_iter().find_map(|entrant| {
                let rate = ledger.level_rate(settings, block, entrant)?;
                let is_too_low = rate * seconds < 2.0 * f64::from(lowest.connections);
                is_too_low.then_some((rate, entrant))
            })
        })?;
    let of = match settings.levels_of {
        Some(LevelsOf::Common) => "the highest rate of the slowest candidate",
        _ => "the candidate's highest rate",
    };
    Some(format!(
        "{} would get {} {}s/s at {}, {level} % of {of}. That is too low for {} connections and a window of {} s: write fewer load.connections, a longer load.duration, or higher load.sweep.levels.",
        settings.candidate_of(entrant),
        text::all_digits(rate),
        settings.units.one,
        lowest.name,
        lowest.connections,
        text::all_digits(seconds),
    ))
}

/// Whether a look decides. With budgets, a Pass or a Fail decides. Without budgets, a winner or a tie decides. An end that
/// more blocks could not change decides too.
fn is_certain(judgement: &Judgement) -> bool {
    match judgement.reason.parse() {
        Ok(Reason::BudgetWithinUncertainty | Reason::BudgetBelowNoiseFloor) => false,
        Ok(Reason::NoBudgets) => judgement
            .figures
            .as_ref()
            .is_some_and(|figures| figures.tie || figures.winner.is_some()),
        _ => true,
    }
}

fn exhausted(settings: &Settings, trial: &FrugalityTrial, ledger: &Ledger<'_>) -> Judgement {
    without_figures(
        Verdict::Invalid,
        Reason::TooManyVoidAttempts,
        format!(
            "Block {}{} was void {} times, the maximum by spec.trials.maxAttempts. The last void attempt was {}, {}: {}",
            trial.spec.block,
            text::at(&trial.spec.point, settings.points.len() > 1),
            ledger.voids_of(trial.spec.block),
            trial.spec.candidate,
            reason_of(trial).unwrap_or_default(),
            message_of(trial)
        ),
    )
}

fn decide(settings: &Settings, ledger: &Ledger<'_>, look: PlannedLook) -> Judgement {
    if look.blocks < MIN_BLOCKS as usize {
        return without_figures(
            Verdict::Inconclusive,
            Reason::TooFewBlocks,
            format!(
                "{} blocks were measured, and a verdict needs {MIN_BLOCKS}. Write spec.trials.blocks: {MIN_BLOCKS} or more. kubectl get fbt shows the single trials.",
                look.blocks
            ),
        );
    }
    let mut figures = rounded(figures(settings, ledger, look));
    let modelled = figures.provenance == Some(Provenance::Modelled);
    if modelled && settings.gates_on_joules() && !settings.allow_modelled {
        return modelled_not_allowed();
    }
    let Decision {
        verdict,
        reason,
        message,
        about,
    } = verdict(&figures, settings.no_baseline.as_ref());
    figures.about = about;
    let mut parts = Vec::new();
    if figures.tries > 1 {
        parts.push(format!(
            "This is try {} of {} with these settings, decided at an error of {} %. All tries together have an error of {} %.",
            settings.try_number,
            figures.tries,
            text::number(100.0 * settings.claim_error()),
            text::number(100.0 * ERROR)
        ));
    }
    parts.push(message);
    if settings.looks.len() > 1 {
        parts.push(look_text(settings, look, &figures));
    }
    if modelled {
        // A message that says that the accuracy is unknown does not say it again.
        let is_said = parts.iter().any(|part| part.contains(UNKNOWN_MODEL));
        let model = figures.model.filter(|_| !is_said);
        let model = model.map(|it| format!(" ({it})")).unwrap_or_default();
        let caveat = format!("Power is modelled from CPU use{model}, not measured.");
        figures.caveat = Some(caveat.clone());
        parts.push(caveat);
    }
    let is_said = |part: &String| part.contains(UNKNOWN_METER) || part.contains(MET_WITHOUT_METER);
    if has_unknown_meter(&figures) && !parts.iter().any(is_said) {
        parts.push(UNKNOWN_ACCURACY.to_owned());
    }
    for note in &figures.notes {
        // The message may have said some sentences of a note.
        let unsaid = |sentence: &&str| !parts.iter().any(|part| part.contains(sentence.trim_end()));
        let left: String = note.split_inclusive(". ").filter(unsaid).collect();
        if !left.is_empty() {
            parts.push(format!("Note: {}", left.trim_end()));
        }
    }
    Judgement {
        verdict,
        reason: reason.as_str().to_owned(),
        message: parts.join(" "),
        figures: Some(Box::new(figures)),
    }
}

const UNKNOWN_ACCURACY: &str = "The meter reports no accuracy, so the intervals of joules show only the spread between trials. Write relativeUncertainty for the meter.";

/// Whether an instrument reports no accuracy. Modelled joules show no interval.
fn has_unknown_meter(figures: &Figures) -> bool {
    let deciding = figures.deciding.into_iter();
    deciding
        .flat_map(|deciding| {
            figures
                .results
                .iter()
                .filter_map(move |it| it.joules(deciding))
        })
        .filter_map(|joules| joules.expanded)
        .any(|expanded| !expanded.covers_meter && !expanded.repeatability_only)
}

/// The look at which the run ended, with the confidence of the intervals.
fn look_text(settings: &Settings, look: PlannedLook, figures: &Figures) -> String {
    let confidence = |level: f64| text::confidence(1.0 - level);
    let results = figures.results.iter();
    let has_meter = results
        .flat_map(|result| {
            [
                result.gross_joules_per_request,
                result.net_joules_per_request,
            ]
        })
        .flatten()
        .any(|figure| {
            figure
                .expanded
                .is_some_and(|expanded| expanded.covers_meter)
        });
    let of_meter = if has_meter {
        " The meter's part of joule intervals has 95 % at every look, because the meter's error does not change between looks."
    } else {
        ""
    };
    // Without a winner, the shown ratios have a part of the error each.
    let or_more = if figures.winner.is_none() && settings.candidates.len() > 2 {
        " or more"
    } else {
        ""
    };
    format!(
        "Look {} of {}, after {} of at most {} blocks. The intervals have {}, the intervals of ratios and budgets {}{or_more}.{of_meter}",
        look.number,
        settings.looks.len(),
        look.blocks,
        settings.blocks,
        confidence(settings.level),
        confidence(settings.claim_level)
    )
}

/// Modelled joules may not gate unless the spec says so.
#[must_use]
pub fn modelled_not_allowed() -> Judgement {
    without_figures(
        Verdict::Invalid,
        Reason::ModelledPowerNotAllowed,
        "A budget limits energy, and the measured node's power is modelled from CPU use, not measured. Connect a meter, remove the budget's limits on energy, or write spec.energy.allowModelled: true.",
    )
}

fn successes(trial: &FrugalityTrial) -> Option<u64> {
    Some(trial.status.as_ref()?.requests.as_ref()?.successes)
}

fn reason_of(trial: &FrugalityTrial) -> Option<&str> {
    trial.status.as_ref()?.reason.as_deref()
}

fn message_of(trial: &FrugalityTrial) -> String {
    trial
        .status
        .as_ref()
        .and_then(|status| status.message.clone())
        .unwrap_or_default()
}
