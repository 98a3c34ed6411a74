//! Shared by both roles: JSON answers, refusals, and the size limit of a body.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;

/// The largest body of a request, in bytes.
pub(crate) const MAXIMUM_BODY_BYTES: usize = 64 * 1024;

/// Maximum number of bytes of a refused body that are read and discarded: the limit of Go's server.
const DISCARDED_BYTES: usize = 256 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The reason why a request is not served. Its `Display` text goes to the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The body is not a valid payload.
    #[error("not a payload: {0}")]
    NoPayload(String),
    /// The body did not arrive in full.
    #[error("the body cannot be read")]
    Body,
    /// The body has more than `MAXIMUM_BODY_BYTES`.
    #[error("the body is larger than {MAXIMUM_BODY_BYTES} bytes")]
    TooLarge,
    /// The target of the request is `*` or a host.
    #[error("the target is not a path")]
    NoPath,
    /// There is nothing at the path.
    #[error("there is nothing at this path")]
    NotFound,
    /// The device has sent nothing yet.
    #[error("nothing is kept of this device")]
    NoDevice,
    /// The path supports other methods, which the value lists.
    #[error("only {0} is served here")]
    Method(&'static str),
    /// The maximum number of devices is reached.
    #[error("no more devices are kept")]
    Full,
    /// The balancer can connect to no backend.
    #[error("no backend answers")]
    NoBackend,
    /// A backend took the request and did not answer.
    #[error("the backend broke off")]
    BrokeOff,
    /// No backend answered the last check with 200.
    #[error("no backend is healthy")]
    Unhealthy,
}

/// The body of a refusal.
#[derive(Debug, Serialize)]
struct Fault {
    error: String,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoPayload(_) | Self::Body | Self::NoPath => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotFound | Self::NoDevice => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Full => StatusCode::INSUFFICIENT_STORAGE,
            Self::NoBackend | Self::BrokeOff => StatusCode::BAD_GATEWAY,
            Self::Unhealthy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json(
            self.status(),
            &Fault {
                error: self.to_string(),
            },
        );
        match self {
            Self::Method(methods) => {
                response
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static(methods));
            }
            // The rest of the body may not have been read.
            Self::TooLarge => {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => (),
        }
        response
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => (status, [(CONTENT_TYPE, JSON)], text).into_response(),
        Err(error) => {
            tracing::error!("cannot write JSON: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The body of a request, up to `MAXIMUM_BODY_BYTES`.
pub(crate) async fn read_body(request: &mut Request) -> Result<Bytes, Refusal> {
    if announced(request.headers()).is_some_and(|bytes| bytes > MAXIMUM_BODY_BYTES as u64) {
        return Err(refuse(request, Refusal::TooLarge).await);
    }
    match Limited::new(request.body_mut(), MAXIMUM_BODY_BYTES)
        .collect()
        .await
    {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(refuse(request, Refusal::TooLarge).await)
        }
        Err(_) => Err(Refusal::Body),
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads the rest of the body and returns the refusal. If a connection is closed with unread data, the client may lose
/// the answer.
pub(crate) async fn refuse(request: &mut Request, refusal: Refusal) -> Refusal {
    // A client with `Expect: 100-continue` has not sent the body, and must not be asked for it.
    if request.headers().contains_key(EXPECT) {
        return refusal;
    }
    let mut left = DISCARDED_BYTES;
    while let Some(Ok(frame)) = request.body_mut().frame().await {
        let read = frame.data_ref().map_or(0, Bytes::len);
        if read > left {
            break;
        }
        left -= read;
    }
    refusal
}
