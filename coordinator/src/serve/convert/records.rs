//! Status, approvals, tokens, events and audit lines to the wire. Used by `serve/admin`; decides nothing.

use super::pools::freeze;
use crate::control::view::{FleetView, NodeView, RequestShown};
use crate::records::{ApprovalRecord, AuditRecord, EventRecord, Severity, TokenRecord};
use drover_core::model::{Lifecycle, UnixMs};
use drover_proto::v1;

/// How the fleet is. `store` is the store's id and fence.
pub fn status(view: &FleetView, store: (&str, u64), now: UnixMs) -> v1::StatusReply {
    let here: Vec<&NodeView> = view.nodes.iter().filter(|node| joined(node)).collect();
    let count =
        |of: &dyn Fn(&NodeView) -> bool| number(here.iter().filter(|node| of(node)).count());
    let pending = view.requests.iter().filter(|r| {
        !matches!(
            r.shown,
            RequestShown::Served | RequestShown::Ended | RequestShown::Cancelled
        )
    });
    let busy = |node: &&NodeView| Some(node.gpus?.saturating_sub(node.gpus_free?));
    v1::StatusReply {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store_id: store.0.to_owned(),
        fence: store.1,
        started_unix_ms: view.started.0,
        now_unix_ms: now.0,
        freezes: view.freezes.iter().map(freeze).collect(),
        nodes: number(here.len()),
        nodes_ready: count(&NodeView::is_available),
        nodes_unreachable: count(&|node| node.unreachable),
        gpus: here.iter().filter_map(|node| node.gpus).sum(),
        gpus_busy: here.iter().filter_map(busy).sum(),
        nodes_coming: view.coming,
        nodes_missed: view.pools.iter().map(|pool| pool.missed).sum(),
        requests_pending: number(pending.count()),
        cost_micro_usd_per_hour: view.cost.0,
        alarms: view
            .alarms
            .iter()
            .map(|alarm| v1::Alarm {
                kind: alarm.kind.to_owned(),
                subject: alarm.subject.clone(),
                message: alarm.message.clone(),
                since_unix_ms: alarm.since.0,
            })
            .collect(),
        cycles: view.cycle,
        last_cycle_us: view.took_us,
        last_cycle_unix_ms: view.at.0,
        approvals: view
            .approvals
            .iter()
            .filter(|a| a.approved.is_none())
            .map(approval)
            .collect(),
    }
}

/// An agent has enrolled for it and it has not left.
fn joined(node: &NodeView) -> bool {
    matches!(
        node.lifecycle,
        Lifecycle::Joined
            | Lifecycle::Ready
            | Lifecycle::Draining
            | Lifecycle::Drained
            | Lifecycle::Leaving
    )
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// An act that waits for a person.
pub fn approval(record: &ApprovalRecord) -> v1::PendingApproval {
    v1::PendingApproval {
        id: record.id.clone(),
        message: record.message.clone(),
        pool: record.pool.0.clone(),
        nodes: record.nodes.iter().map(|id| id.0.clone()).collect(),
        since_unix_ms: record.since.0,
    }
}

/// A join token, without its secret.
pub fn token(record: &TokenRecord) -> v1::Token {
    v1::Token {
        id: record.id.0.clone(),
        pool: record
            .pool
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        max_uses: record.max_uses,
        uses: number(record.uses.len()),
        created_unix_ms: record.created.0,
        expires_unix_ms: record.expires.0,
        host: record.host.clone().unwrap_or_default(),
        by: record.by.clone(),
        revoked: record.revoked,
        nodes: record.uses.iter().map(|(_, node)| node.0.clone()).collect(),
    }
}

/// An event.
pub fn event(record: &EventRecord) -> v1::Event {
    let severity = match record.severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Alarm => "alarm",
    };
    v1::Event {
        seq: record.seq,
        at_unix_ms: record.at.0,
        kind: record.kind.clone(),
        subject: record.subject.clone(),
        what: record.what.clone(),
        message: record.message.clone(),
        severity: severity.to_owned(),
    }
}

/// A line of the audit log.
pub fn audit(record: AuditRecord) -> v1::AuditEntry {
    v1::AuditEntry {
        seq: record.seq,
        at_unix_ms: record.at.0,
        actor: record.actor,
        verb: record.verb,
        subject: record.subject,
        detail: record.detail,
    }
}
