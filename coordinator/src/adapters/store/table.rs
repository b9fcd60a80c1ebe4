//! What every engine must do: one table, run by the tests of each. `open` opens a store by name, again when it exists.

use crate::ports::store::{
    COMMIT_OPS, CommitError, Fence, Guard, Op, Revision, Store, VALUE_BYTES,
};

fn put(key: &str, value: &str) -> Op {
    Op::Put(key.into(), value.into())
}

fn delete(key: &str) -> Op {
    Op::Delete(key.into())
}

async fn keys(store: &impl Store, prefix: &str) -> Vec<String> {
    let entries = store.list(prefix).await.unwrap();
    entries.into_iter().map(|entry| entry.key).collect()
}

/// Reads, guards, atomicity, limits, reopening.
pub(super) async fn every_engine<S: Store>(open: impl AsyncFn(&str) -> S) {
    let store = open("table").await;
    let fence = store.fence();
    assert_eq!(store.store_id().len(), 16);
    assert_eq!(store.get("/a").await.unwrap(), None);

    // Create, and only once.
    let first = store
        .commit(
            fence,
            &[Guard::Absent("/a".into())],
            &[put("/a", "1"), put("/b", "1")],
        )
        .await
        .unwrap();
    let again = store
        .commit(fence, &[Guard::Absent("/a".into())], &[put("/a", "2")])
        .await;
    assert!(matches!(again, Err(CommitError::Conflict { key }) if key == "/a"));
    let entry = store.get("/a").await.unwrap().unwrap();
    assert_eq!((entry.value.as_slice(), entry.revision), (&b"1"[..], first));

    // Change by revision; a stale one changes nothing of the whole commit.
    let second = store
        .commit(
            fence,
            &[Guard::Unchanged("/a".into(), first)],
            &[put("/a", "2")],
        )
        .await
        .unwrap();
    assert!(second > first);
    for guards in [
        vec![Guard::Unchanged("/a".into(), first)],
        vec![
            Guard::Unchanged("/a".into(), second),
            Guard::Unchanged("/b".into(), second),
        ],
        vec![Guard::Unchanged("/none".into(), first)],
        vec![Guard::Unchanged("/none".into(), Revision(0))],
    ] {
        let result = store
            .commit(fence, &guards, &[put("/c", "no"), delete("/b")])
            .await;
        assert!(
            matches!(result, Err(CommitError::Conflict { .. })),
            "{guards:?}"
        );
    }
    assert_eq!(keys(&store, "/").await, ["/a", "/b"]);

    // A commit without operations changes nothing and tells whether we lead and what still holds.
    let same = store.commit(fence, &[], &[]).await.unwrap();
    assert_eq!(same, second);

    // Prefixes end where they end, in key order.
    let ops: Vec<Op> = ["/n/2", "/n/10", "/n/1", "/na", "/n", "/n/\u{e9}", "/o/1"]
        .iter()
        .map(|key| put(key, "x"))
        .collect();
    store.commit(fence, &[], &ops).await.unwrap();
    assert_eq!(
        keys(&store, "/n/").await,
        ["/n/1", "/n/10", "/n/2", "/n/\u{e9}"]
    );
    assert_eq!(keys(&store, "/none/").await, [""; 0]);

    // Deleting: again is nothing, and a recreated key has a new revision.
    store
        .commit(fence, &[], &[delete("/b"), delete("/b")])
        .await
        .unwrap();
    assert_eq!(store.get("/b").await.unwrap(), None);
    let back = store.commit(fence, &[], &[put("/b", "1")]).await.unwrap();
    let stale = store
        .commit(
            fence,
            &[Guard::Unchanged("/b".into(), first)],
            &[delete("/b")],
        )
        .await;
    assert!(matches!(stale, Err(CommitError::Conflict { .. })));
    assert_eq!(store.get("/b").await.unwrap().unwrap().revision, back);

    limits(&store).await;

    // What was committed is there after a restart.
    let id = store.store_id().to_owned();
    drop(store);
    let reopened = open("table").await;
    assert_eq!(reopened.store_id(), id);
    assert!(reopened.fence() > fence);
    assert_eq!(reopened.get("/a").await.unwrap().unwrap().value, b"2");
    let next = reopened
        .commit(reopened.fence(), &[], &[put("/z", "1")])
        .await
        .unwrap();
    assert!(next > back, "revisions go on after a restart");
    let other = open("other").await;
    assert_ne!(other.store_id(), reopened.store_id());
}

async fn limits(store: &impl Store) {
    let fence = store.fence();
    let most: Vec<Op> = (0..COMMIT_OPS)
        .map(|n| put(&format!("/l/{n}"), "x"))
        .collect();
    store.commit(fence, &[], &most).await.unwrap();
    let mut beyond = most.clone();
    beyond.push(put("/l/beyond", "x"));
    let large = |bytes| Op::Put("/l/large".into(), vec![0; bytes]);
    store
        .commit(fence, &[], &[large(VALUE_BYTES)])
        .await
        .unwrap();
    for ops in [
        beyond,
        vec![put("/l/new", "x"), large(VALUE_BYTES + 1)],
        vec![put("", "x")],
        vec![put(&"k".repeat(2_000), "x")],
    ] {
        let result = store.commit(fence, &[], &ops).await;
        assert!(
            matches!(result, Err(CommitError::TooLarge(_))),
            "{result:?}"
        );
    }
    assert_eq!(store.get("/l/new").await.unwrap(), None);
}

/// I10: whoever opens later leads, and what came before changes nothing any more.
pub(super) async fn i10_fenced<S: Store>(open: impl AsyncFn(&str) -> S) {
    let old = open("fenced").await;
    let op = [put("/a", "old")];
    old.commit(old.fence(), &[], &op).await.unwrap();

    let new = open("fenced").await;
    assert!(new.fence() > old.fence());
    let refused = old.commit(old.fence(), &[], &[put("/a", "stale")]).await;
    let Err(CommitError::Fenced { mine, current }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((Fence(mine), Fence(current)), (old.fence(), new.fence()));
    assert!(matches!(
        old.commit(old.fence(), &[], &[]).await,
        Err(CommitError::Fenced { .. })
    ));
    // Nor does a fence that nobody has.
    assert!(matches!(
        new.commit(Fence(new.fence().0 + 1), &[], &op).await,
        Err(CommitError::Fenced { .. })
    ));
    assert_eq!(new.get("/a").await.unwrap().unwrap().value, b"old");
    new.commit(new.fence(), &[], &[put("/a", "new")])
        .await
        .unwrap();
    assert_eq!(old.get("/a").await.unwrap().unwrap().value, b"new");
}
