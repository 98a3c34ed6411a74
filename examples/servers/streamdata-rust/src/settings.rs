//! The settings in the environment: `PORT`, `LISTEN_ADDRESS`, `SERVICE_HOST`, `SERVICE_PORT`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The address and port of the HTTP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listen {
    address: IpAddr,
    port: u16,
}

/// The service behind the balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    /// The hosts of the service, at least one.
    pub(crate) hosts: Vec<String>,
    /// The TCP port that all of them listen on.
    pub(crate) port: u16,
}

/// An environment variable that is missing or wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("{name} is not set: give {meaning}")]
    Missing {
        name: &'static str,
        meaning: &'static str,
    },
    #[error("{name} must be a whole number from 1 to 65535, not \"{value}\"")]
    Port { name: &'static str, value: String },
    #[error("LISTEN_ADDRESS must be an IP address, not \"{0}\"")]
    Address(String),
    #[error("SERVICE_HOST must be a host, or hosts separated by commas, not \"{0}\"")]
    Hosts(String),
}

impl Listen {
    pub(crate) fn from_environment() -> Result<Self, SettingsError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Ok(Self {
            address: match variable("LISTEN_ADDRESS") {
                None => Ipv4Addr::UNSPECIFIED.into(),
                Some(value) => value.parse().map_err(|_| SettingsError::Address(value))?,
            },
            port: variable("PORT").map_or(Ok(8080), |value| port("PORT", value))?,
        })
    }

    /// Address and port.
    pub(crate) fn address(self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

impl Service {
    pub(crate) fn from_environment() -> Result<Self, SettingsError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let required = |name, meaning| {
            variable(name)
                .filter(|value| !value.is_empty())
                .ok_or(SettingsError::Missing { name, meaning })
        };
        let hosts = required(
            "SERVICE_HOST",
            "the host of the service, or hosts separated by commas",
        )?;
        let service_port = required("SERVICE_PORT", "the port of the service")?;
        let listed: Vec<String> = hosts.split(',').map(|host| host.trim().into()).collect();
        if listed.iter().any(String::is_empty) {
            return Err(SettingsError::Hosts(hosts));
        }
        Ok(Self {
            hosts: listed,
            port: port("SERVICE_PORT", service_port)?,
        })
    }
}

fn port(name: &'static str, value: String) -> Result<u16, SettingsError> {
    match value.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(SettingsError::Port { name, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn given<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn defaults_are_port_8080_of_every_ipv4_address() {
        let listen = Listen::from_variables(given(&[])).unwrap();
        assert_eq!(listen.address().to_string(), "0.0.0.0:8080");
    }

    #[test]
    fn hosts_have_commas_between() {
        let variables = [("SERVICE_HOST", "one, 10.0.0.2"), ("SERVICE_PORT", "81")];
        let service = Service::from_variables(given(&variables)).unwrap();
        assert_eq!(service.hosts, ["one", "10.0.0.2"]);
        assert_eq!(service.port, 81);
    }

    #[rstest]
    #[case("PORT", "0")]
    #[case("PORT", "65536")]
    #[case("PORT", "")]
    #[case("LISTEN_ADDRESS", "localhost")]
    fn a_wrong_place_to_listen_is_refused_by_name(#[case] name: &str, #[case] value: &str) {
        let error = Listen::from_variables(given(&[(name, value)])).unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    }

    #[rstest]
    #[case("SERVICE_HOST", "")]
    #[case("SERVICE_HOST", "one,,two")]
    #[case("SERVICE_PORT", "")]
    #[case("SERVICE_PORT", "http")]
    fn a_wrong_service_is_refused_by_name(#[case] name: &str, #[case] value: &str) {
        let variables = [
            (name, value),
            ("SERVICE_HOST", "one"),
            ("SERVICE_PORT", "8080"),
        ];
        let error = Service::from_variables(given(&variables)).unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    }
}
