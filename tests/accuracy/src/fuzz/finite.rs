//! Searches a value for NaN and infinity.

use std::fmt::Debug;

/// The first field of a value with NaN or infinity, from its `Debug` form without the texts in it. The `Debug` form
/// shows every field, also fields that serialisation skips, and writes such numbers in words.
pub(super) fn not_finite(value: &impl Debug) -> Option<String> {
    let text = format!("{value:?}");
    let mut outside = String::with_capacity(text.len());
    let mut inside = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => inside = !inside,
            '\\' if inside => {
                characters.next();
            }
            other if !inside => outside.push(other),
            _ => {}
        }
    }
    let at = find_word(&outside)?;
    let before = outside[..at].chars().rev().take(60).collect::<Vec<_>>();
    Some(before.into_iter().rev().collect())
}

/// Whether a text for people has NaN or infinity.
pub(super) fn names_none(text: &str) -> bool {
    find_word(text).is_some()
}

fn find_word(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    ["NaN", "inf"].into_iter().find_map(|word| {
        text.match_indices(word).map(|(at, _)| at).find(|at| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_count() {
        for fine in [
            format!("{:?}", not_finite(&(1.0, "NaN, inf", Some(2.0)))),
            format!("{:?}", not_finite(&"a \"quoted\" inf")),
            format!("{:?}", not_finite(&vec!["information"])),
        ] {
            assert_eq!(fine, "None");
        }
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(not_finite(&("text", Some(bad))).is_some());
            assert!(names_none(&format!("took {bad:.3} J")));
        }
        assert!(!names_none("information about NaNo"));
    }
}
