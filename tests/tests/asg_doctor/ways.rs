//! Every way in which a group can be set up wrongly: what the doctor finds of it, alone, and the command that mends it.
//!
//! Most ways are set up as a person would, by calls; what moto lacks is shown by the proxy. Where the command can be done
//! here it is done, and what it was for is gone.

use super::{Clinic, EAST, RUNTIME, shell, table};
use drover_tests::aws_proxy::{Deed, Scenario, Service};
use drover_tests::moto::NewGroup;
use serde_json::Value;

/// Regions apart, so that limits of calls that hold for each do not make this slow.
const REGIONS: [&str; 8] = [
    EAST,
    "us-east-2",
    "us-west-2",
    "eu-west-1",
    "eu-west-2",
    "eu-central-1",
    "ap-southeast-2",
    "ap-northeast-1",
];

/// Tells the proxy what a group is like, by its region and name.
pub(super) type World = fn(&mut Scenario, &str, &str);

/// What somebody does to a group.
pub(super) enum Step {
    /// A call of Auto Scaling for it. A value `MEMBER` is its first member.
    Call(&'static str, Vec<(&'static str, &'static str)>),
    /// A call of EC2.
    Ec2(&'static str, Vec<(&'static str, String)>),
    Deed(Deed),
}

/// A way for a group to be, and what is found.
pub(super) struct Way {
    pub(super) group: NewGroup,
    pub(super) region: &'static str,
    pub(super) steps: Vec<Step>,
    /// What the proxy is told.
    pub(super) world: World,
    /// The world is so for all groups: it is looked at when the others have been.
    pub(super) wide: bool,
    /// The finding that it is about; none: it is right.
    pub(super) kind: Option<&'static str>,
    pub(super) severity: &'static str,
    /// Findings that come with it.
    pub(super) beside: Vec<&'static str>,
    /// In the words.
    pub(super) says: &'static str,
    /// In the commands; empty: there is none.
    pub(super) command: &'static str,
    /// The commands are done, and then it is mended.
    pub(super) mends: bool,
}

pub(super) fn right(name: &str) -> Way {
    Way {
        group: NewGroup::new(&format!("doc-{name}"), "g5.xlarge", &[])
            .tag("drover:owner", "unclaimed"),
        region: EAST,
        steps: Vec::new(),
        world: |_, _, _| {},
        wide: false,
        kind: None,
        severity: "",
        beside: Vec::new(),
        says: "",
        command: "",
        mends: false,
    }
}

pub(super) fn wrong(name: &str, severity: &'static str, kind: &'static str) -> Way {
    Way {
        kind: Some(kind),
        severity,
        ..right(name)
    }
}

impl Way {
    pub(super) fn group(mut self, change: impl FnOnce(&mut NewGroup)) -> Self {
        change(&mut self.group);
        self
    }

    pub(super) fn tag(mut self, key: &str, value: &str) -> Self {
        self.group.tags.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn call(
        mut self,
        action: &'static str,
        form: &[(&'static str, &'static str)],
    ) -> Self {
        self.steps.push(Step::Call(action, form.to_vec()));
        self
    }

    pub(super) fn suspended(self, process: &'static str) -> Self {
        self.call(
            "SuspendProcesses",
            &[("ScalingProcesses.member.1", process)],
        )
    }

    pub(super) fn resumed(self, process: &'static str) -> Self {
        self.call("ResumeProcesses", &[("ScalingProcesses.member.1", process)])
    }

    pub(super) fn deed(mut self, deed: Deed) -> Self {
        self.steps.push(Step::Deed(deed));
        self
    }

    pub(super) fn world(mut self, world: World) -> Self {
        self.world = world;
        self
    }

    pub(super) fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    pub(super) fn beside(mut self, kinds: &[&'static str]) -> Self {
        self.beside = kinds.to_vec();
        self
    }

    pub(super) fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    /// The command is shown.
    pub(super) fn by(mut self, command: &'static str) -> Self {
        self.command = command;
        self
    }

    /// The command is shown, done, and does it.
    pub(super) fn mended_by(self, command: &'static str) -> Self {
        Self {
            mends: true,
            ..self.by(command)
        }
    }

    pub(super) fn expected(&self) -> Vec<&'static str> {
        let mut kinds: Vec<_> = self.kind.into_iter().chain(self.beside.clone()).collect();
        kinds.sort_unstable();
        kinds
    }
}

/// All of them, over the regions.
fn ways() -> Vec<Way> {
    let mut all = table::all();
    let mut next = REGIONS.iter().cycle();
    for way in all.iter_mut().filter(|way| way.region == EAST) {
        way.region = next.next().expect("one of them");
        way.group.zones = vec![format!("{}a", way.region)];
    }
    all
}

/// The kinds that the document lists; a test beside the findings holds the two together.
fn kinds() -> Vec<String> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/auto-scaling-groups.md"
    );
    let doc = std::fs::read_to_string(path).expect("the document");
    let table = doc.split("### What it finds").nth(1).expect("its section");
    let table = table.split("\n## ").next().expect("its end");
    let cell = |line: &str| {
        line.strip_prefix("| `")?
            .split('`')
            .next()
            .map(str::to_owned)
    };
    table.lines().filter_map(cell).collect()
}

impl Clinic {
    fn prepare(&self, way: &Way) {
        let name = way.group.name.as_str();
        let call = |action: &str, form: &[(&str, &str)]| {
            let form: Vec<_> = form
                .iter()
                .copied()
                .chain([("AutoScalingGroupName", name)])
                .collect();
            let call = self
                .proxy
                .call(way.region, Service::AutoScaling, action, &form);
            RUNTIME
                .block_on(call)
                .unwrap_or_else(|e| panic!("{name}: {action}: {e}"))
        };
        let calm = [
            ("ScalingProcesses.member.1", "AZRebalance"),
            ("ScalingProcesses.member.2", "ReplaceUnhealthy"),
        ];
        call("SuspendProcesses", &calm);
        for step in &way.steps {
            match step {
                Step::Call(action, form) => {
                    let member = form.iter().any(|(_, v)| *v == "MEMBER").then(|| {
                        let group = call(
                            "DescribeAutoScalingGroups",
                            &[("AutoScalingGroupNames.member.1", name)],
                        );
                        let after = group.split("<InstanceId>").nth(1).expect("a member");
                        after.split('<').next().expect("its id").to_owned()
                    });
                    let form: Vec<(&str, &str)> = form
                        .iter()
                        .map(|(k, v)| {
                            (
                                *k,
                                member.as_deref().filter(|_| *v == "MEMBER").unwrap_or(v),
                            )
                        })
                        .collect();
                    call(action, &form);
                }
                Step::Ec2(action, form) => {
                    let form: Vec<(&str, &str)> =
                        form.iter().map(|(k, v)| (*k, v.as_str())).collect();
                    let call = self.proxy.call(way.region, Service::Ec2, action, &form);
                    RUNTIME
                        .block_on(call)
                        .unwrap_or_else(|e| panic!("{name}: {action}: {e}"));
                }
                Step::Deed(deed) => {
                    RUNTIME.block_on(self.proxy.act(way.region, name, deed.clone()));
                }
            }
        }
    }

    /// Judges it, and what mends it where that can be done.
    fn check(&self, way: &Way) {
        let name = way.group.name.as_str();
        let (code, view) = self.survey(name, way.region);
        let found = view["findings"].as_array().expect("findings");
        assert_eq!(kinds_of(&view), way.expected(), "{name}: {view:#}");
        let must = found.iter().any(|f| f["severity"] == "must");
        assert_eq!(code, Some(i32::from(must)), "{name}: {view:#}");
        let Some(kind) = way.kind else {
            let silent = self
                .coordinator
                .cli(&["pools", "doctor", "--group", name, "--region", way.region]);
            let told = (silent.status.code(), silent.stdout, silent.stderr);
            assert_eq!(told, (Some(0), vec![], vec![]), "{name}");
            return;
        };
        let of_kind = |f: &&Value| f["kind"] == kind && f["words"].to_string().contains(way.says);
        let about = found.iter().find(of_kind);
        let about = about.unwrap_or_else(|| panic!("{name}: {:?} is not said: {view:#}", way.says));
        assert_eq!(about["severity"], way.severity, "{name}: {about}");
        let commands = about["commands"].as_array().expect("commands").iter();
        let commands: Vec<&str> = commands.filter_map(Value::as_str).collect();
        let lines = commands.join("\n");
        assert_eq!(lines.is_empty(), way.command.is_empty(), "{name}: {lines}");
        assert!(lines.contains(way.command), "{name}: {lines}");
        let drover = commands.iter().filter(|line| line.starts_with("drover "));
        drover.for_each(|line| shell::run(self, line));
        if way.mends {
            commands.iter().for_each(|line| shell::run(self, line));
            let (_, view) = self.survey(name, way.region);
            let mut left = way.beside.clone();
            left.sort_unstable();
            assert_eq!(
                kinds_of(&view),
                left,
                "{name}: not mended by {lines}: {view:#}"
            );
        }
    }
}

fn kinds_of(view: &Value) -> Vec<&str> {
    let found = view["findings"].as_array().expect("findings").iter();
    let mut kinds: Vec<&str> = found.filter_map(|f| f["kind"].as_str()).collect();
    kinds.sort_unstable();
    kinds
}

#[test]
fn every_kind_of_finding_has_a_group_that_is_wrong_in_that_way() {
    let known = kinds();
    assert!(known.len() > 30, "{known:?}");
    let ways = ways();
    for kind in &known {
        assert!(
            ways.iter().any(|way| way.kind == Some(kind)),
            "no group is set up for {kind}"
        );
    }
    for way in &ways {
        let all = way.expected();
        let strange: Vec<_> = all
            .iter()
            .filter(|kind| !known.iter().any(|k| k == *kind))
            .collect();
        assert!(strange.is_empty(), "{}: {strange:?}", way.group.name);
    }
}

#[test]
fn a_right_group_is_silent_and_each_wrong_one_is_found_alone_with_what_mends_it() {
    let ways = ways();
    let there = |way: &&Way| !["doc-nowhere", "doc-region"].contains(&way.group.name.as_str());
    let mut scenario = Scenario::default();
    for way in ways.iter().filter(|way| !way.wide) {
        (way.world)(&mut scenario, way.region, &way.group.name);
    }
    let groups: Vec<_> = ways
        .iter()
        .filter(there)
        .map(|way| (way.region, way.group.clone()))
        .collect();
    let low = ways.iter().find(|way| way.kind == Some("max_below_config"));
    let low = low.expect("a group whose pool may have more");
    let pool = format!(
        "[[pool]]\nname = \"low\"\nkind = \"asg\"\nregion = \"{}\"\ngroup = \"{}\"\nmax = 10\n",
        low.region, low.group.name
    );
    let clinic = Clinic::start_in(&groups, scenario, &pool);
    std::thread::scope(|threads| {
        for region in REGIONS {
            let here = ways.iter().filter(move |way| way.region == region);
            let clinic = &clinic;
            threads.spawn(move || here.filter(there).for_each(|way| clinic.prepare(way)));
        }
    });
    // What only looks changes nothing.
    let before = clinic.proxy.ledger().mutations.len();
    for way in ways.iter().filter(|way| way.kind.is_none()) {
        clinic.check(way);
    }
    assert_eq!(
        clinic.proxy.ledger().mutations.len(),
        before,
        "a survey only reads"
    );
    std::thread::scope(|threads| {
        for region in REGIONS.into_iter().chain(["us-east-9"]) {
            let here = ways.iter().filter(move |way| way.region == region);
            let clinic = &clinic;
            threads.spawn(move || {
                here.filter(|way| !way.wide && way.kind.is_some())
                    .for_each(|way| clinic.check(way));
            });
        }
    });
    for way in ways.iter().filter(|way| way.wide) {
        let mut scenario = Scenario::default();
        (way.world)(&mut scenario, way.region, &way.group.name);
        RUNTIME.block_on(clinic.proxy.set(scenario));
        clinic.check(way);
    }
    let ledger = clinic.proxy.ledger();
    assert!(ledger.troubles.is_empty(), "{:?}", ledger.troubles);
}
