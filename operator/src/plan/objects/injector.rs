//! The Job that sends the load of an attempt.

use crate::{
    api::{Candidate, Role},
    load::rules::LoadArguments,
    plan::{
        action::ChildObject,
        objects::{
            builder::{Builder, INJECTOR_UID, TERMINATION_LOG},
            parts::{restricted_container, words},
        },
        protocol::LONGEST_EDGE_SECONDS,
        settings::Point,
    },
    time,
};
use std::collections::BTreeMap;

use frugality_measure::fortio::Amount;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use kube::ResourceExt;

/// Container that sends the load.
pub const INJECTOR_CONTAINER: &str = "injector";
/// Time limit for the injector to write its result after an interrupt, in seconds.
const INTERRUPT_SECONDS: f64 = 30.0;
/// At a low rate the tail is longer, so that it holds this many requests.
const LEAST_REQUESTS_OF_TAIL: f64 = 3.0;
/// The injector accepts spans shorter than a day.
const MAX_INJECTION_SECONDS: f64 = 86_399.0;

/// The load of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct PointLoad<'a> {
    /// Its point.
    pub point: &'a Point,
    /// Requests per second, if the point is a load level.
    pub level_rate: Option<f64>,
    /// Shortest load after the measured window, in seconds.
    pub tail_seconds: f64,
}

impl<'a> PointLoad<'a> {
    /// The load at a point that is not a load level, with the longest tail.
    #[must_use]
    pub fn at(point: &'a Point) -> Self {
        Self {
            point,
            level_rate: None,
            tail_seconds: LONGEST_EDGE_SECONDS,
        }
    }
}

impl Builder<'_> {
    /// The Job that sends the load of one attempt.
    #[must_use]
    pub fn injector(
        &self,
        candidate: &Candidate,
        trial: &str,
        load: PointLoad<'_>,
        injector: &BTreeMap<String, String>,
        clock_url: Option<&str>,
    ) -> ChildObject {
        let image = if self.settings.is_sent_by_k6_at(load.point) {
            &self.config.injector_k6_image
        } else {
            &self.config.injector_image
        };
        let container = Container {
            name: INJECTOR_CONTAINER.into(),
            image: Some(image.clone()),
            args: Some(words(self.injector_args(candidate, trial, load, clock_url))),
            resources: Some(self.config.pods.injector_resources.clone()),
            ..restricted_container(INJECTOR_UID)
        };
        self.job(
            trial,
            Role::Injector,
            Some(trial),
            PodSpec {
                containers: vec![container],
                node_selector: Some(injector.clone()),
                termination_grace_period_seconds: time::whole_seconds(INTERRUPT_SECONDS),
                ..self.pod()
            },
        )
    }

    /// Length of the load after the measured window, in seconds.
    fn tail_seconds(&self, load: PointLoad<'_>) -> f64 {
        if !self.settings.kind.rules().has_short_units() {
            return LONGEST_EDGE_SECONDS;
        }
        let rate = load.level_rate.or(self.settings.rate);
        let of_tail = rate.map_or(0.0, |rate| LEAST_REQUESTS_OF_TAIL / rate);
        load.tail_seconds.max(of_tail).min(LONGEST_EDGE_SECONDS)
    }

    fn injector_args(
        &self,
        candidate: &Candidate,
        trial: &str,
        load: PointLoad<'_>,
        clock_url: Option<&str>,
    ) -> Vec<String> {
        let spec = &self.benchmark.spec;
        let settings = self.settings;
        let rules = settings.kind.rules();
        let namespace = self.benchmark.namespace().unwrap_or_default();
        let mut args = vec![
            "run".to_owned(),
            format!(
                "--url=http://{trial}.{namespace}.svc:{}{}",
                candidate.server.port,
                rules.path(spec)
            ),
            format!("--connections={}", load.point.connections),
            format!("--warm-up-seconds={}", settings.warm_up_seconds),
            format!("--tail-seconds={}", self.tail_seconds(load)),
            format!("--timeout-seconds={}", settings.timeout_seconds),
            format!("--termination-log={TERMINATION_LOG}"),
        ];
        args.push(match settings.amount {
            Amount::DurationSeconds(seconds) => format!("--duration-seconds={seconds}"),
            Amount::Requests(requests) => format!("--requests={requests}"),
        });
        if let Amount::Requests(_) = settings.amount {
            let limit = settings.deadline_seconds.min(MAX_INJECTION_SECONDS);
            args.push(format!("--limit-seconds={limit}"));
        }
        if let Some(rate) = load.level_rate.or(settings.rate) {
            args.push(format!("--rate={rate}"));
        }
        args.extend(rules.injector_args(
            spec,
            &LoadArguments {
                trial,
                sending: settings.sending_at(load.point),
                expected_status: &settings.expected_status,
                ramp_up_seconds: settings.ramp_up_seconds,
            },
        ));
        if settings.is_endurance() {
            args.push("--course".to_owned());
        }
        if let Some(url) = clock_url {
            args.push(format!("--clock-url={url}"));
        }
        args
    }
}
