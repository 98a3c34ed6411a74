//! The parser of a real Kepler's texts, with known truth.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::BTreeMap;

use frugality_measure::exposition;
use frugality_measure::reading::{self, MeterIdentity, Provenance, Reading};

const NODE: &str = "pi-1";
const SERVER: &str = "bed27566-8352-495a-8672-08132c7957e6";
const IDLER: &str = "ef242d7d-0f35-43c3-b2f2-8362f3f6e16d";
const JOB: &str = "8bcd67cf-5338-4db6-a3e3-0512ae806712";

fn text(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/kepler-v0.11.4");
    std::fs::read_to_string(format!("{folder}/{file}.prom")).unwrap()
}

fn read(file: &str) -> Reading {
    reading::read(&text(file), NODE, None, 1_795_236_942.0).unwrap()
}

/// The energy of running pods in joules by UID.
fn joules_by_pod(reading: &Reading) -> BTreeMap<&str, f64> {
    reading
        .pods
        .iter()
        .map(|pod| (pod.uid(), pod.joules.unwrap()))
        .collect()
}

#[test]
fn every_file_is_read_whole() {
    let files = [
        ("1-idle", 63.403_152, 1.115_019, 62.288_133),
        ("2-under-load", 140.481_985, 42.140_227, 98.341_758),
        ("3-under-load", 207.230_874, 97.967_195, 109.263_679),
        ("4-job-ended", 278.540_68, 151.026_745, 127.513_935),
        (
            "5-job-ended-second-read",
            278.540_68,
            151.026_745,
            127.513_935,
        ),
        ("6-meter-stood-still", 278.743_836, 151.032_953, 127.710_883),
        ("7-after-standstill", 294.466_154, 151.492_07, 142.974_084),
        (
            "8-meter-went-back",
            301.368_058,
            5_665.157_085,
            256_779.539_823,
        ),
    ];
    let rapl = MeterIdentity {
        name: "kepler".to_owned(),
        version: "v0.11.4".to_owned(),
        source: "/host/sys/class/powercap/intel-rapl:0".to_owned(),
        configuration: None,
        board: None,
        provenance: Provenance::Metered,
        model: None,
    };
    for (file, node, active, idle) in files {
        let reading = read(file);
        let counters = (
            Some(reading.node_joules),
            reading.active_joules,
            reading.idle_joules,
        );
        assert_eq!(counters, (Some(node), Some(active), Some(idle)), "{file}");
        assert_eq!(
            (reading.zone.as_str(), &*reading.meter),
            ("package", &rapl),
            "{file}"
        );
        // Stock Kepler reports none of these values; they are unknown.
        assert_eq!(reading.meter_unix_seconds, None, "{file}");
        assert_eq!(reading.meter_start_unix_seconds, None, "{file}");
        assert_eq!(reading.node_cpu_seconds, None, "{file}");
        assert!(
            reading.pods.iter().all(|pod| pod.cpu_seconds.is_none()),
            "{file}"
        );
    }
}

#[test]
fn every_line_except_comments_is_a_sample() {
    for file in ["1-idle", "4-job-ended", "9-fake-meter"] {
        let text = text(file);
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .count();
        assert_eq!(exposition::parse(&text).unwrap().len(), lines, "{file}");
    }
}

#[test]
fn pods_are_known_by_uid_while_they_run() {
    let under_load = read("3-under-load");
    let server = &under_load.pods.get(SERVER).unwrap().identity;
    assert_eq!(server.name, "echo-6bcccd4f44-gcdzn");
    assert_eq!(server.namespace, "default");
    let expected = BTreeMap::from([(SERVER, 50.838_035), (IDLER, 0.0), (JOB, 42.204_74)]);
    assert_eq!(joules_by_pod(&under_load), expected);
    for file in ["4-job-ended", "5-job-ended-second-read"] {
        let ended = read(file);
        assert_eq!(
            joules_by_pod(&ended),
            BTreeMap::from([(SERVER, 79.373_684), (IDLER, 0.0)]),
            "{file}"
        );
    }
}

#[test]
fn the_development_meter_is_fake() {
    let fake = read("9-fake-meter");
    assert_eq!(fake.meter.provenance, Provenance::Fake);
    assert_eq!(
        fake.meter.source,
        "/sys/class/powercap/intel-rapl/energy_package"
    );
    assert_eq!(
        (fake.zone.as_str(), fake.node_joules),
        ("package", 0.000_43)
    );
    let core = reading::read(&text("9-fake-meter"), NODE, Some("core"), 0.0).unwrap();
    assert_eq!((core.zone.as_str(), core.node_joules), ("core", 0.000_339));
    assert_eq!(core.meter.provenance, Provenance::Fake);
}

#[test]
fn an_answer_without_power_metrics_is_no_reading() {
    let without: String = text("2-under-load")
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("kepler_node_cpu_joules_total"))
        .collect();
    assert_eq!(
        reading::read(&without, NODE, None, 0.0)
            .unwrap_err()
            .to_string(),
        "the meter serves no kepler_node_cpu_joules_total for the node pi-1"
    );
}
