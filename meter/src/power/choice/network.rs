//! Instruments on the network: a device with an HTTP interface, a broker, an SNMP agent, a FRITZ!Box.

use super::http::{HttpDevice, PLUG_RELATIVE_UNCERTAINTY, steps};
use super::{ChoiceError, Chosen, Instrument, Measured, Plan};
use crate::power::config::{MqttRequest, Polling, SourceConfig, seconds};
use crate::power::fritz::{self, FritzError, Plug};
use crate::power::mqtt::{MqttError, Topic};
use crate::power::polled::{MeasuredAt, Polled, Times, Unit};
use crate::power::refresh::Refresh;
use crate::power::remote::{Credentials, DeviceEndpoint};
use crate::power::snmp::{Object, SnmpError};
use crate::power::{BOARD_ZONE, SourceProvenance, in_url};

impl Plan<'_> {
    fn remote(&self, config: &SourceConfig) -> Result<Chosen, ChoiceError> {
        let asked = HttpDevice::of(config)?;
        let Some(asked) = asked else {
            return self.model_alone();
        };
        let (interval, timeout) = (asked.polling.interval()?, asked.polling.timeout()?);
        let ca_file = asked.polling.ca_file.as_deref();
        let endpoint = DeviceEndpoint::new(&asked.url, asked.credentials, ca_file, timeout)?;
        let unit = known_unit(&asked.unit)?;
        let source = self.source(Measured {
            name: asked.name,
            path: endpoint.url().to_owned(),
            zone: BOARD_ZONE,
            relative_uncertainty: asked.relative_uncertainty,
            fixed_uncertainty_watts: 0.0,
            resolution_joules: asked.resolution_joules,
        });
        let refresh = Refresh::new(interval, asked.polling.refresh()?);
        let instrument = match config {
            SourceConfig::Prometheus { metric, labels, .. } => Polled::Prometheus {
                endpoint,
                metric: metric.clone(),
                labels: labels.clone(),
                unit,
                times: Times::default(),
                is_modelled: self.power.provenance == Some(SourceProvenance::Modelled),
            },
            _ => Polled::Json {
                endpoint,
                path: steps(&asked.path),
                unit,
                checks: asked.checks,
            },
        };
        let instrument = Instrument::Polled {
            instrument: Box::new(instrument),
            interval,
        };
        self.metered(source, instrument, Some(refresh))
    }

    /// An instrument on the network.
    pub(super) fn network(&self, config: &SourceConfig) -> Result<Chosen, ChoiceError> {
        match config {
            SourceConfig::FritzDect { host, ain, polling } => self.fritz(host, ain, polling),
            SourceConfig::Mqtt {
                broker,
                topic,
                path,
                time_path,
                unit,
                resolution_joules,
                request,
                polling,
            } => {
                let topic = mqtt_topic(broker, topic, request.as_ref(), polling)?;
                let described = Described {
                    name: "mqtt",
                    path: topic.url(),
                    resolution_joules: *resolution_joules,
                };
                let instrument = Polled::Mqtt {
                    topic,
                    path: path.as_deref().map(steps),
                    time: measured_at(time_path.as_deref(), path.is_some())?,
                    unit: known_unit(unit)?,
                };
                self.described(described, instrument, polling)
            }
            SourceConfig::Snmp {
                host,
                oid,
                unit,
                resolution_joules,
                community_file,
                polling,
            } => {
                if polling.credentials()?.is_some() || polling.ca_file.is_some() {
                    return Err(SnmpError::Credentials.into());
                }
                let object = Object::new(host, oid, community_file.clone(), polling.timeout()?)?;
                let described = Described {
                    name: "snmp",
                    path: object.url().to_owned(),
                    resolution_joules: *resolution_joules,
                };
                let instrument = Polled::Snmp {
                    object,
                    unit: known_unit(unit)?,
                };
                self.described(described, instrument, polling)
            }
            http => self.remote(http),
        }
    }

    /// A plug whose power the box refreshes far more seldom than the meter asks.
    fn fritz(&self, host: &str, ain: &str, polling: &Polling) -> Result<Chosen, ChoiceError> {
        let interval = seconds("intervalSeconds", polling.interval_seconds, fritz::INTERVAL)?;
        let Some(Credentials::Password {
            username,
            password_file,
            ..
        }) = polling.credentials()?
        else {
            return Err(FritzError::Credentials.into());
        };
        if polling.ca_file.is_some() {
            return Err(FritzError::Credentials.into());
        }
        let question = fritz::question(ain)?;
        let url = format!("http://{}{question}", in_url(host));
        let endpoint = DeviceEndpoint::new(&url, None, None, polling.timeout()?)?;
        let source = self.source(Measured {
            name: "fritz-dect",
            path: endpoint.url().to_owned(),
            zone: BOARD_ZONE,
            relative_uncertainty: Some(PLUG_RELATIVE_UNCERTAINTY),
            fixed_uncertainty_watts: 0.0,
            resolution_joules: None,
        });
        let refresh = Refresh::new(interval, polling.refresh()?.or(Some(fritz::REFRESH)));
        let plug = Plug::new(endpoint, question, username, password_file);
        let instrument = Instrument::Polled {
            instrument: Box::new(Polled::FritzDect(Box::new(plug))),
            interval,
        };
        self.metered(source, instrument, Some(refresh))
    }

    /// An instrument on the network whose number the user describes. Its accuracy is known to the user only.
    fn described(
        &self,
        described: Described,
        instrument: Polled,
        polling: &Polling,
    ) -> Result<Chosen, ChoiceError> {
        let interval = polling.interval()?;
        let source = self.source(Measured {
            name: described.name,
            path: described.path,
            zone: BOARD_ZONE,
            relative_uncertainty: None,
            fixed_uncertainty_watts: 0.0,
            resolution_joules: described.resolution_joules,
        });
        let instrument = Instrument::Polled {
            instrument: Box::new(instrument),
            interval,
        };
        let refresh = Refresh::new(interval, polling.refresh()?);
        self.metered(source, instrument, Some(refresh))
    }
}

/// The properties of an instrument whose number the user describes.
struct Described {
    name: &'static str,
    path: String,
    resolution_joules: Option<f64>,
}

fn known_unit(symbol: &str) -> Result<Unit, ChoiceError> {
    Unit::parse(symbol).ok_or_else(|| ChoiceError::UnknownUnit(symbol.to_owned()))
}

/// The place of the time in a message. Only a JSON message has places.
fn measured_at(time_path: Option<&str>, is_json: bool) -> Result<Option<MeasuredAt>, MqttError> {
    match time_path {
        Some(_) if !is_json => Err(MqttError::TimeWithoutPath),
        time_path => Ok(time_path.map(|path| MeasuredAt::new(steps(path)))),
    }
}

/// A device that publishes by itself may take one interval longer than a device that answers.
fn mqtt_topic(
    broker: &str,
    topic: &str,
    request: Option<&MqttRequest>,
    polling: &Polling,
) -> Result<Topic, ChoiceError> {
    let login = match polling.credentials()? {
        None => None,
        Some(Credentials::Password {
            username,
            password_file,
            ..
        }) => Some((username, password_file)),
        Some(_) => return Err(MqttError::Credentials.into()),
    };
    if polling.ca_file.is_some() {
        return Err(MqttError::Credentials.into());
    }
    let patience = match request {
        Some(_) => polling.timeout()?,
        None => polling.interval()? + polling.timeout()?,
    };
    Ok(Topic::new(broker, topic, request, login, patience)?)
}
