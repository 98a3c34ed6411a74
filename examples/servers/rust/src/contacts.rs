//! The HTTP side: all paths, and the answers of `/contacts/{key}` and `/healthz`.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};

use crate::authentication::{Credentials, authenticate};
use crate::database::{Contact, Database, DatabaseError};
use crate::dav::{dav, well_known};

/// The body of the answer for a missing contact.
pub(crate) const NO_CONTACT: &str = "There is no such contact\n";

const VCARD: HeaderValue = HeaderValue::from_static("text/vcard; charset=utf-8");

/// The server's router; with `credentials`, contacts require them.
pub(crate) fn router(database: Arc<Database>, credentials: Option<Credentials>) -> Router {
    let contact = get(contact).fallback(method_not_allowed);
    let mut contacts = Router::new()
        .route("/contacts/", contact.clone())
        .route("/contacts/{*key}", contact)
        .route("/dav", any(dav))
        .route("/dav/", any(dav))
        .route("/dav/{*path}", any(dav));
    if let Some(credentials) = credentials {
        contacts = contacts.layer(from_fn_with_state(Arc::new(credentials), authenticate));
    }
    contacts
        .route("/.well-known/carddav", any(well_known))
        .route("/healthz", get(health).fallback(method_not_allowed))
        .fallback(not_found)
        .with_state(database)
}

/// Error answers, the same text in every candidate.
enum Refusal {
    MalformedKey,
    NoContact,
    Database(DatabaseError),
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl IntoResponse for DatabaseError {
    fn into_response(self) -> Response {
        tracing::error!("{self}");
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "The database does not answer\n",
        )
            .into_response()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::MalformedKey => (
                StatusCode::BAD_REQUEST,
                "The key of a contact is a UUID: /contacts/12345678-9abc-def0-1234-56789abcdef0\n",
            )
                .into_response(),
            Self::NoContact => (StatusCode::NOT_FOUND, NO_CONTACT).into_response(),
            Self::Database(error) => error.into_response(),
        }
    }
}

async fn contact(
    State(database): State<Arc<Database>>,
    key: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    // A path without a key, or with a key that is not UTF-8, contains no UUID.
    let id = key
        .ok()
        .and_then(|Path(key)| row_of(&key, database.rows()))
        .ok_or(Refusal::MalformedKey)?;
    let contact = database.contact(id).await?.ok_or(Refusal::NoContact)?;
    Ok(contact_response(
        request.method(),
        request.headers(),
        contact,
    ))
}

/// The answer to GET or HEAD of a contact: the contact, or 304 if the client has it already.
pub(crate) fn contact_response(method: &Method, headers: &HeaderMap, contact: Contact) -> Response {
    let Ok(etag) = HeaderValue::try_from(format!("\"{}\"", contact.etag)) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if is_known(headers, contact.etag.as_bytes()) {
        let mut response = (StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response();
        if method == Method::HEAD {
            // axum would send 0 here. Only the length that GET would send is right (RFC 9110, 8.6).
            response
                .headers_mut()
                .insert(CONTENT_LENGTH, contact.vcard.len().into());
        }
        return response;
    }
    ([(ETAG, etag), (CONTENT_TYPE, VCARD)], contact.vcard).into_response()
}

async fn health(State(database): State<Arc<Database>>) -> Result<&'static str, Refusal> {
    database.check().await?;
    Ok("ok\n")
}

async fn not_found() -> impl IntoResponse {
    (StatusCode::NOT_FOUND, "There is nothing at this path\n")
}

async fn method_not_allowed() -> impl IntoResponse {
    (
        StatusCode::METHOD_NOT_ALLOWED,
        [(ALLOW, "GET, HEAD")],
        "Only GET and HEAD are served\n",
    )
}

/// The primary key for a UUID: its first 32 bits modulo `rows` ≥ 1, plus 1.
/// `None` if the key is not a UUID of 8-4-4-4-12 hexadecimal digits.
fn row_of(key: &str, rows: u32) -> Option<i32> {
    let well_formed = key.len() == 36
        && key.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if !well_formed {
        return None;
    }
    let number = u32::from_str_radix(key.get(..8)?, 16).ok()?;
    i32::try_from(1 + number % rows).ok()
}

/// Whether `If-None-Match` names this entity tag (without quotes), compared weakly.
pub(crate) fn is_known(headers: &HeaderMap, etag: &[u8]) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().any(|value| {
        let value = value.as_bytes();
        if value.trim_ascii() == b"*" {
            return true;
        }
        // Tags are inside quotes, commas and W/ are outside. A tag may contain a comma.
        let mut pieces = value.split(|byte| *byte == b'"').skip(1);
        while let (Some(tag), Some(_closed)) = (pieces.next(), pieces.next()) {
            if tag == etag {
                return true;
            }
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::first("00000000-0000-4000-8000-000000000000", Some(1))]
    #[case::last("0000270f-0000-4000-8000-000000000000", Some(10_000))]
    #[case::round_again("00002710-0000-4000-8000-000000000000", Some(1))]
    #[case::greatest("FFFFFFFF-ffff-4fff-bfff-ffffffffffff", Some(7_296))]
    #[case::no_hyphens("00000000000040008000000000000000", None)]
    #[case::braces("{00000000-0000-4000-8000-000000000000}", None)]
    #[case::not_hexadecimal("0000000g-0000-4000-8000-000000000000", None)]
    #[case::signed("+0000000-0000-4000-8000-000000000000", None)]
    #[case::wide_characters("é000000-0000-4000-8000-000000000000", None)]
    #[case::empty("", None)]
    fn a_uuid_stands_for_a_row(#[case] key: &str, #[case] row: Option<i32>) {
        assert_eq!(row_of(key, 10_000), row);
    }

    #[rstest]
    #[case::one(&[r#""a1""#], true)]
    #[case::weak(&[r#"W/"a1""#], true)]
    #[case::list(&[r#""b2", W/"a1""#], true)]
    #[case::list_without_spaces(&[r#""b2","a1""#], true)]
    #[case::comma_in_a_tag(&[r#""b,2", "a1""#], true)]
    #[case::second_header(&[r#""b2""#, r#""a1""#], true)]
    #[case::anything(&[" * "], true)]
    #[case::other(&[r#""b2""#], false)]
    #[case::between_two_tags(&[r#""b2"a1"c3""#], false)]
    #[case::unquoted(&["a1"], false)]
    #[case::unclosed(&[r#""a1"#], false)]
    #[case::star_as_a_tag(&[r#""*""#], false)]
    #[case::empty(&[""], false)]
    #[case::none(&[], false)]
    fn if_none_match_is_compared_weakly(#[case] values: &[&str], #[case] known: bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_NONE_MATCH, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(is_known(&headers, b"a1"), known);
    }
}
