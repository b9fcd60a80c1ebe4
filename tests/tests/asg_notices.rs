//! What AWS tells of instances and what it has ready: messages of a queue, lifecycle hooks, warm pools, reservations. Real
//! coordinator and agents, over the AWS SDK, through the fault proxy, against moto; what happened is what the proxy counted.

use drover_tests::aws_proxy::{
    AwsProxy, Cause, Deed, Ledger, QueueRow, ReservationRow, Scenario, Service,
};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::imds::Metadata;
use drover_tests::moto::{Moto, NewGroup};
use drover_tests::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const EAST: &str = "us-east-1";
const ZONE: &str = "us-east-1a";
const OTHER_ZONE: &str = "us-east-1b";
/// Under a loaded machine.
const SOON: Duration = Duration::from_secs(90);
const QUICK: &str = "interval = \"1s\"\nsettle = \"1s\"\nsilence = \"10s\"\nreport_interval = \"1s\"\n\
                     full_interval = \"5s\"\nbreaker_fleet_percent = 50";

/// Proxy, metadata and moto live here; the tests themselves block.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

fn group(name: &str, zones: &[&str]) -> NewGroup {
    NewGroup::new(name, "g5.xlarge", zones).tag("drover:owner", "unclaimed")
}

/// The table of a group's pool, with its price (USD per hour) and more keys.
fn table(name: &str, price: &str, more: &str) -> String {
    format!(
        "[[pool]]\nname = \"{name}\"\nkind = \"asg\"\nsite = \"{EAST}\"\nregion = \"{EAST}\"\ngroup = \"{name}\"\n\
         mode = \"full\"\nmax = 20\nidle_after = \"2s\"\nprices = {{ \"g5.xlarge\" = {price} }}\n{more}\n"
    )
}

/// The table of AWS.
fn aws(proxy: &AwsProxy, queue: &str) -> String {
    format!(
        "[aws]\nendpoint = \"{}\"\n[[aws.queue]]\nregion = \"{EAST}\"\nurl = \"{queue}\"\n",
        proxy.url()
    )
}

struct Field {
    dir: TempDir,
    proxy: AwsProxy,
    metadata: Metadata,
    coordinator: Coordinator,
    hosts: BTreeMap<String, Host>,
    /// URL of the queue that gets every event of the region.
    queue: String,
}

impl Field {
    /// A coordinator with these groups and pools, and a queue that AWS writes to.
    fn start(groups: &[NewGroup], pools: &str, scenario: Scenario) -> Self {
        Self::start_after(None, groups, pools, scenario)
    }

    /// The same, after somebody has made a call of Auto Scaling.
    fn start_after(
        call: Option<(&str, &[(&str, &str)])>,
        groups: &[NewGroup],
        pools: &str,
        scenario: Scenario,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let name = format!("{}-events", groups[0].name);
        let (proxy, metadata, queue) = RUNTIME.block_on(async {
            let moto = Moto::shared().await;
            for group in groups {
                moto.create_group(EAST, group).await;
            }
            let proxy = AwsProxy::start(moto.url(), Scenario::default())
                .await
                .expect("a proxy");
            let queue = proxy.create_queue(EAST, &name).await;
            let row = QueueRow {
                region: Some(EAST.into()),
                url: queue.clone(),
                ..QueueRow::default()
            };
            let queues = vec![row];
            proxy.set(Scenario { queues, ..scenario }).await;
            if let Some((action, form)) = call {
                let call = proxy.call(EAST, Service::AutoScaling, action, form);
                call.await.expect(action);
            }
            (proxy, Metadata::start("g5.xlarge").await, queue)
        });
        let rest = pools.to_owned() + &aws(&proxy, &queue);
        let mut coordinator = Coordinator::prepare(&dir.path().join("c"), QUICK, &rest);
        coordinator.run(&[
            ("AWS_ACCESS_KEY_ID", "x"),
            ("AWS_SECRET_ACCESS_KEY", "y"),
            ("AWS_REGION", EAST),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]);
        Self {
            dir,
            proxy,
            metadata,
            coordinator,
            hosts: BTreeMap::new(),
            queue,
        }
    }

    fn ledger(&self) -> Ledger {
        self.proxy.ledger()
    }

    fn act(&self, group: &str, deed: Deed) {
        let done = RUNTIME.block_on(self.proxy.act(EAST, group, deed));
        assert_eq!(done.refused, None, "{done:?}");
    }

    fn tell(&self, body: &str) {
        let body = body.to_owned();
        self.act("", Deed::Event { body });
    }

    /// Messages that are in the queue, received or not.
    fn queued(&self) -> u64 {
        let body = json!({"QueueUrl": self.queue, "AttributeNames": ["All"]});
        let call = self
            .proxy
            .call_json(EAST, "sqs", "AmazonSQS.GetQueueAttributes", &body);
        let told = RUNTIME.block_on(call).expect("its attributes");
        let count = |name: &str| {
            let count = told["Attributes"][name].as_str().expect("a count");
            count.parse::<u64>().expect("a number")
        };
        count("ApproximateNumberOfMessages") + count("ApproximateNumberOfMessagesNotVisible")
    }

    fn ask_for(&self, name: &str, gpus: &str) {
        self.coordinator.ask(&[
            "requests", "create", "--name", name, "--gpus", gpus, "--for", "8h",
        ]);
    }

    /// Boots an agent on the newest launch of a group, once it has so many; gives the instance.
    fn boot(&mut self, group: &str, count: usize) -> String {
        self.coordinator
            .until(&format!("{count} launches in {group}"), SOON, || {
                (self.ledger().launched(EAST, group) >= count).then_some(())
            });
        let launches = self.ledger().launches;
        let launches = launches.iter().filter(|l| l.group == group);
        let id = launches.flat_map(|l| &l.instances).last();
        let id = id.expect("an instance").clone();
        let token = self.coordinator.token(&["--pool", group]);
        let mut host = Host::new(self.dir.path(), &format!("ip-{id}"), "k80", 1);
        host.configure(&self.coordinator.address(), &token, &self.metadata.of(&id));
        host.start();
        self.hosts.insert(id.clone(), host);
        id
    }

    /// Waits until a request is served by this instance.
    fn served_by(&self, request: &str, id: &str) {
        self.coordinator
            .until(&format!("{id} serves {request}"), SOON, || {
                let shown = self.coordinator.ask(&["requests", "show", request]);
                let by = format!("ip-{id}");
                (shown["state"] == "served" && shown["assignments"][0]["node_name"] == by)
                    .then_some(())
            });
    }

    /// Waits until the groups were described so many times more: so many readings, and cycles with them.
    fn readings(&self, more: u64) {
        let from = self.ledger().calls_of("DescribeAutoScalingGroups");
        self.coordinator.until("more readings", SOON, || {
            (self.ledger().calls_of("DescribeAutoScalingGroups") >= from + more).then_some(())
        });
    }

    fn pool(&self, name: &str) -> Value {
        self.coordinator.ask(&["pools", "show", name])
    }
}

/// A warning of the spot market as EventBridge sends it, said at this time.
fn warning(id: &str, instance: &str, at: &str) -> String {
    json!({
        "version": "0", "id": id, "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2", "account": "123456789012", "time": at, "region": EAST,
        "resources": [format!("arn:aws:ec2:us-east-1:123456789012:instance/{instance}")],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
    })
    .to_string()
}

#[test]
fn sc_90_a_spot_message_empties_its_node_and_asks_for_another_whatever_else_is_in_the_queue() {
    let groups = [group("told", &[ZONE])];
    let mut field = Field::start(&groups, &table("told", "1.0", ""), Scenario::default());
    field.ask_for("job", "1");
    let first = field.boot("told", 1);
    field.served_by("job", &first);
    let mut job = field.hosts[&first].job(&[0], 600);

    // Before it: what nobody understands, what is about others, and one about nobody that may yet show itself.
    field.tell("this is { no JSON");
    field.tell(r#"{"detail-type": "EC2 Capacity Astonishment", "detail": {}}"#);
    field.tell(&warning("1", "i-0123456789abcdef0", "2020-01-02T03:04:05Z"));
    let state = json!({
        "detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2",
        "time": jiff::Timestamp::now().to_string(), "region": EAST,
        "detail": {"instance-id": "i-0123456789abcdef1", "state": "running"},
    });
    field.tell(&state.to_string());
    let now = jiff::Timestamp::now().to_string();
    field.tell(&warning("2", "i-0123456789abcdef2", &now));
    let deed = Deed::SpotInterruption {
        instance: Some(first.clone()),
        notice_ms: 120_000,
    };
    field.act("told", deed);

    let second = field.boot("told", 2);
    let ledger = field.ledger();
    let said = ledger.acts.iter().find(|a| a.act == "spot_interruption");
    let said = said.expect("it was said").at_unix_ms;
    let asked = ledger.launches[1].at_unix_ms - said;
    assert!(asked < 10_000, "{asked} ms after the message");
    field.served_by("job", &second);
    wait::until("its work is ended", SOON, || (!job.runs()).then_some(()));
    job.end();
    field.coordinator.until("it is empty", SOON, || {
        let drained = field.coordinator.events("drained");
        (!drained.is_empty()).then_some(())
    });
    let begun = field.coordinator.events("drain_started");
    let told = format!("{begun:?}");
    assert_eq!(begun.len(), 1, "{told}");
    assert!(
        told.contains("policy force") && told.contains("spot notice"),
        "{told}"
    );
    let notices = field.coordinator.events("notice");
    let told = format!("{notices:?}");
    assert_eq!(notices.len(), 1, "{told}");
    assert!(told.contains("spot"), "{told}");

    // All are deleted but the one whose instance may yet show itself.
    field.coordinator.until("one message is left", SOON, || {
        (field.queued() == 1).then_some(())
    });
    let ledger = field.ledger();
    assert!(ledger.victims().is_empty(), "{:?}", ledger.ends);
    assert_eq!(ledger.launched(EAST, "told"), 2, "{:?}", ledger.launches);
    assert!(ledger.troubles.is_empty(), "{:?}", ledger.troubles);
}

/// A recommendation of the spot market and a maintenance that is announced: new work is kept off, and what is there goes on.
#[test]
fn what_is_only_announced_keeps_new_work_off_and_ends_nothing() {
    let groups = [group("warned", &[ZONE])];
    let more = "[pool.notices]\nrebalance = \"replace\"\n";
    let mut field = Field::start(&groups, &table("warned", "1.0", more), Scenario::default());
    field.ask_for("job", "1");
    let first = field.boot("warned", 1);
    field.served_by("job", &first);
    let mut job = field.hosts[&first].job(&[0], 600);
    let maintenance = Deed::ScheduledEvent {
        instance: Some(first.clone()),
        code: "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED".to_owned(),
        in_ms: 86_400_000,
    };
    field.act("warned", maintenance);
    let told = |word: &str| {
        field.coordinator.until(word, SOON, || {
            let notices = format!("{:?}", field.coordinator.events("notice"));
            notices.contains(word).then_some(())
        });
    };
    told("scheduled_event");
    assert_eq!(field.ledger().launched(EAST, "warned"), 1, "a day is long");
    let rebalance = Deed::RebalanceRecommendation {
        instance: Some(first.clone()),
    };
    field.act("warned", rebalance);
    told("rebalance");
    let cordoned = || {
        let node = field.coordinator.node(&format!("ip-{first}"))?;
        node["reason"]
            .to_string()
            .contains("rebalance")
            .then_some(node)
    };
    field
        .coordinator
        .until("new work is kept off", SOON, cordoned);
    field
        .coordinator
        .until("room elsewhere is asked for", SOON, || {
            (field.ledger().launched(EAST, "warned") == 2).then_some(())
        });
    field.readings(3);
    assert!(job.runs(), "its work goes on");
    job.end();
    let ledger = field.ledger();
    assert_eq!(ledger.launched(EAST, "warned"), 2, "once");
    assert!(ledger.victims().is_empty(), "{:?}", ledger.ends);
}

#[test]
fn ag_21_a_termination_by_the_group_is_held_until_the_work_is_over_and_completed_once() {
    let groups = [group("hooked", &[ZONE, OTHER_ZONE])];
    let mut field = Field::start(&groups, &table("hooked", "1.0", ""), Scenario::default());
    // Shorter than AWS lets it be, so behind the proxy.
    let hook = [
        ("AutoScalingGroupName", "hooked"),
        ("LifecycleHookName", "out"),
        (
            "LifecycleTransition",
            "autoscaling:EC2_INSTANCE_TERMINATING",
        ),
        ("DefaultResult", "ABANDON"),
        ("HeartbeatTimeout", "6"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()));
    RUNTIME
        .block_on(async {
            let moto = Moto::shared().await;
            moto.autoscaling(EAST, "PutLifecycleHook", &hook).await
        })
        .expect("a hook");
    field.ask_for("job", "1");
    let id = field.boot("hooked", 1);
    field.served_by("job", &id);
    let mut job = field.hosts[&id].job(&[0], 600);

    let from = field.ledger().launches[0].zone.clone();
    let to = if from == ZONE { OTHER_ZONE } else { ZONE };
    let deed = Deed::AzRebalance {
        from,
        to: to.to_owned(),
        count: 1,
    };
    field.act("hooked", deed);
    let beats = |ledger: &Ledger| {
        let story = ledger.hook_story(&id, "out");
        story.iter().filter(|what| **what == "heartbeat").count()
    };
    field.coordinator.until("two heartbeats", SOON, || {
        (beats(&field.ledger()) >= 2).then_some(())
    });
    assert!(job.runs(), "its work is waited for");
    assert_eq!(field.ledger().calls_of("CompleteLifecycleAction"), 0);
    let begun = format!("{:?}", field.coordinator.events("drain_started"));
    assert!(
        begun.contains("hook out") && begun.contains("policy wait"),
        "{begun}"
    );

    job.end();
    field.coordinator.until("it is completed", SOON, || {
        let ledger = field.ledger();
        let story = ledger.hook_story(&id, "out");
        (story.last() == Some(&"completed")).then_some(())
    });
    field.coordinator.until("that is told", SOON, || {
        let told = field.coordinator.events("hook_completed");
        format!("{told:?}").contains("drained").then_some(())
    });
    field.readings(3);
    let ledger = field.ledger();
    let told = format!("{:?}", ledger.lifecycle);
    let story = ledger.hook_story(&id, "out");
    let [first, between @ .., last] = &story[..] else {
        panic!("{told}");
    };
    assert_eq!((*first, *last), ("began", "completed"), "{told}");
    assert!(between.iter().all(|what| *what == "heartbeat"), "{told}");
    let result = ledger.lifecycle.last().and_then(|l| l.result.as_deref());
    assert_eq!(result, Some("CONTINUE"), "{told}");
    assert_eq!(ledger.calls_of("CompleteLifecycleAction"), 1, "{told}");
    let ended: Vec<_> = ledger.ends.iter().filter(|e| e.instance == id).collect();
    assert_eq!(ended.len(), 1, "{:?}", ledger.ends);
    assert_eq!(ended[0].cause, Cause::Rebalance, "by its group alone");
}

#[test]
fn a_warm_pool_is_shown_taken_from_and_never_waited_for() {
    let groups = [group("warmed", &[ZONE])];
    let brief = table("warmed", "1.0", "provision_deadline = \"2s\"");
    let form = [
        ("AutoScalingGroupName", "warmed"),
        ("MaxGroupPreparedCapacity", "3"),
    ];
    let call = Some(("PutWarmPool", &form[..]));
    let mut field = Field::start_after(call, &groups, &brief, Scenario::default());
    field.coordinator.until("it is shown", SOON, || {
        let shown = field.pool("warmed").to_string();
        shown.contains("warm pool: 3 stopped").then_some(())
    });
    // Long past the time in which an instance that was asked for would have to join.
    let begun = Instant::now();
    wait::until("they were waited for in vain", SOON, || {
        (begun.elapsed() > Duration::from_secs(5)).then_some(())
    });
    field.readings(2);
    let idle = |shown: &Value| {
        for what in ["nodes", "coming", "unmanaged", "missed", "misses"] {
            assert_eq!(shown[what], 0, "{what}: {shown}");
        }
    };
    idle(&field.pool("warmed"));
    for action in [
        "SetDesiredCapacity",
        "LaunchInstances",
        "TerminateInstanceInAutoScalingGroup",
    ] {
        assert_eq!(field.ledger().calls_of(action), 0, "{action}");
    }

    // With time to join in.
    let rest = table("warmed", "1.0", "") + &aws(&field.proxy, &field.queue);
    field.coordinator.configure(QUICK, &rest);
    field.coordinator.hang_up();
    field.ask_for("job", "1");
    let id = field.boot("warmed", 1);
    field.served_by("job", &id);
    let ledger = field.ledger();
    let told = format!("{:?}", ledger.mutations);
    assert_eq!(ledger.launches[0].way, "warm pool", "{told}");
    assert_eq!(ledger.calls_of("SetDesiredCapacity"), 1, "{told}");
    assert_eq!(ledger.calls_of("LaunchInstances"), 0, "{told}");
    // Shown much sooner than what is read without a change of ours.
    let shown = field.coordinator.until("one less", SOON / 3, || {
        let shown = field.pool("warmed");
        let less = shown.to_string().contains("warm pool: 2 stopped");
        less.then_some(shown)
    });
    for (what, count) in [
        ("nodes", 1),
        ("coming", 0),
        ("unmanaged", 0),
        ("missed", 0),
        ("misses", 0),
    ] {
        assert_eq!(shown[what], count, "{what}: {shown}");
    }
    assert!(ledger.victims().is_empty(), "{:?}", ledger.ends);
}

#[test]
fn what_is_reserved_is_asked_first_at_no_price() {
    // Beside it there is a zone that is liked more, and a group that costs less.
    let groups = [group("kept", &[ZONE, OTHER_ZONE]), group("cheap", &[ZONE])];
    let pools = table("cheap", "0.1", "") + &table("kept", "1.0", "");
    let scenario = Scenario {
        reservations: vec![ReservationRow {
            id: "cr-1".to_owned(),
            instance_type: "g5.xlarge".to_owned(),
            zone: OTHER_ZONE.to_owned(),
            total: 2,
            available: 1,
            ..ReservationRow::default()
        }],
        ..Scenario::default()
    };
    let mut field = Field::start(&groups, &pools, scenario);
    let shown = field.coordinator.until("it is shown", SOON, || {
        let shown = field.pool("kept");
        let offerings = shown["offerings"].as_array()?.clone();
        offerings.into_iter().find(|o| o["market"] == "reserved")
    });
    assert_eq!(shown["price_micro_usd_per_hour"], 0, "{shown}");
    assert_eq!(shown["zone"], OTHER_ZONE, "{shown}");
    assert!(
        shown["id"]
            .as_str()
            .is_some_and(|id| id.ends_with("reserved")),
        "{shown}"
    );
    let remarks = field.pool("kept")["remarks"].to_string();
    assert!(
        remarks.contains("cr-1") && remarks.contains("1 of 2 free"),
        "{remarks}"
    );

    field.ask_for("job", "2");
    field.boot("kept", 1);
    field.boot("cheap", 1);
    field.coordinator.until("both serve", SOON, || {
        let shown = field.coordinator.ask(&["requests", "show", "job"]);
        (shown["state"] == "served").then_some(())
    });
    let ledger = field.ledger();
    let told = format!("{:?}", ledger.launches);
    let kept = ledger.launches.iter().find(|l| l.group == "kept");
    assert_eq!(kept.expect("a launch").zone, OTHER_ZONE, "{told}");
    assert_eq!(
        (
            ledger.launched(EAST, "kept"),
            ledger.launched(EAST, "cheap")
        ),
        (1, 1),
        "no more than is free, and the rest where it costs least: {told}"
    );
    assert!(ledger.victims().is_empty(), "{:?}", ledger.ends);
}
