//! Limits in plain units.

use serde_json::{Map, Value};

/// What to write as a budget.
const UNITS: &str = "mJ=5, J=0.005, ms=20, rps=500, errors=0.01 or ratio=1.05";

/// Why budgets can't be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// No unit, or an unknown one.
    #[error("`{0}` is not a budget: write {UNITS}")]
    Unknown(String),
    /// No number, or a negative one.
    #[error("`{0}` has no limit: write a number of at least 0, for example {UNITS}")]
    Number(String),
    /// Two limits for one quantity.
    #[error("--budget {0} and another one limit the same quantity: leave one of them out")]
    Twice(String),
    /// A ratio to nothing, or to several images.
    #[error(
        "--budget {0} is a ratio of two images' energy: name the other image with one --against"
    )]
    Against(String),
}

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageLimit {
    /// As the user wrote it.
    text: String,
    /// Field of the budget.
    field: &'static str,
    /// In the unit of the field.
    most_or_least: f64,
}

/// Field of a ratio.
const RATIO: &str = "maxEnergyRatio";

impl ImageLimit {
    /// Reads `UNIT=LIMIT`.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        let unknown = || BudgetError::Unknown(text.to_owned());
        let (unit, number) = text.split_once('=').ok_or_else(unknown)?;
        let (field, exponent) = match unit.trim() {
            "mJ" => ("maxJoulesPerRequest", -3),
            "J" => ("maxJoulesPerRequest", 0),
            "ms" => ("maxMillisecondsPerRequest", 0),
            "rps" => ("minRequestsPerSecond", 0),
            "errors" => ("maxErrorRatio", 0),
            "ratio" => (RATIO, 0),
            _ => return Err(unknown()),
        };
        let number = number.trim();
        // The exponent is read with the number, so that 5 mJ are exactly 0.005 J.
        let has_exponent = number.contains(['e', 'E']);
        let number = if exponent == 0 || has_exponent {
            number.parse().map(|it: f64| it * 10f64.powi(exponent))
        } else {
            format!("{number}e{exponent}").parse()
        };
        let limit = number
            .ok()
            .filter(|it| it.is_finite() && *it >= 0.0)
            .ok_or_else(|| BudgetError::Number(text.to_owned()))?;
        Ok(Self {
            text: text.to_owned(),
            field,
            most_or_least: limit,
        })
    }
}

/// The budget of a candidate. `against` are the other candidates.
pub(super) fn budget(
    limits: &[ImageLimit],
    candidate: &str,
    against: &[String],
) -> Result<Option<Value>, BudgetError> {
    let mut budget = Map::new();
    for limit in limits {
        if limit.field == RATIO {
            let [against] = against else {
                return Err(BudgetError::Against(limit.text.clone()));
            };
            budget.insert("against".to_owned(), against.as_str().into());
        }
        // Without a fraction, as people write it.
        let whole = limit.most_or_least.to_string().parse::<i64>();
        let value = whole.map_or_else(|_| limit.most_or_least.into(), Value::from);
        if budget.insert(limit.field.to_owned(), value).is_some() {
            return Err(BudgetError::Twice(limit.text.clone()));
        }
    }
    if budget.is_empty() {
        return Ok(None);
    }
    budget.insert("candidate".to_owned(), candidate.into());
    Ok(Some(budget.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(limits: &[&str], against: &[&str]) -> Result<Option<Value>, BudgetError> {
        let limits: Vec<_> = limits
            .iter()
            .map(|it| ImageLimit::parse(it))
            .collect::<Result<_, _>>()?;
        let against: Vec<_> = against.iter().map(|it| (*it).to_owned()).collect();
        budget(&limits, "new", &against)
    }

    #[test]
    fn plain_units_become_fields() {
        let all = ["mJ=4.35", "ms=20", "rps=500", "errors=0.01", "ratio=1.05"];
        let expected = json!({
            "candidate": "new",
            "maxJoulesPerRequest": 0.00435,
            "maxMillisecondsPerRequest": 20,
            "minRequestsPerSecond": 500,
            "maxErrorRatio": 0.01,
            "maxEnergyRatio": 1.05,
            "against": "old",
        });
        assert_eq!(written(&all, &["old"]), Ok(Some(expected)));
        let joules = json!({"candidate": "new", "maxJoulesPerRequest": 0.005});
        assert_eq!(written(&["mJ=5"], &[]), Ok(Some(joules.clone())));
        assert_eq!(written(&["J=0.005"], &[]), Ok(Some(joules)));
        assert_eq!(written(&[], &[]), Ok(None));
    }

    #[test]
    fn what_is_no_budget_gets_what_to_write() {
        for (limits, against, words) in [
            (&["kWh=5"][..], &[][..], "write mJ=5, J=0.005"),
            (&["mj=5"], &[], "write mJ=5, J=0.005"),
            (&["5"], &[], "write mJ=5, J=0.005"),
            (&["mJ=five"], &[], "a number of at least 0"),
            (&["ms=-1"], &[], "a number of at least 0"),
            (&["ms=inf"], &[], "a number of at least 0"),
            (&["mJ=5", "J=1"], &[], "limit the same quantity"),
            (&["ratio=1.05"], &[], "with one --against"),
            (&["ratio=1.05"], &["a", "b"], "with one --against"),
        ] {
            let error = written(limits, against).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
