//! What the cluster has before any test: the resources, and the rights that the chart gives.

use std::{path::Path, process::Command, sync::OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PostParams, TypeMeta},
    core::GroupVersionKind,
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    server::{EVERYWHERE, SYSTEM, User, program},
    stage::{namespace, until},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The objects of a file of YAML documents.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .filter(|object| !object.is_null())
        .collect()
}

/// Version of the API server, for example `v1.35.4`.
fn kubernetes() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut server = Command::new(program("FRUGALITY_KUBE_APISERVER", "kube-apiserver"));
        let printed = server.arg("--version").output().unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        printed.trim().rsplit(' ').next().unwrap().to_owned()
    })
}

/// Whether the API server has stable admission policies. Kubernetes 1.29 has none, and the chart then makes none.
pub(crate) fn has_admission_policies() -> bool {
    let minor = kubernetes().split('.').nth(1).unwrap();
    minor.parse::<u32>().unwrap() >= 30
}

/// What the chart has in some of its templates, for a namespace and with some values (`NAME=VALUE`).
pub(crate) fn rendered(templates: &[&str], namespace: &str, values: &[&str]) -> Vec<Value> {
    let mut helm = Command::new(program("HELM", "helm"));
    helm.args(["template", "frugality"])
        .arg(root().join("charts/frugality-operator"))
        .args(["--namespace", namespace, "--kube-version", kubernetes()])
        .args(["--set", "meter.board=pi-4b"]);
    for value in values {
        helm.args(["--set", value]);
    }
    for template in templates {
        helm.args(["--show-only", &format!("templates/{template}")]);
    }
    let output = helm.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "helm template: {error}");
    documents(std::str::from_utf8(&output.stdout).unwrap())
}

/// The operator's and the users' roles, and their bindings.
fn rights() -> &'static [Value] {
    static RIGHTS: OnceLock<Vec<Value>> = OnceLock::new();
    RIGHTS.get_or_init(|| rendered(&["operator-rbac.yaml", "user-roles.yaml"], SYSTEM, &[]))
}

/// The rights that the chart gives in one namespace, there.
pub(crate) async fn grant(admin: &Client, namespace: &str) {
    for object in rights() {
        if object["metadata"]["namespace"].is_string() {
            let mut object = object.clone();
            object["metadata"]["namespace"] = namespace.into();
            create(admin, object).await;
        }
    }
}

/// Binds a user to a cluster role in a namespace.
pub(crate) async fn bind(admin: &Client, namespace: &str, user: User, role: &str) {
    create(
        admin,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": { "name": user.token(), "namespace": namespace },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name() }],
        }),
    )
    .await;
}

/// The interface to the objects of a kind, in a namespace or in none.
pub(crate) fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let types = TypeMeta {
        api_version: object["apiVersion"].as_str().unwrap().to_owned(),
        kind: object["kind"].as_str().unwrap().to_owned(),
    };
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types).unwrap());
    if resource.plural.ends_with("policys") {
        resource.plural = resource.plural.replace("policys", "policies");
    }
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates any object.
pub(crate) async fn create(client: &Client, object: Value) -> DynamicObject {
    let api = api(client, &object);
    let new = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &new).await.unwrap()
}

pub(crate) async fn prepare(admin: &Client) {
    let files = [
        "frugalitybenchmarks.yaml",
        "frugalitytrials.yaml",
        "frugalitybaselines.yaml",
        "frugalitytraces.yaml",
    ];
    let mut definitions: Vec<Value> = files
        .iter()
        .map(|name| std::fs::read_to_string(root().join("crds").join(name)).unwrap())
        .flat_map(|text| documents(&text))
        .collect();
    definitions.iter_mut().for_each(of_a_later_version);
    definitions.push(cloud_native_pg());
    let api = Api::<CustomResourceDefinition>::all(admin.clone());
    let mut created = Vec::new();
    for definition in definitions {
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let definition = api.create(&PostParams::default(), &definition).await;
        created.push(definition.unwrap());
    }
    for definition in &created {
        until("the resource is established", || async {
            let definition = api.get(&definition.name_any()).await.unwrap();
            let conditions = definition.status.and_then(|it| it.conditions);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it.type_ == "Established" && it.status == "True")
        })
        .await;
        // The API server prepares the storage of a resource at its first request, and refuses lists meanwhile.
        let (spec, version) = (&definition.spec, &definition.spec.versions[0].name);
        let kind = GroupVersionKind::gvk(&spec.group, version, &spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
        let objects = Api::<DynamicObject>::all_with(admin.clone(), &resource);
        until("the resource can be listed", || async {
            objects.list(&ListParams::default()).await.is_ok()
        })
        .await;
    }
    namespace(admin, SYSTEM).await;
    // The policies take effect a moment later, during the first tests.
    if has_admission_policies() {
        let templates = ["database-images.yaml", "operator-policies.yaml"];
        for object in rendered(&templates, SYSTEM, &[]) {
            create(admin, object).await;
        }
    }
    for object in rights() {
        create(admin, object.clone()).await;
    }
    if has_admission_policies() {
        bind_everywhere(admin).await;
    }
}

/// The bindings of an operator for every namespace. The roles are the same. The bindings get other names.
async fn bind_everywhere(admin: &Client) {
    for mut object in rendered(
        &["operator-rbac.yaml"],
        EVERYWHERE,
        &["benchmarkNamespaces={*}"],
    ) {
        if object["kind"] == "ClusterRoleBinding" {
            let name = object["metadata"]["name"].as_str().unwrap();
            object["metadata"]["name"] = format!("{name}-everywhere").into();
            create(admin, object).await;
        }
    }
}

/// Field of a benchmark's spec that this version of the operator does not know, and can't read.
pub(crate) const LATER_FIELD: &str = "ofALaterVersion";
/// The same as the outcome of an entry of the ledger.
pub(crate) const LATER_OUTCOME: &str = "OfALaterVersion";

/// The definitions as a later version might have them: all that is there, and a little more.
fn of_a_later_version(definition: &mut Value) {
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let properties = definition.pointer_mut(schema).unwrap();
    if let Some(outcomes) = properties.pointer_mut("/status/properties/outcome/enum") {
        outcomes.as_array_mut().unwrap().push(LATER_OUTCOME.into());
    } else {
        properties["spec"]["properties"][LATER_FIELD] = json!({ "type": "string" });
    }
}

/// A stand-in for CloudNativePG's definition, which has 6,000 lines: it takes every spec.
fn cloud_native_pg() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusters.postgresql.cnpg.io" },
        "spec": {
            "group": "postgresql.cnpg.io",
            "names": { "kind": "Cluster", "plural": "clusters", "singular": "cluster", "listKind": "ClusterList" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}
