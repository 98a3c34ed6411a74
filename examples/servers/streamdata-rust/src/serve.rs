//! The service: the last payload of each device, in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

use crate::answers::{Refusal, json, read_body, refuse};
use crate::payload::Payload;

/// The maximum number of devices with a stored payload.
const MAXIMUM_DEVICES: usize = 10_000;

/// The service's router.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/healthz", get(async || "ok").fallback(only_get))
        .route("/streamdata", post(keep).fallback(only_post))
        .route("/streamdata/{device_id}", get(kept).fallback(only_get))
        .fallback(not_found)
        .with_state(Arc::new(Devices::new(MAXIMUM_DEVICES)))
}

async fn keep(
    State(devices): State<Arc<Devices>>,
    mut request: Request,
) -> Result<Response, Refusal> {
    let body = read_body(&mut request).await?;
    let payload = Payload::read(&body)?;
    let receipt = payload.receipt();
    devices.keep(payload)?;
    Ok(json(StatusCode::OK, &receipt))
}

async fn kept(
    State(devices): State<Arc<Devices>>,
    device_id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    // A path that is not UTF-8 cannot contain a known device ID.
    let Path(device_id) = device_id.map_err(|_| Refusal::NoDevice)?;
    let payload = devices.kept(&device_id).ok_or(Refusal::NoDevice)?;
    Ok(json(StatusCode::OK, &*payload))
}

async fn only_get(mut request: Request) -> Refusal {
    refuse(&mut request, Refusal::Method("GET, HEAD")).await
}

async fn only_post(mut request: Request) -> Refusal {
    refuse(&mut request, Refusal::Method("POST")).await
}

async fn not_found(mut request: Request) -> Refusal {
    refuse(&mut request, Refusal::NotFound).await
}

/// The last payload of each device.
struct Devices {
    maximum: usize,
    payloads: Mutex<HashMap<String, Arc<Payload>>>,
}

impl Devices {
    fn new(maximum: usize) -> Self {
        Self {
            maximum,
            payloads: Mutex::default(),
        }
    }

    /// Replaces the device's last payload.
    fn keep(&self, payload: Payload) -> Result<(), Refusal> {
        let payload = Arc::new(payload);
        let last;
        {
            let mut payloads = self.payloads.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(kept) = payloads.get_mut(payload.device_id()) {
                last = Some(std::mem::replace(kept, payload));
            } else if payloads.len() < self.maximum {
                last = payloads.insert(payload.device_id().to_owned(), payload);
            } else {
                return Err(Refusal::Full);
            }
        }
        // Freed outside the lock, so no request waits for it.
        drop(last);
        Ok(())
    }

    /// The device's last payload.
    fn kept(&self, device_id: &str) -> Option<Arc<Payload>> {
        let payloads = self.payloads.lock().unwrap_or_else(PoisonError::into_inner);
        payloads.get(device_id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(device_id: &str, name: &str) -> Payload {
        let text =
            format!(r#"{{"name":"{name}","deviceId":"{device_id}","patientId":"p","data":[]}}"#);
        Payload::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_last_payload_of_each_device_is_kept_and_no_more_devices() {
        let devices = Devices::new(2);
        devices.keep(payload("a", "first")).unwrap();
        devices.keep(payload("b", "first")).unwrap();
        let error = devices.keep(payload("c", "first")).unwrap_err();
        assert!(matches!(error, Refusal::Full));
        devices.keep(payload("a", "second")).unwrap();
        assert_eq!(*devices.kept("a").unwrap(), payload("a", "second"));
        assert_eq!(*devices.kept("b").unwrap(), payload("b", "first"));
        assert!(devices.kept("c").is_none());
    }
}
