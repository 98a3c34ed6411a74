//! What Flagger posts to a webhook, and which image its Canary releases. Pure.
//!
//! The payload names the Canary and not the image. Its checksum is about the release before, and the webhook's metadata can be
//! applied before or after the target. The image therefore comes from the Canary's target at the moment of the question.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::images::is_fixed;

/// Longest name of a Kubernetes object, in bytes.
const LONGEST_NAME: usize = 253;

/// Why a question has no answer. The gate stays closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HookError {
    /// The body is not Flagger's.
    #[error(
        "The body is not what Flagger posts to a webhook: {0}. It must be JSON with name, namespace and metadata."
    )]
    NotAPayload(String),
    /// A name can't be the name of an object, so it must not get into a path of the API server.
    #[error(
        "{0} is not a name of a Kubernetes object. Write lower-case letters, digits, - and dots."
    )]
    NoName(&'static str),
    /// The webhook does not name the benchmark.
    #[error(
        "The webhook has no metadata.benchmark. Write the name of the FrugalityBenchmark there; it must be in the Canary's namespace."
    )]
    NoBenchmark,
    /// The Canary can't be read.
    #[error("The Canary is not understood: {0}. Its apiVersion must be flagger.app/v1beta1.")]
    NotACanary(String),
    /// Flagger would promote without another question.
    #[error(
        "The Canary has skipAnalysis: true, so Flagger does not ask again before it promotes. Remove skipAnalysis."
    )]
    SkipsAnalysis,
    /// Flagger would not ask about an image that replaces this one during the analysis.
    #[error(
        "The Canary has no webhook of type confirm-promotion with metadata.benchmark: {0}, so Flagger would promote an image that replaces this one during the analysis. Add the webhook."
    )]
    NoPromotionHook(String),
    /// The target has no image.
    #[error("The Canary's target is a {0}. The gate knows only Deployments and DaemonSets.")]
    OtherTarget(String),
    /// The target can't be read.
    #[error("The Canary's target is not understood: {0}.")]
    NotATarget(String),
    /// Several images.
    #[error(
        "The Canary's target has {0} containers. Write the name of the measured one into the webhook's metadata.container."
    )]
    SeveralContainers(usize),
    /// The named container does not exist.
    #[error("The Canary's target has no container {0}. Correct metadata.container of the webhook.")]
    NoContainer(String),
    /// The image can be moved.
    #[error(
        "The target's image has no digest, and a tag can be moved to an image that was not measured. Write the image with @sha256:…"
    )]
    Tag,
}

/// A question of Flagger: whose release, and which benchmark judges it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hook {
    /// Namespace of the Canary and of the benchmark.
    pub(super) namespace: String,
    /// Name of the Canary.
    pub(super) canary: String,
    /// Name of the benchmark.
    pub(super) benchmark: String,
    /// Container of the target whose image the benchmark measures.
    container: Option<String>,
}

/// Flagger's `CanaryWebhookPayload`, without the fields that do not matter here.
#[derive(Deserialize)]
struct Payload {
    name: String,
    namespace: String,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

impl Hook {
    /// Reads the body of a request.
    pub(super) fn parse(body: &[u8]) -> Result<Self, HookError> {
        let mut payload: Payload =
            serde_json::from_slice(body).map_err(|it| HookError::NotAPayload(it.to_string()))?;
        let benchmark = payload.metadata.remove("benchmark");
        let hook = Self {
            namespace: payload.namespace,
            canary: payload.name,
            benchmark: benchmark.ok_or(HookError::NoBenchmark)?,
            container: payload.metadata.remove("container"),
        };
        for (what, name) in [
            ("namespace", &hook.namespace),
            ("name", &hook.canary),
            ("metadata.benchmark", &hook.benchmark),
        ] {
            checked(what, name)?;
        }
        Ok(hook)
    }

    /// What the Canary releases. `promotes`: the answer can lead to a promotion.
    pub(super) fn target(&self, canary: &str, promotes: bool) -> Result<Target, HookError> {
        let Canary { spec } =
            serde_json::from_str(canary).map_err(|it| HookError::NotACanary(it.to_string()))?;
        if promotes {
            if spec.skip_analysis {
                return Err(HookError::SkipsAnalysis);
            }
            let analysis = spec.analysis.or(spec.canary_analysis).unwrap_or_default();
            let mut webhooks = analysis.webhooks.into_iter().flatten();
            if !webhooks.any(|it| it.asks_before_promotion(&self.benchmark)) {
                return Err(HookError::NoPromotionHook(self.benchmark.clone()));
            }
        }
        let name = spec.target_ref.name;
        checked("targetRef.name of the Canary", &name)?;
        match spec.target_ref.kind.as_str() {
            "" | "Deployment" => Ok(Target::Deployment(name)),
            "DaemonSet" => Ok(Target::DaemonSet(name)),
            other => Err(HookError::OtherTarget(other.to_owned())),
        }
    }

    /// The image in the target's pod template.
    pub(super) fn image(&self, target: &str, allow_tag: bool) -> Result<String, HookError> {
        let target: Workload =
            serde_json::from_str(target).map_err(|it| HookError::NotATarget(it.to_string()))?;
        let mut containers = target.spec.template.spec.containers;
        let number = containers.len();
        if let Some(name) = &self.container {
            containers.retain(|it| it.name == *name);
        }
        let image = match (containers.pop(), &self.container) {
            (Some(container), _) if containers.is_empty() => container.image,
            (_, Some(name)) => return Err(HookError::NoContainer(name.clone())),
            (_, None) => return Err(HookError::SeveralContainers(number)),
        };
        if allow_tag || is_fixed(&image) {
            Ok(image)
        } else {
            Err(HookError::Tag)
        }
    }
}

/// A DNS subdomain, as Kubernetes demands of most names.
fn checked(what: &'static str, name: &str) -> Result<(), HookError> {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_name = name.len() <= LONGEST_NAME
        && name.split('.').all(|label| {
            label.bytes().all(|byte| is_inner(byte) || byte == b'-')
                && label.bytes().next().is_some_and(is_inner)
                && label.bytes().next_back().is_some_and(is_inner)
        });
    is_name.then_some(()).ok_or(HookError::NoName(what))
}

/// The object with the pod template that a Canary releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Name of a Deployment.
    Deployment(String),
    /// Name of a DaemonSet.
    DaemonSet(String),
}

#[derive(Deserialize)]
struct Canary {
    spec: CanarySpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CanarySpec {
    target_ref: TargetRef,
    #[serde(default)]
    skip_analysis: bool,
    analysis: Option<Analysis>,
    /// The older name of `analysis`, which Flagger still reads if `analysis` is absent.
    canary_analysis: Option<Analysis>,
}

#[derive(Deserialize)]
struct TargetRef {
    #[serde(default)]
    kind: String,
    name: String,
}

#[derive(Default, Deserialize)]
struct Analysis {
    webhooks: Option<Vec<Webhook>>,
}

#[derive(Deserialize)]
struct Webhook {
    #[serde(default, rename = "type")]
    kind: String,
    metadata: Option<BTreeMap<String, String>>,
}

impl Webhook {
    fn asks_before_promotion(&self, benchmark: &str) -> bool {
        let named = self.metadata.as_ref().and_then(|it| it.get("benchmark"));
        self.kind == "confirm-promotion" && named.is_some_and(|it| it == benchmark)
    }
}

#[derive(Deserialize)]
struct Workload {
    spec: WorkloadSpec,
}

#[derive(Deserialize)]
struct WorkloadSpec {
    template: Template,
}

#[derive(Deserialize)]
struct Template {
    spec: PodSpec,
}

#[derive(Deserialize)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    name: String,
    image: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// As Flagger v1.36.1 writes it (`CanaryWebhookPayload` in pkg/apis/flagger/v1beta1/canary.go).
    const PAYLOAD: &str = r#"{"name":"web","namespace":"shop","phase":"Waiting","checksum":"85d557f47b","metadata":{"benchmark":"shop-release"}}"#;

    fn hook() -> Hook {
        Hook::parse(PAYLOAD.as_bytes()).unwrap()
    }

    fn with_container(name: &str) -> Hook {
        Hook {
            container: Some(name.to_owned()),
            ..hook()
        }
    }

    fn canary() -> Value {
        json!({ "spec": {
            "targetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop" },
            "analysis": { "webhooks": [
                { "name": "load", "url": "http://x" },
                { "type": "confirm-promotion", "name": "energy", "url": "http://x", "metadata": { "benchmark": "shop-release" } },
            ]},
        }})
    }

    fn workload(images: &[(&str, &str)]) -> String {
        let containers: Vec<_> = images
            .iter()
            .map(|(name, image)| json!({ "name": name, "image": image }))
            .collect();
        json!({ "spec": { "template": { "spec": { "containers": containers }}}}).to_string()
    }

    #[test]
    fn a_payload_names_canary_and_benchmark() {
        let expected = Hook {
            namespace: "shop".to_owned(),
            canary: "web".to_owned(),
            benchmark: "shop-release".to_owned(),
            container: None,
        };
        assert_eq!(hook(), expected);
    }

    #[test]
    fn a_payload_without_a_benchmark_or_with_a_path_as_a_name_is_refused() {
        let without = r#"{"name":"web","namespace":"shop","phase":"","checksum":""}"#;
        assert_eq!(Hook::parse(without.as_bytes()), Err(HookError::NoBenchmark));
        for (from, to, what) in [
            ("\"shop\"", "\"shop/../x\"", "namespace"),
            ("\"web\"", "\"\"", "name"),
            ("\"web\"", "\"a..b\"", "name"),
            ("\"web\"", "\"Web\"", "name"),
            ("\"web\"", "\"web?x\"", "name"),
            ("shop-release", "-x", "metadata.benchmark"),
        ] {
            let body = PAYLOAD.replacen(from, to, 1);
            assert_eq!(
                Hook::parse(body.as_bytes()),
                Err(HookError::NoName(what)),
                "{body}"
            );
        }
        let long = PAYLOAD.replacen("web", &"a".repeat(254), 1);
        assert_eq!(Hook::parse(long.as_bytes()), Err(HookError::NoName("name")));
        for body in ["", "[]", "{\"name\": 1}", "{\"name\":\"web\"}"] {
            let error = Hook::parse(body.as_bytes());
            assert!(matches!(error, Err(HookError::NotAPayload(_))), "{body}");
        }
    }

    #[test]
    fn the_canary_names_its_target() {
        let text = canary().to_string();
        let shop = "shop".to_owned();
        assert_eq!(hook().target(&text, true), Ok(Target::Deployment(shop)));
        let mut other = canary();
        other["spec"]["targetRef"]["kind"] = json!("DaemonSet");
        assert!(matches!(
            hook().target(&other.to_string(), true),
            Ok(Target::DaemonSet(_))
        ));
        other["spec"]["targetRef"]["kind"] = json!("Service");
        assert_eq!(
            hook().target(&other.to_string(), true),
            Err(HookError::OtherTarget("Service".to_owned()))
        );
        assert!(matches!(
            hook().target("{}", true),
            Err(HookError::NotACanary(_))
        ));
    }

    #[test]
    fn a_canary_that_flagger_would_promote_without_another_question_is_refused() {
        let missing = Err(HookError::NoPromotionHook("shop-release".to_owned()));
        for (path, value, expected) in [
            (
                "/spec/skipAnalysis",
                json!(true),
                Err(HookError::SkipsAnalysis),
            ),
            (
                "/spec/analysis/webhooks/1/type",
                json!("confirm-rollout"),
                missing.clone(),
            ),
            (
                "/spec/analysis/webhooks/1/metadata/benchmark",
                json!("other"),
                missing.clone(),
            ),
            ("/spec/analysis/webhooks", json!(null), missing.clone()),
            ("/spec/analysis", json!(null), missing),
        ] {
            let mut canary = canary();
            canary["spec"]["skipAnalysis"] = json!(false);
            *canary.pointer_mut(path).unwrap() = value;
            let text = canary.to_string();
            assert_eq!(hook().target(&text, true), expected, "{path}");
            assert!(hook().target(&text, false).is_ok(), "{path}");
        }
    }

    #[test]
    fn the_older_name_of_the_analysis_is_read_only_without_the_newer_one() {
        let mut older = canary();
        let analysis = older["spec"]["analysis"].take();
        older["spec"]["canaryAnalysis"] = analysis;
        assert!(hook().target(&older.to_string(), true).is_ok());
        older["spec"]["analysis"] = json!({});
        assert!(hook().target(&older.to_string(), true).is_err());
    }

    #[test]
    fn the_image_is_the_only_container_s_or_the_named_one_s() {
        let (shop, proxy) = ("you/shop@sha256:01", "you/proxy@sha256:02");
        let one = workload(&[("shop", shop)]);
        assert_eq!(hook().image(&one, false), Ok(shop.to_owned()));
        let two = workload(&[("shop", shop), ("proxy", proxy)]);
        assert_eq!(
            hook().image(&two, false),
            Err(HookError::SeveralContainers(2))
        );
        assert_eq!(
            with_container("shop").image(&two, false),
            Ok(shop.to_owned())
        );
        assert_eq!(
            with_container("x").image(&two, false),
            Err(HookError::NoContainer("x".to_owned()))
        );
        assert_eq!(
            hook().image(&workload(&[]), false),
            Err(HookError::SeveralContainers(0))
        );
    }

    #[test]
    fn a_tag_is_refused_unless_allowed() {
        let tagged = workload(&[("shop", "you/shop:1")]);
        assert_eq!(hook().image(&tagged, false), Err(HookError::Tag));
        assert_eq!(hook().image(&tagged, true), Ok("you/shop:1".to_owned()));
    }
}
