//! Resolves the backends and checks their health, once per second.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{StatusCode, Uri};
use http_body_util::Full;
use hyper::Request;
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::backends::Backends;
use crate::balance::Client;
use crate::settings::Service;

/// The interval of resolving the service and checking its backends, and the time limit of each.
const SECOND: Duration = Duration::from_secs(1);

/// Updates the backends in an endless loop.
pub(crate) async fn watch(service: Service, client: Client, backends: Arc<Backends>) {
    let mut found = HashMap::new();
    let mut ticks = interval(SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for host in &service.hosts {
            resolve(host, service.port, &mut found).await;
        }
        let addresses = addresses(&found, service.port);
        backends.set(&addresses);
        check(&client, &backends).await;
        // Apply the results of the check to the turns.
        backends.set(&addresses);
    }
}

/// Per host: its addresses, or the reason why there are none.
type Found = HashMap<String, Result<Vec<IpAddr>, String>>;

/// Looks a host up. If the lookup fails, the host keeps its last addresses.
async fn resolve(host: &str, port: u16, found: &mut Found) {
    let fault = match timeout(SECOND, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => {
            let addresses = preferred(addresses.map(|address| address.ip()).collect());
            found.insert(host.to_owned(), Ok(addresses));
            return;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer within a second".to_owned(),
    };
    match found.get(host) {
        Some(Ok(addresses)) if !addresses.is_empty() => {
            tracing::warn!("cannot resolve {host}, its addresses stay: {fault}");
        }
        // Already logged.
        Some(Err(last)) if *last == fault => (),
        _ => {
            tracing::warn!("cannot resolve {host}: {fault}");
            found.insert(host.to_owned(), Err(fault));
        }
    }
}

/// The IPv4 addresses, or the IPv6 addresses if there are no others. A pod with both is one backend.
fn preferred(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    if addresses.iter().any(IpAddr::is_ipv4) {
        addresses.into_iter().filter(IpAddr::is_ipv4).collect()
    } else {
        addresses
    }
}

/// The addresses of all hosts, without duplicates.
fn addresses(found: &Found, port: u16) -> Vec<SocketAddr> {
    let mut addresses: Vec<_> = found
        .values()
        .flatten()
        .flatten()
        .map(|address| SocketAddr::new(*address, port))
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Checks all backends in parallel.
async fn check(client: &Client, backends: &Backends) {
    let mut checks = JoinSet::new();
    for backend in backends.rotation().all() {
        let (client, backend) = (client.clone(), Arc::clone(backend));
        checks.spawn(async move {
            let healthy = timeout(SECOND, answers(&client, &backend.authority)).await;
            backend.set_healthy(healthy.unwrap_or(false));
        });
    }
    while checks.join_next().await.is_some() {}
}

/// Whether `/healthz` answers 200.
async fn answers(client: &Client, authority: &Authority) -> bool {
    let uri = Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(authority.clone())
        .path_and_query(PathAndQuery::from_static("/healthz"))
        .build();
    let Ok(request) = uri.and_then(|uri| Request::get(uri).body(Full::<Bytes>::default())) else {
        return false;
    };
    let answer = client.request(request).await;
    answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_with_two_families_is_one_backend() {
        let four: IpAddr = "10.0.0.1".parse().unwrap();
        let six: IpAddr = "fd00::1".parse().unwrap();
        assert_eq!(preferred(vec![six, four]), [four]);
        assert_eq!(preferred(vec![six]), [six]);
    }

    #[test]
    fn an_address_of_two_hosts_is_one_backend() {
        let one: IpAddr = "10.0.0.1".parse().unwrap();
        let two: IpAddr = "10.0.0.2".parse().unwrap();
        let found = Found::from([
            ("a".to_owned(), Ok(vec![two, one])),
            ("b".to_owned(), Ok(vec![one])),
            ("c".to_owned(), Err("unknown".to_owned())),
        ]);
        let expected = [SocketAddr::new(one, 80), SocketAddr::new(two, 80)];
        assert_eq!(addresses(&found, 80), expected);
    }

    #[tokio::test]
    async fn addresses_stay_where_a_lookup_fails() {
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        let mut found = Found::from([("none.invalid".to_owned(), Ok(vec![address]))]);
        resolve("none.invalid", 80, &mut found).await;
        assert_eq!(found["none.invalid"], Ok(vec![address]));
    }
}
