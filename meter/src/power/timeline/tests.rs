use proptest::prelude::*;

use super::*;

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn joules(time: f64, joules: f64) -> TrueReading {
    TrueReading {
        at: at(time),
        quantity: Quantity::Joules(joules),
    }
}

fn watts(time: f64, watts: f64) -> TrueReading {
    TrueReading {
        at: at(time),
        quantity: Quantity::Watts(watts),
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
    let told = timeline.joules_at(at(time), None).unwrap();
    assert!((told - expected).abs() < 1e-9, "{told} J at {time} s");
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
fn nothing_is_told_before_the_first_and_after_the_last_reading() {
    let timeline = timeline(&[watts(1.0, 2.0), watts(2.0, 2.0)]);
    assert_eq!(timeline.joules_at(at(0.9), None), None);
    assert_eq!(timeline.joules_at(at(2.1), None), None);
    assert_eq!(timeline.ends(), Some(at(2.0)));
}

#[test]
fn a_model_tells_when_between_two_readings_the_energy_was_drawn() {
    let timeline = timeline(&[joules(0.0, 0.0), joules(10.0, 80.0)]);
    let mut shape = Shape::default();
    // The model thinks of half of the true energy, nearly all of it in the last two seconds.
    for (time, modelled) in [(0.0, 0.0), (8.0, 8.0), (10.0, 40.0)] {
        shape.push(at(time), modelled);
    }
    let told = |time| timeline.joules_at(at(time), Some(&shape)).unwrap();
    for (time, expected) in [(4.0, 8.0), (8.0, 16.0), (9.0, 48.0), (10.0, 80.0)] {
        assert!((told(time) - expected).abs() < 1e-9, "{time}");
    }
}

#[test]
fn a_counter_that_stands_still_has_not_made_its_next_step_yet() {
    // 3.6 J a step, as of a plug that counts in milliwatt-hours.
    let timeline = timeline(&[joules(0.0, 36.0), joules(1.0, 36.0), joules(2.0, 39.6)]);
    assert_joules(&timeline, 1.0, 1.8);
    assert_joules(&timeline, 2.0, 3.6);
}

#[test]
fn what_is_lost_between_two_readings_is_an_interruption() {
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
    // A counter has counted through the same silence.
    assert_joules(
        &timeline(&[joules(0.0, 5.0), joules(300.0, 1505.0)]),
        300.0,
        1500.0,
    );
}

#[test]
fn the_node_s_own_limit_is_what_a_counter_may_rise_by() {
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
    // ±1 W about 4 W from one sample to the next, six samples a minute: σ = 1.41 W.
    let stated = of(&|i| if i % 2 == 0 { 3.0 } else { 5.0 });
    let expected = 2_f64.sqrt() / 4.0 / 6_f64.sqrt();
    assert!((stated / expected - 1.0).abs() < 0.1, "{stated} {expected}");
}

#[test]
fn what_no_later_time_needs_is_forgotten() {
    let mut timeline = timeline(&[joules(0.0, 0.0), joules(1.0, 1.0), joules(2.0, 2.0)]);
    timeline.forget_before(at(1.5));
    assert_eq!(timeline.begins(), Some(at(1.0)));
    assert_joules(&timeline, 1.5, 1.5);
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
            let told = timeline.joules_at(last.mul_f64(f64::from(index) / 500.0), shape).unwrap();
            prop_assert!(told >= before - 1e-9, "{told} after {before}");
            before = told;
        }
        let counted = timeline.joules_at(last, shape).unwrap();
        let truth = if last == at(time) { total - 100.0 } else { counted };
        prop_assert!((counted - truth).abs() < 1e-6, "{counted} {truth}");
    }
}
