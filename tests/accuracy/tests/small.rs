//! `make accuracy` and `make fuzz` with fewer cases, in seconds. The tolerances are wider, because chance has more
//! effect with fewer cases.

use frugality_accuracy::{
    energy,
    fuzz::{self, Corpus, Parser},
    load_curves, releases,
    trials::{self, Contest},
};

const SEED: u64 = 20_261_121;

#[test]
fn joules_of_known_nodes_are_right_or_void() {
    let summary = energy::measure(SEED, 150).unwrap();
    assert_eq!(
        summary.failures(),
        Vec::<String>::new(),
        "\n{}",
        summary.text()
    );
    // Most runs must have a figure, because a product that voids every attempt has no wrong figure either.
    assert!(summary.runs() > 75, "\n{}", summary.text());
}

#[test]
fn winners_and_intervals_are_as_often_right_as_they_say() {
    let summary = trials::measure(&Contest::new().unwrap(), SEED, 1000).unwrap();
    assert_eq!(
        summary.failures(),
        Vec::<String>::new(),
        "\n{}",
        summary.text()
    );
}

#[test]
fn looks_together_are_as_often_wrong_as_one() {
    let looks = trials::measure_looks(SEED, 1000).unwrap();
    assert_eq!(looks.failures(), Vec::<String>::new(), "\n{}", looks.text());
}

#[test]
fn three_tries_together_are_as_often_wrong_as_one_may_be() {
    let again = trials::measure_tries(&Contest::new().unwrap(), SEED, 1000).unwrap();
    assert_eq!(again.failures(), Vec::<String>::new(), "\n{}", again.text());
}

#[test]
fn the_meters_part_of_an_interval_is_neither_too_narrow_nor_too_wide() {
    let meters = trials::measure_meters(&Contest::new().unwrap(), SEED, 1000).unwrap();
    assert_eq!(
        meters.failures(),
        Vec::<String>::new(),
        "\n{}",
        meters.text()
    );
}

#[test]
fn void_attempts_that_depend_on_the_outcome_are_noted() {
    let voids = trials::measure_voids(&Contest::new().unwrap(), SEED, 500).unwrap();
    assert_eq!(voids.failures(), Vec::<String>::new(), "\n{}", voids.text());
}

#[test]
fn a_release_at_the_margin_passes_as_seldom_as_promised() {
    let releases = releases::measure(SEED, 1000).unwrap();
    assert_eq!(
        releases.failures(),
        Vec::<String>::new(),
        "\n{}",
        releases.text()
    );
}

#[test]
fn the_figures_of_a_load_curve_are_as_often_right_as_they_say() {
    let curves = load_curves::measure(SEED, 300).unwrap();
    assert_eq!(
        curves.failures(),
        Vec::<String>::new(),
        "\n{}",
        curves.text()
    );
}

#[test]
fn damaged_text_makes_no_panic_and_no_number_that_is_none() {
    for parser in Parser::ALL {
        let corpus = Corpus::read(parser).unwrap();
        fuzz::quiet_panics();
        let summary = fuzz::run(parser, &corpus, SEED, 10_000);
        // Restores the panic hook, because a failure of this test must be printed.
        drop(std::panic::take_hook());
        let summary = summary.unwrap();
        assert!(
            summary.failures.is_empty(),
            "{parser:?} {:?}",
            summary.failures
        );
        // The parser must refuse some inputs but not all, because other damage tests nothing.
        let refused: u64 = summary
            .ends
            .iter()
            .filter(|(end, _)| end.starts_with("refused"))
            .map(|(_, count)| count)
            .sum();
        let share = refused as f64 / summary.inputs as f64;
        assert!((0.1..0.9).contains(&share), "{parser:?}: {share}");
        assert!(
            summary.ends.keys().any(|end| end.starts_with("Measured")),
            "{:?}",
            summary.ends
        );
    }
}
