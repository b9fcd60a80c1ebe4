//! Tests of backup and restore: what comes back, frozen, and what is refused.

use super::super::ca::{Ca, CaError};
use super::super::clock::ManualClock;
use super::sealed::{HEADER, MAGIC};
use super::*;

const NOW: UnixMs = UnixMs(1_800_000_000_000);
const WORDS: &str = "twelve chars";
/// Fewer iterations: the real ones take seconds in a debug build.
const FAST: u32 = 1_000;

#[tokio::test]
async fn a_backup_comes_back_frozen_and_only_with_its_passphrase() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    private::directory(&from).unwrap();
    let clock = ManualClock::at(NOW);
    let store = SqliteStore::open(&from.join(FILE_NAME)).unwrap();
    let ca = Ca::open(&from, &store, &clock).await.unwrap();
    let op = Op::Put("/request/job".into(), b"{}".to_vec());
    store.commit(store.fence(), &[], &[op]).await.unwrap();

    let short = create_with(&store, &from, "eleven char", FAST).await;
    assert!(matches!(short, Err(BackupError::Passphrase)));
    let sealed = create_with(&store, &from, WORDS, FAST).await.unwrap();
    let left: Vec<_> = std::fs::read_dir(&from)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("backup"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let key = std::fs::read(from.join(KEY_FILE)).unwrap();
    let visible = |needle: &[u8]| sealed.windows(needle.len()).any(|part| part == needle);
    assert!(!visible(&key) && !visible(b"PRIVATE") && !visible(b"/request/job"));
    let file = dir.path().join("backup");
    std::fs::write(&file, &sealed).unwrap();

    let to = dir.path().join("to");
    let wrong = restore_with(&file, &to, "other words!", NOW, FAST).await;
    assert!(
        matches!(wrong, Err(BackupError::Sealed { .. })),
        "{wrong:?}"
    );
    assert_eq!(
        std::fs::read_dir(&to).unwrap().count(),
        0,
        "nothing was written"
    );
    let full = restore_with(&file, &from, WORDS, NOW, FAST).await;
    assert!(matches!(full, Err(BackupError::NotEmpty { .. })));

    restore_with(&file, &to, WORDS, NOW, FAST).await.unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [KEY_FILE, FILE_NAME]);
    let again = SqliteStore::open(&to.join(FILE_NAME)).unwrap();
    assert_eq!(again.store_id(), store.store_id());
    assert!(again.fence() > store.fence());
    assert!(again.get("/request/job").await.unwrap().is_some());
    let frozen = again.get("/freeze/*").await.unwrap().unwrap();
    let frozen: FreezeRecord = serde_json::from_slice(&frozen.value).unwrap();
    assert_eq!(
        (frozen.by.as_str(), frozen.pool, frozen.since),
        ("restore", None, NOW)
    );
    assert_eq!(again.list(keys::AUDIT).await.unwrap().len(), 1);
    let same = Ca::open(&to, &again, &clock).await.unwrap();
    assert_eq!(same.sha256(), ca.sha256());

    // The store of one coordinator with the key of another does not start.
    let other = dir.path().join("other");
    private::directory(&other).unwrap();
    let stranger = SqliteStore::open(&other.join(FILE_NAME)).unwrap();
    Ca::open(&other, &stranger, &clock).await.unwrap();
    std::fs::copy(other.join(KEY_FILE), to.join(KEY_FILE)).unwrap();
    let refused = Ca::open(&to, &again, &clock).await.unwrap_err();
    assert!(matches!(refused, CaError::KeyDiffers { .. }));
}

#[test]
fn files_that_are_none_or_were_changed() {
    let path = Path::new("backup");
    let sealed = seal(b"key", b"store", WORDS, FAST).unwrap();
    assert_eq!(
        unseal(path, &sealed, WORDS, FAST).unwrap(),
        (b"key".to_vec(), b"store".to_vec())
    );
    let changed = |at: usize| {
        let mut bytes = sealed.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cut = sealed[..sealed.len() - 1].to_vec();
    for (what, bytes, foreign) in [
        ("empty", Vec::new(), true),
        ("header only", sealed[..HEADER - 1].to_vec(), true),
        ("other file", vec![b'x'; 200], true),
        ("few iterations", changed(MAGIC.len() + 2), true),
        ("many iterations", changed(MAGIC.len()), true),
        ("salt", changed(MAGIC.len() + 5), false),
        ("body", changed(HEADER + 2), false),
        ("cut", cut, false),
    ] {
        let error = unseal(path, &bytes, WORDS, FAST).unwrap_err();
        let is_foreign = matches!(error, BackupError::NotABackup { .. });
        assert_eq!(is_foreign, foreign, "{what}: {error}");
    }
}

#[test]
fn a_file_that_is_sealed_with_less_work_is_refused() {
    let sealed = seal(b"key", b"store", WORDS, FAST).unwrap();
    let error = unseal(Path::new("backup"), &sealed, WORDS, ITERATIONS).unwrap_err();
    assert!(matches!(error, BackupError::NotABackup { .. }));
    const { assert!(ITERATIONS >= 600_000) }
}
