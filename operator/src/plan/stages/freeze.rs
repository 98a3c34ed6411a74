//! Freezes the releases that a run measures against, when the run has its nodes.

use std::ops::ControlFlow::{Break, Continue};

use crate::{
    api::{FrozenBaseline, FrozenBaselines, FrugalityTrialStatus, Reason, Verdict},
    plan::{
        action::LedgerWrite,
        context::{Context, SOON_SECONDS, Stage},
        placement::nodes::Nodes,
        settings::Settings,
    },
    time,
};

/// Stops a run whose anchor does not exist. The operator does not record this end: the run begins as soon as the
/// anchor is created.
pub(in crate::plan) fn has_anchor(context: &Context<'_>, nodes: &Nodes) -> Stage<()> {
    let asked = context.benchmark.spec.baseline.as_ref();
    let anchor = asked.and_then(|asked| asked.anchor.as_ref());
    let missing = anchor.filter(|_| !context.is_frozen && context.releases.anchor.is_none());
    let Some(name) = missing else {
        return Continue(());
    };
    Break(context.not_possible(
        Some(nodes),
        Verdict::Invalid,
        Reason::NoAnchor,
        format!(
            "There is no FrugalityBaseline {name} in the namespace, and spec.baseline.anchor names it. Create it, and the run begins."
        ),
    ))
}

/// Stops a pass that must first write the releases into the ledger.
pub(in crate::plan) fn is_frozen(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
) -> Stage<()> {
    let Some(asked) = &context.benchmark.spec.baseline else {
        return Continue(());
    };
    if context.is_frozen {
        return Continue(());
    }
    let message = words(&asked.name, context.releases);
    let mut plan = context.running(Some(nodes), Reason::Waiting, &message, SOON_SECONDS);
    plan.ledger = Some(LedgerWrite::Open {
        entry: Box::new(context.frozen_entry(settings, nodes)),
        record: Some(Box::new(FrugalityTrialStatus {
            reason: Some(Reason::BaselineFrozen.as_str().to_owned()),
            message: Some(message),
            finished_at: time::rfc3339(context.now_unix_seconds),
            ..FrugalityTrialStatus::default()
        })),
    });
    Break(plan)
}

fn words(name: &str, releases: &FrozenBaselines) -> String {
    let image = |release: &FrozenBaseline| release.candidate.server.image.clone();
    let baseline = releases.baseline.as_ref().map_or_else(
        || format!("no FrugalityBaseline {name} exists"),
        |release| format!("baseline {}", image(release)),
    );
    let anchor = releases.anchor.as_ref();
    let anchor = anchor.map_or_else(String::new, |it| format!(", anchor {}", image(it)));
    format!("the releases of this run are fixed: {baseline}{anchor}")
}
