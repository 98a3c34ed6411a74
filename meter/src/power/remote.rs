//! One GET request to a device or an exporter.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_auth::{PasswordClient, PasswordParams};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, WWW_AUTHENTICATE};
use hyper::http::request;
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Larger than the page of any exporter that is polled once per second.
const LARGEST_BODY: usize = 2 << 20;
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
/// Least time before a refused password is tried again: devices lock out clients that keep trying.
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The meter can't use this URL.
    #[error("the meter cannot poll {url}: {reason}")]
    Url {
        /// The URL, without secrets.
        url: String,
        /// What is wrong, and what to write instead.
        reason: &'static str,
    },
    /// The secret's file is unreadable.
    #[error("cannot read the secret in {}: {source}", .path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file contains no usable certificate.
    #[error("no certificate authority in {}: {reason}", .path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why the file is unusable.
        reason: String,
    },
    /// TLS can't be set up.
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] rustls::Error),
    /// The connection or the exchange failed.
    #[error("{url}: {reason}")]
    Failed {
        /// The URL, without secrets.
        url: String,
        /// The error.
        reason: String,
    },
    /// No answer in time.
    #[error("{url} has not answered within {seconds} s")]
    Slow {
        /// The URL, without secrets.
        url: String,
        /// The time limit, in seconds.
        seconds: f64,
    },
    /// The device answers with an error status.
    #[error("{url} answers {status}{}", hint(*.status))]
    Refused {
        /// The URL, without secrets.
        url: String,
        /// The status of the answer.
        status: StatusCode,
    },
}

impl RemoteError {
    /// Whether the same request may succeed the next moment: false if the device has refused it.
    pub(crate) fn may_pass(&self) -> bool {
        !matches!(self, Self::Refused { status, .. } if status.is_client_error())
    }
}

fn hint(status: StatusCode) -> &'static str {
    if status == StatusCode::UNAUTHORIZED {
        ": the device needs another username with passwordFile, or tokenFile (the meter knows basic, digest, \
         bearer and Tasmota's own authentication; the user of a Shelly is admin)"
    } else {
        ""
    }
}

/// How the meter authenticates. Secrets are in files, which the meter reads again for every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Basic or digest authentication, as the device demands.
    Password {
        /// Whether the device is known to demand a digest. A demand for the plain password then comes from an
        /// impostor.
        digest_only: bool,
        /// User name.
        username: String,
        /// File with the password.
        password_file: PathBuf,
    },
    /// A bearer token.
    Bearer {
        /// File with the token.
        token_file: PathBuf,
    },
    /// User and password in the URL, as Tasmota demands.
    Query {
        /// User name.
        username: String,
        /// File with the password.
        password_file: PathBuf,
    },
}

/// A URL to poll, with its credentials and its timeout.
pub(crate) struct DeviceEndpoint {
    url: String,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    credentials: Option<Credentials>,
    /// The device's last challenge. It is kept because a digest's nonce serves many requests.
    challenge: Option<PasswordClient>,
    /// The password that the device refused last, and when.
    refused: Option<(String, Instant)>,
    timeout: Duration,
}

impl std::fmt::Debug for DeviceEndpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("DeviceEndpoint")
            .field(&self.url)
            .finish()
    }
}

impl DeviceEndpoint {
    /// Takes an `http://` or `https://` URL. An authority in `ca_file` must have signed the device's
    /// certificate. Without `ca_file`, one of the authorities that browsers trust must have signed it.
    pub(crate) fn new(
        url: &str,
        credentials: Option<Credentials>,
        ca_file: Option<&Path>,
        timeout: Duration,
    ) -> Result<Self, RemoteError> {
        let wrong = |reason| RemoteError::Url {
            url: url.to_owned(),
            reason,
        };
        let uri: Uri = url
            .parse()
            .map_err(|_| wrong("not a URL: write it with http:// in front"))?;
        if url.contains('@') {
            return Err(wrong("write user and password into a Secret instead"));
        }
        let host = uri.host().ok_or_else(|| wrong("the URL names no host"))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let (tls, port) = match (uri.scheme_str(), ca_file) {
            (Some("http"), None) => (None, HTTP_PORT),
            (Some("http"), Some(_)) => {
                return Err(wrong("caFile is for a URL with https:// in front"));
            }
            (Some("https"), _) => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| wrong("no certificate is possible for this host name"))?;
                (Some((connector(ca_file)?, name)), HTTPS_PORT)
            }
            _ => return Err(wrong("write it with http:// or https:// in front")),
        };
        Ok(Self {
            url: url.to_owned(),
            host,
            port: uri.port_u16().unwrap_or(port),
            tls,
            credentials,
            challenge: None,
            refused: None,
            timeout,
        })
    }

    /// The URL, without secrets.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The body of the answer, and how long the device took for it.
    pub(crate) async fn get(&mut self) -> Result<(String, Duration), RemoteError> {
        match tokio::time::timeout(self.timeout, self.ask()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.slow()),
        }
    }

    /// The device's answer at another path, without the credentials: its status, its body, and how long the
    /// device took. Errors name the endpoint's own URL, because the path may contain a secret.
    pub(crate) async fn get_at(
        &self,
        path: &str,
    ) -> Result<(StatusCode, String, Duration), RemoteError> {
        let request = self.to(path).body(Empty::new());
        let request = request.map_err(|error| self.failed(&error))?;
        let exchange = tokio::time::timeout(self.timeout, self.exchange(request));
        let answer = exchange.await.unwrap_or_else(|_| Err(self.slow()))?;
        let text = String::from_utf8(answer.body.into()).map_err(|error| self.failed(&error))?;
        Ok((answer.status, text, answer.took))
    }

    fn slow(&self) -> RemoteError {
        RemoteError::Slow {
            url: self.url.clone(),
            seconds: self.timeout.as_secs_f64(),
        }
    }

    /// Sends a password only to a device that has asked for one, in the form that the device asked for. If a
    /// challenge has expired, the meter answers the new challenge. A refused password is tried again once it
    /// has changed, or after one minute: devices lock out clients that keep trying.
    async fn ask(&mut self) -> Result<(String, Duration), RemoteError> {
        let password = self.password()?;
        if let (Some(password), Some((refused, at))) = (&password, &self.refused)
            && password == refused
            && at.elapsed() < REFUSED_PAUSE
        {
            return Err(self.refusal(StatusCode::UNAUTHORIZED));
        }
        let request = self.request(password.as_deref())?;
        let mut answer = self.exchange(request).await?;
        if answer.status == StatusCode::UNAUTHORIZED
            && password.is_some()
            && let Ok(challenge) = PasswordClient::try_from(answer.head.get_all(WWW_AUTHENTICATE))
            && self.may_answer(&challenge)
        {
            self.challenge = Some(challenge);
            let request = self.request(password.as_deref())?;
            answer = self.exchange(request).await?;
        }
        self.refused = None;
        if answer.status != StatusCode::OK {
            if answer.status == StatusCode::UNAUTHORIZED {
                self.refused = password.map(|password| (password, Instant::now()));
            }
            return Err(self.refusal(answer.status));
        }
        let text = String::from_utf8(answer.body.into()).map_err(|error| self.failed(&error))?;
        Ok((text, answer.took))
    }

    /// Whether the meter may send the password in answer to this challenge. The meter never sends a plain
    /// password to a device that is known to demand a digest.
    fn may_answer(&self, challenge: &PasswordClient) -> bool {
        let wants_digest = matches!(self.challenge, Some(PasswordClient::Digest(_)))
            || matches!(
                self.credentials,
                Some(Credentials::Password {
                    digest_only: true,
                    ..
                })
            );
        matches!(challenge, PasswordClient::Digest(_)) || !wants_digest
    }

    fn refusal(&self, status: StatusCode) -> RemoteError {
        RemoteError::Refused {
            url: self.url.clone(),
            status,
        }
    }

    /// The current password, if the device may ask for one.
    fn password(&self) -> Result<Option<String>, RemoteError> {
        match &self.credentials {
            Some(Credentials::Password { password_file, .. }) => secret(password_file).map(Some),
            _ => Ok(None),
        }
    }

    fn request(&mut self, password: Option<&str>) -> Result<Request<Empty<Bytes>>, RemoteError> {
        let mut url = self.url.clone();
        if let Some(Credentials::Query {
            username,
            password_file,
        }) = &self.credentials
        {
            let password = percent_encoded(&secret(password_file)?);
            let mark = if url.contains('?') { '&' } else { '?' };
            let user = percent_encoded(username);
            url = format!("{url}{mark}user={user}&password={password}");
        }
        let uri: Uri = url.parse().map_err(|error| self.failed(&error))?;
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        let authorization = match (&self.credentials, &mut self.challenge) {
            (Some(Credentials::Bearer { token_file }), _) => {
                Some(format!("Bearer {}", secret(token_file)?))
            }
            (Some(Credentials::Password { username, .. }), Some(challenge)) => {
                let answer = challenge.respond(&PasswordParams {
                    username,
                    password: password.unwrap_or_default(),
                    uri: path,
                    method: "GET",
                    body: Some(&[]),
                });
                Some(answer.map_err(|error| self.failed(&error))?)
            }
            _ => None,
        };
        let mut request = self.to(path);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        request
            .body(Empty::new())
            .map_err(|error| self.failed(&error))
    }

    /// A request for a path of the device.
    fn to(&self, path: &str) -> request::Builder {
        Request::get(path).header(HOST, format!("{}:{}", self.host, self.port))
    }

    async fn exchange(&self, request: Request<Empty<Bytes>>) -> Result<Answer, RemoteError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| self.failed(&error))?;
        match &self.tls {
            None => self.send(stream, request).await,
            Some((connector, name)) => {
                let stream = connector
                    .connect(name.clone(), stream)
                    .await
                    .map_err(|error| self.failed(&error))?;
                self.send(stream, request).await
            }
        }
    }

    async fn send(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        request: Request<Empty<Bytes>>,
    ) -> Result<Answer, RemoteError> {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failed(&error))?;
        let asked = Instant::now();
        let exchange = async {
            let answer = sender
                .send_request(request)
                .await
                .map_err(|error| self.failed(&error))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST_BODY)
                .collect()
                .await
                .map_err(|error| self.failed(&error))?;
            Ok(Answer {
                status: head.status,
                head: head.headers,
                body: body.to_bytes(),
                took: asked.elapsed(),
            })
        };
        tokio::pin!(connection, exchange);
        // The connection transfers the exchange's data. If the connection ends first, the exchange still has
        // to take the rest of the answer, or has an error to return.
        tokio::select! {
            biased;
            outcome = &mut exchange => return outcome,
            _ = &mut connection => {}
        }
        exchange.await
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> RemoteError {
        RemoteError::Failed {
            url: self.url.clone(),
            reason: reason.to_string(),
        }
    }
}

/// A device's answer.
struct Answer {
    status: StatusCode,
    head: HeaderMap,
    body: Bytes,
    /// From the request on an open connection to the end of the answer.
    took: Duration,
}

/// The content of a secret's file, read again each time.
pub(crate) fn secret(path: &Path) -> Result<String, RemoteError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(RemoteError::Secret {
            path: path.to_owned(),
            source,
        }),
    }
}

fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, RemoteError> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let wrong = |reason: &dyn std::fmt::Display| RemoteError::Authority {
                path: path.to_owned(),
                reason: reason.to_string(),
            };
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, pem::Error>>)
                .map_err(|error| wrong(&error))?;
            for certificate in certificates {
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"the file has no CERTIFICATE in PEM"));
            }
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Encodes everything but letters, digits and `-._~`, as RFC 3986 requires in a query.
pub(crate) fn percent_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
