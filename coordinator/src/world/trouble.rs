//! What goes wrong with what a simulated cloud offers: late instances, images that never join, random shortages, partial
//! grants, spot interruptions, and an API that is away or throttles.
//!
//! Read from the cloud's config, asked by `state`. Draws from the world's generator only for what is set, so that a cloud
//! without trouble is the same as ever.

use super::generator::Generator;
use super::spec::WindowSpec;
use serde::Deserialize;

/// Trouble of one offering; what is absent never happens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TroubleSpec {
    /// Of 100 instances so many come late.
    #[serde(default)]
    pub late_percent: u32,
    /// By so much more than their boot takes.
    #[serde(default)]
    pub late_ms: u64,
    /// Of 100 instances so many run and are never heard of.
    #[serde(default)]
    pub never_joins_percent: u32,
    /// Times in which the image is bad: none of the instances launched then is ever heard of.
    #[serde(default)]
    pub bad_image: Vec<WindowSpec>,
    /// Of 100 asks so many meet a shortage.
    #[serde(default)]
    pub shortage_percent: u32,
    /// Of 100 asks so many are granted in part only.
    #[serde(default)]
    pub partial_percent: u32,
    /// Spot: mean time until an instance is taken back; absent: never.
    #[serde(default)]
    pub interruption_ms: Option<u64>,
    /// Notice before that.
    #[serde(default = "two_minutes")]
    pub notice_ms: u64,
}

impl Default for TroubleSpec {
    fn default() -> Self {
        Self {
            late_percent: 0,
            late_ms: 0,
            never_joins_percent: 0,
            bad_image: Vec::new(),
            shortage_percent: 0,
            partial_percent: 0,
            interruption_ms: None,
            notice_ms: two_minutes(),
        }
    }
}

/// EC2's spot notice.
const fn two_minutes() -> u64 {
    120_000
}

/// Trouble of one group's API; what is absent never happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiSpec {
    /// Times in which it does not answer.
    #[serde(default)]
    pub away: Vec<WindowSpec>,
    /// Times in which every call is throttled.
    #[serde(default)]
    pub throttled: Vec<WindowSpec>,
}

/// Why a call to a group gets no answer now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiTrouble {
    /// No answer.
    Away,
    /// RequestLimitExceeded.
    Throttled,
}

impl ApiSpec {
    /// At this age of the cloud.
    #[must_use]
    pub fn at(&self, age_ms: u64) -> Option<ApiTrouble> {
        if within(&self.away, age_ms) {
            return Some(ApiTrouble::Away);
        }
        within(&self.throttled, age_ms).then_some(ApiTrouble::Throttled)
    }
}

/// True when a window is open at this age of the cloud.
pub(super) fn within(windows: &[WindowSpec], age_ms: u64) -> bool {
    windows
        .iter()
        .any(|w| (w.from_ms..w.until_ms).contains(&age_ms))
}

/// What becomes of one new instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fate {
    /// Its boot takes so much longer.
    pub late_ms: u64,
    /// Its agent will be heard of.
    pub joins: bool,
    /// After so much of its life it is taken back.
    pub lives_ms: Option<u64>,
}

impl TroubleSpec {
    fn hits(percent: u32, dice: &mut Generator) -> bool {
        percent > 0 && dice.below(100) < u64::from(percent)
    }

    /// Of the instances that an ask could have, how many it gets.
    pub(super) fn granted(&self, could: u32, dice: &mut Generator) -> u32 {
        if Self::hits(self.shortage_percent, dice) {
            0
        } else if could > 0 && Self::hits(self.partial_percent, dice) {
            u32::try_from(dice.below(u64::from(could))).unwrap_or(0)
        } else {
            could
        }
    }

    /// Draws what becomes of an instance that is launched at this age of the cloud.
    pub(super) fn fate(&self, age_ms: u64, dice: &mut Generator) -> Fate {
        let late_ms = if Self::hits(self.late_percent, dice) {
            self.late_ms
        } else {
            0
        };
        let dud = Self::hits(self.never_joins_percent, dice);
        Fate {
            late_ms,
            joins: !dud && !within(&self.bad_image, age_ms),
            lives_ms: self.interruption_ms.map(|mean| waiting_time(mean, dice)),
        }
    }
}

/// A time until something that happens at any moment alike, with this mean: geometric in steps of a sixty-fourth of it.
fn waiting_time(mean_ms: u64, dice: &mut Generator) -> u64 {
    let step = (mean_ms / 64).max(1);
    let mut steps = 1_u64;
    // A bound against absurd draws, far beyond any that counts.
    while steps < 64 * 16 && dice.below(64) != 0 {
        steps += 1;
    }
    step.saturating_mul(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_have_their_mean() {
        let mut dice = Generator::new(7);
        let sum: u64 = (0..4_000).map(|_| waiting_time(64_000, &mut dice)).sum();
        let mean = sum / 4_000;
        assert!((60_000..68_000).contains(&mean), "{mean}");
    }

    #[test]
    fn no_trouble_draws_nothing() {
        let (plain, mut dice) = (TroubleSpec::default(), Generator::new(7));
        let fate = plain.fate(5, &mut dice);
        assert_eq!(plain.granted(9, &mut dice), 9);
        let fine = Fate {
            late_ms: 0,
            joins: true,
            lives_ms: None,
        };
        assert_eq!(fate, fine);
        assert_eq!(dice.next(), Generator::new(7).next());
    }

    #[test]
    fn what_is_certain_happens() {
        let mut dice = Generator::new(7);
        let window = WindowSpec {
            from_ms: 10,
            until_ms: 20,
        };
        let all = TroubleSpec {
            late_percent: 100,
            late_ms: 9,
            shortage_percent: 100,
            bad_image: vec![window],
            ..TroubleSpec::default()
        };
        assert_eq!(all.granted(9, &mut dice), 0);
        assert_eq!(all.fate(9, &mut dice).late_ms, 9);
        assert!(all.fate(9, &mut dice).joins && !all.fate(10, &mut dice).joins);
        let part = TroubleSpec {
            partial_percent: 100,
            ..TroubleSpec::default()
        };
        assert!((0..50).all(|_| part.granted(9, &mut dice) < 9));
        let api = ApiSpec {
            away: vec![window],
            throttled: vec![WindowSpec {
                from_ms: 0,
                until_ms: 30,
            }],
        };
        assert_eq!(
            [9, 10, 30].map(|age| api.at(age)),
            [Some(ApiTrouble::Throttled), Some(ApiTrouble::Away), None]
        );
    }
}
