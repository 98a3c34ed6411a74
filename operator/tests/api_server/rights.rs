//! The rights that the chart's roles give: the operator has only the rights that it needs, and no user may write the ledger.

use std::collections::{BTreeMap, BTreeSet};

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
pub(crate) async fn may(what: &str, namespace: Option<&str>) -> bool {
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

/// Namespaces of the cluster's own programs. No value of the chart names them.
const FOREIGN: &str = "kube-system";
/// The chart's default for `benchmarkNamespaces`.
const ALLOWED: &str = "default";

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
        "get frugalitytraces.frugality.dev",
        "list frugalitytraces.frugality.dev",
        "update frugalitytraces.frugality.dev",
        "patch frugalitytraces.frugality.dev",
        "delete frugalitytraces.frugality.dev",
        "create rolebindings.rbac.authorization.k8s.io",
        "create clusterrolebindings.rbac.authorization.k8s.io",
        "create serviceaccounts/token",
        "impersonate users",
        "* *",
    ] {
        for namespace in [None, Some(SYSTEM), Some(ALLOWED), Some(FOREIGN)] {
            assert!(!may(what, namespace).await, "{what} in {namespace:?}");
        }
    }
}

#[tokio::test]
async fn the_operator_writes_objects_only_where_it_may_run_benchmarks() {
    for what in [
        "create deployments.apps",
        "delete deployments.apps",
        "create jobs.batch",
        "create services",
        "create secrets",
        "create clusters.postgresql.cnpg.io",
        "create frugalitytrials.frugality.dev",
        // For spec.runsToKeep.
        "delete frugalitytrials.frugality.dev",
        "patch frugalitytrials.frugality.dev/status",
        "create frugalitytraces.frugality.dev",
        "create events",
        // For spec.baseline.promote.
        "create frugalitybaselines.frugality.dev",
        "update frugalitybaselines.frugality.dev",
        "update frugalitybaselines.frugality.dev/status",
        // For spec.ttlAfterFinished.
        "delete frugalitybenchmarks.frugality.dev",
    ] {
        assert!(may(what, Some(ALLOWED)).await, "{what}");
        for namespace in [None, Some(SYSTEM), Some(FOREIGN)] {
            assert!(!may(what, namespace).await, "{what} in {namespace:?}");
        }
    }
    for what in [
        "list pods",
        "list nodes",
        "list endpointslices.discovery.k8s.io",
        "watch frugalitybenchmarks.frugality.dev",
        // For spec.baseline.
        "get frugalitybaselines.frugality.dev",
        // To say that a namespace is not allowed.
        "update frugalitybenchmarks.frugality.dev/status",
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

/// Verbs by resource, such as `deployments.apps`. Behind a verb is the name of the only object that it is for.
type Rights = BTreeMap<String, BTreeSet<String>>;

/// All that a user may do in a namespace and a user without roles may not, as the API server says.
async fn rights(user: User, namespace: &str) -> Rights {
    let mut rights = all_rights(user, namespace).await;
    for (resource, basic) in all_rights(User::Stranger, namespace).await {
        let verbs = rights.entry(resource.clone()).or_default();
        verbs.retain(|verb| !basic.contains(verb));
        if verbs.is_empty() {
            rights.remove(&resource);
        }
    }
    rights
}

async fn all_rights(user: User, namespace: &str) -> Rights {
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
    let mut rights = Rights::new();
    for rule in status.resource_rules {
        let names = rule.resource_names.unwrap_or_default();
        let only = |verb: &String| match names.as_slice() {
            [] => verb.clone(),
            names => format!("{verb} `{}`", names.join("`, `")),
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let (plural, sub) = resource.split_once('/').unwrap_or((resource, ""));
                let group = Some(group).filter(|group| !group.is_empty());
                let name = group.map_or(plural.to_owned(), |group| format!("{plural}.{group}"));
                let name = [name.as_str(), sub].join("/");
                let verbs = rights
                    .entry(name.trim_end_matches('/').to_owned())
                    .or_default();
                verbs.extend(rule.verbs.iter().map(only));
            }
        }
    }
    rights
}

/// The table of rights in the threat model is the API server's answer.
#[tokio::test]
async fn the_rights_in_the_threat_model_are_the_rights_in_the_cluster() {
    let stage = Stage::new().await;
    let columns = [
        rights(User::Operator, ALLOWED).await,
        rights(User::Operator, FOREIGN).await,
        rights(User::Operator, SYSTEM).await,
        rights(User::Editor, &stage.namespace).await,
        rights(User::Viewer, &stage.namespace).await,
    ];
    let resources: BTreeSet<&String> = columns.iter().flat_map(BTreeMap::keys).collect();
    let table: Vec<String> = resources
        .into_iter()
        .map(|resource| {
            let cells = columns.iter().map(|rights| match rights.get(resource) {
                Some(verbs) => verbs
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(", "),
                None => "–".into(),
            });
            format!(
                "| `{resource}` | {} |",
                cells.collect::<Vec<_>>().join(" | ")
            )
        })
        .collect();
    let document = include_str!("../../../docs/threat-model.md");
    let (_, marked) = document
        .split_once("<!-- rights: checked by operator/tests/api_server/rights.rs -->")
        .unwrap();
    let (written, _) = marked.split_once("<!-- end of rights -->").unwrap();
    // Without the head of the table.
    let written: Vec<&str> = written
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert_eq!(written, table, "the table must be\n{}", table.join("\n"));
}

#[tokio::test]
async fn an_operator_for_every_namespace_has_the_same_rights_in_every_namespace() {
    let everywhere = rights(User::Everywhere, FOREIGN).await;
    assert_eq!(everywhere, rights(User::Operator, ALLOWED).await);
}

#[tokio::test]
async fn the_roles_give_an_editor_nothing_in_another_namespace() {
    assert_eq!(rights(User::Editor, SYSTEM).await, Rights::new());
    assert_eq!(rights(User::Viewer, SYSTEM).await, Rights::new());
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
        ledger: Some(LedgerWrite::open(entry.clone(), None)),
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
