//! One reading: a node's meter and its pods' counters at one time, from the text of stock Kepler or the node
//! meter.
//!
//! A successful scrape proves nothing: Kepler answers without its power metrics if it could not read them.
//! Therefore a text without the node's own series is an error. A number that no counter can have is also an
//! error.

mod error;
mod left_out;
mod pods;
mod rise;
mod series;
mod steady;

pub use self::{
    error::ReadingError,
    left_out::{Extent, LeftOut, Variation, WorkingSets},
    rise::Rise,
    steady::Steady,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::exposition;
use crate::model::{LinearModel, ModelUncertainty};
use series::Scrape;

pub use pods::{PodIdentity, PodReading, Pods};

/// The source of a node's power. Ordered from best to worst: the worst of several is their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Provenance {
    /// A physical instrument: RAPL, a sensor, a plug.
    Metered,
    /// Computed from CPU use by a power model.
    Modelled,
    /// Invented numbers, for example from Kepler's development meter.
    Fake,
}

impl fmt::Display for Provenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Metered => "Metered",
            Self::Modelled => "Modelled",
            Self::Fake => "Fake",
        })
    }
}

/// The meter of a reading. All fields must be equal in two readings of one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MeterIdentity {
    /// `kepler` or `frugality-meter`.
    pub name: String,
    /// The meter's own version; `unknown` if the meter does not report it.
    pub version: String,
    /// The source of its power: for Kepler the zone's path, for the node meter the source's name.
    pub source: String,
    /// Digest of the user's settings for the source, for example of its URL and its slope. Kepler reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The board that a power model represents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// How the node's power was obtained.
    pub provenance: Provenance,
    /// The coefficients of a power model that is linear in CPU use. Absent for an instrument, and for a model
    /// with another or an unknown shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<LinearModel>,
}

impl fmt::Display for MeterIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.version, self.source)?;
        if let Some(board) = &self.board {
            write!(f, " {board}")?;
        }
        self.model
            .as_ref()
            .map_or(Ok(()), |model| write!(f, " ({model})"))
    }
}

/// The software of a node. A change in any field changes the cost of the same work. Values that the meter
/// does not report are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    /// Release of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The processors' frequency governors, comma-separated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Version of the firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
}

impl Platform {
    /// The first field that differs in a later observation, with both values. A field that is unknown on
    /// either side does not differ.
    #[must_use]
    pub fn change(&self, later: &Self) -> Option<(&'static str, String, String)> {
        [
            ("kernel", &self.kernel, &later.kernel),
            ("frequency governor", &self.governor, &later.governor),
            ("firmware", &self.firmware, &later.firmware),
        ]
        .into_iter()
        .find_map(|(what, from, to)| {
            let (from, to) = (from.clone()?, to.clone()?);
            (from != to).then_some((what, from, to))
        })
    }
}

/// One observation of a node's meter and its pods' counters. In a reading from [`read`] every number is
/// finite and, except for the temperature, not negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Time of the scrape by the scraper's clock, in Unix seconds.
    pub scraped_at_unix_seconds: f64,
    /// Time of the counters by the node's clock, in Unix seconds. Stock Kepler does not report it.
    pub meter_unix_seconds: Option<f64>,
    /// The meter that was read.
    pub meter: Arc<MeterIdentity>,
    /// Kernel, governor and firmware.
    pub platform: Arc<Platform>,
    /// Start of the meter's counters, in Unix seconds.
    pub meter_start_unix_seconds: Option<f64>,
    /// The interval at which the meter observes its source, in seconds.
    pub interval_seconds: Option<f64>,
    /// The largest power that the meter's source can report for this node, in watts.
    pub max_watts: Option<f64>,
    /// The zone of this reading. Zones overlap, so they are never added up.
    pub zone: String,
    /// The node's energy counter of that zone, in joules.
    pub node_joules: f64,
    /// The part of that energy that the meter shares among pods, in joules.
    pub active_joules: Option<f64>,
    /// The rest of that energy, in joules.
    pub idle_joules: Option<f64>,
    /// CPU time of the whole node so far, in seconds.
    pub node_cpu_seconds: Option<f64>,
    /// CPU time of the node's processors without interrupts, in seconds, for any user.
    pub processors_busy_seconds: Option<f64>,
    /// CPU time of the node's processors for interrupts, in seconds.
    pub processors_interrupt_seconds: Option<f64>,
    /// CPU time of the node's processors that the hypervisor gave to others, in seconds.
    pub processors_stolen_seconds: Option<f64>,
    /// How long the node was throttled, in seconds by cause: `under_voltage`, `frequency_capped`,
    /// `throttled`, `soft_temperature_limit`. Empty if the meter does not report it.
    pub throttled_seconds: Arc<BTreeMap<String, f64>>,
    /// Temperature of the node's processor, in degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Clock of the node's processor, in hertz.
    pub frequency_hertz: Option<f64>,
    /// Relative standard uncertainty of the node's energy, from the instrument or the model.
    pub relative_uncertainty: Option<f64>,
    /// Step of the instrument's counter, in joules; unknown if the instrument integrates power.
    pub resolution_joules: Option<f64>,
    /// Age of the last reading of the instrument itself, in seconds.
    pub source_age_seconds: Option<f64>,
    /// Number of the instrument's readings so far at the end of its scale. There it reports the same value
    /// for all larger ones.
    pub saturated_readings: Option<f64>,
    /// The running pods. Pods that have ended are excluded.
    pub pods: Pods,
    /// Summary of the readings before this one that [`Steady::thin`] left out.
    pub left_out: Option<Box<LeftOut>>,
}

impl Reading {
    /// Time of the counters, in Unix seconds: the meter's own time, else the scrape's.
    #[must_use]
    pub fn at_unix_seconds(&self) -> f64 {
        self.meter_unix_seconds
            .unwrap_or(self.scraped_at_unix_seconds)
    }

    /// Whether this scrape showed the same reading as an earlier one. If the meter reports its time, equal
    /// times mean the same reading. Stock Kepler answers from the same snapshot within its staleness. The first
    /// of such scrapes is nearest to the time of the snapshot.
    #[must_use]
    pub fn repeats(&self, earlier: &Self) -> bool {
        match (earlier.meter_unix_seconds, self.meter_unix_seconds) {
            (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
            (None, None) => {
                earlier
                    .at_unix_seconds()
                    .total_cmp(&self.at_unix_seconds())
                    .is_eq()
                    || (earlier.node_joules.total_cmp(&self.node_joules).is_eq()
                        && earlier.active_joules == self.active_joules
                        && earlier.idle_joules == self.idle_joules
                        && earlier.pods == self.pods
                        && earlier.meter == self.meter)
            }
            _ => false,
        }
    }

    /// Shares equal parts with an earlier reading, because a long window has thousands of readings. The
    /// reading's values do not change.
    pub fn share(&mut self, earlier: &Self) {
        share(&mut self.meter, &earlier.meter);
        share(&mut self.platform, &earlier.platform);
        share(&mut self.throttled_seconds, &earlier.throttled_seconds);
        self.pods.share(&earlier.pods);
    }
}

fn share<T: PartialEq>(own: &mut Arc<T>, earlier: &Arc<T>) {
    if own == earlier {
        *own = Arc::clone(earlier);
    }
}

/// The zone of the whole board (<https://docs.kernel.org/power/powercap/powercap.html> has the names of zones).
pub const BOARD_ZONE: &str = "psys";
/// The zone of the processors.
pub const PACKAGE_ZONE: &str = "package";
/// Zones that stand for the node, the widest first.
const ZONES_BY_REACH: [&str; 2] = [BOARD_ZONE, PACKAGE_ZONE];
/// Zones that are parts of the node (its cores, its memory, the rest of the socket).
const PARTS: [&str; 3] = ["core", "dram", "uncore"];

/// Parses a meter's answer.
///
/// `zone` is the zone to read. Without it, the function takes the board's zone, else the socket's. It also takes a
/// single zone with an unknown name. The user must choose among several such zones, and a zone that is a part of the node.
pub fn read(
    text: &str,
    node_name: &str,
    zone: Option<&str>,
    scraped_at_unix_seconds: f64,
) -> Result<Reading, ReadingError> {
    let scraped_at_unix_seconds = series::valid(scraped_at_unix_seconds, || {
        "the time of the scrape".to_owned()
    })?;
    let scrape = Scrape {
        samples: exposition::parse(text)?,
        node_name,
    };
    let zone = choose_zone(&scrape, zone)?;
    let by_zone = [("zone", zone.as_str())];
    let no_node_series = || ReadingError::NoNodeSeries {
        node_name: node_name.to_owned(),
    };
    let node = scrape
        .one(series::NODE_JOULES, &by_zone)?
        .ok_or_else(no_node_series)?;
    let path = node.label("path").unwrap_or_default().to_owned();
    Ok(Reading {
        scraped_at_unix_seconds,
        meter_unix_seconds: scrape.number(series::METER_READING_TIMESTAMP, &by_zone)?,
        meter: Arc::new(identify(&scrape, &path)?),
        platform: Arc::new(platform(&scrape)?),
        meter_start_unix_seconds: scrape.number(series::METER_START, &[])?,
        interval_seconds: scrape.number(series::METER_INTERVAL, &[])?,
        max_watts: scrape.number(series::METER_MAX_WATTS, &by_zone)?,
        node_joules: series::valid_sample(node)?,
        active_joules: scrape.number(series::NODE_ACTIVE_JOULES, &by_zone)?,
        idle_joules: scrape.number(series::NODE_IDLE_JOULES, &by_zone)?,
        node_cpu_seconds: scrape.number(series::NODE_CPU_SECONDS, &[])?,
        processors_busy_seconds: scrape.number(series::PROCESSORS_BUSY, &[])?,
        processors_interrupt_seconds: scrape.number(series::PROCESSORS_INTERRUPT, &[])?,
        processors_stolen_seconds: scrape.number(series::PROCESSORS_STOLEN, &[])?,
        throttled_seconds: Arc::new(throttled_seconds(&scrape)?),
        temperature_celsius: scrape.number_within(
            series::NODE_TEMPERATURE,
            &[],
            &series::CELSIUS,
        )?,
        frequency_hertz: scrape.number(series::NODE_FREQUENCY, &[])?,
        relative_uncertainty: scrape.number_within(
            series::ENERGY_RELATIVE_UNCERTAINTY,
            &by_zone,
            &series::RELATIVE_UNCERTAINTY,
        )?,
        resolution_joules: scrape.number(series::ENERGY_RESOLUTION, &by_zone)?,
        source_age_seconds: scrape.number(series::LAST_TRUE_READING_AGE, &by_zone)?,
        saturated_readings: scrape.number(series::SATURATED_READINGS, &by_zone)?,
        pods: pods(&scrape, &zone)?,
        left_out: None,
        zone,
    })
}

fn choose_zone(scrape: &Scrape<'_>, asked: Option<&str>) -> Result<String, ReadingError> {
    let mut zones: Vec<&str> = scrape
        .all(series::NODE_JOULES)
        .map(|sample| sample.label("zone").unwrap_or_default())
        .collect();
    zones.sort_unstable();
    zones.dedup();
    let available = || zones.join(", ");
    if zones.is_empty() {
        return Err(ReadingError::NoNodeSeries {
            node_name: scrape.node_name.to_owned(),
        });
    }
    if let Some(asked) = asked {
        return if zones.contains(&asked) {
            Ok(asked.to_owned())
        } else {
            Err(ReadingError::NoSuchZone {
                zone: asked.to_owned(),
                available: available(),
            })
        };
    }
    let widest = ZONES_BY_REACH.into_iter().find(|zone| zones.contains(zone));
    match (widest, zones.as_slice()) {
        (Some(zone), _) => Ok(zone.to_owned()),
        (None, [only]) if !PARTS.contains(only) => Ok((*only).to_owned()),
        (None, _) => Err(ReadingError::ZoneUndecided {
            available: available(),
        }),
    }
}

/// The meter of these values. The node meter identifies itself; any other meter counts as stock Kepler.
fn identify(scrape: &Scrape<'_>, path: &str) -> Result<MeterIdentity, ReadingError> {
    let from_path = provenance_of_path(path);
    if !scrape.has_node_meter() {
        let version = scrape.kepler_version().unwrap_or("unknown").to_owned();
        let (name, source) = ("kepler".to_owned(), path.to_owned());
        return Ok(MeterIdentity {
            name,
            version,
            source,
            configuration: None,
            board: None,
            provenance: from_path,
            model: None,
        });
    }
    let no_info = || ReadingError::NoMeterInfo {
        node_name: scrape.node_name.to_owned(),
    };
    let info = scrape.one(series::METER_INFO, &[])?.ok_or_else(no_info)?;
    let label = |name| info.label(name).filter(|value| !value.is_empty());
    let stated = match label("provenance") {
        Some("Metered") => Provenance::Metered,
        Some("Modelled") => Provenance::Modelled,
        Some("Fake") => Provenance::Fake,
        other => {
            let text = other.unwrap_or_default().to_owned();
            return Err(ReadingError::UnknownProvenance { text });
        }
    };
    Ok(MeterIdentity {
        name: "frugality-meter".to_owned(),
        version: label("version").unwrap_or("unknown").to_owned(),
        source: label("source").unwrap_or(path).to_owned(),
        configuration: label("configuration").map(str::to_owned),
        board: label("board").map(str::to_owned),
        provenance: stated.max(from_path),
        model: linear_model(scrape)?,
    })
}

/// The coefficients of the node meter's own power model, if the meter uses it. Both must be present. Their
/// uncertainties count only if both are present, because one alone gives no uncertainty of an energy.
fn linear_model(scrape: &Scrape<'_>) -> Result<Option<LinearModel>, ReadingError> {
    let watts = |name| scrape.number(name, &[]);
    let share = |name| scrape.number_within(name, &[], &series::RELATIVE_UNCERTAINTY);
    let coefficients = watts(series::MODEL_IDLE_WATTS)?.zip(watts(series::MODEL_WATTS_PER_CPU)?);
    let known = share(series::MODEL_IDLE_WATTS_RELATIVE_UNCERTAINTY)?
        .zip(share(series::MODEL_WATTS_PER_CPU_RELATIVE_UNCERTAINTY)?);
    Ok(coefficients.map(|(idle_watts, watts_per_cpu)| LinearModel {
        idle_watts,
        watts_per_cpu,
        uncertainty: known.map(|(idle_watts, watts_per_cpu)| ModelUncertainty {
            idle_watts,
            watts_per_cpu,
        }),
    }))
}

fn platform(scrape: &Scrape<'_>) -> Result<Platform, ReadingError> {
    let info = scrape.one(series::PLATFORM_INFO, &[])?;
    let label = |name| {
        let value = info?.label(name)?;
        (!value.is_empty()).then(|| value.to_owned())
    };
    Ok(Platform {
        kernel: label("kernel"),
        governor: label("governor"),
        firmware: label("firmware"),
    })
}

/// The provenance that follows from a zone's path. Kepler's development meter invents paths that no kernel
/// has. The node meter marks the path of a model, in its own `path` and in the zone that it writes for stock
/// Kepler. All other sources of Kepler are instruments.
#[must_use]
pub fn provenance_of_path(path: &str) -> Provenance {
    if path.contains("/intel-rapl/energy_") {
        Provenance::Fake
    } else if path.starts_with("model:") || path.contains("/frugality-modelled") {
        Provenance::Modelled
    } else {
        Provenance::Metered
    }
}

/// The times in each throttled state.
fn throttled_seconds(scrape: &Scrape<'_>) -> Result<BTreeMap<String, f64>, ReadingError> {
    let mut seconds = BTreeMap::new();
    for sample in scrape.all(series::THROTTLED_SECONDS) {
        let cause = sample.label("cause").unwrap_or_default().to_owned();
        let value = series::valid_sample(sample)?;
        if seconds.insert(cause, value).is_some() {
            return Err(ReadingError::Ambiguous {
                series: series::describe(sample),
            });
        }
    }
    Ok(seconds)
}

/// The running pods with all of their counters.
fn pods(scrape: &Scrape<'_>, zone: &str) -> Result<Pods, ReadingError> {
    type Field = fn(&mut PodReading) -> &mut Option<f64>;
    type Source<'a> = (&'a str, &'a [(&'a str, &'a str)], Field);
    let sources: [Source<'_>; 3] = [
        (
            series::POD_JOULES,
            &[("state", "running"), ("zone", zone)],
            |pod| &mut pod.joules,
        ),
        (series::POD_CPU_SECONDS, &[], |pod| &mut pod.cpu_seconds),
        (series::POD_WORKING_SET, &[], |pod| {
            &mut pod.working_set_bytes
        }),
    ];
    let mut pods: BTreeMap<&str, PodReading> = BTreeMap::new();
    for (name, wanted, field) in sources {
        for sample in scrape
            .all(name)
            .filter(|sample| series::carries(sample, wanted))
        {
            let Some(uid) = sample.label("pod_id").filter(|uid| !uid.is_empty()) else {
                continue;
            };
            let pod = pods.entry(uid).or_insert_with(|| {
                let label = |name| sample.label(name).unwrap_or_default();
                PodReading::of(uid, label("pod_namespace"), label("pod_name"))
            });
            let value = series::valid_sample(sample)?;
            if field(pod).replace(value).is_some() {
                return Err(ReadingError::Ambiguous {
                    series: series::describe(sample),
                });
            }
        }
    }
    Ok(pods.into_values().collect())
}

#[cfg(test)]
mod tests;
