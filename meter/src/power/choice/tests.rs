//! Sources on this node, through files as the kernel lays them out.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::power::in_url;
use crate::power::simulation::{
    IDLE_WATTS, SimulationOutcome, TICK, Truth, WATTS_PER_CPU, run, surroundings,
};

const PMIC_TEXT: &str = "\
   3V7_WL_SW_A current(0)=0.00000000A
     3V3_SYS_A current(1)=0.10000000A
     1V8_SYS_A current(2)=0.00000000A
    DDR_VDD2_A current(3)=0.00000000A
    DDR_VDDQ_A current(4)=0.00000000A
     1V1_SYS_A current(5)=0.00000000A
      0V8_SW_A current(6)=0.00000000A
    VDD_CORE_A current(7)=2.00000000A
     3V3_DAC_A current(8)=0.00000000A
     3V3_ADC_A current(9)=0.00000000A
     0V8_AON_A current(10)=0.00000000A
        HDMI_A current(11)=0.00000000A
   3V7_WL_SW_V volt(12)=3.79999600V
     3V3_SYS_V volt(13)=3.30000000V
     1V8_SYS_V volt(14)=1.10000000V
    DDR_VDD2_V volt(15)=1.10000000V
    DDR_VDDQ_V volt(16)=1.10000000V
     1V1_SYS_V volt(17)=1.10000000V
      0V8_SW_V volt(18)=1.10000000V
    VDD_CORE_V volt(19)=0.90000000V
     3V3_DAC_V volt(20)=1.10000000V
     3V3_ADC_V volt(21)=1.10000000V
     0V8_AON_V volt(22)=1.10000000V
        HDMI_V volt(23)=1.10000000V
       EXT5V_V volt(24)=5.06788000V
        BATT_V volt(25)=3.01110800V
";

struct Node(TempDir);

impl Node {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn write(&self, path: &str, text: impl std::fmt::Display) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// A file whose number changes often. It is written in place, because the kernel's files are never empty.
    fn number(&self, path: &str) -> impl Fn(u64) + use<> {
        self.write(path, format!("{:020}", 0));
        let file = fs::File::options()
            .write(true)
            .open(self.0.path().join(path))
            .unwrap();
        move |number| {
            file.write_all_at(format!("{number:020}").as_bytes(), 0)
                .unwrap();
        }
    }

    /// An INA219 or INA226 in a line of 5 V, idle, with this shunt in microohms.
    fn ina(&self, device: &str, chip: &str, shunt: u32) {
        let file = |name: &str| format!("sys/class/hwmon/{device}/{name}");
        self.write(&file("name"), chip);
        self.write(&file("shunt_resistor"), shunt);
        self.write(&file("in1_input"), 5_000);
        self.write(&file("curr1_input"), 540);
        self.write(&file("power1_input"), 2_700_000);
    }

    fn surroundings(&self) -> Surroundings {
        surroundings(self.0.path())
    }

    fn choose(&self, config: &str) -> Result<Chosen, ChoiceError> {
        choose(&power(config), &self.surroundings())
    }

    fn source(&self, config: &str) -> Source {
        self.choose(config).unwrap().supply.source().clone()
    }

    fn run(&self, config: &str, truth: &Truth, set: impl FnMut(f64)) -> SimulationOutcome {
        run(&power(config), &self.surroundings(), truth, set)
    }
}

fn power(config: &str) -> NodePower {
    serde_json::from_str(config).unwrap()
}

fn micro(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as the kernel does"
    )]
    let whole = (value * 1e6) as u64;
    whole
}

#[test]
fn an_ina226_s_power_is_integrated_to_the_energy_of_ten_minutes() {
    let node = Node::new();
    node.write("sys/class/hwmon/hwmon0/name", "cpu_thermal");
    node.ina("hwmon3", "ina226", 10_000);
    let show = node.number("sys/class/hwmon/hwmon3/power1_input");
    for truth in [Truth::benchmark(), Truth::bursts()] {
        let outcome = node.run(r#"{"source": {"type": "hwmon"}}"#, &truth, |at| {
            show(micro(truth.watts(at)));
        });
        outcome.assert_within(0.005);
        assert!(outcome.worst_watts < 0.3, "{outcome:?}");
    }
}

#[test]
fn a_sensor_with_a_counter_is_read_by_it_and_one_without_power_by_volts_and_amperes() {
    let truth = Truth::bursts();
    let node = Node::new();
    node.write("sys/class/hwmon/hwmon0/name", "ina228");
    node.write("sys/class/hwmon/hwmon0/power1_input", 1);
    let show = node.number("sys/class/hwmon/hwmon0/energy1_input");
    let config = r#"{"source": {"type": "hwmon", "chip": "ina228"}, "relativeUncertainty": 0.006}"#;
    assert_eq!(node.source(config).resolution_joules, Some(1e-6));
    let outcome = node.run(config, &truth, |at| {
        show(micro(truth.joules(at)));
    });
    outcome.assert_within(0.000_1);

    node.write("sys/class/hwmon/hwmon1/name", "ina3221");
    node.write("sys/class/hwmon/hwmon1/shunt2_resistor", 10_000);
    node.write("sys/class/hwmon/hwmon1/in2_label", "VIN");
    node.write("sys/class/hwmon/hwmon1/in2_input", 5_000);
    let show = node.number("sys/class/hwmon/hwmon1/curr2_input");
    let config = r#"{"source": {"type": "hwmon", "chip": "ina3221", "label": "VIN"}}"#;
    let outcome = node.run(config, &truth, |at| {
        show(micro(truth.watts(at) / 5.0) / 1000);
    });
    outcome.assert_within(0.005);
}

/// The files of the kernel's driver for a KM003C (`drivers/hwmon/powerz.c`).
#[test]
fn a_usb_meter_is_read_by_the_voltage_of_the_supply_and_not_of_its_signals() {
    let node = Node::new();
    let file = |name: &str| format!("sys/class/hwmon/hwmon4/{name}");
    node.write(&file("name"), "powerz");
    let voltages = [
        ("VBUS", 5_000),
        ("VCC1", 1_700),
        ("VCC2", 30),
        ("VDP", 600),
        ("VDM", 600),
        ("VDD", 3_300),
    ];
    for (number, (label, millivolts)) in voltages.into_iter().enumerate() {
        node.write(&file(&format!("in{number}_label")), label);
        node.write(&file(&format!("in{number}_input")), millivolts);
    }
    node.write(&file("curr1_label"), "IBUS");
    let show = node.number(&file("curr1_input"));
    let truth = Truth::bursts();
    let config = r#"{"source": {"type": "hwmon", "chip": "powerz"}, "relativeUncertainty": 0.005}"#;
    let outcome = node.run(config, &truth, |at| {
        show(micro(truth.watts(at) / 5.0) / 1000);
    });
    outcome.assert_within(0.005);
    // The meter may be plugged anywhere, so it is never chosen automatically.
    assert!(node.choose(r#"{"source": {"type": "hwmon"}}"#).is_err());
    let unstated = r#"{"source": {"type": "hwmon", "chip": "powerz"}}"#;
    assert_eq!(node.source(unstated).relative_uncertainty, None);
    // Unplugged, it has no files.
    let Some(Instrument::Local(mut instrument)) = node.choose(unstated).unwrap().instrument else {
        panic!("not a file of this node");
    };
    fs::remove_dir_all(node.0.path().join("sys/class/hwmon/hwmon4")).unwrap();
    assert!(instrument.read().is_err());
}

#[test]
fn one_of_several_sensors_must_be_named_and_a_graphics_card_does_not_count() {
    let node = Node::new();
    node.write("sys/class/hwmon/hwmon0/name", "amdgpu");
    node.write("sys/class/hwmon/hwmon0/power1_input", 30_000_000);
    let auto = r#"{"source": {"type": "hwmon"}}"#;
    let error = node.choose(auto).unwrap_err().to_string();
    assert!(error.contains("chip amdgpu label 1"), "{error}");
    for device in 1..=2 {
        node.write(&format!("sys/class/hwmon/hwmon{device}/name"), "ina219");
        node.write(&format!("sys/class/hwmon/hwmon{device}/power1_input"), 1);
        node.write(
            &format!("sys/class/hwmon/hwmon{device}/power1_label"),
            format!("rail{device}"),
        );
    }
    assert!(node.choose(auto).is_err());
    let named = r#"{"source": {"type": "hwmon", "label": "rail2"}}"#;
    assert!(node.source(named).path.ends_with("hwmon2/power1_input"));
    // The labelled sensor may measure another rail, and the user may have added the other sensor.
    fs::remove_file(node.0.path().join("sys/class/hwmon/hwmon1/power1_label")).unwrap();
    let error = node.choose(auto).unwrap_err().to_string();
    assert!(error.contains("more than one power sensor fits"), "{error}");
}

#[rstest::rstest]
// 81.92 mV at 0.1 Ω are 0.819 A: a Pi 4 under load draws more.
#[case("ina226", 100_000, &[(540, 0), (810, 0), (811, 1), (819, 2)])]
// The same chip with 10 mΩ is not at the end of its scale there, and neither is the INA219 with 320 mV.
#[case("ina226", 10_000, &[(819, 0), (3_000, 0), (8_110, 1)])]
#[case("ina219", 100_000, &[(819, 0), (3_160, 0), (3_170, 1), (3_200, 2)])]
fn readings_at_the_end_of_a_sensor_s_scale_are_counted(
    #[case] chip: &str,
    #[case] shunt: u32,
    #[case] shown: &[(u32, u64)],
) {
    let node = Node::new();
    node.ina("hwmon0", chip, shunt);
    let Some(Instrument::Local(mut sensor)) = node
        .choose(r#"{"source": {"type": "auto"}}"#)
        .unwrap()
        .instrument
    else {
        panic!("no sensor");
    };
    assert_eq!(sensor.saturated_readings(), Some(0));
    for (milliamperes, readings) in shown {
        node.write("sys/class/hwmon/hwmon0/curr1_input", milliamperes);
        sensor.read().unwrap();
        assert_eq!(
            sensor.saturated_readings(),
            Some(*readings),
            "{milliamperes} mA"
        );
    }
}

#[test]
fn offset_and_steps_of_a_sensor_follow_from_its_shunt() {
    let fixed = |chip: &str, shunt: u32| {
        let node = Node::new();
        node.ina("hwmon0", chip, shunt);
        node.source(r#"{"source": {"type": "hwmon"}}"#)
            .fixed_uncertainty_watts
    };
    // 10 µV and a step of 31.25 mW at 2 mΩ; a step of 0.6 mW at 0.1 Ω.
    let two_milliohms = (0.005 * 5.0 / 3_f64.sqrt()).hypot(0.031_25 / 12_f64.sqrt());
    assert!((fixed("ina226", 2_000) - two_milliohms).abs() < 1e-9);
    assert!(
        two_milliohms > 0.006 * 2.7,
        "as much as the shunt's uncertainty at idle"
    );
    assert!(fixed("ina226", 100_000) < 0.000_5);
    // 200 µV at 0.1 Ω are 10 mW at 5 V.
    let ina219 = (0.002 * 5.0 / 3_f64.sqrt()).hypot(0.002 / 12_f64.sqrt());
    assert!((fixed("ina219", 100_000) - ina219).abs() < 1e-9);
    // The user's statement covers all errors of the sensor.
    let node = Node::new();
    node.ina("hwmon0", "ina226", 2_000);
    let own = node.source(r#"{"source": {"type": "hwmon"}, "relativeUncertainty": 0.002}"#);
    assert_eq!(
        (own.relative_uncertainty, own.fixed_uncertainty_watts),
        (Some(0.002), 0.0)
    );
}

#[test]
fn a_sensor_whose_shunt_is_not_known_states_no_accuracy() {
    let node = Node::new();
    for chip in ["ina226", "ina228", "ina237", "ina238"] {
        node.write("sys/class/hwmon/hwmon0/name", chip);
        node.write("sys/class/hwmon/hwmon0/power1_input", 2_700_000);
        let source = node.source(r#"{"source": {"type": "hwmon"}}"#);
        assert_eq!(source.relative_uncertainty, None, "{chip}");
        let stated = node.source(r#"{"source": {"type": "hwmon"}, "relativeUncertainty": 0.01}"#);
        assert_eq!(stated.relative_uncertainty, Some(0.01), "{chip}");
    }
}

/// An INA3221 as its driver shows it: `in4` to `in6` are voltages at the shunts, and `curr4` is a sum.
fn ina3221(node: &Node) {
    let file = |name: String| format!("sys/class/hwmon/hwmon0/{name}");
    node.write(&file("name".into()), "ina3221");
    for channel in 1..=3 {
        node.write(&file(format!("in{channel}_input")), 5_000);
        node.write(&file(format!("in{channel}_enable")), 1);
        node.write(&file(format!("curr{channel}_input")), 500);
        node.write(&file(format!("shunt{channel}_resistor")), 100_000);
    }
    for channel in 4..=7 {
        node.write(&file(format!("in{channel}_input")), 50);
    }
    node.write(&file("curr4_input".into()), 1_500);
}

#[test]
fn the_meter_does_not_guess_an_ina3221_s_channel_and_ignores_its_sum() {
    let node = Node::new();
    ina3221(&node);
    node.write(
        "sys/firmware/devicetree/base/model",
        "Raspberry Pi 4 Model B Rev 1.4",
    );
    for config in [
        r#"{"source": {"type": "auto"}}"#,
        r#"{"source": {"type": "hwmon"}}"#,
    ] {
        let error = node.choose(config).unwrap_err().to_string();
        for channel in 1..=3 {
            let name = format!("chip ina3221 label {channel}");
            assert!(error.contains(&name), "{error}");
        }
        assert!(!error.contains("label 4"), "{error}");
    }
    let named = r#"{"source": {"type": "hwmon", "label": "2"}}"#;
    assert!(node.source(named).path.ends_with("in2_input"));
    // The only labelled channel is chosen, and a disabled channel does not count.
    node.write("sys/class/hwmon/hwmon0/in3_label", "VIN");
    let auto = r#"{"source": {"type": "auto"}}"#;
    assert!(node.source(auto).path.ends_with("in3_input"));
    node.write("sys/class/hwmon/hwmon0/in1_label", "USB");
    assert!(node.choose(auto).is_err());
    node.write("sys/class/hwmon/hwmon0/in1_enable", 0);
    assert!(node.source(auto).path.ends_with("in3_input"));
}

#[test]
fn a_sensor_that_fails_for_a_while_gives_the_energy_between_its_readings() {
    let node = Node::new();
    let truth = Truth::benchmark();
    let file = "sys/class/hwmon/hwmon0/power1_input";
    node.write("sys/class/hwmon/hwmon0/name", "ina260");
    node.write("sys/class/hwmon/hwmon0/in1_input", 5_000);
    let show = node.number(file);
    let path = node.0.path().join(file);
    let outcome = node.run(r#"{"source": {"type": "hwmon"}}"#, &truth, |at| {
        if (100.0..103.0).contains(&at) {
            fs::write(&path, "").unwrap();
        } else {
            show(micro(truth.watts(at)));
        }
    });
    assert!(outcome.errors.len() >= 29, "{:?}", outcome.errors);
    assert!(outcome.errors[0].contains(file), "{:?}", outcome.errors);
    outcome.assert_within(0.005);
}

#[test]
fn a_sensor_that_is_removed_and_bound_again_is_found_again() {
    let node = Node::new();
    let truth = Truth::benchmark();
    let file = "sys/class/hwmon/hwmon0/power1_input";
    node.write("sys/class/hwmon/hwmon0/name", "ina260");
    node.write("sys/class/hwmon/hwmon0/in1_input", 5_000);
    node.write(file, 0);
    let path = node.0.path().join(file);
    let outcome = node.run(r#"{"source": {"type": "hwmon"}}"#, &truth, |at| {
        if (200.0..203.0).contains(&at) {
            // An open file gives no more values (the kernel answers ENODEV), and its name is gone.
            let _ = fs::File::options().write(true).truncate(true).open(&path);
            let _ = fs::remove_file(&path);
        } else {
            node.write(file, micro(truth.watts(at)));
        }
    });
    assert!(outcome.errors.len() >= 29, "{:?}", outcome.errors);
    outcome.assert_within(0.005);
}

#[test]
fn a_sensor_s_counter_that_restarts_ends_the_counting() {
    let node = Node::new();
    let truth = Truth::bursts();
    node.write("sys/class/hwmon/hwmon0/name", "ina228");
    let show = node.number("sys/class/hwmon/hwmon0/energy1_input");
    let config = r#"{"source": {"type": "hwmon"}, "relativeUncertainty": 0.006}"#;
    let outcome = node.run(config, &truth, |at| {
        let since = if at < 620.0 { 0.0 } else { truth.joules(620.0) };
        show(micro(truth.joules(at) - since));
    });
    assert!(outcome.errors[0].contains("went back"), "{outcome:?}");
    outcome.assert_within(0.000_1);
}

#[test]
fn a_sensor_wired_in_reverse_is_reported_and_gives_no_reading() {
    let node = Node::new();
    node.write("sys/class/hwmon/hwmon0/name", "ina219");
    node.write("sys/class/hwmon/hwmon0/power1_input", -4_000_000);
    let Some(Instrument::Local(mut sensor)) = node
        .choose(r#"{"source": {"type": "hwmon"}}"#)
        .unwrap()
        .instrument
    else {
        panic!("no sensor");
    };
    let error = sensor.read().unwrap_err().to_string();
    assert!(error.contains("reverse"), "{error}");
}

fn rapl_zone(node: &Node, directory: &str, name: &str, range: u64) {
    let zone = format!("sys/class/powercap/{directory}");
    node.write(&format!("{zone}/name"), name);
    node.write(&format!("{zone}/energy_uj"), 0);
    node.write(&format!("{zone}/max_energy_range_uj"), range);
}

#[test]
fn rapl_packages_are_added_up_through_their_wraps_and_counted_once() {
    let node = Node::new();
    let truth = Truth::bursts();
    // Both ranges are small: each wraps several times in ten minutes.
    let ranges = [300_000_000, 470_000_000];
    rapl_zone(&node, "intel-rapl:0", "package-0", ranges[0]);
    rapl_zone(&node, "intel-rapl:0:0", "core", ranges[0]);
    rapl_zone(&node, "intel-rapl:1", "package-1", ranges[1]);
    rapl_zone(&node, "intel-rapl-mmio:0", "package-0", ranges[0]);
    let config = r#"{"source": {"type": "rapl"}}"#;
    assert_eq!(node.source(config).zone, "package");
    let show = [0, 1].map(|package| {
        node.number(&format!(
            "sys/class/powercap/intel-rapl:{package}/energy_uj"
        ))
    });
    let outcome = node.run(config, &truth, |at| {
        for (show, range) in show.iter().zip(ranges) {
            show(micro(truth.joules(at) / 2.0) % range);
        }
    });
    assert!((outcome.ratio - 1.0).abs() < 1e-6, "{outcome:?}");
    assert_eq!(outcome.errors, [""; 0]);
}

#[test]
fn rapl_that_cannot_be_read_for_a_while_loses_nothing_not_even_a_wrap() {
    let node = Node::new();
    let truth = Truth::benchmark();
    let range = 300_000_000;
    rapl_zone(&node, "intel-rapl:0", "package-0", range);
    let file = "sys/class/powercap/intel-rapl:0/energy_uj";
    let show = node.number(file);
    let path = node.0.path().join(file);
    // The counters are unreadable for ten seconds around every wrap.
    let silent = |at: f64| micro(truth.joules(at) + 15.0) % range < 30_000_000 && at > 10.0;
    let outcome = node.run(r#"{"source": {"type": "rapl"}}"#, &truth, |at| {
        if silent(at) {
            fs::write(&path, "").unwrap();
        } else {
            show(micro(truth.joules(at)) % range);
        }
    });
    assert!(outcome.errors.len() > 100, "{:?}", outcome.errors.len());
    assert!((outcome.ratio - 1.0).abs() < 1e-4, "{outcome:?}");
}

#[test]
fn the_whole_platform_is_preferred_and_a_counter_set_back_is_not_a_wrap() {
    let node = Node::new();
    rapl_zone(&node, "intel-rapl:0", "package-0", 262_143_328_850);
    rapl_zone(&node, "intel-rapl:1", "psys", 262_143_328_850);
    let config = r#"{"source": {"type": "rapl"}}"#;
    let source = node.source(config);
    assert_eq!(source.zone, "psys");
    assert!(source.path.ends_with("intel-rapl:1"));
    let Some(Instrument::Local(mut rapl)) = node.choose(config).unwrap().instrument else {
        panic!("no RAPL");
    };
    let file = "sys/class/powercap/intel-rapl:1/energy_uj";
    node.write(file, 80_000_000);
    assert_eq!(
        rapl.read().unwrap(),
        super::super::PowerOrEnergy::Joules(0.0)
    );
    node.write(file, 85_000_000);
    assert_eq!(
        rapl.read().unwrap(),
        super::super::PowerOrEnergy::Joules(5.0)
    );
    // Kepler would now report 262 kJ.
    node.write(file, 80_000_000);
    let error = rapl.read().unwrap_err().to_string();
    assert!(error.contains("went back"), "{error}");
}

#[test]
fn the_pmic_s_rails_are_summed_and_corrected() {
    let expected = 1.1451 * (0.1 * 3.3 + 2.0 * 0.9) + 0.5879;
    let reported = pmic::watts(PMIC_TEXT, Correction::default()).unwrap();
    assert!((reported - expected).abs() < 1e-9, "{reported}");
    // If a line of a rail is missing, the sum would lack this rail without notice.
    for missing in ["3V3_SYS_A", "3V3_SYS_V"] {
        let torn: String = PMIC_TEXT
            .split_inclusive('\n')
            .filter(|line| !line.contains(missing))
            .collect();
        assert_eq!(pmic::watts(&torn, Correction::default()), None, "{missing}");
    }
    // The user's own fit may be for other rails.
    let own = Correction {
        rails: None,
        ..Correction::default()
    };
    let fewer: String = PMIC_TEXT
        .split_inclusive('\n')
        .filter(|line| !line.contains("3V3_SYS"))
        .collect();
    let expected = 1.1451 * 2.0 * 0.9 + 0.5879;
    assert!((pmic::watts(&fewer, own).unwrap() - expected).abs() < 1e-9);
    assert_eq!(pmic::watts("error=1", Correction::default()), None);
}

#[test]
fn the_pmic_is_read_through_its_command_for_ten_minutes() {
    let node = Node::new();
    let truth = Truth::benchmark();
    let file = node.0.path().join("adc");
    let config = format!(
        r#"{{"source": {{"type": "pmic", "command": ["cat", {file:?}], "slope": 1.0, "offsetWatts": 0.5}}}}"#
    );
    let outcome = node.run(&config, &truth, |at| {
        let amperes = truth.watts(at) - 0.5;
        let text = format!("X_A current(0)={amperes:.6}A\nX_V volt(1)=1.0V\nBATT_V volt(2)=3.0V");
        fs::write(&file, text).unwrap();
    });
    outcome.assert_within(0.005);
    assert_eq!(node.source(&config).relative_uncertainty, Some(0.05));
}

#[test]
fn a_pmic_command_that_fails_or_hangs_is_asked_again() {
    let node = Node::new();
    let truth = Truth::benchmark();
    let script = node.0.path().join("vcgencmd");
    let config = format!(
        r#"{{"source": {{"type": "pmic", "command": ["sh", {script:?}], "slope": 1.0, "offsetWatts": 0.0}}}}"#
    );
    let outcome = node.run(&config, &truth, |at| {
        let text = match at {
            100.0..103.0 => "exit 3".to_owned(),
            200.0..202.0 => "exec sleep 9".to_owned(),
            300.0..303.0 => r#"echo 'error=1 error_msg="Command not registered"'"#.to_owned(),
            _ => format!(
                "echo 'X_A current(0)={:.6}A'\necho 'X_V volt(1)=1.0V'",
                truth.watts(at)
            ),
        };
        fs::write(&script, text).unwrap();
    });
    assert_eq!(outcome.errors.len(), 8, "{:?}", outcome.errors);
    assert!(
        outcome.errors[3].contains("timed out"),
        "{:?}",
        outcome.errors
    );
    outcome.assert_within(0.005);
}

/// The loader loads the stand-in for a mailbox device when a program starts. This test is therefore a
/// separate program.
const WITH_MAILBOX: &str =
    "power::choice::tests::the_pmic_is_read_through_its_mailbox_for_ten_minutes";

#[test]
fn the_pmic_is_read_through_its_mailbox_for_ten_minutes() {
    let Some(file) = std::env::var_os("MAILBOX_TEXT") else {
        let scratch = tempfile::tempdir().unwrap();
        let library = scratch.path().join("mailbox_stand_in.so");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/mailbox_stand_in.c"
            ))
            .status();
        assert!(compiled.unwrap().success());
        let itself = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", WITH_MAILBOX, "--nocapture"])
            .env("LD_PRELOAD", library)
            .env("MAILBOX_TEXT", scratch.path().join("adc"))
            .output()
            .unwrap();
        let reported = String::from_utf8_lossy(&itself.stdout);
        assert!(reported.contains("1 passed"), "{reported}");
        return;
    };
    let node = Node::new();
    node.write("dev/vcio", "");
    node.write("proc/cpuinfo", "Model\t\t: Raspberry Pi 5 Model B Rev 1.0");
    let found = node.source(r#"{"source": {"type": "auto"}}"#);
    assert_eq!(
        (found.name, found.provenance),
        ("pmic", SourceProvenance::Metered)
    );
    assert!(found.path.ends_with("dev/vcio"), "{}", found.path);
    assert_eq!(found.relative_uncertainty, Some(0.05));
    node.write("dev/vcio_gencmd", "");
    let narrower = node.source(r#"{"source": {"type": "pmic"}}"#);
    assert!(
        narrower.path.ends_with("dev/vcio_gencmd"),
        "{}",
        narrower.path
    );

    let truth = Truth::benchmark();
    let config = r#"{"source": {"type": "pmic", "slope": 1.0, "offsetWatts": 0.5}}"#;
    let outcome = node.run(config, &truth, |at| {
        let text = match at {
            100.0..102.0 => "busy".to_owned(),
            200.0..202.0 => "error 7".to_owned(),
            300.0..302.0 => "error=1 error_msg=\"Command not registered\"".to_owned(),
            _ => {
                let amperes = truth.watts(at) - 0.5;
                format!("X_A current(0)={amperes:.6}A\nX_V volt(1)=1.0V\nBATT_V volt(2)=3.0V")
            }
        };
        fs::write(&file, text).unwrap();
    });
    let [busy, _, refused, _, unknown, _] = outcome.errors.as_slice() else {
        panic!("{:?}", outcome.errors);
    };
    assert!(busy.contains("takes no messages"), "{busy}");
    assert!(
        refused.contains("refuses pmic_read_adc with error 7"),
        "{refused}"
    );
    assert!(unknown.contains("not registered"), "{unknown}");
    outcome.assert_within(0.005);
}

#[test]
fn the_pmic_is_read_through_the_host_s_file_for_ten_minutes() {
    let node = Node::new();
    let truth = Truth::benchmark();
    let path = node.0.path().join("adc");
    let config = format!(
        r#"{{"source": {{"type": "pmic", "file": {path:?}, "slope": 1.0, "offsetWatts": 0.0}}}}"#
    );
    // The test sets the file's times itself, because its virtual seconds are shorter than a tick of the file
    // system's clock. The times are in the future: a slow machine must not make a file too old.
    let began = std::time::SystemTime::now() + Duration::from_secs(3_600);
    let outcome = node.run(&config, &truth, |at| {
        if (400.0..403.0).contains(&at) {
            // The host's service restarts, and its directory is gone for a while.
            let _ = fs::remove_file(&path);
            return;
        }
        let text = format!("X_A current(0)={:.6}A\nX_V volt(1)=1.0V", truth.watts(at));
        fs::write(&path, text).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(began + Duration::from_secs_f64(at / 1000.0))
            .unwrap();
    });
    assert_eq!(outcome.errors.len(), 3, "{:?}", outcome.errors);
    outcome.assert_within(0.005);
}

#[test]
fn the_pmic_s_text_can_come_from_the_host_as_long_as_it_is_fresh() {
    let node = Node::new();
    let file = node.0.path().join("adc");
    let mut pmic = PmicFile::new(file.clone(), Correction::default());
    assert!(pmic.read().is_err());
    fs::write(&file, PMIC_TEXT).unwrap();
    assert!(pmic.read().unwrap().is_some());
    assert!(
        pmic.read().unwrap().is_none(),
        "an old text is not a new reading"
    );
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(old)
        .unwrap();
    let error = pmic.read().unwrap_err().to_string();
    assert!(error.contains("60 s ago"), "{error}");
}

#[test]
fn the_automatic_choice_follows_its_order() {
    let node = Node::new();
    let auto = r#"{"source": {"type": "auto"}}"#;
    let error = node.choose(auto).unwrap_err().to_string();
    assert!(error.contains("--power-config"), "{error}");
    node.write(
        "proc/cpuinfo",
        "processor\t: 0\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4",
    );
    let model = node.source(auto);
    assert_eq!((model.name, model.board.as_str()), ("board-model", "pi-4b"));
    assert_eq!(model.provenance, SourceProvenance::Modelled);
    rapl_zone(&node, "intel-rapl:0", "package-0", 1);
    assert_eq!(node.source(auto).name, "rapl");
    node.write("sys/class/hwmon/hwmon0/name", "ina219");
    node.write("sys/class/hwmon/hwmon0/power1_input", 1);
    let sensor = node.source(auto);
    assert_eq!(
        (sensor.name, sensor.provenance),
        ("hwmon", SourceProvenance::Metered)
    );
}

#[test]
fn the_automatic_choice_takes_the_accuracy_of_stated_watts() {
    let node = Node::new();
    let source = node.source(
        r#"{"source": {"type": "auto"}, "idleWatts": 2.7, "wattsPerCpu": 0.9,
            "idleWattsRelativeUncertainty": 0.05, "wattsPerCpuRelativeUncertainty": 0.1}"#,
    );
    let uncertainty = source.model.unwrap().uncertainty.unwrap();
    assert_eq!(
        (uncertainty.idle_watts, uncertainty.watts_per_cpu),
        (0.05, 0.1)
    );
}

#[test]
fn a_configured_board_must_be_the_node_s() {
    let node = Node::new();
    let model = |settings: &str| {
        format!(r#"{{"source": {{"type": "model"}}, "board": "pi-4b"{settings}}}"#)
    };
    let uncertainty = |settings: &str| node.source(&model(settings)).relative_uncertainty;
    // Without a device tree the board is unknown.
    assert_eq!(uncertainty(""), Some(0.15));
    let board = |name: &str| node.write("sys/firmware/devicetree/base/model", name);
    board("Raspberry Pi 4 Model B Rev 1.4");
    assert_eq!(uncertainty(""), Some(0.15));
    // The watts of the 4B may fit, but how well is unknown.
    board("Raspberry Pi Compute Module 4 Rev 1.0");
    assert_eq!(uncertainty(""), None);
    assert_eq!(uncertainty(r#", "relativeUncertainty": 0.3"#), Some(0.3));
    board("Raspberry Pi 5 Model B Rev 1.0");
    let error = node.choose(&model("")).unwrap_err().to_string();
    assert!(error.contains("this node is a Raspberry Pi 5"), "{error}");
    assert!(error.contains("write `pi-5b`"), "{error}");
}

#[test]
fn an_exporter_of_a_model_s_results_can_be_configured_as_modelled() {
    let node = Node::new();
    let source = node.source(
        r#"{"source": {"type": "prometheus", "url": "http://exporter:9100/metrics", "metric": "m", "unit": "W"},
            "provenance": "Modelled", "maxWatts": 15, "relativeUncertainty": 0.2}"#,
    );
    assert_eq!(source.provenance, SourceProvenance::Modelled);
    assert_eq!(source.max_watts, Some(15.0));
    assert_eq!(source.relative_uncertainty, Some(0.2));
}

#[test]
fn an_invalid_configuration_is_refused_and_the_error_says_what_to_write() {
    let node = Node::new();
    for (config, reported) in [
        (
            r#"{"source": {"type": "json", "url": "https://plug/", "path": "a", "unit": "W",
                "polling": {"caFile": "/no/such.pem"}}}"#,
            "/no/such.pem",
        ),
        (
            r#"{"source": {"type": "json", "url": "https://plug/", "path": "a", "unit": "W",
                "polling": {"caFile": "/dev/null"}}}"#,
            "no CERTIFICATE",
        ),
        (
            r#"{"source": {"type": "json", "url": "http://plug/", "path": "a", "unit": "W",
                "polling": {"caFile": "/ca.pem"}}}"#,
            "caFile is for",
        ),
        (
            r#"{"source": {"type": "json", "url": "plug/x", "path": "a", "unit": "W"}}"#,
            "http://",
        ),
        (
            r#"{"source": {"type": "json", "url": "http://u:p@plug/", "path": "a", "unit": "W"}}"#,
            "Secret",
        ),
        (
            r#"{"source": {"type": "json", "url": "http://plug/", "path": "a", "unit": "VA"}}"#,
            "kWh",
        ),
        // The automatic choice may take another source than the one with this accuracy.
        (
            r#"{"source": {"type": "auto"}, "relativeUncertainty": 0.003}"#,
            "name the source",
        ),
        (
            r#"{"source": {"type": "auto"}, "idleWattsRelativeUncertainty": 0.1,
                "wattsPerCpuRelativeUncertainty": 0.1}"#,
            "write the board",
        ),
        (r#"{"source": {"type": "pmic"}}"#, "vcio_gencmd"),
        (
            r#"{"source": {"type": "pmic", "command": ["a"], "file": "/b"}}"#,
            "only one of them",
        ),
        (r#"{"source": {"type": "model"}, "board": "pi-9"}"#, "pi-4b"),
        (
            r#"{"source": {"type": "model"}, "board": "pi-4b", "idleWatts": -1}"#,
            "idleWatts",
        ),
        (
            r#"{"source": {"type": "tasmota", "host": "p", "polling": {"intervalSeconds": 0.01}}}"#,
            "0.1 and 600",
        ),
        (
            r#"{"source": {"type": "tasmota", "host": "p", "polling": {"username": "u"}}}"#,
            "passwordFile",
        ),
    ] {
        let error = node.choose(config).unwrap_err().to_string();
        assert!(error.contains(reported), "{reported} is not in: {error}");
    }
    for unknown in [
        r#"{"source": {"type": "ina219"}}"#,
        r#"{"source": {"type": "rapl", "zone": "core"}}"#,
        r#"{"source": {"type": "auto"}, "idlewatts": 2}"#,
        r#"{"source": {"type": "tasmota", "host": "p", "polling": {"interval": 5}}}"#,
    ] {
        assert!(
            serde_json::from_str::<NodePower>(unknown).is_err(),
            "{unknown}"
        );
    }
}

#[test]
fn a_model_next_to_an_instrument_only_distributes_the_energy_in_time() {
    let node = Node::new();
    let truth = Truth::bursts();
    let file = node.0.path().join("adc");
    let run = |model: &str| {
        let config = format!(
            r#"{{"source": {{"type": "pmic", "command": ["cat", {file:?}], "slope": 1.0, "offsetWatts": 0.0}}{model}}}"#
        );
        node.run(&config, &truth, |at| {
            let text = format!("X_A current(0)={:.6}A\nX_V volt(1)=1.0V", truth.watts(at));
            fs::write(&file, text).unwrap();
        })
    };
    let alone = run("");
    let beside = run(&format!(
        r#", "idleWatts": {IDLE_WATTS}, "wattsPerCpu": {WATTS_PER_CPU}"#
    ));
    assert!(
        (alone.ratio - beside.ratio).abs() < 0.002,
        "{alone:?} {beside:?}"
    );
    assert!(TICK < 1.0 && beside.ratio > 0.99 && beside.ratio < 1.01);
}

#[test]
fn a_plug_may_have_an_ipv6_address() {
    for (host, expected) in [
        ("192.168.1.20", "192.168.1.20"),
        ("plug.lan:8080", "plug.lan:8080"),
        ("fd00::20", "[fd00::20]"),
        ("[fd00::20]:8080", "[fd00::20]:8080"),
    ] {
        assert_eq!(in_url(host), expected);
    }
}

const POE: &str = "sys/class/power_supply/rpi-poe";

#[test]
fn a_poe_hat_s_current_is_integrated_to_the_energy_of_ten_minutes() {
    let node = Node::new();
    node.write("sys/class/power_supply/hidpp_battery_0/capacity", 80);
    let show = node.number(&format!("{POE}/current_now"));
    show(540_000);
    let config =
        r#"{"source": {"type": "power-supply", "volts": 5.1}, "relativeUncertainty": 0.05}"#;
    let source = node.source(config);
    assert_eq!(
        (source.name, source.relative_uncertainty),
        ("power-supply", Some(0.05))
    );
    assert_eq!(
        node.source(r#"{"source": {"type": "power-supply", "volts": 5.1}}"#)
            .relative_uncertainty,
        None
    );
    let truth = Truth::benchmark();
    let outcome = node.run(config, &truth, |at| show(micro(truth.watts(at) / 5.1)));
    outcome.assert_within(0.005);
    // The board runs, so a supply without a current is not the board's.
    let outcome = node.run(config, &truth, |at| {
        let amperes = if at < 630.0 {
            truth.watts(at) / 5.1
        } else {
            0.0
        };
        show(micro(amperes));
    });
    let reported = outcome.errors.first().unwrap();
    assert!(
        reported.contains("does another supply feed the board?"),
        "{reported}"
    );
}

#[test]
fn a_supply_that_is_not_clear_is_refused_and_the_message_says_what_to_write() {
    let node = Node::new();
    let reported = |config: &str| {
        let config = format!(r#"{{"source": {{"type": "power-supply"{config}}}}}"#);
        node.choose(&config).unwrap_err().to_string()
    };
    assert!(reported(r#", "volts": 5"#).contains("reports a current"));
    node.write(&format!("{POE}/current_now"), 540_000);
    assert!(reported("").contains("measure the voltage"));
    assert!(reported(r#", "volts": 48"#).contains("from 4 to 6"));
    assert!(reported(r#", "volts": 5, "name": "rpi""#).contains("write one of rpi-poe"));
    node.write("sys/class/power_supply/other/current_now", 1);
    assert!(reported(r#", "volts": 5"#).contains("other, rpi-poe"));
    node.write("sys/class/power_supply/other/voltage_now", 5_000_000);
    assert!(reported(r#", "volts": 5, "name": "other""#).contains("leave out volts"));
    node.source(r#"{"source": {"type": "power-supply", "name": "other"}}"#);
}

/// Its current charges it, or is a part of the board's.
#[test]
fn a_battery_is_no_supply_of_the_board() {
    let node = Node::new();
    let battery = |file: &str| format!("sys/class/power_supply/BAT0/{file}");
    node.write(&battery("type"), "Battery");
    node.write(&battery("current_now"), 900_000);
    node.write(&battery("voltage_now"), 4_000_000);
    for config in [
        r#"{"type": "power-supply"}"#,
        r#"{"type": "power-supply", "name": "BAT0"}"#,
    ] {
        let error = node
            .choose(&format!(r#"{{"source": {config}}}"#))
            .unwrap_err();
        assert!(
            error.to_string().contains("batteries do not count"),
            "{error}"
        );
    }
    node.write(&format!("{POE}/current_now"), 540_000);
    let source = node.source(r#"{"source": {"type": "power-supply", "volts": 5.1}}"#);
    assert!(source.path.ends_with("rpi-poe"));
}
