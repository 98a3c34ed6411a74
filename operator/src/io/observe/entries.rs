//! The entries of a ledger, read page by page. A measurement may have a thousand entries, and the operator reads
//! them every second.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::{
    Client, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::Request,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    api::{FrugalityTrial, LABEL_RUN},
    plan::facts::Unreadable,
};

/// Entries per page; 100 entries are about a megabyte.
const PAGE: u32 = 100;

/// Contents of a ledger.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) trials: Vec<FrugalityTrial>,
    /// An unreadable entry must not hide the others, and must not be ignored.
    pub(super) unreadable: Vec<Unreadable>,
}

/// Neither kube's list nor its DeserializeGuard: their intermediate form allows no numbers as map keys and takes
/// ten times the text's memory.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

impl Entries {
    /// Lists the entries that `of` selects.
    pub(super) async fn list(
        client: &Client,
        namespace: &str,
        of: &ListParams,
    ) -> Result<Self, kube::Error> {
        let request = Request::new(FrugalityTrial::url_path(&(), Some(namespace)));
        let mut params = of.clone().limit(PAGE);
        let mut entries = Self::default();
        loop {
            let list = request.list(&params).map_err(kube::Error::BuildRequest)?;
            let text = client.request_text(list).await?;
            let page: Page<'_> = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
            for item in page.items {
                entries.add(item.get()).map_err(kube::Error::SerdeError)?;
            }
            match page.metadata.continue_ {
                Some(token) if !token.is_empty() => params.continue_token = Some(token),
                _ => return Ok(entries),
            }
        }
    }

    fn add(&mut self, item: &str) -> serde_json::Result<()> {
        match serde_json::from_str::<FrugalityTrial>(item) {
            Ok(mut trial) => {
                // The operator does not need them, and they are the largest part.
                trial.metadata.managed_fields = None;
                self.trials.push(trial);
            }
            Err(error) => {
                let entry: DynamicObject = serde_json::from_str(item)?;
                self.unreadable.push(Unreadable {
                    name: entry.name_any(),
                    run: entry.labels().get(LABEL_RUN).cloned(),
                    error: error.to_string(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use axum::{Router, extract::RawQuery, routing::get};
    use serde_json::{Value, json};

    use super::*;

    fn entry(name: &str, block: &Value) -> Value {
        // A result whose `codes` are a map with numbers as keys.
        let sample = include_str!("../../../../measure/tests/data/fortio-sample.json");
        json!({
            "apiVersion": "frugality.dev/v1alpha1",
            "kind": "FrugalityTrial",
            "metadata": {
                "name": name,
                "labels": { LABEL_RUN: "r" },
                "managedFields": [{ "manager": "m", "operation": "Update", "fieldsV1": { "f:spec": {} } }],
            },
            "spec": {
                "benchmark": "b", "run": "r", "point": "c4-max", "block": block, "position": 1, "attempt": 1,
                "candidate": "rust", "measuredNode": "pi-1", "injectorNode": "injector-1", "seed": 7,
            },
            "status": { "fortio": frugality_measure::fortio::parse(sample).unwrap() },
        })
    }

    /// Two pages, as an API server sends them.
    async fn pages(RawQuery(query): RawQuery) -> String {
        let query = query.unwrap();
        let whole = |name: &str| entry(name, &json!(1));
        let (items, next) = if query.ends_with("continue=more") {
            (vec![whole("second"), whole("third")], "")
        } else {
            (vec![whole("first"), entry("bad", &json!("one"))], "more")
        };
        for asked in ["labelSelector=a%3Db", &format!("limit={PAGE}")] {
            assert!(query.contains(asked), "{query}");
        }
        json!({ "metadata": { "continue": next }, "items": items }).to_string()
    }

    #[tokio::test]
    async fn every_page_is_read_and_unreadable_entries_are_listed() {
        let path = "/apis/frugality.dev/v1alpha1/namespaces/lab/frugalitytrials";
        let client = Client::new(Router::new().route(path, get(pages)), "lab");
        let of = ListParams::default().labels("a=b");
        let entries = Entries::list(&client, "lab", &of).await.unwrap();

        let names = entries.trials.iter().map(ResourceExt::name_any);
        assert_eq!(names.collect::<Vec<_>>(), ["first", "second", "third"]);
        for trial in &entries.trials {
            let fortio = trial.status.as_ref().unwrap().fortio.as_ref().unwrap();
            assert!(fortio.codes.contains_key(&200));
            assert!(trial.metadata.managed_fields.is_none());
        }
        assert_eq!(entries.unreadable.len(), 1);
        let bad = &entries.unreadable[0];
        assert_eq!((bad.name.as_str(), bad.run.as_deref()), ("bad", Some("r")));
        assert!(bad.error.contains("one"), "{}", bad.error);
    }
}
