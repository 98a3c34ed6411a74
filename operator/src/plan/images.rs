//! The images of the operator's own containers, which stay the same during a run.
//!
//! An upgrade of the operator changes its defaults. A run that has begun goes on with the images that its first
//! entry of the ledger records. Otherwise each attempt after the upgrade would be void (`ImageChanged`).
//! An injector that does not know an option of the newer operator would make its attempts void. This case is not tested.

use crate::{
    api::RunImages,
    plan::{facts::Config, ledger::Ledger},
};

/// The images of a run that begins now.
#[must_use]
pub fn of_a_new_run(config: &Config) -> RunImages {
    RunImages {
        injector: config.injector_image.clone(),
        injector_k6: config.injector_k6_image.clone(),
        database: config.database_image.clone(),
    }
}

/// The images that the run began with. `None` if it has not begun, or if an operator began it that did not record
/// them.
#[must_use]
pub fn recorded<'a>(ledger: &Ledger<'a>) -> Option<&'a RunImages> {
    ledger
        .entries()
        .iter()
        .find_map(|entry| entry.spec.images.as_ref())
}

/// The configuration for the run, with the images that the run began with.
#[must_use]
pub fn kept(config: &Config, ledger: &Ledger<'_>) -> Config {
    let mut config = config.clone();
    if let Some(images) = recorded(ledger) {
        config.injector_image.clone_from(&images.injector);
        config.injector_k6_image.clone_from(&images.injector_k6);
        config.database_image.clone_from(&images.database);
    }
    config
}
