//! Names of pods, from kubelet's log directories: no request to the API, so no rights in it.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// Namespace and name of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodName {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
}

/// Remembers the names of the pods that live.
#[derive(Debug)]
pub(crate) struct PodNames {
    directory: PathBuf,
    known: HashMap<String, PodName>,
    unreadable: bool,
}

impl PodNames {
    /// Names come from the directories `<namespace>_<name>_<uid>` in `directory`.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            known: HashMap::new(),
            unreadable: false,
        }
    }

    /// The names of these pods, as far as they are known. Kubelet makes the log directory a
    /// moment after the cgroup, so a new pod may get its name one reading later.
    pub(crate) fn of<'a>(
        &mut self,
        uids: impl Iterator<Item = &'a String> + Clone,
    ) -> HashMap<String, PodName> {
        if uids.clone().any(|uid| !self.known.contains_key(uid)) {
            self.look();
        }
        let live: HashMap<String, PodName> = uids
            .filter_map(|uid| Some((uid.clone(), self.known.get(uid)?.clone())))
            .collect();
        self.known.clone_from(&live);
        live
    }

    fn look(&mut self) {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) => {
                if !self.unreadable {
                    let directory = self.directory.display();
                    tracing::warn!(%directory, %error, "pods stay without names: check --pod-logs");
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

/// `<namespace>_<name>_<uid>`; neither a namespace nor a pod's name can hold `_`.
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
        let echo = String::from("bed27566-8352-495a-8672-08132c7957e6");
        assert!(names.of([&echo].into_iter()).is_empty());

        let directory = logs.path().join(format!("shop_echo-6bcc_{echo}"));
        fs::create_dir(&directory).unwrap();
        // A static pod's UID is a hash; other things may lie about.
        fs::create_dir(logs.path().join("kube-system_etcd-pi-1_0b5c2e4f")).unwrap();
        fs::write(logs.path().join("readme"), "").unwrap();
        let expected = PodName {
            namespace: "shop".into(),
            name: "echo-6bcc".into(),
        };
        assert_eq!(names.of([&echo].into_iter())[&echo], expected);

        fs::remove_dir(&directory).unwrap();
        assert_eq!(names.of([&echo].into_iter())[&echo], expected);
        let etcd = String::from("0b5c2e4f");
        assert_eq!(names.of([&etcd].into_iter())[&etcd].name, "etcd-pi-1");
        assert!(
            names.of([&echo].into_iter()).is_empty(),
            "an ended pod's name is forgotten"
        );
    }
}
