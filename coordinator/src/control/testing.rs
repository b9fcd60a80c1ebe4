//! Ports of glass for tests: an agent link, an actuator and a clock that a test holds in its hands.

use crate::ports::link::AgentView;
use drover_core::model::{NodeId, UnixMs};
use drover_proto::v1::{Facts, WorkloadList};
use std::sync::Arc;

/// A healthy, idle agent without GPUs.
pub fn view(node: &str) -> AgentView {
    AgentView {
        node: NodeId::from(node),
        connected: true,
        last_seen: UnixMs(0),
        last_seen_mono: 0,
        facts: Arc::new(Facts {
            hostname: node.to_owned(),
            cpus: Some(8),
            memory_bytes: Some(64 << 30),
            ..Facts::default()
        }),
        telemetry: None,
        workloads: Some(Arc::new(WorkloadList {
            items: Vec::new(),
            unreadable: Vec::new(),
            witnesses: vec!["gpu-processes".into(), "processes".into()],
        })),
        workloads_at: UnixMs(0),
        conditions: Vec::new(),
        actual: None,
        order_status: None,
        observed: None,
        highest_epoch: 0,
        clock_offset_ms: 0,
    }
}
