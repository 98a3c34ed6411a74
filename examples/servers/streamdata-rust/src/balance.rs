//! The balancer: each request goes to the backend whose turn it is.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::uri::{PathAndQuery, Scheme};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_body_util::Full;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;

use crate::answers::{Refusal, json, read_body};
use crate::backends::{Backend, BackendStats, Backends, Tally, UnderWay};
use crate::headers::remove_hop_by_hop;
use crate::settings::Service;
use crate::watch::watch;

/// The maximum number of idle connections to one backend.
const IDLE_CONNECTIONS: usize = 256;
/// The time after which an idle connection is closed, in seconds.
const IDLE_SECONDS: u64 = 90;
/// The time limit for connecting, in seconds.
const CONNECT_SECONDS: u64 = 1;

/// The pool of connections to the backends.
pub(crate) type Client = legacy::Client<HttpConnector, Full<Bytes>>;

/// The balancer's router. It also starts the task that finds and checks the backends.
pub(crate) fn router(service: Service) -> Router {
    let balancer = Arc::new(Balancer {
        client: client(),
        backends: Arc::default(),
        tally: Arc::default(),
        bytes_received: AtomicU64::new(0),
        bytes_sent: AtomicU64::new(0),
    });
    let client = balancer.client.clone();
    tokio::spawn(watch(service, client, Arc::clone(&balancer.backends)));
    // A fallback instead of routes, because routes would add headers to a backend's answers.
    Router::new().fallback(answer).with_state(balancer)
}

fn client() -> Client {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(Duration::from_secs(CONNECT_SECONDS)));
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(IDLE_SECONDS))
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector)
}

/// The balancer's state.
struct Balancer {
    client: Client,
    backends: Arc<Backends>,
    tally: Arc<Tally>,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
}

/// The answer to `GET /stats`. Bytes count bodies only.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    requests: u64,
    current: u64,
    failed: u64,
    bytes_received: u64,
    bytes_sent: u64,
    backends: BTreeMap<String, BackendStats>,
}

async fn answer(State(balancer): State<Arc<Balancer>>, request: Request) -> Response {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => balancer.health(),
        (&Method::GET, "/stats") => json(StatusCode::OK, &balancer.stats()),
        _ => balancer.serve(request).await,
    }
}

impl Balancer {
    fn health(&self) -> Response {
        if self.backends.rotation().is_healthy() {
            "ok".into_response()
        } else {
            Refusal::Unhealthy.into_response()
        }
    }

    fn stats(&self) -> Stats {
        Stats {
            requests: self.tally.requests(),
            current: self.tally.current(),
            failed: self.tally.failures(),
            bytes_received: self.bytes_received.load(Ordering::Relaxed),
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
            backends: self.backends.rotation().stats(),
        }
    }

    /// Forwards a request to a backend, and counts it.
    async fn serve(self: Arc<Self>, request: Request) -> Response {
        let under_way = self.tally.begin();
        let is_head = request.method() == Method::HEAD;
        match self.forward(request).await {
            Ok((answer, by_backend)) => {
                let (parts, body) = answer.into_parts();
                let mut response = Response::new(Body::new(Answer {
                    body,
                    is_head,
                    balancer: self,
                    under_way,
                    by_backend,
                }));
                *response.status_mut() = parts.status;
                *response.headers_mut() = parts.headers;
                remove_hop_by_hop(response.headers_mut());
                response
            }
            Err(refusal) => {
                under_way.fail();
                refusal.into_response()
            }
        }
    }

    /// Sends the request to the first backend that it can connect to.
    async fn forward(
        &self,
        mut request: Request,
    ) -> Result<(hyper::Response<Incoming>, UnderWay), Refusal> {
        let path = request.uri().path_and_query().cloned();
        let path = path
            .filter(|path| path.as_str().starts_with('/'))
            .ok_or(Refusal::NoPath)?;
        let body = read_body(&mut request).await?;
        self.bytes_received
            .fetch_add(body.len() as u64, Ordering::Relaxed);
        let mut headers = std::mem::take(request.headers_mut());
        remove_hop_by_hop(&mut headers);
        // The whole body is already here, so its length is known.
        headers.remove(EXPECT);
        headers.remove(CONTENT_LENGTH);
        // These methods need a length (RFC 9110, 8.6). hyper adds it only if the body is not empty.
        if body.is_empty()
            && matches!(
                *request.method(),
                Method::POST | Method::PUT | Method::PATCH
            )
        {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }

        let rotation = self.backends.rotation();
        for backend in rotation.order(self.backends.turn()) {
            let request = outgoing(backend, request.method(), &path, &headers, &body)?;
            let under_way = backend.tally.begin();
            match self.client.request(request).await {
                Ok(answer) => return Ok((answer, under_way)),
                Err(error) => {
                    under_way.fail();
                    // The backend may have received the request, so it is not sent again.
                    if !error.is_connect() {
                        return Err(Refusal::BrokeOff);
                    }
                }
            }
        }
        Err(Refusal::NoBackend)
    }
}

fn outgoing(
    backend: &Backend,
    method: &Method,
    path: &PathAndQuery,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<hyper::Request<Full<Bytes>>, Refusal> {
    let uri = Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(backend.authority.clone())
        .path_and_query(path.clone())
        .build()
        .map_err(|_| Refusal::NoPath)?;
    let mut request = hyper::Request::new(Full::new(body.clone()));
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers.clone();
    Ok(request)
}

/// The body of a backend's answer. It counts its bytes. The request is under way until this body is dropped.
struct Answer {
    body: Incoming,
    is_head: bool,
    balancer: Arc<Balancer>,
    under_way: UnderWay,
    by_backend: UnderWay,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                this.balancer
                    .bytes_sent
                    .fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Some(Err(_)) => {
                this.under_way.fail();
                this.by_backend.fail();
            }
            None => (),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_head {
            // The empty body says nothing about the length that GET would have given.
            SizeHint::default()
        } else {
            self.body.size_hint()
        }
    }
}
