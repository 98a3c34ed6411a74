//! HTTP server of the operator: probes, metrics, and the time.

use std::{
    net::SocketAddr,
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
use frugality_listener::{ConnectionLimits, LimitedListener, bind};
use jiff::Timestamp;

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
    let listener = LimitedListener::new(bind(listen).await?, ConnectionLimits::default());
    axum::serve(listener, router).await
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
