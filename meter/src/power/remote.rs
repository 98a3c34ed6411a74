//! One GET of a device or an exporter over plain HTTP.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Larger than the page of any exporter that is asked once a second.
const LARGEST_BODY: usize = 2 << 20;
const HTTP_PORT: u16 = 80;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The URL is not one that can be asked.
    #[error("{url} cannot be asked: {reason}")]
    Url {
        /// The URL, without what is secret in it.
        url: String,
        /// What to write instead.
        reason: &'static str,
    },
    /// The secret's file cannot be read.
    #[error("cannot read the secret in {}: {source}", .path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The connection or the exchange failed.
    #[error("{url}: {reason}")]
    Failed {
        /// The URL, without what is secret in it.
        url: String,
        /// What happened.
        reason: String,
    },
    /// No answer in time.
    #[error("{url} has not answered within {seconds} s")]
    Slow {
        /// The URL, without what is secret in it.
        url: String,
        /// How long it had, in seconds.
        seconds: f64,
    },
    /// An answer that is none.
    #[error("{url} answers {status}{}", hint(*.status))]
    Refused {
        /// The URL, without what is secret in it.
        url: String,
        /// The status of the answer.
        status: StatusCode,
    },
}

fn hint(status: StatusCode) -> &'static str {
    if status == StatusCode::UNAUTHORIZED {
        ": it wants a user and a password (basic, bearer and Tasmota's own are supported; the \
         digest of Shelly's second generation is not: switch its authentication off, or read it \
         through an exporter)"
    } else {
        ""
    }
}

/// How to prove who asks. Secrets are in files, and are read anew for every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// HTTP basic authentication.
    Basic {
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
    /// User and password in the URL, as Tasmota wants them.
    Query {
        /// User name.
        username: String,
        /// File with the password.
        password_file: PathBuf,
    },
}

/// What is asked, and how long an answer may take.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Endpoint {
    url: String,
    host: String,
    port: u16,
    credentials: Option<Credentials>,
    timeout: Duration,
}

impl Endpoint {
    /// An `http://` URL.
    pub(crate) fn new(
        url: &str,
        credentials: Option<Credentials>,
        timeout: Duration,
    ) -> Result<Self, RemoteError> {
        let wrong = |reason| RemoteError::Url {
            url: url.to_owned(),
            reason,
        };
        let uri: Uri = url
            .parse()
            .map_err(|_| wrong("it is not a URL: write it with http:// in front"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(wrong(
                    "the meter has no TLS, to stay small; write an http:// URL, or let an exporter \
                     in the cluster read the device",
                ));
            }
            _ => return Err(wrong("write it with http:// in front")),
        }
        if url.contains('@') {
            return Err(wrong("give user and password apart from it, in a Secret"));
        }
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
        Ok(Self {
            url: url.to_owned(),
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(HTTP_PORT),
            credentials,
            timeout,
        })
    }

    /// The URL, without what is secret in it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The body of the answer.
    pub(crate) async fn get(&self) -> Result<String, RemoteError> {
        let request = self.request()?;
        match tokio::time::timeout(self.timeout, self.exchange(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RemoteError::Slow {
                url: self.url.clone(),
                seconds: self.timeout.as_secs_f64(),
            }),
        }
    }

    fn request(&self) -> Result<Request<Empty<Bytes>>, RemoteError> {
        let secret = |path: &PathBuf| match std::fs::read_to_string(path) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(source) => Err(RemoteError::Secret {
                path: path.clone(),
                source,
            }),
        };
        let mut url = self.url.clone();
        let mut authorization = None;
        match &self.credentials {
            None => {}
            Some(Credentials::Basic {
                username,
                password_file,
            }) => {
                let pair = format!("{username}:{}", secret(password_file)?);
                authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
            }
            Some(Credentials::Bearer { token_file }) => {
                authorization = Some(format!("Bearer {}", secret(token_file)?));
            }
            Some(Credentials::Query {
                username,
                password_file,
            }) => {
                let password = percent_encoded(&secret(password_file)?);
                let mark = if url.contains('?') { '&' } else { '?' };
                let user = percent_encoded(username);
                url = format!("{url}{mark}user={user}&password={password}");
            }
        }
        let failed = |error: &dyn std::fmt::Display| self.failed(error);
        let uri: Uri = url.parse().map_err(|error| failed(&error))?;
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        let mut request = Request::get(path).header(HOST, format!("{}:{}", self.host, self.port));
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        request.body(Empty::new()).map_err(|error| failed(&error))
    }

    async fn exchange(&self, request: Request<Empty<Bytes>>) -> Result<String, RemoteError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| self.failed(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failed(&error))?;
        let exchange = async {
            let answer = sender
                .send_request(request)
                .await
                .map_err(|error| self.failed(&error))?;
            let status = answer.status();
            if status != StatusCode::OK {
                return Err(RemoteError::Refused {
                    url: self.url.clone(),
                    status,
                });
            }
            let body = Limited::new(answer.into_body(), LARGEST_BODY)
                .collect()
                .await
                .map_err(|error| self.failed(&error))?;
            String::from_utf8(body.to_bytes().into()).map_err(|error| self.failed(&error))
        };
        tokio::pin!(connection, exchange);
        // The connection does the exchange's input and output. Where it ends first, the exchange
        // still has the rest of the answer to take, or an error to tell.
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

/// Everything but letters, digits and `-._~`, as RFC 3986 wants it in a query.
fn percent_encoded(text: &str) -> String {
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
