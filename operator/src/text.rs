//! Numbers and names as text for people.

mod number;
mod span;
#[cfg(test)]
mod tests;

use std::net::Ipv6Addr;

use crate::api::BudgetResult;

pub use self::{
    number::{
        all_digits, at_most, beside, brief, confidence, figure, joule_unit, number, number_beside,
        rough, rounded, short_joule_unit,
    },
    span::{Span, board_range, brief_ratio, comparison, ratio},
};

/// Text in place of a winner if the winner depends on the board.
pub const DEPENDS_ON_BOARD: &str = "depends on board";

/// Host and port for a URL. An IPv6 address gets brackets (RFC 3986, 3.2.2).
#[must_use]
pub fn authority(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    }
}

/// The text in at most `most` bytes of UTF-8. A longer text is cut between two characters and ends with `…`.
#[must_use]
pub fn within_bytes(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(MARK.len());
    let end = (0..=room).rev().find(|end| text.is_char_boundary(*end));
    format!("{}{MARK}", &text[..end.unwrap_or_default()])
}

/// The text in at most `most` characters. A longer text ends with an ellipsis.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars()
        .take(most.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// The point as ` at POINT`; empty if there is only one point.
#[must_use]
pub fn at(point: &str, is_one_of_several: bool) -> String {
    if is_one_of_several {
        format!(" at {point}")
    } else {
        String::new()
    }
}

/// A limit with what belongs to it: `maxEnergyRatio against old`, `maxJoulesPerRequest with p99 ≤ 50 ms`.
#[must_use]
pub fn limit(budget: &BudgetResult) -> String {
    let against = budget.against.iter().map(|it| format!(" against {it}"));
    let target = budget.p99_milliseconds.iter();
    let target = target.map(|it| format!(" with p99 ≤ {} ms", all_digits(*it)));
    let parts: String = against.chain(target).collect();
    format!("{}{parts}", budget.limit)
}
