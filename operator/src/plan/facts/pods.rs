//! Meaning of a pod's state.

use crate::{
    api::DatabaseFacts,
    plan::facts::{PodFacts, Termination},
};

/// How long a pod may wait for its image, in seconds. After that the operator expects that the image can't be
/// pulled.
const IMAGE_TIMEOUT_SECONDS: f64 = 30.0;

/// Why a pod's image can't be pulled, once another try would not help.
#[must_use]
pub fn image_failure(pod: &PodFacts, now_unix_seconds: f64) -> Option<String> {
    let (reason, message) = pod.waiting.as_ref()?;
    let is_permanent = match reason.as_str() {
        "InvalidImageName" | "ErrImageNeverPull" => true,
        "ErrImagePull" | "ImagePullBackOff" | "ImageInspectError" => {
            now_unix_seconds - pod.created_unix_seconds > IMAGE_TIMEOUT_SECONDS
        }
        _ => false,
    };
    is_permanent.then(|| format!("pod {}: {reason}: {message}", pod.name))
}

/// Parses the rows and the digest that the `prepare` and `seed` containers print. `seed` also prints other state,
/// as `kind=digest`.
#[must_use]
pub fn database_facts(message: &str) -> Option<DatabaseFacts> {
    let mut words = message.split_whitespace();
    Some(DatabaseFacts {
        rows: words.next()?.parse().ok()?,
        digest: words.next()?.to_owned(),
        state: words
            .filter_map(|word| word.split_once('='))
            .map(|(kind, digest)| (kind.to_owned(), digest.to_owned()))
            .collect(),
    })
}

/// Number of transactions that PostgreSQL has counted, as the `prepare` and `seed` containers print it.
#[must_use]
pub fn counted_transactions(message: &str) -> Option<u64> {
    let mut words = message.split_whitespace();
    words.find_map(|word| word.strip_prefix("transactions:")?.parse().ok())
}

/// Exit code, reason and termination message of a container.
#[must_use]
pub fn describe_end(end: &Termination) -> String {
    let words = end.message.trim();
    if words.is_empty() {
        format!("exit code {} {}", end.exit_code, end.reason)
    } else {
        // A reason such as OOMKilled. The reasons excluded here say only what the exit code says.
        let why = match end.reason.as_str() {
            "" | "Error" | "Completed" => String::new(),
            reason => format!(" {reason}"),
        };
        format!("exit code {}{why}: {words}", end.exit_code)
    }
}
