//! What answers at a run's addresses: Services as the operator made them, and the pods behind them.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{core::v1::Service, discovery::v1::EndpointSlice},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::ResourceExt;

/// Label that names the Service of an EndpointSlice.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// The fields of a Service that decide which pods answer. Absent fields have Kubernetes' defaults here: a Service
/// that the operator builds equals the same Service read from the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Labels of the pods that answer.
    pub selector: BTreeMap<String, String>,
    /// Port, port of the pods, and protocol.
    pub ports: Vec<(i32, String, String)>,
    /// Whether its name resolves to the pods' own addresses.
    pub is_headless: bool,
    /// Whether unready pods answer too.
    pub with_unready: bool,
    /// All other fields that redirect requests, with their values. Empty in a Service that the operator made.
    pub other: BTreeMap<String, String>,
}

impl ServiceFacts {
    /// Facts from a Service.
    #[must_use]
    pub fn of(service: &Service) -> Self {
        let spec = service.spec.clone().unwrap_or_default();
        let ports = spec.ports.unwrap_or_default();
        let set = |name: &str, value: Option<String>, default: &str| {
            let value = value.filter(|value| value != default)?;
            Some((name.to_owned(), value))
        };
        let other = [
            set("type", spec.type_, "ClusterIP"),
            set("externalName", spec.external_name, ""),
            set(
                "externalIPs",
                spec.external_ips.map(|ips| ips.join(" ")),
                "",
            ),
            set("sessionAffinity", spec.session_affinity, "None"),
            set(
                "internalTrafficPolicy",
                spec.internal_traffic_policy,
                "Cluster",
            ),
            set("trafficDistribution", spec.traffic_distribution, ""),
        ];
        Self {
            selector: spec.selector.unwrap_or_default(),
            ports: ports
                .into_iter()
                .map(|port| {
                    let target = match port.target_port {
                        Some(IntOrString::String(name)) => name,
                        Some(IntOrString::Int(number)) => number.to_string(),
                        None => port.port.to_string(),
                    };
                    let protocol = port.protocol.unwrap_or_else(|| "TCP".to_owned());
                    (port.port, target, protocol)
                })
                .collect(),
            is_headless: spec.cluster_ip.as_deref() == Some("None"),
            with_unready: spec.publish_not_ready_addresses == Some(true),
            other: other.into_iter().flatten().collect(),
        }
    }

    /// The first field in which a Service differs from the one that was made, with both values.
    #[must_use]
    pub fn difference(&self, made: &Self) -> Option<String> {
        let fields = [
            ("selector", words(&self.selector), words(&made.selector)),
            (
                "ports",
                format!("{:?}", self.ports),
                format!("{:?}", made.ports),
            ),
            (
                "clusterIP: None",
                self.is_headless.to_string(),
                made.is_headless.to_string(),
            ),
            (
                "publishNotReadyAddresses",
                self.with_unready.to_string(),
                made.with_unready.to_string(),
            ),
            ("fields", words(&self.other), words(&made.other)),
        ];
        let mut differing = fields.into_iter().filter(|(_, now, before)| now != before);
        let (field, now, before) = differing.next()?;
        Some(format!(
            "its {field} is {now}, and the operator created it with {before}"
        ))
    }
}

fn words(map: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = map.iter().map(|(key, it)| format!("{key}={it}")).collect();
    match pairs.as_slice() {
        [] => "none".to_owned(),
        pairs => pairs.join(","),
    }
}

/// One slice of the addresses behind a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Name of the Service.
    pub service: String,
    /// Its UID and generation. It changes with every change of an address.
    pub version: String,
    /// What answers.
    pub behind: Vec<Endpoint>,
}

/// One address behind a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// The pod's name, or the address if it is not a pod.
    pub name: String,
    /// The pod's UID, if it is a pod.
    pub pod_uid: Option<String>,
}

impl Endpoints {
    /// Facts from a slice.
    #[must_use]
    pub fn of(slice: &EndpointSlice) -> Self {
        let endpoint = |endpoint: &k8s_openapi::api::discovery::v1::Endpoint| {
            let pod = endpoint.target_ref.as_ref();
            let pod = pod.filter(|target| target.kind.as_deref() == Some("Pod"));
            Endpoint {
                name: pod
                    .and_then(|pod| pod.name.clone())
                    .unwrap_or_else(|| endpoint.addresses.join(" ")),
                pod_uid: pod.and_then(|pod| pod.uid.clone()),
            }
        };
        let generation = slice.metadata.generation.unwrap_or_default();
        Self {
            service: slice
                .labels()
                .get(SERVICE_NAME_LABEL)
                .cloned()
                .unwrap_or_default(),
            version: format!("{}/{generation}", slice.uid().unwrap_or_default()),
            behind: slice.endpoints.iter().map(endpoint).collect(),
        }
    }
}
