//! Starts the next attempt, or takes the next step of the open one.

mod addresses;
mod before_load;
mod judging;
mod pauses;
mod preparing;
mod restoring;
mod starting;
pub mod step;
mod under_load;

use kube::ResourceExt;

use self::step::Attempt;
use crate::{
    api::{FrugalityTrial, Reason},
    plan::{
        action::{LedgerWrite, Plan},
        context::{BUSY_REQUEUE_SECONDS, Context, SOON_SECONDS},
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
    let mut plan = context.running(
        Some(nodes),
        Reason::Measuring,
        &format!("starting {}", trial.name_any()),
        SOON_SECONDS,
    );
    // Preflight needs its session until the first entry exists.
    plan.watch
        .extend(context.trial_watch(settings, nodes, &trial));
    plan.ledger = Some(LedgerWrite::open(trial));
    plan
}

fn advance(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
    trial: &FrugalityTrial,
) -> Plan {
    let name = settings.candidate_of(&trial.spec.candidate);
    let mut candidates = context.benchmark.spec.candidates.iter();
    let candidate = candidates.find(|candidate| candidate.name == name);
    let measured = candidate.and_then(|candidate| nodes.of(&candidate.name));
    let point = settings.point(&trial.spec.point);
    let point = point.filter(|it| it.level.is_some() == trial.spec.rate_per_second.is_some());
    let (Some(candidate), Some(measured), Some(point)) = (candidate, measured, point) else {
        // The run's ID covers candidates and load. An entry of this run therefore names an existing candidate and
        // point, and has a rate if the point is a load level.
        return context.fail(
            settings,
            Some(nodes),
            Reason::InvalidSpec,
            "an entry of the ledger names no candidate or no point, or has no rate at a load level",
        );
    };
    let step = Attempt {
        trial,
        candidate,
        point,
        builder: context.builder(settings),
        measured,
        injector: &nodes.injector,
        observed: context.observed,
        now_unix_seconds: context.now_unix_seconds,
    }
    .step();
    let name = trial.name_any();
    let state = State::Running {
        reason: step.waits_because.unwrap_or(Reason::Measuring),
        message: format!("{name}: {}", step.doing),
    };
    let mut plan = context.report(Some(nodes), Some(name), &state);
    plan.watch = context.trial_watch(settings, nodes, trial);
    let record = step.record.as_ref();
    plan.events
        .extend(record.and_then(|record| events::of_trial(trial, record, Some(&settings.units))));
    plan.ledger = step.record.map(|record| LedgerWrite::record(trial, record));
    plan.create = step.create;
    plan.delete = step.delete;
    plan.requeue_seconds = step.again_seconds;
    plan
}
