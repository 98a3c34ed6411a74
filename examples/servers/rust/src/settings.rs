//! The settings in the environment: `DATABASE_URL`, `POOL_SIZE`, `PORT`, `BASIC_AUTH`.

use tokio_postgres::config::SslMode;

use crate::authentication::Credentials;

/// The server's settings, the same for every candidate.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The database's address, user and password.
    pub(crate) database: tokio_postgres::Config,
    /// Connections to the database, all opened at start-up.
    pub(crate) pool_size: usize,
    /// TCP port of the HTTP server.
    pub(crate) port: u16,
    /// The credentials that contacts require; `None` means no authentication.
    pub(crate) credentials: Option<Credentials>,
}

/// An environment variable that is missing or wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error(
        "DATABASE_URL is not set: give postgresql://user:password@host:5432/name?sslmode=disable"
    )]
    NoDatabaseUrl,
    #[error("DATABASE_URL is not a PostgreSQL URL: {0}")]
    DatabaseUrl(#[source] tokio_postgres::Error),
    #[error("DATABASE_URL must say sslmode=disable: the candidates are compared without TLS")]
    SslMode,
    #[error("BASIC_AUTH must be user:password, with a user")]
    BasicAuth,
    #[error("{name} must be a whole number from 1 to {maximum}, not \"{value}\"")]
    Number {
        name: &'static str,
        maximum: u16,
        value: String,
    },
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Self, SettingsError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let url = variable("DATABASE_URL").ok_or(SettingsError::NoDatabaseUrl)?;
        let mut database: tokio_postgres::Config =
            url.parse().map_err(SettingsError::DatabaseUrl)?;
        // The drivers' defaults differ: asyncpg uses TLS if the database offers it, tokio-postgres does not.
        if database.get_ssl_mode() != SslMode::Disable {
            return Err(SettingsError::SslMode);
        }
        database.application_name("contacts-rust");
        let number = |name, default, maximum| match variable(name) {
            None => Ok(default),
            Some(value) => match value.parse() {
                Ok(number) if (1..=maximum).contains(&number) => Ok(number),
                _ => Err(SettingsError::Number {
                    name,
                    maximum,
                    value,
                }),
            },
        };
        Ok(Self {
            database,
            pool_size: usize::from(number("POOL_SIZE", 10, 1000)?),
            port: number("PORT", 8080, u16::MAX)?,
            credentials: variable("BASIC_AUTH")
                .map(|value| Credentials::of(&value).ok_or(SettingsError::BasicAuth))
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const URL: &str = "postgresql://app:p%40ss@db.example:5433/app?sslmode=disable";

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_variables(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn defaults_are_ten_connections_and_port_8080() {
        let settings = settings(&[("DATABASE_URL", URL)]).unwrap();
        assert_eq!((settings.pool_size, settings.port), (10, 8080));
        assert!(settings.credentials.is_none());
        assert_eq!(settings.database.get_password(), Some(b"p@ss".as_slice()));
        assert_eq!(settings.database.get_ports(), [5433]);
    }

    #[rstest]
    #[case::none("postgresql://app@db/app")]
    #[case::prefer("postgresql://app@db/app?sslmode=prefer")]
    #[case::require("postgresql://app@db/app?sslmode=require")]
    fn any_other_sslmode_is_refused(#[case] url: &str) {
        let error = settings(&[("DATABASE_URL", url)]).unwrap_err();
        assert!(matches!(error, SettingsError::SslMode), "{error}");
    }

    #[rstest]
    #[case("")]
    #[case("user")]
    #[case(":password")]
    fn credentials_without_a_user_are_refused(#[case] value: &str) {
        let error = settings(&[("DATABASE_URL", URL), ("BASIC_AUTH", value)]).unwrap_err();
        assert!(matches!(error, SettingsError::BasicAuth), "{error}");
    }

    #[rstest]
    #[case("POOL_SIZE", "0")]
    #[case("POOL_SIZE", "1001")]
    #[case("POOL_SIZE", "ten")]
    #[case("PORT", "65536")]
    #[case("PORT", "")]
    fn a_wrong_number_is_refused_by_name(#[case] name: &str, #[case] value: &str) {
        let error = settings(&[("DATABASE_URL", URL), (name, value)]).unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    }
}
