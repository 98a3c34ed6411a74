//! The cluster that a command asks, found as kubectl finds it.

use std::path::PathBuf;

use axum::http::Request;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{
    Api, Client, Config, Resource,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
    core::{NamespaceResourceScope, Status},
};
use serde::de::DeserializeOwned;

/// Manager of the fields that this program writes.
const FIELD_MANAGER: &str = "kubectl-frugality";

/// The flags that name a cluster, a user and a namespace, with kubectl's names.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(id = "access", multiple = true)]
pub struct Access {
    /// Namespace of the benchmark. Default: the namespace of the context; in a pod, the pod's namespace.
    #[arg(long, short)]
    pub namespace: Option<String>,
    /// The cluster and the user.
    #[command(flatten)]
    pub place: Place,
}

/// The flags that name a cluster and a user, for commands that are not about one namespace.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(id = "place", multiple = true)]
pub struct Place {
    /// Context of the kubeconfig. Default: the current context; without a kubeconfig, the cluster of this pod.
    #[arg(long)]
    pub context: Option<String>,
    /// Kubeconfig file. Default: $KUBECONFIG, then ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Cluster of the kubeconfig. Default: the context's cluster.
    #[arg(long)]
    pub cluster: Option<String>,
    /// User of the kubeconfig. Default: the context's user.
    #[arg(long)]
    pub user: Option<String>,
    /// User to act as (impersonation).
    #[arg(long = "as", value_name = "USER")]
    pub act_as: Option<String>,
    /// Group to act as (impersonation), with --as. May be repeated.
    #[arg(long = "as-group", value_name = "GROUP", requires = "act_as")]
    pub act_as_groups: Vec<String>,
}

/// Failures of a question to the cluster, and refusals.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig can't be read, or it lacks what the flags name.
    #[error(
        "the kubeconfig is not usable: {0}. `kubectl config get-contexts` lists the contexts; --kubeconfig names another file."
    )]
    Kubeconfig(#[from] KubeconfigError),
    /// There is no kubeconfig, and this is not a pod.
    #[error("there is no cluster: {0}. Name a kubeconfig with --kubeconfig or $KUBECONFIG.")]
    NoCluster(#[from] InferConfigError),
    /// The object does not exist.
    #[error(
        "there is no {kind} {name} in namespace {namespace}. `kubectl get {kind} --all-namespaces` lists what exists; --namespace names another namespace."
    )]
    NotFound {
        /// Short name of the resource.
        kind: String,
        /// Name of the object.
        name: String,
        /// Namespace of the object.
        namespace: String,
    },
    /// The API server does not know the resource.
    #[error(
        "the cluster does not have Frugality's resources: {0}. Install the chart frugality-operator first."
    )]
    NotInstalled(String),
    /// The API server refused.
    #[error("the API server refused ({code}): {message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// The API server's words.
        message: String,
    },
    /// The API server did not answer, or with an error that passes.
    #[error("the API server did not answer: {0}")]
    Unreachable(#[source] Box<kube::Error>),
    /// The API server accepted the connection and sent nothing.
    #[error("the API server did not answer within {0} s")]
    Silent(u64),
    /// The answer is not an object of this version.
    #[error(
        "the answer is not understood: {0}. Use the version of kubectl-frugality that belongs to the operator."
    )]
    NotUnderstood(#[from] serde_json::Error),
}

impl ClusterError {
    /// Whether the same question may be answered a moment later.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Silent(_))
    }

    /// Whether the account has no right to ask.
    #[must_use]
    pub fn forbids(&self) -> bool {
        matches!(self, Self::Refused { code: 403, .. })
    }
}

/// A connection to a cluster, with the namespace that the flags or the kubeconfig name.
pub struct Cluster {
    client: Client,
    /// Namespace of all questions.
    pub namespace: String,
}

impl Access {
    /// Whether any flag names a cluster or a namespace.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.namespace.is_some() || self.place.kubeconfig.is_some() || self.place.names_entry()
    }

    /// Connects. Asks nothing yet.
    pub async fn connect(&self) -> Result<Cluster, ClusterError> {
        let mut cluster = self.place.connect().await?;
        if let Some(namespace) = &self.namespace {
            cluster.namespace.clone_from(namespace);
        }
        Ok(cluster)
    }
}

impl Place {
    /// Whether a flag names an entry of the kubeconfig or another user.
    fn names_entry(&self) -> bool {
        [&self.context, &self.cluster, &self.user, &self.act_as]
            .iter()
            .any(|flag| flag.is_some())
    }

    /// Whether the account is the one of the pod in which this program runs.
    pub(crate) fn is_pod(&self) -> bool {
        let is_set = |name| std::env::var_os(name).is_some();
        !self.names_entry()
            && self.kubeconfig.is_none()
            && !is_set("KUBECONFIG")
            && is_set("KUBERNETES_SERVICE_HOST")
    }

    /// Connects, with the namespace of the context. Asks nothing yet.
    pub async fn connect(&self) -> Result<Cluster, ClusterError> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
            }
            None if self.names_entry() => Config::from_kubeconfig(&options).await?,
            None => Config::infer().await?,
        };
        // Without the flags, the user that the kubeconfig impersonates stays.
        if self.act_as.is_some() || !self.act_as_groups.is_empty() {
            config.auth_info.impersonate.clone_from(&self.act_as);
            config.auth_info.impersonate_groups =
                (!self.act_as_groups.is_empty()).then(|| self.act_as_groups.clone());
        }
        let namespace = config.default_namespace.clone();
        let client =
            Client::try_from(config).map_err(|it| ClusterError::Unreachable(Box::new(it)))?;
        Ok(Cluster { client, namespace })
    }
}

impl Cluster {
    /// One object, as JSON text.
    pub async fn get<K>(&self, name: &str) -> Result<String, ClusterError>
    where
        K: Resource<DynamicType = ()>,
    {
        self.object(&ApiResource::erase::<K>(&()), &self.namespace, name)
            .await
    }

    /// One object of any kind and namespace, as JSON text. Namespace and name become parts of a path: they must be names.
    pub(crate) async fn object(
        &self,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
    ) -> Result<String, ClusterError> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, resource);
        let object = api.get(name).await.map_err(|error| match error {
            kube::Error::Api(status) if is_missing(&status, name) => ClusterError::NotFound {
                kind: resource.plural.clone(),
                name: name.to_owned(),
                namespace: namespace.to_owned(),
            },
            error => refusal(error),
        })?;
        Ok(serde_json::to_string(&object)?)
    }

    /// The typed objects of the namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The objects of the namespace with these labels.
    pub(crate) async fn labelled<K>(&self, selector: &str) -> Result<Vec<K>, ClusterError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let parameters = ListParams::default().labels(selector);
        let list = self.api::<K>().list(&parameters).await.map_err(refusal)?;
        Ok(list.items)
    }

    /// Creates an object, or asks whether it could be created. An existing object is not changed.
    pub(crate) async fn create<K>(
        &self,
        object: serde_json::Value,
        is_dry: bool,
    ) -> Result<(), ClusterError>
    where
        K: Resource<DynamicType = ()>,
    {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let parameters = PostParams {
            dry_run: is_dry,
            field_manager: Some(FIELD_MANAGER.to_owned()),
        };
        let object = serde_json::from_value(object)?;
        let created = api.create(&parameters, &object).await;
        created.map(|_| ()).map_err(refusal)
    }

    /// Whether the rights of this account allow it to create such objects in the namespace.
    pub(crate) async fn may_create<K>(&self) -> Result<bool, ClusterError>
    where
        K: Resource<DynamicType = ()>,
    {
        let question = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(self.namespace.clone()),
                    verb: Some("create".to_owned()),
                    group: Some(K::group(&()).into_owned()),
                    resource: Some(K::plural(&()).into_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &question).await;
        let status = answer.map_err(refusal)?.status;
        Ok(status.is_some_and(|status| status.allowed))
    }

    /// The text at a path of the API server.
    pub(crate) async fn raw(&self, path: &str) -> Result<String, ClusterError> {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(|error| refusal(kube::Error::HttpError(error)))?;
        self.client.request_text(request).await.map_err(refusal)
    }

    /// All objects of the namespace, or of all namespaces, as the JSON text of one list.
    pub async fn list<K>(&self, all_namespaces: bool) -> Result<String, ClusterError>
    where
        K: Resource<DynamicType = ()>,
    {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = if all_namespaces {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
        };
        let list = api.list(&ListParams::default()).await.map_err(refusal)?;
        Ok(serde_json::to_string(&list)?)
    }
}

/// Whether the object is missing, and not its kind.
fn is_missing(status: &Status, name: &str) -> bool {
    let details = status.details.as_ref();
    status.code == 404 && details.is_some_and(|details| details.name == name)
}

pub(crate) fn refusal(error: kube::Error) -> ClusterError {
    match error {
        kube::Error::Api(status) if status.code == 404 => {
            ClusterError::NotInstalled(status.message)
        }
        kube::Error::Api(status) if status.code != 429 && status.code < 500 => {
            ClusterError::Refused {
                code: status.code,
                message: status.message,
            }
        }
        kube::Error::SerdeError(error) => ClusterError::NotUnderstood(error),
        error => ClusterError::Unreachable(Box::new(error)),
    }
}
