//! Instances that enrol with their identity document: no token, no secret in the image. A second one that holds the same
//! document is refused, alarms, and stops the first until a person has looked.

use crate::{QUICK, SOON};
use drover_tests::cloud::{Cloud, CloudGroup, INSTANCE_TYPE};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::identity_document::{Identity, Signer};
use drover_tests::imds::Metadata;
use drover_tests::wait;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Retries of a refused agent are rare.
const PATIENT: Duration = Duration::from_secs(150);
const REGION: &str = "us-west-2";

/// Now, as documents say it.
fn now() -> String {
    let said = Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .expect("date runs");
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}

/// A coordinator that believes `signer` for the region, over a cloud whose instances are records.
fn start(dir: &Path, signer: &Signer) -> (Cloud, Coordinator) {
    let certificate = dir.join(format!("{REGION}.pem"));
    fs::write(&certificate, signer.certificate_pem()).expect("a certificate can be written");
    let group = CloudGroup {
        gpus: 2,
        region: REGION.to_owned(),
        ..CloudGroup::new("west")
    };
    let mut cloud = Cloud::new(dir, vec![group]);
    cloud.without_processes();
    let config = format!(
        "{}\n[enrolment.instance_identity]\naccounts = [\"123456789012\"]\ncertificates = [{certificate:?}]\n",
        cloud.pools("mode = \"full\"\nidle_after = \"1h\""),
    );
    let coordinator = Coordinator::start(&dir.join("c"), QUICK, &config);
    cloud.start(&coordinator);
    (cloud, coordinator)
}

/// Asks for a node's worth and gives the instance that comes.
fn launched(coordinator: &Coordinator) -> String {
    let wish = ["requests", "create", "--name", "job", "--gpus", "2"];
    coordinator.ask(&[&wish[..], &["--gpus-per-unit", "2"]].concat());
    coordinator.until("an instance is launched", SOON, || {
        let nodes = coordinator.ask(&["nodes", "list"]);
        let found = nodes
            .as_array()?
            .iter()
            .find_map(|node| node["instance_id"].as_str());
        found.map(str::to_owned)
    })
}

/// A host whose agent proves itself with this instance's metadata.
fn host(dir: &Path, name: &str, of: (&Coordinator, &Metadata, &str)) -> Host {
    let (coordinator, metadata, instance) = of;
    let host = Host::new(dir, name, "k80", 2);
    let token = coordinator.token(&[]);
    let hash = token
        .rsplit('.')
        .next()
        .expect("a token ends in the CA's hash");
    let join = format!("[join]\nmethod = \"instance-identity\"\nca_sha256 = \"{hash}\"\n");
    let extra = join + &metadata.of(instance);
    host.configure(&coordinator.address(), "", &extra);
    host
}

#[test]
fn an_instance_enrols_without_a_token_and_a_second_claim_stops_both_until_a_person_has_looked() {
    let dir = tempfile::tempdir().expect("a folder");
    let signer = Signer::first();
    let (cloud, coordinator) = start(dir.path(), &signer);
    let instance = launched(&coordinator);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let metadata = runtime.block_on(Metadata::start(INSTANCE_TYPE));
    let document = Identity {
        instance: instance.clone(),
        account: "123456789012".to_owned(),
        region: REGION.to_owned(),
        zone: format!("{REGION}a"),
        instance_type: INSTANCE_TYPE.to_owned(),
        image: "ami-0aabbccdd".to_owned(),
        pending: now(),
    }
    .document();
    // Altered by whoever sits between: not believed, told, and nothing comes of it.
    let altered = document.replace("ami-0aabbccdd", "ami-0ffffffff");
    metadata.identity(&instance, &altered, &signer.sign(&document));
    let of = (&coordinator, &metadata, instance.as_str());
    let mut first = host(dir.path(), "ip-10-0-0-7", of);
    first.start();
    first.logged("not the one that was signed", SOON);
    assert!(coordinator.node("ip-10-0-0-7").is_none());

    // As it is: the agent comes back by itself and becomes ready, in the pool that its provider names.
    metadata.identity(&instance, &document, &signer.sign(&document));
    let node = coordinator.node_in("ip-10-0-0-7", "ready", PATIENT);
    let id = node["id"].as_str().expect("an id").to_owned();
    assert_eq!(node["pool"], "west", "{node}");
    assert_eq!(node["instance_id"], instance.as_str());
    let with = node["enrolled_with"].as_str().unwrap_or_default();
    assert!(
        with.contains("account 123456789012") && with.contains("ami-0aabbccdd"),
        "{node}"
    );
    let mut job = first.job(&[0], 600);

    // Another machine holds the same document.
    let mut second = host(dir.path(), "thief", of);
    second.start();
    second.logged("claimed by another key", SOON);
    let told = coordinator.events("quarantined");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["severity"], "alarm");
    let quarantined = coordinator.until("the node is in quarantine", SOON, || {
        let node = coordinator.node("ip-10-0-0-7")?;
        (node["quarantine"].is_string() && node["unreachable"] == true).then_some(node)
    });
    assert!(
        quarantined["quarantine"]
            .as_str()
            .unwrap_or_default()
            .contains("thief")
    );
    let status = coordinator.ask(&["status"]);
    assert!(
        status["alarms"].to_string().contains("node_quarantined"),
        "{status}"
    );
    first.logged("quarantine", SOON);
    assert!(coordinator.node("thief").is_none());
    // Nothing was killed: the job runs, the instance as well.
    assert!(job.runs());
    assert_eq!(cloud.count("terminated"), 0);

    // A person ends the second and readmits: the first takes a new key by itself and is the same node.
    second.kill();
    let shown = coordinator.ask(&["nodes", "readmit", &id, "--reason", "the thief is gone"]);
    assert_eq!(shown["quarantine"], serde_json::Value::Null, "{shown}");
    let back = coordinator.node_in("ip-10-0-0-7", "ready", PATIENT);
    assert_eq!(back["id"], id.as_str());
    assert!(first.log().contains("took the key of this node back"));
    assert!(job.runs());
    let audit = coordinator.ask(&["audit", "list"]).to_string();
    for verb in ["node.enrol", "node.quarantine", "node.readmit"] {
        assert!(audit.contains(verb), "{audit}");
    }
    wait::until("no alarm stays", SOON, || {
        let status = coordinator.ask(&["status"]);
        (!status["alarms"].to_string().contains("node_quarantined")).then_some(())
    });
}
