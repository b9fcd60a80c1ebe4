//! One of everything, so that golden files show every field, with and without a value.

use super::fake::Script;
use drover_proto::v1::*;

/// A fixed moment for JSON, so that files stay the same: 2023-11-14T22:13:20Z.
pub const FIXED: u64 = 1_700_000_000_000;

pub fn script(now: u64) -> Script {
    Script {
        nodes: vec![busy(now), bare()],
        pools: vec![pool(now)],
        requests: vec![Ok(request(now, "served", 2))],
        demand: vec![Demand {
            source: "job-7".to_owned(),
            members: vec!["job-7".to_owned()],
            units: 60,
            placed: 40,
            unplaced: 20,
            gpus_per_unit: 1,
            priority: 5,
            gang: true,
            oldest_unix_ms: now,
            reasons: vec!["rack is at its maximum of 10".to_owned()],
            ..Default::default()
        }],
        explain: ExplainReply {
            kind: "node".to_owned(),
            name: "titan-01".to_owned(),
            summary: "draining, waits for 1 workload".to_owned(),
            lines: vec!["process 4711 (alice) python train.py holds 2 GPUs".to_owned()],
        },
        events: vec![
            event(1, now, "joined", "info"),
            event(2, now, "drain_started", "warning"),
        ],
        status: StatusReply {
            version: "0.1.0".to_owned(),
            store_id: "s1".to_owned(),
            fence: 3,
            started_unix_ms: now - 60_000,
            now_unix_ms: now,
            nodes: 2,
            nodes_ready: 1,
            nodes_unreachable: 1,
            gpus: 4,
            gpus_busy: 3,
            cost_micro_usd_per_hour: 14_400_000,
            cycles: 9,
            last_cycle_us: 1_234,
            last_cycle_unix_ms: now,
            alarms: vec![Alarm {
                kind: "site_silent".to_owned(),
                subject: "office".to_owned(),
                message: "no agent of office answers".to_owned(),
                since_unix_ms: now,
            }],
            approvals: vec![PendingApproval {
                id: "a1".to_owned(),
                message: "terminate 12 nodes".to_owned(),
                pool: "p2".to_owned(),
                nodes: vec!["n1".to_owned(), "n2".to_owned()],
                since_unix_ms: now,
            }],
            ..Default::default()
        },
        tokens: vec![Token {
            id: "t1".to_owned(),
            pool: "rack".to_owned(),
            max_uses: 15,
            uses: 2,
            created_unix_ms: now,
            expires_unix_ms: now + 86_400_000 * 30_000,
            by: "admin/me".to_owned(),
            nodes: vec!["n1".to_owned()],
            ..Default::default()
        }],
        audit: vec![AuditEntry {
            seq: 1,
            at_unix_ms: FIXED,
            actor: "admin/me".to_owned(),
            verb: "node.drain".to_owned(),
            subject: "n1".to_owned(),
            detail: "policy wait".to_owned(),
        }],
        api_calls: vec![
            ApiCalls {
                region: "us-east-1".to_owned(),
                api: "autoscaling".to_owned(),
                call: "DescribeAutoScalingGroups".to_owned(),
                sent: 1_200,
                failed: vec![
                    FailedApiCalls {
                        kind: "throttled".to_owned(),
                        count: 3,
                    },
                    FailedApiCalls {
                        kind: "transient".to_owned(),
                        count: 1,
                    },
                ],
                throttled: 3,
                not_sent: 2,
                waited_ms: 61_250,
                repetitions: 4,
                last_minute: 24,
                bucket: Some(ApiBucket {
                    name: "autoscaling reads".to_owned(),
                    burst: 40,
                    per_minute: 600,
                    per_minute_now: 300,
                    left: 12,
                    assumed: true,
                }),
                ..Default::default()
            },
            ApiCalls {
                region: "eu-west-1".to_owned(),
                role: "arn:aws:iam::123456789012:role/drover".to_owned(),
                api: "sqs".to_owned(),
                call: "ReceiveMessage".to_owned(),
                sent: 3,
                last_minute: 3,
                ..Default::default()
            },
        ],
        freezes: vec![FreezeInfo {
            pool: String::new(),
            by: "admin/me".to_owned(),
            reason: "maintenance".to_owned(),
            since_unix_ms: now,
        }],
        ..Default::default()
    }
}

fn event(seq: u64, now: u64, what: &str, severity: &str) -> Event {
    Event {
        seq,
        at_unix_ms: now,
        kind: "node".to_owned(),
        subject: "titan-01".to_owned(),
        what: what.to_owned(),
        message: format!("titan-01 {what}"),
        severity: severity.to_owned(),
    }
}

/// A node about which everything is known.
fn busy(now: u64) -> Node {
    Node {
        id: "n1".to_owned(),
        name: "titan-01".to_owned(),
        pool: "rack".to_owned(),
        site: "office".to_owned(),
        state: "draining".to_owned(),
        cordoned: true,
        cordoned_by: "admin/me".to_owned(),
        cordon_reason: "new fan".to_owned(),
        reason: "draining: asked by admin/me".to_owned(),
        facts: Some(Facts {
            hostname: "titan-01".to_owned(),
            cpus: Some(12),
            memory_bytes: Some(64 << 30),
            os: "Debian 12".to_owned(),
            gpus: vec![GpuFacts {
                uuid: "GPU-1".to_owned(),
                name: "NVIDIA TITAN X (Pascal)".to_owned(),
                memory_bytes: Some(12 << 30),
                pci_address: "0000:01:00.0".to_owned(),
                index: 0,
            }],
            ..Default::default()
        }),
        telemetry: Some(Telemetry {
            at_unix_ms: now,
            cpu_permille: Some(123),
            load1_milli: Some(1_500),
            memory_used_bytes: Some(6 << 30),
            gpus: vec![
                GpuUse {
                    uuid: "GPU-1".to_owned(),
                    state: GpuState::Ok.into(),
                    utilisation_percent: Some(97),
                    memory_used_bytes: Some(3 << 30),
                    processes_known: true,
                    ..Default::default()
                },
                GpuUse {
                    uuid: "GPU-2".to_owned(),
                    state: GpuState::Lost.into(),
                    ..Default::default()
                },
            ],
            ..Default::default()
        }),
        workloads: vec![Workload {
            kind: WorkloadKind::GpuProcess.into(),
            id: "4711:99".to_owned(),
            user: "alice".to_owned(),
            command: "python train.py".to_owned(),
            gpus: vec!["GPU-1".to_owned()],
            gpu_memory_bytes: Some(2 << 30),
            request: String::new(),
            movable: false,
        }],
        conditions: vec![Condition {
            kind: "gpu_lost".to_owned(),
            message: "GPU-2 is lost until reset".to_owned(),
            subject: "GPU-2".to_owned(),
            since_unix_ms: now,
            faulty: true,
        }],
        joined_unix_ms: now,
        last_seen_unix_ms: now,
        busy: vec!["process 4711".to_owned()],
        drain: Some(NodeDrain {
            id: "d1".to_owned(),
            policy: DrainPolicy::Wait.into(),
            by: "admin/me".to_owned(),
            since_unix_ms: now,
            state: DrainState::Waiting.into(),
            blockers: vec![Blocker {
                kind: "workload".to_owned(),
                subject: "4711:99".to_owned(),
                message: "process 4711 (alice) python train.py holds 1 GPU".to_owned(),
            }],
            workloads_at_start: 2,
            workloads_now: 1,
            then: "cordoned".to_owned(),
            ..Default::default()
        }),
        assignments: vec![assignment("titan-01", true)],
        gpus: Some(4),
        gpus_free: Some(1),
        gpu_model: "NVIDIA TITAN X (Pascal)".to_owned(),
        desired: Some(Order {
            epoch: 2,
            generation: 7,
            desired: Desired::Draining.into(),
            drain: Some(Drain {
                id: "d1".to_owned(),
                ..Default::default()
            }),
            now_unix_ms: now,
        }),
        labels: [("team".to_owned(), "vision".to_owned())].into(),
        enrolled_with: "instance identity of account 123456789012, image ami-0aabbccdd".to_owned(),
        ..Default::default()
    }
}

/// A node about which nothing is known yet: every value is missing, none is zero.
fn bare() -> Node {
    Node {
        id: "instance/i-0abc".to_owned(),
        name: "i-0abc".to_owned(),
        state: "launched".to_owned(),
        ..Default::default()
    }
}

fn assignment(node: &str, ready: bool) -> Assignment {
    Assignment {
        request: "job-7".to_owned(),
        node: node.to_owned(),
        node_name: node.to_owned(),
        pool: "rack".to_owned(),
        units: 1,
        gpus: 1,
        ready,
        ..Default::default()
    }
}

fn pool(now: u64) -> Pool {
    Pool {
        name: "rack".to_owned(),
        kind: "asg".to_owned(),
        site: "us-west-2".to_owned(),
        mode: "full".to_owned(),
        max: 20,
        nodes: 3,
        ready: 2,
        coming: 1,
        origin: "discovered in us-west-2".to_owned(),
        remarks: vec!["launches from template lt-1, version 3".to_owned()],
        read_error: "DescribeInstances was throttled; shown is 20s old".to_owned(),
        offerings: vec![Offering {
            id: "rack/p2.16xlarge/us-west-2a/on-demand".to_owned(),
            instance_type: "p2.16xlarge".to_owned(),
            zone: "us-west-2a".to_owned(),
            market: "on-demand".to_owned(),
            price_micro_usd_per_hour: 14_400_000,
            failure: "capacity".to_owned(),
            failure_message: "InsufficientInstanceCapacity".to_owned(),
            next_probe_unix_ms: now,
            gpus: Some(16),
            gpu_model: "Tesla K80".to_owned(),
        }],
        reasons: vec!["1 node for job-7".to_owned()],
        launches: vec![Launch {
            id: "l1".to_owned(),
            pool: "rack".to_owned(),
            offering: "rack/p2.16xlarge/us-west-2a/on-demand".to_owned(),
            count: 1,
            state: "launched".to_owned(),
            instance_ids: vec!["i-0abc".to_owned()],
            asked_unix_ms: now,
            deadline_unix_ms: now,
            way: "launch_instances".to_owned(),
            reason: "job-7".to_owned(),
            granted: Some(1),
        }],
        ..Default::default()
    }
}

/// Request job-7, with so many of its 2 units on ready nodes.
pub fn request(now: u64, state: &str, ready: u32) -> Request {
    Request {
        spec: Some(RequestSpec {
            name: "job-7".to_owned(),
            units: 2,
            gpus_per_unit: 1,
            gpu_model: "titan-x".to_owned(),
            duration_ms: 28_800_000,
            gang: true,
            locality: "site".to_owned(),
            ..Default::default()
        }),
        state: state.to_owned(),
        owner: "admin/me".to_owned(),
        submitted_unix_ms: now,
        assignments: vec![
            assignment("titan-01", ready > 0),
            assignment("titan-02", ready > 1),
        ],
        units_ready: ready,
        units_coming: 2 - ready,
        units_unavailable: 0,
        reasons: vec!["titan-02 is coming".to_owned()],
        ..Default::default()
    }
}
