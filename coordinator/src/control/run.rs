//! The loop around the cycle: woken by agents, commands or a timer; bursts are gathered.
//!
//! Started by `app`. Beside `background`, which limits how long a cycle waits, the only place in control with a timer.

use super::cycle::{Control, CycleError};
use super::settings::Asks;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// A burst is over when nothing came for this long.
const QUIET: Duration = Duration::from_millis(250);
/// And is acted on after this at the latest.
const LONGEST: Duration = Duration::from_millis(500);
/// Cycles that ask for another at once get it after this pause, and at most [`IN_A_ROW`] times.
const AT_ONCE: Duration = Duration::from_millis(20);
/// Then the loop takes a breath, so that a fault cannot spin.
const IN_A_ROW: u32 = 20;
/// After a cycle that failed.
const FAILED: Duration = Duration::from_secs(1);

/// Runs cycles until `stop` resolves or somebody else leads.
///
/// # Errors
/// Somebody else leads this store: nothing may be done any more.
pub async fn run(
    mut control: Control,
    mut asks: Asks,
    stop: impl Future<Output = ()>,
) -> Result<(), CycleError> {
    tokio::pin!(stop);
    let mut agents = control.link.changed();
    let mut wishes = control.wake.subscribe();
    let mut row = 0;
    loop {
        while let Ok(ask) = asks.try_recv() {
            control.answer(ask).await?;
        }
        agents.borrow_and_update();
        wishes.borrow_and_update();
        let began = Instant::now();
        let ended = control.cycle().await;
        match &ended {
            Ok(_) => control.pace.cycled(began.elapsed()),
            Err(_) => control.pace.failed(),
        }
        let wait = match ended {
            Ok(true) if row < IN_A_ROW => {
                row += 1;
                AT_ONCE
            }
            Ok(_) => {
                row = 0;
                control.pause()
            }
            Err(error @ CycleError::Fenced(_)) => return Err(error),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a cycle failed");
                row = 0;
                FAILED
            }
        };
        let timer = sleep_until(Instant::now() + wait);
        tokio::select! {
            () = &mut stop => return Ok(()),
            () = timer => continue,
            changed = agents.changed() => if changed.is_err() { return Ok(()) },
            _ = wishes.changed() => {}
        }
        // Something came: gather what comes with it.
        let end = Instant::now() + LONGEST;
        loop {
            agents.borrow_and_update();
            wishes.borrow_and_update();
            let quiet = QUIET.min(end.saturating_duration_since(Instant::now()));
            if quiet.is_zero() {
                break;
            }
            let more = async {
                tokio::select! {
                    changed = agents.changed() => changed.is_ok(),
                    changed = wishes.changed() => changed.is_ok(),
                }
            };
            tokio::select! {
                () = &mut stop => return Ok(()),
                more = timeout(quiet, more) => if !matches!(more, Ok(true)) { break },
            }
        }
    }
}
