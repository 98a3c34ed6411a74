//! The source of the joules, for a scraper and for stock Kepler.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use frugality_measure::reading::{Provenance, read};

use crate::fritzbox::{AIN, Fritzbox, PASSWORD, State, USER};
use crate::harness::{Meter, Node, Page, Plug, run};
use crate::mosquitto::Broker;

const POD: &str = "bed27566-8352-495a-8672-08132c7957e6";
const AGE: &str = "frugality_meter_last_true_reading_age_seconds";

fn joules(page: &Page) -> f64 {
    page.value("kepler_node_cpu_joules_total", &[])
}

#[test]
fn a_wired_sensor_is_found_and_its_power_is_metered() {
    let node = Node::new();
    node.set_sysfs("class/hwmon/hwmon1/name", "ina226");
    node.set_sysfs("class/hwmon/hwmon1/power1_input", "4000000");
    node.set_sysfs("class/hwmon/hwmon1/curr1_input", "800");
    node.set_sysfs("class/hwmon/hwmon1/in1_input", "5000");
    node.set_sysfs("class/hwmon/hwmon1/shunt_resistor", "10000");
    node.set_sysfs("class/thermal/thermal_zone0/type", "cpu-thermal");
    node.set_sysfs("class/thermal/thermal_zone0/temp", "48500");
    node.set_sysfs("class/hwmon/hwmon2/name", "rpi_volt");
    node.set_sysfs("devices/platform/soc/soc:firmware/get_throttled", "0");
    let power = node.power(r#"{"default": {"source": {"type": "auto"}, "maxWatts": 12}}"#);
    let meter = Meter::start(&node, &[&power]);
    let before = meter.scrape_until("a reading", |page| {
        !page.values("kepler_node_cpu_watts", &[]).is_empty()
            && !page
                .values("frugality_meter_node_temperature_celsius", &[])
                .is_empty()
    });
    sleep(Duration::from_millis(300));
    let after = meter.scrape();
    let watts = (joules(&after) - joules(&before)) / (after.timestamp() - before.timestamp());
    assert!((watts - 4.0).abs() < 0.01, "{watts} W");

    let info = [("source", "hwmon"), ("provenance", "Metered")];
    after.value("frugality_meter_info", &info);
    let zone = [("zone", "psys")];
    assert!(after.value(AGE, &zone) < 1.0);
    assert!((after.value("frugality_meter_max_watts", &zone) - 12.0).abs() < 1e-9);
    let uncertainty = after.value("frugality_meter_energy_relative_uncertainty", &zone);
    assert!((uncertainty - 0.006).abs() < 1e-3, "{uncertainty}");
    let saturated = |page: &Page| page.value("frugality_meter_saturated_readings_total", &zone);
    assert!(saturated(&after).abs() < 1e-9);
    // 81.92 mV at 10 mΩ.
    node.set_sysfs("class/hwmon/hwmon1/curr1_input", "8190");
    meter.scrape_until("a saturated reading", |page| saturated(page) > 0.0);
    assert!(
        after
            .values("frugality_meter_energy_resolution_joules", &[])
            .is_empty()
    );
    let celsius = after.value("frugality_meter_node_temperature_celsius", &[]);
    assert!((celsius - 48.5).abs() < 1e-9);
    for cause in [
        "under_voltage",
        "frequency_capped",
        "throttled",
        "soft_temperature_limit",
    ] {
        let seconds = after.value(
            "frugality_meter_throttled_seconds_total",
            &[("cause", cause)],
        );
        assert!(seconds.abs() < 1e-9, "{cause}");
    }
    assert!(after.value("frugality_meter_resident_memory_bytes", &[]) > 1e5);
    assert_eq!(after.types["frugality_meter_cpu_seconds_total"], "counter");
}

#[test]
fn a_plug_is_metered_and_ages_when_it_is_unplugged_and_goes_on_when_it_is_back() {
    let node = Node::new();
    let cgroup = format!("kubepods/pod{POD}");
    node.set_cpu(&cgroup, 0);
    let plug = Plug::new(r#"{"apower": 5.0}"#);
    let power = node.power(&format!(
        r#"{{"nodes": {{"pi-1": {{"source": {{"type": "shelly-gen2", "host": "{}",
            "polling": {{"intervalSeconds": 0.1, "timeoutSeconds": 0.2}}}}}}}}}}"#,
        plug.address
    ));
    let meter = Meter::start(&node, &[&power]);
    meter.wait_for_status("/readyz", 200);
    let (_, text) = meter.get("/metrics");
    let reading = read(&text, "pi-1", None, 1.0).unwrap();
    assert_eq!(reading.meter.provenance, Provenance::Metered);
    assert_eq!(reading.meter.source, "shelly-gen2");
    let page = Page::parse(&text);
    // The age shows that no counter is ahead of the plug's last reading.
    assert!(page.value(AGE, &[]) < 2.0);

    plug.set(None);
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(reason.contains(&plug.address.to_string()), "{reason}");
    let aging = meter.scrape();
    sleep(Duration::from_millis(300));
    let still = meter.scrape();
    assert!((still.timestamp() - aging.timestamp()).abs() < 1e-9);
    assert!((joules(&still) - joules(&aging)).abs() < 1e-9);
    assert!(still.value(AGE, &[]) >= aging.value(AGE, &[]) + 0.25);
    assert_eq!(meter.get("/healthz").0, 200);

    plug.set(Some(r#"{"apower": 5.0}"#));
    meter.wait_for_status("/readyz", 200);
    let back = meter.scrape();
    let watts = (joules(&back) - joules(&aging)) / (back.timestamp() - aging.timestamp());
    assert!((watts - 5.0).abs() < 0.01, "{watts} W");
}

#[test]
fn a_device_behind_a_broker_is_metered_and_ages_while_the_broker_is_away() {
    let node = Node::new();
    let mut broker = Broker::start();
    broker.publish("pi-1/power", "99", &["-r"]);
    let power = node.power(&format!(
        r#"{{"default": {{"source": {{"type": "mqtt", "broker": "{}", "topic": "pi-1/power", "unit": "W",
            "polling": {{"intervalSeconds": 0.1, "timeoutSeconds": 0.2}}}}, "relativeUncertainty": 0.03}}}}"#,
        broker.address()
    ));
    let meter = Meter::start(&node, &[&power]);
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(
        reason.contains("waiting for a new reading") || reason.contains("retained"),
        "{reason}"
    );
    let (_, text) = meter.get("/metrics");
    assert!(
        !text.contains("kepler_"),
        "a retained message is not a reading"
    );

    let mut publisher = broker.publisher("pi-1/power");
    for _ in 0..30 {
        publisher.publish("5.0");
        sleep(Duration::from_millis(50));
    }
    let (_, text) = meter.get("/metrics");
    let reading = read(&text, "pi-1", None, 1.0).unwrap();
    assert_eq!(reading.meter.provenance, Provenance::Metered);
    assert_eq!(reading.meter.source, "mqtt");
    let before = Page::parse(&text);
    for _ in 0..10 {
        publisher.publish("5.0");
        sleep(Duration::from_millis(50));
    }
    let after = meter.scrape();
    let watts = (joules(&after) - joules(&before)) / (after.timestamp() - before.timestamp());
    assert!((watts - 5.0).abs() < 0.01, "{watts} W");

    broker.stop();
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(reason.contains(&broker.address()), "{reason}");
    let aging = meter.scrape();
    sleep(Duration::from_millis(300));
    let still = meter.scrape();
    assert!((joules(&still) - joules(&aging)).abs() < 1e-9);
    assert!(still.value(AGE, &[]) >= aging.value(AGE, &[]) + 0.25);
    assert_eq!(meter.get("/healthz").0, 200);
}

/// The configuration of a plug at a box, asked ten times per second.
fn fritz_dect(node: &Node, fritzbox: &Fritzbox) -> String {
    let secret = node.scratch();
    fs::create_dir_all(&secret).unwrap();
    let file = secret.join("fritzbox");
    fs::write(&file, PASSWORD).unwrap();
    node.power(&format!(
        r#"{{"default": {{"source": {{"type": "fritz-dect", "host": "{}", "ain": "{AIN}",
            "polling": {{"intervalSeconds": 0.1, "timeoutSeconds": 0.2, "username": "{USER}",
            "passwordFile": "{}"}}}}, "maxWatts": 12}}}}"#,
        fritzbox.address(),
        file.display()
    ))
}

#[test]
fn a_plug_at_a_fritzbox_is_metered_and_its_power_is_too_old_for_an_attempt() {
    let node = Node::new();
    let fritzbox = Fritzbox::start("5000");
    let meter = Meter::start(&node, &[&fritz_dect(&node, &fritzbox)]);
    meter.wait_for_status("/readyz", 200);
    let (_, text) = meter.get("/metrics");
    let reading = read(&text, "pi-1", None, 1.0).unwrap();
    assert_eq!(reading.meter.provenance, Provenance::Metered);
    assert_eq!(reading.meter.source, "fritz-dect");
    // The power does not change, and ages all the same: the operator's limit is 5 s.
    let old = meter.scrape_until("an old power", |page| page.value(AGE, &[]) > 5.0);
    assert!(old.value("frugality_meter_energy_relative_uncertainty", &[]) >= 0.03);

    // An ended session is replaced, and the meter counts on.
    fritzbox.with(State::end_session);
    let before = meter.scrape();
    meter.scrape_until("energy of the new session", |page| {
        joules(page) > joules(&before) + 5.0
    });
    assert_eq!(fritzbox.with(|state| state.logins), 2);

    fritzbox.with(|state| "inval".clone_into(&mut state.power));
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(reason.contains("does not reach the plug"), "{reason}");
}

#[test]
fn a_wrong_password_of_a_fritzbox_is_reported_and_gives_no_number() {
    let node = Node::new();
    let fritzbox = Fritzbox::start("5000");
    fritzbox.with(|state| "another".clone_into(&mut state.password));
    let meter = Meter::start(&node, &[&fritz_dect(&node, &fritzbox)]);
    let reason = meter.wait_for_status("/readyz", 503);
    let began = std::time::Instant::now();
    while fritzbox.with(|state| state.refusals) == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "{reason}");
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(300));
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(
        reason.contains("refuses user \"meter\" with this password"),
        "{reason}"
    );
    let (_, text) = meter.get("/metrics");
    assert!(!text.contains("kepler_"), "{text}");
    assert_eq!(fritzbox.with(|state| state.refusals), 1);
}

#[test]
fn a_plug_that_measures_every_two_minutes_is_not_bridged_to_kepler() {
    let node = Node::new();
    let fritzbox = Fritzbox::start("5000");
    let bridge = format!("--bridge={}", node.scratch().display());
    let output = run(&node.cgroup_fs())
        .args(["--interval=50ms", &fritz_dect(&node, &fritzbox), &bridge])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(reported.contains("measures every 120 s"), "{reported}");
}

/// A meter that asks the plug for its counter `total` ten times per second.
fn of_total(node: &Node, plug: &Plug, unit: &str) -> Meter {
    let power = node.power(&format!(
        r#"{{"default": {{"source": {{"type": "json", "url": "http://{}/", "path": "total", "unit": "{unit}",
            "polling": {{"intervalSeconds": 0.1}}}}}}}}"#,
        plug.address
    ));
    Meter::start(node, &[&power])
}

#[test]
fn a_plug_whose_counter_restarts_ends_the_counting() {
    let node = Node::new();
    let plug = Plug::new(r#"{"total": 900.0}"#);
    let meter = of_total(&node, &plug, "J");
    let reason = meter.wait_for_status("/readyz", 503);
    assert!(reason.contains("waiting for a new reading"), "{reason}");
    let (_, text) = meter.get("/metrics");
    assert!(
        !text.contains("kepler_"),
        "no joules before the first reading"
    );
    for step in 1..20 {
        plug.set(Some(&format!(r#"{{"total": {}}}"#, 900 + step)));
        sleep(Duration::from_millis(50));
    }
    meter.wait_for_status("/readyz", 200);
    plug.set(Some(r#"{"total": 3.0}"#));
    let reason = meter.wait_for_status("/healthz", 503);
    assert!(reason.contains("went back"), "{reason}");
}

#[test]
fn the_observed_step_of_a_coarse_counter_is_published_and_the_settings_stay_the_same() {
    let node = Node::new();
    let plug = Plug::new(r#"{"total": 1.0}"#);
    let meter = of_total(&node, &plug, "Wh");
    let steps = |page: &Page| page.values("frugality_meter_energy_resolution_joules", &[]);
    let settings = |page: &Page| page.label_values("frugality_meter_info", "configuration");
    let before = settings(&meter.scrape());
    for step in 1..=20 {
        plug.set(Some(&format!(
            r#"{{"total": {:.3}}}"#,
            1.0 + 0.001 * f64::from(step)
        )));
        sleep(Duration::from_millis(250));
    }
    let page = meter.scrape_until("the step", |page| !steps(page).is_empty());
    assert!((steps(&page)[0] - 3.6).abs() < 1e-3, "{:?}", steps(&page));
    assert_eq!(settings(&page), before);
}

#[test]
fn stock_kepler_finds_a_counter_that_follows_the_meter_s() {
    let node = Node::new();
    let bridge = format!("--bridge={}", node.scratch().display());
    let meter = Meter::start(&node, &["--board=pi-2b", &bridge]);
    let zone = node.scratch().join("class/powercap/frugality-modelled:0");
    let counter = || -> f64 {
        let text = fs::read_to_string(zone.join("energy_uj")).unwrap();
        text.trim().parse::<f64>().unwrap() / 1e6
    };
    meter.scrape_until("some energy", |page| joules(page) > 1.0);
    let (before, own, after) = (counter(), joules(&meter.scrape()), counter());
    assert!(
        before <= own + 1e-5 && own <= after + 1e-5,
        "{before} {own} {after}"
    );
    drop(meter);
    let left = counter();
    let meter = Meter::start(&node, &["--board=pi-2b", &bridge]);
    meter.scrape_until("some energy", |page| joules(page) > 0.5);
    assert!(counter() >= left + 0.4);
}

#[test]
fn a_plug_that_is_polled_too_seldom_is_not_bridged_to_kepler() {
    let node = Node::new();
    let bridge = format!("--bridge={}", node.scratch().display());
    let plug = Plug::new(r#"{"apower": 5.0}"#);
    let power = |seconds: u32| {
        node.power(&format!(
            r#"{{"default": {{"source": {{"type": "shelly-gen2", "host": "{}",
                "polling": {{"intervalSeconds": {seconds}}}}}}}}}"#,
            plug.address
        ))
    };
    let output = run(&node.cgroup_fs())
        .args(["--interval=50ms", &power(2), &bridge])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(reported.contains("intervalSeconds: 1"), "{reported}");
    Meter::start(&node, &[&power(1), &bridge]);
}

#[test]
fn probe_reports_the_node_s_sources_and_the_values_for_them() {
    let node = Node::new();
    node.set_sysfs("class/hwmon/hwmon1/name", "ina219");
    node.set_sysfs("class/hwmon/hwmon1/power1_input", "3250000");
    node.set_sysfs("class/hwmon/hwmon1/curr1_input", "650");
    node.set_sysfs("class/hwmon/hwmon1/in1_input", "5000");
    node.set_sysfs("class/hwmon/hwmon1/shunt_resistor", "100000");
    let output = Command::new(env!("CARGO_BIN_EXE_frugality-meter"))
        .env_clear()
        .args(["probe", "--node-name=pi-1", "--cpus=2", "--sysfs"])
        .arg(node.sysfs())
        .arg("--cgroup-fs")
        .arg(node.cgroup_fs())
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "hwmon1: chip ina219, label 1, up to 3.200 A",
        "0.9 % and 5.8 mW",
        "Metered",
        "3.250 W",
        "source: {type: hwmon}",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn probe_reports_how_seldom_a_plug_at_a_fritzbox_measures() {
    let node = Node::new();
    let fritzbox = Fritzbox::start("5000");
    let output = Command::new(env!("CARGO_BIN_EXE_frugality-meter"))
        .env_clear()
        .args(["probe", "--node-name=pi-1", "--cpus=2", "--sysfs"])
        .arg(node.sysfs())
        .arg("--cgroup-fs")
        .arg(node.cgroup_fs())
        .arg(fritz_dect(&node, &fritzbox))
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["fritz-dect", "every 120.0 s, as stated", "5.000 W"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(!text.contains("sid="), "{text}");
}

#[test]
fn a_plug_that_measures_every_two_minutes_calibrates_no_model() {
    let node = Node::new();
    let fritzbox = Fritzbox::start("5000");
    let output = Command::new(env!("CARGO_BIN_EXE_frugality-meter"))
        .env_clear()
        .args(["calibrate", "--node-name=pi-1", "--duration=60s"])
        .arg("--cgroup-fs")
        .arg(node.cgroup_fs())
        .arg(fritz_dect(&node, &fritzbox))
        .output()
        .unwrap();
    assert!(!output.status.success());
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(
        reported.contains("this source measures every 120 s"),
        "{reported}"
    );
}
