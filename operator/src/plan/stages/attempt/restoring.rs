//! An attempt after its figures: the operator removes the candidate, counts the database's transactions and restores the
//! database for the next attempt. Then it writes the outcome.
//!
//! No check needs the candidate's pods any more. Its sessions end with its containers, and PostgreSQL has then counted
//! all of their transactions.

use frugality_measure::report::InjectionReport;

use super::{
    before_load::POLL_SECONDS,
    step::{OpenAttempt, Step},
};
use crate::{
    api::{FrugalityTrialStatus, Outcome, Reason, Role},
    plan::{
        action::Deletion,
        context::{RESTORING, SOON_SECONDS},
        facts::{Child, ChildKind, PodFacts, Termination, pods::counted_transactions},
        objects::{INJECTOR_CONTAINER, PREPARE_CONTAINER, SEED_CONTAINER},
        placement::nodes,
        report::trial::TrialFigures,
    },
    time::unix_seconds,
};
use kube::ResourceExt;

/// How long the operator waits for the count, in seconds. An attempt without a count is measured without it.
const COUNT_TIMEOUT_SECONDS: f64 = 60.0;

impl OpenAttempt<'_> {
    pub(super) fn after_figures(&self, status: FrugalityTrialStatus) -> Step {
        let Some(job) = self.restoring_job() else {
            return self.restore();
        };
        match self.seed_end() {
            Some(end) => self.measured(FrugalityTrialStatus {
                transactions_per_request: self.transactions_per_request(end),
                ..status
            }),
            None if self.now_unix_seconds - job.created_unix_seconds > COUNT_TIMEOUT_SECONDS => {
                self.measured(status)
            }
            None => Step::wait(RESTORING, POLL_SECONDS),
        }
    }

    /// Ends the attempt with its figures, and removes the rest of its objects.
    pub(super) fn measured(&self, mut status: FrugalityTrialStatus) -> Step {
        let (Some(requests), Some(energy)) = (&status.requests, &status.energy) else {
            return self.void(
                status,
                Reason::NoPowerMetrics,
                "the figures are not complete",
            );
        };
        let units = &self.builder.settings.units;
        let figures = TrialFigures::new(&self.trial.spec, requests, energy);
        let unit = units.whole;
        let message = match requests.errors {
            0 => format!("{} {unit}s, all as expected", requests.successes),
            errors => format!("{} {unit}s succeeded, {errors} failed", requests.successes),
        };
        status.columns = Some(figures.columns(units));
        let mut step = self.end(status, Outcome::Measured, Reason::Measured, &message);
        step.delete = self
            .children()
            .filter(|it| !it.deleting)
            .map(Deletion::of)
            .collect();
        step
    }

    /// What must be gone before the Job that counts and restores: the candidate's objects, and the earlier Job that
    /// restored it. Objects that are being deleted are left out.
    pub(super) fn before_restore(&self) -> Vec<Deletion> {
        self.children()
            .filter(|child| child.kind != ChildKind::Job)
            .chain(self.seed_jobs())
            .filter(|child| !child.deleting)
            .map(Deletion::of)
            .collect()
    }

    /// The next step until the Job that counts and restores exists.
    fn restore(&self) -> Step {
        let mut step = Step::wait(RESTORING, SOON_SECONDS);
        step.delete = self.before_restore();
        if self.seed_jobs().next().is_some() {
            return step;
        }
        let pods = || {
            let is_server = |pod: &&PodFacts| {
                pod.role == Role::Candidate.as_str() && pod.trial.as_deref() == Some(self.name())
            };
            self.observed.pods.iter().filter(is_server)
        };
        // Kubernetes removes a pod about a second after its containers have ended. If a pod is missing, its Deployment may be about to make
        // another one until it is gone itself. So the Job begins early only if all pods end within a second.
        let all_there = i32::try_from(pods().count()) == Ok(self.expected_pods());
        let servers = || {
            self.children()
                .filter(|it| it.kind == ChildKind::Deployment)
        };
        let no_new_pod =
            servers().next().is_none() || (all_there && servers().all(|server| server.deleting));
        if no_new_pod && pods().all(PodFacts::has_stopped) {
            let database = self.builder.benchmark.spec.database.as_ref();
            let on = nodes::selector(self.measured);
            let seed = database.map(|database| self.builder.seed(database, &on, Some(self.name())));
            step.create.extend(seed);
        } else if pods().next().is_some() {
            step.again_seconds = POLL_SECONDS;
        }
        step
    }

    fn seed_jobs(&self) -> impl Iterator<Item = &Child> {
        let benchmark = self.builder.benchmark.name_any();
        let children = self.observed.children.iter();
        children.filter(move |child| child.is_seed_job(&benchmark, self.builder.run))
    }

    /// The Job that counts the transactions and restores the database for the next attempt.
    fn restoring_job(&self) -> Option<&Child> {
        self.seed_jobs().find(|job| self.is_later(job))
    }

    /// The end of the Job that restored the database last.
    pub(super) fn seed_end(&self) -> Option<&Termination> {
        let of_run = |pod: &&PodFacts| {
            pod.role == Role::Seed.as_str() && pod.run == self.trial.spec.run && !pod.deleting
        };
        let pod = self.observed.pods.iter().find(of_run)?;
        pod.terminated.get(SEED_CONTAINER)
    }

    /// Whether the Job was created during this attempt. The Job that restored the database for it is older.
    fn is_later(&self, job: &Child) -> bool {
        let opened = self.trial.creation_timestamp();
        opened.is_some_and(|opened| job.created_unix_seconds > unix_seconds(opened.0))
    }

    /// The database's transactions between the two counts, per request of warm-up, measured window and tail. A script's
    /// `setup` is between the counts, too, so its transactions can't be separated. A request that failed may not have reached the
    /// database.
    fn transactions_per_request(&self, restored: &Termination) -> Option<f64> {
        let scenario = self.builder.benchmark.spec.scenario.as_ref();
        if scenario.is_some_and(|it| it.script.contains("setup")) {
            return None;
        }
        let ended = |role: Role, container: &str| {
            let pods = self.pods(role);
            Some(pods.first()?.terminated.get(container)?.message.clone())
        };
        let before = counted_transactions(&ended(Role::Prepare, PREPARE_CONTAINER)?)?;
        let report = InjectionReport::decode(&ended(Role::Injector, INJECTOR_CONTAINER)?).ok()?;
        let spans = || [report.warm_up, report.tail].into_iter().flatten();
        if spans().any(|span| span.errors > 0) {
            return None;
        }
        let requests = spans().fold(report.measured.span().requests, |sum, span| {
            sum.saturating_add(span.requests)
        });
        let transactions = counted_transactions(&restored.message)?.checked_sub(before)?;
        (requests > 0).then(|| transactions as f64 / requests as f64)
    }
}
