//! Ends of a run that the ledger or the deadline decides.

use std::ops::ControlFlow::{Break, Continue};

use crate::{
    api::{Reason, Verdict},
    plan::{
        action::{Plan, Wait},
        context::{Context, Stage},
        settings::Settings,
        verdict::{Judgement, judge, without_figures},
    },
};

/// Stops a run whose ledger allows a verdict.
pub(in crate::plan) fn is_undecided(context: &Context<'_>, settings: &Settings) -> Stage<()> {
    if let Some(judgement) = unreadable(context) {
        // Another version of the CustomResourceDefinition can make the entry readable.
        return Break(Plan {
            wait: Wait::Cluster,
            ..context.conclude(None, judgement)
        });
    }
    match judge(settings, context.ledger) {
        Some(judgement) => Break(context.conclude(None, judgement)),
        None => Continue(()),
    }
}

/// An entry of this run that can't be read. Its contents are unknown, so the other entries must not give a verdict.
fn unreadable(context: &Context<'_>) -> Option<Judgement> {
    let is_own = |run: &Option<String>| run.as_deref().is_none_or(|run| run == context.run);
    let mut entries = context.observed.unreadable.iter();
    let entry = entries.find(|entry| is_own(&entry.run) || entry.name == context.frozen_name)?;
    Some(without_figures(
        Verdict::Error,
        Reason::LedgerUnreadable,
        format!(
            "the ledger's entry {} can't be read: {}; run the version of Frugality that wrote it, or start another run with another number in spec.rerun",
            entry.name, entry.error
        ),
    ))
}

/// Stops a run if its deadline has passed since the start of its turn.
pub(in crate::plan) fn is_in_time(context: &Context<'_>, settings: &Settings) -> Stage<()> {
    let started = context.turn_unix_seconds();
    let is_late = |started: f64| context.now_unix_seconds - started > settings.deadline_seconds;
    let refusal = context.entry_refused();
    // The end is in the status alone, and the turn is over.
    let has_ended = refusal.is_some() && context.has_ended_with(Reason::DeadlineExceeded);
    if !has_ended && !started.is_some_and(is_late) {
        return Continue(());
    }
    let message = format!(
        "no verdict {} after its turn began. Write a longer spec.deadline, or fewer blocks or points.",
        context.benchmark.spec.deadline
    );
    let plan = context.fail(settings, None, Reason::DeadlineExceeded, &message);
    let Some(refusal) = refusal.filter(|_| plan.opened().is_some()) else {
        return Break(plan);
    };
    // Other benchmarks must get the nodes. Each pass tries again to write the entry.
    let message = format!("{message}; {}", refusal.message);
    let ended = without_figures(Verdict::Error, Reason::DeadlineExceeded, message);
    Break(Plan {
        ledger: plan.ledger,
        ..context.conclude(None, ended)
    })
}
