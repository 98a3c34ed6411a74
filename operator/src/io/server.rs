//! HTTP server of the operator: probes, metrics, and the time.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::{io::metrics::Metrics, time::unix_seconds};

#[derive(Clone)]
struct Shared {
    metrics: Metrics,
    ready: Arc<AtomicBool>,
}

/// Serves until the process ends. `ready` is true when the API server has answered.
///
/// # Errors
///
/// The address can't be used.
pub async fn serve(
    listen: SocketAddr,
    metrics: Metrics,
    ready: Arc<AtomicBool>,
) -> Result<(), std::io::Error> {
    let router = Router::new()
        .route("/metrics", get(metrics_text))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/time", get(time))
        .with_state(Shared { metrics, ready });
    axum::serve(listener(listen).await?, router).await
}

/// Listens on the address. The unspecified IPv6 address includes all IPv4 addresses. Without IPv6, the server
/// listens on IPv4 only.
///
/// # Errors
///
/// The address can't be used.
pub async fn listener(listen: SocketAddr) -> Result<TcpListener, std::io::Error> {
    match TcpListener::bind(listen).await {
        Err(_) if listen.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, listen.port())).await
        }
        bound => bound,
    }
}

async fn metrics_text(State(shared): State<Shared>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match shared.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn readyz(State(shared): State<Shared>) -> (StatusCode, &'static str) {
    if shared.ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the API server has not answered yet\n",
        )
    }
}

/// The operator's clock, for injectors whose meter does not report its own.
async fn time() -> String {
    format!("{:.6}\n", unix_seconds(Timestamp::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_addresses_are_those_of_both_protocols() {
        let listening = listener("[::]:0".parse().unwrap()).await.unwrap();
        let port = listening.local_addr().unwrap().port();
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
        if listening.local_addr().unwrap().is_ipv6() {
            tokio::net::TcpStream::connect(("::1", port)).await.unwrap();
        }
    }
}
