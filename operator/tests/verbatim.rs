//! Texts of a user arrive byte for byte, although the kubelet interprets `$`.

use std::collections::BTreeMap;

use frugality_operator::{api::FrugalityBenchmark, plan::action::ChildObject};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::{Value, json};

use crate::common::{
    self,
    delivered::{Delivered, deliver},
    injector_pod, two_with,
};

/// Texts that Kubernetes would change: references to existing variables, escapes, and a `$` before `ä`.
const TEXTS: [&str; 6] = [
    "$$",
    "$(PORT) $(DATABASE_URL)",
    "$$(PGPASSWORD)",
    "5 $ä",
    "`${name}` === '$$' && /^a$/.test('$(A)')",
    "$",
];

fn candidate_pod(benchmark: &FrugalityBenchmark) -> PodSpec {
    pod_of(common::made(benchmark, |builder, candidate, node| {
        builder.servers(candidate, "trial", None, node)
    }))
}

fn pod_of(objects: Vec<ChildObject>) -> PodSpec {
    let pod = objects.into_iter().find_map(|object| match object {
        ChildObject::Deployment(it) => it.spec?.template.spec,
        ChildObject::Job(it) => it.spec?.template.spec,
        _ => None,
    });
    pod.unwrap()
}

/// The words and the variables with which the kubelet starts the first container.
fn started(pod: &PodSpec) -> Delivered {
    deliver(&pod.containers[0])
}

#[test]
fn the_stand_in_expands_variables_as_the_kubelet_does() {
    let container = Container {
        args: Some(
            [
                "$(A)", "$$(A)", "$$$(A)", "$(B)", "$(A", "$A", "a$", "$ä", "$$$$",
            ]
            .map(str::to_owned)
            .into(),
        ),
        env: serde_json::from_value(json!([
            {"name": "A", "value": "1"}, {"name": "C", "value": "$(A)$$(A)"},
        ]))
        .unwrap(),
        ..Container::default()
    };
    let delivered = deliver(&container);
    let args = [
        "1",
        "$(A)",
        "$1",
        "$(B)",
        "$(A",
        "$A",
        "a$",
        "$\u{c3}\u{fffd}",
        "$$",
    ];
    assert_eq!(delivered.words, args);
    assert_eq!(delivered.env["C"], "1$(A)");
}

#[test]
fn every_short_text_of_special_characters_arrives() {
    let mut texts = vec![String::new()];
    for length in 1..=6 {
        let longer = texts
            .iter()
            .filter(|text| text.chars().count() == length - 1);
        let longer: Vec<String> = longer
            .flat_map(|text| ["$", "(", ")", "A", "ä"].map(|next| format!("{text}{next}")))
            .collect();
        texts.extend(longer);
    }
    let env: Vec<Value> = std::iter::once(json!({"name": "A", "value": "expanded"}))
        .chain(
            texts
                .iter()
                .enumerate()
                .map(|(number, text)| json!({"name": format!("E{number}"), "value": text})),
        )
        .collect();
    let benchmark = two_with(&[
        ("/candidates/0/args", json!(texts)),
        ("/candidates/0/env", json!(env)),
    ]);
    let delivered = started(&candidate_pod(&benchmark));
    assert_eq!(delivered.words, texts);
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(delivered.env[&format!("E{number}")], *text);
    }
}

#[test]
fn a_candidate_gets_its_words_and_variables_as_written_and_the_whole_database_url() {
    for batch in [Value::Null, json!({})] {
        let mut changes = vec![
            ("/candidates/0/command", json!(TEXTS)),
            ("/candidates/0/args", json!(TEXTS)),
            (
                "/candidates/0/env",
                json!([{"name": "TEXT", "value": TEXTS[1]}]),
            ),
            ("/batch", batch.clone()),
        ];
        if !batch.is_null() {
            changes.push(("/request", Value::Null));
            changes.push(("/candidates/1/command", json!(["serve"])));
        }
        let delivered = started(&candidate_pod(&two_with(&changes)));
        let words = &delivered.words[delivered.words.len() - 2 * TEXTS.len()..];
        assert_eq!(words, [TEXTS, TEXTS].concat());
        assert_eq!(delivered.env["TEXT"], TEXTS[1]);
        let url = &delivered.env["DATABASE_URL"];
        assert!(
            url.starts_with("postgresql://PGUSER-of-secret:PGPASSWORD-of-secret@two-"),
            "{url}"
        );
    }
}

#[test]
fn a_request_and_a_script_reach_the_injector_as_written() {
    for text in TEXTS {
        let path = format!("/{}", text.replace(' ', ""));
        let headers = json!([{"name": "X-Text", "value": text}]);
        let request = json!({"method": "POST", "path": path, "headers": headers, "body": text});
        let words = started(&injector_pod(&two_with(&[("/request", request)]), 4)).words;
        let has = |word: &str| words.iter().any(|it| it == word);
        assert!(has(&format!("--header=X-Text:{text}")), "{words:?}");
        assert!(has(&format!("--body={text}")), "{words:?}");
        assert!(
            words
                .iter()
                .any(|it| it.starts_with("--url=") && it.ends_with(&path)),
            "{words:?}"
        );

        let script = format!("export default function () {{ {text} }}");
        let changes = [
            ("/request", Value::Null),
            ("/scenario", json!({"script": script})),
        ];
        let words = started(&injector_pod(&two_with(&changes), 4)).words;
        assert!(words.contains(&format!("--script={script}")), "{words:?}");
    }
}

#[test]
fn a_pattern_reaches_the_injector_as_written() {
    let pattern = r"^score $$|$([0-9]+)$";
    let changes = [
        ("/request", Value::Null),
        (
            "/batch",
            json!({"score": {"pattern": pattern, "unit": "points"}}),
        ),
        ("/candidates/0/command", json!(["a"])),
        ("/candidates/1/command", json!(["b"])),
    ];
    let words = started(&injector_pod(&two_with(&changes), 1)).words;
    assert!(
        words.contains(&format!("--score-pattern={pattern}")),
        "{words:?}"
    );
}

#[test]
fn settings_of_postgresql_arrive_as_written() {
    let parameters = BTreeMap::from([("work_mem", "$$ $(PGPASSWORD)")]);
    let benchmark = two_with(&[
        ("/database/provider", json!("Standalone")),
        ("/database/parameters", json!(parameters)),
    ]);
    let pod = pod_of(vec![common::made(&benchmark, |builder, _, node| {
        builder.database_server(benchmark.spec.database.as_ref().unwrap(), node)
    })]);
    let words = started(&pod).words;
    assert!(
        words.contains(&"work_mem=$$ $(PGPASSWORD)".to_owned()),
        "{words:?}"
    );
}
