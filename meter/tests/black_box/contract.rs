//! What bears one of Kepler's names is what Kepler has under that name.

use std::collections::BTreeSet;

use frugality_measure::reading::{Provenance, read};

use crate::harness::{Meter, Node, Page};

const KEPLER: &str = include_str!("../../../measure/tests/data/kepler-v0.11.4/2-under-load.prom");
const POD: &str = "bed27566-8352-495a-8672-08132c7957e6";

#[test]
fn series_with_kepler_s_names_have_the_types_and_labels_of_a_real_kepler() {
    let node = Node::new();
    let cgroup = format!("kubepods/pod{POD}");
    node.set_cpu(&cgroup, 0);
    node.name_pod("default", "echo", POD);
    let meter = Meter::start(&node, &["--board=pi-2b"]);
    let ours = meter.scrape_until("two readings", |page| {
        page.types.contains_key("kepler_pod_cpu_watts")
    });
    let real = Page::parse(KEPLER);

    let kepler_names = |page: &Page| -> BTreeSet<String> {
        page.types
            .keys()
            .filter(|name| name.starts_with("kepler_node_cpu_") || name.starts_with("kepler_pod_"))
            .cloned()
            .collect()
    };
    let mut expected = kepler_names(&real);
    // A board model knows nothing of the processor's make.
    expected.remove("kepler_node_cpu_info");
    assert_eq!(kepler_names(&ours), expected);

    let (our_labels, real_labels) = (ours.label_sets(), real.label_sets());
    for name in ours.types.keys().filter(|name| name.starts_with("kepler_")) {
        assert_eq!(ours.types[name], real.types[name], "type of {name}");
        assert_eq!(
            our_labels[name.as_str()],
            real_labels[name.as_str()],
            "labels of {name}"
        );
    }
    for name in ours.types.keys() {
        assert!(
            name.starts_with("kepler_") || name.starts_with("frugality_"),
            "{name}"
        );
    }
}

#[test]
fn the_meter_s_own_series_say_what_the_joules_are() {
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
    assert_eq!(reading.zone, "psys");
    assert_eq!(
        reading.meter_unix_seconds,
        Some(Page::parse(&text).timestamp())
    );
    assert!(reading.meter_start_unix_seconds <= reading.meter_unix_seconds);
    assert_eq!(reading.interval_seconds, Some(0.05));
    assert!(reading.max_watts.is_some() && reading.active_joules.is_some());
    assert_eq!(reading.node_cpu_seconds, Some(2.5));
    let pod = &reading.pods[POD];
    assert_eq!(
        (pod.namespace.as_str(), pod.name.as_str()),
        ("default", "echo")
    );
    assert_eq!(pod.cpu_seconds, Some(1.5));
    assert_eq!(pod.working_set_bytes, Some(8_000.0));
    assert!(pod.joules.is_some());
}

#[test]
fn kepler_fed_by_the_bridge_tells_what_its_joules_are() {
    let of_zone = |zone: &str| {
        let text = KEPLER.replace("powercap/intel-rapl:0", &format!("powercap/{zone}"));
        read(&text, "pi-1", None, 1.0).unwrap().meter.provenance
    };
    assert_eq!(of_zone("frugality-modelled:0"), Provenance::Modelled);
    assert_eq!(of_zone("frugality-metered:0"), Provenance::Metered);
}
