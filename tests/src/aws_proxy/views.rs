//! Groups as moto has them, remembered as long as nothing has changed: a thousand members take moto a tenth of a second.
//!
//! Used through [`Proxy::view`]. A view ends with any change that goes through the proxy or through `Moto`'s own calls, and
//! by itself after a second, since another program may change moto as well.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::group_view::GroupView;
use super::server::Proxy;
use super::state::RegionState;

const LIFE: Duration = Duration::from_secs(1);

static OUTSIDE: AtomicU64 = AtomicU64::new(0);

/// Notes that this process changes moto behind its proxies' backs; to be called before and after.
pub(crate) fn note_outside_change() {
    OUTSIDE.fetch_add(1, Ordering::SeqCst);
}

/// What had changed in a region when something was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    through: u64,
    outside: u64,
}

impl Mark {
    pub(super) fn new(through: u64) -> Self {
        let outside = OUTSIDE.load(Ordering::SeqCst);
        Self { through, outside }
    }

    /// The mark after one change of our own, before and after which it is counted.
    fn after_one(self) -> Self {
        Self {
            through: self.through + 2,
            ..self
        }
    }
}

#[derive(Debug)]
struct Kept {
    at: Instant,
    mark: Mark,
    view: Arc<GroupView>,
}

/// The views of a region.
#[derive(Debug, Default)]
pub(super) struct Views(BTreeMap<String, Kept>);

impl Views {
    /// One change of our own took place between two marks, and all that it did to these groups is what `change` does.
    pub(super) fn carry(
        &mut self,
        before: Mark,
        after: Mark,
        mut change: impl FnMut(&str, &mut GroupView),
    ) {
        if after != before.after_one() {
            return;
        }
        for (name, kept) in self.0.iter_mut().filter(|(_, k)| k.mark == before) {
            change(name, Arc::make_mut(&mut kept.view));
            kept.mark = after;
        }
    }
}

impl Proxy {
    /// A group as moto has it; `None` when there is no such group.
    pub(super) async fn view(
        &self,
        state: &mut RegionState,
        region: &str,
        name: &str,
    ) -> Result<Option<Arc<GroupView>>, String> {
        let mark = self.upstream().mark(region);
        if let Some(kept) = state.views.0.get(name)
            && kept.mark == mark
            && kept.at.elapsed() < LIFE
        {
            return Ok(Some(kept.view.clone()));
        }
        let Some(view) = GroupView::read(self.upstream(), region, name).await? else {
            state.views.0.remove(name);
            return Ok(None);
        };
        let view = Arc::new(view);
        let kept = Kept {
            at: Instant::now(),
            mark,
            view: view.clone(),
        };
        state.views.0.insert(name.to_owned(), kept);
        Ok(Some(view))
    }
}
