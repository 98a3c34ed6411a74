//! Reports what a node can measure.

mod load_steps;

use std::fmt::{Display, Write as _};

use crate::cgroup::CgroupReader;
use crate::cli::MeterSettings;
use crate::conditions::ConditionReader;
use crate::power::board::by_device_tree;
use crate::power::choice::{Chosen, Instrument, ORDER, choose, device_tree_model};
use crate::power::config::{NodePower, SourceConfig};
use crate::power::hwmon;
use crate::power::pmic;
use crate::power::rapl;
use crate::power::{InstrumentError, PowerOrEnergy};

/// The sources that were found, and the chart's values for them.
pub(crate) async fn report(settings: &MeterSettings) -> String {
    let mut text = String::new();
    let at = &settings.surroundings;
    let mut line = |what: &str, found: &dyn Display| {
        let _ = writeln!(text, "# {what:<16} {found}");
    };
    let model = device_tree_model(at);
    line("board", &model.as_deref().unwrap_or("unknown"));
    line("CPUs", &at.cpus);

    let sensors = hwmon::find(&at.sysfs);
    for sensor in &sensors {
        let (chip, label, device) = (&sensor.chip, &sensor.label, hwmon::device(sensor));
        let fit = if sensor.is_for_boards() {
            ""
        } else {
            " (not made to measure a board)"
        };
        let scale = sensor
            .full_scale_amperes()
            .map(|amperes| format!(", up to {amperes:.3} A"))
            .unwrap_or_default();
        line(
            "hwmon",
            &format!("{device}: chip {chip}, label {label}{scale}{fit}"),
        );
    }
    if sensors.is_empty() {
        line("hwmon", &"no power sensor");
    }
    match rapl::find(&at.sysfs) {
        Some(zones) => line("RAPL", &format!("zone {}", zones.zone)),
        None => line("RAPL", &"none"),
    }
    if let Some(device) = pmic::mailbox(&at.dev) {
        line("mailbox", &device.display());
    }
    let conditions = ConditionReader::find(&at.sysfs, &at.procfs).found();
    if conditions.is_empty() {
        line("conditions", &"none");
    }
    for path in conditions {
        line("conditions", &path);
    }
    match CgroupReader::new(&settings.cgroup_fs, &settings.cgroup_root)
        .and_then(|mut reader| reader.read())
    {
        Ok(observation) => line("pods", &observation.pods.len()),
        Err(error) => line("pods", &error),
    }

    let automatic = NodePower::only(SourceConfig::Auto {});
    let chosen = match settings.power.source {
        SourceConfig::Model {} => choose(&automatic, at).map(|chosen| (chosen, "auto")),
        _ => choose(&settings.power, at).map(|chosen| (chosen, "as configured")),
    };
    line("order of auto", &ORDER);
    let (chosen, how) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => {
            line("power", &error);
            return text;
        }
    };
    let source = chosen.supply.source().clone();
    line(
        "power",
        &format!(
            "{} ({}), {}, zone {}, {how}",
            source.name,
            source.path,
            source.provenance.as_str(),
            source.zone
        ),
    );
    match (source.model, source.relative_uncertainty) {
        (Some(model), _) => line("model", &model),
        (None, Some(share)) if source.fixed_uncertainty_watts > 0.0 => {
            let (share, fixed) = (share * 100.0, source.fixed_uncertainty_watts * 1000.0);
            line("uncertainty", &format!("{share:.1} % and {fixed:.1} mW"));
        }
        (None, Some(share)) => line("uncertainty", &format!("{:.1} %", share * 100.0)),
        (None, None) => line("uncertainty", &"unknown: write relativeUncertainty"),
    }
    let mut chosen = chosen;
    if let Some(interval) = refresh(&mut chosen, at.cpus).await {
        line("refresh", &interval);
    }
    match first_reading(chosen).await {
        Some(Ok(PowerOrEnergy::Watts(watts))) => line("now", &format!("{watts:.3} W")),
        Some(Ok(PowerOrEnergy::Joules(joules))) => line("now", &format!("{joules:.3} J counted")),
        Some(Err(error)) => line("now", &error),
        None => {}
    }
    if how == "auto" {
        let board = model.as_deref().and_then(by_device_tree);
        let _ = write!(text, "{}", values(source.name, board.map(|it| it.name)));
    }
    text
}

/// How often the instrument refreshes its value: observed, else as stated. `None` if every reading measures.
async fn refresh(chosen: &mut Chosen, cpus: u32) -> Option<String> {
    match &mut chosen.instrument {
        Some(Instrument::Polled { instrument, .. }) if instrument.may_repeat() => {
            Some(load_steps::refresh(instrument, cpus).await)
        }
        _ => {
            let seconds = chosen.supply.stated_refresh()?.as_secs_f64();
            Some(format!("every {seconds:.1} s, as stated"))
        }
    }
}

async fn first_reading(chosen: Chosen) -> Option<Result<PowerOrEnergy, InstrumentError>> {
    match chosen.instrument? {
        Instrument::Local(mut instrument) => Some(instrument.read()),
        Instrument::Polled { mut instrument, .. } => instrument
            .ask()
            .await
            .map(|answer| answer.map(|(quantity, _)| quantity))
            .transpose(),
    }
}

fn values(source: &str, board: Option<&str>) -> String {
    let mut text = match source {
        "board-model" => String::from("meter:\n"),
        // A container has no vcgencmd: the host must write the output of vcgencmd to a file, once per second.
        "pmic" => String::from(
            "meter:\n  power:\n    default:\n      source: {type: pmic, file: /run/frugality-pmic/adc}\n",
        ),
        _ => format!("meter:\n  power:\n    default:\n      source: {{type: {source}}}\n"),
    };
    if source == "board-model"
        && let Some(board) = board
    {
        let _ = writeln!(text, "  board: {board}");
    }
    text
}
