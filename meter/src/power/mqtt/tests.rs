//! Devices of a real broker.

use std::sync::{Arc, Mutex};

use tokio::runtime::Runtime;

use crate::power::PowerOrEnergy;
use crate::power::choice::{Instrument, choose};
use crate::power::config::NodePower;
use crate::power::polled::Polled;
use crate::power::simulation::{SimulationOutcome, Truth, run, surroundings};

use super::*;

#[path = "../../../tests/parts/mosquitto.rs"]
mod mosquitto;
use mosquitto::Broker;

fn power(config: &str, broker: &Broker) -> NodePower {
    serde_json::from_str(&config.replace("BROKER", &broker.address())).unwrap()
}

fn refusal(config: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    let power = serde_json::from_str(config).unwrap();
    choose(&power, &surroundings(root.path()))
        .unwrap_err()
        .to_string()
}

/// A meter's subscription, with the runtime in which it receives.
struct Subscribed {
    instrument: Polled,
    runtime: Runtime,
}

impl Subscribed {
    fn new(config: &str, broker: &Broker) -> Self {
        let root = tempfile::tempdir().unwrap();
        let chosen = choose(&power(config, broker), &surroundings(root.path())).unwrap();
        let Some(Instrument::Polled { instrument, .. }) = chosen.instrument else {
            panic!("not polled over the network");
        };
        Self {
            instrument: *instrument,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    fn ask(&mut self) -> Result<PowerOrEnergy, String> {
        self.ask_with_age().map(|(quantity, _)| quantity)
    }

    fn ask_for_news(&mut self) -> Result<Option<PowerOrEnergy>, String> {
        self.runtime
            .block_on(self.instrument.ask())
            .map(|answer| answer.map(|(quantity, _)| quantity))
            .map_err(|error| error.to_string())
    }

    fn ask_with_age(&mut self) -> Result<(PowerOrEnergy, Duration), String> {
        self.runtime
            .block_on(self.instrument.ask())
            .map(Option::unwrap)
            .map_err(|error| error.to_string())
    }

    /// Lets time pass in which the subscription goes on.
    fn wait(&self, milliseconds: u64) {
        let pause = Duration::from_millis(milliseconds);
        self.runtime
            .block_on(async { tokio::time::sleep(pause).await });
    }

    /// Waits until the subscription is active: publishes `probe`, a reading, until it arrives. Further probes may follow.
    fn wait_for_subscription(&mut self, broker: &Broker, topic: &str, probe: &str) {
        let began = Instant::now();
        loop {
            broker.publish(topic, probe, &[]);
            let patience = Duration::from_millis(100);
            let (runtime, instrument) = (&self.runtime, &mut self.instrument);
            let asked = async { tokio::time::timeout(patience, instrument.ask()).await };
            match runtime.block_on(asked) {
                Ok(Ok(_)) => return,
                outcome => assert!(began.elapsed() < Duration::from_secs(60), "{outcome:?}"),
            }
        }
    }

    /// Asks until there is a reading.
    fn first(&mut self) -> PowerOrEnergy {
        let began = Instant::now();
        loop {
            match self.ask() {
                Ok(quantity) => return quantity,
                Err(error) => assert!(began.elapsed() < Duration::from_secs(20), "{error}"),
            }
        }
    }
}

const PUSHED: &str = r#"{"source": {"type": "mqtt", "broker": "BROKER", "topic": "zigbee2mqtt/pi-1",
    "path": "power", "unit": "W", "polling": {"intervalSeconds": 0.6, "timeoutSeconds": 0.4}}}"#;

const ASKED: &str = r#"{"source": {"type": "mqtt", "broker": "BROKER", "topic": "stat/pi-1/STATUS8",
    "path": "StatusSNS.ENERGY.Power", "unit": "W", "request": {"topic": "cmnd/pi-1/Status", "payload": "8"},
    "polling": {"timeoutSeconds": 0.3}}, "relativeUncertainty": 0.03}"#;

/// Ten minutes of a device that publishes `text` on `topic` whenever the meter waits for a message.
fn ten_minutes(
    config: &str,
    topic: &str,
    text: impl Fn(&Truth, f64) -> String,
) -> SimulationOutcome {
    let broker = Broker::start();
    let root = tempfile::tempdir().unwrap();
    let mut publisher = broker.publisher(topic);
    let truth = Truth::benchmark();
    run(
        &power(config, &broker),
        &surroundings(root.path()),
        &truth,
        |at| {
            publisher.publish(&text(&truth, at));
        },
    )
}

#[test]
fn every_form_of_message_gives_the_energy_of_ten_minutes() {
    let source = |topic: &str, rest: &str| {
        format!(
            r#"{{"source": {{"type": "mqtt", "broker": "BROKER", "topic": "{topic}", {rest},
                "polling": {{"intervalSeconds": 1}}}}, "relativeUncertainty": 0.03}}"#
        )
    };
    let zigbee = source("zigbee2mqtt/pi-1", r#""path": "power", "unit": "W""#);
    ten_minutes(&zigbee, "zigbee2mqtt/pi-1", |truth, at| {
        let watts = truth.watts(at);
        format!(
            r#"{{"current":0.03,"energy":1.53,"linkquality":138,"power":{watts:.1},"state":"ON","voltage":231}}"#
        )
    })
    .assert_within(0.01);
    let esphome = source("meter/sensor/pi_1_power/state", r#""unit": "W""#);
    ten_minutes(&esphome, "meter/sensor/pi_1_power/state", |truth, at| {
        format!("{:.2}", truth.watts(at))
    })
    .assert_within(0.01);
    let counter = source(
        "usb-meter/pi-1",
        r#""path": "joules", "unit": "J", "resolutionJoules": 0.01"#,
    );
    ten_minutes(&counter, "usb-meter/pi-1", |truth, at| {
        format!(r#"{{"joules": {:.2}}}"#, truth.joules(at))
    })
    .assert_within(0.005);
}

#[test]
fn a_device_that_answers_requests_gives_the_energy_of_ten_minutes() {
    let broker = Broker::start();
    let truth = Arc::new(Truth::benchmark());
    let now = Arc::new(Mutex::new(0.0));
    let mut publisher = broker.publisher("stat/pi-1/STATUS8");
    let (shown, at) = (Arc::clone(&truth), Arc::clone(&now));
    broker.subscribe("cmnd/pi-1/Status", move |payload| {
        assert_eq!(payload, "8");
        let watts = shown.watts(*at.lock().unwrap());
        publisher.publish(&format!(
            r#"{{"StatusSNS":{{"Time":"2026-01-01T00:00:00","ENERGY":{{"TotalStartTime":"2026-01-01T00:00:00","Total":3.185,"Power":{watts:.2},"Voltage":229}}}}}}"#
        ));
    });
    let root = tempfile::tempdir().unwrap();
    let outcome = run(
        &power(&ASKED.replace("0.3}", "5}"), &broker),
        &surroundings(root.path()),
        &truth,
        |at| {
            *now.lock().unwrap() = at;
        },
    );
    outcome.assert_within(0.01);
    assert_eq!(outcome.errors, [""; 0]);
}

#[test]
fn a_retained_message_is_no_reading() {
    let broker = Broker::start();
    broker.publish("zigbee2mqtt/pi-1", r#"{"power": 99}"#, &["-r"]);
    let mut meter = Subscribed::new(PUSHED, &broker);
    let reported = meter.ask().unwrap_err();
    assert!(
        reported.contains("its retained message is of unknown age"),
        "{reported}"
    );
    // A device may mark each message as retained. A new one is a reading.
    let mut publisher = broker.publisher("zigbee2mqtt/pi-1");
    publisher.publish(r#"{"power": 3.5}"#);
    assert_eq!(meter.first(), PowerOrEnergy::Watts(3.5));
    broker.publish("zigbee2mqtt/pi-1", r#"{"power": 4.5}"#, &["-r"]);
    assert_eq!(meter.ask(), Ok(PowerOrEnergy::Watts(4.5)));
    let reported = meter.ask().unwrap_err();
    assert!(
        reported.contains("has had no new message for 1 s"),
        "{reported}"
    );
    assert!(!reported.contains("retained"), "{reported}");
}

#[test]
fn a_message_without_the_number_is_no_reading_and_the_next_one_counts() {
    let broker = Broker::start();
    let mut meter = Subscribed::new(PUSHED, &broker);
    assert!(meter.ask().is_err());
    for wrong in [
        r#"{"power": "unavailable"}"#,
        r#"{"power": -3}"#,
        r#"{"power": null}"#,
        "{}",
    ] {
        broker.publish("zigbee2mqtt/pi-1", wrong, &[]);
        let reported = meter.ask().unwrap_err();
        assert!(reported.contains("zigbee2mqtt/pi-1 at power"), "{reported}");
        assert!(reported.contains("number above 0"), "{reported}");
    }
    broker.publish("zigbee2mqtt/pi-1", "offline", &[]);
    broker.publish("zigbee2mqtt/pi-1", r#"{"power": 2.5}"#, &[]);
    assert_eq!(meter.ask(), Ok(PowerOrEnergy::Watts(2.5)));
}

/// Home Assistant's automation of docs/power-on-a-pi.md publishes a state every second, old or new.
#[test]
fn a_message_with_an_old_time_is_no_reading() {
    let broker = Broker::start();
    let source = r#"{"source": {"type": "mqtt", "broker": "BROKER", "topic": "pi-1/power", "path": "watts",
        "timePath": "reported", "unit": "W", "polling": {"intervalSeconds": 0.6, "timeoutSeconds": 0.4}}}"#;
    let mut meter = Subscribed::new(source, &broker);
    assert!(meter.ask().is_err());
    let mut message = |watts: &str, second: u32| {
        let text = format!(
            r#"{{"watts": "{watts}", "reported": "2026-01-01 10:00:0{second}.123456+00:00"}}"#
        );
        broker.publish("pi-1/power", &text, &[]);
        meter.ask_for_news()
    };
    // The first state may be hours old.
    assert_eq!(message("3.5", 1), Ok(None));
    assert_eq!(message("3.5", 1), Ok(None));
    assert_eq!(message("3.5", 2), Ok(Some(PowerOrEnergy::Watts(3.5))));
    assert_eq!(message("3.5", 2), Ok(None));
    assert!(message("unavailable", 3).is_err());
    assert_eq!(message("3.6", 4), Ok(Some(PowerOrEnergy::Watts(3.6))));
}

#[test]
fn the_age_of_a_message_is_its_time_in_the_queue() {
    let broker = Broker::start();
    let mut meter = Subscribed::new(PUSHED, &broker);
    assert!(meter.ask().is_err());
    broker.publish("zigbee2mqtt/pi-1", r#"{"power": 2.5}"#, &[]);
    meter.wait(400);
    let (quantity, age) = meter.ask_with_age().unwrap();
    assert_eq!(quantity, PowerOrEnergy::Watts(2.5));
    assert!(age >= Duration::from_millis(380), "{age:?}");
}

#[test]
fn without_a_broker_there_is_a_reason_and_later_messages_count_again() {
    let mut broker = Broker::start();
    let mut meter = Subscribed::new(PUSHED, &broker);
    assert!(meter.ask().is_err());
    broker.stop();
    meter.wait(100);
    let reported = meter.ask().unwrap_err();
    assert!(reported.contains(&broker.address()), "{reported}");
    assert!(!reported.contains("no new message"), "{reported}");
    let mut asking = Subscribed::new(ASKED, &broker);
    let reported = asking.ask().unwrap_err();
    assert!(reported.contains("refused"), "{reported}");
    broker.start_again();
    let mut publisher = broker.publisher("zigbee2mqtt/pi-1");
    let began = Instant::now();
    while meter.ask() != Ok(PowerOrEnergy::Watts(1.5)) {
        assert!(began.elapsed() < Duration::from_secs(20));
        publisher.publish(r#"{"power": 1.5}"#);
    }
}

#[test]
fn a_late_answer_is_as_old_as_its_request() {
    let broker = Broker::start();
    let mut publisher = broker.publisher("stat/pi-1/STATUS8");
    broker.subscribe("cmnd/pi-1/Status", move |_| {
        std::thread::sleep(Duration::from_millis(500));
        publisher.publish(r#"{"StatusSNS":{"ENERGY":{"Power":6}}}"#);
    });
    let mut meter = Subscribed::new(ASKED, &broker);
    let reported = meter.ask().unwrap_err();
    assert!(
        reported.contains("does not answer the request"),
        "{reported}"
    );
    // The answer to the first request comes 0.2 s after the second one.
    let (quantity, age) = meter.ask_with_age().unwrap();
    assert_eq!(quantity, PowerOrEnergy::Watts(6.0));
    assert!(age >= Duration::from_millis(220), "{age:?}");
}

#[test]
fn a_broker_gets_the_user_and_a_new_password_needs_no_restart() {
    let lines = "allow_anonymous false\npassword_file DIR/users\nacl_file DIR/acl";
    let broker = Broker::with(lines, |directory| {
        let users = directory.join("users");
        std::fs::write(&users, "meter:s3cret\nother:s3cret\n").unwrap();
        let hashed = std::process::Command::new("mosquitto_passwd")
            .arg("-U")
            .arg(&users)
            .status()
            .unwrap();
        assert!(hashed.success());
        let rights =
            "user meter\ntopic read zigbee2mqtt/#\nuser other\ntopic write zigbee2mqtt/#\n";
        std::fs::write(directory.join("acl"), rights).unwrap();
    });
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, "wrong\n").unwrap();
    let login = format!(
        r#""polling": {{"username": "meter", "passwordFile": {:?}, "#,
        secret.path()
    );
    let mut meter = Subscribed::new(&PUSHED.replace(r#""polling": {"#, &login), &broker);
    let reported = meter.ask().unwrap_err();
    assert!(
        reported.contains("the broker refuses the user"),
        "{reported}"
    );
    assert!(!reported.contains("wrong"), "{reported}");
    let mut nameless = Subscribed::new(PUSHED, &broker);
    let reported = nameless.ask().unwrap_err();
    assert!(reported.contains("passwordFile"), "{reported}");
    std::fs::write(&secret, "s3cret\n").unwrap();
    let began = Instant::now();
    while meter.ask() != Ok(PowerOrEnergy::Watts(3.0)) {
        assert!(began.elapsed() < Duration::from_secs(20));
        let other = ["-u", "other", "-P", "s3cret"];
        broker.publish("zigbee2mqtt/pi-1", r#"{"power": 3}"#, &other);
    }
}

/// The recipe of docs/power-on-a-pi.md with a stand-in for the program that reads the meter's USB port.
const DOCUMENT: &str = include_str!("../../../../docs/power-on-a-pi.md");

#[test]
fn the_recipe_for_a_usb_meter_with_a_driver_publishes_its_power_until_it_is_unplugged() {
    let broker = Broker::start();
    let recipe = DOCUMENT
        .lines()
        .find(|line| line.contains("cat in0_input"))
        .unwrap();
    let port = broker.address().replace("127.0.0.1:", "");
    let command = recipe.replace("192.168.1.10", &format!("127.0.0.1 -p {port}"));
    assert!(command.contains(&port), "{command}");
    let device = tempfile::tempdir().unwrap();
    let file = |name: &str| device.path().join(name);
    std::fs::write(file("in0_input"), "5120\n").unwrap();
    std::fs::write(file("in1_input"), "1700\n").unwrap();
    std::fs::write(file("curr1_input"), "700\n").unwrap();
    let source = r#"{"source": {"type": "mqtt", "broker": "BROKER", "topic": "pi-1/milliwatts", "unit": "mW"}}"#;
    let mut meter = Subscribed::new(source, &broker);
    assert!(meter.ask().is_err());
    let mut running = std::process::Command::new("sh")
        .args(["-c", &command])
        .current_dir(device.path())
        .spawn()
        .unwrap();
    assert_eq!(meter.ask(), Ok(PowerOrEnergy::Watts(3.584)));
    std::fs::write(file("curr1_input"), "-700\n").unwrap();
    while meter.ask() == Ok(PowerOrEnergy::Watts(3.584)) {}
    let reported = meter.ask().unwrap_err();
    assert!(reported.contains("\"-3584\""), "{reported}");
    // Unplugged, the device has no files. The command ends.
    std::fs::remove_file(file("curr1_input")).unwrap();
    running.wait().unwrap();
    assert!(meter.ask().is_err());
}

#[test]
fn the_recipe_for_a_usb_meter_publishes_its_energy_once_per_second() {
    let broker = Broker::start();
    let recipe = DOCUMENT
        .lines()
        .find(|line| line.contains("fnirsi_logger.py |"))
        .unwrap();
    let stand_in = concat!(
        "bash ",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/parts/fnirsi_logger_stand_in.sh"
    );
    let port = broker.address().replace("127.0.0.1:", "");
    let command = recipe
        .replace("python3 -u fnirsi_logger.py", stand_in)
        .replace("192.168.1.10", &format!("127.0.0.1 -p {port}"));
    assert!(
        command.contains(stand_in) && command.contains(&port),
        "{command}"
    );
    let source = r#"{"source": {"type": "mqtt", "broker": "BROKER", "topic": "pi-1/joules", "unit": "J",
        "polling": {"timeoutSeconds": 60}}}"#;
    let mut meter = Subscribed::new(source, &broker);
    meter.wait_for_subscription(&broker, "pi-1/joules", "0");
    let seen = tempfile::tempdir().unwrap();
    let mut running = std::process::Command::new("sh")
        .args(["-c", &command])
        .env("SEEN", seen.path())
        .spawn()
        .unwrap();
    let mut counted = Vec::new();
    // The lines of the next second come only after this second's message. A message that waits in a buffer for further
    // lines would never arrive.
    for second in 1..=3 {
        let asked = Instant::now();
        let (mut quantity, mut age) = meter.ask_with_age().unwrap();
        while quantity == PowerOrEnergy::Joules(0.0) {
            (quantity, age) = meter.ask_with_age().unwrap();
        }
        assert!(age <= asked.elapsed(), "{age:?}");
        counted.push(quantity);
        std::fs::write(seen.path().join(second.to_string()), "").unwrap();
    }
    assert!(running.wait().unwrap().success());
    // 5 W, 100 lines per second.
    let expected = [0.05, 5.05, 10.05].map(PowerOrEnergy::Joules);
    assert_eq!(counted, expected);
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_to_write() {
    let source = |rest: &str| format!(r#"{{"source": {{"type": "mqtt", "unit": "W", {rest}}}}}"#);
    let reported = refusal(&source(r#""broker": "http://x/", "topic": "a""#));
    assert!(reported.contains("a port if it is not 1883"), "{reported}");
    let reported = refusal(&source(r#""broker": "u:p@h", "topic": "a""#));
    assert!(reported.contains("a port if it is not 1883"), "{reported}");
    let reported = refusal(&source(r#""broker": "h", "topic": "a/+/b""#));
    assert!(reported.contains("without + and #"), "{reported}");
    let reported = refusal(&source(
        r#""broker": "h", "topic": "a", "request": {"topic": "b/#", "payload": ""}"#,
    ));
    assert!(reported.contains("b/#"), "{reported}");
    for polling in [r#"{"tokenFile": "/x"}"#, r#"{"caFile": "/x"}"#] {
        let reported = refusal(&source(&format!(
            r#""broker": "h", "topic": "a", "polling": {polling}"#
        )));
        assert!(
            reported.contains("without TLS and without tokens"),
            "{reported}"
        );
    }
    let reported = refusal(&source(r#""broker": "h", "topic": "a", "timePath": "t""#));
    assert!(reported.contains("write path too"), "{reported}");
    let reported =
        refusal(r#"{"source": {"type": "mqtt", "broker": "h", "topic": "a", "unit": "V"}}"#);
    assert!(reported.contains("no unit `V`"), "{reported}");
}

#[test]
fn a_broker_may_be_named_by_any_address() {
    let url = |broker: &str| {
        let patience = Duration::from_secs(1);
        Topic::new(broker, "a/b", None, None, patience)
            .unwrap()
            .url()
    };
    assert_eq!(url("192.168.1.10"), "mqtt://192.168.1.10:1883/a/b");
    assert_eq!(url("broker.local:1884"), "mqtt://broker.local:1884/a/b");
    assert_eq!(url("fd00::1"), "mqtt://[fd00::1]:1883/a/b");
    assert_eq!(url("[fd00::1]:1884"), "mqtt://[fd00::1]:1884/a/b");
    assert!(client_id().len() <= 23);
}
