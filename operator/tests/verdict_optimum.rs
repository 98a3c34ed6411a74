//! The points of a sweep at which a candidate may do best contain the true best point as often as promised.

use crate::common::{
    entries::Trial,
    noise::Noise,
    sweep::{at, judged_over},
};

#[test]
fn the_true_best_point_is_among_the_reported_points() {
    let benchmark = at(&[1, 2, 4, 8], &[]);
    // 4 connections are best by a little. The rounds drift by far more.
    let truth = |connections: u32| match connections {
        4 => 103.0,
        8 => 102.0,
        _ => 100.0,
    };
    let mut noise = Noise(7);
    let (runs, mut held, mut reported) = (400, 0, 0);
    for _ in 0..runs {
        let drift: Vec<f64> = (0..5).map(|_| (0.3 * noise.next()).exp()).collect();
        let cell = std::cell::RefCell::new(&mut noise);
        let plan = judged_over(&benchmark, |connections, block, _| Trial {
            requests_per_second: truth(connections)
                * drift[usize::try_from(block - 1).unwrap() / 4]
                * (0.01 * cell.borrow_mut().next()).exp(),
            ..Trial::default()
        });
        let best = plan.status.sweep[0]
            .most_requests_per_second
            .clone()
            .unwrap();
        held += i32::from(best.among.iter().any(|point| point == "c4-max"));
        reported += best.among.len();
    }
    // At least 95 %, less three standard errors of 400 runs.
    assert!(
        f64::from(held) >= (0.95 - 0.033) * f64::from(runs),
        "{held} of {runs}"
    );
    // The reported points are informative: without the pairs, the drift would hide every difference.
    assert!(reported < 3 * 400, "{reported}");
}

#[test]
fn points_that_are_separated_as_a_pair_are_not_separated_among_nine() {
    let among = |connections: &[i32]| {
        let benchmark = at(connections, &[]);
        let points = connections.len();
        let last = u32::try_from(*connections.last().unwrap()).unwrap();
        let plan = judged_over(&benchmark, |connections, block, _| {
            let round = usize::try_from(block - 1).unwrap() / points;
            // Over five rounds the logarithms' differences are k·{−2 … 2} about 4·k·√2.5/√5, which gives t₄ =
            // 4. This is more than the 2.78 of 5 %, and less than the 5.6 of an eighth of 5 %.
            let k = 0.01;
            let spread = k * (f64::from(u32::try_from(round).unwrap()) - 2.0);
            let apart = -4.0 * k * 2.5_f64.sqrt() / 5_f64.sqrt();
            let less = if connections == last {
                0.0
            } else {
                apart + spread
            };
            Trial {
                requests_per_second: 100.0 * less.exp(),
                ..Trial::default()
            }
        });
        plan.status.sweep[0]
            .most_requests_per_second
            .clone()
            .unwrap()
            .among
    };
    assert_eq!(among(&[1, 2]), ["c2-max"]);
    assert_eq!(among(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).len(), 9);
}

#[test]
fn thirty_two_equal_points_are_all_reported() {
    let benchmark = at(&(1..=32).collect::<Vec<_>>(), &[]);
    let plan = judged_over(&benchmark, |_, _, _| Trial::default());
    let best = plan.status.sweep[0].most_requests_per_second.as_ref();
    assert_eq!(best.unwrap().among.len(), 32);
}
