//! Checks of the candidates' servers that admission can't do.

use crate::{
    api::{ALLOWED_PARAMETERS, Candidate, Database, FrugalityBenchmarkSpec},
    load::read::seconds,
    plan::settings::{
        error::SettingsError,
        load::Point,
        pods::{addresses_of, pods_of},
        postgresql::parameters,
    },
};

/// Connections that the candidates can't use: PostgreSQL reserves some for superusers, and the seed and the checks
/// need some.
const OTHER_CONNECTIONS: i32 = 10;

pub(super) fn check(spec: &FrugalityBenchmarkSpec, points: &[Point]) -> Result<(), SettingsError> {
    if let Some(database) = &spec.database {
        check_parameters(database)?;
    }
    for candidate in &spec.candidates {
        check_backend_addresses(candidate)?;
        if let Some(within) = &candidate.ready_within {
            seconds("candidates.readyWithin", within)?;
        }
        let has_own_node = candidate.measured_node_selector.is_some();
        if has_own_node && spec.database.is_some() {
            return Err(SettingsError::DatabaseOnOneNode);
        }
        if !has_own_node && candidate.costs.is_some() {
            return Err(SettingsError::CostsWithoutNode(candidate.name.clone()));
        }
        if let Some(database) = &spec.database {
            check_connections(candidate, database, points)?;
        }
    }
    Ok(())
}

/// Admission refuses the same settings. This check is for an object that was stored before admission had the rule.
fn check_parameters(database: &Database) -> Result<(), SettingsError> {
    let mut names = database.parameters.keys();
    match names.find(|name| !ALLOWED_PARAMETERS.contains(&name.as_str())) {
        Some(name) => Err(SettingsError::Parameter(name.clone())),
        None => Ok(()),
    }
}

/// A user's variable could replace a backend's address. The load would then reach a server that is not measured.
fn check_backend_addresses(candidate: &Candidate) -> Result<(), SettingsError> {
    let backends = candidate.backends.iter().map(|backend| &backend.server);
    let servers = [&candidate.server].into_iter().chain(backends);
    for variable in servers.flat_map(|server| &server.env) {
        if addresses_of(candidate)
            .any(|[host, port]| variable.name == host || variable.name == port)
        {
            return Err(SettingsError::BackendAddress {
                candidate: candidate.name.clone(),
                variable: variable.name.clone(),
            });
        }
    }
    Ok(())
}

/// Every pod may open a pool. If PostgreSQL refused some connections, they would count as the candidate's errors.
fn check_connections(
    candidate: &Candidate,
    database: &Database,
    points: &[Point],
) -> Result<(), SettingsError> {
    let parameters = parameters(database);
    // PostgreSQL refuses a value that is not a number.
    let Some(allowed) = parameters
        .get("max_connections")
        .and_then(|text| text.parse().ok())
    else {
        return Ok(());
    };
    let pods = points
        .iter()
        .map(|point| pods_of(candidate, point.replicas));
    let pods = pods.max().unwrap_or_default();
    let needed = pods * database.pool_size + OTHER_CONNECTIONS;
    if needed > allowed {
        return Err(SettingsError::Connections {
            candidate: candidate.name.clone(),
            pods,
            pool_size: database.pool_size,
            allowed,
            needed,
        });
    }
    Ok(())
}
