//! Every reason for void attempts, and attempts that just pass.

use super::*;
use crate::reading::Platform;

#[track_caller]
pub(super) fn assert_void(lab: &Lab, reason: &str) -> String {
    let void = lab.evaluate().expect_err("the attempt should be void");
    assert_eq!(void.reason(), reason, "{void}");
    void.to_string()
}

#[track_caller]
pub(super) fn assert_counted(lab: &Lab) -> EnergyFigures {
    lab.evaluate().unwrap_or_else(|void| panic!("{void}"))
}

#[test]
fn meter_missing() {
    let mut lab = Lab::read_every(1.0);
    lab.readings.truncate(1);
    assert_void(&lab, "ReadingsInterrupted");
    lab.readings.clear();
    assert_eq!(
        assert_void(&lab, "MeterMissing"),
        "there is no reading of the node's meter"
    );
}

#[test]
fn meter_fake() {
    let mut lab = Lab::read_every(1.0);
    let fake = |reading: &mut Reading| {
        Arc::make_mut(&mut reading.meter).provenance = Provenance::Fake;
    };
    // Outside the attempt it has no effect.
    lab.change(421.0, 430.0, fake);
    assert_counted(&lab);
    lab.change(200.0, 200.9, fake);
    assert!(assert_void(&lab, "MeterFake").contains("board-model"));
}

/// For some time, scrapes from 200 s on repeat the first of them.
fn freeze(lab: &mut Lab, seconds: f64) {
    let first = lab
        .readings
        .iter()
        .find(|r| r.at_unix_seconds() >= T0 + 200.0)
        .unwrap()
        .clone();
    lab.change(200.0, 200.6 + seconds, |reading| {
        let scraped_at_unix_seconds = reading.scraped_at_unix_seconds;
        let meter_unix_seconds = reading.meter_unix_seconds.and(first.meter_unix_seconds);
        *reading = Reading {
            scraped_at_unix_seconds,
            meter_unix_seconds,
            ..first.clone()
        };
    });
}

#[test]
fn meter_stale() {
    for stock in [false, true] {
        let lab = |seconds| {
            let lab = Lab::read_every(1.0);
            let mut lab = if stock { lab.into_stock_kepler() } else { lab };
            freeze(&mut lab, seconds);
            lab
        };
        let message = assert_void(&lab(6.1), "MeterStale");
        assert!(
            message.contains("over 6.000 s") && message.contains("limit 5.000 s"),
            "{message}"
        );
        // The next new reading then comes within the longest allowed gap.
        assert_true_figures(&assert_counted(&lab(4.1)));
    }
}

#[test]
fn meter_stale_to_the_end() {
    let mut lab = Lab::read_every(1.0);
    freeze(&mut lab, 300.0);
    assert_void(&lab, "MeterStale");
}

#[test]
fn meter_stale_with_a_timestamp_that_moves_on() {
    let mut lab = Lab::read_every(1.0);
    let frozen = truth(200.0, 1.0);
    lab.change(200.0, 207.0, |reading| {
        let Reading {
            node_joules,
            active_joules,
            idle_joules,
            ..
        } = frozen.clone();
        *reading = Reading {
            node_joules,
            active_joules,
            idle_joules,
            ..reading.clone()
        };
    });
    assert_void(&lab, "MeterStale");
}

#[test]
fn meter_stale_with_a_counter_of_known_steps_that_stands_still() {
    // A step of 1 J is due after 10 s at the latest, because every node draws a tenth of a watt.
    let lab = |seconds: f64| {
        let mut lab = Lab::read_every(1.0);
        let frozen = truth(200.0, 1.0);
        lab.change(-5.0, 500.0, |reading| {
            reading.resolution_joules = Some(1.0);
        });
        lab.change(200.0, 200.0 + seconds, |reading| {
            reading.node_joules = frozen.node_joules;
            reading.active_joules = frozen.active_joules;
            reading.idle_joules = frozen.idle_joules;
        });
        lab
    };
    assert_void(&lab(13.0), "MeterStale");
    // Then the counter makes up for the time at once.
    let jump = lab(8.0).evaluate().unwrap_err();
    assert_ne!(jump.reason(), "MeterStale", "{jump}");
}

#[test]
fn meter_stale_by_the_age_of_its_source() {
    // The timestamps advance, but the instrument was not read.
    let lab = |age: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(200.0, 201.0, |reading| {
            reading.source_age_seconds = Some(age);
        });
        lab
    };
    assert_void(&lab(5.1), "MeterStale");
    assert_true_figures(&assert_counted(&lab(5.0)));
}

#[test]
fn meter_saturated() {
    let lab = |from: f64, readings: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-5.0, 500.0, |reading| {
            reading.saturated_readings = Some(7.0);
        });
        lab.change(from, 500.0, |reading| {
            reading.saturated_readings = Some(7.0 + readings);
        });
        lab
    };
    // Saturation before the attempt has no effect.
    assert_true_figures(&assert_counted(&lab(200.0, 0.0)));
    let message = assert_void(&lab(200.0, 3.0), "MeterSaturated");
    assert!(
        message.contains("in 3 readings") && message.contains("smaller shunt"),
        "{message}"
    );
}

#[test]
fn meter_too_coarse_by_its_reported_step() {
    // The net energy is 1100 J.
    let lab = |step: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| {
            reading.resolution_joules = Some(step);
        });
        lab
    };
    assert_true_figures(&assert_counted(&lab(2.2)));
    assert_eq!(
        assert_void(&lab(2.21), "MeterTooCoarse"),
        "the meter's counter has steps of 2.210000 J. That is more than 0.2 % of the attempt's 1100.000 J. Use a finer meter, or write a longer load.duration."
    );
}

#[test]
fn meter_too_coarse_by_its_observed_step() {
    // A plug that counts tenths of a watt-second, or hundredths of a watt-hour.
    let lab = |step: f64, reported: Option<f64>| {
        let mut lab = Lab::read_every(1.0);
        lab.limits.max_node_watts = Some(100.0);
        lab.change(-2.0, 430.0, |reading| {
            reading.node_joules = (reading.node_joules / step).floor() * step;
            reading.resolution_joules = reported;
        });
        lab
    };
    assert_counted(&lab(0.1, None));
    // At 3 W idle it stands still for one second in four.
    assert_void(&lab(4.0, None), "MeterTooCoarse");
    // A meter that reports its step is not dead if it stands still for longer than the largest gap between
    // readings.
    assert_void(&lab(36.0, Some(36.0)), "MeterTooCoarse");
    assert_void(&lab(36.0, None), "MeterStale");
}

#[test]
fn a_source_that_was_late_once_is_not_a_coarse_meter() {
    let mut lab = Lab::read_every(1.0);
    let before = truth(19.63, 1.0).node_joules;
    lab.change(20.0, 21.0, |reading| reading.node_joules = before);
    assert_counted(&lab);
}

#[test]
fn a_meter_that_stands_still_after_the_attempt_does_not_matter() {
    let mut lab = Lab::read_every(1.0);
    let last = lab.readings.last().unwrap().clone();
    for late in 1..60 {
        let scraped_at_unix_seconds = last.scraped_at_unix_seconds + f64::from(late);
        lab.readings.push(Reading {
            scraped_at_unix_seconds,
            ..last.clone()
        });
    }
    assert_true_figures(&assert_counted(&lab));
}

#[test]
fn meter_restarted() {
    let mut lab = Lab::read_every(1.0);
    lab.change(421.0, 430.0, |reading| {
        reading.meter_start_unix_seconds = Some(T0 + 420.8);
    });
    assert_counted(&lab);
    lab.change(200.0, 430.0, |reading| {
        reading.meter_start_unix_seconds = Some(T0 + 199.9);
    });
    // The restart is reported, not the counters that fell with it.
    lab.change(200.0, 430.0, |reading| reading.active_joules = Some(0.0));
    assert_void(&lab, "MeterRestarted");
}

#[test]
fn meter_changed() {
    type Change = fn(&mut Reading);
    let changes: [(&str, Change); 7] = [
        (
            "model changed from 3 W + 2 W per CPU, accuracy unknown to 3 W + 2.00001 W per CPU, accuracy unknown",
            |r| {
                let model = &mut Arc::make_mut(&mut r.meter).model;
                model.as_mut().unwrap().watts_per_cpu = 2.000_01;
            },
        ),
        (
            "model changed from 3 W + 2 W per CPU, accuracy unknown to none",
            |r| Arc::make_mut(&mut r.meter).model = None,
        ),
        ("version changed from 0.1.0 to 0.2.0", |r| {
            Arc::make_mut(&mut r.meter).version = "0.2.0".to_owned();
        }),
        ("board changed from synthetic to none", |r| {
            Arc::make_mut(&mut r.meter).board = None;
        }),
        ("provenance changed from Modelled to Metered", |r| {
            Arc::make_mut(&mut r.meter).provenance = Provenance::Metered;
        }),
        ("configuration changed from 1a2b to 3c4d", |r| {
            Arc::make_mut(&mut r.meter).configuration = Some("3c4d".to_owned());
        }),
        ("zone changed from psys to package", |r| {
            r.zone = "package".to_owned();
        }),
    ];
    for (words, change) in changes {
        let mut lab = Lab::read_every(1.0);
        lab.change(421.0, 430.0, change);
        assert_counted(&lab);
        lab.change(300.0, 430.0, change);
        let message = assert_void(&lab, "MeterChanged");
        assert!(message.ends_with(words), "{message}");
    }
}

#[test]
fn node_changed() {
    type Change = fn(&mut Platform);
    let known = |platform: &mut Platform| {
        platform.kernel = Some("6.6.51".to_owned());
        platform.governor = Some("performance".to_owned());
        platform.firmware = Some("0a3d6b5e".to_owned());
    };
    let changes: [(&str, Change); 3] = [
        ("kernel changed from 6.6.51 to 6.12.1", |p| {
            p.kernel = Some("6.12.1".to_owned());
        }),
        (
            "frequency governor changed from performance to ondemand",
            |p| {
                p.governor = Some("ondemand".to_owned());
            },
        ),
        ("firmware changed from 0a3d6b5e to ffffffff", |p| {
            p.firmware = Some("ffffffff".to_owned());
        }),
    ];
    for (words, change) in changes {
        let mut lab = Lab::read_every(1.0);
        lab.change(0.0, 1000.0, |r| known(Arc::make_mut(&mut r.platform)));
        let figures = assert_counted(&lab);
        assert_eq!(
            figures.conditions.platform.governor.as_deref(),
            Some("performance")
        );
        lab.change(300.0, 430.0, |r| change(Arc::make_mut(&mut r.platform)));
        let message = assert_void(&lab, "NodeChanged");
        assert!(message.ends_with(words), "{message}");
    }
    // A meter that temporarily does not report a value has not changed.
    let mut lab = Lab::read_every(1.0);
    lab.change(0.0, 300.0, |r| known(Arc::make_mut(&mut r.platform)));
    assert_counted(&lab);
}

#[test]
fn counter_decreased() {
    type Counter = fn(&mut Reading) -> &mut f64;
    let counters: [(&str, Counter); 7] = [
        ("of node energy", |r| &mut r.node_joules),
        ("of active node energy", |r| {
            r.active_joules.as_mut().unwrap()
        }),
        ("of idle node energy", |r| r.idle_joules.as_mut().unwrap()),
        ("of node CPU time", |r| r.node_cpu_seconds.as_mut().unwrap()),
        ("of energy of pod shop/server (candidate-uid)", |r| {
            r.pods.get_mut(CANDIDATE).unwrap().joules.as_mut().unwrap()
        }),
        ("of CPU time of pod shop/database (database-uid)", |r| {
            r.pods
                .get_mut(DATABASE)
                .unwrap()
                .cpu_seconds
                .as_mut()
                .unwrap()
        }),
        ("of energy of pod shop/neighbour (neighbour-uid)", |r| {
            r.pods.get_mut(NEIGHBOUR).unwrap().joules.as_mut().unwrap()
        }),
    ];
    for (words, counter) in counters {
        // The readings at 29.63 s and 30.63 s, both in the first baseline.
        let lab = |lost: f64| {
            let mut lab = Lab::read_every(1.0);
            let before = *counter(&mut truth(29.63, 1.0));
            lab.change(30.0, 31.0, |reading| *counter(reading) = before - lost);
            lab
        };
        assert_counted(&lab(0.0));
        let message = assert_void(&lab(0.001), "CounterDecreased");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn counter_of_the_surroundings_decreased() {
    type Counter = fn(&mut Reading) -> &mut f64;
    let counters: [(&str, Counter); 5] = [
        ("of the processors' busy time", |r| {
            r.processors_busy_seconds.get_or_insert(0.0)
        }),
        ("of the processors' time for interrupts", |r| {
            r.processors_interrupt_seconds.get_or_insert(0.0)
        }),
        ("of the processors' stolen time", |r| {
            r.processors_stolen_seconds.get_or_insert(0.0)
        }),
        ("of readings at the end of the scale", |r| {
            r.saturated_readings.get_or_insert(0.0)
        }),
        ("of throttled time by throttled", |r| {
            let causes = Arc::make_mut(&mut r.throttled_seconds);
            causes.entry("throttled".to_owned()).or_default()
        }),
    ];
    for (words, counter) in counters {
        let mut lab = Lab::read_every(1.0);
        lab.change(-5.0, 500.0, |reading| *counter(reading) = 7.0);
        assert_true_figures(&assert_counted(&lab));
        lab.change(200.0, 500.0, |reading| *counter(reading) = 6.99);
        let message = assert_void(&lab, "CounterDecreased");
        assert!(message.contains(words), "{message}");
    }
}

/// The reading at 319.63 s is next to the end of the window. Without its counter of stolen time, the check for CPU time
/// that others took had nothing to check, and passed.
#[test]
fn counter_missing() {
    type Change = fn(&mut Reading);
    let changes: [(&str, Change); 6] = [
        ("the processors' stolen time", |r| {
            r.processors_stolen_seconds = None;
        }),
        ("node CPU time", |r| r.node_cpu_seconds = None),
        ("active node energy", |r| r.active_joules = None),
        ("throttled time by under_voltage", |r| {
            r.throttled_seconds = Arc::default();
        }),
        ("energy of pod shop/neighbour (neighbour-uid)", |r| {
            r.pods.get_mut(NEIGHBOUR).unwrap().joules = None;
        }),
        ("CPU time of pod shop/server (candidate-uid)", |r| {
            r.pods.get_mut(CANDIDATE).unwrap().cpu_seconds = None;
        }),
    ];
    for (words, change) in changes {
        let mut lab = Lab::read_every(1.0);
        lab.change(-5.0, 500.0, |reading| {
            reading.processors_stolen_seconds = Some(0.0);
            let causes = Arc::make_mut(&mut reading.throttled_seconds);
            causes.insert("under_voltage".to_owned(), 0.0);
        });
        lab.change(421.0, 430.0, change);
        assert_true_figures(&assert_counted(&lab));
        lab.change(319.0, 320.0, change);
        let message = assert_void(&lab, "CounterMissing");
        let begin = format!("the counter of {words} is missing from the reading at ");
        assert!(message.starts_with(&begin), "{message}");
    }
}

#[test]
fn a_counter_that_the_meter_does_not_report_is_not_missing() {
    let mut lab = Lab::read_every(1.0);
    lab.change(-5.0, 500.0, |reading| reading.node_cpu_seconds = None);
    assert_counted(&lab);
}

#[test]
fn pods_that_stock_kepler_reset_within_one_snapshot_of_the_node() {
    let mut lab = Lab::read_every(1.0).into_stock_kepler();
    let mut reset = lab.readings[200].clone();
    reset.scraped_at_unix_seconds += 0.4;
    reset.pods.get_mut(CANDIDATE).unwrap().joules = Some(0.0);
    lab.readings.push(reset);
    assert_void(&lab, "CounterDecreased");
}

#[test]
fn a_neighbours_cpu_time_is_in_no_figure() {
    let mut lab = Lab::read_every(1.0);
    lab.change(200.0, 430.0, |reading| {
        reading.pods.get_mut(NEIGHBOUR).unwrap().cpu_seconds = Some(0.0);
    });
    assert_true_figures(&assert_counted(&lab));
}

#[test]
fn energy_beyond_node() {
    // A second of load is 8 J. The node can draw 12 W: 12·1.1·(1 + 0.05) = 13.86 J.
    let lab = |more: f64, counter: fn(&mut Reading) -> &mut f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(200.0, 430.0, |reading| *counter(reading) += more);
        lab
    };
    assert_counted(&lab(5.8, |r| &mut r.node_joules));
    let message = assert_void(&lab(5.9, |r| &mut r.node_joules), "EnergyBeyondNode");
    let words = "the counter of node energy rose by 13.900 J in 1.000 s";
    assert!(
        message.starts_with(words) && message.contains("12.000 W"),
        "{message}"
    );
    // 5 J of the 8 J are active and 3 J are idle.
    assert_counted(&lab(8.8, |r| r.active_joules.as_mut().unwrap()));
    assert_void(
        &lab(8.9, |r| r.active_joules.as_mut().unwrap()),
        "EnergyBeyondNode",
    );
    assert_void(
        &lab(10.9, |r| r.idle_joules.as_mut().unwrap()),
        "EnergyBeyondNode",
    );
}

#[test]
fn energy_beyond_the_meters_limit_of_the_node() {
    let lab = |max_watts: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| reading.max_watts = Some(max_watts));
        lab
    };
    // 8 W of load, and 6.93·1.1·1.05 = 8.004 W.
    assert_counted(&lab(6.93));
    assert_void(&lab(6.92), "EnergyBeyondNode");
}

#[test]
fn a_snapshot_of_stock_kepler_may_be_half_a_second_old() {
    let mut lab = Lab::read_every(1.0).into_stock_kepler();
    // 8 W over a second that may have been 1.5 s: 12 J, and 4.9·1.1·1.5 = 8.085 J.
    lab.limits.max_node_watts = Some(4.9);
    assert_counted(&lab);
    lab.limits.max_node_watts = Some(4.8);
    assert_void(&lab, "EnergyBeyondNode");
}

#[test]
fn pods_beyond_node() {
    // Active energy of the window: 1100 J, so 1122.1 J are allowed; candidate and database have 990 J.
    let lab = |neighbour_joules: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| {
            let since = (reading.at_unix_seconds() - T0 - 80.0).clamp(0.0, 260.0);
            let joules = neighbour_joules * since / 220.0;
            reading.pods.get_mut(NEIGHBOUR).unwrap().joules = Some(joules);
        });
        lab
    };
    assert_counted(&lab(132.05));
    let message = assert_void(&lab(132.2), "PodsBeyondNode");
    assert_eq!(
        message,
        "the meter gave the pods 1122.200 J, more than the node's active energy of 1100.000 J"
    );
    // Without the node's active energy there is no comparison.
    let mut unknown = lab(132.2);
    unknown.change(-2.0, 430.0, |reading| reading.active_joules = None);
    assert_counted(&unknown);
}

#[test]
fn readings_interrupted() {
    let without = |from: f64, to: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.readings
            .retain(|r| !(T0 + from..T0 + to).contains(&r.at_unix_seconds()));
        lab
    };
    // The surrounding readings are at 199.63 s and 204.63 s, then 205.63 s.
    let short = Lab {
        limits: Limits {
            max_reading_gap_seconds: 5.001,
            ..Limits::new(12.0)
        },
        ..without(200.0, 204.0)
    };
    assert_true_figures(&assert_counted(&short));
    let message = assert_void(&without(200.0, 205.0), "ReadingsInterrupted");
    assert!(
        message.contains("none covers the 6.000 s from") && message.contains("limit 5.000 s"),
        "{message}"
    );
    // In the baselines and in the window, but not outside.
    assert_void(&without(20.0, 26.0), "ReadingsInterrupted");
    assert_void(&without(400.0, 406.0), "ReadingsInterrupted");
}

/// A lab with an instrument, whose joules since the first reading are a function of the time.
fn metered(joules: impl Fn(f64) -> f64) -> Lab {
    let mut lab = Lab::read_every(1.0);
    lab.limits.max_node_watts = Some(50.0);
    for reading in &mut lab.readings {
        let meter = Arc::make_mut(&mut reading.meter);
        (meter.provenance, meter.model) = (Provenance::Metered, None);
        reading.node_joules = 1000.0 + joules(reading.at_unix_seconds() - T0);
        (reading.active_joules, reading.idle_joules) = (None, None);
    }
    lab
}

/// The joules of 3 W, and of 5 W more from 80 s to 340 s. The node uses 2.5 CPUs more in this time.
fn true_joules(at: f64) -> f64 {
    3.0 * at + 5.0 * (at - 80.0).clamp(0.0, 260.0)
}

#[test]
fn an_instrument_that_repeats_an_old_power_does_not_follow_the_load() {
    assert_counted(&metered(true_joules));
    let message = assert_void(&metered(|at| 2.7 * at), "MeterStale");
    assert!(
        message.contains("2.700 W without load and 2.700 W under load"),
        "{message}"
    );
    assert!(message.contains("used 2.50 CPUs more"), "{message}");
    // The device goes in the first baseline, in each half of the load, or in the second baseline.
    for (gone, watts) in [(30.0, 3.0), (150.0, 8.0), (250.0, 8.0), (350.0, 3.0)] {
        let lab = metered(|at| true_joules(at.min(gone)) + watts * (at - gone).max(0.0));
        if gone < 340.0 {
            assert_void(&lab, "MeterStale");
        } else {
            assert_counted(&lab);
        }
    }
    // A model distributes the joules of each second by the CPU use.
    assert_void(
        &metered(|at| 2.7 * at.floor() + 2.7 * at.fract().powi(4)),
        "MeterStale",
    );
}

#[test]
fn a_rise_of_power_counts_from_a_thousandth_and_with_half_a_cpu() {
    let rises =
        |share: f64| metered(move |at| 3.0 * at + 3.0 * share * (at - 80.0).clamp(0.0, 260.0));
    assert_void(&rises(0.0005), "MeterStale");
    assert_counted(&rises(0.002));
    // A counter in steps of 1 J may lack one step in each of the two windows.
    let mut coarse = rises(0.0005);
    for reading in &mut coarse.readings {
        reading.resolution_joules = Some(1.0);
    }
    assert_counted(&coarse);
    // The other board's power falls.
    assert_void(&rises(-0.2), "MeterStale");
    let with_load = |cpus: f64| {
        let mut lab = rises(0.0);
        for reading in &mut lab.readings {
            let at = reading.at_unix_seconds() - T0;
            reading.node_cpu_seconds = Some(cpus * (at - 80.0).clamp(0.0, 260.0));
        }
        lab
    };
    assert_counted(&with_load(0.45));
    assert_void(&with_load(0.55), "MeterStale");
}

/// The load lasts from 80 s to 340 s. The window is 20 s long, and one second of load lies between it and that
/// end of the load.
#[test]
fn a_reading_that_is_late_next_to_a_short_tail() {
    let without = |window: Window, from: f64, to: f64, load: Option<f64>| {
        let mut lab = Lab::read_every(0.1);
        lab.measured = window;
        lab.ends.load_before_seconds = load;
        lab.ends.load_after_seconds = load;
        lab.readings
            .retain(|r| !(T0 + from..T0 + to).contains(&r.at_unix_seconds()));
        lab
    };
    let (first, last) = (window(81.0, 101.0), window(319.0, 339.0));
    for (window, from, to) in [(last, 338.4, 341.0), (first, 79.0, 81.6)] {
        let late = without(window, from, to, Some(1.0));
        let message = assert_void(&late, "ReadingsInterrupted");
        assert!(message.contains("none covers the 2.7"), "{message}");
        // The length of the load is unknown, or covers the readings.
        assert_counted(&without(window, from, to, None));
        assert_counted(&without(window, from, to, Some(3.0)));
    }
    assert_counted(&without(last, 338.4, 339.8, Some(1.0)));
}

#[test]
fn readings_that_do_not_reach_the_ends() {
    // From the first reading at -1.37 s, and to the last at 421.63 s.
    let mut lab = Lab::read_every(1.0);
    lab.idle_before.start_unix_seconds = T0 - 1.36;
    lab.idle_after.end_unix_seconds = T0 + 421.62;
    assert_counted(&lab);
    lab.idle_after.end_unix_seconds = T0 + 421.64;
    let message = assert_void(&lab, "ReadingsInterrupted");
    assert!(
        message.contains("none covers the 0.010 s from 1795237321.630"),
        "{message}"
    );
    lab.idle_after.end_unix_seconds = T0 + 421.62;
    lab.idle_before.start_unix_seconds = T0 - 1.38;
    let message = assert_void(&lab, "ReadingsInterrupted");
    assert!(
        message.contains("none covers the 0.010 s from 1795236898.620"),
        "{message}"
    );
}

#[test]
fn pod_replaced() {
    for uid in [CANDIDATE, DATABASE] {
        let without = |from: f64, to: f64| {
            let mut lab = Lab::read_every(1.0);
            lab.change(from, to, |reading| {
                reading.pods.remove(uid);
            });
            lab
        };
        // The pod started after the reading before the attempt, and ended before the reading after it.
        assert_true_figures(&assert_counted(&without(-2.0, 0.0)));
        assert_true_figures(&assert_counted(&without(420.0, 430.0)));
        for at in [0.1, 99.0, 200.0, 320.0, 419.0] {
            let message = assert_void(&without(at, at + 1.0), "PodReplaced");
            assert!(
                message.contains(uid) && message.contains("shop/"),
                "{message}"
            );
        }
    }
    let mut lab = Lab::read_every(1.0);
    lab.change(200.0, 430.0, |reading| {
        reading.pods.remove(NEIGHBOUR);
    });
    assert_true_figures(&assert_counted(&lab));
}

#[test]
fn window_too_short() {
    let mut lab = Lab::read_every(1.0);
    lab.measured = window(100.0, 120.0);
    assert_near(assert_counted(&lab).node_joules, 160.0);
    lab.measured = window(100.0, 119.99);
    assert_eq!(
        assert_void(&lab, "WindowTooShort"),
        "the measured window lasted 19.990 s, and 20.000 s are needed"
    );
    let mut slow = Lab::read_every(10.0);
    slow.limits.max_reading_gap_seconds = 10.1;
    slow.measured = window(100.0, 300.0);
    assert_counted(&slow);
    slow.measured = window(100.0, 299.9);
    assert!(assert_void(&slow, "WindowTooShort").contains("200.000 s are needed"));
    // If the meter reports no interval, the interval of the scrapes counts, minus their lateness.
    let mut stock = slow.into_stock_kepler();
    stock.measured = window(100.0, 100.0 + 200.0 / 1.05 + 0.01);
    assert_counted(&stock);
    stock.measured = window(100.0, 100.0 + 200.0 / 1.05 - 0.01);
    assert_void(&stock, "WindowTooShort");
}

#[test]
fn windows_out_of_order() {
    let windows = [
        (
            window(0.0, 100.1),
            window(100.0, 320.0),
            window(360.0, 420.0),
        ),
        (
            window(0.0, 60.0),
            window(100.0, 320.0),
            window(319.9, 420.0),
        ),
        (
            window(0.0, 60.0),
            window(320.0, 100.0),
            window(360.0, 420.0),
        ),
        (
            window(60.0, 60.0),
            window(100.0, 320.0),
            window(360.0, 420.0),
        ),
        (
            window(0.0, 60.0),
            window(100.0, f64::NAN),
            window(360.0, 420.0),
        ),
        (
            window(0.0, 60.0),
            window(100.0, 320.0),
            window(360.0, f64::INFINITY),
        ),
    ];
    for (idle_before, measured, idle_after) in windows {
        let lab = Lab {
            idle_before,
            measured,
            idle_after,
            ..Lab::read_every(1.0)
        };
        assert_void(&lab, "WindowsOutOfOrder");
    }
    let touching = Lab {
        idle_before: window(0.0, 60.0),
        measured: window(60.0, 360.0),
        ..Lab::read_every(1.0)
    };
    assert_counted(&touching);
}

#[test]
fn a_void_goes_to_the_ledger_under_its_reason() {
    let pod = "shop/server (candidate-uid)".to_owned();
    let void = Void::PodReplaced {
        pod,
        at_unix_seconds: 1.5,
    };
    let json = serde_json::to_string(&void).unwrap();
    assert_eq!(
        json,
        "{\"reason\":\"PodReplaced\",\"pod\":\"shop/server (candidate-uid)\",\"atUnixSeconds\":1.5}"
    );
    assert_eq!(serde_json::from_str::<Void>(&json).unwrap(), void);
    assert_eq!(
        serde_json::to_string(&Void::MeterMissing {}).unwrap(),
        "{\"reason\":\"MeterMissing\"}"
    );
}

#[test]
fn a_leap_is_detected_without_a_limit_of_the_nodes_power() {
    // Kepler mistook a lost joule for a wrapped counter: 5,513 J in one reading, on a node of 5 W.
    let lab = |joules: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.limits.max_node_watts = None;
        lab.change(-2.0, 430.0, |reading| reading.max_watts = None);
        lab.change(40.0, 430.0, |reading| {
            reading.node_joules += joules;
            reading.active_joules = reading.active_joules.map(|active| active + joules);
        });
        lab
    };
    assert_counted(&lab(0.0));
    assert_void(&lab(5513.0), "EnergyBeyondNode");
    assert_void(&lab(100.0), "EnergyBeyondNode");
}

#[test]
fn an_ordinary_server_is_within_its_power() {
    // 60 times the power of the usual node: 180 W idle.
    let mut lab = Lab::read_every(1.0);
    lab.limits.max_node_watts = None;
    lab.change(-2.0, 430.0, |reading| {
        reading.max_watts = None;
        reading.node_joules *= 60.0;
        let scaled = |joules: Option<f64>| joules.map(|joules| 60.0 * joules);
        reading.active_joules = scaled(reading.active_joules);
        reading.idle_joules = scaled(reading.idle_joules);
        for pod in &mut reading.pods {
            pod.joules = scaled(pod.joules);
        }
    });
    assert_counted(&lab);
}
