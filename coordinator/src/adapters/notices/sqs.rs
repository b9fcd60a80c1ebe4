//! Queues of SQS: messages are received, told through the port, and deleted once control has settled all that they say.
//!
//! Made by `app`, which gives it the calls of AWS and, at a reload, other queues. A queue that cannot be read troubles
//! nobody else; a message that is not understood is deleted, counted and logged once of its kind. **Invariant:** a message
//! is deleted only after its effect is durable; one that comes again meanwhile is known.

use super::parse::{Parsed, parse};
use crate::ports::notices::{CloudNotice, NoticeSource};
use drover_aws::{AwsEvents, QueueMessage, Region};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// AWS holds an empty answer back for so long, seconds.
const WAIT_SECONDS: u32 = 20;
/// Receipts of one deletion (AWS's limit).
const AT_ONCE: usize = 10;
/// After a call that failed: doubles from this to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_secs(1);
/// See [`PAUSE`].
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After an answer that brought nothing: a service that does not hold it back must not be asked without end.
const BREATH: Duration = Duration::from_millis(200);
/// No more is received while so many messages are not settled.
const OPEN: usize = 1_000;
/// Deleted messages that are remembered.
const OVER: usize = 1_000;
/// Kinds of messages not understood that are logged with their text.
const LOGGED: usize = 100;
/// The most of a text that is logged, characters.
const TEXT: usize = 2_000;

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Queue {
    /// Where it is, and with which role it is read.
    pub region: Region,
    /// Its URL.
    pub url: String,
}

impl Queue {
    /// For people: region and the URL's last part.
    #[must_use]
    pub fn name(&self) -> String {
        let last = self.url.rsplit('/').next().unwrap_or(&self.url);
        format!("{}/{last}", self.region.as_str())
    }
}

/// A message that was received and is not deleted.
struct Open {
    queue: Queue,
    receipt: String,
    /// What of it is not settled.
    notices: Vec<CloudNotice>,
}

#[derive(Default)]
struct State {
    /// By queue and AWS's id.
    open: BTreeMap<String, Open>,
    /// In order of arrival.
    order: Vec<String>,
    /// Deleted lately: one that comes once more, as SQS may, is known and deleted again.
    over: VecDeque<String>,
    troubles: BTreeMap<Queue, String>,
    unknown: u64,
    logged: BTreeSet<String>,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    /// Something is to be deleted.
    settled: Notify,
    /// Rung when something came.
    bell: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The queues. Cheap to clone.
#[derive(Clone, Default)]
pub struct Queues {
    inner: Arc<Inner>,
    followed: Arc<Mutex<Followed>>,
}

/// What is listened to, and by whom.
#[derive(Default)]
struct Followed {
    queues: Vec<Queue>,
    api: Option<Arc<dyn AwsEvents>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Queues {
    /// Rings this whenever something came; the first bell stays.
    pub fn ring(&self, bell: impl Fn() + Send + Sync + 'static) {
        // One process has one control.
        let _ = self.inner.bell.set(Box::new(bell));
    }

    /// Listens to these queues from now on, and to no others. What was received and not settled stays.
    pub fn follow(&self, api: &Arc<dyn AwsEvents>, queues: Vec<Queue>) {
        let mut followed = self.followed();
        let same = followed
            .api
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, api));
        if same && followed.queues == queues {
            return;
        }
        followed.end();
        let mut state = self.inner.state();
        state.troubles.retain(|queue, _| queues.contains(queue));
        drop(state);
        for queue in &queues {
            let (inner, api, queue) = (self.inner.clone(), api.clone(), queue.clone());
            followed
                .tasks
                .push(tokio::spawn(receive(inner, api, queue)));
        }
        if !queues.is_empty() {
            let deleting = delete(self.inner.clone(), api.clone());
            followed.tasks.push(tokio::spawn(deleting));
        }
        followed.queues = queues;
        followed.api = Some(api.clone());
    }

    /// Listens to none from now on.
    pub fn stop(&self) {
        self.followed().end();
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages that were not understood since the start.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.inner.state().unknown
    }
}

impl NoticeSource for Queues {
    fn take(&self) -> Vec<CloudNotice> {
        let state = self.inner.state();
        let open = state.order.iter().filter_map(|key| state.open.get(key));
        open.flat_map(|open| open.notices.iter().cloned()).collect()
    }

    fn settle(&self, ids: &[String]) {
        let ids: BTreeSet<&String> = ids.iter().collect();
        for open in self.inner.state().open.values_mut() {
            open.notices.retain(|notice| !ids.contains(&notice.id));
        }
        self.inner.settled.notify_one();
    }

    fn troubles(&self) -> Vec<(String, String)> {
        let state = self.inner.state();
        let troubles = state.troubles.iter();
        troubles
            .map(|(queue, why)| (queue.name(), why.clone()))
            .collect()
    }
}

impl Followed {
    fn end(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.api = None;
        self.queues.clear();
    }
}

impl Inner {
    /// Not to be held across an await.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell();
        }
    }

    fn trouble(&self, queue: &Queue, why: Option<String>) {
        let news = {
            let mut state = self.state();
            match why {
                Some(why) => state.troubles.insert(queue.clone(), why).is_none(),
                None => state.troubles.remove(queue).is_some(),
            }
        };
        if news {
            self.ring();
        }
    }

    /// Takes a message; one that is open already only brings a newer receipt.
    fn take(&self, queue: &Queue, message: QueueMessage) {
        let mut state = self.state();
        let key = format!("{}#{}", queue.url, message.id);
        if let Some(open) = state.open.get_mut(&key) {
            open.receipt = message.receipt;
            return;
        }
        let told = match parse(&message.body) {
            _ if state.over.contains(&key) => Vec::new(),
            Parsed::Told(told) => told,
            Parsed::Nothing => Vec::new(),
            Parsed::Unknown(why) => {
                state.unknown += 1;
                if state.logged.len() < LOGGED && state.logged.insert(why.clone()) {
                    let text: String = message.body.chars().take(TEXT).collect();
                    let (queue, unknown) = (queue.name(), state.unknown);
                    tracing::warn!(
                        queue,
                        why,
                        text,
                        unknown,
                        "a message is not understood: it is deleted"
                    );
                }
                Vec::new()
            }
        };
        let notices = told.into_iter().enumerate().map(|(n, told)| CloudNotice {
            id: format!("{key}#{n}"),
            by: queue.name(),
            region: told
                .region
                .unwrap_or_else(|| queue.region.as_str().to_owned()),
            instance: told.instance,
            word: told.word,
            message: told.message,
            at: told.at,
        });
        let open = Open {
            queue: queue.clone(),
            receipt: message.receipt,
            notices: notices.collect(),
        };
        state.open.insert(key.clone(), open);
        state.order.push(key);
    }

    /// Messages of one queue that are settled, with their receipts; at most so many as one call deletes.
    fn done(&self) -> Option<(Queue, Vec<(String, String)>)> {
        let state = self.state();
        let done = || {
            let open = state.open.iter();
            open.filter(|(_, open)| open.notices.is_empty())
        };
        let queue = done().next()?.1.queue.clone();
        let found = done()
            .filter(|(_, open)| open.queue == queue)
            .take(AT_ONCE)
            .map(|(key, open)| (key.clone(), open.receipt.clone()))
            .collect();
        Some((queue, found))
    }

    fn forget(&self, done: &[(String, String)]) {
        let mut state = self.state();
        let State {
            open, order, over, ..
        } = &mut *state;
        for (key, _) in done {
            open.remove(key);
            over.push_back(key.clone());
        }
        while over.len() > OVER {
            over.pop_front();
        }
        order.retain(|key| open.contains_key(key));
    }
}

async fn receive(inner: Arc<Inner>, api: Arc<dyn AwsEvents>, queue: Queue) {
    let mut pause = PAUSE;
    loop {
        if inner.state().open.len() >= OPEN {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        match api.receive(&queue.region, &queue.url, WAIT_SECONDS).await {
            Ok(messages) => {
                pause = PAUSE;
                inner.trouble(&queue, None);
                if messages.is_empty() {
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
                for message in messages {
                    inner.take(&queue, message);
                }
                inner.ring();
                // What says nothing is deleted at once.
                inner.settled.notify_one();
            }
            Err(error) => {
                tracing::warn!(queue = queue.name(), %error, "a queue cannot be read");
                inner.trouble(&queue, Some(error.to_string()));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

async fn delete(inner: Arc<Inner>, api: Arc<dyn AwsEvents>) {
    let mut pause = PAUSE;
    loop {
        let Some((queue, done)) = inner.done() else {
            inner.settled.notified().await;
            continue;
        };
        let receipts: Vec<String> = done.iter().map(|(_, receipt)| receipt.clone()).collect();
        match api.delete(&queue.region, &queue.url, &receipts).await {
            Ok(()) => {
                pause = PAUSE;
                inner.forget(&done);
            }
            Err(error) => {
                tracing::warn!(queue = queue.name(), %error, "messages not deleted: tried again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests;
