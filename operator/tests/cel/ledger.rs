//! Rules of ledger entries.

use super::*;

fn entry(status: &Value) -> Value {
    json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityTrial",
        "metadata": {"name": "t"},
        "spec": {
            "benchmark": "b", "run": "01234567", "point": "c4-max", "block": 1, "position": 1,
            "attempt": 1, "candidate": "rust", "measuredNode": "pi-1",
            "injectorNode": "injector-1", "seed": 1,
        },
        "status": status,
    })
}

#[test]
fn an_entry_of_the_ledger_is_not_rewritten() {
    let schema = schema::<FrugalityTrial>();
    let before = entry(&json!({}));
    let mut after = before.clone();
    assert!(refusals(&schema, &after, Some(&before)).is_empty());
    after["spec"]["candidate"] = json!("python");
    assert_eq!(
        refusals(&schema, &after, Some(&before)),
        ["an entry of the ledger can't be rewritten"]
    );
}

#[test]
fn an_entry_that_has_an_outcome_is_final() {
    let schema = schema::<FrugalityTrial>();
    let open = entry(&json!({"idleBefore": {"startUnixSeconds": 1.0, "endUnixSeconds": 2.0}}));
    let void = entry(&json!({"outcome": "Void", "reason": "PodReplaced"}));
    let measured = entry(&json!({"outcome": "Measured", "reason": "Measured"}));
    assert!(refusals(&schema, &void, Some(&open)).is_empty());
    assert!(refusals(&schema, &void, Some(&void)).is_empty());
    assert_eq!(
        refusals(&schema, &measured, Some(&void)),
        ["an entry of the ledger that has an outcome can't be rewritten"]
    );
}
