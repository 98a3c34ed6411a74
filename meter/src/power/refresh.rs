//! How often an instrument's value is a new one, seen from how long it stays the same. Pure.
//!
//! A plug that is asked every second may measure every few seconds only, and answers with its last value in
//! between. What it says is then older than the question.

use std::collections::VecDeque;
use std::time::Duration;

/// Runs of equal values that are remembered.
const MOST_RUNS: usize = 32;
/// Fewer regular runs say nothing: by chance, two that differ little are seen soon.
const LEAST_REGULAR: u32 = 3;
/// A question may fall just before or just after a refresh, so that runs of one length differ by a question. A
/// quarter more is for questions that come late.
const JITTER: f64 = 1.25;
/// A device that refreshes regularly has at least this share of its runs near the shortest one. Runs that end by
/// chance, as those of steady power in coarse steps, have any length.
const LEAST_SHARE: f64 = 0.5;

/// What is known of an instrument's refreshes.
#[derive(Debug)]
pub(crate) struct Refresh {
    asked_every: Duration,
    is_told: bool,
    interval: Duration,
    value: Option<f64>,
    /// When the value was first seen.
    since: Duration,
    /// Whether it was seen to begin, and not there from the first question on.
    begun: bool,
    /// How long earlier values stayed, the oldest first.
    runs: VecDeque<Duration>,
}

impl Refresh {
    /// Of an instrument that is asked `asked_every`. `told` is what somebody says that it refreshes, if anybody does.
    pub(crate) fn new(asked_every: Duration, told: Option<Duration>) -> Self {
        Self {
            asked_every,
            is_told: told.is_some(),
            interval: told.unwrap_or(asked_every).max(asked_every),
            value: None,
            since: Duration::ZERO,
            begun: false,
            runs: VecDeque::new(),
        }
    }

    /// Takes what the instrument said at a time that is after all before.
    pub(crate) fn see(&mut self, at: Duration, value: f64) {
        if self
            .value
            .is_some_and(|last| last.total_cmp(&value).is_eq())
        {
            return;
        }
        let is_first = self.value.replace(value).is_none();
        if self.begun {
            if self.runs.len() >= MOST_RUNS {
                self.runs.pop_front();
            }
            self.runs.push_back(at.saturating_sub(self.since));
        }
        self.begun = !is_first;
        self.since = at;
        if let Some(interval) = self.regular_run().filter(|_| !self.is_told) {
            self.interval = interval.max(self.asked_every);
        }
    }

    /// Time between two refreshes: as told, else as seen last, else the time between two questions.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// How often it was seen to refresh.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// By how much the value may be older than the question at `at`, less what lies between two questions anyhow. A
    /// value that stays for longer than a refresh is a new one that is equal.
    pub(crate) fn age(&self, at: Duration) -> Duration {
        let oldest = self.interval.saturating_sub(self.asked_every);
        at.saturating_sub(self.since).min(oldest)
    }

    /// The mean of the runs near the shortest one, where there are enough of them. It is right for refreshes that are
    /// no whole number of questions apart: runs are then shorter and longer by turns.
    pub(crate) fn regular_run(&self) -> Option<Duration> {
        let shortest = *self.runs.iter().min()?;
        let longest = shortest + self.asked_every.mul_f64(JITTER);
        let regular: Vec<&Duration> = self.runs.iter().filter(|run| **run <= longest).collect();
        let count = u32::try_from(regular.len()).ok()?;
        let is_regular = f64::from(count) >= LEAST_SHARE * self.runs.len() as f64;
        (count >= LEAST_REGULAR && is_regular)
            .then(|| regular.into_iter().sum::<Duration>() / count)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Asks a device every second for as long as `values` last; each is shown for `interval` seconds.
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
    fn every_second_value_that_is_equal_to_the_last_hides_no_refresh() {
        let values: Vec<f64> = (0..60).map(|index| f64::from(index * 2 / 3)).collect();
        let interval = asked(3.0, &values).interval().as_secs_f64();
        assert!((interval - 3.0).abs() < 0.1, "{interval}");
    }

    #[test]
    fn steady_power_in_coarse_steps_is_no_slow_device() {
        // It changes by a step now and then, after times of any length.
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

    #[test]
    fn a_value_ages_from_its_refresh_on_and_not_from_the_question() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let refresh = asked(5.0, &values);
        // The last value came at 45 s.
        assert_eq!(refresh.age(SECOND * 45), Duration::ZERO);
        assert_eq!(refresh.age(SECOND * 49), SECOND * 4);
        assert_eq!(refresh.age(SECOND * 90), SECOND * 4);
    }

    #[test]
    fn what_the_user_says_counts_and_is_never_shorter_than_a_question() {
        let mut slow = Refresh::new(SECOND, Some(SECOND * 4));
        let mut fast = Refresh::new(SECOND, Some(SECOND / 2));
        for second in 0..20 {
            slow.see(SECOND * second, f64::from(second));
            fast.see(SECOND * second, f64::from(second));
        }
        assert_eq!(slow.interval(), SECOND * 4);
        assert_eq!(fast.interval(), SECOND);
    }
}
