//! Devices on the network, through HTTP servers that behave like them.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};

use super::*;
use crate::power::choice::{Instrument, choose};
use crate::power::config::NodePower;
use crate::power::simulation::{
    IDLE_WATTS, SimulationOutcome, Truth, WATTS_PER_CPU, run, surroundings,
};

/// The answer to a request: status and body, or no answer. For status 401, the text is the authentication
/// that the device demands.
type Answer = Option<(u16, String)>;
type Respond = dyn FnMut(&str, &[String]) -> Answer + Send;

/// A device that answers one request per connection, as plugs do.
struct Device {
    address: SocketAddr,
    respond: Arc<Mutex<Box<Respond>>>,
}

impl Device {
    fn new(respond: impl FnMut(&str, &[String]) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let respond: Arc<Mutex<Box<Respond>>> = Arc::new(Mutex::new(Box::new(respond)));
        let shared = Arc::clone(&respond);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &shared);
            }
        });
        Self { address, respond }
    }

    fn answer(&self, respond: impl FnMut(&str, &[String]) -> Answer + Send + 'static) {
        *self.respond.lock().unwrap() = Box::new(respond);
    }
}

fn serve(stream: impl Read + Write, respond: &Mutex<Box<Respond>>) {
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let path = request.split(' ').nth(1).unwrap();
    let answer = respond.lock().unwrap()(path, &head);
    match answer {
        Some((status, body)) => {
            let asks = if status == 401 {
                format!("WWW-Authenticate: {body}\r\n")
            } else {
                String::new()
            };
            let text = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{asks}Connection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = reader.get_mut().write_all(text.as_bytes());
            let _ = reader.get_mut().flush();
        }
        // The device hangs until the meter gives up.
        None => {
            let _ = reader.lines().next();
        }
    }
}

/// A header's value.
fn header<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    head.iter().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn power(config: &str) -> NodePower {
    serde_json::from_str(config).unwrap()
}

/// Ten minutes of a node whose plug answers `body(truth, time)` at `path`.
fn ten_minutes(
    config: &str,
    path: &'static str,
    truth: Truth,
    body: impl Fn(&Truth, f64) -> Answer + Send + 'static,
) -> SimulationOutcome {
    let truth = Arc::new(truth);
    let now = Arc::new(Mutex::new(0.0));
    let (shown, at) = (Arc::clone(&truth), Arc::clone(&now));
    let device = Device::new(move |asked, _| {
        assert_eq!(asked, path);
        body(&shown, *at.lock().unwrap())
    });
    let root = tempfile::tempdir().unwrap();
    let power = power(&config.replace("HOST", &device.address.to_string()));
    run(&power, &surroundings(root.path()), &truth, |at| {
        *now.lock().unwrap() = at;
    })
}

/// A kind of device: its configuration, the path of its requests, and its answer at a moment.
struct Kind {
    config: &'static str,
    path: &'static str,
    body: fn(&Truth, f64) -> String,
    counts_energy: bool,
}

impl Kind {
    fn ten_minutes(&self, interval_seconds: f64, truth: Truth) -> SimulationOutcome {
        let body = self.body;
        self.ten_minutes_of(interval_seconds, truth, move |truth, at| {
            Some((200, body(truth, at)))
        })
    }

    fn ten_minutes_of(
        &self,
        interval_seconds: f64,
        truth: Truth,
        body: impl Fn(&Truth, f64) -> Answer + Send + 'static,
    ) -> SimulationOutcome {
        let polling = format!(
            r#""polling": {{"intervalSeconds": {interval_seconds}, "timeoutSeconds": 0.2}}"#
        );
        let config = self.config.replace("POLLING", &polling);
        ten_minutes(&config, self.path, truth, body)
    }
}

const KINDS: [Kind; 14] = [
    Kind {
        config: r#"{"source": {"type": "shelly-gen1", "host": "HOST", POLLING}}"#,
        path: "/status",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                r#"{{"relays":[{{"ison":true}}],"meters":[{{"power":{watts:.2},"is_valid":true,"total":9}}]}}"#
            )
        },
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "shelly-gen2", "host": "HOST", POLLING}}"#,
        path: "/rpc/Switch.GetStatus?id=0",
        body: shelly_gen2,
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "tasmota", "host": "HOST", POLLING}}"#,
        path: "/cm?cmnd=Status%208",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                r#"{{"StatusSNS":{{"Time":"2024-01-01T00:00:00","ENERGY":{{"Total":3.185,"Power":{watts:.2},"Voltage":229}}}}}}"#
            )
        },
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "json", "url": "http://HOST/x", "path": "w.0", "unit": "mW", POLLING},
            "relativeUncertainty": 0.01}"#,
        path: "/x",
        body: |truth, at| format!(r#"{{"w": ["{:.0}"]}}"#, 1000.0 * truth.watts(at)),
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "shelly-gen1", "host": "HOST", "component": "emeter", "channel": 1, POLLING},
            "relativeUncertainty": 0.02}"#,
        path: "/status",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                r#"{{"emeters":[{{"power":99.0,"is_valid":true}},{{"power":{watts:.2},"pf":0.7,"reactive":1.3,"voltage":230.1,"is_valid":true,"total":9.1,"total_returned":0.0}}]}}"#
            )
        },
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "shelly-gen2", "host": "HOST", "component": "pm1", POLLING}}"#,
        path: "/rpc/PM1.GetStatus?id=0",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                r#"{{"id":0,"voltage":230.1,"current":0.02,"apower":{watts:.1},"freq":50.0,"aenergy":{{"total":1.0,"by_minute":[0.0],"minute_ts":1}}}}"#
            )
        },
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "shelly-gen2", "host": "HOST", "component": "em1", "channel": 1, POLLING},
            "relativeUncertainty": 0.02}"#,
        path: "/rpc/EM1.GetStatus?id=1",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                r#"{{"id":1,"current":0.02,"voltage":230.1,"act_power":{watts:.1},"aprt_power":7.0,"pf":0.6,"freq":50.0,"calibration":"factory"}}"#
            )
        },
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "shelly-gen2", "host": "HOST", "component": "em-b", POLLING},
            "relativeUncertainty": 0.02}"#,
        path: "/rpc/EM.GetStatus?id=0",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                r#"{{"id":0,"a_act_power":7.0,"b_act_power":{watts:.1},"c_act_power":8.0,"total_act_power":99.0,"user_calibrated_phase":[]}}"#
            )
        },
        counts_energy: false,
    },
    // Home Assistant, whose state repeats until the device reports again.
    Kind {
        config: r#"{"source": {"type": "json", "url": "http://HOST/api/states/sensor.pi_1_power", "path": "state",
            "timePath": "last_reported", "unit": "W", POLLING}, "relativeUncertainty": 0.03}"#,
        path: "/api/states/sensor.pi_1_power",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                r#"{{"entity_id":"sensor.pi_1_power","state":"{watts:.2}","attributes":{{"unit_of_measurement":"W","device_class":"power"}},"last_changed":"2026-01-01T00:00:00+00:00","last_reported":"T{at:.1}","last_updated":"2026-01-01T00:00:00+00:00"}}"#
            )
        },
        counts_energy: false,
    },
    // ESPHome's web_server.
    Kind {
        config: r#"{"source": {"type": "json", "url": "http://HOST/sensor/pi_1_power", "path": "value", "unit": "W",
            POLLING}, "relativeUncertainty": 0.01}"#,
        path: "/sensor/pi_1_power",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(r#"{{"id":"sensor-pi_1_power","value":{watts:.3},"state":"{watts:.2} W"}}"#)
        },
        counts_energy: false,
    },
    // ESPHome's prometheus component. Its TYPE lines have no blank after the hash.
    Kind {
        config: r#"{"source": {"type": "prometheus", "url": "http://HOST/metrics", "metric": "esphome_sensor_value",
            "labels": {"id": "pi_1_power"}, "unit": "W", POLLING}, "relativeUncertainty": 0.01}"#,
        path: "/metrics",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                "#TYPE esphome_sensor_value gauge\n#TYPE esphome_sensor_failed gauge\n\
                 esphome_sensor_failed{{id=\"voltage\",node=\"meter\",name=\"Voltage\"}} 1\n\
                 esphome_sensor_failed{{id=\"pi_1_power\",node=\"meter\",name=\"Pi 1 Power\"}} 0\n\
                 esphome_sensor_value{{id=\"pi_1_power\",node=\"meter\",name=\"Pi 1 Power\",unit=\"W\"}} {watts:.3}\n"
            )
        },
        counts_energy: false,
    },
    // A plug's own counter.
    Kind {
        config: r#"{"source": {"type": "json", "url": "http://HOST/x", "path": "aenergy.total", "unit": "Wh",
            "resolutionJoules": 3.6, POLLING}, "relativeUncertainty": 0.01}"#,
        path: "/x",
        body: shelly_gen2,
        counts_energy: true,
    },
    Kind {
        config: r#"{"source": {"type": "prometheus", "url": "http://HOST/metrics",
            "metric": "device_electric_power_watts", "labels": {"device": "pi-1"}, "unit": "W", POLLING},
            "relativeUncertainty": 0.01}"#,
        path: "/metrics",
        body: |truth, at| {
            let watts = truth.watts(at);
            format!(
                "# HELP device_electric_power_watts Power.\n# TYPE device_electric_power_watts gauge\n\
                 device_electric_power_watts{{device=\"pi-2\"}} 99\n\
                 device_electric_power_watts{{device=\"pi-1\",room=\"a b\"}} {watts}\n\
                 device_electric_power_watts_max{{device=\"pi-1\"}} 77\nother 1\n"
            )
        },
        counts_energy: false,
    },
    Kind {
        config: r#"{"source": {"type": "prometheus", "url": "http://HOST/metrics", "metric": "board_joules_total",
            "unit": "J", POLLING}, "relativeUncertainty": 0.01}"#,
        path: "/metrics",
        body: |truth, at| format!("board_joules_total {}\n", 1e6 + truth.joules(at)),
        counts_energy: true,
    },
];

fn shelly_gen2(truth: &Truth, at: f64) -> String {
    let (watts, wh) = (truth.watts(at), truth.joules(at) / 3600.0);
    format!(
        r#"{{"id":0,"source":"init","output":true,"apower":{watts:.1},"voltage":231.2,
           "current":0.05,"aenergy":{{"total":{wh:.3},"by_minute":[0.0,0.0,0.0],"minute_ts":1}}}}"#
    )
}

#[test]
fn every_device_gives_the_energy_of_ten_minutes() {
    for kind in KINDS {
        kind.ten_minutes(1.0, Truth::benchmark())
            .assert_within(0.005);
        let bursts = kind.ten_minutes(1.0, Truth::bursts());
        bursts.assert_within(if kind.counts_energy { 0.005 } else { 0.01 });
    }
}

#[test]
fn every_device_may_be_polled_every_ten_seconds_and_the_uncertainty_shows_it() {
    for kind in KINDS {
        let often = kind.ten_minutes(1.0, Truth::bursts());
        let seldom = kind.ten_minutes(10.0, Truth::benchmark());
        seldom.assert_within(0.02);
        let bursts = kind.ten_minutes(10.0, Truth::bursts());
        // Samples ten seconds apart miss most of the bursts. A counter misses nothing.
        bursts.assert_within(if kind.counts_energy { 0.02 } else { 0.2 });
        assert!(
            bursts.relative_uncertainty > often.relative_uncertainty,
            "{}: {often:?} {bursts:?}",
            kind.config
        );
        if !kind.counts_energy {
            assert!(bursts.relative_uncertainty > Some(0.05), "{bursts:?}");
        }
    }
}

#[test]
fn every_device_may_fail_for_three_seconds_and_nothing_is_lost() {
    for kind in KINDS {
        let body = kind.body;
        let outcome = kind.ten_minutes_of(1.0, Truth::benchmark(), move |truth, at| {
            // The device loses its radio every fifty seconds, and once in the ten minutes it hangs.
            match (at + 0.05) % 50.0 {
                7.0..8.0 => Some((503, String::new())),
                8.0..9.0 => Some((200, body(truth, at)[..5].to_owned())),
                9.0..10.0 if at > 550.0 => None,
                9.0..10.0 => Some((200, "null".to_owned())),
                _ => Some((200, body(truth, at))),
            }
        });
        assert_eq!(outcome.errors.len(), 39, "{:?}", outcome.errors);
        outcome.assert_within(0.005);
    }
}

#[test]
fn a_device_that_restarts_ends_the_counting_unless_it_is_back_at_once() {
    const OFF: std::ops::Range<f64> = 620.0..630.0;
    for kind in KINDS {
        let body = kind.body;
        let outcome = kind.ten_minutes_of(1.0, Truth::bursts(), move |truth, at| {
            // A device with a counter starts it again at a lower value. A device without a counter stays away
            // for a while.
            if OFF.contains(&at) {
                Some((503, String::new()))
            } else if at >= OFF.end {
                Some((200, body(&Truth::bursts(), at - OFF.end + 1.0)))
            } else {
                Some((200, body(truth, at)))
            }
        });
        let (during, after) = outcome.errors.split_at(10);
        assert!(
            during.iter().all(|error| error.contains("503")),
            "{during:?}"
        );
        let expected = if kind.counts_energy {
            "went back"
        } else {
            "without a power sample"
        };
        assert!(!after.is_empty(), "{}: {outcome:?}", kind.config);
        assert!(
            after.iter().all(|error| error.contains(expected)),
            "{}: {after:?}",
            kind.config
        );
        outcome.assert_within(0.01);
    }
}

#[test]
fn a_counter_read_every_ten_seconds_is_exact_and_a_model_sharpens_it() {
    let config = |model: &str| {
        format!(
            r#"{{"source": {{"type": "json", "url": "http://HOST/x", "path": "aenergy.total", "unit": "Wh",
            "polling": {{"intervalSeconds": 10}}}}, "relativeUncertainty": 0.005{model}}}"#
        )
    };
    let model = format!(r#", "idleWatts": {IDLE_WATTS}, "wattsPerCpu": {WATTS_PER_CPU}"#);
    let counter = |truth: &Truth, at: f64| Some((200, shelly_gen2(truth, at)));
    let alone = ten_minutes(&config(""), "/x", Truth::bursts(), counter);
    let beside = ten_minutes(&config(&model), "/x", Truth::bursts(), counter);
    alone.assert_within(0.02);
    beside.assert_within(0.02);
    // Without a model, a second can be off by the whole height of a burst.
    assert!(alone.worst_watts > 1.0, "{alone:?}");
    assert!(beside.worst_watts < 0.5, "{beside:?}");
}

fn instrument(config: &str, device: &Device) -> Polled {
    let root = tempfile::tempdir().unwrap();
    let power = power(&config.replace("HOST", &device.address.to_string()));
    let chosen = choose(&power, &surroundings(root.path())).unwrap();
    let Some(Instrument::Polled { instrument, .. }) = chosen.instrument else {
        panic!("not polled over the network");
    };
    *instrument
}

fn ask(config: &str, device: &Device) -> Result<PowerOrEnergy, String> {
    ask_again(&mut instrument(config, device))
}

fn ask_again(instrument: &mut Polled) -> Result<PowerOrEnergy, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(instrument.ask())
        .map(|answer| answer.unwrap().0)
        .map_err(|error| error.to_string())
}

const JSON: &str = r#"{"source": {"type": "json", "url": "http://HOST/x", "path": "w.0", "unit": "mW",
    "polling": {"timeoutSeconds": 0.3}}}"#;

#[test]
fn a_device_is_asked_once_more_before_a_reading_is_given_up() {
    let mut asked = 0;
    let device = Device::new(move |_, _| {
        asked += 1;
        Some(if asked == 1 {
            (500, String::new())
        } else {
            (200, r#"{"w": [1500]}"#.to_owned())
        })
    });
    assert_eq!(ask(JSON, &device), Ok(PowerOrEnergy::Watts(1.5)));
}

#[test]
fn every_failure_says_what_happened() {
    let device = Device::new(|_, _| None);
    let reported = |device: &Device| ask(JSON, device).unwrap_err();
    assert!(reported(&device).contains("has not answered within 0.3 s"));
    device.answer(|_, _| Some((401, String::new())));
    assert!(reported(&device).contains("digest"));
    device.answer(|_, _| Some((200, "<html>".into())));
    assert!(reported(&device).contains("JSON"));
    device.answer(|_, _| Some((200, r#"{"v": 1}"#.into())));
    assert!(reported(&device).contains("at w.0"));
    for wrong in ["-3", "null", "\"NaN\"", "{}"] {
        device.answer(move |_, _| Some((200, format!(r#"{{"w": [{wrong}]}}"#))));
        assert!(reported(&device).contains("number above 0"), "{wrong}");
    }
    let exporter =
        r#"{"source": {"type": "prometheus", "url": "http://HOST/", "metric": "m", "unit": "W"}}"#;
    device.answer(|_, _| Some((200, "m{a=\"1\"} 2\nm{a=\"2\"} 3\n".into())));
    assert!(ask(exporter, &device).unwrap_err().contains("more labels"));
    device.answer(|_, _| Some((200, "mm 3\n".into())));
    assert!(
        ask(exporter, &device)
            .unwrap_err()
            .contains("Expected: sample")
    );

    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = Device {
        address,
        respond: device.respond,
    };
    assert!(reported(&gone).contains(&address.to_string()));
}

#[test]
fn a_number_that_its_device_does_not_trust_is_refused() {
    let reported = |source: &str, body: &'static str| {
        let device = Device::new(move |_, _| Some((200, body.to_owned())));
        let config = format!(r#"{{"source": {{{source}, "host": "HOST"}}}}"#);
        ask(&config, &device).unwrap_err()
    };
    let gen1 = r#""type": "shelly-gen1""#;
    let invalid = reported(gen1, r#"{"meters":[{"power":3.1,"is_valid":false}]}"#);
    assert!(invalid.contains("meters.0.is_valid"), "{invalid}");
    let gen2 = |component: &str| format!(r#""type": "shelly-gen2", "component": "{component}""#);
    let broken = reported(
        &gen2("em1"),
        r#"{"act_power":3.1,"errors":["power_meter_failure"]}"#,
    );
    assert!(broken.contains("power_meter_failure"), "{broken}");
    let broken = reported(
        &gen2("em-a"),
        r#"{"a_act_power":3.1,"a_errors":["out_of_range:current"]}"#,
    );
    assert!(broken.contains("out_of_range:current"), "{broken}");
    // Energy that flows back into the grid is not the node's.
    let negative = reported(&gen2("em1"), r#"{"act_power":-3.1}"#);
    assert!(negative.contains("number above 0"), "{negative}");

    let device = Device::new(|_, _| Some((200, r#"{"apower": 3.5, "errors": []}"#.to_owned())));
    let config = r#"{"source": {"type": "shelly-gen2", "host": "HOST", "component": "pm1"}}"#;
    assert_eq!(ask(config, &device), Ok(PowerOrEnergy::Watts(3.5)));
}

/// Asks as long as the test likes: the value and its age, or `None` without a new measurement.
fn asker(
    config: &str,
    device: &Device,
) -> impl FnMut() -> Result<Option<(PowerOrEnergy, Duration)>, String> {
    let mut instrument = instrument(config, device);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    move || {
        let answer = runtime.block_on(instrument.ask());
        answer.map_err(|error| error.to_string())
    }
}

#[test]
fn a_sample_with_an_old_timestamp_is_no_reading() {
    let exporter = |text: &'static str| move |_: &str, _: &[String]| Some((200, text.to_owned()));
    let device = Device::new(exporter("m 3.5 1795236942869\n"));
    let mut ask = asker(
        r#"{"source": {"type": "prometheus", "url": "http://HOST/", "metric": "m", "unit": "W"}}"#,
        &device,
    );
    // The first sample may be hours old.
    assert_eq!(ask(), Ok(None));
    std::thread::sleep(Duration::from_millis(200));
    device.answer(exporter("m 3.5 1795236943869\n"));
    let (quantity, age) = ask().unwrap().unwrap();
    assert_eq!(quantity, PowerOrEnergy::Watts(3.5));
    assert!(age >= Duration::from_millis(95), "{age:?}");
    assert_eq!(ask(), Ok(None));
    // Without a timestamp, the exporter measures when it is asked.
    device.answer(exporter("m 3.5\n"));
    assert!(ask().unwrap().is_some() && ask().unwrap().is_some());
}

#[test]
fn a_model_s_counter_is_no_instrument() {
    let reported = |path: &str, settings: &str| {
        let text = format!("kepler_node_cpu_joules_total{{path=\"{path}\",zone=\"psys\"}} 100\n");
        let device = Device::new(move |_, _| Some((200, text.clone())));
        let config = format!(
            r#"{{"source": {{"type": "prometheus", "url": "http://HOST/",
                "metric": "kepler_node_cpu_joules_total", "unit": "J"}}{settings}}}"#
        );
        ask(&config, &device)
    };
    let modelled = r#", "provenance": "Modelled""#;
    let counted = Ok(PowerOrEnergy::Joules(100.0));
    assert_eq!(reported("/sys/class/powercap/intel-rapl:0", ""), counted);
    for path in ["model:pi-4b", "/bridge/class/powercap/frugality-modelled:0"] {
        let error = reported(path, "").unwrap_err();
        assert!(error.contains("provenance: Modelled"), "{error}");
        assert_eq!(reported(path, modelled), counted);
    }
    let error = reported("/sys/class/powercap/intel-rapl/energy_pkg", modelled).unwrap_err();
    assert!(error.contains("Kepler invents"), "{error}");
}

#[test]
fn a_state_that_its_device_no_longer_reports_is_no_reading() {
    let home_assistant = |state: &str, reported: &str| {
        let text = format!(r#"{{"state":"{state}","last_reported":"{reported}"}}"#);
        move |_: &str, _: &[String]| Some((200, text.clone()))
    };
    let device = Device::new(home_assistant("3.5", "10:00:00"));
    let config = r#"{"source": {"type": "json", "url": "http://HOST/api/states/sensor.x", "path": "state",
        "timePath": "last_reported", "unit": "W"}}"#;
    let mut ask = asker(config, &device);
    // The first state may be hours old.
    assert_eq!(ask(), Ok(None));
    assert_eq!(ask(), Ok(None));
    std::thread::sleep(Duration::from_millis(200));
    // The same value at a new time is a new measurement, made since the last question.
    device.answer(home_assistant("3.5", "10:00:01"));
    let (quantity, age) = ask().unwrap().unwrap();
    assert_eq!(quantity, PowerOrEnergy::Watts(3.5));
    assert!(age >= Duration::from_millis(95), "{age:?}");
    assert_eq!(ask(), Ok(None));
    for state in ["unavailable", "unknown"] {
        device.answer(home_assistant(state, "10:00:02"));
        assert!(ask().unwrap_err().contains("number above 0"));
    }
    device.answer(|_, _| Some((200, r#"{"state":"3.5"}"#.to_owned())));
    assert!(ask().unwrap_err().contains("at last_reported"));
}

#[test]
fn secrets_come_from_files_and_never_appear_in_errors() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, "p&ss word\n").unwrap();
    let file = secret.path().display();
    let device = Device::new(|path, head| {
        let watts = match header(head, "authorization") {
            Some("Basic dTpwJnNzIHdvcmQ=") => 1000,
            Some("Bearer p&ss word") => 2000,
            Some(other) => panic!("{other}"),
            None if path.ends_with("&user=u&password=p%26ss%20word") => 3,
            None => return Some((401, "Basic realm=\"plug\"".into())),
        };
        let both =
            format!(r#"{{"w": [{watts}], "StatusSNS": {{"ENERGY": {{"Power": {watts}.00}}}}}}"#);
        Some((200, both))
    });
    let json = |polling: &str| {
        format!(
            r#"{{"source": {{"type": "json", "url": "http://HOST/x", "path": "w.0", "unit": "mW", "polling": {{{polling}}}}}}}"#
        )
    };
    let basic = json(&format!(r#""username": "u", "passwordFile": "{file}""#));
    assert_eq!(ask(&basic, &device), Ok(PowerOrEnergy::Watts(1.0)));
    let bearer = json(&format!(r#""tokenFile": "{file}""#));
    assert_eq!(ask(&bearer, &device), Ok(PowerOrEnergy::Watts(2.0)));
    let tasmota = format!(
        r#"{{"source": {{"type": "tasmota", "host": "HOST", "polling": {{"username": "u", "passwordFile": "{file}"}}}}}}"#
    );
    assert_eq!(ask(&tasmota, &device), Ok(PowerOrEnergy::Watts(3.0)));
    device.answer(|_, _| {
        let whole = r#"{"StatusSNS": {"ENERGY": {"Power": 3}}}"#;
        Some((200, whole.to_owned()))
    });
    let whole = ask(&tasmota, &device).unwrap_err();
    assert!(whole.contains("WattRes 2"), "{whole}");
    device.answer(|_, _| Some((403, String::new())));
    let refused = ask(&tasmota, &device).unwrap_err();
    assert!(
        refused.contains("403") && !refused.contains("ss"),
        "{refused}"
    );

    let missing = json(r#""tokenFile": "/nowhere/token""#);
    assert!(
        ask(&missing, &device)
            .unwrap_err()
            .contains("/nowhere/token")
    );
}

/// A parameter of a digest's answer, without its quotes.
fn parameter<'a>(answer: &'a str, name: &str) -> &'a str {
    let parameters = answer.strip_prefix("Digest ").unwrap().split(", ");
    let mut named = parameters.filter_map(|it| it.split_once('='));
    let (_, value) = named.find(|(found, _)| *found == name).unwrap();
    value.trim_matches('"')
}

/// The response that a device expects by RFC 7616 (section 3.4.1), with SHA-256 and the quality `auth`.
fn expected_response(answer: &str, nonce: &str, password: &str, path: &str) -> String {
    let hash = |text: String| {
        let bytes = Sha256::digest(text);
        bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    };
    let one = hash(format!("admin:shellyplus1pm-a8032abe54dc:{password}"));
    let two = hash(format!("GET:{path}"));
    let (count, of_client) = (parameter(answer, "nc"), parameter(answer, "cnonce"));
    hash(format!("{one}:{nonce}:{count}:{of_client}:auth:{two}"))
}

#[test]
fn a_shelly_of_the_second_generation_gets_its_password_as_a_digest() {
    let questions = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&questions);
    // The device's nonce serves three requests.
    let (mut nonce, mut served) = (1_625_038_762, 0);
    let device = Device::new(move |path, head| {
        let answer = header(head, "authorization").unwrap_or_default();
        seen.lock().unwrap().push(answer.to_owned());
        if !answer.is_empty() && served < 3 {
            let now = nonce.to_string();
            assert_eq!(parameter(answer, "uri"), path);
            if parameter(answer, "response") == expected_response(answer, &now, "s3cret", path) {
                served += 1;
                assert_eq!(parameter(answer, "nc"), format!("{served:08x}"));
                return Some((200, r#"{"apower": 4.5}"#.to_owned()));
            }
        }
        (nonce, served) = (nonce + 1, 0);
        let digest = format!(
            "Digest qop=\"auth\", realm=\"shellyplus1pm-a8032abe54dc\", nonce=\"{nonce}\", algorithm=SHA-256"
        );
        Some((401, format!("Basic realm=\"x\", {digest}")))
    });
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, "s3cret\n").unwrap();
    let config = format!(
        r#"{{"source": {{"type": "shelly-gen2", "host": "HOST",
            "polling": {{"username": "admin", "passwordFile": {:?}}}}}}}"#,
        secret.path()
    );
    let mut plug = instrument(&config, &device);
    for _ in 0..7 {
        assert_eq!(ask_again(&mut plug), Ok(PowerOrEnergy::Watts(4.5)));
    }
    let asked = questions.lock().unwrap().clone();
    assert_eq!(asked.len(), 7 + 3, "{asked:?}");
    assert_eq!(asked[0], "", "no device gets a password before it asks");
    assert!(
        asked
            .iter()
            .all(|it| !it.contains("s3cret") && !it.contains("Basic"))
    );

    // The meter reports a wrong password and does not keep trying it: the device would lock its user out.
    std::fs::write(&secret, "other").unwrap();
    let before = questions.lock().unwrap().len();
    for _ in 0..5 {
        let refused = ask_again(&mut plug).unwrap_err();
        assert!(
            refused.contains("another username with passwordFile"),
            "{refused}"
        );
    }
    let tried = questions.lock().unwrap().len() - before;
    assert!(tried <= 2, "{tried} questions");
    // A new password needs no restart and is tried at once.
    std::fs::write(&secret, "s3cret").unwrap();
    assert_eq!(ask_again(&mut plug), Ok(PowerOrEnergy::Watts(4.5)));
}

#[test]
fn a_device_that_must_use_a_digest_does_not_get_the_plain_password() {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reported);
    let impostor = move |_: &str, head: &[String]| {
        seen.lock().unwrap().extend(head.to_vec());
        Some((401, "Basic realm=\"shellyplus1pm\"".to_owned()))
    };
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, "s3cret").unwrap();
    let config = |source: &str| {
        let file = secret.path();
        format!(
            r#"{{"source": {{{source}, "polling": {{"username": "admin", "passwordFile": {file:?}}}}}}}"#
        )
    };
    let device = Device::new(impostor.clone());
    let shelly = config(r#""type": "shelly-gen2", "host": "HOST""#);
    assert!(ask(&shelly, &device).unwrap_err().contains("401"));
    // After a device has demanded a digest, the meter sends it no plain password.
    device.answer(|_, head| {
        let is_answered = header(head, "authorization").is_some();
        let digest = "Digest qop=\"auth\", realm=\"x\", nonce=\"1\", algorithm=SHA-256";
        Some(if is_answered {
            (200, r#"{"w": [1000]}"#.to_owned())
        } else {
            (401, digest.to_owned())
        })
    });
    let json = config(r#""type": "json", "url": "http://HOST/x", "path": "w.0", "unit": "mW""#);
    let mut plug = instrument(&json, &device);
    assert_eq!(ask_again(&mut plug), Ok(PowerOrEnergy::Watts(1.0)));
    device.answer(impostor);
    assert!(ask_again(&mut plug).is_err());
    let reported = reported.lock().unwrap();
    assert!(
        !reported.is_empty() && reported.iter().all(|line| !line.contains("Basic")),
        "{reported:?}"
    );
}

/// A device on 127.0.0.1 with a certificate for `name`. The file holds the certificate of its authority.
fn with_certificate_for(name: &str) -> (Device, tempfile::NamedTempFile) {
    let mut of_authority = rcgen::CertificateParams::new([]).unwrap();
    of_authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let authority = of_authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(of_authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let own = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = own.signed_by(&key, &issuer).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, authority.pem()).unwrap();

    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let respond: Arc<Mutex<Box<Respond>>> = Arc::new(Mutex::new(Box::new(|_, _| {
        Some((200, r#"{"w": [1500]}"#.to_owned()))
    })));
    let shared = Arc::clone(&respond);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            serve(StreamOwned::new(session, stream), &shared);
        }
    });
    (Device { address, respond }, file)
}

#[test]
fn a_device_is_polled_by_https_if_the_authority_signed_its_certificate() {
    let (device, authority) = with_certificate_for("127.0.0.1");
    let https = |polling: &str| {
        format!(
            r#"{{"source": {{"type": "json", "url": "https://HOST/x", "path": "w.0", "unit": "mW", "polling": {{{polling}}}}}}}"#
        )
    };
    let trusted = https(&format!(r#""caFile": {:?}"#, authority.path()));
    assert_eq!(ask(&trusted, &device), Ok(PowerOrEnergy::Watts(1.5)));
    assert_eq!(ask(&trusted, &device), Ok(PowerOrEnergy::Watts(1.5)));
    let unknown = ask(&https(""), &device).unwrap_err();
    assert!(unknown.contains("UnknownIssuer"), "{unknown}");
    let other = with_certificate_for("127.0.0.1").1;
    let impostor = ask(&https(&format!(r#""caFile": {:?}"#, other.path())), &device).unwrap_err();
    assert!(impostor.contains("invalid peer certificate"), "{impostor}");

    let (elsewhere, authority) = with_certificate_for("10.0.0.1");
    let of_another = https(&format!(r#""caFile": {:?}"#, authority.path()));
    let refused = ask(&of_another, &elsewhere).unwrap_err();
    assert!(refused.contains("not valid for name"), "{refused}");
}
