//! Tests of the config file: the example, and a table of what is refused with line and fix.

use super::live::{Live, LiveNode, against_live};
use super::*;
use drover_core::model::{InstanceId, MicroUsd, Mode, NodeId, PoolId, Quota};

const EXAMPLE: &str = include_str!("../../drover.example.toml");

fn pool(more: &str) -> String {
    format!(
        "[[pool]]\nname = \"a\"\nkind = \"asg\"\nsite = \"s\"\nregion = \"us-west-2\"\ngroup = \"g\"\nmax = 5\n{more}"
    )
}

fn find(more: &str) -> String {
    format!("[[aws.discover]]\nregions = [\"us-east-1\"]\n{more}")
}

#[test]
fn the_site_of_a_group_is_its_region_unless_the_file_says_otherwise() {
    let text = |kind: &str, site: &str| {
        format!(
            "[[pool]]\nname = \"a\"\nkind = \"{kind}\"\n{site}region = \"us-west-2\"\ngroup = \"g\"\nmax = 5\n"
        )
    };
    for (site, expect) in [("", "us-west-2"), ("site = \"room\"\n", "room")] {
        let config = parse(&text("asg", site)).expect("a config");
        assert_eq!(config.pools[0].site.as_str(), expect);
    }
    let sim = "[[pool]]\nname = \"a\"\nkind = \"sim\"\ngroup = \"g\"\nmax = 5\n";
    let said = format!("{:?}", parse(sim).expect_err("no site"));
    assert!(
        said.contains("site") && said.contains("is required"),
        "{said}"
    );
}

#[test]
fn the_example_is_the_contract() {
    let config = parse(EXAMPLE).expect("the example is right");
    assert_eq!(config.control, Control::default());
    assert_eq!(config.pools.len(), 3);
    let rack = config.pool(&PoolId::from("rack")).expect("rack");
    assert_eq!((rack.mode, rack.max), (Mode::Full, 2));
    let PoolSource::Static(hosts) = &rack.source else {
        panic!("static")
    };
    assert_eq!(hosts.allocatable.gpus, 4);
    assert_eq!(hosts.allocatable.memory.0, 64 << 30);
    let p2 = config.pool(&PoolId::from("p2-usw2")).expect("p2");
    assert_eq!((p2.mode, p2.quota), (Mode::Observe, Quota::Percent(10)));
}

#[test]
fn every_commented_key_of_the_example_is_read() {
    let text: String = EXAMPLE
        .lines()
        .map(|line| {
            let bare = line.trim_start_matches("# ");
            let key = bare.split(" = ").next().unwrap_or_default();
            let is_key = bare.contains(" = ")
                && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                && key != "world"
                && key != "plans_dir";
            let is_table = bare.starts_with('[') && bare.ends_with(']');
            if line.starts_with("# ") && !is_key && !is_table {
                String::from("\n")
            } else {
                format!("{bare}\n")
            }
        })
        .collect();
    let config = parse(&text).expect("every key is known");
    assert_eq!(config.control.max_gpus, Some(2_000));
    let pool = &config.pools[1];
    assert_eq!(pool.prices["p2.16xlarge"], MicroUsd(14_400_000));
    assert_eq!(pool.idle_gpu_below, Some(5));
    assert!(pool.anticipate && !config.pools[0].anticipate);
    assert_eq!(pool.expire_after, Some(Millis::minutes(30 * 24 * 60)));
    assert_eq!(pool.disruption.len(), 1);
    let working = &pool.disruption[0];
    assert_eq!(
        (working.most, working.strategies.len()),
        (Quota::Count(0), 3)
    );
    assert!(working.window.is_some());
    let PoolSource::Asg(group) = &pool.source else {
        panic!("a group")
    };
    assert_eq!((group.zones.len(), group.instance_types.len()), (2, 2));
    assert_eq!(config.aws.discover[0].regions.len(), 2);
    assert_eq!(config.aws.queues.len(), 1);
    assert_eq!(pool.notices.launch_hooks, ["drover-ready"]);
    assert_eq!(pool.taints["dedicated"], "ml");
    assert_eq!(
        pool.notices.terminating_deadline,
        Some(Millis::minutes(120))
    );
    let control = &config.control;
    assert!(control.consolidate);
    assert_eq!(
        control.teams["vision"].max_cost,
        Some(MicroUsd(120_000_000))
    );
    let room = &control.headroom[0];
    assert_eq!(
        (room.count, room.unit.gpus, room.unit.cpu.0),
        (2, 4, 16_000)
    );
    assert_eq!(room.constraints.pools.len(), 1);
    assert_eq!(room.constraints.requirements[0].key, "team");
}

#[test]
fn what_is_refused_and_how_to_mend_it() {
    let fixed = |host: &str| {
        format!("[[pool]]\nname = \"a\"\nkind = \"static\"\nsite = \"s\"\nhosts = [\"{host}\"]\n")
    };
    let room = |keys: &str| format!("[[control.headroom]]\n{keys}");
    let budget = |keys: &str| pool(&format!("[[pool.disruption]]\n{keys}"));
    let two = |second: &str| format!("{}{}", pool(""), second);
    for (text, line, key, says) in [
        ("[server]\nlisten_on = \"x\"\n".to_owned(), 2, "server.listen_on", "unknown key"),
        (
            "[[aws.queue]]\nregion = \"us-west-2\"\n".to_owned(),
            1,
            "aws.queue[0].url",
            "is required",
        ),
        (
            pool("[pool.notices]\nrebalance = \"replaced\"\n"),
            9,
            "pool[0].notices.rebalance",
            "\"replace\"",
        ),
        ("[control]\nintervall = \"1s\"\n".to_owned(), 2, "control.intervall", "did you mean interval?"),
        ("[control]\ninterval = 10\n".to_owned(), 2, "control.interval", "write \"10s\""),
        ("[control]\ninterval = \"10\"\n".to_owned(), 2, "control.interval", "no unit"),
        ("[control]\nbreaker_fleet_percent = 60\n".to_owned(), 2, "control.breaker_fleet_percent", "from 1 to 50"),
        ("[control]\nsilence = \"5s\"\n".to_owned(), 1, "control.silence", "at least twice"),
        ("[control]\nfull_interval = \"1s\"\n".to_owned(), 1, "control.full_interval", "at least report_interval"),
        ("[control]\ninterval = \"1s\"\ninterval = \"2s\"\n".to_owned(), 3, "", "interval stands twice"),
        (pool("spare = 6\n"), 8, "pool[0].spare", "above max 5"),
        (fixed("rack 1"), 5, "pool[0].hosts", "no host name"),
        (fixed("rack/1"), 5, "pool[0].hosts", "no host name"),
        ("[server]\nstate_dir = \"here\"\n".to_owned(), 2, "server.state_dir", "absolute"),
        ("[server]\nlisten = \"7443\"\n".to_owned(), 2, "server.listen", "no address"),
        ("[server]\nhttp = \"9464\"\n".to_owned(), 2, "server.http", "no address"),
        ("[server]\nhttp = 9464\n".to_owned(), 2, "server.http", "write http = \"127.0.0.1:9464\""),
        ("[server]\nhttp = \"127.0.0.1:7443\"\n".to_owned(), 1, "server.http", "the port of listen"),
        (pool("min = 6\n"), 8, "pool[0].min", "above max 5"),
        (pool("idle_after = \"10\"\n"), 8, "pool[0].idle_after", "no unit"),
        (pool("removal_quota = \"10\"\n"), 8, "pool[0].removal_quota", "percentage"),
        (pool("mode = \"on\"\n"), 8, "pool[0].mode", "\"observe\""),
        (pool("prices = { x = -1.0 }\n"), 8, "pool[0].prices.x", "no amount"),
        (pool("labels = { x = 1 }\n"), 8, "pool[0].labels.x", "is a"),
        (
            pool("taints = { x = \"ml:NoSchedul\" }\n"),
            8,
            "pool[0].taints.x",
            "\"NoSchedul\" is no effect of a taint; write { key = \"VALUE:NoSchedule\" }",
        ),
        (pool("taints = { x = 1 }\n"), 8, "pool[0].taints.x", "is a"),
        (find("taints = { x = \"a:b\" }\n"), 3, "aws.discover[0].taints.x", "no effect"),
        (pool("").replace("\"a\"", "\"\""), 2, "pool[0].name", "is empty"),
        (pool("").replace("\"a\"", "\"a b/c\""), 2, "pool[0].name", "no plain name"),
        (pool("").replace("kind = \"asg\"\n", ""), 1, "pool[0].kind", "required"),
        (pool("").replace("max = 5\n", ""), 1, "pool[0].max", "required"),
        (pool("").replace("region = \"us-west-2\"\n", ""), 1, "pool[0].region", "required"),
        (pool("").replace("us-west-2", "us-west2"), 5, "pool[0].region", "did you mean \"us-west-2\"?"),
        (pool("").replace("us-west-2", "us-west-2b"), 5, "pool[0].region", "is a zone"),
        (pool("role_arn = \"drover\"\n"), 8, "pool[0].role_arn", "no ARN of a role"),
        (pool("zones = []\n"), 1, "pool[0].zones", "empty list"),
        (pool("zones = [\"us-east-1a\"]\n"), 8, "pool[0].zones", "no zone of us-west-2"),
        (pool("zones = [\"us-west-2a\", \"us-west-2a\"]\n"), 8, "pool[0].zones", "again"),
        (pool("instance_types = [\"big\"]\n"), 8, "pool[0].instance_types", "no instance type"),
        (find("max = 1\n").replace("regions", "region"), 2, "aws.discover[0].region", "did you mean regions?"),
        (find("").replace("us-east-1", "us-east-one"), 2, "aws.discover[0].regions", "no region of AWS"),
        (find("").replace("[\"us-east-1\"]", "[]"), 1, "aws.discover[0].regions", "empty list"),
        (format!("{}{}", find(""), find("")), 4, "aws.discover[1].regions", "again"),
        (find("min = 3\nmax = 2\n"), 3, "aws.discover[0].min", "above max 2"),
        (find("spare = 3\nmax = 2\n"), 3, "aws.discover[0].spare", "above max 2"),
        (find("hosts = [\"a\"]\n"), 3, "aws.discover[0].hosts", "unknown"),
        ("[aws]\ndiscover_every = 5\n".to_owned(), 2, "aws.discover_every", "no unit"),
        (two(&pool("").replace("\"a\"", "\"b\"")), 13, "pool[1].group", "owned by pool a"),
        (two(&pool("").replace("\"g\"", "\"h\"")), 9, "pool[1].name", "earlier pool"),
        (
            "[[pool]]\nname = \"a\"\nkind = \"static\"\nsite = \"s\"\nhosts = [\"x\", \"x\"]\n".to_owned(),
            5, "pool[0].hosts", "each host once",
        ),
        (
            "[[pool]]\nname = \"a\"\nkind = \"static\"\nsite = \"s\"\nhosts = []\n".to_owned(),
            1, "pool[0].hosts", "empty list",
        ),
        (
            "[[pool]]\nname = \"a\"\nkind = \"static\"\nsite = \"s\"\nhosts = [\"x\"]\nmemory = \"64\"\n".to_owned(),
            6, "pool[0].memory", "no unit",
        ),
        (
            "[[pool]]\nname = \"a\"\nkind = \"sim\"\nsite = \"s\"\ngroup = \"g\"\nmax = 1\n".to_owned(),
            1, "sim", "kind sim",
        ),
        ("[sim]\ncloud = \"http://10.0.0.1:1\"\n".to_owned(), 2, "sim.cloud", "loopback"),
        ("[server\n".to_owned(), 1, "", "TOML"),
        ("[control]\nconsolidate = \"yes\"\n".to_owned(), 2, "control.consolidate", "consolidate = true"),
        (room("count = 1\n"), 1, "control.headroom[0].name", "required"),
        (room("name = \"a\"\ngpus = 1\n"), 1, "control.headroom[0].count", "required"),
        (room("name = \"a\"\ncount = 1\n"), 1, "control.headroom[0].gpus", "a unit is nothing"),
        (room("name = \"a\"\ncount = 1\ngpus = 1\ngpu_milli = 500\n"), 5, "control.headroom[0].gpu_milli", "beside gpus"),
        (room("name = \"a\"\ncount = 1\ngpu_milli = 1000\n"), 4, "control.headroom[0].gpu_milli", "from 1 to 999"),
        (room("name = \"a\"\ncount = 1\ncpus = 0.1234\n"), 4, "control.headroom[0].cpus", "no number of CPUs"),
        (room("name = \"a\"\ncount = 1\ngpus = 1\npools = [\"b\"]\n"), 5, "control.headroom[0].pools", "no pool"),
        (room("name = \"a\"\ncount = 1\ngpus = 1\n[[control.headroom]]\nname = \"a\"\n"), 6, "control.headroom[1].name", "earlier headroom"),
        ("[control.team.vision]\n".to_owned(), 1, "control.team.vision.max_gpus", "limits nothing"),
        ("[control.team.vision]\nmax_gpu = 1\n".to_owned(), 2, "control.team.vision.max_gpu", "did you mean max_gpus?"),
        ("[control]\nteam = 5\n".to_owned(), 2, "control.team", "[control.team.NAME]"),
        (pool("idle_gpu_below = 5\n"), 8, "pool[0].idle_gpu_below", "\"5%\""),
        (pool("idle_gpu_below = \"0%\"\n"), 8, "pool[0].idle_gpu_below", "never undershot"),
        (pool("expire_after = \"30\"\n"), 8, "pool[0].expire_after", "no unit"),
        (budget("nodes = 1\n"), 8, "pool[0].disruption[0].name", "required"),
        (budget("name = \"n\"\n"), 8, "pool[0].disruption[0].nodes", "required"),
        (budget("name = \"n\"\nnodes = \"5\"\n"), 10, "pool[0].disruption[0].nodes", "percentage"),
        (budget("name = \"n\"\nnodes = 0\nreasons = [\"Empty\"]\n"), 11, "pool[0].disruption[0].reasons", "no strategy of removal"),
        (budget("name = \"n\"\nnodes = 0\nschedule = \"0 9 * * *\"\n"), 8, "pool[0].disruption[0].schedule", "without duration"),
        (budget("name = \"n\"\nnodes = 0\nschedule = \"0 25 * * *\"\nduration = \"1h\"\n"), 11, "pool[0].disruption[0].schedule", "no schedule"),
        (budget("name = \"n\"\nnodes = 0\nschedule = \"0 9 * * *\"\nduration = \"1h\"\ntime_zone = \"Berlin\"\n"), 13, "pool[0].disruption[0].time_zone", "time zone database"),
    ] {
        let problems = parse(&text).expect_err(&text);
        assert!(
            problems.iter().any(|problem| problem.line == line
                && problem.key == key
                && format!("{}; {}", problem.message, problem.fix).contains(says)),
            "{text}\n{problems:#?}"
        );
    }
}

#[test]
fn sc_91_a_taint_of_the_config_means_what_the_same_tag_means() {
    let text = pool(
        "taints = { dedicated = \"ml:NoSchedule\", gpu = \":NoExecute\", soft = \"x:PreferNoSchedule\", bare = \"ml\" }\n",
    );
    let taints = &parse(&text).expect("right").pools[0].taints;
    let found: Vec<_> = taints
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(found, [("bare", "ml"), ("dedicated", "ml"), ("gpu", "")]);
}

#[test]
fn a_config_without_pools_is_warned_of() {
    let warnings = parse("").expect("an empty file is right").warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("no pools: nothing will ever grow"));
    assert!(parse(EXAMPLE).expect("right").warnings().is_empty());
}

#[test]
fn all_problems_come_in_one_run_with_file_and_line() {
    let text = format!(
        "[control]\ninterval = 10\nno_such = 1\n{}",
        pool("min = 6\nspare = -1\n")
    );
    let problems = parse(&text).expect_err("four problems");
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 3, 11, 12]);
    let shown = FileError::Wrong {
        path: "/etc/drover.toml".into(),
        problems,
    }
    .to_string();
    assert!(
        shown.starts_with("/etc/drover.toml:2: control.interval has no unit: 10; write \"10s\"")
    );
    assert_eq!(shown.lines().count(), 4);
}

#[test]
fn a_config_push_shows_what_is_gained_and_lost() {
    let config = parse(EXAMPLE).expect("the example is right");
    let node = |id: &str, name: &str, pool: &str| LiveNode {
        id: NodeId::from(id),
        name: name.to_owned(),
        pool: Some(PoolId::from(pool)),
    };
    let live = Live {
        discovered: Default::default(),
        pools: ["rack", "p2-usw2", "old"].map(PoolId::from).into(),
        nodes: vec![
            node("n1", "titan-01", "rack"),
            node("n2", "titan-09", "rack"),
            node("n3", "ip-1", "old"),
        ],
    };
    let found = against_live(&config, &live);
    assert_eq!(found.pools_gained, [PoolId::from("sim-a")]);
    assert_eq!(found.pools_lost, [PoolId::from("old")]);
    assert_eq!(
        found.hosts_gained,
        [(PoolId::from("rack"), InstanceId::from("titan-02"))]
    );
    assert_eq!(found.nodes_lost.len(), 2);
    assert!(!found.is_empty());
    assert_eq!(found.lines().len(), 5);
}

#[test]
fn places_to_look_for_groups_have_the_terms_of_pools() {
    let role = "arn:aws:iam::123456789012:role/drover";
    let text = find(&format!(
        "role_arn = \"{role}\"\nidle_after = \"3m\"\nlabels = {{ team = \"vision\" }}\n\
         [[aws.discover.disruption]]\nname = \"n\"\nnodes = 0\n[aws]\ndiscover_every = \"1m\"\n"
    ));
    // The table of the API may stand after its places.
    let config = parse(&text).expect("right");
    assert_eq!(config.aws.discover_every, Millis::minutes(1));
    let found = &config.aws.discover[0];
    assert_eq!(found.role_arn.as_deref(), Some(role));
    assert_eq!((found.max, found.site.clone()), (None, None));
    assert_eq!(
        found.terms.mode,
        Mode::Observe,
        "observe unless said otherwise"
    );
    assert_eq!(found.terms.idle_after, Millis::minutes(3));
    assert_eq!(found.terms.disruption.len(), 1);
    assert!(config.warnings().is_empty(), "pools may be found");
    // The same region of another account is another place.
    let two = format!("{}{}", find(""), find(&format!("role_arn = \"{role}\"\n")));
    assert_eq!(parse(&two).expect("right").aws.discover.len(), 2);
}

#[test]
fn a_group_of_another_account_is_another_group() {
    let role = "role_arn = \"arn:aws:iam::123456789012:role/drover\"\n";
    let other = pool(role).replace("\"a\"", "\"b\"");
    let config = parse(&format!("{}{other}", pool(""))).expect("right");
    let PoolSource::Asg(group) = &config.pools[1].source else {
        panic!("a group")
    };
    assert!(group.role_arn.is_some());
    assert_eq!(config.pools[1].origin, Origin::File);
}

#[test]
fn instance_identity_names_accounts_and_a_certificate_of_its_own_for_each_region() {
    use drover_tests::identity_document::Signer;
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (first, second) = (Signer::first(), Signer::second());
    let east = file("us-east-1.pem", first.certificate_pem());
    let west = file("us-west-2.pem", second.certificate_pem());
    let same = file("eu-west-1.pem", first.certificate_pem());
    let none = file("eu-west-2.pem", "hello");
    let both = file(
        "eu-west-3.pem",
        &format!("{}{}", first.certificate_pem(), second.certificate_pem()),
    );
    let curve = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("a certificate");
    let curve = file("sa-east-1.pem", &curve.cert.pem());
    let certificate = file("certificate.pem", second.certificate_pem());
    let text = |accounts: &str, certificates: &[&String]| {
        format!(
            "[enrolment.instance_identity]\naccounts = {accounts}\ncertificates = {certificates:?}\n"
        )
    };
    let ours = "[\"123456789012\"]";
    let config = parse(&text(ours, &[&east, &west])).expect("all is right");
    let found = config.enrolment.instance_identity.expect("it is set");
    assert_eq!(found.within, Millis::minutes(15));
    assert_eq!(
        found.certificates.keys().collect::<Vec<_>>(),
        ["us-east-1", "us-west-2"]
    );
    assert_eq!(
        parse("").expect("all is right").enrolment,
        Enrolment::default()
    );
    let missing = dir.path().join("us-east-2.pem").display().to_string();
    for (text, line, key, says) in [
        (text("[\"1234\"]", &[&east]), 2, "accounts", "12 digits"),
        (text("[]", &[&east]), 1, "accounts", "no account"),
        (text(ours, &[]), 1, "certificates", "no certificate"),
        (text(ours, &[&missing]), 3, "certificates", "cannot be read"),
        (
            text(ours, &[&none]),
            3,
            "certificates",
            "no certificate in PEM",
        ),
        (text(ours, &[&both]), 3, "certificates", "several"),
        (text(ours, &[&curve]), 3, "certificates", "no RSA key"),
        (
            text(ours, &[&certificate]),
            3,
            "certificates",
            "named after its region",
        ),
        (
            text(ours, &[&east, &same]),
            3,
            "certificates",
            "region us-east-1 as well",
        ),
        (
            text(ours, &[&east, &east]),
            3,
            "certificates",
            "second certificate",
        ),
        (
            format!("{}within = \"2h\"\n", text(ours, &[&east])),
            4,
            "within",
            "out of range",
        ),
        (
            format!("{}acounts = []\n", text(ours, &[&east])),
            4,
            "acounts",
            "did you mean accounts?",
        ),
    ] {
        let problems = parse(&text).expect_err(&text);
        let told: Vec<_> = problems
            .iter()
            .map(|problem| (problem.line, problem.key.as_str()))
            .collect();
        assert_eq!(
            told,
            [(line, format!("enrolment.instance_identity.{key}").as_str())],
            "{text}"
        );
        let said = format!("{}; {}", problems[0].message, problems[0].fix);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn pools_that_were_discovered_stay_while_somebody_looks_there() {
    let found = PoolId::from("found");
    let live = Live {
        pools: [found.clone()].into(),
        discovered: [(found.clone(), "us-east-1".to_owned())].into(),
        nodes: vec![LiveNode {
            id: NodeId::from("n1"),
            name: "h1".to_owned(),
            pool: Some(found.clone()),
        }],
    };
    assert!(against_live(&parse(&find("")).expect("right"), &live).is_empty());
    let elsewhere = find("").replace("us-east-1", "us-east-2");
    let change = against_live(&parse(&elsewhere).expect("right"), &live);
    assert_eq!(
        (change.pools_lost, change.nodes_lost.len()),
        (vec![found], 1)
    );
}
