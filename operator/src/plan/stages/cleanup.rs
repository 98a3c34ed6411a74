//! Keeps all pods except the attempt's off the run's nodes.

use std::ops::ControlFlow::{Break, Continue};

use kube::ResourceExt;

use crate::{
    api::{FrugalityTrial, Reason, Verdict},
    plan::{
        action::Plan,
        context::{BUSY_REQUEUE_SECONDS, Context, SOON_SECONDS, Stage, is_of_attempt},
        facts::Child,
        ledger::Next,
        names,
        placement::nodes::Nodes,
        settings::Settings,
    },
};

/// Stops a run until the objects of other runs, attempts and benchmarks are gone.
pub(in crate::plan) fn is_done(
    context: &Context<'_>,
    settings: &Settings,
    nodes: &Nodes,
) -> Stage<()> {
    let open = match context.ledger.next(settings) {
        Next::Open(trial) => Some(trial),
        _ => None,
    };
    if let Some(trial) = open
        && let Some(other) = contamination(context, nodes, trial)
    {
        let message = format!("{other} was on the nodes of the attempt");
        return Break(context.void(Some(nodes), trial, Reason::OtherPods, &message));
    }
    stale_objects(context, nodes)?;
    foreign_pods(context, nodes)?;
    if open.is_some() {
        return Continue(());
    }
    terminating(context, nodes)?;
    // Objects of the last attempt could still query the database, which the operator restores for the next attempt.
    last_attempt(context, nodes)?;
    match nodes.closed() {
        Some(closed) => Break(context.not_possible(
            Some(nodes),
            Verdict::Invalid,
            closed.reason,
            closed.message,
        )),
        None => Continue(()),
    }
}

/// An object on the run's nodes that does not belong to the attempt. Only a late write of another operator can
/// create such an object. The first operator that sees the object ends the attempt before it removes the object.
/// Otherwise an operator that did not see the object could record a figure.
fn contamination(context: &Context<'_>, nodes: &Nodes, trial: &FrugalityTrial) -> Option<String> {
    let name = trial.name_any();
    let is_other = |run: &str, other: Option<&String>| {
        run != context.run || other.is_some_and(|other| *other != name)
    };
    let child = || {
        let mut children = context.observed.children.iter();
        let found = children.find(|child| is_other(&child.run, child.trial.as_ref()))?;
        Some(format!("{:?} {}", found.kind, found.name))
    };
    let pod = || {
        let mut pods = context.observed.pods.iter();
        let found = pods.find(|pod| is_other(&pod.run, pod.trial.as_ref()))?;
        Some(format!("Pod {}", found.name))
    };
    let foreign = || {
        let found = *context.foreign_pods(nodes).first()?;
        Some(format!("Pod {found} of another benchmark"))
    };
    child().or_else(pod).or_else(foreign)
}

/// Deletes the objects of other runs, which an earlier spec asked for.
fn stale_objects(context: &Context<'_>, nodes: &Nodes) -> Stage<()> {
    let stale = context.children_where(|child| child.run != context.run);
    let is_stale = |run: &String| run != context.run;
    if stale.is_empty() && !context.observed.pods.iter().any(|pod| is_stale(&pod.run)) {
        return Continue(());
    }
    Break(Plan {
        delete: stale,
        ..wait(
            context,
            nodes,
            Reason::CleaningUp,
            "removing the objects of an earlier spec",
        )
    })
}

fn foreign_pods(context: &Context<'_>, nodes: &Nodes) -> Stage<()> {
    let foreign = context.foreign_pods(nodes);
    if foreign.is_empty() {
        return Continue(());
    }
    let message = format!(
        "waiting for the pods of other benchmarks to end: {}",
        foreign.join(", ")
    );
    Break(wait(context, nodes, Reason::CleaningUp, &message))
}

/// Waits for shared objects that are still being deleted, for example after a suspension.
fn terminating(context: &Context<'_>, nodes: &Nodes) -> Stage<()> {
    let child = || {
        let mut children = context.observed.children.iter();
        let found = children.find(|child| child.deleting && child.trial.is_none())?;
        Some(format!("{:?} {}", found.kind, found.name))
    };
    let pod = || {
        let mut pods = context.observed.pods.iter();
        let found = pods.find(|pod| pod.deleting && pod.trial.is_none())?;
        Some(format!("Pod {}", found.name))
    };
    let Some(leaving) = child().or_else(pod) else {
        return Continue(());
    };
    // The operator deletes the Job that restores the database after each attempt.
    let seed = names::seed_name(&context.benchmark.name_any(), context.run, None);
    let reason = if context.ledger.is_begun() && leaving.contains(&seed) {
        Reason::Measuring
    } else {
        Reason::CleaningUp
    };
    let message = format!("waiting for {leaving} to be removed");
    Break(wait(context, nodes, reason, &message))
}

fn last_attempt(context: &Context<'_>, nodes: &Nodes) -> Stage<()> {
    let is_of_trial = |child: &Child| child.trial.is_some();
    let mut pods = context.observed.pods.iter();
    let has_pods = pods.any(|pod| is_of_attempt(&pod.role));
    if !has_pods && !context.observed.children.iter().any(is_of_trial) {
        return Continue(());
    }
    // There is one Job at a time that restores the database. A measured attempt has removed the earlier one already.
    let benchmark = context.benchmark.name_any();
    let is_seed = |child: &Child| {
        child.is_seed_job(&benchmark, context.run)
            && context.has_attempt_since(child.created_unix_seconds - 1.0)
    };
    Break(Plan {
        delete: context.children_where(|child| is_of_trial(child) || is_seed(child)),
        ..context.running(
            Some(nodes),
            Reason::Measuring,
            "removing the pods of the last attempt",
            // The end of a pod starts a pass at once. Without pods, the other objects are gone in a moment.
            if has_pods {
                BUSY_REQUEUE_SECONDS
            } else {
                SOON_SECONDS
            },
        )
    })
}

fn wait(context: &Context<'_>, nodes: &Nodes, reason: Reason, message: &str) -> Plan {
    context.running(Some(nodes), reason, message, BUSY_REQUEUE_SECONDS)
}
