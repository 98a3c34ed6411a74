//! Basic authentication (RFC 7617), if the settings contain credentials.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use subtle::ConstantTimeEq;

/// User and password, encoded as a client sends them.
pub(crate) struct Credentials(String);

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Credentials")
    }
}

impl Credentials {
    /// Reads `user:password`; `None` if there is no colon or no user.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (user, _password) = text.split_once(':')?;
        (!user.is_empty()).then(|| Self(BASE64_STANDARD.encode(text)))
    }

    /// Whether the request has the credentials, compared in constant time.
    fn are_in(&self, headers: &HeaderMap) -> bool {
        headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.split_once(' '))
            .is_some_and(|(scheme, token)| {
                scheme.eq_ignore_ascii_case("basic")
                    && bool::from(token.trim().as_bytes().ct_eq(self.0.as_bytes()))
            })
    }
}

/// Passes on only requests with the credentials.
pub(crate) async fn authenticate(
    State(credentials): State<Arc<Credentials>>,
    request: Request,
    next: Next,
) -> Response {
    if credentials.are_in(request.headers()) {
        return next.run(request).await;
    }
    (
        StatusCode::UNAUTHORIZED,
        [(
            WWW_AUTHENTICATE,
            "Basic realm=\"contacts\", charset=\"UTF-8\"",
        )],
        "A user and a password are needed\n",
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use rstest::rstest;

    #[rstest]
    #[case::right("Basic dXNlcjpwOnfDtnJk", true)]
    #[case::lower_case("basic dXNlcjpwOnfDtnJk", true)]
    #[case::wrong("Basic dXNlcjpwOndvcmQ=", false)]
    #[case::part("Basic dXNlcjpw", false)]
    #[case::scheme("Bearer dXNlcjpwOnfDtnJk", false)]
    #[case::nothing("", false)]
    fn only_the_credentials_let_through(#[case] header: &'static str, #[case] through: bool) {
        let credentials = Credentials::of("user:p:wörd").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static(header));
        assert_eq!(credentials.are_in(&headers), through);
    }
}
