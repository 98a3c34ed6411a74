//! Starts the next attempt, or takes the next step of the open one.

mod addresses;
mod before_load;
mod judging;
mod pauses;
mod preparing;
mod restoring;
mod starting;
mod steady;
pub mod step;
mod under_load;

use kube::ResourceExt;

use self::step::OpenAttempt;
use crate::{
    api::{FrugalityTrial, Reason},
    plan::{
        action::{LedgerWrite, Plan},
        context::{BUSY_REQUEUE_SECONDS, Context},
        ledger::{Next, Start},
        placement::nodes::Nodes,
        report::{events, status::State},
        settings::Settings,
    },
};

/// Takes the next step of the open attempt, or starts the next one.
pub(in crate::plan) fn next(context: &Context<'_>, settings: &Settings, nodes: &Nodes) -> Plan {
    match context.ledger.next(settings) {
        Next::Open(trial) => advance(context, settings, nodes, trial),
        Next::Start(start) => begin(context, settings, nodes, &start),
        // The first stage has ended such a run.
        Next::Finished | Next::Failed(_) | Next::Exhausted(_) => context.running(
            Some(nodes),
            Reason::Measuring,
            "judging",
            BUSY_REQUEUE_SECONDS,
        ),
    }
}

fn begin(context: &Context<'_>, settings: &Settings, nodes: &Nodes, start: &Start) -> Plan {
    let trial = context.entry(settings, Some(nodes), start);
    let Some(attempt) = attempt(context, settings, nodes, &trial) else {
        return unknown(context, settings, nodes);
    };
    // The entry is written before the objects, and without it no object is made.
    let step = attempt.step();
    let mut plan = context.running(
        Some(nodes),
        Reason::Measuring,
        &format!("starting {}", trial.name_any()),
        step.again_seconds,
    );
    // Preflight needs its session until the first entry exists.
    plan.watch
        .extend(context.trial_watch(settings, nodes, &trial));
    let record = step.record.as_ref();
    plan.events
        .extend(record.and_then(|record| events::of_trial(&trial, record, Some(&settings.units))));
    plan.create = step.create;
    plan.ledger = Some(LedgerWrite::open(trial, step.record));
    plan
}

fn advance(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
    trial: &FrugalityTrial,
) -> Plan {
    let Some(attempt) = attempt(context, settings, nodes, trial) else {
        return unknown(context, settings, nodes);
    };
    let step = attempt.step();
    let name = trial.name_any();
    let state = State::Running {
        reason: step.waits_because.unwrap_or(Reason::Measuring),
        message: format!("{name}: {}", step.doing),
    };
    let mut plan = context.report(Some(nodes), Some(name), &state);
    if !attempt.waits_without_pods(&step) {
        plan.watch = context.trial_watch(settings, nodes, trial);
    }
    for watch in &mut plan.watch {
        watch.steady = attempt.steady();
    }
    let record = step.record.as_ref();
    plan.events
        .extend(record.and_then(|record| events::of_trial(trial, record, Some(&settings.units))));
    plan.ledger = step.record.map(|record| LedgerWrite::record(trial, record));
    plan.create = step.create;
    plan.delete = step.delete;
    plan.requeue_seconds = step.again_seconds;
    plan
}

/// The attempt of an entry. `None` if the entry names no candidate or no point, or has no rate at a load level.
fn attempt<'a>(
    context: &'a Context<'_>,
    settings: &'a Settings,
    nodes: &'a Nodes,
    trial: &'a FrugalityTrial,
) -> Option<OpenAttempt<'a>> {
    let name = settings.candidate_of(&trial.spec.candidate);
    let mut candidates = context.benchmark.spec.candidates.iter();
    let candidate = candidates.find(|candidate| candidate.name == name)?;
    let point = settings.point(&trial.spec.point)?;
    if point.level.is_some() != trial.spec.rate_per_second.is_some() {
        return None;
    }
    Some(OpenAttempt {
        trial,
        candidate,
        point,
        builder: context.builder(settings),
        measured: nodes.of(&candidate.name)?,
        injector: &nodes.injector,
        observed: context.observed,
        now_unix_seconds: context.now_unix_seconds,
    })
}

/// Ends a run with an entry that can't be carried out. The run's ID covers candidates and load. An entry of this run
/// therefore names an existing candidate and point, and has a rate if the point is a load level.
fn unknown(context: &Context<'_>, settings: &Settings, nodes: &Nodes) -> Plan {
    context.fail(
        settings,
        Some(nodes),
        Reason::InvalidSpec,
        "an entry of the ledger names no candidate or no point, or has no rate at a load level",
    )
}
