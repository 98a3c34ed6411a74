//! The end of an attempt: computes figures from the injector's termination message and the readings, or finds the
//! reason why there are no figures.

use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::{
    attempt::{self, Assessment, Windows, assess, same_answers, windows},
    energy::{EnergyFigures, Limits, Window, same_meter},
    report::{InjectionReport, ReportError},
    void::Void,
};
use kube::ResourceExt;

use crate::{
    api::{FrugalityTrial, FrugalityTrialSpec, FrugalityTrialStatus, Outcome, Reason, Role},
    plan::{
        context::RESTORING,
        facts::{PodFacts, Termination},
        ledger::outcome_of,
        objects::{INJECTOR_CONTAINER, expected_rows, is_of_candidate},
        stages::attempt::step::{OpenAttempt, READING_TIMEOUT_SECONDS, Step, last_reading},
    },
};

impl OpenAttempt<'_> {
    pub(super) fn after_load(
        &self,
        mut status: FrugalityTrialStatus,
        idle_before: Window,
        injector: &PodFacts,
        end: &Termination,
    ) -> Step {
        let report = match InjectionReport::decode(&end.message) {
            Ok(report) => report,
            Err(ReportError::InjectorFailed {
                message, exit_code, ..
            }) => {
                let rules = self.builder.settings.kind.rules();
                return match exit_code.and_then(|code| rules.lasting_failure(code)) {
                    Some(reason) => self.fail(status, reason, &message),
                    None => self.void(status, Reason::InjectorFailed, &message),
                };
            }
            Err(error) => {
                let message = format!("{error}; exit code {} {}", end.exit_code, end.reason);
                return self.void(status, Reason::InjectorFailed, message.trim_end());
            }
        };
        // A deleted pod stays for a moment. Its report covers an interrupted load.
        if injector.deleting && report.interrupted.is_some() {
            return self.void(
                status,
                Reason::InjectorDeleted,
                "the injector's pod was deleted during the load",
            );
        }
        let windows = match windows(
            &report,
            self.settle_seconds(),
            self.builder.settings.idle_seconds,
        ) {
            Ok(windows) => windows,
            Err(void) => return self.void(status, void.reason(), &void.to_string()),
        };
        let first = windows.warm_up.unwrap_or(windows.measured);
        if let Some(step) = self.after_old_baseline(&status, idle_before, first.start_unix_seconds)
        {
            return step;
        }
        let last = self.session().and_then(last_reading).unwrap_or_default();
        let end = windows.idle_after.end_unix_seconds;
        if last < end && self.silent_seconds() < READING_TIMEOUT_SECONDS {
            let left = self.seconds_until_read(end);
            return Step::wait("measuring the idle baseline", left);
        }
        status.window = Some(windows.measured);
        status.idle_after = Some(windows.idle_after);
        let pods = [self.pods(Role::Candidate), self.pods(Role::Database)].concat();
        let pods = || pods.iter().chain([injector]);
        status.images = pods().flat_map(|pod| pod.images.clone()).collect();
        status.resources = pods()
            .flat_map(|pod| &pod.contents)
            .filter_map(|(name, contents)| Some((name.clone(), contents.resources.clone()?)))
            .collect();
        let nodes = [("measured", self.measured), ("injector", self.injector)];
        status.machines = nodes
            .into_iter()
            .filter_map(|(role, node)| Some((role.to_owned(), node.machine.clone()?)))
            .collect();
        status.restarts = Some(
            self.pods(Role::Candidate)
                .iter()
                .map(|pod| pod.restarts)
                .sum(),
        );
        self.judge(status, idle_before, &windows, report)
    }

    fn judge(
        &self,
        mut status: FrugalityTrialStatus,
        idle_before: Window,
        windows: &Windows,
        report: InjectionReport,
    ) -> Step {
        if let Some(differ) = self.images_differ() {
            return self.void(status, Reason::ImageChanged, &differ);
        }
        if let Some((container, from, to)) = self.container_changed(&status, |it| &it.images) {
            let changed =
                format!("the image of {container} is {to}, and was {from} in earlier trials");
            return self.void(status, Reason::ImageChanged, &changed);
        }
        if let Some((container, from, to)) = self.container_changed(&status, |it| &it.resources) {
            let changed =
                format!("the container {container} has {to}, and had {from} in earlier trials");
            return self.void(status, Reason::PodChanged, &changed);
        }
        if let Some(changed) = self.machine_changed(&status) {
            return self.void(status, changed.reason(), &changed.to_string());
        }
        let restarted_pods: BTreeSet<String> = self
            .pods(Role::Candidate)
            .iter()
            .filter(|pod| self.has_restarted(pod, idle_before))
            .map(|pod| pod.uid.clone())
            .collect();
        let assessed = assess(&attempt::Attempt {
            report: &report,
            windows,
            idle_before,
            readings: self
                .session()
                .map_or(&[], |session| session.readings.as_slice()),
            candidate_pods: &status.candidate_pods.iter().cloned().collect(),
            workloads: &self.workloads(),
            database_pods: &status.database_pods.iter().cloned().collect(),
            restarted_pods: &restarted_pods,
            injector_pods: &self
                .pods(Role::Injector)
                .into_iter()
                .map(|pod| pod.uid)
                .collect(),
            expected_status: &self.builder.settings.expected_status,
            limits: Limits::new(self.builder.config.max_node_watts),
            ramp_up_seconds: self.builder.settings.ramp_up_seconds,
        });
        status.set_load(report.measured);
        status.course = report.course;
        status.warm_up = report.warm_up;
        status.tail = report.tail;
        status.clock = report.clock;
        status.clock_after = report.clock_after;
        status.injector_cpu = report.cpu;
        let Assessment { requests, energy } = match assessed {
            Ok(assessment) => assessment,
            Err(void @ (Void::MeterMissing {} | Void::ReadingsInterrupted { .. })) => {
                return self.without_readings(status, void.reason(), &void.to_string());
            }
            Err(void) => return self.void(status, void.reason(), &void.to_string()),
        };
        let changed = self.meter_changed(&energy);
        if let Some(changed) = changed.or_else(|| self.node_changed(&energy)) {
            return self.void(status, changed.reason(), &changed.to_string());
        }
        let of_candidate = |spec: &FrugalityTrialSpec| spec.candidate == self.trial.spec.candidate;
        // A trial with an error has no size of its answers.
        let earlier = self
            .measured_before(of_candidate)
            .filter_map(|status| status.requests.as_ref())
            .find(|earlier| earlier.mean_body_bytes.is_some());
        if let Some(Err(void)) = earlier.map(|earlier| same_answers(&requests, earlier)) {
            return self.void(status, void.reason(), &void.to_string());
        }
        status.requests = Some(requests);
        status.energy = Some(energy);
        if self.builder.benchmark.spec.database.is_none() {
            return self.measured(status);
        }
        let mut step = Step::record(status);
        step.doing = RESTORING.into();
        step.delete = self.before_restore();
        step
    }

    /// UIDs of the candidate's pods by server. Empty if the candidate has only one server.
    pub(super) fn workloads(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut workloads: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        if !self.candidate.backends.is_empty() {
            for pod in self.pods(Role::Candidate) {
                let name = pod.workload.unwrap_or_default();
                workloads.entry(name).or_default().insert(pod.uid);
            }
        }
        workloads
    }

    /// Pods of one server that run different images under one name: the tag was pushed while they started.
    fn images_differ(&self) -> Option<String> {
        let mut first: BTreeMap<&String, &String> = BTreeMap::new();
        let pods = [self.pods(Role::Candidate), self.pods(Role::Database)].concat();
        let images = pods.iter().flat_map(|pod| &pod.images);
        for (container, digest) in images {
            let before = *first.entry(container).or_insert(digest);
            if before != digest {
                return Some(format!(
                    "the pods of {container} have different images under one name: {before} and {digest}"
                ));
            }
        }
        None
    }

    /// The first container for which `of` differs from the run's earlier trials, with the values before and now. The
    /// candidate's containers are compared with its own trials, the injector's with the trials of the same load generator,
    /// all others with all trials.
    fn container_changed(
        &self,
        now: &FrugalityTrialStatus,
        of: fn(&FrugalityTrialStatus) -> &BTreeMap<String, String>,
    ) -> Option<(String, String, String)> {
        let differs = |earlier: &FrugalityTrialStatus, is_compared: &dyn Fn(&str) -> bool| {
            of(now).iter().find_map(|(container, now)| {
                let before = of(earlier).get(container)?;
                (is_compared(container) && before != now)
                    .then(|| (container.clone(), before.clone(), now.clone()))
            })
        };
        let own = |spec: &FrugalityTrialSpec| spec.candidate == self.trial.spec.candidate;
        let of_candidate = self
            .measured_before(own)
            .find_map(|earlier| differs(earlier, &is_of_candidate));
        let settings = self.builder.settings;
        let is_sent_by_k6 = |spec: &FrugalityTrialSpec| {
            let point = settings.point(&spec.point)?;
            Some(settings.is_sent_by_k6_at(point))
        };
        let generator = is_sent_by_k6(&self.trial.spec);
        let is_injector = |container: &str| container == INJECTOR_CONTAINER;
        let of_injector = || {
            self.measured_before(|spec| is_sent_by_k6(spec) == generator)
                .find_map(|earlier| differs(earlier, &is_injector))
        };
        let is_other = |container: &str| !is_of_candidate(container) && !is_injector(container);
        let of_others = || {
            self.measured_before(|_| true)
                .find_map(|earlier| differs(earlier, &is_other))
        };
        of_candidate.or_else(of_injector).or_else(of_others)
    }

    /// Another machine than in earlier trials, under the name of the measured node or of the injector's node.
    fn machine_changed(&self, now: &FrugalityTrialStatus) -> Option<Void> {
        let node = &self.trial.spec.measured_node;
        now.machines.iter().find_map(|(role, machine)| {
            let is_injector = role == "injector";
            let earlier = self
                .measured_before(|spec| is_injector || spec.measured_node == *node)
                .filter_map(|earlier| earlier.machines.get(role))
                .find(|earlier| *earlier != machine)?;
            Some(Void::NodeChanged {
                what: if is_injector {
                    "machine (of the injector)"
                } else {
                    "machine"
                }
                .to_owned(),
                from: earlier.clone(),
                to: machine.clone(),
            })
        })
    }

    /// Which parts of the restored database differ from the database of the run's first attempt.
    pub(super) fn restored_difference(&self, status: &FrugalityTrialStatus) -> Option<String> {
        self.builder.benchmark.spec.database.as_ref()?;
        let Some(now) = &status.restored else {
            return Some("the state of the restored database is not known: the seed's Job or pod was deleted".into());
        };
        // Void attempts count too, because their candidates can change the template.
        let of_run = self.observed.trials.iter();
        let of_run = of_run.filter(|trial| trial.spec.run == self.trial.spec.run);
        let restored = of_run.filter_map(|trial| {
            let restored = trial.status.as_ref()?.restored.as_ref()?;
            Some((trial.creation_timestamp()?.0, restored))
        });
        let (_, first) = restored.min_by_key(|(opened, _)| *opened)?;
        let kinds: BTreeSet<&String> = now.state.keys().chain(first.state.keys()).collect();
        let mut differing: Vec<&str> = kinds
            .into_iter()
            .filter(|kind| now.state.get(*kind) != first.state.get(*kind))
            .map(String::as_str)
            .collect();
        if (now.rows, &now.digest) != (first.rows, &first.digest) {
            differing.insert(0, "seeded table");
        }
        (!differing.is_empty()).then(|| {
            format!(
                "the database differs from the database of the run's first attempt in: {}",
                differing.join(", ")
            )
        })
    }

    /// A number of rows that differs from the seed, or a digest that differs from the run's earlier trials. Both are
    /// read before the load, so the candidate's start has changed them.
    pub(super) fn data_changed(&self, status: &FrugalityTrialStatus) -> Option<String> {
        let database = self.builder.benchmark.spec.database.as_ref()?;
        let Some(now) = &status.database else {
            return Some("rows and digest could not be read before the load".into());
        };
        let expected = expected_rows(&database.seed);
        if now.rows != expected {
            return Some(format!(
                "the seeded table has {} rows instead of {expected}",
                now.rows
            ));
        }
        let earlier = self
            .measured_before(|_| true)
            .find_map(|status| status.database.as_ref())?;
        (now != earlier).then(|| {
            format!(
                "the database holds {} rows with digest {}, and held {} rows with digest {} before",
                now.rows, now.digest, earlier.rows, earlier.digest
            )
        })
    }

    /// A meter that differs from earlier trials on this node. The operator never averages joules of different meters.
    fn meter_changed(&self, now: &EnergyFigures) -> Option<Void> {
        let node = &self.trial.spec.measured_node;
        let earlier = self
            .measured_before(|spec| spec.measured_node == *node)
            .find_map(|status| status.energy.as_ref())?;
        same_meter((&earlier.meter, &earlier.zone), (&now.meter, &now.zone)).err()
    }

    /// A kernel, governor or firmware that differs from earlier trials on this node.
    fn node_changed(&self, now: &EnergyFigures) -> Option<Void> {
        let node = &self.trial.spec.measured_node;
        self.measured_before(|spec| spec.measured_node == *node)
            .filter_map(|status| status.energy.as_ref())
            .find_map(|earlier| {
                let (earlier, now) = (&earlier.conditions, &now.conditions);
                earlier.platform.change(&now.platform)
            })
            .map(|(what, from, to)| Void::NodeChanged {
                what: what.to_owned(),
                from,
                to,
            })
    }

    /// The run's measured trials that match the filter, in the order of their names.
    pub(super) fn trials_before(
        &self,
        is_selected: impl Fn(&FrugalityTrialSpec) -> bool,
    ) -> impl Iterator<Item = &FrugalityTrial> {
        self.observed
            .trials
            .iter()
            .filter(|trial| trial.spec.run == self.trial.spec.run)
            .filter(move |trial| is_selected(&trial.spec))
            .filter(|trial| outcome_of(trial) == Some(Outcome::Measured))
    }

    /// Their statuses.
    pub(super) fn measured_before(
        &self,
        is_selected: impl Fn(&FrugalityTrialSpec) -> bool,
    ) -> impl Iterator<Item = &FrugalityTrialStatus> {
        self.trials_before(is_selected)
            .filter_map(|trial| trial.status.as_ref())
    }

    /// Whether the candidate's container of a pod restarted after the first idle baseline began. An earlier restart explains
    /// nothing in the readings. Kubernetes' times are in whole seconds, and the baseline begins two seconds after readiness.
    fn has_restarted(&self, pod: &PodFacts, idle_before: Window) -> bool {
        let begin = self.on_nodes_clock(idle_before.start_unix_seconds);
        let started = pod.started_unix_seconds;
        pod.restarts > 0 && started.is_none_or(|at| at > begin - 1.0)
    }
}
