//! Estimates how often an instrument refreshes its value, from how long the value stays the same. Pure.
//!
//! A plug that is polled every second may measure only every few seconds. In between it repeats its last
//! value. The value is then older than the poll.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of runs of equal values that are remembered.
const MOST_RUNS: usize = 32;
/// Least number of regular runs. With fewer runs, two similar lengths can occur by chance.
const LEAST_REGULAR: u32 = 3;
/// A poll may fall just before or just after a refresh, so runs of one length differ by one poll. The
/// additional quarter covers late polls.
const JITTER: f64 = 1.25;
/// Least share of a regular device's runs that are near the shortest run. Runs that end by chance, such as
/// the runs of steady power in coarse steps, have any length.
const LEAST_SHARE: f64 = 0.5;
/// A device that refreshes at irregular times shows power that varies by more than its step. At least this
/// share of the changes is more than [`MORE_THAN_A_STEP`] times the smallest change. Steady power goes up and
/// down by one step.
const LEAST_CHANGES: f64 = 0.5;
const MORE_THAN_A_STEP: f64 = 1.5;
/// If runs are longer than this on average, the load is probably steady. The value is the length of the
/// shortest usual phases of a benchmark. A judgement.
const LONGEST_IRREGULAR: Duration = Duration::from_secs(15);

/// A value that stayed for a while.
#[derive(Clone, Copy, Debug)]
struct Run {
    length: Duration,
    /// Difference between this value and the next value.
    change: f64,
}

/// The observations about an instrument's refreshes.
#[derive(Debug)]
pub(crate) struct Refresh {
    asked_every: Duration,
    is_told: bool,
    /// The stated interval, but not less than `asked_every`. A device may be slower than stated, never faster.
    least: Duration,
    interval: Duration,
    /// The interval that counts while refreshes are irregular.
    irregular: Option<Duration>,
    value: Option<f64>,
    /// When the value was first seen.
    since: Duration,
    /// Whether the value's beginning was seen; false for the value of the first poll.
    begun: bool,
    /// Earlier values, the oldest first.
    runs: VecDeque<Run>,
}

impl Refresh {
    /// For an instrument that is polled `asked_every`. `reported` is the refresh interval that the user or the
    /// maker states, if any.
    pub(crate) fn new(asked_every: Duration, reported: Option<Duration>) -> Self {
        let least = reported.unwrap_or(asked_every).max(asked_every);
        Self {
            asked_every,
            is_told: reported.is_some(),
            least,
            interval: least,
            irregular: None,
            value: None,
            since: Duration::ZERO,
            begun: false,
            runs: VecDeque::new(),
        }
    }

    /// Takes the instrument's value at a time after all earlier times.
    pub(crate) fn see(&mut self, at: Duration, value: f64) {
        if self
            .value
            .is_some_and(|last| last.total_cmp(&value).is_eq())
        {
            return;
        }
        let last = self.value.replace(value);
        if let Some(last) = last.filter(|_| self.begun) {
            if self.runs.len() >= MOST_RUNS {
                self.runs.pop_front();
            }
            self.runs.push_back(Run {
                length: at.saturating_sub(self.since),
                change: (value - last).abs(),
            });
        }
        self.begun = last.is_some();
        self.since = at;
        // The regular runs of steady power in steps do not contradict a stated interval.
        let counts = !self.is_told || self.varies();
        let regular = self.regular_run().filter(|_| counts);
        self.irregular = if regular.is_some() {
            None
        } else {
            self.irregular_run()
        };
        if let Some(interval) = regular {
            self.interval = interval.max(self.least);
        }
    }

    /// Time between two refreshes: the interval observed last, but never less than the stated interval or the
    /// time between two polls. For irregular refreshes, [`Refresh::irregular_run`].
    pub(crate) fn interval(&self) -> Duration {
        self.irregular
            .map_or(self.interval, |irregular| irregular.max(self.interval))
    }

    /// The refresh interval that the maker or the user states, if any.
    pub(crate) fn stated(&self) -> Option<Duration> {
        self.is_told.then_some(self.least)
    }

    /// Number of observed refreshes.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// How much older the value may be than the poll at `at`, less the usual time between two polls. If a
    /// value stays for longer than a refresh, a new value was equal to it.
    pub(crate) fn age(&self, at: Duration) -> Duration {
        let oldest = self.interval().saturating_sub(self.asked_every);
        at.saturating_sub(self.since).min(oldest)
    }

    /// The mean of the runs near the shortest run, if there are enough of them. The mean is also right if the
    /// refresh interval is not a whole number of polls: runs are then alternately shorter and longer.
    pub(crate) fn regular_run(&self) -> Option<Duration> {
        let lengths = || self.runs.iter().map(|run| run.length);
        let longest = lengths().min()? + self.asked_every.mul_f64(JITTER);
        let regular: Vec<Duration> = lengths().filter(|length| *length <= longest).collect();
        let count = u32::try_from(regular.len()).ok()?;
        let is_regular = f64::from(count) >= LEAST_SHARE * self.runs.len() as f64;
        (count >= LEAST_REGULAR && is_regular)
            .then(|| regular.into_iter().sum::<Duration>() / count)
    }

    /// Whether most changes are more than the smallest one.
    fn varies(&self) -> bool {
        let changes = || self.runs.iter().map(|run| run.change);
        let Some(step) = changes().reduce(f64::min) else {
            return false;
        };
        let more = changes().filter(|change| *change > MORE_THAN_A_STEP * step);
        more.count() as f64 >= LEAST_CHANGES * self.runs.len() as f64
    }

    /// The mean run, each weighted by its length: ΣL²/ΣL. `None` if there are too few runs, if most runs are
    /// as short as the time between two polls, or if steady power may have caused the runs.
    ///
    /// A moment falls into a run of length L with a probability in proportion to L. ΣL²/ΣL is therefore how
    /// long the value of any moment stays on average. The uncertainty of a mean over many runs follows it
    /// too: with values of variance σ², the mean over a time T has a variance of σ²·ΣL²/T². This equals the
    /// variance of T/(ΣL²/ΣL) independent values. The plain mean of the runs would understate both.
    fn irregular_run(&self) -> Option<Duration> {
        let count = self.runs.len() as f64;
        if count < f64::from(LEAST_REGULAR) {
            return None;
        }
        let share = |fits: &dyn Fn(&Run) -> bool| {
            let fitting = self.runs.iter().filter(|run| fits(run));
            fitting.count() as f64 / count
        };
        let question = self.asked_every.mul_f64(JITTER);
        let is_slow = share(&|run: &Run| run.length > question) >= LEAST_SHARE;
        let seconds = || self.runs.iter().map(|run| run.length.as_secs_f64());
        let squares: f64 = seconds().map(|length| length * length).sum();
        let weighted = Duration::try_from_secs_f64(squares / seconds().sum::<f64>()).ok()?;
        (is_slow && self.varies() && weighted <= LONGEST_IRREGULAR).then_some(weighted)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Polls a device every second while `values` last. The device shows each value for `interval` seconds.
    fn asked(interval: f64, values: &[f64]) -> Refresh {
        let mut refresh = Refresh::new(SECOND, None);
        for second in 0_u32.. {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a small number of a test"
            )]
            let index = (f64::from(second) / interval) as usize;
            let Some(value) = values.get(index) else {
                break;
            };
            refresh.see(SECOND * second, *value);
        }
        refresh
    }

    #[rstest]
    #[case(0.4, 1.0)]
    #[case(1.0, 1.0)]
    #[case(2.5, 2.5)]
    #[case(3.0, 3.0)]
    #[case(5.0, 5.0)]
    #[case(10.0, 10.0)]
    fn the_refresh_interval_is_seen_from_values_that_stay(
        #[case] true_one: f64,
        #[case] seen: f64,
    ) {
        let values: Vec<f64> = (0..40).map(|index| f64::from(index % 7)).collect();
        let interval = asked(true_one, &values).interval().as_secs_f64();
        assert!((interval / seen - 1.0).abs() < 0.1, "{interval}");
    }

    #[test]
    fn equal_values_in_a_row_hide_no_refresh() {
        let values: Vec<f64> = (0..60).map(|index| f64::from(index * 2 / 3)).collect();
        let interval = asked(3.0, &values).interval().as_secs_f64();
        assert!((interval - 3.0).abs() < 0.1, "{interval}");
    }

    #[test]
    fn steady_power_in_coarse_steps_is_not_a_slow_device() {
        // The value changes by one step now and then, after times of any length.
        let mut values = Vec::new();
        for (index, seconds) in [7, 31, 12, 55, 19, 3, 42, 26, 64, 38]
            .into_iter()
            .enumerate()
        {
            values.extend(vec![2.7 + 0.1 * (index % 2) as f64; seconds]);
        }
        let refresh = asked(1.0, &values);
        assert_eq!(refresh.interval(), SECOND);
        assert_eq!(refresh.age(SECOND * 500), Duration::ZERO);
        assert_eq!(asked(1.0, &[2.7; 500]).interval(), SECOND);
    }

    /// Polls a device every second for ten minutes. `interval` maps a number between 0 and 1 to the seconds
    /// until the device shows another power.
    fn asked_irregularly(seed: u64, interval: impl Fn(f64) -> f64) -> Refresh {
        let mut state = seed;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut refresh = Refresh::new(SECOND, None);
        let (mut next, mut watts) = (0.0, 0.0);
        for second in 0..600_u32 {
            while next <= f64::from(second) {
                watts = 2.7 + 3.6 * uniform();
                next += interval(uniform());
            }
            refresh.see(SECOND * second, watts);
        }
        refresh
    }

    #[test]
    fn long_irregular_refreshes_weigh_more() {
        for seed in 1..=40 {
            // Between 2 and 8 s: E[L²]/E[L] = 28/5 s.
            let evenly = asked_irregularly(seed, |share| 2.0 + 6.0 * share);
            let seconds = evenly.interval().as_secs_f64();
            assert!((4.5..8.0).contains(&seconds), "{seed}: {seconds} s");
            // At least 1 s, 6 s on average: 61/6 s.
            let by_chance = asked_irregularly(seed, |share| 1.0 - 5.0 * (1.0 - share).ln());
            let seconds = by_chance.interval().as_secs_f64();
            assert!((5.0..=15.0).contains(&seconds), "{seed}: {seconds} s");
        }
    }

    #[test]
    fn steady_load_in_coarse_steps_after_irregular_times_is_not_a_slow_device() {
        // First one step up and down, after a few seconds each. Then phases of a benchmark with any power.
        let seen = |runs: &[(usize, f64)]| {
            let values: Vec<f64> = runs
                .iter()
                .flat_map(|(seconds, watts)| vec![*watts; *seconds])
                .collect();
            asked(1.0, &values).interval()
        };
        let times = [3, 9, 5, 12, 4, 7, 2, 11, 6, 8];
        let up_and_down: Vec<(usize, f64)> = (0..10)
            .map(|index| (times[index], 3.0 + 0.1 * (index % 2) as f64))
            .collect();
        assert_eq!(seen(&up_and_down), SECOND);
        let phases: [(usize, f64); 6] = [
            (15, 3.0),
            (73, 6.0),
            (18, 3.5),
            (40, 3.0),
            (71, 5.0),
            (20, 3.0),
        ];
        assert_eq!(seen(&phases), SECOND);
    }

    #[test]
    fn a_value_ages_from_its_refresh_and_not_from_the_poll() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let refresh = asked(5.0, &values);
        // The last value came at 45 s.
        assert_eq!(refresh.age(SECOND * 45), Duration::ZERO);
        assert_eq!(refresh.age(SECOND * 49), SECOND * 4);
        assert_eq!(refresh.age(SECOND * 90), SECOND * 4);
    }

    #[test]
    fn the_user_s_interval_counts_unless_polls_or_observed_refreshes_are_longer() {
        let seen = |stated: Duration, each: u32| {
            let mut refresh = Refresh::new(SECOND, Some(stated));
            for second in 0..40 {
                refresh.see(SECOND * second, f64::from(second / each).powi(2));
            }
            assert_eq!(refresh.stated(), Some(stated.max(SECOND)));
            refresh.interval()
        };
        assert_eq!(seen(SECOND * 4, 1), SECOND * 4);
        assert_eq!(seen(SECOND / 2, 1), SECOND);
        assert_eq!(seen(SECOND, 5), SECOND * 5);
        // Whole watts that go up and down by one.
        let mut steady = Refresh::new(SECOND, Some(SECOND));
        for second in 0..60 {
            steady.see(SECOND * second, f64::from(second / 6 % 2));
        }
        assert_eq!(steady.interval(), SECOND);
    }
}
