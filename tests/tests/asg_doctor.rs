//! `drover pools doctor` and `adopt` as processes, over the AWS SDK, through the fault proxy, against moto: a right group is
//! silent, each wrong one is found, `--fix` mends what it may, and a group of 200 running instances is adopted unharmed.

use drover_tests::aws_proxy::{AwsProxy, Effect, Fault, Scenario};
use drover_tests::coordinator::Coordinator;
use drover_tests::moto::{Moto, NewGroup};
use drover_tests::wait;
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "asg_doctor/shell.rs"]
mod shell;
#[path = "asg_doctor/table.rs"]
mod table;
#[path = "asg_doctor/ways.rs"]
mod ways;

const EAST: &str = "us-east-1";
/// Under a loaded machine.
const SOON: Duration = Duration::from_secs(90);
const QUICK: &str = "interval = \"1s\"\nsettle = \"1s\"\nsilence = \"10s\"\nreport_interval = \"1s\"\n\
                     full_interval = \"5s\"";

/// Proxy and moto live here; the tests themselves block.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

struct Clinic {
    proxy: AwsProxy,
    coordinator: Coordinator,
    _dir: TempDir,
}

fn group(name: &str) -> NewGroup {
    NewGroup::new(name, "g5.xlarge", &["us-east-1a"]).tag("drover:owner", "unclaimed")
}

/// A call behind the proxy's back.
fn call(action: &str, group: &str, more: &[(&str, &str)]) {
    let mut form = vec![("AutoScalingGroupName".to_owned(), group.to_owned())];
    form.extend(more.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    RUNTIME.block_on(async {
        let moto = Moto::shared().await;
        moto.autoscaling(EAST, action, &form).await.expect(action);
    });
}

/// Processes that end members are suspended.
fn calm(group: &str) {
    let processes = [
        ("ScalingProcesses.member.1", "AZRebalance"),
        ("ScalingProcesses.member.2", "ReplaceUnhealthy"),
    ];
    call("SuspendProcesses", group, &processes);
}

impl Clinic {
    /// A coordinator without a pool, or with these tables.
    fn start(groups: &[NewGroup], scenario: Scenario, pools: &str) -> Self {
        let groups: Vec<_> = groups.iter().map(|group| (EAST, group.clone())).collect();
        Self::start_in(&groups, scenario, pools)
    }

    /// The same with groups in their regions.
    fn start_in(groups: &[(&str, NewGroup)], scenario: Scenario, pools: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let proxy = RUNTIME.block_on(async {
            let moto = Moto::shared().await;
            for (region, group) in groups {
                moto.create_group(region, group).await;
            }
            AwsProxy::start(moto.url(), scenario)
                .await
                .expect("a proxy")
        });
        let rest = format!("{pools}[aws]\nendpoint = \"{}\"\n", proxy.url());
        let mut coordinator = Coordinator::prepare(&dir.path().join("c"), QUICK, &rest);
        coordinator.run(&[
            ("AWS_ACCESS_KEY_ID", "x"),
            ("AWS_SECRET_ACCESS_KEY", "y"),
            ("AWS_REGION", EAST),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]);
        Self {
            proxy,
            coordinator,
            _dir: dir,
        }
    }

    /// Exit code, and what is said for programs.
    fn survey(&self, group: &str, region: &str) -> (Option<i32>, Value) {
        let line = [
            "pools", "doctor", "--group", group, "--region", region, "-o", "json",
        ];
        let told = self.coordinator.cli(&line);
        let view = serde_json::from_slice(&told.stdout).unwrap_or_else(|e| {
            let said = String::from_utf8_lossy(&told.stderr).into_owned();
            panic!("{group}: {e}: {said}\n{}", self.coordinator.tail())
        });
        (told.status.code(), view)
    }

    /// Exit code, what is printed, and what is found, by kind.
    fn doctor(&self, group: &str, more: &[&str]) -> (Option<i32>, String, Vec<String>) {
        let mut line = vec!["pools", "doctor", "--group", group, "--region", EAST];
        line.extend(more);
        let told = self.coordinator.cli(&line);
        let text = String::from_utf8_lossy(&told.stdout).into_owned()
            + &String::from_utf8_lossy(&told.stderr);
        line.extend(["-o", "json"]);
        let json = self.coordinator.cli(&line);
        let view: Value = serde_json::from_slice(&json.stdout)
            .unwrap_or_else(|e| panic!("{group}: {e}: {text}\n{}", self.coordinator.tail()));
        let findings = view["findings"].as_array().expect("findings");
        let kinds = findings
            .iter()
            .map(|f| f["kind"].as_str().expect("a kind").to_owned());
        (told.status.code(), text, kinds.collect())
    }
}

#[test]
fn a_fix_protects_what_is_there_and_is_in_the_audit_log() {
    let mut bare = group("doc-fix");
    bare.protects_new = false;
    bare.desired = 2;
    let clinic = Clinic::start(&[bare], Scenario::default(), "");
    let (code, text, kinds) = clinic.doctor("doc-fix", &[]);
    assert_eq!(code, Some(1), "{text}");
    for kind in ["new_unprotected", "members_unprotected", "ends_members"] {
        assert!(kinds.iter().any(|k| k == kind), "{kind}: {text}");
    }
    let (code, text, kinds) = clinic.doctor("doc-fix", &["--fix"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(kinds, ["no_agents"], "{text}");
    let audit = clinic.coordinator.ask(&["audit", "list"]).to_string();
    assert!(
        audit.contains("pool.mend") && audit.contains("AZRebalance"),
        "{audit}"
    );
    let ledger = clinic.proxy.ledger();
    assert!(
        ledger.ends.is_empty() && ledger.unprotected.is_empty(),
        "{:?}",
        ledger.mutations
    );
}

#[test]
fn a_question_without_permission_is_a_finding_and_the_rest_is_judged() {
    let mut bare = group("doc-denied");
    bare.protects_new = false;
    let denied = Fault {
        action: Some("DescribePolicies".into()),
        effect: Effect::Error {
            status: 403,
            code: "AccessDenied".into(),
            message: "not authorized to perform: autoscaling:DescribePolicies".into(),
        },
        ..Fault::default()
    };
    let scenario = Scenario {
        faults: vec![denied],
        ..Scenario::default()
    };
    let clinic = Clinic::start(&[bare], scenario, "");
    calm("doc-denied");
    let (code, text, kinds) = clinic.doctor("doc-denied", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(kinds, ["new_unprotected", "not_asked"], "{text}");
    assert!(text.contains("autoscaling:DescribePolicies"), "{text}");
}

#[test]
fn i5_mine_only_200_running_instances_are_adopted_by_the_command_and_nothing_is_changed() {
    let mut old = group("doc-old");
    old.desired = 200;
    old.max = 300;
    let pool = "[[pool]]\nname = \"old\"\nkind = \"asg\"\nsite = \"us-east-1\"\nregion = \"us-east-1\"\n\
                group = \"doc-old\"\nmode = \"full\"\nmax = 300\nprices = { \"g5.xlarge\" = 1.0 }\n";
    // Not a pool yet: what to write is told, and the name is the group's.
    let clinic = Clinic::start(&[old], Scenario::default(), "");
    let adopt = [
        "pools", "adopt", "doc-old", "--region", EAST, "--name", "old", "--for", "1m",
    ];
    let told = clinic.coordinator.ask(&adopt);
    let table = told["config_table"].as_str().expect("a table");
    assert!(
        table.contains("group = \"doc-old\"") && table.contains("max = 300"),
        "{told}"
    );
    assert_eq!(told["survey"]["running"], 200, "{told}");
    assert_eq!(told["adoption"]["mode"], Value::Null, "{told}");

    // It comes in, with a mode that it does not get.
    let rest = format!("{pool}[aws]\nendpoint = \"{}\"\n", clinic.proxy.url());
    clinic.coordinator.configure(QUICK, &rest);
    clinic.coordinator.hang_up();
    let adopted = || clinic.coordinator.try_ask(&["pools", "adopted", "old"]);
    wait::until("it is a pool", SOON, || {
        clinic.coordinator.try_ask(&["pools", "show", "old"])
    });
    let early = clinic
        .coordinator
        .refuses(&["pools", "mode", "old", "grow"]);
    assert!(early.contains("--yes"), "{early}");
    wait::until("it is watched", SOON, || {
        (adopted()?["watched_ms"].as_u64()? > 0).then_some(())
    });
    let shown = clinic.coordinator.ask(&["pools", "show", "old"]);
    assert_eq!(
        (&shown["mode"], &shown["unmanaged"]),
        (&"observe".into(), &200.into())
    );
    let whole = wait::until("its minute is over", SOON * 2, || {
        adopted().filter(|shown| shown["complete"] == true)
    });
    assert!(whole["blind_node_ms"].as_u64() > Some(0), "{whole}");
    assert_eq!(
        (&whole["came"], &whole["went"]),
        (&0.into(), &0.into()),
        "{whole}"
    );
    assert!(
        clinic.proxy.ledger().mutations.is_empty(),
        "{:?}",
        clinic.proxy.ledger().mutations
    );

    // And in no other mode is anything reaped.
    clinic.coordinator.ask(&["pools", "mode", "old", "full"]);
    let from = clinic.proxy.ledger().calls_of("DescribeAutoScalingGroups");
    wait::until("more readings", SOON, || {
        let now = clinic.proxy.ledger().calls_of("DescribeAutoScalingGroups");
        (now >= from + 4).then_some(())
    });
    let ledger = clinic.proxy.ledger();
    assert!(
        ledger.ends.is_empty() && ledger.victims().is_empty(),
        "{:?}",
        ledger.ends
    );
    assert!(ledger.unprotected.is_empty(), "{:?}", ledger.unprotected);
}
