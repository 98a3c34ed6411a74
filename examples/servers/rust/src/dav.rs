//! The address book over CardDAV (RFC 6352): every method below `/dav`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CONTENT_ENCODING, CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH,
    LOCATION,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::contacts::{NO_CONTACT, contact_response, is_known};
use crate::database::{Database, DatabaseError, Deleted, Entry, PAGE_ROWS, Put};
use crate::properties::{
    AddressData, Facts, MAXIMUM_BYTES, MULTISTATUS_END, Plan, Resource, Wanted, contact_name,
    error_body, multistatus_begin, write_status,
};
use crate::report::{Filter, Report, Scope};
use crate::vcard::{VcardFault, identify};
use crate::xml;

const XML: HeaderValue = HeaderValue::from_static("application/xml; charset=utf-8");
const DEPTH: HeaderName = HeaderName::from_static("depth");
const DAV: HeaderName = HeaderName::from_static("dav");

/// Error answers of the address book, the same bytes in every candidate.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A sentence.
    Plain(StatusCode, &'static str),
    /// An element that names the failed precondition of an RFC.
    Condition(StatusCode, String),
    /// The resource does not support the method; the value lists the methods that it supports.
    Method(&'static str),
    /// The database gave no answer.
    Database(DatabaseError),
}

impl From<DatabaseError> for Fault {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        match self {
            Self::Plain(status, text) => (status, text).into_response(),
            Self::Condition(status, condition) => {
                (status, [(CONTENT_TYPE, XML)], error_body(&condition)).into_response()
            }
            Self::Method(allow) => (
                StatusCode::METHOD_NOT_ALLOWED,
                [(ALLOW, allow)],
                "This resource does not take that method\n",
            )
                .into_response(),
            Self::Database(error) => error.into_response(),
        }
    }
}

const NOT_FOUND: Fault = Fault::Plain(StatusCode::NOT_FOUND, "There is nothing at this path\n");
const NO_SUCH_CONTACT: Fault = Fault::Plain(StatusCode::NOT_FOUND, NO_CONTACT);
const CHANGED: Fault = Fault::Plain(
    StatusCode::PRECONDITION_FAILED,
    "The contact is not in the state that the request expects\n",
);
const TOO_LARGE: Fault = Fault::Plain(
    StatusCode::PAYLOAD_TOO_LARGE,
    "The body of a request has 1048576 bytes at most\n",
);

/// `/.well-known/carddav` (RFC 6764): the start of discovery.
pub(crate) async fn well_known() -> impl IntoResponse {
    (StatusCode::MOVED_PERMANENTLY, [(LOCATION, "/dav/")])
}

/// Everything below `/dav`.
pub(crate) async fn dav(State(database): State<Arc<Database>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    // Read the body in every case, because an unread body would end the connection.
    let body = match read(body).await {
        Ok(body) => body,
        Err(fault) => return fault.into_response(),
    };
    let Some(resource) = Resource::at(path) else {
        let fault = if head.method == Method::PUT {
            Fault::Plain(
                StatusCode::CONFLICT,
                "Contacts are kept in /dav/addressbooks/contacts/, under names of 1 to 255 bytes\n",
            )
        } else {
            NOT_FOUND
        };
        return fault.into_response();
    };
    let mut response = answer(database, &resource, &head, body)
        .await
        .unwrap_or_else(IntoResponse::into_response);
    if !matches!(resource, Resource::Contact(_))
        && !path.ends_with('/')
        && let Ok(href) = HeaderValue::try_from(resource.href())
    {
        // The path of a collection ends with a slash (RFC 4918, 5.2).
        response.headers_mut().insert(CONTENT_LOCATION, href);
    }
    response
}

async fn answer(
    database: Arc<Database>,
    resource: &Resource,
    head: &Parts,
    body: Option<Vec<u8>>,
) -> Result<Response, Fault> {
    match (head.method.as_str(), resource) {
        ("OPTIONS", _) => Ok((
            [
                (DAV, HeaderValue::from_static("1, 3, addressbook")),
                (ALLOW, HeaderValue::from_static(resource.allow())),
            ],
            "",
        )
            .into_response()),
        ("PROPFIND", _) => propfind(database, resource, &head.headers, body).await,
        ("REPORT", Resource::Book | Resource::Contact(_)) => {
            report(database, resource, &head.headers, body).await
        }
        ("GET" | "HEAD", Resource::Contact(name)) => get(&database, name, head).await,
        ("PUT", Resource::Contact(name)) => put(&database, name, &head.headers, body).await,
        ("DELETE", Resource::Contact(name)) => delete(&database, name, &head.headers).await,
        _ => Err(Fault::Method(resource.allow())),
    }
}

async fn get(database: &Database, name: &str, head: &Parts) -> Result<Response, Fault> {
    let contact = database.named(name).await?.ok_or(NO_SUCH_CONTACT)?;
    if !is_current(&head.headers, Some(&contact.etag)) {
        return Err(CHANGED);
    }
    Ok(contact_response(&head.method, &head.headers, contact))
}

async fn put(
    database: &Database,
    name: &str,
    headers: &HeaderMap,
    body: Option<Vec<u8>>,
) -> Result<Response, Fault> {
    let unsupported = || {
        Fault::Condition(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "<C:supported-address-data/>".to_owned(),
        )
    };
    if headers.contains_key(CONTENT_RANGE) {
        return Err(Fault::Plain(
            StatusCode::BAD_REQUEST,
            "A contact is written as a whole\n",
        ));
    }
    if !is_vcard(headers) {
        return Err(unsupported());
    }
    let body = body.ok_or_else(|| {
        Fault::Condition(
            StatusCode::PAYLOAD_TOO_LARGE,
            "<C:max-resource-size/>".to_owned(),
        )
    })?;
    let (vcard, uid) = identify(&body).map_err(|fault| match fault {
        VcardFault::Version => unsupported(),
        VcardFault::Invalid => {
            Fault::Condition(StatusCode::FORBIDDEN, "<C:valid-address-data/>".to_owned())
        }
    })?;
    let allowed = |etag: Option<&str>| may_change(headers, etag);
    let (status, etag) = match database.put(name, &uid, vcard, allowed).await? {
        Put::Created(etag) => (StatusCode::CREATED, etag),
        Put::Replaced(etag) => (StatusCode::NO_CONTENT, etag),
        Put::Refused => return Err(CHANGED),
        Put::Conflict(name) => {
            return Err(Fault::Condition(
                StatusCode::CONFLICT,
                format!(
                    "<C:no-uid-conflict><D:href>{}</D:href></C:no-uid-conflict>",
                    Resource::Contact(name).href()
                ),
            ));
        }
    };
    Ok((status, [(ETAG, format!("\"{etag}\""))]).into_response())
}

async fn delete(database: &Database, name: &str, headers: &HeaderMap) -> Result<Response, Fault> {
    let allowed = |etag: Option<&str>| may_change(headers, etag);
    match database.delete(name, allowed).await? {
        Deleted::Gone => Ok(StatusCode::NO_CONTENT.into_response()),
        Deleted::Refused => Err(CHANGED),
        Deleted::Missing => Err(NO_SUCH_CONTACT),
    }
}

async fn propfind(
    database: Arc<Database>,
    resource: &Resource,
    headers: &HeaderMap,
    body: Option<Vec<u8>>,
) -> Result<Response, Fault> {
    let body = body.ok_or(TOO_LARGE)?;
    let wanted = if body.is_empty() {
        Some(Wanted::All(Vec::new()))
    } else {
        xml::parse(&body)
            .filter(|root| root.name.is(xml::DAV, "propfind"))
            .and_then(|root| Wanted::of(&root))
    };
    let wanted = wanted.ok_or(Fault::Plain(
        StatusCode::BAD_REQUEST,
        "The body of a PROPFIND is a propfind of RFC 4918\n",
    ))?;
    let depth = depth(headers)?.unwrap_or(Depth::Infinity);

    let mut out = multistatus_begin();
    if let Resource::Contact(name) = resource {
        let entries = database.entries_named(&[name.as_str()], false).await?;
        let entry = entries.first().ok_or(NO_SUCH_CONTACT)?;
        Plan::new(&wanted, resource).write(&mut out, resource, &entry.facts(), "");
        out.push_str(MULTISTATUS_END);
        return Ok(multistatus(out.into()));
    }
    if depth == Depth::Infinity {
        return Err(Fault::Condition(
            StatusCode::FORBIDDEN,
            "<D:propfind-finite-depth/>".to_owned(),
        ));
    }
    write_collection(&database, &wanted, resource, &mut out).await?;
    if depth == Depth::One {
        for collection in resource.collections() {
            write_collection(&database, &wanted, collection, &mut out).await?;
        }
        if *resource == Resource::Book {
            let listing = Listing {
                database,
                plan: Plan::new(&wanted, &Resource::Contact(String::new())),
                data: None,
                source: Source::Pages {
                    after: 0,
                    filter: None,
                    left: None,
                },
            };
            return listing.stream(out).await;
        }
    }
    out.push_str(MULTISTATUS_END);
    Ok(multistatus(out.into()))
}

async fn write_collection(
    database: &Database,
    wanted: &Wanted,
    resource: &Resource,
    out: &mut String,
) -> Result<(), DatabaseError> {
    let plan = Plan::new(wanted, resource);
    let ctag = if plan.has("S:getctag") {
        database.collection_tag().await?
    } else {
        String::new()
    };
    let facts = Facts {
        etag: &ctag,
        length: 0,
    };
    plan.write(out, resource, &facts, "");
    Ok(())
}

async fn report(
    database: Arc<Database>,
    resource: &Resource,
    headers: &HeaderMap,
    body: Option<Vec<u8>>,
) -> Result<Response, Fault> {
    let body = body.ok_or(TOO_LARGE)?;
    let root = xml::parse(&body).ok_or(Fault::Plain(
        StatusCode::BAD_REQUEST,
        "The body of a REPORT is XML\n",
    ))?;
    let report = Report::of(&root)?;
    let depth = depth(headers)?.unwrap_or(Depth::Zero);
    let source = match (report.scope, resource) {
        (Scope::These(hrefs), _) => Source::hrefs(hrefs, resource),
        (Scope::Matching(filter, _), Resource::Contact(name)) => Source::One {
            name: name.clone(),
            filter,
        },
        // Depth 0 is the address book itself, which is not a contact (RFC 6352, 8.6; RFC 3253, 3.6).
        (Scope::Matching(..), _) if depth == Depth::Zero => Source::End,
        (Scope::Matching(filter, limit), _) => Source::Pages {
            after: 0,
            filter: Some(filter),
            left: limit,
        },
    };
    let listing = Listing {
        database,
        plan: Plan::new(&report.wanted, &Resource::Contact(String::new())),
        data: report.data,
        source,
    };
    listing.stream(multistatus_begin()).await
}

/// Contacts for an answer, page by page, because memory then does not grow with their number.
struct Listing {
    database: Arc<Database>,
    plan: Plan,
    data: Option<AddressData>,
    source: Source,
}

enum Source {
    /// The contacts in the order of their keys: all, or those that match, up to a limit.
    Pages {
        after: i32,
        filter: Option<Filter>,
        left: Option<usize>,
    },
    /// The contact at the request's own path, if it matches.
    One { name: String, filter: Filter },
    /// The contacts at these paths, each with the contact's name, if the path can have one.
    Named(std::vec::IntoIter<(String, Option<String>)>),
    /// Only the end of the answer.
    End,
    /// The answer is complete.
    Done,
}

impl Source {
    /// Each path of a multiget once, with the contact's name; at a contact, only its own path has a name.
    fn hrefs(hrefs: Vec<String>, resource: &Resource) -> Self {
        let mut seen = HashSet::new();
        let named: Vec<_> = hrefs
            .into_iter()
            .filter(|href| seen.insert(href.clone()))
            .map(|href| {
                let name = contact_name(path_of(&href)).filter(|name| match resource {
                    Resource::Contact(own) => own == name,
                    _ => true,
                });
                (href, name)
            })
            .collect();
        Self::Named(named.into_iter())
    }
}

/// The path of an absolute URL, or the path itself.
fn path_of(href: &str) -> &str {
    match href.split_once("://") {
        Some((_, rest)) if !href.starts_with('/') => {
            rest.find('/').map_or("", |slash| &rest[slash..])
        }
        _ => href,
    }
}

impl Listing {
    /// The answer: `begin`, the contacts, the end. The first query runs before the answer begins, so a failure
    /// gives 503. If a later query fails, the server cuts the connection before the end.
    async fn stream(mut self, mut begin: String) -> Result<Response, Fault> {
        if let Some(text) = self.next().await? {
            begin.push_str(&text);
        }
        let rest = stream::try_unfold(self, |mut listing| async move {
            Ok(listing.next().await?.map(|text| (text, listing)))
        })
        .inspect_err(|error: &DatabaseError| tracing::error!("an answer was cut: {error}"));
        let text = stream::once(async { Ok(begin) }).chain(rest);
        Ok(multistatus(Body::from_stream(text)))
    }

    /// The next piece of the answer, never empty; `None` after the last.
    async fn next(&mut self) -> Result<Option<String>, DatabaseError> {
        let mut out = String::new();
        while out.is_empty() {
            match std::mem::replace(&mut self.source, Source::Done) {
                Source::Pages {
                    after,
                    filter,
                    left,
                } => self.page(&mut out, after, filter, left).await?,
                Source::One { name, filter } => {
                    let entries = self.database.entries_named(&[name.as_str()], true).await?;
                    for entry in entries.iter().filter(|entry| filter.matches(&entry.vcard)) {
                        self.write(&mut out, entry);
                    }
                    self.source = Source::End;
                }
                Source::Named(hrefs) => self.named(&mut out, hrefs).await?,
                Source::End => out.push_str(MULTISTATUS_END),
                Source::Done => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    async fn page(
        &mut self,
        out: &mut String,
        after: i32,
        filter: Option<Filter>,
        mut left: Option<usize>,
    ) -> Result<(), DatabaseError> {
        let vcards = self.data.is_some() || filter.is_some();
        let entries = self.database.page(after, vcards).await?;
        for entry in &entries {
            if !filter
                .as_ref()
                .is_none_or(|filter| filter.matches(&entry.vcard))
            {
                continue;
            }
            match &mut left {
                Some(0) => {
                    // More contacts match than the limit allows (RFC 6352, 8.6.1).
                    let error = "<D:number-of-matches-within-limits/>";
                    let book = Resource::Book.href();
                    write_status(out, &book, "507 Insufficient Storage", error);
                    self.source = Source::End;
                    return Ok(());
                }
                Some(left) => *left -= 1,
                None => (),
            }
            self.write(out, entry);
        }
        self.source = match entries.last() {
            Some(last) if entries.len() == PAGE_ROWS => Source::Pages {
                after: last.id,
                filter,
                left,
            },
            _ => Source::End,
        };
        Ok(())
    }

    async fn named(
        &mut self,
        out: &mut String,
        mut hrefs: std::vec::IntoIter<(String, Option<String>)>,
    ) -> Result<(), DatabaseError> {
        let some: Vec<_> = hrefs.by_ref().take(PAGE_ROWS).collect();
        let names: Vec<_> = some
            .iter()
            .filter_map(|(_, name)| name.as_deref())
            .collect();
        let entries: HashMap<_, _> = self
            .database
            .entries_named(&names, self.data.is_some())
            .await?
            .into_iter()
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        for (href, name) in &some {
            match name.as_ref().and_then(|name| entries.get(name)) {
                Some(entry) => self.write(out, entry),
                None => write_status(out, href, "404 Not Found", ""),
            }
        }
        self.source = if hrefs.as_slice().is_empty() {
            Source::End
        } else {
            Source::Named(hrefs)
        };
        Ok(())
    }

    fn write(&self, out: &mut String, entry: &Entry) {
        let resource = Resource::Contact(entry.name.clone());
        let data = match &self.data {
            None => String::new(),
            Some(data) => match data.element(&entry.vcard) {
                Some(element) => element,
                None => {
                    return write_status(
                        out,
                        &resource.href(),
                        "415 Unsupported Media Type",
                        "<C:supported-address-data-conversion/>",
                    );
                }
            },
        };
        self.plan.write(out, &resource, &entry.facts(), &data);
    }
}

impl Entry {
    fn facts(&self) -> Facts<'_> {
        Facts {
            etag: &self.etag,
            length: self.length,
        }
    }
}

fn multistatus(body: Body) -> Response {
    (StatusCode::MULTI_STATUS, [(CONTENT_TYPE, XML)], body).into_response()
}

/// The body of a request. `None` if it is larger than the maximum. A larger body is read to its end too,
/// because a client that is still sending would not see the answer.
async fn read(body: Body) -> Result<Option<Vec<u8>>, Fault> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| {
            Fault::Plain(StatusCode::BAD_REQUEST, "The request's body is cut off\n")
        })?;
        length += chunk.len();
        if length <= MAXIMUM_BYTES {
            bytes.extend_from_slice(&chunk);
        } else {
            bytes = Vec::new();
        }
    }
    Ok((length <= MAXIMUM_BYTES).then_some(bytes))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Zero,
    One,
    Infinity,
}

fn depth(headers: &HeaderMap) -> Result<Option<Depth>, Fault> {
    headers
        .get(DEPTH)
        .map(
            |value| match value.as_bytes().to_ascii_lowercase().as_slice() {
                b"0" => Ok(Depth::Zero),
                b"1" => Ok(Depth::One),
                b"infinity" => Ok(Depth::Infinity),
                _ => Err(Fault::Plain(
                    StatusCode::BAD_REQUEST,
                    "Depth is 0, 1 or infinity\n",
                )),
            },
        )
        .transpose()
}

/// Whether the headers of a PUT declare a vCard in UTF-8, or declare no type.
fn is_vcard(headers: &HeaderMap) -> bool {
    if headers
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return false;
    }
    let Some(content_type) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let Ok(content_type) = content_type.to_str() else {
        return false;
    };
    let mut parts = content_type.split(';').map(str::trim);
    parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("text/vcard"))
        && parts.all(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            !name.eq_ignore_ascii_case("charset")
                || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        })
}

/// Whether the conditions of a PUT or DELETE hold for a contact with this entity tag, or for no contact
/// (RFC 9110, 13).
fn may_change(headers: &HeaderMap, etag: Option<&str>) -> bool {
    is_current(headers, etag) && !etag.is_some_and(|etag| is_known(headers, etag.as_bytes()))
}

/// Whether there is no `If-Match`, or it names this entity tag, compared strongly.
fn is_current(headers: &HeaderMap, etag: Option<&str>) -> bool {
    let mut values = headers.get_all(IF_MATCH).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let Some(etag) = etag else { return false };
    values.any(|value| {
        let value = value.as_bytes();
        if value.trim_ascii() == b"*" {
            return true;
        }
        // Every second piece is a tag. It has its closing quote only if another piece follows.
        let pieces: Vec<_> = value.split(|byte| *byte == b'"').collect();
        pieces
            .windows(3)
            .step_by(2)
            .any(|piece| piece[1] == etag.as_bytes() && !piece[0].ends_with(b"W/"))
    })
}
