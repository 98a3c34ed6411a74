//! What all writes share: their parameters, and the meaning of the API server's answers.

use kube::api::{DeleteParams, PostParams, Preconditions};

use crate::plan::facts::Refusal;

/// Name under which the API server records who set a field.
pub(super) const FIELD_MANAGER: &str = "frugality-operator";

/// A plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The API server refused, or the operator could not reach it.
    #[error("cannot {what}: {source}")]
    Api {
        /// The attempted action.
        what: &'static str,
        /// Cause.
        source: kube::Error,
    },
    /// The system gave no random numbers.
    #[error("cannot make a password: {0}")]
    Password(#[source] getrandom::Error),
}

impl ApplyError {
    /// Whether the API server forbids the action. The operator may have lost its rights in the namespace.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Api {
                source: kube::Error::Api(status),
                ..
            } => status.code == 403,
            Self::Api { .. } | Self::Password(_) => false,
        }
    }
}

/// Parameters that delete only the given version.
pub(crate) fn only(resource_version: String) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            resource_version: Some(resource_version),
            uid: None,
        }),
        ..DeleteParams::default()
    }
}

/// Why the API server refused to create an object, given by kind and name. `None` if its answer is not a refusal.
pub(super) fn refusal(source: &kube::Error, object: &str) -> Option<Refusal> {
    match source {
        kube::Error::Api(status) => Refusal::of(object, status.code, &status.message),
        _ => None,
    }
}

/// Whether the write was done. False if the object has changed since it was observed, or is gone.
pub(super) fn overtaken_is_fine<T>(result: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn failed(what: &'static str) -> impl Fn(kube::Error) -> ApplyError {
    move |source| ApplyError::Api { what, source }
}

pub(super) fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PostParams::default()
    }
}
