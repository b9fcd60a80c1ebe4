//! What EC2 itself says of members: when they were launched, and whether they still run. A group goes on to count a
//! member that was ended or stopped behind its back while its process ReplaceUnhealthy is suspended.
//!
//! Called by `observe` once per region and reading, with one batched call. It changes nothing in AWS. New members are
//! asked for at once, those that do not run yet or are unhealthy often, all others once a minute, and one that left its
//! group young once more: EC2 says why.

use std::collections::BTreeMap;

use drover_aws::{
    AwsApi, Group, GroupName, Instance, InstanceId, InstanceState, MemberState, Region,
    ReservationId,
};
use drover_core::model::{FailureKind, Millis, UnixMs};

use super::memory::Seen;
use super::{AsgActuator, AsgPool, convert};

/// Members that do not run yet, or are unhealthy, are looked at this often.
const OFTEN: Millis = Millis::seconds(5);
/// And all members.
const SELDOM: Millis = Millis::minutes(1);
/// What ends younger than this ended in its launch.
const YOUNG: Millis = Millis::minutes(10);
/// So many answers in a row without a member mean that EC2 has forgotten it; fewer mean nothing.
const ABSENT: u32 = 3;
/// Longest text that is kept of why an instance ended.
const TEXT: usize = 1_000;

/// What EC2 said of a member last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// When it was launched.
    pub(super) launched: Option<UnixMs>,
    /// Its state.
    pub(super) state: InstanceState,
    /// Why, in AWS's words.
    pub(super) reason: Option<String>,
    /// When it was first seen not to run any more.
    pub(super) ended: Option<UnixMs>,
    /// The capacity reservation or block that it runs in.
    pub(super) reservation: Option<ReservationId>,
    /// Answers in a row that did not name it.
    pub(super) absent: u32,
}

/// An instance that ended in its launch for a reason that says something about capacity or config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) id: InstanceId,
    pub(super) zone: Option<String>,
    pub(super) kind: FailureKind,
    pub(super) why: String,
    pub(super) at: UnixMs,
}

/// Whether an instance in this state does not run and will not by itself.
pub(super) fn is_over(state: &InstanceState) -> bool {
    matches!(
        state,
        InstanceState::ShuttingDown
            | InstanceState::Terminated
            | InstanceState::Stopping
            | InstanceState::Stopped
    )
}

/// What its end says about launches of its kind; nothing when a person or the machine itself ended it.
pub(super) fn blame(known: &Known) -> Option<FailureKind> {
    let class = drover_aws::classify(None, known.reason.as_deref()?);
    class.known.then(|| convert::kind(class.kind))
}

impl<A: AwsApi> AsgActuator<A> {
    /// What cannot be read stays as it was.
    pub(super) async fn look_at_instances(
        &self,
        region: &Region,
        pools: &[&AsgPool],
        groups: &BTreeMap<GroupName, Group>,
    ) {
        let (now, mono) = (self.clock.wall(), self.clock.mono());
        let mut wanted: BTreeMap<InstanceId, &AsgPool> = BTreeMap::new();
        for pool in pools {
            let Some(group) = groups.get(&pool.group) else {
                continue;
            };
            let ids = due(&mut self.memory(pool).seen(), group, now, mono);
            wanted.extend(ids.into_iter().map(|id| (id, *pool)));
        }
        if wanted.is_empty() {
            return;
        }
        let ids: Vec<InstanceId> = wanted.keys().cloned().collect();
        let found = match self.api.describe_instances(region, &ids).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%region, %error, "instances cannot be read");
                return;
            }
        };
        for (id, pool) in wanted {
            let Some(group) = groups.get(&pool.group) else {
                continue;
            };
            let member = group.members.iter().any(|m| m.id == id);
            let mut seen = self.memory(pool).seen();
            take(&mut seen, &id, found.get(&id), member, now);
        }
    }
}

/// Whom to ask for now. Forgets who is no member any more.
fn due(seen: &mut Seen, group: &Group, now: UnixMs, mono: Millis) -> Vec<InstanceId> {
    let every = |last: Option<Millis>, pause| last.is_none_or(|at| mono.minus(at) >= pause);
    let (often, seldom) = (every(seen.looked.0, OFTEN), every(seen.looked.1, SELDOM));
    if often {
        seen.looked.0 = Some(mono);
    }
    if seldom {
        seen.looked.1 = Some(mono);
    }
    let mut ids = Vec::new();
    for member in &group.members {
        let known = seen.instances.get(&member.id);
        let uneasy = member.state == MemberState::Pending
            || member.healthy == Some(false)
            || known.is_some_and(|k| k.state != InstanceState::Running || k.absent > 0);
        if known.is_none() || seldom || (often && uneasy) {
            ids.push(member.id.clone());
        }
    }
    let left = |id: &InstanceId| !group.members.iter().any(|m| m.id == *id);
    let gone: Vec<InstanceId> = seen
        .instances
        .keys()
        .filter(|id| left(id))
        .cloned()
        .collect();
    for id in gone {
        // Who was seen to end is told already.
        let young = seen.instances.get(&id).is_some_and(|known| {
            known.ended.is_none() && known.launched.is_some_and(|at| now.since(at) < YOUNG)
        });
        if young {
            ids.push(id);
        } else {
            seen.instances.remove(&id);
        }
    }
    ids
}

/// Takes what EC2 said of one instance.
fn take(seen: &mut Seen, id: &InstanceId, found: Option<&Instance>, member: bool, now: UnixMs) {
    let before = seen.instances.get(id).cloned();
    let after = match (found, &before) {
        (Some(found), before) => Known {
            launched: found.launched_unix_ms.and_then(convert::unix_ms),
            state: found.state.clone(),
            reason: found
                .state_reason
                .as_ref()
                .map(|why| why.chars().take(TEXT).collect()),
            ended: is_over(&found.state)
                .then(|| before.as_ref().and_then(|b| b.ended).unwrap_or(now)),
            reservation: found.reservation.clone(),
            absent: 0,
        },
        // EC2 has forgotten it: it was ended long ago.
        (None, Some(before)) if before.absent + 1 >= ABSENT => Known {
            state: InstanceState::Terminated,
            ended: before.ended.or(Some(now)),
            absent: before.absent,
            ..before.clone()
        },
        (None, Some(before)) => Known {
            absent: before.absent + 1,
            ..before.clone()
        },
        // Not to be seen yet.
        (None, None) => return,
    };
    let fresh = after.ended.is_some() && before.as_ref().is_none_or(|b| b.ended.is_none());
    let young = after.launched.is_some_and(|at| now.since(at) < YOUNG);
    if let (true, true, Some(kind)) = (fresh, young, blame(&after)) {
        seen.ended.push(Ended {
            id: id.clone(),
            zone: found.and_then(|found| found.zone.clone()),
            kind,
            why: after.reason.clone().unwrap_or_default(),
            at: now,
        });
    }
    if member {
        seen.instances.insert(id.clone(), after);
    } else {
        seen.instances.remove(id);
    }
}
