//! Each happening in words.

use super::{Happening, OF_NO_ASK, failure_word, mode_word, policy_word, time};

/// The most that one text may take in the log of events.
const TEXT: usize = 1_000;

fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn on_one_line(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    // After a colon the next line is what it announces.
    let text = lines.join("; ").replace(":; ", ": ");
    text.replace(char::is_control, " ")
}

fn because(text: String, reason: &str) -> String {
    if reason.is_empty() {
        text
    } else {
        format!("{text}: {reason}")
    }
}

fn pools(word: &str, list: &str) -> String {
    match list {
        "" => String::new(),
        list => format!(", pools {word}: {list}"),
    }
}

impl Happening {
    /// For people, on one line, of bounded length.
    pub(super) fn text(&self) -> String {
        cut(&on_one_line(self.words())).to_owned()
    }

    fn words(&self) -> String {
        match self {
            Self::Started { fence } => format!("the coordinator started (fence {fence})"),
            Self::ConfigTaken { gained, lost } => {
                format!(
                    "goes on with a new config{}{}",
                    pools("gained", gained),
                    pools("orphaned", lost)
                )
            }
            Self::PoolsDiscovered { gained, lost } => format!(
                "other groups carry the ownership tag{}{}",
                pools("gained", gained),
                pools("orphaned", lost)
            ),
            Self::DiscoveryTrouble { what } => what.clone(),
            Self::ConfigRefused { why } => {
                format!("a new config was refused, the last good one stays in force: {why}")
            }
            Self::Joined {
                name, pool, late, ..
            } => match (pool, late) {
                (Some(pool), false) => format!("{name} joined pool {pool}"),
                (Some(pool), true) => {
                    format!("{name} joined pool {pool} after its launch had been given up")
                }
                (None, _) => format!("{name} joined in no pool: supply, never touched"),
            },
            Self::Ready { name, .. } => format!("{name} takes work"),
            Self::Unreachable { name, .. } => format!("the agent of {name} is silent"),
            Self::Returned { name, .. } => format!("the agent of {name} is back"),
            Self::Faulty { name, what, .. } => format!("{name} is faulty: {what}"),
            Self::Quarantined { name, why, .. } => format!("{name} is in quarantine: {why}"),
            Self::Readmitted {
                name, by, reason, ..
            } => because(format!("{by} lets {name} enrol once more"), reason),
            Self::Mended { name, .. } => format!("{name} is no longer faulty"),
            Self::ForeignCordon { name, who, .. } => {
                format!("{name} was cordoned outside Drover ({who})")
            }
            Self::Cordoned { by, reason, .. } => because(format!("cordoned by {by}"), reason),
            Self::Uncordoned { by, reason, .. } => because(format!("uncordoned by {by}"), reason),
            Self::DrainStarted {
                policy, by, reason, ..
            } => because(
                format!("{by} drains it (policy {})", policy_word(*policy)),
                reason,
            ),
            Self::Moving { reason, .. } => because("its work is told to move".to_owned(), reason),
            Self::DrainCancelled { by, reason, .. } => {
                because(format!("{by} took the drain back"), reason)
            }
            Self::DrainRolledBack { reason, .. } => {
                because("the drain was undone".to_owned(), reason)
            }
            Self::DrainExpired { .. } => {
                "the drain's deadline passed: the state before is restored".to_owned()
            }
            Self::DrainRefused { reason, .. } => {
                because("the agent refused the order".to_owned(), reason)
            }
            Self::Drained { .. } => "empty, confirmed".to_owned(),
            Self::Leaving { instance, pool, .. } => format!("{instance} of pool {pool} leaves"),
            Self::LeaveFailed { kind, message, .. } => {
                format!("could not leave ({}): {message}", failure_word(*kind))
            }
            Self::Gone { name, .. } => format!("{name} is gone"),
            Self::Vanished { name, instance, .. } => {
                format!("{instance} of {name} ended without Drover")
            }
            Self::Notice { kind, message, .. } => because(format!("notice {kind}"), message),
            Self::NoticeOver { kind, why, .. } => {
                because(format!("notice {kind} does not hold any more"), why)
            }
            Self::NoticesUnreadable { queue, message } => {
                format!("queue {queue} cannot be read: {message}")
            }
            Self::NoticesReadable { queue } => format!("queue {queue} can be read again"),
            Self::HookWaits { hook, .. } => format!("it waits in its group's hook {hook}"),
            Self::HookEnds { hook, at, .. } => format!(
                "hook {hook} can be held until {}: then its drain is given up",
                time(*at)
            ),
            Self::HookCompleted { hook, why, .. } => {
                because(format!("hook {hook} is completed with CONTINUE"), why)
            }
            Self::LaunchAsked {
                offering,
                launch,
                count,
                reason,
                ..
            } => because(
                format!("asks for {count} of {offering} (launch {launch})"),
                reason,
            ),
            Self::LaunchGranted {
                launch,
                asked,
                granted,
                ..
            } => format!("launch {launch}: {granted} of {asked} granted"),
            Self::LaunchAccepted { launch, count, .. } => format!(
                "launch {launch}: its group is to bring {count}, which shows when they are there"
            ),
            Self::LaunchFailed {
                launch,
                offering,
                kind,
                message,
                ..
            } => {
                let whose = match launch {
                    Some(_) => String::new(),
                    None => format!("{OF_NO_ASK}: "),
                };
                format!("{offering}: {whose}{} ({message})", failure_word(*kind))
            }
            Self::LaunchSettled {
                launch,
                asked,
                granted,
                ..
            } => format!("launch {launch}, whose answer was lost, gave {granted} of {asked}"),
            Self::LaunchMissed {
                launch, missing, ..
            } => format!("{missing} of launch {launch} never joined"),
            Self::LaunchLost {
                launch,
                missing,
                why,
                ..
            } => because(format!("{missing} of launch {launch} cannot come"), why),
            Self::Withdrawn { from, to, .. } => {
                format!(
                    "what it did not bring is withdrawn: {to} are wanted of it instead of {from}"
                )
            }
            Self::Failover {
                from, to, count, ..
            } => {
                format!("{count} go to {to}, since {from} had none")
            }
            Self::Buried { instance, .. } => format!(
                "{instance} did not run any more: taken out of its group, which does not replace it"
            ),
            Self::TemplateMismatch { message, .. } | Self::Silent { message, .. } => {
                message.clone()
            }
            Self::Adopted { instance, .. } => {
                format!("{instance} was not launched by this store: adopted")
            }
            Self::PoolStopped { why, next, .. } => format!("stopped: {why}; {next}"),
            Self::PoolClear { why, .. } => because("no longer stopped".to_owned(), why),
            Self::PoolPaused { by, why, .. } => because(format!("paused by {by}"), why),
            Self::PoolResumed { by, .. } => format!("resumed by {by}"),
            Self::PoolMode {
                by, mode, reason, ..
            } => because(format!("mode {} by {by}", mode_word(*mode)), reason),
            Self::PoolAdopted { by, detail, .. } => {
                format!("adopted by {by}, in mode observe: {detail}")
            }
            Self::PoolWatched { pool, span } => format!(
                "watched for {} min: `drover pools adopted {pool}` shows what would have been done",
                span.0 / 60_000
            ),
            Self::PoolLimits { by, detail, .. } => format!("limits changed by {by}: {detail}"),
            Self::PoolUnreadable { message, .. } => format!("cannot be read: {message}"),
            Self::PoolReadable { .. } => "can be read again".to_owned(),
            Self::PoolOrphaned { .. } => {
                "no longer in the config file, nor discovered: reported, never drained".to_owned()
            }
            Self::PoolWarning { message, .. } => message.clone(),
            Self::RequestCreated { by, detail, .. } => format!("{by} asks for {detail}"),
            Self::RequestServed { ends, .. } => match ends {
                Some(at) => format!("served, until {}", time(*at)),
                None => "served, until cancelled".to_owned(),
            },
            Self::RequestExtended { by, ends, .. } => {
                format!("{by} extended it to {}", time(*ends))
            }
            Self::RequestEnded { why, .. } => format!("{why}: its capacity is free"),
            Self::RequestCancelled { by, .. } => format!("cancelled by {by}"),
            Self::RequestLost { units, why, .. } => {
                let wait = if *units == 1 { "waits" } else { "wait" };
                format!("{} {wait} again: {why}", super::super::view::units(*units))
            }
            Self::RequestMoved {
                units, from, to, ..
            } => {
                let verb = if *units == 1 { "goes" } else { "go" };
                let count = super::super::view::units(*units);
                format!("{count} {verb} to {to}, instead of {from}, which is not ready yet")
            }
            Self::RequestReleased { why, .. } => {
                because("its partial capacity is given up".to_owned(), why)
            }
            Self::RequestImpossible { why, .. } => {
                because("no pool can ever serve it".to_owned(), why)
            }
            Self::Frozen { by, reason, .. } => because(format!("frozen by {by}"), reason),
            Self::Thawed { by, .. } => format!("thawed by {by}"),
            Self::ApprovalNeeded {
                id: approval,
                message,
                ..
            } => format!("{message}: `drover approve {approval}` allows it"),
            Self::Approved {
                id: approval, by, ..
            } => format!("{by} approved {approval}"),
            Self::SiteSilent { site, nodes } => format!(
                "all {nodes} nodes of site {site} are silent: a network fault, nothing is removed or bought for it"
            ),
            Self::SiteBack { site } => format!("site {site} is heard again"),
            Self::ClockDrift { drift, until } => format!(
                "wall and monotonic clock drifted apart by {} s: nothing is removed before {}",
                drift.0 / 1_000,
                time(*until)
            ),
            Self::ClockTrusted => "clocks agree again: removals go on".to_owned(),
            Self::SourceShrunk {
                source,
                before,
                now,
            } => format!(
                "source {source} fell from {before} to {now} units: shrinking holds until it is confirmed"
            ),
            Self::SourceFailed { source, message } => {
                format!("source {source} cannot be read: {message}")
            }
            Self::SourceBack { source } => format!("source {source} is read again"),
            Self::PlanDropped { invariant, why } => {
                format!("an action was dropped by {invariant}: {why}")
            }
        }
    }
}
