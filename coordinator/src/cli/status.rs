//! `drover status` and `drover version`. Called by `cli`; talks proto only.

use super::approve::ApprovalView;
use super::exit::CliError;
use super::freeze::FreezeView;
use super::output::{Cell, Column, Out, Page, Sheet, Tabled, Tone, number, text};
use super::{Globals, connect, duration};
use drover_proto::v1;
use serde::Serialize;

/// How the fleet is.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct StatusView {
    pub version: String,
    pub store_id: String,
    pub fence: u64,
    pub started_unix_ms: Option<u64>,
    pub now_unix_ms: u64,
    pub nodes: u32,
    pub nodes_ready: u32,
    pub nodes_unreachable: u32,
    pub nodes_coming: u32,
    pub nodes_missed: u32,
    pub gpus: u32,
    pub gpus_busy: u32,
    pub requests_pending: u32,
    pub cost_micro_usd_per_hour: u64,
    pub cycles: u64,
    pub last_cycle_us: Option<u64>,
    pub last_cycle_unix_ms: Option<u64>,
    pub freezes: Vec<FreezeView>,
    pub alarms: Vec<AlarmView>,
    pub approvals: Vec<ApprovalView>,
}

/// Trouble that a person should know.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct AlarmView {
    pub kind: String,
    pub subject: Option<String>,
    pub message: String,
    pub since_unix_ms: Option<u64>,
}

impl From<v1::StatusReply> for StatusView {
    fn from(s: v1::StatusReply) -> Self {
        Self {
            version: s.version,
            store_id: s.store_id,
            fence: s.fence,
            started_unix_ms: number(s.started_unix_ms),
            now_unix_ms: s.now_unix_ms,
            nodes: s.nodes,
            nodes_ready: s.nodes_ready,
            nodes_unreachable: s.nodes_unreachable,
            nodes_coming: s.nodes_coming,
            nodes_missed: s.nodes_missed,
            gpus: s.gpus,
            gpus_busy: s.gpus_busy,
            requests_pending: s.requests_pending,
            cost_micro_usd_per_hour: s.cost_micro_usd_per_hour,
            cycles: s.cycles,
            last_cycle_us: Some(s.last_cycle_us).filter(|_| s.cycles > 0),
            last_cycle_unix_ms: number(s.last_cycle_unix_ms),
            freezes: s.freezes.into_iter().map(Into::into).collect(),
            alarms: s
                .alarms
                .into_iter()
                .map(|a| AlarmView {
                    kind: a.kind,
                    subject: text(a.subject),
                    message: a.message,
                    since_unix_ms: number(a.since_unix_ms),
                })
                .collect(),
            approvals: s.approvals.into_iter().map(Into::into).collect(),
        }
    }
}

impl Tabled for AlarmView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("ALARM", |a, _| Cell::toned(a.kind.clone(), Tone::Bad)),
            Column::new("SUBJECT", |a, _| (&a.subject).into()),
            Column::new("FOR", |a, now| duration::age(now, a.since_unix_ms).into()),
            Column::new("MESSAGE", |a, _| (&a.message).into()),
        ]
    }
}

/// The same trouble of several once, with the names of all and since the first: for people. Programs get each.
fn together(alarms: &[AlarmView]) -> Vec<AlarmView> {
    let mut found: Vec<AlarmView> = Vec::new();
    for alarm in alarms {
        let known = found
            .iter_mut()
            .find(|known| known.kind == alarm.kind && known.message == alarm.message);
        let Some(known) = known else {
            found.push(alarm.clone());
            continue;
        };
        if let (Some(all), Some(one)) = (&mut known.subject, &alarm.subject) {
            all.push_str(", ");
            all.push_str(one);
        }
        known.since_unix_ms = match (known.since_unix_ms, alarm.since_unix_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    found
}

impl Sheet for StatusView {
    fn sheet(&self, page: &mut Page, _now: u64) {
        // The coordinator's own clock: its ages stay right when this host's clock is wrong.
        let now = self.now_unix_ms;
        page.line("Version", Some(&self.version));
        page.line(
            "Up for",
            self.started_unix_ms.map(|t| duration::age(now, Some(t))),
        );
        page.line(
            "Store",
            Some(format!("{} (fence {})", self.store_id, self.fence)),
        );
        let mut nodes = format!("{} of {} ready", self.nodes_ready, self.nodes);
        for (count, word) in [
            (self.nodes_coming, "coming"),
            (self.nodes_unreachable, "unreachable"),
            (self.nodes_missed, "never joined"),
        ] {
            if count > 0 {
                nodes.push_str(&format!(", {count} {word}"));
            }
        }
        page.line("Nodes", Some(nodes));
        page.line(
            "GPUs",
            Some(format!("{} of {} busy", self.gpus_busy, self.gpus)),
        );
        page.line("Requests pending", Some(self.requests_pending));
        page.line("USD/h", Some(duration::usd(self.cost_micro_usd_per_hour)));
        page.line(
            "Last cycle",
            self.last_cycle_unix_ms.map(|t| {
                let took = self.last_cycle_us.unwrap_or_default();
                format!(
                    "{} ago, {}.{:03} ms, {} in all",
                    duration::age(now, Some(t)),
                    took / 1_000,
                    took % 1_000,
                    self.cycles
                )
            }),
        );
        page.table("Frozen", &self.freezes, now);
        page.table("Alarms", &together(&self.alarms), now);
        page.table("Waits for `drover approve`", &self.approvals, now);
    }
}

/// Runs `status`.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::StatusRequest {});
    out.one(&StatusView::from(
        admin.client.status(ask).await?.into_inner(),
    ))
}

/// Which version.
#[derive(Debug, clap::Args)]
pub struct VersionArgs {
    /// Also ask the coordinator for its version.
    #[arg(long)]
    coordinator: bool,
}

#[derive(Serialize)]
struct Versions {
    version: &'static str,
    coordinator_version: Option<String>,
}

impl Sheet for Versions {
    fn sheet(&self, page: &mut Page, _now: u64) {
        page.text(&format!("drover {}", self.version));
        if let Some(theirs) = &self.coordinator_version {
            page.text(&format!("coordinator {theirs}"));
        }
    }
}

/// Runs `version`.
///
/// # Errors
/// That no coordinator answers, when it was to be asked.
pub async fn version(globals: &Globals, out: Out, args: VersionArgs) -> Result<(), CliError> {
    let coordinator_version = if args.coordinator {
        let mut admin = connect::admin(globals).await?;
        let ask = admin.ask(v1::StatusRequest {});
        Some(admin.client.status(ask).await?.into_inner().version)
    } else {
        None
    };
    out.one(&Versions {
        version: env!("CARGO_PKG_VERSION"),
        coordinator_version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_of_several_pools_is_one_alarm() {
        let alarm = |subject: &str, message: &str, since| AlarmView {
            kind: "pool_unreadable".to_owned(),
            subject: Some(subject.to_owned()),
            message: message.to_owned(),
            since_unix_ms: Some(since),
        };
        let all = [
            alarm("a", "expired", 7),
            alarm("b", "expired", 5),
            alarm("c", "denied", 6),
        ];
        let shown = together(&all);
        let told: Vec<_> = shown
            .iter()
            .map(|a| (a.subject.as_deref(), a.since_unix_ms))
            .collect();
        assert_eq!(told, [(Some("a, b"), Some(5)), (Some("c"), Some(6))]);
    }
}
