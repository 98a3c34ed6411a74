//! A series with one of Kepler's names has Kepler's meaning of that name.

use std::cell::Cell;
use std::collections::BTreeSet;

use frugality_measure::reading::{Provenance, read};

use crate::harness::{Meter, Node, Page};

const POD: &str = "bed27566-8352-495a-8672-08132c7957e6";
const README: &str = include_str!("../../README.md");

/// All recordings of a real Kepler: at rest, under load, a Job that ended, meters that fail.
const KEPLER: [&str; 9] = [
    include_str!("../../../measure/tests/data/kepler-v0.11.4/1-idle.prom"),
    UNDER_LOAD,
    include_str!("../../../measure/tests/data/kepler-v0.11.4/3-under-load.prom"),
    include_str!("../../../measure/tests/data/kepler-v0.11.4/4-job-ended.prom"),
    include_str!("../../../measure/tests/data/kepler-v0.11.4/5-job-ended-second-read.prom"),
    include_str!("../../../measure/tests/data/kepler-v0.11.4/6-meter-stood-still.prom"),
    include_str!("../../../measure/tests/data/kepler-v0.11.4/7-after-standstill.prom"),
    include_str!("../../../measure/tests/data/kepler-v0.11.4/8-meter-went-back.prom"),
    include_str!("../../../measure/tests/data/kepler-v0.11.4/9-fake-meter.prom"),
];
const UNDER_LOAD: &str =
    include_str!("../../../measure/tests/data/kepler-v0.11.4/2-under-load.prom");

/// The meter's pages for a node with a pod, once they have rates. The first page is for a board's model. The
/// second is for RAPL, which most nodes with Kepler have.
fn pages_with_a_pod() -> [Page; 2] {
    let zone = "class/powercap/intel-rapl:0";
    let node = Node::new();
    node.set_cpu(&format!("kubepods/pod{POD}"), 0);
    node.name_pod("default", "echo", POD);
    node.set_sysfs(&format!("{zone}/name"), "package-0");
    node.set_sysfs(&format!("{zone}/energy_uj"), "0");
    node.set_sysfs(&format!("{zone}/max_energy_range_uj"), "262143328850");
    let rapl = node.power(r#"{"default": {"source": {"type": "rapl"}}}"#);
    let microjoules = Cell::new(0);
    ["--board=pi-2b", rapl.as_str()].map(|flag| {
        let meter = Meter::start(&node, &[flag]);
        meter.scrape_until("two readings", |page| {
            microjoules.set(microjoules.get() + 50_000);
            node.set_sysfs(&format!("{zone}/energy_uj"), &microjoules.get().to_string());
            page.types.contains_key("kepler_pod_cpu_watts")
        })
    })
}

#[test]
fn series_with_kepler_s_names_have_the_types_and_labels_of_a_real_kepler() {
    for ours in pages_with_a_pod() {
        let our_labels = ours.label_sets();
        for name in ours.types.keys() {
            assert!(
                name.starts_with("kepler_") || name.starts_with("frugality_"),
                "{name}"
            );
        }
        for real in KEPLER.map(Page::parse) {
            let real_labels = real.label_sets();
            for name in real.types.keys().filter(|name| served_by_us(name)) {
                assert_eq!(ours.types.get(name), real.types.get(name), "type of {name}");
                assert_eq!(
                    our_labels[name.as_str()],
                    real_labels[name.as_str()],
                    "labels of {name}"
                );
            }
        }
        let real = Page::parse(UNDER_LOAD);
        for name in ours.types.keys().filter(|name| name.starts_with("kepler_")) {
            assert!(real.types.contains_key(name), "Kepler has no {name}");
        }
    }
}

/// Whether the node meter can report this series of Kepler.
fn served_by_us(name: &str) -> bool {
    name.starts_with("kepler_pod_")
        || (name.starts_with("kepler_node_cpu_") && name != "kepler_node_cpu_info")
}

#[test]
fn series_that_only_kepler_serves_are_documented() {
    let (_, differences) = README.split_once("Differences from Kepler:").unwrap();
    let (differences, _) = differences.split_once("\n## ").unwrap();
    let documented: Vec<&str> = differences
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|name| name.strip_suffix('*').unwrap_or(name))
        .filter(|name| name.starts_with("kepler_"))
        .collect();
    let mut missing = BTreeSet::new();
    for real in KEPLER.map(Page::parse) {
        missing.extend(real.types.into_keys().filter(|name| !served_by_us(name)));
    }
    assert!(!missing.is_empty());
    for name in &missing {
        assert!(
            documented.iter().any(|begin| name.starts_with(begin)),
            "{name} is not served, and the README does not say so"
        );
    }
    for begin in documented {
        assert!(!served_by_us(begin), "{begin} is served");
    }
}

#[test]
fn values_of_kepler_s_labels_equal_a_real_kepler_s() {
    let real = Page::parse(UNDER_LOAD);
    let [_, ours] = pages_with_a_pod();
    let (pod, node) = (
        "kepler_pod_cpu_joules_total",
        "kepler_node_cpu_joules_total",
    );
    for (name, label) in [(pod, "state"), (pod, "zone"), (node, "zone")] {
        let (ours, real) = (
            ours.label_values(name, label),
            real.label_values(name, label),
        );
        assert!(ours.is_subset(&real), "{name} {label}: {ours:?} {real:?}");
    }
    assert!(ours.label_values(pod, "pod_id").contains(POD));
    assert!(
        real.label_values(pod, "pod_id").contains(POD),
        "the UID as Kepler writes it"
    );
    // The zone's directory, relative to each meter's sysfs mount.
    let below_sysfs = |paths: BTreeSet<String>| -> Vec<String> {
        let paths = paths.iter().filter_map(|path| path.split_once("/class/"));
        paths.map(|(_, rest)| rest.to_owned()).collect()
    };
    assert_eq!(
        below_sysfs(ours.label_values(node, "path")),
        below_sysfs(real.label_values(node, "path"))
    );
}

#[test]
fn the_meter_s_own_series_describe_the_joules() {
    let node = Node::new();
    let meter = Meter::start(&node, &["--board=pi-2b"]);
    let page = meter.scrape();
    let info = [
        ("board", "pi-2b"),
        ("node_name", "pi-1"),
        ("provenance", "Modelled"),
        ("source", "board-model"),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    assert!((page.value("frugality_meter_info", &info) - 1.0).abs() < f64::EPSILON);
    let max_watts = page.value("frugality_meter_max_watts", &[("zone", "psys")]);
    assert!((max_watts - (3.33 + 2.0 * 0.3675)).abs() < 1e-9);
    assert!((page.value("frugality_meter_interval_seconds", &[]) - 0.05).abs() < 1e-9);
    for (name, value) in [
        ("frugality_meter_model_idle_watts", 3.33),
        ("frugality_meter_model_watts_per_cpu", 0.3675),
        (
            "frugality_meter_model_idle_watts_relative_uncertainty",
            0.41,
        ),
        (
            "frugality_meter_model_watts_per_cpu_relative_uncertainty",
            0.19,
        ),
    ] {
        assert!((page.value(name, &[]) - value).abs() < 1e-9, "{name}");
    }
    assert!(page.value("frugality_meter_start_time_seconds", &[]) <= page.timestamp());
    let path = [("path", "model:pi-2b"), ("zone", "psys")];
    page.value("kepler_node_cpu_joules_total", &path);
    assert_eq!(page.types["frugality_node_cpu_seconds_total"], "counter");
}

#[test]
fn the_operator_s_reader_understands_all_of_it() {
    let node = Node::new();
    let cgroup = format!("kubepods/pod{POD}");
    node.set_cpu(&cgroup, 1_500_000_000);
    node.set_memory(&cgroup, 9_000, 1_000);
    node.set_cpu("", 2_500_000_000);
    node.name_pod("default", "echo", POD);
    let meter = Meter::start(&node, &["--board=pi-2b"]);
    let (_, text) = meter.get("/metrics");
    let reading = read(&text, "pi-1", None, 1.0).unwrap();

    assert_eq!(reading.meter.name, "frugality-meter");
    assert_eq!(reading.meter.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(reading.meter.source, "board-model");
    assert_eq!(reading.meter.board.as_deref(), Some("pi-2b"));
    assert_eq!(reading.meter.provenance, Provenance::Modelled);
    let model = reading.meter.model.unwrap();
    assert!((model.idle_watts - 3.33).abs() < 1e-9);
    assert!((model.uncertainty.unwrap().idle_watts - 0.41).abs() < 1e-9);
    assert_eq!(reading.zone, "psys");
    let timestamp = Page::parse(&text).timestamp();
    assert_eq!(reading.meter_unix_seconds, Some(timestamp));
    assert!(
        reading
            .meter_start_unix_seconds
            .is_some_and(|start| start <= timestamp)
    );
    assert_eq!(reading.interval_seconds, Some(0.05));
    assert!(reading.max_watts.is_some() && reading.active_joules.is_some());
    assert_eq!(reading.node_cpu_seconds, Some(2.5));
    let pod = reading.pods.get(POD).unwrap();
    assert_eq!(
        (pod.identity.namespace.as_str(), pod.identity.name.as_str()),
        ("default", "echo")
    );
    assert_eq!(pod.cpu_seconds, Some(1.5));
    assert_eq!(pod.working_set_bytes, Some(8_000.0));
    assert!(pod.joules.is_some());
}

#[test]
fn kepler_fed_by_the_bridge_reports_the_provenance_of_its_joules() {
    let of_zone = |zone: &str| {
        let text = UNDER_LOAD.replace("powercap/intel-rapl:0", &format!("powercap/{zone}"));
        read(&text, "pi-1", None, 1.0).unwrap().meter.provenance
    };
    assert_eq!(of_zone("frugality-modelled:0"), Provenance::Modelled);
    assert_eq!(of_zone("frugality-metered:0"), Provenance::Metered);
}
