//! Tests of the config file.

use super::build::join::address;
use super::*;

fn problems(text: &str) -> Vec<(usize, String, String)> {
    parse(text)
        .expect_err("must be refused")
        .into_iter()
        .map(|problem| {
            (
                problem.line,
                problem.key,
                format!("{}; {}", problem.message, problem.fix),
            )
        })
        .collect()
}

#[test]
fn a_minimal_file_is_enough() {
    let config = parse("coordinator = \"https://10.0.0.1:7443\"").unwrap();
    assert_eq!(config.coordinator.to_string(), "10.0.0.1:7443");
    assert_eq!(config.server_name, "coordinator.drover.internal");
    assert_eq!(config.state_dir, PathBuf::from("/var/lib/drover-agent"));
    assert_eq!(config.drain.executors, [ExecutorKind::Processes]);
    assert_eq!(config.drain.word_limit, Duration::from_secs(60));
    assert_eq!(config.metadata, Metadata::Auto);
    assert_eq!(config.notices.poll, Duration::from_secs(5));
    assert_eq!(config.notices.on_spot, OnSpot::Alone);
    assert_eq!(config.join, Join::Nothing);
}

#[test]
fn the_example_file_is_read() {
    let text = include_str!("../../drover-agent.example.toml");
    let config = parse(text).unwrap();
    assert_eq!(
        config.drain.executors,
        [ExecutorKind::Processes, ExecutorKind::Hooks]
    );
    assert_eq!(config.hooks.deadline, Duration::from_secs(60));
    assert!(!config.hooks.fail_open);
}

#[test]
fn the_commented_keys_of_the_example_are_read_too() {
    let token = format!("drover-join-v1.t.s.{}", "0".repeat(64));
    let text: String = include_str!("../../drover-agent.example.toml")
        .lines()
        .map(|line| match line.strip_prefix("#") {
            Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let text = text.replace("drover-join-v1...", &token);
    let config = parse(&text).unwrap();
    assert!(matches!(config.join, Join::Token(token) if token.id() == "t"));
    assert_eq!(config.drain.processes.len(), 1);
    assert!(config.gpu.library.is_some());
}

#[test]
fn all_problems_come_in_one_run_with_line_and_fix() {
    let text = r#"
cordinator = "https://x:1"
state_dir = "relative"
join_token = "nonsense"
[intervals]
report = 5
[gpu]
deadline = "2 parsecs"
[drain]
executors = ["processes", "kubernets", "processes"]
[[drain.process]]
nmae = "x"
[hooks]
on_failure = "shrug"
grace = "3h"
[log]
level = 7
[extra]
"#;
    let found = problems(text);
    let lines: Vec<(usize, &str)> = found
        .iter()
        .map(|(line, key, _)| (*line, key.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (1, "coordinator"),
            (2, "cordinator"),
            (3, "state_dir"),
            (4, "join_token"),
            (6, "intervals.report"),
            (8, "gpu.deadline"),
            (10, "drain.executors"),
            (10, "drain.executors"),
            (11, "drain.process[0].name"),
            (12, "drain.process[0].nmae"),
            (14, "hooks.on_failure"),
            (15, "hooks.grace"),
            (17, "log.level"),
            (18, "extra"),
        ]
    );
    assert!(
        found[1].2.contains("did you mean coordinator?"),
        "{}",
        found[1].2
    );
    assert!(found[4].2.contains("has no unit"), "{}", found[4].2);
    assert!(found[4].2.contains("\"5s\""), "{}", found[4].2);
    assert!(found[9].2.contains("did you mean name?"), "{}", found[9].2);
}

#[test]
fn broken_toml_is_told_with_its_line() {
    let found = problems("coordinator = \"https://x:1\"\nstate_dir = \n");
    assert_eq!(found[0].0, 2);
}

#[test]
fn a_token_beside_a_token_file_is_refused() {
    let found =
        problems("coordinator = \"https://x:1\"\njoin_token = \"a\"\njoin_token_file = \"/b\"");
    assert_eq!((found[0].0, found[0].1.as_str()), (3, "join_token_file"));
}

#[test]
fn instance_identity_needs_the_ca_metadata_and_no_token() {
    let hash = "ab".repeat(32);
    let found = |more: &str| {
        let text = format!("coordinator = \"https://x:1\"\n{more}");
        parse(&text).map(|config| config.join)
    };
    let method = "method = \"instance-identity\"";
    assert_eq!(
        found(&format!("[join]\n{method}\nca_sha256 = \"{hash}\"")),
        Ok(Join::InstanceIdentity {
            ca: CaHash([0xab; 32])
        })
    );
    assert_eq!(found("[join]\nmethod = \"token\""), Ok(Join::Nothing));
    for (more, line, key) in [
        (format!("[join]\n{method}"), 2, "join.ca_sha256"),
        (
            format!("[join]\n{method}\nca_sha256 = \"abab\""),
            4,
            "join.ca_sha256",
        ),
        (
            format!("[join]\nca_sha256 = \"{hash}\""),
            3,
            "join.ca_sha256",
        ),
        (
            format!("join_token_file = \"/nowhere\"\n[join]\n{method}\nca_sha256 = \"{hash}\""),
            3,
            "join.method",
        ),
        (
            format!("[join]\n{method}\nca_sha256 = \"{hash}\"\n[metadata]\nendpoint = \"off\""),
            5,
            "metadata.endpoint",
        ),
        ("[join]\nmethod = \"magic\"".to_owned(), 3, "join.method"),
        ("[join]\nmetod = \"token\"".to_owned(), 3, "join.metod"),
    ] {
        let problems = found(&more).unwrap_err();
        let told: Vec<(usize, &str)> = problems
            .iter()
            .map(|problem| (problem.line, problem.key.as_str()))
            .collect();
        assert_eq!(told, [(line, key)], "{more}");
    }
}

#[test]
fn log_levels() {
    let parsed = |level: &str| {
        parse(&format!(
            "coordinator = \"https://x:1\"\n[log]\nlevel = \"{level}\""
        ))
    };
    for good in [
        "info",
        "WARN",
        "off",
        "drover_agent=debug",
        "warn,drover_agent=trace",
    ] {
        assert!(parsed(good).is_ok(), "{good}");
    }
    for bad in [
        "loud",
        "info,loud",
        "drover_agent=loud",
        "=debug",
        "info;debug",
    ] {
        let found = parsed(bad).unwrap_err();
        assert_eq!((found[0].line, found[0].key.as_str()), (3, "log.level"));
        assert!(found[0].message.contains(bad), "{}", found[0].message);
    }
}

#[test]
fn addresses() {
    for (text, host, port) in [
        ("https://a.b:7443", "a.b", 7443),
        ("https://a.b:7443/", "a.b", 7443),
        ("https://[::1]:1", "::1", 1),
        ("https://127.0.0.1:65535", "127.0.0.1", 65535),
    ] {
        let host = host.to_owned();
        assert_eq!(address(text), Some(Address { host, port }), "{text}");
    }
    for text in [
        "a:1",
        "http://a:1",
        "https://a",
        "https://:1",
        "https://a:0",
        "https://a:1/x",
        "https://a:99999",
        "https://::1:1",
        "https://u@a:1",
    ] {
        assert_eq!(address(text), None, "{text}");
    }
}
