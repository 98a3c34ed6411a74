use std::mem::size_of;

use super::*;
use crate::reading::{PodIdentity, PodReading, Pods, Rise, WorkingSets, read};

/// Half a second of a node with twelve pods.
fn reading(index: u32) -> Reading {
    let at = f64::from(index) / 2.0;
    let text = format!(
        "kepler_node_cpu_joules_total{{node_name=\"pi-1\",zone=\"psys\"}} {}\n\
         frugality_meter_info{{node_name=\"pi-1\",provenance=\"Metered\",source=\"hwmon\"}} 1\n\
         frugality_meter_reading_timestamp_seconds{{node_name=\"pi-1\",zone=\"psys\"}} {at}\n\
         frugality_meter_interval_seconds{{node_name=\"pi-1\"}} 0.1\n",
        10.0 + 3.0 * at,
    );
    let mut reading = read(&text, "pi-1", None, at + 0.1).unwrap();
    reading.pods = (0..12).map(|pod| pod_of(pod, at)).collect();
    reading
}

fn pod_of(index: u32, at: f64) -> PodReading {
    PodReading {
        joules: Some(at),
        cpu_seconds: Some(at),
        working_set_bytes: Some(1e6),
        ..PodReading::of(&format!("uid-{index}"), "shop", &format!("pod-{index}"))
    }
}

/// The readings' memory, in bytes, if they share equal parts.
fn bytes(readings: &Vec<Reading>) -> usize {
    let own = readings.capacity() * size_of::<Reading>();
    let of_each = |it: &Reading| {
        let left_out = it.left_out.as_ref().map_or(0, |left_out| {
            size_of::<LeftOut>() + left_out.working_sets.len() * size_of::<WorkingSets>()
        });
        it.pods.len() * size_of::<PodReading>() + it.zone.capacity() + left_out
    };
    own + readings.iter().map(of_each).sum::<usize>()
}

#[test]
fn twelve_hours_fit_into_four_mebibytes() {
    let groups = vec![Arc::new(BTreeSet::from(["uid-0".to_owned()]))];
    let (mut readings, mut most): (Vec<Reading>, usize) = (Vec::new(), 0);
    for index in 0..12 * 3600 * 2 {
        let mut reading = reading(index);
        if let Some(earlier) = readings.last() {
            reading.share(earlier);
        }
        let at_unix_seconds = reading.at_unix_seconds();
        readings.push(reading);
        most = most.max(bytes(&readings));
        if index % 120 == 0 {
            Steady {
                from_unix_seconds: 240.0,
                to_unix_seconds: at_unix_seconds - 135.0,
                groups: groups.clone(),
            }
            .thin(&mut readings);
        }
    }
    assert!(most <= 4 << 20, "{most} bytes");
    let left_out = readings.iter().filter_map(|it| it.left_out.as_ref());
    assert_eq!(
        readings.len() + left_out.map(|it| it.readings).sum::<usize>(),
        86_400
    );
}

#[test]
fn a_meter_that_is_scraped_more_often_than_it_reads_is_thinned_too() {
    let mut readings: Vec<Reading> = (0..7200).map(|index| reading(index / 2 * 2)).collect();
    Steady {
        from_unix_seconds: 100.0,
        to_unix_seconds: 3500.0,
        groups: Vec::new(),
    }
    .thin(&mut readings);
    assert!(readings.len() < 7200 / 5, "{}", readings.len());
    let left_out = readings.iter().filter_map(|it| it.left_out.as_ref());
    assert!(left_out.clone().all(|it| it.largest_gap_seconds() <= 1.0));
}

#[test]
fn a_quarter_of_an_hour_keeps_all_readings() {
    let mut readings: Vec<Reading> = (0..1800).map(reading).collect();
    let all = readings.clone();
    Steady {
        from_unix_seconds: 0.0,
        to_unix_seconds: 900.0,
        groups: Vec::new(),
    }
    .thin(&mut readings);
    assert_eq!(readings, all);
}

#[test]
fn a_second_time_leaves_out_nothing_more() {
    let mut readings: Vec<Reading> = (0..7200).map(reading).collect();
    let steady = Steady {
        from_unix_seconds: 100.0,
        to_unix_seconds: 3500.0,
        groups: Vec::new(),
    };
    steady.thin(&mut readings);
    let once = readings.clone();
    steady.thin(&mut readings);
    assert_eq!(readings, once);
    // The ends are as they were.
    let is_whole = |it: &&Reading| it.left_out.is_none();
    assert_eq!(readings.iter().take_while(is_whole).count(), 201);
    assert_eq!(readings.iter().rev().take_while(is_whole).count(), 199);
}

#[test]
fn a_reading_of_another_pod_is_kept() {
    let mut readings: Vec<Reading> = (0..7200).map(reading).collect();
    readings[4000].pods = Pods::from_iter([pod_of(99, 2000.0)]);
    let at = readings[4000].at_unix_seconds();
    Steady {
        from_unix_seconds: 0.0,
        to_unix_seconds: 3600.0,
        groups: Vec::new(),
    }
    .thin(&mut readings);
    let kept = |at: f64| {
        readings
            .iter()
            .any(|it| (it.at_unix_seconds() - at).abs() < 1e-9)
    };
    assert!(kept(at - 0.5) && kept(at) && kept(at + 0.5));
    let identity = |it: &Reading| {
        it.pods
            .iter()
            .next()
            .map(|pod| PodIdentity::clone(&pod.identity))
    };
    assert!(
        readings
            .iter()
            .filter_map(identity)
            .any(|it| it.uid == "uid-99")
    );
}

#[test]
fn the_two_largest_rises_are_kept() {
    let mut readings: Vec<Reading> = (0..7200).map(reading).collect();
    for (from, joules) in [(3001, 4.0), (3003, 5.0)] {
        for reading in &mut readings[from..] {
            reading.node_joules += joules;
        }
    }
    Steady {
        from_unix_seconds: 0.0,
        to_unix_seconds: 3600.0,
        groups: Vec::new(),
    }
    .thin(&mut readings);
    let largest = readings
        .iter()
        .filter_map(|it| it.left_out.as_ref())
        .map(|it| it.largest_rises.map(|rise: Rise| rise.joules))
        .find(|rises| rises[0] > 2.0);
    assert_eq!(largest, Some([6.5, 5.5]));
}
