//! Two coordinators: a copy of the store drives nothing that the first one drives.

use super::*;
use std::path::Path;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("the folder") {
        let entry = entry.expect("an entry");
        let place = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).expect("copies");
        }
    }
}

/// Acceptance: a stale second coordinator on a copy of the store refuses to start on the owner tag, and nothing is asked
/// twice, lost or ended.
#[test]
fn sc_89_a_second_coordinator_on_a_copy_of_the_store_refuses_to_start() {
    let pools = [pool(EAST, "copied")];
    let mut field = Field::start(&pools, Scenario::default());
    field.ask_for("job", 1);
    field.boot("copied", EAST, 1);
    field.served("job");
    // Killed, so that the file is whole; the first one goes on after the copy was made, and takes more work.
    field.coordinator.kill();
    let second = field.dir.path().join("second");
    copy(&field.coordinator.state_dir(), &second.join("state"));
    field.run("");
    field.ask_for("more", 1);
    field.boot("copied", EAST, 2);
    field.served("more");
    let before = field.ledger().mutations.len();

    let tables: String = pools.iter().map(Pool::table).collect();
    let aws = format!("[aws]\nendpoint = \"{}\"\n", field.proxy.url());
    let mut stale = Coordinator::prepare(&second, QUICK, &(tables + &aws));
    for what in ["a copy", "the same copy once more"] {
        stale.spawn(&[
            ("AWS_ACCESS_KEY_ID", "x"),
            ("AWS_SECRET_ACCESS_KEY", "y"),
            ("AWS_REGION", EAST),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]);
        assert_eq!(stale.ended(SOON), Some(1), "{what}\n{}", stale.tail());
        let said = stale.tail();
        assert!(
            said.contains("this store is a copy of the one that drives the group")
                && said.contains("copied")
                && said.contains("drover:owner=unclaimed"),
            "{what}: {said}"
        );
    }
    field.readings(3);
    let ledger = field.ledger();
    assert_eq!(ledger.mutations.len(), before, "{:?}", ledger.mutations);
    assert_eq!(ledger.launched(EAST, "copied"), 2);
    assert!(ledger.ends.is_empty());
    field.nobody_was_hurt();
}
