//! Limits of connections for the HTTP endpoints of operator, meter and gate: neither a slow client nor a client with many
//! connections keeps others from being answered, or fills the memory.

use std::{
    collections::HashMap,
    future::Future as _,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep},
};

/// Limits of a listener.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Open connections. Further ones wait until one is closed.
    pub connections: usize,
    /// Open connections of one address. Further ones are closed at once, so one client can't use up all connections.
    pub connections_of_one_address: usize,
    /// A connection is closed if it was sent nothing for this time: the client sends its request too slowly, does not
    /// read the answer, or has no further request.
    pub silence: Duration,
}

impl Default for ConnectionLimits {
    /// The operator keeps one connection per meter, and asks twice per second. A scraper, a probe and an injector have
    /// few each.
    fn default() -> Self {
        Self {
            connections: 64,
            connections_of_one_address: 16,
            silence: Duration::from_secs(10),
        }
    }
}

/// Listens on the address. The unspecified IPv6 address includes all IPv4 addresses. Without IPv6, it listens on IPv4
/// only.
///
/// # Errors
///
/// The address can't be used.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(_) if address.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

type Counts = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A TCP listener with limits.
#[derive(Debug)]
pub struct LimitedListener {
    listener: TcpListener,
    limits: ConnectionLimits,
    places: Arc<Semaphore>,
    counts: Counts,
}

impl LimitedListener {
    /// Limits the connections of a listener.
    #[must_use]
    pub fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        Self {
            listener,
            limits,
            places: Arc::new(Semaphore::new(limits.connections)),
            counts: Counts::default(),
        }
    }
}

impl Listener for LimitedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let mut place = None;
        loop {
            if place.is_none() {
                // The semaphore is never closed. Without a place, the connection would only be uncounted.
                place = self.places.clone().acquire_owned().await.ok();
            }
            // It repeats what fails, as when there are no file descriptors left.
            let (stream, address) = Listener::accept(&mut self.listener).await;
            let limit = self.limits.connections_of_one_address;
            let Some(counted) = Counted::of(&self.counts, address.ip(), limit) else {
                continue;
            };
            let connection = Connection {
                stream,
                silence: self.limits.silence,
                ends: Box::pin(sleep(self.limits.silence)),
                _counted: counted,
                _place: place,
            };
            return (connection, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One of the connections of an address.
#[derive(Debug)]
struct Counted {
    counts: Counts,
    address: IpAddr,
}

impl Counted {
    /// `None` if the address has as many connections as it may have.
    fn of(counts: &Counts, address: IpAddr, limit: usize) -> Option<Self> {
        let mut all = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(address).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        drop(all);
        Some(Self {
            counts: counts.clone(),
            address,
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.address);
            }
        }
    }
}

/// A connection that ends if nothing is sent to its client for a while.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    silence: Duration,
    ends: Pin<Box<Sleep>>,
    // Dropped in this order: who gets the free place must not find this connection in the count.
    _counted: Counted,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// What an operation gives that waits: an error if the time is over.
    fn waiting<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        match self.ends.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The result of a write. Only what is sent gives the client more time: a client could send its request byte by
    /// byte.
    fn sent(
        &mut self,
        result: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(length)) => {
                self.ends.as_mut().reset(Instant::now() + self.silence);
                Poll::Ready(Ok(length))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.waiting(context),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => self.waiting(context),
            ready @ Poll::Ready(_) => ready,
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.sent(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

    use axum::{Router, routing::get};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    /// Long for a machine, short for a test.
    const SILENCE: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn all_addresses_include_both_protocols() {
        let listening = bind("[::]:0".parse().unwrap()).await.unwrap();
        let port = listening.local_addr().unwrap().port();
        TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        if listening.local_addr().unwrap().is_ipv6() {
            TcpStream::connect(("::1", port)).await.unwrap();
        }
    }

    async fn served(connections: usize, connections_of_one_address: usize) -> SocketAddr {
        let limits = ConnectionLimits {
            connections,
            connections_of_one_address,
            silence: SILENCE,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "ok" }));
        let server = axum::serve(LimitedListener::new(listener, limits), router);
        tokio::spawn(async move { server.await.unwrap() });
        address
    }

    /// The text of the answer on an open connection; empty if the server has closed it.
    async fn answer(stream: &mut TcpStream) -> String {
        if stream.write_all(REQUEST).await.is_err() {
            return String::new();
        }
        let mut buffer = [0; 1024];
        let length = stream.read(&mut buffer).await.unwrap_or_default();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[tokio::test]
    async fn a_client_that_asks_again_and_again_keeps_its_connection() {
        let mut stream = TcpStream::connect(served(1, 1).await).await.unwrap();
        for _ in 0..4 {
            assert!(answer(&mut stream).await.ends_with("ok"));
            tokio::time::sleep(SILENCE / 2).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_sends_its_request_byte_by_byte_is_cut_off() {
        let mut stream = TcpStream::connect(served(1, 1).await).await.unwrap();
        let began = Instant::now();
        let mut sent = 0;
        // It never ends its headers.
        while stream.write_all(b"G").await.is_ok() {
            sent += 1;
            assert!(began.elapsed() < SILENCE * 10, "{sent} bytes were taken");
            tokio::time::sleep(SILENCE / 10).await;
        }
        assert!(began.elapsed() >= SILENCE);
    }

    #[tokio::test]
    async fn silent_clients_that_use_all_connections_delay_others_by_the_limit_of_silence_only() {
        let address = served(2, 2).await;
        let silent = [
            TcpStream::connect(address).await.unwrap(),
            TcpStream::connect(address).await.unwrap(),
        ];
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(answer(&mut stream).await.ends_with("ok"));
        drop(silent);
    }

    #[tokio::test]
    async fn one_address_cannot_use_up_all_connections() {
        let address = served(4, 2).await;
        let mut first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        assert!(answer(&mut first).await.ends_with("ok"));
        assert!(answer(&mut second).await.ends_with("ok"));
        let mut third = TcpStream::connect(address).await.unwrap();
        assert_eq!(answer(&mut third).await, "");
        // Its place is free again once another connection is closed.
        drop(first);
        let began = Instant::now();
        loop {
            let mut next = TcpStream::connect(address).await.unwrap();
            if answer(&mut next).await.ends_with("ok") {
                break;
            }
            assert!(began.elapsed() < SILENCE * 20);
        }
    }
}
