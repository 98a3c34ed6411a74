//! Every decision, as pure functions from data to data: the input is the facts of a pass, the output is a plan. No
//! function here is async, holds a client or reads a clock.
//!
//! The operator derives all state: the next step follows from the existing objects and from the ledger. The
//! operator only writes the status.
//!
//! Each module uses only the modules before it in this list: `protocol`, `names`, [`facts`] and [`action`];
//! [`baseline`]; [`settings`]; [`ledger`]; [`retention`]; [`images`]; [`placement`]; [`objects`] and [`verdict`]; `database` and
//! [`report`]; `context`; [`stages`]. `trace` uses [`facts`] and [`objects`].

pub mod action;
pub mod baseline;
mod context;
pub mod database;
pub mod facts;
pub mod images;
pub mod ledger;
pub mod names;
pub mod objects;
pub mod placement;
pub mod protocol;
pub mod report;
pub mod retention;
pub mod settings;
pub mod stages;
mod trace;
pub mod verdict;

use std::ops::ControlFlow;

use self::{
    action::{LedgerWrite, Plan, Wait},
    context::{Context, Stage},
    facts::{Config, Observed, Peer},
    ledger::{Ledger, outcome_of, record::ended},
    placement::queue::Queue,
    report::events,
    settings::Settings,
    stages::{
        attempt, cleanup, database as prepare, freeze, judge, place, preflight, refusal, rest, turn,
    },
    verdict::without_figures,
};
use crate::api::{FrozenBaselines, FrugalityBenchmark, FrugalityTrial, Outcome, Reason, Verdict};

/// Decides what to do for one benchmark. `operator_unix_seconds` is the time of the operator's clock.
#[must_use]
pub fn plan(
    benchmark: &FrugalityBenchmark,
    observed: &Observed,
    config: &Config,
    operator_unix_seconds: f64,
) -> Plan {
    // All times below are the cluster's.
    let now_unix_seconds = operator_unix_seconds - observed.operator_ahead_seconds;
    let found = baseline::frozen(benchmark, &observed.trials);
    let frozen_name = baseline::entry_name(benchmark);
    let (releases, is_frozen) = match (found, &benchmark.spec.baseline) {
        (Some(releases), _) => (releases.clone(), true),
        (None, Some(asked)) => (baseline::current(asked, &observed.baselines), false),
        (None, None) => (FrozenBaselines::default(), false),
    };
    let expanded = baseline::expanded(benchmark, &releases);
    let benchmark = &*expanded;
    let run = names::run_id(benchmark);
    let ledger = Ledger::of(&run, &observed.trials);
    let config = &images::kept(config, &ledger);
    let parsed = Settings::parse(&benchmark.spec);
    let me = Peer::of(benchmark);
    let queue = Queue::before(&me, observed);
    let context = Context {
        benchmark,
        observed,
        config,
        now_unix_seconds,
        run: &run,
        ledger: &ledger,
        queue: &queue,
        releases: &releases,
        frozen_name: &frozen_name,
        is_frozen,
        settings: parsed.as_ref().ok(),
    };
    let mut plan = match &parsed {
        Ok(settings) => match stages(&context, settings) {
            ControlFlow::Continue(plan) | ControlFlow::Break(plan) => plan,
        },
        Err(error) => context.conclude(
            None,
            without_figures(Verdict::Invalid, Reason::InvalidSpec, error.to_string()),
        ),
    };
    // A benchmark that holds a lock must release it, so it does not rest.
    if !queue.releases().is_empty() {
        plan.wait = Wait::Time;
    }
    // If this pass ends the run as failed, the next pass reports the end with its verdict.
    let fails = plan
        .record()
        .is_some_and(|(_, record)| record.outcome == Some(Outcome::Failed));
    if !fails || plan.status.end().is_some() {
        plan.events
            .extend(events::of_status(benchmark.current_status(), &plan.status));
        plan.events.extend(events::of_promotion(
            benchmark.current_status(),
            &plan.status,
        ));
    }
    // An edit of the spec may have ended a run with an open attempt. No stage ends that attempt. It is an attempt of this
    // run if the edit starts no other run, for example if fewer blocks decide with other budgets.
    // It ends before another one begins.
    if plan.record().is_none() && !observed.namespace_forbidden {
        let has_ended = plan.status.end().is_some() && observed.unreadable.is_empty();
        let is_left_open = |trial: &&FrugalityTrial| {
            (has_ended || trial.spec.run != run) && outcome_of(trial).is_none()
        };
        let is_attempt = |trial: &&FrugalityTrial| !baseline::is_frozen_entry(trial);
        if let Some(trial) = observed.trials.iter().filter(is_attempt).find(is_left_open) {
            let record = ended(
                trial.status.clone().unwrap_or_default(),
                Outcome::Void,
                Reason::Superseded,
                &if trial.spec.run == run {
                    "an edit of the spec ended the run while this attempt was open".to_owned()
                } else {
                    format!("an edit of the spec started run {run} while this attempt was open")
                },
                now_unix_seconds,
            );
            plan.events.extend(events::of_trial(trial, &record, None));
            if plan.opened().is_some() {
                // Without its entry, an attempt makes no object.
                plan.create.clear();
            }
            plan.ledger = Some(LedgerWrite::record(trial, record));
        }
    }
    // Not before this run has its verdict: until then a person may take back the edit that started it.
    let is_judged =
        plan.status.end().is_some() && parsed.is_ok() && ledger.is_begun() && plan.ledger.is_none();
    if is_judged && observed.unreadable.is_empty() && !observed.namespace_forbidden {
        let keep = usize::try_from(benchmark.spec.runs_to_keep).unwrap_or(1);
        plan.forget = retention::surplus(&run, &observed.trials, keep);
        // More entries are left for the next pass.
        if plan.forget.len() == retention::MOST_PER_PASS {
            plan.wait = Wait::Time;
        }
    }
    plan.trace = parsed
        .as_ref()
        .ok()
        .and_then(|settings| {
            trace::next(plan.record(), observed, (&run, &settings.expected_status))
        })
        .map(Box::new);
    plan.decided_unix_seconds = now_unix_seconds;
    plan
}

/// Runs the stages in their order.
fn stages(context: &Context<'_>, settings: &Settings) -> Stage<Plan> {
    judge::is_undecided(context, settings)?;
    preflight::is_namespace_allowed(context)?;
    rest::is_not_suspended(context, settings)?;
    judge::is_in_time(context, settings)?;
    let nodes = place::nodes(context, settings)?;
    freeze::has_anchor(context, &nodes)?;
    preflight::is_passed(context, settings, &nodes)?;
    turn::has_locks(context, settings, &nodes)?;
    let plan = match measure(context, settings, &nodes) {
        ControlFlow::Continue(plan) | ControlFlow::Break(plan) => plan,
    };
    Stage::Continue(refusal::reported(context, &nodes, plan))
}

/// Runs the stages of a run that holds the locks of its nodes.
fn measure(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &placement::nodes::Nodes,
) -> Stage<Plan> {
    freeze::is_frozen(context, settings, nodes)?;
    refusal::is_not_permanent(context, settings, nodes)?;
    cleanup::is_done(context, settings, nodes)?;
    prepare::is_ready(context, settings, nodes)?;
    Stage::Continue(attempt::next(context, settings, nodes))
}
