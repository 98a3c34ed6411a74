//! The behaviour of a meter for an operator and for kubelet, from its start to its end.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::harness::{Meter, Node, Page, run};

const SECOND: u64 = 1_000_000_000;
const ECHO: &str = "bed27566-8352-495a-8672-08132c7957e6";
const JOB: &str = "8bcd67cf-5338-4db6-a3e3-0512ae806712";
const GENERIC: [&str; 2] = ["--idle-watts=2", "--watts-per-cpu=3"];

fn joules(page: &Page, name: &str) -> f64 {
    page.value(&format!("kepler_node_cpu_{name}joules_total"), &[])
}

fn assert_near(actual: f64, expected: f64, tolerance: f64) {
    assert!(
        (actual - expected).abs() <= tolerance,
        "{actual} is not {expected} within {tolerance}"
    );
}

#[test]
fn joules_follow_time_and_cpu_and_are_shared_among_pods() {
    let node = Node::new();
    let echo = format!("kubepods/burstable/pod{ECHO}");
    let job = format!("kubepods/pod{JOB}");
    node.set_cpu("", 100 * SECOND);
    node.set_cpu(&echo, 40 * SECOND);
    node.set_memory(&echo, 9_000, 1_000);
    node.name_pod("shop", "echo", ECHO);
    let meter = Meter::start(&node, &GENERIC);

    let before = meter.scrape();
    let echo_labels = [
        ("pod_id", ECHO),
        ("pod_name", "echo"),
        ("pod_namespace", "shop"),
    ];
    assert_near(
        before.value("kepler_pod_cpu_joules_total", &echo_labels),
        0.0,
        0.0,
    );
    let working_set = "frugality_pod_memory_working_set_bytes";
    assert_near(before.value(working_set, &echo_labels), 8_000.0, 0.0);

    // The node uses 50 ms of CPU: 30 ms in echo and 15 ms in a Job's new pod.
    let after = meter.at_one_time(&node, 100 * SECOND + 50_000_000, |node| {
        node.set_cpu(&echo, 40 * SECOND + 30_000_000);
        node.set_cpu(&job, 15_000_000);
    });
    let seconds = after.timestamp() - before.timestamp();
    assert!(seconds > 0.0);
    let energy = joules(&after, "") - joules(&before, "");
    assert_near(energy, 2.0 * seconds + 3.0 * 0.050, 2e-3);
    let active = joules(&after, "active_");
    assert_near(active + joules(&after, "idle_"), joules(&after, ""), 1e-9);
    assert!(active > 0.0);

    let job_labels = [("pod_id", JOB), ("pod_name", ""), ("pod_namespace", "")];
    let pod = |labels| after.value("kepler_pod_cpu_joules_total", labels);
    assert_near(pod(&echo_labels), active * 30.0 / 50.0, 1e-9);
    assert_near(pod(&job_labels), active * 15.0 / 50.0, 1e-9);
    let system = after.value("frugality_system_cpu_joules_total", &[("zone", "psys")]);
    assert_near(system, active * 5.0 / 50.0, 1e-9);

    let cpu_seconds = |labels| after.value("frugality_pod_cpu_seconds_total", labels);
    assert_near(cpu_seconds(&echo_labels), 40.030, 1e-9);
    assert_near(cpu_seconds(&job_labels), 0.015, 1e-9);
    assert_near(
        after.value("frugality_node_cpu_seconds_total", &[]),
        100.050,
        1e-9,
    );
    assert!(after.values(working_set, &job_labels).is_empty());

    node.set_memory(&echo, 12_000, 1_000);
    meter.scrape_until("more memory", |page| {
        page.values(working_set, &echo_labels) == [11_000.0]
    });

    // First the pod's name appears, then the pod ends.
    node.name_pod("shop", "seed-x7", JOB);
    meter.scrape_until("the Job's name", |page| {
        !page
            .values("kepler_pod_cpu_joules_total", &[("pod_name", "seed-x7")])
            .is_empty()
    });
    node.remove_pod(&job);
    let last = meter.scrape_until("the end of the Job", |page| {
        page.values("frugality_pod_cpu_seconds_total", &[("pod_id", JOB)])
            .is_empty()
    });
    assert!(
        last.values("kepler_pod_cpu_joules_total", &[("pod_id", JOB)])
            .is_empty()
    );
    let ended = last.value("frugality_ended_pods_cpu_joules_total", &[]);
    assert_near(ended, active * 15.0 / 50.0, 1e-9);
}

#[test]
fn a_missing_reading_ages_and_its_energy_is_counted_later() {
    let node = Node::new();
    let meter = Meter::start(&node, &GENERIC);
    meter.wait_for_status("/readyz", 200);
    node.hide_node_cpu();
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(reason.contains("cpuacct.usage"), "{reason}");
    assert_eq!(meter.get("/healthz").0, 200);

    let aging = meter.scrape();
    sleep(Duration::from_millis(300));
    let still = meter.scrape();
    assert_near(still.timestamp(), aging.timestamp(), 0.0);
    assert_near(joules(&still, ""), joules(&aging, ""), 0.0);

    node.set_cpu("", SECOND);
    meter.wait_for_status("/readyz", 200);
    let fresh = meter.scrape();
    let seconds = fresh.timestamp() - aging.timestamp();
    assert!(seconds >= 0.3);
    let energy = joules(&fresh, "") - joules(&aging, "");
    assert_near(energy, 2.0 * seconds + 3.0, 2e-3);
}

#[test]
fn a_counter_that_went_back_ends_the_counting() {
    let node = Node::new();
    node.set_cpu("", 100 * SECOND);
    let meter = Meter::start(&node, &GENERIC);
    let before = meter.scrape();
    node.set_cpu("", 40 * SECOND);
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(reason.contains("went back"), "{reason}");
    let broken = meter.scrape();
    // Far above the old value: the CPU time of the gap is still unknown.
    node.set_cpu("", 900 * SECOND);
    sleep(Duration::from_millis(200));

    let after = meter.scrape();
    assert_near(after.timestamp(), broken.timestamp(), 0.0);
    assert_near(joules(&after, ""), joules(&broken, ""), 0.0);
    assert!(joules(&after, "") >= joules(&before, ""));
    assert_near(
        after.value("frugality_node_cpu_seconds_total", &[]),
        100.0,
        0.0,
    );
    assert_eq!(meter.get("/readyz").0, 503);
    assert_eq!(meter.get("/healthz").0, 503, "the meter needs a restart");
}

#[test]
fn pages_are_plain_and_the_clock_is_the_node_s() {
    let node = Node::new();
    let meter = Meter::start(&node, &GENERIC);
    let (status, head, body) = meter.get_with_head("/metrics");
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(body.ends_with('\n') && !body.contains("# EOF"));

    let (_, clock) = meter.get("/time");
    let (_, fraction) = clock.trim_end().split_once('.').unwrap();
    assert_eq!(fraction.len(), 6);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    assert_near(clock.trim_end().parse().unwrap(), now.as_secs_f64(), 5.0);
    assert_eq!(meter.get("/nothing").0, 404);
}

#[test]
fn sigterm_ends_it_at_once_even_with_a_connection_open() {
    let node = Node::new();
    let meter = Meter::start(&node, &GENERIC);
    let connection = meter.connect();
    let (status, took) = meter.terminate();
    drop(connection);
    assert!(status.success(), "{status}");
    // The connection would never end by itself.
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_meter_that_cannot_measure_says_what_to_write_and_does_not_start() {
    let node = Node::new();
    let fails = |flags: &[&str]| {
        let output = run(&node.cgroup_fs()).args(flags).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(fails(&[]).contains("--watts-per-cpu="));
    assert!(fails(&["--board=pi-2b", "--cgroup-root=/elsewhere"]).contains("--cgroup-root"));
    assert!(fails(&["--board=pi-2b", "--interval=5"]).contains("500ms"));
}
