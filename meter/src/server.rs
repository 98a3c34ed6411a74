//! HTTP: `/metrics`, `/time`, `/healthz`, `/readyz`.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use frugality_listener::{ConnectionLimits, LimitedListener};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::cli::MeterSettings;
use crate::sampler::{Health, Published};
use crate::{cgroup, exposition};

#[derive(Clone)]
struct Shared {
    settings: Arc<MeterSettings>,
    published: watch::Receiver<Published>,
}

impl Shared {
    fn health(&self) -> Health {
        self.published.borrow().health.clone()
    }
}

/// Answers requests until the future is dropped.
pub(crate) async fn serve(
    listener: TcpListener,
    settings: MeterSettings,
    published: watch::Receiver<Published>,
) -> io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/time", get(time))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Shared {
            settings: Arc::new(settings),
            published,
        });
    axum::serve(
        LimitedListener::new(listener, ConnectionLimits::default()),
        router,
    )
    .await
}

/// The last good reading, however old. The page contains its timestamp.
async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    let now = cgroup::unix_seconds(SystemTime::now());
    let page = exposition::render(&shared.settings, &shared.published.borrow(), now);
    ([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], page)
}

/// The node's clock, for clients that compare it with another clock.
async fn time() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}.{:06}\n", now.as_secs(), now.subsec_micros())
}

/// Fails only if a restart helps.
async fn healthz(State(shared): State<Shared>) -> (StatusCode, String) {
    match shared.health() {
        Health::Broken(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        Health::Fresh | Health::Aging(_) => (StatusCode::OK, "ok\n".to_owned()),
    }
}

/// Fails while the reading ages.
async fn readyz(State(shared): State<Shared>) -> (StatusCode, String) {
    match shared.health() {
        Health::Fresh => (StatusCode::OK, "ok\n".to_owned()),
        Health::Aging(reason) | Health::Broken(reason) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n"))
        }
    }
}
