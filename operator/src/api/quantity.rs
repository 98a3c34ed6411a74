//! Durations and decimals as users write them.

use std::{borrow::Cow, str::FromStr};

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// Why a quantity could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a duration.
    #[error("`{0}` is not a duration; write for example 60s, 5m or 1h30m")]
    Duration(String),
    /// Not a decimal.
    #[error("`{0}` is not a decimal number; write for example 0.005 or 120")]
    Decimal(String),
}

/// A length of time such as `60s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HumanDuration(String);

impl HumanDuration {
    /// Length in seconds, ≥ 0.
    pub fn seconds(&self) -> Result<f64, QuantityError> {
        SignedDuration::from_str(&self.0)
            .ok()
            .map(|duration| duration.as_secs_f64())
            .filter(|seconds| *seconds >= 0.0)
            .ok_or_else(|| QuantityError::Duration(self.0.clone()))
    }
}

impl From<&str> for HumanDuration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for HumanDuration {
    fn schema_name() -> Cow<'static, str> {
        "HumanDuration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^([0-9]{1,6}(ms|s|m|h))+$",
            "maxLength": 16,
        })
    }
}

/// A non-negative decimal such as `0.005`. A benchmark contains it as a number, without quotes. It is stored with
/// the fewest digits that give this number, because messages repeat what the user wrote.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub struct Decimal(String);

/// A number, or a text that contains one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Text(String),
}

impl From<Written> for Decimal {
    fn from(written: Written) -> Self {
        Self(match written {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        })
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0.parse::<i64>(), self.0.parse::<f64>()) {
            (Ok(whole), _) => serializer.serialize_i64(whole),
            (Err(_), Ok(number)) if number.is_finite() => serializer.serialize_f64(number),
            _ => serializer.serialize_str(&self.0),
        }
    }
}

impl Decimal {
    /// The number, finite and ≥ 0.
    pub fn number(&self) -> Result<f64, QuantityError> {
        self.0
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| QuantityError::Decimal(self.0.clone()))
    }
}

impl From<&str> for Decimal {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Decimal {
    fn schema_name() -> Cow<'static, str> {
        "Decimal".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "minimum": 0,
            "maximum": 1e12,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        for (text, seconds) in [
            ("60s", 60.0),
            ("5m", 300.0),
            ("1h30m", 5400.0),
            ("250ms", 0.25),
            ("0s", 0.0),
        ] {
            assert_eq!(HumanDuration::from(text).seconds(), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn an_unreadable_quantity_gets_an_example() {
        let error = HumanDuration::from("soon").seconds().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`soon` is not a duration; write for example 60s, 5m or 1h30m"
        );
        assert!(HumanDuration::from("-5s").seconds().is_err());
        assert!(Decimal::from("NaN").number().is_err());
        assert!(Decimal::from("-1").number().is_err());
        assert_eq!(Decimal::from("0.005").number(), Ok(0.005));
    }
}
