//! Where an instance that proved who it is belongs: which configured pool's provider names it, and whether what it proved
//! agrees with what the provider says. Pure; called by `instances`.

use super::KnownPool;
use crate::adapters::instance_identity::Document;
use crate::ports::actuate::{Instance, InstanceState};
use drover_core::model::{InstanceId, Millis, PoolId, Stop, UnixMs};

/// Describes may lag behind launches by so much: a later reading without the instance means that it is not there.
const LAG: Millis = Millis::minutes(2);
/// Launch times of document and provider may differ by so much.
const TIMES_DIFFER: Millis = Millis::minutes(2);
/// A launch may lie so far in our future.
const AHEAD: Millis = Millis::minutes(5);

/// Why an instance may not enrol, or not yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misplaced {
    /// Describes lag.
    #[error("instance {0} is not seen yet in any pool's group: ask again")]
    NotSeen(InstanceId),
    /// Describes lag.
    #[error("the launch time of instance {0} is not known yet: ask again")]
    LaunchUnknown(InstanceId),
    /// Every pool was read, and none has it.
    #[error("instance {0} is in no group of a configured pool")]
    Nowhere(InstanceId),
    /// The group is somebody else's.
    #[error("instance {instance} is in pool {pool}, whose group is not Drover's: {why}")]
    NotOurs {
        /// Which.
        instance: InstanceId,
        /// Where.
        pool: PoolId,
        /// What the reading said.
        why: String,
    },
    /// On its way out.
    #[error("instance {0} is being terminated")]
    Ending(InstanceId),
    /// The document is of another start, or of another instance.
    #[error("launch time, type or zone of instance {0} is not what its provider says")]
    Otherwise(InstanceId),
    /// Too late.
    #[error(
        "instance {instance} was launched {minutes} min ago, and its identity document counts for {within} min: enrol it with a join token"
    )]
    TooOld {
        /// Which.
        instance: InstanceId,
        /// Age.
        minutes: u64,
        /// Limit.
        within: u64,
    },
    /// Clocks.
    #[error("instance {0} says that it was launched in the future: check the coordinator's clock")]
    Early(InstanceId),
}

impl Misplaced {
    /// Asking again in a moment may help.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::NotSeen(_) | Self::LaunchUnknown(_))
    }
}

/// The launch is not too long ago for a first use.
///
/// # Errors
/// It is, or it lies in the future.
pub(super) fn fresh(document: &Document, within: Millis, now: UnixMs) -> Result<(), Misplaced> {
    const MINUTE: u64 = 60_000;
    if document.pending > now.after(AHEAD) {
        return Err(Misplaced::Early(document.instance.clone()));
    }
    let age = now.since(document.pending);
    if age > within {
        return Err(Misplaced::TooOld {
            instance: document.instance.clone(),
            minutes: age.0 / MINUTE,
            within: within.0 / MINUTE,
        });
    }
    Ok(())
}

/// The pool of a proven instance.
///
/// # Errors
/// See [`Misplaced`].
pub(super) fn place(pools: &[KnownPool], document: &Document) -> Result<PoolId, Misplaced> {
    let id = &document.instance;
    let mut unread = false;
    let mut foreign = None;
    for pool in pools {
        if pool
            .region
            .as_ref()
            .is_some_and(|region| *region != document.region)
        {
            continue;
        }
        let Some(reading) = &pool.reading else {
            unread = true;
            continue;
        };
        unread |= reading.read_at <= document.pending.after(LAG);
        let Some(found) = reading.instances.iter().find(|found| found.id == *id) else {
            continue;
        };
        let not_ours = reading.stops.iter().find_map(|stop| match stop {
            Stop::NotOurs { why } => Some(why.clone()),
            _ => None,
        });
        match not_ours {
            Some(why) => {
                foreign = Some(Misplaced::NotOurs {
                    instance: id.clone(),
                    pool: pool.name.clone(),
                    why,
                });
            }
            None => return agrees(document, found).map(|()| pool.name.clone()),
        }
    }
    Err(foreign.unwrap_or_else(|| {
        if unread {
            Misplaced::NotSeen(id.clone())
        } else {
            Misplaced::Nowhere(id.clone())
        }
    }))
}

/// What the document says is what the provider says.
fn agrees(document: &Document, found: &Instance) -> Result<(), Misplaced> {
    let id = || document.instance.clone();
    if matches!(found.state, InstanceState::Leaving | InstanceState::Gone) {
        return Err(Misplaced::Ending(id()));
    }
    let launched = found
        .launched
        .ok_or_else(|| Misplaced::LaunchUnknown(id()))?;
    let apart = launched.0.abs_diff(document.pending.0);
    let differs = |known: &str, said: &str| !known.is_empty() && known != said;
    if apart > TIMES_DIFFER.0
        || differs(&found.zone, &document.zone)
        || differs(&found.instance_type, &document.instance_type)
    {
        return Err(Misplaced::Otherwise(id()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::actuate::PoolReading;
    use std::sync::Arc;

    const LAUNCHED: UnixMs = UnixMs(1_000_000_000);

    fn document() -> Document {
        Document {
            instance: "i-01234567".into(),
            account: "123456789012".into(),
            region: "us-east-1".into(),
            zone: "us-east-1b".into(),
            instance_type: "g5.xlarge".into(),
            image: "ami-1".into(),
            pending: LAUNCHED,
        }
    }

    fn instance() -> Instance {
        Instance {
            id: "i-01234567".into(),
            state: InstanceState::Running,
            offering: None,
            zone: "us-east-1b".into(),
            instance_type: "g5.xlarge".into(),
            protected: None,
            launched: Some(UnixMs(LAUNCHED.0 + 1_000)),
            ends: None,
        }
    }

    fn pool(name: &str, region: &str, instances: Vec<Instance>) -> KnownPool {
        KnownPool {
            name: name.into(),
            region: Some(region.into()),
            reading: Some(Arc::new(PoolReading {
                instances,
                ..PoolReading::empty(LAUNCHED.after(Millis::minutes(3)))
            })),
        }
    }

    #[test]
    fn an_instance_belongs_where_its_provider_names_it_and_agrees() {
        let id = || InstanceId::from("i-01234567");
        let here = |change: fn(&mut Instance)| {
            let mut found = instance();
            change(&mut found);
            vec![pool("east", "us-east-1", vec![found])]
        };
        let stopped = |read_at: UnixMs, stops: Vec<Stop>, instances: Vec<Instance>| {
            let mut pool = pool("east", "us-east-1", instances);
            let reading = Arc::make_mut(pool.reading.as_mut().unwrap());
            reading.read_at = read_at;
            reading.stops = stops;
            vec![pool]
        };
        let late = LAUNCHED.after(Millis::minutes(3));
        let foreign = Stop::NotOurs {
            why: "tag of another".into(),
        };
        let unread = KnownPool {
            reading: None,
            ..pool("east", "us-east-1", Vec::new())
        };
        for (what, pools, want) in [
            ("here", here(|_| {}), Ok("east".into())),
            (
                "booting",
                here(|found| found.state = InstanceState::Pending),
                Ok("east".into()),
            ),
            (
                "in one of two pools",
                vec![
                    pool("other", "us-east-1", Vec::new()),
                    pool("east", "us-east-1", vec![instance()]),
                ],
                Ok("east".into()),
            ),
            (
                "named in another region",
                vec![pool("west", "us-west-2", vec![instance()])],
                Err(Misplaced::Nowhere(id())),
            ),
            ("no pools", Vec::new(), Err(Misplaced::Nowhere(id()))),
            (
                "not our group",
                stopped(late, Vec::new(), Vec::new()),
                Err(Misplaced::Nowhere(id())),
            ),
            (
                "the reading lags",
                stopped(LAUNCHED.after(LAG), Vec::new(), Vec::new()),
                Err(Misplaced::NotSeen(id())),
            ),
            ("not read", vec![unread], Err(Misplaced::NotSeen(id()))),
            (
                "another owner's tag",
                stopped(late, vec![foreign], vec![instance()]),
                Err(Misplaced::NotOurs {
                    instance: id(),
                    pool: "east".into(),
                    why: "tag of another".into(),
                }),
            ),
            (
                "ending",
                here(|found| found.state = InstanceState::Leaving),
                Err(Misplaced::Ending(id())),
            ),
            (
                "launch not known",
                here(|found| found.launched = None),
                Err(Misplaced::LaunchUnknown(id())),
            ),
            (
                "launched at another time",
                here(|found| found.launched = Some(UnixMs(LAUNCHED.0 - 120_001))),
                Err(Misplaced::Otherwise(id())),
            ),
            (
                "another zone",
                here(|found| found.zone = "us-east-1a".into()),
                Err(Misplaced::Otherwise(id())),
            ),
            (
                "another type",
                here(|found| found.instance_type = "g5.2xlarge".into()),
                Err(Misplaced::Otherwise(id())),
            ),
            (
                "zone and type not told",
                here(|found| {
                    found.zone.clear();
                    found.instance_type.clear();
                }),
                Ok("east".into()),
            ),
        ] {
            assert_eq!(place(&pools, &document()), want, "{what}");
        }
    }

    #[test]
    fn a_document_counts_for_a_while_after_the_launch() {
        let within = Millis::minutes(15);
        let at = |minutes: u64, ms: u64| {
            fresh(
                &document(),
                within,
                UnixMs(LAUNCHED.after(Millis::minutes(minutes)).0 + ms),
            )
        };
        assert_eq!(at(0, 0), Ok(()));
        assert_eq!(at(15, 0), Ok(()));
        assert!(matches!(
            at(15, 1),
            Err(Misplaced::TooOld {
                minutes: 15,
                within: 15,
                ..
            })
        ));
        let before = UnixMs(LAUNCHED.0 - 300_000);
        assert_eq!(fresh(&document(), within, before), Ok(()));
        let earlier = UnixMs(LAUNCHED.0 - 300_001);
        assert!(matches!(
            fresh(&document(), within, earlier),
            Err(Misplaced::Early(_))
        ));
    }
}
