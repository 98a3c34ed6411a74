//! Whose turn it is: one benchmark at a time in the whole cluster, because two would measure each
//! other.

use super::facts::{Lock, Observed, Peer};

/// Whether this benchmark may measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It holds the lock.
    Mine,
    /// The lock is free, or its holder is gone, and this benchmark is the first in line.
    Take {
        /// Version of the lock to be replaced; `None` where there is none yet.
        resource_version: Option<String>,
    },
    /// Another one goes first.
    WaitFor(String),
}

/// This benchmark's place in line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: i64,
    /// UID, to break ties.
    pub uid: String,
}

/// First come, first served, by creation; a holder keeps its turn until its run has ended.
#[must_use]
pub fn turn(me: &Place, observed: &Observed) -> Turn {
    let holder = observed.lock.as_ref().and_then(|lock| lock.holder.as_ref());
    match holder {
        Some((uid, _)) if *uid == me.uid => return Turn::Mine,
        Some((uid, name)) if observed.peers.iter().any(|peer| peer.uid == *uid) => {
            return Turn::WaitFor(name.clone());
        }
        _ => {}
    }
    match first_before(me, &observed.peers) {
        Some(peer) => Turn::WaitFor(peer.name.clone()),
        None => Turn::Take {
            resource_version: observed
                .lock
                .as_ref()
                .map(|lock: &Lock| lock.resource_version.clone()),
        },
    }
}

fn first_before<'a>(me: &Place, peers: &'a [Peer]) -> Option<&'a Peer> {
    let place = |peer: &Peer| Place {
        created_unix_seconds: peer.created_unix_seconds,
        uid: peer.uid.clone(),
    };
    peers
        .iter()
        .filter(|peer| !peer.complete && place(peer) < *me)
        .min_by_key(|peer| place(peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(uid: &str, created: i64, complete: bool) -> Peer {
        Peer {
            name: format!("default/{uid}"),
            uid: uid.into(),
            created_unix_seconds: created,
            complete,
        }
    }

    fn me() -> Place {
        Place {
            created_unix_seconds: 100,
            uid: "me".into(),
        }
    }

    fn observed(peers: Vec<Peer>, holder: Option<&str>) -> Observed {
        Observed {
            peers,
            lock: Some(Lock {
                holder: holder.map(|uid| (uid.into(), format!("default/{uid}"))),
                resource_version: "7".into(),
                acquired_unix_seconds: None,
            }),
            ..Observed::default()
        }
    }

    #[test]
    fn the_oldest_unfinished_goes_first() {
        let older = observed(vec![peer("a", 99, false)], None);
        assert_eq!(turn(&me(), &older), Turn::WaitFor("default/a".into()));
        let younger = observed(vec![peer("a", 101, false), peer("z", 50, true)], None);
        assert_eq!(
            turn(&me(), &younger),
            Turn::Take {
                resource_version: Some("7".into())
            }
        );
    }

    #[test]
    fn a_holder_keeps_its_turn_even_from_older_ones() {
        let held = observed(vec![peer("a", 101, false)], Some("a"));
        assert_eq!(turn(&me(), &held), Turn::WaitFor("default/a".into()));
        let mine = observed(vec![peer("a", 1, false)], Some("me"));
        assert_eq!(turn(&me(), &mine), Turn::Mine);
    }

    #[test]
    fn a_lock_whose_holder_was_deleted_is_free() {
        let gone = observed(vec![], Some("gone"));
        assert!(matches!(turn(&me(), &gone), Turn::Take { .. }));
    }

    #[test]
    fn of_two_created_in_one_second_exactly_one_goes_first() {
        let other = Place {
            created_unix_seconds: 100,
            uid: "other".into(),
        };
        let mine = turn(&me(), &observed(vec![peer("other", 100, false)], None));
        let theirs = turn(&other, &observed(vec![peer("me", 100, false)], None));
        assert!(matches!(mine, Turn::Take { .. }));
        assert_eq!(theirs, Turn::WaitFor("default/me".into()));
    }
}
