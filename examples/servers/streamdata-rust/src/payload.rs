//! The payload of a device, and its receipt.

use serde::{Deserialize, Serialize, Serializer};

use crate::answers::Refusal;

/// The readings of one device. Every field is required; other fields are ignored.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Payload {
    name: String,
    device_id: String,
    patient_id: String,
    data: Vec<Reading>,
}

/// The values of one time.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Reading {
    hr: i64,
    bps: i64,
    bpd: i64,
    spo2: i64,
    custom: Custom,
    date: String,
}

/// The values that only some devices measure.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Custom {
    #[serde(serialize_with = "number")]
    tp: f64,
    rr: i64,
    etc: String,
}

/// The answer to a payload.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    status: &'static str,
    device_id: String,
    readings: usize,
}

impl Payload {
    /// Reads JSON. The device ID must not be empty, because a path must be able to contain it.
    pub(crate) fn read(json: &[u8]) -> Result<Self, Refusal> {
        let payload: Self =
            serde_json::from_slice(json).map_err(|error| Refusal::NoPayload(error.to_string()))?;
        if payload.device_id.is_empty() {
            return Err(Refusal::NoPayload("deviceId is empty".into()));
        }
        Ok(payload)
    }

    /// The ID of the device, never empty.
    pub(crate) fn device_id(&self) -> &str {
        &self.device_id
    }

    /// The answer to this payload.
    pub(crate) fn receipt(&self) -> Receipt {
        Receipt {
            status: "OK",
            device_id: self.device_id.clone(),
            readings: self.data.len(),
        }
    }
}

/// Serializes whole numbers without a fraction, as Go does.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // 2^53: up to here, f64 and i64 both represent every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[allow(clippy::cast_possible_truncation)] // whole, and in range
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const PAYLOAD: &str = r#"{"name":"n","deviceId":"d","patientId":"p","data":[{"hr":1,"bps":2,"bpd":3,"spo2":4,"custom":{"tp":10.5,"rr":6,"etc":"e"},"date":"t"}]}"#;

    #[test]
    fn it_is_written_as_it_was_read() {
        let payload = Payload::read(PAYLOAD.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&payload).unwrap(), PAYLOAD);
    }

    #[rstest]
    #[case("37", "37")]
    #[case("37.0", "37")]
    #[case("-1.25", "-1.25")]
    fn whole_numbers_have_no_fraction(#[case] read: &str, #[case] written: &str) {
        let text = |number| PAYLOAD.replace("10.5", number);
        let payload = Payload::read(text(read).as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&payload).unwrap(), text(written));
    }

    #[rstest]
    #[case(r#""name":"n","#, "", "missing field `name`")]
    #[case(r#""rr":6,"#, "", "missing field `rr`")]
    #[case(r#""hr":1"#, r#""hr":1.5"#, "not a payload: invalid type")]
    #[case(r#""deviceId":"d""#, r#""deviceId":"""#, "deviceId is empty")]
    fn what_is_wrong_is_said(#[case] from: &str, #[case] to: &str, #[case] said: &str) {
        let refusal = Payload::read(PAYLOAD.replace(from, to).as_bytes()).unwrap_err();
        assert!(refusal.to_string().contains(said), "{refusal}");
    }

    #[test]
    fn the_receipt_counts_readings() {
        let receipt = Payload::read(PAYLOAD.as_bytes()).unwrap().receipt();
        let text = r#"{"status":"OK","deviceId":"d","readings":1}"#;
        assert_eq!(serde_json::to_string(&receipt).unwrap(), text);
    }
}
