//! Chooses the nodes of the run.

use std::ops::ControlFlow::{Break, Continue};

use crate::{
    api::Verdict,
    plan::{
        context::{Context, Stage},
        facts::placement::PlacementRequest,
        ledger::Next,
        placement::nodes::{Nodes, choose},
        settings::Settings,
    },
};

/// The run's nodes; stops a run that can't be placed.
pub(in crate::plan) fn nodes(context: &Context<'_>, settings: &Settings) -> Stage<Nodes> {
    let request = PlacementRequest::of(&context.benchmark.spec);
    let is_of = |entrant: &str, candidate: &str| settings.candidate_of(entrant) == candidate;
    let holds = |node: &str| context.queue.holds(node);
    let misplaced = match choose(
        &request,
        is_of,
        context.observed,
        context.ledger,
        holds,
        context.queue.reservations(),
    ) {
        Ok(nodes) => return Continue(nodes),
        Err(misplaced) => misplaced,
    };
    Break(match context.ledger.next(settings) {
        // A run has begun, and one of its nodes was removed.
        Next::Open(trial) => context.void(None, trial, misplaced.reason, &misplaced.message),
        _ => context.not_possible(None, Verdict::Invalid, misplaced.reason, misplaced.message),
    })
}
