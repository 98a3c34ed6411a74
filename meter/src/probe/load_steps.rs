//! Measures how often a device refreshes its value, by loading the node in steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use crate::power::PowerOrEnergy;
use crate::power::polled::Polled;
use crate::power::refresh::Refresh;

/// Time between two polls.
const ASKED_EVERY: Duration = Duration::from_millis(500);
/// Changes of power after which the refresh interval counts as known.
const ENOUGH_RUNS: usize = 6;
/// The longest time for which the node is loaded.
const LONGEST: Duration = Duration::from_secs(90);
/// A device whose power has not changed once within this time does not see the load.
const FIRST_CHANGE: Duration = Duration::from_secs(30);
/// Alternating times of load and idleness, in seconds. They match no period that a device may have.
const STEPS: [f64; 7] = [1.3, 0.7, 2.3, 1.1, 0.9, 1.7, 2.9];

/// Threads that use all CPUs while the switch is set.
struct Load(Arc<[AtomicBool; 2]>);

const BUSY: usize = 0;
const ENDED: usize = 1;

impl Load {
    fn start(cpus: u32) -> Self {
        let switches = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        for _ in 0..cpus {
            let switches = Arc::clone(&switches);
            std::thread::spawn(move || {
                while !switches[ENDED].load(Ordering::Relaxed) {
                    if switches[BUSY].load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    } else {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
            });
        }
        Self(switches)
    }

    fn set(&self, is_busy: bool) {
        self.0[BUSY].store(is_busy, Ordering::Relaxed);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0[ENDED].store(true, Ordering::Relaxed);
    }
}

/// The observed time between two measurements of the device, for people.
pub(super) async fn refresh(instrument: &mut Polled, cpus: u32) -> String {
    let load = Load::start(cpus);
    let mut refresh = Refresh::new(ASKED_EVERY, None);
    let mut ticks = interval(ASKED_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    let mut steps = STEPS.iter().cycle();
    let (mut is_busy, mut until) = (false, Duration::ZERO);
    let mut has_answered = false;
    loop {
        if !instrument.is_pushed() {
            ticks.tick().await;
        }
        let elapsed = began.elapsed();
        while elapsed >= until {
            is_busy = !is_busy;
            until += steps
                .next()
                .map_or(LONGEST, |step| Duration::from_secs_f64(*step));
        }
        load.set(is_busy);
        match instrument.ask().await {
            Ok(Some((PowerOrEnergy::Watts(watts), _))) => {
                has_answered = true;
                refresh.see(began.elapsed(), watts);
            }
            Ok(Some((PowerOrEnergy::Joules(_), _))) => {
                return "an energy counter, exact at any refresh interval".to_owned();
            }
            Err(error) if !has_answered => return error.to_string(),
            // Radio links lose a packet now and then.
            Ok(None) | Err(_) => {}
        }
        let runs = refresh.runs();
        if runs >= ENOUGH_RUNS || elapsed >= LONGEST || (runs == 0 && elapsed >= FIRST_CHANGE) {
            break;
        }
    }
    reported(&refresh, began.elapsed())
}

fn reported(refresh: &Refresh, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match (refresh.regular_run(), refresh.runs()) {
        (Some(run), runs) => format!(
            "every {:.1} s ({runs} times in {seconds:.0} s of load steps)",
            run.as_secs_f64()
        ),
        (None, 0) => {
            format!("not seen: the power did not follow the load within {seconds:.0} s")
        }
        (None, runs) => {
            format!("not regular: the power changed {runs} times in {seconds:.0} s of load steps")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report about a device that shows another power after each of these times, in halves of a second.
    fn reported_of(runs: &[u32]) -> String {
        let mut refresh = Refresh::new(ASKED_EVERY, None);
        let mut at = 0;
        for (index, run) in runs.iter().enumerate() {
            for _ in 0..*run {
                refresh.see(ASKED_EVERY * at, index as f64);
                at += 1;
            }
        }
        reported(&refresh, ASKED_EVERY * at)
    }

    #[test]
    fn the_refresh_interval_is_reported_as_far_as_it_was_seen() {
        let every = reported_of(&[3, 6, 6, 6, 6, 6, 6, 6]);
        assert_eq!(every, "every 3.0 s (6 times in 22 s of load steps)");
        let steady = reported_of(&[60]);
        assert_eq!(
            steady,
            "not seen: the power did not follow the load within 30 s"
        );
        let irregular = reported_of(&[3, 6, 40, 19, 75]);
        assert!(
            irregular.starts_with("not regular: the power changed 3 times"),
            "{irregular}"
        );
    }
}
