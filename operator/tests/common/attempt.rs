//! An attempt brought to one of its moments, and what is planned then.

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

/// A world right before the pass that follows the one which said this for the first time.
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

/// What is planned for what the world shows after a change.
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

/// A world in which the injector has ended and the second idle baseline is over.
pub(crate) fn load_over() -> World {
    load_over_of(two())
}

/// The same of a benchmark of one's own.
pub(crate) fn load_over_of(benchmark: FrugalityBenchmark) -> World {
    let mut world = World::new([benchmark]);
    run_to(&mut world, "load is on");
    let over = world.loads[0].end + 3.0 + 5.0 + 2.0;
    world.advance_to(over);
    world
}

/// The pod of the first server that the run makes.
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
    // No figure of a void attempt exists that could be shown.
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

/// The attempt's end with another last word of the injector.
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

/// The end of the second trial, before which the database held these rows.
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
