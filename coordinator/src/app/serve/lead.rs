//! Leadership of the store as a start and an end see it: whom this coordinator fences, and that it was fenced itself.
//!
//! Called by `app::serve`. A coordinator that lost the leadership must not end as if all were well: whoever watches the
//! process (systemd) restarts it or alarms.

use crate::ports::clock::Clock;
use crate::ports::store::{CommitError, Store};
use crate::records::keys;
use drover_core::model::{Millis, UnixMs};
use std::path::Path;

/// The "alive" record is written once a minute; one that is older was left by a coordinator that has ended.
const RECENT: Millis = Millis::seconds(70);

/// How long ago another leadership of this store was alive, when that is so recent that it may still run.
pub(super) async fn predecessor(store: &dyn Store, clock: &dyn Clock) -> Option<Millis> {
    // A store that cannot be read fails the start soon after, with its cause.
    let entry = store.get(keys::ALIVE).await.ok()??;
    let last: UnixMs = serde_json::from_slice(&entry.value).ok()?;
    let ago = clock.wall().since(last);
    (ago <= RECENT).then_some(ago)
}

/// Why the whole ended although nobody asked for it.
pub(super) async fn ended_by_itself(store: &dyn Store, state_dir: &Path) -> anyhow::Error {
    match store.commit(store.fence(), &[], &[]).await {
        Err(error @ CommitError::Fenced { .. }) => fenced(error, state_dir),
        Err(error) => anyhow::Error::new(error).context("the gRPC port ended by itself"),
        Ok(_) => anyhow::anyhow!("the gRPC port ended by itself"),
    }
}

/// Somebody else leads.
pub(super) fn fenced(
    error: impl std::error::Error + Send + Sync + 'static,
    state_dir: &Path,
) -> anyhow::Error {
    anyhow::Error::new(error).context(format!(
        "another coordinator took over the store in {}: this one has stopped and changes nothing; run one `drover serve` \
         on a store, never two",
        state_dir.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::clock::ManualClock;
    use crate::adapters::store::memory::{Disk, MemoryStore};
    use crate::ports::store::Op;

    const NOW: UnixMs = UnixMs(1_800_000_000_000);

    #[tokio::test]
    async fn a_store_whose_leader_was_alive_within_the_minute_is_told() {
        let disk = Disk::default();
        let clock = ManualClock::at(NOW);
        let store = MemoryStore::open(&disk);
        assert_eq!(predecessor(&store, &clock).await, None, "a new store");
        for (ago, told) in [(0, true), (59_000, true), (71_000, false)] {
            let value = (NOW.0 - ago).to_string().into_bytes();
            let op = Op::Put(keys::ALIVE.to_owned(), value);
            store.commit(store.fence(), &[], &[op]).await.unwrap();
            let found = predecessor(&store, &clock).await;
            assert_eq!(found, told.then_some(Millis(ago)));
        }
    }

    #[tokio::test]
    async fn a_fenced_coordinator_says_that_another_took_over() {
        let disk = Disk::default();
        let first = MemoryStore::open(&disk);
        let dir = Path::new("/var/lib/drover");
        let text = format!("{:#}", ended_by_itself(&first, dir).await);
        assert!(text.contains("port ended by itself"), "{text}");
        let _second = MemoryStore::open(&disk);
        let text = format!("{:#}", ended_by_itself(&first, dir).await);
        assert!(text.contains("another coordinator took over"), "{text}");
        assert!(text.contains("/var/lib/drover"), "{text}");
    }
}
