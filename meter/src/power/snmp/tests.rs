//! The objects of a real agent.

use std::time::Instant;

use rstest::rstest;

use crate::power::PowerOrEnergy;
use crate::power::choice::{Instrument, choose};
use crate::power::polled::Polled;
use crate::power::simulation::{Truth, run, surroundings};

use super::*;

#[path = "../../../tests/parts/snmpd.rs"]
mod snmpd;
use snmpd::Agent;

/// Cisco's cpeExtPsePortPwrConsumption of port 7 in group 1, in milliwatts.
const PORT_POWER: &str = "1.3.6.1.4.1.9.9.402.1.2.1.9.1.7";

fn config(agent: &Agent, rest: &str) -> String {
    let address = agent.address();
    format!(
        r#"{{"source": {{"type": "snmp", "host": "{address}", "oid": ".{PORT_POWER}", {rest}}}, "relativeUncertainty": 0.05}}"#
    )
}

fn instrument(config: &str) -> Polled {
    let root = tempfile::tempdir().unwrap();
    let power = serde_json::from_str(config).unwrap();
    let chosen = choose(&power, &surroundings(root.path())).unwrap();
    let Some(Instrument::Polled { instrument, .. }) = chosen.instrument else {
        panic!("not polled over the network");
    };
    *instrument
}

fn ask(instrument: &mut Polled) -> Result<PowerOrEnergy, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(instrument.ask())
        .map(|answer| answer.unwrap().0)
        .map_err(|error| error.to_string())
}

/// The first answer of an agent that has just been started.
fn first(instrument: &mut Polled) -> Result<PowerOrEnergy, String> {
    let began = Instant::now();
    loop {
        match ask(instrument) {
            Err(error)
                if began.elapsed() < Duration::from_secs(20)
                    && (error.contains("receive") || error.contains("not answered")) => {}
            outcome => return outcome,
        }
    }
}

#[rstest]
#[case("gauge")]
#[case("unsigned")]
#[case("integer")]
#[case("counter")]
#[case("counter64")]
#[case("string")]
fn every_type_of_number_is_read(#[case] kind: &str) {
    let agent = Agent::start("public", PORT_POWER, kind);
    agent.set(4321);
    let config = config(&agent, r#""unit": "mW""#);
    assert_eq!(
        first(&mut instrument(&config)),
        Ok(PowerOrEnergy::Watts(4.321))
    );
}

#[test]
fn a_switch_s_port_gives_the_energy_of_ten_minutes() {
    let agent = Agent::start("public", PORT_POWER, "gauge");
    first(&mut instrument(&config(&agent, r#""unit": "mW""#))).unwrap();
    for (unit, factor) in [("mW", 1000.0), ("dW", 10.0)] {
        let truth = Truth::benchmark();
        let power = config(&agent, &format!(r#""unit": "{unit}""#));
        let root = tempfile::tempdir().unwrap();
        let power = serde_json::from_str(&power).unwrap();
        let outcome = run(&power, &surroundings(root.path()), &truth, |at| {
            agent.set((truth.watts(at) * factor).round());
        });
        outcome.assert_within(0.01);
        assert_eq!(outcome.errors, [""; 0]);
    }
}

#[test]
fn every_failure_says_what_happened() {
    let agent = Agent::start("s3cret", PORT_POWER, "string");
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, "s3cret\n").unwrap();
    let file = secret.path();
    let polling = r#""polling": {"timeoutSeconds": 0.3}"#;
    let right = config(
        &agent,
        &format!(r#""unit": "W", "communityFile": {file:?}, {polling}"#),
    );
    assert_eq!(
        first(&mut instrument(&right)),
        Ok(PowerOrEnergy::Watts(0.0))
    );

    let reported = ask(&mut instrument(&config(
        &agent,
        &format!(r#""unit": "W", {polling}"#),
    )))
    .unwrap_err();
    assert!(
        reported.contains("does not answer a wrong community"),
        "{reported}"
    );
    assert!(reported.contains(&agent.address()), "{reported}");
    for wrong in ["-3", "NaN", "off"] {
        agent.set(wrong);
        let reported = ask(&mut instrument(&right)).unwrap_err();
        assert!(reported.contains("number above 0"), "{reported}");
    }
    let elsewhere = right.replace(PORT_POWER, "1.3.6.1.4.1.9.9.402.1.2.1.10.1.7");
    let reported = ask(&mut instrument(&elsewhere)).unwrap_err();
    assert!(reported.contains("NO SUCH"), "{reported}");
    drop(agent);
    let reported = ask(&mut instrument(&right)).unwrap_err();
    assert!(reported.contains("402"), "{reported}");
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_to_write() {
    let reported = |rest: &str| {
        let root = tempfile::tempdir().unwrap();
        let text = format!(r#"{{"source": {{"type": "snmp", "unit": "W", {rest}}}}}"#);
        let power = serde_json::from_str(&text).unwrap();
        choose(&power, &surroundings(root.path()))
            .unwrap_err()
            .to_string()
    };
    assert!(reported(r#""host": "http://h/", "oid": "1.3.6""#).contains("a port if it is not 161"));
    for oid in ["sysUpTime.0", "", "9.3.6"] {
        let reported = reported(&format!(r#""host": "h", "oid": "{oid}""#));
        assert!(reported.contains("numbers joined by dots"), "{reported}");
    }
    let reported = reported(r#""host": "h", "oid": "1.3.6", "polling": {"tokenFile": "/x"}"#);
    assert!(reported.contains("communityFile"), "{reported}");
}
