//! One object of an SNMP agent, such as the power of a switch's port (SNMPv2c, RFC 3416).

use std::path::PathBuf;
use std::time::Duration;

use hyper::http::uri::Authority;
use snmp2::{AsyncSession, Oid, Value};

use super::remote::{RemoteError, secret};

const PORT: u16 = 161;
/// The community that agents have for reading, if none was set.
const COMMUNITY: &str = "public";

/// Why an agent gives no reading, or can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnmpError {
    /// The agent's name can't be used.
    #[error(
        "the meter cannot use the host {0:?}: write a name or an address, with a port if it is not 161"
    )]
    Host(String),
    /// The OID can't be used.
    #[error(
        "the meter cannot use the OID {0:?}: write numbers joined by dots, such as 1.3.6.1.2.1.105.1.3.1.1.4.1"
    )]
    Oid(String),
    /// SNMPv2c has no such authentication.
    #[error("SNMPv2c knows no user, no token and no certificate: write communityFile instead")]
    Credentials,
    /// The community's file is unreadable.
    #[error(transparent)]
    Community(#[from] RemoteError),
    /// The exchange failed.
    #[error("{from}: {reason}")]
    Failed {
        /// Agent and object.
        from: String,
        /// The error.
        reason: String,
    },
    /// No answer in time.
    #[error(
        "{from} has not answered within {seconds} s: an agent does not answer a wrong community either"
    )]
    Slow {
        /// Agent and object.
        from: String,
        /// The time limit, in seconds.
        seconds: f64,
    },
    /// The object is not a number.
    #[error("{from} answers {value}, which is not a number above 0")]
    NoNumber {
        /// Agent and object.
        from: String,
        /// The agent's value.
        value: String,
    },
}

/// An object to poll.
#[derive(Debug)]
pub(crate) struct Object {
    host: String,
    port: u16,
    oid: Oid<'static>,
    url: String,
    community_file: Option<PathBuf>,
    timeout: Duration,
}

impl Object {
    /// An agent's object.
    pub(crate) fn new(
        host: &str,
        oid: &str,
        community_file: Option<PathBuf>,
        timeout: Duration,
    ) -> Result<Self, SnmpError> {
        let authority: Authority = super::in_url(host)
            .parse()
            .ok()
            .filter(|it: &Authority| !it.host().is_empty() && !host.contains('@'))
            .ok_or_else(|| SnmpError::Host(host.to_owned()))?;
        let wrong = || SnmpError::Oid(oid.to_owned());
        let arcs = oid
            .trim_start_matches('.')
            .split('.')
            .map(|arc| arc.parse::<u64>().ok())
            .collect::<Option<Vec<_>>>()
            .ok_or_else(wrong)?;
        let parsed = Oid::from(&arcs).map_err(|_| wrong())?;
        let port = authority.port_u16().unwrap_or(PORT);
        let name = authority.host();
        Ok(Self {
            host: name.trim_matches(['[', ']']).to_owned(),
            port,
            url: format!("snmp://{name}:{port}/{}", oid.trim_start_matches('.')),
            oid: parsed,
            community_file,
            timeout,
        })
    }

    /// Agent and object as a URL, without secrets.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The object's value, a number.
    pub(crate) async fn get(&self) -> Result<f64, SnmpError> {
        let community = match &self.community_file {
            Some(file) => secret(file)?,
            None => COMMUNITY.to_owned(),
        };
        tokio::time::timeout(self.timeout, self.ask(&community))
            .await
            .unwrap_or_else(|_| {
                Err(SnmpError::Slow {
                    from: self.url.clone(),
                    seconds: self.timeout.as_secs_f64(),
                })
            })
    }

    /// With a socket of its own for each question, so that no late answer can count for a later question.
    async fn ask(&self, community: &str) -> Result<f64, SnmpError> {
        let failed = |reason: &dyn std::fmt::Display| SnmpError::Failed {
            from: self.url.clone(),
            reason: reason.to_string(),
        };
        let agent = (self.host.as_str(), self.port);
        let mut session = AsyncSession::new_v2c(agent, community.as_bytes(), 1)
            .await
            .map_err(|error| failed(&error))?;
        let answer = session
            .get(&self.oid)
            .await
            .map_err(|error| failed(&error))?;
        if answer.error_status != 0 {
            return Err(failed(&format_args!(
                "the agent answers error {} (RFC 3416, 3)",
                answer.error_status
            )));
        }
        let mut values = answer.varbinds;
        let (oid, value) = values
            .next()
            .ok_or_else(|| failed(&"an answer without a value"))?;
        if oid != self.oid {
            return Err(failed(&format_args!("an answer for {oid}")));
        }
        number(&value).ok_or_else(|| SnmpError::NoNumber {
            from: self.url.clone(),
            value: format!("{value:?}"),
        })
    }
}

/// A value as a number. Scripts behind an agent return text.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Unsigned32(number) | Value::Counter32(number) => Some(f64::from(*number)),
        Value::Counter64(number) => Some(*number as f64),
        Value::OctetString(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
