//! Devices that answer over HTTP: the question for each, and the place of its number in the answer.

use crate::power::{
    config::{ConfigError, Gen1Component, Gen2Component, Polling, SourceConfig},
    in_url,
    polled::{Checks, MeasuredAt},
    remote::Credentials,
};

/// No maker states an accuracy for a load of a few watts. Tests of such plugs find 1 to 5 %. The plug's value
/// includes the losses of the board's supply. A judgement.
pub(super) const PLUG_RELATIVE_UNCERTAINTY: f64 = 0.03;

/// A device on the network, and the place of its number.
pub(super) struct HttpDevice {
    pub(super) name: &'static str,
    pub(super) url: String,
    pub(super) path: String,
    pub(super) unit: String,
    pub(super) polling: Polling,
    pub(super) credentials: Option<Credentials>,
    pub(super) relative_uncertainty: Option<f64>,
    pub(super) resolution_joules: Option<f64>,
    pub(super) checks: Checks,
}

impl HttpDevice {
    /// A plug that reports power, in watts.
    fn plug(
        name: &'static str,
        url: String,
        path: String,
        polling: &Polling,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            name,
            url,
            path,
            unit: "W".to_owned(),
            credentials: polling.credentials()?,
            polling: polling.clone(),
            relative_uncertainty: Some(PLUG_RELATIVE_UNCERTAINTY),
            resolution_joules: None,
            checks: Checks::default(),
        })
    }

    fn shelly_gen1(
        host: &str,
        channel: u32,
        component: Gen1Component,
        polling: &Polling,
    ) -> Result<Self, ConfigError> {
        let url = format!("http://{}/status", in_url(host));
        let (list, relative_uncertainty) = match component {
            Gen1Component::Meter => ("meters", Some(PLUG_RELATIVE_UNCERTAINTY)),
            Gen1Component::Emeter => ("emeters", None),
        };
        let path = format!("{list}.{channel}.power");
        Ok(Self {
            relative_uncertainty,
            checks: Checks {
                valid: Some(steps(&format!("{list}.{channel}.is_valid"))),
                ..Checks::default()
            },
            ..Self::plug("shelly-gen1", url, path, polling)?
        })
    }

    fn shelly_gen2(
        host: &str,
        channel: u32,
        component: Gen2Component,
        polling: &Polling,
    ) -> Result<Self, ConfigError> {
        let (kind, path, errors) = gen2_component(component);
        let url = format!("http://{}/rpc/{kind}.GetStatus?id={channel}", in_url(host));
        let asked = Self::plug("shelly-gen2", url, path.to_owned(), polling)?;
        let is_clamp = kind.starts_with("EM");
        Ok(Self {
            credentials: asked.credentials.map(by_digest_only),
            relative_uncertainty: asked.relative_uncertainty.filter(|_| !is_clamp),
            checks: Checks {
                errors: errors.map(steps),
                ..Checks::default()
            },
            ..asked
        })
    }

    /// `None` if the configuration is not for a device on the network.
    pub(super) fn of(config: &SourceConfig) -> Result<Option<Self>, ConfigError> {
        Ok(Some(match config {
            SourceConfig::ShellyGen1 {
                host,
                channel,
                component,
                polling,
            } => Self::shelly_gen1(host, *channel, *component, polling)?,
            SourceConfig::ShellyGen2 {
                host,
                channel,
                component,
                polling,
            } => Self::shelly_gen2(host, *channel, *component, polling)?,
            SourceConfig::Tasmota { host, polling } => {
                let url = format!("http://{}/cm?cmnd=Status%208", in_url(host));
                let path = "StatusSNS.ENERGY.Power".to_owned();
                // Whole watts are the default, and a step of 1 W is a third of a board's power.
                let decimals = Some(steps(&path));
                let asked = Self::plug("tasmota", url, path, polling)?;
                let credentials = asked.credentials.map(in_query);
                Self {
                    credentials,
                    checks: Checks {
                        decimals,
                        ..Checks::default()
                    },
                    ..asked
                }
            }
            SourceConfig::Json {
                url,
                path,
                time_path,
                unit,
                resolution_joules,
                polling,
            } => Self {
                unit: unit.clone(),
                relative_uncertainty: None,
                resolution_joules: *resolution_joules,
                checks: Checks {
                    time: time_path
                        .as_deref()
                        .map(|path| MeasuredAt::new(steps(path))),
                    ..Checks::default()
                },
                ..Self::plug("json", url.clone(), path.clone(), polling)?
            },
            SourceConfig::Prometheus {
                url,
                unit,
                resolution_joules,
                polling,
                ..
            } => Self {
                unit: unit.clone(),
                relative_uncertainty: None,
                resolution_joules: *resolution_joules,
                ..Self::plug("prometheus", url.clone(), String::new(), polling)?
            },
            _ => return Ok(None),
        }))
    }
}

/// The component's name in Shelly's API, the place of its active power, and the place of its errors about the
/// measurement.
fn gen2_component(component: Gen2Component) -> (&'static str, &'static str, Option<&'static str>) {
    match component {
        // A switch has only errors about the load, such as `overpower`.
        Gen2Component::Switch => ("Switch", "apower", None),
        Gen2Component::Pm1 => ("PM1", "apower", Some("errors")),
        Gen2Component::Em1 => ("EM1", "act_power", Some("errors")),
        Gen2Component::Em => ("EM", "total_act_power", Some("errors")),
        Gen2Component::EmA => ("EM", "a_act_power", Some("a_errors")),
        Gen2Component::EmB => ("EM", "b_act_power", Some("b_errors")),
        Gen2Component::EmC => ("EM", "c_act_power", Some("c_errors")),
    }
}

/// The steps of a path such as `meters.0.power`.
pub(super) fn steps(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

/// Shelly's second generation accepts only a digest.
fn by_digest_only(credentials: Credentials) -> Credentials {
    match credentials {
        Credentials::Password {
            username,
            password_file,
            ..
        } => Credentials::Password {
            digest_only: true,
            username,
            password_file,
        },
        other => other,
    }
}

/// Tasmota takes user and password in the URL.
fn in_query(credentials: Credentials) -> Credentials {
    match credentials {
        Credentials::Password {
            username,
            password_file,
            ..
        } => Credentials::Query {
            username,
            password_file,
        },
        other => other,
    }
}
