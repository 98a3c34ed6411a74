//! One request as a k6 script, which can be sent at a rate before earlier requests are answered.

use serde_json::json;

/// One request that is sent repeatedly.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRequest {
    /// HTTP method.
    pub method: String,
    /// Header names and values. Values of one name are joined by commas (RFC 9110, 5.3).
    pub headers: Vec<(String, String)>,
    /// The body of each request, if it has one.
    pub body: Option<String>,
    /// Status codes that count as success.
    pub expected_status: Vec<u16>,
    /// Longest time to wait for the answer; seconds.
    pub timeout_seconds: f64,
}

/// The script that sends one request. As in Fortio, each {uuid} in URL and body is replaced by a new UUID for
/// every request, redirects count as answers, and a body is read and discarded.
const TEMPLATE: &str = "import http from 'k6/http';

const request = REQUEST;

http.setResponseCallback(http.expectedStatuses(...request.expectedStatus));
export const options = { discardResponseBodies: true, maxRedirects: 0 };

function fresh(text) {
  return text && text.includes('{uuid}') ? text.replaceAll('{uuid}', () => crypto.randomUUID()) : text;
}

export default function () {
  http.request(request.method, fresh(__ENV.URL), fresh(request.body), {
    headers: request.headers,
    timeout: request.timeout,
  });
}
";

impl OpenRequest {
    /// The script. It takes scheme, host, port and path from `__ENV.URL`.
    #[must_use]
    pub fn script(&self) -> String {
        let mut headers = serde_json::Map::new();
        for (name, value) in &self.headers {
            let joined = match headers.get(name).and_then(|known| known.as_str()) {
                Some(known) => format!("{known}, {value}"),
                None => value.clone(),
            };
            headers.insert(name.clone(), json!(joined));
        }
        let request = json!({
            "method": self.method,
            "headers": headers,
            "body": self.body,
            "expectedStatus": self.expected_status,
            "timeout": format!("{}ms", (1000.0 * self.timeout_seconds).round()),
        });
        TEMPLATE.replacen("REQUEST", &request.to_string(), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> OpenRequest {
        OpenRequest {
            method: "PUT".into(),
            headers: vec![("Accept".into(), "a".into()), ("Accept".into(), "b".into())],
            body: Some("'\\\n${x} REQUEST".into()),
            expected_status: vec![200, 404],
            timeout_seconds: 0.25,
        }
    }

    #[test]
    fn every_byte_of_a_request_is_data_and_not_code() {
        let script = request().script();
        let data = "const request = {\"body\":\"'\\\\\\n${x} REQUEST\",\"expectedStatus\":[200,404],\
            \"headers\":{\"Accept\":\"a, b\"},\"method\":\"PUT\",\"timeout\":\"250ms\"};";
        assert!(script.contains(data), "{script}");
    }
}
