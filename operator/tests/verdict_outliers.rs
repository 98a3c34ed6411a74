//! A disturbed block that passed every check. A note names the block, and the block still counts.

use super::common::{
    entries::{SPREAD, Trial, judged, ordered_ledger},
    two_with,
};
use frugality_measure::reading::Provenance;
use serde_json::json;

/// Notes of a run of rust, its control and python. `of` returns the factor on an entrant's figure in block 5.
fn notes(of: impl Fn(&str) -> f64) -> Vec<String> {
    notes_with(&Trial::default(), of)
}

/// The same for trials with the power of this one.
fn notes_with(power: &Trial, of: impl Fn(&str) -> f64) -> Vec<String> {
    let benchmark = two_with(&[("/trials/control", json!("rust"))]);
    let trials = ordered_ledger(&benchmark, |block, _, entrant| {
        let step = SPREAD[usize::try_from(block - 1).unwrap()];
        // The entrants have different spreads, because ratios need a spread too.
        let k = match entrant {
            "rust" => 0.003,
            "python" => -0.002,
            _ => 0.005,
        };
        let disturbed = if block == 5 { of(entrant) } else { 1.0 };
        Trial {
            gross: 0.000_17 * (k * step).exp() * disturbed,
            ..power.clone()
        }
    });
    judged(&benchmark, trials).status.notes
}

/// The spread of the pairs says nothing about other boards.
#[test]
fn with_modelled_power_the_note_has_no_ratio() {
    let modelled = Trial {
        provenance: Provenance::Modelled,
        model: None,
        meter_uncertainty: Some(0.1),
        ..Trial::default()
    };
    let notes = notes_with(
        &modelled,
        |entrant| if entrant == "rust" { 1.5 } else { 1.0 },
    );
    let named = notes.iter().find(|it| it.starts_with("Block 5")).unwrap();
    assert!(!named.contains("with this block"), "{named}");
}

#[test]
fn a_disturbed_block_is_named_with_the_ratio_with_and_without_it() {
    let of = |entrant: &str| if entrant == "rust" { 1.5 } else { 1.0 };
    let notes = notes(of);
    let named: Vec<_> = notes.iter().filter(|it| it.starts_with("Block ")).collect();
    assert_eq!(named.len(), 1, "{notes:?}");
    assert!(
        named[0].starts_with("Block 5 is an outlier: ")
            && named[0].contains("By chance 1 % of series have more than 18.4. rust / python is ")
            && named[0].contains(" with this block and ")
            && named[0].ends_with(" without it."),
        "{named:?}"
    );
}

#[test]
fn a_block_in_which_the_candidate_and_its_control_were_disturbed_alike_is_named_by_its_figure() {
    let notes = notes(|_| 1.5);
    let named = notes.iter().find(|it| it.starts_with("Block 5"));
    assert!(
        named.is_some_and(|it| it.contains("the deciding figure of ")),
        "{notes:?}"
    );
}

#[test]
fn blocks_that_differ_by_chance_are_not_named() {
    assert!(notes(|_| 1.0).iter().all(|it| !it.starts_with("Block ")));
}
