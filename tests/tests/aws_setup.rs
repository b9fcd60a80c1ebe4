//! What README's "Run it on AWS" hands out: Terraform, permissions, units, the provisioning script. Terraform's aws
//! provider is not needed: what follows from the variables is planned, the resources are read.
//!
//! Run by `cargo xtask test`, which says where terraform is (`DROVER_TERRAFORM`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_owned()
}

fn terraform_dir() -> PathBuf {
    root().join("packer/terraform")
}

/// terraform without a user's own settings, and without the network.
fn terraform(dir: &Path, args: &[&str]) -> Output {
    let program = std::env::var("DROVER_TERRAFORM").unwrap_or_else(|_| "terraform".to_owned());
    let settings = dir.join("no-settings.tfrc");
    fs::write(&settings, "").expect("written");
    let output = Command::new(&program)
        .args(args)
        .current_dir(dir)
        .env("TF_CLI_CONFIG_FILE", &settings)
        .env("CHECKPOINT_DISABLE", "1")
        .env("TF_IN_AUTOMATION", "1")
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "{program}: {error}; get terraform 1.11 or newer, or name it in DROVER_TERRAFORM"
            )
        });
    fs::remove_file(settings).expect("removed");
    output
}

fn passed(output: &Output) {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("known").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn body(path: &str) -> hcl::Body {
    let text = fs::read_to_string(terraform_dir().join(path)).expect("readable");
    hcl::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn block<'a>(body: &'a hcl::Body, names: &[&str]) -> &'a hcl::Body {
    let found = body.blocks().find(|block| {
        block.identifier() == names[0]
            && block
                .labels()
                .iter()
                .map(hcl::structure::BlockLabel::as_str)
                .eq(names[1..].iter().copied())
    });
    found.unwrap_or_else(|| panic!("no block {names:?}")).body()
}

fn attribute(body: &hcl::Body, key: &str) -> String {
    let found = body.attributes().find(|attribute| attribute.key() == key);
    let found = found.unwrap_or_else(|| panic!("no attribute {key}"));
    hcl::format::to_string(found.expr()).expect("an expression")
}

#[test]
fn terraform_is_formatted() {
    let scratch = tempfile::tempdir().expect("a directory");
    copy(&terraform_dir(), scratch.path());
    passed(&terraform(
        scratch.path(),
        &["fmt", "-check", "-recursive", "-diff"],
    ));
}

#[test]
fn names_tags_and_config_follow_from_the_pools() {
    let scratch = tempfile::tempdir().expect("a directory");
    copy(&terraform_dir().join("modules/groups"), scratch.path());
    passed(&terraform(scratch.path(), &["init", "-backend=false"]));
    passed(&terraform(scratch.path(), &["test", "-no-color"]));
}

/// The lines of README's step 3 before `terraform init`, as they stand there, run in the repository with `home` as home.
fn follow_the_readme(home: &Path) -> PathBuf {
    let readme = fs::read_to_string(root().join("README.md")).expect("readable");
    let step = readme.split_once("3. **Groups, queues, permissions.**");
    let (step, _) = step
        .expect("step 3")
        .1
        .split_once("terraform init &&")
        .expect("init");
    let lines: Vec<&str> = step
        .lines()
        .filter_map(|line| line.strip_prefix("       "))
        .collect();
    let output = Command::new("sh")
        .args(["-euc", &format!("{}\npwd", lines.join("\n"))])
        .current_dir(root())
        .env("HOME", home)
        .output()
        .expect("sh runs");
    passed(&output);
    PathBuf::from(String::from_utf8(output.stdout).expect("UTF-8").trim_end())
}

/// The whole root is planned with the two modules that need AWS replaced by their variables alone.
#[test]
fn the_two_regions_plan_and_their_config_is_one_that_drover_takes() {
    let scratch = tempfile::tempdir().expect("a directory");
    let dir = follow_the_readme(scratch.path());
    assert!(
        dir.starts_with(scratch.path().canonicalize().expect("there")),
        "{dir:?}"
    );
    for module in ["group", "notices", "permissions"] {
        let dir = dir.join("../modules").join(module);
        for entry in fs::read_dir(&dir).expect("readable") {
            let path = entry.expect("readable").path();
            let Some("tf") = path.extension().and_then(|e| e.to_str()) else {
                continue;
            };
            let body: hcl::Body =
                hcl::from_str(&fs::read_to_string(&path).expect("readable")).expect("HCL");
            let kept = body
                .into_iter()
                .filter(|s| matches!(s, hcl::Structure::Block(b) if b.identifier() == "variable"));
            let kept = hcl::Body::from_iter(kept);
            fs::write(&path, hcl::to_string(&kept).expect("HCL")).expect("written");
        }
    }
    let main = fs::read_to_string(dir.join("main.tf")).expect("readable");
    let main: hcl::Body = hcl::from_str(&main).expect("HCL");
    let without_providers = main.into_iter().filter_map(|structure| match structure {
        hcl::Structure::Block(block) if ["terraform", "provider"].contains(&block.identifier()) => {
            None
        }
        hcl::Structure::Block(mut block) => {
            let absent = ["providers", "queue_arns"];
            block.body = block
                .body
                .into_iter()
                .filter(|s| !matches!(s, hcl::Structure::Attribute(a) if absent.contains(&a.key())))
                .collect();
            Some(hcl::Structure::Block(block))
        }
        attribute => Some(attribute),
    });
    let main = hcl::Body::from_iter(without_providers);
    fs::write(dir.join("main.tf"), hcl::to_string(&main).expect("HCL")).expect("written");
    // What the modules beside them would say of queues and roles is not there.
    let outputs = fs::read_to_string(dir.join("outputs.tf")).expect("readable");
    let kept: String = outputs
        .split_inclusive("\n}\n")
        .filter(|block| block.contains("output \"drover_toml\""))
        .collect();
    fs::write(dir.join("outputs.tf"), kept).expect("written");
    // Every variable that the example shows is set, those in comments too.
    let variables = fs::read_to_string(dir.join("terraform.tfvars")).expect("readable");
    let variables = variables
        .replace("# trusted =", "trusted =")
        .replace("# taints =", "taints =");
    fs::write(dir.join("terraform.tfvars"), variables).expect("written");

    passed(&terraform(&dir, &["init", "-backend=false"]));
    let applied = terraform(&dir, &["apply", "-auto-approve", "-no-color"]);
    passed(&applied);
    let told = String::from_utf8_lossy(&applied.stdout);
    assert!(!told.contains("undeclared variable"), "{told}");
    assert!(!told.contains("Warning"), "{told}");
    let output = terraform(&dir, &["output", "-raw", "drover_toml"]);
    passed(&output);
    let pools = String::from_utf8(output.stdout).expect("UTF-8");
    let config = scratch.path().join("drover.toml");
    let state = scratch.path().join("state");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nstate_dir = {:?}\n\n{pools}",
        state.to_str().expect("UTF-8")
    );
    fs::write(&config, &text).expect("written");
    let checked = Command::new(drover_tests::programs::drover())
        .args(["check-config", "--config"])
        .arg(&config)
        .output()
        .expect("drover runs");
    passed(&checked);
    assert_eq!(text.matches("[[pool]]").count(), 2);
    let taint = "taints = { \"dedicated\" = \"ml:NoSchedule\" }";
    assert_eq!(text.matches(taint).count(), 1, "{text}");
    let permissions = body("two-regions/main.tf");
    let permissions = block(&permissions, &["module", "permissions"]);
    assert_eq!(attribute(permissions, "trusted"), "var.trusted");
}

#[test]
fn a_group_is_made_as_the_doctor_wants_it() {
    let main = body("modules/group/main.tf");
    let group = block(&main, &["resource", "aws_autoscaling_group", "this"]);
    for (key, value) in [
        ("protect_from_scale_in", "true"),
        ("capacity_rebalance", "false"),
        ("min_size", "0"),
        ("desired_capacity", "0"),
        ("force_delete", "false"),
        ("health_check_type", "\"EC2\""),
    ] {
        assert_eq!(attribute(group, key), value, "{key}");
    }
    let suspended = attribute(group, "suspended_processes");
    for process in ["AZRebalance", "ReplaceUnhealthy"] {
        assert!(suspended.contains(process), "{suspended}");
    }
    for other in ["max_instance_lifetime", "instance_refresh"] {
        assert!(
            !group.attributes().any(|a| a.key() == other)
                && !group.blocks().any(|b| b.identifier() == other),
            "{other} ends members whatever they do"
        );
    }
    // Terraform must not take back what Drover does.
    let ignored = attribute(block(group, &["lifecycle"]), "ignore_changes");
    for changed in ["desired_capacity", "tag", "suspended_processes"] {
        assert!(ignored.contains(changed), "{ignored}");
    }
    let template = block(&main, &["resource", "aws_launch_template", "this"]);
    let metadata = block(template, &["metadata_options"]);
    assert_eq!(attribute(metadata, "http_tokens"), "\"required\"");
    assert_eq!(attribute(metadata, "http_put_response_hop_limit"), "1");
    let user_data = terraform_dir().join("modules/group/user-data.sh.tftpl");
    let user_data = fs::read_to_string(user_data).expect("readable");
    assert!(
        !user_data.contains("token ="),
        "no secret in the user data:\n{user_data}"
    );
}

#[test]
fn the_coordinators_role_has_what_its_mode_needs_and_no_more() {
    for (mode, more) in [
        ("observe", &["--doctor"][..]),
        ("grow", &["--doctor", "--fix"]),
        ("full", &["--doctor", "--fix"]),
    ] {
        let printed = Command::new(drover_tests::programs::drover())
            .args(["pools", "policy", "--mode", mode])
            .args(more)
            .output()
            .expect("drover runs");
        passed(&printed);
        let file = terraform_dir().join(format!("modules/permissions/{mode}.json"));
        let kept = fs::read_to_string(&file).expect("readable");
        let printed = String::from_utf8(printed.stdout).expect("UTF-8");
        assert_eq!(
            kept,
            printed,
            "write it anew: drover pools policy --mode {mode} {} > {}",
            more.join(" "),
            file.display()
        );
    }
}

#[test]
fn a_queue_hears_all_that_drover_reads_from_it() {
    let main = body("modules/notices/main.tf");
    let rules = hcl::format::to_string(
        main.blocks()
            .find(|block| block.identifier() == "locals")
            .expect("locals"),
    )
    .expect("HCL");
    for told in [
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
        "EC2 Instance-launch Lifecycle Action",
        "EC2 Instance-terminate Lifecycle Action",
        "AWS Health Event",
    ] {
        assert!(rules.contains(told), "{told}");
    }
}

fn provision(args: &[&str]) -> Output {
    Command::new("sh")
        .arg(root().join("packer/provision.sh"))
        .args(args)
        .output()
        .expect("sh runs")
}

#[test]
fn the_provisioning_script_installs_and_can_be_repeated() {
    let scratch = tempfile::tempdir().expect("a directory");
    let target = scratch.path().join("root");
    let identity = target.join("var/lib/drover-agent/identity");
    fs::create_dir_all(&identity).expect("made");
    let agent = scratch.path().join("drover-agent");
    fs::write(&agent, "#!/bin/sh\n").expect("written");
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("set");
    let (agent, target_text) = (
        agent.to_str().expect("UTF-8"),
        target.to_str().expect("UTF-8"),
    );

    for _ in 0..2 {
        passed(&provision(&["--agent", agent, "--root", target_text]));
        for (file, mode) in [
            ("usr/bin/drover-agent", 0o755),
            ("usr/lib/drover-agent/metadata-guard", 0o755),
            ("usr/lib/systemd/system/drover-agent.service", 0o644),
            (
                "usr/lib/systemd/system/drover-metadata-guard.service",
                0o644,
            ),
        ] {
            let found = fs::metadata(target.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert_eq!(found.permissions().mode() & 0o777, mode, "{file}");
        }
        let wanted = target.join("etc/systemd/system/multi-user.target.wants/drover-agent.service");
        assert!(wanted.symlink_metadata().is_ok(), "enabled");
        assert!(identity.exists(), "a node keeps its identity");
        assert!(
            !target.join("etc/drover-agent/drover-agent.toml").exists(),
            "the config is the machine's own"
        );
    }
    passed(&provision(&[
        "--agent",
        agent,
        "--root",
        target_text,
        "--image",
    ]));
    assert!(!identity.exists(), "an image carries no identity");

    let bare = scratch.path().join("bare");
    fs::create_dir(&bare).expect("made");
    let bare_text = bare.to_str().expect("UTF-8");
    passed(&provision(&[
        "--agent",
        agent,
        "--root",
        bare_text,
        "--bare-metal",
    ]));
    assert!(!bare.join("usr/lib/drover-agent/metadata-guard").exists());

    for (args, names) in [
        (vec![], "--agent"),
        (
            vec!["--agent", "/nowhere/drover-agent"],
            "/nowhere/drover-agent",
        ),
        (vec!["--agent", agent, "--root", "/nowhere"], "/nowhere"),
        (vec!["--agent", agent, "--image", "--bare-metal"], "exclude"),
        (vec!["--frobnicate"], "--frobnicate"),
    ] {
        let refused = provision(&args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains(names), "{args:?}: {said}");
    }
}
