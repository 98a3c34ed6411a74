//! A load that repeats one request.

use serde_json::{Value, json};

use super::{
    rules::{LoadArguments, LoadRules, MayDiffer, Sending},
    units::{REQUEST, Units},
};
use crate::api::{FrugalityBenchmarkSpec, Request};

/// `spec.request`.
pub struct RequestLoad;

impl LoadRules for RequestLoad {
    fn field(&self) -> &'static str {
        "request"
    }

    fn identity(&self, spec: &FrugalityBenchmarkSpec) -> Value {
        let request = spec.request.clone().map(|request| Request {
            responses_may_differ: false,
            queries_may_differ: false,
            ..request
        });
        json!(request)
    }

    fn units(&self, _: &FrugalityBenchmarkSpec) -> Units {
        Units::plain(REQUEST)
    }

    fn expected_status(&self, spec: &FrugalityBenchmarkSpec) -> Vec<u16> {
        let request = spec.request.iter();
        request
            .flat_map(|it| &it.expected_status)
            .filter_map(|code| u16::try_from(*code).ok())
            .collect()
    }

    fn has_arrivals(&self) -> bool {
        true
    }

    fn has_short_units(&self) -> bool {
        true
    }

    fn is_sent_by_k6(&self, sending: Sending) -> bool {
        sending == Sending::Open
    }

    fn may_differ(&self, spec: &FrugalityBenchmarkSpec) -> MayDiffer {
        let request = spec.request.as_ref();
        MayDiffer {
            responses: request.is_some_and(|it| it.responses_may_differ),
            requests: true,
            queries: spec.database.is_none() || request.is_some_and(|it| it.queries_may_differ),
            executions: true,
        }
    }

    fn path<'a>(&self, spec: &'a FrugalityBenchmarkSpec) -> &'a str {
        spec.request.as_ref().map_or("", |request| &request.path)
    }

    fn injector_args(
        &self,
        spec: &FrugalityBenchmarkSpec,
        load: &LoadArguments<'_>,
    ) -> Vec<String> {
        let Some(request) = &spec.request else {
            return Vec::new();
        };
        let mut args = vec![
            format!("--method={}", request.method.as_str()),
            format!("--labels={}", load.trial),
        ];
        let headers = request.headers.iter();
        args.extend(headers.map(|header| format!("--header={}:{}", header.name, header.value)));
        args.extend(request.body.iter().map(|body| format!("--body={body}")));
        match load.sending {
            Sending::Closed => {}
            Sending::Skipping => args.push("--skip-late".to_owned()),
            Sending::Open => {
                args.push("--open".to_owned());
                let codes = load.expected_status.iter();
                args.extend(codes.map(|code| format!("--expected-status={code}")));
            }
        }
        args
    }
}
