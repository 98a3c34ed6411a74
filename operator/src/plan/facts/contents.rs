//! What a pod's containers run: in the operator's template, and in the API server's object.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, PodSpec},
    apimachinery::pkg::api::resource::Quantity,
};

use crate::digest::hex_digest;

/// What a container runs. An absent field equals an empty field here, as it does for kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Image, as the spec names it.
    pub image: String,
    /// Digest of its command, arguments, environment variables with their values, and volume mounts.
    pub words: String,
    /// Its limits of CPU and memory, in CPUs and bytes.
    pub limits: BTreeMap<String, String>,
    /// Its requests and limits in words. Absent for containers that end before the others start, and for added ones.
    pub resources: Option<String>,
}

/// The contents of all containers of a pod, by name. Containers that a user added to the running pod (`kubectl
/// debug`) are included.
#[must_use]
pub fn contents_of(pod: &PodSpec) -> BTreeMap<String, Contents> {
    let first = pod.init_containers.iter().flatten();
    let first = first.map(|container| (container.name.clone(), of(container)));
    let main = pod.containers.iter().map(|container| {
        let contents = Contents {
            resources: Some(resources(container)),
            ..of(container)
        };
        (container.name.clone(), contents)
    });
    let added = pod.ephemeral_containers.iter().flatten().map(|container| {
        let image = container.image.clone().unwrap_or_default();
        let added = Contents {
            image,
            ..Contents::default()
        };
        (container.name.clone(), added)
    });
    first.chain(main).chain(added).collect()
}

fn of(container: &Container) -> Contents {
    let variables = container.env.iter().flatten();
    // The API server adds defaults to `valueFrom`, so only literal values are compared.
    let variables = variables.map(|it| (it.name.as_str(), it.value.as_deref().unwrap_or_default()));
    // A restarted meter has another address, and this argument contains the address.
    let is_compared = |word: &&String| !word.starts_with("--clock-url=");
    let mounts = container.volume_mounts.iter().flatten();
    let mounts = mounts.map(|it| {
        (
            it.name.as_str(),
            it.mount_path.as_str(),
            it.sub_path.as_deref(),
        )
    });
    let words = (
        container.command.clone().unwrap_or_default(),
        container
            .args
            .iter()
            .flatten()
            .filter(is_compared)
            .collect::<Vec<_>>(),
        variables.collect::<Vec<_>>(),
        container.env_from.iter().flatten().count(),
        mounts.collect::<Vec<_>>(),
    );
    Contents {
        image: container.image.clone().unwrap_or_default(),
        words: hex_digest(format!("{words:?}").as_bytes(), 16),
        limits: amounts(
            container
                .resources
                .as_ref()
                .and_then(|it| it.limits.as_ref()),
        ),
        resources: None,
    }
}

/// The requests and limits of a container in words.
fn resources(container: &Container) -> String {
    let resources = container.resources.as_ref();
    let requests = amounts(resources.and_then(|it| it.requests.as_ref()));
    let limits = amounts(resources.and_then(|it| it.limits.as_ref()));
    format!(
        "{}, {}",
        in_words("requests", &requests),
        in_words("limits", &limits)
    )
}

/// Amounts in words: "the limits cpu 0.5", or "no limits".
fn in_words(kind: &str, amounts: &BTreeMap<String, String>) -> String {
    let words: Vec<_> = amounts
        .iter()
        .map(|(name, it)| format!("{name} {it}"))
        .collect();
    match words.as_slice() {
        [] => format!("no {kind}"),
        words => format!("the {kind} {}", words.join(", ")),
    }
}

/// The API server writes quantities in another form than a user: 0.5 CPUs are 500m.
fn amounts(quantities: Option<&BTreeMap<String, Quantity>>) -> BTreeMap<String, String> {
    quantities
        .into_iter()
        .flatten()
        .map(|(name, amount)| {
            let thousandths = thousandths(&amount.0);
            let words = thousandths.map(|it| (it / 1000.0).to_string());
            (name.clone(), words.unwrap_or_else(|| amount.0.clone()))
        })
        .collect()
}

/// Thousandths of a quantity of Kubernetes (`k8s.io/apimachinery/pkg/api/resource`) without an exponent, as a whole number.
fn thousandths(quantity: &str) -> Option<f64> {
    let digits = quantity.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &quantity[digits.len()..] {
        "m" => 1.0,
        "" => 1e3,
        "k" => 1e6,
        "M" => 1e9,
        "G" => 1e12,
        "T" => 1e15,
        "Ki" => 1e3 * 1024.0,
        "Mi" => 1e3 * 1_048_576.0,
        "Gi" => 1e3 * 1_073_741_824.0,
        "Ti" => 1e3 * 1_099_511_627_776.0,
        _ => return None,
    };
    Some((digits.parse::<f64>().ok()? * factor).round())
}

/// The first container whose limits differ from its template, in words. A LimitRange of the namespace and an admission
/// webhook can add limits, and a running pod can be resized.
#[must_use]
pub fn limits_difference(
    found: &BTreeMap<String, Contents>,
    made: &BTreeMap<String, Contents>,
) -> Option<String> {
    let words = |limits| in_words("limits", limits);
    found.iter().find_map(|(name, found)| {
        let made = made.get(name)?;
        (found.limits != made.limits).then(|| {
            format!(
                "container {name} has {}, and the operator created it with {}. A LimitRange, a webhook or a resize changed it. Write resources.limits",
                words(&found.limits),
                words(&made.limits)
            )
        })
    })
}

/// The first difference between a pod and its template, in words.
#[must_use]
pub fn difference(
    found: &BTreeMap<String, Contents>,
    made: &BTreeMap<String, Contents>,
) -> Option<String> {
    let lacks = made.keys().find(|name| !found.contains_key(*name));
    if let Some(name) = lacks {
        return Some(format!("its container {name} is missing"));
    }
    found.iter().find_map(|(name, found)| match made.get(name) {
        None => Some(format!(
            "it has another container, {name} with the image {}",
            found.image
        )),
        Some(made) if made.image != found.image => Some(format!(
            "its container {name} has the image {} instead of {}",
            found.image, made.image
        )),
        Some(made) if made.words != found.words => Some(format!(
            "its container {name} has another command, or other arguments, variables or mounts"
        )),
        Some(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn contents(spec: serde_json::Value) -> BTreeMap<String, Contents> {
        contents_of(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_pod_is_as_it_was_made_with_the_defaults_of_the_api_server() {
        let made = contents(json!({ "containers": [{
            "name": "server", "image": "a:1", "args": ["--x", "--clock-url=http://10.0.0.1/time"],
            "env": [{ "name": "A", "value": "" }, { "name": "B", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }],
        }] }));
        let found = contents(json!({ "containers": [{
            "name": "server", "image": "a:1", "command": [], "args": ["--x", "--clock-url=http://10.0.0.2/time"],
            "imagePullPolicy": "IfNotPresent",
            "env": [{ "name": "A" }, { "name": "B", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "status.podIP" } } }],
        }] }));
        assert_eq!(difference(&found, &made), None);
    }

    #[test]
    fn limits_that_somebody_added_or_changed_are_reported() {
        let with = |resources: serde_json::Value| {
            let container = json!({ "name": "server", "image": "a:1", "resources": resources });
            contents(json!({ "containers": [container] }))
        };
        let own = with(json!({ "limits": { "cpu": "0.5", "memory": "1Gi" } }));
        let stored = with(json!({
            "limits": { "cpu": "500m", "memory": "1024Mi" }, "requests": { "cpu": "500m" },
        }));
        assert_eq!(limits_difference(&stored, &own), None);
        assert_eq!(
            limits_difference(&stored, &with(json!({}))).unwrap(),
            "container server has the limits cpu 0.5, memory 1073741824, and the operator created it with no limits. A LimitRange, a webhook or a resize changed it. Write resources.limits"
        );
        for (own, stored) in [("0.7", "700m"), ("1.15", "1150m"), ("2", "2")] {
            let [own, stored] = [own, stored].map(|cpu| with(json!({ "limits": { "cpu": cpu } })));
            assert_eq!(limits_difference(&stored, &own), None);
        }
        let resized = with(json!({ "limits": { "cpu": "600m", "memory": "1Gi" } }));
        assert!(limits_difference(&resized, &own).is_some());
    }

    #[test]
    fn a_changed_image_argument_variable_or_container_is_reported() {
        let server = json!({ "name": "server", "image": "a:1", "args": ["--x"] });
        let made = contents(json!({ "containers": [server] }));
        let reported = |change: fn(&mut serde_json::Value)| {
            let mut found = json!({ "containers": [server.clone()] });
            change(&mut found);
            difference(&contents(found), &made).unwrap()
        };
        for (change, words) in [
            (
                (|it| it["containers"][0]["image"] = json!("b:1")) as fn(&mut serde_json::Value),
                "its container server has the image b:1 instead of a:1",
            ),
            (
                |it| it["containers"][0]["args"] = json!(["--y"]),
                "its container server has another command, or other arguments, variables or mounts",
            ),
            (
                |it| it["containers"][0]["env"] = json!([{ "name": "A", "value": "1" }]),
                "its container server has another command, or other arguments, variables or mounts",
            ),
            (
                |it| it["containers"][0]["envFrom"] = json!([{ "configMapRef": { "name": "a" } }]),
                "its container server has another command, or other arguments, variables or mounts",
            ),
            (
                |it| {
                    it["containers"][0]["volumeMounts"] =
                        json!([{ "name": "a", "mountPath": "/usr/bin/server" }]);
                },
                "its container server has another command, or other arguments, variables or mounts",
            ),
            (
                |it| it["ephemeralContainers"] = json!([{ "name": "debugger", "image": "c:1" }]),
                "it has another container, debugger with the image c:1",
            ),
            (
                |it| it["containers"] = json!([{ "name": "other", "image": "a:1" }]),
                "its container server is missing",
            ),
        ] {
            assert_eq!(reported(change), words);
        }
    }
}
