//! The Prometheus text format, version 0.0.4.
//!
//! The writer is our own: OpenMetrics encoders name a counter's family without `_total`. A reader of the
//! older format, which Kepler serves, then finds the counters without a type.

use std::fmt::{Display, Write as _};

use crate::cli::MeterSettings;
use crate::conditions::Cause;
use crate::own_cost;
use crate::pods::PodName;
use crate::sampler::Published;
use frugality_measure::attribution::{Accounts, seconds};
use frugality_measure::model::LinearModel;

/// Media type of the text that [`render`] returns.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The whole exposition of the published state, as of `now_unix_seconds`.
pub(crate) fn render(
    settings: &MeterSettings,
    published: &Published,
    now_unix_seconds: f64,
) -> String {
    let mut page = Page {
        text: String::with_capacity(room(published)),
        node: &settings.node_name,
    };
    meter(&mut page, settings, published);
    saturation(&mut page, published);
    own(&mut page);
    conditions(&mut page, published);
    if let Some(accounts) = &published.accounts {
        reading(&mut page, published, accounts, now_unix_seconds);
        node(&mut page, published, accounts);
        pods(&mut page, published, accounts);
    }
    page.text
}

/// Estimated length: four samples per pod of some 200 bytes each, and the rest.
fn room(published: &Published) -> usize {
    let pods = published.accounts.as_ref().map_or(0, |it| it.pods.len());
    8_192 + pods * 832
}

fn meter(page: &mut Page<'_>, settings: &MeterSettings, published: &Published) {
    let source = &published.source;
    page.gauge(
        "frugality_meter_info",
        "The meter and the source of its power.",
    )
    .sample(
        &[
            ("board", &source.board),
            ("configuration", &settings.digest()),
            ("provenance", source.provenance.as_str()),
            ("source", source.name),
            ("version", env!("CARGO_PKG_VERSION")),
        ],
        1,
    );
    page.gauge(
        "frugality_meter_interval_seconds",
        "Time between two readings.",
    )
    .sample(&[], settings.interval.as_secs_f64());
    for (name, help, value) in [
        (
            "frugality_meter_max_watts",
            "The highest power that the source can report for this node.",
            source.max_watts,
        ),
        (
            "frugality_meter_energy_relative_uncertainty",
            "Relative standard uncertainty of one minute's energy.",
            published.relative_uncertainty,
        ),
        (
            "frugality_meter_energy_resolution_joules",
            "Step of the instrument's counter.",
            published.resolution_joules,
        ),
    ] {
        if let Some(value) = value {
            page.gauge(name, help)
                .sample(&[("zone", source.zone)], value);
        }
    }
    model(page, source.model);
}

/// The coefficients of the board's model, if the model computes the joules, and their uncertainties.
fn model(page: &mut Page<'_>, model: Option<LinearModel>) {
    let known = model.and_then(|model| model.uncertainty);
    for (name, help, value) in [
        (
            "frugality_meter_model_idle_watts",
            "Idle power of the node in the model.",
            model.map(|model| model.idle_watts),
        ),
        (
            "frugality_meter_model_watts_per_cpu",
            "Power that the model adds for one busy CPU.",
            model.map(|model| model.watts_per_cpu),
        ),
        (
            "frugality_meter_model_idle_watts_relative_uncertainty",
            "Relative standard uncertainty of the model's idle watts; absent if unknown.",
            known.map(|known| known.idle_watts),
        ),
        (
            "frugality_meter_model_watts_per_cpu_relative_uncertainty",
            "Relative standard uncertainty of the model's watts per CPU; absent if unknown.",
            known.map(|known| known.watts_per_cpu),
        ),
    ] {
        if let Some(value) = value {
            page.gauge(name, help).sample(&[], value);
        }
    }
}

/// Absent if the end of the instrument's scale is unknown.
fn saturation(page: &mut Page<'_>, published: &Published) {
    if let Some(readings) = published.saturated_readings {
        page.counter(
            "frugality_meter_saturated_readings_total",
            "Readings at the end of the instrument's scale: the true power may be higher.",
        )
        .sample(&[("zone", published.source.zone)], readings);
    }
}

fn own(page: &mut Page<'_>) {
    if let Some(seconds) = own_cost::cpu_seconds() {
        page.counter(
            "frugality_meter_cpu_seconds_total",
            "CPU time of the meter itself.",
        )
        .sample(&[], seconds);
    }
    if let Some(bytes) = own_cost::resident_bytes() {
        page.gauge(
            "frugality_meter_resident_memory_bytes",
            "Memory of the meter itself.",
        )
        .sample(&[], bytes);
    }
}

fn conditions(page: &mut Page<'_>, published: &Published) {
    let conditions = &published.conditions;
    let platform = conditions.platform.labels();
    if !platform.is_empty() {
        page.gauge(
            "frugality_meter_platform_info",
            "The node's kernel, frequency governor and firmware, as far as they are known.",
        )
        .sample(&platform, 1);
    }
    let mut family = page.counter(
        "frugality_meter_throttled_seconds_total",
        "Time for which the node was observed in that state.",
    );
    for cause in Cause::ALL {
        if let Some(seconds) = conditions.seconds(cause) {
            family.sample(&[("cause", cause.as_str())], seconds);
        }
    }
    if let Some(celsius) = conditions.temperature_celsius {
        page.gauge(
            "frugality_meter_node_temperature_celsius",
            "Temperature of the processor.",
        )
        .sample(&[], celsius);
    }
    if let Some(hertz) = conditions.frequency_hertz {
        page.gauge(
            "frugality_meter_node_frequency_hertz",
            "Mean frequency of the processors.",
        )
        .sample(&[], hertz);
    }
}

fn reading(page: &mut Page<'_>, published: &Published, accounts: &Accounts, now_unix_seconds: f64) {
    let zone = [("zone", published.source.zone)];
    page.gauge(
        "frugality_meter_reading_timestamp_seconds",
        "Unix time, on the node's clock, at which the counters here were true.",
    )
    .sample(&zone, accounts.reading_unix_seconds());
    page.gauge(
        "frugality_meter_start_time_seconds",
        "Unix time at which the meter began to count.",
    )
    .sample(&[], published.start_unix_seconds);
    if let Some(at) = published.last_true_reading_unix_seconds {
        page.gauge(
            "frugality_meter_last_true_reading_age_seconds",
            "Age of the last reading of the instrument itself.",
        )
        .sample(&zone, (now_unix_seconds - at).max(0.0));
    }
}

fn node(page: &mut Page<'_>, published: &Published, accounts: &Accounts) {
    let energy = &accounts.node;
    let source = &published.source;
    let labels = [("path", source.path.as_str()), ("zone", source.zone)];
    for (name, help, joules) in [
        (
            "kepler_node_cpu_joules_total",
            "Energy of the node.",
            energy.total_joules,
        ),
        (
            "kepler_node_cpu_active_joules_total",
            "Part of the node's energy in proportion to its CPU use.",
            energy.active_joules,
        ),
        (
            "kepler_node_cpu_idle_joules_total",
            "The node's energy less its active energy.",
            energy.idle_joules,
        ),
    ] {
        page.counter(name, help).sample(&labels, joules);
    }
    if let Some(rates) = &accounts.rates {
        for (name, help, watts) in [
            (
                "kepler_node_cpu_watts",
                "Power of the node over the last interval.",
                rates.total_watts,
            ),
            (
                "kepler_node_cpu_active_watts",
                "Active power of the node over the last interval.",
                rates.active_watts,
            ),
            (
                "kepler_node_cpu_idle_watts",
                "Idle power of the node over the last interval.",
                rates.idle_watts,
            ),
        ] {
            page.gauge(name, help).sample(&labels, watts);
        }
        page.gauge(
            "kepler_node_cpu_usage_ratio",
            "CPU use of the node over the last interval, 0 to 1.",
        )
        .sample(&[], rates.usage_ratio);
    }
    let zone = [("zone", source.zone)];
    page.counter(
        "frugality_system_cpu_joules_total",
        "Active energy used outside pods.",
    )
    .sample(&zone, energy.system_joules);
    page.counter(
        "frugality_ended_pods_cpu_joules_total",
        "Active energy of pods that have ended; with the living pods and the system it adds up to active.",
    )
    .sample(&zone, energy.ended_pods_joules);
    page.counter(
        "frugality_node_cpu_seconds_total",
        "CPU time of the node's cgroup.",
    )
    .sample(&[], accounts.node_cpu_seconds());
    if let Some(processors) = accounts.processors() {
        if let Some(work) = processors.work {
            for (name, help, nanoseconds) in [
                (
                    "frugality_processors_busy_seconds_total",
                    "CPU time of the node's processors without interrupts, of all users.",
                    work.busy_nanoseconds,
                ),
                (
                    "frugality_processors_interrupt_seconds_total",
                    "CPU time of the node's processors in interrupts.",
                    work.interrupt_nanoseconds,
                ),
            ] {
                page.counter(name, help).sample(&[], seconds(nanoseconds));
            }
        }
        page.counter(
            "frugality_processors_stolen_seconds_total",
            "CPU time of the node's processors that the hypervisor gave to others.",
        )
        .sample(&[], seconds(processors.stolen_nanoseconds));
    }
}

fn pods(page: &mut Page<'_>, published: &Published, accounts: &Accounts) {
    let zone = published.source.zone;
    let nameless = PodName::default();
    let pods = || {
        accounts.pods.iter().map(|(uid, pod)| {
            let name = published.names.get(uid).unwrap_or(&nameless);
            let labels = [
                ("pod_id", &**uid),
                ("pod_name", name.name.as_str()),
                ("pod_namespace", name.namespace.as_str()),
            ];
            (labels, pod)
        })
    };
    let kepler = |[id, name, namespace]: [(&'static str, _); 3]| {
        [id, name, namespace, ("state", "running"), ("zone", zone)]
    };

    let mut family = page.counter(
        "kepler_pod_cpu_joules_total",
        "Active energy of the pod since the meter first saw it.",
    );
    for (labels, pod) in pods() {
        family.sample(&kepler(labels), pod.joules);
    }
    let mut family = page.gauge(
        "kepler_pod_cpu_watts",
        "Active power of the pod over the last interval.",
    );
    for (labels, pod) in pods() {
        if let Some(watts) = pod.watts {
            family.sample(&kepler(labels), watts);
        }
    }
    let mut family = page.counter(
        "frugality_pod_cpu_seconds_total",
        "CPU time of the pod's cgroup since the pod began.",
    );
    for (labels, pod) in pods() {
        family.sample(&labels, seconds(pod.cpu_nanoseconds));
    }
    let mut family = page.gauge(
        "frugality_pod_memory_working_set_bytes",
        "Memory of the pod less its inactive file cache.",
    );
    for (labels, pod) in pods() {
        if let Some(bytes) = pod.working_set_bytes {
            family.sample(&labels, bytes);
        }
    }
}

/// The text so far, and the label of every sample.
struct Page<'a> {
    text: String,
    node: &'a str,
}

impl<'a> Page<'a> {
    fn counter<'p>(&'p mut self, name: &'static str, help: &'static str) -> Family<'p, 'a> {
        self.family(name, "counter", help)
    }

    fn gauge<'p>(&'p mut self, name: &'static str, help: &'static str) -> Family<'p, 'a> {
        self.family(name, "gauge", help)
    }

    fn family<'p>(
        &'p mut self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
    ) -> Family<'p, 'a> {
        Family {
            page: self,
            name,
            kind,
            help,
            begun: false,
        }
    }
}

/// One metric. Its head is written with its first sample: a metric without samples is absent.
struct Family<'p, 'a> {
    page: &'p mut Page<'a>,
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    begun: bool,
}

impl Family<'_, '_> {
    /// Writes a sample. Writing to a string cannot fail.
    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let text = &mut self.page.text;
        if !self.begun {
            let _ = writeln!(text, "# HELP {} {}", self.name, self.help);
            let _ = writeln!(text, "# TYPE {} {}", self.name, self.kind);
            self.begun = true;
        }
        text.push_str(self.name);
        text.push_str("{node_name=\"");
        escape(text, self.page.node);
        for (label, content) in labels {
            text.push_str("\",");
            text.push_str(label);
            text.push_str("=\"");
            escape(text, content);
        }
        let _ = writeln!(text, "\"}} {value}");
    }
}

/// Label values escape backslash, quote and line feed.
fn escape(text: &mut String, mut value: &str) {
    while let Some(at) = value.find(['\\', '"', '\n']) {
        let (plain, rest) = value.split_at(at);
        text.push_str(plain);
        text.push_str(match rest.as_bytes()[0] {
            b'\\' => "\\\\",
            b'"' => "\\\"",
            _ => "\\n",
        });
        value = &rest[1..];
    }
    text.push_str(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped_and_an_empty_family_is_not_written() {
        let mut page = Page {
            text: String::new(),
            node: "a\"b",
        };
        page.gauge("nothing", "Never seen.");
        page.gauge("one", "Seen.")
            .sample(&[("path", "c:\\d\n")], 0.1 + 0.2);
        assert_eq!(
            page.text,
            "# HELP one Seen.\n# TYPE one gauge\n\
             one{node_name=\"a\\\"b\",path=\"c:\\\\d\\n\"} 0.30000000000000004\n"
        );
    }
}
