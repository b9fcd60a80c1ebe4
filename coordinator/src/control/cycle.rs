//! One cycle: observe, bookkeeping, plan, check, commit, execute, publish.
//!
//! Run by [`super::run`] in production, and step by step by the simulator and the tests. Generic over ports: no sleeping,
//! no timer, no adapter. **Invariant:** an intent is in the store before the call that it is about.

mod heart;
mod round;

pub use heart::{Control, Planning, Ports};
pub(super) use round::Round;

use super::events::Happening;
use crate::ports::store::{CommitError, ReadError};
use drover_core::model::{PlanInput, Planned};
use drover_core::planner;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was changed at a provider is looked at after this.
const SOON: Duration = Duration::from_millis(250);

/// A plan that changed nothing, or why there is none.
pub type Rehearsal = Result<(PlanInput, Planned), ReadError>;

/// Why a cycle could not go on.
#[derive(Debug, thiserror::Error)]
pub enum CycleError {
    /// Somebody newer leads: stop acting for good.
    #[error("another coordinator leads this store")]
    Fenced(#[source] CommitError),
    /// The store could not be read: nothing was done.
    #[error("nothing was decided")]
    Read(#[from] ReadError),
}

impl Control {
    /// One whole cycle. True: another should follow at once.
    ///
    /// # Errors
    /// The store cannot be read, or somebody else leads. Trouble with one pool or node is no error.
    pub async fn cycle(&mut self) -> Result<bool, CycleError> {
        let mut round = self.observe().await?;
        self.keep_books(&mut round).await?;
        let demand = self.demand(&mut round).await;
        self.prefer_ready(&mut round, &demand).await?;
        let (input, members) = self.input(&mut round, demand).await;
        let began = Instant::now();
        let planned = planner::plan(&input);
        let took = began.elapsed();
        self.planning.took += took;
        self.pace.planned(took);
        self.planning.plans += 1;
        self.note_holds(&input, &planned, &members, round.now);
        self.keep_holds().await?;
        self.note_demand(&planned);
        self.save_plan(&input, &planned);
        if self.check(&mut round, &input, &planned) {
            self.execute(&mut round, &input, &planned).await?;
        }
        self.send_orders(&round);
        let plan = Arc::new((input, planned));
        self.seen.cycle += 1;
        self.publish(&mut round, &plan, &members);
        self.watch_adoptions(&mut round, &plan.1).await?;
        self.keep_learnt(&round).await?;
        let events = std::mem::take(&mut round.events);
        match self.journal.tell(events).await {
            Ok(()) => {}
            Err(error @ CommitError::Fenced { .. }) => return Err(CycleError::Fenced(error)),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "events were lost")
            }
        }
        self.last_ledger = std::mem::take(&mut round.ledger);
        Ok(round.again)
    }

    /// Reads everything and plans, and changes nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn rehearse(&mut self) -> Rehearsal {
        let mut round = self.observe().await?;
        let demand = self.demand(&mut round).await;
        let (input, _) = self.input(&mut round, demand).await;
        let planned = planner::plan(&input);
        Ok((input, planned))
    }

    /// How long nothing is done unless something comes: the interval, and less while what was asked of a provider is still
    /// to be seen there.
    pub(super) fn pause(&self) -> Duration {
        let longest = Duration::from_millis(self.config.control.interval.0);
        if self.last_ledger.launches.is_empty() {
            return longest;
        }
        if self.pools.is_stale() {
            return longest.min(SOON);
        }
        let mono = self.clock.mono();
        let next = self.pools.next_read(mono);
        next.map_or(longest, |at| {
            longest.min(Duration::from_millis(at.0 - mono.0))
        })
    }

    /// All that is decided without a plan; each part commits for itself.
    async fn keep_books(&mut self, round: &mut Round) -> Result<(), CycleError> {
        self.keep_alive(round).await?;
        self.rename_adoptions(round).await?;
        self.take_deeds(round).await?;
        self.protect_members(round).await?;
        self.settle_launches(round).await?;
        self.tie_instances(round).await?;
        self.follow_trails(round);
        self.rejoin(round);
        self.take_shown(round).await?;
        self.take_joins(round).await?;
        self.take_losses(round).await?;
        self.take_gone(round).await?;
        self.take_misses(round).await?;
        self.take_unready(round).await?;
        self.take_provider_failures(round).await?;
        self.rejoin(round);
        self.withdraw_wishes(round).await?;
        self.bury_dead(round).await?;
        self.take_notices(round).await?;
        self.follow_hooks(round).await?;
        self.watch_nodes(round);
        self.follow_drains(round).await?;
        self.rejoin(round);
        self.follow_requests(round).await?;
        self.rejoin(round);
        self.keep_idle(round).await?;
        self.keep_approvals(round).await?;
        self.rejoin(round);
        self.guard(round).await;
        Ok(())
    }

    /// The planner has checked its own plan; what is to be executed is checked once more. False: nothing of it is done.
    fn check(&self, round: &mut Round, input: &PlanInput, planned: &Planned) -> bool {
        for dropped in &planned.report.dropped {
            round.events.push(Happening::PlanDropped {
                invariant: dropped.invariant.clone(),
                why: dropped.why.clone(),
            });
        }
        let violations = planner::violations(input, planned);
        let fine = violations.is_empty();
        for violation in violations {
            round.events.push(Happening::PlanDropped {
                invariant: violation.invariant.to_owned(),
                why: format!("the whole plan is dropped: {}", violation.why),
            });
        }
        fine
    }
}
