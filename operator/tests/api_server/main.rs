//! What reads and writes (`io`), against a real API server: kube-apiserver and its datastore alone, without kubelet,
//! controllers and root. A proxy between the operator and the API server injects faults. The tests play the parts of
//! the kubelet and of Kubernetes' controllers.
//!
//! `hack/test unit` runs this target. It needs programs that `hack/lab` builds: CONTRIBUTING.md has the commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of tests fails the test"
)]

// One module around all, so that a name selects or skips these tests.
#[path = "."]
mod api_server {
    mod admission;
    mod applying;
    mod cluster;
    mod controlling;
    mod kubelet;
    mod observing;
    mod policies;
    mod proxy;
    mod releases;
    mod rights;
    mod scale;
    mod server;
    mod stage;
    mod traces;
}
