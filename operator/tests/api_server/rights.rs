//! Who may do what, by the roles of the chart: the operator no more than it needs, no user anything with the ledger.

use std::collections::BTreeSet;

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial},
    plan::action::{LedgerWrite, Plan},
};
use k8s_openapi::api::{
    authorization::v1::{
        ResourceAttributes, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
        SubjectAccessReview, SubjectAccessReviewSpec,
    },
    core::v1::{Pod, Secret},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    server::{SERVICE_ACCOUNTS, SYSTEM, User, server},
    stage::{Stage, plan_of},
};

/// Whether the operator may do this, such as `create pods/exec`; in every namespace, if none is given.
async fn may(what: &str, namespace: Option<&str>) -> bool {
    let (verb, target) = what.split_once(' ').unwrap();
    let (target, name) = target
        .split_once(':')
        .map_or((target, None), |(target, name)| (target, Some(name)));
    let (target, subresource) = target
        .split_once('/')
        .map_or((target, None), |(target, sub)| (target, Some(sub)));
    let (resource, group) = target.split_once('.').unwrap_or((target, ""));
    let text = |text: &str| Some(text.to_owned());
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(User::Operator.name()),
            groups: Some(vec![
                SERVICE_ACCOUNTS.into(),
                format!("{SERVICE_ACCOUNTS}:{SYSTEM}"),
                "system:authenticated".into(),
            ]),
            resource_attributes: Some(ResourceAttributes {
                verb: text(verb),
                resource: text(resource),
                group: text(group),
                subresource: subresource.and_then(text),
                name: name.and_then(text),
                namespace: namespace.and_then(text),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api = Api::<SubjectAccessReview>::all(server().client(User::Admin));
    let answer = api.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}

#[tokio::test]
async fn the_operator_may_not() {
    for what in [
        "get secrets",
        "list secrets",
        "watch secrets",
        "update secrets",
        "delete secrets",
        "create pods",
        "delete pods",
        "create pods/exec",
        "get pods/log",
        "get nodes/proxy",
        "update nodes",
        "create configmaps",
        "update frugalitybenchmarks.frugality.dev",
        "delete frugalitybaselines.frugality.dev",
        "delete frugalitytrials.frugality.dev",
        "create clusterrolebindings.rbac.authorization.k8s.io",
        "impersonate users",
        "* *",
    ] {
        assert!(!may(what, None).await, "{what}");
        assert!(!may(what, Some(SYSTEM)).await, "{what}");
    }
}

#[tokio::test]
async fn the_operator_may_do_what_it_does() {
    for what in [
        "create jobs.batch",
        "create secrets",
        // For spec.ttlAfterFinished.
        "delete frugalitybenchmarks.frugality.dev",
        "patch frugalitytrials.frugality.dev/status",
        "list pods",
        "list nodes",
        "list endpointslices.discovery.k8s.io",
        "watch frugalitybenchmarks.frugality.dev",
        // For spec.baseline.
        "get frugalitybaselines.frugality.dev",
        "create frugalitybaselines.frugality.dev",
        "update frugalitybaselines.frugality.dev",
        "update frugalitybaselines.frugality.dev/status",
    ] {
        assert!(may(what, None).await, "{what}");
    }
}

#[tokio::test]
async fn the_operator_locks_nodes_in_its_own_namespace_alone() {
    for verb in ["create", "update", "delete"] {
        let what = format!("{verb} leases.coordination.k8s.io");
        assert!(may(&what, Some(SYSTEM)).await);
        assert!(!may(&what, Some("kube-system")).await);
        assert!(!may(&what, None).await);
    }
}

#[tokio::test]
async fn the_operator_sees_the_meter_s_daemon_set_and_no_other() {
    assert!(may("get daemonsets.apps:frugality-meter", Some(SYSTEM)).await);
    assert!(!may("get daemonsets.apps:another", Some(SYSTEM)).await);
    assert!(!may("list daemonsets.apps", Some(SYSTEM)).await);
    assert!(!may("get daemonsets.apps:frugality-meter", Some("kube-system")).await);
}

/// All that a user may do in a namespace, as the API server says.
async fn rights(user: User, namespace: &str) -> BTreeSet<(String, String, String)> {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(namespace.to_owned()),
        },
        ..SelfSubjectRulesReview::default()
    };
    let api = Api::<SelfSubjectRulesReview>::all(server().client(user));
    let status = api
        .create(&PostParams::default(), &review)
        .await
        .unwrap()
        .status
        .unwrap();
    assert!(!status.incomplete);
    let mut rights = BTreeSet::new();
    for rule in status.resource_rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    rights.insert((group.clone(), resource.clone(), verb.clone()));
                }
            }
        }
    }
    rights
}

#[tokio::test]
async fn the_roles_give_benchmarks_and_the_sight_of_the_ledger_and_nothing_else() {
    let stage = Stage::new().await;
    let basic = rights(User::Stranger, &stage.namespace).await;
    let right = |resource: &str, verb: &str| {
        (
            "frugality.dev".to_owned(),
            resource.to_owned(),
            verb.to_owned(),
        )
    };
    let read = ["get", "list", "watch"];
    let write = ["create", "delete", "deletecollection", "patch", "update"];
    let mut viewer = BTreeSet::new();
    for verb in read {
        viewer.insert(right("frugalitybenchmarks", verb));
        viewer.insert(right("frugalitytrials", verb));
        viewer.insert(right("frugalitybaselines", verb));
    }
    let mut editor = viewer.clone();
    editor.extend(write.map(|verb| right("frugalitybenchmarks", verb)));
    editor.extend(write.map(|verb| right("frugalitybaselines", verb)));
    for (user, expected) in [(User::Viewer, viewer), (User::Editor, editor)] {
        let given: BTreeSet<_> = &rights(user, &stage.namespace).await - &basic;
        assert_eq!(given, expected, "{user:?}");
    }
    assert_eq!(rights(User::Editor, SYSTEM).await, basic);
}

#[track_caller]
fn assert_forbidden<T: std::fmt::Debug>(what: &str, result: Result<T, kube::Error>) {
    match result {
        Err(kube::Error::Api(status)) if status.code == 403 => {
            assert!(
                status.message.contains("cannot"),
                "{what}: {}",
                status.message
            );
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn an_editor_writes_benchmarks_and_neither_their_status_nor_the_ledger() {
    let stage = Stage::new().await;
    let client = server().client(User::Editor);
    let namespace = &stage.namespace;
    let benchmarks = Api::<FrugalityBenchmark>::namespaced(client.clone(), namespace);
    let trials = Api::<FrugalityTrial>::namespaced(client.clone(), namespace);
    let new = serde_json::from_value(stage.manifest("b", &[])).unwrap();
    let benchmark = benchmarks
        .create(&PostParams::default(), &new)
        .await
        .unwrap();
    let params = PatchParams::default();
    let change = Patch::Merge(json!({ "spec": { "deadline": "1h" } }));
    let changed = benchmarks.patch("b", &params, &change).await.unwrap();
    assert_eq!(changed.spec.deadline.to_string(), "1h");
    let entry = stage.entry(&benchmark, "attempt");
    let plan = Plan {
        ledger: Some(LedgerWrite::open(entry.clone())),
        ..plan_of(&changed)
    };
    stage.apply(&changed, plan).await.unwrap();
    assert_eq!(
        trials
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );

    let verdict = Patch::Merge(json!({ "status": { "verdict": "Pass" } }));
    assert_forbidden(
        "a verdict",
        benchmarks.patch_status("b", &params, &verdict).await,
    );
    let forged = Patch::Merge(
        json!({ "spec": { "candidate": "forged" }, "status": { "message": "forged" } }),
    );
    assert_forbidden(
        "a record",
        trials.patch_status("attempt", &params, &forged).await,
    );
    assert_forbidden("an entry", trials.patch("attempt", &params, &forged).await);
    assert_forbidden(
        "its end",
        trials.delete("attempt", &DeleteParams::default()).await,
    );
    let everything = ListParams::default();
    let all = trials
        .delete_collection(&DeleteParams::default(), &everything)
        .await;
    assert!(matches!(all, Err(kube::Error::Api(status)) if status.code == 403));
    assert_forbidden(
        "a new entry",
        trials.create(&PostParams::default(), &entry).await,
    );
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    assert_forbidden("pods", pods.list(&everything).await);
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    assert_forbidden("secrets", secrets.list(&everything).await);
    let elsewhere = Api::<FrugalityBenchmark>::namespaced(client, "default");
    assert_forbidden("another namespace", elsewhere.list(&everything).await);
    benchmarks
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    assert!(benchmarks.get_opt("b").await.unwrap().is_none());
}

#[tokio::test]
async fn a_viewer_reads_and_a_stranger_does_not() {
    let stage = Stage::new().await;
    stage.benchmark("b", &[]).await;
    let of =
        |user: User| Api::<FrugalityBenchmark>::namespaced(server().client(user), &stage.namespace);
    of(User::Viewer).get("b").await.unwrap();
    let deleted = of(User::Viewer).delete("b", &DeleteParams::default()).await;
    assert!(matches!(deleted, Err(kube::Error::Api(status)) if status.code == 403));
    assert_forbidden("a stranger", of(User::Stranger).get("b").await);
}
