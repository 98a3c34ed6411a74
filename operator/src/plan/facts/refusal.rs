//! Objects that the API server refused.

use crate::{api::Reason, plan::protocol::FORBIDDEN_TIMEOUT_SECONDS};

/// Why the API server refused an object, by its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// A ResourceQuota has no room now.
    Quota,
    /// It is forbidden (Pod Security, a LimitRange, a missing right). A second try would fail too.
    Forbidden,
    /// Another reason, which may be temporary.
    Other,
}

impl Refused {
    /// Classifies a message of the API server. The quota texts are from the `ResourceQuota` admission plug-in
    /// (`controller.go` in `k8s.io/apiserver/pkg/admission/plugin/resourcequota`). The second text appears until
    /// Kubernetes has counted a new quota for the first time.
    fn by(message: &str) -> Self {
        if message.contains("exceeded quota: ") || message.contains("status unknown for quota: ") {
            Self::Quota
        } else if message.contains("is forbidden: ") {
            Self::Forbidden
        } else {
            Self::Other
        }
    }
}

/// What follows if the API server refuses an object's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterRefusal {
    /// The operator waits for the quota until the run's deadline. The text says so.
    Wait(String),
    /// The pods are forbidden, so the run ends. The text says why.
    End(String),
}

impl AfterRefusal {
    /// From the API server's message about these pods, and the age of their object. `None` for any other reason: the usual
    /// time limits apply.
    #[must_use]
    pub fn of(pods: &str, message: &str, age_seconds: f64) -> Option<Self> {
        match Refused::by(message) {
            Refused::Quota => Some(Self::Wait(format!(
                "waiting until a quota has room for {pods}: {message}"
            ))),
            Refused::Forbidden if age_seconds > FORBIDDEN_TIMEOUT_SECONDS => {
                Some(Self::End(format!("{pods} can't be created: {message}")))
            }
            Refused::Forbidden | Refused::Other => None,
        }
    }
}

/// An object that the API server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason code for the condition.
    pub reason: Reason,
    /// The object, and the API server's message.
    pub message: String,
    /// Whether the object is an entry of the ledger.
    pub is_entry: bool,
}

impl Refusal {
    /// Why the API server did not create an object, given by kind and name, by its HTTP status code. `None` if the answer is
    /// no refusal: the operator tries again. A conflict of names is a refusal only if the existing object does not belong to
    /// the benchmark.
    #[must_use]
    pub fn of(object: &str, code: u16, message: &str) -> Option<Self> {
        match code {
            409 => Some(Self {
                reason: Reason::NameConflict,
                message: format!(
                    "{object} exists and does not belong to this benchmark; delete or rename it, then write another number in spec.rerun to start another run"
                ),
                is_entry: false,
            }),
            400 | 403 | 422 => Some(Self {
                reason: match Refused::by(message) {
                    Refused::Quota => Reason::QuotaExceeded,
                    Refused::Forbidden | Refused::Other => Reason::ChildRefused,
                },
                message: format!("the API server refused {object}: {message}"),
                is_entry: false,
            }),
            _ => None,
        }
    }

    /// Why the API server did not create this entry of the ledger. `None` if the answer is not a refusal. A webhook that can't be
    /// called refuses too: it may be away for as long as a run lasts.
    #[must_use]
    pub fn of_entry(name: &str, code: u16, message: &str) -> Option<Self> {
        let is_silent_webhook = code == 500 && message.contains("failed calling webhook");
        let code = if is_silent_webhook { 403 } else { code };
        Self::of(&format!("FrugalityTrial {name}"), code, message).map(|refusal| Self {
            is_entry: true,
            ..refusal
        })
    }

    /// Whether the operator tries to create the object again until the run's deadline, because it may succeed then. An entry
    /// of the ledger has no part that a user writes, so another spec would not help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        self.is_entry || self.reason == Reason::QuotaExceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_quota_is_distinguished_from_a_forbidden_object() {
        // Messages of Kubernetes 1.33.
        for (message, refused) in [
            (
                "pods \"x-7d\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2",
                Refused::Quota,
            ),
            (
                "jobs.batch \"x\" is forbidden: status unknown for quota: small, resources: count/jobs.batch",
                Refused::Quota,
            ),
            (
                "pods \"x-7d\" is forbidden: failed quota: small: must specify requests.cpu for: server",
                Refused::Forbidden,
            ),
            (
                "pods \"x-7d\" is forbidden: violates PodSecurity \"restricted:latest\": seccompProfile",
                Refused::Forbidden,
            ),
            (
                "deployments.apps is forbidden: User \"u\" cannot create resource \"deployments\"",
                Refused::Forbidden,
            ),
            (
                "Internal error occurred: failed calling webhook \"w\": timeout",
                Refused::Other,
            ),
        ] {
            assert_eq!(Refused::by(message), refused, "{message}");
        }
    }

    #[test]
    fn a_code_and_a_message_make_a_refusal() {
        let quota = "pods \"x\" is forbidden: exceeded quota: small, requested: pods=1";
        let conflict = "services \"x\" already exists";
        for (code, message, reason) in [
            (400, "bad", Some(Reason::ChildRefused)),
            (403, quota, Some(Reason::QuotaExceeded)),
            (
                403,
                "pods \"x\" is forbidden: no",
                Some(Reason::ChildRefused),
            ),
            (409, conflict, Some(Reason::NameConflict)),
            (422, "invalid", Some(Reason::ChildRefused)),
            (404, "namespace not found", None),
            (429, "too many requests", None),
            (500, quota, None),
        ] {
            let refusal = Refusal::of("Service x", code, message);
            assert_eq!(refusal.as_ref().map(|it| it.reason), reason, "{code}");
            let passes = refusal.as_ref().is_some_and(Refusal::may_pass);
            assert_eq!(passes, reason == Some(Reason::QuotaExceeded), "{code}");
            if let Some(refusal) = refusal {
                assert!(!refusal.is_entry);
                assert!(refusal.message.contains("Service x"), "{refusal:?}");
                // The API server's words about a conflict say nothing about whose object it is.
                assert_eq!(
                    refusal.message.contains(message),
                    code != 409,
                    "{refusal:?}"
                );
            }
        }
    }

    #[test]
    fn a_refused_entry_may_succeed_later() {
        let silence = "Internal error occurred: failed calling webhook \"w\": timeout";
        for (code, message, reason) in [
            (400, "denied by a webhook", Some(Reason::ChildRefused)),
            (422, "invalid", Some(Reason::ChildRefused)),
            (500, silence, Some(Reason::ChildRefused)),
            (500, "etcdserver: request timed out", None),
            (429, "too many requests", None),
        ] {
            let refusal = Refusal::of_entry("x", code, message);
            assert_eq!(refusal.as_ref().map(|it| it.reason), reason, "{code}");
            if let Some(refusal) = refusal {
                assert!(refusal.may_pass() && refusal.is_entry, "{refusal:?}");
                let words = format!("the API server refused FrugalityTrial x: {message}");
                assert_eq!(refusal.message, words);
            }
        }
    }
}
