use proptest::prelude::*;

use super::*;

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn joules(time: f64, joules: f64) -> TrueReading {
    TrueReading {
        at: at(time),
        quantity: PowerOrEnergy::Joules(joules),
    }
}

fn watts(time: f64, watts: f64) -> TrueReading {
    TrueReading {
        at: at(time),
        quantity: PowerOrEnergy::Watts(watts),
    }
}

fn timeline(readings: &[TrueReading]) -> Timeline {
    let mut timeline = Timeline::new(Duration::from_secs(10), None);
    for reading in readings {
        timeline.push(*reading).unwrap();
    }
    timeline
}

fn assert_joules(timeline: &Timeline, time: f64, expected: f64) {
    let reported = timeline.joules_at(at(time), None).unwrap();
    assert!(
        (reported - expected).abs() < 1e-9,
        "{reported} J at {time} s"
    );
}

#[test]
fn a_counter_s_energy_is_shared_out_evenly_between_its_readings() {
    let timeline = timeline(&[joules(1.0, 500.0), joules(11.0, 550.0), joules(21.0, 570.0)]);
    for (time, expected) in [
        (1.0, 0.0),
        (3.0, 10.0),
        (11.0, 50.0),
        (16.0, 60.0),
        (21.0, 70.0),
    ] {
        assert_joules(&timeline, time, expected);
    }
}

#[test]
fn power_samples_are_joined_by_straight_lines() {
    let timeline = timeline(&[watts(0.0, 2.0), watts(4.0, 6.0), watts(6.0, 6.0)]);
    for (time, expected) in [
        (0.0, 0.0),
        (2.0, 6.0),
        (4.0, 16.0),
        (5.0, 22.0),
        (6.0, 28.0),
    ] {
        assert_joules(&timeline, time, expected);
    }
}

#[test]
fn there_is_no_energy_before_the_first_and_after_the_last_reading() {
    let timeline = timeline(&[watts(1.0, 2.0), watts(2.0, 2.0)]);
    assert_eq!(timeline.joules_at(at(0.9), None), None);
    assert_eq!(timeline.joules_at(at(2.1), None), None);
    assert_eq!(timeline.ends(), Some(at(2.0)));
}

#[test]
fn a_model_distributes_the_energy_between_two_readings() {
    let timeline = timeline(&[joules(0.0, 0.0), joules(10.0, 80.0)]);
    let mut shape = Shape::default();
    // The model gives half of the true energy, nearly all of it in the last two seconds.
    for (time, modelled) in [(0.0, 0.0), (8.0, 8.0), (10.0, 40.0)] {
        shape.push(at(time), modelled);
    }
    let reported = |time| timeline.joules_at(at(time), Some(&shape)).unwrap();
    for (time, expected) in [(4.0, 8.0), (8.0, 16.0), (9.0, 48.0), (10.0, 80.0)] {
        assert!((reported(time) - expected).abs() < 1e-9, "{time}");
    }
}

#[test]
fn a_counter_that_stands_still_has_not_made_its_next_step_yet() {
    // 3.6 J per step, like a plug that counts in milliwatt-hours.
    let timeline = timeline(&[joules(0.0, 36.0), joules(1.0, 36.0), joules(2.0, 39.6)]);
    assert_joules(&timeline, 1.0, 1.8);
    assert_joules(&timeline, 2.0, 3.6);
}

/// The step after each second of a counter that a node of `watts` drives, in steps of `step` joules.
fn steps_seen(step: f64, watts: impl Fn(f64) -> f64) -> Vec<Option<f64>> {
    let mut timeline = Timeline::new(Duration::from_secs(1), None);
    let mut total = 1e6;
    (0..120)
        .map(|second| {
            let second = f64::from(second);
            total += watts(second);
            let shown = (total / step).floor() * step;
            timeline.push(joules(second, shown)).unwrap();
            timeline.step_joules()
        })
        .collect()
}

#[test]
fn the_step_of_a_counter_that_often_stands_still_is_known_after_twenty_polls() {
    // At 3 W it stands still in one second of six. Under load it rises by one or two steps each second.
    let seen = steps_seen(3.6, |second| if second < 60.0 { 3.0 } else { 6.0 });
    assert_eq!(seen[..20], [None; 20]);
    for step in &seen[20..] {
        let step = step.unwrap();
        assert!((step - 3.6).abs() < 1e-3, "{step} J");
    }
}

#[test]
fn the_step_is_smaller_than_a_rise_of_several_steps() {
    // Rises of 10 and 15 J.
    let mut timeline = Timeline::new(Duration::from_secs(1), None);
    for round in 0..10 {
        // Nine rises are too few.
        if round == 4 {
            assert_eq!(timeline.step_joules(), None);
        }
        for (second, total) in [(0.0, 0.0), (1.0, 10.0), (2.0, 10.0), (3.0, 25.0)] {
            let round = f64::from(round);
            let reading = joules(4.0 * round + second, 25.0 * round + total);
            timeline.push(reading).unwrap();
        }
    }
    assert!((timeline.step_joules().unwrap() - 5.0).abs() < 1e-3);
}

#[test]
fn a_counter_of_fine_steps_that_its_device_refreshes_seldom_is_not_coarse() {
    // Every other poll finds the old count. The rises have no common step.
    let mut seldom = Timeline::new(Duration::from_secs(1), None);
    let mut total = 0.0;
    for second in 0..60_u32 {
        if second % 2 == 0 {
            total += 6.0 + 0.37 * f64::from(second % 7) + 0.011 * f64::from(second % 5);
        }
        seldom.push(joules(f64::from(second), total)).unwrap();
    }
    assert!(seldom.step_joules().is_none_or(|step| step < 0.02));
    // A counter that never stands still has no known step, and neither has power.
    assert_eq!(steps_seen(0.5, |_| 3.0).last(), Some(&None));
    let power: Vec<_> = (0..60)
        .map(|second| watts(f64::from(second), 3.0))
        .collect();
    assert_eq!(timeline(&power).step_joules(), None);
}

#[test]
fn lost_energy_between_two_readings_is_an_interruption() {
    let after = |first, second| timeline(&[first]).push(second).unwrap_err();
    assert_eq!(
        after(joules(0.0, 90.0), joules(1.0, 4.0)),
        Interruption::WentBack {
            from_joules: 90.0,
            to_joules: 4.0
        }
    );
    assert!(matches!(
        after(joules(0.0, 0.0), joules(1.0, 262_143.0)),
        Interruption::Leapt { .. }
    ));
    assert!(matches!(
        after(watts(0.0, 5.0), watts(31.0, 5.0)),
        Interruption::Gap { .. }
    ));
    assert_eq!(
        after(watts(0.0, 5.0), joules(1.0, 5.0)),
        Interruption::ChangedKind
    );
    // A counter continues through the same gap.
    assert_joules(
        &timeline(&[joules(0.0, 5.0), joules(300.0, 1505.0)]),
        300.0,
        1500.0,
    );
}

#[test]
fn a_counter_may_rise_by_the_node_s_own_limit() {
    let mut timeline = Timeline::new(Duration::from_secs(1), Some(15.0));
    timeline.push(joules(0.0, 0.0)).unwrap();
    timeline.push(joules(1.0, 15.0)).unwrap();
    assert!(timeline.push(joules(2.0, 60.0)).is_err());
}

#[test]
fn steady_power_is_certain_and_varying_power_is_not() {
    let of = |watts_at: &dyn Fn(u32) -> f64| {
        let readings: Vec<_> = (0..60)
            .map(|i| watts(f64::from(i) * 10.0, watts_at(i)))
            .collect();
        timeline(&readings).sampling_uncertainty()
    };
    assert!(of(&|_| 4.0) < 1e-9);
    // ±1 W about 4 W from one sample to the next, six samples per minute: σ = 1.41 W.
    let stated = of(&|i| if i % 2 == 0 { 3.0 } else { 5.0 });
    let expected = 2_f64.sqrt() / 4.0 / 6_f64.sqrt();
    assert!((stated / expected - 1.0).abs() < 0.1, "{stated} {expected}");
}

#[test]
fn readings_that_no_later_time_needs_are_dropped() {
    let mut timeline = timeline(&[joules(0.0, 0.0), joules(1.0, 1.0), joules(2.0, 2.0)]);
    timeline.forget_before(at(1.5));
    assert_eq!(timeline.begins(), Some(at(1.0)));
    assert_joules(&timeline, 1.5, 1.5);
}

/// A power that changes every 0.26 s. A plug shows only the values at its refreshes.
struct Flicker {
    watts: Vec<f64>,
    joules: Vec<f64>,
}

impl Flicker {
    const STEP: f64 = 0.26;
    const SECONDS: u32 = 660;

    fn new(seed: u32) -> Self {
        let mut state = seed;
        let (mut watts, mut joules) = (Vec::new(), vec![0.0]);
        for step in 0_u32.. {
            if f64::from(step) * Self::STEP > f64::from(Self::SECONDS) + 1.0 {
                break;
            }
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let now = 2.7 + 3.6 * f64::from(state >> 8) / f64::from(1 << 24);
            joules.push(joules.last().unwrap() + now * Self::STEP);
            watts.push(now);
        }
        Self { watts, joules }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "virtual times are small and not negative"
    )]
    fn index(at: f64) -> usize {
        (at.max(0.0) / Self::STEP) as usize
    }

    fn watts(&self, at: f64) -> f64 {
        self.watts[Self::index(at)]
    }

    fn joules(&self, at: f64) -> f64 {
        let index = Self::index(at);
        self.joules[index] + self.watts[index] * (at - index as f64 * Self::STEP)
    }
}

/// Polls a plug every second that measures every `hold` seconds. Returns two root mean squares, both as
/// shares: the error of one minute's energy, and the uncertainty stated at the minute's end.
fn off_and_stated(hold: f64, refresh: impl Fn() -> Option<Refresh>) -> (f64, f64) {
    let (mut off, mut stated, mut minutes) = (0.0, 0.0, 0.0);
    for seed in 1..=60 {
        let truth = Flicker::new(seed);
        let phase = hold * f64::from(seed % 10) / 10.0;
        let mut timeline = Timeline::new(Duration::from_secs(1), None);
        timeline.refresh = refresh();
        for second in 0..Flicker::SECONDS {
            let now = f64::from(second);
            let measured = ((now - phase) / hold).floor() * hold + phase;
            timeline.push(watts(now, truth.watts(measured))).unwrap();
            if second >= 120 && second % 60 == 0 {
                let reported = |at: f64| {
                    timeline
                        .joules_at(Duration::from_secs_f64(at), None)
                        .unwrap()
                };
                let (reported, joules) = (
                    reported(now) - reported(now - 60.0),
                    truth.joules(now) - truth.joules(now - 60.0),
                );
                off += (reported / joules - 1.0).powi(2);
                stated += timeline.sampling_uncertainty().powi(2);
                minutes += 1.0;
            }
        }
    }
    ((off / minutes).sqrt(), (stated / minutes).sqrt())
}

#[rstest::rstest]
#[case(1.0, 0.6)]
#[case(3.0, 2.3)]
#[case(5.0, 4.0)]
#[case(10.0, 8.0)]
fn the_uncertainty_includes_the_time_between_a_plug_s_refreshes(
    #[case] hold: f64,
    #[case] too_small: f64,
) {
    let second = Duration::from_secs(1);
    // If each answer counted as a measurement, the stated uncertainty would be too small by about the refresh
    // interval.
    let (off, stated) = off_and_stated(hold, || None);
    println!(
        "{hold} s: off {off:.4}, stated {stated:.4} by questions: {:.1} times",
        off / stated
    );
    assert!(off > too_small * stated, "{hold} s: {off} and {stated}");
    // With the refresh interval from the answers, and from the user.
    for reported in [None, Some(second.mul_f64(hold))] {
        let (off, stated) = off_and_stated(hold, || Some(Refresh::new(second, reported)));
        println!("{hold} s: off {off:.4}, stated {stated:.4} by refreshes");
        assert!(off <= stated, "{hold} s: {off} and {stated}");
        assert!(stated <= 1.3 * off, "{hold} s: {off} and {stated}");
    }
}

#[test]
fn a_plug_s_old_power_has_the_time_of_its_measurement() {
    let mut timeline = Timeline::new(Duration::from_secs(1), None)
        .refreshed(Refresh::new(Duration::from_secs(1), None));
    let mut oldest = Duration::ZERO;
    for second in 0..120 {
        timeline
            .push(watts(f64::from(second), f64::from(second / 10)))
            .unwrap();
        let age = at(f64::from(second)).saturating_sub(timeline.measured_at().unwrap());
        oldest = if second < 60 {
            Duration::ZERO
        } else {
            oldest.max(age)
        };
    }
    assert_eq!(oldest, at(9.0));
    assert_eq!(timeline.ends(), Some(at(119.0)));
    // Steady power is measured again and again, and stays the same.
    for second in 120..300 {
        timeline.push(watts(f64::from(second), 11.0)).unwrap();
    }
    assert_eq!(timeline.measured_at(), Some(at(290.0)));
}

proptest! {
    #[test]
    fn energy_never_falls_and_adds_up_to_the_counter(
        steps in prop::collection::vec((0.05..30.0, 0.0..200.0), 1..40),
        modelled in prop::collection::vec(0.0..50.0, 200),
        with_model in any::<bool>(),
    ) {
        let mut timeline = Timeline::new(Duration::from_secs(1), Some(1e6));
        let (mut time, mut total) = (0.0, 100.0);
        timeline.push(joules(time, total)).unwrap();
        for (seconds, risen) in steps {
            time += seconds;
            total += risen;
            timeline.push(joules(time, total)).unwrap();
        }
        let last = timeline.ends().unwrap();
        let mut shape = Shape::default();
        let mut sum = 0.0;
        for (index, joules) in modelled.iter().enumerate() {
            sum += joules;
            shape.push(last.mul_f64(index as f64 / 199.0), sum);
        }
        let shape = with_model.then_some(&shape);
        let mut before = 0.0;
        for index in 0..=500 {
            let reported = timeline.joules_at(last.mul_f64(f64::from(index) / 500.0), shape).unwrap();
            prop_assert!(reported >= before - 1e-9, "{reported} after {before}");
            before = reported;
        }
        let counted = timeline.joules_at(last, shape).unwrap();
        let truth = if last == at(time) { total - 100.0 } else { counted };
        prop_assert!((counted - truth).abs() < 1e-6, "{counted} {truth}");
    }
}
