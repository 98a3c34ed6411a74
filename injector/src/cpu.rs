//! Samples the use of the injector's CPUs during the load: by its own container, and by everything on these CPUs.

use std::{
    fs,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use frugality_measure::figures::LoadSpan;
use frugality_measure::pace::InjectorCpu;

use crate::cgroup;

/// Initial time between two samples. A sample takes about 50 µs.
const INTERVAL: Duration = Duration::from_secs(1);

/// Largest number of samples. At this number the sampler drops every second sample and doubles the interval.
const MOST_SAMPLES: usize = 1024;

/// The thread that takes the samples, from `start` until `of`.
pub(crate) struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Sample>>,
}

/// The values of all counters at one time.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    at_unix_seconds: f64,
    used_seconds: Option<f64>,
    throttled_seconds: Option<f64>,
    /// One entry per CPU that the injector may run on, in the order of their numbers.
    cpus: Vec<Ticks>,
}

/// The kernel's counters of one CPU since boot, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    busy: f64,
    all: f64,
}

impl Sampler {
    pub(crate) fn start() -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let allowed = allowed_cpus();
            let (mut samples, mut interval) = (vec![Sample::now(&allowed)], INTERVAL);
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                samples.push(Sample::now(&allowed));
                if samples.len() >= MOST_SAMPLES {
                    thin_out(&mut samples);
                    interval *= 2;
                }
            }
            samples.push(Sample::now(&allowed));
            samples
        });
        Self { stop, thread }
    }

    /// Ends the sampling and returns the CPU use in the measured run. `None` if there are no samples.
    pub(crate) fn of(self, measured: LoadSpan) -> Option<InjectorCpu> {
        drop(self.stop);
        let samples = self.thread.join().ok()?;
        let cpu = between(
            &samples,
            measured.start_unix_seconds,
            measured.end_unix_seconds(),
        )?;
        Some(InjectorCpu {
            limit_cpus: cgroup::limit_cpus(),
            ..cpu
        })
    }
}

impl Sample {
    fn now(allowed: &[u32]) -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            at_unix_seconds: at.unwrap_or_default().as_secs_f64(),
            used_seconds: cgroup::used_seconds(),
            throttled_seconds: cgroup::throttled_seconds(),
            cpus: ticks(
                &fs::read_to_string("/proc/stat").unwrap_or_default(),
                allowed,
            ),
        }
    }
}

fn thin_out(samples: &mut Vec<Sample>) {
    let mut index = 0;
    samples.retain(|_| {
        index += 1;
        index % 2 == 1
    });
}

/// Increase of the counters between two times, in Unix seconds. `None` if the kernel reports no CPU.
fn between(samples: &[Sample], from: f64, to: f64) -> Option<InjectorCpu> {
    let rise = |value: &dyn Fn(&Sample) -> Option<f64>| {
        let rise = at(samples, to, value)? - at(samples, from, value)?;
        // Negative if the clock was set back or a counter was reset.
        (rise >= 0.0).then_some(rise)
    };
    let cpus = samples.first()?.cpus.len();
    if cpus == 0 {
        return None;
    }
    let of_cpus: Option<Vec<(f64, f64)>> = (0..cpus)
        .map(|cpu| {
            let busy = rise(&|sample| Some(sample.cpus.get(cpu)?.busy))?;
            let all = rise(&|sample| Some(sample.cpus.get(cpu)?.all))?;
            Some((busy, all))
        })
        .collect();
    let of_cpus = of_cpus.unwrap_or_default();
    // Interpolation rounds: without the limit, a CPU that was never idle had a share of 1.0000000000012.
    let share = |(busy, all): (f64, f64)| (all > 0.0).then(|| (busy / all).min(1.0));
    let sum = of_cpus
        .iter()
        .fold((0.0, 0.0), |sum, cpu| (sum.0 + cpu.0, sum.1 + cpu.1));
    let busy_share = share(sum);
    Some(InjectorCpu {
        cpus: u32::try_from(cpus).ok()?,
        limit_cpus: None,
        used_seconds: rise(&|sample| sample.used_seconds),
        throttled_seconds: rise(&|sample| sample.throttled_seconds),
        busy_share,
        busiest_share: of_cpus
            .iter()
            .filter_map(|cpu| share(*cpu))
            // The busiest CPU is at least as busy as all of them together, however the sums round.
            .chain(busy_share)
            .reduce(f64::max),
    })
}

/// The value of a counter at a time, interpolated linearly between two samples. `None` outside the samples.
fn at(samples: &[Sample], time: f64, value: &dyn Fn(&Sample) -> Option<f64>) -> Option<f64> {
    samples.windows(2).find_map(|pair| {
        let [before, after] = pair else { return None };
        let length = after.at_unix_seconds - before.at_unix_seconds;
        let is_within = before.at_unix_seconds <= time && time <= after.at_unix_seconds;
        if !is_within || length <= 0.0 {
            return None;
        }
        let (first, second) = (value(before)?, value(after)?);
        Some(first + (second - first) * (time - before.at_unix_seconds) / length)
    })
}

/// Counters of the allowed CPUs in `/proc/stat`. All time except idle and iowait is busy. Stolen time is busy too,
/// because another virtual machine used it. The kernel's user time already includes guest time.
fn ticks(stat: &str, allowed: &[u32]) -> Vec<Ticks> {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let number: u32 = words.next()?.parse().ok()?;
        if line.starts_with("cpu ") || !allowed.contains(&number) {
            return None;
        }
        let times: Vec<f64> = words.map_while(|word| word.parse().ok()).take(8).collect();
        let all: f64 = times.iter().sum();
        let idle = times.get(3)? + times.get(4)?;
        Some(Ticks {
            busy: all - idle,
            all,
        })
    };
    stat.lines().filter_map(of_line).collect()
}

/// Numbers of the CPUs that this process may run on.
fn allowed_cpus() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(numbers).unwrap_or_default()
}

/// The numbers in a list such as `0-2,5`.
fn numbers(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  300 0 100 500 100 0 50 50 0 0\n\
        cpu0 100 0 50 200 50 0 0 0 0 0\n\
        cpu1 200 0 50 300 50 0 50 50 7 7\n\
        cpu10 1 1 1 1 1 1 1 1 1 1\n\
        intr 12\n";

    #[test]
    fn all_but_idle_time_of_the_allowed_cpus_is_busy() {
        let counted = ticks(STAT, &[1]);
        assert_eq!(
            counted,
            [Ticks {
                busy: 350.0,
                all: 700.0
            }]
        );
        assert_eq!(numbers("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(numbers(" 1\n"), [1]);
        assert_eq!(numbers("x"), Vec::<u32>::new());
    }

    fn sample(at_unix_seconds: f64, used: f64, cpus: &[(f64, f64)]) -> Sample {
        Sample {
            at_unix_seconds,
            used_seconds: Some(used),
            throttled_seconds: None,
            cpus: cpus
                .iter()
                .map(|(busy, all)| Ticks {
                    busy: *busy,
                    all: *all,
                })
                .collect(),
        }
    }

    #[test]
    fn a_cpu_that_is_never_idle_is_busy_for_all_of_its_time_and_no_more() -> Result<(), &'static str>
    {
        // Ticks as of a machine that has run for hours: the sums of two interpolated counters round differently.
        let busy = |at: f64| 1_234_567.0 + 100.0 * at;
        let samples: Vec<Sample> = (0..80_u32)
            .map(|step| {
                let at = f64::from(step) * 0.1003;
                sample(
                    1_764_000_000.0 + at,
                    at,
                    &[(busy(at), 7_654_321.0 + 100.0 * at)],
                )
            })
            .collect();
        for step in 0..60_u32 {
            let from = 1_764_000_000.0 + f64::from(step) * 0.0971;
            let cpu = between(&samples, from, from + 1.9).ok_or("the samples cover it")?;
            let (busy, busiest) = (cpu.busy_share, cpu.busiest_share);
            let (busy, busiest) = busy.zip(busiest).ok_or("there are ticks")?;
            assert!(busy > 0.999 && busy <= busiest && busiest <= 1.0, "{cpu:?}");
        }
        Ok(())
    }

    #[test]
    fn the_window_is_cut_out_of_the_samples() -> Result<(), &'static str> {
        let samples = [
            sample(10.0, 1.0, &[(0.0, 0.0), (0.0, 0.0)]),
            sample(12.0, 2.0, &[(100.0, 200.0), (0.0, 200.0)]),
            sample(14.0, 4.0, &[(300.0, 400.0), (0.0, 400.0)]),
        ];
        let cpu = between(&samples, 11.0, 13.0).ok_or("the samples cover it")?;
        assert_eq!(cpu.cpus, 2);
        assert_eq!(cpu.used_seconds, Some(1.5));
        assert_eq!(cpu.throttled_seconds, None);
        assert_eq!(cpu.busy_share, Some(150.0 / 400.0));
        assert_eq!(cpu.busiest_share, Some(0.75));
        let outside = between(&samples, 9.0, 13.0).ok_or("there are samples")?;
        assert_eq!((outside.used_seconds, outside.busy_share), (None, None));
        Ok(())
    }

    #[test]
    fn without_the_kernels_counters_of_cpus_nothing_is_known() {
        let samples = [sample(10.0, 1.0, &[]), sample(12.0, 2.0, &[])];
        assert_eq!(between(&samples, 10.5, 11.5), None);
    }

    #[test]
    fn a_long_load_does_not_fill_the_memory() {
        let mut samples: Vec<Sample> = (0..5).map(|at| sample(f64::from(at), 0.0, &[])).collect();
        thin_out(&mut samples);
        let times: Vec<f64> = samples.iter().map(|it| it.at_unix_seconds).collect();
        assert_eq!(times, [0.0, 2.0, 4.0]);
    }
}
