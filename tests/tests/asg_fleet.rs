//! Coordinator and agents as processes, Auto Scaling groups in two regions: over the AWS SDK, through the fault proxy,
//! against moto. What was launched and ended is what the proxy counted, not what the coordinator believes.

use drover_tests::aws_proxy::{AwsProxy, Cause, Effect, Fault, Ledger, Ration, Scenario, Timing};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::imds::Metadata;
use drover_tests::moto::{Moto, NewGroup};
use drover_tests::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Child;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "asg_fleet/capacity.rs"]
mod capacity;
#[path = "asg_fleet/far_queue.rs"]
mod far_queue;
#[path = "asg_fleet/learning.rs"]
mod learning;
#[path = "asg_fleet/leaving.rs"]
mod leaving;
#[path = "asg_fleet/members.rs"]
mod members;
#[path = "asg_fleet/monitoring.rs"]
mod monitoring;
#[path = "asg_fleet/offers.rs"]
mod offers;
#[path = "asg_fleet/owners.rs"]
mod owners;

const EAST: &str = "us-east-1";
const WEST: &str = "us-west-2";
/// Under a loaded machine.
const SOON: Duration = Duration::from_secs(90);
const QUICK: &str = "interval = \"1s\"\nsettle = \"1s\"\nsilence = \"10s\"\nreport_interval = \"1s\"\n\
                     full_interval = \"5s\"\nbreaker_fleet_percent = 50";

/// Proxy, metadata and moto live here; the tests themselves block.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// A pool and the group of its name.
#[derive(Clone)]
struct Pool {
    region: &'static str,
    group: NewGroup,
    mode: &'static str,
    /// USD per hour; empty: none is named.
    price: &'static str,
    max: u32,
    /// More keys.
    more: &'static str,
}

fn pool(region: &'static str, name: &str) -> Pool {
    let zone = if region == EAST {
        "us-east-1a"
    } else {
        "us-west-2a"
    };
    let (group, price) = (NewGroup::new(name, "g5.xlarge", &[zone]), "1.0");
    Pool {
        region,
        group: group.tag("drover:owner", "unclaimed"),
        mode: "full",
        price,
        max: 20,
        more: "",
    }
}

impl Pool {
    fn table(&self) -> String {
        let Self {
            region,
            mode,
            price,
            max,
            more,
            ..
        } = self;
        let name = &self.group.name;
        let prices = match *price {
            "" => String::new(),
            price => format!(
                "prices = {{ \"{}\" = {price} }}\n",
                self.group.instance_type
            ),
        };
        format!(
            "[[pool]]\nname = \"{name}\"\nkind = \"asg\"\nsite = \"{region}\"\nregion = \"{region}\"\ngroup = \"{name}\"\n\
             mode = \"{mode}\"\nmax = {max}\nidle_after = \"2s\"\n{prices}{more}\n"
        )
    }
}

/// What the config says of pools and AWS.
fn tables(pools: &[Pool], proxy: &AwsProxy) -> String {
    let tables: String = pools.iter().map(Pool::table).collect();
    tables + &format!("[aws]\nendpoint = \"{}\"\n", proxy.url())
}

struct Field {
    dir: TempDir,
    proxy: AwsProxy,
    metadata: Metadata,
    coordinator: Coordinator,
    hosts: BTreeMap<String, Host>,
}

impl Field {
    /// Groups, proxy and config; the coordinator does not run yet.
    fn prepare(pools: &[Pool], scenario: Scenario) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let (proxy, metadata) = RUNTIME.block_on(async {
            let moto = Moto::shared().await;
            for pool in pools {
                moto.create_group(pool.region, &pool.group).await;
            }
            let proxy = AwsProxy::start(moto.url(), scenario)
                .await
                .expect("a proxy");
            (proxy, Metadata::start("g5.xlarge").await)
        });
        let rest = tables(pools, &proxy);
        let coordinator = Coordinator::prepare(&dir.path().join("c"), QUICK, &rest);
        Self {
            dir,
            proxy,
            metadata,
            coordinator,
            hosts: BTreeMap::new(),
        }
    }

    /// The same, with a coordinator that knows what every pool offers.
    fn start(pools: &[Pool], scenario: Scenario) -> Self {
        let mut field = Self::prepare(pools, scenario);
        field.run("");
        field.knows(pools);
        field
    }

    /// Waits until every pool was read: a region that answers later than another holds up nobody, so that what is asked
    /// for before goes where it is known to be.
    fn knows(&self, pools: &[Pool]) {
        for pool in pools {
            let name = pool.group.name.as_str();
            // What has weights offers nothing.
            let weighted = pool
                .group
                .mixed
                .as_ref()
                .is_some_and(|m| m.weight.is_some());
            self.coordinator
                .until(&format!("{name} is read"), SOON, || {
                    let shown = self.coordinator.try_ask(&["pools", "show", name])?;
                    let some = shown["offerings"]
                        .as_array()
                        .is_some_and(|all| !all.is_empty());
                    (some || weighted).then_some(())
                });
        }
    }

    /// Starts the coordinator with these fail points.
    fn run(&mut self, points: &str) {
        self.coordinator.run(&[
            ("AWS_ACCESS_KEY_ID", "x"),
            ("AWS_SECRET_ACCESS_KEY", "y"),
            ("AWS_REGION", EAST),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("FAILPOINTS", points),
        ]);
    }

    fn set(&self, scenario: Scenario) {
        RUNTIME.block_on(self.proxy.set(scenario));
    }

    /// A call that a person makes beside Drover.
    fn by_hand(&self, region: &str, action: &str, form: &[(&str, &str)]) {
        let form: Vec<(String, String)> = form
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        RUNTIME
            .block_on(async {
                Moto::shared()
                    .await
                    .autoscaling(region, action, &form)
                    .await
            })
            .unwrap_or_else(|e| panic!("{action}: {e}"));
    }

    fn ledger(&self) -> Ledger {
        self.proxy.ledger()
    }

    fn ask_for(&self, name: &str, gpus: u32) {
        self.ask_where(name, gpus, &[]);
    }

    /// The same with rules.
    fn ask_where(&self, name: &str, gpus: u32, rules: &[&str]) {
        let gpus = gpus.to_string();
        let mut line = vec![
            "requests", "create", "--name", name, "--gpus", &gpus, "--for", "8h",
        ];
        line.extend(rules);
        self.coordinator.ask(&line);
    }

    /// How many nodes each call of LaunchInstances for this group asked for, in order.
    fn asked_of(&self, group: &str) -> Vec<u32> {
        let mutations = self.ledger().mutations;
        mutations
            .iter()
            .filter(|m| m.group == group && m.action == "LaunchInstances")
            .map(|m| m.what.parse().expect("a count"))
            .collect()
    }

    /// The same without waiting for the answer, which a crash may keep.
    fn begin_to_ask(&self, name: &str, gpus: u32) -> Child {
        let gpus = gpus.to_string();
        self.coordinator.spawn_cli(&[
            "requests", "create", "--name", name, "--gpus", &gpus, "--for", "8h",
        ])
    }

    /// Boots an agent on everything that was launched and has none yet: as many as there are, in the end.
    fn boot(&mut self, pool: &str, region: &str, count: usize) -> Vec<String> {
        wait::until(
            &format!("{count} launches in {pool}\n{}", self.coordinator.tail()),
            SOON,
            || (self.ledger().launched(region, pool) >= count).then_some(()),
        );
        let launches = self.ledger().launches;
        let ids = launches.iter().filter(|l| l.group == pool);
        let ids: Vec<String> = ids.flat_map(|l| l.instances.clone()).collect();
        for id in &ids {
            self.boot_one(pool, id);
        }
        ids
    }

    /// Boots an agent on an instance that has none yet.
    fn boot_one(&mut self, pool: &str, id: &str) {
        let gpus = json!({ "gpus": [{ "profile": "k80", "count": 1 }] });
        self.boot_with(pool, id, &gpus);
    }

    /// The same with these GPUs.
    fn boot_with(&mut self, pool: &str, id: &str, gpus: &Value) {
        if self.hosts.contains_key(id) {
            return;
        }
        let token = self.coordinator.token(&["--pool", pool]);
        let mut host = Host::new(self.dir.path(), &format!("ip-{id}"), "k80", 1);
        host.script(gpus);
        host.configure(&self.coordinator.address(), &token, &self.metadata.of(id));
        host.start();
        self.hosts.insert(id.to_owned(), host);
    }

    fn served(&self, request: &str) -> Value {
        let waited = self
            .coordinator
            .cli(&["requests", "wait", request, "--timeout", "270s"]);
        let said = String::from_utf8_lossy(&waited.stderr).into_owned();
        assert!(
            waited.status.success(),
            "{request}: {said}\n{}\n{}",
            self.coordinator.ask(&["explain", request]),
            self.coordinator.tail()
        );
        self.coordinator.ask(&["requests", "show", request])
    }

    /// Waits until what the CLI says of a subject holds `text`.
    fn explained(&self, subject: &str, text: &str) {
        let mut said = String::new();
        let begun = Instant::now();
        loop {
            if said.contains(text) {
                return;
            }
            assert!(
                begun.elapsed() < wait::patient(SOON),
                "explain {subject} never says {text:?}: {said}"
            );
            said = wait::until("an answer", SOON, || {
                Some(self.coordinator.ask(&["explain", subject]))
            })
            .to_string();
        }
    }

    fn events(&self) -> String {
        self.coordinator.ask(&["events"]).to_string()
    }

    /// Waits until the groups of a region were described so many times more: so many readings, and cycles with them.
    fn readings(&self, more: u64) {
        let from = self.ledger().calls_of("DescribeAutoScalingGroups");
        wait::until("more readings", SOON, || {
            (self.ledger().calls_of("DescribeAutoScalingGroups") >= from + more).then_some(())
        });
    }

    /// Waits until what the group did not fill is given back, down to `to`, and Launch is resumed.
    fn withdrawn(&self, group: &str, to: u32) {
        let to = to.to_string();
        wait::until(
            &format!("{group} is lowered to {to}\n{}", self.coordinator.tail()),
            SOON,
            || {
                let mutations = self.ledger().mutations;
                let of = |action: &str| {
                    mutations
                        .iter()
                        .rposition(|m| m.group == group && m.action == action)
                };
                let set = of("SetDesiredCapacity")?;
                (mutations[set].what == to
                    && of("SuspendProcesses")? < set
                    && of("ResumeProcesses")? > set)
                    .then_some(())
            },
        );
    }

    /// Nothing was ended but by id and with decrement, and protection was never taken off (I2).
    fn nobody_was_hurt(&self) {
        let ledger = self.ledger();
        assert!(ledger.victims().is_empty(), "{:?}", ledger.ends);
        assert!(ledger.unprotected.is_empty(), "{:?}", ledger.unprotected);
    }
}

fn denied() -> Fault {
    Fault {
        action: Some("LaunchInstances".into()),
        effect: Effect::Error {
            status: 403,
            code: "AccessDenied".into(),
            message: "User is not authorized to perform: autoscaling:LaunchInstances".into(),
        },
        ..Fault::default()
    }
}

fn short(group: &str, left: u32) -> Ration {
    Ration {
        group: Some(group.into()),
        left,
        ..Ration::default()
    }
}

#[test]
fn i2_protected_by_construction_from_the_ask_to_the_end() {
    let mut field = Field::start(&[pool(EAST, "life")], Scenario::default());
    field.ask_for("job", 1);
    let id = field.boot("life", EAST, 1).remove(0);
    let request = field.served("job");
    let host = format!("ip-{id}");
    assert_eq!(
        request["assignments"][0]["node_name"],
        host.as_str(),
        "{request}"
    );
    let node = field.coordinator.node_in(&host, "ready", SOON);
    assert_eq!(node["pool"], "life", "{node}");
    field.coordinator.ask(&["requests", "cancel", "job"]);
    wait::until("the instance is ended", SOON, || {
        (!field.ledger().ends.is_empty()).then_some(())
    });
    wait::until("its record is gone", SOON, || {
        field.coordinator.node(&host).is_none().then_some(())
    });
    let ledger = field.ledger();
    assert_eq!(ledger.ends.len(), 1);
    assert_eq!(
        (ledger.ends[0].instance.as_str(), ledger.ends[0].cause),
        (id.as_str(), Cause::Decrement)
    );
    assert_eq!(ledger.launched(EAST, "life"), 1);
    let actions: Vec<&str> = ledger.mutations.iter().map(|m| m.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "CreateOrUpdateTags",
            "LaunchInstances",
            "TerminateInstanceInAutoScalingGroup"
        ],
        "claimed, asked once, ended once: nothing else was ever changed"
    );
    field.nobody_was_hurt();
    let told = field.events();
    for what in ["launch_asked", "joined", "drain", "gone"] {
        assert!(told.contains(what), "{what} in {told}");
    }
}

#[test]
fn sc_03_a_dry_region_fails_over_in_both_ways_of_asking() {
    for (east, west, faults) in [
        ("dry-e", "dry-w", vec![]),
        ("dryf-e", "dryf-w", vec![denied()]),
    ] {
        let mut costly = pool(WEST, west);
        costly.price = "2.0";
        let scenario = Scenario {
            rations: vec![short(east, 1)],
            faults,
            ..Scenario::default()
        };
        let mut field = Field::start(&[pool(EAST, east), costly], scenario);
        field.ask_for("job", 3);
        field.boot(west, WEST, 2);
        field.boot(east, EAST, 1);
        field.served("job");
        let ledger = field.ledger();
        assert_eq!(
            (ledger.launched(EAST, east), ledger.launched(WEST, west)),
            (1, 2),
            "{:?}",
            ledger.mutations
        );
        let told = field.events();
        assert!(told.contains("failover"), "{told}");
        field.explained(east, "do not have sufficient g5.xlarge capacity");
        if east == "dryf-e" {
            field.withdrawn(east, 1);
        }
        field.nobody_was_hurt();
    }
}

#[test]
fn sc_05_a_group_that_does_not_follow_is_left_and_lowered() {
    let mut costly = pool(WEST, "mute-w");
    costly.price = "2.0";
    let mut mute = pool(EAST, "mute-e");
    mute.more = "provision_deadline = \"5s\"";
    let ration = Ration {
        silent: true,
        ..short("mute-e", 0)
    };
    let scenario = Scenario {
        rations: vec![ration],
        faults: vec![denied()],
        ..Scenario::default()
    };
    let mut field = Field::start(&[mute, costly], scenario);
    field.ask_for("job", 2);
    field.boot("mute-w", WEST, 2);
    field.served("job");
    field.withdrawn("mute-e", 0);
    let ledger = field.ledger();
    assert_eq!(
        (
            ledger.launched(EAST, "mute-e"),
            ledger.launched(WEST, "mute-w")
        ),
        (0, 2),
        "{:?}",
        ledger.mutations
    );
    field.nobody_was_hurt();
}

/// kill -9 in the middle of a withdrawal: whoever comes next goes on, and Launch does not stay suspended.
#[test]
fn a_withdrawal_survives_a_crash_at_each_of_its_steps() {
    for (name, point) in [
        ("half-1", "asg-withdraw-noted"),
        ("half-2", "asg-withdraw-suspended"),
        ("half-3", "asg-withdraw-lowered"),
        ("half-4", "asg-withdraw-resumed"),
    ] {
        let scenario = Scenario {
            rations: vec![short(name, 1)],
            faults: vec![denied()],
            ..Scenario::default()
        };
        let mut field = Field::prepare(&[pool(EAST, name)], scenario);
        field.run(&format!("{point}=panic"));
        let mut wish = field.begin_to_ask("job", 3);
        field.coordinator.ended(SOON);
        wish.wait().expect("it ends with the connection");
        field.run("");
        field.withdrawn(name, 1);
        field.boot(name, EAST, 1);
        assert_eq!(field.ledger().launched(EAST, name), 1);
        field.nobody_was_hurt();
    }
}

#[test]
fn i2_members_without_protection_get_it_and_nothing_else_happens() {
    let mut bare = pool(EAST, "bare");
    bare.group.protects_new = false;
    bare.group.desired = 3;
    bare.mode = "observe";
    let field = Field::start(&[bare], Scenario::default());
    field.explained("bare", "3 members are not protected");
    field.readings(2);
    assert!(field.ledger().mutations.is_empty(), "not in observe");
    field
        .coordinator
        .ask(&["freeze", "bare", "--reason", "audit"]);
    field.coordinator.ask(&["pools", "mode", "bare", "grow"]);
    field.readings(2);
    assert!(field.ledger().mutations.is_empty(), "not while frozen");
    field.coordinator.ask(&["thaw", "bare"]);
    wait::until("they are protected", SOON, || {
        (field.ledger().calls_of("SetInstanceProtection") > 0).then_some(())
    });
    field.readings(3);
    let ledger = field.ledger();
    let actions: Vec<&str> = ledger.mutations.iter().map(|m| m.action.as_str()).collect();
    assert_eq!(actions, ["CreateOrUpdateTags", "SetInstanceProtection"]);
    field.nobody_was_hurt();
}

/// When the process is killed.
#[derive(Clone, Copy)]
enum Killed {
    /// The intent is told and no call was made.
    Intended,
    /// This call was made so often.
    Asked(&'static str, u64),
}

/// Acceptance: kill -9 between "capacity asked" and "recorded", one more unit demanded, instances hidden for 30 s.
#[test]
fn i4_ask_once_whatever_the_crash() {
    let launch = Killed::Asked("LaunchInstances", 1);
    let desired = Killed::Asked("SetDesiredCapacity", 1);
    // The second tag: the first claims the group.
    let noted = Killed::Asked("CreateOrUpdateTags", 2);
    let table = [
        ("once-1", "launch.intended", vec![], Killed::Intended),
        ("once-2", "launch.asked", vec![], launch),
        ("once-3", "asg-launch-asked", vec![], launch),
        (
            "once-4",
            "launch.intended",
            vec![denied()],
            Killed::Intended,
        ),
        ("once-5", "asg-desired-noted", vec![denied()], noted),
        ("once-6", "asg-desired-asked", vec![denied()], desired),
        ("once-7", "launch.asked", vec![denied()], desired),
    ];
    // Most of the time is waiting for what is hidden.
    std::thread::scope(|threads| {
        for (name, point, faults, killed) in table {
            threads.spawn(move || ask_once(name, point, faults, killed));
        }
    });
}

fn ask_once(name: &str, point: &str, faults: Vec<Fault>, killed: Killed) {
    let scenario = Scenario {
        faults,
        timing: vec![Timing {
            hide_ms: 30_000,
            ..Timing::default()
        }],
        ..Scenario::default()
    };
    let mut field = Field::prepare(&[pool(EAST, name)], scenario);
    // It stops there and is killed: nothing after the point is ever done.
    field.run(&format!("{point}=pause"));
    let mut wish = field.begin_to_ask("first", 2);
    wait::until(&format!("{name} is at {point}"), SOON, || {
        let there = match killed {
            // The stopped process answers nobody: its log tells.
            Killed::Intended => field.coordinator.tail().contains("launch_asked"),
            Killed::Asked(call, times) => field.ledger().calls_of(call) >= times,
        };
        there.then_some(())
    });
    let begun = Instant::now();
    field.coordinator.kill();
    wish.wait().expect("it ends with the connection");
    if matches!(killed, Killed::Intended) {
        assert_eq!(field.ledger().launched(EAST, name), 0);
    }
    field.run("");
    field.ask_for("second", 1);
    field.boot(name, EAST, 3);
    field.served("first");
    field.served("second");
    wait::until("everything shows", SOON, || {
        (begun.elapsed() > Duration::from_secs(31)).then_some(())
    });
    field.readings(3);
    let ledger = field.ledger();
    let told = format!("{name}: {:?}", ledger.mutations);
    assert_eq!(ledger.launched(EAST, name), 3, "{told}");
    assert!(ledger.ends.is_empty(), "{told}");
    field.nobody_was_hurt();
}

#[test]
fn i5_mine_only_200_running_instances_are_adopted_and_nothing_is_reaped() {
    let mut old = pool(EAST, "old");
    old.group.desired = 200;
    old.group.max = 300;
    old.mode = "observe";
    let mut field = Field::start(&[old.clone()], Scenario::default());
    let seen = || field.coordinator.ask(&["pools", "show", "old"])["unmanaged"] == 200;
    wait::until("200 are seen", SOON, || seen().then_some(()));
    field.readings(2);
    assert!(
        field.ledger().mutations.is_empty(),
        "{:?}",
        field.ledger().mutations
    );
    field.coordinator.ask(&["pools", "mode", "old", "full"]);
    field.readings(4);
    assert!(seen());
    // A restart knows no more about them.
    field.coordinator.kill();
    field.run("");
    field.readings(3);
    assert!(field.ledger().ends.is_empty());
    assert_eq!(
        field
            .ledger()
            .calls_of("TerminateInstanceInAutoScalingGroup"),
        0
    );
    field.nobody_was_hurt();
}

#[test]
fn sc_88_no_tag_no_management() {
    let named = |name: &str, tags: &[(&str, &str)]| {
        let mut pool = pool(EAST, name);
        pool.group.tags = tags
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        pool.group.desired = 2;
        pool
    };
    let mut weighted = pool(EAST, "bad-weighted");
    weighted.group.mixed = Some(drover_tests::moto::Mixed {
        types: vec!["g5.xlarge".into()],
        on_demand_percent: 100,
        weight: Some(2),
    });
    let pools = [
        named("bad-untagged", &[]),
        named("bad-others", &[("drover:owner", "another/3")]),
        named(
            "bad-frozen",
            &[("drover:owner", "unclaimed"), ("drover:freeze", "audit")],
        ),
        weighted,
    ];
    let field = Field::start(&pools, Scenario::default());
    field.ask_for("job", 3);
    field.explained("bad-untagged", "no tag drover:owner");
    field.explained("bad-others", "another coordinator");
    field.explained("bad-frozen", "audit");
    field.explained("bad-weighted", "weights");
    field.readings(4);
    let ledger = field.ledger();
    assert!(ledger.mutations.is_empty(), "{:?}", ledger.mutations);
    let waits = field.coordinator.ask(&["requests", "show", "job"]);
    assert_ne!(waits["state"], "served", "{waits}");
    assert!(
        !waits["reasons"].as_array().expect("reasons").is_empty(),
        "{waits}"
    );
}

#[test]
fn two_pools_may_not_own_one_group() {
    let dir = tempfile::tempdir().expect("a folder");
    let one = pool(EAST, "twice");
    let text = one.table() + &one.table().replacen("\"twice\"", "\"again\"", 1);
    let coordinator = Coordinator::prepare(dir.path(), QUICK, &text);
    let config = coordinator.config();
    let checked = coordinator.cli(&["check-config", "--config", &config.display().to_string()]);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(64), "{said}");
    assert!(said.contains("already owned by pool twice"), "{said}");
}

#[test]
fn observe_says_would_and_changes_nothing() {
    let mut watched = pool(EAST, "watched");
    watched.mode = "observe";
    // A member without protection is told of and not touched either.
    watched.group.protects_new = false;
    watched.group.desired = 1;
    let field = Field::start(&[watched], Scenario::default());
    field.ask_for("job", 3);
    let planned = wait::until("a plan that would", SOON, || {
        let planned = field.coordinator.ask(&["plan"]);
        planned
            .to_string()
            .contains("\"watched/")
            .then_some(planned)
    });
    let would = &planned["plan"]["would"];
    assert!(would.to_string().contains("launch"), "{planned}");
    field.explained("watched", "not protected");
    field.readings(4);
    assert!(
        field.ledger().mutations.is_empty(),
        "{:?}",
        field.ledger().mutations
    );
    assert!(field.ledger().launches.is_empty());

    // What the coordinator says that it asked is what arrived, and all of it has a limit.
    let told = field.coordinator.ask(&["api-calls"]);
    let arrived = field.ledger().calls;
    let rows = told.as_array().expect("a list");
    assert!(!rows.is_empty(), "{told}");
    for row in rows {
        let call = row["call"].as_str().expect("a name");
        let sent = row["sent"].as_u64().expect("a count");
        let counted = arrived.get(call).copied().unwrap_or(0);
        assert!(call.starts_with("Describe"), "{row}");
        assert!(0 < sent && sent <= counted, "{counted} arrived of {row}");
        assert_eq!(row["region"], EAST, "{row}");
        assert!(row["bucket"]["per_minute"].as_u64() > Some(0), "{row}");
    }
}

/// One region answers nothing, neither reads nor asks: the other is read and asked meanwhile, and what was asked of the
/// first is asked once.
#[test]
fn a_dead_region_holds_up_no_other() {
    let mut east = pool(EAST, "dead-e");
    east.max = 2;
    let mut west = pool(WEST, "dead-w");
    west.price = "2.0";
    let mut field = Field::start(&[east, west], Scenario::default());
    field.explained("dead-e", "not claimed yet");
    field.explained("dead-w", "not claimed yet");
    // Longer than a call is waited for; what came in is still carried out.
    let slow = Fault {
        region: Some(EAST.into()),
        effect: Effect::Latency { ms: 30_000 },
        ..Fault::default()
    };
    RUNTIME.block_on(field.proxy.set(Scenario {
        faults: vec![slow],
        ..Scenario::default()
    }));
    field.ask_for("first", 2);
    field.ask_for("second", 2);
    let begun = Instant::now();
    field.boot("dead-w", WEST, 2);
    field.served("second");
    let served = begun.elapsed();
    assert_eq!(
        field.ledger().launched(EAST, "dead-e"),
        0,
        "it is still dead"
    );
    let asked = field.ledger().mutations;
    let late = asked
        .iter()
        .find(|m| m.region == WEST && m.action == "LaunchInstances");
    assert!(
        late.is_some() && served < Duration::from_secs(30),
        "{served:?}"
    );
    RUNTIME.block_on(field.proxy.set(Scenario::default()));
    field.boot("dead-e", EAST, 2);
    field.served("first");
    field.readings(3);
    let ledger = field.ledger();
    assert_eq!(
        (
            ledger.launched(EAST, "dead-e"),
            ledger.launched(WEST, "dead-w")
        ),
        (2, 2),
        "{:?}",
        ledger.mutations
    );
    field.nobody_was_hurt();
}
