//! The parent's side of the probe: starts the child, asks it for rounds, names its hangs and crashes, starts it again.
//!
//! Spawned by the collector. It must not block on a child, and never has two at work: one that cannot be killed keeps
//! the next from being started. Here are its orders and its loop; a child's work is in `rounds`, its end in `ending`.

mod ending;
pub mod link;
mod rounds;

use std::time::Duration;

use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::op::Mark;
use super::view::{Status, View};
use crate::collector::{ProbeConfig, ReleaseError};
use link::{Heard, Link};

/// A child leaves within this time or is taken for hung; with one tick of the collector a release is answered in 2 s.
const PART: Duration = Duration::from_millis(1500);

/// What the collector asks of the supervisor.
#[derive(Debug)]
pub enum Order {
    /// A round, as soon as possible.
    Round {
        /// With processes.
        processes: bool,
    },
    /// Whether this host should have a GPU: a missing library is retried oftener.
    Expect(bool),
    /// End the child and start none.
    Release(oneshot::Sender<Result<(), ReleaseError>>),
    /// Start one again.
    Resume,
    /// End the child and the task.
    Stop,
}

/// A handle on the supervisor.
#[derive(Debug)]
pub struct Probe {
    /// What it sees.
    pub view: watch::Receiver<View>,
    /// What it is told.
    pub orders: mpsc::Sender<Order>,
    /// Ends after `Stop` or when `orders` is dropped.
    pub task: tokio::task::JoinHandle<()>,
}

/// Starts the supervisor; `released` keeps the child away until `Resume`.
#[must_use]
pub fn spawn(config: ProbeConfig, released: bool) -> Probe {
    let (publish, view) = watch::channel(View::default());
    let (orders, receive) = mpsc::channel(8);
    let parent = Parent {
        wait: config.retry_min,
        config,
        publish,
        link: None,
        dying: None,
        next_start: (!released).then(Instant::now),
        expected: true,
        pending: None,
        wanted: None,
        round: 0,
    };
    if released {
        parent
            .publish
            .send_modify(|view| view.status = Status::Released);
    }
    Probe {
        view,
        orders,
        task: tokio::spawn(parent.run(receive)),
    }
}

/// An answer that is waited for.
#[derive(Debug)]
struct Pending {
    since: Instant,
    mark: Mark,
    marked: Instant,
    /// When to look at the mark again. A moment and no distance: other things happen meanwhile, and oftener.
    look_at: Instant,
}

struct Parent {
    config: ProbeConfig,
    publish: watch::Sender<View>,
    link: Option<Link>,
    /// Killed, not reaped yet.
    dying: Option<Child>,
    /// `None` while released or running.
    next_start: Option<Instant>,
    wait: Duration,
    expected: bool,
    pending: Option<Pending>,
    wanted: Option<bool>,
    round: u64,
}

impl Parent {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        loop {
            let wake = self.wake();
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Round { processes }) => {
                        self.wanted = Some(processes || self.wanted.unwrap_or(false));
                        self.ask().await;
                    }
                    Some(Order::Expect(expected)) => self.expect(expected),
                    Some(Order::Release(reply)) => {
                        let done = self.release().await;
                        // The asker may have given up.
                        let _gone = reply.send(done);
                    }
                    Some(Order::Resume) => self.resume(),
                    Some(Order::Stop) | None => break,
                },
                heard = hear(self.link.as_mut()) => self.heard(heard).await,
                () = reap(self.dying.as_mut()) => self.reaped(),
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.woken(),
            }
        }
        if let Some(link) = self.link.take() {
            // A hung child is killed, not waited for.
            let _parted = link.part(PART).await;
        }
    }

    /// When there is something to do without being told.
    fn wake(&self) -> Option<Instant> {
        let pending = self.pending.as_ref().filter(|_| self.link.is_some());
        let check = pending.map(|pending| pending.look_at);
        let start = self.next_start.filter(|_| self.dying.is_none());
        match (check, start) {
            (Some(check), Some(start)) => Some(check.min(start)),
            (one, other) => one.or(other),
        }
    }

    fn woken(&mut self) {
        if let Some(start) = self.next_start
            && self.dying.is_none()
            && start <= Instant::now()
        {
            self.start();
        }
        self.check();
    }
}

impl Pending {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            since: now,
            mark: Mark::default(),
            marked: now,
            look_at: now,
        }
    }
}

async fn hear(link: Option<&mut Link>) -> Heard {
    match link {
        Some(link) => link.hear().await,
        None => std::future::pending().await,
    }
}

async fn reap(dying: Option<&mut Child>) {
    match dying {
        // An error would mean that it is reaped already.
        Some(child) => drop(child.wait().await),
        None => std::future::pending().await,
    }
}
