//! Conditions that must be true before a run begins. The operator does not record these ends: the run begins as
//! soon as the cluster is corrected.

use std::ops::ControlFlow::{Break, Continue};

use frugality_measure::reading::Provenance;
use kube::ResourceExt;

use crate::{
    api::{Reason, Verdict},
    plan::{
        action::{Plan, Wait},
        context::{BUSY_REQUEUE_SECONDS, Context, Stage},
        database,
        facts::{NodeFacts, Session, preflight},
        placement::nodes::Nodes,
        settings::Settings,
        verdict::{modelled_not_allowed, without_figures},
    },
};

/// Interval between questions for the rights of a run that has lost them, in seconds.
const FORBIDDEN_REQUEUE_SECONDS: f64 = 10.0;

/// Stops a run in a namespace where the operator must not run benchmarks. A run that has lost its rights keeps its nodes,
/// because the operator can't delete its pods.
pub(in crate::plan) fn is_namespace_allowed(context: &Context<'_>) -> Stage<()> {
    if !context.observed.namespace_forbidden {
        return Continue(());
    }
    let namespace = context.benchmark.namespace().unwrap_or_default();
    if context.ledger.is_begun() {
        let message = format!(
            "the operator has lost its rights in the namespace {namespace}, so it can neither continue nor end this run; add {namespace} to benchmarkNamespaces of the chart, and the run continues by itself, or delete the benchmark to free its nodes"
        );
        return Break(context.running(
            None,
            Reason::NamespaceNotAllowed,
            &message,
            FORBIDDEN_REQUEUE_SECONDS,
        ));
    }
    let message = format!(
        "the operator has no right to run benchmarks in the namespace {namespace}; add {namespace} to benchmarkNamespaces of the chart, and the run begins by itself"
    );
    let mut plan = context.not_possible(None, Verdict::Error, Reason::NamespaceNotAllowed, message);
    // It has no right to delete anything either.
    plan.delete = Vec::new();
    plan.expire = false;
    plan.due_seconds = None;
    Break(plan)
}

/// Stops a run that must not begin.
pub(in crate::plan) fn is_passed(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
) -> Stage<()> {
    if context.ledger.is_begun() {
        return Continue(());
    }
    if let Some(refusal) = context.refused_for_good() {
        let judgement = without_figures(Verdict::Error, refusal.reason, refusal.message.clone());
        return Break(context.conclude(Some(nodes), judgement));
    }
    let database = context.benchmark.spec.database.as_ref();
    if let Some((reason, message)) =
        database.and_then(|it| database::of(it).missing_in_cluster(context.observed))
    {
        return Break(context.not_possible(Some(nodes), Verdict::Error, reason, message.into()));
    }
    let mut measured = nodes.measured().into_iter();
    match measured.find_map(|node| meter(context, settings, nodes, node)) {
        Some(plan) => Break(plan),
        None => Continue(()),
    }
}

/// Stops the run because of a measured node's meter: no reading, fake power, or modelled power that must not
/// decide.
fn meter(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
    node: &NodeFacts,
) -> Option<Plan> {
    let session = context.observed.sessions.get(&preflight(&node.name));
    let Some(reading) = session.and_then(|session| session.readings.last()) else {
        return Some(without_reading(context, nodes, node, session));
    };
    let judgement = match reading.meter.provenance {
        Provenance::Fake => without_figures(
            Verdict::Invalid,
            Reason::MeterFake,
            format!(
                "the meter on node {} is fake ({}). Switch its development mode off (Kepler: dev.fake-cpu-meter.enabled: false).",
                node.name, reading.meter.source
            ),
        ),
        Provenance::Modelled if settings.gates_on_joules() && !settings.allow_modelled => {
            modelled_not_allowed()
        }
        _ => return None,
    };
    let mut plan = context.conclude(Some(nodes), judgement);
    plan.watch = context.preflight_watches(nodes);
    plan.wait = Wait::Cluster;
    Some(plan)
}

fn without_reading(
    context: &Context<'_>,
    nodes: &Nodes,
    node: &NodeFacts,
    session: Option<&Session>,
) -> Plan {
    let mut plan = match session.and_then(Session::no_reading) {
        Some((reason, error)) => context.not_possible(
            Some(nodes),
            Verdict::Invalid,
            reason,
            format!("the meter on node {} gives no reading: {error}", node.name),
        ),
        None => context.running(
            Some(nodes),
            Reason::Waiting,
            "waiting for the meter's first reading",
            BUSY_REQUEUE_SECONDS,
        ),
    };
    // The reader forgets the meter of a benchmark that rests. Until the next reading, the last state is the best one.
    let has_no_error = session.and_then(Session::no_reading).is_none();
    let queued = context.queued_status().filter(|_| has_no_error);
    let last = context.judged_status().or(queued);
    if let (None, Some(last)) = (plan.status.verdict, last) {
        plan.status = last.clone();
    }
    plan.watch = context.preflight_watches(nodes);
    plan
}
