//! When a certificate is renewed. Pure.
//!
//! Called by `identity`. Certificates live 24 h and are backdated 24 h; they are renewed at two thirds of their
//! life, a little earlier or later on each node so that a fleet enrolled at once does not come at once.

/// Coordinators backdate certificates by this, for hosts whose clock is behind.
const BACKDATED_MS: u64 = 24 * 3_600_000;
/// An expired certificate still renews for this long.
pub const EXPIRED_LIMIT_MS: u64 = 90 * 24 * 3_600_000;

/// Validity of a certificate, milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// notBefore.
    pub not_before_ms: u64,
    /// notAfter.
    pub not_after_ms: u64,
}

/// What to do with a certificate now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// Nothing before so many milliseconds are over.
    In(u64),
    /// Renew it over mutual TLS.
    Now,
    /// It has expired: renew it with a signature over a nonce.
    Expired,
    /// It expired too long ago: only a join token helps.
    TooOld,
}

impl Renewal {
    /// Something has to be done.
    #[must_use]
    pub fn is_due(self) -> bool {
        !matches!(self, Self::In(_))
    }
}

/// What to do with a certificate at `now_ms`. `jitter` is in 0..1, drawn once per certificate.
#[must_use]
pub fn decide(validity: Validity, now_ms: u64, jitter: f64) -> Renewal {
    let Validity {
        not_before_ms,
        not_after_ms,
    } = validity;
    if now_ms > not_after_ms {
        return if now_ms - not_after_ms > EXPIRED_LIMIT_MS {
            Renewal::TooOld
        } else {
            Renewal::Expired
        };
    }
    let span = not_after_ms.saturating_sub(not_before_ms);
    let life = if span > BACKDATED_MS {
        span - BACKDATED_MS
    } else {
        span
    };
    // A third of the life before its end, and a twelfth of that third to either side.
    let third = life / 3;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a jitter of hours in milliseconds, clamped to 0..1"
    )]
    let shift = (third as f64 / 6.0 * jitter.clamp(0.0, 1.0)) as u64;
    let before_end = third - third / 12 + shift;
    let at = not_after_ms.saturating_sub(before_end);
    if now_ms >= at {
        Renewal::Now
    } else {
        Renewal::In(at - now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    /// Issued at hour 1000 for 24 h, backdated 24 h.
    const CERT: Validity = Validity {
        not_before_ms: 976 * HOUR,
        not_after_ms: 1_024 * HOUR,
    };

    #[test]
    fn renews_at_two_thirds_with_a_little_jitter() {
        for (hour, jitter, want) in [
            (1_000, 0.5, Renewal::In(16 * HOUR)),
            (1_016, 0.5, Renewal::Now),
            (1_015, 1.0, Renewal::In(HOUR / 3)),
            (1_016, 0.0, Renewal::In(HOUR * 2 / 3)),
            (1_024, 0.5, Renewal::Now),
            (1_025, 0.5, Renewal::Expired),
            (1_024 + 90 * 24, 0.5, Renewal::Expired),
            (1_025 + 90 * 24, 0.5, Renewal::TooOld),
            // A clock far behind: the certificate is not valid yet, and nothing is renewed for that.
            (900, 0.5, Renewal::In(116 * HOUR)),
        ] {
            assert_eq!(
                decide(CERT, hour * HOUR, jitter),
                want,
                "hour {hour} jitter {jitter}"
            );
        }
    }

    #[test]
    fn a_short_life_without_backdating_has_its_thirds_too() {
        let short = Validity {
            not_before_ms: 1_000 * HOUR,
            not_after_ms: 1_003 * HOUR,
        };
        assert_eq!(decide(short, 1_000 * HOUR, 0.5), Renewal::In(2 * HOUR));
        assert_eq!(decide(short, 1_002 * HOUR, 0.5), Renewal::Now);
    }
}
