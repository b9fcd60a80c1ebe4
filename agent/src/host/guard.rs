//! statfs that cannot hang the agent: each mount that might block has one call in flight at most, on a thread of its
//! own, and is flagged as stuck until that call returns (AG-24).
//!
//! Called by the collector every tick.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::mounts::{Mount, Treatment};
use crate::observation::DiskUse;

/// Space of a file system, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size.
    pub total: u64,
    /// In use, with what is kept for root.
    pub used: u64,
}

/// How space is asked for.
pub type StatFs = Arc<dyn Fn(&Path) -> io::Result<Space> + Send + Sync>;

/// Asks the kernel.
#[must_use]
pub fn statvfs() -> StatFs {
    Arc::new(|path| {
        let stat = nix::sys::statvfs::statvfs(path)?;
        let unit = stat.fragment_size();
        Ok(Space {
            total: stat.blocks().saturating_mul(unit),
            used: stat
                .blocks()
                .saturating_sub(stat.blocks_free())
                .saturating_mul(unit),
        })
    })
}

/// The calls in flight.
pub struct Guard {
    statfs: StatFs,
    flying: BTreeMap<String, oneshot::Receiver<io::Result<Space>>>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("flying", &self.flying.keys())
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// Without a call in flight.
    #[must_use]
    pub fn new(statfs: StatFs) -> Self {
        Self {
            statfs,
            flying: BTreeMap::new(),
        }
    }

    /// Space of every mount. Waits `patience` at most, over all of them, for those that might block.
    pub async fn read(&mut self, mounts: &[Mount], patience: Duration) -> Vec<DiskUse> {
        let until = Instant::now() + patience;
        // All are under way before the first is waited for.
        for mount in mounts {
            if mount.treatment != Treatment::Local && !self.flying.contains_key(&mount.point) {
                let call = self.call(&mount.point);
                self.flying.insert(mount.point.clone(), call);
            }
        }
        let mut uses = Vec::with_capacity(mounts.len());
        for mount in mounts {
            let answer = match self.flying.get_mut(&mount.point) {
                None => Some((self.statfs)(Path::new(&mount.point))),
                Some(call) => match timeout_at(until, call).await {
                    Ok(answer) => {
                        self.flying.remove(&mount.point);
                        Some(answer.unwrap_or_else(|_| Err(io::Error::other("no thread"))))
                    }
                    Err(_) => None,
                },
            };
            uses.push(disk_use(&mount.point, answer));
        }
        uses
    }

    fn call(&self, point: &str) -> oneshot::Receiver<io::Result<Space>> {
        let (send, receive) = oneshot::channel();
        let statfs = Arc::clone(&self.statfs);
        let path = point.to_owned();
        let thread = std::thread::Builder::new()
            .name("statfs".to_owned())
            .stack_size(64 << 10)
            .spawn(move || {
                // Nobody may wait any more.
                let _gone = send.send(statfs(Path::new(&path)));
            });
        if let Err(error) = thread {
            tracing::debug!(%error, point, "no thread for statfs");
        }
        receive
    }
}

fn disk_use(point: &str, answer: Option<io::Result<Space>>) -> DiskUse {
    let stuck = answer.is_none();
    let space = answer.and_then(Result::ok);
    DiskUse {
        mount: point.to_owned(),
        used_bytes: space.map(|space| space.used),
        total_bytes: space.map(|space| space.total),
        stuck,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::{Condvar, Mutex};

    use super::*;

    /// A file system whose statfs blocks while `dead`.
    #[derive(Default)]
    struct Filer {
        calls: AtomicU32,
        revived: Mutex<bool>,
        bell: Condvar,
        inline: AtomicBool,
    }

    fn mounts() -> Vec<Mount> {
        [
            ("/", "ext4", Treatment::Local),
            ("/data", "xfs", Treatment::Local),
            ("/home", "nfs4", Treatment::Network),
            ("/scratch", "fuse", Treatment::Guarded),
        ]
        .map(|(point, kind, treatment)| Mount {
            point: point.to_owned(),
            kind: kind.to_owned(),
            treatment,
        })
        .to_vec()
    }

    fn threads() -> usize {
        std::fs::read_dir("/proc/self/task").unwrap().count()
    }

    #[tokio::test]
    async fn ag_24_a_dead_mount_costs_one_thread_and_no_other_value() {
        let filer = Arc::new(Filer::default());
        let server = Arc::clone(&filer);
        let main = std::thread::current().id();
        let statfs: StatFs = Arc::new(move |path| {
            if ["/home", "/scratch"].contains(&path.to_str().unwrap()) {
                server.calls.fetch_add(1, Ordering::SeqCst);
                if std::thread::current().id() == main {
                    server.inline.store(true, Ordering::SeqCst);
                }
                let mut revived = server.revived.lock().unwrap();
                while !*revived {
                    revived = server.bell.wait(revived).unwrap();
                }
            }
            Ok(Space {
                total: 100,
                used: 40,
            })
        });
        let mut guard = Guard::new(statfs);
        let patience = Duration::from_millis(5);
        let mut after_second = 0;
        for tick in 1..=100 {
            let uses = guard.read(&mounts(), patience).await;
            let flags: Vec<(bool, Option<u64>)> = uses
                .iter()
                .map(|disk| (disk.stuck, disk.used_bytes))
                .collect();
            let fine = (false, Some(40));
            assert_eq!(
                flags,
                [fine, fine, (true, None), (true, None)],
                "tick {tick}"
            );
            if tick == 2 {
                after_second = threads();
            }
        }
        // Other tests of this process run beside this one, so compare with slack far below 98 ticks x 2 mounts.
        assert!(threads() < after_second + 40, "threads leak");
        assert_eq!(
            filer.calls.load(Ordering::SeqCst),
            2,
            "one call a stuck mount"
        );
        assert!(!filer.inline.load(Ordering::SeqCst));

        *filer.revived.lock().unwrap() = true;
        filer.bell.notify_all();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let uses = guard.read(&mounts(), patience).await;
            if uses
                .iter()
                .all(|disk| !disk.stuck && disk.used_bytes == Some(40))
            {
                break;
            }
            assert!(Instant::now() < deadline, "still flagged: {uses:?}");
        }
    }

    #[tokio::test]
    async fn the_kernel_answers_for_the_root() {
        let mut guard = Guard::new(statvfs());
        let uses = guard.read(&mounts()[..1], Duration::ZERO).await;
        let total = uses[0].total_bytes.unwrap();
        assert!(total > 0 && uses[0].used_bytes.unwrap() <= total);
    }
}
