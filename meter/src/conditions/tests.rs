use std::fs;

use tempfile::TempDir;

use super::*;

struct Node(TempDir);

impl Node {
    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn conditions(&self) -> ConditionReader {
        ConditionReader::find(self.0.path(), &self.0.path().join("proc"))
    }
}

fn node() -> Node {
    Node(TempDir::new().unwrap())
}

fn assert_near(reported: Option<f64>, expected: f64) {
    let reported = reported.unwrap();
    assert!(
        (reported - expected).abs() < 1e-9,
        "{reported} is not {expected}"
    );
}

const GET_THROTTLED: &str = "devices/platform/soc/soc:firmware/get_throttled";

/// The kernel's driver `raspberrypi-hwmon` asks the firmware every 2 s.
fn with_driver(node: &Node) {
    node.write("class/hwmon/hwmon1/name", "rpi_volt");
    node.write("class/hwmon/hwmon1/in0_lcrit_alarm", "0");
}

#[test]
fn the_firmware_s_bits_count_while_they_hold_or_held_since_the_driver_s_last_question() {
    let node = node();
    with_driver(&node);
    // Under-voltage before the meter began.
    node.write(GET_THROTTLED, "10000");
    let mut conditions = node.conditions();
    let mut look = |at, bits: &str| {
        node.write(GET_THROTTLED, bits);
        conditions.observe(Duration::from_secs(at));
        Cause::ALL.map(|cause| conditions.seconds(cause).unwrap())
    };
    let all = [
        look(0, "10000"),
        look(1, "0"),
        // Throttled, and at the soft limit.
        look(2, "c000c"),
        // Normal again, but the frequency was capped for a moment.
        look(4, "20000"),
        // It was capped for a moment again.
        look(6, "20000"),
        look(8, "0"),
    ];
    let expected = [
        [0.0; 4],
        [0.0; 4],
        [0.0, 0.0, 1.0, 1.0],
        [0.0, 2.0, 1.0, 1.0],
        [0.0, 4.0, 1.0, 1.0],
        [0.0, 4.0, 1.0, 1.0],
    ];
    for (reported, expected) in all.iter().zip(&expected) {
        for (reported, expected) in reported.iter().zip(expected) {
            assert!((reported - expected).abs() < 1e-9, "{all:?}");
        }
    }
}

#[test]
fn the_firmware_s_bits_are_unknown_without_the_driver_that_asks_for_them() {
    let node = node();
    node.write(GET_THROTTLED, "0");
    let mut conditions = node.conditions();
    conditions.observe(Duration::ZERO);
    conditions.observe(Duration::from_secs(1));
    assert_eq!(Cause::ALL.map(|cause| conditions.seconds(cause)), [None; 4]);
    assert!(conditions.found().is_empty());
}

#[test]
fn the_mainline_driver_reports_under_voltage_too_and_newer_kernels_have_another_path() {
    let node = node();
    node.write("class/hwmon/hwmon0/name", "cpu_thermal");
    node.write("class/hwmon/hwmon1/name", "rpi_volt");
    node.write("class/hwmon/hwmon1/in0_lcrit_alarm", "1");
    let mut conditions = node.conditions();
    conditions.observe(Duration::ZERO);
    conditions.observe(Duration::from_secs(2));
    assert_near(conditions.seconds(Cause::UnderVoltage), 2.0);
    assert_eq!(conditions.seconds(Cause::Throttled), None);

    node.write(
        "devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled",
        "0",
    );
    let mut conditions = node.conditions();
    conditions.observe(Duration::ZERO);
    assert_near(conditions.seconds(Cause::Throttled), 0.0);
}

#[test]
fn an_x86_processor_counts_its_throttling_itself() {
    let node = node();
    let file =
        |cpu| format!("devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_total_time_ms");
    node.write(&file(0), "5000");
    node.write(&file(1), "7000");
    let mut conditions = node.conditions();
    conditions.observe(Duration::ZERO);
    assert_near(conditions.seconds(Cause::Throttled), 0.0);
    node.write(&file(0), "5300");
    node.write(&file(1), "7900");
    conditions.observe(Duration::from_secs(1));
    assert_near(conditions.seconds(Cause::Throttled), 0.9);
    assert_eq!(conditions.seconds(Cause::UnderVoltage), None);
}

#[test]
fn temperature_is_the_processor_s_highest_and_frequency_the_mean() {
    let node = node();
    for (zone, kind, temperature) in [(0, "cpu-thermal", "55000"), (1, "nvme", "81000")] {
        node.write(&format!("class/thermal/thermal_zone{zone}/type"), kind);
        node.write(
            &format!("class/thermal/thermal_zone{zone}/temp"),
            temperature,
        );
    }
    for (policy, kilohertz) in [(0, "600000"), (2, "1800000")] {
        node.write(
            &format!("devices/system/cpu/cpufreq/policy{policy}/scaling_cur_freq"),
            kilohertz,
        );
    }
    let mut conditions = node.conditions();
    conditions.observe(Duration::ZERO);
    assert_near(conditions.temperature_celsius, 55.0);
    assert_near(conditions.frequency_hertz, 1.2e9);
}

#[test]
fn a_node_that_reports_nothing_has_no_conditions_and_silence_does_not_count() {
    let empty = node();
    let mut conditions = empty.conditions();
    conditions.observe(Duration::ZERO);
    assert!(
        Cause::ALL
            .iter()
            .all(|cause| conditions.seconds(*cause).is_none())
    );
    assert_eq!(conditions.temperature_celsius, None);
    assert_eq!(conditions.frequency_hertz, None);

    let node = node();
    with_driver(&node);
    node.write(GET_THROTTLED, "4");
    let mut conditions = node.conditions();
    conditions.observe(Duration::ZERO);
    conditions.observe(Duration::from_secs(3_600));
    assert_near(conditions.seconds(Cause::Throttled), 0.0);
}

#[test]
fn the_platform_is_kernel_governor_and_firmware_and_the_governor_may_change() {
    let node = node();
    node.write("proc/sys/kernel/osrelease", "6.6.51+rpt-rpi-v8");
    node.write(
        "firmware/devicetree/base/chosen/bootloader/version",
        "0a3d6b5e\0",
    );
    let governor = |policy: u32, name: &str| {
        node.write(
            &format!("devices/system/cpu/cpufreq/policy{policy}/scaling_governor"),
            name,
        );
    };
    governor(0, "performance");
    governor(2, "performance");
    let mut conditions = node.conditions();
    assert_eq!(
        conditions.platform.labels(),
        [
            ("firmware", "0a3d6b5e"),
            ("governor", "performance"),
            ("kernel", "6.6.51+rpt-rpi-v8"),
        ]
    );
    governor(2, "ondemand");
    conditions.observe(Duration::from_secs(1));
    let seen = conditions.platform.governor.as_deref();
    assert_eq!(seen, Some("ondemand,performance"));
}

#[test]
fn a_pc_has_the_version_of_its_bios_and_what_is_unknown_is_absent() {
    let node = node();
    assert_eq!(node.conditions().platform, PlatformSettings::default());
    node.write("class/dmi/id/bios_version", "1.2.3");
    let labels = node.conditions().platform;
    assert_eq!(labels.labels(), [("firmware", "1.2.3")]);
}
