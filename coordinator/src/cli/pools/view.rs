//! A pool as the CLI shows it: stable JSON names, table columns, the page of `pools show`.

mod capacity;

use crate::cli::freeze::FreezeView;
use crate::cli::output::{Cell, Column, Page, Sheet, Tabled, Tone, text};
use capacity::probes;
pub use capacity::{LaunchView, OfferingView};
use drover_proto::v1;
use serde::Serialize;

/// A pool.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct PoolView {
    pub name: String,
    pub kind: String,
    pub site: Option<String>,
    pub mode: String,
    pub min: u32,
    pub max: u32,
    pub config_max: Option<u32>,
    pub spare: u32,
    pub nodes: u32,
    pub ready: u32,
    pub idle: u32,
    pub draining: u32,
    pub coming: u32,
    pub unreachable: u32,
    pub unmanaged: u32,
    pub misses: u32,
    pub missed: u32,
    pub paused: Option<String>,
    pub stopped: Option<String>,
    pub holds: Vec<String>,
    pub frozen: Option<FreezeView>,
    pub read_error: Option<String>,
    pub orphaned: bool,
    pub origin: Option<String>,
    pub reasons: Vec<String>,
    pub remarks: Vec<String>,
    pub offerings: Vec<OfferingView>,
    pub launches: Vec<LaunchView>,
}

impl From<v1::Pool> for PoolView {
    fn from(p: v1::Pool) -> Self {
        Self {
            name: p.name,
            kind: p.kind,
            site: text(p.site),
            mode: p.mode,
            min: p.min,
            max: p.max,
            config_max: p.config_max,
            spare: p.spare,
            nodes: p.nodes,
            ready: p.ready,
            idle: p.idle,
            draining: p.draining,
            coming: p.coming,
            unreachable: p.unreachable,
            unmanaged: p.unmanaged,
            misses: p.misses,
            missed: p.missed,
            paused: text(p.paused),
            stopped: text(p.stopped),
            holds: p.holds,
            frozen: p.frozen.map(Into::into),
            read_error: text(p.read_error),
            orphaned: p.orphaned,
            origin: text(p.origin),
            reasons: p.reasons,
            remarks: p.remarks,
            offerings: p
                .offerings
                .into_iter()
                .map(|offering| {
                    let probing = p.launches.iter().any(|l| probes(l, &offering));
                    OfferingView {
                        probing,
                        ..offering.into()
                    }
                })
                .collect(),
            launches: p.launches.into_iter().map(Into::into).collect(),
        }
    }
}

impl PoolView {
    fn status(&self) -> Cell {
        let (word, tone) = if self.frozen.is_some() {
            ("frozen", Tone::Bad)
        } else if self.stopped.is_some() {
            ("stopped", Tone::Bad)
        } else if self.paused.is_some() {
            ("paused", Tone::Bad)
        } else if self.read_error.is_some() {
            ("unread", Tone::Bad)
        } else if self.orphaned {
            ("orphaned", Tone::Busy)
        } else if self.kind.is_empty() {
            ("not-owned", Tone::Busy)
        } else if !self.holds.is_empty() {
            let removal = self.holds.iter().all(|hold| hold.starts_with("no removal"));
            (if removal { "no-removal" } else { "held" }, Tone::Busy)
        } else if self.offerings.iter().any(|offered| offered.gpus.is_none()) {
            ("unknown-type", Tone::Bad)
        } else if self.agentless() > 0 {
            ("no-agents", Tone::Busy)
        } else {
            ("ok", Tone::Good)
        };
        Cell::toned(word, tone)
    }

    /// Instances that run, that Drover does not wait for, and that no agent speaks for.
    const fn agentless(&self) -> u32 {
        self.unmanaged.saturating_sub(self.missed)
    }

    /// What a table says of it: one line, the first of what there is.
    fn reason(&self) -> Option<String> {
        let stopped = self.stopped.as_ref().or(self.paused.as_ref());
        let stopped = stopped.or(self.read_error.as_ref()).or(self.holds.first());
        let said = stopped.or(self.reasons.first()).cloned();
        let said = said.filter(|said| self.agentless() == 0 || said != "nothing to do");
        said.or_else(|| match self.agentless() {
            0 => None,
            1 => Some("1 instance without an agent".to_owned()),
            many => Some(format!("{many} instances without an agent")),
        })
    }
}

/// Characters of a reason in a table.
const BRIEF: usize = 120;

/// On one line and cut; `drover explain` and JSON say all of it.
fn brief(text: &str) -> String {
    if text.chars().count() <= BRIEF {
        return text.to_owned();
    }
    let cut: String = text.chars().take(BRIEF - 1).collect();
    format!("{}…", cut.trim_end())
}

impl Tabled for PoolView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |p, _| (&p.name).into()),
            Column::new("KIND", |p, _| (&p.kind).into()),
            Column::new("MODE", |p, _| (&p.mode).into()),
            Column::new("STATUS", |p, _| p.status()),
            Column::new("READY", |p, _| format!("{}/{}", p.ready, p.nodes).into()),
            Column::new("IDLE", |p, _| p.idle.into()),
            Column::new("COMING", |p, _| p.coming.into()),
            Column::new("MISSED", |p, _| p.missed.into()),
            Column::new("DRAINING", |p, _| p.draining.into()),
            Column::new("MIN", |p, _| p.min.into()),
            Column::new("MAX", |p, _| match p.config_max {
                Some(_) => format!("{} (group)", p.max).into(),
                None => p.max.into(),
            }),
            Column::wide("SPARE", |p, _| p.spare.into()),
            Column::wide("SITE", |p, _| (&p.site).into()),
            Column::wide("ORIGIN", |p, _| (&p.origin).into()),
            Column::wide("UNREACHABLE", |p, _| p.unreachable.into()),
            Column::wide("UNMANAGED", |p, _| p.unmanaged.into()),
            Column::wide("MISSES", |p, _| p.misses.into()),
            Column::new("REASON", |p, _| p.reason().map(|said| brief(&said)).into()),
        ]
    }
}

impl Sheet for PoolView {
    fn sheet(&self, page: &mut Page, now: u64) {
        page.line("Name", Some(&self.name));
        page.line("Kind", Some(&self.kind));
        page.line("Site", self.site.as_ref());
        page.line("Origin", self.origin.as_ref());
        page.line("Mode", Some(&self.mode));
        page.line("Status", Some(self.status().into_text()));
        page.line(
            "Limits",
            Some(format!(
                "min {}, max {}{}, spare {}",
                self.min,
                self.max,
                self.config_max.map_or_else(String::new, |most| format!(
                    " (the group's own, below the {most} of its config)"
                )),
                self.spare
            )),
        );
        page.line(
            "Nodes",
            Some(format!("{} of {} ready", self.ready, self.nodes)),
        );
        page.line("Idle", Some(self.idle));
        page.line("Coming", Some(self.coming));
        page.line("Draining", Some(self.draining));
        page.line("Unreachable", Some(self.unreachable));
        page.line("Unmanaged", Some(self.unmanaged));
        page.line("Never joined", Some(self.missed).filter(|n| *n > 0));
        page.line("Misses", Some(self.misses).filter(|n| *n > 0));
        page.line("Stopped", self.stopped.as_ref());
        page.line("Paused", self.paused.as_ref());
        page.line("Frozen", self.frozen.as_ref().map(|f| f.sentence(now)));
        page.line("Not read", self.read_error.as_ref());
        page.line(
            "Orphaned",
            Some("no longer in the config file, nor discovered").filter(|_| self.orphaned),
        );
        page.lines("Holds", &self.holds);
        page.lines("Reasons", &self.reasons);
        page.lines("Remarks", &self.remarks);
        page.table("Offerings", &self.offerings, now);
        page.table("Launches", &self.launches, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_not_owned_yet_is_no_orphan() {
        let mut pool = v1::Pool {
            holds: vec!["not owned yet: tag it".to_owned()],
            ..v1::Pool::default()
        };
        let status = |pool: &v1::Pool| PoolView::from(pool.clone()).status().into_text();
        assert_eq!(status(&pool), "not-owned");
        pool.orphaned = true;
        assert_eq!(status(&pool), "orphaned");
        pool.orphaned = false;
        pool.kind = "asg".to_owned();
        assert_eq!(status(&pool), "held");
    }

    #[test]
    fn what_nobody_speaks_for_is_seen_and_long_words_are_cut() {
        let mut pool = v1::Pool {
            kind: "asg".to_owned(),
            unmanaged: 6,
            reasons: vec!["nothing to do".to_owned()],
            ..v1::Pool::default()
        };
        let told = |pool: &v1::Pool| {
            let view = PoolView::from(pool.clone());
            (view.status().into_text(), view.reason())
        };
        let (status, reason) = told(&pool);
        assert_eq!(status, "no-agents");
        assert_eq!(reason.as_deref(), Some("6 instances without an agent"));
        // Those that missed their deadline are told as that.
        pool.missed = 6;
        assert_eq!(told(&pool).0, "ok");
        pool.offerings = vec![v1::Offering::default()];
        assert_eq!(told(&pool).0, "unknown-type");
        pool.read_error = "x".repeat(300);
        assert_eq!(told(&pool).0, "unread");
        let cut = brief(&told(&pool).1.expect("why"));
        assert!(cut.chars().count() == BRIEF && cut.ends_with('…'), "{cut}");
        assert_eq!(brief("short"), "short");
    }
}
