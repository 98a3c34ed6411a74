//! Names of pods, from kubelet's log directories. This needs no request to the API, and no rights in it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Namespace and name of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Least time between two looks into the directory for pods without a name.
const LOOK_INTERVAL: Duration = Duration::from_millis(400);

/// Remembers the names of the living pods.
#[derive(Debug)]
pub(crate) struct PodNames {
    directory: PathBuf,
    known: HashMap<String, PodName>,
    looked: Option<Duration>,
    unreadable: bool,
}

impl PodNames {
    /// The names come from the directories `<namespace>_<name>_<uid>` in `directory`.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            known: HashMap::new(),
            looked: None,
            unreadable: false,
        }
    }

    /// The name of a pod, if it is known.
    pub(crate) fn get(&self, uid: &str) -> Option<&PodName> {
        self.known.get(uid)
    }

    /// Looks for the names of these pods and forgets all other pods. `now` is the time since the meter began.
    /// Kubelet makes the log directory a moment after the cgroup, so a new pod may get its name a little
    /// later.
    pub(crate) fn keep<'a>(
        &mut self,
        live: impl ExactSizeIterator<Item = &'a Arc<str>> + Clone,
        now: Duration,
    ) {
        let known = live
            .clone()
            .filter(|uid| self.known.contains_key(&***uid))
            .count();
        if known < live.len()
            && self
                .looked
                .is_none_or(|before| now.saturating_sub(before) >= LOOK_INTERVAL)
        {
            self.looked = Some(now);
            self.look();
        }
        if self.known.len() > known {
            let live: HashSet<&str> = live.map(AsRef::as_ref).collect();
            self.known.retain(|uid, _| live.contains(uid.as_str()));
        }
    }

    fn look(&mut self) {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) => {
                if !self.unreadable {
                    let directory = self.directory.display();
                    tracing::warn!(%directory, %error, "cannot read the pod logs, so pods have no names: check --pod-logs");
                    self.unreadable = true;
                }
                return;
            }
        };
        self.unreadable = false;
        self.known.extend(
            entries
                .flatten()
                .filter_map(|entry| parse(entry.file_name().to_str()?)),
        );
    }
}

/// `<namespace>_<name>_<uid>`; neither a namespace nor a pod's name can contain `_`.
fn parse(directory_name: &str) -> Option<(String, PodName)> {
    let (namespace, rest) = directory_name.split_once('_')?;
    let (name, uid) = rest.split_once('_')?;
    let pod = PodName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    (!uid.is_empty()).then(|| (uid.to_owned(), pod))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_gets_its_name_once_its_log_directory_is_there_and_keeps_it_while_it_lives() {
        let logs = tempfile::tempdir().unwrap();
        let mut names = PodNames::new(logs.path().to_owned());
        let (echo, etcd) = (
            Arc::from("bed27566-8352-495a-8672-08132c7957e6"),
            Arc::from("0b5c2e4f"),
        );
        let mut now = Duration::ZERO;
        let mut keep = |names: &mut PodNames, uid: &Arc<str>| {
            now += LOOK_INTERVAL;
            names.keep([uid].into_iter(), now);
        };
        keep(&mut names, &echo);
        assert_eq!(names.get(&echo), None);

        let directory = logs.path().join(format!("shop_echo-6bcc_{echo}"));
        fs::create_dir(&directory).unwrap();
        // A static pod's UID is a hash. The directory may contain unrelated files.
        fs::create_dir(logs.path().join("kube-system_etcd-pi-1_0b5c2e4f")).unwrap();
        fs::write(logs.path().join("readme"), "").unwrap();
        let expected = PodName {
            namespace: "shop".into(),
            name: "echo-6bcc".into(),
        };
        keep(&mut names, &echo);
        assert_eq!(names.get(&echo), Some(&expected));

        fs::remove_dir(&directory).unwrap();
        keep(&mut names, &echo);
        assert_eq!(names.get(&echo), Some(&expected));
        keep(&mut names, &etcd);
        assert_eq!(names.get(&etcd).unwrap().name, "etcd-pi-1");
        assert_eq!(names.get(&echo), None, "an ended pod's name is forgotten");
    }
}
