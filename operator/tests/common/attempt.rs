//! Brings an attempt to a given moment, and returns the plan at that moment.

use frugality_measure::report::InjectionReport;
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrialStatus, LABEL_TRIAL, Outcome, Role},
    plan::{
        action::{ChildObject, Plan},
        facts::{Observed, Termination},
        plan,
    },
};
use k8s_openapi::api::core::v1::PodSpec;
use kube::ResourceExt;

use super::{manner::pod_in, two, world::World};

/// A world just before the next pass after the status first contained the message `doing`.
pub(crate) fn after(doing: &str) -> World {
    let mut world = World::new([two()]);
    run_to(&mut world, doing);
    world
}

pub(crate) fn run_to(world: &mut World, doing: &str) {
    world.run_until(doing, |world| {
        let status = world.slots[0].benchmark.status.as_ref();
        status
            .and_then(|status| status.columns.as_ref()?.message.as_ref())
            .is_some_and(|message| message.contains(doing))
    });
    world.wait();
}

/// The plan for the observed world after `change`.
pub(crate) fn changed(world: &World, change: impl Fn(&mut Observed)) -> Plan {
    let mut observed = world.observed(0);
    change(&mut observed);
    plan(
        &world.slots[0].benchmark,
        &observed,
        &world.config,
        world.now,
    )
}

/// A world after the injector's end and after the second idle baseline.
pub(crate) fn load_over() -> World {
    load_over_of(two())
}

/// The same as [`load_over`] for another benchmark.
pub(crate) fn load_over_of(benchmark: FrugalityBenchmark) -> World {
    let mut world = World::new([benchmark]);
    run_to(&mut world, "load is on");
    let over = world.loads[0].end + 3.0 + 5.0 + 2.0;
    world.advance_to(over);
    world
}

/// The pod of the first server that the run creates.
pub(crate) fn first_server(world: &mut World) -> PodSpec {
    loop {
        let slot = world.wait();
        let mut created = world.pass(slot).create.into_iter();
        let server = created.find_map(|child| match child {
            ChildObject::Deployment(server) if server.labels().contains_key(LABEL_TRIAL) => {
                server.spec?.template.spec
            }
            _ => None,
        });
        if let Some(server) = server {
            return server;
        }
    }
}

pub(crate) fn record(plan: &Plan) -> &FrugalityTrialStatus {
    plan.record().unwrap().1
}

#[track_caller]
pub(crate) fn assert_void(plan: &Plan, reason: &str) {
    let record = record(plan);
    assert_eq!(
        (record.outcome, record.reason.as_deref()),
        (Some(Outcome::Void), Some(reason)),
        "{:?}",
        record.message
    );
    // A void attempt has no figures, so a table can't show one.
    assert_eq!(
        (&record.energy, &record.requests, &record.columns),
        (&None, &None, &None)
    );
    assert_eq!(plan.status.verdict, None);
    assert!(
        plan.events
            .iter()
            .any(|event| event.warning && event.reason == reason)
    );
}

/// The plan at the attempt's end, if the injector's termination message is `message`.
pub(crate) fn said(message: &str) -> Plan {
    changed(&load_over(), |observed| {
        let end = Termination {
            exit_code: 0,
            reason: "Completed".into(),
            message: message.into(),
        };
        pod_in(observed, Role::Injector)
            .terminated
            .insert("injector".into(), end);
    })
}

pub(crate) fn reported(change: impl Fn(&mut InjectionReport)) -> Plan {
    let world = load_over();
    let mut report = world.loads[0].report(1.0);
    change(&mut report);
    said(&report.encode().unwrap())
}

/// The plan at the end of the second trial, if the database held `rows` before the trial.
pub(crate) fn second_trial(world: &mut World, rows: &str) -> Plan {
    world.run_until("the second load", |world| world.loads.len() == 2);
    world.advance_to(world.loads[1].end + 11.0);
    changed(world, |observed| {
        let end = Termination {
            message: rows.into(),
            ..Termination::default()
        };
        pod_in(observed, Role::Injector)
            .terminated
            .insert("prepare".into(), end);
    })
}
