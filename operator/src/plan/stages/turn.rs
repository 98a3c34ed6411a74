//! Checks whether the run may use its nodes now.

use std::ops::ControlFlow::{Break, Continue};

use crate::{
    api::Reason,
    plan::{
        action::{LockAction, Plan, Wait},
        context::{BUSY_REQUEUE_SECONDS, Context, Stage},
        facts::Peer,
        placement::{nodes::Nodes, queue::Admission},
        settings::Settings,
    },
};

/// Interval between passes of a benchmark that waits for its turn and does not rest, in seconds.
const QUEUED_REQUEUE_SECONDS: f64 = 5.0;

/// Stops a run that does not hold the locks of its nodes.
pub(in crate::plan) fn has_locks(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
) -> Stage<()> {
    match context.queue.admission(nodes) {
        Admission::Mine => Continue(()),
        Admission::Take(locks) => Break(take(context, settings, nodes, locks)),
        Admission::WaitFor { name, node } => Break(wait(context, nodes, name, node)),
    }
}

fn take(context: &Context<'_>, settings: &Settings, nodes: &Nodes, locks: Vec<LockAction>) -> Plan {
    let left = context.estimate(settings);
    let mut plan = context.running(
        Some(nodes),
        Reason::Queued,
        &format!("its turn begins: {left}"),
        BUSY_REQUEUE_SECONDS,
    );
    let moves = locks
        .iter()
        .any(|lock| matches!(lock, LockAction::Release { .. }));
    if moves {
        plan.delete = context.all_children();
    }
    if !moves || context.is_clean() {
        plan.locks = locks;
    }
    plan
}

fn wait(context: &Context<'_>, nodes: &Nodes, name: String, node: String) -> Plan {
    let message = format!("waiting for {name}: node {node} runs one benchmark at a time");
    let mut plan = context.running(
        Some(nodes),
        Reason::Queued,
        &message,
        QUEUED_REQUEUE_SECONDS,
    );
    // A run that has begun keeps its nodes. The look at the whole queue finds them in the status.
    let is_in_queue =
        !context.ledger.is_begun() || !Peer::of(context.benchmark).began_on.is_empty();
    if is_in_queue {
        plan.wait = Wait::Turn { name, node };
    }
    plan.delete = context.all_children();
    if context.is_clean() {
        plan.locks = context.queue.releases();
    }
    plan
}
