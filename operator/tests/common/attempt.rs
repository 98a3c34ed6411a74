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
        world.now + world.manner.operator_ahead,
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

/// Asserts that the attempt passed every check: the plan records its figures.
#[track_caller]
pub(crate) fn assert_measured(plan: &Plan) {
    let record = record(plan);
    assert!(
        record.energy.is_some() && record.requests.is_some(),
        "{:?}",
        record.message
    );
    assert_ne!(record.outcome, Some(Outcome::Void));
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

/// Ends the injector with this termination message.
pub(crate) fn says(observed: &mut Observed, message: &str) {
    let end = Termination {
        exit_code: 0,
        reason: "Completed".into(),
        message: message.into(),
    };
    pod_in(observed, Role::Injector)
        .terminated
        .insert("injector".into(), end);
}

/// The plan at the attempt's end, if the injector's termination message is `message`.
pub(crate) fn said(message: &str) -> Plan {
    changed(&load_over(), |observed| says(observed, message))
}

pub(crate) fn reported(change: impl Fn(&mut InjectionReport)) -> Plan {
    let world = load_over();
    let mut report = world.loads[0].report(1.0);
    change(&mut report);
    said(&report.encode().unwrap())
}

/// The plan that ends the second trial or records its figures, if the database holds `rows` before it.
pub(crate) fn second_trial(world: &mut World, rows: &str) -> Plan {
    world.run_until("the first load", |world| world.loads.len() == 1);
    let first = world.loads[0].trial.clone();
    world.manner.prepared = rows.into();
    next_plan(world, |name, record| {
        name != first && (record.outcome.is_some() || record.energy.is_some())
    })
}

/// The next plan with the outcome of a measured attempt.
pub(crate) fn measured(world: &mut World) -> Plan {
    next_plan(world, |_, record| record.outcome == Some(Outcome::Measured))
}

/// The plan with the outcome of the first attempt, if the injector's termination message is `message`.
pub(crate) fn measured_after(message: &str) -> Plan {
    let mut world = load_over();
    let mut pods = world.slots[0].pods.iter_mut();
    let of_injector = pods.find(|pod| pod.facts.role == Role::Injector.as_str());
    for (_, _, end) in &mut of_injector.unwrap().ends {
        end.message = message.into();
    }
    measured(&mut world)
}

/// The next plan with this record. It is not carried out.
fn next_plan(world: &mut World, is_it: impl Fn(&str, &FrugalityTrialStatus) -> bool) -> Plan {
    let limit = world.now + 3600.0;
    while world.now < limit {
        let slot = world.wait();
        let plan = world.plan(slot);
        if plan
            .record()
            .is_some_and(|(name, record)| is_it(&name, record))
        {
            return plan;
        }
        world.pass(slot);
    }
    panic!("never; {:#?}", world.reasons);
}
