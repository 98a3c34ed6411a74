//! Objects that the API server refused to create.

use std::ops::ControlFlow::{Break, Continue};

use crate::{
    api::{Outcome, Reason},
    plan::{
        action::Plan,
        context::{Context, Stage},
        placement::nodes::Nodes,
        report::status::State,
        settings::Settings,
    },
};

/// Interval between tries to create an object that was refused, in seconds.
const REFUSED_REQUEUE_SECONDS: f64 = 5.0;

/// Stops a run if the API server permanently refused one of its objects.
pub(in crate::plan) fn is_not_permanent(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
) -> Stage<()> {
    match context.refused_for_good() {
        Some(refusal) => {
            Break(context.fail(settings, Some(nodes), refusal.reason, &refusal.message))
        }
        None => Continue(()),
    }
}

/// Returns the same plan. If the plan tries again to create an object or an entry that was refused, its conditions say so.
pub(in crate::plan) fn reported(context: &Context<'_>, nodes: &Nodes, mut plan: Plan) -> Plan {
    let creates = plan.opened().is_some() || !plan.create.is_empty();
    let opens_again = plan.opened().is_some() && context.entry_refused().is_some();
    let tries_again = opens_again || (creates && plan.record().is_none());
    let Some(refusal) = context.observed.refused.as_ref().filter(|_| tries_again) else {
        return plan;
    };
    let until = match refusal.reason {
        Reason::QuotaExceeded => "it has room",
        _ => "it is accepted",
    };
    let end = plan
        .record()
        .filter(|(_, record)| record.outcome == Some(Outcome::Failed))
        .and_then(|(_, record)| record.message.as_ref())
        .map_or_else(String::new, |message| {
            format!(". Then the run ends: {message}")
        });
    let state = State::Running {
        reason: refusal.reason,
        message: format!("{}; waiting until {until}{end}", refusal.message),
    };
    plan.status = context.report(Some(nodes), None, &state).status;
    plan.requeue_seconds = REFUSED_REQUEUE_SECONDS;
    plan
}
