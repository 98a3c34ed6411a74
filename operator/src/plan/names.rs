//! Names of the run and of its objects.

use crate::{
    api::{Candidate, FrugalityBenchmark},
    digest::hex_digest,
    load::LoadKind,
};
use kube::ResourceExt;
use serde_json::{Value, json};

/// ID of the run: eight hex digits of SHA-256 over the benchmark's UID, the number of the re-run, and the fields of
/// the spec that affect the measurement. Budgets and the choice of the deciding figure are not included, because
/// the operator judges them on the same trials. Suspension, deadline and time to live are not included either.
#[must_use]
pub fn run_id(benchmark: &FrugalityBenchmark) -> String {
    id_of(&identity(benchmark, benchmark.spec.rerun))
}

/// ID of the measurement: as [`run_id`], but equal for all re-runs, and for runs with another number or order of the same
/// trials. All of them are tries of one question.
#[must_use]
pub fn measurement_id(benchmark: &FrugalityBenchmark) -> String {
    let mut measurement = identity(benchmark, None);
    for field in ["blocks", "looks", "seed", "maxAttempts"] {
        measurement["trials"][field] = Value::Null;
    }
    id_of(&measurement)
}

fn id_of(identity: &Value) -> String {
    hex_digest(identity.to_string().as_bytes(), 4)
}

fn identity(benchmark: &FrugalityBenchmark, rerun: Option<i64>) -> Value {
    let spec = &benchmark.spec;
    // Costs are judged on the same trials, so they are not included.
    let candidates: Vec<Candidate> = spec
        .candidates
        .iter()
        .map(|candidate| Candidate {
            costs: None,
            ..candidate.clone()
        })
        .collect();
    let mut identity = json!({
        "uid": benchmark.uid(),
        "rerun": rerun,
        "candidates": candidates,
        "database": spec.database,
        // Null for every other kind of load.
        "request": null,
        "load": spec.load,
        "trials": spec.trials,
        "placement": spec.placement,
    });
    if let Some(rules) = LoadKind::of(spec).map(LoadKind::rules) {
        identity[rules.field()] = rules.identity(spec);
    }
    // The margins are judged on the same trials. The releases are candidates, once they are known.
    if let Some(baseline) = &spec.baseline {
        identity["baseline"] = json!({ "name": baseline.name, "anchor": baseline.anchor });
    }
    identity
}

/// Name of the benchmark's PostgreSQL in this run; at most 42 characters.
#[must_use]
pub fn database_name(benchmark: &str, run: &str) -> String {
    format!("{benchmark}-{run}-db")
}

/// Name of the Job that fills the database, or restores it `after` an attempt; at most 53 characters. On the box a Job got its
/// pod up to a second later if another Job of the same name had just been deleted.
#[must_use]
pub fn seed_name(benchmark: &str, run: &str, after: Option<&str>) -> String {
    let first = format!("{benchmark}-{run}-seed");
    match after {
        Some(attempt) => format!("{first}-{}", hex_digest(attempt.as_bytes(), 4)),
        None => first,
    }
}

/// Whether a Job has a name of [`seed_name`].
#[must_use]
pub fn is_seed_name(name: &str, benchmark: &str, run: &str) -> bool {
    let rest = name.strip_prefix(&seed_name(benchmark, run, None));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Name of the Job that checks the database of one attempt; at most 49 characters.
#[must_use]
pub fn prepare_name(benchmark: &str, trial: &str) -> String {
    format!("{benchmark}-{}-prepare", hex_digest(trial.as_bytes(), 5))
}

/// Name of the ledger entry for an attempt at the preparation of the run.
#[must_use]
pub fn setup_name(benchmark: &str, run: &str, attempt: i32) -> String {
    let number = (attempt > 1).then(|| format!("-{attempt}"));
    format!("{benchmark}-{run}-setup{}", number.unwrap_or_default())
}

/// Name of the ledger entry with the releases that a run measures against. `spec` is the ID of the run without them.
#[must_use]
pub fn frozen_name(benchmark: &str, spec: &str) -> String {
    format!("{benchmark}-{spec}-baseline")
}

/// Name of an attempt and of its objects; at most 63 characters, as label values and services need.
#[must_use]
pub fn trial_name(benchmark: &str, run: &str, block: i32, candidate: &str, attempt: i32) -> String {
    format!("{benchmark}-{run}-b{block:02}-{candidate}-{attempt}")
}

/// Name of a candidate's backend in one attempt; at most 57 characters.
#[must_use]
pub fn backend_name(benchmark: &str, trial: &str, backend: &str) -> String {
    format!("{benchmark}-{}-{backend}", hex_digest(trial.as_bytes(), 5))
}

/// Name of the Service for all pods of one of a candidate's servers in one attempt; at most 63 characters.
#[must_use]
pub fn peers_name(benchmark: &str, trial: &str, workload: &str) -> String {
    format!("{}-peers", backend_name(benchmark, trial, workload))
}

/// Name of the lock of a node: readable, at most 63 characters, and different for each node.
#[must_use]
pub fn lock_name(node: &str) -> String {
    let readable: String = node.replace('.', "-").chars().take(30).collect();
    format!(
        "frugality-node-{readable}-{}",
        hex_digest(node.as_bytes(), 8)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::MAX_BLOCKS_OF_SWEEP;

    #[test]
    fn longest_names_fit_a_label() {
        let name = trial_name(
            &"b".repeat(30),
            "01234567",
            i32::try_from(MAX_BLOCKS_OF_SWEEP).unwrap(),
            &"c".repeat(15),
            20,
        );
        assert!(name.len() <= 63, "{} has {}", name, name.len());
        assert!(database_name(&"b".repeat(30), "01234567").len() <= 50);
        let seed = seed_name(&"b".repeat(30), "01234567", Some(&name));
        assert!(seed.len() <= 63);
        assert!(backend_name(&"b".repeat(30), &name, &"c".repeat(15)).len() <= 57);
    }

    #[test]
    fn every_node_has_its_own_lock() {
        let long = "n".repeat(253);
        let names = ["pi-1", "pi.1", &long, &long[1..]].map(lock_name);
        for name in &names {
            assert!(name.len() <= 63 && !name.contains('.'), "{name}");
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
        }
        assert!(names[0].starts_with("frugality-node-pi-1-"));
    }

    #[test]
    fn each_restore_has_a_name_of_its_own() {
        let name = |after| seed_name("shop", "01234567", after);
        let names = [
            name(None),
            name(Some("shop-01234567-b01-rust-1")),
            name(Some("shop-01234567-b01-rust-2")),
        ];
        assert!(names[0] != names[1] && names[1] != names[2]);
        for name in &names {
            assert!(is_seed_name(name, "shop", "01234567"), "{name}");
        }
        for other in [
            "shop-01234567-seeds",
            "shop-76543210-seed",
            "shop-01234567-db-1-initdb",
        ] {
            assert!(!is_seed_name(other, "shop", "01234567"), "{other}");
        }
    }
}
