use super::*;

const NODE: &str = "pi-1";

/// An answer of the node meter with one running pod.
const NODE_METER: &str = r#"
kepler_node_cpu_joules_total{node_name="pi-1",path="model:pi-2b",zone="psys"} 100.5
kepler_node_cpu_active_joules_total{node_name="pi-1",path="model:pi-2b",zone="psys"} 40.25
kepler_node_cpu_idle_joules_total{node_name="pi-1",path="model:pi-2b",zone="psys"} 60.25
kepler_pod_cpu_joules_total{node_name="pi-1",pod_id="u1",pod_name="server",pod_namespace="shop",state="running",zone="psys"} 30.5
frugality_meter_info{node_name="pi-1",version="0.1.0",provenance="Modelled",source="board-model",board="pi-2b",configuration="5e6f"} 1
frugality_meter_reading_timestamp_seconds{node_name="pi-1",zone="psys"} 1795236942.869
frugality_meter_start_time_seconds{node_name="pi-1"} 1795230000.5
frugality_meter_interval_seconds{node_name="pi-1"} 1
frugality_meter_max_watts{node_name="pi-1",zone="psys"} 4.8
frugality_meter_throttled_seconds_total{node_name="pi-1",cause="under_voltage"} 0
frugality_meter_throttled_seconds_total{node_name="pi-1",cause="throttled"} 12.5
frugality_meter_node_temperature_celsius{node_name="pi-1"} -3.5
frugality_meter_node_frequency_hertz{node_name="pi-1"} 1.5e9
frugality_meter_energy_relative_uncertainty{node_name="pi-1",zone="psys"} 0.03
frugality_meter_model_idle_watts{node_name="pi-1"} 3.33
frugality_meter_model_watts_per_cpu{node_name="pi-1"} 0.3675
frugality_meter_model_idle_watts_relative_uncertainty{node_name="pi-1"} 0.41
frugality_meter_model_watts_per_cpu_relative_uncertainty{node_name="pi-1"} 0.19
frugality_meter_energy_resolution_joules{node_name="pi-1",zone="psys"} 0.25
frugality_meter_last_true_reading_age_seconds{node_name="pi-1",zone="psys"} 0.75
frugality_meter_saturated_readings_total{node_name="pi-1",zone="psys"} 2
frugality_node_cpu_seconds_total{node_name="pi-1"} 49.5
frugality_pod_cpu_seconds_total{node_name="pi-1",pod_id="u1",pod_name="server",pod_namespace="shop"} 12.5
frugality_pod_memory_working_set_bytes{node_name="pi-1",pod_id="u1",pod_name="server",pod_namespace="shop"} 1048576
"#;

fn node_series(zone: &str, path: &str, joules: &str) -> String {
    format!(
        "kepler_node_cpu_joules_total{{node_name=\"{NODE}\",zone=\"{zone}\",path=\"{path}\"}} {joules}\n"
    )
}

/// The text without the lines of some series.
fn without(series: &str, text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|line| !line.starts_with(series))
        .collect()
}

fn read_text(text: &str) -> Result<Reading, ReadingError> {
    read(text, NODE, None, 1_795_236_943.0)
}

#[test]
fn reads_all_that_the_node_meter_serves() {
    let reading = read_text(NODE_METER).unwrap();
    let pod = PodReading {
        joules: Some(30.5),
        cpu_seconds: Some(12.5),
        working_set_bytes: Some(1_048_576.0),
        ..PodReading::of("u1", "shop", "server")
    };
    let expected = Reading {
        scraped_at_unix_seconds: 1_795_236_943.0,
        meter_unix_seconds: Some(1_795_236_942.869),
        meter: Arc::new(MeterIdentity {
            name: "frugality-meter".to_owned(),
            version: "0.1.0".to_owned(),
            source: "board-model".to_owned(),
            configuration: Some("5e6f".to_owned()),
            board: Some("pi-2b".to_owned()),
            provenance: Provenance::Modelled,
            model: Some(LinearModel {
                idle_watts: 3.33,
                watts_per_cpu: 0.3675,
                uncertainty: Some(ModelUncertainty {
                    idle_watts: 0.41,
                    watts_per_cpu: 0.19,
                }),
            }),
        }),
        platform: Arc::default(),
        meter_start_unix_seconds: Some(1_795_230_000.5),
        interval_seconds: Some(1.0),
        max_watts: Some(4.8),
        zone: "psys".to_owned(),
        node_joules: 100.5,
        active_joules: Some(40.25),
        idle_joules: Some(60.25),
        node_cpu_seconds: Some(49.5),
        throttled_seconds: Arc::new(BTreeMap::from([
            ("throttled".to_owned(), 12.5),
            ("under_voltage".to_owned(), 0.0),
        ])),
        temperature_celsius: Some(-3.5),
        frequency_hertz: Some(1.5e9),
        relative_uncertainty: Some(0.03),
        resolution_joules: Some(0.25),
        processors_busy_seconds: None,
        processors_interrupt_seconds: None,
        processors_stolen_seconds: None,
        source_age_seconds: Some(0.75),
        saturated_readings: Some(2.0),
        left_out: None,
        pods: Pods::from_iter([pod]),
    };
    assert_eq!(reading, expected);
    assert_eq!(
        reading.at_unix_seconds().to_bits(),
        1_795_236_942.869_f64.to_bits()
    );
}

#[test]
fn sharing_with_an_earlier_reading_changes_no_value() {
    let earlier = read_text(NODE_METER).unwrap();
    for text in [
        NODE_METER.to_owned(),
        NODE_METER.replace("30.5", "31.5"),
        NODE_METER.replace("12.5", "13.5"),
        NODE_METER.replace("u1", "u2"),
        NODE_METER.replace("board-model", "hwmon"),
    ] {
        let reading = read_text(&text).unwrap();
        let mut shared = reading.clone();
        shared.share(&earlier);
        assert_eq!(shared, reading);
    }
    let mut shared = read_text(NODE_METER).unwrap();
    shared.share(&earlier);
    assert!(Arc::ptr_eq(&shared.meter, &earlier.meter));
    let identity = |reading: &Reading| Arc::clone(&reading.pods.get("u1").unwrap().identity);
    assert!(Arc::ptr_eq(&identity(&shared), &identity(&earlier)));
}

#[test]
fn without_the_meters_own_time_the_scrapes_time_counts() {
    let reading = read_text(&node_series("package", "/sys/rapl", "1")).unwrap();
    assert_eq!(reading.meter_unix_seconds, None);
    assert_eq!(
        reading.at_unix_seconds().to_bits(),
        1_795_236_943.0_f64.to_bits()
    );
}

#[test]
fn takes_the_widest_zone_and_never_a_sum() {
    let served: String = ["uncore", "core", "dram", "package"]
        .into_iter()
        .enumerate()
        .map(|(index, zone)| node_series(zone, zone, &index.to_string()))
        .collect();
    let zone_of = |text: &str, asked| read(text, NODE, asked, 0.0).map(|r| (r.zone, r.node_joules));
    assert_eq!(zone_of(&served, None), Ok(("package".to_owned(), 3.0)));
    assert_eq!(zone_of(&served, Some("dram")), Ok(("dram".to_owned(), 2.0)));
    let with_board = served.clone() + &node_series("psys", "psys", "9");
    assert_eq!(zone_of(&with_board, None), Ok(("psys".to_owned(), 9.0)));
    assert_eq!(
        zone_of(&served, Some("psys")).unwrap_err().to_string(),
        "the meter serves no zone psys; it serves core, dram, package, uncore"
    );
}

#[test]
fn a_single_sensor_needs_no_known_name_but_two_need_a_choice() {
    let one = node_series("ina226_power1", "/sys/class/hwmon/hwmon3/power1_input", "5");
    assert_eq!(read_text(&one).unwrap().zone, "ina226_power1");
    let two = one + &node_series("ina226_power2", "/sys/class/hwmon/hwmon3/power2_input", "5");
    let error = read_text(&two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the zone must be named: none of ina226_power1, ina226_power2 is known to stand for the node"
    );
    assert_eq!(
        read(&two, NODE, Some("ina226_power2"), 0.0).unwrap().zone,
        "ina226_power2"
    );
}

#[test]
fn a_part_of_the_node_is_never_taken_for_the_node() {
    for zones in [&["dram"][..], &["core", "dram"]] {
        let text: String = zones
            .iter()
            .map(|zone| node_series(zone, zone, "1"))
            .collect();
        let error = read_text(&text).unwrap_err().to_string();
        assert!(error.contains("the zone must be named"), "{error}");
        assert_eq!(read(&text, NODE, Some("dram"), 0.0).unwrap().zone, "dram");
    }
}

#[test]
fn a_zone_that_occurs_twice_is_refused() {
    let text = node_series("package", "/p/intel-rapl:0", "1")
        + &node_series("package", "/p/intel-rapl:1", "2");
    assert_eq!(
        read_text(&text).unwrap_err().to_string(),
        "the meter serves kepler_node_cpu_joules_total{node_name=\"pi-1\",zone=\"package\"} more than once"
    );
}

#[test]
fn a_pod_that_occurs_twice_is_refused() {
    let line = NODE_METER
        .lines()
        .find(|line| line.starts_with("kepler_pod"))
        .unwrap();
    let text = format!("{NODE_METER}{line}\n");
    assert!(matches!(
        read_text(&text),
        Err(ReadingError::Ambiguous { .. })
    ));
}

#[test]
fn another_nodes_series_are_not_this_nodes() {
    let error = read(NODE_METER, "pi-2", None, 0.0).unwrap_err();
    assert_eq!(
        error,
        ReadingError::NoNodeSeries {
            node_name: "pi-2".to_owned()
        }
    );
}

#[test]
fn an_answer_without_power_is_no_reading() {
    let text = without("kepler_node", NODE_METER);
    assert!(matches!(
        read_text(&text),
        Err(ReadingError::NoNodeSeries { .. })
    ));
}

#[test]
fn impossible_counter_values_are_refused() {
    for bad in ["NaN", "+Inf", "-0.001", "1e16", "1e308"] {
        for good in [
            "100.5",
            "40.25",
            "60.25",
            "30.5",
            "1795236942.869",
            "4.8",
            "49.5",
            "12.5",
            "1048576",
        ] {
            let text = NODE_METER.replace(&format!(" {good}\n"), &format!(" {bad}\n"));
            assert_ne!(text, NODE_METER);
            assert!(
                matches!(read_text(&text), Err(ReadingError::InvalidValue { .. })),
                "{text}"
            );
        }
    }
    assert!(matches!(
        read(NODE_METER, NODE, None, f64::NAN),
        Err(ReadingError::InvalidValue { .. })
    ));
}

#[test]
fn a_model_is_known_by_both_of_its_watts_and_its_accuracy_by_both_uncertainties() {
    let model = |left_out: &str| {
        let text = without(left_out, NODE_METER);
        read_text(&text).unwrap().meter.model
    };
    for left_out in [
        "frugality_meter_model_idle_watts{",
        "frugality_meter_model_watts_per_cpu{",
    ] {
        assert_eq!(model(left_out), None, "{left_out}");
    }
    for left_out in [
        "frugality_meter_model_idle_watts_relative_uncertainty",
        "frugality_meter_model_watts_per_cpu_relative_uncertainty",
    ] {
        assert_eq!(model(left_out).unwrap().uncertainty, None, "{left_out}");
    }
    let beyond = NODE_METER.replace(" 0.41\n", " 1.5\n");
    assert!(matches!(
        read_text(&beyond),
        Err(ReadingError::InvalidValue { .. })
    ));
}

#[test]
fn an_uncertainty_larger_than_the_energy_is_refused() {
    let stating = |share: &str| read_text(&NODE_METER.replace(" 0.03\n", &format!(" {share}\n")));
    assert_eq!(stating("1").unwrap().relative_uncertainty, Some(1.0));
    for bad in ["1.001", "1000", "-0.1", "NaN"] {
        assert!(
            matches!(stating(bad), Err(ReadingError::InvalidValue { .. })),
            "{bad}"
        );
    }
}

#[test]
fn pods_that_have_ended_are_left_out() {
    let text = NODE_METER.replace("state=\"running\"", "state=\"terminated\"");
    let pods = read_text(&text).unwrap().pods;
    assert_eq!(pods.get("u1").unwrap().joules, None);
    let joules_only = without("frugality_pod", &text);
    assert!(read_text(&joules_only).unwrap().pods.is_empty());
}

#[test]
fn a_pods_missing_counter_is_unknown_and_not_zero() {
    let text = without("frugality_pod_memory", NODE_METER);
    let pods = read_text(&text).unwrap().pods;
    assert_eq!(pods.get("u1").unwrap().working_set_bytes, None);
}

#[test]
fn the_worse_provenance_of_meter_and_path_counts() {
    let provenance = |text: &str| read_text(text).map(|reading| reading.meter.provenance);
    assert_eq!(
        provenance(&node_series("psys", "model:pi-2b", "1")),
        Ok(Provenance::Modelled)
    );
    assert_eq!(
        provenance(&node_series("psys", "/sys/intel-rapl/energy_psys", "1")),
        Ok(Provenance::Fake)
    );
    assert_eq!(
        provenance(&node_series("psys", "/sys/intel-rapl:1", "1")),
        Ok(Provenance::Metered)
    );
    let stated = |word: &str| NODE_METER.replace("\"Modelled\"", &format!("{word:?}"));
    assert_eq!(provenance(&stated("Fake")), Ok(Provenance::Fake));
    assert_eq!(provenance(&stated("Metered")), Ok(Provenance::Modelled));
    let honest = stated("Metered").replace("model:pi-2b", "/sys/class/hwmon/hwmon0");
    assert_eq!(provenance(&honest), Ok(Provenance::Metered));
    assert_eq!(
        provenance(&stated("Guessed")),
        Err(ReadingError::UnknownProvenance {
            text: "Guessed".to_owned()
        })
    );
    let silent = without("frugality_meter_info", NODE_METER);
    assert_eq!(
        provenance(&silent),
        Err(ReadingError::NoMeterInfo {
            node_name: NODE.to_owned()
        })
    );
}

#[test]
fn an_invalid_text_is_refused_with_its_line() {
    let error = read_text("kepler_node_cpu_joules_total{zone=psys} 1\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the meter's text cannot be read: line 1: '\"' is expected among the labels"
    );
}
