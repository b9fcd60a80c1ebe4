//! What stands beside a reason so that a person can do something: what would be asked, how a pool grows again, what is to
//! be mended and where.
//!
//! Called by `publish`. Words only, decides nothing. **Invariant:** `drover pools resume` is advised only for what it
//! clears: stops in the pool's own record. What the provider says is over when the provider says so.

use crate::config::{Origin, PoolConfig, PoolSource};
use crate::control::cycle::{Control, Round};
use crate::control::events::mode_word;
use crate::control::failures::way_on;
use crate::control::launches::told_unlike;
use crate::ports::actuate::{ActuateError, NO_CREDENTIALS, PoolReading};
use drover_core::model::{
    Action, FailureKind, Mode, Planned, PoolId, PoolKind, Reason, Source, Stop,
};
use drover_core::planner::{render, render_stop};

impl Control {
    /// Reasons of demand, with what a person can do.
    pub(super) fn advised(
        &self,
        round: &Round,
        planned: &Planned,
        source: &Source,
        reasons: &[Reason],
    ) -> Vec<String> {
        let each = reasons.iter().map(|reason| match reason {
            Reason::PoolMode { pool, mode } => match would_ask(planned, source, pool) {
                0 => render(reason, round.now),
                count => format!(
                    "would ask {pool} for {count}; {} mode, `drover pools mode {pool} grow` allows it",
                    mode_word(*mode)
                ),
            },
            Reason::PoolDiffers { pool, what } if what.starts_with("no GPU") => {
                let text = render(reason, round.now);
                let (settings, _) = round.ledger.pool(pool);
                let offered = round.readings.get(pool).map(|reading| &reading.offerings);
                let found = offered.and_then(|offered| told_unlike(&settings, offered));
                found.map_or_else(|| text.clone(), |found| format!("{text} ({found})"))
            }
            Reason::PoolDiffers { what, .. } => match tainted(what) {
                Some(taint) => format!(
                    "{}; `--toleration {taint}` lets it in",
                    render(reason, round.now)
                ),
                None => render(reason, round.now),
            },
            Reason::UnknownType { pool, .. } => {
                let text = render(reason, round.now);
                let fix = self.config.pool(pool).map(known_type);
                fix.map_or_else(|| text.clone(), |fix| format!("{text}; {fix}"))
            }
            _ => render(reason, round.now),
        });
        each.collect()
    }

    /// Why a pool is stopped, and how it grows again.
    pub(super) fn stopped(&self, round: &Round, pool: &PoolConfig, stop: &Stop) -> String {
        let text = render_stop(stop);
        let (settings, _) = round.ledger.pool(&pool.name);
        let next = match stop {
            Stop::NeverJoined { .. } => way_on(round, &pool.name, None),
            Stop::Failed { failure, why } => {
                let recorded = settings
                    .failed
                    .as_ref()
                    .is_some_and(|(kind, said, _)| kind == failure && said == why);
                if self.gone(&pool.name) == Some(why) {
                    match pool.origin {
                        Origin::File => {
                            "make it again and the pool grows again by itself, or take the pool out of the config file"
                        }
                        Origin::Discovered { .. } => {
                            "the pool grows again by itself once it is there; else discovery drops it"
                        }
                    }
                    .to_owned()
                } else if recorded {
                    way_on(round, &pool.name, Some(*failure))
                } else {
                    by_itself(
                        pool,
                        *failure,
                        round.readings.get(&pool.name).map(AsRef::as_ref),
                    )
                }
            }
            _ => return text,
        };
        format!("{text}; {next}")
    }
}

/// Nodes that would be asked of a pool in `observe` for this demand, and for others beside it.
pub(super) fn would_ask(planned: &Planned, source: &Source, pool: &PoolId) -> u32 {
    let launches = planned.plan.would.iter().filter_map(|action| match action {
        Action::Launch {
            pool: of,
            count,
            reason: Reason::Demand { sources, .. },
            ..
        } if of == pool && sources.contains(source) => Some(*count),
        _ => None,
    });
    launches.fold(0, u32::saturating_add)
}

/// The taint that keeps units away, as an option of `drover requests create` takes it.
fn tainted(what: &str) -> Option<&str> {
    what.strip_prefix("taint ")?
        .strip_suffix(" is not tolerated")
}

/// What the provider itself says is over when the provider says so.
fn by_itself(pool: &PoolConfig, failure: FailureKind, reading: Option<&PoolReading>) -> String {
    let name = &pool.name;
    let asg = pool.kind() == PoolKind::Asg;
    match failure {
        FailureKind::Suspended if reading.is_some_and(|reading| reading.withdrawing) => {
            "Drover resumes it, and the pool grows again by itself".to_owned()
        }
        FailureKind::Suspended if asg => format!(
            "resume Launch there (`drover pools doctor {name}` gives the command), then the pool grows again by itself"
        ),
        _ if asg => format!(
            "the pool grows again by itself once that is over (`drover pools doctor {name}` tells more)"
        ),
        _ => "the pool grows again by itself once that is over".to_owned(),
    }
}

/// Why a pool cannot be read, and what that needs.
pub(super) fn unreadable(pool: &PoolConfig, mode: Mode, error: &ActuateError) -> String {
    let message = &error.message;
    if error.code == NO_CREDENTIALS {
        return format!(
            "{message}; `aws sts get-caller-identity` as the coordinator tells whether AWS takes them, and the pool is read \
             again by itself"
        );
    }
    if error.kind != FailureKind::Permission || pool.kind() != PoolKind::Asg {
        return message.clone();
    }
    let mode = mode_word(mode);
    format!(
        "{message}; `drover pools policy --mode {mode}` prints what the coordinator must be allowed to do, and the pool is \
         read again by itself"
    )
}

/// "a launches x9.huge, of which nothing is known: ...".
pub(super) fn unknown_type(pool: &PoolConfig, reading: &PoolReading) -> Option<String> {
    let unknown = reading
        .offerings
        .iter()
        .find(|found| found.allocatable.is_none())?;
    Some(format!(
        "{} launches {}, of which nobody knows what it offers, so nothing is asked of it: {}",
        pool.name,
        unknown.instance_type,
        known_type(pool)
    ))
}

/// What makes a type known.
fn known_type(pool: &PoolConfig) -> String {
    match &pool.source {
        PoolSource::Asg(asg) => format!(
            "let the launch template of group {} name a type that {} has, and the coordinator call \
             ec2:DescribeInstanceTypes (`drover pools doctor {}` tells more)",
            asg.group, asg.region, pool.name
        ),
        PoolSource::Sim(_) | PoolSource::Static(_) => "name a type that is known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drover_core::model::UnixMs;

    fn group() -> PoolConfig {
        let text = "[[pool]]\nname = \"p4\"\nkind = \"asg\"\nregion = \"us-east-1\"\ngroup = \"g\"\nmax = 5\n";
        let mut config = crate::config::parse(text).expect("a config");
        config.pools.remove(0)
    }

    #[test]
    fn what_aws_says_is_mended_there_and_resuming_is_not_advised() {
        let pool = group();
        let mut reading = PoolReading::empty(UnixMs(0));
        let said = |kind, reading: &PoolReading| by_itself(&pool, kind, Some(reading));
        let all = [
            (FailureKind::Suspended, "resume Launch there"),
            (FailureKind::Config, "once that is over"),
        ];
        for (kind, words) in all {
            let text = said(kind, &reading);
            assert!(text.contains(words) && text.contains("by itself"), "{text}");
            assert!(text.contains("`drover pools doctor p4`"), "{text}");
            assert!(!text.contains("pools resume"), "{text}");
        }
        reading.withdrawing = true;
        let text = said(FailureKind::Suspended, &reading);
        assert!(text.starts_with("Drover resumes it"), "{text}");
    }

    #[test]
    fn a_missing_permission_names_what_prints_it() {
        let error = |kind| ActuateError {
            kind,
            code: String::new(),
            message: "not allowed".to_owned(),
        };
        let expired = ActuateError {
            code: NO_CREDENTIALS.to_owned(),
            ..error(FailureKind::Permission)
        };
        let text = unreadable(&group(), Mode::Grow, &expired);
        assert!(text.contains("`aws sts get-caller-identity`"), "{text}");
        assert!(!text.contains("pools policy"), "{text}");
        let text = unreadable(&group(), Mode::Observe, &error(FailureKind::Permission));
        assert!(
            text.contains("`drover pools policy --mode observe`"),
            "{text}"
        );
        assert_eq!(
            unreadable(&group(), Mode::Observe, &error(FailureKind::Transient)),
            "not allowed"
        );
    }
}
