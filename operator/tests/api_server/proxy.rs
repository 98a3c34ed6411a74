//! A proxy in front of the API server that injects faults and remembers what it was asked.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{Method, Request, Response, StatusCode, header},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::server::{User, server};

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The request is not forwarded. It is answered with this code and message.
    Answer(u16, &'static str),
    /// The request is not forwarded. The answer is that there are too many of them, and when to ask again.
    Busy { retry_after_seconds: u64 },
    /// The request is not forwarded, and never answered.
    Silence,
    /// The request is forwarded. The connection ends before its answer arrives.
    LostAnswer,
    /// The request is forwarded after a time.
    Late(Duration),
}

/// Which requests a fault happens to.
#[derive(Debug)]
struct Rule {
    method: Method,
    path: String,
    left: usize,
    fault: Fault,
}

/// A request that reached the proxy.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Unique in its proxy.
    id: u64,
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    /// Its JSON, or null.
    pub(crate) body: Value,
    /// The code of the answer; `None` if there was no answer.
    pub(crate) status: Option<u16>,
}

#[derive(Debug, Default)]
struct State {
    rules: VecDeque<Rule>,
    asked: Vec<Asked>,
    /// ID of the next request. [`Proxy::forget`] does not reset it, so a late answer belongs to no later request.
    next_id: u64,
}

/// The proxy of one test. It ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Proxy {
    url: String,
    /// Namespace that stands for all namespaces.
    scope: String,
    state: Arc<Mutex<State>>,
}

/// The connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is lost")]
struct Lost;

impl Proxy {
    /// A proxy through which an operator sees one namespace: what it lists in all namespaces is listed in this one.
    /// Otherwise the operators of all tests would work on all benchmarks.
    pub(crate) async fn start(scope: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            scope: scope.to_owned(),
            state: Arc::default(),
        };
        let upstream = Client::try_from(server().config()).unwrap();
        let serving = proxy.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (proxy, upstream) = (serving.clone(), upstream.clone());
                let service =
                    service_fn(move |request| proxy.clone().answer(upstream.clone(), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        proxy
    }

    /// A client that asks by way of the proxy, and repeats what kube's own would.
    pub(crate) fn client(&self, user: User) -> Client {
        let mut config = Config::new(self.url.parse().unwrap());
        config.auth_info.token = Some(user.token().to_owned().into());
        Client::try_from(config).unwrap()
    }

    /// Lets the next requests of this kind go wrong. Earlier rules come first.
    pub(crate) fn fail(&self, method: Method, path: &str, times: usize, fault: Fault) {
        self.state.lock().unwrap().rules.push_back(Rule {
            method,
            path: path.to_owned(),
            left: times,
            fault,
        });
    }

    /// Whether every fault has happened as often as it was to.
    pub(crate) fn is_through(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.rules.iter().all(|rule| rule.left == 0)
    }

    /// Requests so far of this method whose path contains this.
    pub(crate) fn asked(&self, method: &Method, path: &str) -> Vec<Asked> {
        let state = self.state.lock().unwrap();
        let of_kind = |asked: &&Asked| asked.method == *method && asked.path.contains(path);
        state.asked.iter().filter(of_kind).cloned().collect()
    }

    /// Number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.state.lock().unwrap().asked.len()
    }

    /// Where the proxy listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Every request so far that writes, as method and last part of the path with its resource.
    pub(crate) fn writes(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let writes = state
            .asked
            .iter()
            .filter(|asked| asked.method != Method::GET);
        writes
            .map(|asked| {
                let path = asked.path.split('?').next().unwrap_or_default();
                let parts: Vec<&str> = path.split('/').collect();
                let from = parts.iter().position(|part| *part == "namespaces");
                let rest = from.map_or(&parts[..], |from| &parts[from + 2..]);
                format!("{} {}", asked.method, rest.join("/"))
            })
            .collect()
    }

    pub(crate) fn forget(&self) {
        self.state.lock().unwrap().asked.clear();
    }

    fn scoped(&self, path: &str) -> String {
        let (of, query) = path.split_once('?').unwrap_or((path, ""));
        let scope = &self.scope;
        let of = match of {
            "/api/v1/pods" => format!("/api/v1/namespaces/{scope}/pods"),
            "/apis/frugality.dev/v1alpha1/frugalitybenchmarks" => {
                format!("/apis/frugality.dev/v1alpha1/namespaces/{scope}/frugalitybenchmarks")
            }
            other => other.to_owned(),
        };
        format!("{of}?{query}")
    }

    fn fault_of(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        let is_met =
            |rule: &&mut Rule| rule.left > 0 && rule.method == *method && path.contains(&rule.path);
        let rule = state.rules.iter_mut().find(is_met)?;
        rule.left -= 1;
        Some(rule.fault)
    }

    async fn answer(
        self,
        upstream: Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Lost> {
        let (mut parts, body) = request.into_parts();
        let body = to_bytes(Body::new(body), usize::MAX)
            .await
            .map_err(|_| Lost)?;
        let path = parts.uri.path_and_query().map(ToString::to_string);
        let path = self.scoped(&path.unwrap_or_default());
        let method = parts.method.clone();
        let id = {
            let mut state = self.state.lock().unwrap();
            let id = state.next_id;
            state.next_id += 1;
            state.asked.push(Asked {
                id,
                method: method.clone(),
                path: path.clone(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
                status: None,
            });
            id
        };
        let fault = self.fault_of(&method, &path);
        match fault {
            Some(Fault::Answer(code, message)) => {
                return Ok(self.answered(id, refusal(code, message, None)));
            }
            Some(Fault::Busy {
                retry_after_seconds,
            }) => {
                let answer = refusal(429, "too many requests", Some(retry_after_seconds));
                return Ok(self.answered(id, answer));
            }
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::Late(time)) => tokio::time::sleep(time).await,
            Some(Fault::LostAnswer) | None => {}
        }
        parts.headers.remove(header::HOST);
        parts.uri = path.parse().map_err(|_| Lost)?;
        let forwarded = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
        let answer = upstream.send(forwarded).await.map_err(|_| Lost)?;
        if matches!(fault, Some(Fault::LostAnswer)) {
            return Err(Lost);
        }
        Ok(self.answered(id, answer.map(Body::new)))
    }

    fn answered(&self, id: u64, answer: Response<Body>) -> Response<Body> {
        let mut state = self.state.lock().unwrap();
        // Forgotten meanwhile, perhaps.
        if let Some(asked) = state.asked.iter_mut().find(|asked| asked.id == id) {
            asked.status = Some(answer.status().as_u16());
        }
        answer
    }
}

/// An answer as the API server's own.
fn refusal(code: u16, message: &str, retry_after_seconds: Option<u64>) -> Response<Body> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "AlreadyExists",
        422 => "Invalid",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "message": message, "code": code,
    });
    let mut answer = Response::builder()
        .status(StatusCode::from_u16(code).unwrap())
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after_seconds {
        answer = answer.header(header::RETRY_AFTER, seconds);
    }
    answer.body(Body::from(status.to_string())).unwrap()
}
