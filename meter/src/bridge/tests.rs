use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::power::sysfs::read_text;

fn counter(directory: &Path, zone: &str) -> u64 {
    let text = fs::read_to_string(
        directory
            .join("class/powercap")
            .join(zone)
            .join("energy_uj"),
    );
    text.unwrap().trim().parse().unwrap()
}

#[test]
fn kepler_finds_one_zone_whose_counter_goes_on_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let zone = "frugality-metered:0";
    let mut bridge = Bridge::open(
        directory.path(),
        SourceProvenance::Metered,
        Duration::ZERO,
        None,
    )
    .unwrap();
    let path = directory.path().join("class/powercap").join(zone);
    assert_eq!(fs::read_to_string(path.join("name")).unwrap(), "psys\n");
    let range: u64 = read_text(&path.join("max_energy_range_uj"))
        .unwrap()
        .parse()
        .unwrap();
    assert!(range > 1 << 50);
    bridge.write(2.5).unwrap();
    assert_eq!(counter(directory.path(), zone), 2_500_000);
    drop(bridge);

    let mut bridge = Bridge::open(
        directory.path(),
        SourceProvenance::Metered,
        Duration::ZERO,
        None,
    )
    .unwrap();
    assert_eq!(counter(directory.path(), zone), 2_500_000);
    bridge.write(1.0).unwrap();
    assert_eq!(counter(directory.path(), zone), 3_500_000);
    let files: Vec<_> = crate::power::sysfs::entries(&path);
    assert_eq!(files.len(), 3, "{files:?}");
}

#[test]
fn the_zone_s_path_states_the_provenance() {
    let directory = tempfile::tempdir().unwrap();
    Bridge::open(
        directory.path(),
        SourceProvenance::Metered,
        Duration::ZERO,
        None,
    )
    .unwrap();
    Bridge::open(
        directory.path(),
        SourceProvenance::Modelled,
        Duration::ZERO,
        None,
    )
    .unwrap();
    let zones = crate::power::sysfs::entries(&directory.path().join("class/powercap"));
    assert_eq!(zones.len(), 1, "two zones would be read as two counters");
    assert!(zones[0].ends_with("frugality-modelled:0"));
}

#[test]
fn a_reader_never_sees_an_empty_or_falling_counter() {
    let directory = tempfile::tempdir().unwrap();
    let mut bridge = Bridge::open(
        directory.path(),
        SourceProvenance::Metered,
        Duration::ZERO,
        None,
    )
    .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let now = counter(directory.path(), "frugality-metered:0");
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        for step in 1..2_000 {
            bridge.write(f64::from(step) * 0.3).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_damaged_counter_does_not_begin_at_0_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        Bridge::open(
            directory.path(),
            SourceProvenance::Metered,
            Duration::ZERO,
            None,
        )
    };
    drop(open().unwrap());
    let path = directory
        .path()
        .join("class/powercap/frugality-metered:0")
        .join(COUNTER);
    fs::write(&path, "").unwrap();
    let error = open().err().unwrap().to_string();
    assert!(
        error.contains("is not a number") && error.contains("restart Kepler"),
        "{error}"
    );
}
