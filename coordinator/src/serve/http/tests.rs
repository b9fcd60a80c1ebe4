//! What the paths answer while a coordinator starts, works, fails and is fenced.

use super::*;
use crate::adapters::clock::ManualClock;
use crate::adapters::store::memory::{Disk, MemoryStore};
use crate::control::journal::Change;
use crate::ports::calls::CallCount;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use std::time::Duration;
use tower::ServiceExt as _;

struct NoCalls;

impl CallCounts for NoCalls {
    fn calls(&self) -> Vec<CallCount> {
        Vec::new()
    }
}

struct Rig {
    disk: Disk,
    page: Arc<Page>,
    journal: Arc<Journal>,
    pace: Arc<Pace>,
    views: watch::Sender<Arc<FleetView>>,
}

impl Rig {
    /// A coordinator that has opened its store and shows itself.
    async fn new() -> Self {
        let disk = Disk::default();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(UnixMs(1_800_000_000_000)));
        let store = Arc::new(MemoryStore::open(&disk));
        let journal = Journal::open(store, clock.clone()).await.expect("opened");
        let rig = Self {
            disk,
            page: Arc::default(),
            journal: Arc::new(journal),
            pace: Arc::default(),
            views: watch::channel(Arc::default()).0,
        };
        rig.page.show(Sources {
            views: rig.views.subscribe(),
            journal: rig.journal.clone(),
            pace: rig.pace.clone(),
            calls: Arc::new(NoCalls),
            clock,
            started: UnixMs(1_800_000_000_000),
        });
        rig
    }

    fn cycle(&self) {
        self.pace.cycled(Duration::from_millis(3));
        self.views
            .send_modify(|view| Arc::make_mut(view).cycle += 1);
    }
}

async fn ask(page: &Arc<Page>, method: &str, path: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Body::empty()).expect("a request");
    let answer = router(page.clone())
        .oneshot(request)
        .await
        .expect("never fails");
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn a_coordinator_that_starts_lives_and_is_not_ready() {
    let page = Arc::<Page>::default();
    assert_eq!(
        ask(&page, "GET", "/healthz").await,
        (200, "alive\n".to_owned())
    );
    for path in ["/readyz", "/metrics"] {
        let (status, said) = ask(&page, "GET", path).await;
        assert_eq!(
            (status, said.contains("is starting")),
            (503, true),
            "{said}"
        );
    }
}

#[tokio::test]
async fn it_is_ready_from_its_first_cycle_on_and_while_cycles_end_well() {
    let rig = Rig::new().await;
    let ready = async || ask(&rig.page, "GET", "/readyz").await;
    let (status, said) = ready().await;
    assert_eq!(
        (status, said.contains("no cycle has ended")),
        (503, true),
        "{said}"
    );
    assert_eq!(
        ask(&rig.page, "GET", "/metrics").await.0,
        200,
        "metrics come before"
    );
    rig.cycle();
    assert_eq!(ready().await, (200, "ready\n".to_owned()));
    rig.pace.failed();
    rig.pace.failed();
    let (status, said) = ready().await;
    assert_eq!(
        (status, said.contains("the last 2 cycles failed")),
        (503, true),
        "{said}"
    );
    rig.cycle();
    assert_eq!(ready().await.0, 200);
    assert_eq!(ask(&rig.page, "GET", "/healthz").await.0, 200);
}

#[tokio::test]
async fn i10_fenced_is_not_ready() {
    let rig = Rig::new().await;
    rig.cycle();
    let _other = MemoryStore::open(&rig.disk);
    let mut change = Change::new();
    change.audit("drover", "test", "store", "");
    rig.journal.commit(change).await.expect_err("fenced");
    let (status, said) = ask(&rig.page, "GET", "/readyz").await;
    assert_eq!(
        (status, said.contains("another coordinator leads")),
        (503, true),
        "{said}"
    );
}

#[tokio::test]
async fn nothing_but_reading_is_answered() {
    let rig = Rig::new().await;
    assert_eq!(ask(&rig.page, "POST", "/metrics").await.0, 405);
    assert_eq!(ask(&rig.page, "DELETE", "/readyz").await.0, 405);
    assert_eq!(ask(&rig.page, "GET", "/nodes").await.0, 404);
    let (status, said) = ask(&rig.page, "GET", "/").await;
    assert!(status == 200 && said.contains("/metrics"), "{said}");
}
