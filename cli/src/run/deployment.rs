//! The settings of a Deployment that a candidate can have, and what is left out.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Container, EnvVar, PodSpec},
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};
use regex::Regex;
use serde_json::{Map, Value, json};

/// Lowest port of a candidate.
const LEAST_PORT: i32 = 1024;
/// Variables that the operator sets.
const RESERVED: [&str; 8] = [
    "PORT",
    "DATABASE_URL",
    "POOL_SIZE",
    "PGUSER",
    "PGPASSWORD",
    "POD_IP",
    "PEERS_HOST",
    "PEERS_COUNT",
];
/// Resources of a candidate, and the form of their amounts.
const RESOURCES: [(&str, &str); 2] = [
    ("cpu", r"^[0-9]+(\.[0-9]+)?m?$"),
    ("memory", "^[0-9]+(Ki|Mi|Gi|k|M|G)?$"),
];

/// Why a Deployment can't be copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentError {
    /// No container.
    #[error("the Deployment {0} has no container with an image")]
    NoContainer(String),
}

/// Settings for all candidates.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Template {
    /// Image of the Deployment.
    pub(super) image: String,
    /// Fields of a candidate.
    pub(super) server: Map<String, Value>,
    /// What a candidate can't have, each with the reason.
    pub(super) left_out: Vec<String>,
}

impl Template {
    /// The settings of the Deployment's first container.
    pub(super) fn of(deployment: &Deployment) -> Result<Self, DeploymentError> {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let spec = deployment.spec.as_ref();
        let pod = spec.and_then(|spec| spec.template.spec.as_ref());
        let container = pod.and_then(|pod| pod.containers.first());
        let (Some(pod), Some(container)) = (pod, container) else {
            return Err(DeploymentError::NoContainer(name));
        };
        let Some(image) = container.image.clone() else {
            return Err(DeploymentError::NoContainer(name));
        };
        let mut template = Self {
            image,
            ..Self::default()
        };
        template.programs(container);
        template.env(container);
        template.port(container);
        template.readiness(container);
        template.resources(container);
        template.user(pod, container);
        template.pod(pod);
        if let Some(replicas) = spec.and_then(|it| it.replicas).filter(|it| *it != 1) {
            template.leave_out(&format!(
                "replicas: {replicas}; the benchmark measures one pod. To measure more, write candidates[].replicas"
            ));
        }
        Ok(template)
    }

    fn set(&mut self, field: &str, value: Value) {
        self.server.insert(field.to_owned(), value);
    }

    fn leave_out(&mut self, what: &str) {
        self.left_out.push(what.to_owned());
    }

    fn programs(&mut self, container: &Container) {
        for (field, words) in [("command", &container.command), ("args", &container.args)] {
            let Some(words) = words.as_ref().filter(|words| !words.is_empty()) else {
                continue;
            };
            if words.iter().any(|word| is_expanded(word)) {
                self.leave_out(&format!(
                    "{field}: it has $(NAME), which is not expanded in a candidate"
                ));
            } else {
                self.set(field, json!(words));
            }
        }
        let policy = container.image_pull_policy.as_deref();
        if let Some(policy) = policy.filter(|policy| *policy != "IfNotPresent") {
            self.set("imagePullPolicy", policy.into());
        }
    }

    fn env(&mut self, container: &Container) {
        let mut env = Vec::new();
        for variable in container.env.iter().flatten() {
            match refusal(variable) {
                None => env.push(json!({
                    "name": variable.name,
                    "value": variable.value.clone().unwrap_or_default(),
                })),
                Some(reason) => self.leave_out(&format!("env {}: {reason}", variable.name)),
            }
        }
        if !env.is_empty() {
            self.set("env", env.into());
        }
        if container.env_from.iter().flatten().next().is_some() {
            self.leave_out("envFrom: a candidate has only literal values");
        }
    }

    fn port(&mut self, container: &Container) {
        let ports: Vec<i32> = container
            .ports
            .iter()
            .flatten()
            .map(|port| port.container_port)
            .collect();
        match ports.split_first() {
            Some((port, others)) if *port >= LEAST_PORT => {
                self.set("port", (*port).into());
                for other in others {
                    self.leave_out(&format!("port {other}: a candidate has one port"));
                }
            }
            Some((port, _)) => self.leave_out(&format!(
                "port {port}: a candidate's port is above 1023; the server gets it as PORT"
            )),
            None => {}
        }
    }

    fn readiness(&mut self, container: &Container) {
        let Some(probe) = &container.readiness_probe else {
            return;
        };
        let http = probe.http_get.as_ref().filter(|http| {
            let port = match &http.port {
                IntOrString::Int(port) => Some(*port),
                IntOrString::String(name) => container
                    .ports
                    .iter()
                    .flatten()
                    .find(|port| port.name.as_ref() == Some(name))
                    .map(|port| port.container_port),
            };
            let own = self.server.get("port").and_then(Value::as_i64);
            http.scheme.as_deref() != Some("HTTPS") && port.map(i64::from) == own
        });
        match http.and_then(|http| http.path.clone()) {
            Some(path) => self.set("readinessPath", path.into()),
            None => self.leave_out(
                "readinessProbe: a candidate answers 200 at a path of its port; --readiness-path names it",
            ),
        }
    }

    fn resources(&mut self, container: &Container) {
        let Some(resources) = &container.resources else {
            return;
        };
        let mut all = Map::new();
        for (field, amounts) in [
            ("requests", &resources.requests),
            ("limits", &resources.limits),
        ] {
            let mut kept = Map::new();
            for (name, Quantity(amount)) in amounts.iter().flatten() {
                let form = RESOURCES.iter().find(|(known, _)| known == name);
                let has_form = |(_, form): &(&str, &str)| {
                    Regex::new(form).is_ok_and(|form| form.is_match(amount))
                };
                if form.is_some_and(has_form) {
                    kept.insert(name.clone(), amount.clone().into());
                } else {
                    self.leave_out(&format!(
                        "resources.{field}.{name}: {amount} is not an amount of CPU or memory of a candidate"
                    ));
                }
            }
            if !kept.is_empty() {
                all.insert(field.to_owned(), kept.into());
            }
        }
        if !all.is_empty() {
            self.set("resources", all.into());
        }
    }

    fn user(&mut self, pod: &PodSpec, container: &Container) {
        let own = container.security_context.as_ref();
        let of_pod = pod.security_context.as_ref();
        let user = own
            .and_then(|it| it.run_as_user)
            .or_else(|| of_pod.and_then(|it| it.run_as_user));
        let group = own
            .and_then(|it| it.run_as_group)
            .or_else(|| of_pod.and_then(|it| it.run_as_group));
        for (field, id) in [("runAsUser", user), ("runAsGroup", group)] {
            match id {
                Some(0) => self.leave_out(&format!("{field}: 0; candidates do not run as root")),
                Some(id) => self.set(field, id.into()),
                None => {}
            }
        }
    }

    fn pod(&mut self, pod: &PodSpec) {
        let secrets: Vec<_> = pod
            .image_pull_secrets
            .iter()
            .flatten()
            .map(|secret| json!({"name": secret.name}))
            .collect();
        if !secrets.is_empty() {
            self.set("imagePullSecrets", secrets.into());
        }
        for other in pod.containers.iter().skip(1) {
            self.leave_out(&format!(
                "container {}: a candidate has one container",
                other.name
            ));
        }
        let is_there = |it: bool, what: &str| it.then(|| what.to_owned());
        let others = [
            is_there(
                pod.init_containers.iter().flatten().next().is_some(),
                "initContainers: a candidate has one container",
            ),
            is_there(
                pod.volumes.iter().flatten().next().is_some(),
                "volumes: a candidate has no volumes",
            ),
            is_there(
                pod.service_account_name
                    .as_deref()
                    .is_some_and(|it| it != "default"),
                "serviceAccountName: a candidate has no access to the API server",
            ),
            is_there(
                pod.node_selector.is_some() || pod.affinity.is_some(),
                "nodeSelector and affinity: placement.measuredNodeSelector chooses the node",
            ),
        ];
        self.left_out.extend(others.into_iter().flatten());
    }
}

/// Why a candidate can't have the variable.
fn refusal(variable: &EnvVar) -> Option<&'static str> {
    if RESERVED.contains(&variable.name.as_str()) {
        Some("the operator sets this variable")
    } else if variable.value_from.is_some() {
        Some("a candidate has only literal values, not those of Secrets, ConfigMaps or fields")
    } else if variable.value.as_deref().is_some_and(is_expanded) {
        Some("it has $(NAME), which is not expanded in a candidate")
    } else {
        None
    }
}

/// Whether Kubernetes expands a variable in the text, or an escape.
fn is_expanded(text: &str) -> bool {
    text.contains("$(") || text.contains("$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(pod: &Value) -> Template {
        let deployment = json!({
            "metadata": {"name": "shop"},
            "spec": {"selector": {}, "replicas": 3, "template": {"spec": pod}},
        });
        Template::of(&serde_json::from_value(deployment).unwrap()).unwrap()
    }

    #[test]
    fn what_a_candidate_can_have_is_copied() {
        let copied = template(&json!({
            "imagePullSecrets": [{"name": "registry"}],
            "securityContext": {"runAsUser": 1000},
            "containers": [{
                "name": "shop",
                "image": "you/shop:1.2",
                "args": ["--log", "warn"],
                "env": [{"name": "LOG", "value": "warn"}, {"name": "EMPTY"}],
                "ports": [{"name": "http", "containerPort": 9000}],
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
                "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "100m"}},
            }],
        }));
        let expected = json!({
            "args": ["--log", "warn"],
            "env": [{"name": "LOG", "value": "warn"}, {"name": "EMPTY", "value": ""}],
            "imagePullSecrets": [{"name": "registry"}],
            "port": 9000,
            "readinessPath": "/ready",
            "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "100m"}},
            "runAsUser": 1000,
        });
        assert_eq!(copied.image, "you/shop:1.2");
        assert_eq!(Value::from(copied.server), expected);
        assert_eq!(copied.left_out.len(), 1, "{:?}", copied.left_out);
    }

    #[test]
    fn what_a_candidate_cannot_have_is_named() {
        let left = template(&json!({
            "serviceAccountName": "shop",
            "nodeSelector": {"a": "b"},
            "volumes": [{"name": "data", "emptyDir": {}}],
            "initContainers": [{"name": "init"}],
            "securityContext": {"runAsUser": 0},
            "containers": [{
                "name": "shop",
                "image": "you/shop:1.2",
                "command": ["shop", "$(MODE)"],
                "env": [
                    {"name": "PORT", "value": "80"},
                    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
                    {"name": "URL", "value": "http://$(HOST)"},
                ],
                "envFrom": [{"configMapRef": {"name": "shop"}}],
                "ports": [{"containerPort": 80}],
                "readinessProbe": {"exec": {"command": ["true"]}},
                "resources": {"limits": {"example.org/gpu": "1"}},
            }, {"name": "sidecar"}],
        }));
        assert_eq!(left.server, Map::new());
        insta::assert_snapshot!(left.left_out.join("\n"));
    }
}
