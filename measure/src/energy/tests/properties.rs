//! Properties of every node, for any power and any times of readings.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// Times on this grid are exact in a double. Shifting them changes nothing.
const TICKS_PER_SECOND: f64 = 1024.0;

fn seconds(ticks: u32) -> f64 {
    f64::from(ticks) / TICKS_PER_SECOND
}

/// A node that is read at irregular times and draws another power after each reading, and windows anywhere in
/// between.
#[derive(Clone, Debug)]
pub(super) struct Node {
    steps: Vec<(u32, f64)>,
    cuts: [u32; 6],
}

pub(super) fn any_node() -> impl Strategy<Value = Node> {
    let steps = prop::collection::vec((200_u32..3000, 0.1..10.0_f64), 30..80);
    steps.prop_flat_map(|steps| {
        let total: u32 = steps.iter().map(|(ticks, _)| ticks).sum();
        let cuts = prop::collection::btree_set(0..=total, 6);
        cuts.prop_map(move |cuts| {
            let cuts: Vec<u32> = cuts.into_iter().collect();
            Node {
                steps: steps.clone(),
                cuts: cuts.try_into().unwrap(),
            }
        })
    })
}

fn reading(at: f64, joules: f64) -> Reading {
    let mut reading = truth(0.0, 1.0);
    reading.scraped_at_unix_seconds = T0 + at + 0.25;
    reading.meter_unix_seconds = Some(T0 + at);
    reading.node_joules = joules;
    reading.active_joules = Some(joules * 0.75);
    reading.idle_joules = Some(joules * 0.25);
    for (uid, share) in [(CANDIDATE, 0.5), (DATABASE, 0.125), (NEIGHBOUR, 0.0625)] {
        let pod = reading.pods.get_mut(uid).unwrap();
        pod.joules = Some(joules * share);
        pod.cpu_seconds = Some(joules * share / 4.0);
    }
    reading
}

impl Node {
    pub(super) fn lab(&self) -> Lab {
        let (mut at, mut joules) = (0, 100.0);
        let mut readings = vec![reading(0.0, joules)];
        for (ticks, watts) in &self.steps {
            at += ticks;
            joules += watts * seconds(*ticks);
            readings.push(reading(seconds(at), joules));
        }
        let at = |index: usize| seconds(self.cuts[index]);
        Lab {
            readings,
            idle_before: window(at(0), at(1)),
            measured: window(at(2), at(3)),
            idle_after: window(at(4), at(5)),
            limits: Limits {
                min_window_seconds: 0.0,
                min_intervals: 0.0,
                ..Limits::new(20.0)
            },
            ..Lab::read_every(60.0)
        }
    }
}

fn shift(lab: &mut Lab, by: f64) {
    for window in [&mut lab.idle_before, &mut lab.measured, &mut lab.idle_after] {
        window.start_unix_seconds += by;
        window.end_unix_seconds += by;
    }
    for reading in &mut lab.readings {
        reading.scraped_at_unix_seconds += by;
        reading.meter_unix_seconds = reading.meter_unix_seconds.map(|at| at + by);
    }
}

/// JSON has no infinities and no NaN: serde writes them as null. An absent figure is never written as null.
fn is_finite(figures: &EnergyFigures) -> bool {
    !serde_json::to_string(figures).unwrap().contains("null")
}

proptest! {
    #[test]
    fn energies_of_adjacent_windows_add_up(node in any_node(), share in 0.01..0.99_f64) {
        let mut lab = node.lab();
        let whole = lab.measured;
        let middle = whole.start_unix_seconds + whole.seconds() * share;
        prop_assume!(whole.start_unix_seconds < middle && middle < whole.end_unix_seconds);
        let together = lab.unchecked().unwrap();
        lab.measured = Window { end_unix_seconds: middle, ..whole };
        let first = lab.unchecked().unwrap();
        lab.measured = Window { start_unix_seconds: middle, ..whole };
        let second = lab.unchecked().unwrap();
        let sum = first.node_joules + second.node_joules;
        prop_assert!((together.node_joules - sum).abs() < 1e-9, "{} {sum}", together.node_joules);
        let given = |figures: EnergyFigures| figures.attributed.unwrap().candidate_joules;
        prop_assert!((given(together) - given(first) - given(second)).abs() < 1e-9);
    }

    #[test]
    fn energy_lies_between_the_least_and_the_most_power(node in any_node()) {
        let lab = node.lab();
        let figures = lab.unchecked().unwrap();
        let powers = node.steps.iter().map(|(_, watts)| *watts);
        let (least, most) = powers.fold((f64::MAX, 0.0_f64), |(l, m), w| (l.min(w), m.max(w)));
        let watts = [
            figures.node_joules / lab.measured.seconds(),
            figures.idle_before_watts,
            figures.idle_after_watts,
        ];
        // A window of one tick keeps ten digits of a counter's difference.
        prop_assert!(watts.iter().all(|w| (least - 1e-6..=most + 1e-6).contains(w)), "{watts:?}");
        prop_assert!(figures.net_joules.is_none_or(|net| net > 0.0 && net <= figures.node_joules));
        prop_assert_eq!(figures.net_joules.is_none(), figures.net_withheld.is_some());
    }

    #[test]
    fn shifting_all_times_changes_nothing(node in any_node(), ticks in -1_000_000_000..1_000_000_000_i32) {
        let mut lab = node.lab();
        let before = lab.unchecked().unwrap();
        shift(&mut lab, f64::from(ticks) / TICKS_PER_SECOND);
        let after = EnergyFigures { brackets: before.brackets, ..lab.unchecked().unwrap() };
        prop_assert_eq!(after, before);
    }

    #[test]
    fn the_order_of_readings_does_not_matter(
        node in any_node(),
        swaps in prop::collection::vec(any::<(Index, Index)>(), 1..200),
    ) {
        let mut lab = node.lab();
        let before = lab.unchecked();
        for (a, b) in swaps {
            let count = lab.readings.len();
            lab.readings.swap(a.index(count), b.index(count));
        }
        prop_assert_eq!(lab.unchecked(), before);
    }

    #[test]
    fn scraping_one_reading_twice_changes_nothing(
        node in any_node(),
        again in prop::collection::vec(any::<Index>(), 1..40),
    ) {
        let mut lab = node.lab();
        let before = lab.unchecked();
        for index in again {
            let repeat = index.get(&lab.readings).clone();
            let scraped_at_unix_seconds = repeat.scraped_at_unix_seconds + 0.125;
            lab.readings.push(Reading { scraped_at_unix_seconds, ..repeat });
        }
        prop_assert_eq!(lab.unchecked(), before);
    }

    #[test]
    fn no_figure_is_ever_infinite_or_no_number(node in any_node(), successes in 0..3_u64) {
        let mut lab = node.lab();
        lab.successes = successes;
        prop_assert!(is_finite(&lab.unchecked().unwrap()));
    }

    #[test]
    fn any_readings_give_finite_figures_or_a_reason(
        node in any_node(),
        stock in any::<bool>(),
        restarted in any::<bool>(),
        broken in prop::collection::vec((any::<Index>(), 0..6_u8, 0.0..1e6_f64), 0..3),
    ) {
        let mut lab = node.lab();
        if stock {
            lab = lab.into_stock_kepler();
        }
        if restarted {
            lab.restarted_pods = pods(&[CANDIDATE]);
        }
        lab.limits.max_node_watts = Some(1e9);
        for (index, kind, value) in broken {
            let count = lab.readings.len();
            let reading = &mut lab.readings[index.index(count)];
            match kind {
                0 => reading.node_joules = value,
                1 => reading.active_joules = None,
                2 => drop(reading.pods.remove(CANDIDATE)),
                3 => reading.scraped_at_unix_seconds = T0 + value / 1e4,
                4 => drop(reading.meter_unix_seconds.replace(T0 + value / 1e4)),
                _ => drop(lab.readings.remove(index.index(count))),
            }
        }
        match lab.evaluate() {
            Ok(figures) => prop_assert!(is_finite(&figures)),
            Err(void) => prop_assert!(!void.to_string().contains("NaN"), "{void}"),
        }
    }
}
