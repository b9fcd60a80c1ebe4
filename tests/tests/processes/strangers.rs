//! Nodes that nobody expected, and peers that say what no agent would.

use crate::{QUICK, SOON, fleet};
use drover_agent::config::Address;
use drover_agent::identity::Keeper;
use drover_agent::identity::proof::Proof;
use drover_agent::session::link::Dialler;
use drover_agent::state::StateDir;
use drover_proto::limits;
use drover_proto::v1::agent_message::Body;
use drover_proto::v1::{
    AgentMessage, CoordinatorMessage, Facts, GpuFacts, GpuUse, Hello, Notice, OrderStatus, Report,
    Telemetry, Workload, WorkloadList,
};
use drover_tests::cloud::{Cloud, CloudGroup};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::played_agent::PlayedAgent;
use drover_tests::wait;
use std::path::Path;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

#[test]
fn sc_11_a_host_that_nobody_expected_is_used_and_never_touched() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut cloud = Cloud::new(dir.path(), vec![CloudGroup::new("west")]);
    let pools = cloud.pools("mode = \"full\"\nidle_after = \"1s\"");
    let coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &pools);
    cloud.start(&coordinator);
    let token = coordinator.token(&[]);
    let mut stranger = Host::new(dir.path(), "x-1", "titan-x", 2);
    stranger.join(&coordinator, &token);
    let node = coordinator.node_in("x-1", "ready", SOON);
    assert_eq!(node["foreign"], true, "{node}");
    assert!(node["pool"].is_null(), "{node}");

    // One GPU fits on it, so nothing is bought.
    let wish = |name: &str, gpus: &str| {
        coordinator.ask(&[
            "requests",
            "create",
            "--name",
            name,
            "--gpus",
            gpus,
            "--gpus-per-unit",
            gpus,
        ]);
        coordinator.ask(&["requests", "wait", name, "--timeout", "180s"]);
        coordinator.ask(&["requests", "show", name])
    };
    let small = wish("small", "1");
    assert_eq!(small["assignments"][0]["node_name"], "x-1", "{small}");
    assert_eq!(cloud.count("launched"), 0);
    // Two do not fit beside it: an instance is bought, and the stranger is not asked to make room.
    let large = wish("large", "2");
    assert_ne!(large["assignments"][0]["node_name"], "x-1", "{large}");
    assert_eq!(cloud.count("launched"), 1);

    coordinator.ask(&["requests", "cancel", "small"]);
    coordinator.ask(&["requests", "cancel", "large"]);
    wait::until("the instance leaves", SOON, || {
        (cloud.count("running") == 0).then_some(())
    });
    // It was idle for as long, and nothing was ordered of it.
    let node = coordinator.node_in("x-1", "ready", SOON);
    assert!(
        node["drain"].is_null() && node["cordoned"] == false,
        "{node}"
    );
    assert!(
        !stranger.log().contains("order taken"),
        "{}",
        stranger.log()
    );
    // A person may: it is a node. But there is nothing that could end it.
    let refused = coordinator.refuses(&["nodes", "drain", "x-1", "--then", "terminate"]);
    assert!(refused.contains("in no pool"), "{refused}");
    coordinator.ask(&["nodes", "drain", "x-1"]);
    coordinator.node_in("x-1", "drained", SOON);
}

/// A peer with an identity of its own and no scruples.
struct Peer {
    keeper: Keeper,
    facts: Facts,
}

/// An open session of a peer.
struct Talk {
    outbox: mpsc::Sender<AgentMessage>,
    stream: Streaming<CoordinatorMessage>,
    seq: u64,
}

impl Peer {
    fn new(coordinator: &Coordinator, dir: &Path, token: &str, facts: Facts) -> Self {
        let state = StateDir::open(&dir.join(&facts.hostname)).expect("a folder");
        let dialler = Dialler {
            address: Address {
                host: "127.0.0.1".to_owned(),
                port: coordinator.port(),
            },
            server_name: limits::COORDINATOR_NAME.to_owned(),
        };
        let token = token.parse().expect("a token");
        let keeper = Keeper::load(state, dialler, Some(Proof::Token(token)), 0.5).expect("a key");
        Self { keeper, facts }
    }

    async fn enrol(&mut self) -> Result<(), String> {
        let facts = self.facts.clone();
        self.keeper
            .ensure(|| facts)
            .await
            .map_err(|error| error.to_string())
    }

    /// Says this Hello; gives the session, or why there is none.
    async fn session(&self, hello: Hello) -> Result<Talk, Status> {
        let mut client = self.keeper.dial().await.expect("it is listened to");
        let (outbox, messages) = mpsc::channel(16);
        let first = AgentMessage {
            seq: 1,
            body: Some(Body::Hello(hello)),
        };
        outbox.send(first).await.expect("room for one");
        let stream = client
            .session(ReceiverStream::new(messages))
            .await?
            .into_inner();
        let mut talk = Talk {
            outbox,
            stream,
            seq: 1,
        };
        talk.stream.message().await?.expect("Welcome");
        Ok(talk)
    }
}

impl Talk {
    async fn say(&mut self, body: Body) {
        self.seq += 1;
        let message = AgentMessage {
            seq: self.seq,
            body: Some(body),
        };
        // The session may have been ended: then it is the end that is looked for.
        let _ = self.outbox.send(message).await;
    }

    /// How the coordinator ends it.
    async fn end(mut self) -> Status {
        loop {
            match self.stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok("closed"),
                Err(status) => return status,
            }
        }
    }
}

fn report(change: impl FnOnce(&mut Report)) -> Body {
    let mut report = PlayedAgent { number: 1 }.report(true);
    change(&mut report);
    Body::Report(report)
}

fn workloads(items: Vec<Workload>) -> Option<WorkloadList> {
    Some(WorkloadList {
        items,
        ..WorkloadList::default()
    })
}

/// What no agent of ours says, and the field by which it is refused.
fn nonsense() -> Vec<(Body, Code, &'static str)> {
    let long = "x".repeat(limits::TEXT_BYTES + 1);
    let named = |name: &str| Workload {
        id: name.to_owned(),
        ..Workload::default()
    };
    let bad = Code::InvalidArgument;
    vec![
        (
            report(|r| {
                r.facts.as_mut().expect("full").gpus = vec![GpuFacts::default(); limits::GPUS + 1]
            }),
            bad,
            "facts.gpus",
        ),
        (
            report(|r| {
                r.telemetry = Some(Telemetry {
                    gpus: vec![GpuUse::default(); 1_000],
                    ..Telemetry::default()
                });
            }),
            bad,
            "telemetry.gpus",
        ),
        (
            report(|r| {
                r.workloads = workloads((0..10_000).map(|n| named(&n.to_string())).collect())
            }),
            bad,
            "workloads.items",
        ),
        (
            report(|r| {
                r.workloads = workloads(vec![Workload {
                    command: long.clone(),
                    ..named("1")
                }])
            }),
            bad,
            "workloads.items.command",
        ),
        (Body::Notice(Notice::default()), bad, "notice.id"),
        (
            Body::OrderStatus(OrderStatus {
                reason: long.clone(),
                ..OrderStatus::default()
            }),
            bad,
            "order_status.reason",
        ),
        (
            Body::Hello(PlayedAgent { number: 1 }.hello()),
            bad,
            "a second Hello",
        ),
    ]
}

#[test]
fn a_peer_that_talks_nonsense_is_told_the_field_and_costs_nobody_else_anything() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, hosts) = fleet(dir.path(), &["a"]);
    let token = coordinator.token(&[]);
    let facts = Facts {
        hostname: "liar".to_owned(),
        ..PlayedAgent { number: 1 }.facts()
    };
    let mut peer = Peer::new(&coordinator, dir.path(), &token, facts.clone());
    let hello = || Hello {
        facts: Some(facts.clone()),
        ..PlayedAgent { number: 1 }.hello()
    };
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(async {
            peer.enrol().await.expect("it may join");
            for (body, code, field) in nonsense() {
                let mut talk = peer
                    .session(hello())
                    .await
                    .expect("it may come back after each");
                talk.say(body).await;
                let end = talk.end().await;
                assert_eq!(end.code(), code, "{field}: {end}");
                assert!(end.message().contains(field), "{field}: {end}");
            }
            // 8 MiB: not even decoded. The reset may overtake the reason.
            let mut talk = peer.session(hello()).await.expect("it may come back");
            let large = "x".repeat(8 << 20);
            talk.say(report(|r| {
                r.workloads = workloads(vec![Workload {
                    id: large,
                    ..Workload::default()
                }])
            }))
            .await;
            assert_ne!(talk.end().await.code(), Code::Ok);
            let high = Hello {
                highest_epoch: u64::MAX,
                ..hello()
            };
            let refused = peer
                .session(high)
                .await
                .err()
                .expect("an epoch from nowhere");
            assert!(
                refused.message().contains("hello.highest_epoch"),
                "{refused}"
            );
            // Sense is taken as ever.
            let mut talk = peer.session(hello()).await.expect("it may come back");
            talk.say(report(|r| r.facts = None)).await;
            wait::until_async("its report is shown", SOON, async || {
                coordinator
                    .node("liar")
                    .filter(|node| node["telemetry"]["cpu_permille"] == 300)
            })
            .await;
        });
    // The other's session never ended.
    coordinator.node_in("a", "ready", SOON);
    assert_eq!(
        hosts[0].log().matches("session ended").count(),
        0,
        "{}",
        hosts[0].log()
    );
    assert!(coordinator.events("unreachable").iter().all(|event| {
        !event["message"]
            .as_str()
            .is_some_and(|text| text.contains("agent of a "))
    }));
}

#[test]
fn a_peer_that_calls_itself_another_node_gets_nothing_of_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, hosts) = fleet(dir.path(), &["a"]);
    let victim = coordinator.node("a").expect("it is there");
    let job = hosts[0].job(&[0], 600);
    coordinator.ask(&["requests", "create", "--name", "job", "--gpus", "2"]);
    coordinator.ask(&["requests", "wait", "job", "--timeout", "180s"]);
    // Its name, its machine id, its boot id, and an idle host behind them.
    let truth = &coordinator.ask(&["nodes", "show", "a"])["facts"];
    let text = |name: &str| truth[name].as_str().unwrap_or_default().to_owned();
    let facts = Facts {
        hostname: "a".to_owned(),
        machine_id: text("machine_id"),
        boot_id: text("boot_id"),
        ..PlayedAgent { number: 7 }.facts()
    };
    let token = coordinator.token(&["--uses", "2"]);
    let folder = dir.path().join("liars");
    std::fs::create_dir(&folder).expect("a folder");
    let mut peer = Peer::new(&coordinator, &folder, &token, facts.clone());
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(async {
            peer.enrol()
                .await
                .expect("a token without a pool takes any host");
            let hello = Hello {
                facts: Some(facts.clone()),
                ..PlayedAgent { number: 7 }.hello()
            };
            let mut talk = peer
                .session(hello)
                .await
                .expect("it has an identity of its own");
            let idle = workloads(Vec::new());
            let lie = PlayedAgent { number: 7 }.report(true);
            talk.say(Body::Report(Report {
                facts: Some(facts),
                workloads: idle,
                ..lie
            }))
            .await;
            let of_name = wait::until_async("both are seen", SOON, async || {
                let nodes = coordinator.ask(&["nodes", "list"]);
                let named: Vec<_> = nodes
                    .as_array()?
                    .iter()
                    .filter(|n| n["name"] == "a")
                    .cloned()
                    .collect();
                (named.len() == 2).then_some(named)
            })
            .await;
            let liar = of_name
                .iter()
                .find(|n| n["id"] != victim["id"])
                .expect("another id");
            assert_eq!(liar["foreign"], true, "{liar}");
            // The node keeps its workloads, its request and its pool; a name that two have is not acted on.
            let id = victim["id"].as_str().expect("an id");
            let shown = wait::until_async("its job is seen", SOON, async || {
                let shown = coordinator.ask(&["nodes", "show", id]);
                let busy = shown["busy"].to_string();
                busy.contains(&job.pid().to_string()).then_some(shown)
            })
            .await;
            assert_eq!(shown["pool"], "rack");
            let request = coordinator.ask(&["requests", "show", "job"]);
            assert_eq!(request["assignments"][0]["node"], victim["id"], "{request}");
            let refused = coordinator.refuses(&["nodes", "drain", "a"]);
            assert!(
                refused.contains(victim["id"].as_str().expect("an id")),
                "{refused}"
            );
            drop(talk);
        });
}
