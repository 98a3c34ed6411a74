//! Suspends a benchmark.

use std::ops::ControlFlow::{Break, Continue};

use crate::{
    api::{FrugalityTrial, FrugalityTrialStatus, Outcome, Reason},
    plan::{
        action::{LedgerWrite, Plan},
        context::{Context, SOON_SECONDS, Stage},
        ledger::{Next, record::ended},
        report::{events, status::State},
        settings::Settings,
    },
};

/// Stops a suspended run. The open attempt ends as void, then the operator deletes all objects and releases the
/// locks. A partly measured block begins again later, because its trials must be neighbours in time.
pub(in crate::plan) fn is_not_suspended(context: &Context<'_>, settings: &Settings) -> Stage<()> {
    if !context.benchmark.spec.suspend {
        return Continue(());
    }
    Break(match context.ledger.next(settings) {
        Next::Open(trial) => {
            let record = suspended(context, trial.status.clone().unwrap_or_default());
            suspending(
                context,
                trial,
                &record,
                LedgerWrite::record(trial, record.clone()),
            )
        }
        Next::Start(start) if start.position > 1 => {
            let entry = context.entry(settings, None, &start);
            let record = suspended(context, FrugalityTrialStatus::default());
            let write = LedgerWrite::open(entry.clone(), Some(record.clone()));
            if context.entry_refused().is_some() {
                // Other benchmarks must get the nodes. Each pass tries again to write the entry.
                Plan {
                    ledger: Some(write),
                    ..at_rest(context, settings)
                }
            } else {
                suspending(context, &entry, &record, write)
            }
        }
        _ => at_rest(context, settings),
    })
}

fn suspended(context: &Context<'_>, status: FrugalityTrialStatus) -> FrugalityTrialStatus {
    ended(
        status,
        Outcome::Void,
        Reason::Suspended,
        "the benchmark was suspended",
        context.now_unix_seconds,
    )
}

fn suspending(
    context: &Context<'_>,
    trial: &FrugalityTrial,
    record: &FrugalityTrialStatus,
    write: LedgerWrite,
) -> Plan {
    let mut plan = context.running(
        None,
        Reason::Measuring,
        "suspending: the open block becomes void",
        SOON_SECONDS,
    );
    plan.events.extend(events::of_trial(trial, record, None));
    plan.ledger = Some(write);
    plan
}

fn at_rest(context: &Context<'_>, settings: &Settings) -> Plan {
    let go_on = if context.ledger.is_begun() {
        "measured blocks are kept; set spec.suspend to false to go on"
    } else {
        "nothing has been measured; set spec.suspend to false to begin"
    };
    let left = context.estimate(settings);
    let message = format!("suspended, left: {left}; {go_on}");
    let mut plan = context.report(None, None, &State::Suspended { message });
    context.clear(&mut plan);
    plan
}
