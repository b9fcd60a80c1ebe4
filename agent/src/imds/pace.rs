//! How long to rest before metadata is asked for again, and what is said of its failures. Pure.
//!
//! Used by `watch`. A service that has answered before is asked on time whatever it says now; one that is switched off,
//! or never was there, is asked less and less often (AG-20).

use std::time::Duration;

use super::ImdsError;

const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);
/// A document that cannot be read so often in a row is a trouble; before that the next round decides.
const DOCUMENT_MISSES: u32 = 3;

/// What became of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was answered.
    Whole,
    /// Some document could not be read.
    Part(ImdsError),
    /// It was given up.
    Lost(ImdsError),
}

/// See the head of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// The service has answered in some round.
    answered: bool,
    /// Next rest while it does not answer.
    rest: Duration,
    /// Rounds in a row with a document that could not be read.
    partial: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            answered: false,
            rest: RETRY_MIN,
            partial: 0,
        }
    }
}

impl Pace {
    /// Takes a round: how long to rest (`poll` where all is well), and the trouble that there is now.
    pub fn took(&mut self, outcome: Outcome, poll: Duration) -> (Duration, Option<ImdsError>) {
        match outcome {
            Outcome::Whole => {
                *self = Self {
                    answered: true,
                    ..Self::default()
                };
                (poll, None)
            }
            Outcome::Part(error) => {
                self.answered = true;
                self.rest = RETRY_MIN;
                self.partial += 1;
                let trouble = (self.partial >= DOCUMENT_MISSES).then_some(error);
                (poll, trouble)
            }
            Outcome::Lost(error) => {
                let off = matches!(error, ImdsError::Disabled(_));
                if self.answered && !off {
                    return (poll, Some(error));
                }
                let rest = self.rest;
                self.rest = (rest * 2).min(RETRY_MAX);
                (rest, Some(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(5);

    fn silent() -> ImdsError {
        ImdsError::NoAnswer {
            hint: "",
            reason: "timed out".to_owned(),
        }
    }

    fn play(outcomes: Vec<Outcome>) -> Vec<(u64, bool)> {
        let mut pace = Pace::default();
        outcomes
            .into_iter()
            .map(|outcome| {
                let (rest, trouble) = pace.took(outcome, POLL);
                (rest.as_secs(), trouble.is_some())
            })
            .collect()
    }

    #[test]
    fn ag_20_the_next_round_comes_on_time_or_backs_off_to_minutes() {
        use Outcome::{Lost, Part, Whole};
        let off = || Lost(ImdsError::Disabled(403));
        let refused = || Lost(ImdsError::Refused);
        for (what, outcomes, want) in [
            (
                "a refused round of a service that answered",
                vec![Whole, refused(), Whole],
                vec![(5, false), (5, true), (5, false)],
            ),
            (
                "one that answered and then is silent",
                vec![Whole, Lost(silent()), Lost(silent())],
                vec![(5, false), (5, true), (5, true)],
            ),
            (
                "half a body",
                vec![Part(silent()), Whole, Part(silent())],
                vec![(5, false), (5, false), (5, false)],
            ),
            (
                "half a body again and again",
                vec![Part(silent()), Part(silent()), Part(silent()), Whole],
                vec![(5, false), (5, false), (5, true), (5, false)],
            ),
            (
                "never there",
                vec![Lost(silent()), Lost(silent()), refused()],
                vec![(1, true), (2, true), (4, true)],
            ),
            (
                "switched off while it ran, and on again",
                vec![Whole, off(), off(), Whole, off()],
                vec![(5, false), (1, true), (2, true), (5, false), (1, true)],
            ),
        ] {
            assert_eq!(play(outcomes), want, "{what}");
        }
        let rests: Vec<u64> = play(vec![off(); 12]).into_iter().map(|(s, _)| s).collect();
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    }
}
