//! Root's break-glass: the mark in the state directory that makes the agent undo ours and let orders wait.
//!
//! Written by `drover-agent release` and removed by `resume`; the running agent looks for it. A new boot ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::clock;
use crate::drain::executor::{Executor, Job};
use crate::drain::machine::Action;
use crate::drain::{carry_out, processes};
use crate::state::{StateDir, StateError};

const MARK: &str = "released.json";
const ANSWER: &str = "release-answer.json";
/// How long a running agent may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    boot_id: String,
    at_unix_ms: u64,
    gpu_ttl_ms: u64,
}

/// What became of the GPU handles, by the running agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The mark that it answers.
    at_unix_ms: u64,
    /// Why the GPUs were not let go; `None` when they were.
    pub gpu_refused: Option<String>,
}

/// When root released this host in this boot, milliseconds since 1970; `None` when it is not released. A later release
/// has another time.
///
/// # Errors
/// The mark cannot be read.
pub fn released_at(state: &StateDir) -> Result<Option<u64>, StateError> {
    Ok(mark(state)?.map(|mark| mark.at_unix_ms))
}

/// For how long the GPUs are to be let go; `None` when nothing is released.
///
/// # Errors
/// The mark cannot be read.
pub fn gpu_ttl(state: &StateDir) -> Result<Option<Duration>, StateError> {
    Ok(mark(state)?.map(|mark| Duration::from_millis(mark.gpu_ttl_ms)))
}

fn mark(state: &StateDir) -> Result<Option<Mark>, StateError> {
    let mark: Option<Mark> = state.load(MARK)?;
    Ok(mark.filter(|mark| mark.boot_id == clock::boot_id()))
}

/// The running agent says what became of the GPU handles.
///
/// # Errors
/// It cannot be written.
pub fn answer(state: &StateDir, gpu_refused: Option<String>) -> Result<(), StateError> {
    let Some(mark) = mark(state)? else {
        return Ok(());
    };
    state.save(
        ANSWER,
        &Answer {
            at_unix_ms: mark.at_unix_ms,
            gpu_refused,
        },
    )
}

/// What `release` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// A running agent let go of everything.
    ByAgent,
    /// A running agent undid ours but could not let go of the GPUs.
    GpuRefused(String),
    /// No agent runs: done from here.
    Here,
    /// It was done before, for as long, and the time is not over.
    Already {
        /// Until when the GPUs are let go, milliseconds since 1970.
        gpu_until_unix_ms: u64,
    },
}

/// Why `release` did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// State directory.
    #[error("the state directory cannot be used")]
    State(#[from] StateError),
    /// The running agent does not answer.
    #[error(
        "the running agent did not answer within 10 s; the release is noted and the agent carries it out once it works \
         again: look at its log, or stop it and run `drover-agent release` again"
    )]
    NoAnswer,
    /// An executor could not undo ours.
    #[error("not everything was undone: {0}")]
    Undo(String),
}

/// Sets the mark and sees to it that ours is undone: by the running agent, or here when none runs. A release that holds
/// is left alone; one whose time for the GPUs is over, or differs, is made anew.
///
/// # Errors
/// See [`ReleaseError`].
pub async fn release(
    state: &StateDir,
    executors: Vec<Arc<dyn Executor>>,
    gpu_ttl: Duration,
) -> Result<Released, ReleaseError> {
    let at_unix_ms = clock::unix_ms();
    let gpu_ttl_ms = u64::try_from(gpu_ttl.as_millis()).unwrap_or(u64::MAX);
    if let Some(standing) = mark(state)?.filter(|mark| mark.gpu_ttl_ms == gpu_ttl_ms) {
        let gpu_until_unix_ms = standing.at_unix_ms.saturating_add(gpu_ttl_ms);
        let done = answer_to(state, standing.at_unix_ms)?;
        if gpu_until_unix_ms > at_unix_ms && done.is_some_and(|done| done.gpu_refused.is_none()) {
            return Ok(Released::Already { gpu_until_unix_ms });
        }
    }
    state.remove(ANSWER)?;
    state.save(
        MARK,
        &Mark {
            boot_id: clock::boot_id(),
            at_unix_ms,
            gpu_ttl_ms,
        },
    )?;
    match state.lock() {
        Ok(_alone) => {
            undo_here(executors).await?;
            answer(state, None)?;
            Ok(Released::Here)
        }
        Err(StateError::Locked { .. }) => await_answer(state, at_unix_ms).await,
        Err(error) => Err(error.into()),
    }
}

/// Takes the mark away; true when one was there.
///
/// # Errors
/// It cannot be removed.
pub fn resume(state: &StateDir) -> Result<bool, StateError> {
    let was = released_at(state)?.is_some();
    state.remove(MARK)?;
    state.remove(ANSWER)?;
    Ok(was)
}

async fn undo_here(executors: Vec<Arc<dyn Executor>>) -> Result<(), ReleaseError> {
    // Kept alive: a sender that is gone would end hooks at once.
    let (_keep, cancel) = watch::channel(false);
    let job = Job {
        drain_id: String::new(),
        reason: "released by root on the host".into(),
        deadline_unix_ms: None,
        cancel,
    };
    carry_out(executors, Action::Undo { keep_cordon: false }, job)
        .await
        .map_err(|blocker| ReleaseError::Undo(blocker.message))
}

async fn await_answer(state: &StateDir, at_unix_ms: u64) -> Result<Released, ReleaseError> {
    let deadline = Instant::now() + ANSWER_WAIT;
    while Instant::now() < deadline {
        match answer_to(state, at_unix_ms)? {
            Some(answer) => {
                return Ok(match answer.gpu_refused {
                    None => Released::ByAgent,
                    Some(why) => Released::GpuRefused(why),
                });
            }
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    Err(ReleaseError::NoAnswer)
}

/// The answer to the mark of that time, once ours is undone.
fn answer_to(state: &StateDir, at_unix_ms: u64) -> Result<Option<Answer>, StateError> {
    let answer: Option<Answer> = state.load(ANSWER)?;
    let cordoned = state.read(processes::CORDON_MARK)?.is_some();
    Ok(answer.filter(|answer| answer.at_unix_ms == at_unix_ms && !cordoned))
}
