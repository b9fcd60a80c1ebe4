//! Gives back the part of a desired capacity that AWS did not fill: the one case in which it is lowered.
//!
//! Called through the port, cycle after cycle, for a pool whose ask by SetDesiredCapacity got less than it wanted. It
//! takes one step at a time and never waits: note it on the group, suspend Launch, let what is under way settle, look
//! again, lower, resume. The note lets whoever comes after a crash go on; Launch is resumed only where we suspended it.
//! **Invariant:** never lowered below the members that are there nor below the group's minimum, and not at all while a
//! member is pending, unprotected or hidden: AWS would choose who goes.

use std::collections::{BTreeMap, BTreeSet};

use drover_aws::{ActivityStatus, AwsApi, Group, MemberState};
use drover_core::model::{FailureKind, Millis, UnixMs};
use fail::fail_point;

use super::journal::Ask;
use super::memory::Flight;
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::{ActuateError, Withdrawal};

/// Key of the note.
pub(super) const WITHDRAW_TAG: &str = "drover:withdraw";
/// Value of the note once it is over: tags are written and never removed. Behind it the token of the ask of which nothing
/// is wanted any more, as `over TOKEN`.
const OVER: &str = "over";
/// So long after Launch was suspended nothing new shows any more.
const SETTLE: Millis = Millis::seconds(5);
/// A withdrawal that cannot be finished within this time is given up: Launch must not stay suspended.
const GIVE_UP: Millis = Millis::minutes(15);
/// Launches of the last minutes whose instance does not show yet are looked for.
const LOOK_BACK: Millis = Millis::minutes(10);

/// Since when a withdrawal is under way; `None`: there is none.
pub(super) fn under_way(tags: &BTreeMap<String, String>) -> Option<UnixMs> {
    tags.get(WITHDRAW_TAG)?.parse().ok().map(UnixMs)
}

/// Whether what this ask wanted was filled or given back: who wants as much now is somebody else.
fn is_over(tags: &BTreeMap<String, String>, ask: &Ask) -> bool {
    let noted = tags.get(WITHDRAW_TAG).and_then(|v| v.strip_prefix(OVER));
    noted.and_then(|rest| rest.strip_prefix(' ')) == Some(ask.token.as_str())
}

/// What is wanted beyond what is there.
fn unfilled(group: &Group) -> u32 {
    group.desired.saturating_sub(floor(group))
}

/// The lowest that the desired capacity may be set to.
fn floor(group: &Group) -> u32 {
    group.live_count().max(group.min)
}

/// Why the group may not be lowered as it is now.
fn unsettled(group: &Group) -> Option<String> {
    let pending = group
        .members
        .iter()
        .filter(|m| matches!(m.state, MemberState::Pending | MemberState::Other(_)))
        .count();
    if pending > 0 {
        return Some(format!("{pending} members are not in service yet"));
    }
    let bare = group
        .members
        .iter()
        .filter(|m| m.is_live() && !m.protected)
        .count();
    (bare > 0).then(|| format!("{bare} members are not protected from scale-in"))
}

impl<A: AwsApi> AsgActuator<A> {
    /// One step of giving back what was not filled.
    pub(super) async fn give_back(&self, pool: &AsgPool) -> Result<Withdrawal, ActuateError> {
        let mut flight = self.memory(pool).alone().await;
        if flight.unsettled.is_some() || !flight.open.is_empty() {
            return Ok(waits("an ask of the group is not settled yet"));
        }
        let group = self.prepare(pool, &mut flight).await?;
        let suspended = group.suspended.contains_key("Launch");
        match under_way(&group.tags) {
            None if unfilled(&group) == 0 => Ok(Withdrawal::Nothing),
            None if suspended => Ok(waits("Launch is suspended, and not by this coordinator")),
            None => match Ask::read(&group.tags) {
                Some(ask) if group.desired <= ask.target && !is_over(&group.tags, &ask) => {
                    self.begin(pool).await
                }
                _ => Ok(waits(
                    "the desired capacity was not set by this coordinator",
                )),
            },
            Some(_) if unfilled(&group) == 0 => {
                self.end(pool, suspended, Ask::read(&group.tags)).await?;
                Ok(Withdrawal::Nothing)
            }
            // Never suspended, or resumed by a person: from the start.
            Some(_) if !suspended => self.begin(pool).await,
            Some(since) => self.go_on(pool, since, &mut flight).await,
        }
    }

    async fn begin(&self, pool: &AsgPool) -> Result<Withdrawal, ActuateError> {
        self.note(pool, &self.clock.wall().0.to_string()).await?;
        fail_point!("asg-withdraw-noted");
        self.api
            .suspend_launch(&pool.region, &pool.group)
            .await
            .map_err(|e| convert::failed(&e))?;
        fail_point!("asg-withdraw-suspended");
        Ok(waits(
            "Launch is suspended until what is under way has settled",
        ))
    }

    async fn go_on(
        &self,
        pool: &AsgPool,
        since: UnixMs,
        flight: &mut Flight,
    ) -> Result<Withdrawal, ActuateError> {
        let age = self.clock.wall().since(since);
        if age < SETTLE {
            return Ok(waits("what is under way has to settle"));
        }
        // Launches first and members after them: what the launches name must be among the members.
        let (running, launched) = self.launches_of_late(pool).await?;
        let group = self.describe(pool).await?;
        let hidden = launched
            .iter()
            .any(|id| !group.members.iter().any(|m| m.id.as_str() == id));
        let why = if running {
            Some("a launch is under way".to_owned())
        } else if hidden {
            Some("an instance was launched and does not show yet".to_owned())
        } else {
            unsettled(&group)
        };
        match why {
            Some(why) if age >= GIVE_UP => {
                self.end(pool, true, None).await?;
                let text = format!(
                    "what group {} did not fill cannot be withdrawn: {why}",
                    pool.group
                );
                Err(convert::refused(FailureKind::Transient, "", text))
            }
            Some(why) => Ok(Withdrawal::Waits { why }),
            None => self.lower(pool, &group, flight).await,
        }
    }

    async fn lower(
        &self,
        pool: &AsgPool,
        group: &Group,
        flight: &mut Flight,
    ) -> Result<Withdrawal, ActuateError> {
        let (from, to) = (group.desired, floor(group));
        if to < from {
            tracing::info!(pool = %pool.pool, group = %pool.group, from, to, "withdraws what the group did not fill");
            let set = self
                .api
                .set_desired_capacity(&pool.region, &pool.group, to)
                .await;
            // An unknown outcome is looked at in the next step: Launch stays suspended meanwhile.
            set.map_err(|e| convert::failed(&e))?;
            fail_point!("asg-withdraw-lowered");
        }
        // What we set before counts no longer, or the next ask would start from it.
        flight.raised(to, self.clock.mono());
        self.end(pool, true, Ask::read(&group.tags)).await?;
        Ok(Withdrawal::Done { from, to })
    }

    /// `of`: the ask of which nothing is wanted any more.
    async fn end(&self, pool: &AsgPool, resume: bool, of: Option<Ask>) -> Result<(), ActuateError> {
        if resume {
            self.api
                .resume_launch(&pool.region, &pool.group)
                .await
                .map_err(|e| convert::failed(&e))?;
            fail_point!("asg-withdraw-resumed");
        }
        let over = of.map_or_else(|| OVER.to_owned(), |ask| format!("{OVER} {}", ask.token));
        self.note(pool, &over).await
    }

    async fn note(&self, pool: &AsgPool, value: &str) -> Result<(), ActuateError> {
        let noted = self
            .api
            .tag_group(&pool.region, &pool.group, WITHDRAW_TAG, value)
            .await;
        noted.map_err(|e| convert::failed(&e))
    }

    /// Whether a launch is under way, and which instances were launched of late and not ended since.
    async fn launches_of_late(
        &self,
        pool: &AsgPool,
    ) -> Result<(bool, BTreeSet<String>), ActuateError> {
        let from = self.clock.wall().minus(UnixMs(LOOK_BACK.0));
        let from = i64::try_from(from.0).unwrap_or(i64::MAX);
        let activities = self
            .api
            .describe_activities(&pool.region, &pool.group, from)
            .await
            .map_err(|e| convert::failed(&e))?;
        let mut running = false;
        let mut launched = BTreeSet::new();
        // Newest first: from the oldest on, an end takes back a launch.
        for activity in activities.items.iter().rev() {
            let id = instance_in(&activity.description);
            if activity.description.starts_with("Launching") {
                running |= matches!(activity.status, ActivityStatus::Running(_));
                if activity.status == ActivityStatus::Successful {
                    launched.extend(id);
                }
            } else if let Some(id) = id {
                launched.remove(&id);
            }
        }
        Ok((running, launched))
    }
}

/// The instance that a description names: `Launching a new EC2 instance: i-0123`.
pub(super) fn instance_in(description: &str) -> Option<String> {
    let id = description
        .split([' ', ':', ',', '.'])
        .find(|word| word.starts_with("i-"))?;
    Some(id.to_owned())
}

fn waits(why: &str) -> Withdrawal {
    Withdrawal::Waits {
        why: why.to_owned(),
    }
}
