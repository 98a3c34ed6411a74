//! What an input must not do.

pub(super) fn require(problem: Option<String>, what: &str) -> Result<(), String> {
    problem.map_or(Ok(()), |field| {
        Err(format!(
            "{what} has NaN or infinity: {}",
            last_field(&field)
        ))
    })
}

/// The last field name of a text.
pub(super) fn last_field(text: &str) -> &str {
    text.rsplit([',', '{', '['])
        .map(str::trim)
        .find(|part| part.contains(':'))
        .unwrap_or(text)
}
