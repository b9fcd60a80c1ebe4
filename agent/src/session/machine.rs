//! Where a session stands and what follows from what is heard. Pure.
//!
//! Called by `session`, which does the dialling, sending and resting that this asks for.

use std::time::Duration;

use drover_proto::limits;

use super::backoff;
use crate::clock::BootMs;

/// The coordinator is given up after this many of its heartbeat intervals without a word, at least [`SILENCE_MIN_MS`].
const SILENT_INTERVALS: u64 = 3;
/// See [`SILENT_INTERVALS`].
const SILENCE_MIN_MS: u64 = 15_000;
/// How long the coordinator may take to say Welcome.
const GREETING_MS: u64 = 15_000;
/// Word that took longer than this on its way was buffered somewhere: the session is made anew.
const LATE_MS: u64 = 60_000;
/// A session that lived this long was a good one: the next try comes soon.
const GOOD_MS: u64 = 30_000;

/// What was heard from the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Welcome.
    Welcome {
        /// Of its protocol.
        protocol: u32,
        /// Its promise.
        heartbeat_ms: u64,
        /// Its clock.
        now_unix_ms: u64,
    },
    /// An order or a heartbeat, with its clock.
    Word {
        /// Its clock when it sent it.
        now_unix_ms: u64,
    },
    /// Anything else.
    Other,
}

/// Why a session ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// Nothing was heard for too long.
    #[error("the coordinator is silent for {0} s")]
    Silent(u64),
    /// Something else came before Welcome, or a second Welcome.
    #[error("the coordinator broke the protocol: {0}")]
    Protocol(&'static str),
    /// It speaks another version.
    #[error("the coordinator speaks protocol {0}, this agent {own}", own = limits::PROTOCOL)]
    Version(u32),
    /// Its word was buffered on the way.
    #[error("word from the coordinator was {0} s on its way")]
    Late(u64),
    /// The stream ended.
    #[error("the stream ended: {0}")]
    Closed(String),
    /// The coordinator does not take this node.
    #[error("the coordinator refuses this node: {0}")]
    Refused(String),
}

impl End {
    /// Only a person can help: try again slowly.
    #[must_use]
    pub fn needs_a_person(&self) -> bool {
        matches!(self, Self::Version(_) | Self::Refused(_))
    }
}

/// One session, from Hello on.
#[derive(Debug, Clone)]
pub struct Session {
    began: BootMs,
    heard: BootMs,
    welcome: Option<u64>,
    /// Coordinator's clock minus boot time: the highest seen is the one with the least delay.
    offset_ms: Option<i128>,
}

impl Session {
    /// Hello is on its way.
    #[must_use]
    pub fn begin(now: BootMs) -> Self {
        Self {
            began: now,
            heard: now,
            welcome: None,
            offset_ms: None,
        }
    }

    /// Welcome was heard.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.welcome.is_some()
    }

    /// Takes a message. For word it gives the moment at which it was sent, on our clock: freshness counts from
    /// there, not from when a buffer let go of it.
    ///
    /// # Errors
    /// The session is over.
    pub fn heard(&mut self, message: Heard, now: BootMs) -> Result<BootMs, End> {
        self.heard = now;
        match (message, self.welcome) {
            (
                Heard::Welcome {
                    protocol,
                    heartbeat_ms,
                    now_unix_ms,
                },
                None,
            ) => {
                if protocol != limits::PROTOCOL {
                    return Err(End::Version(protocol));
                }
                self.welcome = Some(heartbeat_ms);
                self.sent_at(now_unix_ms, now)
            }
            (Heard::Welcome { .. }, Some(_)) => Err(End::Protocol("a second Welcome")),
            (_, None) => Err(End::Protocol("a message before Welcome")),
            (Heard::Word { now_unix_ms }, Some(_)) => self.sent_at(now_unix_ms, now),
            (Heard::Other, Some(_)) => Ok(now),
        }
    }

    fn sent_at(&mut self, now_unix_ms: u64, now: BootMs) -> Result<BootMs, End> {
        let offset = i128::from(now_unix_ms) - i128::from(now.0);
        let best = self.offset_ms.map_or(offset, |known| known.max(offset));
        self.offset_ms = Some(best);
        let late_ms = u64::try_from(best - offset).unwrap_or(u64::MAX);
        if late_ms > LATE_MS {
            return Err(End::Late(late_ms / 1_000));
        }
        Ok(BootMs(now.0.saturating_sub(late_ms)))
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// The coordinator was silent for too long.
    pub fn tick(&self, now: BootMs) -> Result<(), End> {
        let limit_ms = match self.welcome {
            None => GREETING_MS,
            Some(heartbeat_ms) => heartbeat_ms
                .saturating_mul(SILENT_INTERVALS)
                .max(SILENCE_MIN_MS),
        };
        let silent_ms = now.since(self.heard);
        if silent_ms > limit_ms {
            return Err(End::Silent(silent_ms / 1_000));
        }
        Ok(())
    }

    /// It lived long enough to forget the failures before it.
    #[must_use]
    pub fn was_good(&self, now: BootMs) -> bool {
        self.is_open() && now.since(self.began) >= GOOD_MS
    }
}

/// Counts failed tries and says how long to rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retry {
    attempt: u32,
}

impl Retry {
    /// A good session ended.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }

    /// Rest before the next try; `slowly` when only a person can help. `draw` is in 0..1.
    pub fn rest(&mut self, slowly: bool, draw: f64) -> Duration {
        let cap = if slowly {
            backoff::SLOW_CAP
        } else {
            backoff::CAP
        };
        let rest = backoff::rest(self.attempt, cap, draw);
        self.attempt = self.attempt.saturating_add(1);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELCOME: Heard = Heard::Welcome {
        protocol: 1,
        heartbeat_ms: 10_000,
        now_unix_ms: 1_000_000,
    };

    fn open(at: u64) -> Session {
        let mut session = Session::begin(BootMs(at));
        session.heard(WELCOME, BootMs(at)).unwrap();
        session
    }

    fn word(now_unix_ms: u64) -> Heard {
        Heard::Word { now_unix_ms }
    }

    #[test]
    fn only_welcome_opens_a_session_and_only_once() {
        let now = BootMs(0);
        for (first, want) in [
            (word(1), Err(End::Protocol("a message before Welcome"))),
            (Heard::Other, Err(End::Protocol("a message before Welcome"))),
            (
                Heard::Welcome {
                    protocol: 2,
                    heartbeat_ms: 1,
                    now_unix_ms: 1,
                },
                Err(End::Version(2)),
            ),
            (WELCOME, Ok(now)),
        ] {
            let mut session = Session::begin(now);
            assert_eq!(session.heard(first, now), want);
            assert_eq!(session.is_open(), want.is_ok());
        }
        assert_eq!(
            open(0).heard(WELCOME, now),
            Err(End::Protocol("a second Welcome"))
        );
    }

    #[test]
    fn silence_ends_a_session() {
        let greeting = Session::begin(BootMs(0));
        assert_eq!(greeting.tick(BootMs(15_000)), Ok(()));
        assert_eq!(greeting.tick(BootMs(15_001)), Err(End::Silent(15)));
        let mut session = open(0);
        assert_eq!(session.tick(BootMs(30_000)), Ok(()));
        assert_eq!(session.tick(BootMs(30_001)), Err(End::Silent(30)));
        session.heard(Heard::Other, BootMs(30_000)).unwrap();
        assert_eq!(session.tick(BootMs(60_000)), Ok(()));
    }

    #[test]
    fn word_counts_from_when_it_was_sent() {
        let mut session = open(5_000);
        assert_eq!(
            session.heard(word(1_010_000), BootMs(15_000)),
            Ok(BootMs(15_000))
        );
        // Sent 20 s ago by the best offset, and only now let go.
        assert_eq!(
            session.heard(word(1_020_000), BootMs(45_000)),
            Ok(BootMs(25_000))
        );
        // Faster than Welcome was: that one had been 2 s on its way.
        assert_eq!(
            session.heard(word(1_052_000), BootMs(55_000)),
            Ok(BootMs(55_000))
        );
        assert_eq!(
            session.heard(word(1_060_000), BootMs(65_000)),
            Ok(BootMs(63_000))
        );
        assert_eq!(
            session.heard(word(1_061_000), BootMs(126_001)),
            Err(End::Late(62))
        );
    }

    #[test]
    fn tries_rest_longer_each_time_until_a_good_session() {
        let mut retry = Retry::default();
        let rests: Vec<u128> = (0..9).map(|_| retry.rest(false, 1.0).as_millis()).collect();
        assert_eq!(
            rests,
            [
                500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000
            ]
        );
        assert_eq!(retry.rest(true, 1.0).as_secs(), 256);
        assert_eq!(retry.rest(true, 1.0).as_secs(), 300);
        retry.reset();
        assert_eq!(retry.rest(true, 1.0).as_millis(), 500);
        assert!(!open(0).was_good(BootMs(29_999)));
        assert!(open(0).was_good(BootMs(30_000)));
        assert!(!Session::begin(BootMs(0)).was_good(BootMs(99_000)));
    }
}
