//! Devices on the network, through HTTP servers that behave like them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;
use crate::power::choice::{Instrument, choose};
use crate::power::config::NodePower;
use crate::power::simulation::{IDLE_WATTS, Outcome, Truth, WATTS_PER_CPU, run, surroundings};

/// What a request was, and what is answered: status and body, or nothing at all.
type Answer = Option<(u16, String)>;
type Respond = dyn FnMut(&str, &[String]) -> Answer + Send;

/// A device that answers one request a connection, as plugs do.
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
                serve(&stream, &shared);
            }
        });
        Self { address, respond }
    }

    fn answer(&self, respond: impl FnMut(&str, &[String]) -> Answer + Send + 'static) {
        *self.respond.lock().unwrap() = Box::new(respond);
    }
}

fn serve(stream: &TcpStream, respond: &Mutex<Box<Respond>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let path = request.split(' ').nth(1).unwrap();
    let answer = respond.lock().unwrap()(path, &head);
    match answer {
        Some((status, body)) => {
            let _ = write!(
                &mut &*stream,
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
        // The device hangs until the other side gives up.
        None => {
            let _ = BufReader::new(stream).lines().next();
        }
    }
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
) -> Outcome {
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

#[expect(clippy::unnecessary_wraps, reason = "other devices fail now and then")]
fn shelly_gen2(truth: &Truth, at: f64) -> Answer {
    let (watts, wh) = (truth.watts(at), truth.joules(at) / 3600.0);
    Some((
        200,
        format!(
            r#"{{"id":0,"source":"init","output":true,"apower":{watts:.1},"voltage":231.2,
               "current":0.05,"aenergy":{{"total":{wh:.3},"by_minute":[0.0,0.0,0.0],"minute_ts":1}}}}"#
        ),
    ))
}

#[test]
fn a_shelly_of_the_first_generation() {
    let config = r#"{"source": {"type": "shelly-gen1", "host": "HOST"}}"#;
    for truth in [Truth::benchmark(), Truth::bursts()] {
        ten_minutes(config, "/status", truth, |truth, at| {
            let watts = truth.watts(at);
            Some((
                200,
                format!(r#"{{"relays":[{{"ison":true}}],"meters":[{{"power":{watts:.2},"is_valid":true,"total":9}}]}}"#),
            ))
        })
        .assert_within(0.01);
    }
}

#[test]
fn a_shelly_of_the_second_generation() {
    let config = r#"{"source": {"type": "shelly-gen2", "host": "HOST"}}"#;
    let path = "/rpc/Switch.GetStatus?id=0";
    ten_minutes(config, path, Truth::benchmark(), shelly_gen2).assert_within(0.005);
}

#[test]
fn a_plug_s_own_counter_read_every_second() {
    let config = r#"{"source": {"type": "json", "url": "http://HOST/x", "path": "aenergy.total",
        "unit": "Wh", "resolutionJoules": 3.6}, "relativeUncertainty": 0.01}"#;
    ten_minutes(config, "/x", Truth::bursts(), shelly_gen2).assert_within(0.005);
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
    let alone = ten_minutes(&config(""), "/x", Truth::bursts(), shelly_gen2);
    let beside = ten_minutes(&config(&model), "/x", Truth::bursts(), shelly_gen2);
    alone.assert_within(0.02);
    beside.assert_within(0.02);
    // Without a model a second can be off by the whole height of a burst.
    assert!(alone.worst_watts > 1.0, "{alone:?}");
    assert!(beside.worst_watts < 0.5, "{beside:?}");
}

#[test]
fn power_read_every_ten_seconds_is_as_uncertain_as_it_says() {
    let config =
        r#"{"source": {"type": "tasmota", "host": "HOST", "polling": {"intervalSeconds": 10}}}"#;
    let tasmota = |truth: &Truth, at: f64| -> Answer {
        let watts = truth.watts(at);
        Some((
            200,
            format!(
                r#"{{"StatusSNS":{{"Time":"2024-01-01T00:00:00","ENERGY":{{"Total":3.185,"Power":{watts:.2},"Voltage":229}}}}}}"#
            ),
        ))
    };
    let path = "/cm?cmnd=Status%208";
    ten_minutes(config, path, Truth::benchmark(), tasmota).assert_within(0.02);
    let bursts = ten_minutes(config, path, Truth::bursts(), tasmota);
    // A sample every ten seconds misses most of what bursts do: it must not claim otherwise.
    assert!(bursts.relative_uncertainty > Some(0.05), "{bursts:?}");
    assert!((bursts.ratio - 1.0).abs() < 2.0 * bursts.relative_uncertainty.unwrap());
}

#[test]
fn a_prometheus_exporter() {
    let config = r#"{"source": {"type": "prometheus", "url": "http://HOST/metrics",
        "metric": "device_electric_power_watts", "labels": {"device": "pi-1"}, "unit": "W"},
        "relativeUncertainty": 0.01}"#;
    ten_minutes(config, "/metrics", Truth::benchmark(), |truth, at| {
        let watts = truth.watts(at);
        Some((
            200,
            format!(
                "# HELP device_electric_power_watts Power.\n# TYPE device_electric_power_watts gauge\n\
                 device_electric_power_watts{{device=\"pi-2\"}} 99\n\
                 device_electric_power_watts{{device=\"pi-1\",room=\"a b\"}} {watts}\n\
                 device_electric_power_watts_max{{device=\"pi-1\"}} 77\nother 1\n"
            ),
        ))
    })
    .assert_within(0.005);
}

#[test]
fn short_failures_cost_nothing_and_a_device_that_restarts_ends_the_counting() {
    let config = r#"{"source": {"type": "json", "url": "http://HOST/x", "path": "j", "unit": "J"},
        "relativeUncertainty": 0.01}"#;
    let flaky = |truth: &Truth, at: f64| -> Answer {
        // The device reboots its radio every fifty seconds.
        match (at + 0.05) % 50.0 {
            7.0..8.0 => Some((503, String::new())),
            8.0..9.0 => Some((200, "{\"j\":".to_owned())),
            9.0..10.0 => Some((200, r#"{"j": null}"#.to_owned())),
            _ => Some((200, format!(r#"{{"j": "{}"}}"#, truth.joules(at)))),
        }
    };
    let outcome = ten_minutes(config, "/x", Truth::bursts(), flaky);
    assert!(outcome.errors.len() >= 36, "{:?}", outcome.errors);
    outcome.assert_within(0.005);

    let restarted = ten_minutes(config, "/x", Truth::bursts(), |truth, at| {
        let since = if at < 620.0 { 0.0 } else { truth.joules(620.0) };
        Some((200, format!(r#"{{"j": {}}}"#, truth.joules(at) - since)))
    });
    assert!(restarted.errors[0].contains("went back"), "{restarted:?}");
}

fn ask(config: &str, device: &Device) -> Result<Quantity, String> {
    let root = tempfile::tempdir().unwrap();
    let power = power(&config.replace("HOST", &device.address.to_string()));
    let chosen = choose(&power, &surroundings(root.path())).unwrap();
    let Some(Instrument::Polled { mut instrument, .. }) = chosen.instrument else {
        panic!("not asked over the network");
    };
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
    assert_eq!(ask(JSON, &device), Ok(Quantity::Watts(1.5)));
}

#[test]
fn every_failure_says_what_happened() {
    let device = Device::new(|_, _| None);
    let told = |device: &Device| ask(JSON, device).unwrap_err();
    assert!(told(&device).contains("has not answered within 0.3 s"));
    device.answer(|_, _| Some((401, String::new())));
    assert!(told(&device).contains("digest"));
    device.answer(|_, _| Some((200, "<html>".into())));
    assert!(told(&device).contains("JSON"));
    device.answer(|_, _| Some((200, r#"{"v": 1}"#.into())));
    assert!(told(&device).contains("at w.0"));
    for wrong in ["-3", "null", "\"NaN\"", "{}"] {
        device.answer(move |_, _| Some((200, format!(r#"{{"w": [{wrong}]}}"#))));
        assert!(told(&device).contains("number above 0"), "{wrong}");
    }
    let exporter =
        r#"{"source": {"type": "prometheus", "url": "http://HOST/", "metric": "m", "unit": "W"}}"#;
    device.answer(|_, _| Some((200, "m{a=\"1\"} 2\nm{a=\"2\"} 3\n".into())));
    assert!(ask(exporter, &device).unwrap_err().contains("more labels"));
    device.answer(|_, _| Some((200, "mm 3\n".into())));
    assert!(ask(exporter, &device).unwrap_err().contains("no sample"));

    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = Device {
        address,
        respond: device.respond,
    };
    assert!(told(&gone).contains(&address.to_string()));
}

#[test]
fn secrets_come_from_files_and_are_never_told() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, "p&ss word\n").unwrap();
    let file = secret.path().display();
    let device = Device::new(|path, head| {
        let authorization = head.iter().find_map(|line| {
            line.to_lowercase()
                .starts_with("authorization")
                .then(|| line.clone())
        });
        // The request itself is what the test is about.
        Some((
            if authorization.is_some() || path.contains("password=p%26ss%20word") {
                200
            } else {
                403
            },
            match authorization
                .as_deref()
                .map(|it| it.rsplit(' ').next().unwrap())
            {
                Some("dTpwJnNzIHdvcmQ=") => r#"{"w": [1000]}"#.into(),
                Some("word") => r#"{"w": [2000]}"#.into(),
                _ => r#"{"StatusSNS": {"ENERGY": {"Power": 3}}}"#.into(),
            },
        ))
    });
    let json = |polling: &str| {
        format!(
            r#"{{"source": {{"type": "json", "url": "http://HOST/x", "path": "w.0", "unit": "mW", "polling": {{{polling}}}}}}}"#
        )
    };
    let basic = json(&format!(r#""username": "u", "passwordFile": "{file}""#));
    assert_eq!(ask(&basic, &device), Ok(Quantity::Watts(1.0)));
    let bearer = json(&format!(r#""tokenFile": "{file}""#));
    assert_eq!(ask(&bearer, &device), Ok(Quantity::Watts(2.0)));
    let tasmota = format!(
        r#"{{"source": {{"type": "tasmota", "host": "HOST", "polling": {{"username": "u", "passwordFile": "{file}"}}}}}}"#
    );
    assert_eq!(ask(&tasmota, &device), Ok(Quantity::Watts(3.0)));
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
