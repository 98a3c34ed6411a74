//! What the doctor finds in the answers of the API server. Pure: one function per check.

use frugality_operator::io::check::knows_this_version;
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment},
        core::v1::{Container, Pod, Toleration},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::APIResourceList,
};
use serde::Serialize;
use serde_json::Value;

use crate::cluster::ClusterError;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Some benchmarks do not work, or the check could not be made.
    Warn,
    /// No benchmark works, or a check that all benchmarks depend on could not be made.
    Fail,
    /// The check needs rights that this account does not have, or nothing says what it asks.
    Skip,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub message: String,
    /// What to do. Absent if there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, message: String) -> Self {
        Self {
            check,
            level: Level::Ok,
            message,
            remedy: None,
        }
    }

    pub(super) fn bad(check: &'static str, level: Level, message: String, remedy: &str) -> Self {
        Self {
            check,
            level,
            message,
            remedy: Some(remedy.to_owned()),
        }
    }

    pub(super) fn skip(check: &'static str, reason: &str) -> Self {
        Self {
            check,
            level: Level::Skip,
            message: format!("Not checked: {reason}."),
            remedy: None,
        }
    }

    /// For a check that is not a condition of all benchmarks, and that could not be made.
    pub(super) fn unknown(check: &'static str, error: &ClusterError) -> Self {
        if error.forbids() {
            Self::skip(check, &error.to_string())
        } else {
            Self::bad(check, Level::Warn, error.to_string(), "Try again.")
        }
    }
}

/// An object of the cluster, or why it could not be read.
pub(super) type Found<T> = Result<T, ClusterError>;

/// The label of a StorageClass that serves claims without a class.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Whether the API server knows each field of this version's resources. `document` is its OpenAPI description.
pub(super) fn definitions(document: &Found<Value>) -> Finding {
    let check = "definitions";
    let remedy = "Upgrade the chart with crds.install=true, or apply the crds/ of this version.";
    match document {
        Err(error) => Finding::bad(check, Level::Fail, error.to_string(), remedy),
        Ok(document) => match knows_this_version(document) {
            Ok(()) => Finding::ok(
                check,
                "The API server knows each field of this version's resources.".to_owned(),
            ),
            Err(error) => Finding::bad(check, Level::Fail, error.to_string(), remedy),
        },
    }
}

/// Whether the operator's pod is ready.
pub(super) fn operator(deployment: &Found<Deployment>, namespace: &str) -> Finding {
    let check = "operator";
    let remedy = &format!(
        "Look at `kubectl describe pods --namespace {namespace} --selector app.kubernetes.io/name=frugality-operator` and the pod's log. If the operator is in another namespace, name it with --namespace."
    );
    let deployment = match deployment {
        Ok(deployment) => deployment,
        Err(error) => return Finding::bad(check, Level::Fail, error.to_string(), remedy),
    };
    let status = deployment.status.clone().unwrap_or_default();
    let is_seen = status.observed_generation >= deployment.metadata.generation;
    let updated = status.updated_replicas.unwrap_or_default();
    if is_seen && updated > 0 && status.available_replicas.unwrap_or_default() >= updated {
        let image = container(deployment).and_then(|it| it.image.as_deref());
        Finding::ok(
            check,
            format!("The operator is ready: {}.", image.unwrap_or("no image")),
        )
    } else {
        Finding::bad(
            check,
            Level::Fail,
            "The operator's pod is not ready.".to_owned(),
            remedy,
        )
    }
}

fn container(deployment: &Deployment) -> Option<&Container> {
    let template = &deployment.spec.as_ref()?.template;
    template.spec.as_ref()?.containers.first()
}

/// Where the operator looks for meters, as the chart wrote it into the operator's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meters {
    pub(super) namespace: String,
    /// Names of the DaemonSets.
    pub(super) daemon_sets: Vec<String>,
    /// Selector of their pods' labels.
    pub(super) selector: String,
    /// Port of their pages.
    pub(super) port: String,
}

/// What the pods of benchmarks tolerate, as the chart wrote it into the operator's environment.
pub(super) fn tolerations_of(deployment: &Deployment) -> Vec<Toleration> {
    variable(deployment, "FRUGALITY_TOLERATIONS")
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

/// A variable of the operator's environment that is not empty.
fn variable(deployment: &Deployment, name: &str) -> Option<String> {
    let environment = container(deployment)?.env.as_ref()?;
    let variable = environment.iter().find(|it| it.name == name)?;
    variable.value.clone().filter(|it| !it.is_empty())
}

/// Absent if the operator was not installed by the chart.
pub(super) fn meters_of(deployment: &Deployment) -> Option<Meters> {
    let value = |name: &str| variable(deployment, name);
    let names = value("FRUGALITY_METER_DAEMON_SETS")?;
    Some(Meters {
        namespace: value("FRUGALITY_METER_NAMESPACE")?,
        daemon_sets: names.split(',').map(str::to_owned).collect(),
        selector: value("FRUGALITY_METER_SELECTOR")?,
        port: value("FRUGALITY_METER_PORT")?,
    })
}

/// Node and name of each pod of these DaemonSets. A label alone makes no pod a meter: labels can be copied.
pub(super) fn meter_pods(pods: &[Pod], daemon_sets: &[String]) -> Vec<(String, String)> {
    let is_of = |pod: &&Pod| {
        let owners = pod.metadata.owner_references.iter().flatten();
        owners
            .filter(|it| it.controller == Some(true))
            .any(|it| it.kind == "DaemonSet" && daemon_sets.contains(&it.name))
    };
    pods.iter()
        .filter(is_of)
        .filter_map(|pod| {
            Some((
                pod.spec.as_ref()?.node_name.clone()?,
                pod.metadata.name.clone()?,
            ))
        })
        .collect()
}

/// Whether the nodes have meters that read their source of power. A meter is ready only with a fresh reading.
///
/// `places` is what the operator's Deployment says about their place.
pub(super) fn meters(
    places: &Result<Option<Meters>, &ClusterError>,
    found: &[Found<DaemonSet>],
) -> Finding {
    let check = "meters";
    let places = match places {
        Ok(Some(places)) => places,
        Ok(None) => {
            return Finding::bad(
                check,
                Level::Fail,
                "The operator does not say where its meters are.".to_owned(),
                "Install the operator with the chart.",
            );
        }
        Err(error) => {
            return Finding::bad(
                check,
                Level::Fail,
                error.to_string(),
                "See the check `operator`.",
            );
        }
    };
    let remedy = &format!(
        "Look at `kubectl describe pods --namespace {} --selector {}` and the pods' logs: a meter that can't read its source of power is not ready. docs/power-on-a-pi.md describes the sources.",
        places.namespace, places.selector
    );
    let (mut ready, mut wanted) = (0, 0);
    for daemon_set in found {
        match daemon_set {
            Ok(daemon_set) => {
                let status = daemon_set.status.clone().unwrap_or_default();
                ready += status.number_ready;
                wanted += status.desired_number_scheduled;
            }
            Err(error) => return Finding::bad(check, Level::Fail, error.to_string(), remedy),
        }
    }
    let message = format!("{ready} of {wanted} nodes have a meter that is ready.");
    match ready {
        0 => Finding::bad(check, Level::Fail, message, remedy),
        _ if ready < wanted => Finding::bad(check, Level::Warn, message, remedy),
        _ => Finding::ok(check, message),
    }
}

/// Whether databases by CloudNativePG are possible.
pub(super) fn database(resources: &Found<APIResourceList>) -> Finding {
    let check = "database";
    let remedy = "Install CloudNativePG (https://cloudnative-pg.io/docs/), or write spec.database.provider: Standalone. Benchmarks without a database do not need it.";
    match resources {
        Ok(list) if list.resources.iter().any(|it| it.name == "clusters") => {
            Finding::ok(check, "CloudNativePG is installed.".to_owned())
        }
        Ok(_) | Err(ClusterError::NotInstalled(_)) => Finding::bad(
            check,
            Level::Warn,
            "CloudNativePG is not installed.".to_owned(),
            remedy,
        ),
        Err(error) => Finding::bad(check, Level::Warn, error.to_string(), remedy),
    }
}

/// Whether CloudNativePG's databases get volumes.
pub(super) fn storage(classes: &Found<Vec<StorageClass>>) -> Finding {
    let check = "storage";
    let remedy = "Mark a StorageClass as the default (annotation storageclass.kubernetes.io/is-default-class: \"true\"). Only databases by CloudNativePG need it.";
    let is_default = |class: &&StorageClass| {
        let annotations = class.metadata.annotations.as_ref();
        annotations.is_some_and(|it| it.get(DEFAULT_CLASS).is_some_and(|it| it == "true"))
    };
    match classes {
        Ok(classes) => match classes.iter().find(is_default) {
            Some(class) => {
                let name = class.metadata.name.as_deref().unwrap_or_default();
                Finding::ok(check, format!("The default StorageClass is {name}."))
            }
            None => Finding::bad(
                check,
                Level::Warn,
                format!(
                    "None of {} StorageClasses is the default, so the volume of a database stays pending.",
                    classes.len()
                ),
                remedy,
            ),
        },
        Err(error) => Finding::bad(check, Level::Warn, error.to_string(), remedy),
    }
}

#[cfg(test)]
mod tests {
    use frugality_operator::crd::definitions as own_definitions;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    fn from<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn forbidden<T>() -> Found<T> {
        Err(ClusterError::Refused {
            code: 403,
            message: "you may not".to_owned(),
        })
    }

    #[track_caller]
    fn assert_bad(finding: &Finding, level: Level, words: &str) {
        assert_eq!(finding.level, level, "{finding:?}");
        assert!(finding.message.contains(words), "{finding:?}");
        assert!(finding.remedy.is_some(), "{finding:?}");
    }

    /// The description of this version's resources as an API server gives it.
    fn described() -> Value {
        let schemas: serde_json::Map<_, _> = own_definitions()
            .into_iter()
            .map(|(name, definition)| {
                let kind = definition.spec.names.kind;
                let [version]: [_; 1] = definition.spec.versions.try_into().unwrap();
                let schema = version.schema.unwrap().open_api_v3_schema;
                let mut schema = serde_json::to_value(schema).unwrap();
                schema["x-kubernetes-group-version-kind"] = json!([{ "kind": kind }]);
                (name.to_string(), schema)
            })
            .collect();
        json!({ "components": { "schemas": schemas } })
    }

    #[test]
    fn definitions_must_have_each_field() {
        assert_eq!(definitions(&Ok(described())).level, Level::Ok);
        assert_bad(
            &definitions(&Ok(json!({}))),
            Level::Fail,
            "FrugalityBenchmark",
        );
        let missing = ClusterError::NotInstalled("no such page".to_owned());
        assert_bad(&definitions(&Err(missing)), Level::Fail, "no such page");
    }

    fn deployment(generation: i64, available: i32) -> Deployment {
        let env = json!([
            { "name": "POD_IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } },
            { "name": "FRUGALITY_METER_NAMESPACE", "value": "frugality-system" },
            { "name": "FRUGALITY_METER_SELECTOR", "value": "app.kubernetes.io/name=frugality-meter" },
            { "name": "FRUGALITY_METER_DAEMON_SETS", "value": "frugality-meter,frugality-meter-ina" },
            { "name": "FRUGALITY_METER_PORT", "value": "28282" },
            { "name": "FRUGALITY_TOLERATIONS", "value": r#"[{"key":"frugality.dev/role","operator":"Exists"}]"# },
        ]);
        from(json!({
            "metadata": { "generation": generation },
            "spec": { "selector": {}, "template": { "spec": { "containers": [
                { "name": "operator", "image": "you/operator:1", "env": env },
            ]}}},
            "status": { "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available },
        }))
    }

    #[test]
    fn the_operator_must_be_ready_in_its_current_form() {
        let ready = operator(&Ok(deployment(2, 1)), "farm");
        assert_eq!(ready.level, Level::Ok);
        assert!(ready.message.contains("you/operator:1"), "{ready:?}");
        for not_ready in [deployment(2, 0), deployment(3, 1), Deployment::default()] {
            assert_bad(&operator(&Ok(not_ready), "farm"), Level::Fail, "not ready");
        }
        assert_bad(&operator(&forbidden(), "farm"), Level::Fail, "you may not");
    }

    #[test]
    fn the_operator_says_where_its_meters_are() {
        let meters_found = meters_of(&deployment(2, 1)).unwrap();
        assert_eq!(meters_found.namespace, "frugality-system");
        assert_eq!(
            meters_found.daemon_sets,
            ["frugality-meter", "frugality-meter-ina"]
        );
        assert_eq!(
            meters_found.selector,
            "app.kubernetes.io/name=frugality-meter"
        );
        assert_eq!(meters_found.port, "28282");
        assert_eq!(meters_of(&Deployment::default()), None);
        assert_bad(&meters(&Ok(None), &[]), Level::Fail, "does not say");
        let error = forbidden::<()>().unwrap_err();
        assert_bad(&meters(&Err(&error), &[]), Level::Fail, "you may not");
    }

    #[test]
    fn the_operator_says_what_the_pods_of_benchmarks_tolerate() {
        let [role] = &tolerations_of(&deployment(2, 1))[..] else {
            panic!("not one toleration");
        };
        assert_eq!(role.key.as_deref(), Some("frugality.dev/role"));
        assert_eq!(tolerations_of(&Deployment::default()), []);
    }

    #[test]
    fn only_pods_of_the_daemon_sets_are_meters() {
        let pod = |name: &str, kind: &str, owner: &str| {
            from::<Pod>(json!({
                "metadata": { "name": name, "ownerReferences": [
                    { "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "1", "controller": true },
                ]},
                "spec": { "nodeName": "pi-1", "containers": [] },
            }))
        };
        let pods = [
            pod("a", "DaemonSet", "frugality-meter"),
            pod("b", "DaemonSet", "other"),
            pod("c", "ReplicaSet", "frugality-meter"),
        ];
        assert_eq!(
            meter_pods(&pods, &["frugality-meter".to_owned()]),
            [("pi-1".to_owned(), "a".to_owned())]
        );
    }

    fn daemon_set(ready: i32, wanted: i32) -> DaemonSet {
        from(json!({ "status": {
            "currentNumberScheduled": wanted,
            "desiredNumberScheduled": wanted,
            "numberMisscheduled": 0,
            "numberReady": ready,
        }}))
    }

    #[test]
    fn meters_are_counted_over_all_daemon_sets() {
        let places = meters_of(&deployment(2, 1));
        let meters = |found: &[_]| super::meters(&Ok(places.clone()), found);
        assert_eq!(
            meters(&[Ok(daemon_set(2, 2)), Ok(daemon_set(1, 1))]).message,
            "3 of 3 nodes have a meter that is ready."
        );
        assert_bad(
            &meters(&[Ok(daemon_set(2, 2)), Ok(daemon_set(0, 1))]),
            Level::Warn,
            "2 of 3",
        );
        assert_bad(&meters(&[Ok(daemon_set(0, 2))]), Level::Fail, "0 of 2");
        assert_bad(&meters(&[Ok(daemon_set(0, 0))]), Level::Fail, "0 of 0");
        assert_bad(&meters(&[forbidden()]), Level::Fail, "you may not");
    }

    #[test]
    fn a_cluster_without_cloudnativepg_is_a_warning() {
        let list = |name: &str| {
            Ok(from(
                json!({ "groupVersion": "postgresql.cnpg.io/v1", "resources": [
                    { "name": name, "singularName": "", "namespaced": true, "kind": "X", "verbs": [] },
                ]}),
            ))
        };
        assert_eq!(database(&list("clusters")).level, Level::Ok);
        assert_bad(&database(&list("poolers")), Level::Warn, "not installed");
        let missing = Err(ClusterError::NotInstalled(String::new()));
        assert_bad(&database(&missing), Level::Warn, "not installed");
        assert_bad(&database(&forbidden()), Level::Warn, "you may not");
    }

    #[test]
    fn a_cluster_without_a_default_class_is_a_warning() {
        let class = |default: &str| {
            let annotations = json!({ DEFAULT_CLASS: default });
            from::<StorageClass>(json!({
                "metadata": { "name": "local", "annotations": annotations },
                "provisioner": "x",
            }))
        };
        let found = storage(&Ok(vec![class("false"), class("true")]));
        assert_eq!(found.message, "The default StorageClass is local.");
        assert_bad(
            &storage(&Ok(vec![class("false")])),
            Level::Warn,
            "None of 1",
        );
        assert_bad(&storage(&forbidden()), Level::Warn, "you may not");
    }
}
