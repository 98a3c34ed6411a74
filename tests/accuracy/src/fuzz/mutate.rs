//! Damages numbers, quoted texts, lines and bytes of an input.

use crate::random::Random;

/// Numbers that break arithmetic, and texts that are not numbers.
const WORDS: [&str; 8] = [
    "NaN", "-NaN", "nan", "Inf", "+Inf", "-Inf", "inf", "infinity",
];
/// Numbers that break arithmetic and are valid in every format.
const EXTREMES: [&str; 22] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "0.5",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "1e309",
    "1e-308",
    "5e-324",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "4294967296",
    "2147483648",
    "1e15",
    "65536",
];
/// Replacements for the value of a label or field.
const TEXTS: [&str; 14] = [
    "",
    "pi-1",
    "running",
    "terminated",
    "psys",
    "package",
    "Metered",
    "Modelled",
    "Fake",
    "max",
    "20s",
    "\\\\",
    "\\\"",
    "é\u{1F980}",
];
/// The maximum length of an input: a scrape of a small cluster, and much longer than a termination message.
const MAX_BYTES: usize = 64 * 1024;

/// Damages a text in one to four places, also with pieces of `other`. Half of all texts stay well-formed, because a
/// parser rejects most of the others early.
pub(super) fn damage(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let times = 1 + random.below(4);
    let keeps_form = random.chance(0.5);
    for _ in 0..times {
        if keeps_form {
            replace_number(input, &EXTREMES, random);
            continue;
        }
        match random.below(12) {
            0 => flip_bit(input, random),
            1 => replace_byte(input, random),
            2 => remove(input, random),
            3 => repeat(input, random),
            4 => splice(input, other, random),
            5 => replace_number(input, &EXTREMES, random),
            6 => replace_number(input, &WORDS, random),
            7 | 8 => replace_quoted(input, random),
            9 => repeat_line(input, random),
            10 => drop_line(input, random),
            _ => truncate(input, random),
        }
        input.truncate(MAX_BYTES);
    }
}

fn flip_bit(input: &mut [u8], random: &mut Random) {
    let at = random.below(input.len());
    let bit = random.below(8);
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn replace_byte(input: &mut [u8], random: &mut Random) {
    let at = random.below(input.len());
    let byte = random.of(*b"0123456789eE+-.{}[]\"\\,:# \n\tNaInf\0\xff");
    if let Some(place) = input.get_mut(at) {
        *place = byte;
    }
}

/// A piece of at most 40 bytes.
fn piece(input: &[u8], random: &mut Random) -> (usize, usize) {
    let from = random.below(input.len());
    let to = (from + 1 + random.below(40)).min(input.len());
    (from.min(to), to)
}

fn remove(input: &mut Vec<u8>, random: &mut Random) {
    let (from, to) = piece(input, random);
    input.drain(from..to);
}

fn repeat(input: &mut Vec<u8>, random: &mut Random) {
    let (from, to) = piece(input, random);
    let copy = input[from..to].to_vec();
    input.splice(to..to, copy);
}

fn splice(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let from = random.below(other.len());
    let to = (from + random.below(400)).min(other.len());
    let (place, end) = piece(input, random);
    input.splice(place..end, other[from.min(to)..to].iter().copied());
}

fn truncate(input: &mut Vec<u8>, random: &mut Random) {
    // Mostly near the end, because a parser rejects a text that is cut in its middle at once.
    let keep = if random.chance(0.5) {
        input.len().saturating_sub(random.below(20))
    } else {
        random.below(input.len() + 1)
    };
    input.truncate(keep);
}

/// Replaces the first number after a random place with one of `others` or with a similar number.
fn replace_number(input: &mut Vec<u8>, others: &[&str], random: &mut Random) {
    let from = random.below(input.len());
    let Some(start) = (from..input.len()).find(|at| {
        let follows = at
            .checked_sub(1)
            .and_then(|before| input.get(before))
            .is_some_and(|before| before.is_ascii_alphanumeric() || *before == b'.');
        input[*at].is_ascii_digit() && !follows
    }) else {
        return;
    };
    let is_part = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    let length = input[start..]
        .iter()
        .take_while(|byte| is_part(byte))
        .count();
    let old = String::from_utf8_lossy(&input[start..start + length]).into_owned();
    let new = match (random.below(3), old.parse::<f64>()) {
        (0, Ok(value)) => nearby(value, random),
        _ => others[random.below(others.len())].to_owned(),
    };
    input.splice(start..start + length, new.into_bytes());
}

fn nearby(value: f64, random: &mut Random) -> String {
    let changed = match random.below(4) {
        0 => value + 1.0,
        1 => (value - 1.0).abs(),
        2 => value * random.between(0.0, 3.0),
        _ => value * 10.0_f64.powf(random.between(-20.0, 20.0)),
    };
    if value.fract() == 0.0 && random.chance(0.7) {
        format!("{changed:.0}")
    } else {
        changed.to_string()
    }
}

/// Replaces the text between two quotes.
fn replace_quoted(input: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(input.len());
    let quote = |from: usize, input: &[u8]| {
        let found = input.get(from..)?.iter().position(|byte| *byte == b'"')?;
        Some(from + found)
    };
    let Some(start) = quote(from, input) else {
        return;
    };
    let Some(end) = quote(start + 1, input) else {
        return;
    };
    let text = random.of(TEXTS);
    input.splice(start + 1..end, text.bytes());
}

/// The line at a random place, with its line feed.
fn line(input: &[u8], random: &mut Random) -> (usize, usize) {
    let at = random.below(input.len());
    let start = input[..at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |before| before + 1);
    let end = input[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(input.len(), |after| at + after + 1);
    (start, end)
}

fn repeat_line(input: &mut Vec<u8>, random: &mut Random) {
    let (start, end) = line(input, random);
    let copy = input[start..end].to_vec();
    let (other, _) = line(input, random);
    input.splice(other..other, copy);
}

fn drop_line(input: &mut Vec<u8>, random: &mut Random) {
    let (start, end) = line(input, random);
    input.drain(start..end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_input_can_be_damaged() {
        let mut random = Random::new(1, 1, 1);
        for start in ["", "1", "\"", "a\n", "\"1\"\n"] {
            for _ in 0..5000 {
                let mut input = start.as_bytes().to_vec();
                damage(&mut input, b"", &mut random);
            }
        }
    }

    #[test]
    fn the_same_seed_does_the_same_damage() {
        let damaged = |index| {
            let mut input = b"one{label=\"text\"} 17\ntwo 3.5\n".to_vec();
            damage(&mut input, b"three 4\n", &mut Random::new(1, 1, index));
            input
        };
        assert_eq!(damaged(1), damaged(1));
        let different: std::collections::BTreeSet<_> = (0..100).map(damaged).collect();
        assert!(different.len() > 80);
    }
}
