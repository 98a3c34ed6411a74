//! A plug at a box that speaks the login and the question.

use rstest::rstest;
use tempfile::{NamedTempFile, TempDir};
use tokio::runtime::Runtime;

use crate::power::choice::{Chosen, Instrument, choose};
use crate::power::config::{NodePower, SourceConfig};
use crate::power::polled::Polled;
use crate::power::simulation::surroundings;

use super::*;

#[path = "../../../tests/parts/fritzbox.rs"]
mod fritzbox;
use fritzbox::{AIN, Fritzbox, PASSWORD, USER};

fn file(password: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(&file, format!("{password}\n")).unwrap();
    file
}

fn config(host: &str, polling: &str) -> NodePower {
    let source = format!(
        r#"{{"source": {{"type": "fritz-dect", "host": "{host}", "ain": "{AIN}", "polling": {{{polling}}}}}}}"#
    );
    serde_json::from_str(&source).unwrap()
}

fn login(file: &NamedTempFile) -> String {
    let file = file.path();
    format!(r#""timeoutSeconds": 0.3, "username": "{USER}", "passwordFile": {file:?}"#)
}

fn chosen(power: &NodePower) -> Chosen {
    let root = TempDir::new().unwrap();
    choose(power, &surroundings(root.path())).unwrap()
}

/// A meter that asks a box.
struct Meter {
    instrument: Polled,
    runtime: Runtime,
}

impl Meter {
    fn new(fritzbox: &Fritzbox, file: &NamedTempFile) -> Self {
        let power = config(&fritzbox.address(), &login(file));
        let Some(Instrument::Polled { instrument, .. }) = chosen(&power).instrument else {
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
        self.runtime
            .block_on(self.instrument.ask())
            .map(|answer| answer.unwrap().0)
            .map_err(|error| error.to_string())
    }
}

#[test]
fn the_response_is_the_one_of_the_maker_s_example() {
    let challenge = Challenge::parse("10000$5A1711$2000$5A1722").unwrap();
    assert_eq!(
        challenge.response("1example!"),
        "5A1722$1798a1672bca7c6463d6b245f82b53703b0f50813401b03e4045a5861e689adb"
    );
}

#[rstest]
#[case("10000$5A1711$2000")]
#[case("10000$5A1711$2000$5A1722$1")]
#[case("0$5A1711$2000$5A1722")]
#[case("10000$5A171$2000$5A1722")]
#[case("10000$5A171x$2000$5A1722")]
#[case("4000000000$5A1711$2000$5A1722")]
fn nonsense_is_no_challenge(#[case] text: &str) {
    assert!(Challenge::parse(text).is_none());
}

#[test]
fn one_login_serves_many_questions_and_an_ended_session_is_replaced() {
    let fritzbox = Fritzbox::start("3210");
    let file = file(PASSWORD);
    let mut meter = Meter::new(&fritzbox, &file);
    for _ in 0..3 {
        assert_eq!(meter.ask(), Ok(PowerOrEnergy::Watts(3.21)));
    }
    assert_eq!(fritzbox.with(|state| state.logins), 1);
    fritzbox.with(|state| {
        state.end_session();
        state.power = "4000".to_owned();
    });
    assert_eq!(meter.ask(), Ok(PowerOrEnergy::Watts(4.0)));
    assert_eq!(fritzbox.with(|state| state.logins), 2);
}

#[test]
fn a_refused_password_is_not_tried_again_until_it_changes() {
    let fritzbox = Fritzbox::start("3210");
    let file = file("wrong");
    let mut meter = Meter::new(&fritzbox, &file);
    for _ in 0..3 {
        let reported = meter.ask().unwrap_err();
        assert!(
            reported.contains("refuses user \"meter\" with this password"),
            "{reported}"
        );
        assert!(reported.contains(&fritzbox.address()), "{reported}");
        assert!(!reported.contains("wrong"), "{reported}");
    }
    assert_eq!(fritzbox.with(|state| state.refusals), 1);
    std::fs::write(&file, PASSWORD).unwrap();
    assert_eq!(meter.ask(), Ok(PowerOrEnergy::Watts(3.21)));
}

#[test]
fn a_box_that_blocks_logins_is_left_alone_for_that_time() {
    let fritzbox = Fritzbox::start("3210");
    fritzbox.with(|state| state.block_time = 256);
    let file = file(PASSWORD);
    let mut meter = Meter::new(&fritzbox, &file);
    for _ in 0..3 {
        let reported = meter.ask().unwrap_err();
        assert!(reported.contains("accepts no login now"), "{reported}");
        assert!(reported.contains("after 25"), "{reported}");
    }
    assert_eq!(fritzbox.with(|state| state.refusals), 0);
}

#[test]
fn a_user_without_the_right_is_reported_and_logs_in_once() {
    let fritzbox = Fritzbox::start("3210");
    fritzbox.with(|state| state.may_use_smart_home = false);
    let file = file(PASSWORD);
    let mut meter = Meter::new(&fritzbox, &file);
    for _ in 0..3 {
        let reported = meter.ask().unwrap_err();
        assert!(reported.contains("the right Smart Home"), "{reported}");
    }
    assert_eq!(fritzbox.with(|state| state.logins), 1);
}

#[test]
fn every_failure_says_what_happened_and_gives_no_power() {
    let fritzbox = Fritzbox::start("inval");
    let file = file(PASSWORD);
    let mut meter = Meter::new(&fritzbox, &file);
    let reported = meter.ask().unwrap_err();
    assert!(reported.contains("\"inval\""), "{reported}");
    assert!(reported.contains("does not reach the plug"), "{reported}");
    for wrong in ["-3", "NaN", ""] {
        fritzbox.with(|state| wrong.clone_into(&mut state.power));
        assert!(meter.ask().is_err());
    }
    // No error shows the session.
    assert!(!reported.contains("sid"), "{reported}");

    fritzbox.with(|state| state.hangs = true);
    let reported = meter.ask().unwrap_err();
    assert!(reported.contains("not answered within 0.3 s"), "{reported}");
    fritzbox.with(|state| {
        state.hangs = false;
        "1500".clone_into(&mut state.power);
    });
    assert_eq!(meter.ask(), Ok(PowerOrEnergy::Watts(1.5)));

    fritzbox.with(|state| state.is_old = true);
    let reported = Meter::new(&fritzbox, &file).ask().unwrap_err();
    assert!(reported.contains("FRITZ!OS 7.24"), "{reported}");
    fritzbox.with(|state| state.is_old = false);

    let mut power = config(&fritzbox.address(), &login(&file));
    if let SourceConfig::FritzDect { ain, .. } = &mut power.source {
        "11657 9".clone_into(ain);
    }
    let Some(Instrument::Polled { instrument, .. }) = chosen(&power).instrument else {
        panic!("not polled over the network");
    };
    meter.instrument = *instrument;
    let reported = meter.ask().unwrap_err();
    assert!(reported.contains("check the AIN"), "{reported}");
}

#[test]
fn the_plug_reports_every_two_minutes_unless_the_user_states_another_time() {
    let times = |polling: &str| {
        let login = r#""username": "u", "passwordFile": "/x""#;
        let Chosen { supply, instrument } =
            chosen(&config("fritz.box", &format!("{login}{polling}")));
        let Some(Instrument::Polled { interval, .. }) = instrument else {
            panic!("not polled over the network");
        };
        (
            interval.as_secs(),
            supply.stated_refresh().unwrap().as_secs(),
        )
    };
    assert_eq!(times(""), (10, 120));
    assert_eq!(times(r#", "intervalSeconds": 1"#), (1, 120));
    assert_eq!(times(r#", "refreshSeconds": 30"#), (10, 30));
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_to_write() {
    let root = TempDir::new().unwrap();
    let refusal = |config: &NodePower| {
        let refused = choose(config, &surroundings(root.path()));
        refused.unwrap_err().to_string()
    };
    for polling in [
        "",
        r#""tokenFile": "/x""#,
        r#""username": "u", "passwordFile": "/x", "caFile": "/y""#,
    ] {
        let reported = refusal(&config("fritz.box", polling));
        assert!(
            reported.contains("needs username with passwordFile"),
            "{reported}"
        );
    }
    let login = r#""username": "u", "passwordFile": "/x""#;
    let reported = refusal(&config("u@fritz.box", login));
    assert!(reported.contains("into a Secret instead"), "{reported}");
    let mut blank = config("fritz.box", login);
    if let SourceConfig::FritzDect { ain, .. } = &mut blank.source {
        " ".clone_into(ain);
    }
    let reported = refusal(&blank);
    assert!(reported.contains("the AIN \" \""), "{reported}");
}
