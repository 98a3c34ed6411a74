//! Plans and statuses as text for a review.

use std::fmt::Write as _;

use frugality_operator::{
    api::{FrugalityBenchmarkStatus, FrugalityTrialStatus},
    plan::action::{Deletion, LockAction, Plan},
};
use kube::ResourceExt;

use super::T0;

/// A plan as text. `<run>` replaces the run's ID, because this hash changes with every field of the spec.
/// Times are seconds since [`T0`].
pub(crate) fn of_plan(plan: &Plan) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{name:<9}{value}");
    };
    for lock in &plan.locks {
        match lock {
            LockAction::Take {
                node,
                resource_version: Some(version),
            } => line("lock:", format!("take {node}, replacing version {version}")),
            LockAction::Take { node, .. } => line("lock:", format!("take {node} the first time")),
            LockAction::Release {
                name,
                resource_version,
            } => line(
                "lock:",
                format!("release {name} version {resource_version}"),
            ),
        }
    }
    for watch in &plan.watch {
        let meter = watch.meter_ip.as_deref().unwrap_or("no meter");
        let seen = if watch.injector_seen {
            ", injector seen"
        } else {
            ""
        };
        line(
            "watch:",
            format!("{} on {} at {meter}{seen}", watch.trial, watch.node),
        );
    }
    if let Some(trial) = plan.opened() {
        let spec = &trial.spec;
        line(
            "open:",
            format!(
                "{} (block {} position {} attempt {}, {} on {}, injector on {})",
                trial.name_any(),
                spec.block,
                spec.position,
                spec.attempt,
                if spec.candidate.is_empty() {
                    "no candidate"
                } else {
                    &spec.candidate
                },
                spec.measured_node,
                spec.injector_node
            ),
        );
    }
    if let Some((name, record)) = plan.record() {
        line("record:", format!("{name}: {}", of_record(record)));
    }
    for child in &plan.create {
        line("create:", format!("{:?} {}", child.kind(), child.name()));
    }
    for Deletion { kind, name, .. } in &plan.delete {
        line("delete:", format!("{kind:?} {name}"));
    }
    line("again:", format!("in {:.1} s", plan.requeue_seconds));
    for event in &plan.events {
        let kind = if event.warning { "Warning" } else { "Normal" };
        line("event:", format!("{kind} {}: {}", event.reason, event.note));
    }
    text.push_str(&of_status(&plan.status));
    let run = plan.status.run.clone().unwrap_or_default();
    text.replace(&run, "<run>")
}

fn of_record(record: &FrugalityTrialStatus) -> String {
    let mut text = match record.outcome {
        Some(outcome) => format!(
            "{outcome:?} {}: {}",
            record.reason.as_deref().unwrap_or("no reason"),
            record.message.as_deref().unwrap_or("no message")
        ),
        None => "under way".into(),
    };
    for (name, window) in [
        ("idle before", record.idle_before),
        ("window", record.window),
        ("idle after", record.idle_after),
    ] {
        if let Some(window) = window {
            let _ = write!(
                text,
                "\n         {name} {:.3} to {:.3}",
                window.start_unix_seconds - T0,
                window.end_unix_seconds - T0
            );
        }
    }
    if !record.candidate_pods.is_empty() || !record.database_pods.is_empty() {
        let _ = write!(
            text,
            "\n         pods {} and {}",
            record.candidate_pods.join(","),
            record.database_pods.join(",")
        );
    }
    if let Some(columns) = &record.columns {
        let shown = |column: &Option<String>| column.clone().unwrap_or("-".into());
        let _ = write!(
            text,
            "\n         gross/req {} | req/s {} | ms/req {} | errors {}",
            shown(&columns.energy),
            shown(&columns.rate),
            shown(&columns.latency),
            shown(&columns.errors)
        );
    }
    text
}

pub(crate) fn of_status(status: &FrugalityBenchmarkStatus) -> String {
    let mut text = String::new();
    for condition in &status.conditions {
        let _ = writeln!(
            text,
            "  {:<12} {:<8} {}",
            condition.type_, condition.status, condition.reason
        );
    }
    let Some(columns) = &status.columns else {
        return text;
    };
    for (name, value) in [
        ("verdict", &columns.verdict),
        ("winner", &columns.winner),
        ("ratio", &columns.ratio),
        ("energy/req", &columns.energy),
        ("req/s", &columns.rate),
        ("ms/req", &columns.latency),
        ("power", &columns.power),
        ("trials", &columns.trials),
        ("message", &columns.message),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<12} {value}");
        }
    }
    if let Some(progress) = &status.progress {
        let _ = writeln!(
            text,
            "  {:<12} {} void, current {}",
            "progress",
            progress.void_attempts,
            progress.current.as_deref().unwrap_or("-")
        );
    }
    if let Some((measured, injector)) = status
        .measured_node
        .as_ref()
        .zip(status.injector_node.as_ref())
    {
        let shared = if status.shared_node == Some(true) {
            " (shared)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  {:<12} {measured}, injector on {injector}{shared}",
            "measured"
        );
    }
    text
}
