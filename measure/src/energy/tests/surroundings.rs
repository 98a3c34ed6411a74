//! The surroundings of the load: void attempts, and attempts that just pass.

use super::detection::Chance;
use super::voids::{assert_counted, assert_void};
use super::*;

/// Adds a pod's CPU seconds in a span, and their joules by the lab's formula.
fn busier(lab: &mut Lab, uid: &'static str, from: f64, to: f64, cpus: f64) {
    lab.change(-2.0, 430.0, |reading| {
        let seconds = (reading.at_unix_seconds() - T0).clamp(from, to) - from;
        let joules = 2.0 * cpus * seconds;
        reading.node_joules += joules;
        for counter in [&mut reading.active_joules, &mut reading.node_cpu_seconds] {
            *counter.as_mut().unwrap() += joules;
        }
        *reading.node_cpu_seconds.as_mut().unwrap() += cpus * seconds - joules;
        if reading.pods.get(uid).is_none() {
            reading.pods.insert(PodReading {
                joules: Some(0.0),
                cpu_seconds: Some(0.0),
                ..PodReading::of(uid, "kube-system", uid)
            });
        }
        let pod = reading.pods.get_mut(uid).unwrap();
        *pod.joules.as_mut().unwrap() += joules;
        *pod.cpu_seconds.as_mut().unwrap() += cpus * seconds;
    });
}

/// Adds power that is not in the counters of active energy and pods.
fn draws_more(lab: &mut Lab, from: f64, to: f64, watts: impl Fn(f64) -> f64) {
    lab.change(from, to, |reading| {
        reading.node_joules += watts(reading.at_unix_seconds() - T0 - from);
    });
    let last = watts(to - from);
    if to < 422.0 {
        lab.change(to, 430.0, |reading| reading.node_joules += last);
    }
}

#[test]
fn a_neighbour_that_works_in_the_window_is_named() {
    // 0.1 are allowed, and the lab's neighbour already uses 0.05.
    let lab = |cpus: f64| {
        let mut lab = Lab::read_every(1.0);
        busier(&mut lab, "backup-uid", 100.0, 320.0, cpus);
        lab
    };
    assert_counted(&lab(0.049));
    assert_eq!(
        assert_void(&lab(0.051), "NeighbourActive"),
        "others on the node used 0.101 CPUs more in the measured window than in the idle baselines \
         (limit 0.100): kube-system/backup-uid (backup-uid) 0.051, shop/neighbour (neighbour-uid) 0.050"
    );
}

#[test]
fn a_neighbour_that_works_in_the_baselines_only_is_named_too() {
    // It lowers the net energy as much as a neighbour in the window alone raises it.
    let lab = |cpus: f64| {
        let mut lab = Lab::read_every(1.0);
        for (from, to) in [(-1.0, 61.0), (359.0, 421.0)] {
            busier(&mut lab, "backup-uid", from, to, cpus);
        }
        lab
    };
    assert_counted(&lab(0.099));
    assert_eq!(
        assert_void(&lab(0.101), "NeighbourActive"),
        "others on the node used 0.101 CPUs more in the idle baselines than in the measured window \
         (limit 0.100): kube-system/backup-uid (backup-uid) 0.101"
    );
}

#[test]
fn the_limit_for_neighbours_does_not_depend_on_the_load() {
    let lab = |load: f64, cpus: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| {
            for uid in [CANDIDATE, DATABASE] {
                let pod = reading.pods.get_mut(uid).unwrap();
                pod.cpu_seconds = pod.cpu_seconds.map(|seconds| seconds * load);
            }
            reading.node_cpu_seconds = None;
            reading.pods.remove(NEIGHBOUR);
        });
        lab.change(-2.0, 430.0, |reading| reading.node_cpu_seconds = Some(0.0));
        busier(&mut lab, "backup-uid", 100.0, 320.0, cpus);
        lab
    };
    for load in [0.1, 1.0, 4.0] {
        assert_counted(&lab(load, 0.099));
        assert_void(&lab(load, 0.101), "NeighbourActive");
    }
}

#[test]
fn work_outside_of_pods_that_is_in_the_baselines_only_is_seen() {
    let lab = |cpus: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| {
            let at = reading.at_unix_seconds() - T0;
            let seconds = at.min(70.0) + (at - 350.0).max(0.0);
            *reading.node_cpu_seconds.as_mut().unwrap() += 2.0 + cpus * seconds;
        });
        lab
    };
    // The lab's window itself has 0.2 CPUs outside the pods.
    assert_counted(&lab(0.69));
    let message = assert_void(&lab(0.71), "NeighbourActive");
    assert!(message.contains("more in the idle baselines"), "{message}");
}

#[test]
fn a_neighbour_that_rests_does_not_hide_another_that_works() {
    let mut lab = Lab::read_every(1.0);
    busier(&mut lab, "cleaner-uid", -2.0, 90.0, 0.3);
    busier(&mut lab, "backup-uid", 100.0, 320.0, 0.3);
    let message = assert_void(&lab, "NeighbourActive");
    assert!(
        message.contains("backup-uid (backup-uid) 0.299"),
        "{message}"
    );
}

#[test]
fn a_neighbour_that_always_works_is_in_the_baselines() {
    let mut lab = Lab::read_every(1.0);
    lab.limits.max_node_watts = Some(20.0);
    busier(&mut lab, "always-uid", -2.0, 430.0, 1.5);
    assert_near_some(assert_counted(&lab).net_joules, 1100.0);
}

#[test]
fn a_neighbour_that_comes_and_goes_within_the_window_is_counted() {
    // 40 s of one CPU, in 220 s: 0.18 CPUs.
    let mut lab = Lab::read_every(1.0);
    busier(&mut lab, "job-uid", 150.0, 190.0, 1.0);
    for (from, to) in [(-2.0, 150.0), (191.0, 430.0)] {
        lab.change(from, to, |reading| {
            reading.pods.remove("job-uid");
        });
    }
    let message = assert_void(&lab, "NeighbourActive");
    assert!(
        message.contains("kube-system/job-uid (job-uid) 0.18"),
        "{message}"
    );
}

#[test]
fn an_injector_on_the_measured_node_is_no_neighbour() {
    let mut lab = Lab::read_every(1.0);
    busier(&mut lab, "injector-uid", 80.0, 340.0, 1.0);
    assert_void(&lab, "NeighbourActive");
    lab.injector_pods = pods(&["injector-uid"]);
    assert_counted(&lab);
}

#[test]
fn work_outside_of_pods_may_grow_with_the_load() {
    // Interrupts and packets: half a CPU, and half of the boundary's 2.25. The lab itself uses 0.2.
    let lab = |cpus: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| {
            let seconds = (reading.at_unix_seconds() - T0).clamp(80.0, 340.0) - 80.0;
            *reading.node_cpu_seconds.as_mut().unwrap() += cpus * seconds;
        });
        lab
    };
    assert_counted(&lab(1.42));
    let message = assert_void(&lab(1.43), "NeighbourActive");
    assert!(message.contains("processes outside of pods"), "{message}");
}

#[test]
fn a_neighbour_is_detected_if_the_meter_reports_only_joules() {
    // By joules: a neighbour's share of the node's energy. The boundary has 56 %.
    let lab = |cpus: f64| {
        let mut lab = Lab::read_every(1.0);
        busier(&mut lab, "backup-uid", 100.0, 320.0, cpus);
        let mut lab = lab.into_stock_kepler();
        lab.change(-2.0, 430.0, |reading| {
            reading.node_cpu_seconds = None;
            for pod in &mut reading.pods {
                pod.cpu_seconds = None;
            }
        });
        lab
    };
    assert_counted(&lab(0.05));
    let message = assert_void(&lab(0.1), "NeighbourActive");
    assert!(message.contains("of the node more"), "{message}");
}

#[test]
fn others_that_work_in_one_half_only_are_seen() {
    // Active energy that belongs to no pod, in the second half. The node draws 8 W, so 0.8 W may differ.
    let lab = |watts: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(210.0, 430.0, |reading| {
            let seconds = (reading.at_unix_seconds() - T0).min(320.0) - 210.0;
            *reading.active_joules.as_mut().unwrap() += watts * seconds;
        });
        lab
    };
    assert_counted(&lab(0.79));
    let message = assert_void(&lab(0.81), "HalfWindowDrift");
    assert!(
        message.starts_with("work outside the measured pods drew 0.50")
            && message.ends_with("(limit of the difference: 0.800 W)"),
        "{message}"
    );
    // CPU time that a pod used before a crash may be counted outside all pods.
    let mut crashed = lab(0.81);
    crashed.restarted_pods = pods(&[CANDIDATE]);
    assert_counted(&crashed);
}

#[test]
fn a_candidate_that_works_in_one_half_only_is_an_outcome() {
    let mut lab = Lab::read_every(1.0);
    busier(&mut lab, CANDIDATE, 210.0, 320.0, 1.0);
    assert_counted(&lab);
}

#[test]
fn idle_baselines_that_differ_by_more_than_chance_widen_net_energy_and_then_are_void() {
    // w/2 is 5 % of 3 W + w/2 at w = 0.316 W, for any load.
    let lab = |watts: f64, load: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| {
            let at = reading.at_unix_seconds() - T0;
            reading.node_joules -= (1.0 - load) * 5.0 * (at - 80.0).clamp(0.0, 260.0);
            reading.active_joules = None;
            for uid in [CANDIDATE, DATABASE, NEIGHBOUR] {
                reading.pods.get_mut(uid).unwrap().joules = None;
            }
        });
        draws_more(&mut lab, 340.0, 430.0, |seconds| watts * seconds);
        lab
    };
    for load in [0.2, 1.0] {
        let figures = assert_counted(&lab(0.31, load));
        assert_near_some(figures.net_joules, 1100.0 * load - 110.0 * 0.31);
        // Anywhere between the two baselines: at most 110 s of their difference.
        assert_near_some(figures.net_drift_joules, 110.0 * 0.31 / 3.0_f64.sqrt());
        let message = assert_void(&lab(0.32, load), "BaselineDrift");
        assert!(
            message.starts_with("the node drew 3.000 W idle before the load and 3.320 W after it"),
            "{message}"
        );
    }
    assert_eq!(
        Lab::read_every(1.0).evaluate().unwrap().net_drift_joules,
        None
    );
}

#[test]
fn with_two_readings_the_noise_is_unknown_and_no_figure_needs_the_baselines() {
    let lab = |watts: f64| {
        let mut lab = Lab::read_every(2.4);
        draws_more(&mut lab, 340.0, 430.0, |seconds| watts * seconds);
        lab.idle_before = window(70.0, 75.0);
        lab.idle_after = window(370.0, 375.0);
        lab
    };
    // Also if the two baselines agree exactly.
    for watts in [0.0, 0.3, 0.33, 3.0] {
        let lab = lab(watts);
        let figures = assert_counted(&lab);
        assert_eq!(figures.net_joules, None, "{watts}");
        assert!(figures.net_withheld.is_some());
    }
}

#[test]
fn idle_baselines_that_differ_by_chance_count() {
    // Bursts of 30 W in one of ten seconds: the mean of a baseline of 60 s is known to 1.2 W. A difference of
    // less than three times 1.66 W may be chance.
    let lab = |watts: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.limits.max_node_watts = Some(50.0);
        draws_more(&mut lab, -2.0, 430.0, |seconds| {
            (seconds / 10.0).floor() * 30.0
        });
        draws_more(&mut lab, 340.0, 430.0, |seconds| watts * seconds);
        lab
    };
    assert_counted(&lab(4.8));
    assert_void(&lab(5.2), "BaselineDrift");
}

#[test]
fn heat_that_the_candidate_made_is_an_outcome() {
    let lab = |watts: f64, kelvin: f64| {
        let mut lab = Lab::read_every(1.0);
        draws_more(&mut lab, 340.0, 430.0, |seconds| watts * seconds);
        lab.change(-2.0, 80.0, |reading| {
            reading.temperature_celsius = Some(45.0);
        });
        lab.change(340.0, 430.0, |reading| {
            reading.temperature_celsius = Some(45.0 + kelvin);
        });
        lab
    };
    // 20 K more explain 0.6 W of 3 W, and half of 0.29 W is less than 5 % of 3.4 W. Half of the heat's power is subtracted
    // too, so net energy is as uncertain as by the whole difference.
    let figures = assert_counted(&lab(0.89, 20.0));
    for watts in [0.89, 0.59] {
        let figures = assert_counted(&lab(watts, 20.0));
        assert_near_some(figures.net_drift_joules, 110.0 * watts / 3.0_f64.sqrt());
    }
    assert_near_some(figures.conditions.idle_before_celsius, 45.0);
    assert_near_some(figures.conditions.idle_after_celsius, 65.0);
    assert_void(&lab(1.2, 20.0), "BaselineDrift");
    assert_void(&lab(0.9, 0.0), "BaselineDrift");
    // A warmer board does not draw less because of its heat.
    assert_void(&lab(-0.9, 20.0), "BaselineDrift");
}

#[test]
fn under_voltage_at_any_time_is_void() {
    let lab = |from: f64, seconds: f64| {
        let mut lab = Lab::read_every(1.0);
        lab.change(-2.0, 430.0, |reading| {
            let at = reading.at_unix_seconds() - T0;
            let so_far = 17.0 + (at - from).clamp(0.0, seconds);
            Arc::make_mut(&mut reading.throttled_seconds)
                .insert("under_voltage".to_owned(), so_far);
        });
        lab
    };
    assert_true_figures(&assert_counted(&lab(0.0, 0.0)));
    for from in [10.0, 70.0, 200.0, 350.0, 400.0] {
        assert_eq!(
            assert_void(&lab(from, 1.5), "UnderVoltage"),
            "the node's supply voltage was too low for 1.500 s of the attempt. Use a stronger supply or a shorter cable."
        );
    }
    assert_counted(&lab(425.0, 1.5));
}

#[test]
fn a_node_that_was_throttled_before_the_load_is_void_and_under_load_is_an_outcome() {
    for cause in ["frequency_capped", "throttled", "soft_temperature_limit"] {
        let lab = |from: f64| {
            let mut lab = Lab::read_every(1.0);
            lab.change(-2.0, 430.0, |reading| {
                let seconds = (reading.at_unix_seconds() - T0 - from).clamp(0.0, 20.0);
                Arc::make_mut(&mut reading.throttled_seconds).insert(cause.to_owned(), seconds);
                reading.frequency_hertz = Some(1.8e9 - 1e7 * seconds);
            });
            lab
        };
        let message = assert_void(&lab(30.0), "NodeThrottled");
        assert!(
            message.contains(cause) && message.contains("20.000 s"),
            "{message}"
        );
        let conditions = assert_counted(&lab(200.0)).conditions;
        assert_near(conditions.throttled_seconds[cause], 20.0);
        assert_near_some(conditions.least_hertz, 1.6e9);
    }
}

#[test]
fn the_load_must_end_at_the_time_by_the_injectors_clock() {
    // The load ends at 340 s. If the clock is wrong by some seconds, all windows are shifted.
    let lab = |wrong: f64| {
        let mut lab = Lab::read_every(0.25);
        lab.tail = Some(Tail {
            window: window(320.0 + wrong, 340.0 + wrong),
            relative_load: 1.0,
        });
        lab.measured = window(100.0 + wrong, 320.0 + wrong);
        lab
    };
    assert_true_figures(&assert_counted(&lab(0.0)));
    for wrong in [0.49, -0.49] {
        assert_counted(&lab(wrong));
    }
    for wrong in [0.51, -0.51, 6.0] {
        let message = assert_void(&lab(wrong), "LoadNotSeen");
        assert!(
            message.starts_with("the CPU use of the measured pods fell ")
                && message.contains("seen 1795237240.000 (Unix seconds)"),
            "{message}"
        );
    }
    // A tail of half the load also ends at its reported end. The injector may have seen the half, or the node
    // may have done the same work in another time.
    let halved = |relative_load: f64| {
        let mut lab = lab(0.0);
        for uid in [CANDIDATE, DATABASE] {
            lab.change(320.0, 430.0, |reading| {
                let pod = reading.pods.get_mut(uid).unwrap();
                let at = (reading.scraped_at_unix_seconds - 0.3 - T0).min(340.0);
                let share = if uid == CANDIDATE { 0.6 } else { 0.3 };
                *pod.cpu_seconds.as_mut().unwrap() -= share * 2.5 * (at - 320.0) * 0.4;
            });
        }
        lab.tail = lab.tail.map(|tail| Tail {
            relative_load,
            ..tail
        });
        lab
    };
    assert_counted(&halved(0.6));
    assert_counted(&halved(1.0));
    // A wrong clock is still detected.
    let reported = |wrong: f64| {
        let mut lab = halved(1.0);
        lab.tail = Some(Tail {
            window: window(320.0 + wrong, 340.0 + wrong),
            relative_load: 1.0,
        });
        lab
    };
    for wrong in [0.45, -0.45] {
        assert_counted(&reported(wrong));
    }
    for wrong in [0.6, -0.6, 2.0, -2.0, 15.0] {
        assert_void(&reported(wrong), "LoadNotSeen");
    }
    // A candidate that failed in the tail shows no step. The candidate caused this.
    assert_counted(&halved(0.4));
}

#[test]
fn the_nodes_power_shows_the_load_if_the_meter_reports_no_cpu_time() {
    let lab = |idle_watts: f64, wrong: f64| {
        let mut lab = Lab::read_every(0.25);
        lab.change(-2.0, 430.0, |reading| {
            let seconds = reading.at_unix_seconds() - T0;
            reading.node_joules -= (3.0 - idle_watts) * seconds;
            reading.node_cpu_seconds = None;
            for pod in &mut reading.pods {
                pod.cpu_seconds = None;
            }
        });
        lab.tail = Some(Tail {
            window: window(320.0 + wrong, 340.0 + wrong),
            relative_load: 1.0,
        });
        lab
    };
    assert_counted(&lab(1.0, 0.4));
    let message = assert_void(&lab(1.0, 0.6), "LoadNotSeen");
    assert!(message.contains("the node's power fell"), "{message}");
    // A step from 3 W to 8 W is less than a factor of three.
    assert_counted(&lab(3.0, 0.6));
}

#[test]
fn net_energy_of_a_candidate_that_works_at_rest_is_withheld() {
    let lab = |uid: &'static str, cpus: f64| {
        let mut lab = Lab::read_every(1.0);
        for (from, to) in [(-1.0, 61.0), (359.0, 421.0)] {
            busier(&mut lab, uid, from, to, cpus);
        }
        lab
    };
    let quiet = assert_counted(&lab(CANDIDATE, 0.029));
    assert!(quiet.net_joules.is_some());
    assert_near_some(quiet.candidate_idle_cpus, 0.029);
    let busy = assert_counted(&lab(CANDIDATE, 0.031));
    assert_eq!((busy.net_joules, busy.net_joules_per_request), (None, None));
    assert!(busy.gross_joules_per_request.is_some());
    assert_eq!(
        busy.net_withheld.unwrap(),
        "the candidate's pods used 0.031 CPUs in the idle baselines (limit 0.03), and net energy would exclude \
         that work"
    );
    // A database uses CPU at rest for every candidate equally.
    assert!(assert_counted(&lab(DATABASE, 0.09)).net_joules.is_some());
    let busy = assert_counted(&lab(DATABASE, 0.11)).net_withheld.unwrap();
    assert!(
        busy.starts_with("the database's pods used 0.110 CPUs"),
        "{busy}"
    );

    // Joules replace CPU time if the meter reports none: 0.02 of 3.04 W are 0.0263 of four CPUs.
    let mut kepler = lab(CANDIDATE, 0.02);
    kepler.change(-2.0, 430.0, |reading| {
        reading.node_cpu_seconds = None;
        for pod in &mut reading.pods {
            pod.cpu_seconds = None;
        }
    });
    let figures = assert_counted(&kepler);
    assert_eq!(figures.candidate_idle_cpus, None);
    assert!(figures.net_withheld.unwrap().contains("0.053 CPUs"));
}

/// How the kernel counts the CPU time of interrupts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interrupts {
    OfTheProcess,
    OfNobody,
}

/// The lab's meter with the kernel's count of the processors. They work for the node, with interrupts of 0.3
/// CPUs under load. In a span they also work `cpus` for others, `stolen` by the hypervisor or not.
fn with_processors(from: f64, to: f64, cpus: f64, stolen: bool, interrupts: Interrupts) -> Lab {
    let mut lab = Lab::read_every(1.0);
    lab.change(-2.0, 430.0, |reading| {
        let at = reading.at_unix_seconds() - T0;
        let others = cpus * (at.clamp(from, to) - from);
        let interrupted = 0.3 * (at.clamp(80.0, 340.0) - 80.0);
        let (outside, taken) = if stolen { (0.0, others) } else { (others, 0.0) };
        let of_node = reading.node_cpu_seconds.unwrap();
        let in_cgroup = match interrupts {
            Interrupts::OfTheProcess => interrupted,
            Interrupts::OfNobody => 0.0,
        };
        reading.processors_busy_seconds = Some(5000.0 + of_node - in_cgroup + outside);
        reading.processors_interrupt_seconds = Some(40.0 + interrupted);
        reading.processors_stolen_seconds = Some(70.0 + taken);
    });
    lab
}

#[test]
fn cpu_time_that_the_node_did_not_get_is_void_in_baselines_and_window_alike() {
    for (when, from, to) in [
        ("in the idle baseline before the load", -1.0, 61.0),
        ("in the measured window", 99.0, 321.0),
        ("in the idle baseline after the load", 359.0, 421.0),
    ] {
        for stolen in [false, true] {
            for interrupts in [Interrupts::OfTheProcess, Interrupts::OfNobody] {
                let lab = |cpus: f64| with_processors(from, to, cpus, stolen, interrupts);
                assert_counted(&lab(0.149));
                let message = assert_void(&lab(0.151), "CpuTaken");
                let expected = format!(
                    "work outside the node took 0.151 CPUs of the node's processors {when} (the hypervisor took {} of \
                     them; limit 0.15)",
                    if stolen { "0.151" } else { "0.000" }
                );
                assert_eq!(message, expected, "{interrupts:?}");
                // As much as the interrupts, and more.
                assert_void(&lab(0.31), "CpuTaken");
                assert_void(&lab(0.5), "CpuTaken");
            }
        }
    }
    let figures = assert_counted(&with_processors(
        99.0,
        321.0,
        0.09,
        true,
        Interrupts::OfNobody,
    ));
    assert_near_some(figures.conditions.taken_cpus, 0.09);
    // Stock Kepler does not count processors.
    assert_eq!(
        assert_counted(&Lab::read_every(1.0)).conditions.taken_cpus,
        None
    );
}

/// The same node on eight processors. The kernel samples each of them a hundred times per second: its count
/// is the number of busy samples.
fn with_ticks(cpus: f64, interrupts: Interrupts, chance: &mut Chance) -> Lab {
    const PROCESSORS: u32 = 8;
    let mut lab = with_processors(99.0, 321.0, cpus, false, interrupts);
    let (mut before, mut found): (Option<f64>, u32) = (None, 0);
    for reading in &mut lab.readings {
        let busy = reading.processors_busy_seconds.unwrap();
        let use_of_all = (busy - before.unwrap_or(busy)) / f64::from(PROCESSORS);
        for _ in 0..100 * PROCESSORS {
            found += u32::from(chance.uniform() < use_of_all);
        }
        before = Some(busy);
        reading.processors_busy_seconds = Some(5000.0 + 0.01 * f64::from(found));
    }
    lab
}

#[test]
fn random_ticks_do_not_decide_how_interrupts_are_counted() {
    let mut chance = Chance(20_261_126);
    for _ in 0..10 {
        // The kernel counts interrupts of 0.3 CPUs for no process, and no other work runs.
        let figures = assert_counted(&with_ticks(0.0, Interrupts::OfNobody, &mut chance));
        let taken = figures.conditions.taken_cpus.unwrap();
        assert!(taken < 0.05, "{taken}");
        // If the kernel counts them for the process, other work in the window is distinguished from them.
        let others = with_ticks(0.25, Interrupts::OfTheProcess, &mut chance);
        assert_void(&others, "CpuTaken");
    }
}

#[test]
fn for_a_node_that_is_the_machine_only_stolen_time_is_checked() {
    let mut lab = with_processors(99.0, 321.0, 0.14, true, Interrupts::OfNobody);
    lab.change(-2.0, 430.0, |reading| {
        reading.processors_busy_seconds = None;
        reading.processors_interrupt_seconds = None;
    });
    assert_near_some(assert_counted(&lab).conditions.taken_cpus, 0.14);
}
