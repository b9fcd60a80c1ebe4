//! What the metadata service remembers: scripts, tokens, and what was asked. It knows no HTTP.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Answer, EVERY};

/// Most tokens that are remembered; the oldest go first.
const MAX_TOKENS: usize = 20_000;
/// Most violations that are kept; more are counted only.
const MAX_VIOLATIONS: usize = 100;

/// A question that no client of version 2 asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The path that was asked for without a token.
    pub path: String,
}

/// What one instance has asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Requests for a token.
    pub puts: u64,
    /// Questions by path, refused ones included.
    pub gets: BTreeMap<String, u64>,
    /// Questions without a token.
    pub without_token: u64,
    /// The first of them.
    pub violations: Vec<Violation>,
}

impl Asked {
    /// How often `path` was asked for.
    #[must_use]
    pub fn gets_of(&self, path: &str) -> u64 {
        self.gets.get(path).copied().unwrap_or_default()
    }
}

#[derive(Default)]
struct Known {
    scripts: BTreeMap<(String, String), VecDeque<Answer>>,
    asked: BTreeMap<String, Asked>,
    /// Token, instance and end, oldest first.
    tokens: VecDeque<(String, String, Instant)>,
    longest: Option<Duration>,
    given: u64,
}

/// The service's memory.
pub(super) struct Script {
    instance_type: String,
    known: Mutex<Known>,
}

impl Script {
    pub(super) fn new(instance_type: &str) -> Self {
        Self {
            instance_type: instance_type.to_owned(),
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, instance: &str, path: &str, answers: Vec<Answer>) {
        let key = (instance.to_owned(), path.trim_matches('/').to_owned());
        let mut known = self.known();
        if answers.is_empty() {
            known.scripts.remove(&key);
        } else {
            known.scripts.insert(key, answers.into());
        }
    }

    /// The next scripted answer; the last one stays.
    pub(super) fn next(&self, instance: &str, path: &str) -> Option<Answer> {
        let mut known = self.known();
        for who in [instance, EVERY] {
            let key = (who.to_owned(), path.trim_matches('/').to_owned());
            if let Some(answers) = known.scripts.get_mut(&key) {
                return if answers.len() > 1 {
                    answers.pop_front()
                } else {
                    answers.front().cloned()
                };
            }
        }
        None
    }

    /// What an instance that nothing happens to is told.
    pub(super) fn unscripted(&self, instance: &str, path: &str) -> Answer {
        match path.trim_matches('/') {
            "meta-data/instance-id" => Answer::text(instance),
            "meta-data/instance-type" => Answer::text(&self.instance_type),
            "meta-data/autoscaling/target-lifecycle-state" => Answer::text("InService"),
            "meta-data/events/maintenance/scheduled" => Answer::text("[]"),
            _ => Answer::missing(),
        }
    }

    pub(super) fn note_put(&self, instance: &str) {
        self.known()
            .asked
            .entry(instance.to_owned())
            .or_default()
            .puts += 1;
    }

    pub(super) fn note_get(&self, instance: &str, path: &str, with_token: bool) {
        let mut known = self.known();
        let asked = known.asked.entry(instance.to_owned()).or_default();
        *asked.gets.entry(path.to_owned()).or_default() += 1;
        if !with_token {
            asked.without_token += 1;
            if asked.violations.len() < MAX_VIOLATIONS {
                asked.violations.push(Violation {
                    path: path.to_owned(),
                });
            }
        }
    }

    pub(super) fn asked(&self, instance: &str) -> Asked {
        self.known()
            .asked
            .get(instance)
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn shorten_tokens(&self, longest: Option<Duration>) {
        self.known().longest = longest;
    }

    pub(super) fn expire_tokens(&self) {
        self.known().tokens.clear();
    }

    pub(super) fn give_token(&self, instance: &str, life: Duration) -> String {
        let mut known = self.known();
        known.given += 1;
        let token = format!("{instance}-{:08x}-{}", rand::random::<u32>(), known.given);
        let life = known.longest.map_or(life, |l| l.min(life));
        let row = (token.clone(), instance.to_owned(), Instant::now() + life);
        known.tokens.push_back(row);
        if known.tokens.len() > MAX_TOKENS {
            known.tokens.pop_front();
        }
        token
    }

    pub(super) fn takes_token(&self, instance: &str, token: &str) -> bool {
        let now = Instant::now();
        let known = self.known();
        let mut rows = known.tokens.iter().rev();
        rows.any(|(t, i, until)| t == token && i == instance && now < *until)
    }
}
