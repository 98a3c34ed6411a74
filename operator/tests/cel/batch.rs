//! Rules of batches.

use super::*;

/// Changes that replace the request by a program of the candidate.
fn executed<'a>(batch: Value, load: Value, changes: &Value) -> Vec<(&'a str, Value)> {
    let mut candidate = json!({"name": "rust", "image": "x", "command": ["stockfish"]});
    for (name, value) in changes.as_object().unwrap() {
        candidate[name] = value.clone();
    }
    vec![
        ("spec/request", Value::Null),
        ("spec/batch", batch),
        ("spec/load", load),
        ("spec/candidates", json!([candidate])),
    ]
}

#[test]
fn there_is_one_execution_at_a_time() {
    let of = |load: Value| executed(json!({}), load, &json!({}));
    let kept = of(json!({"connections": 1, "duration": "20s"}));
    for load in [
        json!({"connections": 2}),
        json!({"connections": 1, "rate": 5}),
        json!({"connections": 1, "requests": 1000}),
        json!({"connections": 1, "sweep": {"replicas": [1, 2]}}),
    ] {
        rule(
            "with a batch there is one execution at a time",
            &of(load),
            &kept,
        );
    }
    rule(
        "with a batch there is one execution at a time",
        &of(json!({"connections": 2})),
        &of(json!({})),
    );
    let message = "batch.executions and load.duration both say";
    let of = |load: Value| executed(json!({"executions": 5}), load, &json!({}));
    let both = json!({"connections": 1, "duration": "20s"});
    rule(message, &of(both), &of(json!({"connections": 1})));
    let message = "batch.timeout must be from 1s to 1h";
    let of = |timeout: &str| {
        executed(
            json!({"timeout": timeout}),
            json!({"connections": 1}),
            &json!({}),
        )
    };
    rule(message, &of("61m"), &of("1h"));
}

#[test]
fn budgets_of_a_batch_need_no_latency_of_many_requests() {
    let of = |budget: Value| {
        let mut changes = executed(json!({}), json!({"connections": 1}), &json!({}));
        changes.push(("spec/budgets", json!([budget])));
        changes
    };
    let joules = |more: Value| {
        let mut budget = json!({"candidate": "rust", "maxJoulesPerRequest": "0.5"});
        let fields = more.as_object().unwrap().clone();
        budget.as_object_mut().unwrap().extend(fields);
        of(budget)
    };
    let message = "atMost and maxEnergyDelayJouleSeconds are for request and scenario";
    for bad in [
        json!({"atMost": {"p99Milliseconds": 50}}),
        json!({"maxEnergyDelayJouleSeconds": 1}),
    ] {
        rule(message, &joules(bad), &joules(json!({})));
    }
}

#[test]
fn a_batch_needs_a_command_in_one_pod() {
    let of = |changes: Value| executed(json!({}), json!({"connections": 1}), &changes);
    let message = "with a batch every candidate needs command";
    rule(message, &of(json!({"command": []})), &of(json!({})));
    let message = "with a batch each candidate is one pod";
    rule(
        message,
        &of(json!({"replicas": 2})),
        &of(json!({"replicas": 1})),
    );
    rule(
        message,
        &of(json!({"peers": true})),
        &of(json!({"peers": false})),
    );
}

#[test]
fn score_and_work_are_numbers_that_can_be_read() {
    let of = |batch: Value| executed(batch, json!({"connections": 1}), &json!({}));
    let score = |pattern: &str| of(json!({"score": {"pattern": pattern, "unit": "u"}}));
    let message = "batch.score.pattern has no group";
    rule(message, &score("score [0-9]+"), &score("score ([0-9]+)"));
    let work = |work: Value| of(json!({"work": work}));
    let pattern = |text: &str| work(json!({"pattern": text, "unit": "u"}));
    let message = "batch.work.pattern has no group";
    rule(message, &pattern("work [0-9]+"), &pattern("work ([0-9]+)"));
    let message = "batch.work needs either pattern";
    let given = work(json!({"amount": "7", "unit": "u"}));
    rule(message, &work(json!({"unit": "u"})), &given);
    let both = work(json!({"unit": "u", "amount": "7", "pattern": "(a)"}));
    rule(message, &both, &given);
    let message = "batch.work.amount must be above 0";
    rule(message, &work(json!({"amount": "0", "unit": "u"})), &given);
}
