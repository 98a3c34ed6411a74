//! What differs between two benchmarks, and which differences change what a figure means.

use std::collections::BTreeSet;

use frugality_operator::{
    api::{DecidingFigure, FrugalityTrial},
    text,
};
use serde_json::{Map, Value, json};

use super::side::Side;
use crate::table::dash;

/// Longest value of a cell, in characters.
const MOST_CHARS: usize = 60;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Field, or property of the node.
    pub(super) what: String,
    pub(super) one: String,
    pub(super) other: String,
    /// Why the figures may not be compared; `None` if they may.
    pub(super) forbids: Option<&'static str>,
}

/// Fields of the spec that decide what a figure means.
const MEASURED: [(&str, &str); 6] = [
    ("request", "figures are about another request"),
    ("scenario", "figures are about another script"),
    ("batch", "figures are about other executions"),
    ("load", "figures are at another load"),
    ("database", "the candidates had another database"),
    ("energy", "another kind of joules decides"),
];

/// Fields within those that do not: they decide what is judged.
const JUDGED: [&str; 6] = [
    "request.responsesMayDiffer",
    "request.queriesMayDiffer",
    "scenario.requestsMayDiffer",
    "scenario.queriesMayDiffer",
    "energy.allowModelled",
    "energy.tieWithin",
];

/// All differences, those that forbid a comparison first.
pub(super) fn changes(one: &Side, other: &Side) -> Vec<Change> {
    let specs = [one, other].map(|side| {
        // A spec is always representable.
        serde_json::to_value(&side.benchmark.spec).unwrap_or_default()
    });
    let mut changes = nodes(one, other);
    changes.extend(of_candidates(one, other));
    for (field, why) in MEASURED {
        let [one, other] = [&specs[0], &specs[1]].map(|spec| &spec[field]);
        differences(field, one, other, Some(why), &mut changes);
    }
    let idle = "/trials/idleBaseline";
    let [before, after] = [&specs[0], &specs[1]].map(|spec| spec.pointer(idle));
    differences(
        "trials.idleBaseline",
        before.unwrap_or(&Value::Null),
        after.unwrap_or(&Value::Null),
        Some("the idle baseline is measured in another way"),
        &mut changes,
    );
    changes.extend(images(one, other));
    changes.extend(other_images(one, other));
    changes.extend(confidence(one, other));
    let [candidates, others] = [&specs[0], &specs[1]].map(|spec| by_name(&spec["candidates"]));
    differences("candidates", &candidates, &others, None, &mut changes);
    for field in ["trials", "placement", "budgets", "baseline", "costs"] {
        let without = |spec: &Value| {
            let mut value = spec[field].clone();
            if let Value::Object(fields) = &mut value {
                fields.remove("idleBaseline");
            }
            value
        };
        let [one, other] = [&specs[0], &specs[1]].map(without);
        differences(field, &one, &other, None, &mut changes);
    }
    changes.sort_by_key(|change| change.forbids.is_none());
    changes
}

/// The nodes, their software and their meters.
fn nodes(one: &Side, other: &Side) -> Vec<Change> {
    let status = [one, other].map(|side| side.benchmark.current_status());
    let [one_status, other_status] = status.map(|it| it.cloned().unwrap_or_default());
    let known_text = |text: &Option<String>| text.clone().unwrap_or_else(dash);
    let deciding = |it: Option<DecidingFigure>| it.map_or_else(dash, |it| it.word().to_owned());
    let shared = |it: Option<bool>| it.map_or_else(dash, |it| it.to_string());
    let pairs = [
        (
            "measured node",
            known_text(&one_status.measured_node),
            known_text(&other_status.measured_node),
            "another node draws another power for the same work",
        ),
        (
            "injector's node",
            known_text(&one_status.injector_node),
            known_text(&other_status.injector_node),
            "the load came over another path",
        ),
        (
            "node is shared",
            shared(one_status.shared_node),
            shared(other_status.shared_node),
            "the injector's energy is in one of them",
        ),
        (
            "provenance of power",
            known_text(&one_status.provenance),
            known_text(&other_status.provenance),
            "measured and modelled joules are different quantities",
        ),
        (
            "meter",
            known_text(&one_status.meter),
            known_text(&other_status.meter),
            "another meter, or another version of it, has another error",
        ),
        (
            "deciding figure",
            deciding(one_status.deciding_figure),
            deciding(other_status.deciding_figure),
            "another kind of joules decides",
        ),
    ];
    let software = ["kernel", "governor", "firmware"].map(|field| {
        (
            field,
            known(one.platform(field)),
            known(other.platform(field)),
            "other software of the node changes the cost of the same work",
        )
    });
    pairs
        .into_iter()
        .chain(software)
        .filter(|(_, one, other, _)| one != other)
        .map(|(what, one, other, why)| Change {
            what: what.to_owned(),
            one,
            other,
            forbids: Some(why),
        })
        .collect()
}

/// Node, zone and settings of the meter of each candidate, if both ledgers have attempts of it. The status names only the
/// nodes of all candidates together.
fn of_candidates(one: &Side, other: &Side) -> Vec<Change> {
    type Of = fn(&FrugalityTrial) -> Option<String>;
    let properties: [(&str, Of, &str); 3] = [
        (
            "node",
            |it| Some(it.spec.measured_node.clone()),
            "another node draws another power for the same work",
        ),
        (
            "zone of the meter",
            |it| Some(it.status.as_ref()?.energy.as_ref()?.zone.clone()),
            "another zone is another part of the node",
        ),
        (
            "settings of the meter",
            |it| {
                it.status
                    .as_ref()?
                    .energy
                    .as_ref()?
                    .meter
                    .configuration
                    .clone()
            },
            "a meter with other settings has another error",
        ),
    ];
    let mut changes = Vec::new();
    for candidate in one.candidates().intersection(&other.candidates()) {
        for (what, of, why) in properties {
            let [before, after] = [one, other].map(|side| side.of_candidate(candidate, of));
            if !before.is_empty() && !after.is_empty() && before != after {
                changes.push(Change {
                    what: format!("{what} of {candidate}"),
                    one: known(before),
                    other: known(after),
                    forbids: Some(why),
                });
            }
        }
    }
    changes
}

fn known(set: BTreeSet<String>) -> String {
    let values: Vec<_> = set.into_iter().collect();
    if values.is_empty() {
        dash()
    } else {
        values.join(", ")
    }
}

/// The confidence of the intervals, which depends on the number of looks.
fn confidence(one: &Side, other: &Side) -> Option<Change> {
    let [one, other] = [one, other].map(|side| {
        let look = side.benchmark.current_status()?.look?;
        Some(text::confidence(look.confidence))
    });
    (one != other).then(|| Change {
        what: "confidence of intervals".to_owned(),
        one: one.unwrap_or_else(dash),
        other: other.unwrap_or_else(dash),
        forbids: None,
    })
}

/// The images of injector and database that ran, by digest. The operator's release and the cluster decide them.
fn other_images(one: &Side, other: &Side) -> Option<Change> {
    let [before, after] = [one, other].map(Side::other_digests);
    let is_known = !before.is_empty() && !after.is_empty();
    (is_known && before != after).then(|| Change {
        what: "images of injector and database, by digest".to_owned(),
        one: only(&before, &after),
        other: only(&after, &before),
        forbids: Some("another injector or database changes the cost of the same work"),
    })
}

/// The images of the candidates that ran, by digest. That they differ is what a comparison is about.
fn images(one: &Side, other: &Side) -> Vec<Change> {
    let names: BTreeSet<&str> = one
        .candidates()
        .into_iter()
        .chain(other.candidates())
        .collect();
    names
        .into_iter()
        .filter_map(|name| {
            let [before, after] = [one, other].map(|side| side.digests(name));
            (before != after).then(|| Change {
                what: format!("images of {name}, by digest"),
                one: only(&before, &after),
                other: only(&after, &before),
                forbids: None,
            })
        })
        .collect()
}

/// The digests that only one side has.
fn only(own: &BTreeSet<String>, others: &BTreeSet<String>) -> String {
    let own: Vec<_> = own.difference(others).map(|it| short(it)).collect();
    if own.is_empty() {
        dash()
    } else {
        own.join(", ")
    }
}

/// The first twelve digits of a digest, as container tools show it.
fn short(image: &str) -> String {
    match image.split_once("sha256:") {
        Some((_, digest)) => format!("sha256:{}", digest.chars().take(12).collect::<String>()),
        None => image.to_owned(),
    }
}

/// A list of candidates as fields, so that their order makes no difference.
fn by_name(list: &Value) -> Value {
    let items = list.as_array().into_iter().flatten();
    let named = items.filter_map(|it| Some((it["name"].as_str()?.to_owned(), it.clone())));
    Value::Object(named.collect::<Map<_, _>>())
}

/// The leaves that differ, each with its path.
fn differences(
    path: &str,
    one: &Value,
    other: &Value,
    forbids: Option<&'static str>,
    changes: &mut Vec<Change>,
) {
    if one == other {
        return;
    }
    if let (Value::Object(fields), Value::Object(others)) = (one, other) {
        let names: BTreeSet<&String> = fields.keys().chain(others.keys()).collect();
        for name in names {
            let [one, other] = [fields, others].map(|it| it.get(name).unwrap_or(&Value::Null));
            differences(&format!("{path}.{name}"), one, other, forbids, changes);
        }
        return;
    }
    changes.push(Change {
        what: path.to_owned(),
        one: cell(one),
        other: cell(other),
        forbids: forbids.filter(|_| !JUDGED.contains(&path)),
    });
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return dash(),
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.contains_key("name") => json!(fields["image"]).to_string(),
        value => value.to_string(),
    };
    let text = text.replace(char::is_control, " ");
    if text.chars().count() <= MOST_CHARS {
        return text;
    }
    text.chars().take(MOST_CHARS - 1).chain(['…']).collect()
}
